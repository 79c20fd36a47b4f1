//! The trait of everything that is iterated in key order.

use crate::entry_batch::{BatchLimits, EntryBatch};
use esker_status::Result;

/// A position in a sorted sequence of (internal key, value) entries.
///
/// A new cursor is not valid. `key` and `value` may be called only while `valid`; their slices live
/// until the next move. After a move that ends in `!valid()`, `status()` tells the end of the data
/// (`Ok`) from a failure; a caller that drops data because a cursor ended must look at it.
pub trait Cursor {
    /// Returns whether the cursor stands on an entry.
    fn valid(&self) -> bool;
    /// To the first entry.
    fn seek_to_first(&mut self);
    /// To the last entry.
    fn seek_to_last(&mut self);
    /// To the first entry whose internal key is at or after `target`.
    fn seek(&mut self, target: &[u8]);
    /// To the last entry whose internal key is at or before `target`.
    fn seek_for_prev(&mut self, target: &[u8]);
    /// To the next entry; only while valid.
    fn next(&mut self);
    /// To the previous entry; only while valid.
    fn prev(&mut self);
    /// The internal key.
    fn key(&self) -> &[u8];
    /// The value.
    fn value(&self) -> &[u8];
    /// Key and value at once; only while valid. For cursors over others that would choose one
    /// twice.
    #[inline]
    fn entry(&self) -> (&[u8], &[u8]) {
        (self.key(), self.value())
    }
    /// `Ok`, or why the cursor stopped.
    fn status(&self) -> Result<()>;
    /// Returns whether the next entry is known, before the cursor moves, to have another user key.
    /// False says nothing. Only while valid.
    #[inline]
    fn next_is_another_key(&self) -> bool {
        false
    }
    /// Returns whether the previous entry is known to have another user key.
    #[inline]
    fn prev_is_another_key(&self) -> bool {
        false
    }
    /// Begins to read what a seek to `target`, in either direction, will need. That seek is the
    /// next call.
    #[inline]
    fn begin_seek(&mut self, target: &[u8]) {
        let _ = target;
    }
    /// Returns whether a seek put off reading the entry that it found: the cursor is valid, and
    /// `key` is a bound, at or before that entry (after a seek backward: at or after it). Neither
    /// `value` nor `next` nor `prev` may be called until [`Cursor::read_deferred`] was.
    #[inline]
    fn is_deferred(&self) -> bool {
        false
    }
    /// Stands on the entry that was put off. There may be none: the cursor is not valid then.
    fn read_deferred(&mut self) {}
    /// Takes the current entry into `batch`, which is empty, and those that follow it as far as
    /// `limits` allow, and stands on the last of them. None is taken where single steps are needed.
    /// Only while valid, on a plain value that the reader sees. Keys are in the batch, values in
    /// [`Cursor::block_bytes`].
    #[inline]
    fn next_batch(&mut self, limits: &BatchLimits<'_>, batch: &mut EntryBatch) {
        let _ = (limits, batch);
    }
    /// Collects entries going backward.
    #[inline]
    fn prev_batch(&mut self, limits: &BatchLimits<'_>, batch: &mut EntryBatch) {
        let _ = (limits, batch);
    }
    /// The bytes that hold the values of the last batch, until the cursor moves.
    #[inline]
    fn block_bytes(&self) -> &[u8] {
        &[]
    }
    /// Where a cursor is over several runs, newest first: the run of the current entry.
    /// Only while valid.
    fn current_run(&self) -> usize {
        0
    }
    /// A hint from a reader that walks forward and knows that nothing before `target` matters in
    /// the runs from `first_run` on: a cursor over several runs (newest first) may move those of
    /// them that stand before `target` to it. The current entry may change. Only while valid;
    /// `false`: nothing was done.
    fn skip_runs(&mut self, first_run: usize, target: &[u8]) -> bool {
        let _ = (first_run, target);
        false
    }
}
