//! Waits for row locks that the application carries out and ends, and the list of who waits.

use esker::{ErrorKind, Options, Result, Subcode, WriteOptions};
use esker_txn::{
    LockWait, LockWaitEnd, LockWaitHook, TransactionDb, TransactionDbOptions, TransactionOptions,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    begun: AtomicU64,
    gone: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    is_woken: bool,
    is_ended: bool,
    sleepers: u64,
}

/// An application that ends all waits when it is told to.
#[derive(Clone, Debug, Default)]
struct Waits(Arc<Shared>);

struct OneWait(Arc<Shared>);

impl LockWaitHook for Waits {
    fn begin(&self) -> Box<dyn LockWait> {
        self.0.begun.fetch_add(1, Ordering::Relaxed);
        Box::new(OneWait(Arc::clone(&self.0)))
    }
}

impl LockWait for OneWait {
    fn sleep(&self, timeout: Option<Duration>) -> LockWaitEnd {
        let mut state = self.0.state.lock().expect("no panic");
        state.sleepers += 1;
        self.0.changed.notify_all();
        let sleeps = |s: &mut State| !s.is_woken && !s.is_ended;
        let wait = self.0.changed.wait_timeout_while(
            state,
            timeout.unwrap_or(Duration::from_secs(60)),
            sleeps,
        );
        let mut state = wait.expect("no panic").0;
        state.sleepers -= 1;
        state.is_woken = false;
        if state.is_ended {
            LockWaitEnd::Ended
        } else {
            LockWaitEnd::Woken
        }
    }

    fn wake(&self) {
        self.0.state.lock().expect("no panic").is_woken = true;
        self.0.changed.notify_all();
    }
}

impl Drop for OneWait {
    fn drop(&mut self) {
        self.0.gone.fetch_add(1, Ordering::Relaxed);
    }
}

impl Waits {
    fn end_all(&self) {
        self.0.state.lock().expect("no panic").is_ended = true;
        self.0.changed.notify_all();
    }

    fn until_somebody_sleeps(&self) {
        let state = self.0.state.lock().expect("no panic");
        let asleep = self
            .0
            .changed
            .wait_timeout_while(state, Duration::from_secs(60), |s| s.sleepers == 0);
        assert_eq!(asleep.expect("no panic").0.sleepers, 1);
    }
}

fn open(dir: &tempfile::TempDir, waits: &Waits, limit: i64) -> TransactionDb {
    let options = Options::new().create_if_missing(true);
    let transactions = TransactionDbOptions {
        transaction_lock_timeout: -1,
        max_num_locks: limit,
        num_stripes: 1,
        lock_waits: Some(Arc::new(waits.clone())),
        ..Default::default()
    };
    TransactionDb::open(dir.path(), options, transactions).expect("opens")
}

fn detecting() -> TransactionOptions {
    TransactionOptions {
        deadlock_detect: true,
        ..Default::default()
    }
}

#[test]
fn an_ended_wait_fails_and_leaves_no_trace() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let waits = Waits::default();
    let db = open(&dir, &waits, -1);
    let mut holder = db.begin_opt(WriteOptions::default(), &detecting());
    holder.put("k", "1")?;
    let mut waiter = db.begin_opt(WriteOptions::default(), &detecting());
    waiter.put("own", "1")?;
    let (own, holding) = (waiter.id(), holder.id());
    assert_eq!(db.waiting_for(own), None);
    let thread = std::thread::spawn(move || {
        let refused = waiter.put("k", "2").expect_err("its wait ends");
        (refused.kind(), refused.subcode(), waiter)
    });
    waits.until_somebody_sleeps();
    let lock = db.waiting_for(own).expect("it waits");
    assert_eq!((lock.key.as_slice(), lock.family), (&b"k"[..], 0));
    assert_eq!((lock.holders, lock.exclusive), (vec![holding], true));
    waits.end_all();
    let (kind, subcode, mut waiter) = thread.join().expect("no panic");
    assert_eq!((kind, subcode), (ErrorKind::TimedOut, Subcode::LockTimeout));
    assert_eq!(db.waiting_for(own), None);
    waits.0.state.lock().expect("no panic").is_ended = false;
    // The graph has forgotten that it waited: this closes no ring, and a release finds no waiter.
    holder.set_lock_timeout(1);
    let refused = holder.put("own", "2").expect_err("another has it");
    assert_eq!(refused.subcode(), Subcode::LockTimeout);
    assert!(db.deadlocks().is_empty());
    holder.commit()?;
    waiter.put("k", "2")?;
    waiter.commit()?;
    assert!(db.lock_status().is_empty());
    let (begun, gone) = (&waits.0.begun, &waits.0.gone);
    assert_eq!(
        (begun.load(Ordering::Relaxed), gone.load(Ordering::Relaxed)),
        (2, 2)
    );
    Ok(())
}

#[test]
fn a_release_wakes_the_sleeper_of_the_application() -> Result<()> {
    for limit in [-1, 1] {
        let dir = tempfile::tempdir().expect("a directory");
        let waits = Waits::default();
        let db = open(&dir, &waits, limit);
        let mut holder = db.begin();
        holder.put("k", "1")?;
        let mut waiter = db.begin();
        // At the limit of locks every key waits for any lock to go.
        let key = if limit > 0 { "other" } else { "k" };
        let thread =
            std::thread::spawn(move || waiter.put(key, "2").and_then(|()| waiter.commit()));
        waits.until_somebody_sleeps();
        holder.commit()?;
        thread.join().expect("no panic")?;
        assert_eq!(db.get(key)?.as_deref(), Some(&b"2"[..]));
        assert!(db.lock_status().is_empty());
    }
    Ok(())
}

#[test]
fn nobody_is_asked_where_nobody_waits() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let waits = Waits::default();
    let db = open(&dir, &waits, -1);
    let mut holder = db.begin();
    holder.put("k", "1")?;
    let mut other = db.begin();
    other.set_lock_timeout(0);
    assert!(other.put("k", "2").is_err());
    holder.commit()?;
    other.put("k", "2")?;
    other.commit()?;
    assert_eq!(waits.0.begun.load(Ordering::Relaxed), 0);
    Ok(())
}
