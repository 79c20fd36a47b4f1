// Functions to call when an object goes.
#pragma once

#include <utility>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

class Cleanable {
 public:
  using CleanupFunction = void (*)(void* arg1, void* arg2);

  Cleanable() = default;
  ~Cleanable() { Run(); }
  Cleanable(Cleanable&& other) noexcept { *this = std::move(other); }
  Cleanable& operator=(Cleanable&& other) noexcept;
  Cleanable(const Cleanable&) = delete;
  Cleanable& operator=(const Cleanable&) = delete;

  void RegisterCleanup(CleanupFunction function, void* arg1, void* arg2);
  // Leaves what is registered here to `other`.
  void DelegateCleanupsTo(Cleanable* other);
  void Reset() { Run(); }
  bool HasCleanups() const { return first_.function != nullptr; }

 protected:
  struct Cleanup {
    CleanupFunction function = nullptr;
    void* arg1 = nullptr;
    void* arg2 = nullptr;
    Cleanup* next = nullptr;
  };
  Cleanup first_;

 private:
  void Run() {
    if (first_.function != nullptr) RunAll();
  }
  void RunAll();
};

}  // namespace ROCKSDB_NAMESPACE
