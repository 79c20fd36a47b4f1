// Tables that are made outside a database and ingested later.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rocksdb/options.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyHandle;
class Comparator;

struct ExternalSstFileInfo {
  std::string file_path;
  std::string smallest_key;
  std::string largest_key;
  uint64_t file_size = 0;
  uint64_t num_entries = 0;
};

class SstFileWriter {
 public:
  SstFileWriter(const EnvOptions& env_options, const Options& options,
                ColumnFamilyHandle* column_family = nullptr,
                bool invalidate_page_cache = true,
                Env::IOPriority io_priority = Env::IOPriority::IO_TOTAL,
                bool skip_filters = false);
  SstFileWriter(const EnvOptions& env_options, const Options& options,
                const Comparator* user_comparator, ColumnFamilyHandle* column_family = nullptr,
                bool invalidate_page_cache = true,
                Env::IOPriority io_priority = Env::IOPriority::IO_TOTAL,
                bool skip_filters = false);
  ~SstFileWriter();
  SstFileWriter(const SstFileWriter&) = delete;
  SstFileWriter& operator=(const SstFileWriter&) = delete;

  Status Open(const std::string& file_path);
  Status Add(const Slice& key, const Slice& value) { return Put(key, value); }
  Status Put(const Slice& key, const Slice& value);
  Status Put(const Slice& key, const Slice& ts, const Slice& value);
  Status Merge(const Slice& key, const Slice& value);
  Status Delete(const Slice& key);
  Status Delete(const Slice& key, const Slice& ts);
  Status DeleteRange(const Slice& begin, const Slice& end);
  Status Finish(ExternalSstFileInfo* info = nullptr);
  uint64_t FileSize();

 private:
  struct Rep;
  void Took(const Slice& key);
  std::unique_ptr<Rep> rep_;
};

}  // namespace ROCKSDB_NAMESPACE
