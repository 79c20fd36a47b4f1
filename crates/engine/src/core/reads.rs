//! State that reads share. A read loads the view of its family, then the sequence number that it
//! reads at; everything else here serves tables, statistics and the modes of opening.

use super::trees::Trees;
use crate::family::{Family, FamilySet, View};
use crate::observe::{InfoLog, OperationRecord, Statistics};
use crate::runtime::BackgroundCv;
use crate::snapshot::{Snapshot, SnapshotList};
use crate::tree::blobs::Blobs;
use crate::tree::{ObsoleteFiles, Tables};
use crate::ttl::Ttls;
use crate::write::sequence::Sequence;
use esker_env::Env;
use esker_format::Seq;
use esker_status::{Error, Result};
use esker_sync::atomic::{AtomicBool, Ordering};
use esker_sync::{Arc, RwLockReadGuard};

/// The part of a database that reads and iterators hold. It does not keep the rest alive, so it
/// has its own references to what it shares with the other parts.
#[derive(Debug)]
pub(crate) struct ReadCore {
    pub(crate) env: Env,
    pub(crate) families: Arc<FamilySet>,
    pub(crate) sequence: Arc<Sequence>,
    pub(crate) snapshots: Arc<SnapshotList>,
    pub(crate) tables: Arc<Tables>,
    pub(crate) blobs: Arc<Blobs>,
    /// An iterator that ends may have been the last user of some of them.
    pub(crate) obsolete_files: Arc<ObsoleteFiles>,
    /// Notified then.
    pub(crate) background_cv: Arc<BackgroundCv>,
    pub(crate) statistics: Option<Arc<Statistics>>,
    /// The slowest operations, reads and writes.
    pub(crate) operations: OperationRecord,
    pub(crate) info_log: Arc<InfoLog>,
    /// The times to live of the families, when values have the time of their writing behind them.
    pub(crate) ttl: Option<Arc<Ttls>>,
    /// The primary that this database follows, when it is a secondary instance.
    pub(crate) follower: Option<Box<dyn CatchUp>>,
    /// Some write went past the log since the database was opened.
    pub(crate) unlogged: Arc<AtomicBool>,
}

/// The part of a secondary instance that follows its primary.
pub(crate) trait CatchUp: std::fmt::Debug + Send + Sync {
    /// Shows the newest state of the primary. After a failure the state shown before stays.
    fn catch_up(&self, trees: &Trees, sequence: &Sequence) -> Result<()>;
    /// While this is held, all families show the same state of the primary.
    fn hold_state(&self) -> RwLockReadGuard<'_, ()>;
}

impl ReadCore {
    /// The sequence that a read of `view` sees: that of `snapshot`, or the newest. The view is
    /// taken before.
    #[inline]
    pub(crate) fn read_seq(&self, view: &View, snapshot: Option<&Snapshot>) -> Result<Seq> {
        match snapshot {
            None => Ok(self.sequence.published().min(view.limit)),
            // A view that was taken before keeps what the snapshot showed; this one may be newer.
            Some(held) if held.is_released() => Err(Error::invalid_argument(
                "the snapshot to read at was released",
            )),
            Some(held) if self.follower.is_none() => Ok(held.seq()),
            // The primary does not know of it, and drops what it would need.
            Some(_) => Err(Error::not_supported(
                "snapshot not supported in secondary mode",
            )),
        }
    }

    /// The views of several families at one moment.
    pub(crate) fn views<'f>(
        &self,
        families: impl IntoIterator<Item = &'f Arc<Family>>,
    ) -> Vec<Arc<View>> {
        let _still = self.follower.as_ref().map(|f| f.hold_state());
        families.into_iter().map(|f| f.view()).collect()
    }

    /// Returns whether some write went past the log since the database was opened.
    pub(crate) fn has_unlogged(&self) -> bool {
        self.unlogged.load(Ordering::Acquire)
    }
}
