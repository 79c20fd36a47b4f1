//! User-defined timestamps through the C functions.

mod common;

use common::{fine, told};
use rocksdb::*;
use std::cmp::Ordering;
use std::ffi::{CString, c_char, c_int, c_uchar, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

const SIZE: usize = 8;

fn c(path: &Path) -> CString {
    CString::new(path.to_str().expect("UTF-8")).expect("no NUL")
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

/// Copies bytes that C handed over, and `free`s them.
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

    /// Returns the entries that an iterator shows at `ts`, forward; backward it must show the same.
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

    /// Returns all versions from `since` on that an iterator shows at `ts`: key, timestamp, type
    /// (0x14: a deletion), value; forward, and backward the same.
    fn versions(&self, since: u64, ts: u64) -> Vec<(Vec<u8>, u64, u8, Vec<u8>)> {
        rocksdb_readoptions_set_iter_start_ts(self.read, at(&since.to_le_bytes()), SIZE);
        self.read_at(ts);
        let it = rocksdb_create_iterator(self.db, self.read);
        rocksdb_readoptions_set_iter_start_ts(self.read, null(), 0);
        let mut walks = [Vec::new(), Vec::new()];
        for (backward, shown) in walks.iter_mut().enumerate() {
            match backward {
                0 => rocksdb_iter_seek_to_first(it),
                _ => rocksdb_iter_seek_to_last(it),
            }
            while rocksdb_iter_valid(it) != 0 {
                let mut len = 0;
                let internal = lent(rocksdb_iter_key(it, &mut len), len);
                let time = lent(rocksdb_iter_timestamp(it, &mut len), len);
                let value = lent(rocksdb_iter_value(it, &mut len), len);
                let (user, trailer) = internal.split_at(internal.len() - 8);
                let (key, of_key) = split(user, true);
                assert_eq!(of_key, time);
                shown.push((key.to_vec(), number(&time), trailer[0], value));
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

    /// Compacts everything, after raising what history is kept.
    fn compact(&self, low: u64) {
        let options = rocksdb_compactoptions_create();
        let low = low.to_le_bytes();
        rocksdb_compactoptions_set_full_history_ts_low(options, at(&low).cast_mut(), SIZE);
        rocksdb_compactoptions_set_bottommost_level_compaction(options, 2);
        rocksdb_compact_range_opt(self.db, options, null(), 0, null(), 0);
        rocksdb_compactoptions_destroy(options);
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

#[test]
fn an_iterator_shows_all_versions_from_a_timestamp_on() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Store::open(&dir.path().join("db"));
    for ts in 1..=6 {
        db.put(b"a", ts, format!("a{ts}").as_bytes());
        if ts == 3 {
            db.flush();
        }
    }
    db.delete(b"a", 7);
    db.put(b"b", 4, b"b4");
    db.put(b"b", 4, b"b4 again");
    let put = |key: &[u8], ts: u64, value: &str| (key.to_vec(), ts, 1, value.as_bytes().to_vec());
    let gone = |key: &[u8], ts: u64| (key.to_vec(), ts, 0x14, Vec::new());
    for _ in 0..2 {
        let all = db.versions(0, u64::MAX);
        let a: Vec<_> = (1..=6)
            .rev()
            .map(|ts| put(b"a", ts, &format!("a{ts}")))
            .collect();
        let wanted = [&[gone(b"a", 7)][..], &a, &[put(b"b", 4, "b4 again")]].concat();
        assert_eq!(all, wanted);
        let some = db.versions(2, 4);
        let wanted = [
            put(b"a", 4, "a4"),
            put(b"a", 3, "a3"),
            put(b"a", 2, "a2"),
            put(b"b", 4, "b4 again"),
        ];
        assert_eq!(some, wanted);
        assert_eq!(db.versions(8, 9), []);
        db.flush();
    }
}

#[test]
fn compactions_keep_the_history_that_is_asked_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    let low = |db: &Store| {
        let mut len = 0;
        let low = fine(|e| rocksdb_get_full_history_ts_low(db.db, db.family, &mut len, e));
        taken(low, len)
            .filter(|low| !low.is_empty())
            .map(|low| number(&low))
    };
    {
        let db = Store::open(&path);
        for ts in 1..=6 {
            db.put(b"a", ts, format!("a{ts}").as_bytes());
        }
        db.put(b"gone", 1, b"x");
        db.delete(b"gone", 3);
        db.put(b"late", 1, b"x");
        db.delete(b"late", 5);
        assert_eq!(low(&db), None);
        db.compact(4);
        assert_eq!(low(&db), Some(4));
        assert_eq!(db.get(b"a", 4), Some((b"a4".to_vec(), 4)));
        // The newest version below the history that is kept has lost its timestamp.
        let kept = db.versions(4, 9);
        let kept: Vec<_> = kept
            .iter()
            .map(|(k, ts, kind, _)| (&k[..], *ts, *kind))
            .collect();
        let wanted = [
            (&b"a"[..], 6, 1),
            (b"a", 5, 1),
            (b"a", 4, 1),
            (b"late", 5, 0x14),
        ];
        assert_eq!(kept, wanted);
        assert_eq!(db.get(b"late", 4), Some((b"x".to_vec(), 0)));
        assert_eq!(db.get(b"gone", 4), None);
    }
    let db = Store::open(&path);
    assert_eq!(low(&db), Some(4));
    db.read_at(3);
    let mut len = 0;
    let error = "Invalid argument: Read timestamp: 0300000000000000 is smaller than full_history_ts_low: \
                 0400000000000000\n";
    refused(error, |e| {
        rocksdb_get(db.db, db.read, at(b"a"), 1, &mut len, e)
    });
    let it = rocksdb_create_iterator(db.db, db.read);
    refused(error, |e| rocksdb_iter_get_error(it, e));
    rocksdb_iter_destroy(it);
    let raise = |ts: &[u8], family, e| {
        rocksdb_increase_full_history_ts_low(db.db, family, at(ts), ts.len(), e);
    };
    refused(
        "Invalid argument: Current full_history_ts_low: 0400000000000000 is higher than provided ts: \
         0200000000000000\n",
        |e| raise(&2u64.to_le_bytes(), db.family, e),
    );
    refused("Invalid argument: ts_low size mismatch", |e| {
        raise(b"1234", db.family, e)
    });
    refused(
        "Invalid argument: Timestamp is not enabled in this column family",
        |e| raise(b"12345678", db.plain, e),
    );
}

#[test]
fn calls_without_timestamps_and_with_wrong_ones_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Store::open(&dir.path().join("db"));
    let (k, ts) = (at(b"k"), at(b"12345678"));
    let needed =
        "Invalid argument: cannot call this method on column family default that enables timestamp";
    refused(needed, |e| rocksdb_put(db.db, db.write, k, 1, k, 1, e));
    refused(needed, |e| rocksdb_delete(db.db, db.write, k, 1, e));
    let mut len = 0;
    refused(needed, |e| rocksdb_get(db.db, db.read, k, 1, &mut len, e));
    let plain = "Invalid argument: cannot call this method on column family plain that does not enable timestamp";
    refused(plain, |e| {
        rocksdb_put_cf_with_ts(db.db, db.write, db.plain, k, 1, ts, SIZE, k, 1, e);
    });
    refused(
        "Invalid argument: Timestamp sizes mismatch: expect 8, 4 given",
        |e| {
            rocksdb_put_with_ts(db.db, db.write, k, 1, ts, 4, k, 1, e);
        },
    );
    rocksdb_readoptions_set_timestamp(db.read, ts, SIZE);
    refused(plain, |e| {
        rocksdb_get_cf(db.db, db.read, db.plain, k, 1, &mut len, e)
    });
}

#[test]
fn a_range_deletion_has_a_timestamp() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Store::open(&dir.path().join("db"));
    let (k, early, late) = (at(b"k"), at(b"1\0\0\0\0\0\0\0"), at(b"2\0\0\0\0\0\0\0"));
    let done = |call: &dyn Fn(*mut *mut c_char)| {
        let mut error = null_mut();
        call(&mut error);
        assert_eq!(told(error), None);
    };
    done(&|e| rocksdb_put_with_ts(db.db, db.write, k, 1, early, SIZE, k, 1, e));
    let batch = rocksdb_writebatch_create();
    rocksdb_writebatch_delete_range_cf(batch, db.family, k, 1, at(b"z"), 1);
    done(&|e| rocksdb_writebatch_update_timestamps(batch, late, SIZE, null_mut(), Some(sizes), e));
    done(&|e| rocksdb_write(db.db, db.write, batch, e));
    rocksdb_writebatch_destroy(batch);
    for (ts, expected) in [(early, Some(b"k".to_vec())), (late, None)] {
        rocksdb_readoptions_set_timestamp(db.read, ts, SIZE);
        let (mut len, mut error) = (0, null_mut());
        let value = rocksdb_get(db.db, db.read, k, 1, &mut len, &mut error);
        assert_eq!(told(error), None);
        assert_eq!(taken(value, len), expected);
    }
}

/// The default family's keys have timestamps, those of family 1 do not, and there are no others.
unsafe extern "C" fn sizes(_: *mut c_void, family: u32) -> usize {
    match family {
        0 => SIZE,
        1 => 0,
        _ => usize::MAX,
    }
}

#[test]
fn a_batch_gets_its_timestamps_before_it_is_written() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Store::open(&dir.path().join("db"));
    let batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put_cf(batch, db.family, at(b"k"), 1, at(b"1"), 1);
    rocksdb_writebatch_put_cf(batch, db.plain, at(b"plain key"), 9, at(b"2"), 1);
    refused(
        "Invalid argument: write batch must have timestamp(s) set",
        |e| {
            rocksdb_write(db.db, db.write, batch, e);
        },
    );
    let update = |ts: &[u8], e| {
        rocksdb_writebatch_update_timestamps(batch, at(ts), ts.len(), null_mut(), Some(sizes), e);
    };
    refused("Invalid argument: timestamp size mismatch", |e| {
        update(b"1234", e)
    });
    fine(|e| update(&7u64.to_le_bytes(), e));
    fine(|e| rocksdb_write(db.db, db.write, batch, e));
    assert_eq!(db.get(b"k", 7), Some((b"1".to_vec(), 7)));
    assert_eq!(db.get(b"k", 6), None);
    rocksdb_readoptions_set_timestamp(db.read, null(), 0);
    let mut len = 0;
    let value =
        fine(|e| rocksdb_get_cf(db.db, db.read, db.plain, at(b"plain key"), 9, &mut len, e));
    assert_eq!(taken(value, len), Some(b"2".to_vec()));
    rocksdb_writebatch_clear(batch);
    rocksdb_writebatch_put_cf_with_ts(
        batch,
        db.plain,
        at(b"k"),
        1,
        at(b"12345678"),
        SIZE,
        at(b"1"),
        1,
    );
    refused("Invalid argument: timestamp disabled", |e| {
        rocksdb_write(db.db, db.write, batch, e);
    });
    rocksdb_writebatch_clear(batch);
    // Without a family the batch knows of no timestamp.
    rocksdb_writebatch_put(batch, at(b"long enough"), 11, at(b"1"), 1);
    refused(
        "Invalid argument: cannot call this method on column family default that enables timestamp",
        |e| rocksdb_write(db.db, db.write, batch, e),
    );
    rocksdb_writebatch_destroy(batch);
}
