//! The iterator over a database with a batch's records on top.
//!
//! Two cursors walk in the same direction. The one that is less advanced is current; when both
//! stand on one key the batch's record is what counts, and both advance together. A key that the
//! batch deletes is passed over on both sides. Used by one thread at a time.

use super::cursor::KeyCursor;
use super::resolve::{InBatch, Value, merge};
use super::{IndexedBatch, OptionalFamily, id_of};
use esker::{DbIterator, Error, FamilyHandle, KeyOrder, ReadOptions, Result};
use esker_format::wide_column;
use std::cmp::Ordering;
use std::iter::FusedIterator;

/// Which side the current key comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntrySource {
    Neither,
    Base,
    Batch,
}

/// Walks the keys of a family as they would be if a batch was written.
///
/// It has the moves of [`DbIterator`], and keys and values live until the next move, too; but it is
/// not valid until it is placed. The batch may change meanwhile: what is added after the place
/// where the iterator stands is seen.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// let options = esker::Options::new().create_if_missing(true);
/// let db = esker_txn::TransactionDb::open(dir.path(), options, Default::default())?;
/// db.put("a", "1")?;
/// let mut transaction = db.begin();
/// transaction.put("b", "2")?;
/// for entry in transaction.iter() {
///     let (key, value) = entry?;
///     println!("{} is {}", key.escape_ascii(), value.escape_ascii());
/// }
/// assert_eq!(transaction.iter().into_iter().count(), 2);
/// # Ok(())
/// # }
/// ```
pub struct MergedIterator {
    base: DbIterator,
    batch: KeyCursor,
    family: Option<FamilyHandle>,
    order: KeyOrder,
    forward: bool,
    side: EntrySource,
    is_placed: bool,
    /// Both sides stand on the current key.
    equal: bool,
    /// The value of the batch's side.
    value: Vec<u8>,
    entity: Option<Vec<u8>>,
    failure: Option<Error>,
}

impl std::fmt::Debug for MergedIterator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MergedIterator")
            .field("side", &self.side)
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

impl MergedIterator {
    pub(super) fn new(
        batch: &IndexedBatch,
        base: DbIterator,
        family: OptionalFamily<'_>,
        options: Option<&ReadOptions>,
    ) -> Self {
        let order = match family {
            Some(f) => f.order().clone(),
            None => batch.shared().lock().default_order.clone(),
        };
        let lower = options.and_then(|o| o.iterate_lower_bound.clone());
        let upper = options.and_then(|o| o.iterate_upper_bound.clone());
        MergedIterator {
            base: base.with_prepared_values(),
            batch: KeyCursor::new(batch, id_of(family), lower, upper),
            family: family.cloned(),
            order,
            forward: true,
            side: EntrySource::Neither,
            is_placed: false,
            equal: false,
            value: Vec::new(),
            entity: None,
            failure: None,
        }
    }

    /// Sets the range that it walks, as [`DbIterator::set_bounds`] does.
    pub fn set_bounds(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) {
        self.set_base_bounds(lower, upper);
        self.set_batch_bounds(lower, upper);
    }

    /// Sets the range of the base alone. It is not placed afterwards.
    pub fn set_base_bounds(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) {
        self.base.set_bounds(lower, upper);
        self.leave();
    }

    /// Sets the range of the batch alone. It is not placed afterwards.
    pub fn set_batch_bounds(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) {
        self.batch.set_bounds(lower, upper);
        self.leave();
    }

    /// Stands nowhere.
    fn leave(&mut self) {
        self.side = EntrySource::Neither;
        self.is_placed = false;
        self.equal = false;
        self.failure = None;
    }

    /// Returns whether it stands on a key.
    #[inline]
    pub fn valid(&self) -> bool {
        match self.side {
            EntrySource::Base => self.failure.is_none() && self.base.valid(),
            EntrySource::Batch => self.failure.is_none(),
            EntrySource::Neither => false,
        }
    }

    /// `Ok`, or why the iterator is not valid.
    pub fn status(&self) -> Result<()> {
        match &self.failure {
            Some(e) => Err(e.clone()),
            None => self.base.status(),
        }
    }

    /// The key; only while valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match self.side {
            EntrySource::Batch => self.batch.key(),
            _ => self.base.key(),
        }
    }

    /// The value (of a wide-column entity: its default column); only while valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.side {
            EntrySource::Batch => &self.value,
            _ => self.base.value(),
        }
    }

    /// The encoded wide-column entity, when the entry is one.
    pub fn entity(&self) -> Option<&[u8]> {
        match self.side {
            EntrySource::Batch => self.entity.as_deref(),
            _ => self.base.entity(),
        }
    }

    /// The user-defined timestamp of the entry; empty for those of the batch.
    pub fn timestamp(&self) -> &[u8] {
        match self.side {
            EntrySource::Batch => &[],
            _ => self.base.timestamp(),
        }
    }

    /// Key and value, while valid.
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.valid().then(|| (self.key(), self.value()))
    }

    /// To the first key.
    pub fn seek_to_first(&mut self) {
        self.forward = true;
        self.base.seek_to_first();
        self.batch.seek_to_first();
        self.settle();
    }

    /// To the last key.
    pub fn seek_to_last(&mut self) {
        self.forward = false;
        self.base.seek_to_last();
        self.batch.seek_to_last();
        self.settle();
    }

    /// To the first key at or after `target`.
    pub fn seek(&mut self, target: impl AsRef<[u8]>) {
        self.forward = true;
        self.base.seek(target.as_ref());
        self.batch.seek(target.as_ref());
        self.settle();
    }

    /// To the last key at or before `target`.
    pub fn seek_for_prev(&mut self, target: impl AsRef<[u8]>) {
        self.forward = false;
        self.base.seek_for_prev(target.as_ref());
        self.batch.seek_for_prev(target.as_ref());
        self.settle();
    }

    /// To the next key. An error, shown by the status, when not valid.
    pub fn next(&mut self) {
        if !self.valid() {
            self.failure = Some(Error::not_supported("Next() on invalid iterator"));
            return;
        }
        self.turn(true);
        self.advance();
    }

    /// To the previous key. An error, shown by the status, when not valid.
    pub fn prev(&mut self) {
        if !self.valid() {
            self.failure = Some(Error::not_supported("Prev() on invalid iterator"));
            return;
        }
        self.turn(false);
        self.advance();
    }

    /// Makes both sides walk in this direction: the side that is not current goes to its first key
    /// from the current one on.
    fn turn(&mut self, forward: bool) {
        if self.forward == forward {
            return;
        }
        self.forward = forward;
        self.equal = false;
        match (self.side, self.base.valid()) {
            (EntrySource::Base, _) if forward => self.batch.seek(self.base.key()),
            (EntrySource::Base, _) => self.batch.seek_for_prev(self.base.key()),
            (_, true) => self.advance_base(),
            // It ran out on the other end: all its keys lie ahead.
            (_, false) if forward => self.base.seek_to_first(),
            (_, false) => self.base.seek_to_last(),
        }
        if self.base.valid() && self.batch.valid() {
            self.equal = self.compare().is_eq();
        }
    }

    fn compare(&self) -> Ordering {
        self.order.compare_bare(self.batch.key(), self.base.key())
    }

    fn advance(&mut self) {
        if self.equal {
            self.advance_base();
            self.advance_batch();
        } else if self.side == EntrySource::Base {
            self.advance_base();
        } else {
            self.advance_batch();
        }
        self.settle();
    }

    fn advance_base(&mut self) {
        if self.forward {
            self.base.next();
        } else {
            self.base.prev();
        }
    }

    fn advance_batch(&mut self) {
        if self.forward {
            self.batch.next();
        } else {
            self.batch.prev();
        }
    }

    /// Finds the current key, passing over what the batch deletes.
    fn settle(&mut self) {
        self.failure = None;
        self.is_placed = true;
        loop {
            self.equal = false;
            if !self.base.valid() && self.base.status().is_err() {
                self.side = EntrySource::Base;
                return;
            }
            if !self.batch.valid() {
                self.side = if self.base.valid() {
                    EntrySource::Base
                } else {
                    EntrySource::Neither
                };
                return;
            }
            if self.base.valid() {
                let ahead = if self.forward {
                    self.compare()
                } else {
                    self.compare().reverse()
                };
                if ahead.is_gt() {
                    self.side = EntrySource::Base;
                    return;
                }
                self.equal = ahead.is_eq();
            }
            self.side = EntrySource::Batch;
            match self.load() {
                Ok(true) => return,
                Ok(false) => {}
                Err(e) => {
                    self.failure = Some(e);
                    return;
                }
            }
            if self.equal {
                self.advance_base();
            }
            self.advance_batch();
        }
    }

    /// Takes the value of the batch's key; false when the key is deleted.
    fn load(&mut self) -> Result<bool> {
        let family = self.family.as_ref();
        let value = match self.batch.settle(family)? {
            InBatch::Absent | InBatch::Deleted => return Ok(false),
            InBatch::Value(v) => v,
            InBatch::Operands(operands) => {
                let base = self.equal.then(|| match self.base.entity() {
                    Some(e) => Value::Entity(e.to_vec()),
                    None => Value::Plain(self.base.value().to_vec()),
                });
                merge(family, self.batch.key(), base.as_ref(), &operands)?
            }
        };
        self.value.clear();
        self.entity = None;
        match value {
            Value::Plain(v) => self.value = v,
            Value::Entity(e) => {
                if let Some(c) = wide_column::default_column(&e)? {
                    self.value.extend_from_slice(c.value);
                }
                self.entity = Some(e);
            }
        }
        Ok(true)
    }
}

/// The entries of a [`MergedIterator`], in order. The first error is the last item.
#[derive(Debug)]
#[must_use = "an iterator does nothing until it is asked"]
pub struct MergedEntries {
    iterator: MergedIterator,
    is_given: bool,
    is_done: bool,
}

impl IntoIterator for MergedIterator {
    type Item = Result<(Vec<u8>, Vec<u8>)>;
    type IntoIter = MergedEntries;

    /// The entries from the one on where the iterator stands: its first one, unless it was placed.
    fn into_iter(mut self) -> MergedEntries {
        if !self.is_placed {
            self.seek_to_first();
        }
        MergedEntries {
            iterator: self,
            is_given: false,
            is_done: false,
        }
    }
}

impl Iterator for MergedEntries {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        if self.is_given {
            self.iterator.next();
        }
        self.is_given = true;
        if let Some((key, value)) = self.iterator.entry() {
            return Some(Ok((key.to_vec(), value.to_vec())));
        }
        self.is_done = true;
        self.iterator.status().err().map(Err)
    }
}

impl FusedIterator for MergedEntries {}
