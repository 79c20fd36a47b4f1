//! State that background work shares: the jobs that run, their limits, and the wake-up of their
//! threads.

use super::long_readers::LongReaderState;
use super::saved_cache::SavedCacheState;
use super::services::Services;
use crate::family::backpressure::admission::Admission;
use crate::family::backpressure::load::FreeJobs;
use crate::registry::Jobs;
use crate::runtime::{BackgroundCv, CompactionAbort, JobLimiter, ResumeBackoff};
use esker_sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use esker_sync::{Arc, Mutex};

/// The state of background work.
#[derive(Debug)]
pub(crate) struct Background {
    pub(crate) services: Arc<Services>,
    /// Jobs let writers in, and their failures keep them out.
    pub(crate) admission: Arc<Admission>,
    pub(crate) cv: Arc<BackgroundCv>,
    pub(crate) jobs: Mutex<Jobs>,
    /// How urgent the most urgent job is that merges yield to and that has no slot, as bits; set
    /// with the lock on `jobs` held.
    pub(crate) slot_wanted: AtomicU64,
    /// State of the thread that deletes files.
    pub(crate) deletion: AtomicU8,
    /// Threads that do what changes left to do beside jobs.
    pub(crate) upkeep: AtomicUsize,
    pub(crate) limiter: JobLimiter,
    pub(crate) resume_backoff: ResumeBackoff,
    /// The request that compactions end.
    pub(crate) compaction_abort: CompactionAbort,
    /// The contents of the block cache that an earlier opening saved.
    pub(crate) saved_cache: SavedCacheState,
    /// The tables are to be opened by a thread of its own.
    pub(crate) opens_tables: AtomicBool,
    /// Looks for readers that keep much from going.
    pub(crate) long_readers: LongReaderState,
    /// When statistics were last written into the LOG, by the clock.
    pub(crate) dumped_us: AtomicU64,
}

impl Background {
    /// How urgent the most urgent job is that waits for the slot of a merge that may yield; 0 for
    /// none.
    pub(crate) fn slot_wanted(&self) -> f64 {
        f64::from_bits(self.slot_wanted.load(Ordering::Relaxed))
    }

    /// Tells the pace of writers whether a memtable that fills up would be flushed at once, and
    /// whether level 0 could be merged at once. To be called whenever a job begins or ends, with
    /// the lock on `jobs` held.
    pub(crate) fn update_free_jobs(&self, jobs: &Jobs) {
        let limits = self.services.options.load().job_limits();
        self.admission.set_free_jobs(FreeJobs {
            flush: jobs.may_flush(&limits),
            compaction: jobs.may_relieve(&limits),
        });
    }
}
