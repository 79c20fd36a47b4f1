/* RocksDB's C interface in one page: open, put, get, batch, iterate, snapshot, checkpoint, backup, errors.
 *
 *     cc quickstart.c $(pkg-config --cflags --libs rocksdb) -o quickstart
 *     ./quickstart DIRECTORY
 */
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every call that can fail takes the address of a string, which it replaces by a message that we free. */
static void check(char* error) {
  if (error == NULL) return;
  fprintf(stderr, "%s\n", error);
  rocksdb_free(error);
  exit(1);
}

static void put(rocksdb_t* db, const char* key, const char* value) {
  char* error = NULL;
  rocksdb_writeoptions_t* how = rocksdb_writeoptions_create();
  rocksdb_put(db, how, key, strlen(key), value, strlen(value), &error);
  check(error);
  rocksdb_writeoptions_destroy(how);
}

/* A copy of the value, to be freed; NULL when there is none. */
static char* get(rocksdb_t* db, const rocksdb_readoptions_t* how, const char* key) {
  char* error = NULL;
  size_t length = 0;
  char* bytes = rocksdb_get(db, how, key, strlen(key), &length, &error);
  check(error);
  if (bytes == NULL) return NULL;
  char* text = calloc(length + 1, 1);
  memcpy(text, bytes, length);
  rocksdb_free(bytes);
  return text;
}

static int count(rocksdb_t* db, const rocksdb_readoptions_t* how) {
  int entries = 0;
  rocksdb_iterator_t* it = rocksdb_create_iterator(db, how);
  for (rocksdb_iter_seek_to_first(it); rocksdb_iter_valid(it); rocksdb_iter_next(it)) entries++;
  char* error = NULL;
  rocksdb_iter_get_error(it, &error);
  check(error);
  rocksdb_iter_destroy(it);
  return entries;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: quickstart DIRECTORY\n");
    return 2;
  }
  const char* names[] = {"db", "checkpoint", "backups", "restored"};
  char path[4][4096];
  for (int i = 0; i < 4; i++) snprintf(path[i], sizeof path[i], "%s/%s", argv[1], names[i]);

  char* error = NULL;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_t* db = rocksdb_open(options, path[0], &error);
  check(error);
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();

  /* One key. */
  put(db, "colour", "green");
  char* value = get(db, read, "colour");
  printf("colour = %s\n", value);
  free(value);
  printf("missing: %s\n", get(db, read, "missing") == NULL ? "not found" : "found");

  /* Several writes, all or nothing. */
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "apple", 5, "1", 1);
  rocksdb_writebatch_put(batch, "banana", 6, "2", 1);
  rocksdb_writebatch_put(batch, "cherry", 6, "3", 1);
  rocksdb_writebatch_delete(batch, "colour", 6);
  rocksdb_write(db, write, batch, &error);
  check(error);
  rocksdb_writebatch_destroy(batch);

  /* In order, both ways. What an iterator returns is its own until it moves. */
  rocksdb_iterator_t* it = rocksdb_create_iterator(db, read);
  printf("%d entries:", count(db, read));
  for (rocksdb_iter_seek_to_first(it); rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
    size_t key_length, value_length;
    const char* key = rocksdb_iter_key(it, &key_length);
    const char* bytes = rocksdb_iter_value(it, &value_length);
    printf(" %.*s=%.*s", (int)key_length, key, (int)value_length, bytes);
  }
  printf("\nbackwards from c:");
  for (rocksdb_iter_seek_for_prev(it, "c", 1); rocksdb_iter_valid(it); rocksdb_iter_prev(it)) {
    size_t length;
    const char* key = rocksdb_iter_key(it, &length);
    printf(" %.*s", (int)length, key);
  }
  printf("\n");
  rocksdb_iter_get_error(it, &error);
  check(error);
  rocksdb_iter_destroy(it);

  /* A snapshot keeps what was there. */
  const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
  put(db, "apple", "10");
  put(db, "damson", "4");
  put(db, "elder", "5");
  rocksdb_readoptions_set_snapshot(read, snapshot);
  char* then = get(db, read, "apple");
  rocksdb_readoptions_set_snapshot(read, NULL);
  char* now = get(db, read, "apple");
  printf("snapshot sees apple=%s, now apple=%s\n", then, now);
  free(then);
  free(now);
  rocksdb_release_snapshot(db, snapshot);

  /* A checkpoint is a database of its own, made of links to the same files. */
  rocksdb_checkpoint_t* maker = rocksdb_checkpoint_object_create(db, &error);
  check(error);
  rocksdb_checkpoint_create(maker, path[1], 0, &error);
  check(error);
  rocksdb_checkpoint_object_destroy(maker);
  rocksdb_t* copy = rocksdb_open_for_read_only(options, path[1], 0, &error);
  check(error);
  printf("checkpoint: %d entries\n", count(copy, read));
  rocksdb_close(copy);

  /* Backups share files with each other, not with the database. */
  rocksdb_backup_engine_t* backups = rocksdb_backup_engine_open(options, path[2], &error);
  check(error);
  rocksdb_backup_engine_create_new_backup(backups, db, &error);
  check(error);
  rocksdb_restore_options_t* how = rocksdb_restore_options_create();
  rocksdb_backup_engine_restore_db_from_latest_backup(backups, path[3], path[3], how, &error);
  check(error);
  rocksdb_restore_options_destroy(how);
  rocksdb_backup_engine_close(backups);
  copy = rocksdb_open_for_read_only(options, path[3], 0, &error);
  check(error);
  printf("restored backup: %d entries\n", count(copy, read));
  rocksdb_close(copy);

  /* An error is text that begins with its kind. */
  rocksdb_options_set_error_if_exists(options, 1);
  rocksdb_close(db);
  db = rocksdb_open(options, path[0], &error);
  if (db != NULL || error == NULL) return 1;
  printf("refused: %.*s\n", (int)strcspn(error, ":"), error);
  rocksdb_free(error);

  rocksdb_writeoptions_destroy(write);
  rocksdb_readoptions_destroy(read);
  rocksdb_options_destroy(options);
  return 0;
}
