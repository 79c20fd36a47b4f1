//! Threads that race in small scenarios, in as many orders as there is time for.
//!
//! A scenario is a small database with a few threads on it and a property that holds in every
//! order: batches are seen whole, what was acknowledged is read, an iterator shows one moment,
//! transactions lose no update. A seed decides which thread runs at each lock, wait and yield, so a
//! schedule that shows something is repeated by its number. What happens between two such places is
//! one step: races on bare memory are for loom and ThreadSanitizer.
//!
//! Used by one thread; the threads of a scenario belong to its schedule.

mod lock_waits;
mod trees;

use crate::disk::SimFs;
use crate::model::area::Area;
use crate::model::judge::{ViolationKind, violation};
use crate::model::settings::{DIR, silent};
use crate::rng::Rng;
use crate::run::{Counts, Failure, RunPart, empty_disk};
use crate::sim_env::SimEnv;
use esker::merge_operator::StringAppend;
use esker::{
    CompactRangeOptions, Db, FamilyHandle, Options, ReadOptions, Snapshot, WriteBatch, WriteOptions,
};
use esker_env::JoinHandle;
use esker_status::{Error, Result};
use esker_sync::atomic::{AtomicU64, Ordering};
use esker_sync::{Arc, Mutex, Rank, Schedule};
use esker_txn::{
    OptimisticTransactionDb, OptimisticTransactionDbOptions, Transaction, TransactionDb,
    TransactionDbOptions, TransactionOptions, ValidatePolicy,
};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// A scenario: what it does, and fails with a word when its property does not hold.
type Scenario = fn(&Stage) -> Result<()>;

/// Every scenario with its name and the parts of the engine that it is about.
const SCENARIOS: &[(&str, &[Area], Scenario)] = &[
    ("groups", &[Area::Threads], groups),
    ("parts", &[Area::Threads], parts),
    ("switch", &[Area::Threads, Area::Tables], switch),
    ("gates", &[Area::Threads], gates),
    ("flushes", &[Area::Tables], flushes),
    ("full", &[Area::Tables], full),
    ("views", &[Area::Tables], views),
    ("snapshots", &[Area::Tables], snapshots),
    ("families", &[Area::Tables], families),
    ("bases", &[Area::Tables], trees::bases),
    ("moves", &[Area::Tables], trees::moves),
    (
        "ingested",
        &[Area::Tables, Area::Ingestion],
        trees::ingested,
    ),
    ("gaps", &[Area::Tables, Area::Ingestion], trees::gaps),
    ("between", &[Area::Tables], trees::between),
    ("exclusive", &[Area::Tables], trees::exclusive),
    ("yields", &[Area::Tables], trees::yields),
    ("copies", &[Area::Tables], trees::copies),
    ("cache", &[Area::Reading], cache),
    ("closing", &[Area::Threads], closing),
    ("locks", &[Area::Transactions], locks),
    ("lock waits", &[Area::Transactions], lock_waits::lock_waits),
    ("optimistic", &[Area::Transactions], optimistic),
];

/// Where a scenario plays.
struct Stage {
    world: SimEnv,
    disk: SimFs,
    seed: u64,
    /// Errors of the threads.
    said: Arc<Mutex<Vec<Error>>>,
}

fn wrong(text: impl Into<String>) -> Error {
    Error::aborted(text.into())
}

fn check(holds: bool, text: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(wrong(text)) }
}

impl Stage {
    fn rng(&self) -> Rng {
        Rng::new(self.seed)
    }

    fn options(&self) -> Result<Options> {
        let mut options = Options::new()
            .create_if_missing(true)
            .env(self.world.env(&self.disk, self.seed));
        options.set_in_place("write_buffer_size", "65536")?;
        options.set_in_place("level0_file_num_compaction_trigger", "2")?;
        options.set_in_place("block_size", "64")?;
        options.family.arena_block_size = 4 << 10;
        options.family.merge_operator = Some(Arc::new(StringAppend::new(b",")));
        options.db.info_log = Some(silent());
        options.db.stats_dump_period_sec = 0;
        Ok(options)
    }

    /// Returns the stage with another disk.
    fn after(&self, disk: SimFs) -> Stage {
        Stage {
            world: self.world.clone(),
            disk,
            seed: self.seed,
            said: Arc::clone(&self.said),
        }
    }

    fn open(&self) -> Result<Db> {
        Db::open(DIR, self.options()?)
    }

    /// Starts a thread; what it says is said at the end.
    fn spawn(
        &self,
        db: &Db,
        body: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Result<Box<dyn JoinHandle>> {
        let said = Arc::clone(&self.said);
        let body = Box::new(move || {
            if let Err(e) = body() {
                said.lock().push(e);
            }
        });
        db.env().executor.spawn("actor", body)
    }
}

fn join(threads: Vec<Box<dyn JoinHandle>>) {
    threads.into_iter().for_each(|t| t.join());
}

fn synced(sync: bool) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.sync = sync;
    options
}

/// Writes `n` to both keys of pair `pair`, in one batch.
fn write_pair(db: &Db, pair: u64, n: u64, sync: bool) -> Result<()> {
    let mut batch = WriteBatch::new();
    let value = n.to_string();
    batch.put(format!("a{pair}").as_bytes(), value.as_bytes())?;
    batch.put(format!("b{pair}").as_bytes(), value.as_bytes())?;
    db.write_opt(&mut batch, &synced(sync))
}

/// Reads the pairs with one iterator: both keys of each have the same value. Returns the sum of the
/// values.
fn read_pairs(db: &Db, family: &FamilyHandle) -> Result<u64> {
    let mut it = db.iter_cf(family);
    it.seek_to_first();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    while let Some((key, value)) = it.entry() {
        let half = match key.first() {
            Some(b'a') => &mut first,
            _ => &mut second,
        };
        half.push(value.to_vec());
        it.next();
    }
    it.status()?;
    check(first == second, "half of a batch is seen")?;
    let number = |v: &Vec<u8>| String::from_utf8_lossy(v).parse::<u64>().unwrap_or(0);
    Ok(first.iter().map(number).sum())
}

/// Writers form groups; batches are seen whole, and what a reader has seen once it does not lose.
fn groups(stage: &Stage) -> Result<()> {
    let db = stage.open()?;
    let mut threads = Vec::new();
    for pair in 0..3 {
        let (db2, mut rng) = (db.clone(), Rng::new(stage.seed ^ pair));
        threads.push(stage.spawn(&db, move || {
            (1..=3).try_for_each(|n| {
                write_pair(&db2, pair, n, rng.one_in(3))?;
                let own = db2.get(format!("b{pair}"))?;
                let is_read = own.is_some_and(|v| v == n.to_string().as_bytes());
                check(is_read, "a writer does not read what it wrote")
            })
        })?);
    }
    let family = db.default_family_handle();
    let mut before = 0;
    for _ in 0..4 {
        let now = read_pairs(&db, &family)?;
        check(now >= before, "a reader goes back")?;
        before = now;
    }
    join(threads);
    check(read_pairs(&db, &family)? == 9, "a batch is missing")
}

/// Large batches form groups, which their writers insert together: each is seen whole, and read by
/// its writer at once.
fn parts(stage: &Stage) -> Result<()> {
    const KEYS: u64 = 36;
    let db = stage.open()?;
    let mut threads = Vec::new();
    for writer in 0..4 {
        let db2 = db.clone();
        threads.push(stage.spawn(&db, move || {
            for n in 1..=2 {
                let (mut batch, value) = (WriteBatch::new(), n.to_string());
                for key in 0..KEYS {
                    batch.put(format!("{writer}.{key}").as_bytes(), value.as_bytes())?;
                }
                db2.write(&mut batch)?;
                let own = db2.get(format!("{writer}.{}", KEYS - 1))?;
                let is_read = own.is_some_and(|v| v == value.as_bytes());
                check(is_read, "a writer does not read what it wrote")?;
            }
            Ok(())
        })?);
    }
    let family = db.default_family_handle();
    let count = |snapshot: &Snapshot| -> Result<BTreeMap<Vec<u8>, u64>> {
        let mut it = db.iter_opt(&family, ReadOptions::default(), Some(snapshot));
        it.seek_to_first();
        let mut seen = BTreeMap::new();
        while let Some((key, value)) = it.entry() {
            *seen.entry([&key[..1], value].concat()).or_default() += 1;
            it.next();
        }
        it.status()?;
        Ok(seen)
    };
    let mut looks = Vec::new();
    for _ in 0..4 {
        let snapshot = db.snapshot();
        let seen = count(&snapshot)?;
        let is_whole = seen.values().all(|n| *n == KEYS);
        check(is_whole, "part of a batch is seen")?;
        looks.push((snapshot, seen));
    }
    join(threads);
    for (snapshot, seen) in looks {
        let is_same = count(&snapshot)? == seen;
        check(
            is_same,
            "a batch enters a snapshot that was read without it",
        )?;
    }
    Ok(())
}

/// Memtables are switched and flushed under writers and readers: what was acknowledged is read at
/// all times, and the next process finds it.
fn switch(stage: &Stage) -> Result<()> {
    const WRITES: u64 = 5;
    let db = stage.open()?;
    let acknowledged = Arc::new(AtomicU64::new(0));
    let mut threads = Vec::new();
    for writer in 0..2 {
        let (db2, noted) = (db.clone(), Arc::clone(&acknowledged));
        threads.push(stage.spawn(&db, move || {
            (1..=WRITES).try_for_each(|n| {
                db2.put(format!("own{writer}.{n}"), "x")?;
                if writer == 0 {
                    db2.put("k", n.to_string())?;
                    noted.store(n, Ordering::SeqCst);
                }
                Ok(())
            })
        })?);
    }
    let (db2, noted) = (db.clone(), Arc::clone(&acknowledged));
    threads.push(stage.spawn(&db, move || {
        for _ in 0..6 {
            let least = noted.load(Ordering::SeqCst);
            let found = db2.get("k")?.unwrap_or_default();
            let found = String::from_utf8_lossy(&found).parse().unwrap_or(0);
            check(found >= least, "an acknowledged write is not read")?;
            for n in 1..=least {
                let own = db2.get(format!("own0.{n}"))?;
                check(own.is_some(), "a key is gone for a moment")?;
            }
        }
        Ok(())
    })?);
    db.flush()?;
    db.flush()?;
    join(threads);
    let all = |db: &Db, text| {
        let mut keys = (0..2).flat_map(|w| (1..=WRITES).map(move |n| format!("own{w}.{n}")));
        keys.try_for_each(|key| check(db.get(key)?.is_some(), text))
    };
    all(&db, "a write is gone")?;
    let stage = stage.after(stage.disk.kill());
    drop(db);
    all(&stage.open()?, "a write did not survive the process")
}

/// A family whose memtables are full holds back what is written to it, alone or with others, and
/// nothing else.
fn gates(stage: &Stage) -> Result<()> {
    let db = stage.open()?;
    let behind = db.create_family("behind", stage.options()?.family)?;
    db.pause_background_work()?;
    let mut how = esker::FlushOptions::default();
    how.wait = false;
    how.allow_write_stall = true;
    for _ in 0..2 {
        db.put_cf(&behind, "k", "0")?;
        db.flush_cf(&behind, &how)?;
    }
    let written = Arc::new(AtomicU64::new(0));
    let free = db.default_family_handle();
    let mut threads = Vec::new();
    for order in [[&behind, &behind], [&behind, &free], [&free, &behind]] {
        let (db2, noted) = (db.clone(), Arc::clone(&written));
        let mut batch = WriteBatch::new();
        for family in order {
            batch.put_cf(family, b"k", b"1")?;
        }
        threads.push(stage.spawn(&db, move || {
            db2.write_opt(&mut batch, &synced(false))?;
            noted.fetch_add(1, Ordering::SeqCst);
            Ok(())
        })?);
    }
    // Nobody is left waiting when this finds something.
    let kept_out = (0..4).try_for_each(|n| {
        db.put(format!("free{n}"), "1")?;
        let passed = written.load(Ordering::SeqCst);
        check(passed == 0, "a batch goes past a family that is full")
    });
    db.continue_background_work();
    join(threads);
    kept_out?;
    check(written.load(Ordering::SeqCst) == 3, "a batch is missing")?;
    for family in [&free, &behind] {
        let found = db.get_cf(family, "k")?;
        check(found.as_deref() == Some(b"1"), "a batch is not read")?;
    }
    Ok(())
}

/// Flushes of one family run beside each other: the newest value is read at all times, and is what
/// the next process finds.
fn flushes(stage: &Stage) -> Result<()> {
    const WRITES: u64 = 4;
    // One may write at a time, or several.
    let jobs = *stage.rng().pick(&["1", "8"]);
    let open = |stage: &Stage| {
        let mut options = stage.options()?;
        options.set_in_place("max_write_buffer_number", "8")?;
        options.set_in_place("max_background_jobs", jobs)?;
        Db::open(DIR, options)
    };
    let db = open(stage)?;
    let acknowledged = Arc::new(AtomicU64::new(0));
    let (db2, noted) = (db.clone(), Arc::clone(&acknowledged));
    let writer = stage.spawn(&db, move || {
        let mut how = esker::FlushOptions::default();
        how.wait = false;
        how.allow_write_stall = true;
        (1..=WRITES).try_for_each(|n| {
            db2.put("k", n.to_string())?;
            noted.store(n, Ordering::SeqCst);
            db2.flush_cf(&db2.default_family_handle(), &how)
        })
    })?;
    let newest = |db: &Db| -> Result<u64> {
        let found = db.get("k")?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&found).parse().unwrap_or(0))
    };
    for _ in 0..8 {
        let least = acknowledged.load(Ordering::SeqCst);
        check(newest(&db)? >= least, "an older value is read")?;
    }
    join(vec![writer]);
    if stage.rng().one_in(3) {
        db.flush()?;
        check(newest(&db)? == WRITES, "an older value is read at last")?;
    }
    let stage = stage.after(stage.disk.kill());
    drop(db);
    check(
        newest(&open(&stage)?)? == WRITES,
        "an older value survives the process",
    )
}

/// Full memtables are flushed unasked, while writers fill the next ones.
fn full(stage: &Stage) -> Result<()> {
    let mut options = stage.options()?;
    options.set_in_place("max_write_buffer_number", "6")?;
    let db = Db::open(DIR, options)?;
    let mut threads = Vec::new();
    for writer in 0..2 {
        let db2 = db.clone();
        threads.push(stage.spawn(&db, move || {
            let value = vec![b'x'; 24 << 10];
            (0..5).try_for_each(|n| db2.put(format!("own{writer}.{n}"), &value))
        })?);
    }
    join(threads);
    let clock = Arc::clone(&db.env().clock);
    let patience_us = 60_000_000;
    let start = clock.now_us();
    let waiting = || db.property("rocksdb.num-immutable-mem-table");
    while waiting().is_some_and(|n| n != "0") {
        let waited = clock.now_us() - start;
        check(waited < patience_us, "a full memtable is not flushed")?;
        clock.sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// An iterator shows the moment in which it was made, whatever is flushed and compacted under it.
fn views(stage: &Stage) -> Result<()> {
    let db = stage.open()?;
    for n in 0..4 {
        write_pair(&db, n, 1, false)?;
    }
    let db2 = db.clone();
    let writer = stage.spawn(&db, move || {
        (2..=4).try_for_each(|n| {
            write_pair(&db2, n % 4, n, false)?;
            db2.flush()
        })
    })?;
    let db2 = db.clone();
    let compactor = stage.spawn(&db, move || {
        let family = db2.default_family_handle();
        db2.compact_range_opt(&family, None, None, &CompactRangeOptions::default())
    })?;
    let family = db.default_family_handle();
    let mut before = 0;
    for _ in 0..3 {
        let now = read_pairs(&db, &family)?;
        check(now >= before, "an iterator goes back")?;
        before = now;
    }
    join(vec![writer, compactor]);
    check(
        read_pairs(&db, &family)? == 1 + 2 + 3 + 4,
        "a batch is missing",
    )
}

/// A snapshot reads the same twice.
fn snapshots(stage: &Stage) -> Result<()> {
    let db = stage.open()?;
    write_pair(&db, 0, 1, false)?;
    let db2 = db.clone();
    let writer = stage.spawn(&db, move || {
        (2..=5).try_for_each(|n| write_pair(&db2, 0, n, false))
    })?;
    let db2 = db.clone();
    let flusher = stage.spawn(&db, move || {
        db2.flush()?;
        let family = db2.default_family_handle();
        db2.compact_range_opt(&family, None, None, &CompactRangeOptions::default())
    })?;
    let (family, options) = (db.default_family_handle(), ReadOptions::default());
    for _ in 0..2 {
        let snapshot = db.snapshot();
        let read = |key| db.get_opt(&family, key, &options, Some(&snapshot));
        let first = read("a0")?.map(|v| v.to_vec());
        check(first.is_some(), "a snapshot lacks a key")?;
        for key in ["b0", "a0"] {
            let again = read(key)?.map(|v| v.to_vec());
            check(again == first, "a snapshot reads two states")?;
        }
    }
    join(vec![writer, flusher]);
    Ok(())
}

/// Families come, are written, flushed and compacted, and go, beside each other.
fn families(stage: &Stage) -> Result<()> {
    let db = stage.open()?;
    let family = db.create_family("other", stage.options()?.family)?;
    let (db2, own) = (db.clone(), family.clone());
    let writer = stage.spawn(&db, move || {
        for n in 0..4 {
            if let Err(e) = db2.put_cf(&own, format!("k{n}"), "v") {
                // The family may be gone.
                return match db2.family("other") {
                    None => Ok(()),
                    Some(_) => Err(e),
                };
            }
        }
        Ok(())
    })?;
    let (db2, own) = (db.clone(), family.clone());
    let flusher = stage.spawn(&db, move || {
        let done = db2.flush_cf(&own, &esker::FlushOptions::default());
        db2.put("kept", "1")?;
        db2.flush()?;
        done.or_else(|e| match db2.family("other") {
            None => Ok(()),
            Some(_) => Err(e),
        })
    })?;
    db.drop_family(&family)?;
    join(vec![writer, flusher]);
    check(
        db.background_error().is_none(),
        "a dropped family is an error",
    )?;
    check(
        db.get("kept")?.is_some(),
        "a write to another family is gone",
    )?;
    drop(family);
    db.close()?;
    let db = stage.open()?;
    check(db.family("other").is_none(), "a dropped family is back")?;
    check(db.get("kept")?.is_some(), "a write is gone after opening")
}

/// Readers share a block cache that holds almost nothing.
fn cache(stage: &Stage) -> Result<()> {
    let mut options = stage.options()?;
    options.set_in_place("block_cache", "1000")?;
    let db = Db::open(DIR, options)?;
    let value = |n: u64| format!("{n}").repeat(40);
    for n in 0..8 {
        db.put(format!("k{n}"), value(n))?;
        if n % 3 == 2 {
            db.flush()?;
        }
    }
    db.flush()?;
    let mut threads = Vec::new();
    for reader in 0..3 {
        let (db2, mut rng) = (db.clone(), Rng::new(stage.seed ^ reader));
        threads.push(stage.spawn(&db, move || {
            for _ in 0..6 {
                let n = rng.below(8);
                let found = db2.get(format!("k{n}"))?;
                let is_right = found == Some(value(n).into_bytes());
                check(is_right, "the cache gives another block")?;
            }
            Ok(())
        })?);
    }
    join(threads);
    Ok(())
}

/// A database is closed under writers: a write that was acknowledged is found.
fn closing(stage: &Stage) -> Result<()> {
    let db = stage.open()?;
    let acknowledged = Arc::new(Mutex::new(Rank::LEAF, Vec::new()));
    let mut threads = Vec::new();
    for writer in 0..2 {
        let (db2, noted) = (db.clone(), Arc::clone(&acknowledged));
        threads.push(stage.spawn(&db, move || {
            for n in 0..4 {
                let key = format!("{writer}.{n}");
                if db2.put(&key, "x").is_err() {
                    return Ok(());
                }
                noted.lock().push(key);
            }
            Ok(())
        })?);
    }
    let closed = db.close();
    join(threads);
    closed?;
    drop(db);
    let db = stage.open()?;
    let acknowledged = std::mem::take(&mut *acknowledged.lock());
    for key in acknowledged {
        check(db.get(&key)?.is_some(), "an acknowledged write is gone")?;
    }
    Ok(())
}

/// Adds one to the counter in `key`, in a transaction that is tried until it succeeds.
fn count_up(begin: impl Fn() -> Transaction, key: &str) -> Result<()> {
    for _ in 0..200 {
        let mut transaction = begin();
        let done = transaction.get_for_update(key).and_then(|found| {
            let found = found.unwrap_or_default();
            let n: u64 = String::from_utf8_lossy(&found).parse().unwrap_or(0);
            transaction.put(key, (n + 1).to_string())?;
            transaction.commit()
        });
        match done {
            Ok(()) => return Ok(()),
            Err(_) => _ = transaction.rollback(),
        }
    }
    Err(wrong("a transaction never succeeds"))
}

/// Counters of transactions by three threads lose no update, and a lock that two wait for is had by
/// both in the end.
fn count_together(
    stage: &Stage,
    db: &Db,
    begin: impl Fn() -> Transaction + Clone + Send + 'static,
) -> Result<()> {
    let mut threads = Vec::new();
    for turn in 0..3 {
        let begin = begin.clone();
        let keys = if turn % 2 == 0 {
            ["x", "y"]
        } else {
            ["y", "x"]
        };
        threads.push(stage.spawn(db, move || {
            (0..4).try_for_each(|n| count_up(&begin, keys[n % 2]))
        })?);
    }
    join(threads);
    for key in ["x", "y"] {
        check(db.get(key)?.as_deref() == Some(b"6"), "an update is lost")?;
    }
    Ok(())
}

fn locks(stage: &Stage) -> Result<()> {
    let db = stage.open()?;
    // Each transaction locks one key, so a wait without end is a wake-up that was lost.
    let forever = TransactionDbOptions {
        transaction_lock_timeout: -1,
        ..TransactionDbOptions::default()
    };
    let transactions = TransactionDb::over(db.clone(), forever);
    let how = TransactionOptions {
        deadlock_detect: stage.rng().one_in(2),
        ..TransactionOptions::default()
    };
    count_together(stage, &db, move || {
        transactions.begin_opt(WriteOptions::default(), &how)
    })
}

fn optimistic(stage: &Stage) -> Result<()> {
    let db = stage.open()?;
    // With one lock for all: the locks of parallel validation belong to no schedule.
    let how = OptimisticTransactionDbOptions {
        validate_policy: ValidatePolicy::Serial,
        ..OptimisticTransactionDbOptions::default()
    };
    let transactions = Arc::new(OptimisticTransactionDb::over(db.clone(), &how));
    count_together(stage, &db, move || transactions.begin())
}

/// Time that a scenario may take, in which background threads look around once a second; its waits
/// are for events, so it needs next to nothing of that.
const TIME: Duration = Duration::from_secs(3600);
/// A scenario takes some ten thousand steps.
const STEPS: u64 = 10_000_000;

/// Runs that were begun in this process.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// How many schedules this process has begun.
pub fn begun() -> u64 {
    BEGUN.load(Ordering::Relaxed)
}

/// Traces of the runs so far.
#[derive(Default)]
pub struct TraceSet(BTreeSet<u64>);

/// The schedule `seed` of a scenario; counted when no other went the same way.
fn one(
    (name, scenario): (&'static str, Scenario),
    seed: u64,
    seen: &mut TraceSet,
    counts: &mut Counts,
) -> Option<Failure> {
    BEGUN.fetch_add(1, Ordering::Relaxed);
    let schedule = Schedule::new(seed).limited(TIME, STEPS);
    let world = SimEnv::in_schedule(&schedule);
    let said = Arc::new(Mutex::new(Rank::LEAF, Vec::new()));
    let play = || -> Result<()> {
        let stage = Stage {
            world,
            disk: empty_disk()?.without_log(),
            seed,
            said: Arc::clone(&said),
        };
        schedule.run(|| scenario(&stage))
    };
    let done = catch_unwind(AssertUnwindSafe(play));
    if seen.0.insert(schedule.fingerprint()) {
        counts.schedules += 1;
    }
    let said = said.lock().pop();
    let text = match (done, said) {
        (Ok(Ok(())), None) => return None,
        (Ok(Err(e)), _) | (Ok(Ok(())), Some(e)) => e.to_string(),
        (Err(_), _) => "a panic".to_owned(),
    };
    Some(Failure {
        seed,
        story: RunPart::Schedule(name),
        cuts: Vec::new(),
        violation: violation(ViolationKind::Broken, text),
        left: String::new(),
    })
}

/// The schedule `seed` of each scenario; of those that are about `area` alone, where there are any.
pub fn schedules(
    seed: u64,
    area: Option<Area>,
    seen: &mut TraceSet,
    counts: &mut Counts,
) -> Vec<Failure> {
    let is_about = |own: &[Area]| area.is_some_and(|a| own.contains(&a));
    let some = SCENARIOS.iter().any(|(_, own, _)| is_about(own));
    let all = SCENARIOS
        .iter()
        .filter(|(_, own, _)| !some || is_about(own));
    all.filter_map(|(name, _, scenario)| one((name, *scenario), seed, seen, counts))
        .collect()
}

/// The schedule `seed` of the scenario called `name`; `None` when there is none of this name.
pub fn replay(name: &str, seed: u64, counts: &mut Counts) -> Option<Vec<Failure>> {
    let (name, _, scenario) = SCENARIOS.iter().find(|(n, ..)| *n == name)?;
    let failure = one((name, *scenario), seed, &mut TraceSet::default(), counts);
    Some(failure.into_iter().collect())
}
