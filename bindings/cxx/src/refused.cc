// Classes and calls that compile and are not supported, each with its name in the error.

#include "internal.h"
#include "rocksdb/block_cache_trace_writer.h"
#include "rocksdb/experimental.h"
#include "rocksdb/memory_allocator.h"
#include "rocksdb/user_defined_index.h"
#include "rocksdb/utilities/replayer.h"

namespace ROCKSDB_NAMESPACE {

BlockCacheTraceWriter::~BlockCacheTraceWriter() = default;
CompactionService::~CompactionService() = default;
MemoryAllocator::~MemoryAllocator() = default;
Replayer::~Replayer() = default;
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
