// A logger that its C interface takes from RocksDB's internals.
#pragma once

#include <cstdio>
#include <string>
#include <utility>

#include "rocksdb/env.h"

namespace ROCKSDB_NAMESPACE {

class StderrLogger : public Logger {
 public:
  explicit StderrLogger(InfoLogLevel level = INFO_LEVEL, std::string prefix = "")
      : Logger(level), prefix_(std::move(prefix)) {}

  using Logger::Logv;
  void Logv(const char* format, va_list args) override {
    std::fprintf(stderr, "%s", prefix_.c_str());
    std::vfprintf(stderr, format, args);
    std::fputc('\n', stderr);
  }

 private:
  std::string prefix_;
};

}  // namespace ROCKSDB_NAMESPACE
