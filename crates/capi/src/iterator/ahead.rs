//! Entries that an iterator showed at once, handed out one by one.
//!
//! Only in long walks: a caller that takes a few entries pays for no others. The engine's iterator
//! stands on the last of them meanwhile; before it moves otherwise it is put on the one that the
//! caller sees ([`EntryBuffer::passed`]).

use super::CurrentEntry;

/// Steps in one direction after which a walk is long.
pub(super) const LONG: u32 = 16;
/// The most entries that are shown at once.
pub(super) const MOST: usize = 16;

/// Which way a walk goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Direction {
    #[default]
    Next,
    Previous,
}

/// How far a caller has walked, and what is shown ahead of it.
#[derive(Default)]
pub(super) struct ReadAhead {
    steps: u32,
    toward: Direction,
    ahead: Option<Box<EntryBuffer>>,
}

impl ReadAhead {
    /// Returns whether the next step is one of a long walk. Once for each step: always inlined.
    #[inline(always)]
    pub(super) fn is_long(&mut self, toward: Direction) -> bool {
        if self.steps < LONG {
            let is_same = self.toward == toward;
            self.steps = if is_same { self.steps + 1 } else { 1 };
            self.toward = toward;
            return false;
        }
        true
    }

    /// The walk is over.
    #[inline(always)]
    pub(super) fn end(&mut self) {
        if self.steps >= LONG
            && let Some(ahead) = &mut self.ahead
        {
            ahead.reset();
        }
        self.steps = 0;
    }

    /// Which way it went.
    pub(super) fn toward(&self) -> Direction {
        self.toward
    }

    /// The buffer of entries that are shown ahead of the caller.
    #[inline]
    pub(super) fn ahead(&mut self) -> &mut EntryBuffer {
        self.ahead.get_or_insert_with(Box::default)
    }
}

/// Entries, and the one that the caller sees.
pub(super) struct EntryBuffer {
    at: usize,
    len: usize,
    /// Entries of the move under way.
    taken: usize,
    entries: [CurrentEntry; MOST],
}

impl Default for EntryBuffer {
    fn default() -> Self {
        EntryBuffer {
            at: 0,
            len: 0,
            taken: 0,
            entries: [CurrentEntry::NOWHERE; MOST],
        }
    }
}

impl EntryBuffer {
    /// The entry after the one that the caller sees, if it was shown already.
    #[inline(always)]
    pub(super) fn step(&mut self) -> Option<CurrentEntry> {
        let at = self.at + 1;
        if at >= self.len {
            return None;
        }
        self.at = at;
        self.entries.get(at).copied()
    }

    /// The entry that the caller sees, where the iterator has gone past it.
    pub(super) fn passed(&self) -> Option<CurrentEntry> {
        let is_passed = self.at + 1 < self.len;
        self.entries.get(self.at).copied().filter(|_| is_passed)
    }

    /// Forgets what was shown.
    pub(super) fn reset(&mut self) {
        (self.at, self.len, self.taken) = (0, 0, 0);
    }

    /// Takes an entry that was shown; those beyond [`MOST`] are no entries of a walk.
    #[inline(always)]
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        if let Some(entry) = self.entries.get_mut(self.taken) {
            entry.is_at(key, value);
            self.taken += 1;
        }
    }

    /// The move is over. The first entry that it showed.
    pub(super) fn end(&mut self) -> CurrentEntry {
        self.len = self.taken;
        match self.len {
            0 => CurrentEntry::NOWHERE,
            _ => self.entries[0],
        }
    }
}
