// Where compactions begin a new table. Only the partitioner that is built in can be used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "rocksdb/customizable.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

enum PartitionerResult : char { kNotRequired = 0x0, kRequired = 0x1 };

struct PartitionerRequest {
  PartitionerRequest(const Slice& previous, const Slice& current, uint64_t output_size)
      : prev_user_key(&previous),
        current_user_key(&current),
        current_output_file_size(output_size) {}

  const Slice* prev_user_key;
  const Slice* current_user_key;
  uint64_t current_output_file_size;
};

class SstPartitioner {
 public:
  struct Context {
    bool is_full_compaction;
    bool is_manual_compaction;
    int output_level;
    Slice smallest_user_key;
    Slice largest_user_key;
  };

  virtual ~SstPartitioner();
  virtual const char* Name() const = 0;
  virtual PartitionerResult ShouldPartition(const PartitionerRequest& request) = 0;
  virtual bool CanDoTrivialMove(const Slice& smallest_user_key,
                                const Slice& largest_user_key) = 0;
};

class SstPartitionerFactory : public Customizable {
 public:
  ~SstPartitionerFactory() override;
  static const char* Type() { return "SstPartitionerFactory"; }
  virtual std::unique_ptr<SstPartitioner> CreatePartitioner(
      const SstPartitioner::Context& context) const = 0;
  const char* Name() const override = 0;
  // A new object of the C interface; null for a factory of the application's own, which is refused.
  virtual void* EskerNewHandle() const { return nullptr; }
};

// Begins a table where the first `prefix_length` bytes of keys change.
std::shared_ptr<SstPartitionerFactory> NewSstPartitionerFixedPrefixFactory(size_t prefix_length);

}  // namespace ROCKSDB_NAMESPACE
