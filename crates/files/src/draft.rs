//! A small file that gets its name when it is complete.
//!
//! Its bytes are written under a temporary name. Several drafts may be begun before the first is
//! synced: their write-back goes on meanwhile, and one commit of the filesystem's journal does for
//! all of them. A draft that is dropped removes its temporary file.
//!
//! The caller syncs the draft before it takes its name, and the directory after that.

use esker_env::{FileSystem, WritableFile, WriteOptions};
use esker_status::Result;
use std::path::PathBuf;

/// A small file under a temporary name.
#[derive(Debug)]
#[must_use = "a draft that is dropped is removed"]
pub struct Draft<'a> {
    fs: &'a dyn FileSystem,
    temp: PathBuf,
    path: PathBuf,
    file: Option<Box<dyn WritableFile>>,
}

impl<'a> Draft<'a> {
    /// Writes `content` to `temp`, which is to become `path`, and begins to sync it.
    pub fn begin(
        fs: &'a dyn FileSystem,
        temp: PathBuf,
        path: PathBuf,
        options: WriteOptions,
        content: &[u8],
    ) -> Result<Draft<'a>> {
        // From here on a failure removes the temporary file.
        let mut draft = Draft {
            fs,
            temp,
            path,
            file: None,
        };
        let mut file = fs.create(&draft.temp, options)?;
        file.append(content)?;
        file.flush()?;
        file.begin_sync()?;
        draft.file = Some(file);
        Ok(draft)
    }

    /// Makes the bytes survive power loss.
    pub fn sync(&mut self) -> Result<()> {
        self.file.as_mut().map_or(Ok(()), |file| file.sync())
    }

    /// Gives the file its name, and replaces what had it. The name survives power loss once the
    /// directory was synced.
    pub fn take_name(mut self) -> Result<()> {
        if let Some(mut file) = self.file.take() {
            file.close()?;
        }
        self.fs.rename(&self.temp, &self.path)?;
        self.temp = PathBuf::new();
        Ok(())
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if self.temp.as_os_str().is_empty() {
            return;
        }
        if let Some(mut file) = self.file.take() {
            // The failure that led here is what matters.
            let _closed = file.close();
        }
        // The next open removes what stays.
        let _removed = self.fs.remove_file(&self.temp);
    }
}

#[cfg(test)]
#[path = "draft_tests.rs"]
mod tests;
