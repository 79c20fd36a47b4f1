// Answers to what MyRocks asks of RocksDB's sources about kinds of compression.
#pragma once

#include <algorithm>
#include <string>

#include "rocksdb/convenience.h"

namespace ROCKSDB_NAMESPACE {

inline bool CompressionTypeSupported(CompressionType type) {
  const auto all = GetSupportedCompressions();
  if (type == kZSTDNotFinalCompression) type = kZSTD;
  return std::find(all.begin(), all.end(), type) != all.end();
}

// The name without the enumerator's prefix and suffix, as RocksDB's tables have it.
inline std::string CompressionTypeToString(CompressionType type) {
  switch (type) {
    case kNoCompression: return "NoCompression";
    case kSnappyCompression: return "Snappy";
    case kZlibCompression: return "Zlib";
    case kBZip2Compression: return "BZip2";
    case kLZ4Compression: return "LZ4";
    case kLZ4HCCompression: return "LZ4HC";
    case kXpressCompression: return "Xpress";
    case kZSTD: return "ZSTD";
    case kZSTDNotFinalCompression: return "ZSTDNotFinal";
    default: return "";
  }
}

}  // namespace ROCKSDB_NAMESPACE
