// Filters that tell which keys a table does not have.
#pragma once

#include <memory>
#include <string>

#include "rocksdb/customizable.h"

namespace ROCKSDB_NAMESPACE {

class FilterPolicy : public Customizable {
 public:
  ~FilterPolicy() override;
  const char* Name() const override = 0;
  virtual const char* CompatibilityName() const { return Name(); }
  // A new object of the C interface; null for a policy of the application's own, which is refused.
  virtual void* EskerNewHandle() const { return nullptr; }
};

const FilterPolicy* NewBloomFilterPolicy(double bits_per_key,
                                         bool unused_block_based_builder = false);
const FilterPolicy* NewRibbonFilterPolicy(double bloom_equivalent_bits_per_key,
                                          int bloom_before_level = 0);

}  // namespace ROCKSDB_NAMESPACE
