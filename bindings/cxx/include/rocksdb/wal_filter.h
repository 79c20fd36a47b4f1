// Decides about the records of logs while a database opens.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "rocksdb/customizable.h"

namespace ROCKSDB_NAMESPACE {

class WriteBatch;

// It has to outlive the opening. An exception ends the process: there is nobody to tell.
class WalFilter : public Customizable {
 public:
  enum class WalProcessingOption {
    kContinueProcessing = 0,
    kIgnoreCurrentRecord = 1,
    kStopReplay = 2,
    kCorruptedRecord = 3,
    kWalProcessingOptionMax = 4
  };

  ~WalFilter() override;
  static const char* Type() { return "WalFilter"; }

  // Numbers of families, with the log from which each is replayed, and with their names.
  virtual void ColumnFamilyLogNumberMap(const std::map<uint32_t, uint64_t>&,
                                        const std::map<std::string, uint32_t>&) {}
  // `new_batch` takes the place of `batch` when `*batch_changed` is set.
  virtual WalProcessingOption LogRecordFound(unsigned long long /*log_number*/,
                                             const std::string& /*log_file_name*/,
                                             const WriteBatch& batch, WriteBatch* new_batch,
                                             bool* batch_changed) {
    return LogRecord(batch, new_batch, batch_changed);
  }
  virtual WalProcessingOption LogRecord(const WriteBatch&, WriteBatch*, bool*) const {
    return WalProcessingOption::kContinueProcessing;
  }
  const char* Name() const override = 0;
};

}  // namespace ROCKSDB_NAMESPACE
