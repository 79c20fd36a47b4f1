// What threads that wait for row locks sleep in, when an application wants to end waits.
#pragma once

#include <cstdint>
#include <memory>

#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

// Each wait has a mutex and a condition variable of its own here. Times are in microseconds, and
// negative ones have no end.
class TransactionDBMutex {
 public:
  virtual ~TransactionDBMutex();
  virtual Status Lock() = 0;
  virtual Status TryLockFor(int64_t timeout_time) = 0;
  virtual void UnLock() = 0;
};

class TransactionDBCondVar {
 public:
  virtual ~TransactionDBCondVar();
  // An error ends the wait: the operation fails as at its time limit.
  virtual Status Wait(std::shared_ptr<TransactionDBMutex> mutex) = 0;
  virtual Status WaitFor(std::shared_ptr<TransactionDBMutex> mutex, int64_t timeout_time) = 0;
  virtual void Notify() = 0;
  virtual void NotifyAll() = 0;
};

class TransactionDBMutexFactory {
 public:
  virtual ~TransactionDBMutexFactory();
  virtual std::shared_ptr<TransactionDBMutex> AllocateMutex() = 0;
  virtual std::shared_ptr<TransactionDBCondVar> AllocateCondVar() = 0;
};

}  // namespace ROCKSDB_NAMESPACE
