// Files, threads and time of the system, for programs. The engine has its own.

#include "rocksdb/env.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <system_error>
#include <thread>

#include "internal.h"
#include "rocksdb/system_clock.h"

namespace ROCKSDB_NAMESPACE {

namespace fs = std::filesystem;

Env::~Env() = default;
EnvWrapper::~EnvWrapper() = default;
Logger::~Logger() = default;
SystemClock::~SystemClock() = default;

namespace {

Status FileStatus(const std::string& path, const std::error_code& error) {
  if (!error) return Status::OK();
  if (error == std::errc::no_such_file_or_directory) {
    return Status::PathNotFound(path, error.message());
  }
  return Status::IOError(path, error.message());
}

// Threads that work off what is scheduled. They end with the process.
class Pool {
 public:
  void Add(void (*function)(void*), void* arg) {
    const std::lock_guard<std::mutex> lock(mutex_);
    work_.push_back({function, arg});
    if (idle_ < static_cast<int>(work_.size()) && threads_ < wanted_) {
      ++threads_;
      std::thread([this] { Run(); }).detach();
    }
    wake_.notify_one();
  }
  unsigned int Length() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<unsigned int>(work_.size());
  }
  void Want(int threads, bool may_shrink) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (may_shrink || threads > wanted_) wanted_ = threads > 0 ? threads : 1;
  }
  int Wanted() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return wanted_;
  }

 private:
  struct Item {
    void (*function)(void*);
    void* arg;
  };

  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      ++idle_;
      wake_.wait(lock, [this] { return !work_.empty(); });
      --idle_;
      const Item item = work_.front();
      work_.pop_front();
      lock.unlock();
      item.function(item.arg);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Item> work_;
  int wanted_ = 1;
  int threads_ = 0;
  int idle_ = 0;
};

class SystemEnv : public Env {
 public:
  Status FileExists(const std::string& path) override {
    std::error_code error;
    if (fs::exists(path, error)) return Status::OK();
    return error ? FileStatus(path, error) : Status::NotFound();
  }
  Status GetChildren(const std::string& dir, std::vector<std::string>* names) override {
    names->clear();
    std::error_code error;
    fs::directory_iterator at(dir, error);
    for (; !error && at != fs::directory_iterator(); at.increment(error)) {
      names->push_back(at->path().filename().string());
    }
    return FileStatus(dir, error);
  }
  Status DeleteFile(const std::string& path) override {
    if (::unlink(path.c_str()) == 0) return Status::OK();
    return FileStatus(path, std::error_code(errno, std::generic_category()));
  }
  Status CreateDir(const std::string& dir) override {
    if (::mkdir(dir.c_str(), 0755) == 0) return Status::OK();
    return FileStatus(dir, std::error_code(errno, std::generic_category()));
  }
  Status CreateDirIfMissing(const std::string& dir) override {
    std::error_code error;
    if (fs::is_directory(dir, error)) return Status::OK();
    return CreateDir(dir);
  }
  Status DeleteDir(const std::string& dir) override {
    if (::rmdir(dir.c_str()) == 0) return Status::OK();
    return FileStatus(dir, std::error_code(errno, std::generic_category()));
  }
  Status GetFileSize(const std::string& path, uint64_t* size) override {
    std::error_code error;
    const auto bytes = fs::file_size(path, error);
    *size = error ? 0 : static_cast<uint64_t>(bytes);
    return FileStatus(path, error);
  }
  Status GetFileModificationTime(const std::string& path, uint64_t* seconds) override {
    struct stat facts;
    if (::stat(path.c_str(), &facts) != 0) {
      return FileStatus(path, std::error_code(errno, std::generic_category()));
    }
    *seconds = static_cast<uint64_t>(facts.st_mtime);
    return Status::OK();
  }
  Status RenameFile(const std::string& from, const std::string& to) override {
    std::error_code error;
    fs::rename(from, to, error);
    return FileStatus(from, error);
  }
  Status LinkFile(const std::string& from, const std::string& to) override {
    std::error_code error;
    fs::create_hard_link(from, to, error);
    return FileStatus(from, error);
  }
  Status GetTestDirectory(std::string* path) override {
    const char* set = std::getenv("TEST_TMPDIR");
    *path = set != nullptr && *set != '\0' ? std::string(set)
                                           : "/tmp/rocksdbtest-" + std::to_string(::geteuid());
    return CreateDirIfMissing(*path);
  }
  Status GetAbsolutePath(const std::string& path, std::string* absolute) override {
    std::error_code error;
    *absolute = fs::absolute(path, error).string();
    return FileStatus(path, error);
  }

  void Schedule(void (*function)(void*), void* arg, Priority priority, void*,
                void (*)(void*)) override {
    PoolOf(priority).Add(function, arg);
  }
  void StartThread(void (*function)(void*), void* arg) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    started_.emplace_back(function, arg);
  }
  void WaitForJoin() override {
    std::vector<std::thread> threads;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      threads.swap(started_);
    }
    for (std::thread& thread : threads) thread.join();
  }
  unsigned int GetThreadPoolQueueLen(Priority priority) const override {
    return PoolOf(priority).Length();
  }
  void SetBackgroundThreads(int number, Priority priority) override {
    PoolOf(priority).Want(number, true);
  }
  int GetBackgroundThreads(Priority priority) override { return PoolOf(priority).Wanted(); }
  void IncBackgroundThreadsIfNeeded(int number, Priority priority) override {
    PoolOf(priority).Want(number, false);
  }

  uint64_t NowMicros() override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(now).count());
  }
  uint64_t NowNanos() override {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  }
  uint64_t NowCPUNanos() override {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
  }
  void SleepForMicroseconds(int micros) override {
    std::this_thread::sleep_for(std::chrono::microseconds(micros));
  }
  Status GetCurrentTime(int64_t* seconds) override {
    *seconds = static_cast<int64_t>(NowMicros() / 1000000);
    return Status::OK();
  }
  std::string TimeToString(uint64_t seconds) override {
    const auto time = static_cast<time_t>(seconds);
    tm parts{};
    ::localtime_r(&time, &parts);
    char text[32];
    std::strftime(text, sizeof(text), "%Y/%m/%d-%H:%M:%S ", &parts);
    return text;
  }
  Status GetHostName(char* name, uint64_t length) override {
    if (::gethostname(name, static_cast<size_t>(length)) == 0) return Status::OK();
    return Status::IOError("gethostname");
  }
  uint64_t GetThreadID() const override {
    return std::hash<std::thread::id>()(std::this_thread::get_id());
  }

 private:
  Pool& PoolOf(Priority priority) const {
    return pools_[priority < TOTAL ? static_cast<size_t>(priority) : static_cast<size_t>(LOW)];
  }

  mutable Pool pools_[TOTAL];
  std::mutex mutex_;
  std::vector<std::thread> started_;
};

// Keeps the files of databases in memory. Time and threads are those of another environment.
class MemoryEnv final : public EnvWrapper {
 public:
  explicit MemoryEnv(Env* base)
      : EnvWrapper(base), handle_(rocksdb_create_mem_env(), rocksdb_env_destroy) {}
  void* EskerHandle() const override { return handle_.get(); }

#define ESKER_NO_FILES(NAME, ...) \
  Status NAME(__VA_ARGS__) override { return Status::NotSupported("NewMemEnv: Env::" #NAME); }
  ESKER_NO_FILES(FileExists, const std::string&)
  ESKER_NO_FILES(GetChildren, const std::string&, std::vector<std::string>*)
  ESKER_NO_FILES(GetChildrenFileAttributes, const std::string&, std::vector<FileAttributes>*)
  ESKER_NO_FILES(DeleteFile, const std::string&)
  ESKER_NO_FILES(CreateDir, const std::string&)
  ESKER_NO_FILES(DeleteDir, const std::string&)
  ESKER_NO_FILES(GetFileSize, const std::string&, uint64_t*)
  ESKER_NO_FILES(GetFileModificationTime, const std::string&, uint64_t*)
  ESKER_NO_FILES(RenameFile, const std::string&, const std::string&)
  ESKER_NO_FILES(LinkFile, const std::string&, const std::string&)
#undef ESKER_NO_FILES
  Status CreateDirIfMissing(const std::string& dir) override {
    ErrorText error;
    rocksdb_create_dir_if_missing(handle_.get(), dir.c_str(), error);
    return error.status();
  }
  Status GetTestDirectory(std::string* path) override {
    *path = "/test";
    return CreateDirIfMissing(*path);
  }

 private:
  Handle<rocksdb_env_t> handle_;
};

class EnvClock final : public SystemClock {
 public:
  const char* Name() const override { return kDefaultName(); }
  uint64_t NowMicros() override { return Env::Default()->NowMicros(); }
  uint64_t NowNanos() override { return Env::Default()->NowNanos(); }
  uint64_t CPUNanos() override { return Env::Default()->NowCPUNanos(); }
  uint64_t CPUMicros() override { return CPUNanos() / 1000; }
  void SleepForMicroseconds(int micros) override {
    Env::Default()->SleepForMicroseconds(micros);
  }
  Status GetCurrentTime(int64_t* seconds) override {
    return Env::Default()->GetCurrentTime(seconds);
  }
  std::string TimeToString(uint64_t seconds) override {
    return Env::Default()->TimeToString(seconds);
  }
};

}  // namespace

Env* NewMemEnv(Env* base) { return new MemoryEnv(base == nullptr ? Env::Default() : base); }

const std::shared_ptr<SystemClock>& SystemClock::Default() {
  static const std::shared_ptr<SystemClock> clock = std::make_shared<EnvClock>();
  return clock;
}
const std::shared_ptr<SystemClock>& Env::GetSystemClock() const { return SystemClock::Default(); }

Env* Env::Default() {
  static SystemEnv* const env = new SystemEnv;
  return env;
}

Status Env::GetChildrenFileAttributes(const std::string& dir,
                                      std::vector<FileAttributes>* files) {
  std::vector<std::string> names;
  Status status = GetChildren(dir, &names);
  files->clear();
  for (const std::string& name : names) {
    uint64_t size = 0;
    if (GetFileSize(dir + "/" + name, &size).ok()) files->push_back({name, size});
  }
  return status;
}

std::string Env::GenerateUniqueId() {
  std::ifstream file("/proc/sys/kernel/random/uuid");
  std::string id;
  std::getline(file, id);
  return id.empty() ? std::to_string(NowNanos()) : id;
}

// Loggers.

void Logger::Logv(const InfoLogLevel level, const char* format, va_list args) {
  if (level < level_) return;
  if (level == INFO_LEVEL || level == HEADER_LEVEL) {
    Logv(format, args);
    return;
  }
  static const char* const names[] = {"DEBUG", "INFO", "WARN", "ERROR", "FATAL"};
  const std::string with_level = std::string("[") + names[level] + "] " + format;
  Logv(with_level.c_str(), args);
}

namespace {

void LogTo(Logger* logger, InfoLogLevel level, const char* format, va_list args) {
  if (logger == nullptr || logger->GetInfoLogLevel() > level) return;
  if (level == HEADER_LEVEL) {
    logger->LogHeader(format, args);
  } else {
    logger->Logv(level, format, args);
  }
}

}  // namespace

void Log(const InfoLogLevel level, Logger* logger, const char* format, ...) {
  va_list args;
  va_start(args, format);
  LogTo(logger, level, format, args);
  va_end(args);
}
void Log(const InfoLogLevel level, const std::shared_ptr<Logger>& logger, const char* format,
         ...) {
  va_list args;
  va_start(args, format);
  LogTo(logger.get(), level, format, args);
  va_end(args);
}
void Log(Logger* logger, const char* format, ...) {
  va_list args;
  va_start(args, format);
  LogTo(logger, INFO_LEVEL, format, args);
  va_end(args);
}
void Log(const std::shared_ptr<Logger>& logger, const char* format, ...) {
  va_list args;
  va_start(args, format);
  LogTo(logger.get(), INFO_LEVEL, format, args);
  va_end(args);
}
void LogFlush(const std::shared_ptr<Logger>& logger) {
  if (logger != nullptr) logger->Flush();
}

Status ReadFileToString(Env*, const std::string& path, std::string* data) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status::PathNotFound(path);
  std::ostringstream content;
  content << file.rdbuf();
  *data = content.str();
  return file.bad() ? Status::IOError(path) : Status::OK();
}

Status WriteStringToFile(Env*, const Slice& data, const std::string& path, bool) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(data.data(), static_cast<std::streamsize>(data.size()));
  file.flush();
  return file ? Status::OK() : Status::IOError(path);
}

}  // namespace ROCKSDB_NAMESPACE
