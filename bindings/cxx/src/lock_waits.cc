// Waits for row locks in mutexes and condition variables of the application, and lists of locks.

#include "lock_waits.h"

#include <chrono>

namespace ROCKSDB_NAMESPACE {

TransactionDBMutex::~TransactionDBMutex() = default;
TransactionDBCondVar::~TransactionDBCondVar() = default;
TransactionDBMutexFactory::~TransactionDBMutexFactory() = default;

namespace {

using Factory = std::shared_ptr<TransactionDBMutexFactory>;

// What one wait sleeps in.
struct OneWait {
  std::shared_ptr<TransactionDBMutex> mutex;
  std::shared_ptr<TransactionDBCondVar> changed;
  // The mutex guards it.
  bool is_woken = false;
};

void* Begin(void* state) noexcept {
  return MustNotThrow("TransactionDBMutexFactory", [&] {
    const Factory& factory = *static_cast<Factory*>(state);
    return new OneWait{factory->AllocateMutex(), factory->AllocateCondVar(), false};
  });
}

// Sleeps with the mutex.
Status SleepLocked(OneWait& wait, int64_t microseconds) {
  if (wait.is_woken) return Status::OK();
  if (microseconds < 0) return wait.changed->Wait(wait.mutex);
  const auto began = std::chrono::steady_clock::now();
  Status status = wait.changed->WaitFor(wait.mutex, microseconds);
  const auto slept = std::chrono::steady_clock::now() - began;
  // The engine looks after its time limits itself. Before that the application ends the wait.
  const bool is_over = slept >= std::chrono::microseconds(microseconds);
  return status.IsTimedOut() && is_over ? Status::OK() : status;
}

int Sleep(void* state, int64_t microseconds) noexcept {
  return MustNotThrow("TransactionDBCondVar", [&] {
    OneWait& wait = *static_cast<OneWait*>(state);
    if (!wait.mutex->Lock().ok()) return 1;
    const Status status = SleepLocked(wait, microseconds);
    wait.is_woken = false;
    wait.mutex->UnLock();
    return status.ok() ? 0 : 1;
  });
}

void Wake(void* state) noexcept {
  MustNotThrow("TransactionDBCondVar::NotifyAll", [&] {
    OneWait& wait = *static_cast<OneWait*>(state);
    const bool is_locked = wait.mutex->Lock().ok();
    wait.is_woken = true;
    if (is_locked) wait.mutex->UnLock();
    wait.changed->NotifyAll();
  });
}

void End(void* state) noexcept {
  MustNotThrow("a destructor of a TransactionDBMutex or TransactionDBCondVar",
               [&] { delete static_cast<OneWait*>(state); });
}

void LetGo(void* state) noexcept {
  MustNotThrow("a TransactionDBMutexFactory's destructor",
               [&] { delete static_cast<Factory*>(state); });
}

KeyLockInfo ToCxx(const char* key, size_t key_length, const uint64_t* holders, size_t count,
                  unsigned char exclusive) {
  KeyLockInfo info;
  info.key.assign(key, key_length);
  info.ids.assign(holders, holders + count);
  info.exclusive = exclusive != 0;
  return info;
}

void AddLock(void* state, uint32_t family, const char* key, size_t key_length,
             const uint64_t* holders, size_t count, unsigned char exclusive) noexcept {
  MustNotThrow("a list of locks", [&] {
    static_cast<LockStatusData*>(state)->emplace(
        family, ToCxx(key, key_length, holders, count, exclusive));
  });
}

struct Deadlocks {
  std::vector<DeadlockPath> paths;
  size_t last = 0;
};

void AddDeadlock(void* state, size_t number, uint64_t time, unsigned char limit_exceeded,
                 uint64_t transaction, uint32_t family, unsigned char exclusive, const char* key,
                 size_t key_length) noexcept {
  MustNotThrow("a list of deadlocks", [&] {
    auto& found = *static_cast<Deadlocks*>(state);
    if (found.paths.empty() || found.last != number) {
      found.paths.emplace_back(static_cast<int64_t>(time), limit_exceeded != 0);
      found.last = number;
    }
    if (limit_exceeded != 0) return;
    found.paths.back().path.push_back(
        {transaction, family, exclusive != 0, std::string(key, key_length)});
  });
}

}  // namespace

Status SetLockWaits(const Factory& factory, rocksdb_transactiondb_options_t* to) {
  if (factory == nullptr) return Status::OK();
  ErrorText error;
  esker_transactiondb_options_set_lock_waits(to, new Factory(factory), LetGo, Begin, Sleep, Wake,
                                             End, error);
  return error.status();
}

LockStatusData Locks(const rocksdb_transactiondb_t* db) {
  LockStatusData locks;
  ErrorText error;
  esker_transactiondb_each_lock(db, &locks, AddLock, error);
  return locks;
}

std::vector<DeadlockPath> FoundDeadlocks(const rocksdb_transactiondb_t* db) {
  Deadlocks found;
  ErrorText error;
  esker_transactiondb_each_deadlock(db, &found, AddDeadlock, error);
  return std::move(found.paths);
}

std::vector<TransactionID> WaitsFor(const rocksdb_transactiondb_t* db, TransactionID id,
                                    uint32_t* family, std::string* key) {
  LockStatusData found;
  ErrorText error;
  esker_transactiondb_waiting_for(db, id, &found, AddLock, error);
  if (found.empty()) {
    if (family != nullptr) *family = 0;
    if (key != nullptr) key->clear();
    return {};
  }
  auto& [number, lock] = *found.begin();
  if (family != nullptr) *family = number;
  if (key != nullptr) *key = lock.key;
  return lock.ids;
}

}  // namespace ROCKSDB_NAMESPACE
