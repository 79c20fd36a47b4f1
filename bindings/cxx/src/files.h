// Facts about files of a database, for the C interface and from it.
#pragma once

#include "internal.h"
#include "rocksdb/metadata.h"

namespace ROCKSDB_NAMESPACE {

std::vector<LiveFileMetaData> ToCxx(const rocksdb_livefiles_t* from);
ExportImportFilesMetaData ToCxx(rocksdb_export_import_files_metadata_t* from);

}  // namespace ROCKSDB_NAMESPACE
