//! The file with the names of cached blocks. It is replaced whole, as CURRENT is, and nothing needs
//! it: a reader that finds damage goes on without.

use crate::current::replace;
use esker_env::FileSystem;
use esker_format::FileNo;
use esker_format::file_name::{SAVED_CACHE, temp_name};
use esker_format::saved_cache::SavedCache;
use esker_status::Result;
use std::path::Path;

/// Most bytes of the file: the names of some ten million blocks.
pub const SIZE_MAX: usize = 32 << 20;

/// The names that were saved last. Absence of the file is an error that says so by
/// [`esker_status::Error::is_not_found`].
pub fn read(fs: &dyn FileSystem, dir: &Path) -> Result<SavedCache> {
    let path = dir.join(SAVED_CACHE);
    let bytes = fs.read_all(&path, SIZE_MAX as u64)?;
    SavedCache::decode(bytes).map_err(|e| e.with_file(path))
}

/// Makes `content` the file, by way of the temporary file with the number `temp`.
pub fn write(fs: &dyn FileSystem, dir: &Path, temp: FileNo, content: &[u8]) -> Result<()> {
    replace(fs, dir, &temp_name(temp), SAVED_CACHE, content)
}
