// Facts about the files of a database.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rocksdb/options.h"
#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

struct FileStorageInfo {
  std::string relative_filename;
  std::string directory;
  uint64_t file_number = 0;
  FileType file_type = kTempFile;
  uint64_t size = 0;
  Temperature temperature = Temperature::kUnknown;
  std::string file_checksum;
  std::string file_checksum_func_name;
};

// A file of a copy of the database. Of some files the first bytes count, or other contents.
struct LiveFileStorageInfo : public FileStorageInfo {
  std::string replacement_contents;
  bool trim_to_size = false;
};

struct SstFileMetaData : public FileStorageInfo {
  // As in `relative_filename`, with a slash before it.
  std::string name;
  std::string db_path;
  SequenceNumber smallest_seqno = 0;
  SequenceNumber largest_seqno = 0;
  std::string smallestkey;
  std::string largestkey;
  uint64_t num_reads_sampled = 0;
  bool being_compacted = false;
  uint64_t num_entries = 0;
  uint64_t num_deletions = 0;
  uint64_t oldest_blob_file_number = 0;
  uint64_t oldest_ancester_time = 0;
  uint64_t file_creation_time = 0;
};

struct LiveFileMetaData : public SstFileMetaData {
  std::string column_family_name;
  int level = 0;
};

struct LevelMetaData {
  LevelMetaData(int number, uint64_t bytes, const std::vector<SstFileMetaData>&& those)
      : level(number), size(bytes), files(those) {}

  const int level;
  const uint64_t size;
  const std::vector<SstFileMetaData> files;
};

// What to leave out of the metadata. A level of -1 stands for all.
struct GetColumnFamilyMetaDataOptions {
  GetColumnFamilyMetaDataOptions() = default;
  GetColumnFamilyMetaDataOptions(const OptSlice& start, const OptSlice& end, int of_level = -1)
      : range(start, end), level(of_level) {}

  RangeOpt range;
  int level = -1;
};

// The files of a family that was exported, and the name of its order.
struct ExportImportFilesMetaData {
  std::string db_comparator_name;
  std::vector<LiveFileMetaData> files;
};

struct ColumnFamilyMetaData {
  uint64_t size = 0;
  size_t file_count = 0;
  std::string name;
  std::vector<LevelMetaData> levels;
};

}  // namespace ROCKSDB_NAMESPACE
