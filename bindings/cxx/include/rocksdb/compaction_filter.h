// Filters of the application that decide about entries during compactions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/customizable.h"
#include "rocksdb/slice.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

// Decides about each entry. An exception ends the process: there is nobody to tell.
class CompactionFilter : public Customizable {
 public:
  enum ValueType { kValue, kMergeOperand, kBlobIndex, kWideColumnEntity };
  enum class Decision {
    kKeep,
    kRemove,
    kChangeValue,
    kRemoveAndSkipUntil,
    kChangeBlobIndex,
    kIOError,
    kPurge,
    kChangeWideColumnEntity,
    kUndetermined
  };
  enum class BlobDecision { kKeep, kChangeValue, kCorruption, kIOError };

  struct Context {
    bool is_full_compaction = false;
    bool is_manual_compaction = false;
    int input_start_level = -1;
    uint32_t column_family_id = 0;
    TableFileCreationReason reason = TableFileCreationReason::kCompaction;
    TablePropertiesCollection input_table_properties{};
  };

  ~CompactionFilter() override;
  static const char* Type() { return "CompactionFilter"; }

  virtual bool Filter(int, const Slice&, const Slice&, std::string*, bool*) const {
    return false;
  }
  virtual bool FilterMergeOperand(int, const Slice&, const Slice&) const { return false; }
  virtual Decision FilterV2(int level, const Slice& key, ValueType value_type,
                            const Slice& existing_value, std::string* new_value,
                            std::string* skip_until) const;
  virtual bool IgnoreSnapshots() const { return true; }
  const char* Name() const override = 0;
};

class CompactionFilterFactory : public Customizable {
 public:
  ~CompactionFilterFactory() override;
  static const char* Type() { return "CompactionFilterFactory"; }
  virtual bool ShouldFilterTableFileCreation(TableFileCreationReason reason) const {
    return reason == TableFileCreationReason::kCompaction;
  }
  virtual std::unique_ptr<CompactionFilter> CreateCompactionFilter(
      const CompactionFilter::Context& context) = 0;
  const char* Name() const override = 0;
};

}  // namespace ROCKSDB_NAMESPACE
