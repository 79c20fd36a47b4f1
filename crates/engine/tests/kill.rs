//! `kill -9` in the middle of a load, again and again on the same directory.
//!
//! A child process (this test binary, started again) writes from several threads: each operation is one
//! batch over three families. It reports every acknowledged operation through a pipe and is killed at a
//! random moment: while it loads, flushes, compacts, switches MANIFESTs, or still recovers. Afterwards
//! - no acknowledged operation may be missing;
//! - each thread's operations are there up to one, and none after it;
//! - the parts of a batch in different families are there together;
//! - an operation is there only if everything is that was acknowledged before it began (each one carries
//!   what its thread knew to be acknowledged), so the state is a prefix of the order of writes.
//!
//! The long run is `ESKER_KILL_ROUNDS=200 cargo test --release -p esker --test kill -- --nocapture`;
//! `ESKER_KILL_SEED` gives other moments.

mod common;

use common::{Rng, number};
use esker::merge_operator::UInt64Add;
use esker::{
    CompactRangeOptions, Db, FamilyDescriptor, FamilyHandle, FamilyOptions, Options, ReadOptions,
    WriteBatch, WriteOptions,
};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const THREADS: usize = 4;
const SLOTS: u64 = 300;
const CHILD: &str = "ESKER_KILL_CHILD";

fn family_options(write_buffer: usize) -> FamilyOptions {
    let mut o = FamilyOptions::default();
    o.write_buffer_size = write_buffer;
    o.arena_block_size = 4 << 10;
    o.target_file_size_base = 32 << 10;
    o.max_bytes_for_level_base = 128 << 10;
    o.max_bytes_for_level_multiplier = 4.0;
    o.level0_file_num_compaction_trigger = 2;
    o
}

fn options(seed: u64) -> (Options, Vec<FamilyDescriptor>) {
    let mut options = Options::new()
        .create_if_missing(true)
        .create_missing_column_families(true);
    let mut default = family_options(16 << 10);
    default.merge_operator = Some(Arc::new(UInt64Add));
    options.family = default.clone();
    options.db.max_manifest_file_size = if seed.is_multiple_of(2) {
        3 << 10
    } else {
        1 << 30
    };
    options.db.max_subcompactions = if seed.is_multiple_of(3) { 3 } else { 1 };
    options.db.max_background_jobs = 3;
    options.db.avoid_flush_during_recovery = seed % 5 < 2;
    options.db.keep_log_file_num = 3;
    let families = vec![
        FamilyDescriptor::new("default", default),
        FamilyDescriptor::new("all", family_options(48 << 10)),
        FamilyDescriptor::new("slots", family_options(24 << 10)),
    ];
    (options, families)
}

/// What is on disk of the operations of one thread is given by the last of them.
fn floor(n: u64) -> u64 {
    (n / 64 * 64).saturating_sub(1000)
}

fn all_key(thread: usize, n: u64) -> Vec<u8> {
    format!("{thread}/{n:012}").into_bytes()
}

fn slot_key(thread: usize, slot: u64) -> Vec<u8> {
    format!("{thread}/{slot:05}").into_bytes()
}

fn last_key(thread: usize) -> Vec<u8> {
    format!("last/{thread}").into_bytes()
}

fn read_number(db: &Db, key: &[u8]) -> u64 {
    let value = db.get(key).unwrap_or_else(|e| panic!("get: {e}"));
    value.map_or(0, |v| {
        u64::from_le_bytes(v.try_into().expect("eight bytes"))
    })
}

/// Operation `n` of a thread, which knows `acknowledged` of the others.
fn operation(
    families: &[FamilyHandle],
    thread: usize,
    n: u64,
    acknowledged: &[u64; THREADS],
) -> WriteBatch {
    let id = |i: usize| esker_format::FamilyId(families[i].id());
    let mut batch = WriteBatch::new();
    let done: esker::Result<()> = (|| {
        batch.put_cf(id(0), &last_key(thread), &n.to_le_bytes())?;
        batch.merge_cf(id(0), b"total", &1u64.to_le_bytes())?;
        let mut value: Vec<u8> = acknowledged.iter().flat_map(|a| a.to_le_bytes()).collect();
        value.resize(value.len() + (n * 37 % 200) as usize, b'x');
        batch.put_cf(id(1), &all_key(thread, n), &value)?;
        if n.is_multiple_of(64) && floor(n) > 0 {
            batch.delete_range_cf(id(1), &all_key(thread, 0), &all_key(thread, floor(n)))?;
        }
        if n.is_multiple_of(7) {
            batch.delete_cf(id(2), &slot_key(thread, n % SLOTS))?;
        } else {
            batch.put_cf(id(2), &slot_key(thread, n % SLOTS), &n.to_le_bytes())?;
        }
        Ok(())
    })();
    done.expect("small records");
    batch
}

/// The child: loads until it is killed.
#[test]
#[ignore = "the other tests of this file run it as a process of its own"]
fn child() {
    let Ok(given) = std::env::var(CHILD) else {
        panic!("{CHILD} names the directory");
    };
    let (seed, dir) = given.split_once(':').expect("seed:directory");
    let seed: u64 = seed.parse().expect("a number");
    let (options, descriptors) = options(seed);
    let db = Db::open_families(dir, options, descriptors).unwrap_or_else(|e| panic!("open: {e}"));
    say("ready");
    let families: Vec<_> = ["default", "all", "slots"]
        .iter()
        .map(|n| db.family(n).expect("opened"))
        .collect();
    let acknowledged: Arc<[AtomicU64; THREADS]> = Arc::new(std::array::from_fn(|t| {
        AtomicU64::new(read_number(&db, &last_key(t)))
    }));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, families, acknowledged) =
                (db.clone(), families.clone(), Arc::clone(&acknowledged));
            scope.spawn(move || {
                let mut n = acknowledged[thread].load(Ordering::Acquire);
                loop {
                    n += 1;
                    let known = std::array::from_fn(|t| acknowledged[t].load(Ordering::SeqCst));
                    let mut batch = operation(&families, thread, n, &known);
                    let mut options = WriteOptions::default();
                    options.sync = n % 16 == thread as u64;
                    db.write_opt(&mut batch, &options)
                        .unwrap_or_else(|e| panic!("write: {e}"));
                    acknowledged[thread].store(n, Ordering::SeqCst);
                    say(&format!("ack {thread} {n}"));
                }
            });
        }
        let mut rng = Rng::new(seed);
        loop {
            std::thread::sleep(Duration::from_millis(rng.below(30)));
            let family = &families[rng.below(3) as usize];
            let done = if rng.one_in(3) {
                db.compact_range_opt(family, None, None, &CompactRangeOptions::default())
            } else {
                db.flush()
            };
            done.unwrap_or_else(|e| panic!("flush or compact: {e}"));
        }
    });
}

/// One line to the parent, in one write.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // When the parent is gone there is nobody to tell, and nothing left to do.
    if out
        .write_all(format!("{line}\n").as_bytes())
        .and_then(|()| out.flush())
        .is_err()
    {
        std::process::exit(1);
    }
}

/// Starts the child and kills it; adds to what is known to be acknowledged.
fn load_and_kill(dir: &Path, seed: u64, rng: &mut Rng, acknowledged: &mut [u64; THREADS]) -> bool {
    let mut child = Command::new(std::env::current_exe().expect("a path"))
        .args([
            "--exact",
            "child",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(CHILD, format!("{seed}:{}", dir.display()))
        .stdout(Stdio::piped())
        .spawn()
        .expect("the test binary starts");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut seen = [0u64; THREADS];
        for line in lines.map_while(Result::ok) {
            let line = line.trim_start_matches("test child ... ");
            let mut words = line.split(' ');
            match words.next() {
                Some("ready") => ready.send(()).expect("the parent waits"),
                Some("ack") => {
                    let numbers: Vec<u64> = words.filter_map(|w| w.parse().ok()).collect();
                    seen[numbers[0] as usize] = numbers[1];
                }
                _ => {}
            }
        }
        seen
    });
    // Now and then it dies before it has recovered.
    let early = rng.one_in(6);
    if early {
        std::thread::sleep(Duration::from_millis(rng.below(40)));
    } else {
        let limit = Duration::from_secs(60);
        is_ready
            .recv_timeout(limit)
            .expect("the child opens the database");
        std::thread::sleep(Duration::from_micros(1000 + rng.below(200_000)));
    }
    let alive = child.try_wait().expect("our child").is_none();
    child.kill().expect("our child");
    child.wait().expect("our child");
    assert!(alive, "the child ended by itself: seed {seed}");
    // The ready line may still come when the kill was early.
    drop(is_ready);
    let seen = reader.join().unwrap_or([0; THREADS]);
    for (total, new) in acknowledged.iter_mut().zip(seen) {
        *total = (*total).max(new);
    }
    early
}

/// Checks the whole state, and returns the last operation of each thread.
fn check(db: &Db, acknowledged: &[u64; THREADS]) -> [u64; THREADS] {
    let last: [u64; THREADS] = std::array::from_fn(|t| read_number(db, &last_key(t)));
    for t in 0..THREADS {
        assert!(
            last[t] >= acknowledged[t],
            "thread {t}: operation {} was acknowledged, {} is the last",
            acknowledged[t],
            last[t]
        );
    }
    let total = read_number(db, b"total");
    assert_eq!(
        total,
        last.iter().sum::<u64>(),
        "a batch is there in part: {last:?}"
    );
    let all = db.family("all").map(|f| db.iter_cf(&f));
    let slots = db.family("slots").map(|f| db.iter_cf(&f));
    let (Some(mut all), Some(mut slots)) = (all, slots) else {
        assert_eq!(total, 0, "families are missing");
        return last;
    };
    all.seek_to_first();
    slots.seek_to_first();
    for t in 0..THREADS {
        let n = last[t];
        for i in floor(n).max(1)..=n {
            let Some((key, value)) = all.entry() else {
                panic!(
                    "thread {t}: operation {i} of {n} is missing: {:?}",
                    all.status()
                );
            };
            assert_eq!(
                key.escape_ascii().to_string(),
                all_key(t, i).escape_ascii().to_string()
            );
            for (other, known) in value.chunks_exact(8).take(THREADS).enumerate() {
                let known = u64::from_le_bytes(known.try_into().expect("eight bytes"));
                assert!(
                    last[other] >= known,
                    "operation {i} of thread {t} began after {known} of thread {other}, which is missing: {last:?}"
                );
            }
            all.next();
        }
        for slot in 0..SLOTS {
            let newest = (n % SLOTS + SLOTS - slot) % SLOTS;
            let Some(newest) = n.checked_sub(newest).filter(|m| *m > 0 && m % 7 != 0) else {
                continue;
            };
            assert_eq!(
                slots.entry(),
                Some((&slot_key(t, slot)[..], &newest.to_le_bytes()[..])),
                "slot {slot} of thread {t} after {n}"
            );
            slots.next();
        }
    }
    assert!(
        all.entry().is_none() && slots.entry().is_none(),
        "more than was written"
    );
    all.status().expect("the whole family was read");
    slots.status().expect("the whole family was read");
    last
}

#[test]
fn nothing_acknowledged_is_lost_by_kills() {
    let rounds = number("ESKER_KILL_ROUNDS", 40);
    let seed = number("ESKER_KILL_SEED", 1);
    let start = Instant::now();
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    let mut rng = Rng::new(seed);
    let mut acknowledged = [0; THREADS];
    let mut early = 0;
    for round in 0..rounds {
        let round_seed = seed * 1000 + round;
        early += u64::from(load_and_kill(
            &path,
            round_seed,
            &mut rng,
            &mut acknowledged,
        ));
        if !path.join("CURRENT").exists() {
            assert_eq!(acknowledged, [0; THREADS]);
            continue;
        }
        let (options, descriptors) = options(round_seed);
        // Half of the rounds leave the log as it is for the next child to recover.
        let db = if round % 2 == 0 {
            Db::open_read_only(&path, options)
        } else {
            Db::open_families(&path, options, descriptors)
        };
        let db = db.unwrap_or_else(|e| panic!("round {round}: open: {e}"));
        let found = check(&db, &acknowledged);
        let options = ReadOptions::default();
        assert!(
            db.get_opt(&db.default_family_handle(), "nothing", &options, None)
                .expect("a read")
                .is_none()
        );
        db.close()
            .unwrap_or_else(|e| panic!("round {round}: close: {e}"));
        acknowledged = found;
    }
    println!(
        "{rounds} kills from seed {seed} ({early} of them during recovery), {} operations in {:?}: nothing lost",
        acknowledged.iter().sum::<u64>(),
        start.elapsed()
    );
}
