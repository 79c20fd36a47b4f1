//! The ledger of time that writers were held back: how long, how often, why.
//!
//! One ledger for the database, and one for each family. A stalled microsecond is a microsecond of the clock in which
//! at least one writer was held back. It is entered once, under the gravest reason that held any writer at that
//! moment, however many waited: a stop before a delay, and low priority last. So the figures are a share of the time
//! that passed, as RocksDB's are, where one leader waits for its group. They add up: the microseconds of all causes are
//! the database's stalled time and the ticker `rocksdb.stall.micros`, and those that a family caused are in that
//! family's ledger too, so that the families' ledgers and what no family caused make the database's.
//!
//! Held back is who waits for something that is not his own write: for a flush or a compaction of a family that he writes to
//! (stopped), for the rate that its writers share (delayed), for memory of memtables, for his turn as a writer of low priority, or for administration
//! that lets nobody write (an ingestion that is being placed, a log that is locked). A follower in the queue, or whoever waits for the log lock,
//! adds nothing: while the leader is held back that time is entered already, and while the leader works nobody is held
//! back. The work of a write is not a stall either: appends and syncs, a switch of memtables, the wait for others'
//! inserts. A limit on the size of logs makes memtables switch, and holds nobody back by itself.
//!
//! How often, and the longest, go by writer: one wait under one reason counts once, in however many pieces it was
//! slept. The histogram `rocksdb.db.write.stall` has one sample for each of those, so its sum is over writers; the
//! perf context has each thread's own.
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
    /// Nobody may write for a while: an ingestion is being placed, the log is locked.
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
    /// They were slowed down.
    Delay = 0,
    /// They waited.
    Stop = 1,
}

impl StallKind {
    /// Both kinds.
    pub const ALL: [StallKind; 2] = [StallKind::Delay, StallKind::Stop];

    /// RocksDB's name.
    pub fn name(self) -> &'static str {
        match self {
            StallKind::Delay => "delays",
            StallKind::Stop => "stops",
        }
    }
}

#[derive(Default)]
struct Cell {
    us: AtomicU64,
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
    /// The longest wait of one writer, in microseconds.
    pub stall_us_max: u64,
    /// Waits of writers, those under way included.
    pub times: u64,
}

/// Time that writers were held back, by cause and kind.
#[derive(Default)]
pub struct StallLedger {
    cells: [[Cell; 2]; 6],
    /// Waits for level 0 while a compaction of it ran.
    ongoing: [AtomicU64; 2],
}

impl StallLedger {
    /// An empty ledger.
    pub fn new() -> Self {
        Self::default()
    }

    /// Enters one whole wait of one writer, beside which nobody else waited.
    pub fn add(&self, cause: StallCause, kind: StallKind, stall_us: u64) {
        self.begin(cause, kind);
        self.charge(cause, kind, stall_us);
        self.end(cause, kind, stall_us);
    }

    fn cell(&self, cause: StallCause, kind: StallKind) -> &Cell {
        &self.cells[cause as usize][kind as usize]
    }

    /// A writer begins to wait.
    pub(crate) fn begin(&self, cause: StallCause, kind: StallKind) {
        self.cell(cause, kind).times.fetch_add(1, Relaxed);
    }

    /// Time has passed in which writers were held back.
    pub(crate) fn charge(&self, cause: StallCause, kind: StallKind, stall_us: u64) {
        self.cell(cause, kind).us.fetch_add(stall_us, Relaxed);
    }

    /// A writer goes on that has waited so long.
    pub(crate) fn end(&self, cause: StallCause, kind: StallKind, waited_us: u64) {
        self.cell(cause, kind).us_max.fetch_max(waited_us, Relaxed);
    }

    /// Takes note that a wait for level 0 was entered while a compaction of level 0 ran.
    pub fn add_during_compaction(&self, kind: StallKind) {
        self.ongoing[kind as usize].fetch_add(1, Relaxed);
    }

    /// Waits for level 0 while a compaction of it ran.
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
            stall_us_max: cell.us_max.load(Relaxed),
            times: cell.times.load(Relaxed),
        }
    }

    /// Every line, also those without a wait.
    pub fn rows(&self) -> impl Iterator<Item = StallRow> + '_ {
        StallCause::ALL.into_iter().flat_map(move |cause| {
            StallKind::ALL
                .into_iter()
                .map(move |kind| self.row(cause, kind))
        })
    }

    /// Microseconds over all causes of a kind.
    pub fn total_us(&self, kind: StallKind) -> u64 {
        StallCause::ALL
            .into_iter()
            .map(|cause| self.row(cause, kind).stall_us)
            .sum()
    }
}

impl StallRow {
    /// The line above [`StallRow::line`]s.
    pub(crate) fn header() -> String {
        format!(
            "{:<26} {:<6} {:>10} {:>14} {:>12} of",
            "cause", "kind", "times", "us", "us_max"
        )
    }

    /// The line in a table; `of` says whose ledger it is in.
    pub(crate) fn line(&self, of: &str) -> String {
        format!(
            "{:<26} {:<6} {:>10} {:>14} {:>12} {of}",
            self.cause.name(),
            self.kind.name(),
            self.times,
            self.stall_us,
            self.stall_us_max
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
