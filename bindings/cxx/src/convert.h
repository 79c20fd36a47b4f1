// Option structs as handles of the C interface, and back.
//
// A member that has its default is not passed on. `fields.inc` lists the members.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "internal.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/optimistic_transaction_db.h"
#include "rocksdb/utilities/transaction_db.h"

namespace ROCKSDB_NAMESPACE {

// The database that listeners are told of; it is there before the handle.
struct ListenedDb {
  DB* db = nullptr;
};

using OptionsHandle = Handle<rocksdb_options_t>;

OptionsHandle NewOptions();

// Passes on what differs from the defaults. An option that is refused is an error.
Status ToC(const DBOptions& options, const std::shared_ptr<ListenedDb>& db,
           rocksdb_options_t* out);
Status ToC(const ColumnFamilyOptions& options, rocksdb_options_t* out);

// Takes over every member that has a name; objects stay as they are.
void FromC(const rocksdb_options_t* options, DBOptions* out);
void FromC(const rocksdb_options_t* options, ColumnFamilyOptions* out);

// Objects of the application for the C interface.
Status SetObjects(const ColumnFamilyOptions& options, rocksdb_options_t* out);
Status SetObjects(const DBOptions& options, const std::shared_ptr<ListenedDb>& db,
                  rocksdb_options_t* out);
void AddListener(const std::shared_ptr<EventListener>& listener,
                 const std::shared_ptr<ListenedDb>& db, rocksdb_options_t* out);
Status AddCollectors(const TablePropertiesCollectorFactories& factories, rocksdb_options_t* out);
void SetTableFilter(const std::function<bool(const TableProperties&)>& filter,
                    rocksdb_readoptions_t* out);
// The options that are sets of enumerators.
void GetSets(const rocksdb_options_t* options, DBOptions* out);
rocksdb_comparator_t* NewComparatorHandle(const Comparator* comparator);

// The options of one read, as long as it takes.
class ReadHandle {
 public:
  explicit ReadHandle(const ReadOptions& options);
  ~ReadHandle() {
    if (own_ != nullptr) rocksdb_readoptions_destroy(own_);
  }
  ReadHandle(const ReadHandle&) = delete;
  ReadHandle& operator=(const ReadHandle&) = delete;
  rocksdb_readoptions_t* get() const { return handle_; }
  // Says why the options cannot be used.
  const Status& status() const { return status_; }

 private:
  rocksdb_readoptions_t* handle_;
  rocksdb_readoptions_t* own_ = nullptr;
  Status status_;
};

// The options of one write, as long as it takes.
class WriteHandle {
 public:
  explicit WriteHandle(const WriteOptions& options);
  ~WriteHandle() {
    if (own_ != nullptr) rocksdb_writeoptions_destroy(own_);
  }
  WriteHandle(const WriteHandle&) = delete;
  WriteHandle& operator=(const WriteHandle&) = delete;
  rocksdb_writeoptions_t* get() const { return handle_; }

 private:
  rocksdb_writeoptions_t* handle_;
  rocksdb_writeoptions_t* own_ = nullptr;
};

Handle<rocksdb_flushoptions_t> ToC(const FlushOptions& options);
Handle<rocksdb_compactoptions_t> ToC(const CompactRangeOptions& options);
Handle<rocksdb_compaction_options_t> ToC(const CompactionOptions& options);
Handle<rocksdb_ingestexternalfileoptions_t> ToC(const IngestExternalFileOptions& options);
Handle<rocksdb_wait_for_compact_options_t> ToC(const WaitForCompactOptions& options);
Handle<rocksdb_size_approximation_options_t> ToC(const SizeApproximationOptions& options);
Handle<rocksdb_envoptions_t> ToC(const EnvOptions& options);
// A line for each option.
std::string Printable(const BlockBasedTableOptions& options);
Handle<rocksdb_transactiondb_options_t> ToC(const TransactionDBOptions& options);
Handle<rocksdb_transaction_options_t> ToC(const TransactionOptions& options);
Handle<rocksdb_optimistictransaction_options_t> ToC(const OptimisticTransactionOptions& options);
Handle<rocksdb_optimistictransactiondb_options_t> ToC(
    const OptimisticTransactionDBOptions& options);
Handle<rocksdb_backup_engine_options_t> ToC(const BackupEngineOptions& options);
Handle<rocksdb_create_backup_options_t> ToC(const CreateBackupOptions& options);
Handle<rocksdb_restore_options_t> ToC(const RestoreOptions& options);

}  // namespace ROCKSDB_NAMESPACE
