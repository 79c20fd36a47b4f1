// Databases whose entries expire.
#pragma once

#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/utilities/stackable_db.h"

namespace ROCKSDB_NAMESPACE {

class DBWithTTL : public StackableDB {
 public:
  // Entries live `ttl` seconds; 0 or less for ever.
  static Status Open(const Options& options, const std::string& path, DBWithTTL** db,
                     int32_t ttl = 0, bool read_only = false);
  static Status Open(const DBOptions& options, const std::string& path,
                     const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<ColumnFamilyHandle*>* handles, DBWithTTL** db,
                     const std::vector<int32_t>& ttls, bool read_only = false);
  ~DBWithTTL() override;

  virtual Status CreateColumnFamilyWithTtl(const ColumnFamilyOptions& options,
                                           const std::string& name, ColumnFamilyHandle** handle,
                                           int ttl) = 0;

 protected:
  using StackableDB::StackableDB;
};

}  // namespace ROCKSDB_NAMESPACE
