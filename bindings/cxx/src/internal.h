// What the files of the library share: handles of the C interface, errors, and callbacks.
#pragma once

#include <rocksdb/c.h>
#include <rocksdb/esker.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "rocksdb/db.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// The place where a call of the C interface puts its error.
class ErrorText {
 public:
  ErrorText() = default;
  ErrorText(const ErrorText&) = delete;
  ErrorText& operator=(const ErrorText&) = delete;
  ~ErrorText() { rocksdb_free(text_); }

  operator char**() { return &text_; }  // NOLINT
  bool ok() const { return text_ == nullptr; }
  // The error of the last call, which was made in this thread.
  Status status() const {
    if (text_ == nullptr) return Status::OK();
    return Status::FromText(static_cast<Status::Code>(esker_last_error_code()),
                            static_cast<Status::SubCode>(esker_last_error_subcode()), text_);
  }

 private:
  char* text_ = nullptr;
};

// The error that text from the C interface tells, where the code is not at hand.
Status StatusOfText(const char* text);

// A handle of the C interface and the function that destroys it.
template <class T>
using Handle = std::unique_ptr<T, void (*)(T*)>;

// Text from malloc as a string; empty for null.
std::string Take(char* text);
std::string Take(char* bytes, size_t length);

// Ends the process: an exception came out of a callback that has no way to tell of errors, and it
// must not go through the engine.
[[noreturn]] void UncaughtInCallback(const char* callback) noexcept;

// Calls `body`, which is the application's.
template <class Body>
auto MustNotThrow(const char* callback, Body&& body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    UncaughtInCallback(callback);
  }
}

inline rocksdb_column_family_handle_t* ToC(ColumnFamilyHandle* family) {
  return family == nullptr
             ? nullptr
             : static_cast<rocksdb_column_family_handle_t*>(family->EskerHandle());
}
inline rocksdb_t* HandleOf(DB* db) {
  return db == nullptr ? nullptr : static_cast<rocksdb_t*>(db->EskerHandle());
}
inline const rocksdb_snapshot_t* ToC(const Snapshot* snapshot) {
  return snapshot == nullptr ? nullptr
                             : static_cast<const rocksdb_snapshot_t*>(snapshot->EskerHandle());
}

// A snapshot of a database or a transaction.
class SnapshotImpl : public Snapshot {
 public:
  explicit SnapshotImpl(const rocksdb_snapshot_t* handle) : handle_(handle) {}
  SequenceNumber GetSequenceNumber() const override {
    return rocksdb_snapshot_get_sequence_number(handle_);
  }
  const void* EskerHandle() const override { return handle_; }

 private:
  const rocksdb_snapshot_t* handle_;
};

// An iterator over what `handle` moves over; takes it over.
Iterator* NewHandleIterator(rocksdb_iterator_t* handle, const ReadOptions& options);
// An iterator over `base`, which it takes over, and a batch on top, which `add` adds: `base` stays
// within the bounds that it was made with, the batch within those of `options`.
using AddBatch = std::function<rocksdb_iterator_t*(rocksdb_iterator_t*)>;
Iterator* NewIteratorOverBase(Iterator* base, const ReadOptions& options, const AddBatch& add);

// Pins what `value` holds, which may be null for "not found".
Status PinValue(const ErrorText& error, rocksdb_pinnableslice_t* value, PinnableSlice* out);

}  // namespace ROCKSDB_NAMESPACE
