//! Transactions whose waits for row locks are carried out and ended by the application.
//!
//! An ended wait fails its transaction, which is tried again. What remains of it would show: a
//! waiter left in a queue is handed a lock that nobody gives back. The hook looks at the lock table
//! wherever it is called, as an application may, so it must not be called under a lock of it.

use super::{Stage, check, count_together};
use crate::rng::Rng;
use esker::{Result, WriteOptions};
use esker_sync::{Arc, Condvar, Mutex, Rank};
use esker_txn::{
    LockWait, LockWaitEnd, LockWaitHook, TransactionDb, TransactionDbOptions, TransactionOptions,
};
use std::time::Duration;

/// The rank of the application's locks: they are held under none of the engine's.
const APPLICATION: Rank = Rank::new(1, "application");

/// An application that ends some waits.
#[derive(Debug)]
struct SomeWaits {
    draws: Mutex<Rng>,
    /// None before and after the threads.
    db: Mutex<Option<TransactionDb>>,
}

impl SomeWaits {
    /// Looks at what is locked, which takes the locks of the table.
    fn look(&self) {
        let db = self.db.lock().clone();
        if let Some(db) = db {
            let held = db.lock_status();
            assert!(held.iter().all(|lock| lock.holders.len() < 4), "{held:?}");
        }
    }
}

/// The hook that makes such waits.
#[derive(Debug)]
struct Hook(Arc<SomeWaits>);

/// One wait: how many sleeps it lasts, if it is to end.
struct OneWait {
    of: Arc<SomeWaits>,
    ends_after: Option<u64>,
    state: Mutex<WaitState>,
    changed: Condvar,
}

#[derive(Default)]
struct WaitState {
    is_woken: bool,
    sleeps: u64,
}

impl LockWaitHook for Hook {
    fn begin(&self) -> Box<dyn LockWait> {
        self.0.look();
        let mut draws = self.0.draws.lock();
        let ends_after = draws.one_in(2).then(|| draws.below(3));
        Box::new(OneWait {
            of: Arc::clone(&self.0),
            ends_after,
            state: Mutex::new(APPLICATION, WaitState::default()),
            changed: Condvar::new(),
        })
    }
}

impl LockWait for OneWait {
    fn sleep(&self, timeout: Option<Duration>) -> LockWaitEnd {
        assert!(timeout.is_none(), "no wait has a limit");
        self.of.look();
        let mut state = self.state.lock();
        if self.ends_after == Some(state.sleeps) {
            return LockWaitEnd::Ended;
        }
        state.sleeps += 1;
        while !state.is_woken {
            self.changed.wait(&mut state);
        }
        state.is_woken = false;
        LockWaitEnd::Woken
    }

    fn wake(&self) {
        self.of.look();
        self.state.lock().is_woken = true;
        self.changed.notify_all();
    }
}

impl Drop for OneWait {
    fn drop(&mut self) {
        self.of.look();
    }
}

/// Counters of transactions, some of whose waits the application ends: no update is lost, no lock
/// stays, and nobody waits for ever.
pub(super) fn lock_waits(stage: &Stage) -> Result<()> {
    let db = stage.open()?;
    let mut rng = stage.rng();
    let waits = Arc::new(SomeWaits {
        draws: Mutex::new(APPLICATION, Rng::new(stage.seed ^ 0x5ea7)),
        db: Mutex::new(APPLICATION, None),
    });
    // Only a lock of its stripe wakes one that waits at the limit.
    let is_limited = rng.one_in(4);
    let options = TransactionDbOptions {
        transaction_lock_timeout: -1,
        num_stripes: if is_limited { 1 } else { 1 + rng.index(3) },
        max_num_locks: if is_limited { 1 } else { -1 },
        lock_waits: Some(std::sync::Arc::new(Hook(Arc::clone(&waits)))),
        ..TransactionDbOptions::default()
    };
    let how = TransactionOptions {
        deadlock_detect: rng.one_in(2),
        ..TransactionOptions::default()
    };
    let transactions = TransactionDb::over(db.clone(), options);
    *waits.db.lock() = Some(transactions.clone());
    let begun = transactions.clone();
    let counted = count_together(stage, &db, move || {
        begun.begin_opt(WriteOptions::default(), &how)
    });
    *waits.db.lock() = None;
    counted?;
    let held = transactions.lock_status();
    check(held.is_empty(), "a lock stays that nobody holds")
}
