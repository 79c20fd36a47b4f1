//! Families that share background threads: one is overloaded, the other trickles, and both make progress.
//!
//! `cargo test --test shares -- --nocapture` shows rates and the ledger.

use esker::{Db, Env, FamilyHandle, FlushOptions, Options, Result};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn small() -> Options {
    Options::new()
        .create_if_missing(true)
        .env(Env::in_memory())
        .set_all(
            "write_buffer_size=262144;target_file_size_base=262144;max_bytes_for_level_base=1048576;\
             level0_file_num_compaction_trigger=4;level0_slowdown_writes_trigger=8;\
             level0_stop_writes_trigger=12;compression=kNoCompression;max_background_jobs=2",
        )
        .expect("these options exist")
}

fn level0(db: &Db, family: &FamilyHandle) -> u64 {
    let tables = db.property_cf(family, "rocksdb.num-files-at-level0");
    tables.and_then(|t| t.parse().ok()).expect("a number")
}

/// The overloaded family had a plan above 1 whenever a compaction could start, and the other one had its turn only when its own
/// level 0 was as crowded.
#[test]
fn a_trickling_family_makes_progress_beside_an_overloaded_one() -> Result<()> {
    let options = small();
    let family = options.family.clone();
    let db = Db::open("/db", options)?;
    let heavy = db.create_family("heavy", family.clone())?;
    let light = db.create_family("light", family)?;
    let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
    let begun = Instant::now();
    let mut seen = Vec::new();
    std::thread::scope(|scope| -> Result<()> {
        for writer in 0..2u64 {
            let (db, heavy, stop, written) = (&db, &heavy, &stop, &written);
            scope.spawn(move || {
                let mut n = writer;
                while !stop.load(Ordering::Relaxed) {
                    n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let key = (n >> 44).to_be_bytes();
                    db.put_cf(heavy, key, [b'x'; 400]).expect("written");
                    written.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut trickle = || -> Result<()> {
            for n in 0..60u32 {
                db.put_cf(&light, (n % 7).to_be_bytes(), [b'y'; 100])?;
                db.flush_cf(&light, &FlushOptions::default())?;
                seen.push((level0(&db, &light), level0(&db, &heavy)));
                std::thread::sleep(Duration::from_millis(20));
            }
            Ok(())
        };
        let done = trickle();
        stop.store(true, Ordering::Relaxed);
        done
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    let written = written.load(Ordering::Relaxed);
    println!(
        "heavy: {:.0} writes a second; level 0 of light and heavy after each flush of light: {seen:?}",
        written as f64 / seconds
    );
    println!("{}", db.property("rocksdb.esker.stalls").expect("a text"));
    println!(
        "{}",
        db.property_cf(&light, "rocksdb.levelstats")
            .expect("a text")
    );
    // Sixty tables came, and merges of four and more of them took them away as they came.
    let most = seen.iter().map(|(light, _)| *light).max().expect("some");
    assert!(most <= 12, "{most} tables at level 0 of {seen:?}");
    let below: u64 = (1..7)
        .filter_map(|l| db.property_cf(&light, &format!("rocksdb.num-files-at-level{l}")))
        .filter_map(|n| n.parse::<u64>().ok())
        .sum();
    assert!(below > 0, "nothing went down");
    // The other one went on as well: it is overloaded, and was never locked out.
    assert!(written > 5_000, "{written}");
    db.wait_for_compaction()?;
    assert!(level0(&db, &heavy) < 4 && level0(&db, &light) < 4);
    Ok(())
}
