//! Opening and closing, with the same options in every library.

use std::ffi::{CString, c_int};
use std::path::Path;
use std::ptr;

use super::{Family, LibraryState, c_path, c_text};
use crate::api::H;
use crate::api::c;
use crate::callbacks;
use crate::options::{self, Setting};
use crate::{Failure, Result};

/// Handles and names of what one open call opened.
pub(super) struct OpenDatabase {
    pub(super) db: H,
    pub(super) families: Vec<Family>,
}

/// Which open call to make.
#[derive(Clone, Copy)]
pub(super) enum Mode<'a> {
    ReadWrite,
    ReadOnly,
    Secondary(&'a Path),
    Optimistic,
    Pessimistic,
    /// With times to live that nothing reaches.
    Ttl,
}

/// The names of families whose options differ; all others have those of the first.
const NAMES: &[&str] = &["default", "rev", "c0", "c1", "c2", "c3"];

impl LibraryState {
    /// Returns whether the library takes this text of options.
    pub(crate) fn accepts(&self, text: &str) -> bool {
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
        c!(self, options_destroy, made);
        self.error(e).is_none()
    }

    /// Makes the options and opens a new database.
    pub(crate) fn begin(&mut self, setting: &Setting) -> Result<()> {
        self.own_order_ranges = setting.own_order_ranges;
        self.base_options = setting.base.clone();
        self.blob_cache = setting.blob_cache;
        self.write = c!(self, writeoptions_create);
        self.read = c!(self, readoptions_create);
        c!(self, readoptions_set_total_order_seek, self.read, 1);
        self.flush = c!(self, flushoptions_create);
        self.order = c!(
            self,
            comparator_create,
            ptr::null_mut(),
            callbacks::nothing,
            callbacks::compare,
            callbacks::order_name,
        );
        for name in NAMES {
            let made =
                self.make_options(&format!("{}{}", options::extra(name), setting.base), name)?;
            self.options.push((name, made));
        }
        std::fs::create_dir_all(&self.base)?;
        let names = ["default".to_owned(), "rev".to_owned()];
        match self.reopen_with(&names).as_str() {
            "ok" => Ok(()),
            text => Err(Failure::new(text)),
        }
    }

    /// Options for families of this name.
    pub(super) fn make_options(&self, text: &str, name: &str) -> Result<H> {
        let base = c!(self, options_create);
        let options = c!(self, options_create);
        let whole = text;
        let text = c_text(whole);
        let mut error = ptr::null_mut();
        c!(
            self,
            get_options_from_string,
            base,
            text.as_ptr(),
            options,
            &mut error
        );
        c!(self, options_destroy, base);
        if let Some(error) = self.error(error) {
            return Err(Failure::new(error).context(whole));
        }
        if options::adds(name) && !self.lacks("options_set_uint64add_merge_operator") {
            c!(self, options_set_uint64add_merge_operator, options);
        } else {
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
        }
        if options::is_reversed(name) {
            c!(self, options_set_comparator, options, self.order);
        }
        if self.blob_cache > 0 && !self.lacks("options_set_blob_cache") {
            let cache = c!(self, cache_create_lru, self.blob_cache);
            c!(self, options_set_blob_cache, options, cache);
            c!(self, cache_destroy, cache);
        }
        if name == "default" && !self.lacks("options_statistics_get_ticker_count") {
            c!(self, options_enable_statistics, options);
        }
        c!(self, options_set_create_if_missing, options, 1);
        c!(self, options_set_create_missing_column_families, options, 1);
        Ok(options)
    }

    pub(super) fn options_of(&self, name: &str) -> H {
        let like = match name {
            _ if options::is_reversed(name) => "rev",
            _ if options::adds(name) => "c0",
            _ => name,
        };
        let found = self.options.iter().find(|(own, _)| *own == like);
        found.map_or_else(|| self.own(), |(_, options)| *options)
    }

    /// The options of the database.
    pub(super) fn own(&self) -> H {
        self.options
            .first()
            .map_or(ptr::null_mut(), |(_, own)| *own)
    }

    /// The names of the families that are open.
    pub(super) fn names(&self) -> Vec<String> {
        self.families.iter().map(|f| f.name.clone()).collect()
    }

    /// Opens the families `names` of the database in `path`.
    pub(super) fn open_at(
        &self,
        path: &Path,
        names: &[String],
        mode: Mode<'_>,
    ) -> std::result::Result<OpenDatabase, String> {
        let path = c_path(path);
        let texts: Vec<CString> = names.iter().map(|name| c_text(name)).collect();
        let pointers: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
        let options: Vec<H> = names.iter().map(|name| self.options_of(name)).collect();
        let mut handles: Vec<H> = vec![ptr::null_mut(); names.len()];
        let (path, count) = (path.as_ptr(), names.len() as c_int);
        let (names_at, options_at) = (pointers.as_ptr(), options.as_ptr());
        let (handles_at, mut error) = (handles.as_mut_ptr(), ptr::null_mut());
        let (own, e) = (self.own(), &mut error);
        let db = match mode {
            Mode::ReadWrite => c!(
                self,
                open_column_families,
                own,
                path,
                count,
                names_at,
                options_at,
                handles_at,
                e
            ),
            Mode::ReadOnly => c!(
                self,
                open_for_read_only_column_families,
                own,
                path,
                count,
                names_at,
                options_at,
                handles_at,
                0,
                e
            ),
            Mode::Secondary(side) => {
                let side = c_path(side);
                c!(
                    self,
                    open_as_secondary_column_families,
                    own,
                    path,
                    side.as_ptr(),
                    count,
                    names_at,
                    options_at,
                    handles_at,
                    e
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
                handles_at,
                e
            ),
            Mode::Pessimistic => {
                let transactions = c!(self, transactiondb_options_create);
                c!(
                    self,
                    transactiondb_options_set_default_lock_timeout,
                    transactions,
                    0
                );
                let db = c!(
                    self,
                    transactiondb_open_column_families,
                    own,
                    transactions,
                    path,
                    count,
                    names_at,
                    options_at,
                    handles_at,
                    e
                );
                c!(self, transactiondb_options_destroy, transactions);
                db
            }
            Mode::Ttl => {
                let ttls = vec![c_int::MAX / 4; names.len()];
                c!(
                    self,
                    open_column_families_with_ttl,
                    own,
                    path,
                    count,
                    names_at,
                    options_at,
                    handles_at,
                    ttls.as_ptr(),
                    e
                )
            }
        };
        if let Some(error) = self.error(error) {
            return Err(format!("error {error}"));
        }
        let named = names.iter().zip(handles);
        let families = named.map(|(name, handle)| Family {
            name: name.clone(),
            handle,
        });
        Ok(OpenDatabase {
            db,
            families: families.collect(),
        })
    }

    /// Gives back what was opened beside the database.
    pub(super) fn close_side(&self, opened: OpenDatabase) {
        for family in opened.families {
            c!(self, column_family_handle_destroy, family.handle);
        }
        c!(self, close, opened.db);
    }

    /// Gives back snapshots, iterators and families, and closes the database.
    pub(crate) fn close(&mut self) {
        self.release();
        if !self.db.is_null() {
            c!(self, close, self.db);
        }
        self.db = ptr::null_mut();
    }

    /// Gives back everything that depends on the database.
    pub(super) fn release(&mut self) {
        for iter in self.iterators.drain(..) {
            c!(self, iter_destroy, iter.handle);
            c!(self, readoptions_destroy, iter.read);
        }
        for snapshot in self.snapshots.drain(..) {
            c!(self, release_snapshot, self.db, snapshot);
        }
        for family in self.families.drain(..).chain(self.dropped.drain(..)) {
            c!(self, column_family_handle_destroy, family.handle);
        }
    }

    /// Opens the database of the directory with these families.
    pub(crate) fn reopen_with(&mut self, names: &[String]) -> String {
        match self.open_at(&self.base.join("db"), names, Mode::ReadWrite) {
            Ok(opened) => {
                self.db = opened.db;
                self.families = opened.families;
                "ok".into()
            }
            Err(text) => text,
        }
    }

    pub(super) fn reopen(&mut self) -> String {
        self.mark();
        let (names, before) = (self.names(), self.latest());
        self.close();
        let opened = self.reopen_with(&names);
        format!("{before}, {opened}, {}", self.latest())
    }

    /// Writes a key that stays. When the newest writes leave nothing behind (a single deletion with
    /// its put, an empty range), RocksDB's sequence number goes back at the next opening or the one
    /// after.
    pub(super) fn mark(&self) {
        if !self.db.is_null() && !self.families.is_empty() {
            self.put(0, b"closing", b"now");
        }
    }

    /// Closes, and tells which families there were.
    pub(crate) fn close_for_swap(&mut self) -> Vec<String> {
        self.mark();
        let names = self.names();
        self.close();
        names
    }

    /// Opens the database twice, and without some families.
    pub(super) fn open_without(&mut self) -> String {
        let names = self.names();
        let path = self.base.join("db");
        let twice = match self.open_at(&path, &names, Mode::ReadWrite) {
            Ok(opened) => {
                self.close_side(opened);
                "opened".into()
            }
            Err(text) => text,
        };
        self.mark();
        self.close();
        let without = match self.open_at(&path, &names[..1], Mode::ReadWrite) {
            Ok(opened) => {
                self.close_side(opened);
                "opened".into()
            }
            Err(text) => text,
        };
        let again = self.reopen_with(&names);
        format!("twice: {twice}; without: {without}; again: {again}")
    }
}
