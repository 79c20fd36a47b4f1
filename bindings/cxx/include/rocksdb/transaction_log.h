// The changes that a database has logged.
#pragma once

#include <cstdint>
#include <memory>

#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "rocksdb/write_batch.h"

namespace ROCKSDB_NAMESPACE {

struct BatchResult {
  SequenceNumber sequence = 0;
  std::unique_ptr<WriteBatch> writeBatchPtr;
};

class TransactionLogIterator {
 public:
  struct ReadOptions {
    bool verify_checksums_ = true;

    ReadOptions() = default;
    explicit ReadOptions(bool verifies) : verify_checksums_(verifies) {}
  };

  virtual ~TransactionLogIterator();
  virtual bool Valid() = 0;
  virtual void Next() = 0;
  virtual Status status() = 0;
  virtual BatchResult GetBatch() = 0;
};

}  // namespace ROCKSDB_NAMESPACE
