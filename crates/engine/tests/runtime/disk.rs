//! A filesystem whose appends and syncs fail on demand.

use esker::env::{
    DirEntry, Env, FileLock, FileSystem, Metadata, RandomAccessFile, ReadOptions, WritableFile,
    WriteOptions,
};
use esker::{Error, Result};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Faults of the disk: they hit files whose name contains the text.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Appends to these find no space.
    pub(crate) full: Mutex<Option<&'static str>>,
    /// Syncs of these fail.
    pub(crate) unsyncable: Mutex<Option<&'static str>>,
}

impl Faults {
    fn check(of: &Mutex<Option<&'static str>>, doing: &str, path: &Path, code: i32) -> Result<()> {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        match *of.lock().expect("no panic under the lock") {
            Some(part) if name.contains(part) => {
                Err(Error::io(doing, path, &io::Error::from_raw_os_error(code)))
            }
            _ => Ok(()),
        }
    }

    fn append(&self, path: &Path) -> Result<()> {
        Self::check(&self.full, "append", path, 28)
    }

    fn sync(&self, path: &Path) -> Result<()> {
        Self::check(&self.unsyncable, "sync", path, 5)
    }
}

/// Files of `inner`, with faults.
#[derive(Debug)]
struct FaultyFs {
    inner: Arc<dyn FileSystem>,
    faults: Arc<Faults>,
}

/// An environment in memory with faults, which are none at first.
pub(crate) fn faulty() -> (Env, Arc<Faults>) {
    let (base, faults) = (Env::in_memory(), Arc::new(Faults::default()));
    let fs = FaultyFs {
        inner: Arc::clone(&base.fs),
        faults: Arc::clone(&faults),
    };
    (
        Env {
            fs: Arc::new(fs),
            ..base
        },
        faults,
    )
}

#[derive(Debug)]
struct FaultyFile {
    inner: Box<dyn WritableFile>,
    faults: Arc<Faults>,
}

impl WritableFile for FaultyFile {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        self.faults.append(self.inner.path())?;
        self.inner.append(data)
    }
    fn flush(&mut self) -> Result<()> {
        self.inner.flush()
    }
    fn sync(&mut self) -> Result<()> {
        self.faults.sync(self.inner.path())?;
        self.inner.sync()
    }
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn close(&mut self) -> Result<()> {
        self.inner.close()
    }
    fn path(&self) -> &Path {
        self.inner.path()
    }
}

impl FaultyFs {
    fn wrap(&self, inner: Box<dyn WritableFile>) -> Box<dyn WritableFile> {
        Box::new(FaultyFile {
            inner,
            faults: Arc::clone(&self.faults),
        })
    }
}

impl FileSystem for FaultyFs {
    fn open_read(&self, path: &Path, options: ReadOptions) -> Result<Arc<dyn RandomAccessFile>> {
        self.inner.open_read(path, options)
    }
    fn create(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WritableFile>> {
        Ok(self.wrap(self.inner.create(path, options)?))
    }
    fn open_append(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WritableFile>> {
        Ok(self.wrap(self.inner.open_append(path, options)?))
    }
    fn read_all(&self, path: &Path, limit: u64) -> Result<Vec<u8>> {
        self.inner.read_all(path, limit)
    }
    fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        self.inner.read_dir(path)
    }
    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.inner.create_dir_all(path)
    }
    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.inner.remove_dir(path)
    }
    fn remove_file(&self, path: &Path) -> Result<()> {
        self.inner.remove_file(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.hard_link(from, to)
    }
    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.inner.sync_dir(path)
    }
    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.inner.metadata(path)
    }
    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }
    fn truncate(&self, path: &Path, len: u64) -> Result<()> {
        self.inner.truncate(path, len)
    }
    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.inner.lock(path)
    }
    fn free_space(&self, path: &Path) -> Result<u64> {
        self.inner.free_space(path)
    }
    fn canonical(&self, path: &Path) -> Result<PathBuf> {
        self.inner.canonical(path)
    }
}
