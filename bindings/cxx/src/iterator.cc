#include "rocksdb/iterator.h"

#include "internal.h"
#include "rocksdb/iterator_base.h"

namespace ROCKSDB_NAMESPACE {

IteratorBase::~IteratorBase() = default;
Iterator::~Iterator() = default;

Status Iterator::GetProperty(std::string name, std::string*) {
  return Status::InvalidArgument("Unidentified property.", name);
}

namespace {

Slice ToCxx(const rocksdb_slice_t& slice) { return Slice(slice.data, slice.size); }

class HandleIterator final : public Iterator {
 public:
  explicit HandleIterator(rocksdb_iterator_t* handle)
      : handle_(handle), entry_(esker_iter_entry(handle)) {}
  ~HandleIterator() override {
    if (handle_ != nullptr) rocksdb_iter_destroy(handle_);
  }
  bool Valid() const override { return entry_[0].data != nullptr; }
  void SeekToFirst() override { rocksdb_iter_seek_to_first(handle_); }
  void SeekToLast() override { rocksdb_iter_seek_to_last(handle_); }
  void Seek(const Slice& target) override {
    rocksdb_iter_seek(handle_, target.data(), target.size());
  }
  void SeekForPrev(const Slice& target) override {
    rocksdb_iter_seek_for_prev(handle_, target.data(), target.size());
  }
  void Next() override { rocksdb_iter_next(handle_); }
  void Prev() override { rocksdb_iter_prev(handle_); }
  Slice key() const override { return ToCxx(entry_[0]); }
  Slice value() const override { return ToCxx(entry_[1]); }
  Slice timestamp() const override { return ToCxx(rocksdb_iter_timestamp_slice(handle_)); }
  Status status() const override {
    ErrorText error;
    rocksdb_iter_get_error(handle_, error);
    return error.status();
  }
  Status Refresh() override {
    ErrorText error;
    rocksdb_iter_refresh(handle_, error);
    return error.status();
  }
  Status Refresh(const Snapshot* snapshot) override {
    return snapshot == nullptr ? Refresh() : Iterator::Refresh(snapshot);
  }
  rocksdb_iterator_t* Release() { return std::exchange(handle_, nullptr); }

 private:
  rocksdb_iterator_t* handle_;
  // Key and value, which the engine keeps up to date.
  const rocksdb_slice_t* entry_;
};

class ErrorIterator final : public Iterator {
 public:
  explicit ErrorIterator(const Status& status) : status_(status) {}
  bool Valid() const override { return false; }
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Seek(const Slice&) override {}
  void SeekForPrev(const Slice&) override {}
  void Next() override {}
  void Prev() override {}
  Slice key() const override { return Slice(); }
  Slice value() const override { return Slice(); }
  Status status() const override { return status_; }

 private:
  Status status_;
};

}  // namespace

Iterator* NewHandleIterator(rocksdb_iterator_t* handle) { return new HandleIterator(handle); }

rocksdb_iterator_t* ReleaseHandle(Iterator* iterator) {
  auto* of_handle = dynamic_cast<HandleIterator*>(iterator);
  return of_handle == nullptr ? nullptr : of_handle->Release();
}

Iterator* NewEmptyIterator() { return new ErrorIterator(Status::OK()); }
Iterator* NewErrorIterator(const Status& status) { return new ErrorIterator(status); }

}  // namespace ROCKSDB_NAMESPACE
