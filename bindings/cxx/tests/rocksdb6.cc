// Tests of what programs for RocksDB 6 use, as MyRocks does: calls and options by their old names
// and forms, and what of them is refused.

#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "check.h"
#include "rocksdb/db.h"
#include "rocksdb/persistent_cache.h"
#include "rocksdb/rate_limiter.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/statistics.h"
#include "rocksdb/thread_status.h"
#include "rocksdb/utilities/convenience.h"
#include "rocksdb/utilities/options_util.h"
#include "rocksdb/utilities/sim_cache.h"
#include "rocksdb/utilities/transaction_db.h"
#include "rocksdb/utilities/write_batch_with_index.h"

using namespace rocksdb;  // NOLINT

namespace {

const BlockBasedTableOptions& TableOf(const ColumnFamilyOptions& options) {
  return *options.table_factory->GetOptions<BlockBasedTableOptions>();
}

void Texts() {
  ColumnFamilyOptions base;
  BlockBasedTableOptions table;
  table.block_size = 32768;
  base.table_factory.reset(NewBlockBasedTableFactory(table));
  ColumnFamilyOptions made;
  const std::string text =
      "write_buffer_size=5m;prefix_extractor=capped:7;"
      "block_based_table_factory={filter_policy=bloomfilter:12:false}";
  CHECK_OK(GetColumnFamilyOptionsFromString(base, text, &made));
  CHECK(made.write_buffer_size == 5 << 20);
  CHECK(std::string(made.prefix_extractor->Name()) == "rocksdb.CappedPrefix.7");
  CHECK(TableOf(made).filter_policy != nullptr);
  // What the text does not name stays.
  CHECK(TableOf(made).block_size == 32768);
  CHECK_OK(GetColumnFamilyOptionsFromString(made, "prefix_extractor=rocksdb.FixedPrefix.3", &made));
  CHECK(std::string(made.prefix_extractor->Name()) == "rocksdb.FixedPrefix.3");
  CHECK(GetColumnFamilyOptionsFromString(made, "no_such_option=1", &made).IsInvalidArgument());
  CHECK(made.table_factory->GetPrintableOptions().find("  block_size: 32768\n") !=
        std::string::npos);

  std::unordered_map<std::string, std::string> pairs;
  CHECK_OK(StringToMap(" a = 1; b={c=2;d={e=3}} ; f=g", &pairs));
  CHECK(pairs.size() == 3 && pairs["a"] == "1" && pairs["b"] == "c=2;d={e=3}");
  CHECK(StringToMap("a={b", &pairs).IsInvalidArgument());
  CHECK(StringToMap("a", &pairs).IsInvalidArgument());
  std::string name;
  CHECK_OK(GetStringFromCompressionType(&name, kZSTD));
  CHECK(name == "kZSTD");
  CHECK_OK(GetStringFromColumnFamilyOptions(&name, made));
  CHECK(name.find("write_buffer_size=5242880;") != std::string::npos);
}

void Figures() {
  Options options = Creating();
  options.disable_auto_compactions = true;
  options.statistics = CreateDBStatistics();
  options.rate_limiter.reset(NewGenericRateLimiter(1 << 20));
  const std::string path = Fresh("cxx_rocksdb6");
  auto db = Opened(options, path);
  CHECK_OK(db->Put(WriteOptions(), "a", std::string(1000, 'v')));
  uint64_t count = 0;
  uint64_t size = 0;
  const Range range("a", "b");
  db->GetApproximateMemTableStats(range, &count, &size);
  CHECK(count == 1 && size >= 1000);
  db->GetApproximateMemTableStats(Range("b", "c"), &count, &size);
  CHECK(count == 0 && size == 0);
  CHECK_OK(db->Flush(FlushOptions()));
  const uint8_t flags = DB::INCLUDE_FILES;
  CHECK_OK(db->GetApproximateSizes(db->DefaultColumnFamily(), &range, 1, &size, flags));
  CHECK_OK(db->ResetStats());
  CHECK_OK(db->EnableAutoCompaction({db->DefaultColumnFamily()}));
  CHECK(!db->GetOptions().disable_auto_compactions);
  CHECK(options.statistics->getTickerCount(NO_FILE_CLOSES) == 0);
  options.rate_limiter->SetBytesPerSecond(2 << 20);
  CHECK(options.rate_limiter->GetBytesPerSecond() == 2 << 20);
  uint64_t entries = 1;
  CHECK(db->GetIntProperty(DB::Properties::kNumEntriesImmMemTables, &entries) && entries == 0);

  std::vector<ColumnFamilyDescriptor> families = {{kDefaultColumnFamilyName, options}};
  CHECK_OK(CheckOptionsCompatibility(path, Env::Default(), options, families));
  families.emplace_back("other", options);
  CHECK(!CheckOptionsCompatibility(path, Env::Default(), options, families).ok());
  CHECK(EnvOptions(DBOptions(options)).rate_limiter == options.rate_limiter.get());
}

void WithoutLocks() {
  TransactionDB* opened = nullptr;
  CHECK_OK(TransactionDB::Open(Creating(), TransactionDBOptions(), Fresh("cxx_rocksdb6_locks"),
                               &opened));
  const std::unique_ptr<TransactionDB> db(opened);
  const std::unique_ptr<Transaction> holder(db->BeginTransaction(WriteOptions()));
  CHECK_OK(holder->Put("a", "of the transaction"));
  WriteBatch batch;
  CHECK_OK(batch.Put("a", "of the batch"));
  TransactionDBWriteOptimizations with;
  CHECK(db->Write(WriteOptions(), with, &batch).IsTimedOut());
  with.skip_concurrency_control = true;
  CHECK_OK(db->Write(WriteOptions(), with, &batch));
  std::string value;
  CHECK_OK(db->Get(ReadOptions(), "a", &value));
  CHECK(value == "of the batch");
  CHECK_OK(holder->Rollback());
}

// The batch of a batch with an index is the same batch.
void Batches() {
  const std::unique_ptr<DB> db = Opened(Creating(), Fresh("cxx_rocksdb6_batch"));
  WriteBatchWithIndex indexed;
  WriteBatch* shown = indexed.GetWriteBatch();
  CHECK_OK(indexed.Put("a", "1"));
  indexed.SetSavePoint();
  CHECK_OK(shown->Put("b", "2"));
  CHECK(shown->Count() == 2 && shown == indexed.GetWriteBatch());
  CHECK_OK(indexed.PopSavePoint());
  CHECK(indexed.PopSavePoint().IsNotFound() && shown->PopSavePoint().IsNotFound());
  CHECK_OK(shown->Delete("c"));
  CHECK(shown->HasDelete());
  const WriteBatch copy(*shown);
  CHECK_OK(db->Write(WriteOptions(), shown));
  std::string value;
  CHECK_OK(db->Get(ReadOptions(), "b", &value));
  CHECK(value == "2");
  *shown = WriteBatch();
  std::string none;
  CHECK(indexed.GetFromBatch(DBOptions(), "a", &none).IsNotFound());
  CHECK(shown->Count() == 0 && copy.Count() == 3);
}

void OfTransactions() {
  TransactionDB* opened = nullptr;
  CHECK_OK(TransactionDB::Open(Creating(), TransactionDBOptions(), Fresh("cxx_rocksdb6_written"),
                               &opened));
  const std::unique_ptr<TransactionDB> db(opened);
  const std::unique_ptr<Transaction> transaction(db->BeginTransaction(WriteOptions()));
  transaction->SetSavePoint();
  CHECK_OK(transaction->Put("a", "1"));
  CHECK_OK(transaction->GetWriteBatch()->GetWriteBatch()->Put("b", "2"));
  CHECK(transaction->GetWriteBatch()->GetWriteBatch()->PopSavePoint().IsNotFound());
  CHECK_OK(transaction->SetName("written"));
  CHECK_OK(transaction->Prepare());
  CHECK_OK(transaction->Commit());
  std::string value;
  CHECK_OK(db->Get(ReadOptions(), "b", &value));
  CHECK(value == "2");
}

// Too few open files are raised to what RocksDB takes.
void OpenFiles() {
  for (const auto& [wanted, taken] : {std::pair{0, 20}, {-5, 20}, {21, 21}, {-1, -1}}) {
    Options options = Creating();
    options.max_open_files = wanted;
    const std::unique_ptr<DB> db = Opened(options, Fresh("cxx_rocksdb6_open_files"));
    CHECK(db->GetDBOptions().max_open_files == taken);
  }
}

// Options that change while a database is open are in what is printed of them.
void ChangedPrefix() {
  Options options;
  options.create_if_missing = true;
  options.prefix_extractor.reset(NewCappedPrefixTransform(20));
  std::unique_ptr<DB> db;
  CHECK_OK(DB::Open(options, Fresh("cxx_rocksdb6_prefix"), &db));
  CHECK_OK(db->SetOptions({{"prefix_extractor", "capped:26"}}));
  std::string text;
  CHECK_OK(GetStringFromColumnFamilyOptions(&text, db->GetOptions()));
  ColumnFamilyOptions made;
  CHECK_OK(GetColumnFamilyOptionsFromString(ColumnFamilyOptions(), text, &made));
  CHECK(made.prefix_extractor != nullptr);
  CHECK(std::string(made.prefix_extractor->Name()) == "rocksdb.CappedPrefix.26");
}

// A logger that passes its lines on and then uses the same arguments, as that of MyRocks does.
class Twice : public Logger {
 public:
  explicit Twice(Logger* first) : first_(first) {}
  using Logger::Logv;
  void Logv(const char* format, va_list args) override {
    first_->Logv(format, args);
    char text[64];
    std::vsnprintf(text, sizeof(text), format, args);
    second = text;
  }
  std::string second;

 private:
  Logger* const first_;
};

void Logs() {
  const std::string path = Fresh("cxx_rocksdb6_log");
  std::shared_ptr<Logger> logger;
  CHECK_OK(CreateLoggerFromOptions(path, DBOptions(), &logger));
  Log(logger, "a line of %d", 7);
  CHECK(logger->GetLogFileSize() > 10);
  std::ifstream file(path + "/LOG");
  std::string line;
  CHECK(std::getline(file, line) && line.find("a line of 7") != std::string::npos);
  Twice twice(logger.get());
  Log(&twice, "%s and %d", "text", 8);
  CHECK(twice.second == "text and 8");
  CHECK(std::getline(file, line) && line.find("text and 8") != std::string::npos);
  CHECK(!CreateLoggerFromOptions("/dev/null/none", DBOptions(), &logger).ok());
}

// Files of a log that is limited.
void RolledLogs() {
  const std::string path = Fresh("cxx_rocksdb6_rolled");
  DBOptions options;
  options.max_log_file_size = 2000;
  options.keep_log_file_num = 3;
  std::shared_ptr<Logger> logger;
  CHECK_OK(CreateLoggerFromOptions(path, options, &logger));
  Log(InfoLogLevel::HEADER_LEVEL, logger, "the header");
  for (int i = 0; i < 300; ++i) Log(logger, "line %d", i);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    ++files;
    CHECK(entry.file_size() < 2200);
    std::ifstream file(entry.path());
    std::string line;
    CHECK(std::getline(file, line) && line.find("the header") != std::string::npos);
  }
  CHECK(files == 3);
}

void Refused() {
  std::shared_ptr<PersistentCache> persistent;
  const Status status =
      NewPersistentCache(Env::Default(), Fresh("cxx_rocksdb6_cache"), 1 << 20, nullptr, false, &persistent);
  CHECK(status.IsNotSupported() && persistent == nullptr);
  Options options = Creating();
  BlockBasedTableOptions table;
  table.block_cache = NewSimCache(NewLRUCache(1 << 20), 1 << 20, 6);
  options.table_factory.reset(NewBlockBasedTableFactory(table));
  std::unique_ptr<DB> db;
  CHECK(DB::Open(options, Fresh("cxx_rocksdb6_refused"), &db).IsNotSupported());
  table.block_cache = NewClockCache(1 << 20);
  table.block_cache_compressed = NewLRUCache(1 << 20);
  options.table_factory.reset(NewBlockBasedTableFactory(table));
  CHECK(DB::Open(options, Fresh("cxx_rocksdb6_refused"), &db).IsNotSupported());
  std::vector<ThreadStatus> threads(1);
  CHECK_OK(Env::Default()->GetThreadList(&threads));
  CHECK(threads.empty());
  CHECK(ThreadStatus::GetThreadTypeName(ThreadStatus::LOW_PRIORITY) == "Low Pri");
}

}  // namespace

int main() {
  Texts();
  Figures();
  WithoutLocks();
  Batches();
  OfTransactions();
  Logs();
  RolledLogs();
  ChangedPrefix();
  OpenFiles();
  Refused();
  std::puts("rocksdb6: ok");
}
