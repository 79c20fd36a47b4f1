//! The files that a copy of an open database is made of, with what a program that copies them has
//! to know.

use crate::boundary::quiet;
use crate::boundary::{attempt, call, destroy, give, put, shared};
use crate::call_options::lifecycle;
use crate::db::database;
use crate::lent::Text;
use crate::*;
use esker::{Db, LiveFile, Result};
use esker_format::file_name::{FileKind, parse_file_name};
use std::ffi::{c_char, c_int, c_uchar};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

/// How the files are listed.
#[derive(Default)]
pub struct rocksdb_livefiles_storage_info_options_t {
    pub(crate) include_checksum_info: bool,
    /// Memtables are flushed first when the logs are as large as this.
    pub(crate) wal_size_for_flush: u64,
    /// A hint: families are flushed one by one, and the log makes them agree.
    pub(crate) atomic_flush: bool,
}

lifecycle!(
    rocksdb_livefiles_storage_info_options_t,
    rocksdb_livefiles_storage_info_options_create,
    rocksdb_livefiles_storage_info_options_destroy
);

/// The files, with their texts as C wants them.
pub struct rocksdb_livefiles_storage_info_t {
    files: Vec<StorageFile>,
}

struct StorageFile {
    name: Text,
    directory: Text,
    number: u64,
    kind: c_int,
    size: u64,
    temperature: c_int,
    checksum: Text,
    checksum_function: Text,
    replacement: Vec<u8>,
    trim: bool,
}

/// RocksDB's number of a kind of file.
fn number_of(kind: FileKind) -> c_int {
    match kind {
        FileKind::Wal => 0,
        FileKind::Lock => 1,
        FileKind::Table => 2,
        FileKind::Manifest => 3,
        FileKind::Current => 4,
        FileKind::InfoLog => 6,
        FileKind::MetaDb => 7,
        FileKind::Identity => 8,
        FileKind::Options => 9,
        FileKind::Blob => 10,
        _ => 5,
    }
}

impl StorageFile {
    fn new(db: &Db, file: &LiveFile, with_checksums: bool) -> Self {
        let directory = file.path.parent().unwrap_or(db.path());
        let checksums = |bytes: &[u8]| Text::new(if with_checksums { bytes } else { &[] });
        StorageFile {
            name: Text::new(&file.name),
            directory: Text::new(directory.as_os_str().as_bytes()),
            number: parse_file_name(&file.name).map_or(0, |(_, number)| number.0),
            kind: number_of(file.kind),
            size: file.bytes,
            temperature: c_int::from(file.temperature),
            checksum: checksums(&file.file_checksum),
            checksum_function: checksums(file.file_checksum_func_name.as_bytes()),
            replacement: file.replacement.clone().unwrap_or_default(),
            trim: !file.is_immutable,
        }
    }

    /// CURRENT: what it must hold is given, because the file may change meanwhile.
    fn current(db: &Db, manifest: &str) -> Self {
        let contents = format!("{manifest}\n").into_bytes();
        StorageFile {
            name: Text::new("CURRENT"),
            directory: Text::new(db.path().as_os_str().as_bytes()),
            number: 0,
            kind: number_of(FileKind::Current),
            size: contents.len() as u64,
            temperature: 0,
            checksum: Text::default(),
            checksum_function: Text::default(),
            replacement: contents,
            trim: true,
        }
    }
}

fn list(db: &Db, options: &rocksdb_livefiles_storage_info_options_t) -> Result<Vec<StorageFile>> {
    let mut files = db.live_files()?;
    let logs: u64 = files
        .iter()
        .filter(|f| f.kind == FileKind::Wal)
        .map(|f| f.bytes)
        .sum();
    if logs >= options.wal_size_for_flush && !db.is_read_only() {
        db.flush()?;
        files = db.live_files()?;
    }
    let mut out = Vec::with_capacity(files.len() + 1);
    for file in &files {
        out.push(StorageFile::new(db, file, options.include_checksum_info));
        if file.kind == FileKind::Manifest {
            out.push(StorageFile::current(db, &file.name));
        }
    }
    Ok(out)
}

/// With [`rocksdb_disable_file_deletions`] called before, the files stay.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_livefiles_storage_info(
    db: *mut rocksdb_t,
    options: *const rocksdb_livefiles_storage_info_options_t,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_livefiles_storage_info_t {
    call(errptr, ptr::null_mut(), || {
        let files = list(database(db)?, shared(options)?)?;
        Ok(give(rocksdb_livefiles_storage_info_t { files }))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles_storage_info_count(
    info: *const rocksdb_livefiles_storage_info_t,
) -> usize {
    attempt(0, || Ok(shared(info)?.files.len()))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles_storage_info_destroy(
    info: *mut rocksdb_livefiles_storage_info_t,
) {
    destroy(info);
}

/// Applies `of` to one file; returns `nothing` for one that is not there.
fn about<R: Copy>(
    info: *const rocksdb_livefiles_storage_info_t,
    index: usize,
    nothing: R,
    of: impl FnOnce(&StorageFile) -> R,
) -> R {
    attempt(nothing, || {
        Ok(shared(info)?.files.get(index).map_or(nothing, of))
    })
}

/// The text alone.
fn plain(text: &Text) -> *const c_char {
    text.lend(ptr::null_mut())
}

/// Exports the getter of a fact about a file.
macro_rules! fact {
    ($name:ident, $type:ty, $nothing:expr, $of:expr) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(
            info: *const rocksdb_livefiles_storage_info_t,
            index: usize,
        ) -> $type {
            about(info, index, $nothing, $of)
        }
    };
}

fact!(
    rocksdb_livefiles_storage_info_relative_filename,
    *const c_char,
    ptr::null(),
    |f| plain(&f.name)
);
fact!(
    rocksdb_livefiles_storage_info_directory,
    *const c_char,
    ptr::null(),
    |f| plain(&f.directory)
);
fact!(rocksdb_livefiles_storage_info_file_number, u64, 0, |f| f
    .number);
fact!(rocksdb_livefiles_storage_info_file_type, c_int, 0, |f| f
    .kind);
fact!(rocksdb_livefiles_storage_info_size, u64, 0, |f| f.size);
fact!(rocksdb_livefiles_storage_info_temperature, c_int, 0, |f| f
    .temperature);
fact!(
    rocksdb_livefiles_storage_info_file_checksum,
    *const c_char,
    ptr::null(),
    |f| plain(&f.checksum)
);
fact!(
    rocksdb_livefiles_storage_info_file_checksum_func_name,
    *const c_char,
    ptr::null(),
    |f| plain(&f.checksum_function)
);
fact!(
    rocksdb_livefiles_storage_info_trim_to_size,
    c_uchar,
    0,
    |f| c_uchar::from(f.trim)
);

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_livefiles_storage_info_replacement_contents(
    info: *const rocksdb_livefiles_storage_info_t,
    index: usize,
    size: *mut usize,
) -> *const c_char {
    put(size, 0);
    about(info, index, ptr::null(), |f| {
        put(size, f.replacement.len());
        f.replacement.as_ptr().cast()
    })
}
