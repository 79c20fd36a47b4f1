// Transactions of both kinds.

#include <memory>
#include <string>
#include <vector>

#include "check.h"
#include "rocksdb/utilities/optimistic_transaction_db.h"
#include "rocksdb/utilities/transaction_db.h"

using namespace rocksdb;  // NOLINT

namespace {

Options Creating() {
  Options options;
  options.create_if_missing = true;
  return options;
}

class Notified : public TransactionNotifier {
 public:
  void SnapshotCreated(const Snapshot* snapshot) override {
    ++count;
    CHECK(snapshot != nullptr);
  }
  int count = 0;
};

void Locks(TransactionDB* db) {
  TransactionOptions quick;
  quick.lock_timeout = 1;
  std::unique_ptr<Transaction> one(db->BeginTransaction(WriteOptions(), quick));
  std::unique_ptr<Transaction> two(db->BeginTransaction(WriteOptions(), quick));
  CHECK(one->GetID() != two->GetID() && one->GetState() == Transaction::STARTED);
  CHECK_OK(one->Put("a", "one"));
  CHECK(one->GetNumKeys() == 1);
  const Status status = two->Put("a", "two");
  CHECK(status.IsTimedOut() && status.subcode() == Status::kLockTimeout);
  CHECK(db->SingleDelete(WriteOptions(), "a").IsTimedOut());
  std::string value;
  CHECK_OK(one->Get(ReadOptions(), "a", &value));
  CHECK(value == "one" && db->Get(ReadOptions(), "a", &value).IsNotFound());
  one->SetSavePoint();
  CHECK_OK(one->SingleDelete("b"));
  CHECK_OK(one->RollbackToSavePoint());
  CHECK(one->PopSavePoint().IsNotFound());
  CHECK_OK(one->Commit());
  CHECK(one->GetState() == Transaction::COMMITTED);
  CHECK_OK(two->GetForUpdate(ReadOptions(), "a", &value));
  CHECK(value == "one");
  std::unique_ptr<Transaction> three(db->BeginTransaction(WriteOptions(), quick));
  CHECK(three->GetForUpdate(ReadOptions(), "a", &value).IsTimedOut());
  two->UndoGetForUpdate("a");
  CHECK_OK(three->GetForUpdate(ReadOptions(), "a", &value));
  three->SetLockTimeout(50);
  CHECK_OK(three->Rollback());
  Transaction* again = db->BeginTransaction(WriteOptions(), quick, three.get());
  CHECK(again == three.get());
  std::unique_ptr<Iterator> it(again->GetIterator(ReadOptions()));
  it->SeekToFirst();
  CHECK(it->Valid() && it->key() == "a");
  it.reset();
  CHECK(db->DeleteRange(WriteOptions(), "a", "b").IsNotSupported());
}

void Snapshots(TransactionDB* db) {
  TransactionOptions with;
  with.set_snapshot = true;
  std::unique_ptr<Transaction> txn(db->BeginTransaction(WriteOptions(), with));
  CHECK(txn->GetSnapshot() != nullptr && txn->GetSnapshot() == txn->GetSnapshot());
  CHECK_OK(db->Put(WriteOptions(), "s", "outside"));
  std::string value;
  CHECK(txn->GetForUpdate(ReadOptions(), "s", &value).IsBusy());
  txn->SetSnapshot();
  CHECK_OK(txn->GetForUpdate(ReadOptions(), "s", &value));
  txn->ClearSnapshot();
  CHECK(txn->GetSnapshot() == nullptr);
  auto notified = std::make_shared<Notified>();
  txn->SetSnapshotOnNextOperation(notified);
  CHECK(txn->GetSnapshot() == nullptr && notified->count == 0);
  CHECK_OK(txn->Put("s", "inside"));
  CHECK(txn->GetSnapshot() != nullptr && notified->count == 1);
  CHECK_OK(txn->Put("s2", "inside"));
  CHECK(notified->count == 1);
  CHECK_OK(txn->Rollback());
}

void Prepared(const std::string& path) {
  TransactionDB* db = nullptr;
  CHECK_OK(TransactionDB::Open(Creating(), TransactionDBOptions(), path, &db));
  Transaction* txn = db->BeginTransaction(WriteOptions());
  CHECK(!txn->Prepare().ok());
  CHECK_OK(txn->SetName("first"));
  CHECK(db->GetTransactionByName("first") == txn && db->GetTransactionByName("x") == nullptr);
  CHECK_OK(txn->Put("p", "prepared"));
  CHECK_OK(txn->Prepare());
  CHECK(txn->GetState() == Transaction::PREPARED);
  delete txn;
  delete db;
  CHECK_OK(TransactionDB::Open(Creating(), TransactionDBOptions(), path, &db));
  std::vector<Transaction*> found;
  db->GetAllPreparedTransactions(&found);
  CHECK(found.size() == 1 && found[0]->GetName() == "first");
  CHECK(db->GetTransactionByName("first") == found[0]);
  CHECK_OK(found[0]->Commit());
  delete found[0];
  std::string value;
  CHECK_OK(db->Get(ReadOptions(), "p", &value));
  CHECK(value == "prepared");
  delete db;
}

void Checking() {
  OptimisticTransactionDB* db = nullptr;
  CHECK_OK(OptimisticTransactionDB::Open(Creating(), Fresh("cxx_occ"), &db));
  const std::unique_ptr<OptimisticTransactionDB> owned(db);
  std::unique_ptr<Transaction> txn(db->BeginTransaction(WriteOptions()));
  CHECK_OK(txn->Put("a", "inside"));
  CHECK_OK(db->GetBaseDB()->Put(WriteOptions(), "a", "outside"));
  CHECK(txn->Commit().IsBusy());
  txn.reset(db->BeginTransaction(WriteOptions(), OptimisticTransactionOptions(), txn.release()));
  CHECK_OK(txn->Put("a", "again"));
  CHECK_OK(txn->Commit());
  std::string value;
  CHECK_OK(db->Get(ReadOptions(), "a", &value));
  CHECK(value == "again");
  std::unique_ptr<DB> second;
  CHECK(!DB::Open(Creating(), db->GetName(), &second).ok());
}

}  // namespace

int main() {
  const std::string path = Fresh("cxx_txn");
  std::vector<ColumnFamilyHandle*> handles;
  TransactionDB* db = nullptr;
  CHECK_OK(TransactionDB::Open(DBOptions(Creating()), TransactionDBOptions(), path,
                               {{kDefaultColumnFamilyName, ColumnFamilyOptions()}}, &handles,
                               &db));
  Locks(db);
  Snapshots(db);
  for (ColumnFamilyHandle* handle : handles) delete handle;
  delete db;
  Prepared(Fresh("cxx_2pc"));
  Checking();
  std::puts("transactions: ok");
}
