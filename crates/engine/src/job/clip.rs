//! The input of one part of a compaction: a cursor that ends before a key.
//!
//! A part must not read the keys of the next one: the compaction stream looks ahead, so they would
//! be counted, and shown to compaction filters, twice. Only forward moves end at the boundary; a
//! compaction makes no others.

use esker_format::{Cursor, KeyOrder, key};
use esker_status::Result;

/// `inner` up to the first user key that is not below `high`.
pub(crate) struct ClippedCursor<C> {
    inner: C,
    order: KeyOrder,
    high: Option<Vec<u8>>,
    valid: bool,
}

impl<C: Cursor> ClippedCursor<C> {
    /// Ends before `high`; `None` is the whole of `inner`.
    pub(crate) fn new(inner: C, order: KeyOrder, high: Option<&[u8]>) -> Self {
        ClippedCursor {
            inner,
            order,
            high: high.map(<[u8]>::to_vec),
            valid: false,
        }
    }

    #[inline]
    fn look(&mut self) {
        self.valid = self.inner.valid()
            && self.high.as_ref().is_none_or(|high| {
                self.order
                    .compare(key::user_key(self.inner.key()), high)
                    .is_lt()
            });
    }
}

impl<C: Cursor> Cursor for ClippedCursor<C> {
    #[inline]
    fn valid(&self) -> bool {
        self.valid
    }
    fn seek_to_first(&mut self) {
        self.inner.seek_to_first();
        self.look();
    }
    fn seek_to_last(&mut self) {
        self.inner.seek_to_last();
        self.look();
    }
    fn seek(&mut self, target: &[u8]) {
        self.inner.seek(target);
        self.look();
    }
    fn seek_for_prev(&mut self, target: &[u8]) {
        self.inner.seek_for_prev(target);
        self.look();
    }
    #[inline]
    fn next(&mut self) {
        self.inner.next();
        self.look();
    }
    fn prev(&mut self) {
        self.inner.prev();
        self.look();
    }
    #[inline]
    fn key(&self) -> &[u8] {
        self.inner.key()
    }
    #[inline]
    fn value(&self) -> &[u8] {
        self.inner.value()
    }
    fn status(&self) -> Result<()> {
        self.inner.status()
    }
}
