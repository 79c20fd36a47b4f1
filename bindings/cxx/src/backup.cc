// Checkpoints, backups, and tables that are made outside a database.

#include "convert.h"
#include "files.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"

namespace ROCKSDB_NAMESPACE {

namespace {

class CheckpointImpl final : public Checkpoint {
 public:
  CheckpointImpl(DB* db, rocksdb_checkpoint_t* handle) : db_(db), handle_(handle) {}
  ~CheckpointImpl() override { rocksdb_checkpoint_object_destroy(handle_); }
  Status CreateCheckpoint(const std::string& dir, uint64_t log_size_for_flush,
                          uint64_t* sequence_number) override {
    // A checkpoint holds what was written before it began.
    if (sequence_number != nullptr) *sequence_number = db_->GetLatestSequenceNumber();
    ErrorText error;
    rocksdb_checkpoint_create(handle_, dir.c_str(), log_size_for_flush, error);
    return error.status();
  }
  Status ExportColumnFamily(ColumnFamilyHandle* family, const std::string& dir,
                            ExportImportFilesMetaData** files) override {
    *files = nullptr;
    ErrorText error;
    Handle<rocksdb_export_import_files_metadata_t> made(
        rocksdb_checkpoint_export_column_family(handle_, ToC(family), dir.c_str(), error),
        rocksdb_export_import_files_metadata_destroy);
    if (!error.ok()) return error.status();
    *files = new ExportImportFilesMetaData(ToCxx(made.get()));
    return Status::OK();
  }

 private:
  DB* db_;
  rocksdb_checkpoint_t* handle_;
};

class BackupEngineImpl final : public BackupEngine {
 public:
  explicit BackupEngineImpl(rocksdb_backup_engine_t* handle) : handle_(handle) {}
  ~BackupEngineImpl() override { rocksdb_backup_engine_close(handle_); }

  Status CreateNewBackupWithMetadata(const CreateBackupOptions& options, DB* db,
                                     const std::string& app_metadata, BackupID* id) override {
    auto with = ToC(options);
    if (options.progress_callback) {
      rocksdb_create_backup_options_set_progress_callback(
          with.get(), const_cast<std::function<void()>*>(&options.progress_callback), Progress);
    }
    if (options.exclude_files_callback) {
      rocksdb_create_backup_options_set_exclude_files_callback(
          with.get(), const_cast<CreateBackupOptions*>(&options), Excludes);
    }
    BackupID made = 0;
    ErrorText error;
    rocksdb_backup_engine_create_new_backup_with_metadata(handle_, HandleOf(db), with.get(),
                                                          app_metadata.data(),
                                                          app_metadata.size(), &made, error);
    if (id != nullptr) *id = made;
    return error.status();
  }
  Status PurgeOldBackups(uint32_t num_backups_to_keep) override {
    ErrorText error;
    rocksdb_backup_engine_purge_old_backups(handle_, num_backups_to_keep, error);
    return error.status();
  }
  Status DeleteBackup(BackupID id) override {
    ErrorText error;
    esker_backup_engine_delete_backup(handle_, id, error);
    return error.status();
  }
  void StopBackup() override { rocksdb_backup_engine_stop_backup(handle_); }

  void GetBackupInfo(std::vector<BackupInfo>* infos, bool) const override {
    infos->clear();
    const rocksdb_backup_engine_info_t* from = rocksdb_backup_engine_get_backup_info(handle_);
    if (from == nullptr) return;
    const int count = rocksdb_backup_engine_info_count(from);
    for (int i = 0; i < count; ++i) {
      BackupInfo info;
      info.backup_id = rocksdb_backup_engine_info_backup_id(from, i);
      info.timestamp = rocksdb_backup_engine_info_timestamp(from, i);
      info.size = rocksdb_backup_engine_info_size(from, i);
      info.number_files = rocksdb_backup_engine_info_number_files(from, i);
      size_t length = 0;
      const char* metadata = rocksdb_backup_engine_info_app_metadata(from, i, &length);
      if (metadata != nullptr) info.app_metadata.assign(metadata, length);
      infos->push_back(info);
    }
    rocksdb_backup_engine_info_destroy(from);
  }
  Status VerifyBackup(BackupID id, bool) const override {
    ErrorText error;
    rocksdb_backup_engine_verify_backup(handle_, id, error);
    return error.status();
  }
  Status RestoreDBFromBackup(const RestoreOptions& options, BackupID id,
                             const std::string& db_dir,
                             const std::string& wal_dir) const override {
    auto with = ToC(options);
    ErrorText error;
    rocksdb_backup_engine_restore_db_from_backup(handle_, db_dir.c_str(), wal_dir.c_str(),
                                                 with.get(), id, error);
    return error.status();
  }
  Status RestoreDBFromLatestBackup(const RestoreOptions& options, const std::string& db_dir,
                                   const std::string& wal_dir) const override {
    auto with = ToC(options);
    ErrorText error;
    rocksdb_backup_engine_restore_db_from_latest_backup(handle_, db_dir.c_str(), wal_dir.c_str(),
                                                        with.get(), error);
    return error.status();
  }

 private:
  static unsigned char Excludes(void* state, const char* file, size_t length) noexcept {
    return MustNotThrow("a backup's exclude_files_callback", [&]() -> unsigned char {
      MaybeExcludeBackupFile asked(BackupExcludedFileInfo(std::string(file, length)));
      static_cast<CreateBackupOptions*>(state)->exclude_files_callback(&asked, &asked + 1);
      return asked.exclude_decision ? 1 : 0;
    });
  }
  static void Progress(void* state) noexcept {
    MustNotThrow("a backup's progress_callback",
                 [&] { (*static_cast<std::function<void()>*>(state))(); });
  }

  rocksdb_backup_engine_t* handle_;
};

bool IsForeign(Env* env) {
  return env != nullptr && env != Env::Default() && env->EskerHandle() == nullptr;
}

Status OpenBackups(const BackupEngineOptions& options, Env* env, BackupEngineImpl** engine) {
  *engine = nullptr;
  const bool is_foreign = IsForeign(env) || IsForeign(options.backup_env);
  if (is_foreign) return Status::NotSupported("env of the application's own");
  auto with = ToC(options);
  Handle<rocksdb_env_t> system(rocksdb_create_default_env(), rocksdb_env_destroy);
  auto* of_engine = env == nullptr ? nullptr : static_cast<rocksdb_env_t*>(env->EskerHandle());
  ErrorText error;
  auto* handle = rocksdb_backup_engine_open_opts(
      with.get(), of_engine == nullptr ? system.get() : of_engine, error);
  if (!error.ok()) return error.status();
  *engine = new BackupEngineImpl(handle);
  return Status::OK();
}

}  // namespace

Status Checkpoint::Create(DB* db, Checkpoint** checkpoint) {
  *checkpoint = nullptr;
  ErrorText error;
  auto* handle = rocksdb_checkpoint_object_create(HandleOf(db), error);
  if (!error.ok()) return error.status();
  *checkpoint = new CheckpointImpl(db, handle);
  return Status::OK();
}

Status BackupEngine::Open(const BackupEngineOptions& options, Env* env, BackupEngine** engine) {
  BackupEngineImpl* opened = nullptr;
  Status status = OpenBackups(options, env, &opened);
  *engine = opened;
  return status;
}

Status BackupEngineReadOnly::Open(const BackupEngineOptions& options, Env* env,
                                  BackupEngineReadOnly** engine) {
  BackupEngineImpl* opened = nullptr;
  Status status = OpenBackups(options, env, &opened);
  *engine = opened;
  return status;
}

// Tables.

struct SstFileWriter::Rep {
  Rep(const EnvOptions& env_options, const Options& with, const Comparator* order,
      ColumnFamilyHandle* to)
      : options(NewOptions()),
        env(ToC(env_options)),
        handle(nullptr, rocksdb_sstfilewriter_destroy) {
    status = ToC(static_cast<const DBOptions&>(with), std::make_shared<ListenedDb>(),
                 options.get());
    ColumnFamilyOptions family = with;
    if (order != nullptr) family.comparator = order;
    if (status.ok()) status = ToC(family, options.get());
    handle.reset(rocksdb_sstfilewriter_create(env.get(), options.get()));
    if (to == nullptr || !status.ok()) return;
    ErrorText error;
    esker_sstfilewriter_set_family(handle.get(), ToC(to), error);
    status = error.status();
  }

  OptionsHandle options;
  Handle<rocksdb_envoptions_t> env;
  Handle<rocksdb_sstfilewriter_t> handle;
  Status status;
  ExternalSstFileInfo info;
};

SstFileWriter::SstFileWriter(const EnvOptions& env_options, const Options& options,
                             ColumnFamilyHandle* family, bool, Env::IOPriority, bool)
    : rep_(std::make_unique<Rep>(env_options, options, nullptr, family)) {}
SstFileWriter::SstFileWriter(const EnvOptions& env_options, const Options& options,
                             const Comparator* order, ColumnFamilyHandle* family, bool,
                             Env::IOPriority, bool)
    : rep_(std::make_unique<Rep>(env_options, options, order, family)) {}
SstFileWriter::~SstFileWriter() = default;

Status SstFileWriter::Open(const std::string& file_path) {
  if (!rep_->status.ok()) return rep_->status;
  rep_->info = ExternalSstFileInfo();
  rep_->info.file_path = file_path;
  ErrorText error;
  rocksdb_sstfilewriter_open(rep_->handle.get(), file_path.c_str(), error);
  return error.status();
}

void SstFileWriter::Took(const Slice& key) {
  if (rep_->info.num_entries++ == 0) rep_->info.smallest_key = key.ToString();
  rep_->info.largest_key = key.ToString();
}

Status SstFileWriter::Put(const Slice& key, const Slice& value) {
  ErrorText error;
  rocksdb_sstfilewriter_put(rep_->handle.get(), key.data(), key.size(), value.data(),
                            value.size(), error);
  if (error.ok()) Took(key);
  return error.status();
}
Status SstFileWriter::Merge(const Slice& key, const Slice& value) {
  ErrorText error;
  rocksdb_sstfilewriter_merge(rep_->handle.get(), key.data(), key.size(), value.data(),
                              value.size(), error);
  if (error.ok()) Took(key);
  return error.status();
}
Status SstFileWriter::Delete(const Slice& key) {
  ErrorText error;
  rocksdb_sstfilewriter_delete(rep_->handle.get(), key.data(), key.size(), error);
  if (error.ok()) Took(key);
  return error.status();
}
Status SstFileWriter::Put(const Slice& key, const Slice& ts, const Slice& value) {
  ErrorText error;
  rocksdb_sstfilewriter_put_with_ts(rep_->handle.get(), key.data(), key.size(), ts.data(),
                                    ts.size(), value.data(), value.size(), error);
  if (error.ok()) Took(key.ToString() + ts.ToString());
  return error.status();
}
Status SstFileWriter::Delete(const Slice& key, const Slice& ts) {
  ErrorText error;
  rocksdb_sstfilewriter_delete_with_ts(rep_->handle.get(), key.data(), key.size(), ts.data(),
                                       ts.size(), error);
  if (error.ok()) Took(key.ToString() + ts.ToString());
  return error.status();
}
Status SstFileWriter::DeleteRange(const Slice& begin, const Slice& end) {
  ErrorText error;
  rocksdb_sstfilewriter_delete_range(rep_->handle.get(), begin.data(), begin.size(), end.data(),
                                     end.size(), error);
  return error.status();
}
Status SstFileWriter::Finish(ExternalSstFileInfo* info) {
  ErrorText error;
  rocksdb_sstfilewriter_finish(rep_->handle.get(), error);
  rep_->info.file_size = FileSize();
  if (info != nullptr) *info = rep_->info;
  return error.status();
}
uint64_t SstFileWriter::FileSize() {
  uint64_t size = 0;
  rocksdb_sstfilewriter_file_size(rep_->handle.get(), &size);
  return size;
}

}  // namespace ROCKSDB_NAMESPACE
