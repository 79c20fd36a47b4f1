// Time, for programs that ask the environment for it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rocksdb/customizable.h"
#include "rocksdb/status.h"

namespace ROCKSDB_NAMESPACE {

class SystemClock : public Customizable {
 public:
  ~SystemClock() override;
  static const char* Type() { return "SystemClock"; }
  static const char* kDefaultName() { return "DefaultClock"; }
  static const std::shared_ptr<SystemClock>& Default();

  virtual uint64_t NowMicros() = 0;
  virtual uint64_t NowNanos() { return NowMicros() * 1000; }
  virtual uint64_t CPUMicros() { return 0; }
  virtual uint64_t CPUNanos() { return CPUMicros() * 1000; }
  virtual void SleepForMicroseconds(int micros) = 0;
  virtual Status GetCurrentTime(int64_t* seconds) = 0;
  virtual std::string TimeToString(uint64_t seconds) = 0;
};

}  // namespace ROCKSDB_NAMESPACE
