/* Puts, gets or seeks, for counting instructions: stats_cost KIND COUNT DIRECTORY. A run with twice
 * the operations tells what one costs, since opening and loading are the same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rocksdb/c.h"

enum { KEYS = 4000, KEY_LEN = 16, VALUE_LEN = 100 };

static void check(char *error) {
  if (error != NULL) {
    fprintf(stderr, "%s\n", error);
    exit(1);
  }
}

/* Made before anything is counted. */
static char keys[KEYS][KEY_LEN + 1];

int main(int argc, char **argv) {
  if (argc != 4) {
    return 2;
  }
  char *error = NULL;
  uint64_t count = strtoull(argv[2], NULL, 10);
  rocksdb_options_t *options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_disable_auto_compactions(options, 1);
  rocksdb_t *db = rocksdb_open(options, argv[3], &error);
  check(error);
  rocksdb_writeoptions_t *write = rocksdb_writeoptions_create();
  rocksdb_readoptions_t *read = rocksdb_readoptions_create();
  char value[VALUE_LEN];
  memset(value, 'v', sizeof value);
  for (uint64_t n = 0; n < KEYS; n++) {
    snprintf(keys[n], sizeof keys[n], "%016llu", (unsigned long long)n);
    rocksdb_put(db, write, keys[n], KEY_LEN, value, sizeof value, &error);
    check(error);
  }
  rocksdb_flushoptions_t *flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &error);
  check(error);
  rocksdb_iterator_t *it = rocksdb_create_iterator(db, read);
  /* Every block is in the cache. */
  for (rocksdb_iter_seek_to_first(it); rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
  }
  int is_put = strcmp(argv[1], "put") == 0;
  int is_get = strcmp(argv[1], "get") == 0;
  uint64_t state = 1;
  for (uint64_t n = 0; n < count; n++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const char *key = keys[(state >> 33) % KEYS];
    if (is_put) {
      rocksdb_put(db, write, key, KEY_LEN, value, sizeof value, &error);
      check(error);
    } else if (is_get) {
      size_t len = 0;
      free(rocksdb_get(db, read, key, KEY_LEN, &len, &error));
      check(error);
      if (len != sizeof value) {
        return 1;
      }
    } else {
      rocksdb_iter_seek(it, key, KEY_LEN);
      if (!rocksdb_iter_valid(it)) {
        return 1;
      }
    }
  }
  rocksdb_iter_destroy(it);
  rocksdb_flushoptions_destroy(flush);
  rocksdb_readoptions_destroy(read);
  rocksdb_writeoptions_destroy(write);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  return 0;
}
