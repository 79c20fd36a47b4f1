// Classes and calls that compile and are not supported, each with its name in the error.

#include "internal.h"
#include "rocksdb/block_cache_trace_writer.h"
#include "rocksdb/experimental.h"
#include "rocksdb/memory_allocator.h"
#include "rocksdb/persistent_cache.h"
#include "rocksdb/thread_status.h"
#include "rocksdb/user_defined_index.h"
#include "rocksdb/utilities/replayer.h"
#include "rocksdb/utilities/sim_cache.h"

namespace ROCKSDB_NAMESPACE {

BlockCacheTraceWriter::~BlockCacheTraceWriter() = default;
CompactionService::~CompactionService() = default;
MemoryAllocator::~MemoryAllocator() = default;
PersistentCache::~PersistentCache() = default;
Replayer::~Replayer() = default;
SimCache::~SimCache() = default;
TraceReader::~TraceReader() = default;
TraceWriter::~TraceWriter() = default;
UserDefinedIndexFactory::~UserDefinedIndexFactory() = default;
SequentialFile::~SequentialFile() = default;
RandomAccessFile::~RandomAccessFile() = default;
WritableFile::~WritableFile() = default;
FileLock::~FileLock() = default;

Status NewJemallocNodumpAllocator(const JemallocAllocatorOptions&,
                                  std::shared_ptr<MemoryAllocator>* allocator) {
  allocator->reset();
  return Status::NotSupported("NewJemallocNodumpAllocator");
}

Status NewPersistentCache(Env*, const std::string&, uint64_t, const std::shared_ptr<Logger>&, bool,
                          std::shared_ptr<PersistentCache>* cache) {
  cache->reset();
  return Status::NotSupported("NewPersistentCache");
}

namespace {

// A cache that no database takes.
class NoSimCache final : public SimCache {
 public:
  void SetCapacity(size_t) override {}
  size_t GetCapacity() const override { return 0; }
  size_t GetUsage() const override { return 0; }
  size_t GetPinnedUsage() const override { return 0; }
  size_t GetSimCapacity() const override { return 0; }
  size_t GetSimUsage() const override { return 0; }
  void SetSimCapacity(size_t) override {}
  uint64_t get_miss_counter() const override { return 0; }
  uint64_t get_hit_counter() const override { return 0; }
  void reset_counter() override {}
  std::string ToString() const override { return ""; }
  Status StartActivityLogging(const std::string&, Env*, uint64_t) override {
    return Status::NotSupported("SimCache");
  }
  void StopActivityLogging() override {}
  Status GetActivityLoggingStatus() override { return Status::NotSupported("SimCache"); }
};

}  // namespace

std::shared_ptr<SimCache> NewSimCache(std::shared_ptr<Cache>, size_t, int) {
  return std::make_shared<NoSimCache>();
}

// The list of threads is empty: these are names of what it would hold.

Status Env::GetThreadList(std::vector<ThreadStatus>* threads) {
  threads->clear();
  return Status::OK();
}

std::string ThreadStatus::GetThreadTypeName(ThreadType type) {
  static constexpr const char* names[] = {"High Pri", "Low Pri", "User", "Bottom Pri"};
  return type >= 0 && type < NUM_THREAD_TYPES ? names[type] : "Unknown";
}

const std::string& ThreadStatus::GetOperationName(OperationType type) {
  static const std::string names[] = {"", "Compaction", "Flush"};
  return names[type > 0 && type < NUM_OP_TYPES ? type : 0];
}

const std::string& ThreadStatus::GetOperationStageName(OperationStage) {
  static const std::string none;
  return none;
}

const std::string& ThreadStatus::GetStateName(StateType type) {
  static const std::string names[] = {"", "Mutex Wait"};
  return names[type == STATE_MUTEX_WAIT ? 1 : 0];
}

std::string ThreadStatus::MicrosToString(uint64_t micros) { return std::to_string(micros) + " us"; }

std::map<std::string, uint64_t> ThreadStatus::InterpretOperationProperties(OperationType,
                                                                           const uint64_t*) {
  return {};
}

Status NewFileTraceWriter(Env*, const EnvOptions&, const std::string&,
                          std::unique_ptr<TraceWriter>* writer) {
  writer->reset();
  return Status::NotSupported("NewFileTraceWriter");
}

Status NewFileTraceReader(Env*, const EnvOptions&, const std::string&,
                          std::unique_ptr<TraceReader>* reader) {
  reader->reset();
  return Status::NotSupported("NewFileTraceReader");
}

namespace {

class NoTrace final : public BlockCacheTraceWriter {
 public:
  Status WriteHeader() override { return Status::NotSupported("BlockCacheTraceWriter"); }
};

}  // namespace

std::unique_ptr<BlockCacheTraceWriter> NewBlockCacheTraceWriter(
    SystemClock*, const BlockCacheTraceWriterOptions&, std::unique_ptr<TraceWriter>&&) {
  return std::make_unique<NoTrace>();
}

namespace {

constexpr const char* kTrie = "trie_index";

class TrieIndex final : public UserDefinedIndexFactory {
 public:
  const char* Name() const override { return kTrie; }
};

}  // namespace

Status UserDefinedIndexFactory::CreateFromString(
    const ConfigOptions&, const std::string& value,
    std::shared_ptr<UserDefinedIndexFactory>* factory) {
  factory->reset();
  if (value.empty()) return Status::OK();
  if (value != kTrie) return Status::NotSupported("UserDefinedIndexFactory", value);
  *factory = std::make_shared<TrieIndex>();
  return Status::OK();
}

Status DB::OpenAndCompact(const std::string&, const std::string&, const std::string&,
                          std::string*, const CompactionServiceOptionsOverride&) {
  return Status::NotSupported("DB::OpenAndCompact");
}

Status DB::OpenAndCompact(const OpenAndCompactOptions&, const std::string&, const std::string&,
                          const std::string&, std::string*,
                          const CompactionServiceOptionsOverride&) {
  return Status::NotSupported("DB::OpenAndCompact");
}

namespace experimental {

Status SuggestCompactRange(DB* db, ColumnFamilyHandle* family, const Slice* begin,
                           const Slice* end) {
  return db->SuggestCompactRange(family, begin, end);
}

Status SuggestCompactRange(DB* db, const Slice* begin, const Slice* end) {
  return db->SuggestCompactRange(db->DefaultColumnFamily(), begin, end);
}

Status PromoteL0(DB* db, ColumnFamilyHandle* family, int target_level) {
  return db->PromoteL0(family, target_level);
}

}  // namespace experimental

}  // namespace ROCKSDB_NAMESPACE
