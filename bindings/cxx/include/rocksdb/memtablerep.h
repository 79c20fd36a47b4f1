// Kinds of memtables. Only those that are built in can be used.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rocksdb/customizable.h"
#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class MemTableRepFactory : public Customizable {
 public:
  ~MemTableRepFactory() override;
  const char* Name() const override = 0;
  // The kind as the engine calls it; null for one of the application's own, which is refused.
  virtual const char* EskerKind() const { return nullptr; }
};

class SkipListFactory : public MemTableRepFactory {
 public:
  explicit SkipListFactory(size_t /*lookahead*/ = 0) {}
  const char* Name() const override { return "SkipListFactory"; }
  const char* EskerKind() const override { return "SkipListFactory"; }
};

class VectorRepFactory : public MemTableRepFactory {
 public:
  explicit VectorRepFactory(size_t /*count*/ = 0) {}
  const char* Name() const override { return "VectorRepFactory"; }
  const char* EskerKind() const override { return "VectorRepFactory"; }
};

// The caller owns the factory. The engine keeps these memtables in its skip list.
MemTableRepFactory* NewHashSkipListRepFactory(size_t bucket_count = 1000000,
                                              int32_t skiplist_height = 4,
                                              int32_t skiplist_branching_factor = 4);
MemTableRepFactory* NewHashLinkListRepFactory(size_t bucket_count = 50000,
                                              size_t huge_page_tlb_size = 0,
                                              int bucket_entries_logging_threshold = 4096,
                                              bool if_log_bucket_dist_when_flash = true,
                                              uint32_t threshold_use_skiplist = 256);

}  // namespace ROCKSDB_NAMESPACE
