//! The background threads of a database: some that flush, some that compact, and one that deletes
//! files.
//!
//! Writers wait for a flush, sooner or later, and never for one certain compaction. So flushes have
//! threads of their own, and those of compactions are patient
//! ([`esker_env::Executor::spawn_patient`]): where processors are short, a flush ends in a third of
//! the time. Compactions that starve for it slow writers down by the tree's debt, which gives them
//! the processor back. Merges of level 0 are what writers do wait for: those are as urgent as
//! flushes ([`super::high_priority`]).
//!
//! Flushes have twice as many threads as may write at once: a flush whose tables are written waits
//! for the disk, and the next one begins ([`super::flush_ticket`]). While compactions leave theirs
//! unused, twice as many may write, too, unless `max_background_flushes` says how many: writers
//! stand still for a memtable, and no compaction could begin.
//!
//! The alternative that lost: any thread takes any job. Then a flush has the same share as each
//! compaction, and writers stand still for memtables while there is room at level 0.

use super::scheduler::{Duty, worker};
use crate::core::Core;
use crate::options::JobLimits;
use esker_env::JoinHandle;
use esker_status::Result;
use esker_sync::Arc;

/// The threads that were started.
#[derive(Default)]
pub(crate) struct Workers {
    flushing: Vec<Box<dyn JoinHandle>>,
    compacting: Vec<Box<dyn JoinHandle>>,
    deleting: Option<Box<dyn JoinHandle>>,
}

impl Workers {
    /// Starts as many as `limits` allow jobs, and for flushes twice as many. None ends before the
    /// database closes.
    pub(crate) fn grow(&mut self, core: &Arc<Core>, limits: &JobLimits) -> Result<()> {
        while self.flushing.len() < 2 * limits.flushes {
            let (own, name) = (Arc::clone(core), self.flushing.len());
            let body = Box::new(move || worker(&own, Duty::Flush));
            let started = core
                .services
                .env
                .executor
                .spawn(&format!("esker-flush-{name}"), body)?;
            self.flushing.push(started);
        }
        while self.compacting.len() < limits.compactions {
            let (own, name) = (Arc::clone(core), self.compacting.len());
            let body = Box::new(move || worker(&own, Duty::Compact));
            let name = format!("esker-comp-{name}");
            let started = core.services.env.executor.spawn_patient(&name, body)?;
            self.compacting.push(started);
        }
        if self.deleting.is_none() {
            let own = Arc::clone(core);
            let body = Box::new(move || worker(&own, Duty::Delete));
            self.deleting = Some(
                core.services
                    .env
                    .executor
                    .spawn_patient("esker-delete", body)?,
            );
        }
        Ok(())
    }

    /// Waits for all of them. They have been told to end.
    pub(crate) fn join(self) {
        let all = self.flushing.into_iter().chain(self.compacting);
        let all = all.chain(self.deleting);
        all.for_each(|thread| thread.join());
    }
}
