// Compactions in other processes, which are refused when a database opens.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rocksdb/comparator.h"
#include "rocksdb/customizable.h"
#include "rocksdb/env.h"
#include "rocksdb/listener.h"

namespace ROCKSDB_NAMESPACE {

class CompactionFilter;
class CompactionFilterFactory;
class FileChecksumGenFactory;
class MergeOperator;
class SliceTransform;
class SstPartitionerFactory;
class Statistics;
class TableFactory;
class TablePropertiesCollectorFactory;

enum class CompactionServiceJobStatus : char { kSuccess, kFailure, kAborted, kUseLocal };

struct CompactionServiceJobInfo {
  std::string db_name;
  std::string db_id;
  std::string db_session_id;
  uint32_t cf_id = 0;
  std::string cf_name;
  uint64_t job_id = 0;
  Env::Priority priority = Env::LOW;
  CompactionReason compaction_reason = CompactionReason::kUnknown;
  bool is_full_compaction = false;
  bool is_manual_compaction = false;
  bool bottommost_level = false;
  int base_input_level = 0;
  int output_level = 0;
};

struct CompactionServiceScheduleResponse {
  CompactionServiceScheduleResponse(std::string id, CompactionServiceJobStatus with)
      : scheduled_job_id(std::move(id)), status(with) {}
  explicit CompactionServiceScheduleResponse(CompactionServiceJobStatus with) : status(with) {}

  std::string scheduled_job_id;
  CompactionServiceJobStatus status;
};

class CompactionService : public Customizable {
 public:
  ~CompactionService() override;
  static const char* Type() { return "CompactionService"; }
  const char* Name() const override = 0;
  virtual CompactionServiceScheduleResponse Schedule(const CompactionServiceJobInfo&,
                                                     const std::string& /*input*/) {
    return CompactionServiceScheduleResponse(CompactionServiceJobStatus::kUseLocal);
  }
  virtual CompactionServiceJobStatus Wait(const std::string& /*scheduled_job_id*/,
                                          std::string* /*result*/) {
    return CompactionServiceJobStatus::kUseLocal;
  }
  virtual void CancelAwaitingJobs() {}
  virtual void OnInstallation(const std::string& /*scheduled_job_id*/,
                              CompactionServiceJobStatus) {}
};

// What the process that compacts uses instead of the options in the input.
struct CompactionServiceOptionsOverride {
  Env* env = Env::Default();
  std::shared_ptr<FileChecksumGenFactory> file_checksum_gen_factory;
  const Comparator* comparator = BytewiseComparator();
  std::shared_ptr<MergeOperator> merge_operator;
  const CompactionFilter* compaction_filter = nullptr;
  std::shared_ptr<CompactionFilterFactory> compaction_filter_factory;
  std::shared_ptr<const SliceTransform> prefix_extractor;
  std::shared_ptr<TableFactory> table_factory;
  std::shared_ptr<SstPartitionerFactory> sst_partitioner_factory;
  std::vector<std::shared_ptr<EventListener>> listeners;
  std::shared_ptr<Statistics> statistics;
  std::shared_ptr<Logger> info_log;
  std::vector<std::shared_ptr<TablePropertiesCollectorFactory>>
      table_properties_collector_factories;
  std::unordered_map<std::string, std::string> options_map;
};

struct OpenAndCompactOptions {
  std::atomic<bool>* canceled = nullptr;
  bool allow_resumption = false;
};

}  // namespace ROCKSDB_NAMESPACE
