//! The order of the engine's locks. `docs/locks.md` explains each; a lower rank is taken first.

use esker_sync::Rank;

/// Serialises administration: families created and dropped, options changed, the database closed.
pub(crate) const ADMIN: Rank = Rank::new(10, "admin");
/// How far a secondary instance has followed its primary.
pub(crate) const FOLLOW: Rank = Rank::new(12, "follow");
/// The file with the names of cached blocks.
pub(crate) const SAVED_CACHE: Rank = Rank::new(15, "saved cache");
/// The write-ahead log and the right to switch memtables.
pub(crate) const LOG: Rank = Rank::new(20, "log").without_long_work();
/// A log that takes no more records and is not synced yet.
pub(crate) const OLD_LOG: Rank = Rank::new(22, "old log");
/// The writers that wait for [`LOG`].
pub(crate) const WRITE_QUEUE: Rank = Rank::new(25, "write queue").brief();
/// The MANIFEST and the tree of every family.
pub(crate) const STORE: Rank = Rank::new(30, "store");
/// Held while a secondary instance shows a newer state of all its families.
pub(crate) const PUBLISH: Rank = Rank::new(35, "publish").without_waits();
/// The change of one family's view.
pub(crate) const VIEW: Rank = Rank::new(40, "view").brief();
/// The background work that waits or runs.
pub(crate) const SCHEDULER: Rank = Rank::new(50, "scheduler").without_waits();
/// The snapshots that are held.
pub(crate) const SNAPSHOTS: Rank = Rank::new(52, "snapshots").brief();
/// The computation of the state of one family's gate.
pub(crate) const GATE: Rank = Rank::new(58, "gate").brief();
/// Why the database is not healthy.
pub(crate) const HEALTH: Rank = Rank::new(60, "health").brief();
/// Files are being deleted.
pub(crate) const PURGE: Rank = Rank::new(62, "purge");
/// A file is put in the place of one without readers.
pub(crate) const RECYCLE: Rank = Rank::new(63, "recycle");
/// Files that wait for their last reader before they are deleted.
pub(crate) const OBSOLETE: Rank = Rank::new(65, "obsolete files").brief();
