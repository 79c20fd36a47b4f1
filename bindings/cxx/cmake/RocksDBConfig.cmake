# RocksDB's CMake package on Esker: the target RocksDB::rocksdb is the C++ library with the shared
# library that it calls; RocksDB::rocksdb-shared is the same.
get_filename_component(_ESKER_LIB "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
get_filename_component(_ESKER_PREFIX "${_ESKER_LIB}/.." ABSOLUTE)

include(CMakeFindDependencyMacro)
find_dependency(Threads)

if(NOT TARGET RocksDB::rocksdb)
  add_library(RocksDB::esker SHARED IMPORTED)
  set_target_properties(RocksDB::esker PROPERTIES
    IMPORTED_LOCATION "${_ESKER_LIB}/librocksdb.so"
    IMPORTED_SONAME "librocksdb.so.11")
  foreach(_ESKER_NAME rocksdb rocksdb-shared)
    add_library(RocksDB::${_ESKER_NAME} STATIC IMPORTED)
    set_target_properties(RocksDB::${_ESKER_NAME} PROPERTIES
      IMPORTED_LOCATION "${_ESKER_LIB}/librocksdb_cxx.a"
      IMPORTED_LINK_INTERFACE_LANGUAGES CXX
      INTERFACE_COMPILE_FEATURES cxx_std_17
      INTERFACE_INCLUDE_DIRECTORIES "${_ESKER_PREFIX}/include"
      INTERFACE_LINK_LIBRARIES "RocksDB::esker;Threads::Threads")
  endforeach()
endif()
unset(_ESKER_NAME)
unset(_ESKER_LIB)
unset(_ESKER_PREFIX)
