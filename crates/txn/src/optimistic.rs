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
use crate::transaction::{Kind, SnapshotFields, Touch, Tracked, Transaction};
use esker::codec::hash::hash64;
use esker::{
    Db, Error, FamilyDescriptor, FamilyHandle, LatestWrite, Options, Result, WriteBatch,
    WriteOptions,
};
use esker_status::seeded::{Bug, seeded};
use esker_sync::Arc;
use parking_lot::Mutex;
use std::path::Path;

/// How commits are kept apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValidatePolicy {
    /// One after the other, inside the engine's write.
    Serial = 0,
    /// By locks on buckets of keys.
    #[default]
    Parallel = 1,
}

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

/// How an [`OptimisticTransactionDb`] works.
#[derive(Clone, Debug)]
pub struct OptimisticTransactionDbOptions {
    /// How commits are kept apart.
    pub validate_policy: ValidatePolicy,
    /// How many buckets there are with parallel validation; at least 16.
    pub occ_lock_buckets: u32,
    /// Buckets that are shared with other databases, instead of own ones.
    pub shared_lock_buckets: Option<LockBuckets>,
}

impl Default for OptimisticTransactionDbOptions {
    fn default() -> Self {
        OptimisticTransactionDbOptions {
            validate_policy: ValidatePolicy::Parallel,
            occ_lock_buckets: 1 << 20,
            shared_lock_buckets: None,
        }
    }
}

/// How an optimistic transaction begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OptimisticTransactionOptions {
    /// Takes a snapshot at once: a key that others write after the beginning is a conflict.
    pub set_snapshot: bool,
}

/// A database with optimistic transactions. Cheap to clone: clones are the same database.
#[derive(Clone, Debug)]
pub struct OptimisticTransactionDb {
    db: Db,
    /// `None` with serial validation.
    buckets: Option<LockBuckets>,
}

/// Flushed memtables stay for the look for conflicts, unless the options say how many.
pub(crate) fn keep_history(mut families: Vec<FamilyDescriptor>) -> Vec<FamilyDescriptor> {
    for family in &mut families {
        if family.options.max_write_buffer_size_to_maintain == 0 {
            family.options.max_write_buffer_size_to_maintain = -1;
        }
    }
    families
}

impl OptimisticTransactionDb {
    /// Opens the database at `path` with the default family.
    pub fn open(path: impl AsRef<Path>, mut options: Options) -> Result<Self> {
        if options.family.max_write_buffer_size_to_maintain == 0 {
            options.family.max_write_buffer_size_to_maintain = -1;
        }
        Ok(Self::over(Db::open(path, options)?, &Default::default()))
    }

    /// Opens the database at `path` with these families.
    pub fn open_families(
        path: impl AsRef<Path>,
        options: Options,
        families: Vec<FamilyDescriptor>,
        transactions: &OptimisticTransactionDbOptions,
    ) -> Result<Self> {
        let db = Db::open_families(path, options, keep_history(families))?;
        Ok(Self::over(db, transactions))
    }

    /// Puts transactions on an open database. With `max_write_buffer_size_to_maintain` at 0 in a
    /// family, a flush makes commits that began before it fail with `TryAgain`.
    pub fn over(db: Db, options: &OptimisticTransactionDbOptions) -> Self {
        let buckets = match options.validate_policy {
            ValidatePolicy::Serial => None,
            ValidatePolicy::Parallel => {
                let own = || LockBuckets::new(options.occ_lock_buckets.max(16) as usize, false);
                Some(options.shared_lock_buckets.clone().unwrap_or_else(own))
            }
        };
        OptimisticTransactionDb { db, buckets }
    }

    /// The database under it. What is written to it directly is a conflict for transactions that
    /// touched the key.
    pub fn base(&self) -> &Db {
        &self.db
    }

    /// How commits are kept apart.
    pub fn validate_policy(&self) -> ValidatePolicy {
        match self.buckets {
            Some(_) => ValidatePolicy::Parallel,
            None => ValidatePolicy::Serial,
        }
    }

    /// Creates a family, with the flushed memtables that the look for conflicts needs.
    pub fn create_family(
        &self,
        name: &str,
        mut options: esker::FamilyOptions,
    ) -> Result<FamilyHandle> {
        if options.max_write_buffer_size_to_maintain == 0 {
            options.max_write_buffer_size_to_maintain = -1;
        }
        self.db.create_family(name, options)
    }

    fn kind(&self) -> Kind {
        Kind::Optimistic(Optimistic {
            buckets: self.buckets.clone(),
        })
    }

    /// Begins a transaction.
    pub fn begin(&self) -> Transaction {
        self.begin_opt(
            WriteOptions::default(),
            OptimisticTransactionOptions::default(),
        )
    }

    /// Begins a transaction that writes with `write_options`.
    pub fn begin_opt(
        &self,
        write_options: WriteOptions,
        options: OptimisticTransactionOptions,
    ) -> Transaction {
        let mut txn = Transaction::new(self.db.clone(), self.kind(), write_options);
        if options.set_snapshot {
            txn.set_snapshot();
        }
        txn
    }

    /// Begins a transaction in the memory of an old one, which is undone.
    pub fn begin_again(
        &self,
        old: &mut Transaction,
        write_options: WriteOptions,
        options: OptimisticTransactionOptions,
    ) {
        old.restart(self.db.clone(), self.kind(), write_options);
        if options.set_snapshot {
            old.set_snapshot();
        }
    }

    /// Writes a batch past the transactions. `NotSupported` when it deletes a range: transactions
    /// do not see that their keys are in it.
    pub fn write(&self, batch: &mut WriteBatch, options: &WriteOptions) -> Result<()> {
        if batch.has_delete_range() {
            return Err(Error::not_supported(""));
        }
        self.db.write_opt(batch, options)
    }
}

/// The part of a transaction that is optimistic.
#[derive(Debug)]
pub(crate) struct Optimistic {
    buckets: Option<LockBuckets>,
}

impl Optimistic {
    /// From which sequence on a key that is touched now must stay as it is.
    pub(crate) fn touch(
        &self,
        db: &Db,
        snapshot: &mut SnapshotFields,
        touch: Touch,
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
        tracked: &Tracked,
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
fn look_for_conflicts(db: &Db, tracked: &Tracked) -> Result<()> {
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
