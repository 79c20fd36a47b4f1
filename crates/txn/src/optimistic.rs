//! Optimistic transactions: no locks while they run; at commit each key they touched must be
//! unchanged.
//!
//! With parallel validation a commit takes the locks of its keys' buckets, in rising order so that
//! two commits never wait for each other in a ring, looks for conflicts, writes, and gives the
//! locks back: two transactions with a key in common cannot both look before either has written.
//! With serial validation the look happens inside the engine's write, when no other write is under
//! way, which also shuts out writes past the transactions.
//!
//! The buckets are plain locks without a rank: many are held at once, in an order of their own, and
//! nothing that is taken under them is ever taken around them.

use crate::errors;
use crate::indexed::IndexedBatch;
use crate::touch::{Access, SnapshotFields};
use crate::tracked::TrackedKeys;
use esker::codec::hash::hash64;
use esker::{Db, LatestWrite, Result, WriteOptions};
use esker_status::seeded::{Bug, seeded};
use esker_sync::Arc;
use parking_lot::Mutex;

/// Locks on buckets of keys, for commits that look for conflicts side by side. May be shared by
/// several databases.
#[derive(Clone, Debug)]
pub struct LockBuckets(Arc<Buckets>);

#[derive(Debug)]
enum Buckets {
    Dense(Vec<Mutex<()>>),
    Aligned(Vec<esker_sync::CachePadded<Mutex<()>>>),
}

impl LockBuckets {
    /// This many locks, at least one; `cache_aligned` gives each a cache line of its own.
    pub fn new(count: usize, cache_aligned: bool) -> Self {
        let count = count.max(1);
        LockBuckets(Arc::new(if cache_aligned {
            Buckets::Aligned((0..count).map(|_| Default::default()).collect())
        } else {
            Buckets::Dense((0..count).map(|_| Mutex::new(())).collect())
        }))
    }

    /// How many locks there are.
    pub fn count(&self) -> usize {
        match &*self.0 {
            Buckets::Dense(b) => b.len(),
            Buckets::Aligned(b) => b.len(),
        }
    }

    /// About how many bytes of memory they take.
    pub fn approximate_memory_usage(&self) -> usize {
        size_of::<Self>()
            + match &*self.0 {
                Buckets::Dense(b) => size_of_val(b.as_slice()),
                Buckets::Aligned(b) => size_of_val(b.as_slice()),
            }
    }

    fn get(&self, bucket: usize) -> &Mutex<()> {
        match &*self.0 {
            Buckets::Dense(b) => &b[bucket],
            Buckets::Aligned(b) => &b[bucket],
        }
    }

    fn bucket_of(&self, seed: u64, key: &[u8]) -> usize {
        let mixed = (hash64(key) ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The high half of the product spreads the hash over the buckets.
        ((u128::from(mixed) * self.count() as u128) >> 64) as usize
    }
}

/// The part of a transaction that is optimistic.
#[derive(Debug)]
pub(crate) struct Optimistic {
    /// `None` with serial validation.
    pub(crate) buckets: Option<LockBuckets>,
}

impl Optimistic {
    /// From which sequence on a key that is touched now must stay as it is.
    pub(crate) fn touch(
        &self,
        db: &Db,
        snapshot: &mut SnapshotFields,
        touch: Access,
    ) -> Option<u64> {
        if !touch.validate {
            return None;
        }
        snapshot.take_if_wanted(db);
        let seq = snapshot.sequence();
        Some(seq.unwrap_or_else(|| db.latest_sequence_number()))
    }

    pub(crate) fn commit(
        &self,
        db: &Db,
        tracked: &TrackedKeys,
        batch: &IndexedBatch,
        options: &WriteOptions,
    ) -> Result<()> {
        let Some(buckets) = &self.buckets else {
            let validate = || look_for_conflicts(db, tracked);
            return batch.with_batch_mut(|b| db.write_if(b, options, validate));
        };
        let mut wanted: Vec<usize> = tracked
            .families()
            .iter()
            .flat_map(|f| {
                let seed = u64::from(f.family.id()).wrapping_mul(0xb83c_07fb_c6ce_d699);
                f.keys.keys().map(move |k| buckets.bucket_of(seed, k))
            })
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        let _held: Vec<_> = wanted.iter().map(|b| buckets.get(*b).lock()).collect();
        look_for_conflicts(db, tracked)?;
        batch.write(db, options)
    }
}

/// `Busy` when a key was written after it was touched, `TryAgain` when memory does not tell.
fn look_for_conflicts(db: &Db, tracked: &TrackedKeys) -> Result<()> {
    if seeded(Bug::OptimisticUnchecked) {
        return Ok(());
    }
    for family in tracked.families() {
        for (key, info) in &family.keys {
            match db.latest_write_of(&family.family, key, info.seq, true)? {
                LatestWrite::At(seq) | LatestWrite::AtTimestamp(seq, _) if seq > info.seq => {
                    return Err(errors::busy());
                }
                LatestWrite::At(_) | LatestWrite::AtTimestamp(..) | LatestWrite::NoneSince => {}
                LatestWrite::Unknown(reach) => {
                    return Err(errors::history_too_short(info.seq, reach));
                }
            }
        }
    }
    Ok(())
}
