// Options that a database stored in its directory.
//
// Objects are not stored: a comparator, merge operator, filter, cache or listener has to be set
// before a database is opened with what was read.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

Status LoadLatestOptions(const ConfigOptions& config, const std::string& path,
                         DBOptions* db_options, std::vector<ColumnFamilyDescriptor>* families,
                         std::shared_ptr<Cache>* cache = {});
Status LoadLatestOptions(const std::string& path, Env* env, DBOptions* db_options,
                         std::vector<ColumnFamilyDescriptor>* families,
                         bool ignore_unknown_options = false,
                         std::shared_ptr<Cache>* cache = {});
// Compares families with those whose options a database stored, by name and place. NotFound without
// stored options. Opening tells what else does not fit, as another comparator.
Status CheckOptionsCompatibility(const std::string& path, Env* env, const DBOptions& db_options,
                                 const std::vector<ColumnFamilyDescriptor>& families,
                                 bool ignore_unknown_options = false);
// The name, without its directory.
Status GetLatestOptionsFileName(const std::string& path, Env* env, std::string* name);

}  // namespace ROCKSDB_NAMESPACE
