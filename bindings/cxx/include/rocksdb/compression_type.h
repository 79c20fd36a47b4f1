// Codecs and their settings.
#pragma once

#include <cstdint>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

enum CompressionType : unsigned char {
  kNoCompression = 0x00,
  kSnappyCompression = 0x01,
  kZlibCompression = 0x02,
  kBZip2Compression = 0x03,
  kLZ4Compression = 0x04,
  kLZ4HCCompression = 0x05,
  kXpressCompression = 0x06,
  kZSTD = 0x07,
  kLastBuiltinCompression = kZSTD,
  kZSTDNotFinalCompression = 0x40,
  kDisableCompressionOption = 0xff,
};

struct CompressionOptions {
  static constexpr int kDefaultCompressionLevel = 32767;
  static constexpr uint32_t kMaxCompressedBytesPerKb = 1024;

#include "rocksdb/fields/CompressionOptions.inc"

  CompressionOptions() = default;
  CompressionOptions(int bits, int to_level, int with_strategy, uint32_t dict_bytes,
                     uint32_t train_bytes, uint32_t threads, bool is_enabled,
                     uint64_t buffer_bytes = 0, bool with_trainer = true) {
    window_bits = bits;
    level = to_level;
    strategy = with_strategy;
    max_dict_bytes = dict_bytes;
    zstd_max_train_bytes = train_bytes;
    parallel_threads = threads;
    enabled = is_enabled;
    max_dict_buffer_bytes = buffer_bytes;
    use_zstd_dict_trainer = with_trainer;
  }
};

}  // namespace ROCKSDB_NAMESPACE
