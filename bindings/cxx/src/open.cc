// Opening, listing, destroying and repairing databases.

#include "db_impl.h"
#include "rocksdb/utilities/options_util.h"

namespace ROCKSDB_NAMESPACE {

Opening::Opening(const DBOptions& options, const std::vector<ColumnFamilyDescriptor>& families,
                 const std::string& path)
    : options_(NewOptions()), descriptors_(families), path_(path) {
  ColumnFamilyOptions of_default;
  for (const ColumnFamilyDescriptor& family : descriptors_) {
    if (family.name == kDefaultColumnFamilyName) of_default = family.options;
  }
  db_ = std::make_unique<DBImpl>(options, of_default, path);
  status_ = ToC(options, db_->listened(), options_.get());
  for (const ColumnFamilyDescriptor& family : descriptors_) {
    family_options_.push_back(NewOptions());
    if (status_.ok()) status_ = ToC(family.options, family_options_.back().get());
    family_handles_.push_back(family_options_.back().get());
    names_.push_back(family.name.c_str());
  }
  opened_.resize(names_.size(), nullptr);
}

Opening::Opening(const Options& options, const std::string& path)
    : db_(std::make_unique<DBImpl>(options, options, path)),
      options_(NewOptions()),
      path_(path) {
  status_ = ToC(static_cast<const DBOptions&>(options), db_->listened(), options_.get());
  if (status_.ok()) {
    status_ = ToC(static_cast<const ColumnFamilyOptions&>(options), options_.get());
  }
}

std::unique_ptr<DBImpl> Opening::Finish(rocksdb_t* handle,
                                        std::function<void(rocksdb_t*)> close) {
  db_->Opened(handle, std::move(close));
  return std::move(db_);
}

void Opening::TakeHandles(std::vector<ColumnFamilyHandle*>* handles) {
  handles->clear();
  for (size_t i = 0; i < opened_.size(); ++i) {
    handles->push_back(new ColumnFamilyHandleImpl(opened_[i], descriptors_[i].options));
  }
}

namespace {

// Opens with `call`, which gets the opening and the place for an error.
template <class Call>
Status OpenWith(Opening&& opening, std::vector<ColumnFamilyHandle*>* handles,
                std::unique_ptr<DB>* db, Call&& call) {
  db->reset();
  if (handles != nullptr) handles->clear();
  if (!opening.status().ok()) return opening.status();
  ErrorText error;
  rocksdb_t* handle = call(opening, error);
  if (!error.ok()) return error.status();
  *db = opening.Finish(handle, rocksdb_close);
  if (handles != nullptr) opening.TakeHandles(handles);
  return Status::OK();
}

// Gives a database to a caller that deletes it.
Status Give(Status status, std::unique_ptr<DB>&& opened, DB** db) {
  *db = opened.release();
  return status;
}

}  // namespace

Status DB::Open(const Options& options, const std::string& path, std::unique_ptr<DB>* db) {
  return OpenWith(Opening(options, path), nullptr, db, [](Opening& opening, ErrorText& error) {
    return rocksdb_open(opening.options(), opening.path(), error);
  });
}

Status DB::Open(const DBOptions& options, const std::string& path,
                const std::vector<ColumnFamilyDescriptor>& families,
                std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<DB>* db) {
  return OpenWith(Opening(options, families, path), handles, db,
                  [](Opening& opening, ErrorText& error) {
                    return rocksdb_open_column_families(opening.options(), opening.path(),
                                                        opening.count(), opening.names(),
                                                        opening.families(), opening.handles(),
                                                        error);
                  });
}

Status DB::OpenForReadOnly(const Options& options, const std::string& path,
                           std::unique_ptr<DB>* db, bool error_if_wal_file_exists) {
  return OpenWith(Opening(options, path), nullptr, db, [&](Opening& opening, ErrorText& error) {
    return rocksdb_open_for_read_only(opening.options(), opening.path(),
                                      error_if_wal_file_exists ? 1 : 0, error);
  });
}

Status DB::OpenForReadOnly(const DBOptions& options, const std::string& path,
                           const std::vector<ColumnFamilyDescriptor>& families,
                           std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<DB>* db,
                           bool error_if_wal_file_exists) {
  return OpenWith(Opening(options, families, path), handles, db,
                  [&](Opening& opening, ErrorText& error) {
                    return rocksdb_open_for_read_only_column_families(
                        opening.options(), opening.path(), opening.count(), opening.names(),
                        opening.families(), opening.handles(), error_if_wal_file_exists ? 1 : 0,
                        error);
                  });
}

Status DB::OpenAsSecondary(const Options& options, const std::string& path,
                           const std::string& secondary_path, std::unique_ptr<DB>* db) {
  return OpenWith(Opening(options, path), nullptr, db, [&](Opening& opening, ErrorText& error) {
    return rocksdb_open_as_secondary(opening.options(), opening.path(), secondary_path.c_str(),
                                     error);
  });
}

Status DB::OpenAsSecondary(const DBOptions& options, const std::string& path,
                           const std::string& secondary_path,
                           const std::vector<ColumnFamilyDescriptor>& families,
                           std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<DB>* db) {
  return OpenWith(Opening(options, families, path), handles, db,
                  [&](Opening& opening, ErrorText& error) {
                    return rocksdb_open_as_secondary_column_families(
                        opening.options(), opening.path(), secondary_path.c_str(),
                        opening.count(), opening.names(), opening.families(), opening.handles(),
                        error);
                  });
}

Status DB::OpenAndTrimHistory(const DBOptions& options, const std::string& path,
                              const std::vector<ColumnFamilyDescriptor>& families,
                              std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<DB>* db,
                              std::string trim_ts) {
  return OpenWith(Opening(options, families, path), handles, db,
                  [&](Opening& opening, ErrorText& error) {
                    return rocksdb_open_and_trim_history(
                        opening.options(), opening.path(), opening.count(), opening.names(),
                        opening.families(), opening.handles(), trim_ts.data(), trim_ts.size(),
                        error);
                  });
}

Status DB::Open(const Options& options, const std::string& path, DB** db) {
  std::unique_ptr<DB> opened;
  return Give(Open(options, path, &opened), std::move(opened), db);
}

Status DB::Open(const DBOptions& options, const std::string& path,
                const std::vector<ColumnFamilyDescriptor>& families,
                std::vector<ColumnFamilyHandle*>* handles, DB** db) {
  std::unique_ptr<DB> opened;
  return Give(Open(options, path, families, handles, &opened), std::move(opened), db);
}

Status DB::OpenForReadOnly(const Options& options, const std::string& path, DB** db,
                           bool error_if_wal_file_exists) {
  std::unique_ptr<DB> opened;
  return Give(OpenForReadOnly(options, path, &opened, error_if_wal_file_exists),
              std::move(opened), db);
}

Status DB::OpenForReadOnly(const DBOptions& options, const std::string& path,
                           const std::vector<ColumnFamilyDescriptor>& families,
                           std::vector<ColumnFamilyHandle*>* handles, DB** db,
                           bool error_if_wal_file_exists) {
  std::unique_ptr<DB> opened;
  return Give(OpenForReadOnly(options, path, families, handles, &opened,
                              error_if_wal_file_exists),
              std::move(opened), db);
}

Status DB::OpenAsSecondary(const Options& options, const std::string& path,
                           const std::string& secondary_path, DB** db) {
  std::unique_ptr<DB> opened;
  return Give(OpenAsSecondary(options, path, secondary_path, &opened), std::move(opened), db);
}

Status DB::OpenAsSecondary(const DBOptions& options, const std::string& path,
                           const std::string& secondary_path,
                           const std::vector<ColumnFamilyDescriptor>& families,
                           std::vector<ColumnFamilyHandle*>* handles, DB** db) {
  std::unique_ptr<DB> opened;
  return Give(OpenAsSecondary(options, path, secondary_path, families, handles, &opened),
              std::move(opened), db);
}

Status DB::ListColumnFamilies(const DBOptions& options, const std::string& path,
                              std::vector<std::string>* families) {
  families->clear();
  OptionsHandle handle = NewOptions();
  Status status = ToC(options, std::make_shared<ListenedDb>(), handle.get());
  if (!status.ok()) return status;
  ErrorText error;
  size_t count = 0;
  char** names = rocksdb_list_column_families(handle.get(), path.c_str(), &count, error);
  if (!error.ok()) return error.status();
  families->assign(names, names + count);
  rocksdb_list_column_families_destroy(names, count);
  return Status::OK();
}

namespace {

Status ToC(const Options& options, rocksdb_options_t* out) {
  Status status = ToC(static_cast<const DBOptions&>(options), std::make_shared<ListenedDb>(), out);
  return status.ok() ? ToC(static_cast<const ColumnFamilyOptions&>(options), out) : status;
}

}  // namespace

Status DestroyDB(const std::string& path, const Options& options,
                 const std::vector<ColumnFamilyDescriptor>&) {
  OptionsHandle handle = NewOptions();
  Status status = ToC(options, handle.get());
  if (!status.ok()) return status;
  ErrorText error;
  rocksdb_destroy_db(handle.get(), path.c_str(), error);
  return error.status();
}

Status RepairDB(const std::string& path, const Options& options) {
  OptionsHandle handle = NewOptions();
  Status status = ToC(options, handle.get());
  if (!status.ok()) return status;
  ErrorText error;
  rocksdb_repair_db(handle.get(), path.c_str(), error);
  return error.status();
}

Status LoadLatestOptions(const ConfigOptions& config, const std::string& path,
                         DBOptions* db_options, std::vector<ColumnFamilyDescriptor>* families,
                         std::shared_ptr<Cache>*) {
  Handle<rocksdb_env_t> env(rocksdb_create_default_env(), rocksdb_env_destroy);
  rocksdb_options_t* of_db = nullptr;
  rocksdb_options_t** of_families = nullptr;
  char** names = nullptr;
  size_t count = 0;
  ErrorText error;
  rocksdb_load_latest_options(path.c_str(), env.get(), config.ignore_unknown_options, nullptr,
                              &of_db, &count, &names, &of_families, error);
  if (!error.ok()) return error.status();
  *db_options = DBOptions();
  FromC(of_db, db_options);
  families->clear();
  for (size_t i = 0; i < count; ++i) {
    ColumnFamilyOptions family;
    FromC(of_families[i], &family);
    families->emplace_back(names[i], family);
  }
  rocksdb_load_latest_options_destroy(of_db, names, of_families, count);
  return Status::OK();
}

Status LoadLatestOptions(const std::string& path, Env*, DBOptions* db_options,
                         std::vector<ColumnFamilyDescriptor>* families,
                         bool ignore_unknown_options, std::shared_ptr<Cache>* cache) {
  ConfigOptions config;
  config.ignore_unknown_options = ignore_unknown_options;
  return LoadLatestOptions(config, path, db_options, families, cache);
}

Status CheckOptionsCompatibility(const std::string& path, Env* env, const DBOptions&,
                                 const std::vector<ColumnFamilyDescriptor>& families,
                                 bool ignore_unknown_options) {
  DBOptions stored;
  std::vector<ColumnFamilyDescriptor> stored_families;
  Status status = LoadLatestOptions(path, env, &stored, &stored_families, ignore_unknown_options);
  if (!status.ok()) return status;
  if (stored_families.size() != families.size()) {
    return Status::InvalidArgument("other column families are stored");
  }
  for (size_t i = 0; i < families.size(); ++i) {
    if (families[i].name != stored_families[i].name) {
      return Status::InvalidArgument("another column family is stored", stored_families[i].name);
    }
  }
  return Status::OK();
}

Status GetLatestOptionsFileName(const std::string& path, Env* env, std::string* name) {
  std::vector<std::string> children;
  Status status = env->GetChildren(path, &children);
  if (!status.ok()) return status;
  const std::string prefix = "OPTIONS-";
  uint64_t latest = 0;
  name->clear();
  for (const std::string& child : children) {
    if (child.compare(0, prefix.size(), prefix) != 0) continue;
    const std::string rest = child.substr(prefix.size());
    if (rest.empty() || rest.find_first_not_of("0123456789") != std::string::npos) continue;
    const uint64_t number = std::strtoull(rest.c_str(), nullptr, 10);
    if (name->empty() || number > latest) {
      latest = number;
      *name = child;
    }
  }
  return name->empty() ? Status::NotFound("No options files found in the DB directory.")
                       : Status::OK();
}

// Options: what a call changes comes from the C interface's call of the same name.

const char* kHostnameForDbHostId = "__hostname__";

ColumnFamilyOptions::ColumnFamilyOptions()
    : table_factory(NewBlockBasedTableFactory()),
      memtable_factory(std::make_shared<SkipListFactory>()) {}

ColumnFamilyOptions::ColumnFamilyOptions(const Options& options)
    : ColumnFamilyOptions(static_cast<const ColumnFamilyOptions&>(options)) {}

DBOptions::DBOptions(const Options& options)
    : DBOptions(static_cast<const DBOptions&>(options)) {}

namespace {

// Passes options through a call on a handle.
template <class T, class Call>
void Through(T* options, Call&& call) {
  OptionsHandle handle = NewOptions();
  Status status;
  if constexpr (std::is_same_v<T, DBOptions>) {
    status = ToC(*options, std::make_shared<ListenedDb>(), handle.get());
  } else {
    status = ToC(static_cast<const ColumnFamilyOptions&>(*options), handle.get());
  }
  if (!status.ok()) return;
  call(handle.get());
  FromC(handle.get(), options);
}

}  // namespace

ColumnFamilyOptions* ColumnFamilyOptions::OptimizeForPointLookup(uint64_t block_cache_size_mb) {
  BlockBasedTableOptions table;
  table.data_block_index_type = BlockBasedTableOptions::kDataBlockBinaryAndHash;
  table.data_block_hash_table_util_ratio = 0.75;
  table.filter_policy.reset(NewBloomFilterPolicy(10));
  table.block_cache = NewLRUCache(static_cast<size_t>(block_cache_size_mb) << 20);
  table_factory.reset(NewBlockBasedTableFactory(table));
  memtable_prefix_bloom_size_ratio = 0.02;
  memtable_whole_key_filtering = true;
  return this;
}

ColumnFamilyOptions* ColumnFamilyOptions::OptimizeLevelStyleCompaction(uint64_t budget) {
  Through(this, [&](rocksdb_options_t* handle) {
    rocksdb_options_optimize_level_style_compaction(handle, budget);
  });
  return this;
}

ColumnFamilyOptions* ColumnFamilyOptions::OptimizeUniversalStyleCompaction(uint64_t budget) {
  Through(this, [&](rocksdb_options_t* handle) {
    rocksdb_options_optimize_universal_style_compaction(handle, budget);
  });
  return this;
}

ColumnFamilyOptions* ColumnFamilyOptions::OptimizeForSmallDb(std::shared_ptr<Cache>* cache) {
  write_buffer_size = 2 << 20;
  target_file_size_base = 2 * 1048576;
  max_bytes_for_level_base = 10 * 1048576;
  soft_pending_compaction_bytes_limit = 256 * 1048576;
  hard_pending_compaction_bytes_limit = 1073741824ULL;
  BlockBasedTableOptions table;
  table.block_cache = cache != nullptr ? *cache : nullptr;
  table.cache_index_and_filter_blocks = true;
  table.index_type = BlockBasedTableOptions::kTwoLevelIndexSearch;
  table_factory.reset(NewBlockBasedTableFactory(table));
  return this;
}

DBOptions* DBOptions::OptimizeForSmallDb(std::shared_ptr<Cache>* cache) {
  max_file_opening_threads = 1;
  max_open_files = 5000;
  if (cache != nullptr) write_buffer_manager = std::make_shared<WriteBufferManager>(0, *cache);
  return this;
}

DBOptions* DBOptions::IncreaseParallelism(int total_threads) {
  Through(this, [&](rocksdb_options_t* handle) {
    rocksdb_options_increase_parallelism(handle, total_threads);
  });
  env->SetBackgroundThreads(total_threads, Env::LOW);
  env->SetBackgroundThreads(1, Env::HIGH);
  return this;
}

Options* Options::OptimizeForSmallDb() {
  std::shared_ptr<Cache> cache = NewLRUCache(16 << 20);
  ColumnFamilyOptions::OptimizeForSmallDb(&cache);
  DBOptions::OptimizeForSmallDb(&cache);
  return this;
}

Options* Options::DisableExtraChecks() {
  force_consistency_checks = false;
  return this;
}

Options* Options::PrepareForBulkLoad() {
  OptionsHandle handle = NewOptions();
  Status status = ToC(*this, handle.get());
  if (!status.ok()) return this;
  rocksdb_options_prepare_for_bulk_load(handle.get());
  FromC(handle.get(), static_cast<DBOptions*>(this));
  FromC(handle.get(), static_cast<ColumnFamilyOptions*>(this));
  return this;
}

}  // namespace ROCKSDB_NAMESPACE
