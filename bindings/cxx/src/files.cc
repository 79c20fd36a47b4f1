// What a database tells of its files: tables, logs, the files of a copy, and exported families.

#include "files.h"

#include "db_impl.h"

namespace ROCKSDB_NAMESPACE {

WalFile::~WalFile() = default;

// Tables.

std::vector<LiveFileMetaData> ToCxx(const rocksdb_livefiles_t* from) {
  std::vector<LiveFileMetaData> files;
  const int count = rocksdb_livefiles_count(from);
  for (int i = 0; i < count; ++i) {
    LiveFileMetaData file;
    file.column_family_name = rocksdb_livefiles_column_family_name(from, i);
    file.name = rocksdb_livefiles_name(from, i);
    const bool has_slash = !file.name.empty() && file.name[0] == '/';
    file.relative_filename = file.name.substr(has_slash ? 1 : 0);
    file.name = "/" + file.relative_filename;
    file.file_number = std::strtoull(file.relative_filename.c_str(), nullptr, 10);
    file.file_type = kTableFile;
    file.directory = rocksdb_livefiles_directory(from, i);
    file.db_path = file.directory;
    file.level = rocksdb_livefiles_level(from, i);
    file.size = rocksdb_livefiles_size(from, i);
    size_t length = 0;
    const char* key = rocksdb_livefiles_smallestkey(from, i, &length);
    file.smallestkey.assign(key, length);
    key = rocksdb_livefiles_largestkey(from, i, &length);
    file.largestkey.assign(key, length);
    file.smallest_seqno = rocksdb_livefiles_smallest_seqno(from, i);
    file.largest_seqno = rocksdb_livefiles_largest_seqno(from, i);
    file.num_entries = rocksdb_livefiles_entries(from, i);
    file.num_deletions = rocksdb_livefiles_deletions(from, i);
    files.push_back(std::move(file));
  }
  return files;
}

void DBImpl::GetLiveFilesMetaData(std::vector<LiveFileMetaData>* files) {
  files->clear();
  const rocksdb_livefiles_t* live = rocksdb_livefiles(db());
  if (live == nullptr) return;
  *files = ToCxx(live);
  rocksdb_livefiles_destroy(live);
}

namespace {

SstFileMetaData ToCxx(rocksdb_sst_file_metadata_t* from) {
  SstFileMetaData file;
  file.relative_filename = Take(rocksdb_sst_file_metadata_get_relative_filename(from));
  file.name = "/" + file.relative_filename;
  file.file_number = std::strtoull(file.relative_filename.c_str(), nullptr, 10);
  file.file_type = kTableFile;
  file.directory = Take(rocksdb_sst_file_metadata_get_directory(from));
  file.db_path = file.directory;
  file.size = rocksdb_sst_file_metadata_get_size(from);
  file.being_compacted = esker_sst_file_metadata_being_compacted(from) != 0;
  size_t length = 0;
  char* key = rocksdb_sst_file_metadata_get_smallestkey(from, &length);
  file.smallestkey = Take(key, length);
  key = rocksdb_sst_file_metadata_get_largestkey(from, &length);
  file.largestkey = Take(key, length);
  return file;
}

// Takes `from` over.
ColumnFamilyMetaData ToCxx(Handle<rocksdb_column_family_metadata_t> from) {
  ColumnFamilyMetaData data;
  if (from == nullptr) return data;
  data.size = rocksdb_column_family_metadata_get_size(from.get());
  data.file_count = rocksdb_column_family_metadata_get_file_count(from.get());
  data.name = Take(rocksdb_column_family_metadata_get_name(from.get()));
  const size_t levels = rocksdb_column_family_metadata_get_level_count(from.get());
  for (size_t i = 0; i < levels; ++i) {
    Handle<rocksdb_level_metadata_t> level(
        rocksdb_column_family_metadata_get_level_metadata(from.get(), i),
        rocksdb_level_metadata_destroy);
    std::vector<SstFileMetaData> files;
    const size_t count = rocksdb_level_metadata_get_file_count(level.get());
    for (size_t f = 0; f < count; ++f) {
      Handle<rocksdb_sst_file_metadata_t> file(
          rocksdb_level_metadata_get_sst_file_metadata(level.get(), f),
          rocksdb_sst_file_metadata_destroy);
      files.push_back(ToCxx(file.get()));
    }
    data.levels.emplace_back(rocksdb_level_metadata_get_level(level.get()),
                             rocksdb_level_metadata_get_size(level.get()), std::move(files));
  }
  return data;
}

}  // namespace

void DBImpl::GetColumnFamilyMetaData(ColumnFamilyHandle* family, ColumnFamilyMetaData* data) {
  *data = ToCxx(Handle<rocksdb_column_family_metadata_t>(
      rocksdb_get_column_family_metadata_cf(db(), ToC(family)),
      rocksdb_column_family_metadata_destroy));
}

void DB::GetColumnFamilyMetaData(ColumnFamilyHandle* family,
                                 const GetColumnFamilyMetaDataOptions& options,
                                 ColumnFamilyMetaData* data) {
  Handle<rocksdb_column_family_metadata_options_t> with(
      rocksdb_column_family_metadata_options_create(),
      rocksdb_column_family_metadata_options_destroy);
  if (const Slice* key = options.range.start.AsPtr()) {
    rocksdb_column_family_metadata_options_set_start_key(with.get(), key->data(), key->size());
  }
  if (const Slice* key = options.range.limit.AsPtr()) {
    rocksdb_column_family_metadata_options_set_end_key(with.get(), key->data(), key->size());
  }
  rocksdb_column_family_metadata_options_set_level(with.get(), options.level);
  *data = ToCxx(Handle<rocksdb_column_family_metadata_t>(
      rocksdb_get_column_family_metadata_cf_with_options(HandleOf(this), ToC(family), with.get()),
      rocksdb_column_family_metadata_destroy));
}

// Logs.

namespace {

struct LogOnDisk final : public WalFile {
  explicit LogOnDisk(const rocksdb_wal_file_t* from)
      : path(rocksdb_wal_file_path_name(from)),
        number(rocksdb_wal_file_log_number(from)),
        type(rocksdb_wal_file_type(from)),
        start(rocksdb_wal_file_start_sequence(from)),
        size(rocksdb_wal_file_size_file_bytes(from)) {}

  std::string PathName() const override { return path; }
  uint64_t LogNumber() const override { return number; }
  WalFileType Type() const override { return static_cast<WalFileType>(type); }
  SequenceNumber StartSequence() const override { return start; }
  uint64_t SizeFileBytes() const override { return size; }

  std::string path;
  uint64_t number;
  int type;
  SequenceNumber start;
  uint64_t size;
};

}  // namespace

Status DB::GetSortedWalFiles(VectorWalPtr& files) {
  files.clear();
  ErrorText error;
  Handle<rocksdb_wal_files_t> found(rocksdb_get_sorted_wal_files(HandleOf(this), error),
                                    rocksdb_wal_files_destroy);
  if (!error.ok()) return error.status();
  const size_t count = rocksdb_wal_files_count(found.get());
  for (size_t i = 0; i < count; ++i) {
    files.push_back(std::make_unique<LogOnDisk>(rocksdb_wal_files_get_wal_file(found.get(), i)));
  }
  return Status::OK();
}

Status DB::GetCurrentWalFile(std::unique_ptr<WalFile>* file) {
  file->reset();
  ErrorText error;
  Handle<rocksdb_wal_file_t> found(rocksdb_get_current_wal_file(HandleOf(this), error),
                                   rocksdb_wal_file_destroy);
  if (!error.ok()) return error.status();
  *file = std::make_unique<LogOnDisk>(found.get());
  return Status::OK();
}

// The files of a copy.

Status DB::GetLiveFilesStorageInfo(const LiveFilesStorageInfoOptions& options,
                                   std::vector<LiveFileStorageInfo>* files) {
  files->clear();
  Handle<rocksdb_livefiles_storage_info_options_t> with(
      rocksdb_livefiles_storage_info_options_create(),
      rocksdb_livefiles_storage_info_options_destroy);
  rocksdb_livefiles_storage_info_options_set_include_checksum_info(
      with.get(), options.include_checksum_info ? 1 : 0);
  rocksdb_livefiles_storage_info_options_set_wal_size_for_flush(with.get(),
                                                                options.wal_size_for_flush);
  rocksdb_livefiles_storage_info_options_set_atomic_flush(with.get(),
                                                          options.atomic_flush ? 1 : 0);
  ErrorText error;
  Handle<rocksdb_livefiles_storage_info_t> found(
      rocksdb_get_livefiles_storage_info(HandleOf(this), with.get(), error),
      rocksdb_livefiles_storage_info_destroy);
  if (!error.ok()) return error.status();
  const size_t count = rocksdb_livefiles_storage_info_count(found.get());
#define FACT(NAME) rocksdb_livefiles_storage_info_##NAME(found.get(), i)
  for (size_t i = 0; i < count; ++i) {
    LiveFileStorageInfo file;
    file.relative_filename = FACT(relative_filename);
    file.directory = FACT(directory);
    file.file_number = FACT(file_number);
    file.file_type = static_cast<FileType>(FACT(file_type));
    file.size = FACT(size);
    file.temperature = static_cast<Temperature>(FACT(temperature));
    file.file_checksum = FACT(file_checksum);
    file.file_checksum_func_name = FACT(file_checksum_func_name);
    size_t length = 0;
    const char* content =
        rocksdb_livefiles_storage_info_replacement_contents(found.get(), i, &length);
    if (content != nullptr) file.replacement_contents.assign(content, length);
    file.trim_to_size = FACT(trim_to_size) != 0;
    files->push_back(std::move(file));
  }
#undef FACT
  return Status::OK();
}

// Files from outside.

Status DB::IngestExternalFiles(const std::vector<IngestExternalFileArg>& args) {
  std::vector<const rocksdb_column_family_handle_t*> families;
  std::vector<Handle<rocksdb_ingestexternalfileoptions_t>> made;
  std::vector<const rocksdb_ingestexternalfileoptions_t*> options;
  std::vector<size_t> counts;
  std::vector<const char*> files;
  for (const IngestExternalFileArg& arg : args) {
    families.push_back(ToC(arg.column_family == nullptr ? DefaultColumnFamily()
                                                        : arg.column_family));
    made.push_back(ToC(arg.options));
    options.push_back(made.back().get());
    counts.push_back(arg.external_files.size());
    for (const std::string& file : arg.external_files) files.push_back(file.c_str());
  }
  ErrorText error;
  esker_ingest_external_files(HandleOf(this), families.data(), options.data(), counts.data(),
                              args.size(), files.data(), error);
  return error.status();
}

// Families that were exported.

ExportImportFilesMetaData ToCxx(rocksdb_export_import_files_metadata_t* from) {
  ExportImportFilesMetaData to;
  to.db_comparator_name =
      Take(rocksdb_export_import_files_metadata_get_db_comparator_name(from));
  rocksdb_livefiles_t* files = rocksdb_export_import_files_metadata_get_files(from);
  to.files = ToCxx(files);
  rocksdb_livefiles_destroy(files);
  return to;
}

namespace {

rocksdb_livefile_t* ToC(const LiveFileMetaData& file) {
  rocksdb_livefile_t* made = rocksdb_livefile_create();
  rocksdb_livefile_set_column_family_name(made, file.column_family_name.c_str());
  rocksdb_livefile_set_level(made, file.level);
  rocksdb_livefile_set_name(made, file.name.c_str());
  rocksdb_livefile_set_directory(made, file.db_path.c_str());
  rocksdb_livefile_set_size(made, file.size);
  rocksdb_livefile_set_smallest_key(made, file.smallestkey.data(), file.smallestkey.size());
  rocksdb_livefile_set_largest_key(made, file.largestkey.data(), file.largestkey.size());
  rocksdb_livefile_set_smallest_seqno(made, file.smallest_seqno);
  rocksdb_livefile_set_largest_seqno(made, file.largest_seqno);
  rocksdb_livefile_set_num_entries(made, file.num_entries);
  rocksdb_livefile_set_num_deletions(made, file.num_deletions);
  return made;
}

}  // namespace

Status DB::CreateColumnFamilyWithImport(const ColumnFamilyOptions& options,
                                        const std::string& name,
                                        const ImportColumnFamilyOptions& import_options,
                                        const ExportImportFilesMetaData& files,
                                        ColumnFamilyHandle** handle) {
  *handle = nullptr;
  OptionsHandle made = NewOptions();
  Status status = ToC(options, made.get());
  if (!status.ok()) return status;
  Handle<rocksdb_import_column_family_options_t> with(
      rocksdb_import_column_family_options_create(),
      rocksdb_import_column_family_options_destroy);
  rocksdb_import_column_family_options_set_move_files(with.get(),
                                                      import_options.move_files ? 1 : 0);
  Handle<rocksdb_export_import_files_metadata_t> of(
      rocksdb_export_import_files_metadata_create(),
      rocksdb_export_import_files_metadata_destroy);
  rocksdb_export_import_files_metadata_set_db_comparator_name(of.get(),
                                                              files.db_comparator_name.c_str());
  rocksdb_livefiles_t* list = rocksdb_livefiles_create();
  for (const LiveFileMetaData& file : files.files) rocksdb_livefiles_add(list, ToC(file));
  rocksdb_export_import_files_metadata_set_files(of.get(), list);
  ErrorText error;
  auto* created = rocksdb_create_column_family_with_import(HandleOf(this), made.get(),
                                                           name.c_str(), with.get(), of.get(),
                                                           error);
  if (!error.ok()) return error.status();
  *handle = new ColumnFamilyHandleImpl(created, options);
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
