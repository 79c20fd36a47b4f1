//! A library with RocksDB's C interface as judge of a compacted database: checksums good, same
//! scan.
//!
//! The unsafe code is confined to this file. Every handle is freed by the function that made it.

use super::scan::Text;
use super::set::Expected;
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

type Handle = *mut c_void;
type Bytes = *const c_char;
type ErrorOut = *mut *mut c_char;
type Outcome<T = ()> = std::result::Result<T, String>;

macro_rules! functions {
    ($($field:ident = $name:literal ($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        /// The functions of a loaded library.
        pub(crate) struct Library {
            $($field: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
            _library: libloading::Library,
        }

        impl Library {
            fn load(path: &Path) -> Outcome<Library> {
                // SAFETY: the user who set the variable chose to run the library's initialisers.
                let library = unsafe { libloading::Library::new(path) }.map_err(|e| e.to_string())?;
                $(
                    // SAFETY: the signature is the one that RocksDB's header declares.
                    let $field = unsafe { library.get::<unsafe extern "C" fn($($arg),*) $(-> $ret)?>($name) };
                    let $field = *$field.map_err(|e| e.to_string())?;
                )*
                Ok(Library { $($field,)* _library: library })
            }
        }
    };
}

functions! {
    free = b"rocksdb_free" (*mut c_void);
    options_create = b"rocksdb_options_create" () -> Handle;
    options_destroy = b"rocksdb_options_destroy" (Handle);
    list_families = b"rocksdb_list_column_families" (Handle, Bytes, *mut usize, ErrorOut) -> *mut *mut c_char;
    list_destroy = b"rocksdb_list_column_families_destroy" (*mut *mut c_char, usize);
    open = b"rocksdb_open_for_read_only_column_families"
        (Handle, Bytes, c_int, *const Bytes, *const Handle, *mut Handle, c_uchar, ErrorOut) -> Handle;
    close = b"rocksdb_close" (Handle);
    family_destroy = b"rocksdb_column_family_handle_destroy" (Handle);
    verify_checksum = b"rocksdb_readoptions_set_verify_checksums" (Handle, c_uchar);
    read_create = b"rocksdb_readoptions_create" () -> Handle;
    read_destroy = b"rocksdb_readoptions_destroy" (Handle);
    read_total_order = b"rocksdb_readoptions_set_total_order_seek" (Handle, c_uchar);
    iterator = b"rocksdb_create_iterator_cf" (Handle, Handle, Handle) -> Handle;
    iter_destroy = b"rocksdb_iter_destroy" (Handle);
    seek_to_first = b"rocksdb_iter_seek_to_first" (Handle);
    valid = b"rocksdb_iter_valid" (Handle) -> c_uchar;
    next = b"rocksdb_iter_next" (Handle);
    key = b"rocksdb_iter_key" (Handle, *mut usize) -> Bytes;
    value = b"rocksdb_iter_value" (Handle, *mut usize) -> Bytes;
    iter_error = b"rocksdb_iter_get_error" (Handle, ErrorOut);
}

impl Library {
    /// The library that `ESKER_REF_LIB` names; without it, says so and returns nothing.
    pub(crate) fn find() -> Option<Library> {
        let Some(path) = std::env::var_os("ESKER_REF_LIB").filter(|p| !p.is_empty()) else {
            println!("SKIPPED: ESKER_REF_LIB is not set: no library of RocksDB checks the results");
            return None;
        };
        let path = Path::new(&path);
        Some(Library::load(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
    }

    /// Reads the database in `dir` with it. The operator is not needed: no operands are left.
    pub(crate) fn verify(&self, dir: &Path, expected: &Expected) -> Outcome {
        let path = CString::new(dir.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
        // SAFETY: a plain constructor.
        let options = unsafe { (self.options_create)() };
        let found = self
            .families(options, &path)
            .and_then(|families| self.scan(options, &path, &families));
        // SAFETY: `options` is ours, and nothing uses it any more.
        unsafe { (self.options_destroy)(options) };
        let found = found?.finish();
        if found.entries != expected.entries || found.md5 != expected.md5 {
            return Err(format!(
                "{} entries with digest {}",
                found.entries, found.md5
            ));
        }
        Ok(())
    }

    fn check(&self, error: *mut c_char) -> Outcome {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: the library left a zero-terminated text, which is ours.
        let text = unsafe { CStr::from_ptr(error) }
            .to_string_lossy()
            .into_owned();
        // SAFETY: the library allocated it, and it is not used after this.
        unsafe { (self.free)(error.cast()) };
        Err(text)
    }

    fn families(&self, options: Handle, path: &CStr) -> Outcome<Vec<CString>> {
        let (mut count, mut error) = (0, ptr::null_mut());
        // SAFETY: the options are live, the path ends in a zero, the outputs are ours.
        let list =
            unsafe { (self.list_families)(options, path.as_ptr(), &raw mut count, &raw mut error) };
        self.check(error)?;
        let names = (0..count)
            .map(|at| {
                // SAFETY: the list has `count` pointers.
                let name = unsafe { *list.add(at) };
                // SAFETY: each is a zero-terminated text.
                unsafe { CStr::from_ptr(name) }.to_owned()
            })
            .collect();
        // SAFETY: the list came from the library and is not used after this.
        unsafe { (self.list_destroy)(list, count) };
        Ok(names)
    }

    fn scan(&self, options: Handle, path: &CStr, families: &[CString]) -> Outcome<Text> {
        let names: Vec<Bytes> = families.iter().map(|f| f.as_ptr()).collect();
        let each: Vec<Handle> = vec![options; families.len()];
        let mut handles = vec![ptr::null_mut(); families.len()];
        let mut error = ptr::null_mut();
        let count = c_int::try_from(families.len()).map_err(|e| e.to_string())?;
        // SAFETY: three arrays with `count` elements each, live options, a zero-terminated path.
        let db = unsafe {
            (self.open)(
                options,
                path.as_ptr(),
                count,
                names.as_ptr(),
                each.as_ptr(),
                handles.as_mut_ptr(),
                0,
                &raw mut error,
            )
        };
        self.check(error)?;
        // SAFETY: a plain constructor.
        let read = unsafe { (self.read_create)() };
        // SAFETY: `read` is ours.
        unsafe { (self.read_total_order)(read, 1) };
        // SAFETY: as above.
        unsafe { (self.verify_checksum)(read, 1) };
        let mut text = Text::default();
        let outcome = families
            .iter()
            .zip(&handles)
            .try_for_each(|(name, handle)| {
                self.scan_family(db, read, *handle, &name.to_string_lossy(), &mut text)
            });
        for handle in handles {
            // SAFETY: the library made it, and it is not used after this.
            unsafe { (self.family_destroy)(handle) };
        }
        // SAFETY: as above.
        unsafe { (self.read_destroy)(read) };
        // SAFETY: as above; no iterator and no family is left.
        unsafe { (self.close)(db) };
        outcome.map(|()| text)
    }

    fn scan_family(
        &self,
        db: Handle,
        read: Handle,
        family: Handle,
        name: &str,
        text: &mut Text,
    ) -> Outcome {
        // SAFETY: all three handles are live.
        let it = unsafe { (self.iterator)(db, read, family) };
        // SAFETY: `it` is live until the end of this function.
        unsafe { (self.seek_to_first)(it) };
        loop {
            // SAFETY: `it` is live.
            if unsafe { (self.valid)(it) } == 0 {
                break;
            }
            let key = part(it, self.key);
            let value = part(it, self.value);
            text.add(name, &key, &value);
            // SAFETY: `it` is live and stands on an entry.
            unsafe { (self.next)(it) };
        }
        let mut error = ptr::null_mut();
        // SAFETY: `it` is live, the output is ours.
        unsafe { (self.iter_error)(it, &raw mut error) };
        // SAFETY: `it` is not used after this.
        unsafe { (self.iter_destroy)(it) };
        self.check(error)
    }
}

/// A copy of the key or the value that the iterator stands on.
fn part(it: Handle, get: unsafe extern "C" fn(Handle, *mut usize) -> Bytes) -> Vec<u8> {
    let mut len = 0;
    // SAFETY: the caller's iterator is live and stands on an entry.
    let data = unsafe { get(it, &raw mut len) };
    if len == 0 {
        return Vec::new();
    }
    // SAFETY: the library says that `len` bytes are there until the iterator moves.
    unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) }.to_vec()
}
