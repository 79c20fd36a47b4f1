// Block caches. Only those that are built in can be used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "rocksdb/memory_allocator.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class SecondaryCache;

enum CacheMetadataChargePolicy { kDontChargeCacheMetadata, kFullChargeCacheMetadata };
const CacheMetadataChargePolicy kDefaultCacheMetadataChargePolicy = kFullChargeCacheMetadata;

class Cache {
 public:
  enum class Priority { HIGH, LOW, BOTTOM };

  virtual ~Cache();
  virtual const char* Name() const = 0;
  virtual void SetCapacity(size_t capacity) = 0;
  virtual size_t GetCapacity() const = 0;
  virtual size_t GetUsage() const = 0;
  virtual size_t GetPinnedUsage() const = 0;
  virtual size_t GetOccupancyCount() const { return 0; }
  virtual size_t GetTableAddressCount() const { return 0; }
  virtual bool HasStrictCapacityLimit() const { return false; }
  virtual void SetStrictCapacityLimit(bool) {}
  virtual void DisownData() {}
  // The object of the C interface; null for a cache of the application's own, which is refused.
  virtual void* EskerHandle() const { return nullptr; }
};

struct ShardedCacheOptions {
  size_t capacity = 0;
  int num_shard_bits = -1;
  bool strict_capacity_limit = false;
  std::shared_ptr<MemoryAllocator> memory_allocator;
  CacheMetadataChargePolicy metadata_charge_policy = kDefaultCacheMetadataChargePolicy;
  std::shared_ptr<SecondaryCache> secondary_cache;
};

struct LRUCacheOptions : public ShardedCacheOptions {
  double high_pri_pool_ratio = 0.5;
  double low_pri_pool_ratio = 0.0;
  bool use_adaptive_mutex = false;

  LRUCacheOptions() = default;
  LRUCacheOptions(size_t bytes, int shard_bits, bool is_strict, double high_ratio) {
    capacity = bytes;
    num_shard_bits = shard_bits;
    strict_capacity_limit = is_strict;
    high_pri_pool_ratio = high_ratio;
  }
  std::shared_ptr<Cache> MakeSharedCache() const;
};

struct HyperClockCacheOptions : public ShardedCacheOptions {
  size_t estimated_entry_charge = 0;

  explicit HyperClockCacheOptions(size_t bytes, size_t entry_charge = 0, int shard_bits = -1,
                                  bool is_strict = false) {
    capacity = bytes;
    estimated_entry_charge = entry_charge;
    num_shard_bits = shard_bits;
    strict_capacity_limit = is_strict;
  }
  std::shared_ptr<Cache> MakeSharedCache() const;
};

std::shared_ptr<Cache> NewLRUCache(size_t capacity, int num_shard_bits = -1,
                                   bool strict_capacity_limit = false,
                                   double high_pri_pool_ratio = 0.5,
                                   std::shared_ptr<MemoryAllocator> memory_allocator = nullptr,
                                   bool use_adaptive_mutex = false,
                                   CacheMetadataChargePolicy metadata_charge_policy =
                                       kDefaultCacheMetadataChargePolicy,
                                   double low_pri_pool_ratio = 0.0);
std::shared_ptr<Cache> NewLRUCache(const LRUCacheOptions& options);

// A cache by the clock rule, as the engine's are; without its own eviction parameters.
std::shared_ptr<Cache> NewClockCache(size_t capacity, int num_shard_bits = -1,
                                     bool strict_capacity_limit = false,
                                     CacheMetadataChargePolicy metadata_charge_policy =
                                         kDefaultCacheMetadataChargePolicy);

using RowCache = Cache;
using BlockCache = Cache;

}  // namespace ROCKSDB_NAMESPACE
