//! Contents that a database should have: ordered maps, one for each family, and numbers that tell
//! two states apart.
//!
//! Every batch makes a new [`State`]; families that it does not touch are shared with the one
//! before. A family's print is the exclusive-or of the hashes of its entries, so that it follows a
//! batch at the cost of the batch, and a scan of a recovered database computes the same number
//! whatever order it reads in.

use crate::rng::mix;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A record of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Sets a key.
    Put(Vec<u8>, Vec<u8>),
    /// Removes a key.
    Delete(Vec<u8>),
    /// Appends to a key, with a comma between.
    Merge(Vec<u8>, Vec<u8>),
    /// Removes the keys from the first to before the second.
    DeleteRange(Vec<u8>, Vec<u8>),
}

/// A batch: records, each with its family's name.
pub type Batch = Vec<(Arc<str>, Record)>;

/// The change that one call makes, all of it or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Writes a batch.
    Write(Batch),
    /// Prepares a transaction of this name.
    Prepare(Arc<str>, Batch),
    /// Commits it, after the writes of a batch of its own.
    Commit(Arc<str>, Batch),
    /// Ends it without a trace.
    Undo(Arc<str>),
}

/// The entries of one family.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The entries.
    pub map: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Their print.
    pub print: u64,
}

/// The hash of one entry.
pub fn entry_print(key: &[u8], value: &[u8]) -> u64 {
    let mut h = mix(key.len() as u64 ^ 0x5851_f42d_4c95_7f2d);
    for part in [key, value] {
        let mut chunks = part.chunks_exact(8);
        for chunk in &mut chunks {
            let word = chunk.iter().fold(0u64, |w, b| w << 8 | u64::from(*b));
            h = mix(h ^ word);
        }
        let word = chunks
            .remainder()
            .iter()
            .fold(1u64, |w, b| w << 8 | u64::from(*b));
        h = mix(h ^ word);
    }
    h
}

impl Table {
    fn set(&mut self, key: &[u8], value: Vec<u8>) {
        self.print ^= entry_print(key, &value);
        if let Some(old) = self.map.insert(key.to_vec(), value) {
            self.print ^= entry_print(key, &old);
        }
    }

    fn unset(&mut self, key: &[u8]) {
        if let Some(old) = self.map.remove(key) {
            self.print ^= entry_print(key, &old);
        }
    }

    fn apply(&mut self, record: &Record) {
        match record {
            Record::Put(key, value) => self.set(key, value.clone()),
            Record::Delete(key) => self.unset(key),
            Record::Merge(key, operand) => {
                let mut value = self.map.get(key).cloned();
                match &mut value {
                    Some(v) => {
                        v.push(b',');
                        v.extend_from_slice(operand);
                    }
                    None => value = Some(operand.clone()),
                }
                self.set(key, value.unwrap_or_default());
            }
            Record::DeleteRange(begin, end) => {
                let keys: Vec<_> = self
                    .map
                    .range(begin.clone()..end.clone())
                    .map(|(k, _)| k.clone())
                    .collect();
                keys.iter().for_each(|k| self.unset(k));
            }
        }
    }
}

/// The entries of every family that ever was, and the transactions that are prepared.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// By name.
    pub families: BTreeMap<Arc<str>, Arc<Table>>,
    /// By name.
    pub prepared: BTreeMap<Arc<str>, Batch>,
}

impl State {
    /// The state after `change`.
    #[must_use]
    pub fn after(&self, change: &Change) -> State {
        let mut next = self.clone();
        match change {
            Change::Write(batch) => next.write(batch),
            Change::Prepare(name, batch) => {
                next.prepared.insert(Arc::clone(name), batch.clone());
            }
            Change::Commit(name, at_commit) => {
                next.write(at_commit);
                let batch = next.prepared.remove(name).unwrap_or_default();
                next.write(&batch);
            }
            Change::Undo(name) => _ = next.prepared.remove(name),
        }
        next
    }

    fn write(&mut self, batch: &Batch) {
        for (family, record) in batch {
            let table = self.families.entry(Arc::clone(family)).or_default();
            Arc::make_mut(table).apply(record);
        }
    }

    /// The entries of a family.
    pub fn entries(&self, family: &str) -> &BTreeMap<Vec<u8>, Vec<u8>> {
        static NONE: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        self.families.get(family).map_or(&NONE, |t| &t.map)
    }

    /// The print of a family; 0 for one without entries.
    pub fn print(&self, family: &str) -> u64 {
        self.families.get(family).map_or(0, |t| t.print)
    }
}

/// A backup that was made.
#[derive(Clone, Debug)]
pub struct Backup {
    pub(super) id: u32,
    /// The contents of the database, and its families.
    pub(super) state: State,
    pub(super) families: Vec<Arc<str>>,
    /// Where in the disk's log it was there.
    pub(super) made: usize,
    /// Where its deletion began.
    pub(super) deleted: Option<usize>,
}
