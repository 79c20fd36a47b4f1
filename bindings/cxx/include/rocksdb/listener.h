// Events of a database.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "rocksdb/compaction_job_stats.h"
#include "rocksdb/compression_type.h"
#include "rocksdb/customizable.h"
#include "rocksdb/status.h"
#include "rocksdb/table_properties.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyHandle;
class DB;

// By the name of the file.
using TablePropertiesCollection =
    std::unordered_map<std::string, std::shared_ptr<const TableProperties>>;

enum class FlushReason : int {
  kOthers = 0x00,
  kGetLiveFiles = 0x01,
  kShutDown = 0x02,
  kExternalFileIngestion = 0x03,
  kManualCompaction = 0x04,
  kWriteBufferManager = 0x05,
  kWriteBufferFull = 0x06,
  kTest = 0x07,
  kDeleteFiles = 0x08,
  kAutoCompaction = 0x09,
  kManualFlush = 0x0a,
  kErrorRecovery = 0x0b,
  kErrorRecoveryRetryFlush = 0x0c,
  kWalFull = 0x0d,
  kCatchUpAfterErrorRecovery = 0x0e,
  kMemtableMaxRangeDeletions = 0x0f,
};

enum class CompactionReason : int {
  kUnknown = 0,
  kLevelL0FilesNum,
  kLevelMaxLevelSize,
  kUniversalSizeAmplification,
  kUniversalSizeRatio,
  kUniversalSortedRunNum,
  kFIFOMaxSize,
  kFIFOReduceNumFiles,
  kFIFOTtl,
  kManualCompaction,
  kFilesMarkedForCompaction,
  kBottommostFiles,
  kTtl,
  kFlush,
  kExternalSstIngestion,
  kPeriodicCompaction,
  kChangeTemperature,
  kForcedBlobGC,
  kRoundRobinTtl,
  kRefitLevel,
  kReadTriggered,
  kNumOfReasons,
};

enum class BackgroundErrorReason {
  kFlush,
  kCompaction,
  kWriteCallback,
  kMemTable,
  kManifestWrite,
  kFlushNoWAL,
  kManifestWriteNoWAL,
  kAsyncFileOpen,
};

struct BlobFileInfo {
  BlobFileInfo(const std::string& path, const uint64_t number)
      : blob_file_path(path), blob_file_number(number) {}

  std::string blob_file_path;
  uint64_t blob_file_number;
};

struct BlobFileAdditionInfo : public BlobFileInfo {
  BlobFileAdditionInfo(const std::string& path, const uint64_t number, const uint64_t blobs,
                       const uint64_t bytes)
      : BlobFileInfo(path, number), total_blob_count(blobs), total_blob_bytes(bytes) {}

  uint64_t total_blob_count;
  uint64_t total_blob_bytes;
};

struct BlobFileGarbageInfo : public BlobFileInfo {
  BlobFileGarbageInfo(const std::string& path, const uint64_t number, const uint64_t blobs,
                      const uint64_t bytes)
      : BlobFileInfo(path, number), garbage_blob_count(blobs), garbage_blob_bytes(bytes) {}

  uint64_t garbage_blob_count;
  uint64_t garbage_blob_bytes;
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
  CompressionType blob_compression_type = kNoCompression;
  std::vector<BlobFileAdditionInfo> blob_file_addition_infos;
};

struct CompactionFileInfo {
  int level = 0;
  uint64_t file_number = 0;
  uint64_t oldest_blob_file_number = 0;
};

struct CompactionJobInfo {
  uint32_t cf_id = 0;
  std::string cf_name;
  Status status;
  uint64_t thread_id = 0;
  int job_id = 0;
  int num_l0_files = 0;
  int base_input_level = 0;
  int output_level = 0;
  std::vector<std::string> input_files;
  std::vector<CompactionFileInfo> input_file_infos;
  std::vector<std::string> output_files;
  std::vector<CompactionFileInfo> output_file_infos;
  TablePropertiesCollection table_properties;
  CompactionReason compaction_reason = CompactionReason::kUnknown;
  CompressionType compression = kNoCompression;
  CompactionJobStats stats;
  CompressionType blob_compression_type = kNoCompression;
  std::vector<BlobFileAdditionInfo> blob_file_addition_infos;
  std::vector<BlobFileGarbageInfo> blob_file_garbage_infos;
  bool aborted = false;
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
  CompactionReason compaction_reason = CompactionReason::kUnknown;
  CompressionType compression = kNoCompression;
  CompactionJobStats stats;
  CompressionType blob_compression_type = kNoCompression;
};

struct MemTableInfo {
  std::string cf_name;
  SequenceNumber first_seqno = 0;
  SequenceNumber earliest_seqno = 0;
  uint64_t num_entries = 0;
  uint64_t num_deletes = 0;
  std::string newest_udt;
};

struct ExternalFileIngestionInfo {
  std::string cf_name;
  std::string external_file_path;
  std::string internal_file_path;
  SequenceNumber global_seqno = 0;
  TableProperties table_properties;
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
