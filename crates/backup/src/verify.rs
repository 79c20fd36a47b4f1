//! Verifying a backup.

use crate::copy::{Source, Task};
use crate::inner::Inner;
use crate::names;
use crate::state::{BackupFile, State};
use esker::{Db, Error, Options, Result};
use std::path::PathBuf;

/// A file of a backup, where it is, and what it should be.
#[derive(Clone, Debug)]
pub(crate) struct ExpectedFile {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) size: u64,
    pub(crate) crc32c: Option<u32>,
}

impl Inner {
    /// The files of backup `id`. The error names one that is missing or has another size than it
    /// should have.
    pub(crate) fn sized_files(&self, state: &State, id: u32) -> Result<Vec<ExpectedFile>> {
        let backup = state.backup(id)?;
        let mut out = Vec::with_capacity(backup.files.len());
        for BackupFile { name, crc32c } in &backup.files {
            let known = state.files.get(name).ok_or_else(|| {
                Error::corruption(format!("the file {name} of backup {id} is not known"))
            })?;
            let path = self.dir.join(name);
            let found = match self.env.fs.metadata(&path) {
                Ok(metadata) => metadata.len,
                Err(e) if e.is_not_found() => {
                    return Err(Error::not_found("File missing").with_file(path));
                }
                Err(e) => return Err(e),
            };
            let size = known.size;
            if found != size {
                return Err(Error::corruption(format!(
                    "File corrupted: File size mismatch: Expected file size is {size} while found file size is {found}"
                ))
                .with_file(path));
            }
            out.push(ExpectedFile {
                name: name.clone(),
                path,
                size,
                crc32c: *crc32c,
            });
        }
        Ok(out)
    }

    /// Checks the files of backup `id`: their sizes, and what is in them.
    pub(crate) fn verify(&self, state: &State, id: u32, with_checksum: bool) -> Result<()> {
        let files = self.sized_files(state, id)?;
        if !with_checksum {
            return Ok(());
        }
        let tasks = files.into_iter().map(|file| Task {
            source: Source::File {
                path: file.path,
                bytes: file.size,
                is_whole: true,
            },
            target: None,
            expected: file.crc32c,
        });
        let mut crew = self.crew(&self.restore_limiter, None);
        crew.from = self.env.clone();
        crew.run(tasks.collect())?;
        self.verify_logs(id)
    }

    /// The MANIFEST of backup `id` and its logs must be such that the restored database opens.
    pub(crate) fn verify_logs(&self, id: u32) -> Result<()> {
        let mut options = Options::new();
        options.env = Some(self.env.clone());
        Db::verify_logs(self.dir.join(names::private_dir(id)), &options).map(drop)
    }
}
