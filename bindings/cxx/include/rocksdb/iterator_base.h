// Moving over keys in order.
#pragma once

#include "rocksdb/cleanable.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class IteratorBase : public Cleanable {
 public:
  IteratorBase() = default;
  IteratorBase(const IteratorBase&) = delete;
  IteratorBase& operator=(const IteratorBase&) = delete;
  virtual ~IteratorBase();

  virtual bool Valid() const = 0;
  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  virtual void Seek(const Slice& target) = 0;
  virtual void SeekForPrev(const Slice& target) = 0;
  virtual void Next() = 0;
  virtual void Prev() = 0;
  virtual Slice key() const = 0;
  virtual Status status() const = 0;
  virtual Status Refresh() { return Status::NotSupported("Refresh() is not supported"); }
  virtual Status Refresh(const class Snapshot*) {
    return Status::NotSupported("Refresh() to a snapshot is not supported");
  }
  virtual bool PrepareValue() { return true; }
};

}  // namespace ROCKSDB_NAMESPACE
