// Traces of block cache accesses, which the engine does not write.
#pragma once

#include <cstdint>
#include <memory>

#include "rocksdb/trace_reader_writer.h"

namespace ROCKSDB_NAMESPACE {

class SystemClock;

struct BlockCacheTraceOptions {
  uint64_t sampling_frequency = 1;
};

struct BlockCacheTraceWriterOptions {
  uint64_t max_trace_file_size = uint64_t{64} << 30;
};

class BlockCacheTraceWriter {
 public:
  virtual ~BlockCacheTraceWriter();
  virtual Status WriteHeader() = 0;
};

// A writer that DB::StartBlockCacheTrace() refuses.
std::unique_ptr<BlockCacheTraceWriter> NewBlockCacheTraceWriter(
    SystemClock* clock, const BlockCacheTraceWriterOptions& options,
    std::unique_ptr<TraceWriter>&& writer);

}  // namespace ROCKSDB_NAMESPACE
