//! The ledger of time that writers were held back: how long, how often, why.
//!
//! One ledger per family, and one for what concerns the whole database. Thread-safety: atomics; each
//! figure is exact, and figures read together may be a moment apart.

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
    /// The logs together are too large.
    WalLimit = 5,
}

impl StallCause {
    /// Every cause.
    pub const ALL: [StallCause; 6] = [
        StallCause::MemtableLimit,
        StallCause::L0FileCountLimit,
        StallCause::PendingCompactionBytes,
        StallCause::WriteBufferManagerLimit,
        StallCause::LowPriority,
        StallCause::WalLimit,
    ];

    /// RocksDB's name, as its stall statistics print it.
    pub fn name(self) -> &'static str {
        match self {
            StallCause::MemtableLimit => "memtable-limit",
            StallCause::L0FileCountLimit => "l0-file-count-limit",
            StallCause::PendingCompactionBytes => "pending-compaction-bytes",
            StallCause::WriteBufferManagerLimit => "write-buffer-manager-limit",
            StallCause::LowPriority => "low-priority",
            StallCause::WalLimit => "wal-limit",
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
    /// Microseconds in all, summed over the writers that waited.
    pub stall_us: u64,
    /// The longest single wait, in microseconds.
    pub stall_us_max: u64,
    /// How often.
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

    /// Enters one wait.
    pub fn add(&self, cause: StallCause, kind: StallKind, stall_us: u64) {
        let cell = &self.cells[cause as usize][kind as usize];
        cell.us.fetch_add(stall_us, Relaxed);
        cell.us_max.fetch_max(stall_us, Relaxed);
        cell.times.fetch_add(1, Relaxed);
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
        let cell = &self.cells[cause as usize][kind as usize];
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
