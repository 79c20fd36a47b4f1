// The rarer options of column families, and the enums of options.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/compression_type.h"
#include "rocksdb/memtablerep.h"
#include "rocksdb/types.h"
#include "rocksdb/universal_compaction.h"

namespace ROCKSDB_NAMESPACE {

class Cache;
class Slice;
class SliceTransform;
class TablePropertiesCollectorFactory;
struct Options;

enum CompactionStyle : char {
  kCompactionStyleLevel = 0x0,
  kCompactionStyleUniversal = 0x1,
  kCompactionStyleFIFO = 0x2,
  kCompactionStyleNone = 0x3,
};

enum CompactionPri : char {
  kByCompensatedSize = 0x0,
  kOldestLargestSeqFirst = 0x1,
  kOldestSmallestSeqFirst = 0x2,
  kMinOverlappingRatio = 0x3,
  kRoundRobin = 0x4,
};

enum class CacheTier : uint8_t {
  kVolatileTier = 0,
  kVolatileCompressedTier = 0x01,
  kNonVolatileBlockTier = 0x02,
};

enum class PrepopulateBlobCache : uint8_t { kDisable = 0, kFlushOnly = 1 };

enum UpdateStatus { UPDATE_FAILED = 0, UPDATED_INPLACE = 1, UPDATED = 2 };

enum class VerifyOutputFlags : uint32_t { kVerifyNone = 0 };

struct FileTemperatureAge {
  Temperature temperature = Temperature::kUnknown;
  uint64_t age = 0;
};

struct CompactionOptionsFIFO {
#include "rocksdb/fields/CompactionOptionsFIFO.inc"
  std::vector<FileTemperatureAge> file_temperature_age_thresholds{};

  CompactionOptionsFIFO() = default;
  CompactionOptionsFIFO(uint64_t max_bytes, bool compacts) {
    max_table_files_size = max_bytes;
    allow_compaction = compacts;
  }
};

// A path and the bytes that may be stored there.
struct DbPath {
  DbPath() = default;
  DbPath(const std::string& to, uint64_t size) : path(to), target_size(size) {}

  std::string path;
  uint64_t target_size = 0;
};

}  // namespace ROCKSDB_NAMESPACE
