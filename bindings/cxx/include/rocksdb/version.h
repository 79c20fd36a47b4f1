// The version of RocksDB whose interface this is.
#pragma once

#include <string>

#include "rocksdb/rocksdb_namespace.h"

#define ROCKSDB_MAJOR 11
#define ROCKSDB_MINOR 8
#define ROCKSDB_PATCH 1

namespace ROCKSDB_NAMESPACE {

// "11.8.1"; with `with_patch` false "11.8".
std::string GetRocksVersionAsString(bool with_patch = true);

}  // namespace ROCKSDB_NAMESPACE
