// Databases whose entries expire.

#include "db_impl.h"
#include "rocksdb/utilities/db_ttl.h"

namespace ROCKSDB_NAMESPACE {

DBWithTTL::~DBWithTTL() = default;

namespace {

class ExpiringDB final : public DBWithTTL {
 public:
  using DBWithTTL::DBWithTTL;
  Status CreateColumnFamilyWithTtl(const ColumnFamilyOptions& options, const std::string& name,
                                   ColumnFamilyHandle** handle, int ttl) override {
    *handle = nullptr;
    OptionsHandle made = NewOptions();
    Status status = ToC(options, made.get());
    if (!status.ok()) return status;
    ErrorText error;
    auto* created = rocksdb_create_column_family_with_ttl(static_cast<rocksdb_t*>(EskerHandle()),
                                                          made.get(), name.c_str(), ttl, error);
    if (!error.ok()) return error.status();
    *handle = new ColumnFamilyHandleImpl(created, options);
    return Status::OK();
  }
};

}  // namespace

Status DBWithTTL::Open(const Options& options, const std::string& path, DBWithTTL** db,
                       int32_t ttl, bool read_only) {
  *db = nullptr;
  if (read_only) return Status::NotSupported("DBWithTTL::Open for reading");
  Opening opening(options, path);
  if (!opening.status().ok()) return opening.status();
  ErrorText error;
  rocksdb_t* handle = rocksdb_open_with_ttl(opening.options(), opening.path(), ttl, error);
  if (!error.ok()) return error.status();
  *db = new ExpiringDB(opening.Finish(handle, rocksdb_close).release());
  return Status::OK();
}

Status DBWithTTL::Open(const DBOptions& options, const std::string& path,
                       const std::vector<ColumnFamilyDescriptor>& families,
                       std::vector<ColumnFamilyHandle*>* handles, DBWithTTL** db,
                       const std::vector<int32_t>& ttls, bool read_only) {
  *db = nullptr;
  if (read_only) return Status::NotSupported("DBWithTTL::Open for reading");
  if (ttls.size() != families.size()) {
    return Status::InvalidArgument("ttls size has to be the same as number of column families");
  }
  Opening opening(options, families, path);
  if (!opening.status().ok()) return opening.status();
  ErrorText error;
  rocksdb_t* handle = rocksdb_open_column_families_with_ttl(
      opening.options(), opening.path(), opening.count(), opening.names(), opening.families(),
      opening.handles(), ttls.data(), error);
  if (!error.ok()) return error.status();
  *db = new ExpiringDB(opening.Finish(handle, rocksdb_close).release());
  opening.TakeHandles(handles);
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
