// Copies of an open database by hard links.
#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class DB;

class Checkpoint {
 public:
  static Status Create(DB* db, Checkpoint** checkpoint);
  virtual ~Checkpoint();
  virtual Status CreateCheckpoint(const std::string& dir, uint64_t log_size_for_flush = 0,
                                  uint64_t* sequence_number = nullptr) = 0;
};

}  // namespace ROCKSDB_NAMESPACE
