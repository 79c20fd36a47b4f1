//! A database with blob files, and values that are large enough for them.

use esker::{Db, FamilyHandle, Options};

/// Bytes of a record beside its value, for keys of [`key`].
pub(crate) const FRAME: u64 = 32 + 8;

/// Options with blob files and without compactions of their own, and `more`.
pub(crate) fn options(more: &str) -> Options {
    Options::new()
        .create_if_missing(true)
        .set_all("enable_blob_files=true;min_blob_size=100;disable_auto_compactions=true")
        .and_then(|o| o.set_all(more))
        .expect("these options exist")
}

/// A new database with `options`.
pub(crate) fn opened(options: Options) -> (tempfile::TempDir, Db, FamilyHandle) {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), options).expect("opens");
    let family = db.default_family_handle();
    (dir, db, family)
}

/// A key by its number.
pub(crate) fn key(n: u32) -> String {
    format!("key{n:05}")
}

/// A value of `len` bytes that tells its number.
pub(crate) fn value(n: u32, len: usize) -> Vec<u8> {
    let text = format!("{n:06}");
    text.bytes().cycle().take(len).collect()
}
