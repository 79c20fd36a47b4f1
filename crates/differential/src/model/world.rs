//! A library with an open database that several threads use.
//!
//! The model's thread opens and closes it; others use it only while they hold the lock for reading.
//! Handles of families stay until the database is closed, so a thread may still use a dropped one.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_int};
use std::fs::File;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use super::program::{Call, Mode, Setting};
use crate::api::{Api, H, T, V, c};
use crate::callbacks;
use crate::{Failure, Result};

/// An open database.
pub(super) struct Open {
    /// Takes all calls but those of transactions.
    pub(super) db: H,
    /// The database that transactions begin on; `db` itself without transactions.
    pub(super) owner: H,
}

/// An open family.
#[derive(Clone, Debug)]
pub(super) struct Family {
    pub(super) name: String,
    pub(super) handle: H,
}

/// A copy of a database that was opened beside it, or a second view of it.
pub(super) struct SecondView {
    pub(super) db: H,
    pub(super) families: Vec<H>,
}

/// How a directory is opened beside the database.
#[derive(Clone, Copy, Debug)]
pub(super) enum OpenMethod<'a> {
    Write,
    Read,
    Secondary(&'a Path),
}

/// The library, the database, and what all threads share.
pub(super) struct ModelState {
    pub(super) library: Library,
    /// Holds `db` and everything beside it.
    pub(super) base: PathBuf,
    pub(super) options: H,
    /// Options of the same kind without the filter that sleeps.
    pub(super) quick: H,
    pub(super) write: H,
    pub(super) nowal: H,
    /// In total order.
    pub(super) read: H,
    pub(super) open: RwLock<Open>,
    pub(super) families: Mutex<Vec<Family>>,
    pub(super) dropped: Mutex<Vec<H>>,
    counts: Mutex<BTreeMap<String, u64>>,
    pub(super) stop: AtomicBool,
    /// Tells whether calls are printed before they are made.
    pub(super) trace: bool,
    /// Where a process that is going to be killed notes how many calls are done.
    pub(super) done: Option<File>,
    /// Calls that the model's thread has begun.
    begun: AtomicU64,
    /// The call that each thread is in.
    doing: Mutex<BTreeMap<usize, String>>,
    /// The first wrong answer that a thread saw which is not the model's.
    seen: Mutex<Option<Failure>>,
}

// SAFETY: RocksDB's handles may be used by any thread; what may not be used by two at once is held
// by one thread, or behind a lock.
unsafe impl Send for ModelState {}
// SAFETY: as above.
unsafe impl Sync for ModelState {}

/// The lock, whatever happened to a thread that held it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn at(data: &[u8]) -> T {
    data.as_ptr().cast()
}

pub(super) fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "")).expect("zero bytes were taken out")
}

pub(super) fn c_path(path: &Path) -> CString {
    c_text(&path.to_string_lossy())
}

/// A loaded library.
pub(super) struct Library {
    pub(super) api: Api,
}

impl Deref for ModelState {
    type Target = Library;

    fn deref(&self) -> &Library {
        &self.library
    }
}

impl Library {
    /// Options from text.
    pub(super) fn options(&self, text: &str) -> Result<H> {
        let (base, made) = (c!(self, options_create), c!(self, options_create));
        let (text, mut e) = (c_text(text), ptr::null_mut());
        c!(
            self,
            get_options_from_string,
            base,
            text.as_ptr(),
            made,
            &mut e
        );
        c!(self, options_destroy, base);
        self.done(e)
            .map(|()| made)
            .inspect_err(|_| c!(self, options_destroy, made))
    }

    /// How a call with an error pointer ended; frees the text.
    pub(super) fn done(&self, error: V) -> Result<()> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: the library left a zero-terminated text.
        let text = unsafe { CStr::from_ptr(error) }
            .to_string_lossy()
            .into_owned();
        c!(self, free, error.cast());
        Err(Failure::new(text))
    }

    /// A value that the library allocated; frees it.
    pub(super) fn taken(&self, value: V, size: usize) -> Option<Vec<u8>> {
        if value.is_null() {
            return None;
        }
        // SAFETY: the library says that so many bytes are there.
        let taken = unsafe { callbacks::bytes(value, size) }.to_vec();
        c!(self, free, value.cast());
        Some(taken)
    }

    /// Options of the program, with the merge operator, and a filter that sleeps so long.
    fn made(&self, text: &str, sleep: u64) -> Result<H> {
        let options = self.options(text)?;
        let merge = c!(
            self,
            mergeoperator_create,
            ptr::null_mut(),
            callbacks::nothing,
            callbacks::full_merge,
            callbacks::partial_merge,
            callbacks::delete_value,
            callbacks::merge_name,
        );
        c!(self, options_set_merge_operator, options, merge);
        c!(self, options_set_create_if_missing, options, 1);
        c!(self, options_set_create_missing_column_families, options, 1);
        if sleep > 0 {
            let state = ptr::without_provenance_mut(sleep as usize);
            let filter = if sleep % 2 == 1 && self.api.esker_compactionfilter_create.is_some() {
                c!(
                    self,
                    esker_compactionfilter_create,
                    state,
                    callbacks::nothing,
                    callbacks::slow_decision,
                    callbacks::filter_name,
                )
            } else {
                c!(
                    self,
                    compactionfilter_create,
                    state,
                    callbacks::nothing,
                    callbacks::slow,
                    callbacks::filter_name,
                )
            };
            c!(self, options_set_compaction_filter, options, filter);
        }
        Ok(options)
    }
}

impl ModelState {
    /// Makes the options for a database below `base`; nothing is open yet.
    pub(super) fn new(library: Library, base: &Path, setting: &Setting) -> Result<ModelState> {
        let options = library.made(&setting.options, setting.sleep)?;
        let quick = library.made(&setting.options, 0)?;
        let (write, nowal) = (
            c!(library, writeoptions_create),
            c!(library, writeoptions_create),
        );
        c!(library, writeoptions_disable_WAL, nowal, 1);
        let read = c!(library, readoptions_create);
        c!(library, readoptions_set_total_order_seek, read, 1);
        Ok(ModelState {
            library,
            base: base.to_owned(),
            options,
            quick,
            write,
            nowal,
            read,
            open: RwLock::new(Open {
                db: ptr::null_mut(),
                owner: ptr::null_mut(),
            }),
            families: Mutex::new(Vec::new()),
            dropped: Mutex::new(Vec::new()),
            counts: Mutex::new(BTreeMap::new()),
            stop: AtomicBool::new(false),
            trace: false,
            done: None,
            begun: AtomicU64::new(0),
            doing: Mutex::new(BTreeMap::new()),
            seen: Mutex::new(None),
        })
    }

    /// Holds the database open.
    pub(super) fn hold(&self) -> RwLockReadGuard<'_, Open> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The database, for the thread that alone closes it.
    pub(super) fn db(&self) -> H {
        self.hold().db
    }

    /// The family of a number, modulo those that are open.
    pub(super) fn family(&self, number: u64) -> Family {
        let families = lock(&self.families);
        families[number as usize % families.len()].clone()
    }

    pub(super) fn names(&self) -> Vec<String> {
        lock(&self.families)
            .iter()
            .map(|f| f.name.clone())
            .collect()
    }

    pub(super) fn handles(&self) -> Vec<H> {
        lock(&self.families).iter().map(|f| f.handle).collect()
    }

    pub(super) fn count(&self, what: &str) {
        self.count_many(what, 1);
    }

    pub(super) fn count_many(&self, what: &str, many: u64) {
        *lock(&self.counts).entry(what.to_owned()).or_default() += many;
    }

    /// Takes the counts.
    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut lock(&self.counts))
    }

    /// Notes what a thread does.
    pub(super) fn does(&self, thread: usize, call: &Call) {
        if self.trace {
            crate::say::note(&format!("{thread}: {call}"));
        }
        if thread == 0 {
            self.begun.fetch_add(1, Ordering::Relaxed);
        }
        lock(&self.doing).insert(thread, call.to_string());
    }

    /// How many calls the model's thread has begun.
    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Names the calls that all threads are in.
    pub(super) fn doing(&self) -> String {
        format!("{:?}", lock(&self.doing))
    }

    /// Notes a wrong answer, and ends all threads.
    pub(super) fn saw(&self, failure: Failure) {
        lock(&self.seen).get_or_insert(failure);
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(super) fn seen(&self) -> Option<Failure> {
        lock(&self.seen).take()
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// An error of a call that may be refused: counted, unless it tells of damage.
    pub(super) fn refused(&self, call: &str, error: &Failure) -> Result<()> {
        let text = error.to_string();
        if text.contains("Corruption") || text.contains("is now Failed") {
            return Err(Failure::new(text).context(call));
        }
        self.count(&format!("refused {call}"));
        Ok(())
    }

    /// Has waits for row locks carried out by the driver, which ends some.
    fn end_waits(&self, options: H) -> Result<()> {
        if self
            .api
            .esker_transactiondb_options_set_lock_waits
            .is_none()
        {
            return Ok(());
        }
        let mut e = ptr::null_mut();
        c!(
            self,
            esker_transactiondb_options_set_lock_waits,
            options,
            ptr::without_provenance_mut(1),
            callbacks::nothing,
            callbacks::begin_wait,
            callbacks::sleep_in_wait,
            callbacks::of_wait,
            callbacks::of_wait,
            &mut e
        );
        self.done(e)
    }

    /// Opens the database with families of these names.
    pub(super) fn begin(&self, mode: Mode, names: &[String]) -> Result<()> {
        let path = self.base.join("db");
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        let texts: Vec<CString> = names.iter().map(|name| c_text(name)).collect();
        let pointers: Vec<T> = texts.iter().map(|text| text.as_ptr()).collect();
        let options = vec![self.options; names.len()];
        let mut handles: Vec<H> = vec![ptr::null_mut(); names.len()];
        let (path, count) = (c_path(&path), names.len() as c_int);
        let (names_at, options_at) = (pointers.as_ptr(), options.as_ptr());
        let (path, to, mut e) = (path.as_ptr(), handles.as_mut_ptr(), ptr::null_mut());
        let own = self.options;
        let owner = match mode {
            Mode::Plain => {
                c!(
                    self,
                    open_column_families,
                    own,
                    path,
                    count,
                    names_at,
                    options_at,
                    to,
                    &mut e
                )
            }
            Mode::Optimistic => c!(
                self,
                optimistictransactiondb_open_column_families,
                own,
                path,
                count,
                names_at,
                options_at,
                to,
                &mut e
            ),
            Mode::Pessimistic => {
                let options = c!(self, transactiondb_options_create);
                c!(
                    self,
                    transactiondb_options_set_default_lock_timeout,
                    options,
                    50
                );
                self.end_waits(options)?;
                let owner = c!(
                    self,
                    transactiondb_open_column_families,
                    own,
                    options,
                    path,
                    count,
                    names_at,
                    options_at,
                    to,
                    &mut e
                );
                c!(self, transactiondb_options_destroy, options);
                owner
            }
        };
        self.done(e)?;
        open.owner = owner;
        open.db = match mode {
            Mode::Plain => owner,
            Mode::Optimistic => c!(self, optimistictransactiondb_get_base_db, owner),
            Mode::Pessimistic => c!(self, transactiondb_get_base_db, owner),
        };
        let family = |(name, handle): (&String, H)| Family {
            name: name.clone(),
            handle,
        };
        *lock(&self.families) = names.iter().zip(handles).map(family).collect();
        Ok(())
    }

    /// Closes the database once no thread is in a call.
    pub(super) fn end(&self, mode: Mode, cancel: bool) {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        if open.db.is_null() {
            return;
        }
        if cancel && !self.api.missing.contains("cancel_all_background_work") {
            c!(self, cancel_all_background_work, open.db, 1);
        }
        let dropped: Vec<H> = lock(&self.dropped).drain(..).collect();
        let families: Vec<Family> = lock(&self.families).drain(..).collect();
        for handle in dropped
            .into_iter()
            .chain(families.into_iter().map(|f| f.handle))
        {
            c!(self, column_family_handle_destroy, handle);
        }
        match mode {
            Mode::Plain => c!(self, close, open.db),
            Mode::Optimistic => {
                c!(self, optimistictransactiondb_close_base_db, open.db);
                c!(self, optimistictransactiondb_close, open.owner);
            }
            Mode::Pessimistic => {
                c!(self, transactiondb_close_base_db, open.db);
                c!(self, transactiondb_close, open.owner);
            }
        }
        (open.db, open.owner) = (ptr::null_mut(), ptr::null_mut());
    }

    /// Opens the directory of a copy, or the database's own a second time.
    pub(super) fn open_side(
        &self,
        path: &Path,
        names: &[String],
        how: OpenMethod<'_>,
    ) -> Result<SecondView> {
        let texts: Vec<CString> = names.iter().map(|name| c_text(name)).collect();
        let pointers: Vec<T> = texts.iter().map(|text| text.as_ptr()).collect();
        let options = vec![self.quick; names.len()];
        let mut families: Vec<H> = vec![ptr::null_mut(); names.len()];
        let (path, count) = (c_path(path), names.len() as c_int);
        let (names_at, options_at) = (pointers.as_ptr(), options.as_ptr());
        let (path, to, mut e) = (path.as_ptr(), families.as_mut_ptr(), ptr::null_mut());
        let own = self.quick;
        let db = match how {
            OpenMethod::Write => {
                c!(
                    self,
                    open_column_families,
                    own,
                    path,
                    count,
                    names_at,
                    options_at,
                    to,
                    &mut e
                )
            }
            OpenMethod::Read => c!(
                self,
                open_for_read_only_column_families,
                own,
                path,
                count,
                names_at,
                options_at,
                to,
                0,
                &mut e
            ),
            OpenMethod::Secondary(side) => {
                let side = c_path(side);
                let side = side.as_ptr();
                c!(
                    self,
                    open_as_secondary_column_families,
                    own,
                    path,
                    side,
                    count,
                    names_at,
                    options_at,
                    to,
                    &mut e
                )
            }
        };
        self.done(e)?;
        Ok(SecondView { db, families })
    }

    pub(super) fn close_side(&self, side: SecondView) {
        for handle in side.families {
            c!(self, column_family_handle_destroy, handle);
        }
        c!(self, close, side.db);
    }

    /// Frees the options.
    pub(super) fn free(self) {
        c!(self, options_destroy, self.options);
        c!(self, options_destroy, self.quick);
        c!(self, writeoptions_destroy, self.write);
        c!(self, writeoptions_destroy, self.nowal);
        c!(self, readoptions_destroy, self.read);
    }
}
