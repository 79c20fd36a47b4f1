// Classes of the application: each is called, destroyed once, and what it throws stays inside.
//
// With an argument the program lets one callback throw that has no way to tell of errors: it has
// to end with a message.

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/comparator.h"
#include "rocksdb/db.h"
#include "rocksdb/listener.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/slice_transform.h"

using namespace rocksdb;  // NOLINT

namespace {

std::atomic<int> destroyed{0};

class ByLength : public Comparator {
 public:
  explicit ByLength(bool throws = false) : throws_(throws) {}
  const char* Name() const override { return "ByLength"; }
  int Compare(const Slice& a, const Slice& b) const override {
    if (throws_ && a == "throw") throw std::runtime_error("no order");
    if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
    return a.compare(b);
  }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}

 private:
  bool throws_;
};

class Append : public AssociativeMergeOperator {
 public:
  ~Append() override { ++destroyed; }
  const char* Name() const override { return "Append"; }
  bool Merge(const Slice& key, const Slice* existing, const Slice& value, std::string* new_value,
             Logger*) const override {
    if (value == "throw") throw std::runtime_error("cannot append to " + key.ToString());
    if (value == "fail") return false;
    if (existing != nullptr) *new_value = existing->ToString() + ",";
    *new_value += value.ToString();
    return true;
  }
};

// Removes keys with an odd last digit, doubles the rest, and skips what follows "skip".
class Odd : public CompactionFilter {
 public:
  explicit Odd(bool throws = false) : throws_(throws) {}
  ~Odd() override { ++destroyed; }
  const char* Name() const override { return "Odd"; }
  Decision FilterV2(int, const Slice& key, ValueType type, const Slice& value,
                    std::string* new_value, std::string* skip_until) const override {
    if (throws_) throw std::runtime_error("no decision");
    if (type == kMergeOperand) return value == "bad" ? Decision::kRemove : Decision::kKeep;
    if (key.starts_with("skip")) {
      *skip_until = "skiq";
      return Decision::kRemoveAndSkipUntil;
    }
    if ((key[key.size() - 1] - '0') % 2 == 1) return Decision::kRemove;
    *new_value = value.ToString() + value.ToString();
    return Decision::kChangeValue;
  }

 private:
  bool throws_;
};

class OddFactory : public CompactionFilterFactory {
 public:
  ~OddFactory() override { ++destroyed; }
  const char* Name() const override { return "OddFactory"; }
  std::unique_ptr<CompactionFilter> CreateCompactionFilter(
      const CompactionFilter::Context& context) override {
    family = context.column_family_id;
    is_manual = context.is_manual_compaction;
    return std::make_unique<Odd>();
  }
  std::atomic<uint32_t> family{99};
  std::atomic<bool> is_manual{false};
};

// The part before a colon.
class Colon : public SliceTransform {
 public:
  ~Colon() override { ++destroyed; }
  const char* Name() const override { return "Colon"; }
  Slice Transform(const Slice& key) const override {
    const size_t at = key.ToStringView().find(':');
    return Slice(key.data(), at == std::string_view::npos ? key.size() : at);
  }
  bool InDomain(const Slice& key) const override {
    return key.ToStringView().find(':') != std::string_view::npos;
  }
};

class Events : public EventListener {
 public:
  explicit Events(bool throws = false) : throws_(throws) {}
  ~Events() override { ++destroyed; }
  void OnFlushCompleted(DB* db, const FlushJobInfo& info) override {
    if (throws_) throw std::runtime_error("not now");
    const std::lock_guard<std::mutex> lock(mutex);
    dbs.push_back(db);
    flushed.push_back(info.cf_name);
    // What the new table tells of itself.
    const TableProperties& table = info.table_properties;
    CHECK(table.num_entries > 0 && table.column_family_name == info.cf_name);
    CHECK(!table.comparator_name.empty() && table.raw_key_size > 0);
    CHECK(info.flush_reason != FlushReason::kShutDown && info.blob_file_addition_infos.empty());
  }
  void OnCompactionCompleted(DB*, const CompactionJobInfo& info) override {
    const std::lock_guard<std::mutex> lock(mutex);
    CHECK(info.status.ok() && !info.input_files.empty());
    CHECK(info.input_file_infos.size() == info.input_files.size());
    CHECK(info.output_file_infos.size() == info.output_files.size());
    CHECK(info.stats.num_output_files == info.output_files.size());
    CHECK(info.compaction_reason != CompactionReason::kUnknown);
    for (const auto& [file, table] : info.table_properties) {
      CHECK(!file.empty() && table->num_entries > 0);
    }
    ++compactions;
  }
  void OnMemTableSealed(const MemTableInfo& info) override {
    const std::lock_guard<std::mutex> lock(mutex);
    sealed += info.num_entries;
  }
  std::mutex mutex;
  std::vector<DB*> dbs;
  std::vector<std::string> flushed;
  int compactions = 0;
  uint64_t sealed = 0;

 private:
  bool throws_;
};

class Lines : public Logger {
 public:
  using Logger::Logv;
  void Logv(const char* format, va_list args) override {
    char line[512];
    std::vsnprintf(line, sizeof(line), format, args);
    ++count;
  }
  std::atomic<int> count{0};
};

void Orders() {
  const ByLength order;
  Options options = Creating();
  options.comparator = &order;
  std::unique_ptr<DB> db;
  CHECK_OK(DB::Open(options, Fresh("cxx_order"), &db));
  for (const char* key : {"ccc", "a", "bb", "aaaa"}) CHECK_OK(db->Put(WriteOptions(), key, key));
  CHECK_OK(db->Flush(FlushOptions()));
  std::string seen;
  std::unique_ptr<Iterator> it(db->NewIterator(ReadOptions()));
  for (it->SeekToFirst(); it->Valid(); it->Next()) seen += it->key().ToString() + " ";
  CHECK(seen == "a bb ccc aaaa ");
  it.reset();
  const std::string path = db->GetName();
  db.reset();
  options.comparator = BytewiseComparator();
  CHECK(DB::Open(options, path, &db).IsInvalidArgument());
}

void Merges() {
  destroyed = 0;
  {
    Options options = Creating();
    options.merge_operator = std::make_shared<Append>();
    std::unique_ptr<DB> db;
    CHECK_OK(DB::Open(options, Fresh("cxx_merge"), &db));
    CHECK_OK(db->Put(WriteOptions(), "k", "1"));
    CHECK_OK(db->Merge(WriteOptions(), "k", "2"));
    CHECK_OK(db->Merge(WriteOptions(), "k", "3"));
    CHECK_OK(db->Merge(WriteOptions(), "t", "throw"));
    CHECK_OK(db->Merge(WriteOptions(), "f", "fail"));
    std::string value;
    CHECK_OK(db->Get(ReadOptions(), "k", &value));
    CHECK(value == "1,2,3");
    // An exception is a failed merge.
    CHECK(db->Get(ReadOptions(), "t", &value).IsCorruption());
    CHECK(db->Get(ReadOptions(), "f", &value).IsCorruption());
    CHECK(destroyed == 0);
  }
  CHECK(destroyed == 1);
}

void Filters() {
  destroyed = 0;
  {
    auto factory = std::make_shared<OddFactory>();
    Options options = Creating();
    options.compaction_filter_factory = factory;
    options.merge_operator = std::make_shared<Append>();
    std::unique_ptr<DB> db;
    CHECK_OK(DB::Open(options, Fresh("cxx_filter"), &db));
    for (int i = 0; i < 10; ++i) CHECK_OK(db->Put(WriteOptions(), "k" + std::to_string(i), "v"));
    CHECK_OK(db->Put(WriteOptions(), "skip1", "v"));
    CHECK_OK(db->Put(WriteOptions(), "skip2", "v"));
    CHECK_OK(db->Put(WriteOptions(), "z2", "v"));
    CHECK_OK(db->Merge(WriteOptions(), "m", "bad"));
    CHECK_OK(db->Flush(FlushOptions()));
    CHECK_OK(db->Merge(WriteOptions(), "m", "good"));
    CHECK_OK(db->CompactRange(CompactRangeOptions(), nullptr, nullptr));
    std::string seen;
    std::unique_ptr<Iterator> it(db->NewIterator(ReadOptions()));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      seen += it->key().ToString() + "=" + it->value().ToString() + " ";
    }
    CHECK(seen == "k0=vv k2=vv k4=vv k6=vv k8=vv m=good z2=vv ");
    CHECK(factory->family == 0 && factory->is_manual);
    it.reset();
  }
  CHECK(destroyed >= 3);

  // A filter that is not the options': it outlives the database.
  const Odd filter;
  Options options = Creating();
  options.compaction_filter = &filter;
  std::unique_ptr<DB> db;
  CHECK_OK(DB::Open(options, Fresh("cxx_filter"), &db));
  CHECK_OK(db->Put(WriteOptions(), "k1", "v"));
  CHECK_OK(db->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  std::string value;
  CHECK(db->Get(ReadOptions(), "k1", &value).IsNotFound());
}

void Prefixes() {
  destroyed = 0;
  {
    Options options = Creating();
    options.prefix_extractor = std::make_shared<Colon>();
    std::unique_ptr<DB> db;
    CHECK_OK(DB::Open(options, Fresh("cxx_prefix"), &db));
    for (const char* key : {"a:1", "a:2", "b:1"}) CHECK_OK(db->Put(WriteOptions(), key, ""));
    ReadOptions within;
    within.prefix_same_as_start = true;
    std::unique_ptr<Iterator> it(db->NewIterator(within));
    int count = 0;
    for (it->Seek("a:1"); it->Valid(); it->Next()) ++count;
    CHECK(count == 2);
  }
  CHECK(destroyed == 1);
}

void Listening() {
  destroyed = 0;
  {
    auto events = std::make_shared<Events>();
    auto lines = std::make_shared<Lines>();
    Options options = Creating();
    options.listeners.push_back(events);
    options.info_log = lines;
    std::unique_ptr<DB> db;
    CHECK_OK(DB::Open(options, Fresh("cxx_events"), &db));
    CHECK_OK(db->Put(WriteOptions(), "a", "1"));
    CHECK_OK(db->Flush(FlushOptions()));
    CHECK_OK(db->Put(WriteOptions(), "a", "2"));
    CHECK_OK(db->Flush(FlushOptions()));
    CHECK_OK(db->CompactRange(CompactRangeOptions(), nullptr, nullptr));
    {
      const std::lock_guard<std::mutex> lock(events->mutex);
      CHECK(events->flushed.size() == 2 && events->flushed[0] == "default");
      CHECK(std::all_of(events->dbs.begin(), events->dbs.end(),
                        [&](DB* told) { return told == db.get(); }));
      CHECK(events->compactions >= 1 && events->sealed == 2);
    }
    CHECK(lines->count > 0);
  }
  CHECK(destroyed == 1);
}

// Lets one callback throw.
int Throw(const std::string& what) {
  const ByLength order(true);
  const Odd filter(true);
  Options options = Creating();
  if (what == "comparator") options.comparator = &order;
  if (what == "filter") options.compaction_filter = &filter;
  if (what == "listener") options.listeners.push_back(std::make_shared<Events>(true));
  std::unique_ptr<DB> db;
  CHECK_OK(DB::Open(options, Fresh("cxx_throw"), &db));
  CHECK_OK(db->Put(WriteOptions(), "a", "1"));
  CHECK_OK(db->Put(WriteOptions(), "throw", "1"));
  std::string value;
  CHECK_OK(db->Get(ReadOptions(), "throw", &value));
  CHECK_OK(db->Flush(FlushOptions()));
  CHECK_OK(db->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  std::puts("nothing ended the process");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return Throw(argv[1]);
  Orders();
  Merges();
  Filters();
  Prefixes();
  Listening();
  std::puts("callbacks: ok");
}
