//! How a [`crate::TransactionDb`] and its transactions work, by RocksDB's names.

use super::lock_wait::LockWaitHook;
use std::sync::Arc;
use std::time::Duration;

/// How long a lock is waited for: a [`Duration`], or RocksDB's milliseconds.
///
/// ```
/// use esker_txn::LockTimeout;
/// use std::time::Duration;
///
/// assert_eq!(LockTimeout::from(Duration::from_secs(2)), LockTimeout::from(2000));
/// assert_eq!(LockTimeout::from(None), LockTimeout::FOREVER);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockTimeout(i64);

impl LockTimeout {
    /// Until it is free.
    pub const FOREVER: LockTimeout = LockTimeout(-1);

    /// RocksDB's number of milliseconds; negative for ever.
    pub fn milliseconds(self) -> i64 {
        self.0
    }
}

impl From<i64> for LockTimeout {
    fn from(ms: i64) -> Self {
        LockTimeout(ms)
    }
}

impl From<Duration> for LockTimeout {
    /// Rounded up to milliseconds.
    fn from(time: Duration) -> Self {
        let ms = time.as_micros().div_ceil(1000);
        i64::try_from(ms).map_or(Self::FOREVER, LockTimeout)
    }
}

impl From<Option<Duration>> for LockTimeout {
    fn from(time: Option<Duration>) -> Self {
        time.map_or(Self::FOREVER, Self::from)
    }
}

/// When the changes of a transaction go to the database.
///
/// All policies behave as [`WritePolicy::Committed`] here: changes go to the log and to memory when
/// the transaction commits. The others differ in RocksDB by when they write, not by what is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WritePolicy {
    /// When it commits.
    #[default]
    Committed = 0,
    /// When it is prepared.
    Prepared = 1,
    /// Before it is prepared.
    Unprepared = 2,
}

/// How a [`crate::TransactionDb`] works.
#[derive(Clone, Debug)]
pub struct TransactionDbOptions {
    /// Most keys that may be locked in one family; no limit unless positive.
    pub max_num_locks: i64,
    /// How many deadlocks are remembered.
    pub max_num_deadlocks: u32,
    /// Parts of each family's lock table with a lock of their own; at least one.
    pub num_stripes: usize,
    /// Milliseconds that a transaction waits for a lock unless it says otherwise; 0 for not at all,
    /// negative for ever.
    pub transaction_lock_timeout: i64,
    /// Milliseconds that writes past the transactions wait for a lock.
    pub default_lock_timeout: i64,
    /// When changes go to the database.
    pub write_policy: WritePolicy,
    /// Writes past the transactions take no locks.
    pub skip_concurrency_control: bool,
    /// Without effect: merge operands are never rolled back one by one.
    pub rollback_merge_operands: bool,
    /// Without effect: those who wait for a lock always queue up by key.
    pub use_per_key_point_lock_mgr: bool,
    /// Without effect: changes are never written before the commit.
    pub default_write_batch_flush_threshold: i64,
    /// In families with timestamps, keys that were written at a later timestamp than the
    /// transaction reads at are conflicts; reads for update need
    /// [`crate::Transaction::set_read_timestamp_for_validation`] then.
    pub enable_udt_validation: bool,
    /// Without effect, as in RocksDB.
    pub txn_commit_bypass_memtable_threshold: u32,
    /// Carries out the waits for row locks, and can end them; `None` for waits that end with the
    /// lock or with their time.
    pub lock_waits: Option<Arc<dyn LockWaitHook>>,
}

impl TransactionDbOptions {
    /// How long transactions, and writes past them, wait for a lock unless they say otherwise.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let options = esker_txn::TransactionDbOptions::default().lock_timeout(Duration::ZERO);
    /// assert_eq!(options.transaction_lock_timeout, 0);
    /// ```
    #[must_use]
    pub fn lock_timeout(mut self, time: impl Into<LockTimeout>) -> Self {
        let ms = time.into().milliseconds();
        (self.transaction_lock_timeout, self.default_lock_timeout) = (ms, ms);
        self
    }
}

impl Default for TransactionDbOptions {
    fn default() -> Self {
        TransactionDbOptions {
            max_num_locks: -1,
            max_num_deadlocks: 5,
            num_stripes: 16,
            transaction_lock_timeout: 1000,
            default_lock_timeout: 1000,
            write_policy: WritePolicy::Committed,
            skip_concurrency_control: false,
            rollback_merge_operands: false,
            use_per_key_point_lock_mgr: false,
            default_write_batch_flush_threshold: 0,
            enable_udt_validation: true,
            txn_commit_bypass_memtable_threshold: u32::MAX,
            lock_waits: None,
        }
    }
}

/// How a pessimistic transaction works.
#[derive(Clone, Debug)]
pub struct TransactionOptions {
    /// Takes a snapshot at once.
    pub set_snapshot: bool,
    /// Looks for a ring of waits before it waits for a lock, and fails with `Busy` instead.
    pub deadlock_detect: bool,
    /// Milliseconds that a lock is waited for; 0 for not at all, negative for the database's
    /// setting.
    pub lock_timeout: i64,
    /// Without effect: rings of waits are looked for at once.
    pub deadlock_timeout_us: i64,
    /// Milliseconds after which the transaction cannot commit and others may take its locks;
    /// negative for never.
    pub expiration: i64,
    /// How many transactions are looked at in the search for a ring.
    pub deadlock_detect_depth: i64,
    /// Most bytes of changes; 0 for no limit.
    pub max_write_batch_size: usize,
    /// Takes no locks.
    pub skip_concurrency_control: bool,
    /// May commit without having been prepared.
    pub skip_prepare: bool,
    /// Without effect: changes are never written before the commit.
    pub write_batch_flush_threshold: i64,
    /// The commit-time batch is the latest state of the application, which it reads when it starts:
    /// under a [`WritePolicy`] other than `Committed` the batch is refused without this. Here it
    /// can be read from the commit on under every policy.
    pub use_only_the_last_commit_time_batch_for_recovery: bool,
    /// Without effect: a transaction always knows which families have timestamps.
    pub write_batch_track_timestamp_size: bool,
    /// Without effect: commits always go through the memtable.
    pub commit_bypass_memtable: bool,
    /// Without effect, as above.
    pub large_txn_commit_optimize_threshold: u32,
    /// Without effect, as above.
    pub large_txn_commit_optimize_byte_threshold: u64,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        TransactionOptions {
            set_snapshot: false,
            deadlock_detect: false,
            lock_timeout: -1,
            deadlock_timeout_us: 500,
            expiration: -1,
            deadlock_detect_depth: 50,
            max_write_batch_size: 0,
            skip_concurrency_control: false,
            skip_prepare: true,
            write_batch_flush_threshold: -1,
            use_only_the_last_commit_time_batch_for_recovery: false,
            write_batch_track_timestamp_size: false,
            commit_bypass_memtable: false,
            large_txn_commit_optimize_threshold: 0,
            large_txn_commit_optimize_byte_threshold: 0,
        }
    }
}
