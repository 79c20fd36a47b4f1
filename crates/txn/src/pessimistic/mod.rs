//! Pessimistic transactions: every key that is written, or read for update, is locked at once.
//!
//! Writes past the transactions lock their keys too, for as long as they take, so they can neither
//! overwrite what a transaction holds nor slip in between. A transaction with a snapshot also
//! looks, when it locks a key, whether others wrote it since. The database may be shared by
//! threads; a transaction is used by one at a time.

mod lock_wait;
mod locks;
mod options;
mod row_lock;
mod shared;
mod waits;

pub use lock_wait::{LockWait, LockWaitEnd, LockWaitHook};
pub use locks::KeyLock;
pub use options::{LockTimeout, TransactionDbOptions, TransactionOptions, WritePolicy};
pub use waits::{DeadlockInfo, DeadlockPath};

use crate::errors;
use crate::state::TransactionState;
use crate::touch::{Access, AccessedKey, SnapshotFields};
use crate::tracked::{KeyInfo, TrackedKeys};
use esker::{Db, Error, ErrorKind, LatestWrite, Result};
use esker_sync::Arc;
use esker_sync::atomic::{AtomicU8, AtomicU64, Ordering};
pub(crate) use locks::LockTable;
pub(crate) use row_lock::Request;
pub(crate) use shared::{PreparedTransaction, TransactionDbState};

/// Numbers of transactions: unique in the process.
pub(crate) static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// A transaction as the lock table identifies it.
#[derive(Debug)]
struct Ticket {
    id: u64,
    /// When it expires, by the clock; 0 for never.
    expires_us: u64,
    /// A [`TransactionState`]: others may change it, to take the locks of an expired transaction.
    state: Arc<AtomicU8>,
}

impl Ticket {
    fn state(&self) -> TransactionState {
        TransactionState::from_u8(self.state.load(Ordering::Acquire))
    }

    fn set(&self, state: TransactionState) {
        self.state.store(state as u8, Ordering::Release);
    }
}

/// The versions that a key may conflict with.
#[derive(Clone, Copy)]
struct ConflictCheck {
    /// The sequence of the transaction's snapshot.
    snapshot: Option<u64>,
    /// The timestamp that it reads at, in a family with timestamps.
    read_at: Option<u64>,
}

impl ConflictCheck {
    fn is_any(self) -> bool {
        self.snapshot.is_some() || self.read_at.is_some()
    }
}

/// The part of a transaction that is pessimistic.
#[derive(Debug)]
pub(crate) struct Pessimistic {
    shared: Arc<TransactionDbState>,
    ticket: Ticket,
    request: Request,
    skip_concurrency_control: bool,
    skip_prepare: bool,
    /// Its commit-time batch is the latest state of the application.
    has_recovery_batch: bool,
    name: Vec<u8>,
    /// It stands in the register of names.
    registered: bool,
    /// It was prepared before the database was opened and takes its keys back. Those that it had
    /// not locked may be locked by another such transaction: it goes on without them.
    is_restoring: bool,
}

/// The time that a transaction with these options waits for a row lock.
fn lock_timeout_us(shared: &TransactionDbState, options: &TransactionOptions) -> i64 {
    let timeout_ms = match options.lock_timeout {
        t if t < 0 => shared.options.transaction_lock_timeout,
        t => t,
    };
    timeout_ms.saturating_mul(1000)
}

impl Pessimistic {
    pub(crate) fn new(shared: &Arc<TransactionDbState>, options: &TransactionOptions) -> Self {
        Self::with_id(shared, options, NEXT_ID.fetch_add(1, Ordering::Relaxed))
    }

    /// A transaction that was prepared before the database was opened.
    pub(crate) fn found(shared: &Arc<TransactionDbState>, name: Vec<u8>, id: u64) -> Self {
        let mut found = Self::with_id(shared, &TransactionOptions::default(), id);
        found.name = name;
        found.registered = true;
        found.is_restoring = true;
        found.request.timeout_us = 0;
        found
    }

    /// Ends the restoration: it locks as others do, and is prepared.
    pub(crate) fn end_restoration(&mut self) {
        self.is_restoring = false;
        self.request.timeout_us = lock_timeout_us(&self.shared, &TransactionOptions::default());
        self.end_prepare(true);
    }

    fn with_id(shared: &Arc<TransactionDbState>, options: &TransactionOptions, id: u64) -> Self {
        let expires_us = match u64::try_from(options.expiration) {
            Ok(ms) => shared
                .db
                .env()
                .clock
                .now_us()
                .saturating_add(ms.saturating_mul(1000))
                .max(1),
            Err(_) => 0,
        };
        let ticket = Ticket {
            id,
            expires_us,
            state: Arc::new(AtomicU8::new(TransactionState::Started as u8)),
        };
        if expires_us > 0 {
            shared.locks.add_expirable(id, &ticket.state);
        }
        let depth = usize::try_from(options.deadlock_detect_depth).unwrap_or(0);
        let request = Request {
            transaction: id,
            expires_us,
            timeout_us: lock_timeout_us(shared, options),
            detect_depth: options.deadlock_detect.then_some(depth),
        };
        Pessimistic {
            shared: Arc::clone(shared),
            ticket,
            request,
            skip_concurrency_control: options.skip_concurrency_control,
            skip_prepare: options.skip_prepare,
            has_recovery_batch: options.use_only_the_last_commit_time_batch_for_recovery,
            name: Vec::new(),
            registered: false,
            is_restoring: false,
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.ticket.id
    }

    pub(crate) fn state(&self) -> TransactionState {
        self.ticket.state()
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    pub(crate) fn set_lock_timeout(&mut self, ms: i64) {
        self.request.timeout_us = ms.saturating_mul(1000);
    }

    pub(crate) fn set_name(&mut self, name: &[u8]) -> Result<()> {
        if self.state() != TransactionState::Started {
            return Err(Error::invalid_argument(
                "Transaction is beyond state for naming.",
            ));
        }
        if !self.name.is_empty() {
            return Err(Error::invalid_argument(
                "Transaction has already been named.",
            ));
        }
        if name.is_empty() || name.len() > 512 {
            return Err(Error::invalid_argument(
                "Transaction name length must be between 1 and 512 chars.",
            ));
        }
        self.shared.register(name, self.ticket.id)?;
        self.name = name.to_vec();
        self.registered = true;
        Ok(())
    }

    fn unregister(&mut self) {
        if std::mem::take(&mut self.registered) {
            self.shared.unregister(&self.name);
        }
    }

    /// Takes it out of every register; its locks are given back before.
    pub(crate) fn end(&mut self) {
        self.unregister();
        if self.ticket.expires_us > 0 {
            self.shared.locks.remove_expirable(self.ticket.id);
        }
    }

    pub(crate) fn unlock(&self, keys: &TrackedKeys) {
        self.shared.locks.unlock_all(self.ticket.id, keys);
    }

    pub(crate) fn unlock_key(&self, family: u32, key: &[u8]) {
        self.shared.locks.unlock(self.ticket.id, family, key);
    }

    /// Locks a key. Returns the sequence from which on the key is known not to have changed; `None`
    /// when there is nothing to take note of.
    pub(crate) fn touch(
        &self,
        db: &Db,
        snapshot: &mut SnapshotFields,
        tracked: &TrackedKeys,
        AccessedKey { family, key }: AccessedKey<'_>,
        touch: Access,
        read_at: Option<u64>,
    ) -> Result<Option<u64>> {
        if self.skip_concurrency_control {
            return Ok(None);
        }
        let known = tracked.get(family.id(), key);
        if touch.assume_tracked && known.is_none() {
            return Err(Error::invalid_argument(
                "assume_tracked is set but it is not tracked yet",
            ));
        }
        let is_upgrade = known.is_some_and(|k| touch.exclusive && !k.exclusive);
        let locks = &self.shared.locks;
        if known.is_none() || is_upgrade {
            match locks.lock(&self.request, family.id(), key, touch.exclusive) {
                Err(e) if self.is_restoring && e.kind() == ErrorKind::TimedOut => return Ok(None),
                locked => locked?,
            }
        }
        snapshot.take_if_wanted(db);
        let against = ConflictCheck {
            snapshot: snapshot.sequence(),
            read_at,
        };
        let seq = if touch.validate && against.is_any() {
            match self.validate(db, AccessedKey { family, key }, known, against) {
                Ok(seq) => seq,
                Err(e) => {
                    if is_upgrade {
                        // Back to the shared lock: it is held alone, so nothing stands against it.
                        locks.lock(&self.request, family.id(), key, false)?;
                    } else if known.is_none() {
                        locks.unlock(self.ticket.id, family.id(), key);
                    }
                    return Err(e);
                }
            }
        } else {
            match known {
                Some(k) => k.seq,
                None => db.latest_sequence_number(),
            }
        };
        Ok((!touch.assume_tracked).then_some(seq))
    }

    /// `Busy` when others wrote the key after the snapshot, or at a later timestamp.
    fn validate(
        &self,
        db: &Db,
        AccessedKey { family, key }: AccessedKey<'_>,
        known: Option<KeyInfo>,
        against: ConflictCheck,
    ) -> Result<u64> {
        if let (Some(k), Some(since)) = (known, against.snapshot)
            && k.seq <= since
        {
            return Ok(k.seq);
        }
        let since = match against.snapshot {
            Some(since) => since,
            None => db.latest_sequence_number(),
        };
        let read_at = against.read_at.filter(|_| self.validates_timestamps());
        let is_later = |timestamp: &[u8]| {
            let order = family.order();
            read_at.is_some_and(|at| {
                let at = at.to_le_bytes();
                order.compare_timestamp(&at, timestamp).is_lt()
            })
        };
        // A later timestamp may be in a write of any age, in tables too. RocksDB looks no further
        // back than the sequence.
        let back_to = match read_at {
            Some(_) => 0,
            None => since,
        };
        match db.latest_write_of(family, key, back_to, false)? {
            LatestWrite::At(seq) | LatestWrite::AtTimestamp(seq, _) if seq > since => {
                Err(errors::busy())
            }
            LatestWrite::AtTimestamp(_, timestamp) if is_later(&timestamp) => Err(errors::busy()),
            LatestWrite::Unknown(reach) => Err(errors::history_too_short(since, reach)),
            LatestWrite::At(_) | LatestWrite::AtTimestamp(..) | LatestWrite::NoneSince => Ok(since),
        }
    }

    /// Returns whether timestamps of keys count when conflicts are looked for.
    pub(crate) fn validates_timestamps(&self) -> bool {
        self.shared.options.enable_udt_validation
    }

    /// From here on nobody can take its locks, and it does not expire. The caller writes its
    /// section, and says how that went to [`Pessimistic::end_prepare`].
    pub(crate) fn begin_prepare(&mut self) -> Result<()> {
        if self.name.is_empty() {
            return Err(Error::invalid_argument(
                "Cannot prepare a transaction that has not been named.",
            ));
        }
        self.ticket
            .check_not_expired(&*self.shared.db.env().clock)?;
        let (from, to) = (
            TransactionState::Started as u8,
            TransactionState::AwaitingPrepare as u8,
        );
        let order = Ordering::AcqRel;
        let state = &self.ticket.state;
        if state
            .compare_exchange(from, to, order, Ordering::Acquire)
            .is_ok()
        {
            return Ok(());
        }
        let already =
            |what| Error::invalid_argument(format!("Transaction has already been {what}."));
        Err(match self.state() {
            TransactionState::LocksStolen => errors::expired(),
            TransactionState::Prepared => already("prepared"),
            TransactionState::Committed => already("committed"),
            TransactionState::RolledBack => already("rolledback"),
            _ => Error::invalid_argument("Transaction is not in state for commit."),
        })
    }

    /// After the section was written, or was not.
    pub(crate) fn end_prepare(&mut self, written: bool) {
        if !written {
            self.ticket.set(TransactionState::Started);
            return;
        }
        self.ticket.set(TransactionState::Prepared);
        if self.ticket.expires_us > 0 {
            self.shared.locks.remove_expirable(self.ticket.id);
            self.ticket.expires_us = 0;
            self.request.expires_us = 0;
        }
    }

    pub(crate) fn is_prepared(&self) -> bool {
        self.state() == TransactionState::Prepared
    }

    /// After a prepared transaction was undone in the log.
    pub(crate) fn end_rollback(&mut self) {
        self.unregister();
        self.ticket.set(TransactionState::RolledBack);
    }

    /// From here on nobody can take its locks.
    pub(crate) fn begin_commit(&mut self, has_commit_time_batch: bool) -> Result<()> {
        if self.is_prepared() {
            let is_committed = self.shared.options.write_policy == WritePolicy::Committed;
            if has_commit_time_batch && !is_committed && !self.has_recovery_batch {
                return Err(errors::commit_time_batch_of_policy());
            }
            return Ok(());
        }
        self.ticket
            .check_not_expired(&*self.shared.db.env().clock)?;
        let may_commit = self.ticket.expires_us > 0 || self.skip_prepare;
        if has_commit_time_batch && may_commit && self.state() == TransactionState::Started {
            return Err(errors::commit_time_batch());
        }
        if self.ticket.expires_us > 0 {
            let (from, to) = (TransactionState::Started, TransactionState::AwaitingCommit);
            let order = Ordering::AcqRel;
            let state = &self.ticket.state;
            if state
                .compare_exchange(from as u8, to as u8, order, Ordering::Acquire)
                .is_ok()
            {
                return Ok(());
            }
        } else if self.state() == TransactionState::Started {
            if !self.skip_prepare {
                return Err(errors::not_prepared());
            }
            self.ticket.set(TransactionState::AwaitingCommit);
            return Ok(());
        }
        Err(match self.state() {
            TransactionState::LocksStolen => errors::expired(),
            TransactionState::Committed => {
                Error::invalid_argument("Transaction has already been committed.")
            }
            TransactionState::RolledBack => {
                Error::invalid_argument("Transaction has already been rolledback.")
            }
            _ => Error::invalid_argument("Transaction is not in state for commit."),
        })
    }

    /// After the write. The caller clears the transaction, which gives its locks back.
    pub(crate) fn end_commit(&mut self, written: bool) {
        self.unregister();
        if written {
            self.ticket.set(TransactionState::Committed);
        }
    }

    pub(crate) fn check_rollback(&self) -> Result<()> {
        match self.state() {
            TransactionState::Started | TransactionState::Prepared => Ok(()),
            TransactionState::Committed => Err(Error::invalid_argument(
                "This transaction has already been committed.",
            )),
            _ => Err(Error::invalid_argument(
                "Two phase transaction is not in state for rollback.",
            )),
        }
    }
}
