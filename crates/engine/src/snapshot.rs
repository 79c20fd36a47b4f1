//! Snapshots: sequence numbers that compaction must keep readable.
//!
//! A [`Snapshot`] keeps its number in the database's list until it is dropped or released. It is an
//! `Arc` inside, so a clone is the same snapshot; it keeps the list alive, not the database, which
//! it finds again for its own reads.

use crate::observe::DbRef;
use crate::options::{ReadOptions, SnapshotRef};
use crate::ranks;
use esker_format::Seq;
use esker_sync::atomic::{AtomicBool, Ordering};
use esker_sync::{Arc, Mutex};
use std::any::Any;
use std::collections::BTreeMap;

/// The snapshots that are held, by sequence, with how many hold each.
#[derive(Debug)]
pub(crate) struct SnapshotList {
    held: Mutex<BTreeMap<Seq, SnapshotCount>>,
}

#[derive(Debug, Clone, Copy)]
struct SnapshotCount {
    count: usize,
    taken_unix: u64,
    /// The thread that took the first.
    thread: u64,
}

/// A sequence that snapshots hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldSnapshot {
    pub(crate) seq: Seq,
    /// Seconds since the Unix epoch.
    pub(crate) taken_unix: u64,
    /// The thread that took it, as the system numbers it.
    pub(crate) thread: u64,
}

impl SnapshotList {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(SnapshotList {
            held: Mutex::new(ranks::SNAPSHOTS, BTreeMap::new()),
        })
    }

    /// Holds the sequence that `latest` gives; it is asked under the list's lock, so that a
    /// compaction that lists the snapshots afterwards cannot miss this one.
    pub(crate) fn take(
        self: &Arc<Self>,
        home: SnapshotSource,
        unix: u64,
        latest: impl FnOnce() -> Seq,
    ) -> Snapshot {
        let thread = esker_env::thread_id();
        let mut held = self.held.lock();
        let seq = latest();
        held.entry(seq)
            .or_insert(SnapshotCount {
                count: 0,
                taken_unix: unix,
                thread,
            })
            .count += 1;
        Snapshot(Arc::new(SnapshotInner {
            seq,
            list: Arc::clone(self),
            home,
            released: AtomicBool::new(false),
        }))
    }

    /// The sequences held, ascending, without repeats.
    pub(crate) fn sequences(&self) -> Vec<Seq> {
        self.held.lock().keys().copied().collect()
    }

    /// The snapshots, the oldest first.
    pub(crate) fn held(&self) -> Vec<HeldSnapshot> {
        let held = self.held.lock();
        let each = held.iter().map(|(seq, held)| HeldSnapshot {
            seq: *seq,
            taken_unix: held.taken_unix,
            thread: held.thread,
        });
        each.collect()
    }

    /// How many snapshots are held.
    pub(crate) fn count(&self) -> usize {
        self.held.lock().values().map(|h| h.count).sum()
    }

    /// The oldest snapshot: its sequence and when it was taken (seconds since the Unix epoch).
    pub(crate) fn oldest(&self) -> Option<(Seq, u64)> {
        self.held
            .lock()
            .first_key_value()
            .map(|(s, h)| (*s, h.taken_unix))
    }

    fn release(&self, seq: Seq) {
        let mut held = self.held.lock();
        if let Some(h) = held.get_mut(&seq) {
            h.count -= 1;
            if h.count == 0 {
                held.remove(&seq);
            }
        }
    }
}

/// The database of a snapshot, and its part that reads share, which `core` knows.
pub(crate) struct SnapshotSource {
    db: DbRef,
    reads: Arc<dyn Any + Send + Sync>,
}

impl SnapshotSource {
    pub(crate) fn new(db: DbRef, reads: Arc<dyn Any + Send + Sync>) -> Self {
        SnapshotSource { db, reads }
    }

    pub(crate) fn db(&self) -> &DbRef {
        &self.db
    }

    /// The part that reads share, which outlives the database.
    pub(crate) fn reads(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::clone(&self.reads)
    }
}

struct SnapshotInner {
    seq: Seq,
    list: Arc<SnapshotList>,
    home: SnapshotSource,
    released: AtomicBool,
}

impl SnapshotInner {
    fn release(&self) {
        if !self.released.swap(true, Ordering::AcqRel) {
            self.list.release(self.seq);
        }
    }
}

impl Drop for SnapshotInner {
    fn drop(&mut self) {
        self.release();
    }
}

/// A state of the database that stays readable until every clone of this value is dropped, or one
/// is released.
///
/// It reads by itself, or goes with the reads of [`crate::Db`] that take one. It does not keep the
/// database open.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
/// db.put("a", "1")?;
/// let before = db.snapshot();
/// db.put("b", "2")?;
/// assert_eq!(before.iter().keys().count(), 1);
/// assert_eq!(db.iter().keys().count(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Snapshot(Arc<SnapshotInner>);

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("sequence", &self.sequence())
            .finish_non_exhaustive()
    }
}

impl Snapshot {
    /// The sequence number of the newest write that the snapshot sees.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// let snapshot = db.snapshot();
    /// assert_eq!(snapshot.sequence(), db.latest_sequence_number());
    /// # Ok(())
    /// # }
    /// ```
    pub fn sequence(&self) -> u64 {
        self.0.seq.0
    }

    /// Gives the state back now, whatever clones there are: reads of it fail from here on.
    /// Iterators that were made of it go on.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let snapshot = db.snapshot();
    /// let clone = snapshot.clone();
    /// snapshot.release();
    /// assert!(clone.get("key").is_err(), "its state may be gone");
    /// # Ok(())
    /// # }
    /// ```
    pub fn release(&self) {
        self.0.release();
    }

    /// Returns whether [`Snapshot::release`] was called.
    pub(crate) fn is_released(&self) -> bool {
        self.0.released.load(Ordering::Acquire)
    }

    /// The snapshot that options name.
    #[inline]
    pub(crate) fn of(options: &ReadOptions) -> Option<Snapshot> {
        let named = options.snapshot.as_ref()?;
        named.inner().downcast().ok().map(Snapshot)
    }

    /// The database that it was taken of.
    pub(crate) fn home(&self) -> &SnapshotSource {
        &self.0.home
    }

    pub(crate) fn seq(&self) -> Seq {
        self.0.seq
    }
}

impl From<&Snapshot> for SnapshotRef {
    fn from(snapshot: &Snapshot) -> SnapshotRef {
        SnapshotRef::new(Arc::clone(&snapshot.0) as _)
    }
}
