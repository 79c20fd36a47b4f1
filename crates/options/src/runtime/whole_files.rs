//! Files of a database as a whole: shared, copied, moved out of the way, and guarded by the lock.
//!
//! Serves checkpoints, repair and destruction. Nothing here overwrites or deletes a file.

use esker_env::{
    Env, FileLock, ReadOptions as FileReadOptions, WriteOptions as FileWriteOptions, explain_lock,
};
use esker_format::file_name::{LOCK, LOST_DIR};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result, Subcode};
use std::path::{Path, PathBuf};

/// Bytes copied at a time.
const CHUNK: usize = 1 << 20;

/// Gives the file at `from` a second name, or makes a copy of it where that cannot be: another
/// device, a filesystem without links. Returns the bytes that were copied, if any were.
pub fn link_or_copy(env: &Env, from: &Path, to: &Path) -> Result<Option<u64>> {
    match env.fs.hard_link(from, to) {
        Ok(()) => Ok(None),
        Err(e) if e.is_no_space() || e.is_not_found() => Err(e),
        Err(_) => {
            let bytes = env.fs.metadata(from)?.len;
            copy(env, from, to, bytes)?;
            Ok(Some(bytes))
        }
    }
}

/// Copies the first `bytes` of a file, and syncs the copy.
pub fn copy(env: &Env, from: &Path, to: &Path, bytes: u64) -> Result<()> {
    let source = env.fs.open_read(from, FileReadOptions::default())?;
    let options = FileWriteOptions {
        exclusive: true,
        ..FileWriteOptions::default()
    };
    let mut target = env.fs.create(to, options)?;
    let mut buf = vec![0; CHUNK];
    let mut at = 0;
    while at < bytes {
        let want = usize::try_from(bytes - at).unwrap_or(CHUNK).min(CHUNK);
        let got = source.read_at(at, &mut buf[..want])?;
        if got == 0 {
            return Err(Error::corruption(format!(
                "the file ends at {at} and should have {bytes} bytes"
            ))
            .with_file(from));
        }
        target.append(&buf[..got])?;
        at += got as u64;
    }
    if !seeded(Bug::IngestNotSynced) {
        target.sync()?;
    }
    target.close()
}

/// Makes a file of `contents`, and syncs it.
pub fn write(env: &Env, to: &Path, contents: &[u8]) -> Result<()> {
    let options = FileWriteOptions {
        exclusive: true,
        ..FileWriteOptions::default()
    };
    let mut target = env.fs.create(to, options)?;
    target.append(contents)?;
    target.sync()?;
    target.close()
}

/// A free name for `path` in the directory `lost` beside it. Makes nothing.
pub fn aside_name(env: &Env, path: &Path) -> Result<PathBuf> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Error::invalid_argument("no file")
            .with_file(path)
            .with_subcode(Subcode::PathNotFound));
    };
    let plain = dir.join(LOST_DIR).join(name);
    let mut to = plain.clone();
    let mut turn = 0;
    while env.fs.exists(&to)? {
        turn += 1;
        let mut next = plain.clone().into_os_string();
        next.push(format!(".{turn}"));
        to = PathBuf::from(next);
    }
    Ok(to)
}

/// Takes the lock of the database in `dir`, which must not be open.
pub fn lock_closed(env: &Env, dir: &Path) -> Result<Box<dyn FileLock>> {
    let lock = env.fs.lock(&dir.join(LOCK));
    lock.map_err(|e| explain_lock(e, dir))
}
