#include "rocksdb/write_batch.h"

#include <cstdio>
#include <cstdlib>

#include "convert.h"
#include "rocksdb/utilities/write_batch_with_index.h"

namespace ROCKSDB_NAMESPACE {

WriteBatchBase::~WriteBatchBase() = default;
WriteBatch::Handler::~Handler() = default;

// Keys and values in parts are put together first.

Status WriteBatchBase::Put(ColumnFamilyHandle* family, const SliceParts& key,
                           const SliceParts& value) {
  std::string key_buffer;
  std::string value_buffer;
  return Put(family, Slice(key, &key_buffer), Slice(value, &value_buffer));
}
Status WriteBatchBase::Put(const SliceParts& key, const SliceParts& value) {
  std::string key_buffer;
  std::string value_buffer;
  return Put(Slice(key, &key_buffer), Slice(value, &value_buffer));
}
Status WriteBatchBase::Delete(ColumnFamilyHandle* family, const SliceParts& key) {
  std::string buffer;
  return Delete(family, Slice(key, &buffer));
}
Status WriteBatchBase::Delete(const SliceParts& key) {
  std::string buffer;
  return Delete(Slice(key, &buffer));
}
Status WriteBatchBase::Merge(ColumnFamilyHandle* family, const SliceParts& key,
                             const SliceParts& value) {
  std::string key_buffer;
  std::string value_buffer;
  return Merge(family, Slice(key, &key_buffer), Slice(value, &value_buffer));
}
Status WriteBatchBase::Merge(const SliceParts& key, const SliceParts& value) {
  std::string key_buffer;
  std::string value_buffer;
  return Merge(Slice(key, &key_buffer), Slice(value, &value_buffer));
}
Status WriteBatchBase::SingleDelete(ColumnFamilyHandle* family, const SliceParts& key) {
  std::string buffer;
  return SingleDelete(family, Slice(key, &buffer));
}
Status WriteBatchBase::SingleDelete(const SliceParts& key) {
  std::string buffer;
  return SingleDelete(Slice(key, &buffer));
}
Status WriteBatchBase::DeleteRange(ColumnFamilyHandle* family, const SliceParts& begin,
                                   const SliceParts& end) {
  std::string begin_buffer;
  std::string end_buffer;
  return DeleteRange(family, Slice(begin, &begin_buffer), Slice(end, &end_buffer));
}
Status WriteBatchBase::DeleteRange(const SliceParts& begin, const SliceParts& end) {
  std::string begin_buffer;
  std::string end_buffer;
  return DeleteRange(Slice(begin, &begin_buffer), Slice(end, &end_buffer));
}

namespace {

rocksdb_writebatch_t* Of(void* handle) { return static_cast<rocksdb_writebatch_t*>(handle); }

Status WithTimestamp() {
  return Status::NotSupported("a timestamp for the batch of a WriteBatchWithIndex");
}

}  // namespace

WriteBatch::WriteBatch(size_t, size_t max_bytes)
    : handle_(max_bytes == 0
                  ? rocksdb_writebatch_create()
                  : rocksdb_writebatch_create_with_params(0, max_bytes, 0, 0)) {}

WriteBatch::WriteBatch(size_t reserved_bytes, size_t max_bytes, size_t protection_bytes_per_key,
                       size_t default_cf_ts_sz)
    : handle_(rocksdb_writebatch_create_with_params(reserved_bytes, max_bytes,
                                                    protection_bytes_per_key,
                                                    default_cf_ts_sz)) {}

WriteBatch::WriteBatch(const std::string& data)
    : handle_(rocksdb_writebatch_create_from(data.data(), data.size())) {}

WriteBatch::WriteBatch(const WriteBatch& other) : WriteBatch(other.Data()) {}

WriteBatch::WriteBatch(WriteBatch&& other) noexcept
    : handle_(other.EskerHandle()), is_own_(other.is_own_) {
  other.handle_ = rocksdb_writebatch_create();
  other.is_own_ = true;
}

WriteBatch& WriteBatch::operator=(const WriteBatch& other) {
  if (this != &other) *this = WriteBatch(other);
  return *this;
}

WriteBatch& WriteBatch::operator=(WriteBatch&& other) noexcept {
  if (indexed_ != nullptr) {
    // The index could not follow: keys of other families are known by number alone.
    if (other.Count() != 0) {
      std::fputs("rocksdb: a batch is assigned to that of a WriteBatchWithIndex\n", stderr);
      std::abort();
    }
    indexed_->Clear();
    return *this;
  }
  other.EskerHandle();
  std::swap(handle_, other.handle_);
  std::swap(is_own_, other.is_own_);
  return *this;
}

WriteBatch::~WriteBatch() {
  if (is_own_) rocksdb_writebatch_destroy(Of(handle_));
}

void* WriteBatch::EskerHandle() const {
  if (indexed_ == nullptr) return handle_;
  size_t size = 0;
  const char* bytes = rocksdb_writebatch_wi_data(
      static_cast<rocksdb_writebatch_wi_t*>(indexed_->EskerHandle()), &size);
  rocksdb_writebatch_destroy(Of(handle_));
  handle_ = rocksdb_writebatch_create_from(bytes, size);
  return handle_;
}

Status WriteBatch::Put(ColumnFamilyHandle* family, const Slice& key, const Slice& value) {
  if (indexed_ != nullptr) return indexed_->Put(family, key, value);
  if (family == nullptr) return Put(key, value);
  rocksdb_writebatch_put_cf(Of(handle_), ToC(family), key.data(), key.size(), value.data(),
                            value.size());
  return Status::OK();
}
Status WriteBatch::Put(const Slice& key, const Slice& value) {
  if (indexed_ != nullptr) return indexed_->Put(key, value);
  rocksdb_writebatch_put(Of(handle_), key.data(), key.size(), value.data(), value.size());
  return Status::OK();
}
Status WriteBatch::Put(ColumnFamilyHandle* family, const Slice& key, const Slice& ts,
                       const Slice& value) {
  if (indexed_ != nullptr) return WithTimestamp();
  rocksdb_writebatch_put_cf_with_ts(Of(handle_), ToC(family), key.data(), key.size(), ts.data(),
                                    ts.size(), value.data(), value.size());
  return Status::OK();
}
Status WriteBatch::Delete(ColumnFamilyHandle* family, const Slice& key, const Slice& ts) {
  if (indexed_ != nullptr) return WithTimestamp();
  rocksdb_writebatch_delete_cf_with_ts(Of(handle_), ToC(family), key.data(), key.size(),
                                       ts.data(), ts.size());
  return Status::OK();
}
Status WriteBatch::SingleDelete(ColumnFamilyHandle* family, const Slice& key, const Slice& ts) {
  if (indexed_ != nullptr) return WithTimestamp();
  rocksdb_writebatch_singledelete_cf_with_ts(Of(handle_), ToC(family), key.data(), key.size(),
                                             ts.data(), ts.size());
  return Status::OK();
}
Status WriteBatch::Merge(ColumnFamilyHandle* family, const Slice& key, const Slice& value) {
  if (indexed_ != nullptr) return indexed_->Merge(family, key, value);
  if (family == nullptr) return Merge(key, value);
  rocksdb_writebatch_merge_cf(Of(handle_), ToC(family), key.data(), key.size(), value.data(),
                              value.size());
  return Status::OK();
}
Status WriteBatch::Merge(const Slice& key, const Slice& value) {
  if (indexed_ != nullptr) return indexed_->Merge(key, value);
  rocksdb_writebatch_merge(Of(handle_), key.data(), key.size(), value.data(), value.size());
  return Status::OK();
}
Status WriteBatch::Delete(ColumnFamilyHandle* family, const Slice& key) {
  if (indexed_ != nullptr) return indexed_->Delete(family, key);
  if (family == nullptr) return Delete(key);
  rocksdb_writebatch_delete_cf(Of(handle_), ToC(family), key.data(), key.size());
  return Status::OK();
}
Status WriteBatch::Delete(const Slice& key) {
  if (indexed_ != nullptr) return indexed_->Delete(key);
  rocksdb_writebatch_delete(Of(handle_), key.data(), key.size());
  return Status::OK();
}
Status WriteBatch::SingleDelete(ColumnFamilyHandle* family, const Slice& key) {
  if (indexed_ != nullptr) return indexed_->SingleDelete(family, key);
  if (family == nullptr) return SingleDelete(key);
  rocksdb_writebatch_singledelete_cf(Of(handle_), ToC(family), key.data(), key.size());
  return Status::OK();
}
Status WriteBatch::SingleDelete(const Slice& key) {
  if (indexed_ != nullptr) return indexed_->SingleDelete(key);
  rocksdb_writebatch_singledelete(Of(handle_), key.data(), key.size());
  return Status::OK();
}
Status WriteBatch::DeleteRange(ColumnFamilyHandle* family, const Slice& begin, const Slice& end) {
  if (indexed_ != nullptr) return indexed_->DeleteRange(family, begin, end);
  if (family == nullptr) return DeleteRange(begin, end);
  rocksdb_writebatch_delete_range_cf(Of(handle_), ToC(family), begin.data(), begin.size(),
                                     end.data(), end.size());
  return Status::OK();
}
Status WriteBatch::DeleteRange(const Slice& begin, const Slice& end) {
  if (indexed_ != nullptr) return indexed_->DeleteRange(begin, end);
  rocksdb_writebatch_delete_range(Of(handle_), begin.data(), begin.size(), end.data(),
                                  end.size());
  return Status::OK();
}
Status WriteBatch::PutLogData(const Slice& blob) {
  if (indexed_ != nullptr) return indexed_->PutLogData(blob);
  rocksdb_writebatch_put_log_data(Of(handle_), blob.data(), blob.size());
  return Status::OK();
}
void WriteBatch::Clear() {
  if (indexed_ != nullptr) {
    indexed_->Clear();
  } else {
    rocksdb_writebatch_clear(Of(handle_));
  }
}
void WriteBatch::SetSavePoint() {
  if (indexed_ != nullptr) {
    indexed_->SetSavePoint();
  } else {
    rocksdb_writebatch_set_save_point(Of(handle_));
  }
}
Status WriteBatch::RollbackToSavePoint() {
  if (indexed_ != nullptr) return indexed_->RollbackToSavePoint();
  ErrorText error;
  rocksdb_writebatch_rollback_to_save_point(Of(handle_), error);
  return error.status();
}
Status WriteBatch::PopSavePoint() {
  if (indexed_ != nullptr) {
    // Those of a transaction's batch are the transaction's.
    return indexed_->is_lent_ ? Status::NotFound() : indexed_->PopSavePoint();
  }
  ErrorText error;
  rocksdb_writebatch_pop_save_point(Of(handle_), error);
  return error.status();
}
Status WriteBatch::VerifyChecksum() const {
  ErrorText error;
  rocksdb_writebatch_verify_checksum(Of(EskerHandle()), error);
  return error.status();
}

namespace {

using SizeOf = std::function<size_t(uint32_t)>;

size_t AskSize(void* state, uint32_t family) noexcept {
  return MustNotThrow("WriteBatch::UpdateTimestamps",
                      [&] { return (*static_cast<const SizeOf*>(state))(family); });
}

}  // namespace

Status WriteBatch::UpdateTimestamps(const Slice& ts, std::function<size_t(uint32_t)> size_of) {
  ErrorText error;
  if (indexed_ == nullptr) {
    rocksdb_writebatch_update_timestamps(Of(handle_), ts.data(), ts.size(), &size_of, AskSize,
                                         error);
  } else {
    rocksdb_writebatch_wi_update_timestamps(
        static_cast<rocksdb_writebatch_wi_t*>(indexed_->EskerHandle()), ts.data(), ts.size(),
        &size_of, AskSize, error);
  }
  return error.status();
}

const std::string& WriteBatch::Data() const {
  size_t size = 0;
  const char* bytes = rocksdb_writebatch_data(Of(EskerHandle()), &size);
  data_.assign(bytes == nullptr ? "" : bytes, size);
  return data_;
}
size_t WriteBatch::GetDataSize() const {
  size_t size = 0;
  rocksdb_writebatch_data(Of(EskerHandle()), &size);
  return size;
}
uint32_t WriteBatch::Count() const {
  if (indexed_ != nullptr) {
    return static_cast<uint32_t>(rocksdb_writebatch_wi_count(
        static_cast<rocksdb_writebatch_wi_t*>(indexed_->EskerHandle())));
  }
  return static_cast<uint32_t>(rocksdb_writebatch_count(Of(handle_)));
}

// The records of a batch: after a header of twelve bytes each has a tag, a family unless it is the
// default one, and one or two texts with their lengths before them.

Status WriteBatch::Handler::PutCF(uint32_t family, const Slice& key, const Slice& value) {
  if (family != 0) return Status::InvalidArgument("PutCF not implemented for column families");
  Put(key, value);
  return Status::OK();
}
Status WriteBatch::Handler::DeleteCF(uint32_t family, const Slice& key) {
  if (family != 0) return Status::InvalidArgument("DeleteCF not implemented for column families");
  Delete(key);
  return Status::OK();
}
Status WriteBatch::Handler::SingleDeleteCF(uint32_t family, const Slice& key) {
  if (family != 0) {
    return Status::InvalidArgument("SingleDeleteCF not implemented for column families");
  }
  SingleDelete(key);
  return Status::OK();
}
Status WriteBatch::Handler::MergeCF(uint32_t family, const Slice& key, const Slice& value) {
  if (family != 0) return Status::InvalidArgument("MergeCF not implemented for column families");
  Merge(key, value);
  return Status::OK();
}

namespace {

constexpr size_t kHeader = 12;

class Records {
 public:
  explicit Records(const std::string& data)
      : rest_(data.data() + std::min(kHeader, data.size()),
              data.size() - std::min(kHeader, data.size())) {}
  bool done() const { return rest_.empty(); }
  bool bad() const { return bad_; }
  unsigned char Tag() {
    const auto tag = static_cast<unsigned char>(rest_[0]);
    rest_.remove_prefix(1);
    return tag;
  }
  uint32_t Number() {
    uint32_t number = 0;
    for (int shift = 0; shift < 35 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      number |= static_cast<uint32_t>(byte & 127U) << shift;
      if (byte < 128) return number;
    }
    bad_ = true;
    return 0;
  }
  Slice Text() {
    const size_t length = Number();
    if (bad_ || length > rest_.size()) {
      bad_ = true;
      return Slice();
    }
    const Slice text(rest_.data(), length);
    rest_.remove_prefix(length);
    return text;
  }

 private:
  Slice rest_;
  bool bad_ = false;
};

// Passes one record on.
Status Pass(unsigned char tag, Records* records, WriteBatch::Handler* to) {
  const auto with_value = [&](uint32_t family, auto call) {
    const Slice key = records->Text();
    const Slice value = records->Text();
    return records->bad() ? Status::OK() : (to->*call)(family, key, value);
  };
  const auto with_key = [&](uint32_t family, auto call) {
    const Slice key = records->Text();
    return records->bad() ? Status::OK() : (to->*call)(family, key);
  };
  using Handler = WriteBatch::Handler;
  switch (tag) {
    case 0x00: return with_key(0, &Handler::DeleteCF);
    case 0x01: return with_value(0, &Handler::PutCF);
    case 0x02: return with_value(0, &Handler::MergeCF);
    case 0x03: {
      const Slice blob = records->Text();
      if (!records->bad()) to->LogData(blob);
      return Status::OK();
    }
    case 0x04: return with_key(records->Number(), &Handler::DeleteCF);
    case 0x05: return with_value(records->Number(), &Handler::PutCF);
    case 0x06: return with_value(records->Number(), &Handler::MergeCF);
    case 0x07: return with_key(0, &Handler::SingleDeleteCF);
    case 0x08: return with_key(records->Number(), &Handler::SingleDeleteCF);
    case 0x09: return to->MarkBeginPrepare(false);
    case 0x0A: return to->MarkEndPrepare(records->Text());
    case 0x0B: return to->MarkCommit(records->Text());
    case 0x0C: return to->MarkRollback(records->Text());
    case 0x0D: return to->MarkNoop(false);
    case 0x0E: return with_value(records->Number(), &Handler::DeleteRangeCF);
    case 0x0F: return with_value(0, &Handler::DeleteRangeCF);
    case 0x10: return with_value(records->Number(), &Handler::PutBlobIndexCF);
    case 0x11: return with_value(0, &Handler::PutBlobIndexCF);
    case 0x12: return to->MarkBeginPrepare(false);
    case 0x13: return to->MarkBeginPrepare(true);
    case 0x15: {
      const Slice ts = records->Text();
      return to->MarkCommitWithTimestamp(records->Text(), ts);
    }
    case 0x16: return with_value(0, &Handler::PutEntityCF);
    case 0x17: return with_value(records->Number(), &Handler::PutEntityCF);
    default: return Status::Corruption("unknown WriteBatch tag", std::to_string(tag));
  }
}

// Notes which kinds of records a batch has.
class Kinds : public WriteBatch::Handler {
 public:
  Status PutCF(uint32_t, const Slice&, const Slice&) override { return Note(1); }
  Status DeleteCF(uint32_t, const Slice&) override { return Note(2); }
  Status SingleDeleteCF(uint32_t, const Slice&) override { return Note(4); }
  Status MergeCF(uint32_t, const Slice&, const Slice&) override { return Note(8); }
  Status DeleteRangeCF(uint32_t, const Slice&, const Slice&) override { return Note(16); }
  Status PutEntityCF(uint32_t, const Slice&, const Slice&) override { return Note(32); }
  int found = 0;

 private:
  Status Note(int kind) {
    found |= kind;
    return Status::OK();
  }
};

}  // namespace

Status WriteBatch::Iterate(Handler* handler) const {
  const std::string data = Data();
  if (data.size() < kHeader) return Status::Corruption("malformed WriteBatch (too small)");
  Records records(data);
  while (!records.done() && handler->Continue()) {
    const unsigned char tag = records.Tag();
    Status status = Pass(tag, &records, handler);
    if (records.bad()) return Status::Corruption("bad record in a WriteBatch");
    if (!status.ok()) return status;
  }
  return Status::OK();
}

bool WriteBatch::Has(int kind) const {
  Kinds kinds;
  Iterate(&kinds).PermitUncheckedError();
  return (kinds.found & kind) != 0;
}

// The batch with an index.

namespace {

rocksdb_writebatch_wi_t* Indexed(void* handle) {
  return static_cast<rocksdb_writebatch_wi_t*>(handle);
}

}  // namespace

WriteBatchWithIndex::WriteBatchWithIndex(const Comparator* order, size_t reserved_bytes,
                                         bool overwrite_key, size_t max_bytes,
                                         size_t protection_bytes_per_key) {
  rocksdb_comparator_t* own =
      order == nullptr || order == BytewiseComparator() ? nullptr : NewComparatorHandle(order);
  handle_ = own == nullptr && max_bytes == 0 && protection_bytes_per_key == 0
                ? rocksdb_writebatch_wi_create(reserved_bytes, overwrite_key ? 1 : 0)
                : rocksdb_writebatch_wi_create_with_params(own, reserved_bytes,
                                                           overwrite_key ? 1 : 0, max_bytes,
                                                           protection_bytes_per_key);
  if (own != nullptr) rocksdb_comparator_destroy(own);
}
WriteBatchWithIndex::~WriteBatchWithIndex() {
  if (is_lent_) {
    rocksdb_free(handle_);
  } else {
    rocksdb_writebatch_wi_destroy(Indexed(handle_));
  }
}

Status WriteBatchWithIndex::Put(ColumnFamilyHandle* family, const Slice& key,
                                const Slice& value) {
  if (family == nullptr) return Put(key, value);
  rocksdb_writebatch_wi_put_cf(Indexed(handle_), ToC(family), key.data(), key.size(),
                               value.data(), value.size());
  return Status::OK();
}
Status WriteBatchWithIndex::Put(const Slice& key, const Slice& value) {
  rocksdb_writebatch_wi_put(Indexed(handle_), key.data(), key.size(), value.data(),
                            value.size());
  return Status::OK();
}
Status WriteBatchWithIndex::Merge(ColumnFamilyHandle* family, const Slice& key,
                                  const Slice& value) {
  if (family == nullptr) return Merge(key, value);
  rocksdb_writebatch_wi_merge_cf(Indexed(handle_), ToC(family), key.data(), key.size(),
                                 value.data(), value.size());
  return Status::OK();
}
Status WriteBatchWithIndex::Merge(const Slice& key, const Slice& value) {
  rocksdb_writebatch_wi_merge(Indexed(handle_), key.data(), key.size(), value.data(),
                              value.size());
  return Status::OK();
}
Status WriteBatchWithIndex::Delete(ColumnFamilyHandle* family, const Slice& key) {
  if (family == nullptr) return Delete(key);
  rocksdb_writebatch_wi_delete_cf(Indexed(handle_), ToC(family), key.data(), key.size());
  return Status::OK();
}
Status WriteBatchWithIndex::Delete(const Slice& key) {
  rocksdb_writebatch_wi_delete(Indexed(handle_), key.data(), key.size());
  return Status::OK();
}
Status WriteBatchWithIndex::SingleDelete(ColumnFamilyHandle* family, const Slice& key) {
  if (family == nullptr) return SingleDelete(key);
  rocksdb_writebatch_wi_singledelete_cf(Indexed(handle_), ToC(family), key.data(), key.size());
  return Status::OK();
}
Status WriteBatchWithIndex::SingleDelete(const Slice& key) {
  rocksdb_writebatch_wi_singledelete(Indexed(handle_), key.data(), key.size());
  return Status::OK();
}
Status WriteBatchWithIndex::PutLogData(const Slice& blob) {
  rocksdb_writebatch_wi_put_log_data(Indexed(handle_), blob.data(), blob.size());
  return Status::OK();
}
void WriteBatchWithIndex::Clear() { rocksdb_writebatch_wi_clear(Indexed(handle_)); }

WriteBatch* WriteBatchWithIndex::GetWriteBatch() {
  if (shown_ == nullptr) {
    shown_ = std::make_unique<WriteBatch>();
    shown_->indexed_ = this;
  }
  return shown_.get();
}
void WriteBatchWithIndex::SetSavePoint() {
  rocksdb_writebatch_wi_set_save_point(Indexed(handle_));
}
Status WriteBatchWithIndex::RollbackToSavePoint() {
  ErrorText error;
  rocksdb_writebatch_wi_rollback_to_save_point(Indexed(handle_), error);
  return error.status();
}

Status WriteBatchWithIndex::PopSavePoint() {
  ErrorText error;
  esker_writebatch_wi_pop_save_point(Indexed(handle_), error);
  return error.status();
}

Status WriteBatchWithIndex::GetFromBatch(ColumnFamilyHandle* family, const DBOptions&,
                                         const Slice& key, std::string* value) {
  OptionsHandle options = NewOptions();
  size_t length = 0;
  ErrorText error;
  char* found =
      family == nullptr
          ? rocksdb_writebatch_wi_get_from_batch(Indexed(handle_), options.get(), key.data(),
                                                 key.size(), &length, error)
          : rocksdb_writebatch_wi_get_from_batch_cf(Indexed(handle_), options.get(), ToC(family),
                                                    key.data(), key.size(), &length, error);
  if (!error.ok()) return error.status();
  if (found == nullptr) return Status::NotFound();
  *value = Take(found, length);
  return Status::OK();
}

Status WriteBatchWithIndex::GetFromBatchAndDB(DB* db, const ReadOptions& options,
                                              ColumnFamilyHandle* family, const Slice& key,
                                              PinnableSlice* value) {
  value->Reset();
  ReadHandle read(options);
  ErrorText error;
  ColumnFamilyHandle* of = family == nullptr ? db->DefaultColumnFamily() : family;
  auto* found = rocksdb_writebatch_wi_get_pinned_from_batch_and_db_cf(
      Indexed(handle_), static_cast<rocksdb_t*>(db->EskerHandle()), read.get(), ToC(of),
      key.data(), key.size(), error);
  return PinValue(error, found, value);
}

Status WriteBatchWithIndex::GetFromBatchAndDB(DB* db, const ReadOptions& options,
                                              ColumnFamilyHandle* family, const Slice& key,
                                              std::string* value) {
  PinnableSlice found;
  Status status = GetFromBatchAndDB(db, options, family, key, &found);
  if (status.ok()) value->assign(found.data(), found.size());
  return status;
}

Iterator* WriteBatchWithIndex::NewIteratorWithBase(ColumnFamilyHandle* family, Iterator* base,
                                                   const ReadOptions* options) {
  static const ReadOptions none;
  const ReadOptions& with = options == nullptr ? none : *options;
  ReadHandle read(with);
  return NewIteratorOverBase(base, with, [&](rocksdb_iterator_t* handle) {
    return family == nullptr ? rocksdb_writebatch_wi_create_iterator_with_base_readopts(
                                   Indexed(handle_), handle, read.get())
                             : rocksdb_writebatch_wi_create_iterator_with_base_cf_readopts(
                                   Indexed(handle_), handle, ToC(family), read.get());
  });
}

}  // namespace ROCKSDB_NAMESPACE
