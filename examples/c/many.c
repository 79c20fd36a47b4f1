/* Many databases in one process, each with a block cache of its own, read and written by several
 * threads: what an application does that keeps a database for each of its partitions.
 *
 *   many DIRECTORY DATABASES THREADS SECONDS
 *
 * Prints the operations a second and the most resident memory. Nothing in it is of Esker alone.
 */
#include <pthread.h>
#include <rocksdb/c.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KEYS = 20000, VALUE = 400, CACHE = 64 << 20, BUFFER = 16 << 20 };

static rocksdb_t** databases;
static int database_count;
static double end;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static void check(char* error) {
  if (error == NULL) return;
  fprintf(stderr, "error: %s\n", error);
  exit(1);
}

static uint64_t next(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

/* Half writes, four tenths reads, one tenth scans of ten entries. */
static void* work(void* argument) {
  uint64_t state = (uint64_t)(uintptr_t)argument, done = 0;
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  char key[32], value[VALUE], *error = NULL;
  while (now() < end) {
    rocksdb_t* db = databases[next(&state) % database_count];
    for (int i = 0; i < 100; i++, done++) {
      uint64_t kind = next(&state) % 10;
      int length = snprintf(key, sizeof key, "%016d", (int)(next(&state) % KEYS));
      if (kind < 5) {
        for (int b = 0; b < VALUE; b += 8) memcpy(value + b, &(uint64_t){next(&state)}, 8);
        rocksdb_put(db, write, key, length, value, VALUE, &error);
      } else if (kind < 9) {
        size_t size;
        rocksdb_free(rocksdb_get(db, read, key, length, &size, &error));
      } else {
        rocksdb_iterator_t* it = rocksdb_create_iterator(db, read);
        rocksdb_iter_seek(it, key, length);
        for (int n = 0; n < 10 && rocksdb_iter_valid(it); n++) rocksdb_iter_next(it);
        rocksdb_iter_get_error(it, &error);
        rocksdb_iter_destroy(it);
      }
      check(error);
    }
  }
  rocksdb_readoptions_destroy(read);
  rocksdb_writeoptions_destroy(write);
  return (void*)(uintptr_t)done;
}

static long status(const char* name) {
  char line[256];
  long kilobytes = 0;
  FILE* file = fopen("/proc/self/status", "r");
  while (file != NULL && fgets(line, sizeof line, file))
    if (strncmp(line, name, strlen(name)) == 0) kilobytes = atol(line + strlen(name));
  if (file != NULL) fclose(file);
  return kilobytes;
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: many DIRECTORY DATABASES THREADS SECONDS\n");
    return 2;
  }
  database_count = atoi(argv[2]);
  int thread_count = atoi(argv[3]);
  databases = calloc(database_count, sizeof *databases);
  for (int i = 0; i < database_count; i++) {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
    rocksdb_cache_t* cache = rocksdb_cache_create_lru(CACHE);
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_write_buffer_size(options, BUFFER);
    char path[4096], *error = NULL;
    snprintf(path, sizeof path, "%s/%d", argv[1], i);
    databases[i] = rocksdb_open(options, path, &error);
    check(error);
    if (rocksdb_cache_get_capacity(cache) != CACHE) {
      fprintf(stderr, "error: the cache reports %zu bytes\n", rocksdb_cache_get_capacity(cache));
      return 1;
    }
    rocksdb_cache_destroy(cache);
    rocksdb_options_destroy(options);
  }
  double begin = now();
  end = begin + atof(argv[4]);
  pthread_t* threads = calloc(thread_count, sizeof *threads);
  for (int i = 0; i < thread_count; i++)
    pthread_create(&threads[i], NULL, work, (void*)(uintptr_t)(i + 1));
  uint64_t operations = 0;
  for (int i = 0; i < thread_count; i++) {
    void* done;
    pthread_join(threads[i], &done);
    operations += (uint64_t)(uintptr_t)done;
  }
  printf("%.0f operations a second, at most %ld KB resident, %ld threads\n",
         operations / (now() - begin), status("VmHWM:"), status("Threads:"));
  for (int i = 0; i < database_count; i++) rocksdb_close(databases[i]);
  return 0;
}
