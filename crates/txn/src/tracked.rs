//! The keys that a transaction touched: what it locked, or what it must find unchanged when it
//! commits.
//!
//! Counts of reads and writes are kept for each key, so that a save point can be undone: a key
//! whose every touch came after the save point is forgotten, another keeps the touches from before.
//! Owned by one transaction.

use esker::FamilyHandle;
use std::collections::HashMap;

/// Facts about one tracked key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyInfo {
    /// The key is known not to have changed from this sequence on.
    pub(crate) seq: u64,
    pub(crate) reads: u32,
    pub(crate) writes: u32,
    pub(crate) exclusive: bool,
}

/// The keys of one family.
#[derive(Clone, Debug)]
pub(crate) struct FamilyKeys {
    pub(crate) family: FamilyHandle,
    pub(crate) keys: HashMap<Vec<u8>, KeyInfo>,
}

/// The result of undoing a read of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UndoResult {
    /// There was no such read.
    NotTracked,
    /// Other touches remain.
    Fewer,
    /// That was the last touch.
    Removed,
}

/// Keys by family.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrackedKeys {
    families: Vec<FamilyKeys>,
}

impl TrackedKeys {
    pub(crate) fn clear(&mut self) {
        self.families.clear();
    }

    pub(crate) fn families(&self) -> &[FamilyKeys] {
        &self.families
    }

    /// How many keys there are.
    pub(crate) fn len(&self) -> usize {
        self.families.iter().map(|f| f.keys.len()).sum()
    }

    fn of(&self, family: u32) -> Option<&FamilyKeys> {
        self.families.iter().find(|f| f.family.id() == family)
    }

    fn of_mut(&mut self, family: &FamilyHandle) -> &mut HashMap<Vec<u8>, KeyInfo> {
        let at = self
            .families
            .iter()
            .position(|f| f.family.id() == family.id())
            .unwrap_or_else(|| {
                self.families.push(FamilyKeys {
                    family: family.clone(),
                    keys: HashMap::new(),
                });
                self.families.len() - 1
            });
        &mut self.families[at].keys
    }

    pub(crate) fn get(&self, family: u32, key: &[u8]) -> Option<KeyInfo> {
        self.of(family)?.keys.get(key).copied()
    }

    /// Takes note of a touch.
    pub(crate) fn track(
        &mut self,
        family: &FamilyHandle,
        key: &[u8],
        seq: u64,
        is_read: bool,
        exclusive: bool,
    ) {
        let touch = KeyInfo {
            seq,
            reads: u32::from(is_read),
            writes: u32::from(!is_read),
            exclusive,
        };
        self.merge_key(family, key, touch);
    }

    fn merge_key(&mut self, family: &FamilyHandle, key: &[u8], touch: KeyInfo) {
        let keys = self.of_mut(family);
        match keys.get_mut(key) {
            Some(info) => {
                // The earlier the sequence, the more is known.
                info.seq = info.seq.min(touch.seq);
                info.reads = info.reads.saturating_add(touch.reads);
                info.writes = info.writes.saturating_add(touch.writes);
                info.exclusive |= touch.exclusive;
            }
            None => {
                keys.insert(key.to_vec(), touch);
            }
        }
    }

    /// Undoes one read of a key.
    pub(crate) fn untrack_read(&mut self, family: &FamilyHandle, key: &[u8]) -> UndoResult {
        let keys = self.of_mut(family);
        let Some(info) = keys.get_mut(key) else {
            return UndoResult::NotTracked;
        };
        if info.reads == 0 {
            return UndoResult::NotTracked;
        }
        info.reads -= 1;
        if info.reads > 0 || info.writes > 0 {
            return UndoResult::Fewer;
        }
        keys.remove(key);
        UndoResult::Removed
    }

    /// Adds the touches of `other`.
    pub(crate) fn merge(&mut self, other: &TrackedKeys) {
        for f in &other.families {
            for (key, info) in &f.keys {
                self.merge_key(&f.family, key, *info);
            }
        }
    }

    /// Takes the touches of `other` away; the keys that had no others go, and are returned.
    pub(crate) fn subtract(&mut self, other: &TrackedKeys) -> TrackedKeys {
        let mut gone = TrackedKeys::default();
        for f in &other.families {
            for (key, info) in &f.keys {
                let keys = self.of_mut(&f.family);
                let Some(own) = keys.get_mut(key) else {
                    continue;
                };
                own.reads = own.reads.saturating_sub(info.reads);
                own.writes = own.writes.saturating_sub(info.writes);
                if own.reads == 0 && own.writes == 0 {
                    keys.remove(key);
                    gone.merge_key(&f.family, key, *info);
                }
            }
        }
        gone
    }
}
