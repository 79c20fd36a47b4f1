//! The POSIX filesystem: system calls through `rustix`, every one retried on `EINTR`, every short
//! transfer continued, every error naming its path.
//!
//! Thread-safety: [`PosixFs`] is a handle to threads for background I/O, started on first use; the
//! table of locks that this process holds is shared.

mod lock;
mod mapped;
mod owner;
mod read;
mod write;

use crate::file_reuse::{UnnamedFile, reuse_file};
use crate::pool::IoPool;
use crate::promise::Promise;
use crate::sys::calls;
use crate::system::ThreadExecutor;
use crate::write_behind::{BufferedFile, WriteBehind};
use crate::{
    BackgroundIo, Call, DirEntry, Errand, FileLock, FileSystem, Metadata, RandomAccessFile,
    ReadOptions, WritableFile, WriteOptions,
};
use esker_status::{Error, Result};
use esker_sync::check_may_block;
use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags, RawMode};
use rustix::io::{Errno, pwrite, retry_on_intr};
use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FILE_MODE: RawMode = 0o644;
const DIR_MODE: RawMode = 0o755;
/// Bytes of a buffer of a file in the page cache.
const COPIED_AT_ONCE: usize = 256 << 10;

/// The real disk. Clones share the buffers and the ring of background reads and writes; all share
/// their threads.
#[derive(Clone, Debug)]
pub struct PosixFs {
    io: Arc<IoPool>,
    wanted: BackgroundIo,
}

impl PosixFs {
    /// The machine's filesystem.
    pub fn new() -> Self {
        PosixFs {
            io: Arc::new(IoPool::on(ThreadExecutor::new().io_threads())),
            wanted: BackgroundIo::default(),
        }
    }

    /// Returns a filesystem with another carrier of large requests.
    pub(crate) fn carried_by(&self, wanted: BackgroundIo) -> PosixFs {
        PosixFs {
            io: Arc::clone(&self.io),
            wanted,
        }
    }

    #[cfg(test)]
    pub(crate) fn carrier(&self) -> BackgroundIo {
        self.wanted
    }

    /// An empty `file` as the options want it written.
    fn mapped(&self, file: write::PosixWriter, options: WriteOptions) -> Box<dyn WritableFile> {
        let file = if options.mapped {
            file.through_mapping(self.io.queue())
        } else {
            file
        };
        self.written(file, options)
    }

    /// `file` as the options want it written.
    fn written(&self, file: write::PosixWriter, options: WriteOptions) -> Box<dyn WritableFile> {
        if !options.background {
            return Box::new(file);
        }
        let queue = self.io.queue();
        let ring = if options.direct {
            queue.ring(self.wanted, true)
        } else {
            None
        };
        let file: Box<dyn BufferedFile> = match ring {
            Some(ring) => Box::new(file.through_ring(ring, queue)),
            None => Box::new(file),
        };
        // A copy into the page cache is the more expensive the less of the buffer is still in the
        // processor's cache.
        let most = if options.direct {
            usize::MAX
        } else {
            COPIED_AT_ONCE
        };
        let file = WriteBehind::new(file, queue, options.buffer_size.min(most));
        Box::new(if options.direct && ring.is_none() {
            file
        } else {
            file.writing_here()
        })
    }
}

impl Default for PosixFs {
    fn default() -> Self {
        Self::new()
    }
}

/// `result`, with an error that says what was done to which path.
fn named<T>(doing: &str, path: &Path, result: Result<T, Errno>) -> Result<T> {
    result.map_err(|e| Error::io(doing, path, &e.into()))
}

/// Runs a system call until no signal interrupts it.
fn call<T>(doing: &str, path: &Path, f: impl FnMut() -> rustix::io::Result<T>) -> Result<T> {
    check_may_block(doing);
    named(doing, path, retry_on_intr(f))
}

fn open(doing: &str, path: &Path, flags: OFlags) -> Result<OwnedFd> {
    call(doing, path, || {
        fs::open(
            path,
            flags | OFlags::CLOEXEC,
            Mode::from_raw_mode(FILE_MODE),
        )
    })
}

/// Returns the options of the file itself: one that is written behind the appends gets whole
/// buffers and needs none of its own.
fn below(options: WriteOptions) -> WriteOptions {
    if !options.background {
        return options;
    }
    WriteOptions {
        buffer_size: 0,
        ..options
    }
}

fn sync_dir(path: &Path) -> Result<()> {
    let fd = open("open directory", path, OFlags::RDONLY | OFlags::DIRECTORY)?;
    match retry_on_intr(|| fs::fsync(&fd)) {
        // Some filesystems cannot sync directories and say so: nothing can be done about it.
        Err(Errno::INVAL) => Ok(()),
        other => named("sync directory", path, other),
    }
}

fn seconds(t: i64) -> u64 {
    u64::try_from(t).unwrap_or(0)
}

/// The kind of what a name in a directory leads to: a symbolic link is what its target is, and
/// stays a link where it leads nowhere. `None` when the name is gone.
fn kind_of_target(dir: &OwnedFd, name: &CStr) -> rustix::io::Result<Option<FileType>> {
    let stat = |flags| match retry_on_intr(|| fs::statat(dir, name, flags)) {
        Ok(s) => Ok(Some(FileType::from_raw_mode(s.st_mode))),
        Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::ACCESS) => Ok(None),
        Err(e) => Err(e),
    };
    match stat(AtFlags::empty())? {
        Some(kind) => Ok(Some(kind)),
        None => stat(AtFlags::SYMLINK_NOFOLLOW),
    }
}

impl FileSystem for PosixFs {
    fn open_read(&self, path: &Path, options: ReadOptions) -> Result<Arc<dyn RandomAccessFile>> {
        let io = Some((Arc::clone(self.io.queue()), self.wanted));
        Ok(Arc::new(read::PosixReader::open(path, options, io)?))
    }

    fn create(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WritableFile>> {
        let file = write::PosixWriter::create(path, below(options))?;
        Ok(self.mapped(file, options))
    }

    fn create_over(
        &self,
        spare: &Path,
        path: &Path,
        options: WriteOptions,
    ) -> Result<Box<dyn WritableFile>> {
        let over = UnnamedFile::over(self.clone(), spare, path, |temporary| {
            let file = write::PosixWriter::open_over(temporary, below(options))?;
            Ok(file.map(|file| self.written(file, options)))
        });
        match over? {
            Some(file) => Ok(Box::new(file)),
            None => self.create(path, options.exclusively()),
        }
    }

    fn reuse(
        &self,
        spare: &Path,
        path: &Path,
        options: WriteOptions,
    ) -> Result<Option<Box<dyn WritableFile>>> {
        reuse_file(self, spare, path, |temporary| {
            let file = write::PosixWriter::open_over(temporary, below(options))?;
            let file = file.map(|file| file.begun_as(path));
            Ok(file.map(|file| self.mapped(file, options)))
        })
    }

    fn open_append(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WritableFile>> {
        let file = write::PosixWriter::open_append(path, below(options))?;
        Ok(self.written(file, options))
    }

    fn read_all(&self, path: &Path, limit: u64) -> Result<Vec<u8>> {
        let file = read::PosixReader::open(path, ReadOptions::default(), None)?;
        let too_long = |len: u64| {
            Error::corruption(format!(
                "file of {len} bytes is longer than the limit of {limit}"
            ))
            .with_file(path)
        };
        if file.len() > limit {
            return Err(too_long(file.len()));
        }
        // One byte more than expected tells a file that is still growing (or has no length, as in
        // /proc).
        let mut bytes = Vec::new();
        let mut want = file.len() as usize + 1;
        loop {
            let had = bytes.len();
            bytes.resize(had + want, 0);
            let got = file.read_at(had as u64, &mut bytes[had..])?;
            bytes.truncate(had + got);
            if bytes.len() as u64 > limit {
                return Err(too_long(bytes.len() as u64));
            }
            if got < want {
                return Ok(bytes);
            }
            want = 64 << 10;
        }
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let fd = open("open directory", path, flags)?;
        let dir = named("read directory", path, fs::Dir::read_from(&fd))?;
        let mut entries = Vec::new();
        for entry in dir {
            let entry = named("read directory", path, entry)?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let is_file = match entry.file_type() {
                FileType::Unknown | FileType::Symlink => match kind_of_target(&fd, name) {
                    Ok(Some(kind)) => kind.is_file(),
                    // It went away between the two calls.
                    Ok(None) => continue,
                    Err(e) => return Err(Error::io("stat", path, &e.into())),
                },
                kind => kind.is_file(),
            };
            entries.push(DirEntry {
                name: name.to_string_lossy().into_owned(),
                is_file,
            });
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        match retry_on_intr(|| fs::mkdir(path, Mode::from_raw_mode(DIR_MODE))) {
            Ok(()) => Ok(()),
            Err(Errno::NOENT) => {
                let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) else {
                    return Err(Error::io("create directory", path, &Errno::NOENT.into()));
                };
                self.create_dir_all(parent)?;
                match retry_on_intr(|| fs::mkdir(path, Mode::from_raw_mode(DIR_MODE))) {
                    // Somebody else made it meanwhile.
                    Err(Errno::EXIST) => Ok(()),
                    other => named("create directory", path, other),
                }
            }
            Err(_) if self.metadata(path).is_ok_and(|m| m.is_dir) => Ok(()),
            Err(e) => Err(Error::io("create directory", path, &e.into())),
        }
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        call("remove directory", path, || fs::rmdir(path))
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        call("remove", path, || fs::unlink(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let doing = || format!("rename to {}", to.display());
        retry_on_intr(|| fs::rename(from, to)).map_err(|e| Error::io(&doing(), from, &e.into()))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        // A symbolic link itself would get the second name, and would lead elsewhere from there.
        match retry_on_intr(|| fs::linkat(CWD, from, CWD, to, AtFlags::SYMLINK_FOLLOW)) {
            Ok(()) => Ok(()),
            Err(e @ (Errno::XDEV | Errno::OPNOTSUPP | Errno::PERM | Errno::NOSYS)) => {
                let why = std::io::Error::from(e);
                Err(
                    Error::not_supported(format!("hard link to {}: {why}", to.display()))
                        .with_file(from),
                )
            }
            Err(e) => Err(Error::io(
                &format!("hard link to {}", to.display()),
                from,
                &e.into(),
            )),
        }
    }

    fn write_at(&self, path: &Path, offset: u64, data: &[u8]) -> Result<()> {
        let fd = open("open to overwrite", path, OFlags::WRONLY)?;
        let mut done = 0;
        while done < data.len() {
            done += call("overwrite", path, || {
                pwrite(&fd, &data[done..], offset + done as u64)
            })?;
        }
        call("sync", path, || calls::sync_data(fd.as_fd()))
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        sync_dir(path)
    }

    fn begin_sync_dir(&self, path: &Path) -> Errand {
        let path = path.to_owned();
        self.begin(Box::new(move || sync_dir(&path)))
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        let s = call("stat", path, || fs::stat(path))?;
        Ok(Metadata {
            len: u64::try_from(s.st_size).unwrap_or(0),
            modified_unix: seconds(s.st_mtime as i64),
            is_dir: FileType::from_raw_mode(s.st_mode).is_dir(),
        })
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        match retry_on_intr(|| fs::stat(path)) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(e) => Err(Error::io("stat", path, &e.into())),
        }
    }

    fn truncate(&self, path: &Path, len: u64) -> Result<()> {
        let fd = open(
            "open for truncation",
            path,
            OFlags::WRONLY | OFlags::NOFOLLOW,
        )?;
        call("truncate", path, || fs::ftruncate(&fd, len))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        Ok(Box::new(lock::PosixLock::take(path, lock::LockMode::All)?))
    }

    fn lock_shared(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        Ok(Box::new(lock::PosixLock::take(
            path,
            lock::LockMode::Owners,
        )?))
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        let s = call("statvfs", path, || fs::statvfs(path))?;
        Ok(s.f_bavail.saturating_mul(s.f_frsize))
    }

    fn with_background_io(&self, wanted: BackgroundIo) -> Option<Arc<dyn FileSystem>> {
        Some(Arc::new(self.carried_by(wanted)))
    }

    fn background_carrier(&self, direct: bool) -> Option<String> {
        Some(self.io.queue().carrier(self.wanted, direct))
    }

    fn begin(&self, call: Call) -> Errand {
        Errand::promised(Promise::begin(self.io.queue(), call))
    }

    fn canonical(&self, path: &Path) -> Result<PathBuf> {
        std::fs::canonicalize(path).map_err(|e| Error::io("resolve", path, &e))
    }
}
