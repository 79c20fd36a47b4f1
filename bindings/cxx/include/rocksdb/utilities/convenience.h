// The name that programs for RocksDB 6 and older use.
#pragma once

#include "rocksdb/convenience.h"
