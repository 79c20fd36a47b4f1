// The whole interface of caches; it stands in cache.h.
#pragma once

#include "rocksdb/cache.h"
