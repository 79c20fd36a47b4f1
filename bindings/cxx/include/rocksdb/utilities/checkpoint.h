// Copies of an open database by hard links.
#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyHandle;
class DB;
struct ExportImportFilesMetaData;

class Checkpoint {
 public:
  static Status Create(DB* db, Checkpoint** checkpoint);
  virtual ~Checkpoint();
  virtual Status CreateCheckpoint(const std::string& dir, uint64_t log_size_for_flush = 0,
                                  uint64_t* sequence_number = nullptr) = 0;
  // The tables of one family, for DB::CreateColumnFamilyWithImport. The caller owns `*files`.
  virtual Status ExportColumnFamily(ColumnFamilyHandle* family, const std::string& dir,
                                    ExportImportFilesMetaData** files) = 0;
};

}  // namespace ROCKSDB_NAMESPACE
