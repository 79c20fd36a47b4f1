//! A memtable as RocksDB's hashed kinds show it: to an iterator that does not ask for the total
//! order, one prefix at a time.
//!
//! A seek decides the prefix: that of its target. Without a seek there is no prefix, and nothing to
//! see; nor is there an end of the order to go to. A target outside the extractor's domain shows
//! everything. Only iterators of families with such a `memtable_factory` and a prefix extractor
//! come here; tables below show everything.

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
    /// What is walked.
    shown: Shown,
}

enum Shown {
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
            shown: Shown::Nothing,
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
            Some(prefix) => Shown::Prefix(prefix.to_vec()),
            None => Shown::All,
        };
    }
}

impl Cursor for BucketCursor {
    fn valid(&self) -> bool {
        self.inner.valid()
            && match &self.shown {
                Shown::Nothing => false,
                Shown::All => true,
                Shown::Prefix(p) => self.prefix(self.inner.key()) == Some(p),
            }
    }
    fn seek_to_first(&mut self) {
        self.shown = Shown::Nothing;
    }
    fn seek_to_last(&mut self) {
        self.shown = Shown::Nothing;
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
