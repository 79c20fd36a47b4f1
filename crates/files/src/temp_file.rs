//! A small file that gets its name when it is complete.
//!
//! Its bytes are written under a temporary name. Several such files may be begun before the first
//! is synced: their write-back goes on meanwhile, and one commit of the filesystem's journal does
//! for all of them. The same for their syncs, which other threads can begin
//! ([`TempFile::begin_sync`]). A file that is dropped removes its temporary file.
//!
//! The caller syncs the file before it takes its name, and the directory after that.

use esker_env::{Errand, FileSystem, WritableFile, WriteOptions};
use esker_status::Result;
use esker_sync::{Mutex, Rank};
use std::path::PathBuf;
use std::sync::Arc;

/// A small file under a temporary name.
#[derive(Debug)]
#[must_use = "a file that is dropped is removed"]
pub struct TempFile<'a> {
    fs: &'a dyn FileSystem,
    temp: PathBuf,
    path: PathBuf,
    file: Option<Box<dyn WritableFile>>,
    syncing: Option<PendingSync>,
}

/// A sync that somebody else may have begun.
#[derive(Debug)]
struct PendingSync {
    errand: Errand,
    /// The file, when nobody syncs it.
    file: Arc<Mutex<Option<Box<dyn WritableFile>>>>,
}

impl PendingSync {
    fn begin(fs: &dyn FileSystem, file: Box<dyn WritableFile>) -> Self {
        let file = Arc::new(Mutex::new(Rank::LEAF, Some(file)));
        let theirs = Arc::clone(&file);
        let errand = fs.begin(Box::new(move || {
            let Some(mut file) = theirs.lock().take() else {
                return Ok(());
            };
            let synced = file.sync();
            *theirs.lock() = Some(file);
            synced
        }));
        PendingSync { errand, file }
    }
}

impl<'a> TempFile<'a> {
    /// Writes `content` to `temp`, which is to become `path`, and begins to sync it.
    pub fn begin(
        fs: &'a dyn FileSystem,
        temp: PathBuf,
        path: PathBuf,
        options: WriteOptions,
        content: &[u8],
    ) -> Result<TempFile<'a>> {
        // From here on a failure removes the temporary file.
        let mut temp_file = TempFile {
            fs,
            temp,
            path,
            file: None,
            syncing: None,
        };
        let mut file = fs.create(&temp_file.temp, options)?;
        file.append(content)?;
        file.flush()?;
        file.begin_sync()?;
        temp_file.file = Some(file);
        Ok(temp_file)
    }

    /// Begins what [`TempFile::sync`] does, where another thread can.
    pub fn begin_sync(&mut self) {
        if let Some(file) = self.file.take() {
            self.syncing = Some(PendingSync::begin(self.fs, file));
        }
    }

    /// Makes the bytes survive power loss.
    pub fn sync(&mut self) -> Result<()> {
        if let Some(PendingSync { errand, file }) = self.syncing.take() {
            let synced = errand.wait();
            self.file = file.lock().take();
            return synced;
        }
        self.file.as_mut().map_or(Ok(()), |file| file.sync())
    }

    /// Gives the file its name, and replaces what had it. The name survives power loss once the
    /// directory was synced.
    pub fn take_name(mut self) -> Result<()> {
        self.end_sync();
        if let Some(mut file) = self.file.take() {
            file.close()?;
        }
        self.fs.rename(&self.temp, &self.path)?;
        self.temp = PathBuf::new();
        Ok(())
    }

    /// Has the file back from a sync that nobody waits for.
    fn end_sync(&mut self) {
        if let Some(PendingSync { errand, file }) = self.syncing.take() {
            drop(errand);
            self.file = file.lock().take();
        }
    }
}

impl Drop for TempFile<'_> {
    fn drop(&mut self) {
        if self.temp.as_os_str().is_empty() {
            return;
        }
        self.end_sync();
        if let Some(mut file) = self.file.take() {
            // The failure that led here is what matters.
            let _closed = file.close();
        }
        // The next open removes what stays.
        let _removed = self.fs.remove_file(&self.temp);
    }
}

#[cfg(test)]
#[path = "temp_file_tests.rs"]
mod tests;
