//! Families, flushes, compactions, options and properties.

use std::ffi::CStr;
use std::ptr;

use super::{CallResult, Family, LibraryState, at, c_path, c_text, show};
use crate::api::c;
use crate::api::{H, T};
use crate::call::Bytes;
use crate::callbacks::bytes;
use crate::tolerated::END_OF_LOG;

/// The bytes of a batch without the record that does nothing: a RocksDB database of transactions
/// puts one in front, in case the transaction will be prepared.
fn without_noop(batch: &[u8]) -> Vec<u8> {
    const HEADER: usize = 12;
    const NOOP: u8 = 0x0d;
    let mut batch = batch.to_vec();
    if batch.get(HEADER) == Some(&NOOP) {
        batch.remove(HEADER);
    }
    batch
}

/// Returns whether a batch holds nothing but what a log of Esker's says at its end.
fn is_end_of_log(batch: &[u8]) -> bool {
    const LOG_DATA: u8 = 0x03;
    matches!(batch, [_, _, _, _, _, _, _, _, 0, 0, 0, 0, LOG_DATA, _, word @ ..] if word.starts_with(b"esker.end:"))
}

impl LibraryState {
    pub(super) fn create_family(&mut self, name: &str) -> String {
        let (text, mut e) = (c_text(name), ptr::null_mut());
        let options = self.options_of(name);
        let handle = c!(
            self,
            create_column_family,
            self.db,
            options,
            text.as_ptr(),
            &mut e
        );
        if let Some(error) = self.error(e) {
            return format!("error {error}");
        }
        let id = self.family_id(handle);
        self.families.push(Family {
            name: name.to_owned(),
            handle,
        });
        format!("ok, number {id}")
    }

    pub(super) fn drop_family(&mut self, index: usize) -> String {
        if self.is_reversed(index) {
            return "-".into();
        }
        let mut e = ptr::null_mut();
        c!(
            self,
            drop_column_family,
            self.db,
            self.handle(index),
            &mut e
        );
        if let Some(error) = self.error(e) {
            return format!("error {error}");
        }
        let at = index % self.families.len();
        self.dropped.push(self.families.remove(at));
        "ok".into()
    }

    /// Reading and writing a family that was dropped while its handle lives.
    pub(super) fn dropped_family(&self, index: usize, key: &[u8]) -> String {
        let Some(family) = self.dropped.get(index % self.dropped.len().max(1)) else {
            return "-".into();
        };
        let (cf, k, mut size, mut e) = (family.handle, at(key), 0, ptr::null_mut());
        let value = c!(
            self,
            get_cf,
            self.db,
            self.read,
            cf,
            k,
            key.len(),
            &mut size,
            &mut e
        );
        let got = self.value_or_error(value, size, e);
        // Without this the write fails, and in RocksDB every one that follows.
        let write = c!(self, writeoptions_create);
        c!(
            self,
            writeoptions_set_ignore_missing_column_families,
            write,
            1
        );
        let mut e = ptr::null_mut();
        c!(
            self,
            put_cf,
            self.db,
            write,
            cf,
            k,
            key.len(),
            at(b"late"),
            4,
            &mut e
        );
        let put = self.ended(e);
        c!(self, writeoptions_destroy, write);
        let mut e = ptr::null_mut();
        c!(self, flush_cf, self.db, self.flush, cf, &mut e);
        let flush = self.ended(e);
        format!(
            "get {got}, put {put}, flush {flush}, {}",
            self.digest_of(self.db, cf)
        )
    }

    pub(super) fn list_families(&self) -> String {
        let (path, mut count, mut e) = (c_path(&self.base.join("db")), 0, ptr::null_mut());
        let (own, path) = (self.own(), path.as_ptr());
        let list = c!(self, list_column_families, own, path, &mut count, &mut e);
        if let Some(error) = self.error(e) {
            return format!("error {error}");
        }
        let name = |i| {
            // SAFETY: the library says that the list has `count` texts.
            let text = unsafe { CStr::from_ptr(*list.add(i)) };
            text.to_string_lossy().into_owned()
        };
        let names: Vec<String> = (0..count).map(name).collect();
        c!(self, list_column_families_destroy, list, count);
        names.join(" ")
    }

    pub(super) fn flush(&self, family: usize) -> String {
        let mut e = ptr::null_mut();
        c!(
            self,
            flush_cf,
            self.db,
            self.flush,
            self.handle(family),
            &mut e
        );
        self.ended(e)
    }

    pub(super) fn flush_all(&self) -> String {
        if self.lacks("flush_cfs") {
            let each = (0..self.families.len()).map(|family| self.flush(family));
            return each.collect::<Vec<_>>().join(" ");
        }
        let (all, mut e) = (self.handles(), ptr::null_mut());
        c!(
            self,
            flush_cfs,
            self.db,
            self.flush,
            all.as_ptr(),
            self.many(),
            &mut e
        );
        self.ended(e)
    }

    fn handles(&self) -> Vec<H> {
        self.families.iter().map(|family| family.handle).collect()
    }

    pub(super) fn flush_wal(&self, sync: bool) -> String {
        let mut e = ptr::null_mut();
        c!(self, flush_wal, self.db, u8::from(sync), &mut e);
        self.ended(e)
    }

    pub(super) fn compact_range(
        &self,
        family: usize,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> String {
        let bound = |key: Option<&[u8]>| key.map_or((ptr::null(), 0), |k| (at(k), k.len()));
        let ((from, from_size), (to, to_size)) = (bound(begin), bound(end));
        let cf = self.handle(family);
        c!(
            self,
            compact_range_cf,
            self.db,
            cf,
            from,
            from_size,
            to,
            to_size
        );
        "ok".into()
    }

    pub(super) fn suggest_compact_range(&self, family: usize, begin: &[u8], end: &[u8]) -> String {
        let (cf, from, to) = (self.handle(family), at(begin), at(end));
        let mut e = ptr::null_mut();
        c!(
            self,
            suggest_compact_range_cf,
            self.db,
            cf,
            from,
            begin.len(),
            to,
            end.len(),
            &mut e
        );
        self.ended(e)
    }

    pub(super) fn property(&self, family: usize, name: &str) -> String {
        let name = c_text(name);
        let value = c!(
            self,
            property_value_cf,
            self.db,
            self.handle(family),
            name.as_ptr()
        );
        if value.is_null() {
            return "none".into();
        }
        // SAFETY: a property's value is zero-terminated text.
        let text = unsafe { CStr::from_ptr(value) }
            .to_string_lossy()
            .into_owned();
        c!(self, free, value.cast());
        text
    }

    pub(super) fn property_int(&self, family: usize, name: &str) -> String {
        // RocksDB 7 has a smaller cache when nothing is said.
        if self.is_old() && name == "rocksdb.block-cache-capacity" {
            return "-".into();
        }
        let (name, mut value) = (c_text(name), 0);
        let (cf, name) = (self.handle(family), name.as_ptr());
        match c!(self, property_int_cf, self.db, cf, name, &mut value) {
            0 => value.to_string(),
            _ => "none".into(),
        }
    }

    pub(super) fn approximate_sizes(&self, family: usize, ranges: &[(Bytes, Bytes)]) -> CallResult {
        let ordered = ranges.iter().map(|(a, b)| {
            if self.in_order(family, a, b) {
                (a, b)
            } else {
                (b, a)
            }
        });
        let ordered: Vec<(&Bytes, &Bytes)> = ordered.collect();
        let from: Vec<T> = ordered.iter().map(|r| at(r.0)).collect();
        let from_sizes: Vec<usize> = ordered.iter().map(|r| r.0.len()).collect();
        let to: Vec<T> = ordered.iter().map(|r| at(r.1)).collect();
        let to_sizes: Vec<usize> = ordered.iter().map(|r| r.1.len()).collect();
        let (mut sizes, mut e) = (vec![0; ranges.len()], ptr::null_mut());
        c!(
            self,
            approximate_sizes_cf,
            self.db,
            self.handle(family),
            ranges.len() as i32,
            from.as_ptr(),
            from_sizes.as_ptr(),
            to.as_ptr(),
            to_sizes.as_ptr(),
            sizes.as_mut_ptr(),
            &mut e
        );
        CallResult {
            text: self.ended(e),
            sizes,
        }
    }

    pub(super) fn set_options(&mut self, family: usize, name: &str, value: &str) -> String {
        if (name, value) == ("enable_blob_files", "true") {
            let family = self.family(family).name.clone();
            self.separated.insert(family);
        }
        let (name, value, mut e) = (c_text(name), c_text(value), ptr::null_mut());
        let (names, values) = ([name.as_ptr()], [value.as_ptr()]);
        let cf = self.handle(family);
        c!(
            self,
            set_options_cf,
            self.db,
            cf,
            1,
            names.as_ptr(),
            values.as_ptr(),
            &mut e
        );
        self.ended(e)
    }

    pub(super) fn set_db_options(&self, name: &str, value: &str) -> String {
        let (name, value, mut e) = (c_text(name), c_text(value), ptr::null_mut());
        let (names, values) = ([name.as_ptr()], [value.as_ptr()]);
        c!(
            self,
            set_db_options,
            self.db,
            1,
            names.as_ptr(),
            values.as_ptr(),
            &mut e
        );
        self.ended(e)
    }

    /// Applies a string of options to fresh ones.
    pub(super) fn options_string(&self, text: &str) -> String {
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
        let said = match self.error(e) {
            Some(error) => format!("error {error}"),
            None => format!(
                "buffer {} open files {} levels {} file size {} compression {:?}",
                c!(self, options_get_write_buffer_size, made),
                c!(self, options_get_max_open_files, made),
                c!(self, options_get_num_levels, made),
                c!(self, options_get_target_file_size_base, made),
                // RocksDB 7 had another one when nothing is said.
                (!self.is_old()).then(|| c!(self, options_get_compression, made)),
            ),
        };
        c!(self, options_destroy, base);
        c!(self, options_destroy, made);
        said
    }

    pub(super) fn file_deletions(&self) -> String {
        let (mut off, mut on) = (ptr::null_mut(), ptr::null_mut());
        c!(self, disable_file_deletions, self.db, &mut off);
        let between = self.property(0, "rocksdb.is-file-deletions-enabled");
        c!(self, enable_file_deletions, self.db, &mut on);
        format!("{} {between} {}", self.ended(off), self.ended(on))
    }

    /// Identities differ; their shape does not.
    pub(super) fn identity(&self) -> String {
        let mut size = 0;
        let id = c!(self, get_db_identity, self.db, &mut size);
        if id.is_null() {
            return "none".into();
        }
        // SAFETY: the library says that `size` bytes are there.
        let text = String::from_utf8_lossy(unsafe { bytes(id, size) }).into_owned();
        c!(self, free, id.cast());
        let shape = text
            .chars()
            .map(|c| if c.is_ascii_hexdigit() { 'x' } else { c });
        shape.collect()
    }

    /// How many files there are is each library's business; that the list can be had is not.
    pub(super) fn live_files(&self) -> CallResult {
        let list = c!(self, livefiles, self.db);
        if list.is_null() {
            return String::from("none").into();
        }
        let entries =
            (0..c!(self, livefiles_count, list)).map(|i| c!(self, livefiles_entries, list, i));
        let entries: u64 = entries.sum();
        c!(self, livefiles_destroy, list);
        CallResult {
            text: "answered".into(),
            sizes: vec![entries],
        }
    }

    pub(super) fn updates_since(&self, back: u64) -> String {
        let from = c!(self, get_latest_sequence_number, self.db).saturating_sub(back);
        let mut e = ptr::null_mut();
        let iter = c!(
            self,
            get_updates_since,
            self.db,
            from,
            ptr::null_mut(),
            &mut e
        );
        if let Some(error) = self.error(e) {
            return format!("error {error}");
        }
        let (mut said, mut batches) = (Vec::new(), 0);
        while c!(self, wal_iter_valid, iter) != 0 && batches < 20 {
            let (mut sequence, mut size) = (0, 0);
            let batch = c!(self, wal_iter_get_batch, iter, &mut sequence);
            let data = c!(self, writebatch_data, batch, &mut size);
            // SAFETY: the batch shows its bytes until it is destroyed.
            let data = unsafe { bytes(data, size) };
            if is_end_of_log(data) {
                said.push(END_OF_LOG.to_owned());
            } else {
                batches += 1;
                said.push(format!("{sequence} {}", show(&without_noop(data))));
            }
            c!(self, writebatch_destroy, batch);
            c!(self, wal_iter_next, iter);
        }
        let mut e = ptr::null_mut();
        c!(self, wal_iter_status, iter, &mut e);
        said.push(self.ended(e));
        c!(self, wal_iter_destroy, iter);
        said.join(", ")
    }
}
