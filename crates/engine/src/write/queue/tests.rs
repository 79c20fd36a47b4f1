//! The queue with an environment in memory that checks each call, and threads in many orders.

use super::*;
use crate::family::backpressure::stall_tracker::{StallReason, StallTracker};
use crate::observe::StallLedger;
use esker_env::Env;
use esker_format::Seq;
use esker_status::{Error, Result};
use esker_sync::atomic::{AtomicU64, AtomicUsize};
use esker_sync::{Rank, Schedule};
use std::collections::BTreeMap;

/// Takes one from a counter that is above 0.
fn take_one(from: &AtomicUsize) -> bool {
    let less = |n: usize| n.checked_sub(1);
    from.fetch_update(Ordering::AcqRel, Ordering::Acquire, less)
        .is_ok()
}

/// An environment that keeps what it is given, and fails or holds back as often as it is told.
#[derive(Debug)]
struct Fake {
    sequence: Arc<Sequence>,
    tracker: StallTracker,
    calls: Mutex<Vec<&'static str>>,
    /// The newest numbers that were logged, and those of them that were synced.
    logged: AtomicU64,
    synced: AtomicU64,
    /// Content of the memtable: the key of each number.
    inserted: Mutex<BTreeMap<u64, Vec<u8>>>,
    failing_writes: AtomicUsize,
    failing_inserts: AtomicUsize,
    obstacles: AtomicUsize,
    held_jobs: AtomicUsize,
}

/// The records of a log.
type Records = Vec<WriteBatch>;

impl WriteEnv for Fake {
    type Log = Records;

    fn write(&self, log: &mut Records, record: &GroupRecord<'_>) -> Result<()> {
        self.calls.lock().push("write");
        let batch = WriteBatch::from_bytes(record.parts.concat())?;
        assert_eq!(u64::from(batch.count()), record.keys);
        let logged = self.logged.load(Ordering::Acquire);
        assert_eq!(batch.seq(), Seq(logged + 1), "a number is missing");
        thread::yield_now();
        self.logged.store(logged + record.keys, Ordering::Release);
        if take_one(&self.failing_writes) {
            return Err(Error::corruption("the log is full"));
        }
        if !record.disable_wal {
            log.push(batch);
        }
        Ok(())
    }

    fn sync(&self, _: &mut Records) -> Result<()> {
        self.calls.lock().push("sync");
        thread::yield_now();
        let logged = self.logged.load(Ordering::Acquire);
        self.synced.store(logged, Ordering::Release);
        Ok(())
    }

    fn apply(&self, batch: &WriteBatch, first: Seq) -> Result<()> {
        self.calls.lock().push("apply");
        let last = first.0 + u64::from(batch.count()) - 1;
        assert!(self.logged.load(Ordering::Acquire) >= last, "not logged");
        if take_one(&self.failing_inserts) {
            return Err(Error::corruption("the memtable is full"));
        }
        for (at, record) in batch.records().enumerate() {
            if let esker_format::batch::Record::Put { key, .. } = record? {
                let seq = first.0 + at as u64;
                let before = self.inserted.lock().insert(seq, key.to_vec());
                assert!(before.is_none(), "{seq} is inserted twice");
            }
            thread::yield_now();
            assert!(self.sequence.published() < first, "visible too early");
        }
        Ok(())
    }
}

impl WriteGate for Fake {
    type Obstacle = ();

    fn make_room(&self, _: &mut Records, _: &NextGroup<'_>) -> Result<Option<()>> {
        self.calls.lock().push("make_room");
        Ok(take_one(&self.obstacles).then_some(()))
    }

    fn holds_any(&self) -> bool {
        self.held_jobs.load(Ordering::Acquire) > 0
    }

    fn holds(&self, _: &WriteJob) -> bool {
        take_one(&self.held_jobs)
    }

    fn holds_all(&self) -> Option<StallReason> {
        None
    }

    fn wait(&self, (): &(), _: bool, _: &mut StallGuard<'_>) {
        self.calls.lock().push("wait");
        thread::yield_now();
    }
}

/// A queue in front of its environment.
struct Pipeline {
    queue: WriteQueue<Records>,
    env: Fake,
}

impl Pipeline {
    fn new() -> Arc<Self> {
        let sequence = Arc::new(Sequence::new(Seq::ZERO));
        let clock = Env::in_memory().clock;
        let ledger = Arc::new(StallLedger::new());
        let env = Fake {
            sequence: Arc::clone(&sequence),
            tracker: StallTracker::new(Arc::clone(&clock), ledger, None),
            calls: Mutex::new(Rank::LEAF, Vec::new()),
            logged: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            inserted: Mutex::new(Rank::LEAF, BTreeMap::new()),
            failing_writes: AtomicUsize::new(0),
            failing_inserts: AtomicUsize::new(0),
            obstacles: AtomicUsize::new(0),
            held_jobs: AtomicUsize::new(0),
        };
        let queue = WriteQueue::new(Records::new(), sequence, clock, 1 << 20);
        Arc::new(Pipeline { queue, env })
    }

    /// Writes `keys` as one batch, and checks what holds when the write returns.
    fn write(&self, keys: &[String], sync: bool) -> Result<()> {
        let mut batch = WriteBatch::new();
        keys.iter()
            .try_for_each(|key| batch.put(key.as_bytes(), b"value"))?;
        let mut options = WriteOptions::default();
        options.sync = sync;
        let mut held = StallGuard::new(&self.env.tracker);
        while let Some(aside) =
            self.queue
                .write(&self.env, &options, &mut batch, BatchFamilies::NONE, held)?
        {
            thread::yield_now();
            held = aside;
        }
        let last = batch.seq().0 + keys.len() as u64 - 1;
        assert!(self.queue.sequence.published().0 >= last, "not visible");
        if sync {
            assert!(self.env.synced.load(Ordering::Acquire) >= last, "not sure");
        }
        let inserted = self.env.inserted.lock();
        for (seq, key) in (batch.seq().0..).zip(keys) {
            assert_eq!(inserted.get(&seq).map(Vec::as_slice), Some(key.as_bytes()));
        }
        Ok(())
    }

    /// Checks that everything up to the published number is in the memtable.
    fn check_prefix(&self) {
        let published = self.queue.sequence.published().0;
        let inserted = self.env.inserted.lock();
        for seq in 1..=published {
            assert!(inserted.contains_key(&seq), "{seq} is visible and missing");
        }
    }

    /// Starts a writer and waits until its batch is in the queue. The caller has the log lock.
    fn queue_up(self: &Arc<Self>, schedule: &Schedule, key: &str) -> Writer {
        let (path, key) = (Arc::clone(self), vec![key.to_owned()]);
        let outcome = Arc::new(Mutex::new(Rank::LEAF, None));
        let told = Arc::clone(&outcome);
        let before = self.queue.waiting.len();
        let body = move || {
            let done = path.write(&key, false);
            *told.lock() = Some(done);
        };
        let thread = schedule.spawn("writer", body).expect("a thread");
        while self.queue.waiting.len() == before {
            thread::yield_now();
        }
        Writer { thread, outcome }
    }
}

/// A thread that writes one batch.
struct Writer {
    thread: esker_sync::MemberHandle,
    outcome: Arc<Mutex<Option<Result<()>>>>,
}

impl Writer {
    fn join(self) -> Result<()> {
        self.thread.join();
        let outcome = self.outcome.lock().take();
        outcome.expect("the write has returned")
    }
}

fn keys(writer: usize, batch: usize, count: usize) -> Vec<String> {
    let key = |n| format!("{writer}-{batch}-{n}");
    (0..count).map(key).collect()
}

#[test]
fn a_write_makes_each_call_once_and_in_order() -> Result<()> {
    let path = Pipeline::new();
    path.write(&keys(0, 0, 2), false)?;
    path.write(&keys(0, 1, 1), true)?;
    let calls = path.env.calls.lock().join(" ");
    assert_eq!(calls, "make_room write apply make_room write sync apply");
    assert_eq!(path.queue.lock().len(), 2);
    Ok(())
}

#[test]
fn a_leader_waits_for_each_obstacle_without_the_log_lock() -> Result<()> {
    let path = Pipeline::new();
    path.env.obstacles.store(2, Ordering::Release);
    path.write(&keys(0, 0, 1), false)?;
    let calls = path.env.calls.lock().join(" ");
    assert_eq!(calls, "make_room wait make_room wait make_room write apply");
    Ok(())
}

#[test]
fn queued_writers_are_one_record_and_a_failed_log_is_told_to_all_of_them() {
    for fails in [false, true] {
        let path = Pipeline::new();
        let schedule = Schedule::new(1);
        let outcomes: Vec<bool> = schedule.run(|| {
            let log = path.queue.lock();
            let writers: Vec<_> = (0..3)
                .map(|n| path.queue_up(&schedule, &n.to_string()))
                .collect();
            path.env
                .failing_writes
                .store(usize::from(fails), Ordering::Release);
            drop(log);
            writers.into_iter().map(|w| w.join().is_ok()).collect()
        });
        assert_eq!(outcomes, [!fails; 3]);
        assert_eq!(path.queue.sequence.published(), Seq(3), "numbers pass");
        assert_eq!(path.queue.lock().len(), usize::from(!fails));
        path.write(&keys(1, 0, 1), false).expect("the next one");
    }
}

#[test]
fn a_failed_insert_is_told_to_its_writer_alone() {
    let path = Pipeline::new();
    let schedule = Schedule::new(2);
    let failed = schedule.run(|| {
        let log = path.queue.lock();
        let writers: Vec<_> = (0..3)
            .map(|n| path.queue_up(&schedule, &n.to_string()))
            .collect();
        path.env.failing_inserts.store(1, Ordering::Release);
        drop(log);
        let outcomes = writers.into_iter().map(Writer::join);
        outcomes.filter(Result::is_err).count()
    });
    assert_eq!(failed, 1);
    assert_eq!(path.queue.sequence.published(), Seq(3));
}

#[test]
fn a_batch_that_steps_aside_is_written_when_it_comes_again() {
    let path = Pipeline::new();
    let schedule = Schedule::new(3);
    schedule.run(|| {
        let log = path.queue.lock();
        let first = path.queue_up(&schedule, "first");
        let second = path.queue_up(&schedule, "second");
        path.env.held_jobs.store(1, Ordering::Release);
        drop(log);
        first.join().expect("written");
        second.join().expect("written");
    });
    let log = path.queue.lock();
    let sizes: Vec<u32> = log.iter().map(WriteBatch::count).collect();
    assert_eq!(
        sizes,
        [1, 1],
        "the one that stepped aside has its own record"
    );
}

/// Three writers, a reader and administration in the order of `seed`, with obstacles, syncs and
/// large batches.
fn race(seed: u64) {
    let path = Pipeline::new();
    let large = seed.is_multiple_of(2);
    path.env
        .obstacles
        .store((seed % 5 / 3) as usize, Ordering::Release);
    path.env
        .held_jobs
        .store((seed % 7 / 5) as usize, Ordering::Release);
    let total = Seq(if large { 306 } else { 18 });
    let schedule = Schedule::new(seed).limited(std::time::Duration::from_secs(600), 1_000_000);
    schedule.run(|| {
        let mut threads = Vec::new();
        for writer in 0..3 {
            let path = Arc::clone(&path);
            let body = move || {
                for batch in 0..3 {
                    let count = if large { 30 + 4 * writer } else { 1 + batch };
                    let sync = (seed + batch as u64).is_multiple_of(4);
                    path.write(&keys(writer, batch, count), sync)
                        .expect("written");
                }
            };
            threads.push(schedule.spawn("writer", body).expect("a thread"));
        }
        let reader = Arc::clone(&path);
        let body = move || {
            while reader.queue.sequence.published() < total {
                reader.check_prefix();
                thread::yield_now();
            }
        };
        threads.push(schedule.spawn("reader", body).expect("a thread"));
        let administration = Arc::clone(&path);
        let body = move || {
            for _ in 0..seed % 3 * 4 {
                let log = administration.queue.lock();
                (0..8).for_each(|_| thread::yield_now());
                drop(log);
                thread::yield_now();
            }
        };
        threads.push(schedule.spawn("administration", body).expect("a thread"));
        threads.into_iter().for_each(esker_sync::MemberHandle::join);
    });
    path.check_prefix();
    let logged: u64 = path.queue.lock().iter().map(|b| u64::from(b.count())).sum();
    assert_eq!(
        (Seq(logged), path.queue.sequence.published()),
        (total, total)
    );
}

#[test]
fn writers_keep_the_rules_in_every_order() {
    (0..400).for_each(race);
}

/// Each seeded bug of the queue, hunted in a process of its own.
#[cfg(debug_assertions)]
#[test]
fn the_seeded_bugs_of_the_queue_are_found() {
    let program = std::env::current_exe().expect("this test");
    for bug in [
        "publish-before-insert",
        "follower-told-early",
        "queue-left-alone",
        "groups-out-of-order",
        "publish-beside-follower",
    ] {
        let done = std::process::Command::new(&program)
            .args([
                "--exact",
                "write::queue::tests::writers_keep_the_rules_in_every_order",
            ])
            .env("ESKER_SEEDED_BUG", bug)
            .output()
            .expect("it runs");
        assert!(!done.status.success(), "{bug} is not found");
        let text = String::from_utf8_lossy(&done.stdout);
        assert!(!text.contains("0 passed; 0 failed"), "{bug}: no test ran");
    }
}
