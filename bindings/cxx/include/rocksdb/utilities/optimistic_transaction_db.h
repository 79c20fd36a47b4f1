// Databases whose transactions look for conflicts when they commit.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rocksdb/comparator.h"
#include "rocksdb/db.h"
#include "rocksdb/utilities/stackable_db.h"
#include "rocksdb/utilities/transaction.h"

namespace ROCKSDB_NAMESPACE {

enum class OccValidationPolicy { kValidateSerial = 0, kValidateParallel = 1 };

struct OptimisticTransactionOptions {
#include "rocksdb/fields/OptimisticTransactionOptions.inc"

  // The order of the database is used.
  const Comparator* cmp = BytewiseComparator();
};

// Locks of commits, which databases may share.
class OccLockBuckets {
 public:
  virtual ~OccLockBuckets();
  virtual size_t ApproximateMemoryUsage() const = 0;
  // The object of the C interface.
  virtual void* EskerHandle() const = 0;
};

std::shared_ptr<OccLockBuckets> MakeSharedOccLockBuckets(size_t bucket_count,
                                                         bool cache_aligned = false);

struct OptimisticTransactionDBOptions {
#include "rocksdb/fields/OptimisticTransactionDBOptions.inc"

  std::shared_ptr<OccLockBuckets> shared_lock_buckets;
};

class OptimisticTransactionDB : public StackableDB {
 public:
  static Status Open(const Options& options, const std::string& path,
                     OptimisticTransactionDB** db);
  static Status Open(const DBOptions& options, const std::string& path,
                     const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<ColumnFamilyHandle*>* handles, OptimisticTransactionDB** db);
  static Status Open(const DBOptions& options, const OptimisticTransactionDBOptions& occ_options,
                     const std::string& path,
                     const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<ColumnFamilyHandle*>* handles, OptimisticTransactionDB** db);
  ~OptimisticTransactionDB() override;

  virtual Transaction* BeginTransaction(const WriteOptions& options,
                                        const OptimisticTransactionOptions& txn_options = {},
                                        Transaction* old = nullptr) = 0;

 protected:
  using StackableDB::StackableDB;
};

}  // namespace ROCKSDB_NAMESPACE
