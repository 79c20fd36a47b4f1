// What the library asks of the system, for programs that use it: files, threads, time, and loggers.
//
// The engine does its own file I/O. An Env of the application's own is refused at open.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

enum InfoLogLevel : unsigned char {
  DEBUG_LEVEL = 0,
  INFO_LEVEL,
  WARN_LEVEL,
  ERROR_LEVEL,
  FATAL_LEVEL,
  HEADER_LEVEL,
  NUM_INFO_LOG_LEVELS,
};

class Logger;
class RateLimiter;
class SystemClock;
struct DBOptions;

struct EnvOptions {
#include "rocksdb/fields/EnvOptions.inc"

  EnvOptions() = default;
  // With what the options say of files.
  explicit EnvOptions(const DBOptions& options);

  // Tables that are made outside a database are not slowed down.
  RateLimiter* rate_limiter = nullptr;
};

// A file that is read from its beginning.
class SequentialFile {
 public:
  virtual ~SequentialFile();
  virtual Status Read(size_t count, Slice* result, char* scratch) = 0;
  virtual Status Skip(uint64_t count) = 0;
};

class RandomAccessFile {
 public:
  virtual ~RandomAccessFile();
  virtual Status Read(uint64_t offset, size_t count, Slice* result, char* scratch) const = 0;
};

// A file that is written from its beginning.
class WritableFile {
 public:
  virtual ~WritableFile();
  virtual Status Append(const Slice& data) = 0;
  virtual Status Close() = 0;
  virtual Status Flush() = 0;
  virtual Status Sync() = 0;
};

// A lock on a file, until it is given back.
class FileLock {
 public:
  virtual ~FileLock();
};

class Env {
 public:
  enum Priority { BOTTOM, LOW, HIGH, USER, TOTAL };
  enum IOPriority { IO_LOW = 0, IO_MID = 1, IO_HIGH = 2, IO_USER = 3, IO_TOTAL = 4 };
  enum class IOActivity : uint8_t {
    kFlush = 0,
    kCompaction = 1,
    kDBOpen = 2,
    kGet = 3,
    kMultiGet = 4,
    kDBIterator = 5,
    kVerifyDBChecksum = 6,
    kVerifyFileChecksums = 7,
    kUnknown = 0x80,
  };
  struct FileAttributes {
    std::string name;
    uint64_t size_bytes;
  };

  Env() = default;
  Env(const Env&) = delete;
  Env& operator=(const Env&) = delete;
  virtual ~Env();

  // The system. Never destroyed.
  static Env* Default();

  // The environments of the system do not give out files.
  virtual Status NewSequentialFile(const std::string&, std::unique_ptr<SequentialFile>*,
                                   const EnvOptions&) {
    return Status::NotSupported("Env::NewSequentialFile");
  }
  virtual Status NewRandomAccessFile(const std::string&, std::unique_ptr<RandomAccessFile>*,
                                     const EnvOptions&) {
    return Status::NotSupported("Env::NewRandomAccessFile");
  }
  virtual Status NewWritableFile(const std::string&, std::unique_ptr<WritableFile>*,
                                 const EnvOptions&) {
    return Status::NotSupported("Env::NewWritableFile");
  }
  virtual Status ReopenWritableFile(const std::string&, std::unique_ptr<WritableFile>*,
                                    const EnvOptions&) {
    return Status::NotSupported("Env::ReopenWritableFile");
  }
  virtual Status LockFile(const std::string&, FileLock**) {
    return Status::NotSupported("Env::LockFile");
  }
  virtual Status UnlockFile(FileLock*) { return Status::NotSupported("Env::UnlockFile"); }
  virtual Status FileExists(const std::string& path) = 0;
  virtual Status GetChildren(const std::string& dir, std::vector<std::string>* names) = 0;
  virtual Status GetChildrenFileAttributes(const std::string& dir,
                                           std::vector<FileAttributes>* files);
  virtual Status DeleteFile(const std::string& path) = 0;
  virtual Status CreateDir(const std::string& dir) = 0;
  virtual Status CreateDirIfMissing(const std::string& dir) = 0;
  virtual Status DeleteDir(const std::string& dir) = 0;
  virtual Status GetFileSize(const std::string& path, uint64_t* size) = 0;
  virtual Status GetFileModificationTime(const std::string& path, uint64_t* seconds) = 0;
  virtual Status RenameFile(const std::string& from, const std::string& to) = 0;
  virtual Status LinkFile(const std::string& from, const std::string& to) = 0;
  virtual Status GetTestDirectory(std::string* path) = 0;
  virtual Status GetAbsolutePath(const std::string& path, std::string* absolute) = 0;

  // Runs `function` in a background thread.
  virtual void Schedule(void (*function)(void* arg), void* arg, Priority priority = LOW,
                        void* tag = nullptr, void (*unschedule)(void* arg) = nullptr) = 0;
  virtual void StartThread(void (*function)(void* arg), void* arg) = 0;
  virtual void WaitForJoin() {}
  virtual unsigned int GetThreadPoolQueueLen(Priority priority = LOW) const = 0;
  virtual void SetBackgroundThreads(int number, Priority priority = LOW) = 0;
  virtual int GetBackgroundThreads(Priority priority = LOW) = 0;
  virtual void IncBackgroundThreadsIfNeeded(int number, Priority priority) = 0;
  virtual void LowerThreadPoolIOPriority(Priority = LOW) {}
  virtual void LowerThreadPoolCPUPriority(Priority = LOW) {}

  virtual uint64_t NowMicros() = 0;
  virtual uint64_t NowNanos() { return NowMicros() * 1000; }
  virtual uint64_t NowCPUNanos() { return 0; }
  virtual void SleepForMicroseconds(int micros) = 0;
  virtual Status GetCurrentTime(int64_t* seconds) = 0;
  virtual std::string TimeToString(uint64_t seconds) = 0;
  virtual Status GetHostName(char* name, uint64_t length) = 0;
  virtual uint64_t GetThreadID() const { return 0; }
  virtual std::string GenerateUniqueId();
  const std::shared_ptr<SystemClock>& GetSystemClock() const;
  // The object of the C interface; null for one of the application's own, which is refused.
  virtual void* EskerHandle() const { return nullptr; }
  // Nothing of the engine is listed: its jobs report through events.
  virtual Status GetThreadList(std::vector<struct ThreadStatus>* threads);
};

// Passes every call on to another environment. What derives from it is refused at open, as every
// environment of the application's own is.
class EnvWrapper : public Env {
 public:
  explicit EnvWrapper(Env* target) : target_(target) {}
  ~EnvWrapper() override;
  Env* target() const { return target_; }

  Status NewSequentialFile(const std::string& path, std::unique_ptr<SequentialFile>* file,
                           const EnvOptions& options) override {
    return target_->NewSequentialFile(path, file, options);
  }
  Status NewRandomAccessFile(const std::string& path, std::unique_ptr<RandomAccessFile>* file,
                             const EnvOptions& options) override {
    return target_->NewRandomAccessFile(path, file, options);
  }
  Status NewWritableFile(const std::string& path, std::unique_ptr<WritableFile>* file,
                         const EnvOptions& options) override {
    return target_->NewWritableFile(path, file, options);
  }
  Status ReopenWritableFile(const std::string& path, std::unique_ptr<WritableFile>* file,
                            const EnvOptions& options) override {
    return target_->ReopenWritableFile(path, file, options);
  }
  Status LockFile(const std::string& path, FileLock** lock) override {
    return target_->LockFile(path, lock);
  }
  Status UnlockFile(FileLock* lock) override { return target_->UnlockFile(lock); }
  Status FileExists(const std::string& path) override { return target_->FileExists(path); }
  Status GetChildren(const std::string& dir, std::vector<std::string>* names) override {
    return target_->GetChildren(dir, names);
  }
  Status GetChildrenFileAttributes(const std::string& dir,
                                   std::vector<FileAttributes>* files) override {
    return target_->GetChildrenFileAttributes(dir, files);
  }
  Status DeleteFile(const std::string& path) override { return target_->DeleteFile(path); }
  Status CreateDir(const std::string& dir) override { return target_->CreateDir(dir); }
  Status CreateDirIfMissing(const std::string& dir) override {
    return target_->CreateDirIfMissing(dir);
  }
  Status DeleteDir(const std::string& dir) override { return target_->DeleteDir(dir); }
  Status GetFileSize(const std::string& path, uint64_t* size) override {
    return target_->GetFileSize(path, size);
  }
  Status GetFileModificationTime(const std::string& path, uint64_t* seconds) override {
    return target_->GetFileModificationTime(path, seconds);
  }
  Status RenameFile(const std::string& from, const std::string& to) override {
    return target_->RenameFile(from, to);
  }
  Status LinkFile(const std::string& from, const std::string& to) override {
    return target_->LinkFile(from, to);
  }
  Status GetTestDirectory(std::string* path) override { return target_->GetTestDirectory(path); }
  Status GetAbsolutePath(const std::string& path, std::string* absolute) override {
    return target_->GetAbsolutePath(path, absolute);
  }
  void Schedule(void (*function)(void* arg), void* arg, Priority priority, void* tag,
                void (*unschedule)(void* arg)) override {
    target_->Schedule(function, arg, priority, tag, unschedule);
  }
  void StartThread(void (*function)(void* arg), void* arg) override {
    target_->StartThread(function, arg);
  }
  void WaitForJoin() override { target_->WaitForJoin(); }
  unsigned int GetThreadPoolQueueLen(Priority priority) const override {
    return target_->GetThreadPoolQueueLen(priority);
  }
  void SetBackgroundThreads(int number, Priority priority) override {
    target_->SetBackgroundThreads(number, priority);
  }
  int GetBackgroundThreads(Priority priority) override {
    return target_->GetBackgroundThreads(priority);
  }
  void IncBackgroundThreadsIfNeeded(int number, Priority priority) override {
    target_->IncBackgroundThreadsIfNeeded(number, priority);
  }
  uint64_t NowMicros() override { return target_->NowMicros(); }
  uint64_t NowNanos() override { return target_->NowNanos(); }
  uint64_t NowCPUNanos() override { return target_->NowCPUNanos(); }
  void SleepForMicroseconds(int micros) override { target_->SleepForMicroseconds(micros); }
  Status GetCurrentTime(int64_t* seconds) override { return target_->GetCurrentTime(seconds); }
  std::string TimeToString(uint64_t seconds) override { return target_->TimeToString(seconds); }
  Status GetHostName(char* name, uint64_t length) override {
    return target_->GetHostName(name, length);
  }
  uint64_t GetThreadID() const override { return target_->GetThreadID(); }
  std::string GenerateUniqueId() override { return target_->GenerateUniqueId(); }

 private:
  Env* target_;
};

// Keeps files in memory, for databases: its own calls on files are not supported. The caller owns
// it, and it has to outlive the databases.
Env* NewMemEnv(Env* base);

// Takes lines of the database's log. An exception ends the process: there is nobody to tell.
class Logger {
 public:
  explicit Logger(const InfoLogLevel level = INFO_LEVEL) : level_(level) {}
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;
  virtual ~Logger();

  virtual Status Close() { return Status::OK(); }
  virtual void LogHeader(const char* format, va_list args) { Logv(HEADER_LEVEL, format, args); }
  virtual void Logv(const char*, va_list) {}
  virtual void Logv(const InfoLogLevel level, const char* format, va_list args);
  virtual size_t GetLogFileSize() const { return std::numeric_limits<size_t>::max(); }
  virtual void Flush() {}
  virtual InfoLogLevel GetInfoLogLevel() const { return level_; }
  virtual void SetInfoLogLevel(const InfoLogLevel level) { level_ = level; }

 private:
  InfoLogLevel level_;
};

#if defined(__GNUC__)
#define ESKER_FORMAT(AT, FIRST) __attribute__((__format__(__printf__, AT, FIRST)))
#else
#define ESKER_FORMAT(AT, FIRST)
#endif
void Log(const InfoLogLevel level, const std::shared_ptr<Logger>& logger, const char* format, ...)
    ESKER_FORMAT(3, 4);
void Log(const InfoLogLevel level, Logger* logger, const char* format, ...) ESKER_FORMAT(3, 4);
void Log(const std::shared_ptr<Logger>& logger, const char* format, ...) ESKER_FORMAT(2, 3);
void Log(Logger* logger, const char* format, ...) ESKER_FORMAT(2, 3);
#undef ESKER_FORMAT
void LogFlush(const std::shared_ptr<Logger>& logger);

// A logger that writes the file LOG of a database's directory, or of `db_log_dir`, as the engine
// does without one. What was there is renamed.
Status CreateLoggerFromOptions(const std::string& path, const DBOptions& options,
                               std::shared_ptr<Logger>* logger);

Status ReadFileToString(Env* env, const std::string& path, std::string* data);
Status WriteStringToFile(Env* env, const Slice& data, const std::string& path,
                         bool should_sync = false);

}  // namespace ROCKSDB_NAMESPACE
