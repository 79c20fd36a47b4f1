// Caches of blocks on a device. Not supported.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rocksdb/env.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class PersistentCache {
 public:
  virtual ~PersistentCache();
  virtual std::string GetPrintableOptions() const = 0;
};

// Not supported.
Status NewPersistentCache(Env* env, const std::string& path, uint64_t size,
                          const std::shared_ptr<Logger>& log, bool optimized_for_nvm,
                          std::shared_ptr<PersistentCache>* cache);

}  // namespace ROCKSDB_NAMESPACE
