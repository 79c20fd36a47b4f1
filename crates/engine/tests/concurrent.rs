//! Many writers, group commit, and readers that watch: batches appear whole, and time does not go
//! back.
//!
//! Each writer moves amounts between accounts that lie in two families, in one batch, so that the
//! sum over both families is the same in every state there ever was; and it counts its batches in a
//! key of its own. Readers take snapshots, iterators and several keys at once and check the sum,
//! that the counters never go back from one snapshot to the next, and that what a writer has told
//! them is there. Meanwhile memtables are switched, flushed and compacted, families are created and
//! dropped, and handles are closed under everyone.
//!
//! `ESKER_CONCURRENT_SEED` and `ESKER_CONCURRENT_MS` give other runs.

mod common;

use common::{Rng, number};
use esker::merge_operator::UInt64Add;
use esker::{
    Db, Env, ErrorKind, FamilyDescriptor, FamilyHandle, FamilyOptions, Options, ReadOptions,
    Snapshot, WriteBatch, WriteOptions,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const WRITERS: usize = 6;
const READERS: usize = 3;
const ACCOUNTS: u64 = 40;
const START: u64 = 1 << 40;

fn options(env: Env) -> (Options, Vec<FamilyDescriptor>) {
    let mut family = FamilyOptions::default();
    family.write_buffer_size = 32 << 10;
    family.arena_block_size = 4 << 10;
    family.max_write_buffer_number = 3;
    family.target_file_size_base = 32 << 10;
    family.max_bytes_for_level_base = 64 << 10;
    family.level0_file_num_compaction_trigger = 2;
    family.merge_operator = Some(Arc::new(UInt64Add));
    let mut options = Options::new()
        .create_if_missing(true)
        .create_missing_column_families(true)
        .env(env);
    options.family = family.clone();
    options.db.max_subcompactions = 2;
    options.db.max_manifest_file_size = 8 << 10;
    let names = ["default", "left", "right"];
    (
        options,
        names
            .map(|n| FamilyDescriptor::new(n, family.clone()))
            .into(),
    )
}

fn id(family: &FamilyHandle) -> esker_format::FamilyId {
    esker_format::FamilyId(family.id())
}

fn account(n: u64) -> Vec<u8> {
    format!("account{n:03}").into_bytes()
}

fn counter(writer: usize) -> Vec<u8> {
    format!("written{writer}").into_bytes()
}

fn amount(v: &[u8]) -> u64 {
    u64::from_le_bytes(v.try_into().expect("eight bytes"))
}

struct World {
    db: Db,
    left: FamilyHandle,
    right: FamilyHandle,
    /// Batches that each writer knows to be written.
    told: [AtomicU64; WRITERS],
    stop: AtomicBool,
}

impl World {
    fn new(env: Env, path: &std::path::Path) -> World {
        let (options, families) = options(env);
        let db = Db::open_families(path, options, families).expect("a new database");
        let (left, right) = (
            db.family("left").expect("made"),
            db.family("right").expect("made"),
        );
        let mut batch = WriteBatch::new();
        for n in 0..ACCOUNTS {
            for family in [&left, &right] {
                batch
                    .put_cf(id(family), &account(n), &START.to_le_bytes())
                    .expect("small");
            }
        }
        db.write(&mut batch).expect("a write");
        World {
            db,
            left: left.into(),
            right: right.into(),
            told: Default::default(),
            stop: AtomicBool::new(false),
        }
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// Moves an amount from one family to the other: all merges, so that writers need not read.
    fn write(&self, writer: usize, rng: &mut Rng, scratch: Option<&FamilyHandle>) {
        let n = self.told[writer].load(Ordering::Relaxed) + 1;
        let mut batch = WriteBatch::new();
        let moved = rng.below(1000);
        let (from, to) = if rng.one_in(2) {
            (&self.left, &self.right)
        } else {
            (&self.right, &self.left)
        };
        let filled: esker::Result<()> = (|| {
            batch.merge_cf(
                id(from),
                &account(rng.below(ACCOUNTS)),
                &moved.wrapping_neg().to_le_bytes(),
            )?;
            batch.put_cf(
                id(&self.db.default_family_handle()),
                &counter(writer),
                &n.to_le_bytes(),
            )?;
            if let Some(s) = scratch {
                batch.put_cf(id(s), &n.to_be_bytes(), &vec![7; rng.below(300) as usize])?;
            }
            batch.merge_cf(id(to), &account(rng.below(ACCOUNTS)), &moved.to_le_bytes())
        })();
        filled.expect("small");
        let mut options = WriteOptions::default();
        options.sync = rng.one_in(40);
        options.no_slowdown = rng.one_in(10);
        options.ignore_missing_column_families = true;
        match self.db.write_opt(&mut batch, &options) {
            Ok(()) => self.told[writer].store(n, Ordering::SeqCst),
            Err(e) if options.no_slowdown && e.kind() == ErrorKind::Incomplete => {}
            Err(e) => panic!("a write by {writer}: {e}"),
        }
    }

    fn sum(&self, family: &FamilyHandle, snapshot: &Snapshot, by_key: bool) -> u64 {
        let options = ReadOptions::default();
        if by_key {
            let keys: Vec<_> = (0..ACCOUNTS).map(account).collect();
            let found = self
                .db
                .multi_get_opt(family, &keys, &options, Some(snapshot));
            return found.into_iter().fold(0, |sum, v| {
                let v = v.expect("a read").expect("never deleted");
                sum.wrapping_add(amount(&v))
            });
        }
        let mut it = self.db.iter_opt(family, options, Some(snapshot));
        let (mut sum, mut seen) = (0u64, 0);
        it.seek_to_first();
        while let Some((_, v)) = it.entry() {
            sum = sum.wrapping_add(amount(v));
            seen += 1;
            it.next();
        }
        it.status().expect("a scan");
        assert_eq!(seen, ACCOUNTS);
        sum
    }

    fn counters(&self, snapshot: Option<&Snapshot>) -> [u64; WRITERS] {
        let keys: Vec<_> = (0..WRITERS).map(counter).collect();
        let family = self.db.default_family_handle();
        let found = self
            .db
            .multi_get_opt(&family, &keys, &ReadOptions::default(), snapshot);
        let mut out = [0; WRITERS];
        for (slot, v) in out.iter_mut().zip(found) {
            *slot = v.expect("a read").map_or(0, |v| amount(&v));
        }
        out
    }

    /// One look at the database; what it saw must not be older than `before`.
    fn watch(&self, rng: &mut Rng, before: &mut [u64; WRITERS], last: &mut u64) {
        let told: [u64; WRITERS] = std::array::from_fn(|w| self.told[w].load(Ordering::SeqCst));
        let snapshot = self.db.snapshot();
        assert!(
            snapshot.sequence() >= *last,
            "a snapshot older than the one before"
        );
        *last = snapshot.sequence();
        let now = self.counters(Some(&snapshot));
        for w in 0..WRITERS {
            assert!(
                now[w] >= before[w],
                "writer {w} went back from {} to {}",
                before[w],
                now[w]
            );
            assert!(
                now[w] >= told[w],
                "writer {w} has written {} and {} is seen",
                told[w],
                now[w]
            );
        }
        let by_key = rng.one_in(2);
        let sum = self
            .sum(&self.left, &snapshot, by_key)
            .wrapping_add(self.sum(&self.right, &snapshot, !by_key));
        assert_eq!(
            sum,
            START * ACCOUNTS * 2,
            "a batch was seen in part at {}",
            snapshot.sequence()
        );
        assert_eq!(now, self.counters(Some(&snapshot)), "a snapshot changed");
        let newest = self.counters(None);
        for w in 0..WRITERS {
            assert!(newest[w] >= now[w], "the present is older than a snapshot");
        }
        *before = now;
    }
}

fn run(seed: u64, ms: u64, env: Env, path: &std::path::Path) {
    let world = World::new(env.clone(), path);
    let end = Instant::now() + Duration::from_millis(ms);
    std::thread::scope(|scope| {
        let world = &world;
        for writer in 0..WRITERS {
            scope.spawn(move || {
                let mut rng = Rng::new(seed * 100 + writer as u64);
                while world.goes_on() {
                    let scratch = world.db.family("scratch").filter(|_| rng.one_in(3));
                    world.write(writer, &mut rng, scratch.as_deref());
                }
            });
        }
        for reader in 0..READERS {
            scope.spawn(move || {
                let mut rng = Rng::new(seed * 100 + 50 + reader as u64);
                let (mut before, mut last) = ([0; WRITERS], 0);
                while world.goes_on() {
                    world.watch(&mut rng, &mut before, &mut last);
                }
            });
        }
        scope.spawn(move || {
            let mut rng = Rng::new(seed * 100 + 99);
            while world.goes_on() {
                let done = match rng.below(5) {
                    0 => world.db.flush(),
                    1 => world
                        .db
                        .compact_range_opt(&world.left, None, None, &Default::default()),
                    2 => world
                        .db
                        .compact_range_opt(&world.right, None, None, &Default::default()),
                    _ => match world.db.family("scratch") {
                        Some(f) => world.db.drop_family(&f),
                        None => world
                            .db
                            .create_family("scratch", FamilyOptions::default())
                            .map(|_| ()),
                    },
                };
                done.unwrap_or_else(|e| panic!("administration: {e}"));
                std::thread::sleep(Duration::from_millis(rng.below(10)));
            }
        });
        // A failed thread must end the others too, or the test would never tell.
        while Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        world.stop.store(true, Ordering::Relaxed);
    });
    let told: [u64; WRITERS] = std::array::from_fn(|w| world.told[w].load(Ordering::SeqCst));
    println!("seed {seed}: {} batches", told.iter().sum::<u64>());
    assert_eq!(world.counters(None), told);
    world.db.close().expect("closed");
    drop(world);
    let (mut options, mut families) = options(env);
    options.db.create_if_missing = false;
    let names = Db::list_families(path, &options).expect("a good MANIFEST");
    if names.iter().any(|n| n == "scratch") {
        families.push(FamilyDescriptor::new("scratch", FamilyOptions::default()));
    }
    let db = Db::open_families(path, options, families).expect("opened again");
    let world = World {
        left: db.family("left").expect("there").into(),
        right: db.family("right").expect("there").into(),
        db,
        told: told.map(AtomicU64::new),
        stop: AtomicBool::new(true),
    };
    world.watch(&mut Rng::new(seed), &mut told.clone(), &mut 0);
    assert_eq!(
        world.counters(None),
        told,
        "exactly what was written is there"
    );
}

#[test]
fn batches_are_whole_and_time_goes_forward_in_memory() {
    let ms = number("ESKER_CONCURRENT_MS", 3000);
    let seed = number("ESKER_CONCURRENT_SEED", 1);
    run(
        seed,
        ms,
        Env::in_memory(),
        std::path::Path::new("/concurrent"),
    );
}

#[test]
fn batches_are_whole_and_time_goes_forward_on_disk() {
    let ms = number("ESKER_CONCURRENT_MS", 3000);
    let seed = number("ESKER_CONCURRENT_SEED", 1) + 1;
    let dir = tempfile::tempdir().expect("a directory");
    run(seed, ms, Env::posix(), &dir.path().join("db"));
}

/// A close while writers, compactions and iterators are at work: each gets an answer, none hangs,
/// and nothing that was acknowledged is missing afterwards.
#[test]
fn closing_under_load_ends_everything() {
    for seed in 0..8 {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("db");
        let world = World::new(Env::posix(), &path);
        std::thread::scope(|scope| {
            let world = &world;
            let ended = |e: &esker::Error| {
                e.kind() == ErrorKind::ShutdownInProgress || e.kind() == ErrorKind::Aborted
            };
            for writer in 0..WRITERS {
                scope.spawn(move || {
                    for n in 1.. {
                        match world.db.put(counter(writer), u64::to_le_bytes(n)) {
                            Ok(()) => world.told[writer].store(n, Ordering::SeqCst),
                            Err(e) => return assert!(ended(&e), "{e}"),
                        }
                    }
                });
            }
            scope.spawn(move || {
                loop {
                    if let Err(e) = world.db.compact_range(None, None) {
                        return assert!(ended(&e), "{e}");
                    }
                }
            });
            let mut it = world.db.iter_cf(&world.left);
            std::thread::sleep(Duration::from_millis(30 + 20 * seed));
            world.db.close().expect("closed");
            it.seek_to_first();
            assert!(
                it.valid(),
                "an iterator outlives the close: {:?}",
                it.status()
            );
        });
        let told: [u64; WRITERS] = std::array::from_fn(|w| world.told[w].load(Ordering::SeqCst));
        drop(world);
        let (options, families) = options(Env::posix());
        let db = Db::open_families(&path, options, families).expect("opened again");
        for (w, told) in told.into_iter().enumerate() {
            let found = db
                .get(counter(w))
                .expect("a read")
                .map_or(0, |v| amount(&v));
            assert!(
                found == told || found == told + 1,
                "writer {w}: told {told}, found {found}"
            );
        }
    }
}

/// Writes past the log are in tables once the database was closed, unless its options say
/// otherwise.
#[test]
fn a_close_keeps_what_was_written_past_the_log() {
    let dir = tempfile::tempdir().expect("a directory");
    for (keep, wanted) in [(true, Some(b"1".to_vec())), (false, None)] {
        let path = dir.path().join(format!("{keep}"));
        let open = |avoid: bool| {
            let mut options = Options::new().create_if_missing(true);
            options.db.avoid_flush_during_shutdown = avoid;
            Db::open(&path, options).expect("opened")
        };
        let db = open(!keep);
        let family = db.default_family_handle();
        db.put_opt(&family, "key", "1", &WriteOptions::unlogged())
            .expect("a write");
        drop(db);
        assert_eq!(open(true).get("key").expect("a read"), wanted);
    }
}

/// A range that ends before it begins is refused before it is logged: a log that holds one cannot
/// be replayed.
#[test]
fn a_reversed_range_in_a_batch_harms_nobody() {
    let dir = tempfile::tempdir().expect("a directory");
    let open = || Db::open(dir.path(), Options::new().create_if_missing(true)).expect("opened");
    let db = open();
    let mut batch = WriteBatch::new();
    batch
        .put(b"k", b"v")
        .and_then(|()| batch.delete_range(b"z", b"a"))
        .expect("small");
    let refused = db.write(&mut batch).expect_err("it ends before it begins");
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    db.put("after", "1").expect("the database goes on");
    drop(db);
    let db = open();
    assert_eq!(db.get("k").expect("a read"), None);
    assert_eq!(db.get("after").expect("a read").as_deref(), Some(&b"1"[..]));
}

/// Runs `body`, which hangs when a wake-up is lost, for at most a minute.
fn ends(body: impl FnOnce() + Send + 'static) {
    let (tell, hear) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        body();
        tell.send(()).expect("somebody listens");
    });
    if hear.recv_timeout(Duration::from_secs(60)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
    {
        panic!("a write does not end");
    }
    thread.join().expect("no panic");
}

#[test]
fn a_leader_of_large_batches_is_told_when_its_group_was_left() {
    ends(|| {
        let (options, families) = options(Env::in_memory());
        let db = Db::open_families("/db", options, families).expect("opens");
        std::thread::scope(|scope| {
            for thread in 0..8_u8 {
                let db = &db;
                scope.spawn(move || {
                    for round in 0..60_u8 {
                        let mut batch = WriteBatch::new();
                        for n in 0..100_u8 {
                            batch.put(&[thread, n], &[round; 40]).expect("fits");
                        }
                        db.write(&mut batch).expect("written");
                        let last = db.get([thread, 99]).expect("reads");
                        assert_eq!(last.as_deref(), Some(&[round; 40][..]));
                    }
                });
            }
        });
    });
}

#[test]
fn an_impatient_write_does_not_sleep_behind_one_that_waits() {
    ends(|| {
        let (options, families) = options(Env::in_memory());
        let db = Db::open_families("/db", options, families).expect("opens");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..6_u8 {
                let (db, stop) = (&db, &stop);
                scope.spawn(move || {
                    let mut how = WriteOptions::default();
                    how.no_slowdown = thread % 2 == 0;
                    while !stop.load(Ordering::Relaxed) {
                        let (mut batch, begun) = (WriteBatch::new(), Instant::now());
                        batch.put(&[thread], b"x").expect("fits");
                        match db.write_opt(&mut batch, &how) {
                            Ok(()) => {}
                            Err(e) => assert_eq!(e.kind(), ErrorKind::Incomplete),
                        }
                        let took = begun.elapsed();
                        assert!(
                            !how.no_slowdown || took < Duration::from_secs(1),
                            "{took:?}"
                        );
                    }
                });
            }
            for _ in 0..3 {
                std::thread::sleep(Duration::from_millis(30));
                db.lock_wal().expect("locks");
                std::thread::sleep(Duration::from_millis(1_200));
                db.unlock_wal().expect("unlocks");
            }
            stop.store(true, Ordering::Relaxed);
        });
    });
}
