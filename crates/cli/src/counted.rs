//! The machine's filesystem, counting the bytes that are read through it: how far long work is.
//!
//! Passes on every call as it is. Thread-safety: any thread.

use esker::Env;
use esker_env::{
    BackgroundIo, Call, DirEntry, Errand, FileLock, FileSystem, Metadata, PendingRead,
    RandomAccessFile, ReadOptions, WritableFile, WriteOptions,
};
use esker_status::Result;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that were read.
#[derive(Clone, Debug, Default)]
pub(crate) struct BytesRead(Arc<AtomicU64>);

impl BytesRead {
    /// An environment of the machine whose reads are counted here.
    pub(crate) fn env(&self) -> Env {
        let env = Env::posix();
        Env {
            fs: Arc::new(CountedFs {
                fs: Arc::clone(&env.fs),
                read: self.clone(),
            }),
            ..env
        }
    }

    /// The bytes that were read so far.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct CountedFs {
    fs: Arc<dyn FileSystem>,
    read: BytesRead,
}

#[derive(Debug)]
struct CountedFile {
    file: Arc<dyn RandomAccessFile>,
    read: BytesRead,
}

impl RandomAccessFile for CountedFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let got = self.file.read_at(offset, buf)?;
        self.read.add(got);
        Ok(got)
    }
    fn read_to_vec(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let got = self.file.read_to_vec(offset, len)?;
        self.read.add(got.len());
        Ok(got)
    }
    fn len(&self) -> u64 {
        self.file.len()
    }
    fn is_direct(&self) -> bool {
        self.file.is_direct()
    }
    fn begin_read(self: Arc<Self>, offset: u64, len: usize) -> PendingRead {
        self.read.add(len);
        Arc::clone(&self.file).begin_read(offset, len)
    }
    fn mapped(&self, offset: u64, len: usize) -> Option<&[u8]> {
        self.file.mapped(offset, len)
    }
    fn path(&self) -> &Path {
        self.file.path()
    }
}

impl FileSystem for CountedFs {
    fn open_read(&self, path: &Path, options: ReadOptions) -> Result<Arc<dyn RandomAccessFile>> {
        Ok(Arc::new(CountedFile {
            file: self.fs.open_read(path, options)?,
            read: self.read.clone(),
        }))
    }
    fn create(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WritableFile>> {
        self.fs.create(path, options)
    }
    fn create_over(
        &self,
        spare: &Path,
        path: &Path,
        options: WriteOptions,
    ) -> Result<Box<dyn WritableFile>> {
        self.fs.create_over(spare, path, options)
    }
    fn reuse(
        &self,
        spare: &Path,
        path: &Path,
        options: WriteOptions,
    ) -> Result<Option<Box<dyn WritableFile>>> {
        self.fs.reuse(spare, path, options)
    }
    fn open_append(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WritableFile>> {
        self.fs.open_append(path, options)
    }
    fn read_all(&self, path: &Path, limit: u64) -> Result<Vec<u8>> {
        let all = self.fs.read_all(path, limit)?;
        self.read.add(all.len());
        Ok(all)
    }
    fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        self.fs.read_dir(path)
    }
    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.fs.create_dir_all(path)
    }
    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.fs.remove_dir(path)
    }
    fn remove_file(&self, path: &Path) -> Result<()> {
        self.fs.remove_file(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.fs.rename(from, to)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.fs.hard_link(from, to)
    }
    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.fs.sync_dir(path)
    }
    fn begin_sync_dir(&self, path: &Path) -> Errand {
        self.fs.begin_sync_dir(path)
    }
    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.fs.metadata(path)
    }
    fn exists(&self, path: &Path) -> Result<bool> {
        self.fs.exists(path)
    }
    fn write_at(&self, path: &Path, offset: u64, data: &[u8]) -> Result<()> {
        self.fs.write_at(path, offset, data)
    }
    fn truncate(&self, path: &Path, len: u64) -> Result<()> {
        self.fs.truncate(path, len)
    }
    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.fs.lock(path)
    }
    fn lock_shared(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.fs.lock_shared(path)
    }
    fn free_space(&self, path: &Path) -> Result<u64> {
        self.fs.free_space(path)
    }
    fn with_background_io(&self, wanted: BackgroundIo) -> Option<Arc<dyn FileSystem>> {
        let fs = self.fs.with_background_io(wanted)?;
        let read = self.read.clone();
        Some(Arc::new(CountedFs { fs, read }))
    }
    fn background_carrier(&self, direct: bool) -> Option<String> {
        self.fs.background_carrier(direct)
    }
    fn begin(&self, call: Call) -> Errand {
        self.fs.begin(call)
    }
    fn canonical(&self, path: &Path) -> Result<PathBuf> {
        self.fs.canonical(path)
    }
}
