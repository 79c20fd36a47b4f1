// Backups of databases.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class DB;

using BackupID = uint32_t;

struct BackupEngineOptions {
#include "rocksdb/fields/BackupEngineOptions.inc"

  // How the names of shared tables are made.
  enum ShareFilesNaming : uint32_t {
    kLegacyCrc32cAndFileSize = 1U,
    kUseDbSessionId = 2U,
    kMaskNoNamingFlags = 0xffffU,
    kFlagIncludeFileSize = 1U << 31,
    kMaskNamingFlags = ~kMaskNoNamingFlags,
  };

  std::string backup_dir;
  Env* backup_env = nullptr;
  Logger* info_log = nullptr;
  std::shared_ptr<RateLimiter> backup_rate_limiter;
  std::shared_ptr<RateLimiter> restore_rate_limiter;
  ShareFilesNaming share_files_with_checksum_naming =
      static_cast<ShareFilesNaming>(kUseDbSessionId | kFlagIncludeFileSize);

  explicit BackupEngineOptions(const std::string& dir, Env* env = nullptr,
                               bool shares_tables = true, Logger* log = nullptr,
                               bool syncs = true, bool destroys_old = false,
                               bool backs_up_logs = true, uint64_t backup_limit = 0,
                               uint64_t restore_limit = 0)
      : backup_dir(dir), backup_env(env), info_log(log) {
    share_table_files = shares_tables;
    sync = syncs;
    destroy_old_data = destroys_old;
    backup_log_files = backs_up_logs;
    backup_rate_limit = backup_limit;
    restore_rate_limit = restore_limit;
  }
};

// A file that may be left out of a backup.
struct BackupExcludedFileInfo {
  explicit BackupExcludedFileInfo(const std::string& file) : relative_file(file) {}

  std::string relative_file;
};

struct MaybeExcludeBackupFile {
  explicit MaybeExcludeBackupFile(BackupExcludedFileInfo&& of) : info(std::move(of)) {}

  const BackupExcludedFileInfo info;
  bool exclude_decision = false;
};

struct CreateBackupOptions {
#include "rocksdb/fields/CreateBackupOptions.inc"

  std::function<void()> progress_callback = {};
  // Sets `exclude_decision` of files that another place has. An exception ends the process.
  std::function<void(MaybeExcludeBackupFile* begin, MaybeExcludeBackupFile* end)>
      exclude_files_callback = {};
};

struct RestoreOptions {
#include "rocksdb/fields/RestoreOptions.inc"

  enum Mode : uint32_t {
    kKeepLatestDbSessionIdFiles = 1U,
    kVerifyChecksum = 2U,
    kPurgeAllFiles = 0xffffU,
  };
  Mode mode = kPurgeAllFiles;

  RestoreOptions() = default;
  explicit RestoreOptions(bool keeps_logs, Mode with = kPurgeAllFiles) : mode(with) {
    keep_log_files = keeps_logs;
  }
};

struct BackupInfo {
  BackupID backup_id = 0;
  int64_t timestamp = 0;
  uint64_t size = 0;
  uint32_t number_files = 0;
  std::string app_metadata;
};

class BackupEngineReadOnlyBase {
 public:
  virtual ~BackupEngineReadOnlyBase();
  virtual void GetBackupInfo(std::vector<BackupInfo>* infos,
                             bool include_file_details = false) const = 0;
  virtual Status VerifyBackup(BackupID id, bool verify_with_checksum = false) const = 0;
  virtual Status RestoreDBFromBackup(const RestoreOptions& options, BackupID id,
                                     const std::string& db_dir,
                                     const std::string& wal_dir) const = 0;
  Status RestoreDBFromBackup(BackupID id, const std::string& db_dir, const std::string& wal_dir,
                             const RestoreOptions& options = RestoreOptions()) const {
    return RestoreDBFromBackup(options, id, db_dir, wal_dir);
  }
  virtual Status RestoreDBFromLatestBackup(const RestoreOptions& options,
                                           const std::string& db_dir,
                                           const std::string& wal_dir) const = 0;
  Status RestoreDBFromLatestBackup(const std::string& db_dir, const std::string& wal_dir,
                                   const RestoreOptions& options = RestoreOptions()) const {
    return RestoreDBFromLatestBackup(options, db_dir, wal_dir);
  }
};

class BackupEngineReadOnly : public BackupEngineReadOnlyBase {
 public:
  static Status Open(const BackupEngineOptions& options, Env* env, BackupEngineReadOnly** engine);
  static Status Open(Env* env, const BackupEngineOptions& options,
                     BackupEngineReadOnly** engine) {
    return Open(options, env, engine);
  }
};

class BackupEngine : public BackupEngineReadOnly {
 public:
  static Status Open(const BackupEngineOptions& options, Env* env, BackupEngine** engine);
  static Status Open(Env* env, const BackupEngineOptions& options, BackupEngine** engine) {
    return Open(options, env, engine);
  }

  virtual Status CreateNewBackupWithMetadata(const CreateBackupOptions& options, DB* db,
                                             const std::string& app_metadata,
                                             BackupID* id = nullptr) = 0;
  Status CreateNewBackup(const CreateBackupOptions& options, DB* db, BackupID* id = nullptr) {
    return CreateNewBackupWithMetadata(options, db, "", id);
  }
  Status CreateNewBackup(DB* db, bool flush_before_backup = false,
                         std::function<void()> progress_callback = {}) {
    CreateBackupOptions options;
    options.flush_before_backup = flush_before_backup;
    options.progress_callback = std::move(progress_callback);
    return CreateNewBackup(options, db);
  }
  virtual Status PurgeOldBackups(uint32_t num_backups_to_keep) = 0;
  virtual Status DeleteBackup(BackupID id) = 0;
  virtual void StopBackup() = 0;
};

}  // namespace ROCKSDB_NAMESPACE
