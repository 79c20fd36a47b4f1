//! Files that the system refuses to read though they may be whole: too many are open, or the disk
//! fails. A repair ends before anything changes; what only reads says the cause.

mod common;

use common::damage::{checksums, count, files, flip, make};
use common::{Ran, esker_on};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A database with a damaged table, so that a repair has a reason to go on.
fn damaged() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let db = dir.path().join("db");
    make(&db);
    flip(&files(&db, ".sst")[2], 100);
    (dir, db)
}

/// `esker WORDS DB` with at most `open` open files.
fn limited(open: u32, words: &str, db: &Path) -> Ran {
    let program = env!("CARGO_BIN_EXE_esker");
    let line = format!("ulimit -n {open}; exec {program} {words}{}", db.display());
    let output = Command::new("sh").args(["-c", &line]).output();
    Ran::of(output.expect("the command runs"))
}

#[test]
fn too_many_open_files_stop_a_repair_before_anything_changes() {
    let mut refused = 0;
    for open in 4..64 {
        let (_dir, db) = damaged();
        let before = checksums(&db);
        let ran = limited(open, "repair --db=", &db);
        if ran.code == 1 {
            assert!(ran.err.contains("Too many open files"), "{}", ran.err);
            if checksums(&db) == before {
                refused += 1;
                continue;
            }
        }
        // It is done, though the database may not have been opened behind it.
        esker_on(&["check"], &db).expect(0);
        assert!(count(&db) > 5_900, "{}{}", ran.out, ran.err);
        if ran.code == 3 {
            assert!(refused > 0, "no limit was met");
            return;
        }
        ran.expect(1);
    }
    panic!("no repair was done");
}

/// Reads of files whose path ends with `ESKER_TEST_EIO` fail.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int fails(int fd) {
    const char *end = getenv("ESKER_TEST_EIO");
    char link[64], path[4096];
    if (!end) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    size_t len = strlen(end);
    return n > 0 && (size_t)n >= len && memcmp(path + n - len, end, len) == 0;
}

ssize_t read(int fd, void *to, size_t n) {
    ssize_t (*real)(int, void *, size_t) = dlsym(RTLD_NEXT, "read");
    if (fails(fd)) { errno = EIO; return -1; }
    return real(fd, to, n);
}

ssize_t pread64(int fd, void *to, size_t n, off64_t at) {
    ssize_t (*real)(int, void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pread64");
    if (fails(fd)) { errno = EIO; return -1; }
    return real(fd, to, n, at);
}
"#;

/// The library that makes reads fail; `None`, and a word, where none can be made.
fn shim(dir: &Path) -> Option<PathBuf> {
    let (source, library) = (dir.join("eio.c"), dir.join("eio.so"));
    std::fs::write(&source, SHIM).expect("written");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .output();
    match built {
        Ok(built) if built.status.success() => Some(library),
        built => {
            println!("skipped: no library can be made: {built:?}");
            None
        }
    }
}

#[test]
fn a_failing_disk_stops_a_repair_before_anything_changes() {
    let tools = tempfile::tempdir().expect("a directory");
    let Some(library) = shim(tools.path()) else {
        return;
    };
    for part in [".sst", ".log", "MANIFEST", "CURRENT", "IDENTITY"] {
        let (_dir, db) = damaged();
        let before = checksums(&db);
        let victim = &files(&db, part)[0];
        let run = |words: &[&str]| {
            let output = Command::new(env!("CARGO_BIN_EXE_esker"))
                .args(words)
                .env("LD_PRELOAD", &library)
                .env("ESKER_TEST_EIO", victim)
                .output();
            Ran::of(output.expect("the command runs"))
        };
        let (at, flag) = (db.display().to_string(), format!("--db={}", db.display()));
        for words in [&["repair", &*flag, "--dry-run"][..], &["repair", &flag]] {
            let ran = run(words).expect(1);
            assert!(
                ran.err.contains("Input/output error"),
                "{part}: {}",
                ran.err
            );
            assert!(
                ran.err.contains("nothing was changed"),
                "{part}: {}",
                ran.err
            );
            assert_eq!(checksums(&db), before, "{part}");
        }
        if part != "IDENTITY" {
            let ran = run(&["check", &at]).expect(1);
            let text = format!("{}{}", ran.out, ran.err);
            assert!(text.contains("Input/output error"), "{part}: {text}");
        }
        assert_eq!(checksums(&db), before, "{part}");
    }
}
