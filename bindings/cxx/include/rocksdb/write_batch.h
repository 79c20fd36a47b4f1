// Changes that are applied together or not at all.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rocksdb/status.h"
#include "rocksdb/write_batch_base.h"

namespace ROCKSDB_NAMESPACE {

class WriteBatchWithIndex;

class WriteBatch : public WriteBatchBase {
 public:
  explicit WriteBatch(size_t reserved_bytes = 0, size_t max_bytes = 0);
  WriteBatch(size_t reserved_bytes, size_t max_bytes, size_t protection_bytes_per_key,
             size_t default_cf_ts_sz);
  // A batch from what Data() of another gave.
  explicit WriteBatch(const std::string& data);
  // Wraps an object of the C interface, which somebody else destroys unless `is_own`.
  WriteBatch(void* handle, bool is_own) : handle_(handle), is_own_(is_own) {}
  WriteBatch(const WriteBatch& other);
  WriteBatch(WriteBatch&& other) noexcept;
  WriteBatch& operator=(const WriteBatch& other);
  WriteBatch& operator=(WriteBatch&& other) noexcept;
  ~WriteBatch() override;

  using WriteBatchBase::Delete;
  using WriteBatchBase::DeleteRange;
  using WriteBatchBase::Merge;
  using WriteBatchBase::Put;
  using WriteBatchBase::SingleDelete;
  Status Put(ColumnFamilyHandle* family, const Slice& key, const Slice& value) override;
  Status Put(const Slice& key, const Slice& value) override;
  Status Put(ColumnFamilyHandle* family, const Slice& key, const Slice& ts, const Slice& value);
  Status Delete(ColumnFamilyHandle* family, const Slice& key, const Slice& ts);
  Status SingleDelete(ColumnFamilyHandle* family, const Slice& key, const Slice& ts);
  Status Merge(ColumnFamilyHandle* family, const Slice& key, const Slice& value) override;
  Status Merge(const Slice& key, const Slice& value) override;
  Status Delete(ColumnFamilyHandle* family, const Slice& key) override;
  Status Delete(const Slice& key) override;
  Status SingleDelete(ColumnFamilyHandle* family, const Slice& key) override;
  Status SingleDelete(const Slice& key) override;
  Status DeleteRange(ColumnFamilyHandle* family, const Slice& begin, const Slice& end) override;
  Status DeleteRange(const Slice& begin, const Slice& end) override;
  Status PutLogData(const Slice& blob) override;
  void Clear() override;
  WriteBatch* GetWriteBatch() override { return this; }
  void SetSavePoint() override;
  Status RollbackToSavePoint() override;
  Status PopSavePoint() override;

  // Takes the records of a batch, one call for each. An exception comes out of Iterate().
  class Handler {
   public:
    virtual ~Handler();
    virtual Status PutCF(uint32_t family, const Slice& key, const Slice& value);
    virtual void Put(const Slice&, const Slice&) {}
    virtual Status DeleteCF(uint32_t family, const Slice& key);
    virtual void Delete(const Slice&) {}
    virtual Status SingleDeleteCF(uint32_t family, const Slice& key);
    virtual void SingleDelete(const Slice&) {}
    virtual Status DeleteRangeCF(uint32_t, const Slice&, const Slice&) {
      return Status::InvalidArgument("DeleteRangeCF not implemented");
    }
    virtual Status MergeCF(uint32_t family, const Slice& key, const Slice& value);
    virtual void Merge(const Slice&, const Slice&) {}
    virtual Status PutEntityCF(uint32_t, const Slice&, const Slice&) {
      return Status::NotSupported("PutEntityCF not implemented");
    }
    virtual Status PutBlobIndexCF(uint32_t, const Slice&, const Slice&) {
      return Status::InvalidArgument("PutBlobIndexCF not implemented");
    }
    virtual void LogData(const Slice&) {}
    virtual Status MarkBeginPrepare(bool = false) {
      return Status::InvalidArgument("MarkBeginPrepare() handler not defined.");
    }
    virtual Status MarkEndPrepare(const Slice&) {
      return Status::InvalidArgument("MarkEndPrepare() handler not defined.");
    }
    virtual Status MarkNoop(bool) { return Status::OK(); }
    virtual Status MarkRollback(const Slice&) {
      return Status::InvalidArgument("MarkRollbackPrepare() handler not defined.");
    }
    virtual Status MarkCommit(const Slice&) {
      return Status::InvalidArgument("MarkCommit() handler not defined.");
    }
    virtual Status MarkCommitWithTimestamp(const Slice&, const Slice&) {
      return Status::InvalidArgument("MarkCommitWithTimestamp() handler not defined.");
    }
    virtual bool Continue() { return true; }
  };
  Status Iterate(Handler* handler) const;

  const std::string& Data() const;
  size_t GetDataSize() const;
  uint32_t Count() const;
  bool HasPut() const { return Has(1); }
  bool HasDelete() const { return Has(2); }
  bool HasSingleDelete() const { return Has(4); }
  bool HasMerge() const { return Has(8); }
  bool HasDeleteRange() const { return Has(16); }
  Status VerifyChecksum() const;
  // Puts `ts` at the end of the keys of families for which `size_of` gives its size; 0 leaves keys
  // as they are.
  Status UpdateTimestamps(const Slice& ts, std::function<size_t(uint32_t family)> size_of);
  // The object of the C interface.
  void* EskerHandle() const;

 private:
  friend class WriteBatchWithIndex;
  bool Has(int kind) const;

  // A copy of the batch with an index, made when it is read, if this one shows it.
  mutable void* handle_;
  bool is_own_ = true;
  // The batch with an index that this one shows: it takes the changes.
  WriteBatchWithIndex* indexed_ = nullptr;
  // What Data() gave out.
  mutable std::string data_;
};

}  // namespace ROCKSDB_NAMESPACE
