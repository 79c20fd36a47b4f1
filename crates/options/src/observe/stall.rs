//! The ledger of time that writers were held back: how long, how often, why.
//!
//! One ledger for the database, and one for each family. There are three words for being held back:
//!
//! - *stopped*: writes to the family, or to the database, wait;
//! - *delayed*: a call went at the pace of its family and was held back for a millisecond or more
//!   in total;
//! - *paced*: the same, for less than that.
//!
//! Each has two figures. *Time of writers* is what calls waited, added up: divided by the time that
//! passed and the number of writers it is the share of their time. *Time of the clock* is that in
//! which at least one writer was held back. It is entered once, under the most severe reason that
//! held any writer at that moment, however many waited: a stop before a pace, and low priority
//! last. Therefore it never exceeds the time that passed.
//!
//! RocksDB's stall statistics count what RocksDB would count: time of the clock in which writers
//! were stopped or delayed by memtables, level 0 or debt ([`StallKind::is_stall_of`]). There a
//! leader waits for its group, and for a millisecond at least; administration, low priority and
//! memory of memtables are not in there. The counts of `rocksdb.cfstats` are how often a family was
//! found in a condition when its view changed ([`StallLedger::note_condition`]), not how many
//! writers waited.
//!
//! Held back means waiting for something that is not the call's own write: for a flush or a
//! compaction of a family that it writes to, for the rate that writers share, for memory of
//! memtables, as a writer of low priority, or for administration that lets nobody write (an
//! ingestion that is being placed, a log that is locked). A follower in the queue, or a call that
//! waits for the log lock, adds nothing: while the leader is held back that time is entered
//! already, and while the leader works no writer is held back. The work of a write is not a stall
//! either: appends and syncs, a switch of memtables, the wait for others' inserts. A limit on the
//! size of logs makes memtables switch, and holds no writer back by itself.
//!
//! How often, and the longest, go by call: what one call waited for one reason counts once, in
//! however many pieces it was slept. The causes and kinds of families' ledgers, with what no family
//! caused, add up to the database's.
//!
//! Thread-safety: atomics; each figure is exact, and figures read together may be a moment apart.

use esker_sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::fmt;

/// Why writers were held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum StallCause {
    /// Too many memtables wait for their flush.
    MemtableLimit = 0,
    /// Level 0 has too many files.
    L0FileCountLimit = 1,
    /// Too much compaction is owed.
    PendingCompactionBytes = 2,
    /// All memtables together take too much memory.
    WriteBufferManagerLimit = 3,
    /// The writer asked for low priority while compaction was behind.
    LowPriority = 4,
    /// Writes wait for a while: an ingestion is being placed, the log is locked.
    Administration = 5,
}

impl StallCause {
    /// Every cause.
    pub const ALL: [StallCause; 6] = [
        StallCause::MemtableLimit,
        StallCause::L0FileCountLimit,
        StallCause::PendingCompactionBytes,
        StallCause::WriteBufferManagerLimit,
        StallCause::LowPriority,
        StallCause::Administration,
    ];

    /// Those that RocksDB counts, which are a family's.
    pub const OF_FAMILIES: [StallCause; 3] = [
        StallCause::MemtableLimit,
        StallCause::L0FileCountLimit,
        StallCause::PendingCompactionBytes,
    ];

    /// RocksDB's name, as its stall statistics print it; the last two are ours.
    pub fn name(self) -> &'static str {
        match self {
            StallCause::MemtableLimit => "memtable-limit",
            StallCause::L0FileCountLimit => "l0-file-count-limit",
            StallCause::PendingCompactionBytes => "pending-compaction-bytes",
            StallCause::WriteBufferManagerLimit => "write-buffer-manager-limit",
            StallCause::LowPriority => "low-priority",
            StallCause::Administration => "administration",
        }
    }
}

/// How writers were held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum StallKind {
    /// A call was held back for less than a millisecond.
    Pace = 0,
    /// A call was slowed down for a millisecond or more.
    Delay = 1,
    /// Writes wait.
    Stop = 2,
}

impl StallKind {
    /// Every kind.
    pub const ALL: [StallKind; 3] = [StallKind::Pace, StallKind::Delay, StallKind::Stop];
    /// The kinds that RocksDB has.
    pub const OF_ROCKSDB: [StallKind; 2] = [StallKind::Delay, StallKind::Stop];

    /// RocksDB's name; the first is ours.
    pub fn name(self) -> &'static str {
        match self {
            StallKind::Pace => "paces",
            StallKind::Delay => "delays",
            StallKind::Stop => "stops",
        }
    }

    /// Returns the word for the state of the writers.
    pub fn word(self) -> &'static str {
        match self {
            StallKind::Pace => "paced",
            StallKind::Delay => "delayed",
            StallKind::Stop => "stopped",
        }
    }

    /// Returns whether RocksDB would count the time of a wait of this kind for `cause` as stalled.
    pub fn is_stall_of(self, cause: StallCause) -> bool {
        self != StallKind::Pace && StallCause::OF_FAMILIES.contains(&cause)
    }
}

/// Time for which writers were held back, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StallTime {
    /// Of the clock.
    pub clock_us: u64,
    /// Of all writers together.
    pub writers_us: u64,
}

impl std::ops::AddAssign for StallTime {
    fn add_assign(&mut self, more: StallTime) {
        self.clock_us += more.clock_us;
        self.writers_us += more.writers_us;
    }
}

#[derive(Default)]
struct Cell {
    us: AtomicU64,
    writers_us: AtomicU64,
    us_max: AtomicU64,
    times: AtomicU64,
}

/// One line of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StallRow {
    /// Why.
    pub cause: StallCause,
    /// How.
    pub kind: StallKind,
    /// Microseconds of the clock in which this held writers back.
    pub stall_us: u64,
    /// Microseconds that calls waited, added up.
    pub writers_us: u64,
    /// The longest wait of one call, in microseconds.
    pub stall_us_max: u64,
    /// Calls that waited; stops under way included.
    pub times: u64,
}

/// Time that writers were held back, by cause and kind.
#[derive(Default)]
pub struct StallLedger {
    cells: [[Cell; 3]; 6],
    /// How often a family was found in a condition, by cause and kind.
    conditions: [[AtomicU64; 3]; 3],
    /// Stalls by level 0 while a compaction of it ran, by kind.
    ongoing: [AtomicU64; 3],
}

impl StallLedger {
    /// An empty ledger.
    pub fn new() -> Self {
        Self::default()
    }

    fn cell(&self, cause: StallCause, kind: StallKind) -> &Cell {
        &self.cells[cause as usize][kind as usize]
    }

    /// Time has passed in which writers were held back; `is_new`: a call is entered that was not
    /// before.
    pub fn enter(&self, cause: StallCause, kind: StallKind, time: StallTime, is_new: bool) {
        let cell = self.cell(cause, kind);
        cell.us.fetch_add(time.clock_us, Relaxed);
        cell.writers_us.fetch_add(time.writers_us, Relaxed);
        cell.times.fetch_add(u64::from(is_new), Relaxed);
    }

    /// A call goes on that has waited so long.
    pub fn longest(&self, cause: StallCause, kind: StallKind, waited_us: u64) {
        self.cell(cause, kind).us_max.fetch_max(waited_us, Relaxed);
    }

    /// Takes note that the family's view changed and its writers are to be slowed down or stopped;
    /// whether a compaction of level 0 runs.
    pub fn note_condition(&self, cause: StallCause, kind: StallKind, is_compacting: bool) {
        if let Some(counts) = self.conditions.get(cause as usize) {
            counts[kind as usize].fetch_add(1, Relaxed);
        }
        if cause == StallCause::L0FileCountLimit && is_compacting {
            self.ongoing[kind as usize].fetch_add(1, Relaxed);
        }
    }

    /// How often the family was found in the condition.
    pub fn conditions(&self, cause: StallCause, kind: StallKind) -> u64 {
        let counts = self.conditions.get(cause as usize);
        counts.map_or(0, |c| c[kind as usize].load(Relaxed))
    }

    /// How often it was found in that of level 0 while a compaction of level 0 ran.
    pub fn during_compaction(&self, kind: StallKind) -> u64 {
        self.ongoing[kind as usize].load(Relaxed)
    }

    /// One line.
    pub fn row(&self, cause: StallCause, kind: StallKind) -> StallRow {
        let cell = self.cell(cause, kind);
        StallRow {
            cause,
            kind,
            stall_us: cell.us.load(Relaxed),
            writers_us: cell.writers_us.load(Relaxed),
            stall_us_max: cell.us_max.load(Relaxed),
            times: cell.times.load(Relaxed),
        }
    }

    /// Returns whether a writer was ever held back.
    pub fn has_waits(&self) -> bool {
        let mut cells = self.cells.iter().flatten();
        cells.any(|c| c.times.load(Relaxed) > 0)
    }

    /// Every line, also those without a wait.
    pub fn rows(&self) -> impl Iterator<Item = StallRow> + '_ {
        StallCause::ALL.into_iter().flat_map(move |cause| {
            StallKind::ALL
                .into_iter()
                .map(move |kind| self.row(cause, kind))
        })
    }

    /// Microseconds of the clock that RocksDB would count as stalled.
    pub fn stalled_us(&self) -> u64 {
        let rows = self.rows().filter(|r| r.kind.is_stall_of(r.cause));
        rows.map(|r| r.stall_us).sum()
    }

    /// Microseconds of all writers, over all causes of a kind.
    pub fn writers_us(&self, kind: StallKind) -> u64 {
        let rows = self.rows().filter(|r| r.kind == kind);
        rows.map(|r| r.writers_us).sum()
    }
}

impl StallRow {
    /// The line above [`StallRow::line`]s.
    pub fn header() -> String {
        format!(
            "{:<26} {:<6} {:>10} {:>14} {:>12} {:>14} of",
            "cause", "kind", "times", "us", "us_max", "writers_us"
        )
    }

    /// The line in a table; `of` says whose ledger it is in.
    pub fn line(&self, of: &str) -> String {
        format!(
            "{:<26} {:<6} {:>10} {:>14} {:>12} {:>14} {of}",
            self.cause.name(),
            self.kind.name(),
            self.times,
            self.stall_us,
            self.stall_us_max,
            self.writers_us
        )
    }
}

impl fmt::Display for StallLedger {
    /// One line for each cause that held anybody back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in self.rows().filter(|r| r.times > 0) {
            writeln!(
                f,
                "{}-{}: {} times, {} us, longest {} us",
                row.cause.name(),
                row.kind.name(),
                row.times,
                row.stall_us,
                row.stall_us_max
            )?;
        }
        Ok(())
    }
}

impl fmt::Debug for StallLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.rows().filter(|r| r.times > 0))
            .finish()
    }
}
