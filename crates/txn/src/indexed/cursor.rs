//! Cursors over a batch: key by key for merged iterators, record by record for callers.
//!
//! A cursor holds a copy of the key where it stands and, for speed, its node: when the batch was
//! cleared or rolled back meanwhile the place is found again by key.

use super::Inner;
use super::index::{KeyIndex, NONE};
use super::resolve::{InBatch, record_at};
use super::{IndexedBatch, OptionalFamily};
use esker::{FamilyId, Result};
use esker_format::batch::Record;
use esker_format::timestamp;
use esker_sync::{Arc, Mutex};

/// Walks the keys of one family of a batch, within bounds.
#[derive(Debug)]
pub(super) struct KeyCursor {
    shared: Arc<Mutex<Inner>>,
    family: FamilyId,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    node: u32,
    generation: u64,
    key: Vec<u8>,
    valid: bool,
}

impl KeyCursor {
    pub(super) fn new(
        batch: &IndexedBatch,
        family: FamilyId,
        lower: Option<Vec<u8>>,
        upper: Option<Vec<u8>>,
    ) -> Self {
        KeyCursor {
            shared: Arc::clone(batch.shared()),
            family,
            lower,
            upper,
            node: NONE,
            generation: 0,
            key: Vec::new(),
            valid: false,
        }
    }

    /// Sets other bounds; not valid until it is placed.
    pub(super) fn set_bounds(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) {
        self.lower = lower.map(<[u8]>::to_vec);
        self.upper = upper.map(<[u8]>::to_vec);
        self.valid = false;
    }

    #[inline]
    pub(super) fn valid(&self) -> bool {
        self.valid
    }

    /// The key; only while valid.
    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Moves to the node that `find` gives, if it is within the bounds.
    fn go(&mut self, find: impl FnOnce(&Self, &KeyIndex, &[u8], bool) -> u32) {
        let shared = Arc::clone(&self.shared);
        let inner = shared.lock();
        self.valid = false;
        let Some(index) = inner.index(self.family) else {
            return;
        };
        let rep = inner.batch.data();
        let is_same = self.generation == inner.generation && self.node != NONE;
        self.generation = inner.generation;
        self.node = find(self, index, rep, is_same);
        if self.node == NONE {
            return;
        }
        let key = index.key(rep, self.node);
        let inside = self
            .lower
            .as_ref()
            .is_none_or(|l| index.order.compare_bare(key, l).is_ge())
            && self
                .upper
                .as_ref()
                .is_none_or(|u| index.order.compare_bare(key, u).is_lt());
        if inside {
            self.key.clear();
            self.key.extend_from_slice(key);
            self.valid = true;
        }
    }

    pub(super) fn seek_to_first(&mut self) {
        self.go(|c, index, rep, _| match &c.lower {
            Some(lower) => index.at_or_after(rep, lower),
            None => index.first(),
        });
    }

    pub(super) fn seek_to_last(&mut self) {
        self.go(|c, index, rep, _| match &c.upper {
            Some(upper) => index.before(rep, upper),
            None => index.last(),
        });
    }

    pub(super) fn seek(&mut self, target: &[u8]) {
        self.go(|c, index, rep, _| match &c.lower {
            Some(lower) if index.order.compare_bare(target, lower).is_lt() => {
                index.at_or_after(rep, lower)
            }
            _ => index.at_or_after(rep, target),
        });
    }

    pub(super) fn seek_for_prev(&mut self, target: &[u8]) {
        self.go(|c, index, rep, _| match &c.upper {
            Some(upper) if index.order.compare_bare(target, upper).is_ge() => {
                index.before(rep, upper)
            }
            _ => index.at_or_before(rep, target),
        });
    }

    /// To the next key. Does nothing when not valid.
    pub(super) fn next(&mut self) {
        if self.valid {
            self.go(|c, index, rep, is_same| {
                if is_same {
                    index.next(c.node)
                } else {
                    index.after(rep, &c.key)
                }
            });
        }
    }

    /// To the previous key. Does nothing when not valid.
    pub(super) fn prev(&mut self) {
        if self.valid {
            self.go(|c, index, rep, _| index.before(rep, &c.key));
        }
    }

    /// Resolves the batch's records of the key at the cursor.
    pub(super) fn settle(&self, family: OptionalFamily<'_>) -> Result<InBatch> {
        let latest = self.shared.lock().latest(self.family, &self.key)?;
        latest.settle(family, &self.key)
    }
}

/// The kind of a record of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// Sets the key to a value.
    Put,
    /// Sets the key to an encoded entity.
    PutEntity,
    /// Adds a merge operand.
    Merge,
    /// Deletes the key.
    Delete,
    /// Deletes a key that was put once.
    SingleDelete,
}

/// One record of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchEntry {
    /// Its kind.
    pub kind: EntryKind,
    /// Its key.
    pub key: Vec<u8>,
    /// Its value, operand or encoded entity; empty for deletions.
    pub value: Vec<u8>,
}

/// Walks the records of one family of a batch: by key, and those of one key from the newest to the
/// oldest.
#[derive(Debug)]
pub struct BatchCursor {
    keys: KeyCursor,
    /// The records of the key, newest first.
    entries: Vec<BatchEntry>,
    at: usize,
}

impl BatchCursor {
    pub(super) fn new(batch: &IndexedBatch, family: FamilyId) -> Self {
        BatchCursor {
            keys: KeyCursor::new(batch, family, None, None),
            entries: Vec::new(),
            at: 0,
        }
    }

    /// The record where the cursor stands.
    pub fn entry(&self) -> Option<&BatchEntry> {
        self.entries.get(self.at)
    }

    fn load(&mut self, from_oldest: bool) -> Result<()> {
        self.entries.clear();
        self.at = 0;
        if !self.keys.valid() {
            return Ok(());
        }
        let inner = self.keys.shared.lock();
        let rep = inner.batch.data();
        if let Some(index) = inner.index(self.keys.family) {
            let node = index.find(rep, &self.keys.key);
            if node != NONE {
                let size = index.order.timestamp_size();
                for at in index.updates(node) {
                    self.entries.extend(entry_of(&record_at(rep, at)?, size));
                }
            }
        }
        if from_oldest {
            self.at = self.entries.len().saturating_sub(1);
        }
        Ok(())
    }

    /// To the first record.
    pub fn seek_to_first(&mut self) -> Result<()> {
        self.keys.seek_to_first();
        self.load(false)
    }

    /// To the last record.
    pub fn seek_to_last(&mut self) -> Result<()> {
        self.keys.seek_to_last();
        self.load(true)
    }

    /// To the first record whose key is at or after `target`.
    pub fn seek(&mut self, target: &[u8]) -> Result<()> {
        self.keys.seek(target);
        self.load(false)
    }

    /// To the last record whose key is at or before `target`.
    pub fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        self.keys.seek_for_prev(target);
        self.load(true)
    }

    /// To the next record. Does nothing at the end.
    pub fn forward(&mut self) -> Result<()> {
        if self.at + 1 < self.entries.len() {
            self.at += 1;
            return Ok(());
        }
        self.keys.next();
        self.load(false)
    }

    /// To the previous record. Does nothing at the end.
    pub fn back(&mut self) -> Result<()> {
        if self.at > 0 {
            self.at -= 1;
            return Ok(());
        }
        self.keys.prev();
        self.load(true)
    }
}

/// The entry of a record, whose key ends in `size` bytes of timestamp.
fn entry_of(record: &Record<'_>, size: usize) -> Option<BatchEntry> {
    let (kind, key, value): (_, &[u8], &[u8]) = match *record {
        Record::Put { key, value, .. } => (EntryKind::Put, key, value),
        Record::PutEntity { key, entity, .. } => (EntryKind::PutEntity, key, entity),
        Record::Merge { key, operand, .. } => (EntryKind::Merge, key, operand),
        Record::Delete { key, .. } => (EntryKind::Delete, key, b""),
        Record::SingleDelete { key, .. } => (EntryKind::SingleDelete, key, b""),
        _ => return None,
    };
    Some(BatchEntry {
        kind,
        key: timestamp::bare(key, size).to_vec(),
        value: value.to_vec(),
    })
}
