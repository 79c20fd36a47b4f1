// Prefixes of keys.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "rocksdb/customizable.h"
#include "rocksdb/slice.h"

namespace ROCKSDB_NAMESPACE {

// The prefix of a key, which has to be a prefix of its bytes.
class SliceTransform : public Customizable {
 public:
  ~SliceTransform() override;
  const char* Name() const override = 0;
  virtual Slice Transform(const Slice& key) const = 0;
  virtual bool InDomain(const Slice& key) const = 0;
  virtual bool InRange(const Slice&) const { return false; }
  virtual std::string AsString() const { return Name(); }
  virtual bool FullLengthEnabled(size_t*) const { return false; }
  virtual bool SameResultWhenAppended(const Slice&) const { return false; }
  // The text by which the engine knows a built-in kind; empty for the application's own.
  virtual std::string EskerText() const { return ""; }
};

const SliceTransform* NewFixedPrefixTransform(size_t prefix_length);
const SliceTransform* NewCappedPrefixTransform(size_t cap_length);
const SliceTransform* NewNoopTransform();

}  // namespace ROCKSDB_NAMESPACE
