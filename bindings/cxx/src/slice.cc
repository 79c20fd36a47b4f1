#include "rocksdb/slice.h"

#include "rocksdb/cleanable.h"

namespace ROCKSDB_NAMESPACE {

Slice::Slice(const SliceParts& parts, std::string* buffer) {
  buffer->clear();
  for (int i = 0; i < parts.num_parts; ++i) {
    buffer->append(parts.parts[i].data(), parts.parts[i].size());
  }
  *this = Slice(*buffer);
}

std::string Slice::ToString(bool hex) const {
  if (!hex) return std::string(data_, size_);
  static const char digits[] = "0123456789ABCDEF";
  std::string text;
  text.reserve(2 * size_);
  for (size_t i = 0; i < size_; ++i) {
    const auto byte = static_cast<unsigned char>(data_[i]);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

bool Slice::DecodeHex(std::string* result) const {
  if (result == nullptr || size_ % 2 != 0) return false;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  result->clear();
  for (size_t i = 0; i < size_; i += 2) {
    const int high = digit(data_[i]);
    const int low = digit(data_[i + 1]);
    if (high < 0 || low < 0) return false;
    result->push_back(static_cast<char>(high << 4 | low));
  }
  return true;
}

size_t Slice::difference_offset(const Slice& other) const {
  const size_t common = size_ < other.size_ ? size_ : other.size_;
  size_t at = 0;
  while (at < common && data_[at] == other.data_[at]) ++at;
  return at;
}

PinnableSlice::PinnableSlice(PinnableSlice&& other) : buffer_(&own_) { *this = std::move(other); }

PinnableSlice& PinnableSlice::operator=(PinnableSlice&& other) {
  if (this == &other) return *this;
  Cleanable::Reset();
  const bool is_own = other.buffer_ == &other.own_;
  own_ = std::move(other.own_);
  buffer_ = is_own ? &own_ : other.buffer_;
  pinned_ = other.pinned_;
  if (pinned_) {
    View(other);
  } else {
    View(Slice(buffer_->data(), other.size()));
  }
  Cleanable::operator=(std::move(other));
  other.own_.clear();
  other.buffer_ = &other.own_;
  other.pinned_ = false;
  other.PinSelf();
  return *this;
}

void PinnableSlice::remove_suffix(size_t count) {
  assert(count <= size_);
  if (pinned_) {
    size_ -= count;
  } else {
    buffer_->erase(size_ - count, count);
    PinSelf();
  }
}

void PinnableSlice::remove_prefix(size_t count) {
  assert(count <= size_);
  if (pinned_) {
    data_ += count;
    size_ -= count;
  } else {
    buffer_->erase(0, count);
    PinSelf();
  }
}

Cleanable& Cleanable::operator=(Cleanable&& other) noexcept {
  if (this == &other) return *this;
  Run();
  first_ = other.first_;
  other.first_ = Cleanup();
  return *this;
}

void Cleanable::RegisterCleanup(CleanupFunction function, void* arg1, void* arg2) {
  if (first_.function != nullptr) {
    auto* next = new Cleanup(first_);
    first_.next = next;
  }
  first_.function = function;
  first_.arg1 = arg1;
  first_.arg2 = arg2;
}

void Cleanable::DelegateCleanupsTo(Cleanable* other) {
  if (first_.function == nullptr) return;
  other->RegisterCleanup(first_.function, first_.arg1, first_.arg2);
  for (Cleanup* at = first_.next; at != nullptr;) {
    other->RegisterCleanup(at->function, at->arg1, at->arg2);
    delete std::exchange(at, at->next);
  }
  first_ = Cleanup();
}

void Cleanable::RunAll() {
  Cleanup first = std::exchange(first_, Cleanup());
  first.function(first.arg1, first.arg2);
  for (Cleanup* at = first.next; at != nullptr;) {
    at->function(at->arg1, at->arg2);
    delete std::exchange(at, at->next);
  }
}

}  // namespace ROCKSDB_NAMESPACE
