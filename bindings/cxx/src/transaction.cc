// Databases with transactions, of both kinds.

#include <chrono>
#include <map>
#include <mutex>

#include "db_impl.h"
#include "lock_waits.h"
#include "rocksdb/utilities/optimistic_transaction_db.h"
#include "rocksdb/utilities/transaction_db.h"
#include "rocksdb/utilities/write_batch_with_index.h"

namespace ROCKSDB_NAMESPACE {

StackableDB::~StackableDB() {
  if (shared_ == nullptr) delete db_;
}
TransactionDB::~TransactionDB() = default;
OptimisticTransactionDB::~OptimisticTransactionDB() = default;
Transaction::~Transaction() = default;
TransactionNotifier::~TransactionNotifier() = default;
OccLockBuckets::~OccLockBuckets() = default;

namespace {

class Buckets final : public OccLockBuckets {
 public:
  explicit Buckets(rocksdb_optimistictransactiondb_lock_buckets_t* handle)
      : handle_(handle, rocksdb_optimistictransactiondb_lock_buckets_destroy) {}
  size_t ApproximateMemoryUsage() const override {
    return rocksdb_optimistictransactiondb_lock_buckets_approximate_memory_usage(handle_.get());
  }
  void* EskerHandle() const override { return handle_.get(); }

 private:
  Handle<rocksdb_optimistictransactiondb_lock_buckets_t> handle_;
};

}  // namespace

std::shared_ptr<OccLockBuckets> MakeSharedOccLockBuckets(size_t bucket_count,
                                                         bool cache_aligned) {
  return std::make_shared<Buckets>(rocksdb_optimistictransactiondb_lock_buckets_create(
      bucket_count, cache_aligned ? 1 : 0));
}

Status Transaction::Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                        std::string* value) {
  PinnableSlice found;
  Status status = Get(options, family, key, &found);
  if (status.ok()) value->assign(found.data(), found.size());
  return status;
}

Status Transaction::GetForUpdate(const ReadOptions& options, ColumnFamilyHandle* family,
                                 const Slice& key, std::string* value, bool exclusive,
                                 bool do_validate) {
  PinnableSlice found;
  Status status = GetForUpdate(options, family, key, &found, exclusive, do_validate);
  if (value == nullptr) return status.IsNotFound() ? Status::OK() : status;
  if (status.ok()) value->assign(found.data(), found.size());
  return status;
}

std::vector<Status> Transaction::MultiGetForUpdate(
    const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
    const std::vector<Slice>& keys, std::vector<std::string>* values) {
  std::vector<Status> statuses;
  values->assign(keys.size(), std::string());
  for (size_t i = 0; i < keys.size(); ++i) {
    ColumnFamilyHandle* family = i < families.size() ? families[i] : nullptr;
    statuses.push_back(GetForUpdate(options, family, keys[i], &(*values)[i]));
  }
  return statuses;
}

std::vector<Status> Transaction::MultiGetForUpdate(const ReadOptions& options,
                                                   const std::vector<Slice>& keys,
                                                   std::vector<std::string>* values) {
  return MultiGetForUpdate(options, std::vector<ColumnFamilyHandle*>(), keys, values);
}

std::vector<Status> Transaction::MultiGet(const ReadOptions& options,
                                          const std::vector<ColumnFamilyHandle*>& families,
                                          const std::vector<Slice>& keys,
                                          std::vector<std::string>* values) {
  std::vector<Status> statuses;
  values->assign(keys.size(), std::string());
  for (size_t i = 0; i < keys.size(); ++i) {
    ColumnFamilyHandle* family = i < families.size() ? families[i] : nullptr;
    statuses.push_back(Get(options, family, keys[i], &(*values)[i]));
  }
  return statuses;
}

std::vector<Status> Transaction::MultiGet(const ReadOptions& options,
                                          const std::vector<Slice>& keys,
                                          std::vector<std::string>* values) {
  return MultiGet(options, std::vector<ColumnFamilyHandle*>(), keys, values);
}

namespace {

class TransactionImpl;

// The transactions of a database that have names.
class NamedTransactions {
 public:
  void Add(const std::string& name, Transaction* transaction) {
    const std::lock_guard<std::mutex> lock(mutex_);
    named_[name] = transaction;
  }
  void Remove(const std::string& name, const Transaction* transaction) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = named_.find(name);
    if (found != named_.end() && found->second == transaction) named_.erase(found);
  }
  Transaction* Find(const std::string& name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = named_.find(name);
    return found == named_.end() ? nullptr : found->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Transaction*> named_;
};

class TransactionImpl : public Transaction {
 public:
  // `db` is null for a database that does not lock.
  TransactionImpl(rocksdb_transaction_t* handle, const WriteOptions& options,
                  std::shared_ptr<NamedTransactions> named, bool detects_deadlocks,
                  const rocksdb_transactiondb_t* db = nullptr)
      : handle_(handle), db_(db), named_(std::move(named)) {
    Restart(handle, options, detects_deadlocks);
    if (handle != nullptr && !GetName().empty()) named_->Add(GetName(), this);
  }
  ~TransactionImpl() override {
    DropSnapshot();
    changes_.reset();
    named_->Remove(GetName(), this);
    rocksdb_transaction_destroy(handle_);
  }

  void Restart(rocksdb_transaction_t* handle, const WriteOptions& options,
               bool detects_deadlocks) {
    DropSnapshot();
    changes_.reset();
    handle_ = handle;
    // Other threads ask what it waits for; they do not use the handle.
    id_ = esker_transaction_id(handle);
    options_ = options;
    detects_deadlocks_ = detects_deadlocks;
    began_ = std::chrono::steady_clock::now();
    notifier_.reset();
  }
  rocksdb_transaction_t* handle() const { return handle_; }

  void SetSnapshot() override {
    DropSnapshot();
    ErrorText error;
    esker_transaction_set_snapshot(handle_, error);
  }
  void SetSnapshotOnNextOperation(std::shared_ptr<TransactionNotifier> notifier) override {
    DropSnapshot();
    notifier_ = std::move(notifier);
    ErrorText error;
    esker_transaction_set_snapshot_on_next_operation(handle_, error);
  }
  const Snapshot* GetSnapshot() const override {
    if (snapshot_ == nullptr && esker_transaction_has_snapshot(handle_) != 0) {
      const rocksdb_snapshot_t* handle = rocksdb_transaction_get_snapshot(handle_);
      if (handle != nullptr) snapshot_ = std::make_unique<SnapshotImpl>(handle);
    }
    return snapshot_.get();
  }
  void ClearSnapshot() override {
    DropSnapshot();
    ErrorText error;
    esker_transaction_clear_snapshot(handle_, error);
  }

  Status Prepare() override { return Call(rocksdb_transaction_prepare); }
  Status Commit() override {
    Status status = Call(rocksdb_transaction_commit);
    // A finished transaction gives its name back.
    if (status.ok()) named_->Remove(GetName(), this);
    return status;
  }
  Status Rollback() override {
    DropSnapshot();
    return Call(rocksdb_transaction_rollback);
  }
  void SetSavePoint() override { rocksdb_transaction_set_savepoint(handle_); }
  Status RollbackToSavePoint() override {
    DropSnapshot();
    return Call(rocksdb_transaction_rollback_to_savepoint);
  }
  Status PopSavePoint() override { return Call(esker_transaction_pop_savepoint); }

  using Transaction::Get;
  using Transaction::GetForUpdate;
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
             PinnableSlice* value) override {
    value->Reset();
    ReadHandle read(options);
    ErrorText error;
    auto* found = rocksdb_transaction_get_pinned_cf(handle_, read.get(), ToC(family), key.data(),
                                                    key.size(), error);
    return PinValue(error, found, value);
  }
  Status GetForUpdate(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                      PinnableSlice* value, bool exclusive, bool do_validate) override {
    PinnableSlice unused;
    PinnableSlice* to = value == nullptr ? &unused : value;
    to->Reset();
    ReadHandle read(options);
    ErrorText error;
    auto* found = esker_transaction_get_for_update_cf(handle_, read.get(), ToC(family),
                                                      key.data(), key.size(), exclusive ? 1 : 0,
                                                      do_validate ? 1 : 0, error);
    const Status status = Notified(PinValue(error, found, to));
    // Without a place for the value the lock is all that is asked for.
    return value == nullptr && status.IsNotFound() ? Status::OK() : status;
  }
  Iterator* GetIterator(const ReadOptions& options, ColumnFamilyHandle* family) override {
    ReadHandle read(options);
    auto* handle = rocksdb_transaction_create_iterator_cf(handle_, read.get(), ToC(family));
    if (handle == nullptr) return NewErrorIterator(Status::InvalidArgument("no such family"));
    return NewHandleIterator(handle, options);
  }

  Status Put(ColumnFamilyHandle* family, const Slice& key, const Slice& value,
             bool assume_tracked) override {
    return Change(family, esker_change_put, Tracking(assume_tracked), key, value);
  }
  Status Merge(ColumnFamilyHandle* family, const Slice& key, const Slice& value,
               bool assume_tracked) override {
    return Change(family, esker_change_merge, Tracking(assume_tracked), key, value);
  }
  Status Delete(ColumnFamilyHandle* family, const Slice& key, bool assume_tracked) override {
    return Change(family, esker_change_delete, Tracking(assume_tracked), key);
  }
  Status SingleDelete(ColumnFamilyHandle* family, const Slice& key,
                      bool assume_tracked) override {
    return Change(family, esker_change_single_delete, Tracking(assume_tracked), key);
  }
  Status PutUntracked(ColumnFamilyHandle* family, const Slice& key, const Slice& value) override {
    return Change(family, esker_change_put, esker_key_untracked, key, value);
  }
  Status MergeUntracked(ColumnFamilyHandle* family, const Slice& key,
                        const Slice& value) override {
    return Change(family, esker_change_merge, esker_key_untracked, key, value);
  }
  Status DeleteUntracked(ColumnFamilyHandle* family, const Slice& key) override {
    return Change(family, esker_change_delete, esker_key_untracked, key);
  }
  Status SingleDeleteUntracked(ColumnFamilyHandle* family, const Slice& key) override {
    return Change(family, esker_change_single_delete, esker_key_untracked, key);
  }
  void PutLogData(const Slice& blob) override {
    rocksdb_transaction_put_log_data(handle_, blob.data(), blob.size());
  }
  void UndoGetForUpdate(ColumnFamilyHandle* family, const Slice& key) override {
    ErrorText error;
    esker_transaction_undo_get_for_update_cf(handle_, ToC(family), key.data(), key.size(), error);
  }
  Status RebuildFromWriteBatch(WriteBatch* source) override {
    ErrorText error;
    rocksdb_transaction_rebuild_from_writebatch(
        handle_, static_cast<rocksdb_writebatch_t*>(source->EskerHandle()), error);
    return error.status();
  }

  WriteBatchWithIndex* GetWriteBatch() override {
    if (changes_ == nullptr) {
      changes_ = std::make_unique<WriteBatchWithIndex>(
          static_cast<void*>(rocksdb_transaction_get_writebatch_wi(handle_)));
    }
    return changes_.get();
  }
  Status SetReadTimestampForValidation(TxnTimestamp ts) override {
    rocksdb_transaction_set_read_timestamp_for_validation(handle_, ts);
    return Status::OK();
  }
  Status SetCommitTimestamp(TxnTimestamp ts) override {
    rocksdb_transaction_set_commit_timestamp(handle_, ts);
    return Status::OK();
  }
  WriteBatch* GetCommitTimeWriteBatch() override {
    if (at_commit_ == nullptr) {
      at_commit_ = std::make_unique<WriteBatch>(esker_transaction_commit_time_batch(handle_),
                                                /*is_own=*/false);
    }
    return at_commit_.get();
  }

  uint64_t GetNumKeys() const override { return esker_transaction_num_keys(handle_); }
  uint64_t GetElapsedTime() const override {
    const auto passed = std::chrono::steady_clock::now() - began_;
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(passed).count());
  }
  void SetLockTimeout(int64_t milliseconds) override {
    ErrorText error;
    esker_transaction_set_lock_timeout(handle_, milliseconds, error);
  }
  WriteOptions* GetWriteOptions() override { return &options_; }
  void SetWriteOptions(const WriteOptions& options) override { options_ = options; }
  Status SetName(const TransactionName& name) override {
    ErrorText error;
    rocksdb_transaction_set_name(handle_, name.data(), name.size(), error);
    if (error.ok()) named_->Add(name, this);
    return error.status();
  }
  TransactionName GetName() const override {
    size_t length = 0;
    char* name = rocksdb_transaction_get_name(handle_, &length);
    return Take(name, length);
  }
  TransactionID GetID() const override { return id_; }
  std::vector<TransactionID> GetWaitingTxns(uint32_t* family, std::string* key) const override {
    if (db_ == nullptr) return {};
    return WaitsFor(db_, id_, family, key);
  }
  TransactionState GetState() const override {
    return static_cast<TransactionState>(esker_transaction_state(handle_));
  }
  bool IsDeadlockDetect() const override { return detects_deadlocks_; }

 private:
  static int Tracking(bool assume_tracked) {
    return assume_tracked ? esker_key_assumed : esker_key_tracked;
  }
  Status Change(ColumnFamilyHandle* family, int kind, int tracking, const Slice& key,
                const Slice& value = Slice()) {
    ErrorText error;
    esker_transaction_change_cf(handle_, ToC(family), kind, tracking, key.data(), key.size(),
                                value.data(), value.size(), error);
    return Notified(error.status());
  }
  Status Call(void (*call)(rocksdb_transaction_t*, char**)) {
    ErrorText error;
    call(handle_, error);
    return error.status();
  }
  // What the C interface lent is freed; the snapshot itself belongs to the transaction.
  void DropSnapshot() {
    if (snapshot_ == nullptr) return;
    rocksdb_free(const_cast<void*>(snapshot_->EskerHandle()));
    snapshot_.reset();
  }
  // Tells the notifier when the operation took the snapshot.
  Status Notified(Status&& status) {
    if (notifier_ != nullptr && GetSnapshot() != nullptr) {
      std::exchange(notifier_, nullptr)->SnapshotCreated(GetSnapshot());
    }
    return std::move(status);
  }

  rocksdb_transaction_t* handle_;
  const rocksdb_transactiondb_t* db_;
  TransactionID id_ = 0;
  std::shared_ptr<NamedTransactions> named_;
  std::unique_ptr<WriteBatch> at_commit_;
  std::unique_ptr<WriteBatchWithIndex> changes_;
  WriteOptions options_;
  bool detects_deadlocks_ = false;
  std::chrono::steady_clock::time_point began_;
  std::shared_ptr<TransactionNotifier> notifier_;
  mutable std::unique_ptr<SnapshotImpl> snapshot_;
};

class LockingDB final : public TransactionDB {
 public:
  LockingDB(DB* base, rocksdb_transactiondb_t* handle) : TransactionDB(base), handle_(handle) {}
  ~LockingDB() override = default;

  using TransactionDB::Delete;
  using TransactionDB::Merge;
  using TransactionDB::Put;
  using TransactionDB::SingleDelete;
  Status Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
             const Slice& value) override {
    WriteHandle write(options);
    ErrorText error;
    rocksdb_transactiondb_put_cf(handle_, write.get(), ToC(family), key.data(), key.size(),
                                 value.data(), value.size(), error);
    return error.status();
  }
  Status Put(const WriteOptions&, ColumnFamilyHandle*, const Slice&, const Slice&,
             const Slice&) override {
    return Status::NotSupported("TransactionDB::Put with a timestamp");
  }
  Status Delete(const WriteOptions& options, ColumnFamilyHandle* family,
                const Slice& key) override {
    WriteHandle write(options);
    ErrorText error;
    rocksdb_transactiondb_delete_cf(handle_, write.get(), ToC(family), key.data(), key.size(),
                                    error);
    return error.status();
  }
  Status SingleDelete(const WriteOptions& options, ColumnFamilyHandle* family,
                      const Slice& key) override {
    WriteHandle write(options);
    ErrorText error;
    esker_transactiondb_single_delete_cf(handle_, write.get(), ToC(family), key.data(),
                                         key.size(), error);
    return error.status();
  }
  Status Delete(const WriteOptions&, ColumnFamilyHandle*, const Slice&, const Slice&) override {
    return Status::NotSupported("TransactionDB::Delete with a timestamp");
  }
  Status SingleDelete(const WriteOptions&, ColumnFamilyHandle*, const Slice&,
                      const Slice&) override {
    return Status::NotSupported("TransactionDB::SingleDelete with a timestamp");
  }
  Status DeleteRange(const WriteOptions&, ColumnFamilyHandle*, const Slice&,
                     const Slice&) override {
    return Status::NotSupported("DeleteRange is not supported in TransactionDB");
  }
  Status Merge(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
               const Slice& value) override {
    WriteHandle write(options);
    ErrorText error;
    rocksdb_transactiondb_merge_cf(handle_, write.get(), ToC(family), key.data(), key.size(),
                                   value.data(), value.size(), error);
    return error.status();
  }
  using TransactionDB::Write;
  Status Write(const WriteOptions& options, WriteBatch* updates) override {
    WriteHandle write(options);
    ErrorText error;
    rocksdb_transactiondb_write(handle_, write.get(),
                                static_cast<rocksdb_writebatch_t*>(updates->EskerHandle()), error);
    return error.status();
  }

  Transaction* BeginTransaction(const WriteOptions& options,
                                const TransactionOptions& txn_options,
                                Transaction* old) override {
    WriteHandle write(options);
    auto with = ToC(txn_options);
    auto* again = static_cast<TransactionImpl*>(old);
    if (again != nullptr) named_->Remove(again->GetName(), again);
    auto* handle = rocksdb_transaction_begin(handle_, write.get(), with.get(),
                                             again == nullptr ? nullptr : again->handle());
    if (handle == nullptr) return nullptr;
    if (again == nullptr) {
      return new TransactionImpl(handle, options, named_, txn_options.deadlock_detect, handle_);
    }
    again->Restart(handle, options, txn_options.deadlock_detect);
    return again;
  }
  Transaction* GetTransactionByName(const TransactionName& name) override {
    return named_->Find(name);
  }
  void GetAllPreparedTransactions(std::vector<Transaction*>* transactions) override {
    transactions->clear();
    size_t count = 0;
    rocksdb_transaction_t** found = rocksdb_transactiondb_get_prepared_transactions(handle_,
                                                                                    &count);
    for (size_t i = 0; i < count; ++i) {
      transactions->push_back(
          new TransactionImpl(found[i], WriteOptions(), named_, false, handle_));
    }
    rocksdb_free(found);
  }
  LockStatusData GetLockStatusData() override { return Locks(handle_); }
  std::vector<DeadlockPath> GetDeadlockInfoBuffer() override { return FoundDeadlocks(handle_); }
  void SetDeadlockInfoBufferSize(uint32_t target_size) override {
    ErrorText error;
    esker_transactiondb_set_max_deadlocks(handle_, target_size, error);
  }

 private:
  rocksdb_transactiondb_t* handle_;
  std::shared_ptr<NamedTransactions> named_ = std::make_shared<NamedTransactions>();
};

class CheckingDB final : public OptimisticTransactionDB {
 public:
  CheckingDB(DB* base, rocksdb_optimistictransactiondb_t* handle)
      : OptimisticTransactionDB(base), handle_(handle) {}
  ~CheckingDB() override = default;

  Transaction* BeginTransaction(const WriteOptions& options,
                                const OptimisticTransactionOptions& txn_options,
                                Transaction* old) override {
    WriteHandle write(options);
    auto with = ToC(txn_options);
    auto* again = static_cast<TransactionImpl*>(old);
    auto* handle = rocksdb_optimistictransaction_begin(
        handle_, write.get(), with.get(), again == nullptr ? nullptr : again->handle());
    if (handle == nullptr) return nullptr;
    if (again == nullptr) return new TransactionImpl(handle, options, named_, false);
    again->Restart(handle, options, false);
    return again;
  }

 private:
  rocksdb_optimistictransactiondb_t* handle_;
  std::shared_ptr<NamedTransactions> named_ = std::make_shared<NamedTransactions>();
};

// Gives out the database over what was opened.
DB* Finish(Opening& opening, rocksdb_transactiondb_t* handle) {
  return opening
      .Finish(rocksdb_transactiondb_get_base_db(handle),
              [handle](rocksdb_t* base) {
                rocksdb_transactiondb_close_base_db(base);
                rocksdb_transactiondb_close(handle);
              })
      .release();
}
DB* Finish(Opening& opening, rocksdb_optimistictransactiondb_t* handle) {
  return opening
      .Finish(rocksdb_optimistictransactiondb_get_base_db(handle),
              [handle](rocksdb_t* base) {
                rocksdb_optimistictransactiondb_close_base_db(base);
                rocksdb_optimistictransactiondb_close(handle);
              })
      .release();
}

}  // namespace

Status TransactionDB::Open(const Options& options, const TransactionDBOptions& txn_options,
                           const std::string& path, TransactionDB** db) {
  *db = nullptr;
  Opening opening(options, path);
  if (!opening.status().ok()) return opening.status();
  auto with = ToC(txn_options);
  const Status waits = SetLockWaits(txn_options.custom_mutex_factory, with.get());
  if (!waits.ok()) return waits;
  ErrorText error;
  auto* handle = rocksdb_transactiondb_open(opening.options(), with.get(), opening.path(), error);
  if (!error.ok()) return error.status();
  *db = new LockingDB(Finish(opening, handle), handle);
  return Status::OK();
}

Status TransactionDB::Open(const DBOptions& options, const TransactionDBOptions& txn_options,
                           const std::string& path,
                           const std::vector<ColumnFamilyDescriptor>& families,
                           std::vector<ColumnFamilyHandle*>* handles, TransactionDB** db) {
  *db = nullptr;
  Opening opening(options, families, path);
  if (!opening.status().ok()) return opening.status();
  auto with = ToC(txn_options);
  const Status waits = SetLockWaits(txn_options.custom_mutex_factory, with.get());
  if (!waits.ok()) return waits;
  ErrorText error;
  auto* handle = rocksdb_transactiondb_open_column_families(
      opening.options(), with.get(), opening.path(), opening.count(), opening.names(),
      opening.families(), opening.handles(), error);
  if (!error.ok()) return error.status();
  *db = new LockingDB(Finish(opening, handle), handle);
  opening.TakeHandles(handles);
  return Status::OK();
}

Status OptimisticTransactionDB::Open(const Options& options, const std::string& path,
                                     OptimisticTransactionDB** db) {
  *db = nullptr;
  Opening opening(options, path);
  if (!opening.status().ok()) return opening.status();
  ErrorText error;
  auto* handle = rocksdb_optimistictransactiondb_open(opening.options(), opening.path(), error);
  if (!error.ok()) return error.status();
  *db = new CheckingDB(Finish(opening, handle), handle);
  return Status::OK();
}

Status OptimisticTransactionDB::Open(const DBOptions& options, const std::string& path,
                                     const std::vector<ColumnFamilyDescriptor>& families,
                                     std::vector<ColumnFamilyHandle*>* handles,
                                     OptimisticTransactionDB** db) {
  return Open(options, OptimisticTransactionDBOptions(), path, families, handles, db);
}

Status OptimisticTransactionDB::Open(const DBOptions& options,
                                     const OptimisticTransactionDBOptions& occ_options,
                                     const std::string& path,
                                     const std::vector<ColumnFamilyDescriptor>& families,
                                     std::vector<ColumnFamilyHandle*>* handles,
                                     OptimisticTransactionDB** db) {
  *db = nullptr;
  Opening opening(options, families, path);
  if (!opening.status().ok()) return opening.status();
  auto with = ToC(occ_options);
  ErrorText error;
  auto* handle = rocksdb_optimistictransactiondb_open_column_families_with_otxn_db_options(
      opening.options(), with.get(), opening.path(), opening.count(), opening.names(),
      opening.families(), opening.handles(), error);
  if (!error.ok()) return error.status();
  *db = new CheckingDB(Finish(opening, handle), handle);
  opening.TakeHandles(handles);
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
