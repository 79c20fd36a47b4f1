// The changes that a database has logged.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/status.h"
#include "rocksdb/types.h"
#include "rocksdb/write_batch.h"

namespace ROCKSDB_NAMESPACE {

enum WalFileType { kArchivedLogFile = 0, kAliveLogFile = 1 };

// A log on disk.
class WalFile {
 public:
  virtual ~WalFile();
  // Below the directory of logs, with a slash before it.
  virtual std::string PathName() const = 0;
  virtual uint64_t LogNumber() const = 0;
  virtual WalFileType Type() const = 0;
  virtual SequenceNumber StartSequence() const = 0;
  virtual uint64_t SizeFileBytes() const = 0;
};
using LogFile = WalFile;
using VectorWalPtr = std::vector<std::unique_ptr<WalFile>>;
using VectorLogPtr = VectorWalPtr;

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
