//! Opening and closing, with the same options in every library.

use std::ffi::{CString, c_int};
use std::path::Path;
use std::ptr;

use super::{Family, Subject, c_path, c_text};
use crate::diff::api::H;
use crate::diff::callbacks;
use crate::{Failure, Result};

/// Small buffers and files, so that everything happens within few calls.
const OPTIONS: &str = "write_buffer_size=131072;target_file_size_base=65536;\
    max_bytes_for_level_base=262144;level0_file_num_compaction_trigger=4;max_background_jobs=2;\
    compression=kSnappyCompression;prefix_extractor=fixed:3;WAL_ttl_seconds=36000;\
    stats_dump_period_sec=0;stats_persist_period_sec=0;\
    block_based_table_factory={block_size=2048;filter_policy=bloomfilter:10:false;format_version=5}";

/// Handles and names of what one open call opened.
pub(super) struct Opened {
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
}

impl Subject {
    /// Makes the options and opens a new database.
    pub(in crate::diff) fn begin(&mut self) -> Result<()> {
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
        self.forward = self.make_options()?;
        self.reverse = self.make_options()?;
        c!(self, options_set_comparator, self.reverse, self.order);
        std::fs::create_dir_all(&self.base)?;
        let names = ["default".to_owned(), "rev".to_owned()];
        match self.reopen_with(&names).as_str() {
            "ok" => Ok(()),
            text => Err(Failure::new(text)),
        }
    }

    fn make_options(&self) -> Result<H> {
        let base = c!(self, options_create);
        let options = c!(self, options_create);
        let text = c_text(OPTIONS);
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
            return Err(Failure::new(error).context(OPTIONS));
        }
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
        Ok(options)
    }

    pub(super) fn options_of(&self, name: &str) -> H {
        match name {
            "rev" => self.reverse,
            _ => self.forward,
        }
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
    ) -> std::result::Result<Opened, String> {
        let path = c_path(path);
        let texts: Vec<CString> = names.iter().map(|name| c_text(name)).collect();
        let pointers: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
        let options: Vec<H> = names.iter().map(|name| self.options_of(name)).collect();
        let mut handles: Vec<H> = vec![ptr::null_mut(); names.len()];
        let (path, count) = (path.as_ptr(), names.len() as c_int);
        let (names_at, options_at) = (pointers.as_ptr(), options.as_ptr());
        let (handles_at, mut error) = (handles.as_mut_ptr(), ptr::null_mut());
        let (own, e) = (self.forward, &mut error);
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
        };
        if let Some(error) = self.error(error) {
            return Err(format!("error {error}"));
        }
        let named = names.iter().zip(handles);
        let families = named.map(|(name, handle)| Family {
            name: name.clone(),
            handle,
        });
        Ok(Opened {
            db,
            families: families.collect(),
        })
    }

    /// Gives back what was opened beside the database.
    pub(super) fn close_side(&self, opened: Opened) {
        for family in opened.families {
            c!(self, column_family_handle_destroy, family.handle);
        }
        c!(self, close, opened.db);
    }

    /// Gives back snapshots, iterators and families, and closes the database.
    pub(in crate::diff) fn close(&mut self) {
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
    pub(in crate::diff) fn reopen_with(&mut self, names: &[String]) -> String {
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
        let names = self.names();
        self.close();
        self.reopen_with(&names)
    }

    /// Closes, and tells which families there were.
    pub(in crate::diff) fn close_for_swap(&mut self) -> Vec<String> {
        let names = self.names();
        self.close();
        names
    }

    /// What comes of opening twice, and of opening without some families.
    pub(super) fn open_without(&mut self) -> String {
        let names = self.names();
        let path = self.base.join("db");
        let twice = match self.open_at(&path, &names, Mode::ReadWrite) {
            Ok(opened) => {
                self.close_side(opened);
                "opened".into()
            }
            // The rest names times and threads.
            Err(text) => text.split(" acquire").next().unwrap_or_default().to_owned(),
        };
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
