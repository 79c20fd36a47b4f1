//! Services that every part of an open database uses: the environment, the options, logs and
//! statistics.

use crate::health::Health;
use crate::observe::{DbRef, InfoLog, Pending, StallLedger, Statistics};
use crate::options::DbOptions;
use esker_env::Env;
use esker_sync::atomic::{AtomicU64, Ordering};
use esker_sync::{Arc, ArcSwap, OnceLock};
use std::fmt;
use std::path::PathBuf;

/// The services that all parts share. They know nothing of families, tables or jobs.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) env: Env,
    pub(crate) dir: PathBuf,
    pub(crate) options: ArcSwap<DbOptions>,
    pub(crate) identity: Identity,
    pub(crate) health: Arc<Health>,
    pub(crate) statistics: Option<Arc<Statistics>>,
    pub(crate) info_log: Arc<InfoLog>,
    /// Time that writers were held back, over all families.
    pub(crate) stalls: Arc<StallLedger>,
    /// Events that wait for a thread without locks.
    pub(crate) pending: Arc<Pending>,
    /// The database, for listeners. Set once it is assembled.
    pub(crate) database: OnceLock<DbRef>,
    /// The newest job's number, for events.
    pub(crate) last_job: AtomicU64,
    /// Plans that were refused since they would have put newer data below older.
    pub(crate) overtaken_plans: AtomicU64,
    /// How often merges gave their slots away for a while, and for how long in all.
    pub(crate) yields: AtomicU64,
    pub(crate) yielded_us: AtomicU64,
}

/// The ids of the database. They are stored in its tables, so that the tables' unique ids can be
/// computed.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// The id in the file IDENTITY.
    pub(crate) db_id: String,
    /// The id of this opening.
    pub(crate) session_id: String,
    /// This machine's name, as the options say.
    pub(crate) host_id: String,
}

impl Services {
    /// This database, for listeners.
    pub(crate) fn lent(&self) -> DbRef {
        self.database.get().cloned().unwrap_or_default()
    }

    /// Counts a plan that was refused, and tells the LOG why.
    pub(crate) fn note_overtaken(&self, family: &str, why: &dyn fmt::Display) {
        self.overtaken_plans.fetch_add(1, Ordering::Relaxed);
        self.info_log.warn(format_args!(
            "[{family}] a compaction is planned anew: {why}"
        ));
    }

    /// Counts a merge that gave its slot away for so long.
    pub(crate) fn note_yield(&self, us: u64) {
        self.yields.fetch_add(1, Ordering::Relaxed);
        self.yielded_us.fetch_add(us, Ordering::Relaxed);
    }

    /// The number of a new job.
    pub(crate) fn next_job(&self) -> u64 {
        self.last_job.fetch_add(1, Ordering::Relaxed) + 1
    }
}
