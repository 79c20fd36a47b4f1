//! Damage at rest gives the same data, a clear error, or an earlier state that is reported: never
//! anything else.
//!
//! `ESKER_SIM_ROT`: how many damages. A fifth of them is done to databases of RocksDB where
//! `ESKER_GOLDEN` names some, and else all to Esker's own. `ESKER_SIM_SEED`: the first seed.

use esker_sim::corruption::{Counts, Extent, Subject, each, golden, run_all, simulated};
use esker_status::Result;
use std::path::Path;
use std::sync::Arc;

/// Databases of Esker's own.
const SUBJECTS: u64 = 40;

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// The subjects of `make`, damaged this many times each.
fn damage_all(
    whose: &str,
    times: u64,
    make: impl Fn(u64) -> Result<Option<Arc<Subject>>> + Sync,
) -> Counts {
    let counts = run_all(0, Extent::Some(times), make, |subject, damage, rule| {
        println!("rot {subject} {damage}: {rule}");
    });
    let counts = counts.expect("the workloads run");
    println!("databases of {whose}: {counts}");
    counts
}

/// The databases of RocksDB that are at hand.
fn theirs() -> Vec<Subject> {
    let root = std::env::var_os("ESKER_GOLDEN").filter(|r| !r.is_empty());
    let Some(root) = root else {
        println!("SKIPPED: databases of RocksDB: ESKER_GOLDEN is not set");
        return Vec::new();
    };
    let golden = golden(Path::new(&root)).expect("the set is there");
    assert!(!golden.is_empty(), "no database of the set opens");
    golden
}

/// The most memory that this process ever had, in megabytes, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes >> 10)
}

#[test]
fn damage_is_noticed_or_does_no_harm() {
    let (cases, seed) = (number("ESKER_SIM_ROT", 10_000), number("ESKER_SIM_SEED", 1));
    println!("from seed {seed}");
    let theirs = theirs();
    let of_theirs = match theirs.len() as u64 {
        0 => 0,
        all => (cases / 5).div_ceil(all) * all,
    };
    let times = cases.saturating_sub(of_theirs).div_ceil(SUBJECTS);
    let own = damage_all("Esker", times, simulated(seed, SUBJECTS));
    let mut all = own;
    if !theirs.is_empty() {
        let times = of_theirs / theirs.len() as u64;
        all.merge(&damage_all("RocksDB", times, each(theirs)));
    }
    println!("damages at rest: {}, violations: {}", all.cases, all.broken);
    assert_eq!(all.broken, 0, "rules were broken");
    assert!(all.cases >= cases, "so many were asked for");
    assert!(own.refused > 0 && own.unreadable > 0 && own.reported > 0);
    assert!(own.unnoticeable * 500 < own.cases, "{own}");
    let peak = peak_memory().unwrap_or(0);
    println!("peak memory: {peak} MB");
    assert!(peak < 1 << 10, "no damage takes a gigabyte");
}

#[test]
fn a_part_of_an_edit_is_never_read_as_another_edit() {
    let subjects = (1..=8).map(Subject::simulated);
    let cuts = subjects.map(|s| s.and_then(|s| s.cut_edits()).expect("no cut is read wrong"));
    let cuts: u64 = cuts.sum();
    println!("cuts of edits: {cuts}");
    assert!(cuts > 5_000, "{cuts} cuts");
}
