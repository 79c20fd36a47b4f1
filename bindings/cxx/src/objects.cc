// Classes that programs derive from, and the kinds of each that are built in.

#include <atomic>
#include <deque>
#include <functional>

#include "convert.h"
#include "rocksdb/cache.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/comparator.h"
#include "rocksdb/convenience.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/memtablerep.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/rate_limiter.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/sst_file_manager.h"
#include "rocksdb/statistics.h"
#include "rocksdb/table.h"
#include "rocksdb/table_properties.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/utilities/memory_util.h"
#include "rocksdb/utilities/table_properties_collectors.h"
#include "rocksdb/wal_filter.h"

namespace ROCKSDB_NAMESPACE {

// Here, so that each class has its virtual table in this library alone.
Cache::~Cache() = default;
Comparator::~Comparator() = default;
CompactionFilter::~CompactionFilter() = default;
CompactionFilterFactory::~CompactionFilterFactory() = default;
EventListener::~EventListener() = default;
FilterPolicy::~FilterPolicy() = default;
MemTableRepFactory::~MemTableRepFactory() = default;
MergeOperator::~MergeOperator() = default;
AssociativeMergeOperator::~AssociativeMergeOperator() = default;
CompactOnDeletionCollectorFactory::~CompactOnDeletionCollectorFactory() = default;
FileChecksumGenerator::~FileChecksumGenerator() = default;
FileChecksumGenFactory::~FileChecksumGenFactory() = default;
FilterBitsBuilder::~FilterBitsBuilder() = default;
FilterBitsReader::~FilterBitsReader() = default;
SstPartitioner::~SstPartitioner() = default;
SstPartitionerFactory::~SstPartitionerFactory() = default;
WalFilter::~WalFilter() = default;
RateLimiter::~RateLimiter() = default;
SliceTransform::~SliceTransform() = default;
SstFileManager::~SstFileManager() = default;
Statistics::~Statistics() = default;
TableFactory::~TableFactory() = default;
TablePropertiesCollector::~TablePropertiesCollector() = default;
TablePropertiesCollectorFactory::~TablePropertiesCollectorFactory() = default;
Snapshot::~Snapshot() = default;
Checkpoint::~Checkpoint() = default;
BackupEngineReadOnlyBase::~BackupEngineReadOnlyBase() = default;

std::string GetRocksVersionAsString(bool with_patch) {
  std::string version = std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR);
  return with_patch ? version + "." + std::to_string(ROCKSDB_PATCH) : version;
}

// Comparators.

namespace {

class ByteOrder : public Comparator {
 public:
  const char* Name() const override { return "leveldb.BytewiseComparator"; }
  int Compare(const Slice& a, const Slice& b) const override { return a.compare(b); }
  bool CanKeysWithDifferentByteContentsBeEqual() const override { return false; }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

class ReverseByteOrder : public ByteOrder {
 public:
  const char* Name() const override { return "rocksdb.ReverseBytewiseComparator"; }
  int Compare(const Slice& a, const Slice& b) const override { return b.compare(a); }
};

// Bytes, with a number of eight bytes at the end of keys; the latest sorts first.
class ByteOrderWithTimestamps : public Comparator {
 public:
  ByteOrderWithTimestamps() : Comparator(sizeof(uint64_t)) {}
  const char* Name() const override { return "leveldb.BytewiseComparator.u64ts"; }
  int Compare(const Slice& a, const Slice& b) const override {
    const int order = CompareWithoutTimestamp(a, true, b, true);
    return order != 0 ? order : -CompareTimestamp(Stamp(a), Stamp(b));
  }
  int CompareTimestamp(const Slice& a, const Slice& b) const override {
    const uint64_t left = Number(a);
    const uint64_t right = Number(b);
    return left < right ? -1 : static_cast<int>(left > right);
  }
  int CompareWithoutTimestamp(const Slice& a, bool a_has, const Slice& b,
                              bool b_has) const override {
    return Bare(a, a_has).compare(Bare(b, b_has));
  }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}

 private:
  static Slice Stamp(const Slice& key) {
    const size_t length = std::min(key.size(), sizeof(uint64_t));
    return Slice(key.data() + key.size() - length, length);
  }
  static Slice Bare(const Slice& key, bool has) {
    return has ? Slice(key.data(), key.size() - Stamp(key).size()) : key;
  }
  static uint64_t Number(const Slice& stamp) {
    uint64_t number = 0;
    for (size_t i = std::min(stamp.size(), sizeof(number)); i > 0; --i) {
      number = number << 8 | static_cast<unsigned char>(stamp[i - 1]);
    }
    return number;
  }
};

}  // namespace

const Comparator* BytewiseComparator() {
  static const ByteOrder* const order = new ByteOrder;
  return order;
}

const Comparator* ReverseBytewiseComparator() {
  static const ReverseByteOrder* const order = new ReverseByteOrder;
  return order;
}

const Comparator* BytewiseComparatorWithU64Ts() {
  static const ByteOrderWithTimestamps* const order = new ByteOrderWithTimestamps;
  return order;
}

// Merge operators and compaction filters: what a class does that overrides the older functions.

bool MergeOperator::FullMergeV2(const MergeOperationInput& in, MergeOperationOutput* out) const {
  std::deque<std::string> operands;
  for (const Slice& operand : in.operand_list) operands.push_back(operand.ToString());
  return FullMerge(in.key, in.existing_value, operands, &out->new_value, in.logger);
}

bool MergeOperator::PartialMergeMulti(const Slice& key, const std::deque<Slice>& operands,
                                      std::string* new_value, Logger* logger) const {
  if (operands.size() < 2) return false;
  std::string merged = operands[0].ToString();
  for (size_t i = 1; i < operands.size(); ++i) {
    std::string next;
    if (!PartialMerge(key, merged, operands[i], &next, logger)) return false;
    merged.swap(next);
  }
  new_value->swap(merged);
  return true;
}

bool AssociativeMergeOperator::FullMergeV2(const MergeOperationInput& in,
                                           MergeOperationOutput* out) const {
  std::string so_far;
  bool has_value = in.existing_value != nullptr;
  if (has_value) so_far = in.existing_value->ToString();
  for (const Slice& operand : in.operand_list) {
    const Slice existing(so_far);
    std::string next;
    if (!Merge(in.key, has_value ? &existing : nullptr, operand, &next, in.logger)) return false;
    so_far.swap(next);
    has_value = true;
  }
  out->new_value.swap(so_far);
  return true;
}

bool AssociativeMergeOperator::PartialMerge(const Slice& key, const Slice& left,
                                            const Slice& right, std::string* new_value,
                                            Logger* logger) const {
  return Merge(key, &left, right, new_value, logger);
}

CompactionFilter::Decision CompactionFilter::FilterV2(int level, const Slice& key, ValueType type,
                                                      const Slice& value, std::string* new_value,
                                                      std::string*) const {
  switch (type) {
    case kValue: {
      bool changed = false;
      if (Filter(level, key, value, new_value, &changed)) return Decision::kRemove;
      return changed ? Decision::kChangeValue : Decision::kKeep;
    }
    case kMergeOperand:
      return FilterMergeOperand(level, key, value) ? Decision::kRemove : Decision::kKeep;
    default:
      return Decision::kKeep;
  }
}

// Prefixes.

namespace {

class Prefix : public SliceTransform {
 public:
  Prefix(std::string name, std::string text, size_t length, bool is_capped)
      : name_(std::move(name)), text_(std::move(text)), length_(length), is_capped_(is_capped) {}
  const char* Name() const override { return name_.c_str(); }
  Slice Transform(const Slice& key) const override {
    return Slice(key.data(), std::min(key.size(), length_));
  }
  bool InDomain(const Slice& key) const override { return is_capped_ || key.size() >= length_; }
  std::string EskerText() const override { return text_; }

 private:
  std::string name_;
  std::string text_;
  size_t length_;
  bool is_capped_;
};

}  // namespace

const SliceTransform* NewFixedPrefixTransform(size_t length) {
  const std::string name = "rocksdb.FixedPrefix." + std::to_string(length);
  return new Prefix(name, name, length, false);
}

const SliceTransform* NewCappedPrefixTransform(size_t length) {
  const std::string name = "rocksdb.CappedPrefix." + std::to_string(length);
  return new Prefix(name, name, length, true);
}

const SliceTransform* NewNoopTransform() {
  return new Prefix("rocksdb.Noop", "rocksdb.Noop", SIZE_MAX, true);
}

// Filter policies.

void* FilterPolicy::EskerNewHandle() const {
  static const BlockBasedTableOptions plain;
  const std::unique_ptr<FilterBitsBuilder> builder(
      GetBuilderWithContext(FilterBuildingContext(plain)));
  return builder == nullptr ? nullptr : builder->EskerNewHandle();
}

namespace {

class BuiltInBits : public FilterBitsBuilder {
 public:
  explicit BuiltInBits(std::function<void*()> make) : make_(std::move(make)) {}
  void* EskerNewHandle() const override { return make_(); }

 private:
  std::function<void*()> make_;
};

class BuiltInFilter : public FilterPolicy {
 public:
  BuiltInFilter(double bits, bool is_ribbon, int level)
      : bits_(bits), is_ribbon_(is_ribbon), level_(level) {}
  const char* Name() const override { return is_ribbon_ ? "ribbonfilter" : "bloomfilter"; }
  const char* CompatibilityName() const override { return "rocksdb.BuiltinBloomFilter"; }
  FilterBitsBuilder* GetBuilderWithContext(const FilterBuildingContext&) const override {
    return new BuiltInBits([*this] { return EskerNewHandle(); });
  }
  void* EskerNewHandle() const override {
    return is_ribbon_ ? rocksdb_filterpolicy_create_ribbon_hybrid(bits_, level_)
                      : rocksdb_filterpolicy_create_bloom_full(bits_);
  }

 private:
  double bits_;
  bool is_ribbon_;
  int level_;
};

}  // namespace

const FilterPolicy* NewBloomFilterPolicy(double bits_per_key, bool) {
  return new BuiltInFilter(bits_per_key, false, 0);
}

const FilterPolicy* NewRibbonFilterPolicy(double bits_per_key, int bloom_before_level) {
  return new BuiltInFilter(bits_per_key, true, bloom_before_level);
}

// Tables and memtables.

namespace {

template <class T>
class Factory : public TableFactory {
 public:
  Factory(const char* name, const T& options) : name_(name), options_(options) {}
  const char* Name() const override { return name_; }
  std::string GetPrintableOptions() const override {
    if constexpr (std::is_same_v<T, BlockBasedTableOptions>) {
      return Printable(options_);
    } else {
      return "";
    }
  }

 protected:
  const void* GetOptionsPtr(const std::string& name) const override {
    return name == T::kName() ? &options_ : nullptr;
  }

 private:
  const char* name_;
  T options_;
};

class NamedMemtables : public MemTableRepFactory {
 public:
  explicit NamedMemtables(const char* name) : name_(name) {}
  const char* Name() const override { return name_; }
  const char* EskerKind() const override { return name_; }

 private:
  const char* name_;
};

}  // namespace

TableFactory* NewBlockBasedTableFactory(const BlockBasedTableOptions& options) {
  return new Factory<BlockBasedTableOptions>(TableFactory::kBlockBasedTableName(), options);
}

EnvOptions::EnvOptions(const DBOptions& options)
    : use_mmap_reads(options.allow_mmap_reads),
      use_mmap_writes(options.allow_mmap_writes),
      use_direct_reads(options.use_direct_reads),
      allow_fallocate(options.allow_fallocate),
      set_fd_cloexec(options.is_fd_close_on_exec),
      bytes_per_sync(options.bytes_per_sync),
      strict_bytes_per_sync(options.strict_bytes_per_sync),
      compaction_readahead_size(options.compaction_readahead_size),
      writable_file_max_buffer_size(options.writable_file_max_buffer_size),
      rate_limiter(options.rate_limiter.get()) {}

TableFactory* NewPlainTableFactory(const PlainTableOptions& options) {
  return new Factory<PlainTableOptions>(TableFactory::kPlainTableName(), options);
}

TableFactory* NewCuckooTableFactory(const CuckooTableOptions& options) {
  return new Factory<CuckooTableOptions>(TableFactory::kCuckooTableName(), options);
}

MemTableRepFactory* NewHashSkipListRepFactory(size_t, int32_t, int32_t) {
  return new NamedMemtables("HashSkipListRepFactory");
}

MemTableRepFactory* NewHashLinkListRepFactory(size_t, size_t, int, bool, uint32_t) {
  return new NamedMemtables("HashLinkListRepFactory");
}

// Rules for tables.

namespace {

class Crc32cFactory final : public FileChecksumGenFactory {
 public:
  const char* Name() const override { return "FileChecksumGenCrc32cFactory"; }
  // The engine computes it.
  std::unique_ptr<FileChecksumGenerator> CreateFileChecksumGenerator(
      const FileChecksumGenContext&) override {
    return nullptr;
  }
  void* EskerNewHandle() const override { return rocksdb_file_checksum_gen_crc32c_factory_create(); }
};

class FixedPrefixPartitions final : public SstPartitionerFactory {
 public:
  explicit FixedPrefixPartitions(size_t length) : length_(length) {}
  const char* Name() const override { return "SstPartitionerFixedPrefixFactory"; }
  // The engine asks none.
  std::unique_ptr<SstPartitioner> CreatePartitioner(
      const SstPartitioner::Context&) const override {
    return nullptr;
  }
  void* EskerNewHandle() const override {
    return rocksdb_sst_partitioner_fixed_prefix_factory_create(length_);
  }

 private:
  size_t length_;
};

}  // namespace

std::shared_ptr<FileChecksumGenFactory> GetFileChecksumGenCrc32cFactory() {
  static const auto factory = std::make_shared<Crc32cFactory>();
  return factory;
}

std::shared_ptr<SstPartitionerFactory> NewSstPartitionerFixedPrefixFactory(size_t length) {
  return std::make_shared<FixedPrefixPartitions>(length);
}

TablePropertiesCollector* CompactOnDeletionCollectorFactory::CreateTablePropertiesCollector(
    Context) {
  return nullptr;
}

std::string CompactOnDeletionCollectorFactory::ToString() const {
  return std::string(Name()) + " (Sliding window size = " + std::to_string(window_) +
         " Deletion trigger = " + std::to_string(trigger_) +
         " Deletion ratio = " + std::to_string(ratio_) + ")";
}

bool CompactOnDeletionCollectorFactory::EskerAddTo(void* options) const {
  rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size(
      static_cast<rocksdb_options_t*>(options), window_, trigger_, ratio_, min_file_size_);
  return true;
}

std::shared_ptr<CompactOnDeletionCollectorFactory> NewCompactOnDeletionCollectorFactory(
    size_t window, size_t trigger, double ratio, uint64_t min_file_size) {
  return std::make_shared<CompactOnDeletionCollectorFactory>(window, trigger, ratio,
                                                             min_file_size);
}

// Caches.

namespace {

class CacheImpl : public Cache {
 public:
  CacheImpl(const char* name, rocksdb_cache_t* handle, bool is_strict)
      : name_(name), handle_(handle), is_strict_(is_strict) {}
  ~CacheImpl() override { rocksdb_cache_destroy(handle_); }
  const char* Name() const override { return name_; }
  void SetCapacity(size_t capacity) override { rocksdb_cache_set_capacity(handle_, capacity); }
  size_t GetCapacity() const override { return rocksdb_cache_get_capacity(handle_); }
  size_t GetUsage() const override { return rocksdb_cache_get_usage(handle_); }
  size_t GetPinnedUsage() const override { return rocksdb_cache_get_pinned_usage(handle_); }
  size_t GetOccupancyCount() const override { return rocksdb_cache_get_occupancy_count(handle_); }
  size_t GetTableAddressCount() const override {
    return rocksdb_cache_get_table_address_count(handle_);
  }
  bool HasStrictCapacityLimit() const override { return is_strict_; }
  void SetStrictCapacityLimit(bool is_strict) override {
    is_strict_ = is_strict;
    esker_cache_set_strict_capacity_limit(handle_, is_strict ? 1 : 0);
  }
  void DisownData() override { rocksdb_cache_disown_data(handle_); }
  void* EskerHandle() const override { return handle_; }

 private:
  const char* name_;
  rocksdb_cache_t* handle_;
  std::atomic<bool> is_strict_;
};

}  // namespace

std::shared_ptr<Cache> LRUCacheOptions::MakeSharedCache() const {
  Handle<rocksdb_lru_cache_options_t> options(rocksdb_lru_cache_options_create(),
                                              rocksdb_lru_cache_options_destroy);
  rocksdb_lru_cache_options_set_capacity(options.get(), capacity);
  if (num_shard_bits >= 0) {
    rocksdb_lru_cache_options_set_num_shard_bits(options.get(), num_shard_bits);
  }
  auto cache = std::make_shared<CacheImpl>("LRUCache", rocksdb_cache_create_lru_opts(options.get()),
                                           strict_capacity_limit);
  if (strict_capacity_limit) cache->SetStrictCapacityLimit(true);
  return cache;
}

std::shared_ptr<Cache> HyperClockCacheOptions::MakeSharedCache() const {
  rocksdb_cache_t* handle = rocksdb_cache_create_hyper_clock(capacity, estimated_entry_charge);
  const char* name = estimated_entry_charge == 0 ? "AutoHyperClockCache" : "FixedHyperClockCache";
  auto cache = std::make_shared<CacheImpl>(name, handle, strict_capacity_limit);
  if (strict_capacity_limit) cache->SetStrictCapacityLimit(true);
  return cache;
}

std::shared_ptr<Cache> NewLRUCache(size_t capacity, int num_shard_bits, bool is_strict,
                                   double high_pri_pool_ratio, std::shared_ptr<MemoryAllocator>,
                                   bool, CacheMetadataChargePolicy, double) {
  return LRUCacheOptions(capacity, num_shard_bits, is_strict, high_pri_pool_ratio)
      .MakeSharedCache();
}

std::shared_ptr<Cache> NewLRUCache(const LRUCacheOptions& options) {
  return options.MakeSharedCache();
}

std::shared_ptr<Cache> NewClockCache(size_t capacity, int num_shard_bits, bool is_strict,
                                     CacheMetadataChargePolicy policy) {
  HyperClockCacheOptions options(capacity, 0, num_shard_bits, is_strict);
  options.metadata_charge_policy = policy;
  return options.MakeSharedCache();
}

// Limits that databases share.

namespace {

class RateLimiterImpl : public RateLimiter {
 public:
  RateLimiterImpl(rocksdb_ratelimiter_t* handle, int64_t rate) : handle_(handle), rate_(rate) {}
  ~RateLimiterImpl() override { rocksdb_ratelimiter_destroy(handle_); }
  int64_t GetBytesPerSecond() const override { return rate_; }
  void SetBytesPerSecond(int64_t rate) override {
    rate_ = rate;
    esker_ratelimiter_set_bytes_per_second(handle_, rate);
  }
  void* EskerHandle() const override { return handle_; }

 private:
  rocksdb_ratelimiter_t* handle_;
  std::atomic<int64_t> rate_;
};

class SstFileManagerImpl : public SstFileManager {
 public:
  SstFileManagerImpl() {
    rocksdb_env_t* env = rocksdb_create_default_env();
    handle_ = rocksdb_sst_file_manager_create(env);
    rocksdb_env_destroy(env);
  }
  ~SstFileManagerImpl() override { rocksdb_sst_file_manager_destroy(handle_); }
  void SetMaxAllowedSpaceUsage(uint64_t bytes) override {
    rocksdb_sst_file_manager_set_max_allowed_space_usage(handle_, bytes);
  }
  void SetCompactionBufferSize(uint64_t bytes) override {
    rocksdb_sst_file_manager_set_compaction_buffer_size(handle_, bytes);
  }
  bool IsMaxAllowedSpaceReached() override {
    return rocksdb_sst_file_manager_is_max_allowed_space_reached(handle_);
  }
  bool IsMaxAllowedSpaceReachedIncludingCompactions() override {
    return rocksdb_sst_file_manager_is_max_allowed_space_reached_including_compactions(handle_);
  }
  uint64_t GetTotalSize() override { return rocksdb_sst_file_manager_get_total_size(handle_); }
  int64_t GetDeleteRateBytesPerSecond() override {
    return rocksdb_sst_file_manager_get_delete_rate_bytes_per_second(handle_);
  }
  void SetDeleteRateBytesPerSecond(int64_t rate) override {
    rocksdb_sst_file_manager_set_delete_rate_bytes_per_second(handle_, rate);
  }
  double GetMaxTrashDBRatio() override {
    return rocksdb_sst_file_manager_get_max_trash_db_ratio(handle_);
  }
  void SetMaxTrashDBRatio(double ratio) override {
    rocksdb_sst_file_manager_set_max_trash_db_ratio(handle_, ratio);
  }
  uint64_t GetTotalTrashSize() override {
    return rocksdb_sst_file_manager_get_total_trash_size(handle_);
  }
  void* EskerHandle() const override { return handle_; }

 private:
  rocksdb_sst_file_manager_t* handle_;
};

rocksdb_write_buffer_manager_t* Buffers(void* handle) {
  return static_cast<rocksdb_write_buffer_manager_t*>(handle);
}

}  // namespace

RateLimiter* NewGenericRateLimiter(int64_t rate, int64_t refill_period_us, int32_t fairness,
                                   RateLimiter::Mode mode, bool auto_tuned) {
  return new RateLimiterImpl(
      rocksdb_ratelimiter_create_with_mode(rate, refill_period_us, fairness,
                                           static_cast<int>(mode), auto_tuned),
      rate);
}

SstFileManager* NewSstFileManager(Env*, std::shared_ptr<Logger>, std::string, int64_t rate, bool,
                                  Status* status, double max_trash_db_ratio, uint64_t) {
  auto* manager = new SstFileManagerImpl;
  manager->SetDeleteRateBytesPerSecond(rate);
  manager->SetMaxTrashDBRatio(max_trash_db_ratio);
  if (status != nullptr) *status = Status::OK();
  return manager;
}

WriteBufferManager::WriteBufferManager(size_t buffer_size, std::shared_ptr<Cache> cache,
                                       bool allow_stall)
    : cache_(std::move(cache)) {
  void* of = cache_ == nullptr ? nullptr : cache_->EskerHandle();
  handle_ = of == nullptr ? rocksdb_write_buffer_manager_create(buffer_size, allow_stall)
                          : rocksdb_write_buffer_manager_create_with_cache(
                                buffer_size, static_cast<rocksdb_cache_t*>(of), allow_stall);
}
WriteBufferManager::~WriteBufferManager() {
  rocksdb_write_buffer_manager_destroy(Buffers(handle_));
}
bool WriteBufferManager::enabled() const {
  return rocksdb_write_buffer_manager_enabled(Buffers(handle_));
}
bool WriteBufferManager::cost_to_cache() const {
  return rocksdb_write_buffer_manager_cost_to_cache(Buffers(handle_));
}
size_t WriteBufferManager::memory_usage() const {
  return rocksdb_write_buffer_manager_memory_usage(Buffers(handle_));
}
size_t WriteBufferManager::mutable_memtable_memory_usage() const {
  return rocksdb_write_buffer_manager_mutable_memtable_memory_usage(Buffers(handle_));
}
size_t WriteBufferManager::dummy_entries_in_cache_usage() const {
  return rocksdb_write_buffer_manager_dummy_entries_in_cache_usage(Buffers(handle_));
}
size_t WriteBufferManager::buffer_size() const {
  return rocksdb_write_buffer_manager_buffer_size(Buffers(handle_));
}
void WriteBufferManager::SetBufferSize(size_t bytes) {
  rocksdb_write_buffer_manager_set_buffer_size(Buffers(handle_), bytes);
}
void WriteBufferManager::SetAllowStall(bool yes) {
  rocksdb_write_buffer_manager_set_allow_stall(Buffers(handle_), yes);
}

// Statistics: counters belong to an options object of the C interface, and databases share them.

#include "statistics_names.inc"

namespace {

class StatisticsImpl : public Statistics {
 public:
  StatisticsImpl() : handle_(rocksdb_options_create()) {
    rocksdb_options_enable_statistics(handle_);
  }
  ~StatisticsImpl() override { rocksdb_options_destroy(handle_); }
  uint64_t getTickerCount(uint32_t ticker) const override {
    return rocksdb_options_statistics_get_ticker_count(handle_, ticker);
  }
  void histogramData(uint32_t histogram, HistogramData* const data) const override {
    Handle<rocksdb_statistics_histogram_data_t> from(rocksdb_statistics_histogram_data_create(),
                                                     rocksdb_statistics_histogram_data_destroy);
    rocksdb_options_statistics_get_histogram_data(handle_, histogram, from.get());
    data->median = rocksdb_statistics_histogram_data_get_median(from.get());
    data->percentile95 = rocksdb_statistics_histogram_data_get_p95(from.get());
    data->percentile99 = rocksdb_statistics_histogram_data_get_p99(from.get());
    data->average = rocksdb_statistics_histogram_data_get_average(from.get());
    data->standard_deviation = rocksdb_statistics_histogram_data_get_std_dev(from.get());
    data->max = rocksdb_statistics_histogram_data_get_max(from.get());
    data->count = rocksdb_statistics_histogram_data_get_count(from.get());
    data->sum = rocksdb_statistics_histogram_data_get_sum(from.get());
    data->min = rocksdb_statistics_histogram_data_get_min(from.get());
  }
  uint64_t getAndResetTickerCount(uint32_t ticker) override {
    return esker_options_take_ticker(handle_, ticker);
  }
  Status Reset() override {
    esker_options_reset_statistics(handle_);
    return Status::OK();
  }
  std::string ToString() const override {
    return Take(rocksdb_options_statistics_get_string(handle_));
  }
  bool getTickerMap(std::map<std::string, uint64_t>* values) const override {
    for (const auto& [ticker, name] : TickersNameMap) (*values)[name] = getTickerCount(ticker);
    return true;
  }
  void set_stats_level(StatsLevel level) override {
    rocksdb_options_set_statistics_level(handle_, level);
  }
  StatsLevel get_stats_level() const override {
    return static_cast<StatsLevel>(rocksdb_options_get_statistics_level(handle_));
  }
  void* EskerHandle() const override { return handle_; }

 private:
  rocksdb_options_t* handle_;
};

}  // namespace

std::shared_ptr<Statistics> CreateDBStatistics() { return std::make_shared<StatisticsImpl>(); }

// Memory.

Status MemoryUtil::GetApproximateMemoryUsageByType(const std::vector<DB*>& dbs,
                                                   const std::unordered_set<const Cache*> caches,
                                                   std::map<UsageType, uint64_t>* usage) {
  Handle<rocksdb_memory_consumers_t> consumers(rocksdb_memory_consumers_create(),
                                               rocksdb_memory_consumers_destroy);
  for (DB* db : dbs) {
    if (db == nullptr || db->EskerHandle() == nullptr) continue;
    rocksdb_memory_consumers_add_db(consumers.get(), static_cast<rocksdb_t*>(db->EskerHandle()));
  }
  for (const Cache* cache : caches) {
    if (cache == nullptr || cache->EskerHandle() == nullptr) continue;
    rocksdb_memory_consumers_add_cache(consumers.get(),
                                       static_cast<rocksdb_cache_t*>(cache->EskerHandle()));
  }
  ErrorText error;
  Handle<rocksdb_memory_usage_t> found(
      rocksdb_approximate_memory_usage_create(consumers.get(), error),
      rocksdb_approximate_memory_usage_destroy);
  if (!error.ok()) return error.status();
  (*usage)[kMemTableTotal] = rocksdb_approximate_memory_usage_get_mem_table_total(found.get());
  (*usage)[kMemTableUnFlushed] =
      rocksdb_approximate_memory_usage_get_mem_table_unflushed(found.get());
  (*usage)[kTableReadersTotal] =
      rocksdb_approximate_memory_usage_get_mem_table_readers_total(found.get());
  (*usage)[kCacheTotal] = rocksdb_approximate_memory_usage_get_cache_total(found.get());
  return Status::OK();
}

std::vector<CompressionType> GetSupportedCompressions() {
  return {kNoCompression, kSnappyCompression, kZlibCompression, kBZip2Compression,
          kLZ4Compression, kLZ4HCCompression, kZSTD};
}

}  // namespace ROCKSDB_NAMESPACE
