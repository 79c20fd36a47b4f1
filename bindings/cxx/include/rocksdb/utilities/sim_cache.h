// Caches that simulate another capacity. A database with one is refused when it opens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "rocksdb/cache.h"
#include "rocksdb/env.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class SimCache : public Cache {
 public:
  ~SimCache() override;
  const char* Name() const override { return "SimCache"; }
  virtual size_t GetSimCapacity() const = 0;
  virtual size_t GetSimUsage() const = 0;
  virtual void SetSimCapacity(size_t capacity) = 0;
  virtual uint64_t get_miss_counter() const = 0;
  virtual uint64_t get_hit_counter() const = 0;
  virtual void reset_counter() = 0;
  virtual std::string ToString() const = 0;
  virtual Status StartActivityLogging(const std::string& path, Env* env,
                                      uint64_t max_logging_size = 0) = 0;
  virtual void StopActivityLogging() = 0;
  virtual Status GetActivityLoggingStatus() = 0;
};

std::shared_ptr<SimCache> NewSimCache(std::shared_ptr<Cache> cache, size_t sim_capacity,
                                      int num_shard_bits);

}  // namespace ROCKSDB_NAMESPACE
