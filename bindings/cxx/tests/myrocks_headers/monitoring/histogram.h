// The histogram in which MyRocks counts how long commits take.
#pragma once

#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// Values by the power of the fourth root of 2 below them: a percentile is right to a fifth. Any
// thread may call.
class HistogramImpl {
 public:
  void Add(uint64_t value) {
    const double bucket = value < 2 ? 0.0 : 4.0 * std::log2(static_cast<double>(value));
    counts_[static_cast<size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
  }
  double Percentile(double percent) const {
    uint64_t all = 0;
    for (const auto& count : counts_) all += count.load(std::memory_order_relaxed);
    if (all == 0) return 0.0;
    const double wanted = static_cast<double>(all) * percent / 100.0;
    uint64_t passed = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      passed += counts_[i].load(std::memory_order_relaxed);
      if (static_cast<double>(passed) >= wanted) return std::exp2(static_cast<double>(i + 1) / 4.0);
    }
    return std::exp2(64.0);
  }

 private:
  std::array<std::atomic<uint64_t>, 256> counts_{};
};

}  // namespace ROCKSDB_NAMESPACE
