//! The filesystem as a trait, and [`Env`], the value that holds one of each part of the world.
//!
//! Contracts that callers rely on: offsets and sizes are bytes; a short read means end of file; an
//! `append` either takes all the bytes or fails; after a failed `append` or `sync` the file must
//! not be used again except to be dropped (its tail is unknown). Paths are whole paths.

use crate::errand::{Call, Errand};
use crate::exec::{Clock, Entropy, Executor};
use crate::file_options::{ReadOptions, WriteOptions};
use crate::pool::BackgroundIo;
use crate::random_access::RandomAccessFile;
use esker_status::{Error, LockHolder, Result};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name, without the directory. Names that are not UTF-8 are passed lossily.
    pub name: String,
    /// Tells whether it is a regular file, or a symbolic link to one.
    pub is_file: bool,
}

/// Metadata of a file, from `stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Length in bytes.
    pub len: u64,
    /// Last modification, seconds since the Unix epoch.
    pub modified_unix: u64,
    /// True if it is a directory.
    pub is_dir: bool,
}

/// A file being written from front to back, by one thread at a time.
pub trait WritableFile: Send + fmt::Debug {
    /// Adds `data` at the end.
    fn append(&mut self, data: &[u8]) -> Result<()>;
    /// Hands buffered bytes to the operating system: they survive the death of the process.
    fn flush(&mut self) -> Result<()>;
    /// Makes everything appended survive power loss (`fdatasync`, plus the length).
    fn sync(&mut self) -> Result<()>;
    /// Begins what [`WritableFile::sync`] waits for, where somebody else can do it meanwhile.
    fn begin_sync(&mut self) -> Result<()> {
        Ok(())
    }
    /// Bytes appended so far.
    fn len(&self) -> u64;
    /// Returns whether nothing was appended.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Flushes, gives preallocated space back and closes. Does not sync.
    fn close(&mut self) -> Result<()>;
    /// The path it was created at, for messages.
    fn path(&self) -> &Path;
    /// Processor time that other threads have spent on the file, in nanoseconds.
    fn background_cpu_ns(&self) -> u64 {
        0
    }
}

/// A lock on a path; dropping it releases the lock.
pub trait FileLock: Send + Sync + fmt::Debug {}

/// The error of a second taker of the lock on `path` in one process: `since` is the Unix second at
/// which it was taken, and the number of the thread that took it.
pub fn lock_held_here(path: &Path, since: (u64, u64)) -> Error {
    const ENOLCK: i32 = 37;
    let source = std::io::Error::from_raw_os_error(ENOLCK);
    let (second, thread) = since;
    let doing =
        format!("lock hold by current process, acquire time {second} acquiring thread {thread}");
    Error::lock(&doing, path, &source).with_lock_holder(LockHolder::ThisProcess)
}

/// The error `e` of a request for the lock of the database in `dir`, with a hint that says who has
/// the database open.
pub fn explain_lock(e: Error, dir: &Path) -> Error {
    match e.lock_holder() {
        Some(holder) => {
            let hint = format!("{} is open in {holder}", dir.display());
            e.with_hint(hint)
        }
        None => e,
    }
}

/// The filesystem.
pub trait FileSystem: Send + Sync + fmt::Debug {
    /// Opens an existing file for reading.
    fn open_read(&self, path: &Path, options: ReadOptions) -> Result<Arc<dyn RandomAccessFile>>;
    /// Creates a file for writing, truncating one that exists unless `exclusive`. Never follows a
    /// link at the last component.
    fn create(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WritableFile>>;
    /// Creates a file that must not exist, nor appear meanwhile, in the storage of `spare` where
    /// that can be done unseen. `spare` is gone when this succeeds, unless it cannot be removed;
    /// after an error it may be there. The new file may have its name only once it is closed. The
    /// two should lie in one directory.
    fn create_over(
        &self,
        spare: &Path,
        path: &Path,
        options: WriteOptions,
    ) -> Result<Box<dyn WritableFile>> {
        let made = self.create(path, options.exclusively())?;
        let _gone = self.remove_file(spare);
        Ok(made)
    }
    /// Begins the file `path`, which must not exist, in the storage of `spare` where that can be
    /// done unseen: at once under its name, with the bytes of `spare` that were not written over
    /// behind what is appended. For files whose records say which file they belong to. `None` where
    /// it cannot be done, and then `spare` may be gone. The two must lie in one directory.
    fn reuse(
        &self,
        _spare: &Path,
        _path: &Path,
        _options: WriteOptions,
    ) -> Result<Option<Box<dyn WritableFile>>> {
        Ok(None)
    }
    /// Opens an existing file for appending at its end.
    fn open_append(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WritableFile>>;
    /// The whole file. Fails with `Corruption` when it is longer than `limit`.
    fn read_all(&self, path: &Path, limit: u64) -> Result<Vec<u8>>;
    /// The entries of a directory, in name order, without `.` and `..`.
    fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>>;
    /// Makes a directory and its parents; one that exists is fine.
    fn create_dir_all(&self, path: &Path) -> Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> Result<()>;
    /// Moves a file over whatever is at `to`, atomically.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Gives a file a second name. `NotSupported` when the filesystem cannot.
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()>;
    /// Makes creations, renames and removals in a directory survive power loss.
    fn sync_dir(&self, path: &Path) -> Result<()>;
    /// Begins what [`FileSystem::sync_dir`] does, where another thread can.
    fn begin_sync_dir(&self, path: &Path) -> Errand {
        Errand::made(self.sync_dir(path))
    }
    /// Returns the metadata from `stat`; `NotFound` subcode [`esker_status::Subcode::PathNotFound`]
    /// when absent.
    fn metadata(&self, path: &Path) -> Result<Metadata>;
    /// Returns whether something is at `path`. An error other than absence is an error.
    fn exists(&self, path: &Path) -> Result<bool>;
    /// Puts `data` in place of what an existing file has at `offset`, and makes that survive power
    /// loss. `NotSupported` where files are written from front to back alone.
    fn write_at(&self, path: &Path, _offset: u64, _data: &[u8]) -> Result<()> {
        Err(Error::not_supported("writing in the middle of a file").with_file(path))
    }
    /// Cuts a file to `len` bytes.
    fn truncate(&self, path: &Path, len: u64) -> Result<()>;
    /// Takes the exclusive lock on `path`, creating the file when absent. A second taker, in this
    /// process or another, gets `Io` with [`esker_status::Subcode::Locked`] and RocksDB's text, and
    /// is told the holder.
    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>>;
    /// Takes a lock on `path`, which must be there, that keeps out those who call
    /// [`FileSystem::lock`], and writes nothing. Several may hold it at once, where the filesystem
    /// can do that.
    fn lock_shared(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.metadata(path)?;
        self.lock(path)
    }
    /// Free bytes on the device that holds `path`.
    fn free_space(&self, path: &Path) -> Result<u64>;
    /// Returns the same filesystem, whose large background requests go to the carrier `wanted`
    /// where it is available, and to threads where it is not. `None` for a filesystem that has no
    /// choice.
    fn with_background_io(&self, _wanted: BackgroundIo) -> Option<Arc<dyn FileSystem>> {
        None
    }
    /// In words, what carries the large requests of direct files, or of others; `None` when nothing
    /// does.
    fn background_carrier(&self, _direct: bool) -> Option<String> {
        None
    }
    /// Has another thread make a call that waits for the disk, where there is one for it.
    fn begin(&self, call: Call) -> Errand {
        Errand::later(call)
    }
    /// The canonical absolute path.
    fn canonical(&self, path: &Path) -> Result<PathBuf>;
}

/// One of each: the world that a database runs in.
#[derive(Clone)]
pub struct Env {
    /// The filesystem.
    pub fs: Arc<dyn FileSystem>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// Threads.
    pub executor: Arc<dyn Executor>,
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env").finish_non_exhaustive()
    }
}
