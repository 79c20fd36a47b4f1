//! The order of this crate's locks. All of them are taken before the engine's, whose ranks begin at
//! 10.

use esker_sync::Rank;

/// The records and the index of one [`crate::IndexedBatch`]; held while the batch is written.
pub(crate) const BATCH: Rank = Rank::new(2, "indexed batch");
/// The lock tables of a [`crate::TransactionDb`], by family.
pub(crate) const LOCK_MAPS: Rank = Rank::new(3, "lock maps").brief();
/// One stripe of a lock table.
pub(crate) const STRIPE: Rank = Rank::new(4, "lock stripe").brief();
/// Those who wait for any lock of a stripe to go, where their number is limited.
pub(crate) const AT_LIMIT: Rank = Rank::new(5, "waits at the limit of locks").brief();
/// The transactions that may expire.
pub(crate) const EXPIRABLE: Rank = Rank::new(5, "expirable transactions").brief();
/// The graph of waits.
pub(crate) const WAITS: Rank = Rank::new(6, "lock waits").brief();
/// The transactions that have a name.
pub(crate) const NAMES: Rank = Rank::new(7, "transaction names").brief();
