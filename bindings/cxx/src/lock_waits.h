// Row locks: waits that the application carries out, and lists.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "internal.h"
#include "rocksdb/utilities/transaction_db.h"

namespace ROCKSDB_NAMESPACE {

// Waits are carried out in what the factory makes, unless it is null.
Status SetLockWaits(const std::shared_ptr<TransactionDBMutexFactory>& factory,
                    rocksdb_transactiondb_options_t* to);

LockStatusData Locks(const rocksdb_transactiondb_t* db);
std::vector<DeadlockPath> FoundDeadlocks(const rocksdb_transactiondb_t* db);
// Those who hold the key that a transaction waits for.
std::vector<TransactionID> WaitsFor(const rocksdb_transactiondb_t* db, TransactionID id,
                                    uint32_t* family, std::string* key);

}  // namespace ROCKSDB_NAMESPACE
