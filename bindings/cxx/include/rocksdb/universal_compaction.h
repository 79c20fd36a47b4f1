// Settings of universal compaction.
#pragma once

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

enum CompactionStopStyle { kCompactionStopStyleSimilarSize, kCompactionStopStyleTotalSize };

class CompactionOptionsUniversal {
 public:
#include "rocksdb/fields/CompactionOptionsUniversal.inc"
};

}  // namespace ROCKSDB_NAMESPACE
