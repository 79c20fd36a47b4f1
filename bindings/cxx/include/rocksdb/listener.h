// Events of a database.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/compression_type.h"
#include "rocksdb/customizable.h"
#include "rocksdb/status.h"
#include "rocksdb/table_properties.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyHandle;
class DB;

enum class FlushReason : int { kOthers = 0x00, kGetLiveFiles = 0x01, kShutDown = 0x02 };
enum class CompactionReason : int { kUnknown = 0 };
enum class BackgroundErrorReason {
  kFlush,
  kCompaction,
  kWriteCallback,
  kMemTable,
  kManifestWrite,
  kFlushNoWAL,
  kManifestWriteNoWAL,
};

struct FlushJobInfo {
  uint32_t cf_id = 0;
  std::string cf_name;
  std::string file_path;
  uint64_t file_number = 0;
  uint64_t oldest_blob_file_number = 0;
  uint64_t thread_id = 0;
  int job_id = 0;
  bool triggered_writes_slowdown = false;
  bool triggered_writes_stop = false;
  SequenceNumber smallest_seqno = 0;
  SequenceNumber largest_seqno = 0;
  TableProperties table_properties;
  FlushReason flush_reason = FlushReason::kOthers;
};

struct CompactionJobStats {
  uint64_t elapsed_micros = 0;
  uint64_t num_input_records = 0;
  size_t num_input_files = 0;
  uint64_t num_output_records = 0;
  size_t num_output_files = 0;
  uint64_t total_input_bytes = 0;
  uint64_t total_output_bytes = 0;
  uint64_t num_corrupt_keys = 0;
};

struct CompactionJobInfo {
  uint32_t cf_id = 0;
  std::string cf_name;
  Status status;
  uint64_t thread_id = 0;
  int job_id = 0;
  int base_input_level = 0;
  int output_level = 0;
  std::vector<std::string> input_files;
  std::vector<std::string> output_files;
  CompactionReason compaction_reason = CompactionReason::kUnknown;
  CompressionType compression = kNoCompression;
  CompactionJobStats stats;
};

struct SubcompactionJobInfo {
  uint32_t cf_id = 0;
  std::string cf_name;
  Status status;
  uint64_t thread_id = 0;
  int job_id = 0;
  int subcompaction_job_id = 0;
  int base_input_level = 0;
  int output_level = 0;
};

struct MemTableInfo {
  std::string cf_name;
  SequenceNumber first_seqno = 0;
  SequenceNumber earliest_seqno = 0;
  uint64_t num_entries = 0;
  uint64_t num_deletes = 0;
};

struct ExternalFileIngestionInfo {
  std::string cf_name;
  std::string external_file_path;
  std::string internal_file_path;
  SequenceNumber global_seqno = 0;
};

struct WriteStallInfo {
  std::string cf_name;
  struct {
    WriteStallCondition cur = WriteStallCondition::kNormal;
    WriteStallCondition prev = WriteStallCondition::kNormal;
  } condition;
};

// Called from background threads. An exception ends the process: there is nobody to tell.
class EventListener : public Customizable {
 public:
  ~EventListener() override;
  static const char* Type() { return "EventListener"; }
  const char* Name() const override { return ""; }

  virtual void OnFlushBegin(DB*, const FlushJobInfo&) {}
  virtual void OnFlushCompleted(DB*, const FlushJobInfo&) {}
  virtual void OnCompactionBegin(DB*, const CompactionJobInfo&) {}
  virtual void OnCompactionCompleted(DB*, const CompactionJobInfo&) {}
  virtual void OnSubcompactionBegin(const SubcompactionJobInfo&) {}
  virtual void OnSubcompactionCompleted(const SubcompactionJobInfo&) {}
  virtual void OnMemTableSealed(const MemTableInfo&) {}
  virtual void OnExternalFileIngested(DB*, const ExternalFileIngestionInfo&) {}
  // The status is a copy: DB::Resume() is the way to go on.
  virtual void OnBackgroundError(BackgroundErrorReason, Status*) {}
  virtual void OnStallConditionsChanged(const WriteStallInfo&) {}
};

}  // namespace ROCKSDB_NAMESPACE
