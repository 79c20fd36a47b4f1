// What jobs and tables tell of themselves, from the C interface.

#include "job_info.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A text that `get` lends.
template <class T>
std::string TextOf(const char* (*get)(const T*, size_t*), const T* from) {
  size_t length = 0;
  const char* bytes = get(from, &length);
  return bytes == nullptr ? std::string() : std::string(bytes, length);
}

// The member at a place of a list.
template <class T>
std::string TextAt(const char* (*get)(const T*, size_t, size_t*), const T* from, size_t place) {
  size_t length = 0;
  const char* bytes = get(from, place, &length);
  return bytes == nullptr ? std::string() : std::string(bytes, length);
}

template <class T>
Status StatusOf(void (*get)(const T*, char**), const T* from) {
  ErrorText error;
  get(from, error);
  return error.status();
}

CompactionFileInfo ToCxx(const rocksdb_compaction_file_info_t* from) {
  CompactionFileInfo to;
  to.level = rocksdb_compaction_file_info_level(from);
  to.file_number = rocksdb_compaction_file_info_file_number(from);
  to.oldest_blob_file_number = rocksdb_compaction_file_info_oldest_blob_file_number(from);
  return to;
}

BlobFileAdditionInfo ToCxx(const rocksdb_blob_file_addition_info_t* from) {
  return {TextOf(rocksdb_blob_file_addition_info_blob_file_path, from),
          rocksdb_blob_file_addition_info_blob_file_number(from),
          rocksdb_blob_file_addition_info_total_blob_count(from),
          rocksdb_blob_file_addition_info_total_blob_bytes(from)};
}

BlobFileGarbageInfo ToCxx(const rocksdb_blob_file_garbage_info_t* from) {
  return {TextOf(rocksdb_blob_file_garbage_info_blob_file_path, from),
          rocksdb_blob_file_garbage_info_blob_file_number(from),
          rocksdb_blob_file_garbage_info_garbage_blob_count(from),
          rocksdb_blob_file_garbage_info_garbage_blob_bytes(from)};
}

// The members of a list of objects.
template <class T, class Member>
auto ListOf(size_t (*count)(const T*), const Member* (*at)(const T*, size_t), const T* from) {
  std::vector<decltype(ToCxx(at(from, 0)))> to;
  const size_t many = count(from);
  to.reserve(many);
  for (size_t i = 0; i < many; ++i) to.push_back(ToCxx(at(from, i)));
  return to;
}

template <class T>
std::vector<std::string> TextsOf(size_t (*count)(const T*),
                                 const char* (*at)(const T*, size_t, size_t*), const T* from) {
  std::vector<std::string> to;
  const size_t many = count(from);
  for (size_t i = 0; i < many; ++i) to.push_back(TextAt(at, from, i));
  return to;
}

CompactionJobStats ToCxx(const rocksdb_compaction_job_stats_t* from) {
  CompactionJobStats to;
#define NUMBER(NAME) to.NAME = rocksdb_compaction_job_stats_##NAME(from);
#define FLAG(NAME) to.NAME = rocksdb_compaction_job_stats_##NAME(from) != 0;
#define TEXT(NAME) to.NAME = TextOf(rocksdb_compaction_job_stats_##NAME, from);
  NUMBER(elapsed_micros) NUMBER(cpu_micros) NUMBER(num_input_records) NUMBER(num_blobs_read)
  NUMBER(num_output_records) NUMBER(total_input_bytes) NUMBER(total_blob_bytes_read)
  NUMBER(total_output_bytes) NUMBER(total_output_bytes_blob) NUMBER(total_skipped_input_bytes)
  NUMBER(num_records_replaced) NUMBER(total_input_raw_key_bytes)
  NUMBER(total_input_raw_value_bytes) NUMBER(num_input_deletion_records)
  NUMBER(num_expired_deletion_records) NUMBER(num_corrupt_keys) NUMBER(file_write_nanos)
  NUMBER(file_range_sync_nanos) NUMBER(file_fsync_nanos) NUMBER(file_prepare_write_nanos)
  NUMBER(num_single_del_fallthru) NUMBER(num_single_del_mismatch) NUMBER(num_input_files)
  NUMBER(num_input_files_trivially_moved) NUMBER(num_input_files_at_output_level)
  NUMBER(num_filtered_input_files) NUMBER(num_filtered_input_files_at_output_level)
  NUMBER(num_output_files) NUMBER(num_output_files_blob)
  FLAG(has_accurate_num_input_records) FLAG(is_full_compaction) FLAG(is_manual_compaction)
  FLAG(is_remote_compaction)
  TEXT(smallest_output_key_prefix) TEXT(largest_output_key_prefix)
#undef NUMBER
#undef FLAG
#undef TEXT
  return to;
}

}  // namespace

TableProperties ToCxx(const rocksdb_table_properties_t* from) {
  TableProperties to;
#define NUMBER(NAME) to.NAME = rocksdb_table_properties_##NAME(from);
#define TEXT(NAME) to.NAME = TextOf(rocksdb_table_properties_##NAME, from);
  NUMBER(orig_file_number) NUMBER(data_size) NUMBER(uncompressed_data_size) NUMBER(index_size)
  NUMBER(index_partitions) NUMBER(top_level_index_size) NUMBER(index_key_is_user_key)
  NUMBER(index_value_is_delta_encoded) NUMBER(udi_is_primary_index) NUMBER(filter_size)
  NUMBER(raw_key_size) NUMBER(raw_value_size) NUMBER(num_data_blocks)
  NUMBER(num_data_blocks_compression_rejected) NUMBER(num_data_blocks_compression_bypassed)
  NUMBER(num_uniform_blocks) NUMBER(num_entries) NUMBER(num_filter_entries)
  NUMBER(num_deletions) NUMBER(num_merge_operands) NUMBER(num_range_deletions)
  NUMBER(format_version) NUMBER(fixed_key_len) NUMBER(column_family_id) NUMBER(creation_time)
  NUMBER(oldest_key_time) NUMBER(newest_key_time) NUMBER(file_creation_time)
  NUMBER(slow_compression_estimated_data_size) NUMBER(fast_compression_estimated_data_size)
  NUMBER(external_sst_file_global_seqno_offset) NUMBER(tail_start_offset)
  NUMBER(user_defined_timestamps_persisted) NUMBER(key_largest_seqno)
  NUMBER(key_smallest_seqno) NUMBER(data_block_restart_interval)
  NUMBER(index_block_restart_interval) NUMBER(separate_key_value_in_data_block)
  TEXT(db_id) TEXT(db_session_id) TEXT(db_host_id) TEXT(column_family_name)
  TEXT(filter_policy_name) TEXT(comparator_name) TEXT(merge_operator_name)
  TEXT(prefix_extractor_name) TEXT(property_collectors_names) TEXT(compression_name)
  TEXT(compression_options) TEXT(seqno_to_time_mapping)
#undef NUMBER
#undef TEXT
#define PAIRS(NAME)                                                                       \
  for (size_t i = 0; i < rocksdb_table_properties_##NAME##_count(from); ++i) {            \
    to.NAME[TextAt(rocksdb_table_properties_##NAME##_key_at, from, i)] =                  \
        TextAt(rocksdb_table_properties_##NAME##_value_at, from, i);                      \
  }
  PAIRS(user_collected_properties)
  PAIRS(readable_properties)
#undef PAIRS
  return to;
}

FlushJobInfo ToCxx(const rocksdb_flushjobinfo_t* from) {
  FlushJobInfo to;
  to.cf_id = rocksdb_flushjobinfo_cf_id(from);
  to.cf_name = TextOf(rocksdb_flushjobinfo_cf_name, from);
  to.file_path = TextOf(rocksdb_flushjobinfo_file_path, from);
  to.file_number = rocksdb_flushjobinfo_file_number(from);
  to.oldest_blob_file_number = rocksdb_flushjobinfo_oldest_blob_file_number(from);
  to.thread_id = rocksdb_flushjobinfo_thread_id(from);
  to.job_id = rocksdb_flushjobinfo_job_id(from);
  to.triggered_writes_slowdown = rocksdb_flushjobinfo_triggered_writes_slowdown(from) != 0;
  to.triggered_writes_stop = rocksdb_flushjobinfo_triggered_writes_stop(from) != 0;
  to.smallest_seqno = rocksdb_flushjobinfo_smallest_seqno(from);
  to.largest_seqno = rocksdb_flushjobinfo_largest_seqno(from);
  to.table_properties = ToCxx(rocksdb_flushjobinfo_table_properties(from));
  to.flush_reason = static_cast<FlushReason>(rocksdb_flushjobinfo_flush_reason(from));
  to.blob_compression_type =
      static_cast<CompressionType>(rocksdb_flushjobinfo_blob_compression_type(from));
  to.blob_file_addition_infos = ListOf(rocksdb_flushjobinfo_blob_file_addition_infos_count,
                                       rocksdb_flushjobinfo_blob_file_addition_info_at, from);
  return to;
}

SubcompactionJobInfo ToCxx(const rocksdb_subcompactionjobinfo_t* from) {
  SubcompactionJobInfo to;
  to.cf_id = rocksdb_subcompactionjobinfo_cf_id(from);
  to.cf_name = TextOf(rocksdb_subcompactionjobinfo_cf_name, from);
  to.status = StatusOf(rocksdb_subcompactionjobinfo_status, from);
  to.thread_id = rocksdb_subcompactionjobinfo_thread_id(from);
  to.job_id = rocksdb_subcompactionjobinfo_job_id(from);
  to.subcompaction_job_id = rocksdb_subcompactionjobinfo_subcompaction_job_id(from);
  to.base_input_level = rocksdb_subcompactionjobinfo_base_input_level(from);
  to.output_level = rocksdb_subcompactionjobinfo_output_level(from);
  to.compaction_reason =
      static_cast<CompactionReason>(rocksdb_subcompactionjobinfo_compaction_reason(from));
  to.compression =
      static_cast<CompressionType>(rocksdb_subcompactionjobinfo_compression(from));
  to.stats = ToCxx(rocksdb_subcompactionjobinfo_stats(from));
  to.blob_compression_type =
      static_cast<CompressionType>(rocksdb_subcompactionjobinfo_blob_compression_type(from));
  return to;
}

ExternalFileIngestionInfo ToCxx(const rocksdb_externalfileingestioninfo_t* from) {
  ExternalFileIngestionInfo to;
  to.cf_name = TextOf(rocksdb_externalfileingestioninfo_cf_name, from);
  to.external_file_path = TextOf(rocksdb_externalfileingestioninfo_external_file_path, from);
  to.internal_file_path = TextOf(rocksdb_externalfileingestioninfo_internal_file_path, from);
  to.global_seqno = rocksdb_externalfileingestioninfo_global_seqno(from);
  to.table_properties = ToCxx(rocksdb_externalfileingestioninfo_table_properties(from));
  return to;
}

MemTableInfo ToCxx(const rocksdb_memtableinfo_t* from) {
  MemTableInfo to;
  to.cf_name = TextOf(rocksdb_memtableinfo_cf_name, from);
  to.first_seqno = rocksdb_memtableinfo_first_seqno(from);
  to.earliest_seqno = rocksdb_memtableinfo_earliest_seqno(from);
  to.num_entries = rocksdb_memtableinfo_num_entries(from);
  to.num_deletes = rocksdb_memtableinfo_num_deletes(from);
  to.newest_udt = TextOf(rocksdb_memtableinfo_newest_udt, from);
  return to;
}

CompactionJobInfo ToCxx(const rocksdb_compactionjobinfo_t* from) {
  CompactionJobInfo to;
  to.cf_id = rocksdb_compactionjobinfo_cf_id(from);
  to.cf_name = TextOf(rocksdb_compactionjobinfo_cf_name, from);
  to.status = StatusOf(rocksdb_compactionjobinfo_status, from);
  to.thread_id = rocksdb_compactionjobinfo_thread_id(from);
  to.job_id = rocksdb_compactionjobinfo_job_id(from);
  to.num_l0_files = rocksdb_compactionjobinfo_num_l0_files(from);
  to.base_input_level = rocksdb_compactionjobinfo_base_input_level(from);
  to.output_level = rocksdb_compactionjobinfo_output_level(from);
  to.input_files = TextsOf(rocksdb_compactionjobinfo_input_files_count,
                           rocksdb_compactionjobinfo_input_file_at, from);
  to.input_file_infos = ListOf(rocksdb_compactionjobinfo_input_file_infos_count,
                               rocksdb_compactionjobinfo_input_file_info_at, from);
  to.output_files = TextsOf(rocksdb_compactionjobinfo_output_files_count,
                            rocksdb_compactionjobinfo_output_file_at, from);
  to.output_file_infos = ListOf(rocksdb_compactionjobinfo_output_file_infos_count,
                                rocksdb_compactionjobinfo_output_file_info_at, from);
  const size_t tables = rocksdb_compactionjobinfo_table_properties_count(from);
  for (size_t i = 0; i < tables; ++i) {
    const auto* table = rocksdb_compactionjobinfo_table_properties_value_at(from, i);
    to.table_properties[TextAt(rocksdb_compactionjobinfo_table_properties_key_at, from, i)] =
        std::make_shared<const TableProperties>(ToCxx(table));
  }
  to.compaction_reason =
      static_cast<CompactionReason>(rocksdb_compactionjobinfo_compaction_reason(from));
  to.compression = static_cast<CompressionType>(rocksdb_compactionjobinfo_compression(from));
  to.stats = ToCxx(rocksdb_compactionjobinfo_stats(from));
  to.blob_compression_type =
      static_cast<CompressionType>(rocksdb_compactionjobinfo_blob_compression_type(from));
  to.blob_file_addition_infos =
      ListOf(rocksdb_compactionjobinfo_blob_file_addition_infos_count,
             rocksdb_compactionjobinfo_blob_file_addition_info_at, from);
  to.blob_file_garbage_infos = ListOf(rocksdb_compactionjobinfo_blob_file_garbage_infos_count,
                                      rocksdb_compactionjobinfo_blob_file_garbage_info_at, from);
  to.aborted = rocksdb_compactionjobinfo_aborted(from) != 0;
  return to;
}

}  // namespace ROCKSDB_NAMESPACE
