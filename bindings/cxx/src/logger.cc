// The logger that writes a database's LOG for a program which wraps it.

#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <vector>

#include "internal.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Any thread may log: a line is written at once.
class FileLogger final : public Logger {
 public:
  FileLogger(std::FILE* file, InfoLogLevel level) : Logger(level), file_(file) {}
  ~FileLogger() override { std::fclose(file_); }
  using Logger::Logv;
  void Logv(const char* format, va_list args) override {
    timeval now{};
    tm parts{};
    ::gettimeofday(&now, nullptr);
    ::localtime_r(&now.tv_sec, &parts);
    char head[64];
    const size_t length = std::strftime(head, sizeof(head), "%Y/%m/%d-%H:%M:%S", &parts);
    std::string line(head, length);
    std::snprintf(head, sizeof(head), ".%06ld %ld ", static_cast<long>(now.tv_usec),
                  static_cast<long>(::syscall(SYS_gettid)));
    line += head;
    line += Text(format, args);
    if (line.back() != '\n') line += '\n';
    const std::lock_guard<std::mutex> lock(mutex_);
    size_ += std::fwrite(line.data(), 1, line.size(), file_);
    std::fflush(file_);
  }
  size_t GetLogFileSize() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return size_;
  }

 private:
  // `args` stay as they are: a logger that passes its lines to this one goes on with them.
  static std::string Text(const char* format, va_list args) {
    const int length = Format(nullptr, 0, format, args);
    std::vector<char> text(length < 0 ? 1 : static_cast<size_t>(length) + 1, '\0');
    Format(text.data(), text.size(), format, args);
    return text.data();
  }
  static int Format(char* text, size_t size, const char* format, va_list args) {
    va_list again;
    va_copy(again, args);
    const int length = std::vsnprintf(text, size, format, again);
    va_end(again);
    return length;
  }

  std::FILE* const file_;
  mutable std::mutex mutex_;
  size_t size_ = 0;
};

}  // namespace

Status CreateLoggerFromOptions(const std::string& path, const DBOptions& options,
                               std::shared_ptr<Logger>* logger) {
  if (options.info_log != nullptr) {
    *logger = options.info_log;
    return Status::OK();
  }
  logger->reset();
  Env* env = options.env == nullptr ? Env::Default() : options.env;
  Status status = env->CreateDirIfMissing(path);
  if (!status.ok()) return status;
  std::string log = path + "/LOG";
  if (!options.db_log_dir.empty()) {
    // The name says whose it is: several databases may log there.
    status = env->CreateDirIfMissing(options.db_log_dir);
    if (!status.ok()) return status;
    std::string absolute = path;
    env->GetAbsolutePath(path, &absolute).PermitUncheckedError();
    for (char& c : absolute) {
      if (c == '/') c = '_';
    }
    const size_t first = absolute.find_first_not_of('_');
    log = options.db_log_dir + "/" + absolute.substr(first == std::string::npos ? 0 : first) +
          "_LOG";
  }
  env->RenameFile(log, log + ".old." + std::to_string(env->NowMicros())).PermitUncheckedError();
  std::FILE* file = std::fopen(log.c_str(), "we");
  if (file == nullptr) return Status::IOError(log, "it cannot be written");
  *logger = std::make_shared<FileLogger>(file, options.info_log_level);
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
