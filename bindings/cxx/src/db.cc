#include "rocksdb/db.h"

#include "db_impl.h"
#include "job_info.h"
#include "rocksdb/convenience.h"

// RocksDB's library exports these, and its header does not declare them.
extern "C" {
void rocksdb_abort_all_compactions(rocksdb_t* db);
void rocksdb_resume_all_compactions(rocksdb_t* db);
}

namespace ROCKSDB_NAMESPACE {

const std::string kDefaultColumnFamilyName("default");

DB::~DB() = default;
ColumnFamilyHandle::~ColumnFamilyHandle() = default;

#define ESKER_PROPERTY(NAME, TEXT) const std::string DB::Properties::NAME("rocksdb." TEXT);
ESKER_PROPERTY(kNumFilesAtLevelPrefix, "num-files-at-level")
ESKER_PROPERTY(kStats, "stats")
ESKER_PROPERTY(kSSTables, "sstables")
ESKER_PROPERTY(kCFStats, "cfstats")
ESKER_PROPERTY(kDBStats, "dbstats")
ESKER_PROPERTY(kLevelStats, "levelstats")
ESKER_PROPERTY(kNumImmutableMemTable, "num-immutable-mem-table")
ESKER_PROPERTY(kMemTableFlushPending, "mem-table-flush-pending")
ESKER_PROPERTY(kCompactionPending, "compaction-pending")
ESKER_PROPERTY(kBackgroundErrors, "background-errors")
ESKER_PROPERTY(kCurSizeActiveMemTable, "cur-size-active-mem-table")
ESKER_PROPERTY(kCurSizeAllMemTables, "cur-size-all-mem-tables")
ESKER_PROPERTY(kSizeAllMemTables, "size-all-mem-tables")
ESKER_PROPERTY(kNumEntriesActiveMemTable, "num-entries-active-mem-table")
ESKER_PROPERTY(kNumEntriesImmMemTables, "num-entries-imm-mem-tables")
ESKER_PROPERTY(kNumDeletesActiveMemTable, "num-deletes-active-mem-table")
ESKER_PROPERTY(kEstimateNumKeys, "estimate-num-keys")
ESKER_PROPERTY(kEstimateTableReadersMem, "estimate-table-readers-mem")
ESKER_PROPERTY(kIsFileDeletionsEnabled, "is-file-deletions-enabled")
ESKER_PROPERTY(kNumSnapshots, "num-snapshots")
ESKER_PROPERTY(kOldestSnapshotTime, "oldest-snapshot-time")
ESKER_PROPERTY(kNumLiveVersions, "num-live-versions")
ESKER_PROPERTY(kEstimateLiveDataSize, "estimate-live-data-size")
ESKER_PROPERTY(kTotalSstFilesSize, "total-sst-files-size")
ESKER_PROPERTY(kLiveSstFilesSize, "live-sst-files-size")
ESKER_PROPERTY(kEstimatePendingCompactionBytes, "estimate-pending-compaction-bytes")
ESKER_PROPERTY(kNumRunningCompactions, "num-running-compactions")
ESKER_PROPERTY(kNumRunningFlushes, "num-running-flushes")
ESKER_PROPERTY(kActualDelayedWriteRate, "actual-delayed-write-rate")
ESKER_PROPERTY(kIsWriteStopped, "is-write-stopped")
ESKER_PROPERTY(kBlockCacheCapacity, "block-cache-capacity")
ESKER_PROPERTY(kBlockCacheUsage, "block-cache-usage")
ESKER_PROPERTY(kBlockCachePinnedUsage, "block-cache-pinned-usage")
#undef ESKER_PROPERTY

// What follows from other calls.

void DB::GetApproximateMemTableStats(ColumnFamilyHandle* family, const Range& range,
                                     uint64_t* count, uint64_t* size) {
  *count = *size = 0;
  ErrorText error;
  esker_approximate_memtable_stats_cf(HandleOf(this), ToC(family), range.start.data(),
                                      range.start.size(), range.limit.data(), range.limit.size(),
                                      count, size, error);
}

Status DB::ResetStats() {
  ErrorText error;
  esker_reset_stats(HandleOf(this), error);
  return error.status();
}

Status DB::EnableAutoCompaction(const std::vector<ColumnFamilyHandle*>& families) {
  Status last;
  for (ColumnFamilyHandle* family : families) {
    const Status status = SetOptions(family, {{"disable_auto_compactions", "false"}});
    if (!status.ok()) last = status;
  }
  return last;
}

Status DB::CreateColumnFamilies(const ColumnFamilyOptions& options,
                                const std::vector<std::string>& names,
                                std::vector<ColumnFamilyHandle*>* handles) {
  handles->clear();
  for (const std::string& name : names) {
    ColumnFamilyHandle* handle = nullptr;
    Status status = CreateColumnFamily(options, name, &handle);
    if (!status.ok()) return status;
    handles->push_back(handle);
  }
  return Status::OK();
}

Status DB::CreateColumnFamilies(const std::vector<ColumnFamilyDescriptor>& families,
                                std::vector<ColumnFamilyHandle*>* handles) {
  handles->clear();
  for (const ColumnFamilyDescriptor& family : families) {
    ColumnFamilyHandle* handle = nullptr;
    Status status = CreateColumnFamily(family.options, family.name, &handle);
    if (!status.ok()) return status;
    handles->push_back(handle);
  }
  return Status::OK();
}

Status DB::DropColumnFamilies(const std::vector<ColumnFamilyHandle*>& families) {
  for (ColumnFamilyHandle* family : families) {
    Status status = DropColumnFamily(family);
    if (!status.ok()) return status;
  }
  return Status::OK();
}

Status DB::DestroyColumnFamilyHandle(ColumnFamilyHandle* family) {
  if (family == DefaultColumnFamily()) {
    return Status::InvalidArgument("Cannot destroy the handle returned by DefaultColumnFamily()");
  }
  delete family;
  return Status::OK();
}

Status DB::Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
               std::string* value) {
  PinnableSlice found;
  Status status = Get(options, family, key, &found);
  if (status.ok()) value->assign(found.data(), found.size());
  return status;
}

Status DB::Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
               std::string* value, std::string* timestamp) {
  PinnableSlice found;
  Status status = Get(options, family, key, &found, timestamp);
  if (status.ok()) value->assign(found.data(), found.size());
  return status;
}

void DB::MultiGet(const ReadOptions& options, ColumnFamilyHandle* family, size_t count,
                  const Slice* keys, PinnableSlice* values, Status* statuses,
                  bool sorted_input) {
  std::vector<ColumnFamilyHandle*> families(count, family);
  MultiGet(options, count, families.data(), keys, values, statuses, sorted_input);
}

std::vector<Status> DB::MultiGet(const ReadOptions& options,
                                 const std::vector<ColumnFamilyHandle*>& families,
                                 const std::vector<Slice>& keys,
                                 std::vector<std::string>* values) {
  std::vector<ColumnFamilyHandle*> of(families);
  of.resize(keys.size(), nullptr);
  std::vector<PinnableSlice> found(keys.size());
  std::vector<Status> statuses(keys.size());
  MultiGet(options, keys.size(), of.data(), keys.data(), found.data(), statuses.data());
  values->assign(keys.size(), std::string());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (statuses[i].ok()) (*values)[i] = found[i].ToString();
  }
  return statuses;
}

std::vector<Status> DB::MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                                 std::vector<std::string>* values) {
  return MultiGet(options, std::vector<ColumnFamilyHandle*>(keys.size(), nullptr), keys, values);
}

void DB::MultiGet(const ReadOptions& options, size_t count, ColumnFamilyHandle** families,
                  const Slice* keys, PinnableSlice* values, std::string* timestamps,
                  Status* statuses, bool) {
  for (size_t i = 0; i < count; ++i) {
    ColumnFamilyHandle* family = families[i] == nullptr ? DefaultColumnFamily() : families[i];
    statuses[i] = Get(options, family, keys[i], &values[i],
                      timestamps == nullptr ? nullptr : &timestamps[i]);
  }
}

std::vector<Status> DB::MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                                 std::vector<std::string>* values,
                                 std::vector<std::string>* timestamps) {
  std::vector<Status> statuses;
  values->assign(keys.size(), std::string());
  timestamps->assign(keys.size(), std::string());
  for (size_t i = 0; i < keys.size(); ++i) {
    statuses.push_back(Get(options, keys[i], &(*values)[i], &(*timestamps)[i]));
  }
  return statuses;
}

bool DB::KeyMayExist(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                     std::string* value, std::string* timestamp, bool* value_found) {
  if (timestamp == nullptr) return KeyMayExist(options, family, key, value, value_found);
  ReadOptions at = options;
  const Slice stamp(*timestamp);
  at.timestamp = &stamp;
  return KeyMayExist(at, family, key, value, value_found);
}

Status DB::GetApproximateSizes(ColumnFamilyHandle* family, const Range* ranges, int count,
                               uint64_t* sizes, SizeApproximationFlags flags) {
  const auto has = [flags](SizeApproximationFlags flag) {
    return (static_cast<uint8_t>(flags) & static_cast<uint8_t>(flag)) != 0;
  };
  SizeApproximationOptions options;
  options.include_memtables = has(SizeApproximationFlags::INCLUDE_MEMTABLES);
  options.include_files = has(SizeApproximationFlags::INCLUDE_FILES);
  options.include_blob_files = has(SizeApproximationFlags::INCLUDE_BLOB_FILES);
  return GetApproximateSizes(options, family, ranges, count, sizes);
}

Status DB::NewIterators(const ReadOptions& options,
                        const std::vector<ColumnFamilyHandle*>& families,
                        std::vector<Iterator*>* iterators) {
  // All of them see the same.
  ReadOptions with = options;
  const Snapshot* snapshot = with.snapshot == nullptr ? GetSnapshot() : nullptr;
  if (snapshot != nullptr) with.snapshot = snapshot;
  iterators->clear();
  for (ColumnFamilyHandle* family : families) {
    iterators->push_back(NewIterator(with, family));
  }
  if (snapshot != nullptr) ReleaseSnapshot(snapshot);
  return Status::OK();
}

TransactionLogIterator::~TransactionLogIterator() = default;

namespace {

class LogIterator final : public TransactionLogIterator {
 public:
  explicit LogIterator(rocksdb_wal_iterator_t* handle) : handle_(handle) {}
  ~LogIterator() override { rocksdb_wal_iter_destroy(handle_); }
  bool Valid() override { return rocksdb_wal_iter_valid(handle_) != 0; }
  void Next() override { rocksdb_wal_iter_next(handle_); }
  Status status() override {
    ErrorText error;
    rocksdb_wal_iter_status(handle_, error);
    return error.status();
  }
  BatchResult GetBatch() override {
    BatchResult result;
    auto* batch = rocksdb_wal_iter_get_batch(handle_, &result.sequence);
    result.writeBatchPtr = std::make_unique<WriteBatch>(batch, true);
    return result;
  }

 private:
  rocksdb_wal_iterator_t* handle_;
};

}  // namespace

Status DB::GetUpdatesSince(SequenceNumber sequence,
                           std::unique_ptr<TransactionLogIterator>* iterator,
                           const TransactionLogIterator::ReadOptions& options) {
  iterator->reset();
  Handle<rocksdb_wal_readoptions_t> with(rocksdb_wal_readoptions_create(),
                                         rocksdb_wal_readoptions_destroy);
  rocksdb_wal_readoptions_set_verify_checksums(with.get(), options.verify_checksums_ ? 1 : 0);
  ErrorText error;
  auto* handle = rocksdb_get_updates_since(HandleOf(this), sequence, with.get(), error);
  if (!error.ok()) return error.status();
  *iterator = std::make_unique<LogIterator>(handle);
  return Status::OK();
}

Status DB::Delete(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                  const Slice& ts) {
  WriteHandle write(options);
  ErrorText error;
  rocksdb_delete_cf_with_ts(HandleOf(this), write.get(), ToC(family), key.data(), key.size(),
                            ts.data(), ts.size(), error);
  return error.status();
}

Status DB::SingleDelete(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                        const Slice& ts) {
  WriteHandle write(options);
  ErrorText error;
  rocksdb_singledelete_cf_with_ts(HandleOf(this), write.get(), ToC(family), key.data(),
                                  key.size(), ts.data(), ts.size(), error);
  return error.status();
}

Status DB::SuggestCompactRange(ColumnFamilyHandle* family, const Slice* begin,
                               const Slice* end) {
  ErrorText error;
  rocksdb_suggest_compact_range_cf(HandleOf(this), ToC(family),
                                   begin == nullptr ? nullptr : begin->data(),
                                   begin == nullptr ? 0 : begin->size(),
                                   end == nullptr ? nullptr : end->data(),
                                   end == nullptr ? 0 : end->size(), error);
  return error.status();
}

void DB::AbortAllCompactions() { rocksdb_abort_all_compactions(HandleOf(this)); }
void DB::ResumeAllCompactions() { rocksdb_resume_all_compactions(HandleOf(this)); }

Status DB::IncreaseFullHistoryTsLow(ColumnFamilyHandle* family, std::string ts) {
  ErrorText error;
  rocksdb_increase_full_history_ts_low(HandleOf(this), ToC(family), ts.data(), ts.size(), error);
  return error.status();
}

Status DB::GetFullHistoryTsLow(ColumnFamilyHandle* family, std::string* ts) {
  size_t length = 0;
  ErrorText error;
  char* found = rocksdb_get_full_history_ts_low(HandleOf(this), ToC(family), &length, error);
  *ts = Take(found, length);
  return error.status();
}

Status DB::VerifyFileChecksums(const ReadOptions& options) {
  ReadHandle read(options);
  ErrorText error;
  rocksdb_verify_file_checksums_with_options(HandleOf(this), read.get(), error);
  return error.status();
}

ManagedSnapshot::ManagedSnapshot(DB* db) : db_(db), snapshot_(db->GetSnapshot()) {}
ManagedSnapshot::~ManagedSnapshot() {
  if (snapshot_ != nullptr) db_->ReleaseSnapshot(snapshot_);
}

// The database over a handle.

DBImpl::DBImpl(const DBOptions& options, const ColumnFamilyOptions& family, std::string path)
    : options_(options),
      family_(family),
      path_(std::move(path)),
      listened_(std::make_shared<ListenedDb>()) {
  listened_->db = this;
}

DBImpl::~DBImpl() { DBImpl::Close().PermitUncheckedError(); }

void DBImpl::Opened(rocksdb_t* handle, std::function<void(rocksdb_t*)> close) {
  close_ = std::move(close);
  default_ = std::make_unique<ColumnFamilyHandleImpl>(
      rocksdb_get_default_column_family_handle(handle), family_);
  handle_.store(handle, std::memory_order_release);
}

Status DBImpl::Close() {
  rocksdb_t* handle = handle_.exchange(nullptr);
  if (handle == nullptr) return Status::OK();
  default_.reset();
  // Listeners may still be told of jobs that end now; calls on this database are errors.
  close_(handle);
  return Status::OK();
}

Status DBImpl::Resume() {
  ErrorText error;
  esker_resume(db(), error);
  return error.status();
}

Status DBImpl::CreateColumnFamily(const ColumnFamilyOptions& options, const std::string& name,
                                  ColumnFamilyHandle** handle) {
  *handle = nullptr;
  OptionsHandle made = NewOptions();
  Status status = ToC(options, made.get());
  if (!status.ok()) return status;
  ErrorText error;
  auto* created = rocksdb_create_column_family(db(), made.get(), name.c_str(), error);
  if (!error.ok()) return error.status();
  *handle = new ColumnFamilyHandleImpl(created, options);
  return Status::OK();
}

Status DBImpl::DropColumnFamily(ColumnFamilyHandle* family) {
  ErrorText error;
  rocksdb_drop_column_family(db(), ToC(family), error);
  return error.status();
}

Status DBImpl::Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                   const Slice& value) {
  WriteHandle write(options);
  ErrorText error;
  rocksdb_put_cf(db(), write.get(), ToC(family), key.data(), key.size(), value.data(),
                 value.size(), error);
  return error.status();
}

Status DBImpl::Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                   const Slice& ts, const Slice& value) {
  WriteHandle write(options);
  ErrorText error;
  rocksdb_put_cf_with_ts(db(), write.get(), ToC(family), key.data(), key.size(), ts.data(),
                         ts.size(), value.data(), value.size(), error);
  return error.status();
}

Status DBImpl::Delete(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key) {
  WriteHandle write(options);
  ErrorText error;
  rocksdb_delete_cf(db(), write.get(), ToC(family), key.data(), key.size(), error);
  return error.status();
}

Status DBImpl::SingleDelete(const WriteOptions& options, ColumnFamilyHandle* family,
                            const Slice& key) {
  WriteHandle write(options);
  ErrorText error;
  rocksdb_singledelete_cf(db(), write.get(), ToC(family), key.data(), key.size(), error);
  return error.status();
}

Status DBImpl::DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family,
                           const Slice& begin, const Slice& end) {
  WriteHandle write(options);
  ErrorText error;
  rocksdb_delete_range_cf(db(), write.get(), ToC(family), begin.data(), begin.size(), end.data(),
                          end.size(), error);
  return error.status();
}

Status DBImpl::Merge(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                     const Slice& value) {
  WriteHandle write(options);
  ErrorText error;
  rocksdb_merge_cf(db(), write.get(), ToC(family), key.data(), key.size(), value.data(),
                   value.size(), error);
  return error.status();
}

Status DBImpl::Write(const WriteOptions& options, WriteBatch* updates) {
  if (updates == nullptr) return Status::InvalidArgument("Batch is nullptr!");
  WriteHandle write(options);
  ErrorText error;
  rocksdb_write(db(), write.get(), static_cast<rocksdb_writebatch_t*>(updates->EskerHandle()),
                error);
  return error.status();
}

Status PinValue(const ErrorText& error, rocksdb_pinnableslice_t* value, PinnableSlice* out) {
  if (!error.ok()) return error.status();
  if (value == nullptr) return Status::NotFound();
  size_t length = 0;
  const char* bytes = rocksdb_pinnableslice_value(value, &length);
  const auto destroy = [](void* pinned, void*) {
    rocksdb_pinnableslice_destroy(static_cast<rocksdb_pinnableslice_t*>(pinned));
  };
  out->PinSlice(Slice(bytes, length), destroy, value, nullptr);
  return Status::OK();
}

Status DBImpl::Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                   PinnableSlice* value, std::string* timestamp) {
  value->Reset();
  ReadHandle read(options);
  if (!read.status().ok()) return read.status();
  ErrorText error;
  if (timestamp == nullptr) {
    auto* found = rocksdb_get_pinned_cf(db(), read.get(), ToC(family), key.data(), key.size(),
                                        error);
    return PinValue(error, found, value);
  }
  size_t length = 0;
  size_t ts_length = 0;
  char* ts = nullptr;
  char* found = rocksdb_get_cf_with_ts(db(), read.get(), ToC(family), key.data(), key.size(),
                                       &length, &ts, &ts_length, error);
  *timestamp = Take(ts, ts_length);
  if (!error.ok()) return error.status();
  if (found == nullptr) return Status::NotFound();
  *value->GetSelf() = Take(found, length);
  value->PinSelf();
  return Status::OK();
}

void DBImpl::MultiGet(const ReadOptions& options, size_t count, ColumnFamilyHandle** families,
                      const Slice* keys, PinnableSlice* values, Status* statuses, bool) {
  ReadHandle read(options);
  std::vector<const rocksdb_column_family_handle_t*> of(count);
  std::vector<const char*> bytes(count);
  std::vector<size_t> lengths(count);
  std::vector<char*> found(count, nullptr);
  std::vector<size_t> found_lengths(count, 0);
  std::vector<char*> errors(count, nullptr);
  for (size_t i = 0; i < count; ++i) {
    of[i] = ToC(families[i] == nullptr ? DefaultColumnFamily() : families[i]);
    bytes[i] = keys[i].data();
    lengths[i] = keys[i].size();
    values[i].Reset();
  }
  if (read.status().ok()) {
    rocksdb_multi_get_cf(db(), read.get(), of.data(), count, bytes.data(), lengths.data(),
                         found.data(), found_lengths.data(), errors.data());
  }
  const auto release = [](void* value, void*) { rocksdb_free(value); };
  for (size_t i = 0; i < count; ++i) {
    if (errors[i] != nullptr) {
      statuses[i] = StatusOfText(errors[i]);
      rocksdb_free(errors[i]);
    } else if (!read.status().ok()) {
      statuses[i] = read.status();
    } else if (found[i] == nullptr) {
      statuses[i] = Status::NotFound();
    } else {
      values[i].PinSlice(Slice(found[i], found_lengths[i]), release, found[i], nullptr);
      statuses[i] = Status::OK();
    }
  }
}

bool DBImpl::KeyMayExist(const ReadOptions& options, ColumnFamilyHandle* family,
                         const Slice& key, std::string* value, bool* value_found) {
  ReadHandle read(options);
  char* found = nullptr;
  size_t length = 0;
  unsigned char has_value = 0;
  const bool may = rocksdb_key_may_exist_cf(db(), read.get(), ToC(family), key.data(),
                                            key.size(), &found, &length, nullptr, 0,
                                            &has_value) != 0;
  std::string taken = Take(found, length);
  if (has_value != 0 && value != nullptr) *value = std::move(taken);
  if (value_found != nullptr) *value_found = has_value != 0;
  return may;
}

Iterator* DBImpl::NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) {
  ReadHandle read(options);
  if (!read.status().ok()) return NewErrorIterator(read.status());
  auto* handle = rocksdb_create_iterator_cf(db(), read.get(), ToC(family));
  if (handle == nullptr) {
    return NewErrorIterator(Status::InvalidArgument("The database is closed, or has no family"));
  }
  return NewHandleIterator(handle, options);
}

const Snapshot* DBImpl::GetSnapshot() {
  const rocksdb_snapshot_t* handle = rocksdb_create_snapshot(db());
  return handle == nullptr ? nullptr : new SnapshotImpl(handle);
}

void DBImpl::ReleaseSnapshot(const Snapshot* snapshot) {
  if (snapshot == nullptr) return;
  rocksdb_release_snapshot(db(), ToC(snapshot));
  delete static_cast<const SnapshotImpl*>(snapshot);
}

bool DBImpl::GetProperty(ColumnFamilyHandle* family, const Slice& name, std::string* value) {
  char* text = rocksdb_property_value_cf(db(), ToC(family), name.ToString().c_str());
  if (text == nullptr) return false;
  *value = Take(text);
  return true;
}

bool DBImpl::GetMapProperty(ColumnFamilyHandle* family, const Slice& name,
                            std::map<std::string, std::string>* values) {
  values->clear();
  const auto each = [](void* state, const char* key, size_t key_length, const char* value,
                       size_t value_length) {
    auto* to = static_cast<std::map<std::string, std::string>*>(state);
    MustNotThrow("GetMapProperty", [&] {
      to->emplace(std::string(key, key_length), std::string(value, value_length));
    });
  };
  ErrorText error;
  return esker_map_property_cf(db(), ToC(family), name.ToString().c_str(), values, each, error) !=
         0;
}

bool DBImpl::GetIntProperty(ColumnFamilyHandle* family, const Slice& name, uint64_t* value) {
  return rocksdb_property_int_cf(db(), ToC(family), name.ToString().c_str(), value) == 0;
}

Status DBImpl::GetApproximateSizes(const SizeApproximationOptions& options,
                                   ColumnFamilyHandle* family, const Range* ranges, int count,
                                   uint64_t* sizes) {
  auto with = ToC(options);
  std::vector<const char*> starts;
  std::vector<const char*> limits;
  std::vector<size_t> start_lengths;
  std::vector<size_t> limit_lengths;
  for (int i = 0; i < count; ++i) {
    starts.push_back(ranges[i].start.data());
    start_lengths.push_back(ranges[i].start.size());
    limits.push_back(ranges[i].limit.data());
    limit_lengths.push_back(ranges[i].limit.size());
  }
  ErrorText error;
  rocksdb_approximate_sizes_cf_with_options(db(), ToC(family), with.get(), count, starts.data(),
                                            start_lengths.data(), limits.data(),
                                            limit_lengths.data(), sizes, error);
  return error.status();
}

Status DBImpl::CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* family,
                            const Slice* begin, const Slice* end) {
  if (options.canceled != nullptr) {
    return Status::NotSupported("CompactRangeOptions::canceled");
  }
  auto with = ToC(options);
  ErrorText error;
  esker_compact_range_cf(db(), ToC(family), with.get(),
                         begin == nullptr ? nullptr : begin->data(),
                         begin == nullptr ? 0 : begin->size(),
                         end == nullptr ? nullptr : end->data(),
                         end == nullptr ? 0 : end->size(), error);
  return error.status();
}

Status DBImpl::CompactFiles(const CompactionOptions& options, ColumnFamilyHandle* family,
                            const std::vector<std::string>& files, int output_level,
                            int output_path_id, std::vector<std::string>* outputs,
                            CompactionJobInfo* info) {
  auto with = ToC(options);
  std::vector<const char*> names;
  for (const std::string& file : files) names.push_back(file.c_str());
  Handle<rocksdb_compactionjobinfo_t> job(rocksdb_compactionjobinfo_create(),
                                          rocksdb_compactionjobinfo_destroy);
  char** made = nullptr;
  size_t count = 0;
  ErrorText error;
  rocksdb_compact_files_cf(db(), ToC(family), with.get(), names.data(), names.size(),
                           output_level, output_path_id, &made, &count, job.get(), error);
  if (!error.ok()) return error.status();
  if (outputs != nullptr) outputs->assign(made, made + count);
  rocksdb_compact_files_output_file_names_destroy(made, count);
  if (info != nullptr) *info = ToCxx(job.get());
  return Status::OK();
}

Status DBImpl::WaitForCompact(const WaitForCompactOptions& options) {
  auto with = ToC(options);
  ErrorText error;
  rocksdb_wait_for_compact(db(), with.get(), error);
  return error.status();
}

Status DBImpl::PauseBackgroundWork() {
  ErrorText error;
  rocksdb_pause_background_work(db(), error);
  return error.status();
}

Status DBImpl::ContinueBackgroundWork() {
  ErrorText error;
  rocksdb_continue_background_work(db(), error);
  return error.status();
}

namespace {

// Names and values as the C interface takes them.
struct Pairs {
  explicit Pairs(const std::unordered_map<std::string, std::string>& options) {
    for (const auto& [name, value] : options) {
      names.push_back(name.c_str());
      values.push_back(value.c_str());
    }
  }
  int count() const { return static_cast<int>(names.size()); }

  std::vector<const char*> names;
  std::vector<const char*> values;
};

}  // namespace

Status DBImpl::SetOptions(ColumnFamilyHandle* family,
                          const std::unordered_map<std::string, std::string>& options) {
  const Pairs pairs(options);
  ErrorText error;
  rocksdb_set_options_cf(db(), ToC(family), pairs.count(), pairs.names.data(),
                         pairs.values.data(), error);
  return error.status();
}

Status DBImpl::SetDBOptions(const std::unordered_map<std::string, std::string>& options) {
  const Pairs pairs(options);
  ErrorText error;
  rocksdb_set_db_options(db(), pairs.count(), pairs.names.data(), pairs.values.data(), error);
  return error.status();
}

Options DBImpl::GetOptions(ColumnFamilyHandle* family) const {
  const auto* of = static_cast<const ColumnFamilyHandleImpl*>(family);
  Options options(options_, of == nullptr ? family_ : of->options());
  ErrorText error;
  OptionsHandle current(esker_current_options(db(), ToC(family), error), rocksdb_options_destroy);
  if (current != nullptr) {
    FromC(current.get(), static_cast<DBOptions*>(&options));
    FromC(current.get(), static_cast<ColumnFamilyOptions*>(&options));
  }
  return options;
}

DBOptions DBImpl::GetDBOptions() const { return GetOptions(DefaultColumnFamily()); }

Status DBImpl::Flush(const FlushOptions& options, ColumnFamilyHandle* family) {
  auto with = ToC(options);
  ErrorText error;
  rocksdb_flush_cf(db(), with.get(), ToC(family), error);
  return error.status();
}

Status DBImpl::Flush(const FlushOptions& options,
                     const std::vector<ColumnFamilyHandle*>& families) {
  auto with = ToC(options);
  std::vector<rocksdb_column_family_handle_t*> of;
  for (ColumnFamilyHandle* family : families) of.push_back(ToC(family));
  ErrorText error;
  rocksdb_flush_cfs(db(), with.get(), of.data(), static_cast<int>(of.size()), error);
  return error.status();
}

Status DBImpl::FlushWAL(bool sync) {
  ErrorText error;
  rocksdb_flush_wal(db(), sync ? 1 : 0, error);
  return error.status();
}

Status DBImpl::DisableFileDeletions() {
  ErrorText error;
  rocksdb_disable_file_deletions(db(), error);
  return error.status();
}

Status DBImpl::EnableFileDeletions() {
  ErrorText error;
  rocksdb_enable_file_deletions(db(), error);
  return error.status();
}

Status DBImpl::IngestExternalFile(ColumnFamilyHandle* family,
                                  const std::vector<std::string>& files,
                                  const IngestExternalFileOptions& options) {
  auto with = ToC(options);
  std::vector<const char*> names;
  for (const std::string& file : files) names.push_back(file.c_str());
  ErrorText error;
  rocksdb_ingest_external_file_cf(db(), ToC(family), names.data(), names.size(), with.get(),
                                  error);
  return error.status();
}

Status DBImpl::DeleteFilesInRanges(ColumnFamilyHandle* family, const RangePtr* ranges,
                                   size_t count, bool include_end) {
  if (!include_end) return Status::NotSupported("DeleteFilesInRanges without the end");
  for (size_t i = 0; i < count; ++i) {
    const auto [start, limit] = std::pair(ranges[i].start, ranges[i].limit);
    ErrorText error;
    rocksdb_delete_file_in_range_cf(db(), ToC(family), start == nullptr ? nullptr : start->data(),
                                    start == nullptr ? 0 : start->size(),
                                    limit == nullptr ? nullptr : limit->data(),
                                    limit == nullptr ? 0 : limit->size(), error);
    if (!error.ok()) return error.status();
  }
  return Status::OK();
}

Status DBImpl::VerifyChecksum(const ReadOptions& options) {
  ReadHandle read(options);
  ErrorText error;
  rocksdb_verify_checksum_with_options(db(), read.get(), error);
  return error.status();
}

Status DBImpl::GetDbIdentity(std::string& identity) const {
  size_t length = 0;
  char* text = rocksdb_get_db_identity(db(), &length);
  if (text == nullptr) return Status::InvalidArgument("The database is closed");
  identity = Take(text, length);
  return Status::OK();
}

Status DBImpl::TryCatchUpWithPrimary() {
  ErrorText error;
  rocksdb_try_catch_up_with_primary(db(), error);
  return error.status();
}

void CancelAllBackgroundWork(DB* db, bool wait) {
  rocksdb_cancel_all_background_work(static_cast<rocksdb_t*>(db->EskerHandle()), wait ? 1 : 0);
}

Status DeleteFilesInRange(DB* db, ColumnFamilyHandle* family, const Slice* begin,
                          const Slice* end, bool include_end) {
  const RangePtr range(begin, end);
  return db->DeleteFilesInRanges(family, &range, 1, include_end);
}

}  // namespace ROCKSDB_NAMESPACE
