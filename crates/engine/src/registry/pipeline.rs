//! The flushes of one family that run beside each other, and the order in which they are installed.
//!
//! Flushes of a family are installed in the order in which they began, which is that of their
//! memtables: log numbers, level 0 and the history of memtables go by it. A flush that is done
//! sooner waits for its turn. When one gives up, those behind it are cut off: they remove what they
//! wrote, and their memtables, which are still in the view, are flushed again. Until the last of
//! them has gone no other begins.
//!
//! Thread-safety: part of [`super::Jobs`], under its lock.

use crate::memtable::MemTable;
use esker_status::seeded::{Bug, seeded};
use esker_sync::Arc;
use std::collections::VecDeque;

/// The flushes of one family that run, the oldest first. Those that are cut off are the last.
#[derive(Debug, Default)]
pub(crate) struct FlushPipeline(VecDeque<QueuedFlush>);

#[derive(Debug)]
struct QueuedFlush {
    /// The newest memtable that it takes, which is its name.
    newest: u64,
    is_cut_off: bool,
}

/// Decision about a flush whose tables are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstallOrder {
    Wait,
    Install,
    GiveUp,
}

impl FlushPipeline {
    /// Those of `immutable`, newest first, that a flush may take.
    pub(crate) fn free<'m>(&self, immutable: &'m [Arc<MemTable>]) -> &'m [Arc<MemTable>] {
        match self.0.back() {
            None => immutable,
            Some(last) if last.is_cut_off => &[],
            Some(last) => {
                let free = immutable.iter().take_while(|m| m.id() > last.newest);
                &immutable[..free.count()]
            }
        }
    }

    pub(crate) fn join(&mut self, newest: u64) {
        self.0.push_back(QueuedFlush {
            newest,
            is_cut_off: false,
        });
    }

    pub(crate) fn order(&self, newest: u64) -> InstallOrder {
        let is_first = self.0.front().is_some_and(|s| s.newest == newest);
        match self.0.iter().find(|s| s.newest == newest) {
            Some(own) if own.is_cut_off => InstallOrder::GiveUp,
            Some(_) if is_first || seeded(Bug::FlushOutOfTurn) => InstallOrder::Install,
            Some(_) => InstallOrder::Wait,
            None => InstallOrder::GiveUp,
        }
    }

    /// Takes a flush out; those behind one that was not installed are cut off.
    pub(crate) fn leave(&mut self, newest: u64, is_installed: bool) {
        let Some(at) = self.0.iter().position(|s| s.newest == newest) else {
            return;
        };
        self.0.remove(at);
        if !is_installed {
            self.0.range_mut(at..).for_each(|s| s.is_cut_off = true);
        }
    }

    /// Flushes that run or wait for their turn.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests;
