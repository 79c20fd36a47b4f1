// A clock that MyRocks takes from RocksDB's sources.
#pragma once

#include <cstdint>

#include "rocksdb/system_clock.h"

namespace ROCKSDB_NAMESPACE {

class StopWatchNano {
 public:
  StopWatchNano(SystemClock* clock, bool starts) : clock_(clock) {
    if (starts) Start();
  }
  void Start() { start_ = clock_->NowNanos(); }
  uint64_t ElapsedNanos() const { return clock_->NowNanos() - start_; }

 private:
  SystemClock* clock_;
  uint64_t start_ = 0;
};

}  // namespace ROCKSDB_NAMESPACE
