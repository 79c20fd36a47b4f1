//! File reuse: files that are written in the storage of obsolete files.
//!
//! A file that is deleted gives its blocks and its pages of the page cache back, and the next file
//! asks for as many: a filesystem looks for blocks and journals them, the kernel finds pages, and
//! on a virtual machine the host may have to back every one of them again. Written over a file of
//! about its size a table costs a fraction of that.
//!
//! Until it is closed the new file goes by a temporary name (`000123.dbtmp`, which RocksDB and
//! Esker remove when they open a directory), so under its own name there is never anything but the
//! complete file: whoever repairs a directory after a power cut finds no old blocks between new
//! ones. Its length is right whenever it was synced.
//!
//! No other user may see the old file change: [`crate::PosixFs`] writes over one only if it has no
//! second name, belongs to whom a new file would, and if no process has it open or mapped, in
//! whatever process; otherwise it is deleted as if nobody had asked. It is looked at under its
//! temporary name: a process that comes later does not find it any more. A process that had found
//! the old name and opens the file only after it was looked at would read the new one; tables say
//! who they are, so it notices.
//!
//! A log cannot wait for its name: what is appended must be found after a crash. Its records say
//! which log they are of, so it gets its name as soon as it was looked at, with what an older log
//! left behind its end ([`reuse_file`]).
//!
//! Rejected: *keeping files open as a pool*, which survives no restart and hides space from `du`;
//! *cloning extents*, which saves no page.

use crate::{FileSystem, WritableFile};
use esker_status::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

/// The name a file goes by while it is written.
fn temporary(path: &Path) -> PathBuf {
    path.with_extension("dbtmp")
}

/// Takes `spare` for `path`, which must not exist, and gives it that name at once: see
/// [`FileSystem::reuse`]. `open` opens it for writing under its temporary name, or says `None` when
/// it must not be written over. Whoever finds it under `path` finds what will be written.
pub fn reuse_file(
    fs: &dyn FileSystem,
    spare: &Path,
    path: &Path,
    open: impl FnOnce(&Path) -> Result<Option<Box<dyn WritableFile>>>,
) -> Result<Option<Box<dyn WritableFile>>> {
    check_absent(fs, path)?;
    let temporary = temporary(path);
    let Some(file) = take(fs, spare, &temporary, open) else {
        return Ok(None);
    };
    if fs.rename(&temporary, path).is_err() {
        let _gone = fs.remove_file(&temporary);
        return Ok(None);
    }
    Ok(Some(file))
}

fn check_absent(fs: &dyn FileSystem, path: &Path) -> Result<()> {
    if fs.exists(path)? {
        Err(Error::new(ErrorKind::Io, "create: the file exists").with_file(path))
    } else {
        Ok(())
    }
}

/// Gives `spare` the name `temporary`, and opens it. When that does not work it is deleted, if it
/// can be.
fn take(
    fs: &dyn FileSystem,
    spare: &Path,
    temporary: &Path,
    open: impl FnOnce(&Path) -> Result<Option<Box<dyn WritableFile>>>,
) -> Option<Box<dyn WritableFile>> {
    if fs.rename(spare, temporary).is_err() {
        let _gone = fs.remove_file(spare);
        return None;
    }
    if let Ok(Some(file)) = open(temporary) {
        return Some(file);
    }
    // A leftover under this name is removed when the directory is opened next.
    let _gone = fs.remove_file(temporary);
    None
}

/// A file that gets its name when it is closed; dropped before, or when closing fails, it is gone.
#[derive(Debug)]
pub struct UnnamedFile<F: FileSystem> {
    fs: F,
    file: Option<Box<dyn WritableFile>>,
    /// How long it was when it was closed.
    len: u64,
    /// Processor time that it took in the background until then.
    cpu_ns: u64,
    temporary: PathBuf,
    path: PathBuf,
}

impl<F: FileSystem> UnnamedFile<F> {
    /// Takes `spare` for `path`, which must not exist: `open` opens it for writing under its
    /// temporary name, or says `None` when it must not be written over. Then, as whenever it does
    /// not work, this is `None` and `spare` is deleted, if it can be. Only a `path` that exists, or
    /// that nobody can say it of, is an error.
    pub fn over(
        fs: F,
        spare: &Path,
        path: &Path,
        open: impl FnOnce(&Path) -> Result<Option<Box<dyn WritableFile>>>,
    ) -> Result<Option<Self>> {
        check_absent(&fs, path)?;
        let temporary = temporary(path);
        let Some(file) = take(&fs, spare, &temporary, open) else {
            return Ok(None);
        };
        Ok(Some(UnnamedFile {
            fs,
            file: Some(file),
            len: 0,
            cpu_ns: 0,
            temporary,
            path: path.to_owned(),
        }))
    }

    fn file(&mut self) -> Result<&mut Box<dyn WritableFile>> {
        let path = &self.path;
        self.file
            .as_mut()
            .ok_or_else(|| Error::new(ErrorKind::Io, "the file is closed").with_file(path))
    }
}

impl<F: FileSystem> WritableFile for UnnamedFile<F> {
    #[inline]
    fn append(&mut self, data: &[u8]) -> Result<()> {
        self.file()?.append(data)
    }

    fn flush(&mut self) -> Result<()> {
        self.file()?.flush()
    }

    fn sync(&mut self) -> Result<()> {
        self.file()?.sync()
    }

    fn begin_sync(&mut self) -> Result<()> {
        self.file()?.begin_sync()
    }

    fn len(&self) -> u64 {
        self.file.as_ref().map_or(self.len, |file| file.len())
    }

    /// After a failure the file is gone: what is not whole never gets the name, even if it is
    /// closed again.
    fn close(&mut self) -> Result<()> {
        let Some(mut file) = self.file.take() else {
            return Ok(());
        };
        self.len = file.len();
        let closed = file.close();
        self.cpu_ns = file.background_cpu_ns();
        drop(file);
        let named = closed.and_then(|()| self.fs.rename(&self.temporary, &self.path));
        if named.is_err() {
            let _gone = self.fs.remove_file(&self.temporary);
        }
        named
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn background_cpu_ns(&self) -> u64 {
        self.file
            .as_ref()
            .map_or(self.cpu_ns, |file| file.background_cpu_ns())
    }
}

impl<F: FileSystem> Drop for UnnamedFile<F> {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            drop(file);
            // A leftover under this name is removed when the directory is opened next.
            let _gone = self.fs.remove_file(&self.temporary);
        }
    }
}
