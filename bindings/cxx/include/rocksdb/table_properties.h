// Properties of tables, and collectors of the application's own, which are refused.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "rocksdb/customizable.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

using UserCollectedProperties = std::map<std::string, std::string>;

class TableProperties {
 public:
  uint64_t data_size = 0;
  uint64_t index_size = 0;
  uint64_t filter_size = 0;
  uint64_t raw_key_size = 0;
  uint64_t raw_value_size = 0;
  uint64_t num_data_blocks = 0;
  uint64_t num_entries = 0;
  uint64_t num_deletions = 0;
  uint64_t num_merge_operands = 0;
  uint64_t num_range_deletions = 0;
  std::string column_family_name;
  UserCollectedProperties user_collected_properties;
};

class TablePropertiesCollector {
 public:
  virtual ~TablePropertiesCollector();
  virtual Status AddUserKey(const Slice&, const Slice&, EntryType, SequenceNumber, uint64_t) {
    return Status::InvalidArgument("TablePropertiesCollector::AddUserKey");
  }
  virtual void BlockAdd(uint64_t, uint64_t, uint64_t) {}
  virtual Status Finish(UserCollectedProperties* properties) = 0;
  virtual UserCollectedProperties GetReadableProperties() const = 0;
  virtual const char* Name() const = 0;
  virtual bool NeedCompact() const { return false; }
};

class TablePropertiesCollectorFactory : public Customizable {
 public:
  struct Context {
    uint32_t column_family_id = 0;
    int level_at_creation = -1;
    int num_levels = -1;
  };
  ~TablePropertiesCollectorFactory() override;
  virtual TablePropertiesCollector* CreateTablePropertiesCollector(Context context) = 0;
  const char* Name() const override = 0;
};

}  // namespace ROCKSDB_NAMESPACE
