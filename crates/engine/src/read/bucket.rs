//! A memtable cursor that behaves as RocksDB's hashed memtables: without `total_order_seek` it
//! shows the entries of one prefix.
//!
//! The prefix is that of the target of the last seek. Before a seek, and at either end of the
//! order, the cursor shows nothing. A target outside the extractor's domain shows all entries. Only
//! families with a hashed `memtable_factory` and a prefix extractor use it; tables show all
//! entries.

use crate::memtable::MemCursor;
use esker_format::key::user_key;
use esker_format::prefix::PrefixExtractor;
use esker_format::{Cursor, KeyOrder};
use esker_status::Result;

/// See the module's text.
pub(crate) struct BucketCursor {
    inner: MemCursor,
    extractor: PrefixExtractor,
    order: KeyOrder,
    /// The entries that are walked.
    shown: BucketRange,
}

enum BucketRange {
    Nothing,
    All,
    Prefix(Vec<u8>),
}

impl BucketCursor {
    pub(crate) fn over(inner: MemCursor, extractor: PrefixExtractor, order: KeyOrder) -> Self {
        BucketCursor {
            inner,
            extractor,
            order,
            shown: BucketRange::Nothing,
        }
    }

    /// The key without what a comparator stores behind it.
    fn prefix<'a>(&'a self, internal: &'a [u8]) -> Option<&'a [u8]> {
        let user = user_key(internal);
        let timestamp = self.order.timestamp_size();
        let user = &user[..user.len().saturating_sub(timestamp)];
        self.extractor.prefix(user)
    }

    fn choose(&mut self, target: &[u8]) {
        self.shown = match self.prefix(target) {
            Some(prefix) => BucketRange::Prefix(prefix.to_vec()),
            None => BucketRange::All,
        };
    }
}

impl Cursor for BucketCursor {
    fn valid(&self) -> bool {
        self.inner.valid()
            && match &self.shown {
                BucketRange::Nothing => false,
                BucketRange::All => true,
                BucketRange::Prefix(p) => self.prefix(self.inner.key()) == Some(p),
            }
    }
    fn seek_to_first(&mut self) {
        self.shown = BucketRange::Nothing;
    }
    fn seek_to_last(&mut self) {
        self.shown = BucketRange::Nothing;
    }
    fn seek(&mut self, target: &[u8]) {
        self.choose(target);
        self.inner.seek(target);
    }
    fn seek_for_prev(&mut self, target: &[u8]) {
        self.choose(target);
        self.inner.seek_for_prev(target);
    }
    fn next(&mut self) {
        self.inner.next();
    }
    fn prev(&mut self) {
        self.inner.prev();
    }
    fn key(&self) -> &[u8] {
        self.inner.key()
    }
    fn value(&self) -> &[u8] {
        self.inner.value()
    }
    fn status(&self) -> Result<()> {
        Ok(())
    }
}
