//! `CURRENT`: the file that names the live MANIFEST.
//!
//! It is replaced whole: written beside, synced, renamed over the old one, and the directory synced. Until
//! the rename the old MANIFEST counts, after it the new one; so the caller syncs the MANIFEST before, and the
//! directory is synced before the rename as well: the new name must not survive without the file that it names.

use esker_env::{FileSystem, WriteOptions};
use esker_format::FileNo;
use esker_format::file_name::{CURRENT, FileKind, manifest_name, parse_file_name, temp_name};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use std::path::Path;

/// No file of this kind is longer.
const LIMIT: u64 = 4096;

/// The number of the live MANIFEST. Absence of the file is an error that says so by
/// [`Error::is_not_found`].
pub fn read(fs: &dyn FileSystem, dir: &Path) -> Result<FileNo> {
    let path = dir.join(CURRENT);
    let bytes = fs.read_all(&path, LIMIT)?;
    let Some(name) = bytes.strip_suffix(b"\n") else {
        return Err(Error::corruption("CURRENT file does not end with newline").with_file(path));
    };
    match std::str::from_utf8(name).ok().and_then(parse_file_name) {
        Some((FileKind::Manifest, number)) => Ok(number),
        _ => {
            let message = format!("CURRENT file names no MANIFEST: {:?}", name.escape_ascii());
            Err(Error::corruption(message).with_file(path))
        }
    }
}

/// Makes `MANIFEST-manifest` the live one.
pub fn install(fs: &dyn FileSystem, dir: &Path, manifest: FileNo) -> Result<()> {
    let content = format!("{}\n", manifest_name(manifest));
    if !seeded(Bug::CurrentDirBefore) {
        fs.sync_dir(dir)?;
    }
    replace(fs, dir, &temp_name(manifest), CURRENT, content.as_bytes())
}

/// Replaces a small file by way of a temporary one, which is removed when that fails.
pub(crate) fn replace(
    fs: &dyn FileSystem,
    dir: &Path,
    temp: &str,
    name: &str,
    content: &[u8],
) -> Result<()> {
    let temp = dir.join(temp);
    let written = write_synced(fs, &temp, content).and_then(|()| fs.rename(&temp, &dir.join(name)));
    if written.is_err() {
        // The failure is what matters; a leftover is removed by the next open.
        let _ = fs.remove_file(&temp);
        return written;
    }
    if seeded(Bug::CurrentDirAfter) {
        return Ok(());
    }
    fs.sync_dir(dir)
}

fn write_synced(fs: &dyn FileSystem, path: &Path, content: &[u8]) -> Result<()> {
    let mut file = fs.create(path, WriteOptions::default())?;
    file.append(content)?;
    file.flush()?;
    if !seeded(Bug::CurrentNotSynced) {
        file.sync()?;
    }
    file.close()
}

#[cfg(test)]
#[path = "current_tests.rs"]
mod tests;
