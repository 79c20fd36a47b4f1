// The cost of C++ over C: loops over an iterator by both interfaces, in turns, the best of each.
// usage: cost [ENTRIES [ROUNDS]]

#include <rocksdb/c.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "check.h"
#include "rocksdb/db.h"

namespace {

double Seconds(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  const int entries = argc > 1 ? std::atoi(argv[1]) : 1000000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 9;
  rocksdb::Options options;
  options.create_if_missing = true;
  std::unique_ptr<rocksdb::DB> db;
  CHECK_OK(rocksdb::DB::Open(options, Fresh("cxx_cost"), &db));
  char key[32];
  for (int i = 0; i < entries; ++i) {
    std::snprintf(key, sizeof(key), "key%012d", i);
    CHECK_OK(db->Put(rocksdb::WriteOptions(), key, "a value of twenty-two b"));
  }
  CHECK_OK(db->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr));

  auto* handle = static_cast<rocksdb_t*>(db->EskerHandle());
  rocksdb_readoptions_t* plain = rocksdb_readoptions_create();
  rocksdb_iterator_t* in_c = rocksdb_create_iterator(handle, plain);
  std::unique_ptr<rocksdb::Iterator> in_cxx(db->NewIterator(rocksdb::ReadOptions()));
  size_t bytes = 0;
  const auto walk_c = [&] {
    size_t length = 0;
    for (rocksdb_iter_seek_to_first(in_c); rocksdb_iter_valid(in_c) != 0;
         rocksdb_iter_next(in_c)) {
      bytes += static_cast<unsigned char>(rocksdb_iter_key(in_c, &length)[0]) + length;
      bytes += static_cast<unsigned char>(rocksdb_iter_value(in_c, &length)[0]) + length;
    }
  };
  const auto walk_cxx = [&] {
    for (in_cxx->SeekToFirst(); in_cxx->Valid(); in_cxx->Next()) {
      const rocksdb::Slice k = in_cxx->key();
      const rocksdb::Slice v = in_cxx->value();
      bytes += static_cast<unsigned char>(k[0]) + k.size();
      bytes += static_cast<unsigned char>(v[0]) + v.size();
    }
  };
  const int reads = entries / 4;
  const auto get_c = [&] {
    char wanted[32];
    for (int i = 0; i < reads; ++i) {
      std::snprintf(wanted, sizeof(wanted), "key%012d", (i * 7919) % entries);
      char* error = nullptr;
      rocksdb_pinnableslice_t* found =
          rocksdb_get_pinned(handle, plain, wanted, 15, &error);
      size_t length = 0;
      bytes += static_cast<unsigned char>(rocksdb_pinnableslice_value(found, &length)[0]);
      rocksdb_pinnableslice_destroy(found);
    }
  };
  const auto get_cxx = [&] {
    char wanted[32];
    rocksdb::PinnableSlice found;
    // Made once, as those of the other loop are.
    const rocksdb::ReadOptions options;
    for (int i = 0; i < reads; ++i) {
      std::snprintf(wanted, sizeof(wanted), "key%012d", (i * 7919) % entries);
      CHECK_OK(db->Get(options, db->DefaultColumnFamily(), {wanted, 15}, &found));
      bytes += static_cast<unsigned char>(found[0]);
    }
  };
  walk_c();
  walk_cxx();
  const std::vector<std::pair<const char*, std::function<void()>>> loops = {
      {"walk, C", walk_c}, {"walk, C++", walk_cxx}, {"Get, C", get_c}, {"Get, C++", get_cxx}};
  std::vector<double> best(loops.size(), 1e9);
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < loops.size(); ++i) {
      best[i] = std::min(best[i], Seconds(loops[i].second));
    }
  }
  for (size_t i = 0; i < loops.size(); ++i) {
    const int calls = i < 2 ? entries : reads;
    std::printf("%-10s %7.1f ns\n", loops[i].first, best[i] / calls * 1e9);
  }
  std::printf("C++ over C: %.3f an entry (Next, Valid, key, value), %.3f a Get\n",
              best[1] / best[0], best[3] / best[2]);
  in_cxx.reset();
  rocksdb_iter_destroy(in_c);
  rocksdb_readoptions_destroy(plain);
  return bytes == 0 ? 1 : 0;
}
