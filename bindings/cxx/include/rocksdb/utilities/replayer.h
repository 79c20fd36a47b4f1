// Replays of traces, of which there are none.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class TraceRecord;
class TraceRecordResult;

struct ReplayOptions {
  ReplayOptions() = default;
  ReplayOptions(uint32_t threads, double speed) : num_threads(threads), fast_forward(speed) {}

  uint32_t num_threads = 1;
  double fast_forward = 1.0;
};

class Replayer {
 public:
  virtual ~Replayer();
  virtual Status Prepare() = 0;
  virtual uint64_t GetHeaderTimestamp() const = 0;
  virtual Status Next(std::unique_ptr<TraceRecord>* record) = 0;
  virtual Status Execute(const std::unique_ptr<TraceRecord>& record,
                         std::unique_ptr<TraceRecordResult>* result) = 0;
  virtual Status Replay(
      const ReplayOptions& options,
      const std::function<void(Status, std::unique_ptr<TraceRecordResult>&&)>& told) = 0;
};

}  // namespace ROCKSDB_NAMESPACE
