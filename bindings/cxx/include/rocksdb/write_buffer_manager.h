// A limit on the memtables of many databases.
#pragma once

#include <cstddef>
#include <memory>

#include "rocksdb/cache.h"

namespace ROCKSDB_NAMESPACE {

class WriteBufferManager {
 public:
  explicit WriteBufferManager(size_t buffer_size, std::shared_ptr<Cache> cache = {},
                              bool allow_stall = false);
  ~WriteBufferManager();
  WriteBufferManager(const WriteBufferManager&) = delete;
  WriteBufferManager& operator=(const WriteBufferManager&) = delete;

  bool enabled() const;
  bool cost_to_cache() const;
  size_t memory_usage() const;
  size_t mutable_memtable_memory_usage() const;
  size_t dummy_entries_in_cache_usage() const;
  size_t buffer_size() const;
  void SetBufferSize(size_t bytes);
  void SetAllowStall(bool yes);
  // The object of the C interface.
  void* EskerHandle() const { return handle_; }

 private:
  std::shared_ptr<Cache> cache_;
  void* handle_;
};

}  // namespace ROCKSDB_NAMESPACE
