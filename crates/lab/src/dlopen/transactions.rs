//! Pessimistic transactions of a loaded library.
//!
//! A [`LibTransactions`] opens the database with the library's layer of transactions. A
//! [`LibTransaction`] belongs to one thread, keeps the database open, and is rolled back when it is
//! dropped before its commit.

use std::marker::PhantomData;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use super::api::Api;
use super::{Handle, Inner, LibIter, LibStore, bytes_at, c_string, chars, open};
use crate::store::OpenPlan;
use crate::{Failure, Result};

/// The functions of transactions, all of which a library must have.
#[derive(Clone, Copy)]
struct Calls {
    begin: unsafe extern "C" fn(Handle, Handle, Handle, Handle) -> Handle,
    destroy: unsafe extern "C" fn(Handle),
    commit: unsafe extern "C" fn(Handle, *mut *mut std::ffi::c_char),
    rollback: unsafe extern "C" fn(Handle, *mut *mut std::ffi::c_char),
    put: PutCall,
    delete: unsafe extern "C" fn(Handle, Text, usize, *mut *mut std::ffi::c_char),
    get: unsafe extern "C" fn(Handle, Handle, Text, usize, *mut *mut std::ffi::c_char) -> Handle,
    lock: LockCall,
    iterator: unsafe extern "C" fn(Handle, Handle) -> Handle,
}

type Text = *const std::ffi::c_char;
type PutCall = unsafe extern "C" fn(Handle, Text, usize, Text, usize, *mut *mut std::ffi::c_char);
type LockCall = unsafe extern "C" fn(
    Handle,
    Handle,
    Text,
    usize,
    std::ffi::c_uchar,
    *mut *mut std::ffi::c_char,
) -> Handle;

fn missing() -> Failure {
    Failure::new("this library does not export transactions")
}

impl Calls {
    fn of(api: &Api) -> Option<Calls> {
        Some(Calls {
            begin: api.transaction_begin?,
            destroy: api.transaction_destroy?,
            commit: api.transaction_commit?,
            rollback: api.transaction_rollback?,
            put: api.transaction_put?,
            delete: api.transaction_delete?,
            get: api.transaction_get?,
            lock: api.transaction_get_for_update?,
            iterator: api.transaction_iterator?,
        })
    }
}

/// The functions that open the layer of transactions, all of which a library must have.
struct Layer {
    create: unsafe extern "C" fn() -> Handle,
    destroy: unsafe extern "C" fn(Handle),
    open: unsafe extern "C" fn(Handle, Handle, Text, *mut *mut std::ffi::c_char) -> Handle,
    base: unsafe extern "C" fn(Handle) -> Handle,
    rules: unsafe extern "C" fn() -> Handle,
}

impl Layer {
    fn of(api: &Api) -> Option<Layer> {
        let _closes = (api.layer_close?, api.layer_close_base?);
        Some(Layer {
            create: api.layer_options_create?,
            destroy: api.layer_options_destroy?,
            open: api.layer_open?,
            base: api.layer_get_base?,
            rules: api.transaction_options_create?,
        })
    }
}

/// A database with transactions, opened through a loaded library.
pub struct LibTransactions {
    store: LibStore,
    calls: Calls,
    write: Handle,
    read: Handle,
    rules: Handle,
}

// SAFETY: RocksDB only reads the three options objects, which nobody changes after they are made.
unsafe impl Send for LibTransactions {}
// SAFETY: as above.
unsafe impl Sync for LibTransactions {}

impl Drop for LibTransactions {
    fn drop(&mut self) {
        let api = &self.store.inner.api;
        // SAFETY: the options are ours, and no transaction that has them is left.
        unsafe { (api.writeoptions_destroy)(self.write) };
        // SAFETY: as above.
        unsafe { (api.readoptions_destroy)(self.read) };
        if let Some(destroy) = api.transaction_options_destroy {
            // SAFETY: as above.
            unsafe { destroy(self.rules) };
        }
    }
}

impl LibTransactions {
    /// Checks that a file is a library with transactions.
    ///
    /// # Errors
    /// It does not load, or lacks a function.
    pub fn check(library: &Path) -> Result<()> {
        let api = Api::load(library)?;
        let all = Calls::of(&api).zip(Layer::of(&api));
        all.map(drop).ok_or_else(missing)
    }

    /// Loads the library at `library` and opens a database with transactions. With `sync` each
    /// commit is synced.
    ///
    /// # Errors
    /// When the library lacks a function, an option is unknown to it, or the database does not
    /// open.
    pub fn open(library: &Path, plan: &OpenPlan, sync: bool) -> Result<LibTransactions> {
        let api = Api::load(library)?;
        let calls = Calls::of(&api).ok_or_else(missing)?;
        let layer_calls = Layer::of(&api).ok_or_else(missing)?;
        let options = open::options_of(&api, plan)?;
        let path = c_string(&plan.path.to_string_lossy())?;
        // SAFETY: plain constructor.
        let layer_options = unsafe { (layer_calls.create)() };
        let mut error = ptr::null_mut();
        // SAFETY: both options are ours and the path zero-terminated.
        let layer =
            unsafe { (layer_calls.open)(options, layer_options, path.as_ptr(), &mut error) };
        // SAFETY: `layer_options` is not used after this.
        unsafe { (layer_calls.destroy)(layer_options) };
        api.check(error)?;
        // SAFETY: `layer` is open.
        let db = unsafe { (layer_calls.base)(layer) };
        // SAFETY: plain constructor.
        let write = unsafe { (api.writeoptions_create)() };
        // SAFETY: `write` is fresh and ours.
        unsafe { (api.writeoptions_set_sync)(write, u8::from(sync)) };
        // SAFETY: plain constructor.
        let read = unsafe { (api.readoptions_create)() };
        // SAFETY: plain constructor.
        let rules = unsafe { (layer_calls.rules)() };
        Ok(LibTransactions {
            store: open::store(api, library, plan, options, [db, layer, ptr::null_mut()]),
            calls,
            write,
            read,
            rules,
        })
    }

    /// The database, for flushes and properties.
    pub fn store(&self) -> &LibStore {
        &self.store
    }

    /// Begins a transaction.
    pub fn begin(&self) -> LibTransaction<'_> {
        let inner = &self.store.inner;
        let begin = self.calls.begin;
        // SAFETY: the layer is open, the options are ours, and null means a new transaction.
        let handle = unsafe { begin(inner.layer, self.write, self.rules, ptr::null_mut()) };
        LibTransaction {
            owner: self,
            inner: Arc::clone(inner),
            handle,
            done: false,
        }
    }
}

/// A transaction of a loaded library.
pub struct LibTransaction<'a> {
    owner: &'a LibTransactions,
    inner: Arc<Inner>,
    handle: Handle,
    done: bool,
}

impl Drop for LibTransaction<'_> {
    fn drop(&mut self) {
        if !self.done {
            let mut error = ptr::null_mut();
            // SAFETY: the transaction is ours and was not ended.
            unsafe { (self.owner.calls.rollback)(self.handle, &mut error) };
            // A rollback that fails leaves nothing behind that a commit could.
            let _ = self.inner.api.check(error);
        }
        // SAFETY: the handle is not used after this.
        unsafe { (self.owner.calls.destroy)(self.handle) };
    }
}

impl LibTransaction<'_> {
    /// The value at a key, copied. With `lock` the key is locked.
    ///
    /// # Errors
    /// As reported by the library.
    pub fn get(&mut self, key: &[u8], lock: bool) -> Result<Option<Vec<u8>>> {
        let (calls, api) = (&self.owner.calls, &self.inner.api);
        let mut error = ptr::null_mut();
        let (text, size) = (chars(key), key.len());
        let pinned = if lock {
            // SAFETY: the transaction is open and the key is valid for the call.
            unsafe { (calls.lock)(self.handle, self.owner.read, text, size, 1, &mut error) }
        } else {
            // SAFETY: as above.
            unsafe { (calls.get)(self.handle, self.owner.read, text, size, &mut error) }
        };
        api.check(error)?;
        if pinned.is_null() {
            return Ok(None);
        }
        let mut size = 0;
        // SAFETY: `pinned` is ours; the bytes stay until it is destroyed.
        let data = unsafe { (api.pinnableslice_value)(pinned, &mut size) };
        // SAFETY: the library says that `size` bytes are readable at `data`.
        let copy = unsafe { bytes_at(data, size) }.to_vec();
        // SAFETY: `pinned` is not used after this.
        unsafe { (api.pinnableslice_destroy)(pinned) };
        Ok(Some(copy))
    }

    /// Writes a pair.
    ///
    /// # Errors
    /// As reported by the library.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut error = ptr::null_mut();
        let put = self.owner.calls.put;
        // SAFETY: the transaction is open and copies the slices.
        unsafe {
            put(
                self.handle,
                chars(key),
                key.len(),
                chars(value),
                value.len(),
                &mut error,
            );
        };
        self.inner.api.check(error)
    }

    /// Deletes a pair.
    ///
    /// # Errors
    /// As reported by the library.
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: the transaction is open and copies the key.
        unsafe { (self.owner.calls.delete)(self.handle, chars(key), key.len(), &mut error) };
        self.inner.api.check(error)
    }

    /// An iterator over the database with the transaction's changes.
    pub fn iter(&mut self) -> LibIter<'_> {
        // SAFETY: the transaction is open, and the iterator borrows it.
        let iter = unsafe { (self.owner.calls.iterator)(self.handle, self.owner.read) };
        LibIter {
            api: &self.inner.api,
            iter,
            session: PhantomData,
        }
    }

    /// Commits.
    ///
    /// # Errors
    /// As reported by the library.
    pub fn commit(mut self) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: the transaction is open.
        unsafe { (self.owner.calls.commit)(self.handle, &mut error) };
        let outcome = self.inner.api.check(error);
        self.done = outcome.is_ok();
        outcome
    }
}
