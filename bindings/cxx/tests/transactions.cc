// Transactions of both kinds.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "rocksdb/utilities/optimistic_transaction_db.h"
#include "rocksdb/utilities/transaction_db.h"

using namespace rocksdb;  // NOLINT

namespace {

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

// Keys that are assumed to be tracked have to be; untracked ones are locked and not validated.
void Tracked(TransactionDB* db) {
  TransactionOptions with;
  with.set_snapshot = true;
  std::unique_ptr<Transaction> txn(db->BeginTransaction(WriteOptions(), with));
  ColumnFamilyHandle* family = db->DefaultColumnFamily();
  CHECK(txn->Put(family, "t", "1", true).IsInvalidArgument());
  CHECK(txn->Delete(family, "t", true).IsInvalidArgument());
  CHECK(txn->SingleDelete(family, "t", true).IsInvalidArgument());
  CHECK(txn->GetNumKeys() == 0);
  CHECK_OK(txn->GetForUpdate(ReadOptions(), "t", static_cast<std::string*>(nullptr)));
  CHECK_OK(txn->GetForUpdate(ReadOptions(), db->DefaultColumnFamily(), "t",
                             static_cast<PinnableSlice*>(nullptr)));
  PinnableSlice pinned;
  CHECK(txn->GetForUpdate(ReadOptions(), db->DefaultColumnFamily(), "t", &pinned).IsNotFound());
  CHECK_OK(txn->Put(family, "t", "1", true));
  CHECK(txn->GetNumKeys() == 1);
  // Written outside after the snapshot: a conflict, unless nobody looks.
  CHECK_OK(db->Put(WriteOptions(), "u", "outside"));
  CHECK(txn->Put("u", "inside").IsBusy());
  CHECK_OK(txn->PutUntracked("u", "inside"));
  CHECK_OK(txn->DeleteUntracked("v"));
  CHECK_OK(txn->SingleDeleteUntracked("w"));
  std::unique_ptr<Transaction> other(db->BeginTransaction(WriteOptions()));
  other->SetLockTimeout(1);
  CHECK(other->Put("u", "other").IsTimedOut());
  CHECK_OK(txn->Commit());
  std::string value;
  CHECK_OK(db->Get(ReadOptions(), "u", &value));
  CHECK(value == "inside");
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

// What a server's threads sleep in: a thread that is killed leaves its wait.
class Mutex : public TransactionDBMutex {
 public:
  Status Lock() override {
    inner.lock();
    return Status::OK();
  }
  Status TryLockFor(int64_t) override { return Lock(); }
  void UnLock() override { inner.unlock(); }
  std::mutex inner;
};

class Waits : public TransactionDBMutexFactory {
 public:
  class CondVar : public TransactionDBCondVar {
   public:
    explicit CondVar(Waits* of) : of_(of) {}
    Status Wait(std::shared_ptr<TransactionDBMutex> mutex) override {
      return WaitFor(mutex, 60'000'000);
    }
    Status WaitFor(std::shared_ptr<TransactionDBMutex> mutex, int64_t microseconds) override {
      auto& inner = static_cast<Mutex*>(mutex.get())->inner;
      std::unique_lock<std::mutex> lock(inner, std::adopt_lock);
      const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
      ++of_->asleep;
      std::cv_status told = std::cv_status::no_timeout;
      while (told == std::cv_status::no_timeout && !of_->killed && !woken_) {
        const auto soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
        told = changed_.wait_until(lock, std::min(soon, end));
        if (std::chrono::steady_clock::now() < end) told = std::cv_status::no_timeout;
      }
      --of_->asleep;
      lock.release();
      const bool is_late = told == std::cv_status::timeout || of_->killed;
      return woken_.exchange(false) ? Status::OK()
             : is_late                    ? Status::TimedOut(Status::kMutexTimeout)
                                          : Status::OK();
    }
    void Notify() override { NotifyAll(); }
    void NotifyAll() override {
      woken_ = true;
      changed_.notify_all();
    }

   private:
    Waits* of_;
    std::atomic<bool> woken_ = false;
    std::condition_variable changed_;
  };

  std::shared_ptr<TransactionDBMutex> AllocateMutex() override {
    return std::make_shared<Mutex>();
  }
  std::shared_ptr<TransactionDBCondVar> AllocateCondVar() override {
    return std::make_shared<CondVar>(this);
  }
  std::atomic<bool> killed = false;
  std::atomic<int> asleep = 0;
};

void EndedWaits() {
  auto waits = std::make_shared<Waits>();
  TransactionDBOptions with;
  with.custom_mutex_factory = waits;
  with.transaction_lock_timeout = -1;
  TransactionDB* opened = nullptr;
  CHECK_OK(TransactionDB::Open(Creating(), with, Fresh("cxx_waits"), &opened));
  std::unique_ptr<TransactionDB> db(opened);
  with.custom_mutex_factory.reset();
  std::unique_ptr<Transaction> holder(db->BeginTransaction(WriteOptions()));
  CHECK_OK(holder->Put("k", "held"));
  std::unique_ptr<Transaction> waiter(db->BeginTransaction(WriteOptions()));
  uint32_t family = 7;
  std::string key = "x";
  CHECK(waiter->GetWaitingTxns(&family, &key).empty() && family == 0 && key.empty());
  Status status;
  std::thread killed([&] { status = waiter->Put("k", "never"); });
  while (waits->asleep == 0) std::this_thread::yield();
  const auto holders = waiter->GetWaitingTxns(&family, &key);
  CHECK(holders.size() == 1 && holders[0] == holder->GetID() && key == "k" && family == 0);
  const LockStatusData locks = db->GetLockStatusData();
  CHECK(locks.size() == 1 && locks.begin()->second.key == "k");
  CHECK(locks.begin()->second.exclusive && locks.begin()->second.ids == holders);
  waits->killed = true;
  killed.join();
  CHECK(status.IsTimedOut() && status.subcode() == Status::kLockTimeout);
  CHECK(waiter->GetWaitingTxns(nullptr, nullptr).empty());
  waits->killed = false;
  std::thread woken([&] { status = waiter->Put("k", "then"); });
  while (waits->asleep == 0) std::this_thread::yield();
  CHECK_OK(holder->Commit());
  woken.join();
  CHECK_OK(status);
  CHECK_OK(waiter->Commit());
  CHECK(db->GetLockStatusData().empty());
}

void Deadlocks(TransactionDB* db) {
  TransactionOptions detect;
  detect.deadlock_detect = true;
  detect.lock_timeout = 60'000;
  std::unique_ptr<Transaction> one(db->BeginTransaction(WriteOptions(), detect));
  std::unique_ptr<Transaction> two(db->BeginTransaction(WriteOptions(), detect));
  CHECK_OK(one->Put("d1", "1"));
  CHECK_OK(two->Put("d2", "2"));
  Status status;
  std::thread waits([&] { status = one->Put("d2", "1"); });
  uint32_t family = 0;
  std::string key;
  while (one->GetWaitingTxns(&family, &key).empty()) std::this_thread::yield();
  const Status ring = two->Put("d1", "2");
  CHECK(ring.IsBusy() && ring.subcode() == Status::kDeadlock);
  CHECK_OK(two->Rollback());
  waits.join();
  CHECK_OK(status);
  CHECK_OK(one->Rollback());
  const auto found = db->GetDeadlockInfoBuffer();
  CHECK(found.size() == 1 && found[0].path.size() == 2 && !found[0].limit_exceeded);
  CHECK(found[0].deadlock_time > 0 && !found[0].empty());
  CHECK(found[0].path[0].m_txn_id != found[0].path[1].m_txn_id);
  db->SetDeadlockInfoBufferSize(0);
  CHECK(db->GetDeadlockInfoBuffer().empty());
}

void CommitTimeBatch(TransactionDB* db) {
  std::unique_ptr<Transaction> txn(db->BeginTransaction(WriteOptions()));
  CHECK_OK(txn->SetName("with a batch"));
  CHECK_OK(txn->Put("row", "prepared"));
  CHECK_OK(txn->Prepare());
  CHECK_OK(txn->GetCommitTimeWriteBatch()->Put("position", "42"));
  CHECK_OK(txn->GetCommitTimeWriteBatch()->Put("row", "overwritten"));
  CHECK(txn->GetCommitTimeWriteBatch()->Count() == 2);
  CHECK_OK(txn->Commit());
  CHECK(txn->GetCommitTimeWriteBatch()->Count() == 0);
  std::string value;
  CHECK_OK(db->Get(ReadOptions(), "position", &value));
  CHECK(value == "42");
  CHECK_OK(db->Get(ReadOptions(), "row", &value));
  CHECK(value == "prepared");
  txn.reset(db->BeginTransaction(WriteOptions()));
  CHECK_OK(txn->GetCommitTimeWriteBatch()->Put("lost", "1"));
  CHECK(txn->Commit().IsInvalidArgument());
  CHECK_OK(txn->Rollback());
  CHECK(txn->GetCommitTimeWriteBatch()->Count() == 0);
  // Without validation what others wrote since the snapshot does not matter.
  txn->SetSnapshot();
  CHECK_OK(db->Put(WriteOptions(), "row", "later"));
  CHECK(txn->GetForUpdate(ReadOptions(), "row", &value).IsBusy());
  CHECK_OK(txn->GetForUpdate(ReadOptions(), "row", &value, true, false));
  CHECK(value == "later");
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
  Tracked(db);
  Deadlocks(db);
  CommitTimeBatch(db);
  for (ColumnFamilyHandle* handle : handles) delete handle;
  delete db;
  Prepared(Fresh("cxx_2pc"));
  Checking();
  EndedWaits();
  std::puts("transactions: ok");
}
