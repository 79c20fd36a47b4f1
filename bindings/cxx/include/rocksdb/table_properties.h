// Properties of tables, and collectors that the application has while tables are written.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "rocksdb/customizable.h"
#include "rocksdb/status.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

using UserCollectedProperties = std::map<std::string, std::string>;

// As the table says. Sizes are in bytes, times in seconds since 1970.
struct TableProperties {
  uint64_t orig_file_number = 0;
  uint64_t data_size = 0;
  uint64_t uncompressed_data_size = 0;
  uint64_t index_size = 0;
  uint64_t index_partitions = 0;
  uint64_t top_level_index_size = 0;
  uint64_t index_key_is_user_key = 0;
  uint64_t index_value_is_delta_encoded = 0;
  uint64_t udi_is_primary_index = 0;
  uint64_t filter_size = 0;
  uint64_t raw_key_size = 0;
  uint64_t raw_value_size = 0;
  uint64_t num_data_blocks = 0;
  uint64_t num_data_blocks_compression_rejected = 0;
  uint64_t num_data_blocks_compression_bypassed = 0;
  uint64_t num_uniform_blocks = 0;
  uint64_t num_entries = 0;
  uint64_t num_filter_entries = 0;
  uint64_t num_deletions = 0;
  uint64_t num_merge_operands = 0;
  uint64_t num_range_deletions = 0;
  uint64_t format_version = 0;
  uint64_t fixed_key_len = 0;
  uint64_t column_family_id = std::numeric_limits<int32_t>::max();
  uint64_t creation_time = 0;
  uint64_t oldest_key_time = 0;
  uint64_t newest_key_time = 0;
  uint64_t file_creation_time = 0;
  uint64_t slow_compression_estimated_data_size = 0;
  uint64_t fast_compression_estimated_data_size = 0;
  uint64_t external_sst_file_global_seqno_offset = 0;
  uint64_t tail_start_offset = 0;
  uint64_t user_defined_timestamps_persisted = 1;
  uint64_t key_largest_seqno = UINT64_MAX;
  uint64_t key_smallest_seqno = UINT64_MAX;
  uint64_t data_block_restart_interval = 0;
  uint64_t index_block_restart_interval = 0;
  uint64_t separate_key_value_in_data_block = 0;
  std::string db_id;
  std::string db_session_id;
  std::string db_host_id;
  std::string column_family_name;
  std::string filter_policy_name;
  std::string comparator_name;
  std::string merge_operator_name;
  std::string prefix_extractor_name;
  std::string property_collectors_names;
  std::string compression_name;
  std::string compression_options;
  std::string seqno_to_time_mapping;
  UserCollectedProperties user_collected_properties;
  UserCollectedProperties readable_properties;

  bool HasKeyLargestSeqno() const { return key_largest_seqno != UINT64_MAX; }
  bool HasKeySmallestSeqno() const { return key_smallest_seqno != UINT64_MAX; }
};

// Belongs to one table, whose entries it sees in their order; range deletions come last. An
// exception ends the process: there is nobody to tell. BlockAdd() is not called.
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
  // Adds a factory that is built in to an options object of the C interface; false for one of the
  // application's own.
  virtual bool EskerAddTo(void* /*options*/) const { return false; }
};

}  // namespace ROCKSDB_NAMESPACE
