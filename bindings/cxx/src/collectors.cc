// Collectors of table properties of the application, and the properties of tables.

#include <set>

#include "convert.h"
#include "job_info.h"
#include "rocksdb/table_properties.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Factory = std::shared_ptr<TablePropertiesCollectorFactory>;

// A collector, and what it wants stored once its table is complete.
struct Collecting {
  std::unique_ptr<TablePropertiesCollector> collector;
  UserCollectedProperties properties;
  UserCollectedProperties::const_iterator next;
};

Collecting& Of(void* state) { return *static_cast<Collecting*>(state); }

const char* FactoryName(void* state) noexcept {
  return MustNotThrow("TablePropertiesCollectorFactory::Name",
                      [&] { return (*static_cast<Factory*>(state))->Name(); });
}
void DropFactory(void* state) noexcept {
  MustNotThrow("a collector factory's destructor", [&] { delete static_cast<Factory*>(state); });
}
void* Create(void* state, uint32_t family, int level) noexcept {
  return MustNotThrow(
      "TablePropertiesCollectorFactory::CreateTablePropertiesCollector", [&]() -> void* {
        TablePropertiesCollectorFactory::Context context;
        context.column_family_id = family;
        context.level_at_creation = level;
        std::unique_ptr<TablePropertiesCollector> made(
            (*static_cast<Factory*>(state))->CreateTablePropertiesCollector(context));
        if (made == nullptr) return nullptr;
        return new Collecting{std::move(made), {}, {}};
      });
}
void Add(void* state, const char* key, size_t key_length, const char* value, size_t value_length,
         int type, uint64_t sequence, uint64_t file_size) noexcept {
  MustNotThrow("TablePropertiesCollector::AddUserKey", [&] {
    // As in RocksDB, an error leaves the entry out of the properties.
    Of(state)
        .collector
        ->AddUserKey(Slice(key, key_length), Slice(value, value_length),
                     static_cast<EntryType>(type), sequence, file_size)
        .PermitUncheckedError();
  });
}
unsigned char Property(void* state, size_t place, const char** name, size_t* name_length,
                       const char** value, size_t* value_length) noexcept {
  return MustNotThrow("TablePropertiesCollector::Finish", [&]() -> unsigned char {
    Collecting& of = Of(state);
    if (place == 0) {
      if (!of.collector->Finish(&of.properties).ok()) of.properties.clear();
      of.next = of.properties.begin();
    }
    if (of.next == of.properties.end()) return 0;
    *name = of.next->first.data();
    *name_length = of.next->first.size();
    *value = of.next->second.data();
    *value_length = of.next->second.size();
    ++of.next;
    return 1;
  });
}
unsigned char NeedsCompaction(void* state) noexcept {
  return MustNotThrow("TablePropertiesCollector::NeedCompact", [&]() -> unsigned char {
    return Of(state).collector->NeedCompact() ? 1 : 0;
  });
}
void Drop(void* state) noexcept {
  MustNotThrow("a collector's destructor", [&] { delete static_cast<Collecting*>(state); });
}

}  // namespace

Status AddCollectors(const TablePropertiesCollectorFactories& factories, rocksdb_options_t* out) {
  for (const Factory& factory : factories) {
    if (factory == nullptr) return Status::InvalidArgument("a null collector factory");
    if (factory->EskerAddTo(out)) continue;
    ErrorText error;
    auto* handle = esker_collector_factory_create(new Factory(factory), DropFactory, FactoryName,
                                                  Create, Add, Property, NeedsCompaction, Drop,
                                                  error);
    if (!error.ok()) return error.status();
    rocksdb_options_add_table_properties_collector_factory(out, handle);
    rocksdb_table_properties_collector_factory_destroy(handle);
  }
  return Status::OK();
}

Status DB::GetPropertiesOfAllTables(ColumnFamilyHandle* family,
                                    TablePropertiesCollection* properties) {
  const auto each = [](void* to, const char* path, size_t length,
                       const rocksdb_table_properties_t* of) {
    MustNotThrow("GetPropertiesOfAllTables", [&] {
      (*static_cast<TablePropertiesCollection*>(to))[std::string(path, length)] =
          std::make_shared<const TableProperties>(ToCxx(of));
    });
  };
  ErrorText error;
  esker_each_table_cf(HandleOf(this), ToC(family), properties, each, error);
  return error.status();
}

Status DB::GetPropertiesOfTablesInRange(ColumnFamilyHandle* family, const Range* ranges,
                                        size_t count, TablePropertiesCollection* properties) {
  std::set<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    const GetColumnFamilyMetaDataOptions options(ranges[i].start, ranges[i].limit);
    ColumnFamilyMetaData data;
    GetColumnFamilyMetaData(family, options, &data);
    for (const LevelMetaData& level : data.levels) {
      for (const SstFileMetaData& file : level.files) names.insert(file.name);
    }
  }
  TablePropertiesCollection all;
  Status status = GetPropertiesOfAllTables(family, &all);
  for (const auto& [path, of] : all) {
    if (names.count(path.substr(path.rfind('/'))) == 1) properties->emplace(path, of);
  }
  return status;
}

}  // namespace ROCKSDB_NAMESPACE
