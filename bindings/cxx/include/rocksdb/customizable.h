// Objects that have names and may give out their options.
#pragma once

#include <string>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

struct ConfigOptions;

class Configurable {
 public:
  virtual ~Configurable() = default;

  // The options that are called `name`; null if the object has none.
  template <typename T>
  T* GetOptions(const std::string& name) {
    return static_cast<T*>(const_cast<void*>(GetOptionsPtr(name)));
  }
  template <typename T>
  const T* GetOptions(const std::string& name) const {
    return static_cast<const T*>(GetOptionsPtr(name));
  }
  template <typename T>
  T* GetOptions() {
    return GetOptions<T>(T::kName());
  }
  template <typename T>
  const T* GetOptions() const {
    return GetOptions<T>(T::kName());
  }

 protected:
  virtual const void* GetOptionsPtr(const std::string&) const { return nullptr; }
};

class Customizable : public Configurable {
 public:
  virtual const char* Name() const = 0;
  virtual const char* NickName() const { return ""; }
  virtual std::string GetId() const { return Name(); }
  virtual bool IsInstanceOf(const std::string& name) const { return name == Name(); }
};

}  // namespace ROCKSDB_NAMESPACE
