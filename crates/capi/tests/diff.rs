//! The differential driver, short: our library against itself, and against a RocksDB library where
//! one is at hand.
//!
//! `ESKER_REF_LIB` names that library; without it Debian's `librocksdb.so.7.8` is taken.
//! `ESKER_DIFF_CALLS` and `ESKER_DIFF_SEEDS` (`1..20`) ask for more. Long runs are `esker diff`;
//! docs/testing.md has them.

#[path = "common/loaded.rs"]
mod loaded;

use esker_differential::{ComparisonPlan, run};
use loaded::{directory, ours};
use std::ops::Range;
use std::path::{Path, PathBuf};

const DEBIAN: &str = "/usr/lib/x86_64-linux-gnu/librocksdb.so.7.8";

fn calls() -> u64 {
    let asked = std::env::var("ESKER_DIFF_CALLS").ok();
    asked.map_or(20_000, |n| n.parse().expect("ESKER_DIFF_CALLS is a number"))
}

fn seeds() -> Range<u64> {
    let Ok(asked) = std::env::var("ESKER_DIFF_SEEDS") else {
        return 1..2;
    };
    let (from, to) = asked.split_once("..").expect("ESKER_DIFF_SEEDS is A..B");
    let number = |text: &str| text.parse().expect("ESKER_DIFF_SEEDS has numbers");
    number(from)..number(to)
}

/// Plays the trace on both; no call may differ.
fn compare(left: &Path, right: &Path, seeds: Range<u64>, without: &[&str]) {
    for seed in seeds {
        let place = directory();
        let plan = ComparisonPlan {
            left: left.to_owned(),
            right: right.to_owned(),
            calls: calls(),
            seed,
            directory: place.path().join("diff"),
            without: without.iter().map(|&kind| kind.to_owned()).collect(),
            differences: 1,
            plain: !without.is_empty(),
            trace: false,
        };
        let outcome = run(&plan, |_, _| {}).expect("both libraries open their databases");
        println!(
            "diff: left {}, seed {seed}: {}; {} kinds left out; allowed: {:?}",
            left.display(),
            outcome.line(),
            outcome.lacking.len(),
            outcome.allowed
        );
        assert_eq!(
            outcome.count(),
            0,
            "seed {seed}, options {}\n{}",
            outcome.options,
            outcome.reports.join("\n")
        );
        assert!(
            outcome.calls.len() >= 30,
            "too few kinds: {:?}",
            outcome.calls
        );
    }
}

#[test]
fn ours_agrees_with_itself() {
    compare(&ours(), &ours(), seeds(), &[]);
}

#[test]
fn ours_agrees_with_rocksdb() {
    let given = std::env::var_os("ESKER_REF_LIB").map(PathBuf::from);
    // RocksDB 7.8 ends the process in some long-lived iterators, and gives ingested files other
    // sequence numbers.
    let without: &[&str] = match given {
        Some(_) => &[],
        None => &[
            "IterNew",
            "IterStep",
            "IterDrop",
            "Ingest",
            "IngestMany",
            "Ttl",
        ],
    };
    let library = given.unwrap_or_else(|| DEBIAN.into());
    if library.exists() {
        compare(&library, &ours(), seeds(), without)
    } else {
        println!("diff: skipped, no RocksDB library: {}", library.display())
    }
}
