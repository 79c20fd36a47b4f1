// Options as text, and other helpers.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "rocksdb/options.h"
#include "rocksdb/status.h"
#include "rocksdb/table.h"

namespace ROCKSDB_NAMESPACE {

class ColumnFamilyHandle;
class DB;

// "a=1;b={c=2}" over what `base` has.
Status GetColumnFamilyOptionsFromString(const ConfigOptions& config,
                                        const ColumnFamilyOptions& base, const std::string& text,
                                        ColumnFamilyOptions* out);
Status GetColumnFamilyOptionsFromString(const ColumnFamilyOptions& base, const std::string& text,
                                        ColumnFamilyOptions* out);
Status GetDBOptionsFromString(const ConfigOptions& config, const DBOptions& base,
                              const std::string& text, DBOptions* out);
Status GetOptionsFromString(const ConfigOptions& config, const Options& base,
                            const std::string& text, Options* out);
Status GetOptionsFromString(const Options& base, const std::string& text, Options* out);
Status GetBlockBasedTableOptionsFromString(const ConfigOptions& config,
                                           const BlockBasedTableOptions& base,
                                           const std::string& text, BlockBasedTableOptions* out);
Status GetStringFromDBOptions(const ConfigOptions& config, const DBOptions& options,
                              std::string* text);
Status GetStringFromColumnFamilyOptions(const ConfigOptions& config,
                                        const ColumnFamilyOptions& options, std::string* text);

Status GetStringFromDBOptions(std::string* text, const DBOptions& options);
Status GetStringFromColumnFamilyOptions(std::string* text, const ColumnFamilyOptions& options);
// "a=1;b={c=2}" as pairs, without outer braces.
Status StringToMap(const std::string& text, std::unordered_map<std::string, std::string>* pairs);

void CancelAllBackgroundWork(DB* db, bool wait = false);
Status DeleteFilesInRange(DB* db, ColumnFamilyHandle* family, const Slice* begin,
                          const Slice* end, bool include_end = true);
std::vector<CompressionType> GetSupportedCompressions();
// The enumerator's name, as options have it.
Status GetStringFromCompressionType(std::string* text, CompressionType type);

}  // namespace ROCKSDB_NAMESPACE
