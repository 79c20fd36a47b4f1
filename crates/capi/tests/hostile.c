/* Misuse of the C library: null pointers, foreign and dropped families, absurd lengths, callbacks that fail
 * or call back. Every case has to end in an orderly way: an error where the function can give one, otherwise
 * nothing. `cargo xtask oracle hostile` runs each case in a process of its own.
 *
 *   hostile --list DIRECTORY     names the cases
 *   hostile CASE DIRECTORY       runs one in an empty directory
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rocksdb/c.h"

static char place[4000];
static const char* running = "";

static void fail(const char* file, int line, const char* what) {
  fprintf(stderr, "%s:%d: %s: %s\n", file, line, running, what);
  exit(1);
}

#define CHECK(condition) \
  if (!(condition)) fail(__FILE__, __LINE__, #condition)

/* The call before must have failed. */
#define REFUSED(err)                                          \
  do {                                                        \
    CHECK((err) != NULL);                                     \
    CHECK(strlen(err) > 0);                                   \
    free(err);                                                \
    (err) = NULL;                                             \
  } while (0)

#define FINE(err) \
  if ((err) != NULL) fail(__FILE__, __LINE__, err)

static const char* path(const char* name) {
  static char full[4200];
  snprintf(full, sizeof(full), "%s/%s", place, name);
  return full;
}

static rocksdb_options_t* options(void) {
  rocksdb_options_t* o = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(o, 1);
  return o;
}

static rocksdb_t* open_db(rocksdb_options_t* o, const char* name) {
  char* err = NULL;
  rocksdb_t* db = rocksdb_open(o, path(name), &err);
  FINE(err);
  CHECK(db != NULL);
  return db;
}

/* What most cases need. */
typedef struct {
  rocksdb_options_t* options;
  rocksdb_readoptions_t* read;
  rocksdb_writeoptions_t* write;
  rocksdb_t* db;
} kit_t;

static kit_t kit(void) {
  kit_t k;
  k.options = options();
  k.read = rocksdb_readoptions_create();
  k.write = rocksdb_writeoptions_create();
  k.db = open_db(k.options, "db");
  return k;
}

static void close_kit(kit_t k) {
  char* err = NULL;
  size_t size = 0;
  /* It still works. */
  rocksdb_put(k.db, k.write, "last", 4, "value", 5, &err);
  FINE(err);
  char* value = rocksdb_get(k.db, k.read, "last", 4, &size, &err);
  FINE(err);
  CHECK(value != NULL && size == 5 && memcmp(value, "value", 5) == 0);
  rocksdb_free(value);
  rocksdb_close(k.db);
  rocksdb_options_destroy(k.options);
  rocksdb_readoptions_destroy(k.read);
  rocksdb_writeoptions_destroy(k.write);
}

static void null_database(void) {
  char* err = NULL;
  size_t size = 7;
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_put(NULL, write, "k", 1, "v", 1, &err);
  REFUSED(err);
  rocksdb_delete(NULL, write, "k", 1, &err);
  REFUSED(err);
  rocksdb_merge(NULL, write, "k", 1, "v", 1, &err);
  REFUSED(err);
  CHECK(rocksdb_get(NULL, read, "k", 1, &size, &err) == NULL);
  REFUSED(err);
  CHECK(rocksdb_get_pinned(NULL, read, "k", 1, &err) == NULL);
  REFUSED(err);
  rocksdb_flush(NULL, flush, &err);
  REFUSED(err);
  CHECK(rocksdb_create_snapshot(NULL) == NULL);
  rocksdb_release_snapshot(NULL, NULL);
  rocksdb_compact_range(NULL, NULL, 0, NULL, 0);
  CHECK(rocksdb_property_value(NULL, "rocksdb.stats") == NULL);
  rocksdb_iterator_t* iter = rocksdb_create_iterator(NULL, read);
  CHECK(rocksdb_iter_valid(iter) == 0);
  rocksdb_iter_destroy(iter);
  rocksdb_close(NULL);
  rocksdb_readoptions_destroy(read);
  rocksdb_writeoptions_destroy(write);
  rocksdb_flushoptions_destroy(flush);
}

static void null_options(void) {
  char* err = NULL;
  size_t size;
  CHECK(rocksdb_open(NULL, path("db"), &err) == NULL);
  REFUSED(err);
  kit_t k = kit();
  rocksdb_put(k.db, NULL, "k", 1, "v", 1, &err);
  REFUSED(err);
  CHECK(rocksdb_get(k.db, NULL, "k", 1, &size, &err) == NULL);
  REFUSED(err);
  rocksdb_write(k.db, k.write, NULL, &err);
  REFUSED(err);
  rocksdb_options_set_write_buffer_size(NULL, 1);
  CHECK(rocksdb_options_get_write_buffer_size(NULL) == 0);
  rocksdb_options_set_block_based_table_factory(k.options, NULL);
  rocksdb_options_set_merge_operator(k.options, NULL);
  rocksdb_options_set_comparator(k.options, NULL);
  rocksdb_options_set_prefix_extractor(k.options, NULL);
  close_kit(k);
}

static void null_names(void) {
  char* err = NULL;
  rocksdb_options_t* o = options();
  CHECK(rocksdb_open(o, NULL, &err) == NULL);
  REFUSED(err);
  rocksdb_destroy_db(o, NULL, &err);
  REFUSED(err);
  size_t count = 3;
  CHECK(rocksdb_list_column_families(o, NULL, &count, &err) == NULL);
  REFUSED(err);
  rocksdb_get_options_from_string(o, NULL, o, &err);
  REFUSED(err);
  rocksdb_options_destroy(o);
  kit_t k = kit();
  CHECK(rocksdb_property_value(k.db, NULL) == NULL);
  CHECK(rocksdb_create_column_family(k.db, k.options, NULL, &err) == NULL);
  REFUSED(err);
  close_kit(k);
}

static void null_destroys(void) {
  rocksdb_options_destroy(NULL);
  rocksdb_readoptions_destroy(NULL);
  rocksdb_writeoptions_destroy(NULL);
  rocksdb_flushoptions_destroy(NULL);
  rocksdb_compactoptions_destroy(NULL);
  rocksdb_block_based_options_destroy(NULL);
  rocksdb_cache_destroy(NULL);
  rocksdb_writebatch_destroy(NULL);
  rocksdb_iter_destroy(NULL);
  rocksdb_pinnableslice_destroy(NULL);
  rocksdb_column_family_handle_destroy(NULL);
  rocksdb_env_destroy(NULL);
  rocksdb_list_column_families_destroy(NULL, 0);
  rocksdb_free(NULL);
  rocksdb_close(NULL);
}

static void null_error_pointer(void) {
  kit_t k = kit();
  rocksdb_put(k.db, k.write, "k", 1, "v", 1, NULL);
  rocksdb_put(NULL, k.write, "k", 1, "v", 1, NULL);
  size_t size;
  char* value = rocksdb_get(k.db, k.read, "k", 1, &size, NULL);
  CHECK(value != NULL && size == 1);
  free(value);
  close_kit(k);
}

/* An older error is given back when a newer one takes its place. */
static void old_error(void) {
  kit_t k = kit();
  char* err = strdup("an older error");
  rocksdb_put(NULL, k.write, "k", 1, "v", 1, &err);
  CHECK(err != NULL && strcmp(err, "an older error") != 0);
  free(err);
  close_kit(k);
}

static void null_bytes(void) {
  kit_t k = kit();
  char* err = NULL;
  size_t size;
  rocksdb_put(k.db, k.write, NULL, 0, NULL, 0, &err);
  FINE(err);
  char* value = rocksdb_get(k.db, k.read, NULL, 0, &size, &err);
  FINE(err);
  CHECK(value != NULL && size == 0);
  free(value);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, NULL, 0, NULL, 0);
  rocksdb_writebatch_delete(batch, NULL, 0);
  rocksdb_write(k.db, k.write, batch, &err);
  FINE(err);
  rocksdb_writebatch_destroy(batch);
  rocksdb_multi_get(k.db, k.read, 0, NULL, NULL, NULL, NULL, NULL);
  rocksdb_delete_range_cf(k.db, k.write, NULL, "a", 1, "b", 1, &err);
  REFUSED(err);
  close_kit(k);
}

/* Lengths that no memory has: refused before the bytes are looked at. */
static void huge_lengths(void) {
  kit_t k = kit();
  char* err = NULL;
  size_t size;
  const size_t huge[] = {SIZE_MAX, SIZE_MAX / 2 + 1, (size_t)1 << 40, ((size_t)1 << 32) + 1};
  for (size_t i = 0; i < sizeof(huge) / sizeof(*huge); i++) {
    rocksdb_put(k.db, k.write, "k", huge[i], "v", 1, &err);
    REFUSED(err);
    rocksdb_put(k.db, k.write, "k", 1, "v", huge[i], &err);
    REFUSED(err);
    CHECK(rocksdb_get(k.db, k.read, "k", huge[i], &size, &err) == NULL);
    free(err);
    err = NULL;
  }
  rocksdb_options_set_write_buffer_size(k.options, SIZE_MAX);
  rocksdb_cache_t* cache = rocksdb_cache_create_lru(SIZE_MAX);
  rocksdb_cache_destroy(cache);
  close_kit(k);
}

static void foreign_family(void) {
  kit_t k = kit();
  char* err = NULL;
  size_t size;
  rocksdb_t* other = open_db(k.options, "other");
  rocksdb_column_family_handle_t* cf =
      rocksdb_create_column_family(other, k.options, "theirs", &err);
  FINE(err);
  rocksdb_put_cf(k.db, k.write, cf, "k", 1, "v", 1, &err);
  REFUSED(err);
  CHECK(rocksdb_get_cf(k.db, k.read, cf, "k", 1, &size, &err) == NULL);
  REFUSED(err);
  rocksdb_drop_column_family(k.db, cf, &err);
  REFUSED(err);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put_cf(batch, cf, "k", 1, "v", 1);
  rocksdb_write(k.db, k.write, batch, &err);
  REFUSED(err);
  rocksdb_writebatch_destroy(batch);
  rocksdb_iterator_t* iter = rocksdb_create_iterator_cf(k.db, k.read, cf);
  CHECK(rocksdb_iter_valid(iter) == 0);
  rocksdb_iter_destroy(iter);
  rocksdb_put_cf(other, k.write, cf, "k", 1, "v", 1, &err);
  FINE(err);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_close(other);
  close_kit(k);
}

static void dropped_family(void) {
  kit_t k = kit();
  char* err = NULL;
  size_t size;
  rocksdb_column_family_handle_t* cf =
      rocksdb_create_column_family(k.db, k.options, "short", &err);
  FINE(err);
  rocksdb_put_cf(k.db, k.write, cf, "k", 1, "v", 1, &err);
  FINE(err);
  rocksdb_iterator_t* iter = rocksdb_create_iterator_cf(k.db, k.read, cf);
  rocksdb_drop_column_family(k.db, cf, &err);
  FINE(err);
  rocksdb_drop_column_family(k.db, cf, &err);
  REFUSED(err);
  rocksdb_put_cf(k.db, k.write, cf, "k", 1, "v", 1, &err);
  REFUSED(err);
  char* value = rocksdb_get_cf(k.db, k.read, cf, "k", 1, &size, &err);
  FINE(err);
  CHECK(value != NULL && size == 1);
  free(value);
  rocksdb_iter_seek_to_first(iter);
  CHECK(rocksdb_iter_valid(iter));
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_iter_next(iter);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_destroy(iter);
  close_kit(k);
}

/* Handles that outlive the database. */
static void late_handles(void) {
  kit_t k = kit();
  char* err = NULL;
  rocksdb_column_family_handle_t* cf =
      rocksdb_create_column_family(k.db, k.options, "late", &err);
  FINE(err);
  rocksdb_put(k.db, k.write, "k", 1, "v", 1, &err);
  FINE(err);
  rocksdb_pinnableslice_t* slice = rocksdb_get_pinned(k.db, k.read, "k", 1, &err);
  FINE(err);
  rocksdb_iterator_t* iter = rocksdb_create_iterator(k.db, k.read);
  rocksdb_iter_seek_to_first(iter);
  CHECK(rocksdb_iter_valid(iter));
  rocksdb_close(k.db);
  size_t size = 0;
  const char* value = rocksdb_pinnableslice_value(slice, &size);
  CHECK(value != NULL && size == 1 && value[0] == 'v');
  rocksdb_pinnableslice_destroy(slice);
  rocksdb_iter_next(iter);
  rocksdb_iter_destroy(iter);
  rocksdb_column_family_handle_destroy(cf);
  k.db = open_db(k.options, "again");
  close_kit(k);
}

static void moving_an_invalid_iterator(void) {
  kit_t k = kit();
  char* err = NULL;
  size_t size = 5;
  rocksdb_iterator_t* iter = rocksdb_create_iterator(k.db, k.read);
  rocksdb_iter_next(iter);
  rocksdb_iter_prev(iter);
  rocksdb_iter_key(iter, &size);
  rocksdb_iter_value(iter, &size);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_seek_to_last(iter);
  rocksdb_iter_prev(iter);
  rocksdb_iter_seek(iter, NULL, 0);
  rocksdb_iter_seek_for_prev(iter, NULL, 0);
  rocksdb_iter_get_error(iter, &err);
  FINE(err);
  rocksdb_iter_destroy(iter);
  rocksdb_iter_next(NULL);
  CHECK(rocksdb_iter_valid(NULL) == 0);
  rocksdb_iter_key(NULL, &size);
  close_kit(k);
}

/* Bytes that are no batch. Writing one is an error, and the database goes on. */
static void garbage_batches(void) {
  kit_t k = kit();
  char* err = NULL;
  unsigned state = 12345;
  for (int round = 0; round < 2000; round++) {
    char bytes[64];
    size_t size = (size_t)(round % 64);
    for (size_t i = 0; i < size; i++) {
      state = state * 1103515245 + 12345;
      bytes[i] = (char)(i >= 8 && i < 12 ? (i == 8) : (state >> 16) & 31);
    }
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create_from(bytes, size);
    CHECK(batch != NULL || size < 12);
    rocksdb_writebatch_count(batch);
    rocksdb_write(k.db, k.write, batch, &err);
    free(err);
    err = NULL;
    rocksdb_writebatch_destroy(batch);
  }
  close_kit(k);
}

static void garbage_options(void) {
  rocksdb_options_t* base = options();
  const char* texts[] = {"", ";", "=", "a", "{", "}", "{{{{{{", "block_based_table_factory={", "x={}}",
                         "write_buffer_size=999999999999999999999999", "compression=\xff\xfe",
                         "merge_operator={id={{", "comparator=nobody"};
  for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
    char* err = NULL;
    rocksdb_options_t* made = rocksdb_options_create();
    rocksdb_get_options_from_string(base, texts[i], made, &err);
    free(err);
    rocksdb_options_destroy(made);
  }
  rocksdb_options_destroy(base);
}

static void open_in_bad_places(void) {
  char* err = NULL;
  rocksdb_options_t* o = options();
  CHECK(rocksdb_open(o, "", &err) == NULL);
  REFUSED(err);
  CHECK(rocksdb_open(o, "/proc/nowhere/db", &err) == NULL);
  REFUSED(err);
  FILE* file = fopen(path("file"), "w");
  fclose(file);
  CHECK(rocksdb_open(o, path("file"), &err) == NULL);
  REFUSED(err);
  size_t count = 0;
  CHECK(rocksdb_list_column_families(o, path("absent"), &count, &err) == NULL);
  REFUSED(err);
  rocksdb_t* db = open_db(o, "db");
  CHECK(rocksdb_open(o, path("db"), &err) == NULL);
  REFUSED(err);
  rocksdb_destroy_db(o, path("db"), &err);
  REFUSED(err);
  rocksdb_close(db);
  rocksdb_options_destroy(o);
}

/* Callbacks. */
typedef struct {
  rocksdb_t* db;
  rocksdb_readoptions_t* read;
  int calls;
  int destroyed;
} state_t;

static void destroy_state(void* arg) { ((state_t*)arg)->destroyed++; }
static const char* name(void* arg) {
  (void)arg;
  return "hostile";
}
static const char* no_name(void* arg) {
  (void)arg;
  return NULL;
}

/* Reads from its own database while it is called. */
static void look_again(state_t* state) {
  state->calls++;
  if (state->db == NULL) return;
  char* err = NULL;
  size_t size;
  char* value = rocksdb_get(state->db, state->read, "other", 5, &size, &err);
  free(value);
  free(err);
  char* text = rocksdb_property_value(state->db, "rocksdb.estimate-num-keys");
  free(text);
}

static char* full_merge(void* arg, const char* key, size_t klen, const char* existing, size_t elen,
                        const char* const* operands, const size_t* sizes, int count,
                        unsigned char* success, size_t* length) {
  (void)key, (void)klen, (void)existing, (void)elen, (void)operands, (void)sizes, (void)count;
  look_again(arg);
  *success = 1;
  *length = 4;
  return strdup("join");
}

static char* partial_merge(void* arg, const char* key, size_t klen, const char* const* operands,
                           const size_t* sizes, int count, unsigned char* success, size_t* length) {
  (void)arg, (void)key, (void)klen, (void)operands, (void)sizes, (void)count;
  *success = 0;
  *length = 0;
  return NULL;
}

static char* failing_merge(void* arg, const char* key, size_t klen, const char* existing, size_t elen,
                           const char* const* operands, const size_t* sizes, int count,
                           unsigned char* success, size_t* length) {
  (void)arg, (void)key, (void)klen, (void)existing, (void)elen, (void)operands, (void)sizes;
  (void)count;
  *success = 0;
  *length = SIZE_MAX;
  return NULL;
}

static unsigned char filter(void* arg, int level, const char* key, size_t klen, const char* value,
                            size_t vlen, char** new_value, size_t* new_length,
                            unsigned char* changed) {
  (void)level, (void)key, (void)klen, (void)value, (void)vlen, (void)new_value, (void)new_length;
  (void)changed;
  look_again(arg);
  return 0;
}

static void reentrant_merge(void) {
  state_t state = {0};
  char* err = NULL;
  size_t size;
  rocksdb_options_t* o = options();
  rocksdb_options_set_merge_operator(
      o, rocksdb_mergeoperator_create(&state, destroy_state, full_merge, partial_merge, NULL, name));
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  state.read = rocksdb_readoptions_create();
  rocksdb_t* db = open_db(o, "db");
  state.db = db;
  for (int i = 0; i < 10; i++) {
    rocksdb_merge(db, write, "k", 1, "v", 1, &err);
    FINE(err);
  }
  char* value = rocksdb_get(db, state.read, "k", 1, &size, &err);
  FINE(err);
  CHECK(value != NULL && size == 4);
  free(value);
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, state.read);
  rocksdb_iter_seek_to_first(iter);
  CHECK(rocksdb_iter_valid(iter));
  rocksdb_iter_destroy(iter);
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &err);
  FINE(err);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  CHECK(state.calls > 0);
  rocksdb_flushoptions_destroy(flush);
  rocksdb_close(db);
  rocksdb_readoptions_destroy(state.read);
  rocksdb_writeoptions_destroy(write);
  rocksdb_options_destroy(o);
  CHECK(state.destroyed == 1);
}

static void failing_merges(void) {
  state_t state = {0};
  char* err = NULL;
  size_t size;
  rocksdb_options_t* o = options();
  rocksdb_options_set_merge_operator(
      o, rocksdb_mergeoperator_create(&state, destroy_state, failing_merge, partial_merge, NULL, name));
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  rocksdb_t* db = open_db(o, "db");
  rocksdb_merge(db, write, "k", 1, "v", 1, &err);
  FINE(err);
  CHECK(rocksdb_get(db, read, "k", 1, &size, &err) == NULL);
  REFUSED(err);
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, read);
  rocksdb_iter_seek_to_first(iter);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_get_error(iter, &err);
  REFUSED(err);
  rocksdb_iter_destroy(iter);
  rocksdb_close(db);
  rocksdb_readoptions_destroy(read);
  rocksdb_writeoptions_destroy(write);
  rocksdb_options_destroy(o);
  CHECK(state.destroyed == 1);
}

static void reentrant_filter(void) {
  state_t state = {0};
  char* err = NULL;
  rocksdb_options_t* o = options();
  rocksdb_compactionfilter_t* f =
      rocksdb_compactionfilter_create(&state, destroy_state, filter, name);
  rocksdb_options_set_compaction_filter(o, f);
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  state.read = rocksdb_readoptions_create();
  rocksdb_t* db = open_db(o, "db");
  state.db = db;
  for (int i = 0; i < 200; i++) {
    char key[16];
    snprintf(key, sizeof(key), "%d", i);
    rocksdb_put(db, write, key, strlen(key), "v", 1, &err);
    FINE(err);
  }
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  rocksdb_close(db);
  rocksdb_readoptions_destroy(state.read);
  rocksdb_writeoptions_destroy(write);
  rocksdb_options_destroy(o);
  rocksdb_compactionfilter_destroy(f);
  CHECK(state.calls > 0);
  CHECK(state.destroyed == 1);
}

static int compare(void* arg, const char* a, size_t alen, const char* b, size_t blen) {
  (void)arg;
  size_t least = alen < blen ? alen : blen;
  int order = least == 0 ? 0 : memcmp(a, b, least);
  if (order != 0) return order * 1000;
  return alen < blen ? INT32_MIN : alen > blen ? INT32_MAX : 0;
}

static void nameless_callbacks(void) {
  state_t state = {0};
  char* err = NULL;
  rocksdb_options_t* o = options();
  rocksdb_comparator_t* order = rocksdb_comparator_create(&state, destroy_state, compare, no_name);
  rocksdb_options_set_comparator(o, order);
  rocksdb_t* db = rocksdb_open(o, path("db"), &err);
  free(err);
  rocksdb_close(db);
  rocksdb_options_destroy(o);
  rocksdb_comparator_destroy(order);
  CHECK(state.destroyed == 1);
}

static void wild_comparator(void) {
  state_t state = {0};
  char* err = NULL;
  rocksdb_options_t* o = options();
  rocksdb_comparator_t* order = rocksdb_comparator_create(&state, destroy_state, compare, name);
  rocksdb_options_set_comparator(o, order);
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_t* db = open_db(o, "db");
  for (int i = 0; i < 500; i++) {
    char key[16];
    snprintf(key, sizeof(key), "%d", i * 7919 % 500);
    rocksdb_put(db, write, key, strlen(key), "v", 1, &err);
    FINE(err);
  }
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  rocksdb_close(db);
  rocksdb_writeoptions_destroy(write);
  rocksdb_options_destroy(o);
  rocksdb_comparator_destroy(order);
  CHECK(state.destroyed == 1);
}

typedef struct {
  rocksdb_writebatch_t* batch;
  int calls;
} walk_t;

static void on_put(void* arg, const char* k, size_t klen, const char* v, size_t vlen) {
  (void)k, (void)klen, (void)v, (void)vlen;
  walk_t* walk = arg;
  walk->calls++;
  CHECK(rocksdb_writebatch_count(walk->batch) == 2);
}

static void on_delete(void* arg, const char* k, size_t klen) {
  (void)k, (void)klen;
  ((walk_t*)arg)->calls++;
}

static void walking_a_batch(void) {
  walk_t walk = {rocksdb_writebatch_create(), 0};
  rocksdb_writebatch_put(walk.batch, "k", 1, "v", 1);
  rocksdb_writebatch_delete(walk.batch, "k", 1);
  rocksdb_writebatch_iterate(walk.batch, &walk, on_put, on_delete);
  CHECK(walk.calls == 2);
  rocksdb_writebatch_iterate(NULL, &walk, on_put, on_delete);
  char* err = NULL;
  rocksdb_writebatch_rollback_to_save_point(walk.batch, &err);
  REFUSED(err);
  rocksdb_writebatch_pop_save_point(walk.batch, &err);
  REFUSED(err);
  rocksdb_writebatch_destroy(walk.batch);
}

/* Many threads on one database while another closes and opens its own. */
static void* hammer(void* arg) {
  kit_t* k = arg;
  for (int i = 0; i < 2000; i++) {
    char* err = NULL;
    char key[16];
    size_t size;
    snprintf(key, sizeof(key), "%d", i % 100);
    rocksdb_put(k->db, k->write, key, strlen(key), "v", 1, &err);
    FINE(err);
    free(rocksdb_get(k->db, k->read, key, strlen(key), &size, &err));
    FINE(err);
    if (i % 100 == 0) {
      const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(k->db);
      rocksdb_iterator_t* iter = rocksdb_create_iterator(k->db, k->read);
      rocksdb_iter_seek_to_first(iter);
      rocksdb_iter_destroy(iter);
      rocksdb_release_snapshot(k->db, snapshot);
    }
  }
  return NULL;
}

static void threads(void) {
  kit_t k = kit();
  pthread_t all[4];
  for (int i = 0; i < 4; i++) CHECK(pthread_create(&all[i], NULL, hammer, &k) == 0);
  for (int i = 0; i < 4; i++) pthread_join(all[i], NULL);
  close_kit(k);
}

typedef struct {
  const char* name;
  void (*run)(void);
} case_t;

#define CASE(function) {#function, function}

static const case_t cases[] = {
    CASE(null_database),    CASE(null_options),       CASE(null_names),
    CASE(null_destroys),    CASE(null_error_pointer), CASE(old_error),
    CASE(null_bytes),       CASE(huge_lengths),       CASE(foreign_family),
    CASE(dropped_family),   CASE(late_handles),       CASE(moving_an_invalid_iterator),
    CASE(garbage_batches),  CASE(garbage_options),    CASE(open_in_bad_places),
    CASE(reentrant_merge),  CASE(failing_merges),     CASE(reentrant_filter),
    CASE(nameless_callbacks), CASE(wild_comparator),  CASE(walking_a_batch),
    CASE(threads),
};

int main(int argc, char** argv) {
  size_t count = sizeof(cases) / sizeof(*cases);
  if (argc == 3 && strcmp(argv[1], "--list") == 0) {
    for (size_t i = 0; i < count; i++) printf("case %s\n", cases[i].name);
    return 0;
  }
  for (size_t i = 0; argc == 3 && i < count; i++) {
    if (strcmp(argv[1], cases[i].name) != 0) continue;
    running = cases[i].name;
    mkdir(argv[2], 0755);
    snprintf(place, sizeof(place), "%s/%s", argv[2], running);
    if (mkdir(place, 0755) != 0) fail(__FILE__, __LINE__, "the directory is not new");
    cases[i].run();
    return 0;
  }
  fprintf(stderr, "usage: hostile --list|CASE DIRECTORY\n");
  return 2;
}
