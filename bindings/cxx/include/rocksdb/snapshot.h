// Views of a database at one time.
#pragma once

#include "rocksdb/types.h"

namespace ROCKSDB_NAMESPACE {

class DB;

// Given back with DB::ReleaseSnapshot.
class Snapshot {
 public:
  virtual SequenceNumber GetSequenceNumber() const = 0;
  virtual int64_t GetUnixTime() const { return 0; }
  virtual uint64_t GetTimestamp() const { return 0; }
  // The object of the C interface.
  virtual const void* EskerHandle() const = 0;

 protected:
  virtual ~Snapshot();
};

// Takes a snapshot, and gives it back.
class ManagedSnapshot {
 public:
  explicit ManagedSnapshot(DB* db);
  ManagedSnapshot(DB* db, const Snapshot* snapshot) : db_(db), snapshot_(snapshot) {}
  ~ManagedSnapshot();
  ManagedSnapshot(const ManagedSnapshot&) = delete;
  ManagedSnapshot& operator=(const ManagedSnapshot&) = delete;

  const Snapshot* snapshot() { return snapshot_; }

 private:
  DB* db_;
  const Snapshot* snapshot_;
};

}  // namespace ROCKSDB_NAMESPACE
