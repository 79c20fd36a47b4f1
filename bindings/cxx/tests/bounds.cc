// Tests of iterators whose bounds change while they are open: programs write to the bytes behind
// ReadOptions, or to the slices, and seek again. All of it holds on RocksDB 11.8, too.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "check.h"
#include "rocksdb/utilities/transaction_db.h"
#include "rocksdb/utilities/write_batch_with_index.h"

using namespace rocksdb;  // NOLINT

namespace {

// Counts what a walk from `from` sees.
int Walk(Iterator* it, const Slice& from) {
  int count = 0;
  for (it->Seek(from); it->Valid(); it->Next()) ++count;
  CHECK_OK(it->status());
  return count;
}

// The bytes of bounds change between seeks of one iterator, as MyRocks does it.
void FollowsBounds(Iterator* it, char* lower, char* upper, Slice* last) {
  CHECK(Walk(it, "b1") == 1);
  CHECK(Walk(it, "c1") == 0);
  *lower = 'c';
  *upper = 'd';
  CHECK(Walk(it, "c1") == 2);
  CHECK(Walk(it, "a") == 3);
  it->SeekForPrev("z");
  CHECK(it->Valid() && it->key() == "c2");
  *lower = 'b';
  it->SeekToFirst();
  CHECK(it->Valid() && it->key() == "b1");
  *last = Slice("c15");
  it->SeekToLast();
  CHECK(it->Valid() && it->key() == "c1");
}

void OfTransactions() {
  TransactionDB* opened = nullptr;
  CHECK_OK(TransactionDB::Open(Creating(), TransactionDBOptions(), Fresh("cxx_bounds_locks"),
                               &opened));
  const std::unique_ptr<TransactionDB> db(opened);
  for (const char* key : {"a1", "b1", "c0", "c1", "c2", "d1"}) {
    CHECK_OK(db->Put(WriteOptions(), key, "v"));
  }
  const std::unique_ptr<Transaction> transaction(db->BeginTransaction(WriteOptions()));
  CHECK_OK(transaction->Put("c0", "new"));
  for (const bool in_transaction : {false, true}) {
    char lower[] = "b";
    char upper[] = "c";
    const Slice first(lower, 1);
    Slice last(upper, 1);
    ReadOptions read;
    read.iterate_lower_bound = &first;
    read.iterate_upper_bound = &last;
    const std::unique_ptr<Iterator> it(in_transaction ? transaction->GetIterator(read)
                                                      : db->NewIterator(read));
    // The iterator goes on reading what it was made over.
    CHECK_OK(db->Put(WriteOptions(), "c7", "later"));
    FollowsBounds(it.get(), lower, upper, &last);
    CHECK_OK(db->Delete(WriteOptions(), "c7"));
  }
  CHECK_OK(transaction->Rollback());
}

// A range whose bounds change.
struct Changing {
  Changing(const char* from, const char* to) : first(from), last(to) {
    read.iterate_lower_bound = &lower;
    read.iterate_upper_bound = &upper;
  }
  std::string first;
  std::string last;
  Slice lower = Slice(first);
  Slice upper = Slice(last);
  ReadOptions read;
};

// Keys of one letter each, in order; both ways see the same.
std::string Seen(Iterator* it) {
  std::string forward;
  for (it->SeekToFirst(); it->Valid(); it->Next()) forward += it->key().ToString();
  CHECK_OK(it->status());
  std::string backward;
  for (it->SeekToLast(); it->Valid(); it->Prev()) backward += it->key().ToString();
  CHECK_OK(it->status());
  std::reverse(backward.begin(), backward.end());
  CHECK(forward == backward);
  return forward;
}

// Says what was seen instead, too.
void Sees(Iterator* it, const std::string& expected) {
  const std::string seen = Seen(it);
  if (seen != expected) std::fprintf(stderr, "seen: %s\n", seen.c_str());
  CHECK(seen == expected);
}

// A base of small letters under a batch of capitals, which come before them, and of n.
struct Both {
  Both() : db(Opened(Creating(), Fresh("cxx_bounds_batch"))) {
    for (const char* key : {"a", "b", "c", "d", "e", "n"}) {
      CHECK_OK(db->Put(WriteOptions(), key, "base"));
    }
    for (const char* key : {"A", "B", "C", "n"}) CHECK_OK(batch.Put(key, "batch"));
  }
  Iterator* Over(const Changing& base, const ReadOptions* options) {
    return batch.NewIteratorWithBase(db->DefaultColumnFamily(), db->NewIterator(base.read),
                                     options);
  }
  std::unique_ptr<DB> db;
  WriteBatchWithIndex batch;
};

// The base keeps to its own options, which change before the batch lies on top, and after.
void BaseFollowsItsOwn(Both* both) {
  for (const bool has_options : {false, true}) {
    Changing base("b", "d");
    const ReadOptions none;
    const std::unique_ptr<Iterator> plain(both->db->NewIterator(base.read));
    Sees(plain.get(), "bc");
    Iterator* below = both->db->NewIterator(base.read);
    base.first[0] = 'c';
    base.last[0] = 'e';
    const std::unique_ptr<Iterator> it(both->batch.NewIteratorWithBase(
        both->db->DefaultColumnFamily(), below, has_options ? &none : nullptr));
    Sees(it.get(), "ABCcdn");
    base.last[0] = 'd';
    Sees(it.get(), "ABCcn");
    base.lower = Slice("a");
    Sees(it.get(), "ABCabcn");
    it->Seek("D");
    CHECK(it->Valid() && it->key() == "a");
    it->Prev();
    CHECK(it->Valid() && it->key() == "C");
  }
}

// The bounds of the batch change: those of the base stay.
void BatchFollowsItsOwn(Both* both) {
  Changing base("b", "d");
  Changing over("B", "C");
  const std::unique_ptr<Iterator> it(both->Over(base, &over.read));
  Sees(it.get(), "Bbc");
  over.last[0] = 'D';
  Sees(it.get(), "BCbc");
  over.upper = Slice("z");
  Sees(it.get(), "BCbcn");
  it->SeekForPrev("m");
  CHECK(it->Valid() && it->key() == "c");
  it->Next();
  CHECK(it->Valid() && it->key() == "n" && it->value() == "batch");
  // Both at once; n is of the base now, as the batch ends before it.
  base.last[0] = 'z';
  over.first[0] = 'C';
  over.upper = Slice("e");
  Sees(it.get(), "Cbcden");
  it->SeekToLast();
  CHECK(it->Valid() && it->value() == "base");
}

// A base without bounds has none later.
void BaseWithoutBounds(Both* both) {
  Changing over("B", "D");
  const std::unique_ptr<Iterator> it(both->batch.NewIteratorWithBase(
      both->db->DefaultColumnFamily(), both->db->NewIterator(ReadOptions()), &over.read));
  Sees(it.get(), "BCabcden");
  over.last[0] = 'C';
  Sees(it.get(), "Babcden");
}

}  // namespace

int main() {
  OfTransactions();
  Both both;
  BaseFollowsItsOwn(&both);
  BatchFollowsItsOwn(&both);
  BaseWithoutBounds(&both);
  std::puts("bounds: ok");
}
