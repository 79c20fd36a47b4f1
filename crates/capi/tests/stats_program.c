/* A program that knows nothing of ESKER_STATS: opens databases, writes, closes, forks.

       stats_program DIRECTORY hold       one database, until standard input ends
       stats_program DIRECTORY fork       the same, and a child that lives as long; prints its number
       stats_program DIRECTORY loop N     N rounds of open, write, flush, fork, close
   It prints "ready" when the database is open, and "signals N" at the end: how many signals a
   thread of its own took. */

#include <pthread.h>
#include <rocksdb/c.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(char *error) {
  if (error) {
    fprintf(stderr, "%s\n", error);
    exit(1);
  }
}

static rocksdb_t *opened(const char *path) {
  rocksdb_options_t *options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_enable_statistics(options);
  char *error = NULL;
  rocksdb_t *db = rocksdb_open(options, path, &error);
  must(error);
  rocksdb_options_destroy(options);
  return db;
}

static void put(rocksdb_t *db, int n) {
  char key[32], *error = NULL;
  int length = snprintf(key, sizeof key, "private-key-%d", n);
  rocksdb_writeoptions_t *write = rocksdb_writeoptions_create();
  rocksdb_put(db, write, key, length, "private-value", 13, &error);
  must(error);
  rocksdb_writeoptions_destroy(write);
}

static void flush(rocksdb_t *db) {
  char *error = NULL;
  rocksdb_flushoptions_t *how = rocksdb_flushoptions_create();
  rocksdb_flush(db, how, &error);
  must(error);
  rocksdb_flushoptions_destroy(how);
}

static void until_input_ends(void) {
  char byte;
  while (read(0, &byte, 1) > 0) {
  }
}

static pthread_t owner;
static volatile sig_atomic_t taken, foreign;

static void on_signal(int signal) {
  (void)signal;
  taken++;
  if (!pthread_equal(pthread_self(), owner)) foreign++;
}

static void hold(rocksdb_t *db) {
  put(db, 1);
  flush(db);
  printf("ready\n");
  fflush(stdout);
  until_input_ends();
  rocksdb_close(db);
  printf("signals %d foreign %d\n", (int)taken, (int)foreign);
}

static void forked(rocksdb_t *db) {
  int pipes[2];
  if (pipe(pipes)) exit(1);
  pid_t child = fork();
  if (child == 0) {
    /* It keeps what it inherited, and lives on when its parent is gone. */
    char byte;
    close(pipes[1]);
    while (read(pipes[0], &byte, 1) > 0) {
    }
    sleep(20);
    _exit(0);
  }
  close(pipes[0]);
  printf("child %d\n", (int)child);
  hold(db);
}

static void rounds(const char *path, int count) {
  for (int n = 0; n < count; n++) {
    rocksdb_t *db = opened(path);
    put(db, n);
    if (n % 3 == 0) flush(db);
    pid_t child = fork();
    if (child == 0) _exit(0);
    rocksdb_close(db);
    int status;
    waitpid(child, &status, 0);
    if (status != 0) exit(2);
    if (n == 0) {
      printf("ready\n");
      fflush(stdout);
    }
  }
  printf("rounds %d\n", count);
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  owner = pthread_self();
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  /* SIGPIPE keeps its default: it ends the process. */
  sigaction(SIGUSR1, &action, NULL);
  const char *what = argv[2];
  if (!strcmp(what, "loop")) {
    rounds(argv[1], argc > 3 ? atoi(argv[3]) : 10);
  } else if (!strcmp(what, "fork")) {
    forked(opened(argv[1]));
  } else {
    hold(opened(argv[1]));
  }
  return 0;
}
