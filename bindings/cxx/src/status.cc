#include "rocksdb/status.h"

#include "internal.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr const char* kPrefixes[Status::kMaxCode] = {
    "OK",
    "NotFound: ",
    "Corruption: ",
    "Not implemented: ",
    "Invalid argument: ",
    "IO error: ",
    "Merge in progress: ",
    "Result incomplete: ",
    "Shutdown in progress: ",
    "Operation timed out: ",
    "Operation aborted: ",
    "Resource busy: ",
    "Operation expired: ",
    "Operation failed. Try again.: ",
    "Compaction too large: ",
    "Column family dropped: ",
};

constexpr const char* kSubcodes[Status::kMaxSubCode] = {
    "",
    "Timeout Acquiring Mutex",
    "Timeout waiting to lock key",
    "Failed to acquire lock due to max_num_locks limit",
    "No space left on device",
    "Deadlock",
    "Stale file handle",
    "Memory limit reached",
    "Space limit reached",
    "No such file or directory",
    "Insufficient capacity for merge operands",
    "Manual compaction paused",
    " (overwritten)",
    "Txn not prepared",
    "IO fenced off",
    "Merge operator failed",
    "Number of operands merged exceeded threshold",
    "MultiScan reached file prefetch limit",
    "Not expected code path",
    "All compactions aborted",
};

// The bytes that `text` begins with a code's name.
size_t PrefixLength(const char* text, Status::Code code) {
  const std::string prefix = kPrefixes[code];
  return std::string(text).compare(0, prefix.size(), prefix) == 0 ? prefix.size() : 0;
}

}  // namespace

Status::Status(Code code, SubCode subcode, const Slice& message, const Slice& more)
    : Status(code, subcode) {
  std::string text = message.ToString();
  if (!more.empty()) text += ": " + more.ToString();
  state_ = std::make_unique<const std::string>(std::move(text));
}

Status::Status(Code code, SubCode subcode, Severity severity, const Slice& message)
    : Status(code, subcode, message, Slice()) {
  severity_ = severity;
}

Status& Status::operator=(const Status& other) {
  if (this == &other) return *this;
  code_ = other.code_;
  subcode_ = other.subcode_;
  severity_ = other.severity_;
  is_whole_ = other.is_whole_;
  state_ = other.state_ ? std::make_unique<const std::string>(*other.state_) : nullptr;
  return *this;
}

Status& Status::operator=(Status&& other) noexcept {
  if (this == &other) return *this;
  code_ = std::exchange(other.code_, kOk);
  subcode_ = std::exchange(other.subcode_, kNone);
  severity_ = std::exchange(other.severity_, kNoError);
  is_whole_ = std::exchange(other.is_whole_, false);
  state_ = std::move(other.state_);
  return *this;
}

Status Status::FromText(Code code, SubCode subcode, const char* text) {
  if (code == kOk || code >= kMaxCode) code = kIOError;
  Status status(code, subcode);
  const char* message = text + PrefixLength(text, code);
  status.state_ = std::make_unique<const std::string>(message);
  status.is_whole_ = true;
  return status;
}

Status Status::CopyAppendMessage(const Status& status, const Slice& between, const Slice& more) {
  Status copy(status);
  std::string text = status.state_ ? *status.state_ : std::string();
  copy.state_ = std::make_unique<const std::string>(text + between.ToString() + more.ToString());
  return copy;
}

std::string Status::CodeAsString() const {
  std::string name = code_ < kMaxCode ? kPrefixes[code_] : "Unknown code: ";
  const size_t end = name.find(": ");
  return end == std::string::npos ? name : name.substr(0, end);
}

std::string Status::ToString() const {
  if (code_ == kOk) return subcode_ == kOverwritten ? "OK (overwritten)" : "OK";
  std::string text = kPrefixes[code_];
  const bool tells_subcode = subcode_ != kNone && subcode_ < kMaxSubCode && !is_whole_;
  if (tells_subcode) text += kSubcodes[subcode_];
  if (state_) {
    if (tells_subcode) text += ": ";
    text += *state_;
  }
  return text;
}

Status StatusOfText(const char* text) {
  for (int code = 1; code < Status::kMaxCode; ++code) {
    const auto known = static_cast<Status::Code>(code);
    if (PrefixLength(text, known) == 0) continue;
    auto subcode = Status::kNone;
    const std::string message = text + PrefixLength(text, known);
    for (int number = 1; number < Status::kMaxSubCode; ++number) {
      if (message.rfind(kSubcodes[number], 0) == 0) subcode = static_cast<Status::SubCode>(number);
    }
    return Status::FromText(known, subcode, text);
  }
  return Status::FromText(Status::kIOError, Status::kNone, text);
}

std::string Take(char* text) {
  if (text == nullptr) return std::string();
  std::string taken(text);
  rocksdb_free(text);
  return taken;
}

std::string Take(char* bytes, size_t length) {
  if (bytes == nullptr) return std::string();
  std::string taken(bytes, length);
  rocksdb_free(bytes);
  return taken;
}

void UncaughtInCallback(const char* callback) noexcept {
  try {
    throw;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rocksdb: an exception came out of %s: %s\n", callback, error.what());
  } catch (...) {
    std::fprintf(stderr, "rocksdb: an exception came out of %s\n", callback);
  }
  std::fflush(stderr);
  std::abort();
}

}  // namespace ROCKSDB_NAMESPACE
