// A database that passes every call on to another.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "rocksdb/db.h"

namespace ROCKSDB_NAMESPACE {

class StackableDB : public DB {
 public:
  explicit StackableDB(DB* db) : db_(db) {}
  explicit StackableDB(std::shared_ptr<DB> db) : db_(db.get()), shared_(std::move(db)) {}
  ~StackableDB() override;

  virtual DB* GetBaseDB() { return db_; }
  DB* GetRootDB() override { return db_->GetRootDB(); }

  using DB::CompactFiles;
  using DB::CompactRange;
  using DB::CreateColumnFamilies;
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
  using DB::GetPropertiesOfAllTables;
  using DB::GetProperty;
  using DB::IngestExternalFile;
  using DB::KeyMayExist;
  using DB::Merge;
  using DB::MultiGet;
  using DB::NewIterator;
  using DB::NumberLevels;
  using DB::Put;
  using DB::SetOptions;
  using DB::SingleDelete;
  using DB::VerifyChecksum;

  Status Close() override { return db_->Close(); }
  Status Resume() override { return db_->Resume(); }
  Status CreateColumnFamily(const ColumnFamilyOptions& options, const std::string& name,
                            ColumnFamilyHandle** handle) override {
    return db_->CreateColumnFamily(options, name, handle);
  }
  Status DropColumnFamily(ColumnFamilyHandle* family) override {
    return db_->DropColumnFamily(family);
  }
  Status DestroyColumnFamilyHandle(ColumnFamilyHandle* family) override {
    return db_->DestroyColumnFamilyHandle(family);
  }
  ColumnFamilyHandle* DefaultColumnFamily() const override { return db_->DefaultColumnFamily(); }
  Status CreateColumnFamilyWithImport(const ColumnFamilyOptions& options, const std::string& name,
                                      const ImportColumnFamilyOptions& import_options,
                                      const ExportImportFilesMetaData& files,
                                      ColumnFamilyHandle** handle) override {
    return db_->CreateColumnFamilyWithImport(options, name, import_options, files, handle);
  }
  Status Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
             const Slice& value) override {
    return db_->Put(options, family, key, value);
  }
  Status Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
             const Slice& ts, const Slice& value) override {
    return db_->Put(options, family, key, ts, value);
  }
  Status Delete(const WriteOptions& options, ColumnFamilyHandle* family,
                const Slice& key) override {
    return db_->Delete(options, family, key);
  }
  Status Delete(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                const Slice& ts) override {
    return db_->Delete(options, family, key, ts);
  }
  Status SingleDelete(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                      const Slice& ts) override {
    return db_->SingleDelete(options, family, key, ts);
  }
  Status SingleDelete(const WriteOptions& options, ColumnFamilyHandle* family,
                      const Slice& key) override {
    return db_->SingleDelete(options, family, key);
  }
  Status DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& begin,
                     const Slice& end) override {
    return db_->DeleteRange(options, family, begin, end);
  }
  Status Merge(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
               const Slice& value) override {
    return db_->Merge(options, family, key, value);
  }
  Status Write(const WriteOptions& options, WriteBatch* updates) override {
    return db_->Write(options, updates);
  }
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
             PinnableSlice* value, std::string* timestamp) override {
    return db_->Get(options, family, key, value, timestamp);
  }
  void MultiGet(const ReadOptions& options, size_t count, ColumnFamilyHandle** families,
                const Slice* keys, PinnableSlice* values, Status* statuses,
                bool sorted_input = false) override {
    db_->MultiGet(options, count, families, keys, values, statuses, sorted_input);
  }
  void MultiGet(const ReadOptions& options, size_t count, ColumnFamilyHandle** families,
                const Slice* keys, PinnableSlice* values, std::string* timestamps,
                Status* statuses, bool sorted_input = false) override {
    db_->MultiGet(options, count, families, keys, values, timestamps, statuses, sorted_input);
  }
  bool KeyMayExist(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                   std::string* value, bool* value_found = nullptr) override {
    return db_->KeyMayExist(options, family, key, value, value_found);
  }
  Iterator* NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) override {
    return db_->NewIterator(options, family);
  }
  const Snapshot* GetSnapshot() override { return db_->GetSnapshot(); }
  void ReleaseSnapshot(const Snapshot* snapshot) override { db_->ReleaseSnapshot(snapshot); }
  bool GetProperty(ColumnFamilyHandle* family, const Slice& name, std::string* value) override {
    return db_->GetProperty(family, name, value);
  }
  bool GetMapProperty(ColumnFamilyHandle* family, const Slice& name,
                      std::map<std::string, std::string>* values) override {
    return db_->GetMapProperty(family, name, values);
  }
  bool GetIntProperty(ColumnFamilyHandle* family, const Slice& name, uint64_t* value) override {
    return db_->GetIntProperty(family, name, value);
  }
  Status GetPropertiesOfAllTables(ColumnFamilyHandle* family,
                                  TablePropertiesCollection* properties) override {
    return db_->GetPropertiesOfAllTables(family, properties);
  }
  Status GetPropertiesOfTablesInRange(ColumnFamilyHandle* family, const Range* ranges,
                                      size_t count,
                                      TablePropertiesCollection* properties) override {
    return db_->GetPropertiesOfTablesInRange(family, ranges, count, properties);
  }
  void GetApproximateMemTableStats(ColumnFamilyHandle* family, const Range& range,
                                   uint64_t* count, uint64_t* size) override {
    db_->GetApproximateMemTableStats(family, range, count, size);
  }
  Status ResetStats() override { return db_->ResetStats(); }
  Status EnableAutoCompaction(const std::vector<ColumnFamilyHandle*>& families) override {
    return db_->EnableAutoCompaction(families);
  }
  Status GetApproximateSizes(const SizeApproximationOptions& options, ColumnFamilyHandle* family,
                             const Range* ranges, int count, uint64_t* sizes) override {
    return db_->GetApproximateSizes(options, family, ranges, count, sizes);
  }
  Status CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* family,
                      const Slice* begin, const Slice* end) override {
    return db_->CompactRange(options, family, begin, end);
  }
  Status CompactFiles(const CompactionOptions& options, ColumnFamilyHandle* family,
                      const std::vector<std::string>& files, int output_level,
                      int output_path_id = -1, std::vector<std::string>* outputs = nullptr,
                      CompactionJobInfo* info = nullptr) override {
    return db_->CompactFiles(options, family, files, output_level, output_path_id, outputs, info);
  }
  Status WaitForCompact(const WaitForCompactOptions& options) override {
    return db_->WaitForCompact(options);
  }
  Status SuggestCompactRange(ColumnFamilyHandle* family, const Slice* begin,
                             const Slice* end) override {
    return db_->SuggestCompactRange(family, begin, end);
  }
  void AbortAllCompactions() override { db_->AbortAllCompactions(); }
  void ResumeAllCompactions() override { db_->ResumeAllCompactions(); }
  Status PauseBackgroundWork() override { return db_->PauseBackgroundWork(); }
  Status ContinueBackgroundWork() override { return db_->ContinueBackgroundWork(); }
  void DisableManualCompaction() override { db_->DisableManualCompaction(); }
  void EnableManualCompaction() override { db_->EnableManualCompaction(); }
  Status SetOptions(ColumnFamilyHandle* family,
                    const std::unordered_map<std::string, std::string>& options) override {
    return db_->SetOptions(family, options);
  }
  Status SetDBOptions(const std::unordered_map<std::string, std::string>& options) override {
    return db_->SetDBOptions(options);
  }
  Options GetOptions(ColumnFamilyHandle* family) const override { return db_->GetOptions(family); }
  DBOptions GetDBOptions() const override { return db_->GetDBOptions(); }
  Status Flush(const FlushOptions& options, ColumnFamilyHandle* family) override {
    return db_->Flush(options, family);
  }
  Status Flush(const FlushOptions& options,
               const std::vector<ColumnFamilyHandle*>& families) override {
    return db_->Flush(options, families);
  }
  Status FlushWAL(bool sync) override { return db_->FlushWAL(sync); }
  SequenceNumber GetLatestSequenceNumber() const override {
    return db_->GetLatestSequenceNumber();
  }
  Status IncreaseFullHistoryTsLow(ColumnFamilyHandle* family, std::string ts) override {
    return db_->IncreaseFullHistoryTsLow(family, std::move(ts));
  }
  Status GetFullHistoryTsLow(ColumnFamilyHandle* family, std::string* ts) override {
    return db_->GetFullHistoryTsLow(family, ts);
  }
  Status GetSortedWalFiles(VectorWalPtr& files) override { return db_->GetSortedWalFiles(files); }
  Status GetCurrentWalFile(std::unique_ptr<WalFile>* file) override {
    return db_->GetCurrentWalFile(file);
  }
  Status DisableFileDeletions() override { return db_->DisableFileDeletions(); }
  Status EnableFileDeletions() override { return db_->EnableFileDeletions(); }
  void GetLiveFilesMetaData(std::vector<LiveFileMetaData>* files) override {
    db_->GetLiveFilesMetaData(files);
  }
  void GetColumnFamilyMetaData(ColumnFamilyHandle* family, ColumnFamilyMetaData* data) override {
    db_->GetColumnFamilyMetaData(family, data);
  }
  void GetColumnFamilyMetaData(ColumnFamilyHandle* family,
                               const GetColumnFamilyMetaDataOptions& options,
                               ColumnFamilyMetaData* data) override {
    db_->GetColumnFamilyMetaData(family, options, data);
  }
  Status GetLiveFilesStorageInfo(const LiveFilesStorageInfoOptions& options,
                                 std::vector<LiveFileStorageInfo>* files) override {
    return db_->GetLiveFilesStorageInfo(options, files);
  }
  Status IngestExternalFile(ColumnFamilyHandle* family, const std::vector<std::string>& files,
                            const IngestExternalFileOptions& options) override {
    return db_->IngestExternalFile(family, files, options);
  }
  Status IngestExternalFiles(const std::vector<IngestExternalFileArg>& args) override {
    return db_->IngestExternalFiles(args);
  }
  Status DeleteFilesInRanges(ColumnFamilyHandle* family, const RangePtr* ranges, size_t count,
                             bool include_end = true) override {
    return db_->DeleteFilesInRanges(family, ranges, count, include_end);
  }
  Status VerifyChecksum(const ReadOptions& options) override {
    return db_->VerifyChecksum(options);
  }
  Status VerifyFileChecksums(const ReadOptions& options) override {
    return db_->VerifyFileChecksums(options);
  }
  Status GetDbIdentity(std::string& identity) const override {
    return db_->GetDbIdentity(identity);
  }
  Status TryCatchUpWithPrimary() override { return db_->TryCatchUpWithPrimary(); }
  const std::string& GetName() const override { return db_->GetName(); }
  Env* GetEnv() const override { return db_->GetEnv(); }
  void* EskerHandle() const override { return db_->EskerHandle(); }

 protected:
  DB* db_;
  std::shared_ptr<DB> shared_;
};

}  // namespace ROCKSDB_NAMESPACE
