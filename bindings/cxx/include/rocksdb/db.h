// A database.
//
// Threads may share a database, its column families and its snapshots; a batch, an iterator and a
// transaction belong to one thread at a time. Iterators, snapshots and handles of column families
// have to be destroyed before the database.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "rocksdb/block_cache_trace_writer.h"
#include "rocksdb/iterator.h"
#include "rocksdb/listener.h"
#include "rocksdb/metadata.h"
#include "rocksdb/options.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"
#include "rocksdb/transaction_log.h"
#include "rocksdb/types.h"
#include "rocksdb/version.h"
#include "rocksdb/write_batch.h"

namespace ROCKSDB_NAMESPACE {

struct Options;
struct DBOptions;
struct ColumnFamilyOptions;
struct ReadOptions;
struct WriteOptions;
struct FlushOptions;
class WriteBatch;
class Env;
class Replayer;

extern const std::string kDefaultColumnFamilyName;

struct ColumnFamilyDescriptor {
  ColumnFamilyDescriptor() : name(kDefaultColumnFamilyName) {}
  ColumnFamilyDescriptor(const std::string& called, const ColumnFamilyOptions& with)
      : name(called), options(with) {}

  std::string name;
  ColumnFamilyOptions options;
};

class ColumnFamilyHandle {
 public:
  virtual ~ColumnFamilyHandle();
  virtual const std::string& GetName() const = 0;
  virtual uint32_t GetID() const = 0;
  virtual Status GetDescriptor(ColumnFamilyDescriptor* descriptor) = 0;
  virtual const Comparator* GetComparator() const = 0;
  // The object of the C interface.
  virtual void* EskerHandle() const = 0;
};

struct Range {
  Range() = default;
  Range(const Slice& from, const Slice& to) : start(from), limit(to) {}

  Slice start;
  Slice limit;
};

struct RangePtr {
  RangePtr() = default;
  RangePtr(const Slice* from, const Slice* to) : start(from), limit(to) {}

  const Slice* start = nullptr;
  const Slice* limit = nullptr;
};

class DB {
 public:
  struct Properties {
    static const std::string kNumFilesAtLevelPrefix;
    static const std::string kStats;
    static const std::string kSSTables;
    static const std::string kCFStats;
    static const std::string kDBStats;
    static const std::string kLevelStats;
    static const std::string kNumImmutableMemTable;
    static const std::string kMemTableFlushPending;
    static const std::string kCompactionPending;
    static const std::string kBackgroundErrors;
    static const std::string kCurSizeActiveMemTable;
    static const std::string kCurSizeAllMemTables;
    static const std::string kSizeAllMemTables;
    static const std::string kNumEntriesActiveMemTable;
    static const std::string kNumEntriesImmMemTables;
    static const std::string kNumDeletesActiveMemTable;
    static const std::string kEstimateNumKeys;
    static const std::string kEstimateTableReadersMem;
    static const std::string kIsFileDeletionsEnabled;
    static const std::string kNumSnapshots;
    static const std::string kOldestSnapshotTime;
    static const std::string kNumLiveVersions;
    static const std::string kEstimateLiveDataSize;
    static const std::string kTotalSstFilesSize;
    static const std::string kLiveSstFilesSize;
    static const std::string kEstimatePendingCompactionBytes;
    static const std::string kNumRunningCompactions;
    static const std::string kNumRunningFlushes;
    static const std::string kActualDelayedWriteRate;
    static const std::string kIsWriteStopped;
    static const std::string kBlockCacheCapacity;
    static const std::string kBlockCacheUsage;
    static const std::string kBlockCachePinnedUsage;
  };

  static Status Open(const Options& options, const std::string& path, std::unique_ptr<DB>* db);
  static Status Open(const DBOptions& options, const std::string& path,
                     const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<DB>* db);
  static Status OpenForReadOnly(const Options& options, const std::string& path,
                                std::unique_ptr<DB>* db, bool error_if_wal_file_exists = false);
  static Status OpenForReadOnly(const DBOptions& options, const std::string& path,
                                const std::vector<ColumnFamilyDescriptor>& families,
                                std::vector<ColumnFamilyHandle*>* handles,
                                std::unique_ptr<DB>* db, bool error_if_wal_file_exists = false);
  static Status OpenAsSecondary(const Options& options, const std::string& path,
                                const std::string& secondary_path, std::unique_ptr<DB>* db);
  static Status OpenAsSecondary(const DBOptions& options, const std::string& path,
                                const std::string& secondary_path,
                                const std::vector<ColumnFamilyDescriptor>& families,
                                std::vector<ColumnFamilyHandle*>* handles,
                                std::unique_ptr<DB>* db);
  // Opens without the versions of entries that are newer than `trim_ts`, and deletes them.
  static Status OpenAndTrimHistory(const DBOptions& options, const std::string& path,
                                   const std::vector<ColumnFamilyDescriptor>& families,
                                   std::vector<ColumnFamilyHandle*>* handles,
                                   std::unique_ptr<DB>* db, std::string trim_ts);
  // Not supported: compactions of another process.
  static Status OpenAndCompact(const std::string& path, const std::string& output_dir,
                               const std::string& input, std::string* output,
                               const CompactionServiceOptionsOverride& options);
  static Status OpenAndCompact(const OpenAndCompactOptions& options, const std::string& path,
                               const std::string& output_dir, const std::string& input,
                               std::string* output,
                               const CompactionServiceOptionsOverride& override_options);
  // The same for programs of RocksDB 10 and before, which delete what they get.
  static Status Open(const Options& options, const std::string& path, DB** db);
  static Status Open(const DBOptions& options, const std::string& path,
                     const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<ColumnFamilyHandle*>* handles, DB** db);
  static Status OpenForReadOnly(const Options& options, const std::string& path, DB** db,
                                bool error_if_wal_file_exists = false);
  static Status OpenForReadOnly(const DBOptions& options, const std::string& path,
                                const std::vector<ColumnFamilyDescriptor>& families,
                                std::vector<ColumnFamilyHandle*>* handles, DB** db,
                                bool error_if_wal_file_exists = false);
  static Status OpenAsSecondary(const Options& options, const std::string& path,
                                const std::string& secondary_path, DB** db);
  static Status OpenAsSecondary(const DBOptions& options, const std::string& path,
                                const std::string& secondary_path,
                                const std::vector<ColumnFamilyDescriptor>& families,
                                std::vector<ColumnFamilyHandle*>* handles, DB** db);
  static Status ListColumnFamilies(const DBOptions& options, const std::string& path,
                                   std::vector<std::string>* families);

  DB() = default;
  DB(const DB&) = delete;
  DB& operator=(const DB&) = delete;
  virtual ~DB();

  virtual Status Close() { return Status::NotSupported("DB::Close"); }
  virtual Status Resume() { return Status::NotSupported("DB::Resume"); }

  virtual Status CreateColumnFamily(const ColumnFamilyOptions& options, const std::string& name,
                                    ColumnFamilyHandle** handle) = 0;
  virtual Status CreateColumnFamilies(const ColumnFamilyOptions& options,
                                      const std::vector<std::string>& names,
                                      std::vector<ColumnFamilyHandle*>* handles);
  virtual Status CreateColumnFamilies(const std::vector<ColumnFamilyDescriptor>& families,
                                      std::vector<ColumnFamilyHandle*>* handles);
  // A family of the tables that Checkpoint::ExportColumnFamily() made.
  virtual Status CreateColumnFamilyWithImport(const ColumnFamilyOptions& options,
                                              const std::string& name,
                                              const ImportColumnFamilyOptions& import_options,
                                              const ExportImportFilesMetaData& files,
                                              ColumnFamilyHandle** handle);
  virtual Status DropColumnFamily(ColumnFamilyHandle* family) = 0;
  virtual Status DropColumnFamilies(const std::vector<ColumnFamilyHandle*>& families);
  virtual Status DestroyColumnFamilyHandle(ColumnFamilyHandle* family);
  virtual ColumnFamilyHandle* DefaultColumnFamily() const = 0;

  virtual Status Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                     const Slice& value) = 0;
  virtual Status Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                     const Slice& ts, const Slice& value) = 0;
  virtual Status Put(const WriteOptions& options, const Slice& key, const Slice& value) {
    return Put(options, DefaultColumnFamily(), key, value);
  }
  virtual Status Delete(const WriteOptions& options, ColumnFamilyHandle* family,
                        const Slice& key) = 0;
  virtual Status Delete(const WriteOptions& options, const Slice& key) {
    return Delete(options, DefaultColumnFamily(), key);
  }
  Status Put(const WriteOptions& options, const Slice& key, const Slice& ts, const Slice& value) {
    return Put(options, DefaultColumnFamily(), key, ts, value);
  }
  virtual Status Delete(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                        const Slice& ts);
  Status Delete(const WriteOptions& options, const Slice& key, const Slice& ts) {
    return Delete(options, DefaultColumnFamily(), key, ts);
  }
  virtual Status SingleDelete(const WriteOptions& options, ColumnFamilyHandle* family,
                              const Slice& key, const Slice& ts);
  Status SingleDelete(const WriteOptions& options, const Slice& key, const Slice& ts) {
    return SingleDelete(options, DefaultColumnFamily(), key, ts);
  }
  virtual Status SingleDelete(const WriteOptions& options, ColumnFamilyHandle* family,
                              const Slice& key) = 0;
  virtual Status SingleDelete(const WriteOptions& options, const Slice& key) {
    return SingleDelete(options, DefaultColumnFamily(), key);
  }
  virtual Status DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family,
                             const Slice& begin, const Slice& end) = 0;
  virtual Status DeleteRange(const WriteOptions& options, const Slice& begin, const Slice& end) {
    return DeleteRange(options, DefaultColumnFamily(), begin, end);
  }
  virtual Status Merge(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                       const Slice& value) = 0;
  virtual Status Merge(const WriteOptions& options, const Slice& key, const Slice& value) {
    return Merge(options, DefaultColumnFamily(), key, value);
  }
  virtual Status Write(const WriteOptions& options, WriteBatch* updates) = 0;

  virtual Status Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                     PinnableSlice* value, std::string* timestamp) = 0;
  virtual Status Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                     PinnableSlice* value) {
    return Get(options, family, key, value, nullptr);
  }
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
             std::string* value);
  Status Get(const ReadOptions& options, const Slice& key, std::string* value) {
    return Get(options, DefaultColumnFamily(), key, value);
  }
  Status Get(const ReadOptions& options, const Slice& key, PinnableSlice* value) {
    return Get(options, DefaultColumnFamily(), key, value);
  }
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
             std::string* value, std::string* timestamp);
  Status Get(const ReadOptions& options, const Slice& key, std::string* value,
             std::string* timestamp) {
    return Get(options, DefaultColumnFamily(), key, value, timestamp);
  }

  // One family for each key; null for the default family.
  virtual void MultiGet(const ReadOptions& options, size_t count, ColumnFamilyHandle** families,
                        const Slice* keys, PinnableSlice* values, Status* statuses,
                        bool sorted_input = false) = 0;
  void MultiGet(const ReadOptions& options, ColumnFamilyHandle* family, size_t count,
                const Slice* keys, PinnableSlice* values, Status* statuses,
                bool sorted_input = false);
  std::vector<Status> MultiGet(const ReadOptions& options,
                               const std::vector<ColumnFamilyHandle*>& families,
                               const std::vector<Slice>& keys, std::vector<std::string>* values);
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                               std::vector<std::string>* values);

  // With the timestamps of what was found.
  virtual void MultiGet(const ReadOptions& options, size_t count, ColumnFamilyHandle** families,
                        const Slice* keys, PinnableSlice* values, std::string* timestamps,
                        Status* statuses, bool sorted_input = false);
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                               std::vector<std::string>* values,
                               std::vector<std::string>* timestamps);

  // The timestamp to look at, if it is not null.
  bool KeyMayExist(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                   std::string* value, std::string* timestamp, bool* value_found);
  bool KeyMayExist(const ReadOptions& options, const Slice& key, std::string* value,
                   std::string* timestamp, bool* value_found) {
    return KeyMayExist(options, DefaultColumnFamily(), key, value, timestamp, value_found);
  }
  virtual bool KeyMayExist(const ReadOptions& options, ColumnFamilyHandle* family,
                           const Slice& key, std::string* value, bool* value_found = nullptr) = 0;
  bool KeyMayExist(const ReadOptions& options, const Slice& key, std::string* value,
                   bool* value_found = nullptr) {
    return KeyMayExist(options, DefaultColumnFamily(), key, value, value_found);
  }

  virtual Iterator* NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) = 0;
  virtual Iterator* NewIterator(const ReadOptions& options) {
    return NewIterator(options, DefaultColumnFamily());
  }
  virtual Status NewIterators(const ReadOptions& options,
                              const std::vector<ColumnFamilyHandle*>& families,
                              std::vector<Iterator*>* iterators);

  virtual const Snapshot* GetSnapshot() = 0;
  virtual void ReleaseSnapshot(const Snapshot* snapshot) = 0;

  virtual bool GetProperty(ColumnFamilyHandle* family, const Slice& name, std::string* value) = 0;
  bool GetProperty(const Slice& name, std::string* value) {
    return GetProperty(DefaultColumnFamily(), name, value);
  }
  virtual bool GetMapProperty(ColumnFamilyHandle* family, const Slice& name,
                              std::map<std::string, std::string>* values) = 0;
  bool GetMapProperty(const Slice& name, std::map<std::string, std::string>* values) {
    return GetMapProperty(DefaultColumnFamily(), name, values);
  }
  virtual bool GetIntProperty(ColumnFamilyHandle* family, const Slice& name, uint64_t* value) = 0;
  bool GetIntProperty(const Slice& name, uint64_t* value) {
    return GetIntProperty(DefaultColumnFamily(), name, value);
  }

  // By the paths of tables. What was in the collection stays.
  virtual Status GetPropertiesOfAllTables(ColumnFamilyHandle* family,
                                          TablePropertiesCollection* properties);
  Status GetPropertiesOfAllTables(TablePropertiesCollection* properties) {
    return GetPropertiesOfAllTables(DefaultColumnFamily(), properties);
  }
  virtual Status GetPropertiesOfTablesInRange(ColumnFamilyHandle* family, const Range* ranges,
                                              size_t count,
                                              TablePropertiesCollection* properties);

  virtual Status GetApproximateSizes(const SizeApproximationOptions& options,
                                     ColumnFamilyHandle* family, const Range* ranges, int count,
                                     uint64_t* sizes) = 0;
  enum class SizeApproximationFlags : uint8_t {
    NONE = 0,
    INCLUDE_MEMTABLES = 1 << 0,
    INCLUDE_FILES = 1 << 1,
    INCLUDE_BLOB_FILES = 1 << 2
  };
  Status GetApproximateSizes(ColumnFamilyHandle* family, const Range* ranges, int count,
                             uint64_t* sizes,
                             SizeApproximationFlags flags = SizeApproximationFlags::INCLUDE_FILES);
  // The flags as RocksDB 6 has them.
  static constexpr uint8_t NONE = 0;
  static constexpr uint8_t INCLUDE_MEMTABLES = 1 << 0;
  static constexpr uint8_t INCLUDE_FILES = 1 << 1;
  Status GetApproximateSizes(ColumnFamilyHandle* family, const Range* ranges, int count,
                             uint64_t* sizes, uint8_t flags) {
    return GetApproximateSizes(family, ranges, count, sizes,
                               static_cast<SizeApproximationFlags>(flags));
  }
  // Entries of memtables in a range, and their bytes.
  virtual void GetApproximateMemTableStats(ColumnFamilyHandle* family, const Range& range,
                                           uint64_t* count, uint64_t* size);
  void GetApproximateMemTableStats(const Range& range, uint64_t* count, uint64_t* size) {
    GetApproximateMemTableStats(DefaultColumnFamily(), range, count, size);
  }
  // Sets the figures of flushes, compactions and reads that properties show back to 0.
  virtual Status ResetStats();
  virtual Status EnableAutoCompaction(const std::vector<ColumnFamilyHandle*>& families);
  Status GetApproximateSizes(const Range* ranges, int count, uint64_t* sizes) {
    return GetApproximateSizes(DefaultColumnFamily(), ranges, count, sizes);
  }

  virtual Status CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* family,
                              const Slice* begin, const Slice* end) = 0;
  virtual Status CompactRange(const CompactRangeOptions& options, const Slice* begin,
                              const Slice* end) {
    return CompactRange(options, DefaultColumnFamily(), begin, end);
  }
  virtual Status CompactFiles(const CompactionOptions& options, ColumnFamilyHandle* family,
                              const std::vector<std::string>& files, int output_level,
                              int output_path_id = -1,
                              std::vector<std::string>* outputs = nullptr,
                              CompactionJobInfo* info = nullptr) = 0;
  Status CompactFiles(const CompactionOptions& options, const std::vector<std::string>& files,
                      int output_level, int output_path_id = -1,
                      std::vector<std::string>* outputs = nullptr,
                      CompactionJobInfo* info = nullptr) {
    return CompactFiles(options, DefaultColumnFamily(), files, output_level, output_path_id,
                        outputs, info);
  }
  virtual Status WaitForCompact(const WaitForCompactOptions& options) = 0;
  // Marks the tables of a range for compaction. A null key is the end of all keys.
  virtual Status SuggestCompactRange(ColumnFamilyHandle* family, const Slice* begin,
                                     const Slice* end);
  virtual Status PromoteL0(ColumnFamilyHandle*, int /*target_level*/) {
    return Status::NotSupported("DB::PromoteL0");
  }
  // Running compactions end without a result, and none begins before the second call.
  virtual void AbortAllCompactions();
  virtual void ResumeAllCompactions();
  virtual Status PauseBackgroundWork() = 0;
  virtual Status ContinueBackgroundWork() = 0;
  virtual void DisableManualCompaction() = 0;
  virtual void EnableManualCompaction() = 0;

  virtual Status SetOptions(ColumnFamilyHandle* family,
                            const std::unordered_map<std::string, std::string>& options) = 0;
  Status SetOptions(const std::unordered_map<std::string, std::string>& options) {
    return SetOptions(DefaultColumnFamily(), options);
  }
  virtual Status SetDBOptions(const std::unordered_map<std::string, std::string>& options) = 0;
  // As they are now. Objects are those that the database was opened with.
  virtual Options GetOptions(ColumnFamilyHandle* family) const = 0;
  Options GetOptions() const { return GetOptions(DefaultColumnFamily()); }
  virtual DBOptions GetDBOptions() const = 0;

  virtual Status Flush(const FlushOptions& options, ColumnFamilyHandle* family) = 0;
  virtual Status Flush(const FlushOptions& options) {
    return Flush(options, DefaultColumnFamily());
  }
  virtual Status Flush(const FlushOptions& options,
                       const std::vector<ColumnFamilyHandle*>& families) = 0;
  virtual Status FlushWAL(bool sync) = 0;
  Status FlushWAL(const FlushWALOptions& options) { return FlushWAL(options.sync); }
  virtual Status SyncWAL() { return FlushWAL(true); }
  virtual SequenceNumber GetLatestSequenceNumber() const = 0;
  // Versions older than `ts` may go.
  virtual Status IncreaseFullHistoryTsLow(ColumnFamilyHandle* family, std::string ts);
  virtual Status GetFullHistoryTsLow(ColumnFamilyHandle* family, std::string* ts);
  virtual Status GetSortedWalFiles(VectorWalPtr& files);
  virtual Status GetCurrentWalFile(std::unique_ptr<WalFile>* file);
  // What was written from `sequence` on, as far as logs are kept.
  virtual Status GetUpdatesSince(SequenceNumber sequence,
                                 std::unique_ptr<TransactionLogIterator>* iterator,
                                 const TransactionLogIterator::ReadOptions& options = {});

  virtual Status DisableFileDeletions() = 0;
  virtual Status EnableFileDeletions() = 0;
  Status EnableFileDeletions(bool) { return EnableFileDeletions(); }
  virtual void GetLiveFilesMetaData(std::vector<LiveFileMetaData>* files) = 0;
  virtual void GetColumnFamilyMetaData(ColumnFamilyHandle* family,
                                       ColumnFamilyMetaData* data) = 0;
  void GetColumnFamilyMetaData(ColumnFamilyMetaData* data) {
    GetColumnFamilyMetaData(DefaultColumnFamily(), data);
  }
  virtual void GetColumnFamilyMetaData(ColumnFamilyHandle* family,
                                       const GetColumnFamilyMetaDataOptions& options,
                                       ColumnFamilyMetaData* data);
  void GetColumnFamilyMetaData(const GetColumnFamilyMetaDataOptions& options,
                               ColumnFamilyMetaData* data) {
    GetColumnFamilyMetaData(DefaultColumnFamily(), options, data);
  }
  // The files of a copy of the database as it is now.
  virtual Status GetLiveFilesStorageInfo(const LiveFilesStorageInfoOptions& options,
                                         std::vector<LiveFileStorageInfo>* files);
  virtual Status IngestExternalFile(ColumnFamilyHandle* family,
                                    const std::vector<std::string>& files,
                                    const IngestExternalFileOptions& options) = 0;
  Status IngestExternalFile(const std::vector<std::string>& files,
                            const IngestExternalFileOptions& options) {
    return IngestExternalFile(DefaultColumnFamily(), files, options);
  }
  // Into several families, all or none.
  virtual Status IngestExternalFiles(const std::vector<IngestExternalFileArg>& args);
  virtual Status DeleteFilesInRanges(ColumnFamilyHandle* family, const RangePtr* ranges,
                                     size_t count, bool include_end = true) = 0;
  virtual Status VerifyChecksum(const ReadOptions& options) = 0;
  Status VerifyChecksum() { return VerifyChecksum(ReadOptions()); }
  virtual Status VerifyFileChecksums(const ReadOptions& options);
  virtual Status GetDbIdentity(std::string& identity) const = 0;
  virtual Status TryCatchUpWithPrimary() {
    return Status::NotSupported("Supported only by secondary instance");
  }

  // Traces are not supported.
  virtual Status StartTrace(const TraceOptions&, std::unique_ptr<TraceWriter>&&) {
    return Status::NotSupported("DB::StartTrace");
  }
  virtual Status EndTrace() { return Status::NotSupported("DB::EndTrace"); }
  virtual Status StartIOTrace(const TraceOptions&, std::unique_ptr<TraceWriter>&&) {
    return Status::NotSupported("DB::StartIOTrace");
  }
  virtual Status EndIOTrace() { return Status::NotSupported("DB::EndIOTrace"); }
  virtual Status StartBlockCacheTrace(const TraceOptions&, std::unique_ptr<TraceWriter>&&) {
    return Status::NotSupported("DB::StartBlockCacheTrace");
  }
  virtual Status StartBlockCacheTrace(const BlockCacheTraceOptions&,
                                      std::unique_ptr<BlockCacheTraceWriter>&&) {
    return Status::NotSupported("DB::StartBlockCacheTrace");
  }
  virtual Status EndBlockCacheTrace() { return Status::NotSupported("DB::EndBlockCacheTrace"); }
  virtual Status NewDefaultReplayer(const std::vector<ColumnFamilyHandle*>&,
                                    std::unique_ptr<TraceReader>&&, std::unique_ptr<Replayer>*) {
    return Status::NotSupported("DB::NewDefaultReplayer");
  }

  virtual const std::string& GetName() const = 0;
  virtual Env* GetEnv() const { return Env::Default(); }
  virtual int NumberLevels(ColumnFamilyHandle* family) {
    return GetOptions(family).num_levels;
  }
  int NumberLevels() { return NumberLevels(DefaultColumnFamily()); }
  virtual DB* GetRootDB() { return this; }
  // The object of the C interface (rocksdb_t*); null for a closed database.
  virtual void* EskerHandle() const = 0;
};

Status DestroyDB(const std::string& path, const Options& options,
                 const std::vector<ColumnFamilyDescriptor>& families = {});
Status RepairDB(const std::string& path, const Options& options);

}  // namespace ROCKSDB_NAMESPACE
