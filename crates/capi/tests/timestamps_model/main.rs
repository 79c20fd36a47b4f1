//! Keys with user-defined timestamps against a model, through flushes, compactions and reopening.
//!
//! All steps run on this library and, when `ESKER_REF_LIB` names a RocksDB library, on that
//! one, and on both in turns on one directory: each reads what the other wrote, also from the log.

mod model;

use model::{Model, Random, Shown, Version};
use std::cmp::Reverse;
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

type Object = *mut c_void;
type Bytes = *const c_char;
type Failure = *mut *mut c_char;
type Compare = unsafe extern "C" fn(Object, Bytes, usize, Bytes, usize) -> c_int;
type CompareBare =
    unsafe extern "C" fn(Object, Bytes, usize, c_uchar, Bytes, usize, c_uchar) -> c_int;
type Name = unsafe extern "C" fn(Object) -> Bytes;
type Size = unsafe extern "C" fn(Object, u32) -> usize;

const SIZE: usize = 8;

macro_rules! functions {
    ($($field:ident = $name:ident ($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        /// The functions of one library.
        struct Api {
            what: &'static str,
            $($field: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
            _library: Option<libloading::Library>,
        }

        impl Api {
            fn ours() -> Api {
                $(
                    let $field = rocksdb::$name as *const ();
                    // SAFETY: the type is the one that RocksDB's header gives this name; handles
                    // are pointers in both.
                    let $field = unsafe {
                        std::mem::transmute::<*const (), unsafe extern "C" fn($($arg),*) $(-> $ret)?>($field)
                    };
                )*
                Api { what: "Esker", $($field,)* _library: None }
            }

            fn load(path: &str) -> Api {
                // SAFETY: the user who named the library chose to run its initialisers.
                let library = unsafe { libloading::Library::new(path) }.expect("a library");
                $(
                    let name = concat!(stringify!($name), "\0").as_bytes();
                    // SAFETY: the type is the one that RocksDB's header gives this name.
                    let $field = unsafe { library.get::<unsafe extern "C" fn($($arg),*) $(-> $ret)?>(name) };
                    let $field = *$field.expect(stringify!($name));
                )*
                Api { what: "RocksDB", $($field,)* _library: Some(library) }
            }
        }
    };
}

functions! {
    free = rocksdb_free(Object);
    options = rocksdb_options_create() -> Object;
    create_if_missing = rocksdb_options_set_create_if_missing(Object, c_uchar);
    set_comparator = rocksdb_options_set_comparator(Object, Object);
    set_compression = rocksdb_options_set_compression(Object, c_int);
    set_prefix = rocksdb_options_set_prefix_extractor(Object, Object);
    fixed_prefix = rocksdb_slicetransform_create_fixed_prefix(usize) -> Object;
    set_table = rocksdb_options_set_block_based_table_factory(Object, Object);
    table = rocksdb_block_based_options_create() -> Object;
    set_block_size = rocksdb_block_based_options_set_block_size(Object, usize);
    set_filter = rocksdb_block_based_options_set_filter_policy(Object, Object);
    bloom = rocksdb_filterpolicy_create_bloom_full(f64) -> Object;
    comparator = rocksdb_comparator_with_ts_create
        (Object, Option<Name>, Compare, Compare, CompareBare, Name, usize) -> Object;
    open = rocksdb_open(Object, Bytes, Failure) -> Object;
    close = rocksdb_close(Object);
    default_family = rocksdb_get_default_column_family_handle(Object) -> Object;
    family_destroy = rocksdb_column_family_handle_destroy(Object);
    write_options = rocksdb_writeoptions_create() -> Object;
    read_options = rocksdb_readoptions_create() -> Object;
    read_options_destroy = rocksdb_readoptions_destroy(Object);
    total_order = rocksdb_readoptions_set_total_order_seek(Object, c_uchar);
    set_timestamp = rocksdb_readoptions_set_timestamp(Object, Bytes, usize);
    set_start = rocksdb_readoptions_set_iter_start_ts(Object, Bytes, usize);
    set_lower = rocksdb_readoptions_set_iterate_lower_bound(Object, Bytes, usize);
    set_upper = rocksdb_readoptions_set_iterate_upper_bound(Object, Bytes, usize);
    plain_put = rocksdb_put(Object, Object, Bytes, usize, Bytes, usize, Failure);
    plain_get = rocksdb_get(Object, Object, Bytes, usize, *mut usize, Failure) -> *mut c_char;
    put = rocksdb_put_with_ts(Object, Object, Bytes, usize, Bytes, usize, Bytes, usize, Failure);
    delete = rocksdb_delete_with_ts(Object, Object, Bytes, usize, Bytes, usize, Failure);
    single_delete = rocksdb_singledelete_with_ts(Object, Object, Bytes, usize, Bytes, usize, Failure);
    get = rocksdb_get_with_ts
        (Object, Object, Bytes, usize, *mut usize, *mut *mut c_char, *mut usize, Failure) -> *mut c_char;
    batch = rocksdb_writebatch_create() -> Object;
    batch_of_size = rocksdb_writebatch_create_with_params(usize, usize, usize, usize) -> Object;
    batch_destroy = rocksdb_writebatch_destroy(Object);
    batch_put = rocksdb_writebatch_put_cf_with_ts(Object, Object, Bytes, usize, Bytes, usize, Bytes, usize);
    batch_delete = rocksdb_writebatch_delete_cf_with_ts(Object, Object, Bytes, usize, Bytes, usize);
    batch_delete_range = rocksdb_writebatch_delete_range_cf
        (Object, Object, Bytes, usize, Bytes, usize);
    delete_range = rocksdb_delete_range_cf
        (Object, Object, Object, Bytes, usize, Bytes, usize, Failure);
    update = rocksdb_writebatch_update_timestamps(Object, Bytes, usize, Object, Size, Failure);
    write = rocksdb_write(Object, Object, Object, Failure);
    iterator = rocksdb_create_iterator(Object, Object) -> Object;
    iter_destroy = rocksdb_iter_destroy(Object);
    iter_valid = rocksdb_iter_valid(Object) -> c_uchar;
    iter_first = rocksdb_iter_seek_to_first(Object);
    iter_last = rocksdb_iter_seek_to_last(Object);
    iter_seek = rocksdb_iter_seek(Object, Bytes, usize);
    iter_seek_for_prev = rocksdb_iter_seek_for_prev(Object, Bytes, usize);
    iter_next = rocksdb_iter_next(Object);
    iter_prev = rocksdb_iter_prev(Object);
    iter_key = rocksdb_iter_key(Object, *mut usize) -> Bytes;
    iter_value = rocksdb_iter_value(Object, *mut usize) -> Bytes;
    iter_timestamp = rocksdb_iter_timestamp(Object, *mut usize) -> Bytes;
    iter_error = rocksdb_iter_get_error(Object, Failure);
    flush_options = rocksdb_flushoptions_create() -> Object;
    flush = rocksdb_flush(Object, Object, Failure);
    compact_options = rocksdb_compactoptions_create() -> Object;
    compact_bottom = rocksdb_compactoptions_set_bottommost_level_compaction(Object, c_uchar);
    compact_low = rocksdb_compactoptions_set_full_history_ts_low(Object, *mut c_char, usize);
    compact = rocksdb_compact_range_opt(Object, Object, Bytes, usize, Bytes, usize);
    compact_range = rocksdb_compact_range(Object, Bytes, usize, Bytes, usize);
    increase = rocksdb_increase_full_history_ts_low(Object, Object, Bytes, usize, Failure);
    low = rocksdb_get_full_history_ts_low(Object, Object, *mut usize, Failure) -> *mut c_char;
    txn_db_options = rocksdb_transactiondb_options_create() -> Object;
    txn_options = rocksdb_transaction_options_create() -> Object;
    txn_open = rocksdb_transactiondb_open(Object, Object, Bytes, Failure) -> Object;
    txn_close = rocksdb_transactiondb_close(Object);
    txn_begin = rocksdb_transaction_begin(Object, Object, Object, Object) -> Object;
    txn_destroy = rocksdb_transaction_destroy(Object);
    txn_name = rocksdb_transaction_set_name(Object, Bytes, usize, Failure);
    txn_put = rocksdb_transaction_put(Object, Bytes, usize, Bytes, usize, Failure);
    txn_get = rocksdb_transaction_get
        (Object, Object, Bytes, usize, *mut usize, Failure) -> *mut c_char;
    txn_prepare = rocksdb_transaction_prepare(Object, Failure);
    txn_stamp = rocksdb_transaction_set_commit_timestamp(Object, u64);
    txn_commit = rocksdb_transaction_commit(Object, Failure);
}

fn at(bytes: &[u8]) -> Bytes {
    bytes.as_ptr().cast()
}

fn lent<'a>(bytes: Bytes, len: usize) -> &'a [u8] {
    // SAFETY: the library says that this many bytes are there; nobody keeps them past the next
    // call.
    unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len) }
}

fn split(key: &[u8], has_timestamp: bool) -> (&[u8], &[u8]) {
    key.split_at(key.len() - if has_timestamp { SIZE } else { 0 })
}

fn number(timestamp: &[u8]) -> u64 {
    u64::from_le_bytes(timestamp.try_into().expect("eight bytes"))
}

unsafe extern "C" fn compare(_: Object, a: Bytes, alen: usize, b: Bytes, blen: usize) -> c_int {
    let ((a, at), (b, bt)) = (split(lent(a, alen), true), split(lent(b, blen), true));
    a.cmp(b).then(number(bt).cmp(&number(at))) as c_int
}

unsafe extern "C" fn compare_ts(_: Object, a: Bytes, alen: usize, b: Bytes, blen: usize) -> c_int {
    number(lent(a, alen)).cmp(&number(lent(b, blen))) as c_int
}

unsafe extern "C" fn compare_bare(
    _: Object,
    a: Bytes,
    alen: usize,
    a_has: c_uchar,
    b: Bytes,
    blen: usize,
    b_has: c_uchar,
) -> c_int {
    let a = split(lent(a, alen), a_has != 0).0;
    a.cmp(split(lent(b, blen), b_has != 0).0) as c_int
}

unsafe extern "C" fn name(_: Object) -> Bytes {
    c"esker.test.u64ts".as_ptr()
}

unsafe extern "C" fn size_of(_: Object, _: u32) -> usize {
    SIZE
}

/// An open database of one library.
struct Open<'a> {
    api: &'a Api,
    db: Object,
    write: Object,
    read: Object,
}

/// All calls are sound: handles are live, texts and lengths belong together.
macro_rules! call {
    ($api:expr, $field:ident($($arg:expr),* $(,)?)) => {
        // SAFETY: handles come from this library and are live; lengths are those of the bytes they
        // go with.
        unsafe { ($api.$field)($($arg),*) }
    };
}

impl<'a> Open<'a> {
    fn at(api: &'a Api, path: &Path) -> Open<'a> {
        let options = Self::options(api);
        let path = CString::new(path.to_str().expect("UTF-8")).expect("no NUL");
        let mut error = null_mut();
        let db = call!(api, open(options, path.as_ptr(), &mut error));
        assert_eq!(told(error), None, "{}", api.what);
        let read = call!(api, read_options());
        call!(api, total_order(read, 1));
        Open {
            api,
            db,
            write: call!(api, write_options()),
            read,
        }
    }

    fn options(api: &Api) -> Object {
        let options = call!(api, options());
        call!(api, create_if_missing(options, 1));
        call!(api, set_compression(options, 0));
        let table = call!(api, table());
        let bloom = call!(api, bloom(10.0));
        call!(api, set_filter(table, bloom));
        call!(api, set_block_size(table, 200));
        call!(api, set_table(options, table));
        let prefix = call!(api, fixed_prefix(2));
        call!(api, set_prefix(options, prefix));
        let order = call!(
            api,
            comparator(
                null_mut(),
                None,
                compare,
                compare_ts,
                compare_bare,
                name,
                SIZE
            )
        );
        call!(api, set_comparator(options, order));
        options
    }

    fn put(&self, key: &[u8], ts: u64, value: &[u8]) {
        let ts = ts.to_le_bytes();
        let (db, write, mut error) = (self.db, self.write, null_mut());
        let (k, v) = ((at(key), key.len()), (at(value), value.len()));
        call!(
            self.api,
            put(db, write, k.0, k.1, at(&ts), SIZE, v.0, v.1, &mut error)
        );
        assert_eq!(told(error), None);
    }

    fn delete(&self, key: &[u8], ts: u64, single: bool) {
        let ts = ts.to_le_bytes();
        let (db, write, mut error) = (self.db, self.write, null_mut());
        if single {
            call!(
                self.api,
                single_delete(db, write, at(key), key.len(), at(&ts), SIZE, &mut error)
            );
        } else {
            call!(
                self.api,
                delete(db, write, at(key), key.len(), at(&ts), SIZE, &mut error)
            );
        }
        assert_eq!(told(error), None);
    }

    fn read_at(&self, ts: &[u8; SIZE]) {
        call!(self.api, set_timestamp(self.read, at(ts), SIZE));
    }

    fn get(&self, key: &[u8], ts: u64) -> Option<(u64, Vec<u8>)> {
        let ts = ts.to_le_bytes();
        self.read_at(&ts);
        let (mut len, mut time, mut time_len, mut error) = (0, null_mut(), 0, null_mut());
        let (db, read) = (self.db, self.read);
        let value = call!(
            self.api,
            get(
                db,
                read,
                at(key),
                key.len(),
                &mut len,
                &mut time,
                &mut time_len,
                &mut error
            )
        );
        assert_eq!(told(error), None, "{}", self.api.what);
        if value.is_null() {
            return None;
        }
        let found = (number(lent(time, time_len)), lent(value, len).to_vec());
        call!(self.api, free(value.cast()));
        call!(self.api, free(time.cast()));
        Some(found)
    }

    /// Walks an iterator: `begin` places it.
    fn walk(&self, ts: u64, begin: impl Fn(Object), back: bool, low: u64) -> Vec<Shown> {
        let ts = ts.to_le_bytes();
        self.read_at(&ts);
        let it = call!(self.api, iterator(self.db, self.read));
        begin(it);
        let mut shown = Vec::new();
        while call!(self.api, iter_valid(it)) != 0 {
            let mut len = 0;
            let key = lent(call!(self.api, iter_key(it, &mut len)), len).to_vec();
            let time = number(lent(call!(self.api, iter_timestamp(it, &mut len)), len));
            let value = lent(call!(self.api, iter_value(it, &mut len)), len).to_vec();
            shown.push((key, if time < low { 0 } else { time }, value));
            if back {
                call!(self.api, iter_prev(it))
            } else {
                call!(self.api, iter_next(it))
            }
        }
        let mut error = null_mut();
        call!(self.api, iter_error(it, &mut error));
        assert_eq!(told(error), None, "{}", self.api.what);
        call!(self.api, iter_destroy(it));
        shown
    }

    fn history(&self, since: u64, ts: u64) -> Vec<(Vec<u8>, u64, u8, Vec<u8>)> {
        let (since, ts) = (since.to_le_bytes(), ts.to_le_bytes());
        call!(self.api, set_start(self.read, at(&since), SIZE));
        self.read_at(&ts);
        let it = call!(self.api, iterator(self.db, self.read));
        call!(self.api, iter_first(it));
        let mut shown = Vec::new();
        while call!(self.api, iter_valid(it)) != 0 {
            let mut len = 0;
            let internal = lent(call!(self.api, iter_key(it, &mut len)), len);
            let (user, trailer) = internal.split_at(internal.len() - 8);
            let (key, time) = split(user, true);
            let (key, time, kind) = (key.to_vec(), number(time), trailer[0]);
            let value = match kind {
                1 => lent(call!(self.api, iter_value(it, &mut len)), len).to_vec(),
                _ => Vec::new(),
            };
            shown.push((key, time, kind, value));
            call!(self.api, iter_next(it));
        }
        let mut error = null_mut();
        call!(self.api, iter_error(it, &mut error));
        assert_eq!(told(error), None, "{}", self.api.what);
        call!(self.api, iter_destroy(it));
        call!(self.api, set_start(self.read, null(), 0));
        shown
    }

    /// Compares everything that can be read with the model.
    fn check(&self, model: &Model, random: &mut Random, what: &str) {
        let what = format!("{what}, {}", self.api.what);
        let span = model.now - model.low + 1;
        for _ in 0..6 {
            let ts = model.low + random.below(span + 2);
            let wanted = model.scan(ts);
            for n in 0..12usize {
                let key = format!("k{:0width$}", n, width = 1 + n % 3).into_bytes();
                let found = self.get(&key, ts).map(|(t, v)| (model.seen(t), v));
                let want = wanted.iter().find(|(k, _, _)| *k == key);
                let want = want.map(|(_, t, v)| (*t, v.clone()));
                assert_eq!(found, want, "{what}: {} at {ts}", key.escape_ascii());
            }
            let low = model.low;
            let first = |it| call!(self.api, iter_first(it));
            let last = |it| call!(self.api, iter_last(it));
            assert_eq!(self.walk(ts, first, false, low), wanted, "{what}: at {ts}");
            let reversed = |list: &[Shown]| list.iter().rev().cloned().collect::<Vec<_>>();
            assert_eq!(
                self.walk(ts, last, true, low),
                reversed(&wanted),
                "{what}: back from {ts}"
            );
            let target = random.key();
            let seek = |it| call!(self.api, iter_seek(it, at(&target), target.len()));
            let from = wanted.partition_point(|(k, _, _)| *k < target);
            assert_eq!(
                self.walk(ts, seek, false, low),
                wanted[from..],
                "{what}: seek at {ts}"
            );
            let seek = |it| call!(self.api, iter_seek_for_prev(it, at(&target), target.len()));
            let to = wanted.partition_point(|(k, _, _)| *k <= target);
            let back = reversed(&wanted[..to]);
            assert_eq!(
                self.walk(ts, seek, true, low),
                back,
                "{what}: seek back at {ts}"
            );
            self.check_bounds(&wanted, ts, low, random, &what);
            let since = model.low + random.below(span);
            let wanted = model.history(since.max(1), ts);
            assert_eq!(
                self.history(since.max(1), ts),
                wanted,
                "{what}: {since}..={ts}"
            );
        }
    }

    fn check_bounds(&self, wanted: &[Shown], ts: u64, low: u64, random: &mut Random, what: &str) {
        let mut bounds = [random.key(), random.key()];
        bounds.sort();
        let [lower, upper] = &bounds;
        call!(self.api, set_lower(self.read, at(lower), lower.len()));
        call!(self.api, set_upper(self.read, at(upper), upper.len()));
        let inside = wanted.iter().filter(|(k, _, _)| k >= lower && k < upper);
        let inside: Vec<Shown> = inside.cloned().collect();
        let first = |it| call!(self.api, iter_first(it));
        let last = |it| call!(self.api, iter_last(it));
        assert_eq!(
            self.walk(ts, first, false, low),
            inside,
            "{what}: bounds at {ts}"
        );
        let mut back = self.walk(ts, last, true, low);
        back.reverse();
        assert_eq!(back, inside, "{what}: bounds back from {ts}");
        call!(self.api, set_lower(self.read, null(), 0));
        call!(self.api, set_upper(self.read, null(), 0));
    }

    /// One random change, in the model too.
    fn step(&self, model: &mut Model, random: &mut Random) {
        let mut next = || {
            model.now += 1 + random.below(3);
            model.now
        };
        let now = next();
        let stamp = |v: Version, key: Vec<u8>| ((key, Reverse(now)), v);
        match random.below(100) {
            0..54 => {
                let (key, value) = (random.key(), format!("v{now}").into_bytes());
                self.put(&key, now, &value);
                model.versions.extend([stamp(Version::Value(value), key)]);
            }
            54..60 => self.delete_range(model, random, now),
            60..75 => {
                let key = random.key();
                self.delete(&key, now, false);
                model.versions.extend([stamp(Version::Deleted, key)]);
            }
            75..80 => {
                // A key that is put once and then deleted once.
                let key = format!("once{now}").into_bytes();
                self.put(&key, now, b"once");
                model
                    .versions
                    .extend([stamp(Version::Value(b"once".to_vec()), key.clone())]);
                model.now += 1;
                self.delete(&key, model.now, true);
                let gone = ((key, Reverse(model.now)), Version::SingleDeleted);
                model.versions.extend([gone]);
            }
            80..92 => self.batch(model, random, now),
            92..97 => {
                let mut error = null_mut();
                let options = call!(self.api, flush_options());
                call!(self.api, flush(self.db, options, &mut error));
                assert_eq!(told(error), None);
            }
            97..99 => {
                model.low = model.low.max(model.now.saturating_sub(random.below(40)));
                let low = model.low.to_le_bytes();
                let options = call!(self.api, compact_options());
                call!(self.api, compact_bottom(options, 2));
                call!(self.api, compact_low(options, at(&low).cast_mut(), SIZE));
                call!(self.api, compact(self.db, options, null(), 0, null(), 0));
            }
            _ => {
                let mut range = [random.key(), random.key()];
                range.sort();
                let [from, to] = range;
                call!(
                    self.api,
                    compact_range(self.db, at(&from), from.len(), at(&to), to.len())
                );
            }
        }
    }

    /// Deletes a range of keys in a batch of its own.
    fn delete_range(&self, model: &mut Model, random: &mut Random, now: u64) {
        let mut range = [random.key(), random.key()];
        range.sort();
        let [begin, end] = range;
        let family = call!(self.api, default_family(self.db));
        // RocksDB drops such a record for the default family from a batch of another size.
        let batch = call!(self.api, batch_of_size(0, 0, 0, SIZE));
        let (b, e) = ((at(&begin), begin.len()), (at(&end), end.len()));
        call!(
            self.api,
            batch_delete_range(batch, family, b.0, b.1, e.0, e.1)
        );
        let (ts, mut error) = (now.to_le_bytes(), null_mut());
        call!(
            self.api,
            update(batch, at(&ts), SIZE, null_mut(), size_of, &mut error)
        );
        assert_eq!(told(error), None);
        call!(self.api, write(self.db, self.write, batch, &mut error));
        assert_eq!(told(error), None);
        call!(self.api, batch_destroy(batch));
        call!(self.api, family_destroy(family));
        model.ranges.push((begin, end, now));
    }

    fn batch(&self, model: &mut Model, random: &mut Random, now: u64) {
        let family = call!(self.api, default_family(self.db));
        let batch = call!(self.api, batch());
        let room = [0; SIZE];
        for n in 0..3 {
            let (key, value) = (random.key(), format!("b{n}").into_bytes());
            let (k, v) = ((at(&key), key.len()), (at(&value), value.len()));
            if n == 1 {
                call!(
                    self.api,
                    batch_delete(batch, family, k.0, k.1, at(&room), SIZE)
                );
                model.versions.insert((key, Reverse(now)), Version::Deleted);
            } else {
                call!(
                    self.api,
                    batch_put(batch, family, k.0, k.1, at(&room), SIZE, v.0, v.1)
                );
                model
                    .versions
                    .insert((key, Reverse(now)), Version::Value(value));
            }
        }
        let ts = now.to_le_bytes();
        let mut error = null_mut();
        call!(
            self.api,
            update(batch, at(&ts), SIZE, null_mut(), size_of, &mut error)
        );
        assert_eq!(told(error), None);
        call!(self.api, write(self.db, self.write, batch, &mut error));
        assert_eq!(told(error), None);
        call!(self.api, batch_destroy(batch));
        call!(self.api, family_destroy(family));
    }

    /// The texts of calls that are wrong.
    fn mistakes(&self) -> Vec<Option<String>> {
        let (api, db, write) = (self.api, self.db, self.write);
        let (k, ts) = (at(b"k"), at(b"12345678"));
        let mut texts = Vec::new();
        let mut note = |call: &dyn Fn(Failure)| {
            let mut error = null_mut();
            call(&mut error);
            texts.push(told(error));
        };
        let read = call!(api, read_options());
        note(&|e| call!(api, plain_put(db, write, k, 1, k, 1, e)));
        note(&|e| call!(api, put(db, write, k, 1, ts, 4, k, 1, e)));
        note(&|e| call!(api, delete(db, write, k, 1, ts, 7, e)));
        note(&|e| {
            call!(api, plain_get(db, read, k, 1, &mut 0, e));
        });
        note(&|e| {
            let it = call!(api, iterator(db, read));
            call!(api, iter_error(it, e));
            call!(api, iter_destroy(it));
        });
        call!(api, set_timestamp(read, ts, 3));
        note(&|e| {
            call!(api, plain_get(db, read, k, 1, &mut 0, e));
        });
        let family = call!(api, default_family(db));
        note(&|e| call!(api, increase(db, family, ts, 4, e)));
        note(&|e| call!(api, delete_range(db, write, family, k, 1, ts, 2, e)));
        call!(api, family_destroy(family));
        call!(api, read_options_destroy(read));
        texts
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        call!(self.api, read_options_destroy(self.read));
        call!(self.api, close(self.db));
    }
}

/// The text of an error that was reported.
fn told(error: *mut c_char) -> Option<String> {
    if error.is_null() {
        return None;
    }
    // SAFETY: the text ends with NUL. It stays: the test ends soon.
    let text = unsafe { CStr::from_ptr(error) };
    Some(text.to_string_lossy().into_owned())
}

/// Steps on one directory, which the libraries open in turns.
fn run(turns: &[&Api], seed: u64) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    let (mut model, mut random) = (Model::default(), Random(seed | 1));
    model.now = 1;
    for round in 0..8 {
        let api = turns[round % turns.len()];
        let what = format!("seed {seed}, round {round}");
        let db = Open::at(api, &path);
        db.check(&model, &mut random, &format!("{what}, opened"));
        for _ in 0..60 {
            db.step(&mut model, &mut random);
        }
        db.check(&model, &mut random, &what);
        let family = call!(api, default_family(db.db));
        let (mut len, mut error) = (0, null_mut());
        let low = call!(api, low(db.db, family, &mut len, &mut error));
        assert_eq!(told(error), None);
        let stored = if len == 0 { 0 } else { number(lent(low, len)) };
        assert_eq!(stored, model.low, "{what}");
        call!(api, free(low.cast()));
        call!(api, family_destroy(family));
    }
}

#[test]
fn versions_are_as_in_the_model() {
    let ours = Api::ours();
    for seed in [3, 1_000_003, 77_777_777] {
        run(&[&ours], seed);
    }
}

#[test]
fn a_rocksdb_library_does_the_same_and_takes_turns() {
    let Ok(path) = std::env::var("ESKER_REF_LIB") else {
        println!("skipped: ESKER_REF_LIB names no librocksdb.so");
        return;
    };
    let (ours, theirs) = (Api::ours(), Api::load(&path));
    for seed in [5, 1_000_005, 99_999_999] {
        run(&[&theirs], seed);
        run(&[&ours, &theirs], seed);
        run(&[&theirs, &ours], seed + 2);
    }
    let dir = tempfile::tempdir().expect("a directory");
    let of = |api| Open::at(api, &dir.path().join(format!("{:p}", api))).mistakes();
    assert_eq!(of(&ours), of(&theirs));
}

/// A library's database with transactions.
struct WithTransactions<'a> {
    api: &'a Api,
    db: Object,
    write: Object,
}

impl<'a> WithTransactions<'a> {
    fn at(api: &'a Api, path: &Path) -> Self {
        let path = CString::new(path.to_str().expect("UTF-8")).expect("no NUL");
        let (options, of_db) = (Open::options(api), call!(api, txn_db_options()));
        let mut error = null_mut();
        let db = call!(api, txn_open(options, of_db, path.as_ptr(), &mut error));
        assert_eq!(told(error), None, "{}", api.what);
        let write = call!(api, write_options());
        Self { api, db, write }
    }

    fn begin(&self) -> Object {
        let (api, of_txn) = (self.api, call!(self.api, txn_options()));
        call!(api, txn_begin(self.db, self.write, of_txn, null_mut()))
    }

    /// Commits `key` at a timestamp, which is its value too; in two phases with a name.
    fn commit(&self, key: &str, timestamp: u64, name: Option<&str>) {
        let (api, mut error) = (self.api, null_mut());
        let (txn, v) = (self.begin(), timestamp.to_string());
        let (k, len) = (at(key.as_bytes()), key.len());
        call!(
            api,
            txn_put(txn, k, len, at(v.as_bytes()), v.len(), &mut error)
        );
        if let Some(name) = name {
            let text = at(name.as_bytes());
            call!(api, txn_name(txn, text, name.len(), &mut error));
            call!(api, txn_prepare(txn, &mut error));
        }
        assert_eq!(told(error), None, "{}", api.what);
        call!(api, txn_stamp(txn, timestamp));
        call!(api, txn_commit(txn, &mut error));
        assert_eq!(told(error), None, "{}", api.what);
        call!(api, txn_destroy(txn));
    }

    fn unstamped(&self) -> Option<String> {
        let (api, mut error, txn) = (self.api, null_mut(), self.begin());
        call!(api, txn_put(txn, at(b"k"), 1, at(b"v"), 1, &mut error));
        call!(api, txn_commit(txn, &mut error));
        call!(api, txn_destroy(txn));
        told(error)
    }

    /// The value of `key` for a reader at `timestamp`.
    fn read(&self, key: &str, timestamp: u64) -> Option<u64> {
        let (api, mut error, txn) = (self.api, null_mut(), self.begin());
        let (read, ts) = (call!(api, read_options()), timestamp.to_le_bytes());
        call!(api, set_timestamp(read, at(&ts), SIZE));
        let (k, klen, mut len) = (at(key.as_bytes()), key.len(), 0);
        let found = call!(api, txn_get(txn, read, k, klen, &mut len, &mut error));
        assert_eq!(told(error), None, "{}", api.what);
        let text = (!found.is_null()).then(|| String::from_utf8_lossy(lent(found, len)).into());
        call!(api, free(found.cast()));
        call!(api, read_options_destroy(read));
        call!(api, txn_destroy(txn));
        text.and_then(|t: String| t.parse().ok())
    }
}

impl Drop for WithTransactions<'_> {
    fn drop(&mut self) {
        call!(self.api, txn_close(self.db));
    }
}

#[test]
fn commits_at_timestamps_are_read_from_the_log_of_either_library() {
    let ours = Api::ours();
    let theirs = std::env::var("ESKER_REF_LIB").ok().map(|p| Api::load(&p));
    let all = || std::iter::once(&ours).chain(&theirs);
    for writer in all() {
        for reader in all() {
            let dir = tempfile::tempdir().expect("a directory");
            let path = dir.path().join("db");
            let db = WithTransactions::at(writer, &path);
            let told = db.unstamped().expect("an error");
            assert!(told.contains("Must assign a commit timestamp"), "{told}");
            db.commit("one", 10, None);
            db.commit("two", 20, Some("first"));
            db.commit("one", 30, Some("second"));
            drop(db);
            let db = WithTransactions::at(reader, &path);
            let of = |key| [9, 10, 19, 20, 29, 30, 99].map(|ts| db.read(key, ts));
            let what = format!("{} from {}", reader.what, writer.what);
            let (a, b) = (Some(10), Some(20));
            assert_eq!(of("one"), [None, a, a, a, a, Some(30), Some(30)], "{what}");
            assert_eq!(of("two"), [None, None, None, b, b, b, b], "{what}");
        }
    }
}
