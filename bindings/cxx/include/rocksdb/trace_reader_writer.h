// Where traces of calls go to and come from. The engine writes none, and no file of one is read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rocksdb/env.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class TraceWriter {
 public:
  virtual ~TraceWriter();
  virtual Status Write(const Slice& data) = 0;
  virtual Status Close() = 0;
  virtual uint64_t GetFileSize() = 0;
};

class TraceReader {
 public:
  virtual ~TraceReader();
  virtual Status Read(std::string* data) = 0;
  virtual Status Close() = 0;
  virtual Status Reset() = 0;
};

// Not supported.
Status NewFileTraceWriter(Env* env, const EnvOptions& options, const std::string& path,
                          std::unique_ptr<TraceWriter>* writer);
Status NewFileTraceReader(Env* env, const EnvOptions& options, const std::string& path,
                          std::unique_ptr<TraceReader>* reader);

}  // namespace ROCKSDB_NAMESPACE
