// Figures of a thread's file operations. The engine keeps none by thread: all are 0.
#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/perf_level.h"

namespace ROCKSDB_NAMESPACE {

struct IOStatsContext {
  void Reset() { *this = IOStatsContext(); }
  // Empty: nothing is counted.
  std::string ToString(bool /*exclude_zero_counters*/ = false) const { return ""; }

  uint64_t thread_pool_id = 0;
  uint64_t bytes_written = 0;
  uint64_t bytes_read = 0;
  uint64_t open_nanos = 0;
  uint64_t allocate_nanos = 0;
  uint64_t write_nanos = 0;
  uint64_t read_nanos = 0;
  uint64_t range_sync_nanos = 0;
  uint64_t fsync_nanos = 0;
  uint64_t prepare_write_nanos = 0;
  uint64_t logger_nanos = 0;
  uint64_t cpu_write_nanos = 0;
  uint64_t cpu_read_nanos = 0;
};

IOStatsContext* get_iostats_context();

}  // namespace ROCKSDB_NAMESPACE
