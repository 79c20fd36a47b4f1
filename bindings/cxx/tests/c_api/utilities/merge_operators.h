// The merge operator that RocksDB's C interface takes from its internals.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "rocksdb/merge_operator.h"

namespace ROCKSDB_NAMESPACE {

// Adds numbers of eight bytes. What has another length counts as 0.
class AddNumbers : public AssociativeMergeOperator {
 public:
  const char* Name() const override { return "UInt64AddOperator"; }
  bool Merge(const Slice&, const Slice* existing, const Slice& value, std::string* sum,
             Logger*) const override {
    uint64_t number = Number(value) + (existing == nullptr ? 0 : Number(*existing));
    sum->assign(sizeof(number), '\0');
    for (char& byte : *sum) {
      byte = static_cast<char>(number & 255);
      number >>= 8;
    }
    return true;
  }

 private:
  static uint64_t Number(const Slice& text) {
    uint64_t number = 0;
    if (text.size() != sizeof(number)) return 0;
    for (size_t i = sizeof(number); i > 0; --i) {
      number = number << 8 | static_cast<unsigned char>(text[i - 1]);
    }
    return number;
  }
};

class MergeOperators {
 public:
  static std::shared_ptr<MergeOperator> CreateUInt64AddOperator() {
    return std::make_shared<AddNumbers>();
  }
};

}  // namespace ROCKSDB_NAMESPACE
