//! The slowest operations of the last minutes.

use super::Db;
use crate::core::ReadCore;
use crate::observe::SlowOperation;
use esker_format::FamilyId;
use esker_format::batch::WriteBatch;
use esker_sync::Arc;
use std::time::Duration;

/// While it lives, a database keeps its slowest operations: see [`Db::sample_operations`].
#[derive(Debug)]
#[must_use = "the record ends when this is dropped"]
pub struct OperationSampling {
    reads: Arc<ReadCore>,
    limit: Option<Duration>,
}

impl Drop for OperationSampling {
    fn drop(&mut self) {
        self.reads.operations.unask(self.limit);
    }
}

impl Db {
    /// Keeps the slowest operations, for [`Db::slow_operations`], until what it returns is dropped.
    /// Operations that take longer than `limit` get a line in the LOG, a hundred in five minutes at
    /// most. It does not keep the database open.
    ///
    /// An operation pays for two readings of the processor's time stamps. Iterators are looked at
    /// from their next seek on.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// use esker::observe::OperationKind;
    ///
    /// let sampling = db.sample_operations(Some(std::time::Duration::from_secs(1)));
    /// db.put("k", "v")?;
    /// let slowest = &db.slow_operations()[0];
    /// assert_eq!(slowest.kind, OperationKind::Write);
    /// println!("{:?} in {:?}: {}", slowest.took, slowest.family, slowest.perf_text());
    /// drop(sampling);
    /// assert!(db.slow_operations().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn sample_operations(&self, limit: Option<Duration>) -> OperationSampling {
        let reads = Arc::clone(self.reads());
        reads.operations.ask(limit);
        OperationSampling { reads, limit }
    }

    /// The slowest operations of the last five to ten minutes with what they added to the perf
    /// context of their threads: of each kind 32 at most, the slowest first. Nothing unless
    /// [`Db::sample_operations`] asked for it. The figures of a get and of a seek count from the
    /// first block that it read from a file, or the entries that it passed over.
    ///
    /// A database that is open for reading only counts the minutes when this is called: where
    /// nobody calls it for longer, operations that are quicker than those of before may be missing.
    pub fn slow_operations(&self) -> Vec<SlowOperation> {
        self.reads().operations.slowest()
    }

    /// The family of a batch that touches only one.
    pub(super) fn family_of(&self, batch: &WriteBatch) -> Option<String> {
        let mut found: Option<FamilyId> = None;
        for record in batch.records() {
            let id = record.ok()?.family();
            if found.is_some() && id.is_some() && id != found {
                return None;
            }
            found = found.or(id);
        }
        Some(self.family_by_id(found?.0)?.name().to_owned())
    }
}
