//! Writes and reads.

use std::ffi::c_int;
use std::ptr;

use super::{LibraryState, at, show};
use crate::api::c;
use crate::api::{H, T, V};
use crate::call::{Bytes, Record, WriteFlags};
use crate::callbacks::{self, bytes, reversed};

impl LibraryState {
    pub(super) fn put(&self, family: usize, key: &[u8], value: &[u8]) -> String {
        let (cf, mut e) = (self.handle(family), ptr::null_mut());
        let (k, v) = (at(key), at(value));
        c!(
            self,
            put_cf,
            self.db,
            self.write,
            cf,
            k,
            key.len(),
            v,
            value.len(),
            &mut e
        );
        self.ended(e)
    }

    /// A put with options of its own. Without the log it is there after a flush: the log of changes
    /// has a gap.
    pub(super) fn put_with(
        &mut self,
        family: usize,
        key: &[u8],
        value: &[u8],
        flags: WriteFlags,
    ) -> String {
        let plain = self.write;
        self.write = c!(self, writeoptions_create);
        c!(
            self,
            writeoptions_set_sync,
            self.write,
            u8::from(flags.sync && !flags.without_log)
        );
        c!(
            self,
            writeoptions_disable_WAL,
            self.write,
            i32::from(flags.without_log)
        );
        c!(
            self,
            writeoptions_set_low_pri,
            self.write,
            u8::from(flags.low_priority)
        );
        let mut said = self.put(family, key, value);
        c!(self, writeoptions_destroy, self.write);
        self.write = plain;
        if flags.without_log {
            said += &format!(", {}", self.flush_all());
        }
        said
    }

    /// The records of a batch as its iteration tells them, of its copy, and of the batch once it is
    /// empty.
    pub(super) fn batch_seen(&self, records: &[Record]) -> String {
        let batch = c!(self, writebatch_create);
        let mut said: Vec<String> = records.iter().filter_map(|r| self.add(batch, r)).collect();
        said.push(self.iterated(batch));
        let mut size = 0;
        let data = c!(self, writebatch_data, batch, &mut size);
        let copy = c!(self, writebatch_create_from, data, size);
        said.push(self.iterated(copy));
        let mut e = ptr::null_mut();
        c!(self, write, self.db, self.write, copy, &mut e);
        said.push(self.ended(e));
        c!(self, writebatch_clear, batch);
        said.push(c!(self, writebatch_count, batch).to_string());
        c!(self, writebatch_destroy, batch);
        c!(self, writebatch_destroy, copy);
        said.join(", ")
    }

    fn iterated(&self, batch: H) -> String {
        let mut told = String::new();
        c!(
            self,
            writebatch_iterate_cf,
            batch,
            ptr::from_mut(&mut told).cast(),
            callbacks::seen,
            callbacks::gone,
            callbacks::merged,
        );
        format!("{}: {told}", c!(self, writebatch_count, batch))
    }

    pub(super) fn merge(&self, family: usize, key: &[u8], value: &[u8]) -> String {
        let (cf, mut e) = (self.handle(family), ptr::null_mut());
        let (k, v) = (at(key), at(value));
        c!(
            self,
            merge_cf,
            self.db,
            self.write,
            cf,
            k,
            key.len(),
            v,
            value.len(),
            &mut e
        );
        self.ended(e)
    }

    pub(super) fn delete(&self, family: usize, key: &[u8]) -> String {
        let (cf, mut e) = (self.handle(family), ptr::null_mut());
        c!(
            self,
            delete_cf,
            self.db,
            self.write,
            cf,
            at(key),
            key.len(),
            &mut e
        );
        self.ended(e)
    }

    pub(super) fn single_delete(&self, key: &[u8]) -> String {
        let (cf, mut e) = (self.handle(0), ptr::null_mut());
        c!(
            self,
            singledelete_cf,
            self.db,
            self.write,
            cf,
            at(key),
            key.len(),
            &mut e
        );
        self.ended(e)
    }

    /// Returns whether this run deletes ranges in the family.
    pub(super) fn may_delete_ranges(&self, family: usize) -> bool {
        self.own_order_ranges || !self.is_reversed(family)
    }

    /// The ends are put in order: when they are not, RocksDB refuses every write that follows.
    pub(super) fn delete_range(&self, family: usize, begin: &[u8], end: &[u8]) -> String {
        if !self.may_delete_ranges(family) {
            return "-".into();
        }
        let (begin, end) = if self.in_order(family, begin, end) {
            (begin, end)
        } else {
            (end, begin)
        };
        let (cf, mut e) = (self.handle(family), ptr::null_mut());
        let (from, to) = (at(begin), at(end));
        c!(
            self,
            delete_range_cf,
            self.db,
            self.write,
            cf,
            from,
            begin.len(),
            to,
            end.len(),
            &mut e
        );
        self.ended(e)
    }

    /// Puts `record` into a batch, and says how that ended when it can fail.
    pub(super) fn add(&self, batch: H, record: &Record) -> Option<String> {
        let mut e = ptr::null_mut();
        match record {
            Record::Put(family, k, v) => {
                let cf = self.handle(*family);
                c!(
                    self,
                    writebatch_put_cf,
                    batch,
                    cf,
                    at(k),
                    k.len(),
                    at(v),
                    v.len()
                );
            }
            Record::Merge(family, k, v) => {
                let cf = self.handle(*family);
                c!(
                    self,
                    writebatch_merge_cf,
                    batch,
                    cf,
                    at(k),
                    k.len(),
                    at(v),
                    v.len()
                );
            }
            Record::Delete(family, k) => {
                let cf = self.handle(*family);
                c!(self, writebatch_delete_cf, batch, cf, at(k), k.len());
            }
            Record::DeleteRange(family, a, b)
                if self.may_delete_ranges(*family) && self.in_order(*family, a, b) =>
            {
                let cf = self.handle(*family);
                c!(
                    self,
                    writebatch_delete_range_cf,
                    batch,
                    cf,
                    at(a),
                    a.len(),
                    at(b),
                    b.len()
                );
            }
            Record::DeleteRange(..) => {}
            Record::LogData(blob) => c!(self, writebatch_put_log_data, batch, at(blob), blob.len()),
            Record::SavePoint => c!(self, writebatch_set_save_point, batch),
            Record::RollbackToSavePoint => {
                c!(self, writebatch_rollback_to_save_point, batch, &mut e);
                return Some(self.ended(e));
            }
            Record::PopSavePoint => {
                c!(self, writebatch_pop_save_point, batch, &mut e);
                return Some(self.ended(e));
            }
        }
        None
    }

    pub(super) fn batch(&self, records: &[Record]) -> String {
        let batch = c!(self, writebatch_create);
        let mut said: Vec<String> = records.iter().filter_map(|r| self.add(batch, r)).collect();
        let count = c!(self, writebatch_count, batch);
        let mut size = 0;
        let data = c!(self, writebatch_data, batch, &mut size);
        // SAFETY: the batch shows its bytes until it changes.
        let data = show(unsafe { bytes(data, size) });
        let mut e = ptr::null_mut();
        c!(self, write, self.db, self.write, batch, &mut e);
        c!(self, writebatch_destroy, batch);
        said.push(self.ended(e));
        format!("{count} records {data}: {}", said.join(", "))
    }

    /// A batch made of bytes that are not one. It is not written, which ends a RocksDB database for
    /// good; and when such bytes are refused, at once or when they are written, is each library's
    /// choice.
    pub(super) fn garbage_batch(&self, garbage: &[u8]) -> String {
        let batch = c!(self, writebatch_create_from, at(garbage), garbage.len());
        if !batch.is_null() {
            c!(self, writebatch_destroy, batch);
        }
        "survived".into()
    }

    pub(super) fn indexed_batch(
        &self,
        overwrite: bool,
        records: &[Record],
        probes: &[(usize, Bytes)],
    ) -> String {
        let batch = c!(self, writebatch_wi_create, 0, u8::from(overwrite));
        for record in records {
            match record {
                Record::Put(family, k, v) => {
                    let cf = self.handle(*family);
                    c!(
                        self,
                        writebatch_wi_put_cf,
                        batch,
                        cf,
                        at(k),
                        k.len(),
                        at(v),
                        v.len()
                    );
                }
                Record::Merge(family, k, v) => {
                    let cf = self.handle(*family);
                    c!(
                        self,
                        writebatch_wi_merge_cf,
                        batch,
                        cf,
                        at(k),
                        k.len(),
                        at(v),
                        v.len()
                    );
                }
                Record::Delete(family, k) => {
                    let cf = self.handle(*family);
                    c!(self, writebatch_wi_delete_cf, batch, cf, at(k), k.len());
                }
                _ => {}
            }
        }
        let mut said = vec![c!(self, writebatch_wi_count, batch).to_string()];
        let written = records.iter().filter_map(|record| match record {
            Record::Put(family, key, _) | Record::Delete(family, key) => Some((*family, key)),
            _ => None,
        });
        let probes = probes.iter().map(|(family, key)| (*family, key));
        for (family, key) in probes.chain(written) {
            let (cf, k, mut size, mut e) = (self.handle(family), at(key), 0, ptr::null_mut());
            let value = c!(
                self,
                writebatch_wi_get_from_batch_and_db_cf,
                batch,
                self.db,
                self.read,
                cf,
                k,
                key.len(),
                &mut size,
                &mut e
            );
            said.push(self.value_or_error(value, size, e));
        }
        let base = c!(self, create_iterator_cf, self.db, self.read, self.handle(0));
        let iter = c!(
            self,
            writebatch_wi_create_iterator_with_base_cf,
            batch,
            base,
            self.handle(0)
        );
        c!(self, iter_seek, iter, at(b"abc2"), 4);
        for _ in 0..5 {
            said.push(self.position(iter));
            if c!(self, iter_valid, iter) == 0 {
                break;
            }
            c!(self, iter_next, iter);
        }
        c!(self, iter_destroy, iter);
        let mut e = ptr::null_mut();
        c!(
            self,
            write_writebatch_wi,
            self.db,
            self.write,
            batch,
            &mut e
        );
        said.push(self.ended(e));
        c!(self, writebatch_wi_destroy, batch);
        said.join(", ")
    }

    /// A value, nothing, or an error.
    pub(super) fn value_or_error(&self, value: V, size: usize, error: V) -> String {
        match self.error(error) {
            Some(text) => format!("error {text}"),
            None => self.taken(value, size),
        }
    }

    /// Read options with the snapshot of that index, when there is one; to be given back.
    pub(super) fn read_at(&self, snapshot: Option<usize>) -> H {
        let read = c!(self, readoptions_create);
        c!(self, readoptions_set_total_order_seek, read, 1);
        if let (Some(index), false) = (snapshot, self.snapshots.is_empty()) {
            let snapshot = self.snapshots[index % self.snapshots.len()];
            c!(self, readoptions_set_snapshot, read, snapshot);
        }
        read
    }

    pub(super) fn get(&self, family: usize, key: &[u8], snapshot: Option<usize>) -> String {
        let (read, cf) = (self.read_at(snapshot), self.handle(family));
        let (mut size, mut e) = (0, ptr::null_mut());
        let value = c!(
            self,
            get_cf,
            self.db,
            read,
            cf,
            at(key),
            key.len(),
            &mut size,
            &mut e
        );
        c!(self, readoptions_destroy, read);
        self.value_or_error(value, size, e)
    }

    /// Reads a pinned slice, and releases it.
    pub(super) fn pinned(&self, slice: H) -> String {
        if slice.is_null() {
            return "none".into();
        }
        let mut size = 0;
        let data = c!(self, pinnableslice_value, slice, &mut size);
        // SAFETY: the slice shows its bytes until it is destroyed.
        let shown = show(unsafe { bytes(data, size) });
        c!(self, pinnableslice_destroy, slice);
        shown
    }

    pub(super) fn get_pinned(&self, family: usize, key: &[u8], snapshot: Option<usize>) -> String {
        let (read, cf, mut e) = (self.read_at(snapshot), self.handle(family), ptr::null_mut());
        let slice = c!(
            self,
            get_pinned_cf,
            self.db,
            read,
            cf,
            at(key),
            key.len(),
            &mut e
        );
        c!(self, readoptions_destroy, read);
        match self.error(e) {
            Some(text) => format!("error {text}"),
            None => self.pinned(slice),
        }
    }

    pub(super) fn get_into_buffer(&self, family: usize, key: &[u8], room: usize) -> String {
        let mut buffer = vec![0u8; room];
        let (mut size, mut found, mut e) = (0, 0, ptr::null_mut());
        let (cf, k, to) = (self.handle(family), at(key), buffer.as_mut_ptr().cast());
        let fits = c!(
            self,
            get_into_buffer_cf,
            self.db,
            self.read,
            cf,
            k,
            key.len(),
            to,
            room,
            &mut size,
            &mut found,
            &mut e
        );
        let copied = match fits {
            0 => String::new(),
            _ => show(&buffer[..size.min(room)]),
        };
        let size = if found == 0 { 0 } else { size };
        format!(
            "{} fits {fits} found {found} size {size} {copied}",
            self.ended(e)
        )
    }

    pub(super) fn multi_get(&self, keys: &[(usize, Bytes)], snapshot: Option<usize>) -> String {
        let read = self.read_at(snapshot);
        let count = keys.len();
        let families: Vec<H> = keys
            .iter()
            .map(|(family, _)| self.handle(*family))
            .collect();
        let pointers: Vec<T> = keys.iter().map(|(_, key)| at(key)).collect();
        let sizes: Vec<usize> = keys.iter().map(|(_, key)| key.len()).collect();
        let mut values: Vec<V> = vec![ptr::null_mut(); count];
        let mut value_sizes = vec![0; count];
        let mut errors: Vec<V> = vec![ptr::null_mut(); count];
        c!(
            self,
            multi_get_cf,
            self.db,
            read,
            families.as_ptr(),
            count,
            pointers.as_ptr(),
            sizes.as_ptr(),
            values.as_mut_ptr(),
            value_sizes.as_mut_ptr(),
            errors.as_mut_ptr()
        );
        c!(self, readoptions_destroy, read);
        let said = (0..count).map(|i| self.value_or_error(values[i], value_sizes[i], errors[i]));
        said.collect::<Vec<_>>().join(", ")
    }

    /// Keys that are said to be sorted are.
    pub(super) fn batched_multi_get(
        &self,
        family: usize,
        keys: &[Bytes],
        snapshot: Option<usize>,
        sorted: bool,
    ) -> String {
        let (read, count) = (self.read_at(snapshot), keys.len());
        let mut keys: Vec<&Bytes> = keys.iter().collect();
        if sorted {
            keys.sort_by(|a, b| {
                if self.is_reversed(family) {
                    reversed(a, b)
                } else {
                    a.cmp(b)
                }
            });
        }
        let pointers: Vec<T> = keys.iter().map(|key| at(key)).collect();
        let sizes: Vec<usize> = keys.iter().map(|key| key.len()).collect();
        let mut values: Vec<H> = vec![ptr::null_mut(); count];
        let mut errors: Vec<V> = vec![ptr::null_mut(); count];
        c!(
            self,
            batched_multi_get_cf,
            self.db,
            read,
            self.handle(family),
            count,
            pointers.as_ptr(),
            sizes.as_ptr(),
            values.as_mut_ptr(),
            errors.as_mut_ptr(),
            u8::from(sorted)
        );
        c!(self, readoptions_destroy, read);
        let said = (0..count).map(|i| match self.error(errors[i]) {
            Some(text) => format!("error {text}"),
            None => self.pinned(values[i]),
        });
        said.collect::<Vec<_>>().join(", ")
    }

    /// "May exist" may be wrong, "does not exist" may not.
    pub(super) fn key_may_exist(&self, family: usize, key: &[u8]) -> String {
        let (mut value, mut size, mut found) = (ptr::null_mut(), 0, 0);
        let may = c!(
            self,
            key_may_exist_cf,
            self.db,
            self.read,
            self.handle(family),
            at(key),
            key.len(),
            &mut value,
            &mut size,
            ptr::null(),
            0,
            &mut found
        );
        let got = self.get(family, key, None);
        let seen = self.taken(value, if found == 0 { 0 } else { size });
        let differs = may != 0 && found != 0 && seen != got;
        if (may == 0 && got != "none") || differs {
            return format!("wrong: may exist {may}, value {seen}, but {got}");
        }
        "right".into()
    }

    pub(super) fn snapshot_new(&mut self) -> String {
        if self.snapshots.len() >= 10 {
            self.snapshot_drop(0);
        }
        let snapshot = c!(self, create_snapshot, self.db);
        self.snapshots.push(snapshot);
        if snapshot.is_null() {
            "none".into()
        } else {
            "ok".into()
        }
    }

    pub(super) fn snapshot_drop(&mut self, index: usize) -> String {
        if self.snapshots.is_empty() {
            return "-".into();
        }
        let snapshot = self.snapshots.remove(index % self.snapshots.len());
        c!(self, release_snapshot, self.db, snapshot);
        "ok".into()
    }

    /// The newest sequence number.
    pub(super) fn latest(&self) -> String {
        if self.db.is_null() {
            "closed".into()
        } else {
            format!("at {}", c!(self, get_latest_sequence_number, self.db))
        }
    }

    pub(super) fn sequence(&self) -> String {
        let now = c!(self, get_latest_sequence_number, self.db);
        let all = self.snapshots.iter();
        let all: Vec<u64> = all
            .map(|&s| c!(self, snapshot_get_sequence_number, s))
            .collect();
        format!("now {now}, snapshots {all:?}")
    }

    /// The family's number, which batches name.
    pub(super) fn family_id(&self, family: H) -> u32 {
        c!(self, column_family_handle_get_id, family)
    }

    pub(super) fn many(&self) -> c_int {
        self.families.len() as c_int
    }
}
