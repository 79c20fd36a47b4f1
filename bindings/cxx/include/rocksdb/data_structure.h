// Small containers that options use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Enumerators from 0 to MAX, each there or not.
template <typename E, E MAX>
class SmallEnumSet {
  static constexpr size_t kCount = static_cast<size_t>(MAX) + 1;
  static constexpr size_t kWords = (kCount + 63) / 64;

 public:
  SmallEnumSet() = default;
  template <class... Rest>
  SmallEnumSet(E first, Rest... rest) {  // NOLINT
    Add(first);
    (Add(rest), ...);
  }
  static SmallEnumSet All() {
    SmallEnumSet all;
    for (size_t i = 0; i < kCount; ++i) all.Add(static_cast<E>(i));
    return all;
  }

  bool operator==(const SmallEnumSet& other) const { return words_ == other.words_; }
  bool operator!=(const SmallEnumSet& other) const { return words_ != other.words_; }
  bool Contains(E e) const {
    return Place(e) < kCount && (words_[Place(e) / 64] & Bit(e)) != 0;
  }
  bool empty() const { return count() == 0; }
  size_t count() const {
    size_t found = 0;
    for (size_t i = 0; i < kCount; ++i) found += Contains(static_cast<E>(i)) ? 1 : 0;
    return found;
  }
  // Whether the set changed.
  bool Add(E e) {
    if (Place(e) >= kCount || Contains(e)) return false;
    words_[Place(e) / 64] |= Bit(e);
    return true;
  }
  bool Remove(E e) {
    if (!Contains(e)) return false;
    words_[Place(e) / 64] &= ~Bit(e);
    return true;
  }
  SmallEnumSet With(E e) const {
    SmallEnumSet copy(*this);
    copy.Add(e);
    return copy;
  }
  SmallEnumSet Without(E e) const {
    SmallEnumSet copy(*this);
    copy.Remove(e);
    return copy;
  }

  class const_iterator {
   public:
    E operator*() const { return static_cast<E>(at_); }
    const_iterator& operator++() {
      at_ = set_->Next(at_ + 1);
      return *this;
    }
    bool operator==(const const_iterator& other) const { return at_ == other.at_; }
    bool operator!=(const const_iterator& other) const { return at_ != other.at_; }

   private:
    friend class SmallEnumSet;
    const_iterator(const SmallEnumSet* set, size_t at) : set_(set), at_(at) {}
    const SmallEnumSet* set_;
    size_t at_;
  };
  const_iterator begin() const { return const_iterator(this, Next(0)); }
  const_iterator end() const { return const_iterator(this, kCount); }

 private:
  static constexpr size_t Place(E e) { return static_cast<size_t>(e); }
  static constexpr uint64_t Bit(E e) { return uint64_t{1} << (Place(e) % 64); }
  size_t Next(size_t at) const {
    while (at < kCount && !Contains(static_cast<E>(at))) ++at;
    return at;
  }

  std::array<uint64_t, kWords> words_{};
};

}  // namespace ROCKSDB_NAMESPACE
