// Transactions of both kinds: those that lock keys, and those that look for conflicts at commit.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/comparator.h"
#include "rocksdb/db.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class Iterator;
class TransactionDB;
class WriteBatchWithIndex;

using TransactionName = std::string;
using TransactionID = uint64_t;
using TxnTimestamp = uint64_t;
constexpr TxnTimestamp kMaxTxnTimestamp = std::numeric_limits<TxnTimestamp>::max();

// Told when a snapshot was taken by SetSnapshotOnNextOperation().
class TransactionNotifier {
 public:
  virtual ~TransactionNotifier();
  virtual void SnapshotCreated(const Snapshot* snapshot) = 0;
};

class Transaction {
 public:
  enum TransactionState {
    STARTED = 0,
    AWAITING_PREPARE = 1,
    PREPARED = 2,
    AWAITING_COMMIT = 3,
    COMMITTED = 4,
    COMMITED = COMMITTED,
    AWAITING_ROLLBACK = 5,
    ROLLEDBACK = 6,
    LOCKS_STOLEN = 7,
  };

  Transaction() = default;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  virtual ~Transaction();

  virtual void SetSnapshot() = 0;
  // A notifier is told after the call that took the snapshot.
  virtual void SetSnapshotOnNextOperation(
      std::shared_ptr<TransactionNotifier> notifier = nullptr) = 0;
  // Belongs to the transaction.
  virtual const Snapshot* GetSnapshot() const = 0;
  virtual std::shared_ptr<const Snapshot> GetTimestampedSnapshot() const { return nullptr; }
  virtual void ClearSnapshot() = 0;

  virtual Status Prepare() = 0;
  virtual Status Commit() = 0;
  virtual Status Rollback() = 0;
  virtual void SetSavePoint() = 0;
  virtual Status RollbackToSavePoint() = 0;
  virtual Status PopSavePoint() = 0;

  virtual Status Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                     PinnableSlice* value) = 0;
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
             std::string* value);
  Status Get(const ReadOptions& options, const Slice& key, std::string* value) {
    return Get(options, nullptr, key, value);
  }
  Status Get(const ReadOptions& options, const Slice& key, PinnableSlice* value) {
    return Get(options, nullptr, key, value);
  }
  virtual Status GetForUpdate(const ReadOptions& options, ColumnFamilyHandle* family,
                              const Slice& key, PinnableSlice* value, bool exclusive = true,
                              bool do_validate = true) = 0;
  // A null value locks the key only.
  Status GetForUpdate(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                      std::string* value, bool exclusive = true, bool do_validate = true);
  Status GetForUpdate(const ReadOptions& options, const Slice& key, std::string* value,
                      bool exclusive = true, bool do_validate = true) {
    return GetForUpdate(options, nullptr, key, value, exclusive, do_validate);
  }
  Status GetForUpdate(const ReadOptions& options, const Slice& key, PinnableSlice* value,
                      bool exclusive = true, bool do_validate = true) {
    return GetForUpdate(options, nullptr, key, value, exclusive, do_validate);
  }
  std::vector<Status> MultiGetForUpdate(const ReadOptions& options,
                                        const std::vector<ColumnFamilyHandle*>& families,
                                        const std::vector<Slice>& keys,
                                        std::vector<std::string>* values);
  std::vector<Status> MultiGetForUpdate(const ReadOptions& options,
                                        const std::vector<Slice>& keys,
                                        std::vector<std::string>* values);
  std::vector<Status> MultiGet(const ReadOptions& options,
                               const std::vector<ColumnFamilyHandle*>& families,
                               const std::vector<Slice>& keys, std::vector<std::string>* values);
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                               std::vector<std::string>* values);
  virtual Iterator* GetIterator(const ReadOptions& options, ColumnFamilyHandle* family) = 0;
  Iterator* GetIterator(const ReadOptions& options) { return GetIterator(options, nullptr); }

  // A key that is assumed to be tracked has to be: GetForUpdate() or a change came before.
  virtual Status Put(ColumnFamilyHandle* family, const Slice& key, const Slice& value,
                     bool assume_tracked = false) = 0;
  Status Put(const Slice& key, const Slice& value) { return Put(nullptr, key, value); }
  virtual Status Merge(ColumnFamilyHandle* family, const Slice& key, const Slice& value,
                       bool assume_tracked = false) = 0;
  Status Merge(const Slice& key, const Slice& value) { return Merge(nullptr, key, value); }
  virtual Status Delete(ColumnFamilyHandle* family, const Slice& key,
                        bool assume_tracked = false) = 0;
  Status Delete(const Slice& key) { return Delete(nullptr, key); }
  virtual Status SingleDelete(ColumnFamilyHandle* family, const Slice& key,
                              bool assume_tracked = false) = 0;
  Status SingleDelete(const Slice& key) { return SingleDelete(nullptr, key); }
  // Without a look for conflicts. A database that locks keys locks these, too.
  virtual Status PutUntracked(ColumnFamilyHandle* family, const Slice& key,
                              const Slice& value) = 0;
  Status PutUntracked(const Slice& key, const Slice& value) {
    return PutUntracked(nullptr, key, value);
  }
  virtual Status MergeUntracked(ColumnFamilyHandle* family, const Slice& key,
                                const Slice& value) = 0;
  Status MergeUntracked(const Slice& key, const Slice& value) {
    return MergeUntracked(nullptr, key, value);
  }
  virtual Status DeleteUntracked(ColumnFamilyHandle* family, const Slice& key) = 0;
  Status DeleteUntracked(const Slice& key) { return DeleteUntracked(nullptr, key); }
  virtual Status SingleDeleteUntracked(ColumnFamilyHandle* family, const Slice& key) = 0;
  Status SingleDeleteUntracked(const Slice& key) { return SingleDeleteUntracked(nullptr, key); }
  virtual void PutLogData(const Slice& blob) = 0;
  virtual void UndoGetForUpdate(ColumnFamilyHandle* family, const Slice& key) = 0;
  void UndoGetForUpdate(const Slice& key) { UndoGetForUpdate(nullptr, key); }
  virtual Status RebuildFromWriteBatch(WriteBatch* source) = 0;
  // The changes so far. It lives as long as the transaction.
  virtual WriteBatchWithIndex* GetWriteBatch() = 0;
  // Timestamps, for families that have them.
  virtual Status SetReadTimestampForValidation(TxnTimestamp ts) = 0;
  virtual Status SetCommitTimestamp(TxnTimestamp ts) = 0;
  // What the commit of a prepared transaction writes with it, in one record of the log. It locks
  // nothing. It belongs to the transaction, whose end empties it.
  virtual WriteBatch* GetCommitTimeWriteBatch() = 0;

  virtual uint64_t GetNumKeys() const = 0;
  virtual uint64_t GetElapsedTime() const = 0;
  virtual void SetLockTimeout(int64_t milliseconds) = 0;
  virtual WriteOptions* GetWriteOptions() = 0;
  virtual void SetWriteOptions(const WriteOptions& options) = 0;
  virtual Status SetName(const TransactionName& name) = 0;
  virtual TransactionName GetName() const = 0;
  virtual TransactionID GetID() const = 0;
  virtual TransactionState GetState() const = 0;
  virtual bool IsDeadlockDetect() const { return false; }
  // Those who hold the key that it waits for in another thread, and that key.
  virtual std::vector<TransactionID> GetWaitingTxns(uint32_t* /*family*/,
                                                    std::string* /*key*/) const {
    return {};
  }
};

}  // namespace ROCKSDB_NAMESPACE
