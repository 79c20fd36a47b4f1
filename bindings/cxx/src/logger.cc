// The logger that writes a database's LOG for a program which wraps it.

#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <vector>

#include "internal.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Any thread may log: a line is written at once. A file that is too large or too old is renamed,
// and the next one begins with the header lines.
class FileLogger final : public Logger {
 public:
  FileLogger(std::string path, const DBOptions& options, Env* env)
      : Logger(options.info_log_level),
        path_(std::move(path)),
        env_(env),
        most_bytes_(options.max_log_file_size),
        most_seconds_(options.log_file_time_to_roll),
        most_files_(std::max<size_t>(1, options.keep_log_file_num)) {}
  ~FileLogger() override {
    if (file_ != nullptr) std::fclose(file_);
  }
  Status Open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    Roll();
    return file_ == nullptr ? Status::IOError(path_, "it cannot be written") : Status::OK();
  }
  using Logger::Logv;
  void LogHeader(const char* format, va_list args) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      headers_.push_back(Text(format, args));
    }
    Logger::LogHeader(format, args);
  }
  void Logv(const char* format, va_list args) override {
    const std::string text = Text(format, args);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (IsFull()) {
      Roll();
      for (const std::string& header : headers_) Write(header);
    }
    Write(text);
  }
  size_t GetLogFileSize() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return size_;
  }

 private:
  bool IsFull() const {
    return (most_bytes_ != 0 && size_ >= most_bytes_) ||
           (most_seconds_ != 0 && env_->NowMicros() - began_ >= most_seconds_ * 1000000);
  }
  // Keeps the file that it has where no other can be made.
  void Roll() {
    began_ = env_->NowMicros();
    env_->RenameFile(path_, path_ + ".old." + std::to_string(began_)).PermitUncheckedError();
    std::FILE* next = std::fopen(path_.c_str(), "we");
    if (next == nullptr) return;
    if (file_ != nullptr) std::fclose(file_);
    file_ = next;
    size_ = 0;
    if (most_bytes_ != 0 || most_seconds_ != 0) RemoveOldest();
  }
  void RemoveOldest() {
    const size_t slash = path_.rfind('/');
    const std::string directory = path_.substr(0, slash);
    const std::string prefix = path_.substr(slash + 1) + ".old.";
    std::vector<std::string> old;
    env_->GetChildren(directory, &old).PermitUncheckedError();
    const auto other = [&](const std::string& name) { return name.rfind(prefix, 0) != 0; };
    old.erase(std::remove_if(old.begin(), old.end(), other), old.end());
    // Their times have the same length.
    std::sort(old.begin(), old.end());
    for (size_t i = 0; i + most_files_ <= old.size(); ++i) {
      env_->DeleteFile(directory + "/" + old[i]).PermitUncheckedError();
    }
  }
  void Write(const std::string& text) {
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
    line += text;
    if (line.back() != '\n') line += '\n';
    size_ += std::fwrite(line.data(), 1, line.size(), file_);
    std::fflush(file_);
  }
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

  const std::string path_;
  Env* const env_;
  const uint64_t most_bytes_;
  const uint64_t most_seconds_;
  const size_t most_files_;
  // Guards what follows.
  mutable std::mutex mutex_;
  std::FILE* file_ = nullptr;
  size_t size_ = 0;
  uint64_t began_ = 0;
  std::vector<std::string> headers_;
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
  auto made = std::make_shared<FileLogger>(log, options, env);
  status = made->Open();
  if (status.ok()) *logger = std::move(made);
  return status;
}

}  // namespace ROCKSDB_NAMESPACE
