// The application's objects for the C interface. Each function here is called by the engine; none
// lets an exception out.

#include <deque>
#include <mutex>

#include "convert.h"
#include "job_info.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/listener.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/rate_limiter.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/sst_file_manager.h"
#include "rocksdb/statistics.h"
#include "rocksdb/table_properties.h"
#include "rocksdb/wal_filter.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A shared object as the state of a callback.
template <class T>
void* Hold(std::shared_ptr<T> object) {
  return new std::shared_ptr<T>(std::move(object));
}
template <class T>
T& Held(void* state) {
  return **static_cast<std::shared_ptr<T>*>(state);
}
template <class T>
void LetGo(void* state) noexcept {
  MustNotThrow("a destructor", [&] { delete static_cast<std::shared_ptr<T>*>(state); });
}
template <class T>
const char* NameOf(void* state) noexcept {
  return MustNotThrow("Name()", [&] { return Held<T>(state).Name(); });
}

Status Unsupported(const std::string& what) {
  return Status::NotSupported(what + " of the application's own");
}

// Comparators. The state is the comparator itself, which outlives the database.

const Comparator& Order(void* state) { return *static_cast<const Comparator*>(state); }

int Compare(void* state, const char* a, size_t a_length, const char* b,
            size_t b_length) noexcept {
  return MustNotThrow("Comparator::Compare", [&] {
    return Order(state).Compare(Slice(a, a_length), Slice(b, b_length));
  });
}
int CompareTimestamps(void* state, const char* a, size_t a_length, const char* b,
                      size_t b_length) noexcept {
  return MustNotThrow("Comparator::CompareTimestamp", [&] {
    return Order(state).CompareTimestamp(Slice(a, a_length), Slice(b, b_length));
  });
}
int CompareBare(void* state, const char* a, size_t a_length, unsigned char a_has, const char* b,
                size_t b_length, unsigned char b_has) noexcept {
  return MustNotThrow("Comparator::CompareWithoutTimestamp", [&] {
    return Order(state).CompareWithoutTimestamp(Slice(a, a_length), a_has != 0,
                                                Slice(b, b_length), b_has != 0);
  });
}
const char* OrderName(void* state) noexcept {
  return MustNotThrow("Comparator::Name", [&] { return Order(state).Name(); });
}
void Nothing(void*) noexcept {}

// Merge operators.

char* Copied(const std::string& value, unsigned char* success, size_t* length) {
  auto* copy = static_cast<char*>(std::malloc(value.empty() ? 1 : value.size()));
  if (copy == nullptr) return nullptr;
  std::memcpy(copy, value.data(), value.size());
  *success = 1;
  *length = value.size();
  return copy;
}

char* FullMerge(void* state, const char* key, size_t key_length, const char* value,
                size_t value_length, const char* const* operands, const size_t* lengths,
                int count, unsigned char* success, size_t* length) noexcept {
  *success = 0;
  *length = 0;
  try {
    const Slice key_slice(key, key_length);
    const Slice existing(value, value_length);
    std::vector<Slice> list;
    list.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) list.emplace_back(operands[i], lengths[i]);
    std::string result;
    Slice operand(nullptr, 0);
    MergeOperator::MergeOperationInput in(key_slice, value == nullptr ? nullptr : &existing, list,
                                          nullptr);
    MergeOperator::MergeOperationOutput out(result, operand);
    if (!Held<MergeOperator>(state).FullMergeV2(in, &out)) return nullptr;
    if (operand.data() != nullptr) return Copied(operand.ToString(), success, length);
    return Copied(result, success, length);
  } catch (...) {
    return nullptr;
  }
}

char* PartialMerge(void* state, const char* key, size_t key_length, const char* const* operands,
                   const size_t* lengths, int count, unsigned char* success,
                   size_t* length) noexcept {
  *success = 0;
  *length = 0;
  try {
    std::deque<Slice> list;
    for (int i = 0; i < count; ++i) list.emplace_back(operands[i], lengths[i]);
    std::string result;
    const bool done = Held<MergeOperator>(state).PartialMergeMulti(Slice(key, key_length), list,
                                                                   &result, nullptr);
    return done ? Copied(result, success, length) : nullptr;
  } catch (...) {
    return nullptr;
  }
}

void FreeValue(void*, const char* value, size_t) noexcept { std::free(const_cast<char*>(value)); }

// Compaction filters. A filter's state is a plain pointer: the application's, or one that a
// factory made and whose destructor deletes it.

int DecideWith(const CompactionFilter& filter, int level, const Slice& key, int type,
               const Slice& value, const char** output, size_t* length) {
  // The engine copies what it is given before it calls again in this thread.
  thread_local std::string new_value;
  thread_local std::string skip_until;
  new_value.clear();
  skip_until.clear();
  const auto of = type == esker_filter_value           ? CompactionFilter::kValue
                  : type == esker_filter_merge_operand ? CompactionFilter::kMergeOperand
                                                       : CompactionFilter::kWideColumnEntity;
  switch (filter.FilterV2(level, key, of, value, &new_value, &skip_until)) {
    case CompactionFilter::Decision::kRemove:
      return esker_filter_remove;
    case CompactionFilter::Decision::kPurge:
      return esker_filter_purge;
    case CompactionFilter::Decision::kChangeValue:
      *output = new_value.data();
      *length = new_value.size();
      return esker_filter_change;
    case CompactionFilter::Decision::kRemoveAndSkipUntil:
      *output = skip_until.data();
      *length = skip_until.size();
      return esker_filter_skip_until;
    default:
      return esker_filter_keep;
  }
}

int Decide(void* state, int level, const char* key, size_t key_length, int type,
           const char* value, size_t value_length, const char** output,
           size_t* length) noexcept {
  return MustNotThrow("CompactionFilter::FilterV2", [&] {
    return DecideWith(*static_cast<const CompactionFilter*>(state), level,
                      Slice(key, key_length), type, Slice(value, value_length), output, length);
  });
}
const char* FilterName(void* state) noexcept {
  return MustNotThrow("CompactionFilter::Name",
                      [&] { return static_cast<const CompactionFilter*>(state)->Name(); });
}
void DeleteFilter(void* state) noexcept {
  MustNotThrow("a compaction filter's destructor",
               [&] { delete static_cast<const CompactionFilter*>(state); });
}

rocksdb_compactionfilter_t* MakeFilter(void* state,
                                       rocksdb_compactionfiltercontext_t* context) noexcept {
  return MustNotThrow(
      "CompactionFilterFactory::CreateCompactionFilter", [&]() -> rocksdb_compactionfilter_t* {
        CompactionFilter::Context of;
        of.is_full_compaction = rocksdb_compactionfiltercontext_is_full_compaction(context) != 0;
        of.is_manual_compaction =
            rocksdb_compactionfiltercontext_is_manual_compaction(context) != 0;
        of.column_family_id = esker_compactionfiltercontext_column_family_id(context);
        auto made = Held<CompactionFilterFactory>(state).CreateCompactionFilter(of);
        if (made == nullptr) return nullptr;
        const bool ignores = made->IgnoreSnapshots();
        auto* handle =
            esker_compactionfilter_create(made.release(), DeleteFilter, Decide, FilterName);
        rocksdb_compactionfilter_set_ignore_snapshots(handle, ignores ? 1 : 0);
        return handle;
      });
}

// Prefixes.

char* Transform(void* state, const char* key, size_t length, size_t* prefix_length) noexcept {
  return MustNotThrow("SliceTransform::Transform", [&] {
    const Slice prefix = Held<const SliceTransform>(state).Transform(Slice(key, length));
    *prefix_length = prefix.size();
    return const_cast<char*>(prefix.data());
  });
}
unsigned char InDomain(void* state, const char* key, size_t length) noexcept {
  return MustNotThrow("SliceTransform::InDomain", [&]() -> unsigned char {
    return Held<const SliceTransform>(state).InDomain(Slice(key, length)) ? 1 : 0;
  });
}

// Listeners.

struct Listening {
  std::shared_ptr<EventListener> listener;
  std::shared_ptr<ListenedDb> db;
};

Listening& Told(void* state) { return *static_cast<Listening*>(state); }

void FlushBegin(void* state, rocksdb_t*, const rocksdb_flushjobinfo_t* info) noexcept {
  MustNotThrow("EventListener::OnFlushBegin", [&] {
    Told(state).listener->OnFlushBegin(Told(state).db->db, ToCxx(info));
  });
}
void FlushCompleted(void* state, rocksdb_t*, const rocksdb_flushjobinfo_t* info) noexcept {
  MustNotThrow("EventListener::OnFlushCompleted", [&] {
    Told(state).listener->OnFlushCompleted(Told(state).db->db, ToCxx(info));
  });
}
void CompactionBegin(void* state, rocksdb_t*, const rocksdb_compactionjobinfo_t* info) noexcept {
  MustNotThrow("EventListener::OnCompactionBegin", [&] {
    Told(state).listener->OnCompactionBegin(Told(state).db->db, ToCxx(info));
  });
}
void CompactionCompleted(void* state, rocksdb_t*,
                         const rocksdb_compactionjobinfo_t* info) noexcept {
  MustNotThrow("EventListener::OnCompactionCompleted", [&] {
    Told(state).listener->OnCompactionCompleted(Told(state).db->db, ToCxx(info));
  });
}
void SubcompactionBegin(void* state, const rocksdb_subcompactionjobinfo_t* info) noexcept {
  MustNotThrow("EventListener::OnSubcompactionBegin",
               [&] { Told(state).listener->OnSubcompactionBegin(ToCxx(info)); });
}
void SubcompactionCompleted(void* state, const rocksdb_subcompactionjobinfo_t* info) noexcept {
  MustNotThrow("EventListener::OnSubcompactionCompleted",
               [&] { Told(state).listener->OnSubcompactionCompleted(ToCxx(info)); });
}
void FileIngested(void* state, rocksdb_t*,
                  const rocksdb_externalfileingestioninfo_t* info) noexcept {
  MustNotThrow("EventListener::OnExternalFileIngested", [&] {
    Told(state).listener->OnExternalFileIngested(Told(state).db->db, ToCxx(info));
  });
}
void BackgroundError(void* state, uint32_t reason, rocksdb_status_ptr_t* from) noexcept {
  MustNotThrow("EventListener::OnBackgroundError", [&] {
    ErrorText error;
    rocksdb_status_ptr_get_error(from, error);
    Status status = error.status();
    Told(state).listener->OnBackgroundError(static_cast<BackgroundErrorReason>(reason), &status);
  });
}
void StallChanged(void* state, const rocksdb_writestallinfo_t* from) noexcept {
  MustNotThrow("EventListener::OnStallConditionsChanged", [&] {
    WriteStallInfo info;
    size_t length = 0;
    const char* name = rocksdb_writestallinfo_cf_name(from, &length);
    info.cf_name.assign(name, length);
    // The handle of a condition is the address of its number.
    const auto number = [](const rocksdb_writestallcondition_t* condition) {
      return static_cast<WriteStallCondition>(*reinterpret_cast<const int*>(condition));
    };
    info.condition.cur = number(rocksdb_writestallinfo_cur(from));
    info.condition.prev = number(rocksdb_writestallinfo_prev(from));
    Told(state).listener->OnStallConditionsChanged(info);
  });
}
void MemtableSealed(void* state, const rocksdb_memtableinfo_t* info) noexcept {
  MustNotThrow("EventListener::OnMemTableSealed",
               [&] { Told(state).listener->OnMemTableSealed(ToCxx(info)); });
}
void StopListening(void* state) noexcept {
  MustNotThrow("a listener's destructor", [&] { delete static_cast<Listening*>(state); });
}

// Loggers. The C interface has no destructor for their state: the last options that were opened
// with a logger keep it.

std::shared_ptr<Logger> KeepLogger(const std::shared_ptr<Logger>& logger) {
  static auto* const kept = new std::vector<std::shared_ptr<Logger>>();
  static auto* const mutex = new std::mutex();
  const std::lock_guard<std::mutex> lock(*mutex);
  for (const auto& known : *kept) {
    if (known == logger) return logger;
  }
  kept->push_back(logger);
  return logger;
}

void LogLine(void* state, unsigned int level, char* line, size_t length) noexcept {
  MustNotThrow("Logger::Logv", [&] {
    const std::string text(line, length);
    Log(static_cast<InfoLogLevel>(level), static_cast<Logger*>(state), "%s", text.c_str());
  });
}

// Filters of tables, for one read or iterator.

using TableFilter = std::function<bool(const TableProperties&)>;

unsigned char AskTable(void* state, const rocksdb_table_properties_t* table) noexcept {
  return MustNotThrow("ReadOptions::table_filter", [&]() -> unsigned char {
    return (*static_cast<TableFilter*>(state))(ToCxx(table)) ? 1 : 0;
  });
}
void DropTableFilter(void* state) noexcept {
  MustNotThrow("a table filter's destructor", [&] { delete static_cast<TableFilter*>(state); });
}

// Filters of logs. The state is the filter itself, which outlives the opening.

void TellLogs(void* state, const uint32_t* ids, const uint64_t* logs, size_t count,
              const char* const* names, const size_t* lengths, const uint32_t* name_ids,
              size_t name_count) noexcept {
  MustNotThrow("WalFilter::ColumnFamilyLogNumberMap", [&] {
    std::map<uint32_t, uint64_t> log_of;
    std::map<std::string, uint32_t> id_of;
    for (size_t i = 0; i < count; ++i) log_of.emplace(ids[i], logs[i]);
    for (size_t i = 0; i < name_count; ++i) {
      id_of.emplace(std::string(names[i], lengths[i]), name_ids[i]);
    }
    static_cast<WalFilter*>(state)->ColumnFamilyLogNumberMap(log_of, id_of);
  });
}
int AskRecord(void* state, unsigned long long number, const char* file, size_t length,
              const rocksdb_writebatch_t* batch, rocksdb_writebatch_t* new_batch,
              unsigned char* is_changed) noexcept {
  return MustNotThrow("WalFilter::LogRecordFound", [&] {
    const WriteBatch record(const_cast<rocksdb_writebatch_t*>(batch), /*is_own=*/false);
    WriteBatch replacement;
    bool changed = false;
    const auto option = static_cast<WalFilter*>(state)->LogRecordFound(
        number, std::string(file, length), record, &replacement, &changed);
    if (changed) {
      ErrorText error;
      esker_writebatch_assign(
          new_batch, static_cast<const rocksdb_writebatch_t*>(replacement.EskerHandle()), error);
      if (!error.ok()) return static_cast<int>(WalFilter::WalProcessingOption::kCorruptedRecord);
    }
    *is_changed = changed ? 1 : 0;
    return static_cast<int>(option);
  });
}
const char* WalFilterName(void* state) noexcept {
  return MustNotThrow("WalFilter::Name", [&] { return static_cast<WalFilter*>(state)->Name(); });
}

// Sets of enumerators are passed only when they differ from the defaults.

void SetSets(const DBOptions& options, rocksdb_options_t* out) {
  static const DBOptions defaults;
  if (options.checksum_handoff_file_types != defaults.checksum_handoff_file_types) {
    for (const FileType type : options.checksum_handoff_file_types) {
      rocksdb_options_checksum_handoff_file_types_add(out, type);
    }
  }
  const CompactionStyleSet& styles = options.calculate_sst_write_lifetime_hint_set;
  if (styles != defaults.calculate_sst_write_lifetime_hint_set) {
    rocksdb_options_calculate_sst_write_lifetime_hint_set_clear(out);
    for (const CompactionStyle style : styles) {
      rocksdb_options_calculate_sst_write_lifetime_hint_set_add(out, style);
    }
  }
}

void SetPaths(const std::vector<DbPath>& paths, rocksdb_options_t* out,
              void (*set)(rocksdb_options_t*, const rocksdb_dbpath_t**, size_t)) {
  if (paths.empty()) return;
  std::vector<const rocksdb_dbpath_t*> made;
  for (const DbPath& path : paths) {
    made.push_back(rocksdb_dbpath_create(path.path.c_str(), path.target_size));
  }
  set(out, made.data(), made.size());
  for (const rocksdb_dbpath_t* path : made) {
    rocksdb_dbpath_destroy(const_cast<rocksdb_dbpath_t*>(path));
  }
}

Status SetTable(const ColumnFamilyOptions& options, rocksdb_options_t* out) {
  if (options.table_factory == nullptr) return Status::OK();
  // Tables of the other formats are written as block-based ones, as the C interface does it.
  if (const auto* plain = options.table_factory->GetOptions<PlainTableOptions>()) {
    rocksdb_options_set_plain_table_factory(
        out, plain->user_key_len, plain->bloom_bits_per_key, plain->hash_table_ratio,
        plain->index_sparseness, plain->huge_page_tlb_size,
        static_cast<char>(plain->encoding_type), plain->full_scan_mode ? 1 : 0,
        plain->store_index_in_file ? 1 : 0);
    return Status::OK();
  }
  if (const auto* cuckoo = options.table_factory->GetOptions<CuckooTableOptions>()) {
    Handle<rocksdb_cuckoo_table_options_t> with(rocksdb_cuckoo_options_create(),
                                                rocksdb_cuckoo_options_destroy);
    rocksdb_cuckoo_options_set_hash_ratio(with.get(), cuckoo->hash_table_ratio);
    rocksdb_cuckoo_options_set_max_search_depth(with.get(), cuckoo->max_search_depth);
    rocksdb_cuckoo_options_set_cuckoo_block_size(with.get(), cuckoo->cuckoo_block_size);
    rocksdb_cuckoo_options_set_identity_as_first_hash(with.get(),
                                                      cuckoo->identity_as_first_hash ? 1 : 0);
    rocksdb_cuckoo_options_set_use_module_hash(with.get(), cuckoo->use_module_hash ? 1 : 0);
    rocksdb_options_set_cuckoo_table_factory(out, with.get());
    return Status::OK();
  }
  const auto* table = options.table_factory->GetOptions<BlockBasedTableOptions>();
  if (table == nullptr) {
    return Status::NotSupported(std::string("table factory ") + options.table_factory->Name());
  }
  if (table->flush_block_policy_factory) return Unsupported("flush_block_policy_factory");
  if (table->persistent_cache) return Unsupported("persistent_cache");
  if (table->block_cache_compressed) return Unsupported("block_cache_compressed");
  if (table->user_defined_index_factory) return Unsupported("user_defined_index_factory");
  if (table->block_cache == nullptr && table->filter_policy == nullptr) return Status::OK();
  Handle<rocksdb_block_based_table_options_t> handle(rocksdb_block_based_options_create(),
                                                     rocksdb_block_based_options_destroy);
  if (table->block_cache != nullptr) {
    void* cache = table->block_cache->EskerHandle();
    if (cache == nullptr) return Unsupported("a block cache");
    rocksdb_block_based_options_set_block_cache(handle.get(),
                                                static_cast<rocksdb_cache_t*>(cache));
  }
  if (table->filter_policy != nullptr) {
    void* policy = table->filter_policy->EskerNewHandle();
    if (policy == nullptr) return Unsupported("a filter policy");
    rocksdb_block_based_options_set_filter_policy(
        handle.get(), static_cast<rocksdb_filterpolicy_t*>(policy));
  }
  rocksdb_options_set_block_based_table_factory(out, handle.get());
  return Status::OK();
}

Status SetByName(rocksdb_options_t* out, const char* name, const std::string& value) {
  ErrorText error;
  esker_options_set(out, esker_options_of_family, name, value.c_str(), error);
  return error.status();
}

Status SetPrefix(const std::shared_ptr<const SliceTransform>& prefix, rocksdb_options_t* out) {
  if (prefix == nullptr) return Status::OK();
  const std::string text = prefix->EskerText();
  if (!text.empty()) return SetByName(out, "prefix_extractor", text);
  rocksdb_options_set_prefix_extractor(
      out, rocksdb_slicetransform_create(Hold(prefix), LetGo<const SliceTransform>, Transform,
                                         InDomain, NameOf<const SliceTransform>));
  return Status::OK();
}

Status SetComparator(const Comparator* order, rocksdb_options_t* out) {
  if (order == nullptr || order == BytewiseComparator()) return Status::OK();
  if (order == ReverseBytewiseComparator()) {
    return SetByName(out, "comparator", "rocksdb.ReverseBytewiseComparator");
  }
  rocksdb_comparator_t* handle = NewComparatorHandle(order);
  rocksdb_options_set_comparator(out, handle);
  rocksdb_comparator_destroy(handle);
  return Status::OK();
}

void SetFilters(const ColumnFamilyOptions& options, rocksdb_options_t* out) {
  if (options.compaction_filter != nullptr) {
    auto* filter = const_cast<CompactionFilter*>(options.compaction_filter);
    rocksdb_compactionfilter_t* handle =
        esker_compactionfilter_create(filter, Nothing, Decide, FilterName);
    rocksdb_compactionfilter_set_ignore_snapshots(handle, filter->IgnoreSnapshots() ? 1 : 0);
    rocksdb_options_set_compaction_filter(out, handle);
    rocksdb_compactionfilter_destroy(handle);
  }
  if (options.compaction_filter_factory != nullptr) {
    rocksdb_options_set_compaction_filter_factory(
        out, rocksdb_compactionfilterfactory_create(
                 Hold(options.compaction_filter_factory), LetGo<CompactionFilterFactory>,
                 MakeFilter, NameOf<CompactionFilterFactory>));
  }
}

}  // namespace

void SetTableFilter(const TableFilter& filter, rocksdb_readoptions_t* out) {
  rocksdb_readoptions_set_table_filter(out, new TableFilter(filter), DropTableFilter, AskTable);
}

void GetSets(const rocksdb_options_t* options, DBOptions* out) {
  // A database does not know its checksum_handoff_file_types: they stay as they are.
  auto* from = const_cast<rocksdb_options_t*>(options);
  out->calculate_sst_write_lifetime_hint_set = {};
  for (const CompactionStyle style : CompactionStyleSet::All()) {
    if (rocksdb_options_calculate_sst_write_lifetime_hint_set_contains(from, style) != 0) {
      out->calculate_sst_write_lifetime_hint_set.Add(style);
    }
  }
}

rocksdb_comparator_t* NewComparatorHandle(const Comparator* comparator) {
  void* state = const_cast<Comparator*>(comparator);
  if (comparator->timestamp_size() == 0) {
    return rocksdb_comparator_create(state, Nothing, Compare, OrderName);
  }
  return rocksdb_comparator_with_ts_create(state, Nothing, Compare, CompareTimestamps,
                                           CompareBare, OrderName,
                                           comparator->timestamp_size());
}

void AddListener(const std::shared_ptr<EventListener>& listener,
                 const std::shared_ptr<ListenedDb>& db, rocksdb_options_t* out) {
  rocksdb_options_add_eventlistener(
      out, rocksdb_eventlistener_create(new Listening{listener, db}, StopListening, FlushBegin,
                                        FlushCompleted, CompactionBegin, CompactionCompleted,
                                        SubcompactionBegin, SubcompactionCompleted, FileIngested,
                                        BackgroundError, StallChanged, MemtableSealed));
}

Status SetObjects(const ColumnFamilyOptions& options, rocksdb_options_t* out) {
  if (options.memtable_insert_with_hint_prefix_extractor) {
    return Status::NotSupported("memtable_insert_with_hint_prefix_extractor");
  }
  if (options.compression_manager) return Unsupported("compression_manager");
  if (options.compaction_thread_limiter) return Status::NotSupported("compaction_thread_limiter");
  if (options.sst_partitioner_factory != nullptr) {
    void* handle = options.sst_partitioner_factory->EskerNewHandle();
    if (handle == nullptr) return Unsupported("sst_partitioner_factory");
    auto* factory = static_cast<rocksdb_sst_partitioner_factory_t*>(handle);
    rocksdb_options_set_sst_partitioner_factory(out, factory);
    rocksdb_sst_partitioner_factory_destroy(factory);
  }
  const Status collects = AddCollectors(options.table_properties_collector_factories, out);
  if (!collects.ok()) return collects;
  if (options.memtable_factory != nullptr) {
    const char* kind = options.memtable_factory->EskerKind();
    if (kind == nullptr) return Unsupported("memtable_factory");
    Status status = SetByName(out, "memtable_factory", kind);
    if (!status.ok()) return status;
  }
  Status status = SetTable(options, out);
  if (!status.ok()) return status;
  status = SetComparator(options.comparator, out);
  if (!status.ok()) return status;
  if (options.merge_operator != nullptr) {
    rocksdb_options_set_merge_operator(
        out, rocksdb_mergeoperator_create(Hold(options.merge_operator), LetGo<MergeOperator>,
                                          FullMerge, PartialMerge, FreeValue,
                                          NameOf<MergeOperator>));
  }
  SetFilters(options, out);
  if (options.blob_cache != nullptr) {
    void* cache = options.blob_cache->EskerHandle();
    if (cache == nullptr) return Unsupported("blob_cache");
    rocksdb_options_set_blob_cache(out, static_cast<rocksdb_cache_t*>(cache));
  }
  SetPaths(options.cf_paths, out, rocksdb_options_set_cf_paths);
  return SetPrefix(options.prefix_extractor, out);
}

Status SetObjects(const DBOptions& options, const std::shared_ptr<ListenedDb>& db,
                  rocksdb_options_t* out) {
  if (options.compaction_service) return Unsupported("compaction_service");
  if (options.env != nullptr && options.env != Env::Default()) {
    void* env = options.env->EskerHandle();
    if (env == nullptr) return Unsupported("env");
    rocksdb_options_set_env(out, static_cast<rocksdb_env_t*>(env));
  }
  if (options.wal_filter != nullptr) {
    rocksdb_walfilter_t* filter = rocksdb_walfilter_create(options.wal_filter, Nothing, TellLogs,
                                                           AskRecord, WalFilterName);
    rocksdb_options_set_wal_filter(out, filter);
    rocksdb_walfilter_destroy(filter);
  }
  if (options.file_checksum_gen_factory != nullptr) {
    void* handle = options.file_checksum_gen_factory->EskerNewHandle();
    if (handle == nullptr) return Unsupported("file_checksum_gen_factory");
    auto* factory = static_cast<rocksdb_file_checksum_gen_factory_t*>(handle);
    rocksdb_options_set_file_checksum_gen_factory(out, factory);
    rocksdb_file_checksum_gen_factory_destroy(factory);
  }
  SetSets(options, out);
  if (options.rate_limiter != nullptr) {
    void* limiter = options.rate_limiter->EskerHandle();
    if (limiter == nullptr) return Unsupported("rate_limiter");
    rocksdb_options_set_ratelimiter(out, static_cast<rocksdb_ratelimiter_t*>(limiter));
  }
  if (options.sst_file_manager != nullptr) {
    void* manager = options.sst_file_manager->EskerHandle();
    if (manager == nullptr) return Unsupported("sst_file_manager");
    rocksdb_options_set_sst_file_manager(out, static_cast<rocksdb_sst_file_manager_t*>(manager));
  }
  if (options.statistics != nullptr) {
    void* statistics = options.statistics->EskerHandle();
    if (statistics == nullptr) return Unsupported("statistics");
    esker_options_share_statistics(out, static_cast<rocksdb_options_t*>(statistics));
  }
  if (options.write_buffer_manager != nullptr) {
    rocksdb_options_set_write_buffer_manager(
        out, static_cast<rocksdb_write_buffer_manager_t*>(
                 options.write_buffer_manager->EskerHandle()));
  }
  if (options.row_cache != nullptr) {
    void* cache = options.row_cache->EskerHandle();
    if (cache == nullptr) return Unsupported("row_cache");
    rocksdb_options_set_row_cache(out, static_cast<rocksdb_cache_t*>(cache));
  }
  if (options.info_log != nullptr) {
    rocksdb_logger_t* logger = rocksdb_logger_create_callback_logger(
        options.info_log_level, LogLine, KeepLogger(options.info_log).get());
    rocksdb_options_set_info_log(out, logger);
    rocksdb_logger_destroy(logger);
  }
  for (const auto& listener : options.listeners) AddListener(listener, db, out);
  SetPaths(options.db_paths, out, rocksdb_options_set_db_paths);
  return Status::OK();
}

}  // namespace ROCKSDB_NAMESPACE
