//! Inodes of the memory filesystem, and the readers and writers over them.
//!
//! Invariant: `synced <= bytes.len()`.

use crate::{RandomAccessFile, WritableFile};
use esker_status::{Error, ErrorKind, Result};
use esker_sync::{Rank, RwLock};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug, Default)]
struct Contents {
    bytes: Vec<u8>,
    synced: usize,
    modified_unix: u64,
}

/// The bytes of a file, shared by its names and its open handles.
#[derive(Debug)]
pub(super) struct Inode(RwLock<Contents>);

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

impl Inode {
    pub(super) fn new() -> Self {
        Inode(RwLock::new(
            Rank::LEAF,
            Contents {
                modified_unix: now(),
                ..Contents::default()
            },
        ))
    }

    pub(super) fn len(&self) -> u64 {
        self.0.read().bytes.len() as u64
    }

    pub(super) fn modified_unix(&self) -> u64 {
        self.0.read().modified_unix
    }

    pub(super) fn truncate(&self, len: usize) {
        let mut c = self.0.write();
        c.bytes.resize(len, 0);
        c.synced = c.synced.min(len);
        c.modified_unix = now();
    }

    pub(super) fn drop_unsynced(&self) {
        let mut c = self.0.write();
        let synced = c.synced;
        c.bytes.truncate(synced);
    }

    /// All bytes, or the length when that is over `limit`.
    pub(super) fn read_all(&self, limit: u64) -> Result<Vec<u8>, u64> {
        let c = self.0.read();
        let len = c.bytes.len() as u64;
        if len > limit {
            Err(len)
        } else {
            Ok(c.bytes.clone())
        }
    }

    fn append(&self, data: &[u8]) {
        let mut c = self.0.write();
        c.bytes.extend_from_slice(data);
        c.modified_unix = now();
    }

    /// Puts `data` at `offset`, beyond the end too.
    pub(super) fn overwrite(&self, offset: u64, data: &[u8]) {
        let mut c = self.0.write();
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let to = from.saturating_add(data.len());
        if to > c.bytes.len() {
            c.bytes.resize(to, 0);
        }
        c.bytes[from..to].copy_from_slice(data);
        c.modified_unix = now();
    }

    fn sync(&self) {
        let mut c = self.0.write();
        c.synced = c.bytes.len();
    }
}

/// An inode open for reading.
#[derive(Debug)]
pub(super) struct MemReader {
    inode: Arc<Inode>,
    len: u64,
    path: PathBuf,
}

impl MemReader {
    pub(super) fn new(inode: Arc<Inode>, path: &Path) -> Self {
        MemReader {
            len: inode.len(),
            inode,
            path: path.to_owned(),
        }
    }
}

impl RandomAccessFile for MemReader {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let c = self.inode.0.read();
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|at| c.bytes.get(at..))
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

/// An inode open for appending.
#[derive(Debug)]
pub(super) struct MemWriter {
    inode: Arc<Inode>,
    path: PathBuf,
    buffer: Vec<u8>,
    buffer_size: usize,
    len: u64,
    closed: bool,
}

impl MemWriter {
    pub(super) fn new(inode: Arc<Inode>, path: &Path, buffer_size: usize) -> Self {
        let len = inode.len();
        MemWriter {
            inode,
            path: path.to_owned(),
            buffer: Vec::new(),
            buffer_size,
            len,
            closed: false,
        }
    }

    fn check_open(&self) -> Result<()> {
        if self.closed {
            return Err(Error::new(ErrorKind::Io, "the file is closed").with_file(&self.path));
        }
        Ok(())
    }

    fn drain(&mut self) {
        if !self.buffer.is_empty() {
            self.inode.append(&self.buffer);
            self.buffer.clear();
        }
    }
}

impl WritableFile for MemWriter {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        self.check_open()?;
        self.len += data.len() as u64;
        if self.buffer.len() + data.len() > self.buffer_size {
            self.drain();
        }
        if data.len() >= self.buffer_size {
            self.inode.append(data);
        } else {
            self.buffer.extend_from_slice(data);
        }
        Ok(())
    }
    fn flush(&mut self) -> Result<()> {
        self.check_open()?;
        self.drain();
        Ok(())
    }
    fn sync(&mut self) -> Result<()> {
        self.flush()?;
        self.inode.sync();
        Ok(())
    }
    fn len(&self) -> u64 {
        self.len
    }
    fn close(&mut self) -> Result<()> {
        self.drain();
        self.closed = true;
        Ok(())
    }
    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for MemWriter {
    fn drop(&mut self) {
        self.drain();
    }
}
