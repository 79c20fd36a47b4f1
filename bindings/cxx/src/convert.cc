#include "convert.h"

#include <algorithm>
#include <charconv>
#include <type_traits>

#include "rocksdb/convenience.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/table.h"

namespace ROCKSDB_NAMESPACE {

namespace {

#include "fields.inc"

// The names of enumerators, as the engine prints and reads them.
template <class E>
struct Names;

#define ESKER_NAMES(TYPE, ...)                                                    \
  template <>                                                                     \
  struct Names<TYPE> {                                                            \
    static constexpr std::pair<TYPE, const char*> all[] = {__VA_ARGS__};          \
  };
#define ESKER_NAME(TYPE, NAME) \
  { TYPE::NAME, #NAME }

ESKER_NAMES(CompressionType, ESKER_NAME(CompressionType, kNoCompression),
            ESKER_NAME(CompressionType, kSnappyCompression),
            ESKER_NAME(CompressionType, kZlibCompression),
            ESKER_NAME(CompressionType, kBZip2Compression),
            ESKER_NAME(CompressionType, kLZ4Compression),
            ESKER_NAME(CompressionType, kLZ4HCCompression),
            ESKER_NAME(CompressionType, kXpressCompression), ESKER_NAME(CompressionType, kZSTD),
            {kZSTDNotFinalCompression, "kZSTD"},
            ESKER_NAME(CompressionType, kDisableCompressionOption))
ESKER_NAMES(CompactionStyle, ESKER_NAME(CompactionStyle, kCompactionStyleLevel),
            ESKER_NAME(CompactionStyle, kCompactionStyleUniversal),
            ESKER_NAME(CompactionStyle, kCompactionStyleFIFO),
            ESKER_NAME(CompactionStyle, kCompactionStyleNone))
ESKER_NAMES(CompactionPri, ESKER_NAME(CompactionPri, kByCompensatedSize),
            ESKER_NAME(CompactionPri, kOldestLargestSeqFirst),
            ESKER_NAME(CompactionPri, kOldestSmallestSeqFirst),
            ESKER_NAME(CompactionPri, kMinOverlappingRatio),
            ESKER_NAME(CompactionPri, kRoundRobin))
ESKER_NAMES(CompactionStopStyle,
            ESKER_NAME(CompactionStopStyle, kCompactionStopStyleSimilarSize),
            ESKER_NAME(CompactionStopStyle, kCompactionStopStyleTotalSize))
ESKER_NAMES(CacheTier, ESKER_NAME(CacheTier, kVolatileTier),
            ESKER_NAME(CacheTier, kVolatileCompressedTier),
            ESKER_NAME(CacheTier, kNonVolatileBlockTier))
ESKER_NAMES(PrepopulateBlobCache, ESKER_NAME(PrepopulateBlobCache, kDisable),
            ESKER_NAME(PrepopulateBlobCache, kFlushOnly))
ESKER_NAMES(Temperature, ESKER_NAME(Temperature, kUnknown), ESKER_NAME(Temperature, kHot),
            ESKER_NAME(Temperature, kWarm), ESKER_NAME(Temperature, kCool),
            ESKER_NAME(Temperature, kCold), ESKER_NAME(Temperature, kIce))
ESKER_NAMES(WALRecoveryMode, ESKER_NAME(WALRecoveryMode, kTolerateCorruptedTailRecords),
            ESKER_NAME(WALRecoveryMode, kAbsoluteConsistency),
            ESKER_NAME(WALRecoveryMode, kPointInTimeRecovery),
            ESKER_NAME(WALRecoveryMode, kSkipAnyCorruptedRecords))
ESKER_NAMES(InfoLogLevel, ESKER_NAME(InfoLogLevel, DEBUG_LEVEL),
            ESKER_NAME(InfoLogLevel, INFO_LEVEL), ESKER_NAME(InfoLogLevel, WARN_LEVEL),
            ESKER_NAME(InfoLogLevel, ERROR_LEVEL), ESKER_NAME(InfoLogLevel, FATAL_LEVEL),
            ESKER_NAME(InfoLogLevel, HEADER_LEVEL))
ESKER_NAMES(ChecksumType, ESKER_NAME(ChecksumType, kNoChecksum),
            ESKER_NAME(ChecksumType, kCRC32c), ESKER_NAME(ChecksumType, kxxHash),
            ESKER_NAME(ChecksumType, kxxHash64), ESKER_NAME(ChecksumType, kXXH3))
ESKER_NAMES(PinningTier, ESKER_NAME(PinningTier, kFallback), ESKER_NAME(PinningTier, kNone),
            ESKER_NAME(PinningTier, kFlushedAndSimilar), ESKER_NAME(PinningTier, kAll))
using Table = BlockBasedTableOptions;
ESKER_NAMES(Table::IndexType, ESKER_NAME(Table, kBinarySearch), ESKER_NAME(Table, kHashSearch),
            ESKER_NAME(Table, kTwoLevelIndexSearch), ESKER_NAME(Table, kBinarySearchWithFirstKey))
ESKER_NAMES(Table::BlockSearchType, ESKER_NAME(Table, kBinary), ESKER_NAME(Table, kInterpolation),
            ESKER_NAME(Table, kAuto))
ESKER_NAMES(Table::DataBlockIndexType, ESKER_NAME(Table, kDataBlockBinarySearch),
            ESKER_NAME(Table, kDataBlockBinaryAndHash))
ESKER_NAMES(Table::IndexShorteningMode, ESKER_NAME(Table::IndexShorteningMode, kNoShortening),
            ESKER_NAME(Table::IndexShorteningMode, kShortenSeparators),
            ESKER_NAME(Table::IndexShorteningMode, kShortenSeparatorsAndSuccessor))
ESKER_NAMES(Table::PrepopulateBlockCache, ESKER_NAME(Table::PrepopulateBlockCache, kDisable),
            ESKER_NAME(Table::PrepopulateBlockCache, kFlushOnly),
            ESKER_NAME(Table::PrepopulateBlockCache, kFlushAndCompaction))

#undef ESKER_NAME
#undef ESKER_NAMES

// Structs that are members of others.
template <class T>
constexpr bool kIsStruct =
    std::is_same_v<T, CompressionOptions> || std::is_same_v<T, CompactionOptionsUniversal> ||
    std::is_same_v<T, CompactionOptionsFIFO> || std::is_same_v<T, MetadataCacheOptions>;

template <class T>
std::string ToText(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, double>) {
    char text[40];
    std::snprintf(text, sizeof(text), "%.17g", value);
    return text;
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else if constexpr (std::is_enum_v<T>) {
    for (const auto& [known, name] : Names<T>::all) {
      if (known == value) return name;
    }
    return std::to_string(static_cast<int>(value));
  } else {
    return value;
  }
}

template <class T>
std::string ToText(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) {
    if (!text.empty()) text += ':';
    text += ToText(value);
  }
  return text;
}

template <class T>
bool FromText(const std::string& text, T* value) {
  if constexpr (std::is_same_v<T, bool>) {
    *value = text == "true" || text == "1";
    return true;
  } else if constexpr (std::is_same_v<T, double>) {
    char* end = nullptr;
    *value = std::strtod(text.c_str(), &end);
    return end != text.c_str();
  } else if constexpr (std::is_integral_v<T>) {
    const char* end = text.data() + text.size();
    T parsed{};
    const auto result = std::from_chars(text.data(), end, parsed);
    if (result.ec != std::errc() || result.ptr != end) return false;
    *value = parsed;
    return true;
  } else if constexpr (std::is_enum_v<T>) {
    for (const auto& [known, name] : Names<T>::all) {
      if (text == name) {
        *value = known;
        return true;
      }
    }
    return false;
  } else {
    *value = text;
    return true;
  }
}

template <class T>
bool FromText(const std::string& text, std::vector<T>* values) {
  std::vector<T> parsed;
  size_t from = 0;
  while (from < text.size()) {
    const size_t end = std::min(text.find(':', from), text.size());
    T value{};
    if (!FromText(text.substr(from, end - from), &value)) return false;
    parsed.push_back(value);
    from = end + 1;
  }
  *values = std::move(parsed);
  return true;
}

template <class T>
bool Differs(const T& a, const T& b) {
  if constexpr (kIsStruct<T>) {
    bool differs = false;
    VisitFields(static_cast<const T*>(nullptr), [&](const char*, auto member) {
      differs = differs || Differs(a.*member, b.*member);
    });
    return differs;
  } else {
    return a != b;
  }
}

// Passes members by name what differs from `defaults`.
template <class T>
void SetByName(const T& value, const T& defaults, int part, const std::string& prefix,
               rocksdb_options_t* out, Status* status) {
  VisitFields(static_cast<const T*>(nullptr), [&](const char* name, auto member) {
    if (!status->ok() || !Differs(value.*member, defaults.*member)) return;
    const std::string whole = prefix + name;
    if constexpr (kIsStruct<std::decay_t<decltype(value.*member)>>) {
      SetByName(value.*member, defaults.*member, part, whole + ".", out, status);
    } else {
      ErrorText error;
      esker_options_set(out, part, whole.c_str(), ToText(value.*member).c_str(), error);
      *status = error.status();
    }
  });
}

template <class T>
void GetByName(const rocksdb_options_t* options, int part, const std::string& prefix, T* out) {
  VisitFields(static_cast<const T*>(nullptr), [&](const char* name, auto member) {
    const std::string whole = prefix + name;
    if constexpr (kIsStruct<std::decay_t<decltype(out->*member)>>) {
      GetByName(options, part, whole + ".", &(out->*member));
    } else {
      ErrorText error;
      char* text = esker_options_get(options, part, whole.c_str(), error);
      if (text != nullptr) FromText(Take(text), &(out->*member));
    }
  });
}

template <class H, class A, class V>
void Set(void (*setter)(H*, A), H* handle, const V& value) {
  setter(handle, static_cast<A>(value));
}

// Passes what differs from `defaults` to setters of `handle`.
template <class T, class H>
void SetByCall(const T& value, const T& defaults, H* handle) {
  VisitFields(static_cast<const T*>(nullptr), [&](auto setter, auto member) {
    if (Differs(value.*member, defaults.*member)) Set(setter, handle, value.*member);
  });
}

template <class T>
bool HasDefaults(const T& value, const T& defaults) {
  bool same = true;
  VisitFields(static_cast<const T*>(nullptr), [&](auto, auto member) {
    same = same && value.*member == defaults.*member;
  });
  return same;
}

template <class T>
const T& Defaults() {
  static const T defaults{};
  return defaults;
}

}  // namespace

OptionsHandle NewOptions() {
  return OptionsHandle(rocksdb_options_create(), rocksdb_options_destroy);
}

Status ToC(const DBOptions& options, const std::shared_ptr<ListenedDb>& db,
           rocksdb_options_t* out) {
  Status status = SetObjects(options, db, out);
  SetByName(options, Defaults<DBOptions>(), esker_options_of_database, "", out, &status);
  // Fewer are raised to this, as RocksDB does.
  constexpr int kLeastOpenFiles = 20;
  if (options.max_open_files != -1 && options.max_open_files < kLeastOpenFiles) {
    rocksdb_options_set_max_open_files(out, kLeastOpenFiles);
  }
  return status;
}

namespace {

void SetTableByName(const ColumnFamilyOptions& options, rocksdb_options_t* out, Status* status) {
  if (options.table_factory == nullptr) return;
  const auto* table = options.table_factory->GetOptions<BlockBasedTableOptions>();
  if (table == nullptr) return;
  SetByName(*table, Defaults<BlockBasedTableOptions>(), esker_options_of_table, "", out, status);
}

}  // namespace

Status ToC(const ColumnFamilyOptions& options, rocksdb_options_t* out) {
  Status status = SetObjects(options, out);
  SetByName(options, Defaults<ColumnFamilyOptions>(), esker_options_of_family, "", out, &status);
  SetTableByName(options, out, &status);
  return status;
}

std::string Printable(const BlockBasedTableOptions& options) {
  std::string lines;
  const auto line = [&](const char* name, const std::string& value) {
    lines += std::string("  ") + name + ": " + value + "\n";
  };
  VisitFields(&options, [&](const char* name, auto member) {
    using Member = std::decay_t<decltype(options.*member)>;
    if constexpr (std::is_enum_v<Member>) {
      line(name, std::to_string(static_cast<int>(options.*member)));
    } else if constexpr (std::is_same_v<Member, bool>) {
      line(name, options.*member ? "1" : "0");
    } else if constexpr (!kIsStruct<Member>) {
      line(name, ToText(options.*member));
    }
  });
  const Cache* cache = options.block_cache.get();
  line("block_cache_name", cache == nullptr ? "nullptr" : cache->Name());
  if (cache != nullptr) line("block_cache_capacity", std::to_string(cache->GetCapacity()));
  line("filter_policy", options.filter_policy == nullptr ? "nullptr"
                                                         : options.filter_policy->Name());
  return lines;
}

void FromC(const rocksdb_options_t* options, DBOptions* out) {
  GetByName(options, esker_options_of_database, "", out);
  GetSets(options, out);
}

namespace {

std::string TextOf(const rocksdb_options_t* options, int part, const char* name) {
  ErrorText error;
  char* text = esker_options_get(options, part, name, error);
  return text == nullptr ? "" : Take(text);
}

// The number after `prefix` in `text`, if it begins so.
bool NumberAfter(const std::string& text, const std::string& prefix, double* number) {
  if (text.compare(0, prefix.size(), prefix) != 0) return false;
  return FromText(text.substr(prefix.size()), number);
}

// A kind of prefix that is built in and that options name.
void TakePrefix(const rocksdb_options_t* options, ColumnFamilyOptions* out) {
  const std::string text = TextOf(options, esker_options_of_family, "prefix_extractor");
  const std::string had =
      out->prefix_extractor == nullptr ? "" : out->prefix_extractor->EskerText();
  double length = 0;
  if (text == had) return;
  if (NumberAfter(text, "rocksdb.FixedPrefix.", &length)) {
    out->prefix_extractor.reset(NewFixedPrefixTransform(static_cast<size_t>(length)));
  } else if (NumberAfter(text, "rocksdb.CappedPrefix.", &length)) {
    out->prefix_extractor.reset(NewCappedPrefixTransform(static_cast<size_t>(length)));
  } else if (text == "rocksdb.Noop") {
    out->prefix_extractor.reset(NewNoopTransform());
  }
}

// A filter that options name.
void TakeFilter(const rocksdb_options_t* options, BlockBasedTableOptions* table) {
  const std::string text = TextOf(options, esker_options_of_table, "filter_policy");
  double bits = 0;
  if (NumberAfter(text, "bloomfilter:", &bits)) {
    table->filter_policy.reset(NewBloomFilterPolicy(bits));
  } else if (NumberAfter(text, "ribbonfilter:", &bits)) {
    const size_t level = text.rfind(':') + 1;
    table->filter_policy.reset(NewRibbonFilterPolicy(bits, std::atoi(text.c_str() + level)));
  }
}

}  // namespace

void FromC(const rocksdb_options_t* options, ColumnFamilyOptions* out) {
  GetByName(options, esker_options_of_family, "", out);
  // A factory of its own: the old one may be shared with other options.
  TakePrefix(options, out);
  BlockBasedTableOptions table;
  if (out->table_factory != nullptr) {
    const auto* old = out->table_factory->GetOptions<BlockBasedTableOptions>();
    if (old == nullptr) return;
    table = *old;
  }
  GetByName(options, esker_options_of_table, "", &table);
  TakeFilter(options, &table);
  out->table_factory.reset(NewBlockBasedTableFactory(table));
}

ReadHandle::ReadHandle(const ReadOptions& options) {
  static rocksdb_readoptions_t* const plain = rocksdb_readoptions_create();
  static const ReadOptions defaults;
  handle_ = plain;
  const bool is_plain =
      options.snapshot == nullptr && options.iterate_upper_bound == nullptr &&
      options.iterate_lower_bound == nullptr && options.timestamp == nullptr &&
      options.iter_start_ts == nullptr && options.deadline.count() == 0 &&
      options.io_timeout.count() == 0 && !options.table_filter && HasDefaults(options, defaults);
  if (is_plain) return;
  handle_ = own_ = rocksdb_readoptions_create();
  SetByCall(options, defaults, own_);
  if (options.snapshot != nullptr) rocksdb_readoptions_set_snapshot(own_, ToC(options.snapshot));
  if (const Slice* key = options.iterate_upper_bound) {
    rocksdb_readoptions_set_iterate_upper_bound(own_, key->data(), key->size());
  }
  if (const Slice* key = options.iterate_lower_bound) {
    rocksdb_readoptions_set_iterate_lower_bound(own_, key->data(), key->size());
  }
  if (const Slice* ts = options.timestamp) {
    rocksdb_readoptions_set_timestamp(own_, ts->data(), ts->size());
  }
  if (const Slice* ts = options.iter_start_ts) {
    rocksdb_readoptions_set_iter_start_ts(own_, ts->data(), ts->size());
  }
  if (options.deadline.count() != 0) {
    rocksdb_readoptions_set_deadline(own_, static_cast<uint64_t>(options.deadline.count()));
  }
  if (options.io_timeout.count() != 0) {
    rocksdb_readoptions_set_io_timeout(own_, static_cast<uint64_t>(options.io_timeout.count()));
  }
  if (options.table_filter) SetTableFilter(options.table_filter, own_);
}

WriteHandle::WriteHandle(const WriteOptions& options) {
  static rocksdb_writeoptions_t* const plain = rocksdb_writeoptions_create();
  static const WriteOptions defaults;
  handle_ = plain;
  if (!options.disableWAL && HasDefaults(options, defaults)) return;
  handle_ = own_ = rocksdb_writeoptions_create();
  SetByCall(options, defaults, own_);
  rocksdb_writeoptions_disable_WAL(own_, options.disableWAL ? 1 : 0);
}

// A handle with what differs from the defaults.
#define ESKER_TO_C(STRUCT, KIND)                                               \
  Handle<rocksdb_##KIND##_t> handle(rocksdb_##KIND##_create(), rocksdb_##KIND##_destroy); \
  SetByCall(options, Defaults<STRUCT>(), handle.get());

Handle<rocksdb_flushoptions_t> ToC(const FlushOptions& options) {
  ESKER_TO_C(FlushOptions, flushoptions)
  return handle;
}

Handle<rocksdb_compactoptions_t> ToC(const CompactRangeOptions& options) {
  ESKER_TO_C(CompactRangeOptions, compactoptions)
  if (const Slice* ts = options.full_history_ts_low) {
    rocksdb_compactoptions_set_full_history_ts_low(handle.get(), const_cast<char*>(ts->data()),
                                                   ts->size());
  }
  return handle;
}

Handle<rocksdb_compaction_options_t> ToC(const CompactionOptions& options) {
  ESKER_TO_C(CompactionOptions, compaction_options)
  rocksdb_compaction_options_set_compression(handle.get(), options.compression);
  return handle;
}

Handle<rocksdb_ingestexternalfileoptions_t> ToC(const IngestExternalFileOptions& options) {
  ESKER_TO_C(IngestExternalFileOptions, ingestexternalfileoptions)
  return handle;
}

Handle<rocksdb_wait_for_compact_options_t> ToC(const WaitForCompactOptions& options) {
  ESKER_TO_C(WaitForCompactOptions, wait_for_compact_options)
  if (options.timeout.count() != 0) {
    rocksdb_wait_for_compact_options_set_timeout(
        handle.get(), static_cast<uint64_t>(options.timeout.count()));
  }
  return handle;
}

Handle<rocksdb_size_approximation_options_t> ToC(const SizeApproximationOptions& options) {
  ESKER_TO_C(SizeApproximationOptions, size_approximation_options)
  return handle;
}

Handle<rocksdb_envoptions_t> ToC(const EnvOptions& options) {
  ESKER_TO_C(EnvOptions, envoptions)
  return handle;
}

Handle<rocksdb_transactiondb_options_t> ToC(const TransactionDBOptions& options) {
  ESKER_TO_C(TransactionDBOptions, transactiondb_options)
  return handle;
}

Handle<rocksdb_transaction_options_t> ToC(const TransactionOptions& options) {
  ESKER_TO_C(TransactionOptions, transaction_options)
  return handle;
}

Handle<rocksdb_optimistictransaction_options_t> ToC(
    const OptimisticTransactionOptions& options) {
  ESKER_TO_C(OptimisticTransactionOptions, optimistictransaction_options)
  return handle;
}

Handle<rocksdb_optimistictransactiondb_options_t> ToC(
    const OptimisticTransactionDBOptions& options) {
  ESKER_TO_C(OptimisticTransactionDBOptions, optimistictransactiondb_options)
  if (options.shared_lock_buckets != nullptr) {
    rocksdb_optimistictransactiondb_options_set_shared_lock_buckets(
        handle.get(), static_cast<rocksdb_optimistictransactiondb_lock_buckets_t*>(
                          options.shared_lock_buckets->EskerHandle()));
  }
  return handle;
}

Handle<rocksdb_backup_engine_options_t> ToC(const BackupEngineOptions& options) {
  Handle<rocksdb_backup_engine_options_t> handle(
      rocksdb_backup_engine_options_create(options.backup_dir.c_str()),
      rocksdb_backup_engine_options_destroy);
  SetByCall(options, BackupEngineOptions(options.backup_dir), handle.get());
  rocksdb_backup_engine_options_set_share_files_with_checksum_naming(
      handle.get(), static_cast<int>(options.share_files_with_checksum_naming));
  const auto limiter = [](const std::shared_ptr<RateLimiter>& of) {
    return of == nullptr ? nullptr : static_cast<rocksdb_ratelimiter_t*>(of->EskerHandle());
  };
  if (auto* of = limiter(options.backup_rate_limiter)) {
    rocksdb_backup_engine_options_set_backup_rate_limiter(handle.get(), of);
  }
  if (auto* of = limiter(options.restore_rate_limiter)) {
    rocksdb_backup_engine_options_set_restore_rate_limiter(handle.get(), of);
  }
  if (options.backup_env != nullptr && options.backup_env->EskerHandle() != nullptr) {
    rocksdb_backup_engine_options_set_env(
        handle.get(), static_cast<rocksdb_env_t*>(options.backup_env->EskerHandle()));
  }
  return handle;
}

Handle<rocksdb_create_backup_options_t> ToC(const CreateBackupOptions& options) {
  ESKER_TO_C(CreateBackupOptions, create_backup_options)
  return handle;
}

Handle<rocksdb_restore_options_t> ToC(const RestoreOptions& options) {
  ESKER_TO_C(RestoreOptions, restore_options)
  rocksdb_restore_options_set_mode(handle.get(), static_cast<int>(options.mode));
  return handle;
}

#undef ESKER_TO_C

// Options as text.

namespace {

// Applies options in text to a copy of `base`, by way of the C interface.
template <class T>
Status Apply(const T& base, const std::string& text, int part, T* out) {
  OptionsHandle handle = NewOptions();
  Status status;
  SetByName(base, Defaults<T>(), part, "", handle.get(), &status);
  if constexpr (std::is_base_of_v<ColumnFamilyOptions, T>) {
    SetTableByName(base, handle.get(), &status);
  }
  if (!status.ok()) return status;
  OptionsHandle made = NewOptions();
  ErrorText error;
  rocksdb_get_options_from_string(handle.get(), text.c_str(), made.get(), error);
  if (!error.ok()) return error.status();
  T copy = base;
  FromC(made.get(), &copy);
  *out = copy;
  return Status::OK();
}

template <class T>
std::string Print(const T& options) {
  std::string text;
  VisitFields(static_cast<const T*>(nullptr), [&](const char* name, auto member) {
    if constexpr (kIsStruct<std::decay_t<decltype(options.*member)>>) {
      text += std::string(name) + "={" + Print(options.*member) + "};";
    } else {
      text += std::string(name) + "=" + ToText(options.*member) + ";";
    }
  });
  return text;
}

}  // namespace

Status GetDBOptionsFromString(const ConfigOptions&, const DBOptions& base,
                              const std::string& text, DBOptions* out) {
  return Apply(base, text, esker_options_of_database, out);
}

Status GetColumnFamilyOptionsFromString(const ConfigOptions&, const ColumnFamilyOptions& base,
                                        const std::string& text, ColumnFamilyOptions* out) {
  return Apply(base, text, esker_options_of_family, out);
}

Status GetColumnFamilyOptionsFromString(const ColumnFamilyOptions& base, const std::string& text,
                                        ColumnFamilyOptions* out) {
  return Apply(base, text, esker_options_of_family, out);
}

Status GetStringFromCompressionType(std::string* text, CompressionType type) {
  CompressionType known;
  *text = ToText(type);
  return FromText(*text, &known) ? Status::OK()
                                 : Status::InvalidArgument("no compression type", *text);
}

Status GetOptionsFromString(const ConfigOptions&, const Options& base, const std::string& text,
                            Options* out) {
  OptionsHandle handle = NewOptions();
  Status status;
  SetByName(static_cast<const DBOptions&>(base), Defaults<DBOptions>(),
            esker_options_of_database, "", handle.get(), &status);
  SetByName(static_cast<const ColumnFamilyOptions&>(base), Defaults<ColumnFamilyOptions>(),
            esker_options_of_family, "", handle.get(), &status);
  SetTableByName(base, handle.get(), &status);
  if (!status.ok()) return status;
  OptionsHandle made = NewOptions();
  ErrorText error;
  rocksdb_get_options_from_string(handle.get(), text.c_str(), made.get(), error);
  if (!error.ok()) return error.status();
  Options copy = base;
  FromC(made.get(), static_cast<DBOptions*>(&copy));
  FromC(made.get(), static_cast<ColumnFamilyOptions*>(&copy));
  *out = copy;
  return Status::OK();
}

Status GetOptionsFromString(const Options& base, const std::string& text, Options* out) {
  return GetOptionsFromString(ConfigOptions(), base, text, out);
}

Status GetBlockBasedTableOptionsFromString(const ConfigOptions&,
                                           const BlockBasedTableOptions& base,
                                           const std::string& text, BlockBasedTableOptions* out) {
  OptionsHandle handle = NewOptions();
  Status status;
  SetByName(base, Defaults<BlockBasedTableOptions>(), esker_options_of_table, "", handle.get(),
            &status);
  if (!status.ok()) return status;
  const std::string whole = "block_based_table_factory={" + text + "}";
  OptionsHandle made = NewOptions();
  ErrorText error;
  rocksdb_get_options_from_string(handle.get(), whole.c_str(), made.get(), error);
  if (!error.ok()) return error.status();
  *out = base;
  GetByName(made.get(), esker_options_of_table, "", out);
  return Status::OK();
}

Status GetStringFromDBOptions(const ConfigOptions&, const DBOptions& options, std::string* text) {
  *text = Print(options);
  return Status::OK();
}

Status GetStringFromColumnFamilyOptions(const ConfigOptions&, const ColumnFamilyOptions& options,
                                        std::string* text) {
  *text = Print(options);
  if (options.prefix_extractor != nullptr && !options.prefix_extractor->EskerText().empty()) {
    *text += "prefix_extractor=" + options.prefix_extractor->EskerText() + ";";
  }
  return Status::OK();
}

Status GetStringFromDBOptions(std::string* text, const DBOptions& options) {
  return GetStringFromDBOptions(ConfigOptions(), options, text);
}

Status GetStringFromColumnFamilyOptions(std::string* text, const ColumnFamilyOptions& options) {
  return GetStringFromColumnFamilyOptions(ConfigOptions(), options, text);
}

}  // namespace ROCKSDB_NAMESPACE
