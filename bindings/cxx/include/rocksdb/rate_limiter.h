// Limits on the speed of background I/O.
#pragma once

#include <cstdint>
#include <memory>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class RateLimiter {
 public:
  enum class OpType { kRead, kWrite };
  enum class Mode { kReadsOnly, kWritesOnly, kAllIo };

  virtual ~RateLimiter();
  virtual int64_t GetBytesPerSecond() const = 0;
  virtual void SetBytesPerSecond(int64_t bytes_per_second) = 0;
  // The object of the C interface; null for a limiter of the application's own, which is refused.
  virtual void* EskerHandle() const { return nullptr; }
};

// The caller owns the limiter.
RateLimiter* NewGenericRateLimiter(int64_t rate_bytes_per_sec,
                                   int64_t refill_period_us = 100 * 1000, int32_t fairness = 10,
                                   RateLimiter::Mode mode = RateLimiter::Mode::kWritesOnly,
                                   bool auto_tuned = false);

}  // namespace ROCKSDB_NAMESPACE
