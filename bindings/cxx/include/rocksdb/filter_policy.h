// Filters that tell which keys a table does not have.
#pragma once

#include <memory>
#include <string>

#include "rocksdb/advanced_options.h"
#include "rocksdb/customizable.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class Logger;
class Slice;
struct BlockBasedTableOptions;

// The table that a filter is for.
struct FilterBuildingContext {
  explicit FilterBuildingContext(const BlockBasedTableOptions& options) : table_options(options) {}

  const BlockBasedTableOptions& table_options;
  CompactionStyle compaction_style = kCompactionStyleLevel;
  int num_levels = -1;
  Logger* info_log = nullptr;
  std::string column_family_name;
  int level_at_creation = -1;
  bool is_bottommost = false;
  TableFileCreationReason reason = TableFileCreationReason::kMisc;
};

// Stands for filters of a kind that is built in. The engine builds and reads them.
class FilterBitsBuilder {
 public:
  virtual ~FilterBitsBuilder();
  // A new object of the C interface; null for a builder of the application's own.
  virtual void* EskerNewHandle() const { return nullptr; }
};

class FilterBitsReader {
 public:
  virtual ~FilterBitsReader();
};

class FilterPolicy : public Customizable {
 public:
  ~FilterPolicy() override;
  const char* Name() const override = 0;
  static const char* Type() { return "FilterPolicy"; }
  virtual const char* CompatibilityName() const { return Name(); }
  // A policy of the application's own can choose among those that are built in: what it answers
  // for a context without a table holds for all tables.
  virtual FilterBitsBuilder* GetBuilderWithContext(const FilterBuildingContext&) const {
    return nullptr;
  }
  virtual FilterBitsReader* GetFilterBitsReader(const Slice&) const { return nullptr; }
  // A new object of the C interface; null for a policy that builds filters by itself, which is
  // refused.
  virtual void* EskerNewHandle() const;
};

const FilterPolicy* NewBloomFilterPolicy(double bits_per_key,
                                         bool unused_block_based_builder = false);
const FilterPolicy* NewRibbonFilterPolicy(double bloom_equivalent_bits_per_key,
                                          int bloom_before_level = 0);

}  // namespace ROCKSDB_NAMESPACE
