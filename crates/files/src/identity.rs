//! The writer of a file: the database's id and the session's id.
//!
//! The database id is a UUID in `IDENTITY` (and in the MANIFEST); the session id is new at every
//! open. Both go into every table, and together with its number they give the table's unique id.

use crate::current::replace;
use crate::temp_file::TempFile;
use esker_env::{Entropy, FileSystem, WriteOptions};
use esker_format::FileNo;
use esker_format::file_name::{IDENTITY, temp_name};
use esker_status::{Error, Result};
use std::path::Path;

const LIMIT: u64 = 4096;
/// Characters of a session id.
pub const SESSION_ID_LEN: usize = 20;

/// The id in `IDENTITY`, without a line break at its end. Absence is an error that says so by
/// [`Error::is_not_found`].
pub fn read(fs: &dyn FileSystem, dir: &Path) -> Result<String> {
    let path = dir.join(IDENTITY);
    let bytes = fs.read_all(&path, LIMIT)?;
    let id = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    match std::str::from_utf8(id) {
        Ok(id) => Ok(id.to_owned()),
        Err(_) => Err(Error::corruption("IDENTITY is not text").with_file(path)),
    }
}

/// Writes `IDENTITY`.
pub fn write(fs: &dyn FileSystem, dir: &Path, id: &str) -> Result<()> {
    replace(fs, dir, &temp_name(FileNo(0)), IDENTITY, id.as_bytes())
}

/// Writes `IDENTITY` but for its name, which it takes by way of [`TempFile::take_name`].
pub fn begin<'a>(fs: &'a dyn FileSystem, dir: &Path, id: &str) -> Result<TempFile<'a>> {
    let (temp, path) = (dir.join(temp_name(FileNo(0))), dir.join(IDENTITY));
    TempFile::begin(fs, temp, path, WriteOptions::default(), id.as_bytes())
}

/// A new database id: a random UUID, 36 lower-case characters.
pub fn new_db_id(entropy: &dyn Entropy) -> String {
    let (hi, lo) = (entropy.next_u64(), entropy.next_u64());
    // Version 4, variant 1.
    let hi = hi & !0xf000 | 0x4000;
    let lo = lo & !(0b11 << 62) | (0b10 << 62);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        hi >> 32,
        hi >> 16 & 0xffff,
        hi & 0xffff,
        lo >> 48,
        lo & 0xffff_ffff_ffff
    )
}

/// A new session id: 20 characters of `0-9A-Z`, eight and twelve from two random numbers.
pub fn new_session_id(entropy: &dyn Entropy) -> String {
    // The second number must keep within 62 bits and not be 0: 0 has a meaning in unique ids.
    let low = loop {
        let low = entropy.next_u64() & ((1 << 62) - 1);
        if low != 0 {
            break low;
        }
    };
    let mut id = [0u8; SESSION_ID_LEN];
    let (a, b) = id.split_at_mut(8);
    base36(entropy.next_u64(), a);
    base36(low, b);
    id.iter().map(|&b| char::from(b)).collect()
}

fn base36(mut v: u64, out: &mut [u8]) {
    const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for digit in out.iter_mut().rev() {
        *digit = DIGITS[(v % 36) as usize];
        v /= 36;
    }
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
