// What batches of every kind can take.
#pragma once

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyHandle;
class WriteBatch;

class WriteBatchBase {
 public:
  virtual ~WriteBatchBase();

  virtual Status Put(ColumnFamilyHandle* family, const Slice& key, const Slice& value) = 0;
  virtual Status Put(const Slice& key, const Slice& value) = 0;
  virtual Status Put(ColumnFamilyHandle* family, const SliceParts& key, const SliceParts& value);
  virtual Status Put(const SliceParts& key, const SliceParts& value);
  virtual Status Merge(ColumnFamilyHandle* family, const Slice& key, const Slice& value) = 0;
  virtual Status Merge(const Slice& key, const Slice& value) = 0;
  virtual Status Delete(ColumnFamilyHandle* family, const Slice& key) = 0;
  virtual Status Delete(const Slice& key) = 0;
  virtual Status Delete(ColumnFamilyHandle* family, const SliceParts& key);
  virtual Status Delete(const SliceParts& key);
  virtual Status Merge(ColumnFamilyHandle* family, const SliceParts& key,
                       const SliceParts& value);
  virtual Status Merge(const SliceParts& key, const SliceParts& value);
  virtual Status SingleDelete(ColumnFamilyHandle* family, const SliceParts& key);
  virtual Status SingleDelete(const SliceParts& key);
  virtual Status DeleteRange(ColumnFamilyHandle* family, const SliceParts& begin,
                             const SliceParts& end);
  virtual Status DeleteRange(const SliceParts& begin, const SliceParts& end);
  virtual Status SingleDelete(ColumnFamilyHandle* family, const Slice& key) = 0;
  virtual Status SingleDelete(const Slice& key) = 0;
  virtual Status DeleteRange(ColumnFamilyHandle* family, const Slice& begin,
                             const Slice& end) = 0;
  virtual Status DeleteRange(const Slice& begin, const Slice& end) = 0;
  virtual Status PutLogData(const Slice& blob) = 0;
  virtual void Clear() = 0;
  virtual WriteBatch* GetWriteBatch() = 0;
  virtual void SetSavePoint() = 0;
  virtual Status RollbackToSavePoint() = 0;
  virtual Status PopSavePoint() = 0;
  virtual void SetMaxBytes(size_t) {}
};

}  // namespace ROCKSDB_NAMESPACE
