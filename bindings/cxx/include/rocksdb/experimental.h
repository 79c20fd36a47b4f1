// Calls of RocksDB that are not settled.
#pragma once

#include "rocksdb/db.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {
namespace experimental {

// Marks the tables of a range for compaction. A null key is the end of all keys.
Status SuggestCompactRange(DB* db, ColumnFamilyHandle* family, const Slice* begin,
                           const Slice* end);
Status SuggestCompactRange(DB* db, const Slice* begin, const Slice* end);
// Not supported.
Status PromoteL0(DB* db, ColumnFamilyHandle* family, int target_level = 1);

}  // namespace experimental
}  // namespace ROCKSDB_NAMESPACE
