// A view of bytes, and a value that may stay in the block cache while it is looked at.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "rocksdb/cleanable.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// A pointer and a length. The bytes belong to somebody else.
class Slice {
 public:
  Slice() = default;
  Slice(const char* data, size_t size) : data_(data), size_(size) {}
  Slice(const std::string& text) : data_(text.data()), size_(text.size()) {}        // NOLINT
  Slice(const std::string_view& text) : data_(text.data()), size_(text.size()) {}   // NOLINT
  Slice(const char* text) : data_(text), size_(text ? std::strlen(text) : 0) {}     // NOLINT
  // All parts one after the other, in `buffer`.
  Slice(const struct SliceParts& parts, std::string* buffer);

  const char* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const char* begin() const { return data_; }
  const char* end() const { return data_ + size_; }

  char operator[](size_t at) const {
    assert(at < size_);
    return data_[at];
  }

  void clear() { *this = Slice("", 0); }
  void remove_prefix(size_t count) {
    assert(count <= size_);
    data_ += count;
    size_ -= count;
  }
  void remove_suffix(size_t count) {
    assert(count <= size_);
    size_ -= count;
  }

  std::string ToString(bool hex = false) const;
  std::string_view ToStringView() const { return std::string_view(data_, size_); }
  // Reads what ToString(true) wrote; false for anything else.
  bool DecodeHex(std::string* result) const;

  // Less than, equal to or greater than 0, byte by byte.
  int compare(const Slice& other) const {
    const size_t common = size_ < other.size_ ? size_ : other.size_;
    const int order = common == 0 ? 0 : std::memcmp(data_, other.data_, common);
    if (order != 0) return order;
    return size_ < other.size_ ? -1 : static_cast<int>(size_ > other.size_);
  }
  bool starts_with(const Slice& prefix) const {
    return size_ >= prefix.size_ &&
           (prefix.size_ == 0 || std::memcmp(data_, prefix.data_, prefix.size_) == 0);
  }
  bool ends_with(const Slice& suffix) const {
    return size_ >= suffix.size_ &&
           (suffix.size_ == 0 ||
            std::memcmp(data_ + size_ - suffix.size_, suffix.data_, suffix.size_) == 0);
  }
  // Index of the first byte that differs.
  size_t difference_offset(const Slice& other) const;

  const char* data_ = "";
  size_t size_ = 0;
};

inline bool operator==(const Slice& a, const Slice& b) {
  return a.size() == b.size() &&
         (a.size() == 0 || std::memcmp(a.data(), b.data(), a.size()) == 0);
}
inline bool operator!=(const Slice& a, const Slice& b) { return !(a == b); }

// A slice, or none.
class OptSlice {
 public:
  OptSlice() = default;
  OptSlice(std::nullptr_t) {}                                           // NOLINT
  OptSlice(const Slice& slice) : slice_(slice), has_(true) {}           // NOLINT
  OptSlice(const std::string& text) : slice_(text), has_(true) {}       // NOLINT
  OptSlice(const std::string_view& text) : slice_(text), has_(true) {}  // NOLINT
  OptSlice(const char* text) : slice_(text), has_(true) {}              // NOLINT
  static OptSlice CopyFromPtr(const Slice* slice) {
    return slice == nullptr ? OptSlice() : OptSlice(*slice);
  }

  bool has_value() const noexcept { return has_; }
  explicit operator bool() const noexcept { return has_; }
  const Slice& value() const noexcept {
    assert(has_);
    return slice_;
  }
  const Slice& operator*() const noexcept { return value(); }
  const Slice* operator->() const noexcept { return &value(); }
  const Slice* AsPtr() const noexcept { return has_ ? &slice_ : nullptr; }

 private:
  Slice slice_;
  bool has_ = false;
};

// Many pieces that make up one key or value.
struct SliceParts {
  SliceParts() = default;
  SliceParts(const Slice* first, int count) : parts(first), num_parts(count) {}

  const Slice* parts = nullptr;
  int num_parts = 0;
};

// A value: a view of memory that its owner holds until the value is reset, or a copy of its own.
class PinnableSlice : public Slice, public Cleanable {
 public:
  PinnableSlice() : buffer_(&own_) {}
  explicit PinnableSlice(std::string* buffer) : buffer_(buffer) {}
  PinnableSlice(PinnableSlice&& other);
  PinnableSlice& operator=(PinnableSlice&& other);
  PinnableSlice(const PinnableSlice&) = delete;
  PinnableSlice& operator=(const PinnableSlice&) = delete;

  // Views `slice`; `function` is called when the value is reset.
  void PinSlice(const Slice& slice, CleanupFunction function, void* arg1, void* arg2) {
    assert(!pinned_);
    pinned_ = true;
    View(slice);
    RegisterCleanup(function, arg1, arg2);
  }
  void PinSlice(const Slice& slice, Cleanable* owner) {
    assert(!pinned_);
    pinned_ = true;
    View(slice);
    if (owner != nullptr) owner->DelegateCleanupsTo(this);
  }
  // Copies `slice`.
  void PinSelf(const Slice& slice) {
    assert(!pinned_);
    buffer_->assign(slice.data(), slice.size());
    View(*buffer_);
  }
  // Takes what was put into the buffer.
  void PinSelf() {
    assert(!pinned_);
    View(*buffer_);
  }

  void remove_suffix(size_t count);
  void remove_prefix(size_t count);

  void Reset() {
    Cleanable::Reset();
    pinned_ = false;
    size_ = 0;
  }
  std::string* GetSelf() { return buffer_; }
  bool IsPinned() const { return pinned_; }

 private:
  void View(const Slice& slice) {
    data_ = slice.data();
    size_ = slice.size();
  }

  std::string own_;
  std::string* buffer_;
  bool pinned_ = false;
};

}  // namespace ROCKSDB_NAMESPACE
