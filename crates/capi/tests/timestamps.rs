//! User-defined timestamps through the C functions.

use rocksdb::*;
use std::cmp::Ordering;
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

const SIZE: usize = 8;

fn c(path: &Path) -> CString {
    CString::new(path.to_str().expect("UTF-8")).expect("no NUL")
}

/// The text of an error that was reported, which is freed.
fn told(error: *mut c_char) -> Option<String> {
    if error.is_null() {
        return None;
    }
    // SAFETY: the text ends with NUL.
    let text = unsafe { CStr::from_ptr(error) }
        .to_string_lossy()
        .into_owned();
    rocksdb_free(error.cast());
    Some(text)
}

/// Runs `call` with a place for an error; there must be none.
fn fine<R>(call: impl FnOnce(*mut *mut c_char) -> R) -> R {
    let mut error = null_mut();
    let out = call(&mut error);
    assert_eq!(told(error), None);
    out
}

/// Runs `call`, which must report this error.
fn refused<R>(what: &str, call: impl FnOnce(*mut *mut c_char) -> R) {
    let mut error = null_mut();
    call(&mut error);
    assert_eq!(told(error).as_deref(), Some(what));
}

fn at(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

/// What C handed over, with `free`d memory.
fn taken(bytes: *mut c_char, len: usize) -> Option<Vec<u8>> {
    if bytes.is_null() {
        assert_eq!(len, 0);
        return None;
    }
    let copy = lent(bytes, len);
    rocksdb_free(bytes.cast());
    Some(copy)
}

fn lent(bytes: *const c_char, len: usize) -> Vec<u8> {
    // SAFETY: that many bytes are there.
    unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len) }.to_vec()
}

fn split(key: &[u8], has_timestamp: bool) -> (&[u8], &[u8]) {
    key.split_at(key.len() - if has_timestamp { SIZE } else { 0 })
}

fn number(timestamp: &[u8]) -> u64 {
    u64::from_le_bytes(timestamp.try_into().expect("eight bytes"))
}

fn sign(order: Ordering) -> c_int {
    order as c_int
}

/// A key or a timestamp of a callback.
fn given<'a>(bytes: *const c_char, len: usize) -> &'a [u8] {
    // SAFETY: the library hands over that many bytes for the length of the call.
    unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len) }
}

unsafe extern "C" fn compare(
    _: *mut c_void,
    a: *const c_char,
    alen: usize,
    b: *const c_char,
    blen: usize,
) -> c_int {
    let ((a, at), (b, bt)) = (split(given(a, alen), true), split(given(b, blen), true));
    sign(a.cmp(b).then(number(bt).cmp(&number(at))))
}

unsafe extern "C" fn compare_ts(
    _: *mut c_void,
    a: *const c_char,
    alen: usize,
    b: *const c_char,
    blen: usize,
) -> c_int {
    sign(number(given(a, alen)).cmp(&number(given(b, blen))))
}

unsafe extern "C" fn compare_without_ts(
    _: *mut c_void,
    a: *const c_char,
    alen: usize,
    a_has_ts: c_uchar,
    b: *const c_char,
    blen: usize,
    b_has_ts: c_uchar,
) -> c_int {
    let a = split(given(a, alen), a_has_ts != 0).0;
    sign(a.cmp(split(given(b, blen), b_has_ts != 0).0))
}

unsafe extern "C" fn name(_: *mut c_void) -> *const c_char {
    c"esker.test.u64ts".as_ptr()
}

fn comparator() -> *mut rocksdb_comparator_t {
    rocksdb_comparator_with_ts_create(
        null_mut(),
        None,
        Some(compare),
        Some(compare_ts),
        Some(compare_without_ts),
        Some(name),
        SIZE,
    )
}

fn options() -> *mut rocksdb_options_t {
    let options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_create_missing_column_families(options, 1);
    rocksdb_options_set_compression(options, 0);
    options
}

/// A database whose default family has timestamps, with what calls on it need.
struct Store {
    db: *mut rocksdb_t,
    family: *mut rocksdb_column_family_handle_t,
    plain: *mut rocksdb_column_family_handle_t,
    write: *mut rocksdb_writeoptions_t,
    read: *mut rocksdb_readoptions_t,
}

impl Store {
    fn open(path: &Path) -> Store {
        let (timed, plain, order) = (options(), options(), comparator());
        rocksdb_options_set_comparator(timed, order);
        let names = [c"default".as_ptr(), c"plain".as_ptr()];
        let each = [timed.cast_const(), plain.cast_const()];
        let mut handles = [null_mut(); 2];
        let db = fine(|e| {
            rocksdb_open_column_families(
                timed,
                c(path).as_ptr(),
                2,
                names.as_ptr(),
                each.as_ptr(),
                handles.as_mut_ptr(),
                e,
            )
        });
        rocksdb_options_destroy(timed);
        rocksdb_options_destroy(plain);
        rocksdb_comparator_destroy(order);
        Store {
            db,
            family: handles[0],
            plain: handles[1],
            write: rocksdb_writeoptions_create(),
            read: rocksdb_readoptions_create(),
        }
    }

    fn put(&self, key: &[u8], ts: u64, value: &[u8]) {
        let ts = ts.to_le_bytes();
        fine(|e| {
            rocksdb_put_with_ts(
                self.db,
                self.write,
                at(key),
                key.len(),
                at(&ts),
                SIZE,
                at(value),
                value.len(),
                e,
            );
        });
    }

    fn delete(&self, key: &[u8], ts: u64) {
        let ts = ts.to_le_bytes();
        fine(|e| {
            rocksdb_delete_with_ts(self.db, self.write, at(key), key.len(), at(&ts), SIZE, e);
        });
    }

    fn read_at(&self, ts: u64) {
        rocksdb_readoptions_set_timestamp(self.read, at(&ts.to_le_bytes()), SIZE);
    }

    /// The value of `key` at `ts`, with the timestamp that it was written at.
    fn get(&self, key: &[u8], ts: u64) -> Option<(Vec<u8>, u64)> {
        self.read_at(ts);
        let (mut len, mut time, mut time_len) = (0, null_mut(), 0);
        let value = fine(|e| {
            let (key, keylen) = (at(key), key.len());
            let (db, read) = (self.db, self.read);
            rocksdb_get_with_ts(db, read, key, keylen, &mut len, &mut time, &mut time_len, e)
        });
        let value = taken(value, len)?;
        Some((value, number(&taken(time, time_len)?)))
    }

    /// What an iterator shows at `ts`, forward; backward it must show the same.
    fn scan(&self, ts: u64) -> Vec<(Vec<u8>, u64, Vec<u8>)> {
        self.read_at(ts);
        let it = rocksdb_create_iterator(self.db, self.read);
        let mut walks = [Vec::new(), Vec::new()];
        for (backward, shown) in walks.iter_mut().enumerate() {
            match backward {
                0 => rocksdb_iter_seek_to_first(it),
                _ => rocksdb_iter_seek_to_last(it),
            }
            while rocksdb_iter_valid(it) != 0 {
                let mut len = 0;
                let key = lent(rocksdb_iter_key(it, &mut len), len);
                let time = lent(rocksdb_iter_timestamp(it, &mut len), len);
                let value = lent(rocksdb_iter_value(it, &mut len), len);
                shown.push((key, number(&time), value));
                match backward {
                    0 => rocksdb_iter_next(it),
                    _ => rocksdb_iter_prev(it),
                }
            }
            fine(|e| rocksdb_iter_get_error(it, e));
        }
        rocksdb_iter_destroy(it);
        let [forward, mut backward] = walks;
        backward.reverse();
        assert_eq!(forward, backward);
        forward
    }

    fn flush(&self) {
        let options = rocksdb_flushoptions_create();
        fine(|e| rocksdb_flush(self.db, options, e));
        rocksdb_flushoptions_destroy(options);
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        rocksdb_column_family_handle_destroy(self.family);
        rocksdb_column_family_handle_destroy(self.plain);
        rocksdb_writeoptions_destroy(self.write);
        rocksdb_readoptions_destroy(self.read);
        rocksdb_close(self.db);
    }
}

#[test]
fn versions_are_read_from_memory_from_the_log_and_from_tables() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    {
        let db = Store::open(&path);
        db.put(b"a", 1, b"a1");
        db.put(b"a", 3, b"a3");
        db.put(b"b", 2, b"b2");
        db.delete(b"b", 4);
    }
    for round in 0..3 {
        let db = Store::open(&path);
        let versions = [
            (b"a", 0, None),
            (b"a", 1, Some((b"a1".to_vec(), 1))),
            (b"a", 2, Some((b"a1".to_vec(), 1))),
            (b"a", 9, Some((b"a3".to_vec(), 3))),
            (b"b", 1, None),
            (b"b", 3, Some((b"b2".to_vec(), 2))),
            (b"b", 4, None),
        ];
        for (key, ts, wanted) in versions {
            assert_eq!(db.get(key, ts), wanted, "round {round}, {key:?} at {ts}");
        }
        let shown = db.scan(3);
        let wanted = [(&b"a"[..], 3, &b"a3"[..]), (b"b", 2, b"b2")];
        let wanted = wanted.map(|(k, t, v)| (k.to_vec(), t, v.to_vec()));
        assert_eq!(shown, wanted);
        assert_eq!(db.scan(4), wanted[..1]);
        assert_eq!(db.scan(0), []);
        db.flush();
    }
}
