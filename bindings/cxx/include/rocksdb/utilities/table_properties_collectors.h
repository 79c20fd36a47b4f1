// Collectors that are built in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "rocksdb/table_properties.h"

namespace ROCKSDB_NAMESPACE {

// Asks for the compaction of tables with many deletions near each other, or in all.
class CompactOnDeletionCollectorFactory : public TablePropertiesCollectorFactory {
 public:
  CompactOnDeletionCollectorFactory(size_t sliding_window_size, size_t deletion_trigger,
                                    double deletion_ratio, uint64_t min_file_size = 0)
      : window_(sliding_window_size),
        trigger_(deletion_trigger),
        ratio_(deletion_ratio),
        min_file_size_(min_file_size) {}
  ~CompactOnDeletionCollectorFactory() override;

  static const char* kClassName() { return "CompactOnDeletionCollector"; }
  const char* Name() const override { return kClassName(); }
  // The engine collects by itself: null.
  TablePropertiesCollector* CreateTablePropertiesCollector(Context context) override;
  size_t GetWindowSize() const { return window_; }
  size_t GetDeletionTrigger() const { return trigger_; }
  double GetDeletionRatio() const { return ratio_; }
  uint64_t GetMinFileSize() const { return min_file_size_; }
  std::string ToString() const;
  bool EskerAddTo(void* options) const override;

 private:
  size_t window_;
  size_t trigger_;
  double ratio_;
  uint64_t min_file_size_;
};

std::shared_ptr<CompactOnDeletionCollectorFactory> NewCompactOnDeletionCollectorFactory(
    size_t sliding_window_size, size_t deletion_trigger, double deletion_ratio = 0,
    uint64_t min_file_size = 0);

}  // namespace ROCKSDB_NAMESPACE
