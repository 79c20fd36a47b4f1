// The outcome of a call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rocksdb/rocksdb_namespace.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

class Status {
 public:
  enum Code : unsigned char {
    kOk = 0,
    kNotFound = 1,
    kCorruption = 2,
    kNotSupported = 3,
    kInvalidArgument = 4,
    kIOError = 5,
    kMergeInProgress = 6,
    kIncomplete = 7,
    kShutdownInProgress = 8,
    kTimedOut = 9,
    kAborted = 10,
    kBusy = 11,
    kExpired = 12,
    kTryAgain = 13,
    kCompactionTooLarge = 14,
    kColumnFamilyDropped = 15,
    kMaxCode
  };
  enum SubCode : unsigned char {
    kNone = 0,
    kMutexTimeout = 1,
    kLockTimeout = 2,
    kLockLimit = 3,
    kNoSpace = 4,
    kDeadlock = 5,
    kStaleFile = 6,
    kMemoryLimit = 7,
    kSpaceLimit = 8,
    kPathNotFound = 9,
    KMergeOperandsInsufficientCapacity = 10,
    kManualCompactionPaused = 11,
    kOverwritten = 12,
    kTxnNotPrepared = 13,
    kIOFenced = 14,
    kMergeOperatorFailed = 15,
    kMergeOperandThresholdExceeded = 16,
    kPrefetchLimitReached = 17,
    kNotExpectedCodePath = 18,
    kCompactionAborted = 19,
    kMaxSubCode
  };
  enum Severity : unsigned char {
    kNoError = 0,
    kSoftError = 1,
    kHardError = 2,
    kFatalError = 3,
    kUnrecoverableError = 4,
    kMaxSeverity
  };

  Status() = default;
  ~Status() = default;
  Status(const Status& other) { *this = other; }
  Status(const Status& other, Severity severity) : Status(other) { severity_ = severity; }
  Status& operator=(const Status& other);
  Status(Status&& other) noexcept { *this = std::move(other); }
  Status& operator=(Status&& other) noexcept;
  Status(Code code, SubCode subcode, const Slice& message, const Slice& more);
  Status(Code code, SubCode subcode, Severity severity, const Slice& message);

  bool operator==(const Status& other) const { return code_ == other.code_; }
  bool operator!=(const Status& other) const { return !(*this == other); }

  Code code() const { return code_; }
  SubCode subcode() const { return subcode_; }
  Severity severity() const { return severity_; }
  // The message without its code; null without one.
  const char* getState() const { return state_ ? state_->c_str() : nullptr; }

  static Status OK() { return Status(); }
  static Status OkOverwritten() { return Status(kOk, kOverwritten); }

#define ESKER_STATUS(NAME, CODE)                                    \
  static Status NAME(const Slice& message, const Slice& more = {}) { \
    return Status(CODE, kNone, message, more);                       \
  }                                                                  \
  static Status NAME(SubCode subcode = kNone) { return Status(CODE, subcode); }
  ESKER_STATUS(NotFound, kNotFound)
  ESKER_STATUS(Corruption, kCorruption)
  ESKER_STATUS(NotSupported, kNotSupported)
  ESKER_STATUS(InvalidArgument, kInvalidArgument)
  ESKER_STATUS(IOError, kIOError)
  ESKER_STATUS(MergeInProgress, kMergeInProgress)
  ESKER_STATUS(Incomplete, kIncomplete)
  ESKER_STATUS(ShutdownInProgress, kShutdownInProgress)
  ESKER_STATUS(TimedOut, kTimedOut)
  ESKER_STATUS(Aborted, kAborted)
  ESKER_STATUS(Busy, kBusy)
  ESKER_STATUS(Expired, kExpired)
  ESKER_STATUS(TryAgain, kTryAgain)
  ESKER_STATUS(CompactionTooLarge, kCompactionTooLarge)
  ESKER_STATUS(ColumnFamilyDropped, kColumnFamilyDropped)
#undef ESKER_STATUS
  static Status NoSpace() { return Status(kIOError, kNoSpace); }
  static Status NoSpace(const Slice& message, const Slice& more = {}) {
    return Status(kIOError, kNoSpace, message, more);
  }
  static Status MemoryLimit() { return Status(kAborted, kMemoryLimit); }
  static Status MemoryLimit(const Slice& message, const Slice& more = {}) {
    return Status(kAborted, kMemoryLimit, message, more);
  }
  static Status SpaceLimit() { return Status(kIOError, kSpaceLimit); }
  static Status SpaceLimit(const Slice& message, const Slice& more = {}) {
    return Status(kIOError, kSpaceLimit, message, more);
  }
  static Status PathNotFound() { return Status(kIOError, kPathNotFound); }
  static Status PathNotFound(const Slice& message, const Slice& more = {}) {
    return Status(kIOError, kPathNotFound, message, more);
  }
  static Status TxnNotPrepared() { return Status(kInvalidArgument, kTxnNotPrepared); }
  static Status TxnNotPrepared(const Slice& message, const Slice& more = {}) {
    return Status(kInvalidArgument, kTxnNotPrepared, message, more);
  }
  static Status CopyAppendMessage(const Status& status, const Slice& between, const Slice& more);
  // An error as the C interface tells it.
  static Status FromText(Code code, SubCode subcode, const char* text);

  bool ok() const { return code_ == kOk; }
  bool IsOkOverwritten() const { return code_ == kOk && subcode_ == kOverwritten; }
  bool IsNotFound() const { return code_ == kNotFound; }
  bool IsCorruption() const { return code_ == kCorruption; }
  bool IsNotSupported() const { return code_ == kNotSupported; }
  bool IsInvalidArgument() const { return code_ == kInvalidArgument; }
  bool IsIOError() const { return code_ == kIOError; }
  bool IsMergeInProgress() const { return code_ == kMergeInProgress; }
  bool IsIncomplete() const { return code_ == kIncomplete; }
  bool IsShutdownInProgress() const { return code_ == kShutdownInProgress; }
  bool IsTimedOut() const { return code_ == kTimedOut; }
  bool IsAborted() const { return code_ == kAborted; }
  bool IsLockLimit() const { return code_ == kAborted && subcode_ == kLockLimit; }
  bool IsBusy() const { return code_ == kBusy; }
  bool IsDeadlock() const { return code_ == kBusy && subcode_ == kDeadlock; }
  bool IsExpired() const { return code_ == kExpired; }
  bool IsTryAgain() const { return code_ == kTryAgain; }
  bool IsCompactionTooLarge() const { return code_ == kCompactionTooLarge; }
  bool IsColumnFamilyDropped() const { return code_ == kColumnFamilyDropped; }
  bool IsNoSpace() const { return code_ == kIOError && subcode_ == kNoSpace; }
  bool IsMemoryLimit() const { return code_ == kAborted && subcode_ == kMemoryLimit; }
  bool IsPathNotFound() const {
    return (code_ == kIOError || code_ == kNotFound) && subcode_ == kPathNotFound;
  }
  bool IsManualCompactionPaused() const {
    return code_ == kIncomplete && subcode_ == kManualCompactionPaused;
  }
  bool IsTxnNotPrepared() const {
    return code_ == kInvalidArgument && subcode_ == kTxnNotPrepared;
  }
  bool IsIOFenced() const { return code_ == kIOError && subcode_ == kIOFenced; }

  std::string ToString() const;
  // Nothing is checked here: a status may be ignored.
  void PermitUncheckedError() const {}
  void MustCheck() const {}
  // The code, for messages.
  std::string CodeAsString() const;

 protected:
  explicit Status(Code code, SubCode subcode = kNone) : code_(code), subcode_(subcode) {}

  Code code_ = kOk;
  SubCode subcode_ = kNone;
  Severity severity_ = kNoError;
  // The message tells the subcode as well.
  bool is_whole_ = false;
  std::unique_ptr<const std::string> state_;
};

}  // namespace ROCKSDB_NAMESPACE
