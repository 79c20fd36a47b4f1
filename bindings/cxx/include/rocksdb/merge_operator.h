// Merge operators of the application.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/customizable.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

class Logger;

// Combines operands with a value. An exception is a failed merge.
class MergeOperator : public Customizable {
 public:
  ~MergeOperator() override;
  static const char* Type() { return "MergeOperator"; }
  const char* Name() const override = 0;

  virtual bool FullMerge(const Slice&, const Slice*, const std::deque<std::string>&, std::string*,
                         Logger*) const {
    return false;
  }

  struct MergeOperationInput {
    MergeOperationInput(const Slice& of, const Slice* value, const std::vector<Slice>& operands,
                        Logger* to)
        : key(of), existing_value(value), operand_list(operands), logger(to) {}

    const Slice& key;
    // Null if there is none.
    const Slice* existing_value;
    // The oldest first.
    const std::vector<Slice>& operand_list;
    Logger* logger;
  };
  enum class OpFailureScope { kDefault, kTryMerge, kMustMerge, kOpFailureScopeMax };
  struct MergeOperationOutput {
    MergeOperationOutput(std::string& value, Slice& operand)
        : new_value(value), existing_operand(operand) {}

    std::string& new_value;
    // Set instead of `new_value` to say that this operand is the result.
    Slice& existing_operand;
    OpFailureScope op_failure_scope = OpFailureScope::kDefault;
  };
  virtual bool FullMergeV2(const MergeOperationInput& in, MergeOperationOutput* out) const;

  virtual bool PartialMerge(const Slice&, const Slice&, const Slice&, std::string*,
                            Logger*) const {
    return false;
  }
  virtual bool PartialMergeMulti(const Slice& key, const std::deque<Slice>& operands,
                                 std::string* new_value, Logger* logger) const;
  virtual bool AllowSingleOperand() const { return false; }
  virtual bool ShouldMerge(const std::vector<Slice>&) const { return false; }
};

// Combines two values at a time.
class AssociativeMergeOperator : public MergeOperator {
 public:
  ~AssociativeMergeOperator() override;
  virtual bool Merge(const Slice& key, const Slice* existing_value, const Slice& value,
                     std::string* new_value, Logger* logger) const = 0;

  bool FullMergeV2(const MergeOperationInput& in, MergeOperationOutput* out) const override;
  bool PartialMerge(const Slice& key, const Slice& left, const Slice& right,
                    std::string* new_value, Logger* logger) const override;
};

}  // namespace ROCKSDB_NAMESPACE
