// Databases whose transactions lock the keys that they change.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/utilities/stackable_db.h"
#include "rocksdb/utilities/transaction.h"

namespace ROCKSDB_NAMESPACE {

class TransactionDBMutexFactory;

enum TxnDBWritePolicy { WRITE_COMMITTED = 0, WRITE_PREPARED, WRITE_UNPREPARED };

constexpr uint32_t kInitialMaxDeadlocks = 5;

struct TransactionDBOptions {
#include "rocksdb/fields/TransactionDBOptions.inc"

  // Refused when it is set.
  std::shared_ptr<TransactionDBMutexFactory> custom_mutex_factory;
};

struct TransactionOptions {
#include "rocksdb/fields/TransactionOptions.inc"
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

  // `old`, if there is one, begins again.
  virtual Transaction* BeginTransaction(const WriteOptions& options,
                                        const TransactionOptions& txn_options = {},
                                        Transaction* old = nullptr) = 0;
  // Of the transactions that are alive; null if none is called so.
  virtual Transaction* GetTransactionByName(const TransactionName& name) = 0;
  // Those that were prepared before the database was opened. The caller owns them.
  virtual void GetAllPreparedTransactions(std::vector<Transaction*>* transactions) = 0;

 protected:
  using StackableDB::StackableDB;
};

}  // namespace ROCKSDB_NAMESPACE
