/* A program that knows nothing of ESKER_MEMORY.

       memory_program DIRECTORY COUNT MEGABYTES

   opens COUNT databases, each with a cache of its own of 64 MB, writes MEGABYTES in turn, reads
   everything twice, and prints the capacity of a cache as its getter tells it and the resident
   memory in KB. */

#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 100, VALUE = 1000 };

static void must(char *error) {
  if (error) {
    fprintf(stderr, "%s\n", error);
    exit(1);
  }
}

static long resident_kb(void) {
  FILE *status = fopen("/proc/self/status", "r");
  char line[200];
  long kb = -1;
  while (status && fgets(line, sizeof line, status)) sscanf(line, "VmRSS: %ld", &kb);
  if (status) fclose(status);
  return kb;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  int count = atoi(argv[2]);
  long keys = atol(argv[3]) * 1000;
  if (count > MOST) return 2;
  rocksdb_t *dbs[MOST];
  rocksdb_cache_t *caches[MOST];
  char path[4000], key[32], value[VALUE], *error = NULL;
  for (int i = 0; i < count; i++) {
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    caches[i] = rocksdb_cache_create_lru(64 << 20);
    rocksdb_block_based_options_set_block_cache(table, caches[i]);
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_compression(options, 0);
    snprintf(path, sizeof path, "%s/%d", argv[1], i);
    dbs[i] = rocksdb_open(options, path, &error);
    must(error);
    rocksdb_block_based_options_destroy(table);
    rocksdb_options_destroy(options);
  }
  memset(value, 'v', sizeof value);
  rocksdb_writeoptions_t *write = rocksdb_writeoptions_create();
  for (long n = 0; n < keys; n++) {
    int length = snprintf(key, sizeof key, "key%012ld", n / count);
    rocksdb_put(dbs[n % count], write, key, length, value, sizeof value, &error);
    must(error);
  }
  rocksdb_readoptions_t *read = rocksdb_readoptions_create();
  for (long n = 0; n < 2 * keys; n++) {
    size_t size = 0;
    int length = snprintf(key, sizeof key, "key%012ld", n % keys / count);
    char *got = rocksdb_get(dbs[n % count], read, key, length, &size, &error);
    must(error);
    if (!got || size != VALUE) {
      fprintf(stderr, "%s is missing\n", key);
      return 1;
    }
    rocksdb_free(got);
  }
  printf("capacity %zu\nresident %ld\n", rocksdb_cache_get_capacity(caches[0]), resident_kb());
  for (int i = 0; i < count; i++) {
    rocksdb_close(dbs[i]);
    rocksdb_cache_destroy(caches[i]);
  }
  rocksdb_readoptions_destroy(read);
  rocksdb_writeoptions_destroy(write);
  return 0;
}
