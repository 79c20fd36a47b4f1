// The memory that databases and caches use.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_set>
#include <vector>

#include "rocksdb/cache.h"
#include "rocksdb/db.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class MemoryUtil {
 public:
  enum UsageType : int {
    kMemTableTotal = 0,
    kMemTableUnFlushed = 1,
    kTableReadersTotal = 2,
    kCacheTotal = 3,
    kNumUsageTypes = 4
  };

  static Status GetApproximateMemoryUsageByType(const std::vector<DB*>& dbs,
                                                const std::unordered_set<const Cache*> caches,
                                                std::map<UsageType, uint64_t>* usage);
};

}  // namespace ROCKSDB_NAMESPACE
