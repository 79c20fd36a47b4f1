//! Which logs hold data that is in no table yet: an index of memtables by their oldest log.
//!
//! Each memtable with data that is not flushed stands here once, under the log of its first write.
//! This finds the oldest log that is needed, and the families that keep it, without a visit to any
//! other family.
//!
//! ```text
//! the first write of a memtable   -> begin: under the log that takes appends
//! a new log takes appends         -> begun
//! a view without the memtable     -> end: after its table is in the MANIFEST
//! the family is dropped           -> leave: nothing of it is needed any more
//! ```
//!
//! **Between log and memtable.** A group is in the log before its memtables have it, so the index
//! may lack a memtable that is about to get its first write. That write is in the log that takes
//! appends, and no other log does before the group is over. [`HeldLogs::oldest`] therefore starts
//! from the number of that log and takes the entries into account afterwards; both are read under
//! one lock.
//!
//! An empty memtable holds no log, whatever its number says: the number is made up to date with
//! the first write.
//!
//! Thread-safety: one leaf lock, taken once for the life of a memtable by a writer.

use super::MemTable;
use esker_format::{FamilyId, FileNo};
use esker_status::seeded::{Bug, seeded};
use esker_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use esker_sync::{Arc, Mutex, OnceLock, Rank};
use std::collections::BTreeSet;

/// A memtable by its oldest log: the log, the family and the memtable's number in it.
type HeldLog = (FileNo, FamilyId, u64);

/// The index of a database.
#[derive(Debug)]
pub(crate) struct HeldLogs {
    state: Mutex<HeldLogsState>,
    /// Entries that were visited.
    visits: AtomicU64,
}

#[derive(Debug, Default)]
struct HeldLogsState {
    /// The log that takes appends; 0 before there is one.
    current: FileNo,
    /// The log that took appends after the last switch of memtables. What is prepared is synced in
    /// it, so the MANIFEST may name it as the oldest; a log that replaced a broken one is not sure.
    switched: FileNo,
    held: BTreeSet<HeldLog>,
}

impl HeldLogs {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(HeldLogs {
            state: Mutex::new(Rank::LEAF, HeldLogsState::default()),
            visits: AtomicU64::new(0),
        })
    }

    /// Log `number` takes appends from now on. No group is in flight.
    pub(crate) fn begun(&self, number: FileNo) {
        let mut state = self.state.lock();
        state.current = number;
        if state.switched == FileNo(0) {
            state.switched = number;
        }
    }

    /// Memtables were switched, and log `number` takes appends.
    pub(crate) fn switched_to(&self, number: FileNo) {
        self.state.lock().switched = number;
    }

    /// The log that took appends after the last switch.
    pub(crate) fn last_switched(&self) -> FileNo {
        self.state.lock().switched
    }

    /// The oldest log that any memtable needs; writes that are under way count too.
    pub(crate) fn oldest(&self) -> FileNo {
        let state = self.state.lock();
        let mut entries = state.held.iter().inspect(|_| self.visited());
        if seeded(Bug::WalGoneTooEarly) {
            return entries.next_back().map_or(state.current, |(log, ..)| *log);
        }
        let first = entries.next();
        first.map_or(state.current, |(log, ..)| state.current.min(*log))
    }

    /// The oldest log that the MANIFEST is to name for families for which `counts` says yes. Those
    /// without data need logs from the last switch on.
    pub(crate) fn oldest_to_name(&self, counts: impl Fn(FamilyId) -> bool) -> FileNo {
        let state = self.state.lock();
        let mut entries = state.held.iter().inspect(|_| self.visited());
        let first = entries.find(|(_, family, _)| counts(*family));
        first.map_or(state.switched, |(log, ..)| state.switched.min(*log))
    }

    /// The families with data in log `number` or an older one that is not flushed, oldest first. A
    /// family comes as often as it has such memtables.
    pub(crate) fn holders(&self, number: FileNo) -> Vec<FamilyId> {
        let state = self.state.lock();
        let upto = state.held.iter().take_while(|(log, ..)| *log <= number);
        let upto = upto.inspect(|_| self.visited());
        upto.map(|(_, family, _)| *family).collect()
    }

    /// The families with a memtable that has data and is not flushed.
    pub(crate) fn with_data(&self) -> Vec<FamilyId> {
        let state = self.state.lock();
        let mut all: Vec<_> = state.held.iter().map(|(_, family, _)| *family).collect();
        drop(state);
        all.sort_unstable();
        all.dedup();
        all
    }

    fn visited(&self) {
        self.visits.fetch_add(1, Ordering::Relaxed);
    }

    /// How many entries were visited.
    #[cfg(test)]
    pub(crate) fn visits(&self) -> u64 {
        self.visits.load(Ordering::Relaxed)
    }

    /// How many memtables stand in it.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.state.lock().held.len()
    }
}

/// One family's part in the index.
#[derive(Debug)]
pub(crate) struct FamilyLogs {
    family: FamilyId,
    index: OnceLock<Arc<HeldLogs>>,
    /// The family was dropped. Changed under the lock of the index.
    has_left: AtomicBool,
}

impl FamilyLogs {
    /// The part of a family that is in no index yet.
    pub(crate) fn new(family: FamilyId) -> Arc<Self> {
        Arc::new(FamilyLogs {
            family,
            index: OnceLock::new(),
            has_left: AtomicBool::new(false),
        })
    }

    /// The family becomes one of those of `index`, with the memtables that it has. No other thread
    /// has it yet.
    pub(crate) fn join<'m>(
        &self,
        index: &Arc<HeldLogs>,
        memtables: impl Iterator<Item = &'m Arc<MemTable>>,
    ) {
        let _once = self.index.set(Arc::clone(index));
        for mem in memtables.filter(|m| !m.is_empty()) {
            self.enter(mem, mem.log_number());
        }
    }

    /// A memtable has its first write, in a group that is not over: its oldest log is the one that
    /// takes appends. Writers of one group may call it beside each other.
    #[cold]
    pub(crate) fn begin(&self, mem: &MemTable) {
        if seeded(Bug::LogHeldOnce) && mem.id() > 0 {
            return;
        }
        self.enter(mem, mem.log_number());
    }

    fn enter(&self, mem: &MemTable, log: FileNo) {
        let Some(index) = self.index.get() else {
            return;
        };
        let mut state = index.state.lock();
        if self.has_left.load(Ordering::Relaxed) {
            return;
        }
        let log = log.max(state.current);
        mem.set_log_number(log);
        state.held.insert((log, self.family, mem.id()));
    }

    /// The memtable's data begins in `log`, which is no longer the one that takes appends: that is
    /// for recovery, which knows it afterwards.
    pub(crate) fn move_to(&self, mem: &MemTable, log: FileNo) {
        let Some(index) = self.index.get() else {
            return mem.set_log_number(log);
        };
        let mut state = index.state.lock();
        let held = state
            .held
            .remove(&(mem.log_number(), self.family, mem.id()));
        mem.set_log_number(log);
        if held {
            state.held.insert((log, self.family, mem.id()));
        }
    }

    /// Memtables of the family need no log any more.
    pub(crate) fn end<'m>(&self, memtables: impl Iterator<Item = &'m Arc<MemTable>>) {
        let Some(index) = self.index.get() else {
            return;
        };
        let mut state = index.state.lock();
        for mem in memtables {
            state
                .held
                .remove(&(mem.log_number(), self.family, mem.id()));
        }
    }

    /// The family is dropped: neither these memtables of it nor later ones need a log.
    pub(crate) fn leave<'m>(&self, memtables: impl Iterator<Item = &'m Arc<MemTable>>) {
        if let Some(index) = self.index.get() {
            let _state = index.state.lock();
            self.has_left.store(true, Ordering::Relaxed);
        }
        self.end(memtables);
    }

    /// The log that took appends after the last switch; 0 before there is one.
    pub(crate) fn last_switched(&self) -> FileNo {
        self.index
            .get()
            .map_or(FileNo(0), |index| index.last_switched())
    }
}

#[cfg(test)]
mod tests;
