//! Counts what reading the tables of one family costs; there is one only with statistics.
//!
//! Thread-safety: called by every reading thread; counters are sharded, latencies are relaxed
//! atomics.

use super::{Histogram, HistogramId, Statistics, Ticker};
use esker_env::Clock;
use esker_files::table::{BlockRole, FilterOutcome, TableObserver};
use esker_format::Level;
use esker_sync::Arc;
use std::fmt;

/// Counts into the statistics, and keeps a histogram of read times for each level.
pub struct TableWatch {
    statistics: Arc<Statistics>,
    clock: Arc<dyn Clock>,
    latency: Vec<Histogram>,
}

impl fmt::Debug for TableWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableWatch").finish_non_exhaustive()
    }
}

impl TableWatch {
    /// Counts into `statistics`, for a family of `num_levels` levels.
    pub fn new(statistics: Arc<Statistics>, clock: Arc<dyn Clock>, num_levels: usize) -> Arc<Self> {
        Arc::new(TableWatch {
            statistics,
            clock,
            latency: (0..num_levels).map(|_| Histogram::new()).collect(),
        })
    }

    /// The time that reads took, by level.
    pub fn latencies(&self) -> impl Iterator<Item = (usize, &Histogram)> {
        self.latency.iter().enumerate()
    }
}

impl TableObserver for TableWatch {
    fn cache_lookup(&self, role: BlockRole, found: Option<usize>) {
        let s = &self.statistics;
        let (hit, miss) = match role {
            BlockRole::Data => (Ticker::BlockCacheDataHit, Ticker::BlockCacheDataMiss),
            BlockRole::Index => (Ticker::BlockCacheIndexHit, Ticker::BlockCacheIndexMiss),
            BlockRole::Filter => (Ticker::BlockCacheFilterHit, Ticker::BlockCacheFilterMiss),
        };
        match found {
            Some(bytes) => {
                s.add(Ticker::BlockCacheHit, 1);
                s.add(hit, 1);
                s.add(Ticker::BlockCacheBytesRead, bytes as u64);
            }
            None => {
                s.add(Ticker::BlockCacheMiss, 1);
                s.add(miss, 1);
            }
        }
    }

    fn cache_insert(&self, role: BlockRole, bytes: usize, refused: bool) {
        let s = &self.statistics;
        if refused {
            s.add(Ticker::BlockCacheAddFailures, 1);
            return;
        }
        let (add, inserted) = match role {
            BlockRole::Data => (Ticker::BlockCacheDataAdd, Ticker::BlockCacheDataBytesInsert),
            BlockRole::Index => (
                Ticker::BlockCacheIndexAdd,
                Ticker::BlockCacheIndexBytesInsert,
            ),
            BlockRole::Filter => (
                Ticker::BlockCacheFilterAdd,
                Ticker::BlockCacheFilterBytesInsert,
            ),
        };
        s.add(Ticker::BlockCacheAdd, 1);
        s.add(Ticker::BlockCacheBytesWrite, bytes as u64);
        s.add(add, 1);
        s.add(inserted, bytes as u64);
    }

    fn tier_hit(&self, role: BlockRole) {
        let s = &self.statistics;
        let of_role = match role {
            BlockRole::Data => Ticker::SecondaryCacheDataHits,
            BlockRole::Index => Ticker::SecondaryCacheIndexHits,
            BlockRole::Filter => Ticker::SecondaryCacheFilterHits,
        };
        s.add(Ticker::SecondaryCacheHits, 1);
        s.add(of_role, 1);
        s.add(Ticker::CompressedSecondaryCacheHits, 1);
    }

    fn filter(&self, outcome: FilterOutcome) {
        let s = &self.statistics;
        match outcome {
            FilterOutcome::Useful => s.add(Ticker::BloomFilterUseful, 1),
            FilterOutcome::Positive => s.add(Ticker::BloomFilterFullPositive, 1),
            FilterOutcome::TruePositive => s.add(Ticker::BloomFilterFullTruePositive, 1),
            FilterOutcome::PrefixUseful => {
                s.add(Ticker::BloomFilterPrefixChecked, 1);
                s.add(Ticker::BloomFilterPrefixUseful, 1);
            }
            FilterOutcome::PrefixPositive => s.add(Ticker::BloomFilterPrefixChecked, 1),
            FilterOutcome::PrefixTruePositive => s.add(Ticker::BloomFilterPrefixTruePositive, 1),
        }
    }

    fn now_ns(&self) -> u64 {
        if self.statistics.wants_times() {
            self.clock.now_ns()
        } else {
            0
        }
    }

    fn block_read(&self, level: Level, _role: BlockRole, stored: usize, start_ns: u64) {
        let s = &self.statistics;
        if level.index() + 1 == self.latency.len() {
            s.add(Ticker::LastLevelReadCount, 1);
            s.add(Ticker::LastLevelReadBytes, stored as u64);
        } else {
            s.add(Ticker::NonLastLevelReadCount, 1);
            s.add(Ticker::NonLastLevelReadBytes, stored as u64);
        }
        if start_ns == 0 {
            return;
        }
        let us = self.clock.now_ns().saturating_sub(start_ns) / 1_000;
        s.record(HistogramId::SstReadMicros, us);
        if let Some(h) = self.latency.get(level.index()) {
            h.add(us);
        }
    }

    fn decompressed(&self, stored: usize, raw: usize) {
        let s = &self.statistics;
        s.add(Ticker::NumberBlockDecompressed, 1);
        s.add(Ticker::BytesDecompressedFrom, stored as u64);
        s.add(Ticker::BytesDecompressedTo, raw as u64);
    }
}
