//! A bound on space: overwriting with one, with and without blob files, never takes more on the
//! disk than it allows.
//!
//! The bound is on tables and blob files, what jobs are writing of them and what waits to be
//! deleted, so the directory is looked at, every few milliseconds and by a thread of its own.
//!
//! A database of some ten megabytes needs slack beside the percentage. Twice as many memtables as
//! start a merge are no garbage to the bound (`least` in `lsm/space.rs`): 2 MB of 24 here. And
//! where no plan finds room while writers wait, the one that needs least begins: it comes on top.
//! Where values are in blob files that is the keys of a few tables, else a merge of a few tables
//! with what they meet in the last level, up to 4 MB here.

mod common;

use common::Rng;
use esker::observe::{Statistics, Ticker};
use esker::{Db, Error, ErrorKind, Options, Result};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const KEYS: u64 = 12_000;
const VALUE: usize = 2_000;
/// Percent of what is alive.
const BOUND: u64 = 130;
/// Most bytes of memtables of this size before they begin to count: twice as many as start
/// a merge.
const MEMTABLE: u64 = 256 << 10;

const LEVELED: &str = "max_bytes_for_level_base=1048576;target_file_size_base=262144";
const UNIVERSAL: &str =
    "compaction_style=kCompactionStyleUniversal;target_file_size_base=262144;num_levels=7";
const BLOBS: &str = "enable_blob_files=true;min_blob_size=500;blob_file_size=1048576";

fn options(list: &str) -> Options {
    let shared = format!(
        "create_if_missing=true;write_buffer_size={MEMTABLE};level0_file_num_compaction_trigger=4;\
         compression=kNoCompression;max_background_jobs=3;{list}"
    );
    Options::new()
        .set_all(&shared)
        .expect("these options exist")
}

fn key(n: u64) -> String {
    format!("key{n:012}")
}

/// A value that no codec makes smaller.
fn value(rng: &mut Rng) -> Vec<u8> {
    (0..VALUE / 8)
        .flat_map(|_| rng.below(u64::MAX).to_le_bytes())
        .collect()
}

/// Bytes of the tables and blob files in a directory. A file may go between two calls.
fn on_disk(dir: &Path) -> u64 {
    let names = std::fs::read_dir(dir).expect("a directory").flatten();
    let ours = names.filter(|e| {
        let path = e.path();
        let kind = path.extension().and_then(|kind| kind.to_str());
        matches!(kind, Some("sst" | "blob"))
    });
    ours.filter_map(|e| e.metadata().ok())
        .map(|m| m.len())
        .sum()
}

/// Figures of a run.
#[derive(Debug)]
struct Seen {
    live: u64,
    peak: u64,
    end: u64,
    /// Written to tables and blob files while it overwrote.
    written: u64,
}

impl Seen {
    fn percent(&self, bytes: u64) -> u64 {
        bytes * 100 / self.live
    }
}

fn written(counts: &Statistics) -> u64 {
    let tickers = [
        Ticker::FlushWriteBytes,
        Ticker::CompactWriteBytes,
        Ticker::BlobDbBlobFileBytesWritten,
    ];
    tickers.map(|t| counts.ticker(t)).iter().sum()
}

/// Fills a database, then overwrites keys that `pick` draws; the most that its directory took.
fn overwritten(list: &str, pick: impl Fn(&mut Rng) -> u64, writes: u64) -> Result<Seen> {
    let dir = tempfile::tempdir().expect("a directory");
    let counts = Arc::new(Statistics::new());
    let db = Db::open(dir.path(), options(list).statistics(Arc::clone(&counts)))?;
    let mut rng = Rng::new(7);
    for n in 0..KEYS {
        db.put(key(n * 7919 % KEYS), value(&mut rng))?;
    }
    db.compact_range(None, None)?;
    db.close()?;
    // Opening deletes what the fill left behind.
    let db = Db::open(dir.path(), options(list).statistics(Arc::clone(&counts)))?;
    let live = on_disk(dir.path());
    let before = written(&counts);
    let (peak, ends) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|threads| -> Result<()> {
        threads.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                peak.fetch_max(on_disk(dir.path()), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        let done = (0..writes).try_for_each(|_| {
            let at = pick(&mut rng);
            db.put(key(at), value(&mut rng))
        });
        ends.store(true, Ordering::Relaxed);
        done
    })?;
    db.wait_for_compaction()?;
    let end = on_disk(dir.path());
    // The directory says what is alive: nothing was added.
    let mut it = db.iter();
    it.seek_to_first();
    let mut keys = 0;
    while it.valid() {
        assert_eq!(it.value().len(), VALUE);
        keys += 1;
        it.next();
    }
    it.status()?;
    assert_eq!(keys, KEYS);
    drop(it);
    db.close()?;
    let written = written(&counts) - before;
    let peak = peak.into_inner();
    Ok(Seen {
        live,
        peak,
        end,
        written,
    })
}

fn bounded(list: &str) -> String {
    format!("{list};max_space_amplification_percent={BOUND}")
}

/// Overwrites with the bound, and looks that it is kept, up to the slack.
fn check(name: &str, list: &str, pick: impl Fn(&mut Rng) -> u64, writes: u64) -> Result<()> {
    let merge = if list.contains("enable_blob_files") {
        1 << 20
    } else {
        4 << 20
    };
    let slack = 2 * 4 * MEMTABLE + merge;
    let kept = overwritten(&bounded(list), pick, writes)?;
    println!(
        "{name}: at most {} % of {} bytes, {} % at the end, written {:.2} times",
        kept.percent(kept.peak),
        kept.live,
        kept.percent(kept.end),
        kept.written as f64 / (writes * VALUE as u64) as f64
    );
    let most = kept.live * BOUND / 100 + slack;
    assert!(kept.peak <= most, "{name}: {kept:?}, at most {most}");
    assert!(kept.end <= kept.live * BOUND / 100, "{name}: {kept:?}");
    Ok(())
}

/// Nothing is garbage where each key is written once: the bound moves no value then.
#[test]
fn pure_inserts_move_no_value() -> Result<()> {
    let inserted = |list: &str| -> Result<u64> {
        let dir = tempfile::tempdir().expect("a directory");
        let counts = Arc::new(Statistics::new());
        let db = Db::open(dir.path(), options(list).statistics(Arc::clone(&counts)))?;
        let mut rng = Rng::new(9);
        for n in 0..KEYS {
            db.put(key(n * 7919 % KEYS), value(&mut rng))?;
        }
        db.flush()?;
        db.wait_for_compaction()?;
        db.close()?;
        Ok(counts.ticker(Ticker::BlobDbBlobFileBytesWritten))
    };
    let list = format!("{LEVELED};{BLOBS}");
    let (without, with) = (inserted(&list)?, inserted(&bounded(&list))?);
    println!("{with} bytes of blob files with the bound, {without} without");
    assert!(with * 10 <= without * 11, "{with}, without {without}");
    Ok(())
}

fn uniform(rng: &mut Rng) -> u64 {
    rng.below(KEYS)
}

fn hot_tenth(rng: &mut Rng) -> u64 {
    rng.below(KEYS / 10)
}

#[test]
fn blobs_under_uniform_overwrites_stay_within_the_bound() -> Result<()> {
    check(
        "blobs, leveled",
        &format!("{LEVELED};{BLOBS}"),
        uniform,
        40_000,
    )?;
    check(
        "blobs, universal",
        &format!("{UNIVERSAL};{BLOBS}"),
        uniform,
        40_000,
    )
}

#[test]
fn blobs_of_a_hot_tenth_stay_within_the_bound() -> Result<()> {
    check(
        "blobs, hot",
        &format!("{LEVELED};{BLOBS}"),
        hot_tenth,
        40_000,
    )?;
    check(
        "blobs, hot, universal",
        &format!("{UNIVERSAL};{BLOBS}"),
        hot_tenth,
        30_000,
    )
}

#[test]
fn a_leveled_tree_stays_within_the_bound() -> Result<()> {
    check("leveled", LEVELED, uniform, 30_000)?;
    check("leveled, hot", LEVELED, hot_tenth, 30_000)
}

#[test]
fn a_universal_tree_stays_within_the_bound() -> Result<()> {
    check("universal", UNIVERSAL, uniform, 30_000)?;
    check("universal, hot", UNIVERSAL, hot_tenth, 30_000)
}

#[test]
fn the_bound_is_at_least_110_percent_and_needs_merges() {
    let refused = |list: &str| -> Error {
        let dir = tempfile::tempdir().expect("a directory");
        let error = Db::open(dir.path().join("db"), options(list)).expect_err("refused");
        assert!(!dir.path().join("db/CURRENT").exists(), "{list}");
        error
    };
    for percent in [1, 100, 109] {
        let e = refused(&format!("max_space_amplification_percent={percent}"));
        assert_eq!(e.kind(), ErrorKind::InvalidArgument);
        assert!(e.to_string().contains("less than 110 %"), "{e}");
    }
    let fifo = "compaction_style=kCompactionStyleFIFO;max_space_amplification_percent=130";
    assert!(refused(fifo).to_string().contains("leveled and universal"));
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), options("max_space_amplification_percent=110")).expect("opens");
    let family = db.default_family_handle();
    let set = |value| db.set_options(&family, &[("max_space_amplification_percent", value)]);
    assert!(set("109").is_err());
    assert!(set("0").is_ok() && set("200").is_ok());
}
