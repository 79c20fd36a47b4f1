/* A tour of the C library for a program that is built once and run on any library of the same name.
 *
 *   cc tour.c -lrocksdb -o tour && ./tour DIRECTORY
 *   LD_LIBRARY_PATH=/where/esker/is ./tour DIRECTORY
 *
 * Needs nothing newer than RocksDB 7.8, and says the same on every library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <rocksdb/c.h>

static char* err = NULL;

static void check(const char* what) {
  printf("%s: %s\n", what, err == NULL ? "ok" : err);
  if (err != NULL) exit(1);
}

static void show(const char* key, char* value, size_t size) {
  if (value == NULL) {
    printf("%s is not there\n", key);
  } else {
    printf("%s = %.*s\n", key, (int)size, value);
    rocksdb_free(value);
  }
}

static void get(rocksdb_t* db, const rocksdb_readoptions_t* read, const char* key) {
  size_t size = 0;
  char* value = rocksdb_get(db, read, key, strlen(key), &size, &err);
  if (err != NULL) check(key);
  show(key, value, size);
}

static void list(rocksdb_iterator_t* iter) {
  for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
    size_t key_size, value_size;
    const char* key = rocksdb_iter_key(iter, &key_size);
    const char* value = rocksdb_iter_value(iter, &value_size);
    printf("  %.*s = %.*s\n", (int)key_size, key, (int)value_size, value);
  }
  rocksdb_iter_get_error(iter, &err);
  check("listed");
  rocksdb_iter_destroy(iter);
}

/* A merge operator that adds a comma and the operand. */
static void nothing(void* state) { (void)state; }
static const char* name(void* state) {
  (void)state;
  return "tour.Comma";
}

static char* full_merge(void* state, const char* key, size_t key_size, const char* existing,
                        size_t existing_size, const char* const* operands, const size_t* sizes,
                        int count, unsigned char* success, size_t* length) {
  (void)state, (void)key, (void)key_size;
  size_t total = existing == NULL ? 0 : existing_size + 1;
  for (int i = 0; i < count; i++) total += sizes[i] + 1;
  char* value = malloc(total + 1);
  size_t at = 0;
  if (existing != NULL) {
    memcpy(value, existing, existing_size);
    at = existing_size;
    value[at++] = ',';
  }
  for (int i = 0; i < count; i++) {
    memcpy(value + at, operands[i], sizes[i]);
    at += sizes[i];
    value[at++] = ',';
  }
  *success = 1;
  *length = at - 1;
  return value;
}

static char* partial_merge(void* state, const char* key, size_t key_size,
                           const char* const* operands, const size_t* sizes, int count,
                           unsigned char* success, size_t* length) {
  return full_merge(state, key, key_size, NULL, 0, operands, sizes, count, success, length);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: tour DIRECTORY\n");
    return 2;
  }
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_compression(options, rocksdb_snappy_compression);
  rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
  rocksdb_cache_t* cache = rocksdb_cache_create_lru(8 << 20);
  rocksdb_block_based_options_set_block_cache(table, cache);
  rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(10));
  rocksdb_options_set_block_based_table_factory(options, table);
  rocksdb_options_set_merge_operator(
      options, rocksdb_mergeoperator_create(NULL, nothing, full_merge, partial_merge, NULL, name));
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();

  rocksdb_t* db = rocksdb_open(options, argv[1], &err);
  check("opened");
  rocksdb_put(db, write, "a", 1, "one", 3, &err);
  rocksdb_put(db, write, "b", 1, "two", 3, &err);
  rocksdb_delete(db, write, "a", 1, &err);
  rocksdb_merge(db, write, "list", 4, "x", 1, &err);
  rocksdb_merge(db, write, "list", 4, "y", 1, &err);
  check("written");
  get(db, read, "a");
  get(db, read, "b");
  get(db, read, "list");

  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "c", 1, "three", 5);
  rocksdb_writebatch_set_save_point(batch);
  rocksdb_writebatch_put(batch, "d", 1, "four", 4);
  rocksdb_writebatch_rollback_to_save_point(batch, &err);
  rocksdb_writebatch_delete(batch, "b", 1);
  printf("%d records in the batch\n", rocksdb_writebatch_count(batch));

  const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
  rocksdb_write(db, write, batch, &err);
  check("batch written");
  rocksdb_writebatch_destroy(batch);
  rocksdb_readoptions_set_snapshot(read, snapshot);
  get(db, read, "b");
  rocksdb_readoptions_set_snapshot(read, NULL);
  get(db, read, "b");
  rocksdb_release_snapshot(db, snapshot);

  rocksdb_column_family_handle_t* family =
      rocksdb_create_column_family(db, options, "second", &err);
  check("family created");
  for (int i = 0; i < 1000; i++) {
    char key[16];
    snprintf(key, sizeof(key), "key%04d", i);
    rocksdb_put_cf(db, write, family, key, 7, "value", 5, &err);
  }
  rocksdb_delete_range_cf(db, write, family, "key0003", 7, "key0998", 7, &err);
  check("range deleted");
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush_cf(db, flush, family, &err);
  check("flushed");
  rocksdb_compact_range_cf(db, family, NULL, 0, NULL, 0);
  list(rocksdb_create_iterator_cf(db, read, family));

  char* held = rocksdb_property_value_cf(db, family, "rocksdb.num-snapshots");
  printf("%s snapshots are held\n", held);
  rocksdb_free(held);
  rocksdb_column_family_handle_destroy(family);
  rocksdb_close(db);

  /* A second open call names all families. */
  size_t count = 0;
  char** names = rocksdb_list_column_families(options, argv[1], &count, &err);
  check("families listed");
  for (size_t i = 0; i < count; i++) printf("  family %s\n", names[i]);
  const rocksdb_options_t* all[2] = {options, options};
  rocksdb_column_family_handle_t* handles[2];
  db = rocksdb_open_column_families(options, argv[1], (int)count, (const char* const*)names, all,
                                    handles, &err);
  check("opened again");
  rocksdb_list_column_families_destroy(names, count);
  list(rocksdb_create_iterator_cf(db, read, handles[0]));
  list(rocksdb_create_iterator_cf(db, read, handles[1]));

  /* Errors are texts. */
  rocksdb_t* twice = rocksdb_open(options, argv[1], &err);
  printf("opened twice: %s\n", twice == NULL && err != NULL ? "refused" : "accepted");
  rocksdb_free(err);
  err = NULL;

  rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &err);
  check("checkpoint object");
  char copy[4096];
  snprintf(copy, sizeof(copy), "%s-copy", argv[1]);
  rocksdb_checkpoint_create(checkpoint, copy, 0, &err);
  check("checkpoint");
  rocksdb_checkpoint_object_destroy(checkpoint);

  for (int i = 0; i < 2; i++) rocksdb_column_family_handle_destroy(handles[i]);
  rocksdb_close(db);
  rocksdb_destroy_db(options, argv[1], &err);
  check("destroyed");
  rocksdb_destroy_db(options, copy, &err);
  check("copy destroyed");
  rocksdb_flushoptions_destroy(flush);
  rocksdb_readoptions_destroy(read);
  rocksdb_writeoptions_destroy(write);
  rocksdb_block_based_options_destroy(table);
  rocksdb_cache_destroy(cache);
  rocksdb_options_destroy(options);
  printf("the tour is over\n");
  return 0;
}
