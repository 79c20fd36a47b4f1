// A database over a handle of the C interface.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "convert.h"
#include "rocksdb/db.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyHandleImpl : public ColumnFamilyHandle {
 public:
  ColumnFamilyHandleImpl(rocksdb_column_family_handle_t* handle, const ColumnFamilyOptions& with)
      : handle_(handle), options_(with) {
    size_t length = 0;
    char* name = rocksdb_column_family_handle_get_name(handle, &length);
    name_ = Take(name, length);
  }
  ~ColumnFamilyHandleImpl() override { rocksdb_column_family_handle_destroy(handle_); }
  const std::string& GetName() const override { return name_; }
  uint32_t GetID() const override { return rocksdb_column_family_handle_get_id(handle_); }
  Status GetDescriptor(ColumnFamilyDescriptor* descriptor) override {
    *descriptor = ColumnFamilyDescriptor(name_, options_);
    return Status::OK();
  }
  const Comparator* GetComparator() const override { return options_.comparator; }
  void* EskerHandle() const override { return handle_; }

  // What the family was opened with.
  const ColumnFamilyOptions& options() const { return options_; }

 private:
  rocksdb_column_family_handle_t* handle_;
  ColumnFamilyOptions options_;
  std::string name_;
};

class DBImpl : public DB {
 public:
  DBImpl(const DBOptions& options, const ColumnFamilyOptions& family, std::string path);
  ~DBImpl() override;

  // The object that listeners are told of; they may be told while the database opens.
  const std::shared_ptr<ListenedDb>& listened() const { return listened_; }
  // Takes the handle over; `close` closes it.
  void Opened(rocksdb_t* handle, std::function<void(rocksdb_t*)> close);

  Status Close() override;
  Status Resume() override;
  Status CreateColumnFamily(const ColumnFamilyOptions& options, const std::string& name,
                            ColumnFamilyHandle** handle) override;
  Status DropColumnFamily(ColumnFamilyHandle* family) override;
  ColumnFamilyHandle* DefaultColumnFamily() const override { return default_.get(); }

  using DB::Delete;
  using DB::DeleteRange;
  using DB::EnableFileDeletions;
  using DB::Flush;
  using DB::FlushWAL;
  using DB::Get;
  using DB::GetApproximateSizes;
  using DB::GetColumnFamilyMetaData;
  using DB::GetIntProperty;
  using DB::GetMapProperty;
  using DB::GetOptions;
  using DB::GetProperty;
  using DB::IngestExternalFile;
  using DB::KeyMayExist;
  using DB::Merge;
  using DB::MultiGet;
  using DB::NewIterator;
  using DB::Put;
  using DB::SetOptions;
  using DB::SingleDelete;
  using DB::VerifyChecksum;

  Status Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
             const Slice& value) override;
  Status Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
             const Slice& ts, const Slice& value) override;
  Status Delete(const WriteOptions& options, ColumnFamilyHandle* family,
                const Slice& key) override;
  Status SingleDelete(const WriteOptions& options, ColumnFamilyHandle* family,
                      const Slice& key) override;
  Status DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& begin,
                     const Slice& end) override;
  Status Merge(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
               const Slice& value) override;
  Status Write(const WriteOptions& options, WriteBatch* updates) override;
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
             PinnableSlice* value, std::string* timestamp) override;
  void MultiGet(const ReadOptions& options, size_t count, ColumnFamilyHandle** families,
                const Slice* keys, PinnableSlice* values, Status* statuses,
                bool sorted_input) override;
  bool KeyMayExist(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                   std::string* value, bool* value_found) override;
  Iterator* NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) override;
  const Snapshot* GetSnapshot() override;
  void ReleaseSnapshot(const Snapshot* snapshot) override;
  bool GetProperty(ColumnFamilyHandle* family, const Slice& name, std::string* value) override;
  bool GetMapProperty(ColumnFamilyHandle* family, const Slice& name,
                      std::map<std::string, std::string>* values) override;
  bool GetIntProperty(ColumnFamilyHandle* family, const Slice& name, uint64_t* value) override;
  Status GetApproximateSizes(const SizeApproximationOptions& options, ColumnFamilyHandle* family,
                             const Range* ranges, int count, uint64_t* sizes) override;
  Status CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* family,
                      const Slice* begin, const Slice* end) override;
  Status CompactFiles(const CompactionOptions& options, ColumnFamilyHandle* family,
                      const std::vector<std::string>& files, int output_level, int output_path_id,
                      std::vector<std::string>* outputs, CompactionJobInfo* info) override;
  Status WaitForCompact(const WaitForCompactOptions& options) override;
  Status PauseBackgroundWork() override;
  Status ContinueBackgroundWork() override;
  void DisableManualCompaction() override { rocksdb_disable_manual_compaction(db()); }
  void EnableManualCompaction() override { rocksdb_enable_manual_compaction(db()); }
  Status SetOptions(ColumnFamilyHandle* family,
                    const std::unordered_map<std::string, std::string>& options) override;
  Status SetDBOptions(const std::unordered_map<std::string, std::string>& options) override;
  Options GetOptions(ColumnFamilyHandle* family) const override;
  DBOptions GetDBOptions() const override;
  Status Flush(const FlushOptions& options, ColumnFamilyHandle* family) override;
  Status Flush(const FlushOptions& options,
               const std::vector<ColumnFamilyHandle*>& families) override;
  Status FlushWAL(bool sync) override;
  SequenceNumber GetLatestSequenceNumber() const override {
    return rocksdb_get_latest_sequence_number(db());
  }
  Status DisableFileDeletions() override;
  Status EnableFileDeletions() override;
  void GetLiveFilesMetaData(std::vector<LiveFileMetaData>* files) override;
  void GetColumnFamilyMetaData(ColumnFamilyHandle* family, ColumnFamilyMetaData* data) override;
  Status IngestExternalFile(ColumnFamilyHandle* family, const std::vector<std::string>& files,
                            const IngestExternalFileOptions& options) override;
  Status DeleteFilesInRanges(ColumnFamilyHandle* family, const RangePtr* ranges, size_t count,
                             bool include_end) override;
  Status VerifyChecksum(const ReadOptions& options) override;
  Status GetDbIdentity(std::string& identity) const override;
  Status TryCatchUpWithPrimary() override;
  const std::string& GetName() const override { return path_; }
  void* EskerHandle() const override { return db(); }

 private:
  rocksdb_t* db() const { return handle_.load(std::memory_order_acquire); }

  DBOptions options_;
  ColumnFamilyOptions family_;
  std::string path_;
  std::shared_ptr<ListenedDb> listened_;
  std::atomic<rocksdb_t*> handle_{nullptr};
  std::function<void(rocksdb_t*)> close_;
  std::unique_ptr<ColumnFamilyHandle> default_;
};

// The families of an opening: names and options for the C interface, and handles from it.
class Opening {
 public:
  // Converts everything. With a status that is not OK nothing may be opened.
  Opening(const DBOptions& options, const std::vector<ColumnFamilyDescriptor>& families,
          const std::string& path);
  // The same for a database that is opened with its default family alone.
  Opening(const Options& options, const std::string& path);

  const Status& status() const { return status_; }
  const rocksdb_options_t* options() const { return options_.get(); }
  const char* path() const { return path_.c_str(); }
  int count() const { return static_cast<int>(names_.size()); }
  const char* const* names() const { return names_.data(); }
  const rocksdb_options_t* const* families() const { return family_handles_.data(); }
  rocksdb_column_family_handle_t** handles() { return opened_.data(); }

  // Gives out the database.
  std::unique_ptr<DBImpl> Finish(rocksdb_t* handle, std::function<void(rocksdb_t*)> close);
  // Gives out the families.
  void TakeHandles(std::vector<ColumnFamilyHandle*>* handles);

 private:
  std::unique_ptr<DBImpl> db_;
  OptionsHandle options_;
  std::vector<ColumnFamilyDescriptor> descriptors_;
  std::vector<OptionsHandle> family_options_;
  std::vector<const rocksdb_options_t*> family_handles_;
  std::vector<const char*> names_;
  std::vector<rocksdb_column_family_handle_t*> opened_;
  std::string path_;
  Status status_;
};

}  // namespace ROCKSDB_NAMESPACE
