//! Names of entries that left before they were used: one that comes back was needed after all.
//!
//! Sets of four fingerprints, the newest first. Fingerprints are 32 bits of the hash, whose lowest
//! choose the set; one that another key shares makes that key's next entry stay longer, no more.

const WAYS: usize = 4;

#[derive(Default)]
pub(crate) struct Ghosts {
    sets: Vec<[u32; WAYS]>,
}

/// Zero is an empty place.
fn fingerprint(hash: u64) -> u32 {
    (hash as u32).max(1)
}

impl Ghosts {
    /// Bytes taken.
    pub(crate) fn memory(&self) -> usize {
        self.sets.capacity() * size_of::<[u32; WAYS]>()
    }

    /// Makes room for `names`, a power of two; those that are there stay.
    pub(crate) fn resize(&mut self, names: usize) {
        let before = std::mem::take(&mut self.sets);
        self.sets = vec![[0; WAYS]; (names / WAYS).max(1)];
        for set in before {
            for name in set.into_iter().rev().filter(|&name| name != 0) {
                self.add(name);
            }
        }
    }

    fn set(&mut self, name: u32) -> Option<&mut [u32; WAYS]> {
        let mask = self.sets.len().checked_sub(1)?;
        self.sets.get_mut(name as usize & mask)
    }

    fn add(&mut self, name: u32) {
        if let Some(set) = self.set(name) {
            set.rotate_right(1);
            set[0] = name;
        }
    }

    /// Remembers an entry that leaves.
    pub(crate) fn push(&mut self, hash: u64) {
        self.add(fingerprint(hash));
    }

    /// Returns whether the entry left lately; it is forgotten then.
    pub(crate) fn take(&mut self, hash: u64) -> bool {
        let name = fingerprint(hash);
        let Some(set) = self.set(name) else {
            return false;
        };
        let Some(at) = set.iter().position(|&n| n == name) else {
            return false;
        };
        set[at..].rotate_left(1);
        set[WAYS - 1] = 0;
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_ghost_is_seen_once_and_survives_growth() {
        let mut ghosts = Ghosts::default();
        assert!(!ghosts.take(1));
        ghosts.resize(8);
        (1..=8u64).for_each(|n| ghosts.push(n));
        ghosts.resize(32);
        assert!((1..=8u64).all(|n| ghosts.take(n)));
        assert!((1..=8u64).all(|n| !ghosts.take(n)));
        // The oldest of a set makes room.
        (1..=5u64).for_each(|n| ghosts.push(n << 4));
        assert!(!ghosts.take(1 << 4) && ghosts.take(5 << 4) && ghosts.take(2 << 4));
    }
}
