//! Lists of table files: of an open database, and put together for an import.
//!
//! Files and texts that a list gives out stay in the list, until that is destroyed.

use crate::boundary::{
    attempt, bytes, destroy, exclusive, give, owned, path, put, quiet, shared, text,
};
use crate::db::database;
use crate::*;
use esker::{LiveFileMeta, Result};
use std::ffi::{CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

/// A file of a list, with its names as C reads them.
pub(crate) struct LiveFile {
    meta: LiveFileMeta,
    family: CString,
    name: CString,
    directory: CString,
}

impl From<LiveFileMeta> for LiveFile {
    fn from(meta: LiveFileMeta) -> Self {
        let c = |b: &[u8]| {
            let whole: Vec<u8> = b.iter().copied().filter(|b| *b != 0).collect();
            CString::new(whole).unwrap_or_default()
        };
        LiveFile {
            family: c(meta.family.as_bytes()),
            // RocksDB writes a slash in front.
            name: c(format!("/{}", meta.name.trim_start_matches('/')).as_bytes()),
            directory: c(meta.directory.as_os_str().as_bytes()),
            meta,
        }
    }
}

/// A list of files.
#[derive(Default)]
pub struct rocksdb_livefiles_t {
    files: Vec<LiveFile>,
}

impl rocksdb_livefiles_t {
    /// A list of `files`.
    pub(crate) fn new(files: Vec<LiveFileMeta>) -> Self {
        rocksdb_livefiles_t {
            files: files.into_iter().map(LiveFile::from).collect(),
        }
    }

    /// The files.
    pub(crate) fn into_files(self) -> Vec<LiveFileMeta> {
        self.files.into_iter().map(|f| f.meta).collect()
    }
}

/// A file to be put into a list.
#[derive(Default)]
pub struct rocksdb_livefile_t {
    file: LiveFileMeta,
}

fn get<R>(
    livefiles: *const rocksdb_livefiles_t,
    index: c_int,
    nothing: R,
    of: impl FnOnce(&'static LiveFile) -> R,
) -> R
where
    R: Copy,
{
    attempt(nothing, || {
        let files: &'static rocksdb_livefiles_t = shared(livefiles)?;
        let file = usize::try_from(index).ok().and_then(|i| files.files.get(i));
        Ok(file.map_or(nothing, of))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles(db: *mut rocksdb_t) -> *const rocksdb_livefiles_t {
    attempt(ptr::null(), || {
        let files = database(db)?.live_files_metadata();
        Ok(give(rocksdb_livefiles_t::new(files)).cast_const())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles_create() -> *mut rocksdb_livefiles_t {
    quiet(ptr::null_mut(), || give(rocksdb_livefiles_t::default()))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles_destroy(livefiles: *const rocksdb_livefiles_t) {
    destroy(livefiles.cast_mut());
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles_count(livefiles: *const rocksdb_livefiles_t) -> c_int {
    attempt(0, || {
        let count = shared(livefiles)?.files.len();
        Ok(c_int::try_from(count).unwrap_or(c_int::MAX))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles_column_family_name(
    livefiles: *const rocksdb_livefiles_t,
    index: c_int,
) -> *const c_char {
    get(livefiles, index, ptr::null(), |f| f.family.as_ptr())
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles_name(
    livefiles: *const rocksdb_livefiles_t,
    index: c_int,
) -> *const c_char {
    get(livefiles, index, ptr::null(), |f| f.name.as_ptr())
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles_directory(
    livefiles: *const rocksdb_livefiles_t,
    index: c_int,
) -> *const c_char {
    get(livefiles, index, ptr::null(), |f| f.directory.as_ptr())
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles_level(
    livefiles: *const rocksdb_livefiles_t,
    index: c_int,
) -> c_int {
    get(livefiles, index, 0, |f| c_int::from(f.meta.level))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles_size(
    livefiles: *const rocksdb_livefiles_t,
    index: c_int,
) -> usize {
    get(livefiles, index, 0, |f| {
        usize::try_from(f.meta.size).unwrap_or(usize::MAX)
    })
}

fn key(
    livefiles: *const rocksdb_livefiles_t,
    index: c_int,
    size: *mut usize,
    of: impl FnOnce(&'static LiveFile) -> &'static [u8],
) -> *const c_char {
    let (at, len) = get(livefiles, index, (ptr::null(), 0), |f| {
        let key = of(f);
        (key.as_ptr().cast(), key.len())
    });
    put(size, len);
    at
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles_smallestkey(
    livefiles: *const rocksdb_livefiles_t,
    index: c_int,
    size: *mut usize,
) -> *const c_char {
    key(livefiles, index, size, |f| &f.meta.smallest_key)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles_largestkey(
    livefiles: *const rocksdb_livefiles_t,
    index: c_int,
    size: *mut usize,
) -> *const c_char {
    key(livefiles, index, size, |f| &f.meta.largest_key)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles_smallest_seqno(
    livefiles: *const rocksdb_livefiles_t,
    index: c_int,
) -> u64 {
    get(livefiles, index, 0, |f| f.meta.smallest_seq)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles_largest_seqno(
    livefiles: *const rocksdb_livefiles_t,
    index: c_int,
) -> u64 {
    get(livefiles, index, 0, |f| f.meta.largest_seq)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles_entries(
    livefiles: *const rocksdb_livefiles_t,
    index: c_int,
) -> u64 {
    get(livefiles, index, 0, |f| f.meta.num_entries)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles_deletions(
    livefiles: *const rocksdb_livefiles_t,
    index: c_int,
) -> u64 {
    get(livefiles, index, 0, |f| f.meta.num_deletions)
}

/// Takes `livefile` over.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles_add(
    livefiles: *mut rocksdb_livefiles_t,
    livefile: *mut rocksdb_livefile_t,
) {
    attempt((), || {
        let list = exclusive(livefiles)?;
        if let Some(file) = owned(livefile) {
            list.files.push(LiveFile::from(file.file));
        }
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefile_create() -> *mut rocksdb_livefile_t {
    quiet(ptr::null_mut(), || give(rocksdb_livefile_t::default()))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefile_destroy(livefile: *mut rocksdb_livefile_t) {
    destroy(livefile);
}

fn set(livefile: *mut rocksdb_livefile_t, body: impl FnOnce(&mut LiveFileMeta) -> Result<()>) {
    attempt((), || body(&mut exclusive(livefile)?.file));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefile_set_column_family_name(
    livefile: *mut rocksdb_livefile_t,
    value: *const c_char,
) {
    set(livefile, |f| {
        f.family = text(value)?.to_owned();
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefile_set_level(livefile: *mut rocksdb_livefile_t, value: c_int) {
    set(livefile, |f| {
        // A level that cannot be is refused when the list is imported.
        f.level = u8::try_from(value).unwrap_or(u8::MAX);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefile_set_name(
    livefile: *mut rocksdb_livefile_t,
    value: *const c_char,
) {
    set(livefile, |f| {
        f.name = text(value)?.trim_start_matches('/').to_owned();
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefile_set_directory(
    livefile: *mut rocksdb_livefile_t,
    value: *const c_char,
) {
    set(livefile, |f| {
        f.directory = path(value)?.to_owned();
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefile_set_size(livefile: *mut rocksdb_livefile_t, value: usize) {
    set(livefile, |f| {
        f.size = value as u64;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefile_set_smallest_key(
    livefile: *mut rocksdb_livefile_t,
    key: *const c_char,
    keylen: usize,
) {
    set(livefile, |f| {
        f.smallest_key = bytes(key, keylen).to_vec();
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefile_set_largest_key(
    livefile: *mut rocksdb_livefile_t,
    key: *const c_char,
    keylen: usize,
) {
    set(livefile, |f| {
        f.largest_key = bytes(key, keylen).to_vec();
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefile_set_smallest_seqno(
    livefile: *mut rocksdb_livefile_t,
    value: u64,
) {
    set(livefile, |f| {
        f.smallest_seq = value;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefile_set_largest_seqno(
    livefile: *mut rocksdb_livefile_t,
    value: u64,
) {
    set(livefile, |f| {
        f.largest_seq = value;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefile_set_num_entries(livefile: *mut rocksdb_livefile_t, value: u64) {
    set(livefile, |f| {
        f.num_entries = value;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefile_set_num_deletions(
    livefile: *mut rocksdb_livefile_t,
    value: u64,
) {
    set(livefile, |f| {
        f.num_deletions = value;
        Ok(())
    });
}
