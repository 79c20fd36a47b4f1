// The order of keys.
#pragma once

#include <cstddef>
#include <string>

#include "rocksdb/customizable.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

class CompareInterface {
 public:
  virtual ~CompareInterface() = default;
  // Less than, equal to or greater than 0. An exception ends the process.
  virtual int Compare(const Slice& a, const Slice& b) const = 0;
};

// A total order. It has to outlive every database that uses it.
class Comparator : public Customizable, public CompareInterface {
 public:
  Comparator() = default;
  explicit Comparator(size_t timestamp_size) : timestamp_size_(timestamp_size) {}
  ~Comparator() override;

  const char* Name() const override = 0;
  int Compare(const Slice& a, const Slice& b) const override = 0;
  virtual bool Equal(const Slice& a, const Slice& b) const { return Compare(a, b) == 0; }

  // Shorter keys for index blocks. The engine calls neither: it keeps whole keys there.
  virtual void FindShortestSeparator(std::string* start, const Slice& limit) const = 0;
  virtual void FindShortSuccessor(std::string* key) const = 0;

  virtual const Comparator* GetRootComparator() const { return this; }
  virtual bool IsSameLengthImmediateSuccessor(const Slice&, const Slice&) const { return false; }
  virtual bool CanKeysWithDifferentByteContentsBeEqual() const { return true; }

  // Timestamps at the end of keys.
  size_t timestamp_size() const { return timestamp_size_; }
  virtual int CompareTimestamp(const Slice&, const Slice&) const { return 0; }
  int CompareWithoutTimestamp(const Slice& a, const Slice& b) const {
    return CompareWithoutTimestamp(a, true, b, true);
  }
  virtual int CompareWithoutTimestamp(const Slice& a, bool, const Slice& b, bool) const {
    return Compare(a, b);
  }
  virtual bool EqualWithoutTimestamp(const Slice& a, const Slice& b) const {
    return CompareWithoutTimestamp(a, b) == 0;
  }

 private:
  size_t timestamp_size_ = 0;
};

const Comparator* BytewiseComparator();
const Comparator* ReverseBytewiseComparator();
const Comparator* BytewiseComparatorWithU64Ts();

}  // namespace ROCKSDB_NAMESPACE
