// Indexes of tables of the application's own, which are refused when a database opens.
#pragma once

#include <memory>
#include <string>

#include "rocksdb/customizable.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class UserDefinedIndexFactory : public Customizable {
 public:
  ~UserDefinedIndexFactory() override;
  static const char* Type() { return "UserDefinedIndexFactory"; }
  // The factory that `value` names: "trie_index" has one, which is refused as others are.
  static Status CreateFromString(const ConfigOptions& config, const std::string& value,
                                 std::shared_ptr<UserDefinedIndexFactory>* factory);
};

}  // namespace ROCKSDB_NAMESPACE
