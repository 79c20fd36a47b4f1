//! Readers, the writer and the lock of the simulated disk.
//!
//! All of them go through the disk's one lock for each call. A writer buffers as the options say;
//! buffered bytes are in the log only when they are drained, as they would be lost with the
//! process.

use super::{Disk, refused};
use crate::disk_log::{Ino, Op};
use crate::fault::{Call, Failure};
use esker_env::{FileLock, RandomAccessFile, WritableFile};
use esker_status::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

/// That a handle is open.
#[derive(Debug)]
pub(super) struct OpenHandle {
    pub(super) disk: Disk,
    pub(super) file: Ino,
}

impl Drop for OpenHandle {
    fn drop(&mut self) {
        let mut state = self.disk.lock();
        if state.process != self.disk.process {
            return;
        }
        if let Some(handles) = state.open.get_mut(&self.file) {
            *handles -= 1;
            if *handles == 0 {
                state.open.remove(&self.file);
            }
        }
    }
}

/// A file open for reading.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) held: OpenHandle,
    pub(super) len: u64,
    pub(super) path: PathBuf,
}

impl RandomAccessFile for Reader {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let state = self.held.disk.call(Call::Read, &self.path)?;
        let bytes = &state.files[self.held.file.0 as usize];
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|at| bytes.get(at..))
            .unwrap_or(&[]);
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }
    fn len(&self) -> u64 {
        self.len
    }
    fn path(&self) -> &Path {
        &self.path
    }
}

/// A file open for appending.
#[derive(Debug)]
pub(super) struct Writer {
    disk: Disk,
    file: Ino,
    /// Until it is closed.
    held: Option<OpenHandle>,
    path: PathBuf,
    buffer: Vec<u8>,
    buffer_size: usize,
    /// Where the next byte goes that is not buffered yet.
    end: u64,
    closed: bool,
    /// An append or sync failed: what is buffered must not be written by dropping.
    failed: bool,
}

impl Writer {
    pub(super) fn new(held: OpenHandle, path: &Path, len: u64, buffer_size: usize) -> Self {
        Writer {
            disk: held.disk.clone(),
            file: held.file,
            held: Some(held),
            path: path.to_owned(),
            buffer: Vec::new(),
            buffer_size,
            end: len,
            closed: false,
            failed: false,
        }
    }

    fn check_open(&self) -> Result<()> {
        if self.closed {
            return Err(Error::new(ErrorKind::Io, "the file is closed").with_file(&self.path));
        }
        Ok(())
    }

    /// Writes `data` behind what is there: all of it, or after a failure a part.
    fn put(&mut self, data: &[u8]) -> Result<()> {
        let (mut state, verdict) = self.disk.enter(Call::Append, &self.path);
        let taken = match verdict {
            None => data.len(),
            Some(Failure::Short(_)) => data.len() / 2,
            Some(_) => 0,
        };
        if taken > 0 {
            state.write(self.file, self.end, &data[..taken]);
            self.end += taken as u64;
        }
        match verdict {
            None => Ok(()),
            Some(failure) => {
                self.failed = true;
                Err(refused("append", &self.path, failure.errno()))
            }
        }
    }

    fn drain(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let buffer = std::mem::take(&mut self.buffer);
        self.put(&buffer)
    }
}

impl WritableFile for Writer {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        self.check_open()?;
        if self.buffer.len() + data.len() > self.buffer_size {
            self.drain()?;
        }
        if data.len() >= self.buffer_size {
            if !data.is_empty() {
                self.put(data)?;
            }
        } else {
            self.buffer.extend_from_slice(data);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.check_open()?;
        self.drain()
    }

    fn sync(&mut self) -> Result<()> {
        self.flush()?;
        let (mut state, verdict) = self.disk.enter(Call::Sync, &self.path);
        match verdict {
            None => {
                state.note(Op::Sync { file: self.file });
                Ok(())
            }
            Some(failure) => {
                self.failed = true;
                if state.process == self.disk.process {
                    state.fail_sync(self.file, failure.pages());
                }
                Err(refused("sync", &self.path, failure.errno()))
            }
        }
    }

    fn len(&self) -> u64 {
        self.end + self.buffer.len() as u64
    }

    fn close(&mut self) -> Result<()> {
        if self.closed {
            return Ok(());
        }
        let drained = self.drain();
        self.closed = true;
        self.held = None;
        drained?;
        let mut state = self.disk.call(Call::Close, &self.path)?;
        state.note(Op::Close { file: self.file });
        Ok(())
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.failed && !self.closed {
            // As closing a file does: nobody is there to hear of a failure.
            let _ = self.drain();
        }
    }
}

/// A lock, until dropped.
#[derive(Debug)]
pub(super) struct Lock {
    pub(super) disk: Disk,
    pub(super) path: PathBuf,
}

impl FileLock for Lock {}

impl Drop for Lock {
    fn drop(&mut self) {
        let mut state = self.disk.lock();
        if state.process == self.disk.process {
            state.locks.remove(&self.path);
        }
    }
}
