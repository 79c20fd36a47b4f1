//! Iterators that live over many calls, and digests of whole families.

use std::ptr;

use super::{LibraryState, OpenIter, at, hash, show};
use crate::api::H;
use crate::api::c;
use crate::call::{IterPlan, Order, Step};
use crate::callbacks::bytes;

impl LibraryState {
    /// Where an iterator stands, or how it ended.
    pub(super) fn position(&self, iter: H) -> String {
        if c!(self, iter_valid, iter) == 0 {
            let mut e = ptr::null_mut();
            c!(self, iter_get_error, iter, &mut e);
            return format!("end {}", self.ended(e));
        }
        let (key, value) = self.entry(iter);
        format!("{}={}", show(key), show(value))
    }

    /// The entry of a valid iterator, until that moves.
    fn entry<'a>(&self, iter: H) -> (&'a [u8], &'a [u8]) {
        let (mut key_size, mut value_size) = (0, 0);
        let key = c!(self, iter_key, iter, &mut key_size);
        let value = c!(self, iter_value, iter, &mut value_size);
        // SAFETY: a valid iterator shows its entry until it moves; callers look before they move
        // it.
        unsafe { (bytes(key, key_size), bytes(value, value_size)) }
    }

    pub(super) fn iter_new(&mut self, plan: &IterPlan) -> String {
        if self.iterators.len() >= 12 {
            self.iter_drop(0);
        }
        let (mut lower, mut upper) = (plan.lower.as_deref(), plan.upper.as_deref());
        if let (Some(low), Some(high)) = (lower, upper)
            && !self.in_order(plan.family, low, high)
        {
            (lower, upper) = (upper, lower);
        }
        let order = match plan.order {
            // RocksDB has none over ranges that were deleted.
            Order::Tailing if self.ranged.contains(&self.family(plan.family).name) => Order::Total,
            // RocksDB 7.8 as Debian builds it ends the process at a key that has no prefix, and in
            // some tailing iterators.
            _ if self.is_old() => Order::Total,
            // RocksDB's tailing iterators keep tables whose blob files are gone.
            Order::Tailing if self.has_blobs(plan.family) => Order::Total,
            order => order,
        };
        // What a tailing iterator shows of a snapshot is not defined.
        let snapshot = plan.snapshot.filter(|_| order != Order::Tailing);
        let read = self.read_at(snapshot);
        match order {
            Order::Total => {}
            Order::Prefix => {
                c!(self, readoptions_set_total_order_seek, read, 0);
                c!(self, readoptions_set_prefix_same_as_start, read, 1);
            }
            Order::Auto if !self.lacks("readoptions_set_auto_prefix_mode") => {
                c!(self, readoptions_set_total_order_seek, read, 0);
                c!(self, readoptions_set_auto_prefix_mode, read, 1);
            }
            Order::Auto => {}
            Order::Tailing => c!(self, readoptions_set_tailing, read, 1),
        }
        self.hint(read, plan.hints);
        let mut open = OpenIter {
            handle: ptr::null_mut(),
            read,
            lower: lower.unwrap_or_default().to_vec(),
            upper: upper.unwrap_or_default().to_vec(),
            order,
        };
        if lower.is_some() {
            let (bound, size) = (at(&open.lower), open.lower.len());
            c!(self, readoptions_set_iterate_lower_bound, read, bound, size);
        }
        if upper.is_some() {
            let (bound, size) = (at(&open.upper), open.upper.len());
            c!(self, readoptions_set_iterate_upper_bound, read, bound, size);
        }
        let family = self.handle(plan.family);
        open.handle = c!(self, create_iterator_cf, self.db, read, family);
        let said = self.position(open.handle);
        self.iterators.push(open);
        said
    }

    /// Sets what changes how a read is made and not what it finds.
    fn hint(&self, read: H, hints: u8) {
        let on = |bit: u8| hints >> bit & 1;
        c!(self, readoptions_set_verify_checksums, read, on(0));
        c!(self, readoptions_set_fill_cache, read, on(1));
        if on(2) != 0 {
            c!(self, readoptions_set_readahead_size, read, 10_000);
        }
        c!(self, readoptions_set_pin_data, read, on(3));
        if !self.lacks("readoptions_set_async_io") {
            c!(self, readoptions_set_async_io, read, on(4));
        }
        let purge = on(5);
        c!(
            self,
            readoptions_set_background_purge_on_iterator_cleanup,
            read,
            purge
        );
    }

    /// Iterators of several families, made at once.
    pub(super) fn iterators(&self, families: &[usize], key: &[u8]) -> String {
        let handles: Vec<H> = families.iter().map(|f| self.handle(*f)).collect();
        let (mut made, mut e) = (vec![ptr::null_mut(); handles.len()], ptr::null_mut());
        c!(
            self,
            create_iterators,
            self.db,
            self.read,
            handles.as_ptr(),
            made.as_mut_ptr(),
            made.len(),
            &mut e
        );
        if let Some(error) = self.error(e) {
            return format!("error {error}");
        }
        let walk = |iter: H| {
            c!(self, iter_seek, iter, at(key), key.len());
            let here = self.position(iter);
            if c!(self, iter_valid, iter) != 0 {
                c!(self, iter_next, iter);
            }
            let next = self.position(iter);
            c!(self, iter_destroy, iter);
            format!("{here} {next}")
        };
        made.into_iter().map(walk).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn iter_drop(&mut self, index: usize) -> String {
        if self.iterators.is_empty() {
            return "-".into();
        }
        let iter = self.iterators.remove(index % self.iterators.len());
        c!(self, iter_destroy, iter.handle);
        c!(self, readoptions_destroy, iter.read);
        "ok".into()
    }

    pub(super) fn iter_steps(&mut self, index: usize, steps: &[Step]) -> String {
        if self.iterators.is_empty() {
            return "-".into();
        }
        let iter = &self.iterators[index % self.iterators.len()];
        // Where a tailing iterator goes on after other writes is not defined: it is placed first.
        let mut placed = iter.order != Order::Tailing;
        let mut said = format!("{:?}: ", iter.order);
        for step in steps {
            match step {
                Step::Next if !placed => {}
                _ => {
                    said += &self.iter_step(iter, step);
                    said += ", ";
                }
            }
            placed |= matches!(step, Step::Seek(_) | Step::First);
        }
        said
    }

    /// One step; steps that have no defined meaning where the iterator stands are not made.
    fn iter_step(&self, iter: &OpenIter, step: &Step) -> String {
        let handle = iter.handle;
        let valid = c!(self, iter_valid, handle) != 0;
        let total = matches!(iter.order, Order::Total | Order::Auto);
        match step {
            // Every extractor has a prefix of four bytes.
            Step::Seek(key) if total || key.len() >= 4 => {
                c!(self, iter_seek, handle, at(key), key.len());
            }
            Step::Next if valid => c!(self, iter_next, handle),
            Step::First if iter.order != Order::Prefix => c!(self, iter_seek_to_first, handle),
            _ if !total => return "-".into(),
            // Going back is not promised to agree with a library that looks for prefixes by itself.
            _ if iter.order == Order::Auto => return "-".into(),
            Step::Last => c!(self, iter_seek_to_last, handle),
            Step::SeekForPrev(key) => c!(self, iter_seek_for_prev, handle, at(key), key.len()),
            Step::Prev if valid => c!(self, iter_prev, handle),
            Step::Refresh if !self.lacks("iter_refresh") => {
                let mut e = ptr::null_mut();
                c!(self, iter_refresh, handle, &mut e);
                return format!("refresh {}", self.ended(e));
            }
            _ => return "-".into(),
        }
        self.position(handle)
    }

    /// Counts and hashes of a family read in both directions.
    pub(super) fn digest_of(&self, db: H, family: H) -> String {
        let iter = c!(self, create_iterator_cf, db, self.read, family);
        let (mut count, mut forward, mut size) = (0u64, 0u64, 0);
        c!(self, iter_seek_to_first, iter);
        while c!(self, iter_valid, iter) != 0 {
            let (key, value) = self.entry(iter);
            forward = forward.wrapping_add(hash(hash(1, key), value));
            count += 1;
            size += value.len();
            c!(self, iter_next, iter);
        }
        let end = self.position(iter);
        let (mut back_count, mut backward) = (0u64, 0u64);
        c!(self, iter_seek_to_last, iter);
        while c!(self, iter_valid, iter) != 0 {
            let (key, value) = self.entry(iter);
            backward = backward.wrapping_add(hash(hash(1, key), value));
            back_count += 1;
            c!(self, iter_prev, iter);
        }
        let back_end = self.position(iter);
        c!(self, iter_destroy, iter);
        let mut said = format!("{count} entries of {size} bytes {forward:016x} {end}");
        if (back_count, backward, &back_end) != (count, forward, &end) {
            said += &format!("; backwards {back_count} entries {backward:016x} {back_end}");
        }
        said
    }

    pub(super) fn digest_family(&self, family: usize) -> String {
        self.digest_of(self.db, self.handle(family))
    }

    /// The digests of all families.
    pub(crate) fn digest(&self) -> String {
        let all = self.families.iter();
        let all = all.map(|f| format!("{}: {}", f.name, self.digest_of(self.db, f.handle)));
        all.collect::<Vec<_>>().join("; ")
    }
}
