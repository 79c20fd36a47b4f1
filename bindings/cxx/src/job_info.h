// What jobs and tables tell of themselves, from the C interface.
#pragma once

#include "internal.h"
#include "rocksdb/listener.h"
#include "rocksdb/table_properties.h"

namespace ROCKSDB_NAMESPACE {

TableProperties ToCxx(const rocksdb_table_properties_t* from);
FlushJobInfo ToCxx(const rocksdb_flushjobinfo_t* from);
CompactionJobInfo ToCxx(const rocksdb_compactionjobinfo_t* from);
SubcompactionJobInfo ToCxx(const rocksdb_subcompactionjobinfo_t* from);
MemTableInfo ToCxx(const rocksdb_memtableinfo_t* from);
ExternalFileIngestionInfo ToCxx(const rocksdb_externalfileingestioninfo_t* from);

}  // namespace ROCKSDB_NAMESPACE
