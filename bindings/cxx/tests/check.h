// What the tests share: checks that say where they failed, and directories of their own.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"

#define CHECK(CONDITION)                                                          \
  do {                                                                            \
    if (!(CONDITION)) {                                                           \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #CONDITION); \
      std::exit(1);                                                               \
    }                                                                             \
  } while (false)

#define CHECK_OK(CALL)                                                            \
  do {                                                                            \
    const rocksdb::Status status_of_call = (CALL);                                \
    if (!status_of_call.ok()) {                                                   \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #CALL,          \
                   status_of_call.ToString().c_str());                            \
      std::exit(1);                                                               \
    }                                                                             \
  } while (false)

// A fresh directory's name; what was there is removed.
inline std::string Fresh(const std::string& name) {
  const char* base = std::getenv("CXX_TEST_DIR");
  const std::string path = std::string(base == nullptr ? "/tmp" : base) + "/" + name;
  std::filesystem::remove_all(path);
  return path;
}

// Options that make a database where there is none.
inline rocksdb::Options Creating() {
  rocksdb::Options options;
  options.create_if_missing = true;
  return options;
}

// A database that opens.
inline std::unique_ptr<rocksdb::DB> Opened(const rocksdb::Options& options,
                                           const std::string& path) {
  std::unique_ptr<rocksdb::DB> db;
  CHECK_OK(rocksdb::DB::Open(options, path, &db));
  return db;
}
