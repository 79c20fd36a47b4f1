/* Stands before the phases of RocksDB's C test, which are one long function. Each phase becomes the
 * body of `if (oracle_begin(...))`: it is skipped when the environment says so, and finds the database
 * open or closed as the phases before it would have left it, even when one of those was skipped. */
#include <stdio.h>
#include <stdlib.h>

/* How a phase touches the database first. */
enum { oracle_no_database, oracle_uses_database, oracle_opens_database };

static rocksdb_t* oracle_databases[64];
static const char* oracle_phase_now;

/* The first phase makes the objects that all others use: it goes on after a failed check. */
static const char* oracle_frame = "create_objects";

static void oracle_abort(void) {
  if (oracle_phase_now != NULL && strcmp(oracle_phase_now, oracle_frame) == 0) {
    fprintf(stderr, "oracle: failed %s\n", oracle_frame);
    oracle_frame = "";
    oracle_phase_now = NULL;
    return;
  }
  abort();
}

static int oracle_is_open(const rocksdb_t* db) {
  for (size_t i = 0; i < 64; i++) {
    if (db != NULL && oracle_databases[i] == db) return 1;
  }
  return 0;
}

static rocksdb_t* oracle_opened(rocksdb_t* db) {
  for (size_t i = 0; db != NULL && i < 64; i++) {
    if (oracle_databases[i] == NULL) {
      oracle_databases[i] = db;
      break;
    }
  }
  return db;
}

static void oracle_close(rocksdb_t* db) {
  if (!oracle_is_open(db)) {
    fprintf(stderr, "oracle: note: not open, not closed\n");
    return;
  }
  for (size_t i = 0; i < 64; i++) {
    if (oracle_databases[i] == db) oracle_databases[i] = NULL;
  }
  rocksdb_close(db);
}

static int oracle_skips(const char* name) {
  const char* list = getenv("ESKER_ORACLE_SKIP");
  size_t size = strlen(name);
  while (list != NULL && *list != '\0') {
    const char* end = strchr(list, '\n');
    size_t length = end == NULL ? strlen(list) : (size_t)(end - list);
    if (length == size && memcmp(list, name, size) == 0) return 1;
    list += length + (end != NULL);
  }
  return 0;
}

static void oracle_end(void) {
  if (oracle_phase_now != NULL) {
    fprintf(stderr, "oracle: passed %s\n", oracle_phase_now);
  }
  oracle_phase_now = NULL;
}

static int oracle_begin(const char* name, int first_use, rocksdb_t** db,
                        rocksdb_options_t* options, const char* path) {
  char* err = NULL;
  oracle_end();
  if (oracle_skips(name)) {
    fprintf(stderr, "oracle: skipped %s\n", name);
    return 0;
  }
  oracle_phase_now = name;
  fprintf(stderr, "oracle: begin %s\n", name);
  if (first_use == oracle_uses_database && !oracle_is_open(*db)) {
    unsigned char refuses = rocksdb_options_get_error_if_exists(options);
    fprintf(stderr, "oracle: note: opening a database for %s\n", name);
    rocksdb_options_set_error_if_exists(options, 0);
    rocksdb_options_set_create_if_missing(options, 1);
    *db = oracle_opened(rocksdb_open(options, path, &err));
    rocksdb_options_set_error_if_exists(options, refuses);
    if (err != NULL) {
      fprintf(stderr, "cannot open a database: %s\n", err);
      abort();
    }
  } else if (first_use == oracle_opens_database && oracle_is_open(*db)) {
    fprintf(stderr, "oracle: note: removing a database for %s\n", name);
    oracle_close(*db);
    *db = NULL;
    rocksdb_destroy_db(options, path, &err);
    free(err);
  }
  return 1;
}

#define abort() oracle_abort()
#define rocksdb_open(...) oracle_opened(rocksdb_open(__VA_ARGS__))
#define rocksdb_open_with_ttl(...) oracle_opened(rocksdb_open_with_ttl(__VA_ARGS__))
#define rocksdb_open_for_read_only(...) oracle_opened(rocksdb_open_for_read_only(__VA_ARGS__))
#define rocksdb_open_as_secondary(...) oracle_opened(rocksdb_open_as_secondary(__VA_ARGS__))
#define rocksdb_open_and_trim_history(...) oracle_opened(rocksdb_open_and_trim_history(__VA_ARGS__))
#define rocksdb_open_column_families(...) oracle_opened(rocksdb_open_column_families(__VA_ARGS__))
#define rocksdb_open_column_families_with_ttl(...) \
  oracle_opened(rocksdb_open_column_families_with_ttl(__VA_ARGS__))
#define rocksdb_open_for_read_only_column_families(...) \
  oracle_opened(rocksdb_open_for_read_only_column_families(__VA_ARGS__))
#define rocksdb_open_as_secondary_column_families(...) \
  oracle_opened(rocksdb_open_as_secondary_column_families(__VA_ARGS__))
#define rocksdb_close(db) oracle_close(db)
