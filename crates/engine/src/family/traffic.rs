//! What flushes and compactions of a family moved: for write amplification and the compaction table.

use esker_format::Level;
use esker_sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Most levels a family can have.
const LEVELS: usize = 64;

/// Counters by output level; all since the database was opened.
#[derive(Debug)]
pub(crate) struct Traffic {
    levels: [LevelTraffic; LEVELS],
    flush: LevelTraffic,
}

/// The work that went into one level.
#[derive(Debug, Default)]
pub(crate) struct LevelTraffic {
    pub(crate) bytes_read: AtomicU64,
    pub(crate) bytes_written: AtomicU64,
    pub(crate) micros: AtomicU64,
    pub(crate) jobs: AtomicU64,
}

impl Default for Traffic {
    fn default() -> Self {
        Traffic {
            levels: std::array::from_fn(|_| LevelTraffic::default()),
            flush: LevelTraffic::default(),
        }
    }
}

impl LevelTraffic {
    fn add(&self, read: u64, written: u64, micros: u64) {
        self.bytes_read.fetch_add(read, Relaxed);
        self.bytes_written.fetch_add(written, Relaxed);
        self.micros.fetch_add(micros, Relaxed);
        self.jobs.fetch_add(1, Relaxed);
    }
}

impl Traffic {
    pub(crate) fn flushed(&self, written: u64, micros: u64) {
        self.flush.add(0, written, micros);
    }

    pub(crate) fn compacted(&self, level: Level, read: u64, written: u64, micros: u64) {
        if let Some(l) = self.levels.get(level.index()) {
            l.add(read, written, micros);
        }
    }

    pub(crate) fn flush(&self) -> &LevelTraffic {
        &self.flush
    }

    /// Compactions into `level`; all zero for a level that cannot be.
    pub(crate) fn level(&self, level: Level) -> &LevelTraffic {
        &self.levels[level.index().min(LEVELS - 1)]
    }

    /// Bytes that compactions wrote, over all levels.
    pub(crate) fn compaction_bytes_written(&self) -> u64 {
        self.levels
            .iter()
            .map(|l| l.bytes_written.load(Relaxed))
            .sum()
    }
}
