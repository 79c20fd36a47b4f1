// A batch that can be read before it is written.
#pragma once

#include <memory>
#include <string>

#include "rocksdb/comparator.h"
#include "rocksdb/iterator.h"
#include "rocksdb/options.h"
#include "rocksdb/write_batch.h"
#include "rocksdb/write_batch_base.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyHandle;
class DB;

class WriteBatchWithIndex : public WriteBatchBase {
 public:
  explicit WriteBatchWithIndex(const Comparator* backup_index_comparator = BytewiseComparator(),
                               size_t reserved_bytes = 0, bool overwrite_key = false,
                               size_t max_bytes = 0, size_t protection_bytes_per_key = 0);
  // Wraps an object of the C interface, and frees the handle alone.
  explicit WriteBatchWithIndex(void* lent) : handle_(lent), is_lent_(true) {}
  ~WriteBatchWithIndex() override;
  WriteBatchWithIndex(const WriteBatchWithIndex&) = delete;
  WriteBatchWithIndex& operator=(const WriteBatchWithIndex&) = delete;

  using WriteBatchBase::Delete;
  using WriteBatchBase::DeleteRange;
  using WriteBatchBase::Merge;
  using WriteBatchBase::Put;
  using WriteBatchBase::SingleDelete;
  Status Put(ColumnFamilyHandle* family, const Slice& key, const Slice& value) override;
  Status Put(const Slice& key, const Slice& value) override;
  Status Merge(ColumnFamilyHandle* family, const Slice& key, const Slice& value) override;
  Status Merge(const Slice& key, const Slice& value) override;
  Status Delete(ColumnFamilyHandle* family, const Slice& key) override;
  Status Delete(const Slice& key) override;
  Status SingleDelete(ColumnFamilyHandle* family, const Slice& key) override;
  Status SingleDelete(const Slice& key) override;
  Status DeleteRange(ColumnFamilyHandle*, const Slice&, const Slice&) override {
    return Status::NotSupported("DeleteRange unsupported in WriteBatchWithIndex");
  }
  Status DeleteRange(const Slice&, const Slice&) override {
    return Status::NotSupported("DeleteRange unsupported in WriteBatchWithIndex");
  }
  Status PutLogData(const Slice& blob) override;
  void Clear() override;
  // A view of the changes without the index: what one takes is in the other. It lives as long.
  // Nothing may be assigned to it but an empty batch; else the process ends with a message.
  WriteBatch* GetWriteBatch() override;
  void SetSavePoint() override;
  Status RollbackToSavePoint() override;
  Status PopSavePoint() override;

  Status GetFromBatch(ColumnFamilyHandle* family, const DBOptions& options, const Slice& key,
                      std::string* value);
  Status GetFromBatch(const DBOptions& options, const Slice& key, std::string* value) {
    return GetFromBatch(nullptr, options, key, value);
  }
  Status GetFromBatchAndDB(DB* db, const ReadOptions& options, ColumnFamilyHandle* family,
                           const Slice& key, PinnableSlice* value);
  Status GetFromBatchAndDB(DB* db, const ReadOptions& options, ColumnFamilyHandle* family,
                           const Slice& key, std::string* value);
  Status GetFromBatchAndDB(DB* db, const ReadOptions& options, const Slice& key,
                           std::string* value) {
    return GetFromBatchAndDB(db, options, nullptr, key, value);
  }
  Status GetFromBatchAndDB(DB* db, const ReadOptions& options, const Slice& key,
                           PinnableSlice* value) {
    return GetFromBatchAndDB(db, options, nullptr, key, value);
  }
  // Takes over `base`.
  Iterator* NewIteratorWithBase(ColumnFamilyHandle* family, Iterator* base,
                                const ReadOptions* options = nullptr);
  Iterator* NewIteratorWithBase(Iterator* base, const ReadOptions* options = nullptr) {
    return NewIteratorWithBase(nullptr, base, options);
  }
  // The object of the C interface.
  void* EskerHandle() const { return handle_; }

 private:
  friend class WriteBatch;
  void* handle_;
  bool is_lent_ = false;
  std::unique_ptr<WriteBatch> shown_;
};

}  // namespace ROCKSDB_NAMESPACE
