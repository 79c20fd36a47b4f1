// Databases whose transactions lock the keys that they change.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/utilities/stackable_db.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/utilities/transaction_db_mutex.h"

namespace ROCKSDB_NAMESPACE {

enum TxnDBWritePolicy { WRITE_COMMITTED = 0, WRITE_PREPARED, WRITE_UNPREPARED };

constexpr uint32_t kInitialMaxDeadlocks = 5;

struct TransactionDBOptions {
#include "rocksdb/fields/TransactionDBOptions.inc"

  // Makes what the waits for row locks sleep in, so that the application can end one.
  std::shared_ptr<TransactionDBMutexFactory> custom_mutex_factory;
};

struct TransactionOptions {
#include "rocksdb/fields/TransactionOptions.inc"
};

// Guarantees of the application about a batch.
struct TransactionDBWriteOptimizations {
  // No transaction changes the same keys at the same time: no lock is taken.
  bool skip_concurrency_control = false;
  // No key is in the batch twice. Nothing follows from it.
  bool skip_duplicate_key_check = false;
};

// A row lock and the transactions that hold it.
struct KeyLockInfo {
  std::string key;
  std::vector<TransactionID> ids;
  bool exclusive = false;
};
// By the number of the family.
using LockStatusData = std::unordered_multimap<uint32_t, KeyLockInfo>;

// A transaction of a ring of waits, and the key that it waits for.
struct DeadlockInfo {
  TransactionID m_txn_id;
  uint32_t m_cf_id;
  bool m_exclusive;
  std::string m_waiting_key;
};

struct DeadlockPath {
  std::vector<DeadlockInfo> path;
  // The search went as deep as it was allowed to, and a ring was assumed.
  bool limit_exceeded = false;
  int64_t deadlock_time = 0;

  explicit DeadlockPath(std::vector<DeadlockInfo> members, const int64_t& time)
      : path(std::move(members)), deadlock_time(time) {}
  explicit DeadlockPath(const int64_t& time = 0, bool limit = false)
      : limit_exceeded(limit), deadlock_time(time) {}
  bool empty() const { return path.empty() && !limit_exceeded; }
};

class TransactionDB : public StackableDB {
 public:
  static Status Open(const Options& options, const TransactionDBOptions& txn_options,
                     const std::string& path, TransactionDB** db);
  static Status Open(const DBOptions& options, const TransactionDBOptions& txn_options,
                     const std::string& path,
                     const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<ColumnFamilyHandle*>* handles, TransactionDB** db);
  ~TransactionDB() override;

  using StackableDB::Write;
  virtual Status Write(const WriteOptions& options, const TransactionDBWriteOptimizations& with,
                       WriteBatch* updates) {
    return with.skip_concurrency_control ? GetBaseDB()->Write(options, updates)
                                         : Write(options, updates);
  }

  // `old`, if there is one, begins again.
  virtual Transaction* BeginTransaction(const WriteOptions& options,
                                        const TransactionOptions& txn_options = {},
                                        Transaction* old = nullptr) = 0;
  // Of the transactions that are alive; null if none is called so.
  virtual Transaction* GetTransactionByName(const TransactionName& name) = 0;
  // Those that were prepared before the database was opened. The caller owns them.
  virtual void GetAllPreparedTransactions(std::vector<Transaction*>* transactions) = 0;

  virtual LockStatusData GetLockStatusData() = 0;
  // The latest first.
  virtual std::vector<DeadlockPath> GetDeadlockInfoBuffer() = 0;
  virtual void SetDeadlockInfoBufferSize(uint32_t target_size) = 0;

 protected:
  using StackableDB::StackableDB;
};

}  // namespace ROCKSDB_NAMESPACE
