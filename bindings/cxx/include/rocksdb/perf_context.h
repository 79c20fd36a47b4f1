// Figures that a thread keeps of its own calls.
#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/perf_level.h"

namespace ROCKSDB_NAMESPACE {

// A number, or a figure of the calling thread as it is now. A copy is a number. It converts to
// uint64_t where one is asked for; printf() needs a cast.
class PerfFigure {
 public:
  PerfFigure(uint64_t value = 0) : value_(value) {}  // NOLINT
  PerfFigure(const PerfFigure& other) : value_(other) {}
  PerfFigure& operator=(const PerfFigure& other) { return *this = static_cast<uint64_t>(other); }
  PerfFigure& operator=(uint64_t value) {
    value_ = value - Counted();
    return *this;
  }
  PerfFigure& operator+=(uint64_t value) {
    value_ += value;
    return *this;
  }
  PerfFigure& operator-=(uint64_t value) {
    value_ -= value;
    return *this;
  }
  operator uint64_t() const { return value_ + Counted(); }  // NOLINT
  // Follows the figure with this number in the C interface from here on.
  void EskerFollow(int number) {
    number_ = number;
    value_ = 0;
  }

 private:
  uint64_t Counted() const;

  // Added to what the thread has counted.
  uint64_t value_;
  int number_ = -1;
};

struct PerfContext {
#include "rocksdb/fields/PerfContext.inc"

  // Sets the thread's figures to zero.
  void Reset();
  std::string ToString(bool exclude_zero_counters = false) const;
  void EnablePerLevelPerfContext() {}
  void DisablePerLevelPerfContext() {}
  void ClearPerLevelPerfContext() {}
};

// The figures of the calling thread. They change with its calls.
PerfContext* get_perf_context();

}  // namespace ROCKSDB_NAMESPACE
