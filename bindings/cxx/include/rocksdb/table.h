// Formats of table files and their options.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "rocksdb/cache.h"
#include "rocksdb/customizable.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class FlushBlockPolicyFactory;
class PersistentCache;
class UserDefinedIndexFactory;

enum ChecksumType : char {
  kNoChecksum = 0x0,
  kCRC32c = 0x1,
  kxxHash = 0x2,
  kxxHash64 = 0x3,
  kXXH3 = 0x4,
};

enum class PinningTier { kFallback, kNone, kFlushedAndSimilar, kAll };

struct MetadataCacheOptions {
#include "rocksdb/fields/MetadataCacheOptions.inc"
};

// The engine counts all of a table's memory; these are accepted and not used.
struct CacheEntryRoleOptions {
  enum class Decision { kEnabled, kDisabled, kFallback };
  Decision charged = Decision::kFallback;
};
struct CacheUsageOptions {
  CacheEntryRoleOptions options;
};

struct BlockBasedTableOptions {
  static const char* kName() { return "BlockTableOptions"; }

  enum IndexType : char {
    kBinarySearch = 0x00,
    kHashSearch = 0x01,
    kTwoLevelIndexSearch = 0x02,
    kBinarySearchWithFirstKey = 0x03,
  };
  enum BlockSearchType : char { kBinary = 0x00, kInterpolation = 0x01, kAuto = 0x02 };
  enum DataBlockIndexType : char {
    kDataBlockBinarySearch = 0,
    kDataBlockBinaryAndHash = 1,
  };
  enum class IndexShorteningMode : char {
    kNoShortening,
    kShortenSeparators,
    kShortenSeparatorsAndSuccessor,
  };
  enum class PrepopulateBlockCache : char { kDisable, kFlushOnly, kFlushAndCompaction };

#include "rocksdb/fields/BlockBasedTableOptions.inc"

  std::shared_ptr<Cache> block_cache = nullptr;
  std::shared_ptr<const FilterPolicy> filter_policy = nullptr;
  CacheUsageOptions cache_usage_options;
  // Refused when they are set.
  std::shared_ptr<FlushBlockPolicyFactory> flush_block_policy_factory = nullptr;
  std::shared_ptr<PersistentCache> persistent_cache = nullptr;
  std::shared_ptr<Cache> block_cache_compressed = nullptr;
  std::shared_ptr<UserDefinedIndexFactory> user_defined_index_factory = nullptr;
  // An option of RocksDB 6 without effect.
  bool hash_index_allow_collision = true;
};

enum EncodingType : char { kPlain, kPrefix };
const uint32_t kPlainTableVariableLength = 0;

struct PlainTableOptions {
  static const char* kName() { return "PlainTableOptions"; }

  uint32_t user_key_len = kPlainTableVariableLength;
  int bloom_bits_per_key = 10;
  double hash_table_ratio = 0.75;
  size_t index_sparseness = 16;
  size_t huge_page_tlb_size = 0;
  EncodingType encoding_type = kPlain;
  bool full_scan_mode = false;
  bool store_index_in_file = false;
};

struct CuckooTableOptions {
  static const char* kName() { return "CuckooTableOptions"; }

  double hash_table_ratio = 0.9;
  uint32_t max_search_depth = 100;
  uint32_t cuckoo_block_size = 5;
  bool identity_as_first_hash = false;
  bool use_module_hash = true;
};

class TableFactory : public Customizable {
 public:
  ~TableFactory() override;
  static const char* Type() { return "TableFactory"; }
  static const char* kBlockBasedTableName() { return "BlockBasedTable"; }
  static const char* kPlainTableName() { return "PlainTable"; }
  static const char* kCuckooTableName() { return "CuckooTable"; }
  static const char* kBlockBasedTableOpts() { return "BlockTableOptions"; }
  const char* Name() const override = 0;
  // A line for each option.
  virtual std::string GetPrintableOptions() const { return ""; }
};

// The caller owns the factory. The engine writes block-based tables in place of plain and cuckoo
// ones; a directory that holds such tables is refused.
TableFactory* NewBlockBasedTableFactory(
    const BlockBasedTableOptions& options = BlockBasedTableOptions());
TableFactory* NewPlainTableFactory(const PlainTableOptions& options = PlainTableOptions());
TableFactory* NewCuckooTableFactory(const CuckooTableOptions& options = CuckooTableOptions());

}  // namespace ROCKSDB_NAMESPACE
