//! The traits that an environment implements, and [`Env`], the value that holds one of each.
//!
//! Contracts that callers rely on: offsets and sizes are bytes; a short read means end of file; an
//! `append` either takes all the bytes or fails; after a failed `append` or `sync` the file must
//! not be used again except to be dropped (its tail is unknown). Paths are whole paths.

use crate::ahead::PendingRead;
use crate::aligned::AlignedBuf;
use esker_status::{Error, LockHolder, Result};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What carries out large requests in the background, for a filesystem that has the choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BackgroundIo {
    /// What is the better for the kind of file: io_uring for direct I/O, threads for what goes
    /// through the page cache.
    Auto,
    /// Threads of the filesystem.
    #[default]
    Threads,
    /// The kernel, through an io_uring: reads of both kinds, and direct writes.
    IoUring,
}

impl BackgroundIo {
    /// Whether requests of a file that is direct, or is not, go to a ring.
    pub(crate) fn is_by_ring(self, direct: bool) -> bool {
        match self {
            BackgroundIo::Auto => direct,
            BackgroundIo::Threads => false,
            BackgroundIo::IoUring => true,
        }
    }
}

/// How a file will be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Bypass the page cache (`O_DIRECT`): the implementation does the aligning.
    pub direct: bool,
    /// Expect random access: the kernel's own readahead is switched off.
    pub random: bool,
}

/// How long the bytes of a file are expected to stay, beside those of other files of the database:
/// a device that puts bytes of one expectation together has less to move when it makes room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lifetime {
    /// Nobody says.
    #[default]
    Unknown,
    /// Until the next flush, as a log's.
    Short,
    /// Until the next compaction or the one after it.
    Medium,
    /// Longer than that.
    Long,
    /// Longest of all.
    Extreme,
}

/// How a file will be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// How long its bytes are expected to stay.
    pub lifetime: Lifetime,
    /// Bypass the page cache (`O_DIRECT`): the implementation does the aligning and the buffering.
    pub direct: bool,
    /// Bytes after which the kernel is asked to start write-back (`sync_file_range`); 0 never.
    pub bytes_per_sync: u64,
    /// Bytes collected in memory before a `write` call; 0 passes every append through.
    pub buffer_size: usize,
    /// Bytes reserved ahead of the end (`fallocate`, size unchanged); 0 never.
    pub preallocate: u64,
    /// Fail when the file exists, instead of truncating it.
    pub exclusive: bool,
    /// Have full buffers written by another thread or the kernel while the next one is filled,
    /// where that pays, and sync there when asked to begin; an error shows in a later call. At
    /// least 256 KB are collected then. A filesystem without such threads does everything at once.
    pub background: bool,
    /// Put appended bytes into a shared mapping of the new file, where that is to be had, instead
    /// of calling for each: they survive the process all the same. Not with a buffer and not with
    /// `direct`. Until it is closed the file has zeros behind what was appended.
    pub mapped: bool,
    /// Another file may begin in this one ([`FileSystem::reuse`]): closed it keeps what was
    /// reserved or made ready for it, behind what was appended.
    pub reusable: bool,
}

impl WriteOptions {
    /// The same for a file that must not exist.
    #[must_use]
    pub fn exclusively(self) -> Self {
        WriteOptions {
            exclusive: true,
            ..self
        }
    }
}

/// What a directory entry is, as far as the engine cares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name, without the directory. Names that are not UTF-8 are passed lossily.
    pub name: String,
    /// Whether it is a regular file.
    pub is_file: bool,
}

/// What `stat` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Length in bytes.
    pub len: u64,
    /// Last modification, seconds since the Unix epoch.
    pub modified_unix: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
}

/// A file open for reading at any offset, from any thread.
pub trait RandomAccessFile: Send + Sync + fmt::Debug {
    /// Fills `buf` from `offset`; fewer bytes than asked for mean end of file.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize>;
    /// The `len` bytes from `offset` in memory of their own, which is not filled before; fewer
    /// bytes mean end of file.
    fn read_to_vec(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let mut out = vec![0; len];
        let got = self.read_at(offset, &mut out)?;
        out.truncate(got);
        Ok(out)
    }
    /// The length when it was opened.
    fn len(&self) -> u64;
    /// Whether the file was empty when it was opened.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Whether reads bypass the page cache.
    fn is_direct(&self) -> bool {
        false
    }
    /// Begins to read `len` bytes from `offset` into memory that is aligned for direct I/O; the
    /// offset and the length should be aligned too. Where nobody else can read, it is done at once.
    fn begin_read(self: Arc<Self>, offset: u64, len: usize) -> PendingRead {
        let mut buffer = AlignedBuf::new(len);
        let got = self.read_at(offset, &mut buffer.as_mut_slice()[..len]);
        PendingRead::done(buffer, got)
    }
    /// A memory-mapped view of `offset..offset + len`, when the file has one.
    fn mapped(&self, _offset: u64, _len: usize) -> Option<&[u8]> {
        None
    }
    /// The path it was opened by, for messages.
    fn path(&self) -> &Path;
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
    /// Whether nothing was appended.
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
    /// What `stat` says; `NotFound` subcode [`esker_status::Subcode::PathNotFound`] when absent.
    fn metadata(&self, path: &Path) -> Result<Metadata>;
    /// Whether something is at `path`. An error other than absence is an error.
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
    /// The same files, with large requests in the background carried by what is `wanted` where it
    /// is to be had, and by threads where it is not. `None` for a filesystem that has no choice.
    fn with_background_io(&self, _wanted: BackgroundIo) -> Option<Arc<dyn FileSystem>> {
        None
    }
    /// In words, what carries the large requests of direct files, or of others; `None` when nothing
    /// does.
    fn background_carrier(&self, _direct: bool) -> Option<String> {
        None
    }
    /// The canonical absolute path.
    fn canonical(&self, path: &Path) -> Result<PathBuf>;
}

/// Time.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Microseconds on a clock that never goes back.
    fn now_us(&self) -> u64;
    /// Nanoseconds on the same clock.
    fn now_ns(&self) -> u64;
    /// Microseconds since the Unix epoch.
    fn unix_us(&self) -> u64;
    /// Sleeps.
    fn sleep(&self, duration: Duration);
    /// Nanoseconds of processor time that the calling thread took; 0 where that is not known.
    fn thread_cpu_ns(&self) -> u64 {
        0
    }
    /// The cheapest counter there is that ticks evenly, for the time between two readings:
    /// nanoseconds where a machine has nothing better. It may be a little behind another thread's
    /// reading.
    fn ticks(&self) -> u64 {
        self.now_ns()
    }
    /// About as many ticks as take so long.
    fn ticks_of(&self, duration: Duration) -> u64 {
        u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Randomness that need not be secret.
pub trait Entropy: Send + Sync + fmt::Debug {
    /// Sixty-four random bits.
    fn next_u64(&self) -> u64;
}

/// Waits for a thread started by an [`Executor`].
pub trait JoinHandle: Send {
    /// Waits for the thread to end.
    fn join(self: Box<Self>);
}

/// How long a thread of an [`Executor`] works before it lets others go on that wait for a
/// processor.
pub const TURN: Duration = Duration::from_micros(150);

/// Where threads come from.
pub trait Executor: Send + Sync + fmt::Debug {
    /// Starts a named thread. It works for others, so where processors are short, threads of the
    /// process that wake up go before it, and none is interrupted when it wakes up.
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn JoinHandle>>;
    /// Starts a named thread that gives way to all others where processors are short: for work that
    /// can wait. Where threads have no such thing it is a thread like any other.
    fn spawn_patient(
        &self,
        name: &str,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<Box<dyn JoinHandle>> {
        self.spawn(name, body)
    }
    /// Lets threads go on that wait for the caller's processor. Long work calls it about once a
    /// [`TURN`].
    fn give_way(&self) {}
    /// How many threads can run at once.
    fn parallelism(&self) -> usize;
}

/// One of each: the world that a database runs in.
#[derive(Clone, Debug)]
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
