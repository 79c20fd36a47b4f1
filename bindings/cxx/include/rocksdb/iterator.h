// Iterators over a database, a batch or a transaction.
#pragma once

#include <string>

#include "rocksdb/iterator_base.h"

namespace ROCKSDB_NAMESPACE {

class Iterator : public IteratorBase {
 public:
  ~Iterator() override;
  virtual Slice value() const = 0;
  virtual Slice timestamp() const { return Slice(); }
  virtual Status GetProperty(std::string name, std::string* value);
};

Iterator* NewEmptyIterator();
Iterator* NewErrorIterator(const Status& status);

}  // namespace ROCKSDB_NAMESPACE
