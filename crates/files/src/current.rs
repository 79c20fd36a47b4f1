//! `CURRENT`: the file that names the live MANIFEST.
//!
//! It is replaced whole: written beside, synced, renamed over the old one, and the directory
//! synced. Until the rename the old MANIFEST counts, after it the new one; so the caller syncs the
//! MANIFEST before, and the directory is synced before the rename as well: the new name must not
//! survive without the file that it names.

use crate::temp_file::TempFile;
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
    switch(fs, dir, begin(fs, dir, manifest)?)
}

/// Writes what makes `MANIFEST-manifest` the live one by [`switch`].
pub fn begin<'a>(fs: &'a dyn FileSystem, dir: &Path, manifest: FileNo) -> Result<TempFile<'a>> {
    let content = format!("{}\n", manifest_name(manifest));
    let temp = dir.join(temp_name(manifest));
    let path = dir.join(CURRENT);
    TempFile::begin(fs, temp, path, WriteOptions::default(), content.as_bytes())
}

/// Makes the MANIFEST live that `current` names. It is synced, and has its name in `dir`.
pub fn switch(fs: &dyn FileSystem, dir: &Path, current: TempFile<'_>) -> Result<()> {
    if !seeded(Bug::CurrentDirBefore) {
        fs.sync_dir(dir)?;
    }
    finish(current)?;
    if seeded(Bug::CurrentDirAfter) {
        return Ok(());
    }
    fs.sync_dir(dir)
}

fn finish(mut temp_file: TempFile<'_>) -> Result<()> {
    if !seeded(Bug::CurrentNotSynced) {
        temp_file.sync()?;
    }
    temp_file.take_name()
}

/// Replaces a small file by way of a temporary one, which is removed when that fails.
pub(crate) fn replace(
    fs: &dyn FileSystem,
    dir: &Path,
    temp: &str,
    name: &str,
    content: &[u8],
) -> Result<()> {
    let (temp, path) = (dir.join(temp), dir.join(name));
    finish(TempFile::begin(
        fs,
        temp,
        path,
        WriteOptions::default(),
        content,
    )?)?;
    if seeded(Bug::CurrentDirAfter) {
        return Ok(());
    }
    fs.sync_dir(dir)
}

#[cfg(test)]
#[path = "current_tests.rs"]
mod tests;
