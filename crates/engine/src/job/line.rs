//! The concurrent flushes of a family, and the order in which they are installed.
//!
//! A flush works with a processor while it writes its table, and then waits for the disk: for the
//! table's sync, the directory's, the MANIFEST's. Meanwhile the next one begins, with the memtables
//! that no other has taken, and writes. So a [`Place`] counts against the limit on flushes only
//! until its tables are written.
//!
//! Flushes of a family are installed in the order in which they began, which is that of their
//! memtables: log numbers, level 0 and the history of memtables go by it. A flush that is done
//! sooner waits for its turn. When one gives up, those behind it are cut off: they remove what they
//! wrote, and their memtables, which are still in the view, are flushed again. Until the last of
//! them has gone no other begins.
//!
//! With `atomic_flush`, flushes stand in the lines of all their families, and another begins when
//! there is none.
//!
//! Lost: *one thread that goes on with the next table while the last one is synced*, and hands it
//! to whoever commits. That is a second thread all the same, with two places where a flush can
//! fail, and it could not use a second processor for the second memtable when writers stand still
//! for it. *Finished flushes that share a sync of the MANIFEST*: one is done about a memtable's
//! time after the other, tens of milliseconds, and a sync was measured at a quarter of one, so
//! there is next to never a second edit to take along.
//!
//! Thread-safety: lines are part of [`Jobs`], under its lock. A place belongs to the flush that
//! holds it.

use super::Jobs;
use crate::core::Core;
use crate::family::Family;
use crate::memtable::MemTable;
use esker_status::seeded::{Bug, seeded};
use esker_sync::Arc;
use std::collections::VecDeque;
use std::time::Duration;

/// Longest wait before a flush looks again whether it is its turn.
const PATIENCE: Duration = Duration::from_secs(1);

/// The flushes of one family that run, the oldest first. Those that are cut off are the last.
#[derive(Debug, Default)]
pub(crate) struct Line(VecDeque<Standing>);

#[derive(Debug)]
struct Standing {
    /// The newest memtable that it takes, which is its name.
    newest: u64,
    is_cut_off: bool,
}

/// What a flush whose tables are complete may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Wait,
    Install,
    GiveUp,
}

impl Line {
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

    fn join(&mut self, newest: u64) {
        self.0.push_back(Standing {
            newest,
            is_cut_off: false,
        });
    }

    fn turn(&self, newest: u64) -> Turn {
        let is_first = self.0.front().is_some_and(|s| s.newest == newest);
        match self.0.iter().find(|s| s.newest == newest) {
            Some(own) if own.is_cut_off => Turn::GiveUp,
            Some(_) if is_first || seeded(Bug::FlushOutOfTurn) => Turn::Install,
            Some(_) => Turn::Wait,
            None => Turn::GiveUp,
        }
    }

    /// Takes a flush out; those behind one that was not installed are cut off.
    fn leave(&mut self, newest: u64, is_installed: bool) {
        let Some(at) = self.0.iter().position(|s| s.newest == newest) else {
            return;
        };
        self.0.remove(at);
        if !is_installed {
            self.0.range_mut(at..).for_each(|s| s.is_cut_off = true);
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A flush's place in the lines of its families, until it is dropped: with it the flush ends.
#[derive(Debug)]
pub(crate) struct Place {
    core: Arc<Core>,
    /// The families with the newest memtable that is taken of each.
    families: Vec<(Arc<Family>, u64)>,
    is_writing: bool,
    is_installed: bool,
}

impl Place {
    /// Registers a flush that begins. `jobs` are those of `core`.
    pub(crate) fn take(
        core: &Arc<Core>,
        jobs: &mut Jobs,
        families: Vec<(Arc<Family>, u64)>,
    ) -> Self {
        jobs.flushes += 1;
        jobs.flushes_writing += 1;
        for (family, newest) in &families {
            jobs.lines.entry(family.id).or_default().join(*newest);
            jobs.enter_flush(family);
        }
        jobs.tell_flow(core);
        Place {
            core: Arc::clone(core),
            families,
            is_writing: true,
            is_installed: false,
        }
    }

    /// The tables are written. Another flush may begin: what is left of this one is to wait.
    pub(crate) fn written(&mut self) {
        if std::mem::take(&mut self.is_writing) {
            let mut jobs = self.core.jobs.lock();
            jobs.flushes_writing -= 1;
            jobs.tell_flow(&self.core);
            drop(jobs);
            self.core.wake.notify();
        }
    }

    /// Waits until all that began before are installed. False when that will not be: one of them
    /// gave up, or the database closes meanwhile.
    pub(crate) fn wait_for_turn(&self) -> bool {
        loop {
            let seen = self.core.wake.changes();
            match self.turn() {
                Turn::Install => return true,
                Turn::GiveUp => return false,
                Turn::Wait => {}
            }
            if !self.core.wake.wait_past(seen, PATIENCE) {
                return self.turn() == Turn::Install;
            }
        }
    }

    fn turn(&self) -> Turn {
        let jobs = self.core.jobs.lock();
        let turn = |(family, newest): &(Arc<Family>, u64)| match jobs.lines.get(&family.id) {
            Some(line) => line.turn(*newest),
            None => Turn::GiveUp,
        };
        let mut turns = self.families.iter().map(turn);
        turns.find(|t| *t != Turn::Install).unwrap_or(Turn::Install)
    }

    /// The tables are in the tree: the next is let go on.
    pub(crate) fn installed(&mut self) {
        self.is_installed = true;
        self.leave(&mut self.core.jobs.lock());
        self.core.wake.notify();
    }

    fn leave(&self, jobs: &mut Jobs) {
        for (family, newest) in &self.families {
            if let Some(line) = jobs.lines.get_mut(&family.id) {
                line.leave(*newest, self.is_installed);
                if line.is_empty() {
                    jobs.lines.remove(&family.id);
                }
            }
            jobs.enter_flush(family);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut jobs = self.core.jobs.lock();
        jobs.flushes -= 1;
        jobs.flushes_writing -= usize::from(self.is_writing);
        jobs.tell_flow(&self.core);
        self.leave(&mut jobs);
        for (family, _) in &self.families {
            if family.view_guard().immutable.is_empty() {
                jobs.flush_now.remove(&family.id);
            }
        }
        drop(jobs);
        self.core.wake.notify();
    }
}

#[cfg(test)]
mod tests;
