// Figures that a thread keeps of its own calls.
#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/perf_level.h"

namespace ROCKSDB_NAMESPACE {

struct PerfContext {
#include "rocksdb/fields/PerfContext.inc"

  // Sets the thread's figures to zero.
  void Reset();
  std::string ToString(bool exclude_zero_counters = false) const;
  void EnablePerLevelPerfContext() {}
  void DisablePerLevelPerfContext() {}
  void ClearPerLevelPerfContext() {}
};

// The figures of this thread as they are now: ask again after the calls that are measured.
PerfContext* get_perf_context();

}  // namespace ROCKSDB_NAMESPACE
