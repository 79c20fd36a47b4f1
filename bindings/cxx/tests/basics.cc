// Databases, column families, batches, iterators, snapshots, properties and options.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "check.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/perf_context.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/sst_file_manager.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/statistics.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/utilities/db_ttl.h"
#include "rocksdb/utilities/memory_util.h"
#include "rocksdb/utilities/options_util.h"
#include "rocksdb/utilities/write_batch_with_index.h"

using namespace rocksdb;  // NOLINT

namespace {

std::string Value(DB* db, const std::string& key) {
  std::string value;
  const Status status = db->Get(ReadOptions(), key, &value);
  return status.ok() ? value : status.ToString();
}

void Statuses() {
  CHECK(Status::OK().ToString() == "OK");
  CHECK(Status::NotFound("key").ToString() == "NotFound: key");
  CHECK(Status::IOError("a", "b").ToString() == "IO error: a: b");
  CHECK(Status::TimedOut(Status::kLockTimeout).ToString() ==
        "Operation timed out: Timeout waiting to lock key");
  Status copy = Status::Busy(Status::kDeadlock);
  CHECK(copy.IsDeadlock() && copy.IsBusy());
  const Status moved = std::move(copy);
  CHECK(moved.IsDeadlock());
  CHECK(Slice("abc").compare("abd") < 0 && Slice("ab").compare("abc") < 0);
  CHECK(Slice("\x01\xff", 2).ToString(true) == "01FF");
  std::string bytes;
  CHECK(Slice("01fF").DecodeHex(&bytes) && bytes == std::string("\x01\xff", 2));
  CHECK(!Slice("0g").DecodeHex(&bytes));
}

void Calls() {
  const std::string path = Fresh("cxx_calls");
  Options options;
  std::unique_ptr<DB> db;
  Status status = DB::Open(options, path, &db);
  CHECK(status.IsInvalidArgument() && db == nullptr);
  options.create_if_missing = true;
  CHECK_OK(DB::Open(options, path, &db));
  CHECK_OK(db->Put(WriteOptions(), "a", "1"));
  CHECK_OK(db->Put(WriteOptions(), Slice("b\0c", 3), "2"));
  CHECK(Value(db.get(), "a") == "1");
  CHECK(Value(db.get(), std::string("b\0c", 3)) == "2");
  CHECK(Value(db.get(), "x") == "NotFound: ");
  CHECK_OK(db->Delete(WriteOptions(), "a"));
  CHECK_OK(db->SingleDelete(WriteOptions(), Slice("b\0c", 3)));
  for (char c = 'a'; c <= 'j'; ++c) {
    CHECK_OK(db->Put(WriteOptions(), std::string(1, c), std::string(3, c)));
  }
  CHECK_OK(db->DeleteRange(WriteOptions(), "c", "e"));
  std::vector<std::string> values;
  const auto statuses = db->MultiGet(ReadOptions(), {"a", "c", "e"}, &values);
  CHECK(statuses[0].ok() && statuses[1].IsNotFound() && statuses[2].ok());
  CHECK(values[0] == "aaa" && values[1].empty() && values[2] == "eee");
  PinnableSlice pinned;
  CHECK_OK(db->Get(ReadOptions(), db->DefaultColumnFamily(), "a", &pinned));
  PinnableSlice moved = std::move(pinned);
  CHECK(moved == "aaa");
  bool found = false;
  std::string may;
  CHECK(db->KeyMayExist(ReadOptions(), "a", &may, &found));
  // A null family is an error, not a crash.
  CHECK(db->Put(WriteOptions(), nullptr, "a", "1").IsInvalidArgument());
  WriteOptions unlogged;
  unlogged.disableWAL = true;
  unlogged.sync = true;
  CHECK(db->Put(unlogged, "a", "1").IsInvalidArgument());
  CHECK_OK(db->Close());
  CHECK(!db->Put(WriteOptions(), "a", "1").ok());
  std::string after;
  CHECK(!db->Get(ReadOptions(), nullptr, "a", &after).ok());
  db.reset();
  DB* raw = nullptr;
  CHECK_OK(DB::OpenForReadOnly(options, path, &raw));
  CHECK(Value(raw, "j") == "jjj");
  CHECK(raw->Put(WriteOptions(), "k", "k").IsNotSupported());
  delete raw;
  CHECK_OK(DestroyDB(path, options));
}

void Iterators() {
  const std::string path = Fresh("cxx_iterators");
  Options options;
  options.create_if_missing = true;
  std::unique_ptr<DB> db;
  CHECK_OK(DB::Open(options, path, &db));
  for (int i = 0; i < 100; ++i) {
    CHECK_OK(db->Put(WriteOptions(), "k" + std::to_string(100 + i), std::to_string(i)));
  }
  std::unique_ptr<Iterator> it(db->NewIterator(ReadOptions()));
  int count = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    CHECK(it->value() == std::to_string(count));
    ++count;
  }
  CHECK_OK(it->status());
  CHECK(count == 100);
  it->SeekForPrev("k1505");
  CHECK(it->Valid() && it->key() == "k150");
  it->Prev();
  CHECK(it->key() == "k149");
  it->SeekToLast();
  CHECK(it->key() == "k199");
  const Snapshot* snapshot = db->GetSnapshot();
  CHECK_OK(db->Put(WriteOptions(), "k100", "changed"));
  ReadOptions at;
  at.snapshot = snapshot;
  std::string value;
  CHECK_OK(db->Get(at, "k100", &value));
  CHECK(value == "0" && Value(db.get(), "k100") == "changed");
  CHECK(snapshot->GetSequenceNumber() + 1 == db->GetLatestSequenceNumber());
  db->ReleaseSnapshot(snapshot);
  const Slice upper("k110");
  ReadOptions bounded;
  bounded.iterate_upper_bound = &upper;
  std::unique_ptr<Iterator> few(db->NewIterator(bounded));
  count = 0;
  for (few->SeekToFirst(); few->Valid(); few->Next()) ++count;
  CHECK(count == 10);
  CHECK_OK(few->Refresh());
  std::unique_ptr<Iterator> none(NewErrorIterator(Status::Corruption("x")));
  CHECK(!none->Valid() && none->status().IsCorruption());
}

void Families() {
  const std::string path = Fresh("cxx_families");
  Options options;
  options.create_if_missing = true;
  std::unique_ptr<DB> db;
  CHECK_OK(DB::Open(options, path, &db));
  ColumnFamilyHandle* one = nullptr;
  ColumnFamilyOptions small;
  small.write_buffer_size = 1 << 20;
  small.comparator = ReverseBytewiseComparator();
  CHECK_OK(db->CreateColumnFamily(small, "one", &one));
  CHECK(one->GetName() == "one" && one->GetID() == 1);
  CHECK(one->GetComparator() == ReverseBytewiseComparator());
  ColumnFamilyHandle* twice = one;
  CHECK(!db->CreateColumnFamily(small, "one", &twice).ok() && twice == nullptr);
  CHECK_OK(db->DestroyColumnFamilyHandle(one));
  db.reset();

  std::vector<std::string> names;
  CHECK_OK(DB::ListColumnFamilies(options, path, &names));
  CHECK(names.size() == 2);
  std::vector<ColumnFamilyHandle*> handles;
  CHECK_OK(DB::Open(DBOptions(options), path,
                    {{kDefaultColumnFamilyName, ColumnFamilyOptions()}, {"one", small}}, &handles,
                    &db));
  WriteBatch batch;
  CHECK_OK(batch.Put(handles[0], "a", "default"));
  CHECK_OK(batch.Put(handles[1], "a", "one"));
  CHECK_OK(batch.Put(handles[1], "b", "two"));
  CHECK_OK(db->Write(WriteOptions(), &batch));
  std::unique_ptr<Iterator> it(db->NewIterator(ReadOptions(), handles[1]));
  it->SeekToFirst();
  CHECK(it->key() == "b");
  it.reset();
  Options now = db->GetOptions(handles[1]);
  CHECK(now.write_buffer_size == 1 << 20 && now.comparator == ReverseBytewiseComparator());
  CHECK_OK(db->SetOptions(handles[1], {{"write_buffer_size", "2097152"}}));
  CHECK(db->GetOptions(handles[1]).write_buffer_size == 2 << 20);
  CHECK(db->SetOptions(handles[1], {{"no_such_option", "1"}}).IsInvalidArgument());
  CHECK_OK(db->SetDBOptions({{"max_background_jobs", "3"}}));
  CHECK(db->GetDBOptions().max_background_jobs == 3);
  CHECK_OK(db->Flush(FlushOptions(), handles));
  ColumnFamilyMetaData data;
  db->GetColumnFamilyMetaData(handles[1], &data);
  CHECK(data.name == "one" && data.file_count == 1);
  std::vector<LiveFileMetaData> files;
  db->GetLiveFilesMetaData(&files);
  CHECK(files.size() == 2 && files[0].name[0] == '/');
  CHECK_OK(db->DropColumnFamily(handles[1]));
  CHECK(db->DestroyColumnFamilyHandle(db->DefaultColumnFamily()).IsInvalidArgument());
  for (ColumnFamilyHandle* handle : handles) CHECK_OK(db->DestroyColumnFamilyHandle(handle));
}

class Printer : public WriteBatch::Handler {
 public:
  Status PutCF(uint32_t family, const Slice& key, const Slice& value) override {
    return Add("put", family, key, value);
  }
  Status DeleteCF(uint32_t family, const Slice& key) override {
    return Add("delete", family, key, "");
  }
  Status SingleDeleteCF(uint32_t family, const Slice& key) override {
    return Add("single", family, key, "");
  }
  Status MergeCF(uint32_t family, const Slice& key, const Slice& value) override {
    return Add("merge", family, key, value);
  }
  Status DeleteRangeCF(uint32_t family, const Slice& begin, const Slice& end) override {
    return Add("range", family, begin, end);
  }
  void LogData(const Slice& blob) override { seen += "log(" + blob.ToString() + ")"; }
  std::string seen;

 private:
  Status Add(const char* what, uint32_t family, const Slice& a, const Slice& b) {
    seen += std::string(what) + std::to_string(family) + "(" + a.ToString() + "," +
            b.ToString() + ")";
    return Status::OK();
  }
};

void Batches() {
  WriteBatch batch;
  CHECK_OK(batch.Put("a", "1"));
  CHECK_OK(batch.Merge("b", std::string(200, 'm')));
  CHECK_OK(batch.PutLogData("note"));
  batch.SetSavePoint();
  CHECK_OK(batch.Delete("c"));
  CHECK_OK(batch.RollbackToSavePoint());
  CHECK(batch.RollbackToSavePoint().IsNotFound());
  CHECK_OK(batch.SingleDelete("d"));
  CHECK_OK(batch.DeleteRange("e", "f"));
  CHECK(batch.Count() == 4 && batch.HasMerge() && !batch.HasDelete() && batch.HasDeleteRange());
  Printer printer;
  CHECK_OK(batch.Iterate(&printer));
  CHECK(printer.seen == "put0(a,1)merge0(b," + std::string(200, 'm') +
                            ")log(note)single0(d,)range0(e,f)");
  const WriteBatch copy(batch.Data());
  CHECK(copy.Count() == 4);
  WriteBatch moved(std::move(batch));
  CHECK(moved.Count() == 4 && batch.Count() == 0);
  batch = moved;
  CHECK(batch.Count() == 4 && batch.GetDataSize() == moved.GetDataSize());
  std::string damaged = moved.Data();
  damaged.resize(damaged.size() - 1);
  CHECK(!WriteBatch(damaged).Iterate(&printer).ok() || WriteBatch(damaged).Count() == 0);
  const Slice parts[] = {"one", "two"};
  WriteBatch joined;
  CHECK_OK(joined.Put(SliceParts(parts, 2), SliceParts(parts, 1)));
  Printer of_parts;
  CHECK_OK(joined.Iterate(&of_parts));
  CHECK(of_parts.seen == "put0(onetwo,one)");

  const std::string path = Fresh("cxx_batches");
  Options options;
  options.create_if_missing = true;
  std::unique_ptr<DB> db;
  CHECK_OK(DB::Open(options, path, &db));
  CHECK_OK(db->Put(WriteOptions(), "b", "db"));
  CHECK(db->Write(WriteOptions(), nullptr).IsInvalidArgument());
  WriteBatchWithIndex indexed(BytewiseComparator(), 0, true);
  CHECK_OK(indexed.Put("a", "batch"));
  CHECK_OK(indexed.Delete("b"));
  std::string value;
  CHECK_OK(indexed.GetFromBatch(options, "a", &value));
  CHECK(value == "batch");
  CHECK(indexed.GetFromBatchAndDB(db.get(), ReadOptions(), "b", &value).IsNotFound());
  std::unique_ptr<Iterator> it(
      indexed.NewIteratorWithBase(db->DefaultColumnFamily(), db->NewIterator(ReadOptions())));
  it->SeekToFirst();
  CHECK(it->Valid() && it->key() == "a");
  it->Next();
  CHECK(!it->Valid());
  it.reset();
  CHECK_OK(db->Write(WriteOptions(), indexed.GetWriteBatch()));
  CHECK(Value(db.get(), "a") == "batch");
}

class OwnTables : public TableFactory {
 public:
  const char* Name() const override { return "OwnTables"; }
};

void OptionText() {
  ColumnFamilyOptions family;
  CHECK_OK(GetColumnFamilyOptionsFromString(
      ConfigOptions(), family,
      "write_buffer_size=123456;compression=kZSTD;compression_opts={level=3;};"
      "compression_per_level=kNoCompression:kZSTD;block_based_table_factory={block_size=8192;}",
      &family));
  CHECK(family.write_buffer_size == 123456 && family.compression == kZSTD);
  CHECK(family.compression_opts.level == 3 && family.compression_per_level.size() == 2);
  CHECK(family.table_factory->GetOptions<BlockBasedTableOptions>()->block_size == 8192);
  CHECK(GetColumnFamilyOptionsFromString(ConfigOptions(), family, "no_such=1", &family)
            .IsInvalidArgument());
  Options options;
  options.IncreaseParallelism(5);
  CHECK(options.max_background_jobs == 5);
  options.OptimizeLevelStyleCompaction();
  CHECK(options.write_buffer_size == 128 << 20 && options.compression_per_level.size() == 7);
  std::string text;
  CHECK_OK(GetStringFromDBOptions(ConfigOptions(), options, &text));
  CHECK(text.find("max_background_jobs=5;") != std::string::npos);
  // What is refused says so by name.
  options.create_if_missing = true;
  options.allow_ingest_behind = true;
  std::unique_ptr<DB> db;
  Status status = DB::Open(options, Fresh("cxx_refused"), &db);
  CHECK(!status.ok() && status.ToString().find("allow_ingest_behind") != std::string::npos);
  options.allow_ingest_behind = false;
  options.table_factory = std::make_shared<OwnTables>();
  status = DB::Open(options, Fresh("cxx_refused"), &db);
  CHECK(status.IsNotSupported() && status.ToString().find("OwnTables") != std::string::npos);
  // Tables of RocksDB's other formats are written block-based.
  options.table_factory.reset(NewCuckooTableFactory());
  CHECK_OK(DB::Open(options, Fresh("cxx_cuckoo"), &db));
}

void Shared() {
  const std::string path = Fresh("cxx_shared");
  Options options;
  options.create_if_missing = true;
  options.statistics = CreateDBStatistics();
  options.rate_limiter.reset(NewGenericRateLimiter(100 << 20));
  options.write_buffer_manager = std::make_shared<WriteBufferManager>(64 << 20);
  options.sst_file_manager.reset(NewSstFileManager(Env::Default()));
  options.prefix_extractor.reset(NewFixedPrefixTransform(2));
  BlockBasedTableOptions table;
  table.block_cache = NewLRUCache(4 << 20);
  table.filter_policy.reset(NewBloomFilterPolicy(10));
  table.block_size = 1024;
  options.table_factory.reset(NewBlockBasedTableFactory(table));
  std::unique_ptr<DB> db;
  CHECK_OK(DB::Open(options, path, &db));
  for (int i = 0; i < 1000; ++i) {
    CHECK_OK(db->Put(WriteOptions(), "key" + std::to_string(i), std::string(100, 'v')));
  }
  CHECK_OK(db->Flush(FlushOptions()));
  CHECK(Value(db.get(), "key500") == std::string(100, 'v'));
  CHECK(options.statistics->getTickerCount(NUMBER_KEYS_WRITTEN) == 1000);
  CHECK(options.statistics->getAndResetTickerCount(NUMBER_KEYS_WRITTEN) == 1000);
  CHECK(options.statistics->getTickerCount(NUMBER_KEYS_WRITTEN) == 0);
  HistogramData data;
  options.statistics->histogramData(DB_WRITE, &data);
  CHECK(data.count > 0);
  CHECK(table.block_cache->GetUsage() > 0 && table.block_cache->GetCapacity() == 4 << 20);
  CHECK(options.write_buffer_manager->buffer_size() == 64 << 20);
  std::string text;
  CHECK(db->GetProperty(DB::Properties::kStats, &text) && !text.empty());
  uint64_t number = 0;
  CHECK(db->GetIntProperty("rocksdb.estimate-num-keys", &number) && number == 1000);
  CHECK(!db->GetProperty("rocksdb.none", &text));
  std::map<std::string, std::string> values;
  CHECK(db->GetMapProperty(DB::Properties::kCFStats, &values) && !values.empty());
  const Range range("key0", "key9");
  CHECK_OK(db->GetApproximateSizes(&range, 1, &number));
  CHECK(number > 0);
  CHECK_OK(db->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  CHECK_OK(db->VerifyChecksum());
  std::map<MemoryUtil::UsageType, uint64_t> usage;
  CHECK_OK(MemoryUtil::GetApproximateMemoryUsageByType({db.get()}, {table.block_cache.get()},
                                                       &usage));
  CHECK(usage[MemoryUtil::kCacheTotal] > 0);
  CHECK_OK(options.statistics->Reset());
  CHECK(options.statistics->getTickerCount(BLOCK_CACHE_HIT) == 0);
}

void Copies() {
  const std::string path = Fresh("cxx_copies");
  Options options;
  options.create_if_missing = true;
  std::unique_ptr<DB> db;
  CHECK_OK(DB::Open(options, path, &db));
  CHECK_OK(db->Put(WriteOptions(), "a", "1"));
  Checkpoint* made = nullptr;
  CHECK_OK(Checkpoint::Create(db.get(), &made));
  const std::unique_ptr<Checkpoint> checkpoint(made);
  const std::string copy = Fresh("cxx_checkpoint");
  CHECK_OK(checkpoint->CreateCheckpoint(copy));
  std::unique_ptr<DB> other;
  CHECK_OK(DB::Open(options, copy, &other));
  CHECK(Value(other.get(), "a") == "1");
  other.reset();

  BackupEngine* opened = nullptr;
  CHECK_OK(BackupEngine::Open(BackupEngineOptions(Fresh("cxx_backups")), Env::Default(),
                              &opened));
  const std::unique_ptr<BackupEngine> backups(opened);
  BackupID id = 0;
  CHECK_OK(backups->CreateNewBackupWithMetadata(CreateBackupOptions(), db.get(), "mark", &id));
  CHECK_OK(db->Put(WriteOptions(), "a", "2"));
  CHECK_OK(backups->CreateNewBackup(db.get(), true));
  std::vector<BackupInfo> infos;
  backups->GetBackupInfo(&infos);
  CHECK(infos.size() == 2 && infos[0].backup_id == id && infos[0].app_metadata == "mark");
  CHECK_OK(backups->VerifyBackup(2));
  CHECK(!backups->VerifyBackup(7).ok());
  db.reset();
  CHECK_OK(backups->RestoreDBFromBackup(1, path, path));
  CHECK_OK(DB::Open(options, path, &db));
  CHECK(Value(db.get(), "a") == "1");
  db.reset();
  CHECK_OK(backups->DeleteBackup(1));
  CHECK_OK(backups->PurgeOldBackups(1));
  backups->GetBackupInfo(&infos);
  CHECK(infos.size() == 1 && infos[0].backup_id == 2);

  const std::string file = Fresh("cxx_table.sst");
  SstFileWriter writer(EnvOptions(), options);
  CHECK_OK(writer.Open(file));
  CHECK_OK(writer.Put("b", "ingested"));
  CHECK_OK(writer.Put("c", "ingested"));
  CHECK(!writer.Put("a", "late").ok());
  ExternalSstFileInfo info;
  CHECK_OK(writer.Finish(&info));
  CHECK(info.num_entries == 2 && info.smallest_key == "b" && info.largest_key == "c");
  CHECK_OK(DB::Open(options, path, &db));
  CHECK_OK(db->IngestExternalFile({file}, IngestExternalFileOptions()));
  CHECK(Value(db.get(), "b") == "ingested");

  DBOptions of_db;
  std::vector<ColumnFamilyDescriptor> families;
  CHECK_OK(LoadLatestOptions(ConfigOptions(), path, &of_db, &families));
  CHECK(families.size() == 1 && of_db.create_if_missing);
  std::string name;
  CHECK_OK(GetLatestOptionsFileName(path, Env::Default(), &name));
  CHECK(name.rfind("OPTIONS-", 0) == 0);
  CHECK(!LoadLatestOptions(ConfigOptions(), "/nowhere", &of_db, &families).ok());
}

void Logs() {
  Options options;
  options.create_if_missing = true;
  DBWithTTL* opened = nullptr;
  CHECK_OK(DBWithTTL::Open(options, Fresh("cxx_ttl"), &opened, 3600));
  const std::unique_ptr<DBWithTTL> expiring(opened);
  CHECK_OK(expiring->Put(WriteOptions(), "a", "1"));
  CHECK(Value(expiring.get(), "a") == "1");
  ColumnFamilyHandle* family = nullptr;
  CHECK_OK(expiring->CreateColumnFamilyWithTtl(ColumnFamilyOptions(), "one", &family, 60));
  CHECK_OK(expiring->DestroyColumnFamilyHandle(family));

  std::unique_ptr<DB> db;
  CHECK_OK(DB::Open(options, Fresh("cxx_logs"), &db));
  WriteBatch batch;
  CHECK_OK(batch.Put("a", "1"));
  CHECK_OK(batch.Put("b", "2"));
  CHECK_OK(db->Write(WriteOptions(), &batch));
  CHECK_OK(db->Delete(WriteOptions(), "a"));
  std::unique_ptr<TransactionLogIterator> updates;
  CHECK_OK(db->GetUpdatesSince(1, &updates));
  CHECK(updates->Valid());
  const BatchResult first = updates->GetBatch();
  CHECK(first.sequence == 1 && first.writeBatchPtr->Count() == 2);
  updates->Next();
  CHECK(updates->Valid() && updates->GetBatch().writeBatchPtr->HasDelete());
  CHECK_OK(updates->status());

  SetPerfLevel(kEnableCount);
  get_perf_context()->Reset();
  CHECK(Value(db.get(), "b") == "2");
  CHECK(get_perf_context()->get_from_memtable_count == 1);
  CHECK(!get_perf_context()->ToString(true).empty());
  SetPerfLevel(kDisable);
  CHECK(GetPerfLevel() == kDisable);
}

}  // namespace

int main() {
  Statuses();
  Calls();
  Iterators();
  Families();
  Batches();
  OptionText();
  Shared();
  Copies();
  Logs();
  std::puts("basics: ok");
}
