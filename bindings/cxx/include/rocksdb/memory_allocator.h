// Allocators for block caches. The engine has its own; none of an application's is used.
#pragma once

#include <cstddef>
#include <memory>

#include "rocksdb/customizable.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class MemoryAllocator : public Customizable {
 public:
  ~MemoryAllocator() override;
  static const char* Type() { return "MemoryAllocator"; }
  virtual void* Allocate(size_t size) = 0;
  virtual void Deallocate(void* memory) = 0;
  virtual size_t UsableSize(void*, size_t allocation_size) const { return allocation_size; }
};

struct JemallocAllocatorOptions {
  static const char* kName() { return "JemallocAllocatorOptions"; }

  bool limit_tcache_size = false;
  size_t tcache_size_lower_bound = 1024;
  size_t tcache_size_upper_bound = 16 * 1024;
  size_t num_arenas = 1;
};

// Not supported.
Status NewJemallocNodumpAllocator(const JemallocAllocatorOptions& options,
                                  std::shared_ptr<MemoryAllocator>* allocator);

}  // namespace ROCKSDB_NAMESPACE
