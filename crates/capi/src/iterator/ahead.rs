//! Entries that an iterator showed at once, handed out one by one.
//!
//! A walk that goes on gets more entries at once: a caller that takes one or two pays for no
//! others. The engine's iterator stands on the last of them meanwhile; before it moves otherwise it
//! is put on the one that the caller sees ([`Ahead::passed`]).

use super::Here;

/// The most entries that are shown at once.
const MOST: usize = 16;

/// Which way entries were shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Toward {
    Next,
    Previous,
}

/// Entries, and the one that the caller sees.
pub(super) struct Ahead {
    at: u32,
    len: u32,
    /// Entries of the walk under way.
    taken: u32,
    /// How many to ask for next.
    size: u32,
    toward: Toward,
    entries: [Here; MOST],
}

impl Ahead {
    pub(super) fn new() -> Self {
        Ahead {
            at: 0,
            len: 0,
            taken: 0,
            size: 1,
            toward: Toward::Next,
            entries: [Here::NOWHERE; MOST],
        }
    }

    /// The entry after the one that the caller sees, if it was shown already.
    #[inline(always)]
    pub(super) fn step(&mut self, toward: Toward) -> Option<Here> {
        let at = self.at + 1;
        if at >= self.len || self.toward != toward {
            return None;
        }
        self.at = at;
        self.entries.get(at as usize).copied()
    }

    /// The entry that the caller sees, where the iterator has gone past it.
    pub(super) fn passed(&self) -> Option<Here> {
        let is_passed = self.at + 1 < self.len;
        let here = self.entries.get(self.at as usize);
        here.copied().filter(|_| is_passed)
    }

    /// Forgets what was shown: the iterator goes elsewhere.
    #[inline]
    pub(super) fn reset(&mut self) {
        self.at = 0;
        self.len = 0;
        self.size = 1;
    }

    /// How many entries the walk is to show now.
    pub(super) fn begin(&mut self, toward: Toward) -> usize {
        let size = if self.toward == toward { self.size } else { 1 };
        self.at = 0;
        self.len = 0;
        self.taken = 0;
        self.toward = toward;
        self.size = match size {
            1 => 4,
            more => (2 * more).min(MOST as u32),
        };
        size as usize
    }

    /// Takes an entry that was shown; those beyond the number asked for are no entries of a walk.
    #[inline(always)]
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        if let Some(entry) = self.entries.get_mut(self.taken as usize) {
            entry.is_at(key, value);
            self.taken += 1;
        }
    }

    /// The walk is over. The first entry that it showed.
    pub(super) fn end(&mut self) -> Here {
        self.len = self.taken;
        match self.len {
            0 => Here::NOWHERE,
            _ => self.entries[0],
        }
    }
}
