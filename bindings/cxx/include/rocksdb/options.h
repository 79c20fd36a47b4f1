// Options of databases and column families, and of single calls.
#pragma once

#include <atomic>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "rocksdb/advanced_options.h"
#include "rocksdb/comparator.h"
#include "rocksdb/compression_type.h"
#include "rocksdb/compaction_service.h"
#include "rocksdb/customizable.h"
#include "rocksdb/data_structure.h"
#include "rocksdb/env.h"
#include "rocksdb/file_checksum.h"
#include "rocksdb/rate_limiter.h"
#include "rocksdb/sst_partitioner.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "rocksdb/universal_compaction.h"
#include "rocksdb/version.h"
#include "rocksdb/write_buffer_manager.h"

namespace ROCKSDB_NAMESPACE {

class Cache;
class CompactionFilter;
class CompactionFilterFactory;
class Comparator;
class CompressionManager;
class ConcurrentTaskLimiter;
class EventListener;
class MemTableRepFactory;
class MergeOperator;
class Slice;
class SliceTransform;
class Snapshot;
class SstFileManager;
class Statistics;
class TableFactory;
struct TableProperties;
class TablePropertiesCollectorFactory;
class UserDefinedIndexFactory;
class WalFilter;
struct Options;

using FileTypeSet = SmallEnumSet<FileType, FileType::kBlobFile>;
using CompactionStyleSet = SmallEnumSet<CompactionStyle, CompactionStyle::kCompactionStyleNone>;

enum class CpuPriority { kIdle = 0, kLow = 1, kNormal = 2, kHigh = 3 };

enum class WALRecoveryMode : char {
  kTolerateCorruptedTailRecords = 0x00,
  kAbsoluteConsistency = 0x01,
  kPointInTimeRecovery = 0x02,
  kSkipAnyCorruptedRecords = 0x03,
};

enum ReadTier {
  kReadAllTier = 0x0,
  kBlockCacheTier = 0x1,
  kPersistedTier = 0x2,
  kMemtableTier = 0x3
};

extern const char* kHostnameForDbHostId;

using TablePropertiesCollectorFactories =
    std::vector<std::shared_ptr<TablePropertiesCollectorFactory>>;

struct ColumnFamilyOptions {
#include "rocksdb/fields/ColumnFamilyOptions.inc"

  // Not owned; they have to outlive the database.
  const Comparator* comparator = BytewiseComparator();
  const CompactionFilter* compaction_filter = nullptr;

  std::shared_ptr<MergeOperator> merge_operator = nullptr;
  std::shared_ptr<CompactionFilterFactory> compaction_filter_factory = nullptr;
  std::shared_ptr<const SliceTransform> prefix_extractor = nullptr;
  std::shared_ptr<TableFactory> table_factory;
  std::shared_ptr<MemTableRepFactory> memtable_factory;
  std::shared_ptr<Cache> blob_cache = nullptr;
  std::vector<DbPath> cf_paths;
  VerifyOutputFlags verify_output_flags = VerifyOutputFlags::kVerifyNone;
  std::shared_ptr<SstPartitionerFactory> sst_partitioner_factory = nullptr;
  TablePropertiesCollectorFactories table_properties_collector_factories;
  // Refused when they are set.
  std::shared_ptr<const SliceTransform> memtable_insert_with_hint_prefix_extractor = nullptr;
  std::shared_ptr<CompressionManager> compression_manager;
  std::shared_ptr<ConcurrentTaskLimiter> compaction_thread_limiter = nullptr;
  // Options of RocksDB 6 without effect.
  int max_write_buffer_number_to_maintain = 0;
  int max_mem_compaction_level = 0;
  double soft_rate_limit = 0.0;
  double hard_rate_limit = 0.0;
  unsigned int rate_limit_delay_max_milliseconds = 100;
  bool purge_redundant_kvs_while_flush = true;

  ColumnFamilyOptions();
  explicit ColumnFamilyOptions(const Options& options);

  ColumnFamilyOptions* OptimizeForSmallDb(std::shared_ptr<Cache>* cache = nullptr);
  ColumnFamilyOptions* OptimizeForPointLookup(uint64_t block_cache_size_mb);
  ColumnFamilyOptions* OptimizeLevelStyleCompaction(uint64_t memtable_memory_budget = 512 << 20);
  ColumnFamilyOptions* OptimizeUniversalStyleCompaction(
      uint64_t memtable_memory_budget = 512 << 20);
};

using AdvancedColumnFamilyOptions = ColumnFamilyOptions;

struct DBOptions {
#include "rocksdb/fields/DBOptions.inc"

  Env* env = Env::Default();
  std::shared_ptr<RateLimiter> rate_limiter = nullptr;
  std::shared_ptr<SstFileManager> sst_file_manager = nullptr;
  std::shared_ptr<Logger> info_log = nullptr;
  std::shared_ptr<Statistics> statistics = nullptr;
  std::shared_ptr<WriteBufferManager> write_buffer_manager = nullptr;
  std::shared_ptr<Cache> row_cache = nullptr;
  std::shared_ptr<FileChecksumGenFactory> file_checksum_gen_factory = nullptr;
  std::vector<std::shared_ptr<EventListener>> listeners;
  std::vector<DbPath> db_paths;
  WalFilter* wal_filter = nullptr;
  // Advice to file systems, and to those that place files by how long they live.
  FileTypeSet checksum_handoff_file_types;
  CompactionStyleSet calculate_sst_write_lifetime_hint_set = {
      CompactionStyle::kCompactionStyleLevel};
  // Refused when it is set.
  std::shared_ptr<CompactionService> compaction_service = nullptr;
  // Options of RocksDB 6 without effect.
  bool skip_checking_sst_file_sizes_on_db_open = false;
  bool new_table_reader_for_compaction_inputs = false;
  size_t random_access_max_buffer_size = 1024 * 1024;
  enum AccessHint { NONE, NORMAL, SEQUENTIAL, WILLNEED };
  AccessHint access_hint_on_compaction_start = NORMAL;
  bool preserve_deletes = false;
  int base_background_compactions = -1;

  DBOptions() = default;
  explicit DBOptions(const Options& options);

  DBOptions* OptimizeForSmallDb(std::shared_ptr<Cache>* cache = nullptr);
  DBOptions* IncreaseParallelism(int total_threads = 16);
};

struct Options : public DBOptions, public ColumnFamilyOptions {
  Options() = default;
  Options(const DBOptions& db, const ColumnFamilyOptions& family)
      : DBOptions(db), ColumnFamilyOptions(family) {}

  Options* PrepareForBulkLoad();
  Options* OptimizeForSmallDb();
  Options* DisableExtraChecks();
  Options* OldDefaults(int = 4, int = 6) { return this; }
};

struct ReadOptions {
#include "rocksdb/fields/ReadOptions.inc"

  const Snapshot* snapshot = nullptr;
  const Slice* timestamp = nullptr;
  const Slice* iter_start_ts = nullptr;
  const Slice* iterate_lower_bound = nullptr;
  const Slice* iterate_upper_bound = nullptr;
  std::chrono::microseconds deadline = std::chrono::microseconds::zero();
  std::chrono::microseconds io_timeout = std::chrono::microseconds::zero();
  Env::IOPriority rate_limiter_priority = Env::IO_TOTAL;
  Env::IOActivity io_activity = Env::IOActivity::kUnknown;
  std::optional<size_t> merge_operand_count_threshold;
  // Tables for which it returns false are passed over. An exception ends the process.
  std::function<bool(const TableProperties&)> table_filter;
  // Without effect: a read goes by each table's own index, and nothing reports the number.
  const UserDefinedIndexFactory* table_index_factory = nullptr;
  const std::string* request_id = nullptr;

  ReadOptions() = default;
  ReadOptions(bool verifies, bool fills) {
    verify_checksums = verifies;
    fill_cache = fills;
  }
  explicit ReadOptions(Env::IOActivity activity) { io_activity = activity; }
};

struct WriteOptions {
#include "rocksdb/fields/WriteOptions.inc"

  bool disableWAL = false;
  Env::IOPriority rate_limiter_priority = Env::IO_TOTAL;
  Env::IOActivity io_activity = Env::IOActivity::kUnknown;
};

struct FlushOptions {
#include "rocksdb/fields/FlushOptions.inc"
};

struct FlushWALOptions {
  bool sync = false;
  Env::IOPriority rate_limiter_priority = Env::IO_TOTAL;
};

// A range whose ends may be open.
struct RangeOpt {
  RangeOpt() = default;
  RangeOpt(const OptSlice& from, const OptSlice& to) : start(from), limit(to) {}

  OptSlice start;
  OptSlice limit;
};

enum class BottommostLevelCompaction { kSkip, kIfHaveCompactionFilter, kForce, kForceOptimized };

enum class BlobGarbageCollectionPolicy { kForce, kDisable, kUseDefault };

struct CompactRangeOptions {
#include "rocksdb/fields/CompactRangeOptions.inc"

  const Slice* full_history_ts_low = nullptr;
  // Refused when it is set.
  std::atomic<bool>* canceled = nullptr;
};

struct CompactionOptions {
#include "rocksdb/fields/CompactionOptions.inc"

  CompressionType compression = kDisableCompressionOption;
  std::atomic<bool>* canceled = nullptr;
};

struct IngestExternalFileOptions {
#include "rocksdb/fields/IngestExternalFileOptions.inc"
};

struct IngestExternalFileArg {
  class ColumnFamilyHandle* column_family = nullptr;
  std::vector<std::string> external_files;
  IngestExternalFileOptions options;
};

struct WaitForCompactOptions {
#include "rocksdb/fields/WaitForCompactOptions.inc"

  std::chrono::microseconds timeout = std::chrono::microseconds::zero();
};

struct SizeApproximationOptions {
#include "rocksdb/fields/SizeApproximationOptions.inc"
};

struct ImportColumnFamilyOptions {
  bool move_files = false;
};

struct LiveFilesStorageInfoOptions {
  bool include_checksum_info = false;
  uint64_t wal_size_for_flush = 0;
  bool atomic_flush = false;
};

enum TraceFilterType : uint64_t {
  kTraceFilterNone = 0x0,
  kTraceFilterGet = 0x1,
  kTraceFilterWrite = 0x2,
  kTraceFilterIteratorSeek = 0x4,
  kTraceFilterIteratorSeekForPrev = 0x8,
  kTraceFilterMultiGet = 0x10,
};

struct TraceOptions {
  uint64_t max_trace_file_size = uint64_t{64} << 30;
  uint64_t sampling_frequency = 1;
  uint64_t filter = kTraceFilterNone;
  bool preserve_write_order = false;
};

// How options are read from text and files.
struct ConfigOptions {
  bool ignore_unknown_options = false;
  bool ignore_unsupported_options = true;
  bool input_strings_escaped = true;
  bool invoke_prepare_options = true;
  std::string delimiter = ";";
  Env* env = Env::Default();
};

}  // namespace ROCKSDB_NAMESPACE
