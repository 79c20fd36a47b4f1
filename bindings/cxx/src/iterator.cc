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

// A bound of an iterator. Programs change the bytes behind `ReadOptions` and seek again: RocksDB
// reads them with each move.
class Bound {
 public:
  explicit Bound(const Slice* from) : from_(from) {
    if (from_ != nullptr) known_.assign(from_->data(), from_->size());
  }
  bool has_changed() const { return from_ != nullptr && *from_ != Slice(known_); }
  // NULL where there is none.
  const char* take() {
    if (from_ == nullptr) return nullptr;
    known_.assign(from_->data(), from_->size());
    return known_.data();
  }
  size_t size() const { return known_.size(); }

 private:
  const Slice* from_;
  std::string known_;
};

class HandleIterator final : public Iterator {
 public:
  HandleIterator(rocksdb_iterator_t* handle, const Slice* lower, const Slice* upper)
      : handle_(handle), entry_(esker_iter_entry(handle)), lower_(lower), upper_(upper) {}
  ~HandleIterator() override {
    if (handle_ != nullptr) rocksdb_iter_destroy(handle_);
  }
  bool Valid() const override { return entry_[0].data != nullptr; }
  void SeekToFirst() override {
    FollowBounds();
    rocksdb_iter_seek_to_first(handle_);
  }
  void SeekToLast() override {
    FollowBounds();
    rocksdb_iter_seek_to_last(handle_);
  }
  void Seek(const Slice& target) override {
    FollowBounds();
    rocksdb_iter_seek(handle_, target.data(), target.size());
  }
  void SeekForPrev(const Slice& target) override {
    FollowBounds();
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
  void FollowBounds() {
    if (!lower_.has_changed() && !upper_.has_changed()) return;
    const char* lower = lower_.take();
    const char* upper = upper_.take();
    esker_iter_set_bounds(handle_, lower, lower_.size(), upper, upper_.size());
  }

  rocksdb_iterator_t* handle_;
  // Key and value, which the engine keeps up to date.
  const rocksdb_slice_t* entry_;
  Bound lower_;
  Bound upper_;
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

Iterator* NewHandleIterator(rocksdb_iterator_t* handle, const ReadOptions& options) {
  return new HandleIterator(handle, options.iterate_lower_bound, options.iterate_upper_bound);
}

rocksdb_iterator_t* ReleaseHandle(Iterator* iterator) {
  auto* of_handle = dynamic_cast<HandleIterator*>(iterator);
  return of_handle == nullptr ? nullptr : of_handle->Release();
}

Iterator* NewEmptyIterator() { return new ErrorIterator(Status::OK()); }
Iterator* NewErrorIterator(const Status& status) { return new ErrorIterator(status); }

}  // namespace ROCKSDB_NAMESPACE
