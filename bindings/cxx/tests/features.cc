// What the engine's C interface has and the basics do not use: filters of tables and logs, families
// that are imported, files, timestamps, memory, and what is refused by name.

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "check.h"
#include "rocksdb/db.h"
#include "rocksdb/experimental.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/iostats_context.h"
#include "rocksdb/perf_context.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/user_defined_index.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/utilities/optimistic_transaction_db.h"
#include "rocksdb/utilities/table_properties_collectors.h"
#include "rocksdb/utilities/transaction_db.h"
#include "rocksdb/utilities/write_batch_with_index.h"
#include "rocksdb/wal_filter.h"

using namespace rocksdb;  // NOLINT

namespace {

std::string Value(DB* db, const std::string& key, const ReadOptions& options = ReadOptions()) {
  std::string value;
  const Status status = db->Get(options, key, &value);
  return status.ok() ? value : status.ToString();
}

void TableFilters() {
  auto db = Opened(Creating(), Fresh("cxx_table_filter"));
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k <= i; ++k) {
      CHECK_OK(db->Put(WriteOptions(), std::string(1, static_cast<char>('a' + 2 * i + k)), "v"));
    }
    CHECK_OK(db->Flush(FlushOptions()));
  }
  std::unique_ptr<Iterator> it;
  {
    // The iterator keeps the function when the options are gone.
    const auto large = std::make_shared<uint64_t>(2);
    ReadOptions options;
    options.table_filter = [large](const TableProperties& table) {
      return table.num_entries >= *large;
    };
    it.reset(db->NewIterator(options));
  }
  std::string seen;
  for (it->SeekToFirst(); it->Valid(); it->Next()) seen += it->key().ToString();
  CHECK(seen == "cd");
}

// Leaves records with "drop" out, and puts "new" for "old".
class Logs : public WalFilter {
 public:
  const char* Name() const override { return "Logs"; }
  void ColumnFamilyLogNumberMap(const std::map<uint32_t, uint64_t>& logs,
                                const std::map<std::string, uint32_t>& ids) override {
    families = logs.size();
    has_default = ids.count("default") == 1;
  }
  WalProcessingOption LogRecordFound(unsigned long long, const std::string& file,
                                     const WriteBatch& batch, WriteBatch* new_batch,
                                     bool* batch_changed) override {
    CHECK(file.find(".log") != std::string::npos);
    if (batch.Data().find("drop") != std::string::npos) {
      return WalProcessingOption::kIgnoreCurrentRecord;
    }
    if (batch.Data().find("old") != std::string::npos) {
      // A batch that is moved in counts, too.
      WriteBatch replacement;
      CHECK_OK(replacement.Put("old", "new"));
      *new_batch = std::move(replacement);
      *batch_changed = true;
    }
    return WalProcessingOption::kContinueProcessing;
  }

  size_t families = 0;
  bool has_default = false;
};

void LogFilters() {
  const std::string path = Fresh("cxx_wal_filter");
  {
    auto db = Opened(Creating(), path);
    for (const char* key : {"keep", "drop", "old"}) {
      CHECK_OK(db->Put(WriteOptions(), key, "v"));
    }
    VectorWalPtr logs;
    CHECK_OK(db->GetSortedWalFiles(logs));
    CHECK(logs.size() == 1 && logs[0]->Type() == kAliveLogFile);
    std::unique_ptr<WalFile> log;
    CHECK_OK(db->GetCurrentWalFile(&log));
    CHECK(log->LogNumber() == logs[0]->LogNumber() && log->PathName() == logs[0]->PathName());
  }
  Logs filter;
  Options options = Creating();
  options.wal_filter = &filter;
  auto db = Opened(options, path);
  CHECK(filter.families == 1 && filter.has_default);
  CHECK(Value(db.get(), "keep") == "v");
  CHECK(Value(db.get(), "drop") == "NotFound: ");
  CHECK(Value(db.get(), "old") == "new");
}

void Imports() {
  auto db = Opened(Creating(), Fresh("cxx_export"));
  CHECK_OK(db->Put(WriteOptions(), "a", "1"));
  CHECK_OK(db->Put(WriteOptions(), "z", "2"));
  Checkpoint* made = nullptr;
  CHECK_OK(Checkpoint::Create(db.get(), &made));
  const std::unique_ptr<Checkpoint> checkpoint(made);
  ExportImportFilesMetaData* exported = nullptr;
  CHECK_OK(checkpoint->ExportColumnFamily(db->DefaultColumnFamily(), Fresh("cxx_exported"),
                                          &exported));
  const std::unique_ptr<ExportImportFilesMetaData> files(exported);
  CHECK(files->files.size() == 1 && files->files[0].smallestkey == "a");
  CHECK(files->db_comparator_name == BytewiseComparator()->Name());
  ColumnFamilyHandle* handle = nullptr;
  CHECK_OK(db->CreateColumnFamilyWithImport(ColumnFamilyOptions(), "copy",
                                            ImportColumnFamilyOptions(), *files, &handle));
  const std::unique_ptr<ColumnFamilyHandle> copy(handle);
  std::string value;
  CHECK_OK(db->Get(ReadOptions(), copy.get(), "z", &value));
  CHECK(value == "2");

  ColumnFamilyMetaData data;
  GetColumnFamilyMetaDataOptions beyond;
  beyond.range.start = "zz";
  db->GetColumnFamilyMetaData(copy.get(), beyond, &data);
  CHECK(data.file_count == 0);
  db->GetColumnFamilyMetaData(copy.get(), GetColumnFamilyMetaDataOptions(), &data);
  CHECK(data.file_count == 1);
  std::vector<LiveFileStorageInfo> storage;
  CHECK_OK(db->GetLiveFilesStorageInfo(LiveFilesStorageInfoOptions(), &storage));
  std::set<FileType> types;
  for (const LiveFileStorageInfo& file : storage) types.insert(file.file_type);
  CHECK(types.count(kTableFile) == 1 && types.count(kCurrentFile) == 1);
}

std::string Table(const std::string& name, const std::string& key) {
  const std::string path = Fresh(name);
  SstFileWriter writer{EnvOptions(), Options()};
  CHECK_OK(writer.Open(path));
  CHECK_OK(writer.Put(key, name));
  CHECK_OK(writer.Finish());
  return path;
}

void Ingestion() {
  auto db = Opened(Creating(), Fresh("cxx_ingest"));
  ColumnFamilyHandle* handle = nullptr;
  CHECK_OK(db->CreateColumnFamily(ColumnFamilyOptions(), "other", &handle));
  const std::unique_ptr<ColumnFamilyHandle> other(handle);
  IngestExternalFileArg first;
  first.column_family = db->DefaultColumnFamily();
  first.external_files = {Table("cxx_one.sst", "a"), Table("cxx_two.sst", "b")};
  IngestExternalFileArg second;
  second.column_family = other.get();
  second.external_files = {"/no/such/file.sst"};
  CHECK(!db->IngestExternalFiles({first, second}).ok());
  CHECK(Value(db.get(), "a") == "NotFound: ");
  second.external_files = {Table("cxx_three.sst", "a")};
  CHECK_OK(db->IngestExternalFiles({first, second}));
  CHECK(Value(db.get(), "b") == "cxx_two.sst");
  std::string value;
  CHECK_OK(db->Get(ReadOptions(), other.get(), "a", &value));
  CHECK(value == "cxx_three.sst");
}

std::string Stamp(uint64_t time) {
  std::string stamp(sizeof(time), '\0');
  std::memcpy(&stamp[0], &time, sizeof(time));
  return stamp;
}

void Timestamps() {
  Options options = Creating();
  options.comparator = BytewiseComparatorWithU64Ts();
  auto db = Opened(options, Fresh("cxx_stamps"));
  ColumnFamilyHandle* family = db->DefaultColumnFamily();
  const auto size_of = [](uint32_t) { return sizeof(uint64_t); };
  WriteBatch batch(0, 0, 0, sizeof(uint64_t));
  CHECK_OK(batch.Put(family, "a", "one"));
  CHECK_OK(batch.UpdateTimestamps(Stamp(1), size_of));
  CHECK_OK(db->Write(WriteOptions(), &batch));
  CHECK_OK(db->Put(WriteOptions(), "a", Stamp(2), "two"));
  CHECK_OK(db->Delete(WriteOptions(), "a", Stamp(3)));

  std::string time = Stamp(2);
  const Slice at(time);
  ReadOptions read;
  read.timestamp = &at;
  std::string value;
  std::string stamp;
  CHECK_OK(db->Get(read, "a", &value, &stamp));
  CHECK(value == "two" && stamp == Stamp(2));
  std::vector<std::string> values;
  std::vector<std::string> stamps;
  const auto statuses = db->MultiGet(read, {Slice("a"), Slice("b")}, &values, &stamps);
  CHECK(statuses[0].ok() && values[0] == "two" && stamps[0] == Stamp(2));
  CHECK(statuses[1].IsNotFound());
  time = Stamp(3);
  CHECK(Value(db.get(), "a", read) == "NotFound: ");
  CHECK_OK(db->IncreaseFullHistoryTsLow(family, Stamp(2)));
  CHECK_OK(db->GetFullHistoryTsLow(family, &stamp));
  CHECK(stamp == Stamp(2));
}

// The batch of a transaction takes changes, and the transaction commits them.
void BatchesOfTransactions() {
  TransactionDB* opened = nullptr;
  CHECK_OK(TransactionDB::Open(Creating(), TransactionDBOptions(), Fresh("cxx_batch_of"), &opened));
  const std::unique_ptr<TransactionDB> db(opened);
  const std::unique_ptr<Transaction> txn(db->BeginTransaction(WriteOptions()));
  CHECK_OK(txn->Put("a", "1"));
  CHECK_OK(txn->GetWriteBatch()->Put("b", "2"));
  CHECK(txn->GetWriteBatch()->GetWriteBatch()->Count() == 2);
  std::vector<std::string> values;
  const auto statuses =
      txn->MultiGetForUpdate(ReadOptions(), {Slice("a"), Slice("none")}, &values);
  CHECK(statuses[0].ok() && values[0] == "1" && !statuses[1].ok());
  CHECK_OK(txn->Commit());
  CHECK(Value(db.get(), "b") == "2");

  OptimisticTransactionDBOptions with;
  with.shared_lock_buckets = MakeSharedOccLockBuckets(64, true);
  CHECK(with.shared_lock_buckets->ApproximateMemoryUsage() > 0);
}

void Parts() {
  const Slice pieces[] = {"ke", "y"};
  WriteBatch batch;
  CHECK_OK(batch.Merge(SliceParts(pieces, 2), SliceParts(pieces, 1)));
  CHECK_OK(batch.DeleteRange(SliceParts(pieces, 1), SliceParts(pieces, 2)));
  CHECK_OK(batch.SingleDelete(SliceParts(pieces, 2)));
  CHECK(batch.Count() == 3 && batch.HasMerge() && batch.HasDeleteRange());
  CHECK(batch.Data().find("key") != std::string::npos);
}

// A policy of the application's own that chooses one that is built in.
class Chosen : public FilterPolicy {
 public:
  const char* Name() const override { return "Chosen"; }
  FilterBitsBuilder* GetBuilderWithContext(const FilterBuildingContext& of) const override {
    return bloom_->GetBuilderWithContext(of);
  }

 private:
  std::unique_ptr<const FilterPolicy> bloom_{NewBloomFilterPolicy(10)};
};

void Figures() {
  Options options = Creating();
  BlockBasedTableOptions table;
  table.filter_policy = std::make_shared<Chosen>();
  options.table_factory.reset(NewBlockBasedTableFactory(table));
  options.table_properties_collector_factories.push_back(
      NewCompactOnDeletionCollectorFactory(10, 5));
  options.sst_partitioner_factory = NewSstPartitionerFixedPrefixFactory(1);
  options.file_checksum_gen_factory = GetFileChecksumGenCrc32cFactory();
  auto db = Opened(options, Fresh("cxx_figures"));
  for (int i = 0; i < 100; ++i) CHECK_OK(db->Put(WriteOptions(), std::to_string(i), "v"));
  CHECK_OK(db->Flush(FlushOptions()));
  CHECK_OK(db->VerifyFileChecksums(ReadOptions()));

  PerfContext* now = get_perf_context();
  now->Reset();
  const PerfContext before = *now;
  for (int i = 0; i < 50; ++i) CHECK(Value(db.get(), std::to_string(i) + "x") == "NotFound: ");
  CHECK(now->bloom_sst_miss_count > 30);
  CHECK(before.bloom_sst_miss_count == 0);
  now->bloom_sst_miss_count = 7;
  CHECK(now->bloom_sst_miss_count == 7);
}

// Counts entries by kind, and asks for the compaction of tables with deletions.
class Counts : public TablePropertiesCollector {
 public:
  explicit Counts(std::atomic<int>* alive) : alive_(alive) { ++*alive_; }
  ~Counts() override { --*alive_; }
  const char* Name() const override { return "Counts"; }
  Status AddUserKey(const Slice& key, const Slice&, EntryType type, SequenceNumber sequence,
                    uint64_t) override {
    CHECK(!key.empty() && sequence <= kMaxSequenceNumber);
    ++(type == kEntryPut ? puts_ : deletions_);
    return Status::OK();
  }
  Status Finish(UserCollectedProperties* properties) override {
    (*properties)["counts.deletions"] = std::to_string(deletions_);
    (*properties)["counts.puts"] = std::to_string(puts_);
    return Status::OK();
  }
  UserCollectedProperties GetReadableProperties() const override { return {}; }
  bool NeedCompact() const override { return deletions_ > 0; }

 private:
  std::atomic<int>* alive_;
  int puts_ = 0;
  int deletions_ = 0;
};

class CountsFactory : public TablePropertiesCollectorFactory {
 public:
  const char* Name() const override { return "CountsFactory"; }
  TablePropertiesCollector* CreateTablePropertiesCollector(Context context) override {
    CHECK(context.column_family_id == 0);
    ++made;
    return new Counts(&alive);
  }
  std::atomic<int> made{0};
  std::atomic<int> alive{0};
};

void Collected() {
  const auto factory = std::make_shared<CountsFactory>();
  {
    Options options = Creating();
    options.level0_file_num_compaction_trigger = 100;
    options.table_properties_collector_factories.push_back(factory);
    auto db = Opened(options, Fresh("cxx_collected"));
    for (const char* key : {"a", "b", "c"}) CHECK_OK(db->Put(WriteOptions(), key, "1"));
    CHECK_OK(db->Flush(FlushOptions()));
    CHECK_OK(db->Put(WriteOptions(), "x", "1"));
    CHECK_OK(db->Flush(FlushOptions()));
    TablePropertiesCollection tables;
    CHECK_OK(db->GetPropertiesOfAllTables(&tables));
    CHECK(tables.size() == 2);
    const Range range("w", "z");
    tables.clear();
    CHECK_OK(db->GetPropertiesOfTablesInRange(db->DefaultColumnFamily(), &range, 1, &tables));
    CHECK(tables.size() == 1);
    const TableProperties& table = *tables.begin()->second;
    CHECK(table.user_collected_properties.at("counts.puts") == "1");
    CHECK(table.user_collected_properties.at("counts.deletions") == "0");
    // A file for a family: its collector is told which.
    SstFileWriter writer(EnvOptions(), options, db->DefaultColumnFamily());
    const std::string file = Fresh("cxx_collected_file");
    CHECK_OK(writer.Open(file));
    CHECK_OK(writer.Put("f", "1"));
    CHECK_OK(writer.Finish());
    CHECK_OK(db->IngestExternalFile({file}, IngestExternalFileOptions()));
    // A table with a deletion is compacted, although no trigger is reached.
    const int made = factory->made;
    CHECK_OK(db->Delete(WriteOptions(), "b"));
    CHECK_OK(db->Flush(FlushOptions()));
    CHECK_OK(db->WaitForCompact(WaitForCompactOptions()));
    CHECK(factory->made > made + 1);
    CHECK(factory.use_count() > 1);
  }
  CHECK(factory->alive == 0 && factory.use_count() == 1);
}

void Memory() {
  const std::unique_ptr<Env> env(NewMemEnv(Env::Default()));
  Options options = Creating();
  options.env = env.get();
  const std::string path = Fresh("cxx_in_memory");
  {
    auto db = Opened(options, path);
    CHECK_OK(db->Put(WriteOptions(), "a", "1"));
  }
  CHECK(Value(Opened(options, path).get(), "a") == "1");
  CHECK(!std::filesystem::exists(path));
  CHECK(env->DeleteFile("any").IsNotSupported());

  auto cache = NewLRUCache(1 << 20);
  cache->SetStrictCapacityLimit(true);
  CHECK(cache->HasStrictCapacityLimit());
}

class NoService : public CompactionService {
 public:
  const char* Name() const override { return "NoService"; }
};

// An environment of the application's own, which only looks.
class Watching : public EnvWrapper {
 public:
  using EnvWrapper::EnvWrapper;
  Status DeleteFile(const std::string& path) override {
    ++deletions;
    return EnvWrapper::DeleteFile(path);
  }
  int deletions = 0;
};

bool Refuses(const Options& options, const std::string& name) {
  std::unique_ptr<DB> db;
  const Status status = DB::Open(options, Fresh("cxx_refused"), &db);
  return status.IsNotSupported() && status.ToString().find(name) != std::string::npos;
}

void Refusals() {
  Options options = Creating();
  options.compaction_service = std::make_shared<NoService>();
  CHECK(Refuses(options, "compaction_service"));
  BlockBasedTableOptions table;
  CHECK_OK(UserDefinedIndexFactory::CreateFromString(ConfigOptions(), "trie_index",
                                                     &table.user_defined_index_factory));
  CHECK(UserDefinedIndexFactory::CreateFromString(ConfigOptions(), "no_index",
                                                  &table.user_defined_index_factory)
            .IsNotSupported());
  CHECK_OK(UserDefinedIndexFactory::CreateFromString(ConfigOptions(), "trie_index",
                                                     &table.user_defined_index_factory));
  options = Creating();
  options.table_factory.reset(NewBlockBasedTableFactory(table));
  CHECK(Refuses(options, "user_defined_index_factory"));

  Watching watching(Env::Default());
  options = Creating();
  options.env = &watching;
  CHECK(Refuses(options, "env"));
  CHECK(!watching.DeleteFile("/no/such/file").ok() && watching.deletions == 1);
  CHECK(get_iostats_context()->bytes_written == 0);

  auto db = Opened(Creating(), Fresh("cxx_refusals"));
  CHECK(db->EndTrace().IsNotSupported());
  CHECK(experimental::PromoteL0(db.get(), nullptr).IsNotSupported());
  CHECK_OK(experimental::SuggestCompactRange(db.get(), nullptr, nullptr));
  std::unique_ptr<TraceWriter> writer;
  CHECK(NewFileTraceWriter(Env::Default(), EnvOptions(), "trace", &writer).IsNotSupported());
  std::shared_ptr<MemoryAllocator> allocator;
  CHECK(NewJemallocNodumpAllocator(JemallocAllocatorOptions(), &allocator).IsNotSupported());
}

void Sets() {
  CompactionStyleSet set = {kCompactionStyleLevel, kCompactionStyleFIFO};
  CHECK(set.count() == 2 && set.Contains(kCompactionStyleFIFO));
  CHECK(set.Remove(kCompactionStyleFIFO) && !set.Remove(kCompactionStyleFIFO));
  CHECK(set.With(kCompactionStyleNone).count() == 2 && CompactionStyleSet::All().count() == 4);
  Options options = Creating();
  options.calculate_sst_write_lifetime_hint_set = {kCompactionStyleUniversal};
  options.checksum_handoff_file_types = {kTableFile, kBlobFile};
  auto db = Opened(options, Fresh("cxx_sets"));
  const DBOptions told = db->GetDBOptions();
  CHECK(told.calculate_sst_write_lifetime_hint_set == CompactionStyleSet{kCompactionStyleUniversal});
  CHECK(told.checksum_handoff_file_types == options.checksum_handoff_file_types);
}

}  // namespace

int main() {
  TableFilters();
  LogFilters();
  Imports();
  Ingestion();
  Timestamps();
  BatchesOfTransactions();
  Parts();
  Figures();
  Collected();
  Memory();
  Refusals();
  Sets();
  std::puts("features: ok");
}
