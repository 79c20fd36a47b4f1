#include "rocksdb/iterator.h"

#include <memory>
#include <optional>

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

// Those of `ReadOptions`.
class Bounds {
 public:
  explicit Bounds(const ReadOptions& options)
      : lower_(options.iterate_lower_bound), upper_(options.iterate_upper_bound) {}
  bool has_changed() const { return lower_.has_changed() || upper_.has_changed(); }
  using Set = void(rocksdb_iterator_t*, const char*, size_t, const char*, size_t);
  void give(Set* set, rocksdb_iterator_t* handle) {
    const char* lower = lower_.take();
    const char* upper = upper_.take();
    set(handle, lower, lower_.size(), upper, upper_.size());
  }

 private:
  Bound lower_;
  Bound upper_;
};

class HandleIterator final : public Iterator {
 public:
  HandleIterator(rocksdb_iterator_t* handle, const ReadOptions& options)
      : handle_(handle), entry_(esker_iter_entry(handle)), bounds_(options) {}
  // Over a batch on top of `base`.
  HandleIterator(rocksdb_iterator_t* handle, const ReadOptions& options, HandleIterator&& base)
      : handle_(handle),
        entry_(esker_iter_entry(handle)),
        bounds_(std::move(base.bounds_)),
        batch_bounds_(options) {}
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
    if (bounds_.has_changed()) {
      bounds_.give(batch_bounds_ ? esker_iter_set_base_bounds : esker_iter_set_bounds, handle_);
    }
    if (batch_bounds_ && batch_bounds_->has_changed()) {
      batch_bounds_->give(esker_iter_set_batch_bounds, handle_);
    }
  }

  rocksdb_iterator_t* handle_;
  // Key and value, which the engine keeps up to date.
  const rocksdb_slice_t* entry_;
  Bounds bounds_;
  // Those of a batch on top; the others are the base's then.
  std::optional<Bounds> batch_bounds_;
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
  return new HandleIterator(handle, options);
}

Iterator* NewIteratorOverBase(Iterator* base, const ReadOptions& options, const AddBatch& add) {
  const std::unique_ptr<Iterator> owned(base);
  auto* below = dynamic_cast<HandleIterator*>(base);
  if (below == nullptr) {
    return NewErrorIterator(Status::NotSupported("a base iterator of the application's own"));
  }
  rocksdb_iterator_t* made = add(below->Release());
  if (made == nullptr) return NewErrorIterator(Status::InvalidArgument("no such batch"));
  return new HandleIterator(made, options, std::move(*below));
}

Iterator* NewEmptyIterator() { return new ErrorIterator(Status::OK()); }
Iterator* NewErrorIterator(const Status& status) { return new ErrorIterator(status); }

}  // namespace ROCKSDB_NAMESPACE
