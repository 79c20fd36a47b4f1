// Prints all entries of a directory of MyRocks as RocksDB's own library reads it: a line of family,
// key and value for each. tests/myrocks --golden compiles it over RocksDB's headers. The directory
// is opened for writing: RocksDB reads no log with prepared transactions otherwise.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/comparator.h"
#include "rocksdb/utilities/transaction_db.h"

using namespace rocksdb;  // NOLINT

namespace {

// An order of RocksDB under the name that MyRocks gave it.
class Order : public Comparator {
 public:
  Order(const Comparator* of, const char* name) : of_(of), name_(name) {}
  const char* Name() const override { return name_; }
  int Compare(const Slice& a, const Slice& b) const override { return of_->Compare(a, b); }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}

 private:
  const Comparator* const of_;
  const char* const name_;
};

void Check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

void Hex(const Slice& bytes) {
  std::putchar(' ');
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::printf("%02x", static_cast<unsigned char>(bytes[i]));
  }
}

}  // namespace

int main(int, char** arguments) {
  static const Order kForward(BytewiseComparator(), "RocksDB_SE_v3.10");
  static const Order kReverse(ReverseBytewiseComparator(), "rev:RocksDB_SE_v3.10");
  std::vector<std::string> names;
  Check(DB::ListColumnFamilies(DBOptions(), arguments[1], &names));
  std::vector<ColumnFamilyDescriptor> families;
  for (const std::string& name : names) {
    ColumnFamilyOptions options;
    options.comparator = name.rfind("rev:", 0) == 0 ? &kReverse : &kForward;
    families.emplace_back(name, options);
  }
  std::vector<ColumnFamilyHandle*> handles;
  TransactionDB* opened = nullptr;
  Check(TransactionDB::Open(DBOptions(), TransactionDBOptions(), arguments[1], families, &handles,
                            &opened));
  const std::unique_ptr<TransactionDB> db(opened);
  ReadOptions read;
  read.total_order_seek = true;
  for (ColumnFamilyHandle* handle : handles) {
    const std::unique_ptr<Iterator> it(db->NewIterator(read, handle));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      std::fputs(handle->GetName().c_str(), stdout);
      Hex(it->key());
      Hex(it->value());
      std::putchar('\n');
    }
    Check(it->status());
  }
  for (ColumnFamilyHandle* handle : handles) Check(db->DestroyColumnFamilyHandle(handle));
}
