//! An engine behind the C ABI of RocksDB, loaded at run time: `lib:/path/to/librocksdb.so`.
//!
//! Works with any library that exports RocksDB's C API from 7.8 on; newer calls are optional and
//! looked up by name. All of the laboratory's unsafe code lives here and in the files of `dlopen`.
//!
//! Invariants: every pointer in `Inner` comes from the loaded library, is freed once, in `drop`,
//! and the library is unloaded last. A session, and an iterator through it, keeps `Inner` alive.
//! RocksDB's database handle is safe for concurrent use; sessions belong to one thread.
#![allow(unsafe_code)]

mod account;
mod allocator;
mod api;
mod files;
mod open;
mod transactions;

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use crate::allocated::EngineAllocator;
use crate::slowest::Account;
use crate::store::{Iter, OpenPlan, Session, SessionPlan, Store, not_driven};
use crate::{Failure, Result};
use account::LibAccount;
use api::{Api, Slice};
pub use transactions::{LibTransaction, LibTransactions};

/// A pointer to an object of the library.
type Handle = *mut c_void;

/// The library and what is open through it.
struct Inner {
    api: Api,
    db: Handle,
    /// The layer of transactions over `db`, or null.
    layer: Handle,
    /// The default family, where opening gives it, or null.
    family: Handle,
    options: Handle,
    statistics: bool,
    library: String,
    version: String,
}

// SAFETY: RocksDB's database handle and its options object are safe for concurrent use; the
// statistics behind the options are atomic counters.
unsafe impl Send for Inner {}
// SAFETY: as above; no method here mutates `Inner` itself.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        if let (false, Some(destroy)) =
            (self.family.is_null(), self.api.column_family_handle_destroy)
        {
            // SAFETY: the handle is ours, and no session that uses it is left.
            unsafe { destroy(self.family) };
        }
        if self.layer.is_null() {
            // SAFETY: `db` was opened by this library and no session or iterator is left.
            unsafe { (self.api.close)(self.db) };
        } else if let (Some(close_base), Some(close)) =
            (self.api.layer_close_base, self.api.layer_close)
        {
            // SAFETY: `db` is the layer's view, and no session or iterator is left.
            unsafe { close_base(self.db) };
            // SAFETY: the layer was opened by this library and no transaction is left.
            unsafe { close(self.layer) };
        }
        // SAFETY: `options` was created by this library and is used by nobody else.
        unsafe { (self.api.options_destroy)(self.options) };
    }
}

/// A database opened through a loaded library.
#[derive(Clone)]
pub struct LibStore {
    inner: Arc<Inner>,
}

fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Failure::new(format!("zero byte in {text:?}")))
}

impl Api {
    /// Turns what a call left in its error pointer into a result.
    #[inline]
    fn check(&self, error: *mut c_char) -> Result<()> {
        if error.is_null() {
            Ok(())
        } else {
            Err(self.take_error(error))
        }
    }

    #[cold]
    fn take_error(&self, error: *mut c_char) -> Failure {
        Failure::new(self.take_text(error))
    }

    /// Copies a zero-terminated text that the library allocated, and frees it.
    fn take_text(&self, text: *mut c_char) -> String {
        // SAFETY: the library returned a zero-terminated text that is now ours.
        let copy = unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned();
        // SAFETY: `text` was allocated by the library, and is not used after this.
        unsafe { (self.free)(text.cast()) };
        copy
    }
}

impl LibStore {
    /// Loads the library at `library` and opens a database with it.
    ///
    /// # Errors
    /// When the library lacks a function, an option is unknown to it, or the database does not
    /// open.
    pub fn open(library: &Path, plan: &OpenPlan) -> Result<LibStore> {
        let api = Api::load(library)?;
        open::open(api, library, plan)
    }

    /// Learns the library's version from the first line of the LOG that it has just written.
    fn find_version(&mut self, directory: &Path) {
        let log = std::fs::read(directory.join("LOG")).unwrap_or_default();
        let text = String::from_utf8_lossy(&log);
        let version = text
            .lines()
            .take(20)
            .find_map(|line| line.split_once("version: "));
        if let (Some((_, version)), Some(inner)) = (version, Arc::get_mut(&mut self.inner)) {
            inner.version = format!(" {}", version.trim());
        }
    }

    fn property_u64(&self, name: &str) -> Option<u64> {
        self.property(name)?.trim().parse().ok()
    }

    /// Waiting for libraries that predate `rocksdb_wait_for_compact`: nothing due, five times.
    fn poll_until_idle(&self) -> Result<()> {
        let names = [
            "rocksdb.num-running-compactions",
            "rocksdb.num-running-flushes",
            "rocksdb.compaction-pending",
            "rocksdb.mem-table-flush-pending",
        ];
        let mut quiet = 0;
        while quiet < 5 {
            let busy = names
                .iter()
                .any(|name| self.property_u64(name).unwrap_or(0) > 0);
            quiet = if busy { 0 } else { quiet + 1 };
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Store for LibStore {
    type Session = LibSession;

    fn describe(&self) -> String {
        format!("lib:{}{}", self.inner.library, self.inner.version)
    }

    fn session(&self, plan: &SessionPlan) -> Result<LibSession> {
        if let Some(flag) = plan.beyond_plain_reads() {
            return Err(not_driven(&format!("--{flag}")));
        }
        let api = &self.inner.api;
        let flag = c_uchar::from;
        // SAFETY: plain constructor.
        let write = unsafe { (api.writeoptions_create)() };
        // SAFETY: `write` is fresh and ours.
        unsafe { (api.writeoptions_set_sync)(write, flag(plan.sync)) };
        // SAFETY: as above.
        unsafe { (api.writeoptions_disable_wal)(write, c_int::from(plan.disable_wal)) };
        // SAFETY: plain constructor.
        let read = unsafe { (api.readoptions_create)() };
        // SAFETY: plain constructor.
        let batch = unsafe { (api.writebatch_create)() };
        let session = LibSession {
            inner: Arc::clone(&self.inner),
            write,
            read,
            batch,
            lower: Vec::new(),
            upper: Vec::new(),
            bounded: false,
            batched: plan.batched_multi_get,
            family: ptr::null_mut(),
            slots: Vec::new(),
        };
        session.configure(plan)
    }

    fn flush(&self) -> Result<()> {
        let api = &self.inner.api;
        // SAFETY: plain constructor.
        let options = unsafe { (api.flushoptions_create)() };
        // SAFETY: `options` is fresh and ours.
        unsafe { (api.flushoptions_set_wait)(options, 1) };
        let mut error = ptr::null_mut();
        // SAFETY: `db` is open and `options` alive.
        unsafe { (api.flush)(self.inner.db, options, &mut error) };
        // SAFETY: `options` is not used after this.
        unsafe { (api.flushoptions_destroy)(options) };
        api.check(error)
    }

    fn compact_all(&self, force_bottommost: bool, subcompactions: u32) -> Result<()> {
        let api = &self.inner.api;
        // SAFETY: plain constructor.
        let options = unsafe { (api.compactoptions_create)() };
        if force_bottommost {
            // 3 is RocksDB's kForceOptimized.
            // SAFETY: `options` is fresh and ours.
            unsafe { (api.compactoptions_set_bottommost)(options, 3) };
        }
        if let Some(set) = api.compactoptions_set_max_subcompactions {
            // SAFETY: as above.
            unsafe { set(options, subcompactions as c_int) };
        }
        // SAFETY: null bounds mean the whole range.
        unsafe { (api.compact_range_opt)(self.inner.db, options, ptr::null(), 0, ptr::null(), 0) };
        // SAFETY: `options` is not used after this.
        unsafe { (api.compactoptions_destroy)(options) };
        Ok(())
    }

    fn compact_level(&self, from: u32) -> Result<String> {
        self.compact_files_of(from)
    }

    fn wait_for_compaction(&self) -> Result<()> {
        let api = &self.inner.api;
        let (Some(wait), Some(create), Some(destroy)) = (
            api.wait_for_compact,
            api.wait_options_create,
            api.wait_options_destroy,
        ) else {
            return self.poll_until_idle();
        };
        // SAFETY: plain constructor.
        let options = unsafe { create() };
        let mut error = ptr::null_mut();
        // SAFETY: `db` is open and `options` alive.
        unsafe { wait(self.inner.db, options, &mut error) };
        // SAFETY: `options` is not used after this.
        unsafe { destroy(options) };
        api.check(error)
    }

    fn property(&self, name: &str) -> Option<String> {
        let api = &self.inner.api;
        let name = c_string(name).ok()?;
        // SAFETY: `db` is open and `name` zero-terminated.
        let text = unsafe { (api.property_value)(self.inner.db, name.as_ptr()) };
        (!text.is_null()).then(|| api.take_text(text))
    }

    fn allocator(&self) -> EngineAllocator {
        allocator::of(&self.inner.api)
    }

    fn statistics(&self) -> Option<String> {
        let api = &self.inner.api;
        if !self.inner.statistics {
            return None;
        }
        // SAFETY: the options live as long as the database.
        let text = unsafe { (api.options_statistics_get_string)(self.inner.options) };
        (!text.is_null()).then(|| api.take_text(text))
    }

    fn reset_statistics(&self) -> bool {
        false
    }

    fn verify_checksums(&self) -> Result<()> {
        let Some(verify) = self.inner.api.verify_checksum else {
            return Err(Failure::new(
                "this library does not export rocksdb_verify_checksum",
            ));
        };
        let mut error = ptr::null_mut();
        // SAFETY: `db` is open.
        unsafe { verify(self.inner.db, &mut error) };
        self.inner.api.check(error)
    }
}

/// A thread's session with a loaded library.
pub struct LibSession {
    inner: Arc<Inner>,
    write: Handle,
    read: Handle,
    batch: Handle,
    // The library keeps pointers to the bounds; they must outlive every iterator.
    lower: Vec<u8>,
    upper: Vec<u8>,
    bounded: bool,
    batched: bool,
    family: Handle,
    slots: Vec<MultiSlot>,
}

/// One key's place in a multi-get, kept as a column of pointers would be.
struct MultiSlot {
    key: *const c_char,
    size: usize,
    value: *mut c_char,
    value_size: usize,
    error: *mut c_char,
}

impl Drop for LibSession {
    fn drop(&mut self) {
        let api = &self.inner.api;
        // SAFETY: the three objects are ours and not used after this.
        unsafe { (api.writebatch_destroy)(self.batch) };
        // SAFETY: as above; iterators borrow the session, so none is left.
        unsafe { (api.readoptions_destroy)(self.read) };
        // SAFETY: as above.
        unsafe { (api.writeoptions_destroy)(self.write) };
        let is_own = !self.family.is_null() && self.family != self.inner.family;
        if let (true, Some(destroy)) = (is_own, api.column_family_handle_destroy) {
            // SAFETY: the handle is ours and not used after this.
            unsafe { destroy(self.family) };
        }
    }
}

impl LibSession {
    fn configure(mut self, plan: &SessionPlan) -> Result<LibSession> {
        let api = &self.inner.api;
        // SAFETY: `read` is ours.
        unsafe { (api.readoptions_set_verify_checksums)(self.read, plan.verify_checksums.into()) };
        if plan.readahead_size > 0 {
            // SAFETY: `read` is ours.
            unsafe { (api.readoptions_set_readahead_size)(self.read, plan.readahead_size) };
        }
        for (_, set, name) in api.switches(plan).iter().filter(|switch| switch.0) {
            let missing = || Failure::new(format!("this library has no {name}"));
            let set = set.ok_or_else(missing)?;
            // SAFETY: `read` is ours.
            unsafe { set(self.read, 1) };
        }
        if plan.batched_multi_get {
            self.family = match (api.batched_multi_get, api.default_column_family) {
                // SAFETY: `db` is open; the handle is destroyed with the session.
                (Some(_), Some(get)) => unsafe { get(self.inner.db) },
                (Some(_), None) if !self.inner.family.is_null() => self.inner.family,
                _ => return Err(Failure::new("this library has no batched multi-get")),
            };
        }
        Ok(self)
    }

    /// Multi-get with one pinned slice per key.
    fn multi_get_batched(&mut self) -> Result<(u64, u64)> {
        let api = &self.inner.api;
        let get = api
            .batched_multi_get
            .ok_or_else(|| Failure::new("no batched multi-get"))?;
        let n = self.slots.len();
        let keys: Vec<*const c_char> = self.slots.iter().map(|s| s.key).collect();
        let sizes: Vec<usize> = self.slots.iter().map(|s| s.size).collect();
        let mut values: Vec<Handle> = vec![ptr::null_mut(); n];
        let mut errors: Vec<*mut c_char> = vec![ptr::null_mut(); n];
        // SAFETY: all arrays have `n` elements.
        unsafe {
            get(
                self.inner.db,
                self.read,
                self.family,
                n,
                keys.as_ptr(),
                sizes.as_ptr(),
                values.as_mut_ptr(),
                errors.as_mut_ptr(),
                false,
            );
        };
        let (mut found, mut bytes) = (0, 0);
        let mut outcome = Ok(());
        for (value, error) in values.into_iter().zip(errors) {
            if let Err(failure) = api.check(error) {
                outcome = Err(failure);
            }
            if value.is_null() {
                continue;
            }
            let mut size = 0;
            // SAFETY: `value` is a pinned slice of ours.
            unsafe { (api.pinnableslice_value)(value, &mut size) };
            // SAFETY: `value` is not used after this.
            unsafe { (api.pinnableslice_destroy)(value) };
            found += 1;
            bytes += size as u64;
        }
        outcome.map(|()| (found, bytes))
    }
}

#[inline]
fn chars(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

impl Session for LibSession {
    type Iter<'a> = LibIter<'a>;

    fn account(&self) -> Result<Box<dyn Account>> {
        let account = LibAccount::begin(&self.inner);
        let account = account.ok_or_else(|| Failure::new("this library has no perf context"))?;
        Ok(Box::new(account))
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (inner, mut error) = (&*self.inner, ptr::null_mut());
        // SAFETY: the database is open and the slices are valid for the call.
        unsafe {
            (inner.api.put)(
                inner.db,
                self.write,
                chars(key),
                key.len(),
                chars(value),
                value.len(),
                &mut error,
            );
        };
        inner.api.check(error)
    }

    #[inline]
    fn merge(&mut self, key: &[u8], operand: &[u8]) -> Result<()> {
        let (inner, mut error) = (&*self.inner, ptr::null_mut());
        // SAFETY: the database is open and the slices are valid for the call.
        unsafe {
            (inner.api.merge)(
                inner.db,
                self.write,
                chars(key),
                key.len(),
                chars(operand),
                operand.len(),
                &mut error,
            );
        };
        inner.api.check(error)
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let (inner, mut error) = (&*self.inner, ptr::null_mut());
        // SAFETY: the database is open and the key is valid for the call.
        unsafe { (inner.api.delete)(inner.db, self.write, chars(key), key.len(), &mut error) };
        inner.api.check(error)
    }

    #[inline]
    fn batch_clear(&mut self) {
        // SAFETY: the batch is ours.
        unsafe { (self.inner.api.writebatch_clear)(self.batch) };
    }

    #[inline]
    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        let put = self.inner.api.writebatch_put;
        // SAFETY: the batch is ours and copies the slices.
        unsafe { put(self.batch, chars(key), key.len(), chars(value), value.len()) };
    }

    #[inline]
    fn batch_delete(&mut self, key: &[u8]) {
        // SAFETY: the batch is ours and copies the key.
        unsafe { (self.inner.api.writebatch_delete)(self.batch, chars(key), key.len()) };
    }

    #[inline]
    fn batch_write(&mut self) -> Result<()> {
        let (inner, mut error) = (&*self.inner, ptr::null_mut());
        // SAFETY: the database is open, options and batch are ours.
        unsafe { (inner.api.write)(inner.db, self.write, self.batch, &mut error) };
        inner.api.check(error)
    }

    #[inline]
    fn get<R>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let (inner, mut error) = (&*self.inner, ptr::null_mut());
        // SAFETY: the database is open and the key is valid for the call.
        let pinned = unsafe {
            (inner.api.get_pinned)(inner.db, self.read, chars(key), key.len(), &mut error)
        };
        inner.api.check(error)?;
        if pinned.is_null() {
            return Ok(None);
        }
        let mut size = 0;
        // SAFETY: `pinned` is ours; the bytes stay until it is destroyed.
        let data = unsafe { (inner.api.pinnableslice_value)(pinned, &mut size) };
        // SAFETY: the library says that `size` bytes are readable at `data`.
        let seen = look(unsafe { bytes_at(data, size) });
        // SAFETY: `pinned` is not used after this.
        unsafe { (inner.api.pinnableslice_destroy)(pinned) };
        Ok(Some(seen))
    }

    fn multi_get(&mut self, keys: &[u8], key_size: usize) -> Result<(u64, u64)> {
        self.slots.clear();
        self.slots
            .extend(keys.chunks_exact(key_size).map(|key| MultiSlot {
                key: chars(key),
                size: key_size,
                value: ptr::null_mut(),
                value_size: 0,
                error: ptr::null_mut(),
            }));
        if self.batched {
            return self.multi_get_batched();
        }
        let api = &self.inner.api;
        let n = self.slots.len();
        let pointers: Vec<*const c_char> = self.slots.iter().map(|s| s.key).collect();
        let sizes: Vec<usize> = self.slots.iter().map(|s| s.size).collect();
        let mut values: Vec<*mut c_char> = self.slots.iter().map(|s| s.value).collect();
        let mut value_sizes: Vec<usize> = self.slots.iter().map(|s| s.value_size).collect();
        let mut errors: Vec<*mut c_char> = self.slots.iter().map(|s| s.error).collect();
        // SAFETY: all arrays have `n` elements.
        unsafe {
            (api.multi_get)(
                self.inner.db,
                self.read,
                n,
                pointers.as_ptr(),
                sizes.as_ptr(),
                values.as_mut_ptr(),
                value_sizes.as_mut_ptr(),
                errors.as_mut_ptr(),
            );
        };
        let (mut found, mut bytes) = (0, 0);
        let mut outcome = Ok(());
        for i in 0..n {
            if let Err(failure) = api.check(errors[i]) {
                outcome = Err(failure);
            }
            if !values[i].is_null() {
                found += 1;
                bytes += value_sizes[i] as u64;
                // SAFETY: the library allocated the value for us; it is not used after this.
                unsafe { (api.free)(values[i].cast()) };
            }
        }
        outcome.map(|()| (found, bytes))
    }

    fn iter<'a>(&'a mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Result<LibIter<'a>> {
        if self.bounded || lower.is_some() || upper.is_some() {
            self.set_bounds(lower, upper);
        }
        let inner = &*self.inner;
        // SAFETY: the database is open and the read options live as long as the iterator borrows
        // us.
        let iter = unsafe { (inner.api.create_iterator)(inner.db, self.read) };
        Ok(LibIter {
            api: &inner.api,
            iter,
            session: PhantomData,
        })
    }
}

impl LibSession {
    fn set_bounds(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) {
        self.bounded = lower.is_some() || upper.is_some();
        for (buffer, bound) in [(&mut self.lower, lower), (&mut self.upper, upper)] {
            buffer.clear();
            buffer.extend_from_slice(bound.unwrap_or_default());
        }
        let api = &self.inner.api;
        let at = |bound: Option<&[u8]>, buffer: &Vec<u8>| match bound {
            Some(_) => (chars(buffer), buffer.len()),
            None => (ptr::null(), 0),
        };
        let (low, low_size) = at(lower, &self.lower);
        // SAFETY: null means unbounded; otherwise the buffer outlives the next iterator.
        unsafe { (api.readoptions_set_iterate_lower_bound)(self.read, low, low_size) };
        let (high, high_size) = at(upper, &self.upper);
        // SAFETY: as above.
        unsafe { (api.readoptions_set_iterate_upper_bound)(self.read, high, high_size) };
    }
}

/// The bytes that the library shows at `data`.
///
/// # Safety
/// `size` bytes must be readable at `data` for the chosen lifetime, unless `size` is 0.
#[inline]
unsafe fn bytes_at<'a>(data: *const c_char, size: usize) -> &'a [u8] {
    if size == 0 {
        return &[];
    }
    // SAFETY: the caller's promise; `size` is not 0, so `data` is not null.
    unsafe { std::slice::from_raw_parts(data.cast(), size) }
}

/// An iterator of a loaded library.
pub struct LibIter<'a> {
    api: &'a Api,
    iter: Handle,
    session: PhantomData<&'a mut LibSession>,
}

impl Drop for LibIter<'_> {
    fn drop(&mut self) {
        // SAFETY: the iterator is ours and not used after this.
        unsafe { (self.api.iter_destroy)(self.iter) };
    }
}

impl LibIter<'_> {
    #[inline]
    fn valid(&self) -> bool {
        // SAFETY: the iterator is alive.
        unsafe { (self.api.iter_valid)(self.iter) != 0 }
    }

    /// Key or value: by value from libraries that can, which is a round through memory less.
    #[inline(always)]
    fn part(
        &self,
        by_value: Option<unsafe extern "C" fn(Handle) -> Slice>,
        by_pointer: unsafe extern "C" fn(Handle, *mut usize) -> *const c_char,
    ) -> &[u8] {
        let (data, size) = match by_value {
            Some(part) => {
                // SAFETY: the iterator is alive.
                let Slice { data, size } = unsafe { part(self.iter) };
                (data, size)
            }
            None => {
                let mut size = 0;
                // SAFETY: the iterator is alive.
                (unsafe { by_pointer(self.iter, &mut size) }, size)
            }
        };
        // SAFETY: the bytes are readable until the iterator moves, which needs `&mut self`.
        unsafe { bytes_at(data, size) }
    }
}

impl Iter for LibIter<'_> {
    fn seek_to_first(&mut self) -> bool {
        // SAFETY: the iterator is alive.
        unsafe { (self.api.iter_seek_to_first)(self.iter) };
        self.valid()
    }

    fn seek_to_last(&mut self) -> bool {
        // SAFETY: the iterator is alive.
        unsafe { (self.api.iter_seek_to_last)(self.iter) };
        self.valid()
    }

    #[inline]
    fn seek(&mut self, key: &[u8]) -> bool {
        // SAFETY: the iterator is alive and copies the key.
        unsafe { (self.api.iter_seek)(self.iter, chars(key), key.len()) };
        self.valid()
    }

    #[inline]
    fn seek_for_prev(&mut self, key: &[u8]) -> bool {
        // SAFETY: the iterator is alive and copies the key.
        unsafe { (self.api.iter_seek_for_prev)(self.iter, chars(key), key.len()) };
        self.valid()
    }

    #[inline]
    fn next(&mut self) -> bool {
        // SAFETY: the iterator is alive; moving an invalid one is the caller's broken promise,
        // which RocksDB answers in release builds by staying invalid.
        unsafe { (self.api.iter_next)(self.iter) };
        self.valid()
    }

    #[inline]
    fn prev(&mut self) -> bool {
        // SAFETY: as for `next`.
        unsafe { (self.api.iter_prev)(self.iter) };
        self.valid()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.part(self.api.iter_key_slice, self.api.iter_key)
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.part(self.api.iter_value_slice, self.api.iter_value)
    }

    fn status(&self) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: the iterator is alive.
        unsafe { (self.api.iter_get_error)(self.iter, &mut error) };
        self.api.check(error)
    }
}
