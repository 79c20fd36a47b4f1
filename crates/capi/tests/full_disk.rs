//! A disk that is full, and files that may not grow, below the C library: writes are refused with
//! an error, reads go on, and writes resume by themselves once there is room.
//!
//! The full disk is a small tmpfs, where mounting one is permitted; the other limit is
//! `RLIMIT_FSIZE`, which is the whole process's, so the tests take turns.

mod common;

use common::{fine, told};
use rocksdb::*;
use std::ffi::{CString, c_char};
use std::path::Path;
use std::process::Command;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Held by the test that runs: the limit on files is everybody's.
static TURN: Mutex<()> = Mutex::new(());

/// Bytes of a value.
const VALUE: usize = 64 << 10;

/// Writes that are tried before the limit must have been met.
const MOST: u32 = 2_000;

/// Promised are ten seconds; a machine that does something else as well is given more.
const PATIENCE: Duration = Duration::from_secs(60);

fn value(n: u32) -> Vec<u8> {
    let mut state = u64::from(n) | 1 << 40;
    let mut noise = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 33) as u8
    };
    (0..VALUE).map(|_| noise()).collect()
}

/// A database with what a process knows of it.
struct Home {
    options: *mut rocksdb_options_t,
    write: *mut rocksdb_writeoptions_t,
    read: *mut rocksdb_readoptions_t,
    path: CString,
    db: *mut rocksdb_t,
    acknowledged: Vec<u32>,
    next: u32,
}

impl Home {
    fn new(dir: &Path) -> Home {
        let options = rocksdb_options_create();
        rocksdb_options_set_create_if_missing(options, 1);
        rocksdb_options_set_compression(options, 0);
        rocksdb_options_set_write_buffer_size(options, 1 << 20);
        let path = dir.join("db");
        let path = CString::new(path.to_str().expect("UTF-8")).expect("no NUL");
        let db = fine(|e| rocksdb_open(options, path.as_ptr(), e));
        Home {
            options,
            write: rocksdb_writeoptions_create(),
            read: rocksdb_readoptions_create(),
            path,
            db,
            acknowledged: Vec::new(),
            next: 0,
        }
    }

    /// Writes the next key; the error when it was refused.
    fn put(&mut self) -> Result<(), String> {
        let (n, mut error) = (self.next, null_mut());
        let (key, value) = (n.to_be_bytes(), value(n));
        let at: fn(&[u8]) -> *const c_char = |bytes| bytes.as_ptr().cast();
        rocksdb_put(
            self.db,
            self.write,
            at(&key),
            key.len(),
            at(&value),
            value.len(),
            &mut error,
        );
        self.next += 1;
        match told(error) {
            None => {
                self.acknowledged.push(n);
                Ok(())
            }
            Some(text) => Err(text),
        }
    }

    /// Writes until it is refused; the error.
    fn fill(&mut self) -> String {
        let refused = (0..MOST).find_map(|_| self.put().err());
        refused.expect("the limit is met")
    }

    /// All that was acknowledged is read.
    fn check(&self, when: &str) {
        for n in &self.acknowledged {
            let (key, mut len) = (n.to_be_bytes(), 0);
            let found =
                fine(|e| rocksdb_get(self.db, self.read, key.as_ptr().cast(), 4, &mut len, e));
            assert!(!found.is_null(), "{when}: {n} is gone");
            // SAFETY: the value has that many bytes.
            let bytes = unsafe { std::slice::from_raw_parts(found.cast::<u8>(), len) };
            assert!(bytes == value(*n), "{when}: {n} is another");
            rocksdb_free(found.cast());
        }
    }

    /// Writes until it is let again, and then some more.
    fn resume(&mut self, what: &str) {
        let start = Instant::now();
        while let Err(e) = self.put() {
            assert!(start.elapsed() < PATIENCE, "{what}: {e}");
            std::thread::sleep(Duration::from_millis(20));
        }
        println!("{what}: writes resume after {:?}", start.elapsed());
        for _ in 0..20 {
            self.put().expect("there is room");
        }
    }

    /// Closes the database and opens it again.
    fn reopen(&mut self) {
        rocksdb_close(self.db);
        self.db = fine(|e| rocksdb_open(self.options, self.path.as_ptr(), e));
    }

    /// The whole story: `room` lifts the limit.
    fn run(&mut self, what: &str, room: impl FnOnce()) {
        let error = self.fill();
        assert!(error.starts_with("IO error"), "{what}: {error}");
        self.check(what);
        room();
        self.resume(what);
        self.check("writes resumed");
        self.reopen();
        self.check("it was opened again");
        println!("{what}: {} writes", self.acknowledged.len());
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        rocksdb_close(self.db);
        rocksdb_options_destroy(self.options);
        rocksdb_writeoptions_destroy(self.write);
        rocksdb_readoptions_destroy(self.read);
    }
}

/// A filesystem of this many bytes at a directory.
struct Small<'a>(&'a Path);

impl Small<'_> {
    /// Mounts it, where that is permitted.
    fn mount(at: &Path, bytes: u64) -> Option<Small<'_>> {
        let size = format!("size={bytes}");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at);
        let done = command.output().ok()?;
        done.status.success().then_some(Small(at))
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let _gone = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_stops_writes_until_there_is_room() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().expect("a directory");
    let Some(_small) = Small::mount(dir.path(), 32 << 20) else {
        println!("a full disk: skipped, mounting a tmpfs is not permitted");
        return;
    };
    let ballast = dir.path().join("ballast");
    std::fs::write(&ballast, vec![1; 16 << 20]).expect("there is room");
    let mut home = Home::new(dir.path());
    home.run("a full disk", || {
        std::fs::remove_file(&ballast).expect("it goes");
    });
}

/// Sets how large files may grow; with `None` as large as the process may have them.
fn limit_files(bytes: Option<u64>) {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the pointer is to a value that lives as long as the calls.
    let done = unsafe {
        let got = libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit);
        limit.rlim_cur = bytes.unwrap_or(limit.rlim_max);
        got | libc::setrlimit(libc::RLIMIT_FSIZE, &limit)
    };
    assert_eq!(
        done, 0,
        "a process may lower its limit, and raise it to the hard one"
    );
}

#[test]
fn files_that_may_not_grow_stop_writes_until_they_may() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: no handler is installed; a write past the limit is an error then, and not the end of
    // the process.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let dir = tempfile::tempdir().expect("a directory");
    let mut home = Home::new(dir.path());
    (0..40).for_each(|_| home.put().expect("there is no limit"));
    limit_files(Some(300 << 10));
    home.run("a limit on files", || limit_files(None));
}
