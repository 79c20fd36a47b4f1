// Checksums of whole table files. Only the one that is built in can be used.
#pragma once

#include <memory>
#include <string>

#include "rocksdb/customizable.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

constexpr char kUnknownFileChecksum[] = "";
constexpr char kUnknownFileChecksumFuncName[] = "Unknown";
constexpr char kNoFileChecksumFuncName[] = "Unavailable";
constexpr char kStandardDbFileChecksumFuncName[] = "FileChecksumCrc32c";

struct FileChecksumGenContext {
  std::string file_name;
  std::string requested_checksum_func_name;
};

class FileChecksumGenerator {
 public:
  virtual ~FileChecksumGenerator();
  virtual void Update(const char* data, size_t size) = 0;
  virtual void Finalize() = 0;
  virtual std::string GetChecksum() const = 0;
  virtual const char* Name() const = 0;
};

class FileChecksumGenFactory : public Customizable {
 public:
  ~FileChecksumGenFactory() override;
  static const char* Type() { return "FileChecksumGenFactory"; }
  virtual std::unique_ptr<FileChecksumGenerator> CreateFileChecksumGenerator(
      const FileChecksumGenContext& context) = 0;
  const char* Name() const override = 0;
  // A new object of the C interface; null for a factory of the application's own, which is refused.
  virtual void* EskerNewHandle() const { return nullptr; }
};

std::shared_ptr<FileChecksumGenFactory> GetFileChecksumGenCrc32cFactory();

}  // namespace ROCKSDB_NAMESPACE
