//! Iterators that live over many calls, and digests of whole families.

use std::ptr;

use super::{OpenIter, Subject, at, hash, show};
use crate::diff::api::H;
use crate::diff::call::Step;
use crate::diff::callbacks::bytes;

impl Subject {
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
        // SAFETY: a valid iterator shows its entry until it moves; callers look before they move it.
        unsafe { (bytes(key, key_size), bytes(value, value_size)) }
    }

    pub(super) fn iter_new(
        &mut self,
        family: usize,
        lower: Option<&[u8]>,
        upper: Option<&[u8]>,
        snapshot: Option<usize>,
        prefix: bool,
    ) -> String {
        if self.iterators.len() >= 12 {
            self.iter_drop(0);
        }
        let (mut lower, mut upper) = (lower, upper);
        if let (Some(low), Some(high)) = (lower, upper)
            && !self.in_order(family, low, high)
        {
            (lower, upper) = (upper, lower);
        }
        let read = self.read_at(snapshot);
        if prefix {
            c!(self, readoptions_set_total_order_seek, read, 0);
            c!(self, readoptions_set_prefix_same_as_start, read, 1);
        }
        let mut open = OpenIter {
            handle: ptr::null_mut(),
            read,
            lower: lower.unwrap_or_default().to_vec(),
            upper: upper.unwrap_or_default().to_vec(),
            prefix,
        };
        if lower.is_some() {
            let (bound, size) = (at(&open.lower), open.lower.len());
            c!(self, readoptions_set_iterate_lower_bound, read, bound, size);
        }
        if upper.is_some() {
            let (bound, size) = (at(&open.upper), open.upper.len());
            c!(self, readoptions_set_iterate_upper_bound, read, bound, size);
        }
        open.handle = c!(self, create_iterator_cf, self.db, read, self.handle(family));
        let said = self.position(open.handle);
        self.iterators.push(open);
        said
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
        let said = steps.iter().map(|step| self.iter_step(iter, step));
        said.collect::<Vec<_>>().join(", ")
    }

    /// One step; steps that have no defined meaning where the iterator stands are not made.
    fn iter_step(&self, iter: &OpenIter, step: &Step) -> String {
        let handle = iter.handle;
        let valid = c!(self, iter_valid, handle) != 0;
        match step {
            Step::Seek(key) if !iter.prefix || key.len() >= 3 => {
                c!(self, iter_seek, handle, at(key), key.len());
            }
            Step::Next if valid => c!(self, iter_next, handle),
            _ if iter.prefix => return "-".into(),
            Step::First => c!(self, iter_seek_to_first, handle),
            Step::Last => c!(self, iter_seek_to_last, handle),
            Step::SeekForPrev(key) => c!(self, iter_seek_for_prev, handle, at(key), key.len()),
            Step::Prev if valid => c!(self, iter_prev, handle),
            Step::Refresh => {
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
        let (mut count, mut forward) = (0u64, 0u64);
        c!(self, iter_seek_to_first, iter);
        while c!(self, iter_valid, iter) != 0 {
            let (key, value) = self.entry(iter);
            forward = forward.wrapping_add(hash(hash(1, key), value));
            count += 1;
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
        let mut said = format!("{count} entries {forward:016x} {end}");
        if (back_count, backward, &back_end) != (count, forward, &end) {
            said += &format!("; backwards {back_count} entries {backward:016x} {back_end}");
        }
        said
    }

    pub(super) fn digest_family(&self, family: usize) -> String {
        self.digest_of(self.db, self.handle(family))
    }

    /// The digests of all families.
    pub(in crate::diff) fn digest(&self) -> String {
        let all = self.families.iter();
        let all = all.map(|f| format!("{}: {}", f.name, self.digest_of(self.db, f.handle)));
        all.collect::<Vec<_>>().join("; ")
    }
}
