//! Copying and reading files, by several threads, with checksums, a rate, progress and a way to
//! stop.
//!
//! The caller's thread is one of them, so that one thread needs no other. The first failure stops
//! the rest.

use crate::options::Progress;
use esker::codec::checksum::crc32c_extend;
use esker::env::{ReadOptions as FileReadOptions, WriteOptions as FileWriteOptions};
use esker::{Env, Error, ErrorKind, IoPriority, RateLimiter, Result};
use esker_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use esker_sync::{Arc, Mutex, Rank};
use std::path::{Path, PathBuf};

/// Bytes read at a time when nothing says otherwise.
const BUFFER: usize = 1 << 20;
/// Not more than this, whatever the options say.
const BUFFER_MAX: u64 = 64 << 20;
/// Held while the progress callback runs, which may use the database.
const PROGRESS: Rank = Rank::new(6, "backup progress");

/// The source of the bytes.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// The first bytes of a file.
    File {
        path: PathBuf,
        bytes: u64,
        /// True if the file must not have more.
        is_whole: bool,
    },
    /// These.
    Bytes(Vec<u8>),
}

/// A file to be read, and perhaps written elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) source: Source,
    /// Where the bytes go; nowhere when only their checksum is wanted.
    pub(crate) target: Option<PathBuf>,
    /// The CRC-32C that they must have.
    pub(crate) expected: Option<u32>,
}

/// Length and checksum of the bytes read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopiedBytes {
    pub(crate) bytes: u64,
    pub(crate) crc32c: u32,
}

/// How the tasks of one operation are carried out.
#[derive(Clone, Debug)]
pub(crate) struct CopyTasks {
    /// Where the bytes come from, and where they go.
    pub(crate) from: Env,
    pub(crate) to: Env,
    pub(crate) threads: usize,
    pub(crate) sync: bool,
    pub(crate) io_buffer_size: u64,
    pub(crate) limiter: Arc<RateLimiter>,
    /// Set to make everything end with `Incomplete`.
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) progress: Option<Progress>,
    pub(crate) progress_interval: u64,
}

/// State that the threads of one operation share.
struct CopyState {
    crew: CopyTasks,
    tasks: Vec<Task>,
    next: AtomicUsize,
    failed: AtomicBool,
    /// True if a failure leaves the other tasks alone.
    keeps_on: bool,
    done: Mutex<Vec<Option<Result<CopiedBytes>>>>,
    /// Bytes since the last call of the progress callback.
    unreported: AtomicU64,
    reporting: Mutex<()>,
}

impl CopyTasks {
    /// Carries out `tasks`; what was read comes back in their order. The first failure stops the
    /// rest, and is what comes back.
    pub(crate) fn run(&self, tasks: Vec<Task>) -> Result<Vec<CopiedBytes>> {
        let done = self.carry_out(tasks, false);
        // The others ended because of it.
        let errors = || done.iter().filter_map(|r| r.as_ref().err());
        let cause = errors().find(|e| e.kind() != ErrorKind::Incomplete);
        if let Some(e) = cause.or_else(|| errors().next()) {
            return Err(e.clone());
        }
        done.into_iter().collect()
    }

    /// Carries out `tasks`, whatever becomes of the others.
    pub(crate) fn run_each(&self, tasks: Vec<Task>) -> Vec<Result<CopiedBytes>> {
        self.carry_out(tasks, true)
    }

    fn carry_out(&self, tasks: Vec<Task>, keeps_on: bool) -> Vec<Result<CopiedBytes>> {
        let threads = self.threads.clamp(1, tasks.len().max(1));
        let shared = Arc::new(CopyState {
            crew: self.clone(),
            done: Mutex::new(Rank::LEAF, vec![None; tasks.len()]),
            tasks,
            next: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            keeps_on,
            unreported: AtomicU64::new(0),
            reporting: Mutex::new(PROGRESS, ()),
        });
        let mut others = Vec::new();
        for n in 1..threads {
            let shared = Arc::clone(&shared);
            let body = Box::new(move || shared.work());
            // Fewer threads do it too.
            if let Ok(handle) = self.to.executor.spawn(&format!("esker-backup-{n}"), body) {
                others.push(handle);
            }
        }
        shared.work();
        others.into_iter().for_each(|t| t.join());
        let done = std::mem::take(&mut *shared.done.lock());
        done.into_iter()
            .map(|r| r.unwrap_or_else(|| Err(stopped())))
            .collect()
    }
}

impl CopyState {
    fn is_stopped(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.crew.stop.load(Ordering::Acquire)
    }

    fn work(&self) {
        loop {
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = self.tasks.get(n) else {
                return;
            };
            if self.failed.load(Ordering::Relaxed) {
                return;
            }
            let result = self.carry_out(task);
            if result.is_err() && !self.keeps_on {
                self.failed.store(true, Ordering::Relaxed);
            }
            self.done.lock()[n] = Some(result);
        }
    }

    fn carry_out(&self, task: &Task) -> Result<CopiedBytes> {
        let taken = match &task.source {
            Source::Bytes(bytes) => self.create(task, bytes),
            Source::File {
                path,
                bytes,
                is_whole,
            } => self
                .copy(task, path, *bytes, *is_whole)
                .map_err(|e| match e.kind() {
                    ErrorKind::Corruption => e.with_file(path),
                    _ => e,
                }),
        }?;
        match task.expected {
            Some(expected) if expected != taken.crc32c => Err(Error::corruption(format!(
                "Checksum mismatch: expected checksum is {expected} while computed checksum is {}",
                taken.crc32c
            ))
            .with_file(match &task.source {
                Source::File { path, .. } => path.clone(),
                Source::Bytes(_) => PathBuf::new(),
            })),
            _ => Ok(taken),
        }
    }

    fn create(&self, task: &Task, bytes: &[u8]) -> Result<CopiedBytes> {
        self.check_stop()?;
        if let Some(path) = &task.target {
            let fs = &self.crew.to.fs;
            let mut file = fs.create(path, FileWriteOptions::default())?;
            file.append(bytes)?;
            if self.crew.sync {
                file.sync()?;
            }
            file.close()?;
        }
        Ok(CopiedBytes {
            bytes: bytes.len() as u64,
            crc32c: crc32c_extend(0, bytes),
        })
    }

    fn copy(&self, task: &Task, path: &Path, bytes: u64, is_whole: bool) -> Result<CopiedBytes> {
        let crew = &self.crew;
        let source = crew.from.fs.open_read(path, FileReadOptions::default())?;
        if source.len() < bytes || (is_whole && source.len() != bytes) {
            return Err(Error::corruption(format!(
                "Size mismatch: the file has {} bytes and should have {bytes}",
                source.len()
            )));
        }
        let mut target = match &task.target {
            Some(path) => Some(crew.to.fs.create(path, FileWriteOptions::default())?),
            None => None,
        };
        let most = match crew.io_buffer_size {
            0 => match crew.limiter.single_burst_bytes() {
                0 => BUFFER,
                burst => usize::try_from(burst).unwrap_or(BUFFER).min(BUFFER),
            },
            given => usize::try_from(given.min(BUFFER_MAX)).unwrap_or(BUFFER),
        };
        let mut buffer = vec![0; most.min(usize::try_from(bytes).unwrap_or(most)).max(1)];
        let (mut at, mut crc) = (0, 0);
        while at < bytes {
            self.check_stop()?;
            let want = usize::try_from(bytes - at).map_or(buffer.len(), |n| n.min(buffer.len()));
            let got = source.read_at(at, &mut buffer[..want])?;
            if got == 0 {
                let e = Error::corruption(format!("the file ends before its {bytes} bytes"));
                return Err(e.with_offset(at));
            }
            let chunk = &buffer[..got];
            crc = crc32c_extend(crc, chunk);
            at += got as u64;
            if let Some(target) = &mut target {
                target.append(chunk)?;
                crew.limiter
                    .request(got as u64, IoPriority::Low, || self.is_stopped())
                    .map_err(|_| stopped())?;
                self.report(got as u64);
            }
        }
        if let Some(mut target) = target {
            if crew.sync {
                target.sync()?;
            }
            target.close()?;
        }
        Ok(CopiedBytes {
            bytes: at,
            crc32c: crc,
        })
    }

    fn check_stop(&self) -> Result<()> {
        if self.is_stopped() {
            return Err(stopped());
        }
        Ok(())
    }

    /// Calls the progress callback once for each interval that was passed.
    fn report(&self, bytes: u64) {
        let Some(progress) = &self.crew.progress else {
            return;
        };
        let interval = self.crew.progress_interval.max(1);
        let _one_at_a_time = self.reporting.lock();
        let mut unreported = self.unreported.load(Ordering::Relaxed) + bytes;
        while unreported >= interval {
            unreported -= interval;
            progress.call();
        }
        self.unreported.store(unreported, Ordering::Relaxed);
    }
}

/// Returns the error of a backup that was stopped.
pub(crate) fn stopped() -> Error {
    Error::new(ErrorKind::Incomplete, "Backup stopped")
}
