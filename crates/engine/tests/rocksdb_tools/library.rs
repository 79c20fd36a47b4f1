//! A RocksDB library of any version, loaded at run time through its C API: as much of it as the
//! tests need.
//!
//! Objects of the library are freed when the database closes, or not at all: a test process ends
//! soon. Signatures are those of RocksDB's `c.h`; a library with the name of a function has its
//! signature too.

use super::{Content, Contents};
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

type Object = *mut c_void;
type Bytes = *const c_char;
type Failure = *mut *mut c_char;

macro_rules! functions {
    ($($field:ident = $name:literal ($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        /// The functions, with the library that they are in.
        #[derive(Debug)]
        pub(crate) struct Library {
            $($field: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
            _library: libloading::Library,
        }

        impl Library {
            /// Loads the library at `path`.
            pub(crate) fn load(path: &str) -> Library {
                // SAFETY: the user who named the library chose to run its initialisers.
                let library = unsafe { libloading::Library::new(path) };
                let library = library.unwrap_or_else(|e| panic!("{path}: {e}"));
                $(
                    // SAFETY: the type is the one that RocksDB's header gives this name.
                    let $field = unsafe { library.get::<unsafe extern "C" fn($($arg),*) $(-> $ret)?>($name) };
                    let $field = *$field.unwrap_or_else(|e| panic!("{path}: {e}"));
                )*
                Library { $($field,)* _library: library }
            }
        }
    };
}

functions! {
    free = b"rocksdb_free" (Object);
    default_env = b"rocksdb_create_default_env" () -> Object;
    cache = b"rocksdb_cache_create_lru" (usize) -> Object;
    load_latest_options = b"rocksdb_load_latest_options"
        (Bytes, Object, bool, Object, *mut Object, *mut usize, *mut *mut Bytes, *mut *mut Object, Failure);
    open = b"rocksdb_open_column_families" (Object, Bytes, c_int, *const Bytes, *const Object, *mut Object, Failure) -> Object;
    dbpath = b"rocksdb_dbpath_create" (Bytes, u64) -> Object;
    set_db_paths = b"rocksdb_options_set_db_paths" (Object, *mut Object, usize);
    close = b"rocksdb_close" (Object);
    family_destroy = b"rocksdb_column_family_handle_destroy" (Object);
    write_options = b"rocksdb_writeoptions_create" () -> Object;
    batch_from = b"rocksdb_writebatch_create_from" (Bytes, usize) -> Object;
    batch_destroy = b"rocksdb_writebatch_destroy" (Object);
    write = b"rocksdb_write" (Object, Object, Object, Failure);
    read_options = b"rocksdb_readoptions_create" () -> Object;
    set_total_order_seek = b"rocksdb_readoptions_set_total_order_seek" (Object, c_uchar);
    iterator = b"rocksdb_create_iterator_cf" (Object, Object, Object) -> Object;
    iter_destroy = b"rocksdb_iter_destroy" (Object);
    iter_valid = b"rocksdb_iter_valid" (Object) -> c_uchar;
    iter_seek_to_first = b"rocksdb_iter_seek_to_first" (Object);
    iter_next = b"rocksdb_iter_next" (Object);
    iter_key = b"rocksdb_iter_key" (Object, *mut usize) -> Bytes;
    iter_value = b"rocksdb_iter_value" (Object, *mut usize) -> Bytes;
    iter_get_error = b"rocksdb_iter_get_error" (Object, Failure);
    flush_options = b"rocksdb_flushoptions_create" () -> Object;
    flush = b"rocksdb_flush_cf" (Object, Object, Object, Failure);
    compact_range = b"rocksdb_compact_range_cf" (Object, Object, Bytes, usize, Bytes, usize);
    cancel_work = b"rocksdb_cancel_all_background_work" (Object, c_uchar);
    verify_checksum = b"rocksdb_verify_checksum" (Object, Failure);
    options = b"rocksdb_options_create" () -> Object;
    env_options = b"rocksdb_envoptions_create" () -> Object;
    ingest_options = b"rocksdb_ingestexternalfileoptions_create" () -> Object;
    ingest = b"rocksdb_ingest_external_file_cf" (Object, Object, *const Bytes, usize, Object, Failure);
    writer = b"rocksdb_sstfilewriter_create" (Object, Object) -> Object;
    writer_open = b"rocksdb_sstfilewriter_open" (Object, Bytes, Failure);
    writer_put = b"rocksdb_sstfilewriter_put" (Object, Bytes, usize, Bytes, usize, Failure);
    writer_finish = b"rocksdb_sstfilewriter_finish" (Object, Failure);
    writer_destroy = b"rocksdb_sstfilewriter_destroy" (Object);
}

impl Library {
    /// Runs `call` with a place for an error, and panics with the error it left there.
    fn checked<T>(&self, what: &str, call: impl FnOnce(Failure) -> T) -> T {
        let mut error: *mut c_char = null_mut();
        let out = call(&mut error);
        if !error.is_null() {
            // SAFETY: an error is a text that ends in zero.
            let text = unsafe { CStr::from_ptr(error) }
                .to_string_lossy()
                .into_owned();
            // SAFETY: the text is the caller's to free.
            unsafe { (self.free)(error.cast()) };
            panic!("{what}: RocksDB says: {text}");
        }
        out
    }

    /// Writes a table file for ingestion.
    pub(crate) fn write_external(&self, path: &Path, content: &Content) {
        let path = CString::new(path.to_str().expect("a path in UTF-8")).expect("no zero");
        // SAFETY: makes two objects and one of both.
        let writer = unsafe { (self.writer)((self.env_options)(), (self.options)()) };
        self.checked("opening a file", |error| {
            // SAFETY: the writer is alive, the path ends in zero.
            unsafe { (self.writer_open)(writer, path.as_ptr(), error) }
        });
        for (key, value) in content {
            self.checked("adding a key", |error| {
                let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
                // SAFETY: the bytes are copied.
                unsafe { (self.writer_put)(writer, k, key.len(), v, value.len(), error) }
            });
        }
        self.checked("finishing a file", |error| {
            // SAFETY: the writer is alive.
            unsafe { (self.writer_finish)(writer, error) }
        });
        // SAFETY: the writer is used no more.
        unsafe { (self.writer_destroy)(writer) };
    }

    /// Opens the database at `dir` with the options of its newest OPTIONS file, none of them
    /// ignored.
    pub(crate) fn open(&self, dir: &Path, what: &str) -> Theirs<'_> {
        self.open_with_paths(dir, &[], what)
    }

    /// Opens the database as [`Library::open`] does, with `db_paths`: directories with the bytes
    /// that they should hold.
    pub(crate) fn open_with_paths(
        &self,
        dir: &Path,
        paths: &[(&Path, u64)],
        what: &str,
    ) -> Theirs<'_> {
        let path = CString::new(dir.to_str().expect("a path in UTF-8")).expect("no zero");
        // SAFETY: makes an object.
        let env = unsafe { (self.default_env)() };
        // SAFETY: makes an object.
        let cache = unsafe { (self.cache)(8 << 20) };
        let (mut options, mut count) = (null_mut(), 0);
        let (mut names, mut families) = (null_mut(), null_mut());
        self.checked(what, |error| {
            // SAFETY: environment and cache are alive; the rest are places for what is returned.
            unsafe {
                (self.load_latest_options)(
                    path.as_ptr(),
                    env,
                    false,
                    cache,
                    &mut options,
                    &mut count,
                    &mut names,
                    &mut families,
                    error,
                );
            }
        });
        let mut given: Vec<Object> = Vec::new();
        for (path, size) in paths {
            let path = CString::new(path.to_str().expect("a path in UTF-8")).expect("no zero");
            // SAFETY: the path ends in zero, and is copied.
            given.push(unsafe { (self.dbpath)(path.as_ptr(), *size) });
        }
        // SAFETY: the options are alive, the list has as many paths as is said.
        unsafe { (self.set_db_paths)(options, given.as_mut_ptr(), given.len()) };
        let mut handles = vec![null_mut(); count];
        let db = self.checked(what, |error| {
            let number = c_int::try_from(count).expect("few families");
            // SAFETY: names, families and handles hold `count` elements each.
            unsafe {
                (self.open)(
                    options,
                    path.as_ptr(),
                    number,
                    names,
                    families,
                    handles.as_mut_ptr(),
                    error,
                )
            }
        });
        let named = (0..count).map(|i| {
            // SAFETY: `names` holds `count` elements.
            let name = unsafe { *names.add(i) };
            // SAFETY: a name is a text that ends in zero.
            unsafe { CStr::from_ptr(name) }
                .to_string_lossy()
                .into_owned()
        });
        let families = named.zip(handles).collect();
        Theirs {
            library: self,
            db,
            families,
        }
    }
}

/// A database that the library has open.
#[derive(Debug)]
pub(crate) struct Theirs<'a> {
    library: &'a Library,
    db: Object,
    families: Vec<(String, Object)>,
}

impl Theirs<'_> {
    /// Writes an encoded batch.
    pub(crate) fn write(&self, batch: &[u8]) {
        let lib = self.library;
        // SAFETY: the bytes are copied.
        let batch = unsafe { (lib.batch_from)(batch.as_ptr().cast(), batch.len()) };
        // SAFETY: makes an object.
        let options = unsafe { (lib.write_options)() };
        lib.checked("a write", |error| {
            // SAFETY: all three objects are alive.
            unsafe { (lib.write)(self.db, options, batch, error) }
        });
        // SAFETY: the batch is used no more.
        unsafe { (lib.batch_destroy)(batch) };
    }

    /// Takes a file into the family called `name`.
    pub(crate) fn ingest(&self, name: &str, path: &Path) {
        let lib = self.library;
        let path = CString::new(path.to_str().expect("a path in UTF-8")).expect("no zero");
        let (_, family) = self
            .families
            .iter()
            .find(|(n, _)| n == name)
            .expect("the family is open");
        let list = [path.as_ptr()];
        // SAFETY: makes an object.
        let options = unsafe { (lib.ingest_options)() };
        lib.checked("an ingestion", |error| {
            // SAFETY: all objects are alive; the list has one path.
            unsafe { (lib.ingest)(self.db, *family, list.as_ptr(), 1, options, error) }
        });
    }

    /// Flushes every family, and compacts all of it with `compact`.
    pub(crate) fn settle(&self, compact: bool) {
        let lib = self.library;
        // SAFETY: makes an object.
        let options = unsafe { (lib.flush_options)() };
        for (_, family) in &self.families {
            lib.checked("a flush", |error| {
                // SAFETY: all three objects are alive.
                unsafe { (lib.flush)(self.db, options, *family, error) }
            });
            if compact {
                // SAFETY: null stands for no bound.
                unsafe { (lib.compact_range)(self.db, *family, null(), 0, null(), 0) };
            }
        }
    }

    /// Stops its background work for good, so that the directory can be copied.
    pub(crate) fn hold_still(&self) {
        // SAFETY: the database is open.
        unsafe { (self.library.cancel_work)(self.db, 1) };
    }

    /// Every entry of every family. Checks all checksums first.
    pub(crate) fn read_all(&self) -> Contents {
        let lib = self.library;
        lib.checked("verifying checksums", |error| {
            // SAFETY: the database is open.
            unsafe { (lib.verify_checksum)(self.db, error) }
        });
        self.families
            .iter()
            .map(|(name, f)| (name.clone(), self.read(*f)))
            .collect()
    }

    fn read(&self, family: Object) -> Content {
        let lib = self.library;
        let mut content = Content::new();
        // SAFETY: makes an object.
        let options = unsafe { (lib.read_options)() };
        // SAFETY: the object is alive.
        unsafe { (lib.set_total_order_seek)(options, 1) };
        // SAFETY: database, options and family are alive.
        let it = unsafe { (lib.iterator)(self.db, options, family) };
        // SAFETY: the iterator is alive.
        unsafe { (lib.iter_seek_to_first)(it) };
        // SAFETY: as above.
        while unsafe { (lib.iter_valid)(it) } != 0 {
            content.insert(copied(lib.iter_key, it), copied(lib.iter_value, it));
            // SAFETY: the iterator is valid.
            unsafe { (lib.iter_next)(it) };
        }
        lib.checked("a scan", |error| {
            // SAFETY: the iterator is alive.
            unsafe { (lib.iter_get_error)(it, error) }
        });
        // SAFETY: the iterator is used no more.
        unsafe { (lib.iter_destroy)(it) };
        content
    }
}

/// The bytes that the iterator `it` shows, copied.
fn copied(get: unsafe extern "C" fn(Object, *mut usize) -> Bytes, it: Object) -> Vec<u8> {
    let mut len = 0;
    // SAFETY: the iterator stands on an entry.
    let at = unsafe { get(it, &mut len) };
    if len == 0 {
        return Vec::new();
    }
    // SAFETY: the bytes live until the iterator moves.
    unsafe { std::slice::from_raw_parts(at.cast::<u8>(), len) }.to_vec()
}

impl Drop for Theirs<'_> {
    fn drop(&mut self) {
        for (_, family) in &self.families {
            // SAFETY: the handle is used no more.
            unsafe { (self.library.family_destroy)(*family) };
        }
        // SAFETY: nothing of the database is alive any more.
        unsafe { (self.library.close)(self.db) };
    }
}
