// Limits on the space of tables and on the speed of deletions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rocksdb/env.h"

namespace ROCKSDB_NAMESPACE {

class SstFileManager {
 public:
  virtual ~SstFileManager();
  virtual void SetMaxAllowedSpaceUsage(uint64_t bytes) = 0;
  virtual void SetCompactionBufferSize(uint64_t bytes) = 0;
  virtual bool IsMaxAllowedSpaceReached() = 0;
  virtual bool IsMaxAllowedSpaceReachedIncludingCompactions() = 0;
  virtual uint64_t GetTotalSize() = 0;
  virtual int64_t GetDeleteRateBytesPerSecond() = 0;
  virtual void SetDeleteRateBytesPerSecond(int64_t rate) = 0;
  virtual double GetMaxTrashDBRatio() = 0;
  virtual void SetMaxTrashDBRatio(double ratio) = 0;
  virtual uint64_t GetTotalTrashSize() = 0;
  // The object of the C interface; null for one of the application's own, which is refused.
  virtual void* EskerHandle() const { return nullptr; }
};

// The caller owns the manager.
SstFileManager* NewSstFileManager(Env* env, std::shared_ptr<Logger> info_log = nullptr,
                                  std::string trash_dir = "", int64_t rate_bytes_per_sec = 0,
                                  bool delete_existing_trash = true, Status* status = nullptr,
                                  double max_trash_db_ratio = 0.25,
                                  uint64_t bytes_max_delete_chunk = 64 * 1024 * 1024);

}  // namespace ROCKSDB_NAMESPACE
