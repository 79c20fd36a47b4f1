// Outcomes of file operations.
#pragma once

#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

using IOStatus = Status;

}  // namespace ROCKSDB_NAMESPACE
