//! Iterators of the engine: of a database, or of a transaction over it.

use esker::DbIterator;
use esker_txn::MergedIterator;

/// An iterator of either kind.
#[derive(Debug)]
pub(crate) enum Walk {
    Database(Box<DbIterator>),
    Transaction(Box<MergedIterator>),
}

/// Calls a method of either iterator.
macro_rules! either {
    ($walk:expr, $iterator:ident => $call:expr) => {
        match $walk {
            Walk::Database($iterator) => $call,
            Walk::Transaction($iterator) => $call,
        }
    };
}

impl Walk {
    pub(crate) fn seek_to_first(&mut self) {
        either!(self, it => it.seek_to_first());
    }

    pub(crate) fn seek_to_last(&mut self) {
        either!(self, it => it.seek_to_last());
    }

    pub(crate) fn seek(&mut self, target: &[u8]) {
        either!(self, it => it.seek(target));
    }

    pub(crate) fn seek_for_prev(&mut self, target: &[u8]) {
        either!(self, it => it.seek_for_prev(target));
    }

    /// One step; nothing where it is not valid.
    pub(crate) fn step(&mut self, is_reverse: bool) {
        match (self.entry().is_some(), is_reverse) {
            (false, _) => {}
            (true, false) => either!(self, it => it.next()),
            (true, true) => either!(self, it => it.prev()),
        }
    }

    /// The entry it stands on; none before it is placed.
    pub(crate) fn entry(&self) -> Option<(&[u8], &[u8])> {
        if matches!(self, Walk::Database(it) if !it.is_placed()) {
            return None;
        }
        either!(self, it => it.entry())
    }

    pub(crate) fn status(&self) -> esker::Result<()> {
        either!(self, it => it.status())
    }

    /// Goes on by up to `most` entries, which `show` sees, and returns their number: 0 at the end.
    pub(crate) fn batch(
        &mut self,
        is_reverse: bool,
        most: usize,
        mut show: impl FnMut(&[u8], &[u8]),
    ) -> usize {
        match self {
            Walk::Database(it) if is_reverse => it.prev_batch(most, show),
            Walk::Database(it) => it.next_batch(most, show),
            Walk::Transaction(_) => {
                self.step(is_reverse);
                let entry = self.entry();
                entry.inspect(|(key, value)| show(key, value));
                usize::from(entry.is_some())
            }
        }
    }
}
