//! Forecasts of `esker_lsm::forecast`, against what the engine does with the same options.

use esker::observe::{Statistics, Ticker};
use esker::{Db, Options, Result};
use esker_lsm::forecast::{Forecast, Workload, WriteOrder};

const KEYS: u64 = 20_000;
const FLUSHES: u64 = 40;
const EACH: u64 = 1_000;

fn options(by_cost: &str) -> Result<Options> {
    let mut options = Options::new().create_if_missing(true);
    for (name, value) in [
        ("level_shape_by_cost", by_cost),
        ("write_buffer_size", "4194304"),
        ("target_file_size_base", "262144"),
        ("max_bytes_for_level_base", "1048576"),
        ("max_bytes_for_level_multiplier", "4"),
        ("compression", "kNoCompression"),
        ("max_background_jobs", "1"),
    ] {
        options.set_in_place(name, value)?;
    }
    Ok(options)
}

/// Bytes of tables by level.
fn levels(db: &Db) -> Vec<u64> {
    let meta = db.family_metadata(&db.default_family_handle());
    meta.levels.iter().map(|l| l.size).collect()
}

#[test]
fn the_engine_does_what_was_foretold() -> Result<()> {
    does_what_was_foretold("true")
}

#[test]
fn the_engine_does_what_was_foretold_with_the_fixed_rule() -> Result<()> {
    does_what_was_foretold("false")
}

/// Tables come faster than level 0 goes down, and it goes down when somebody waits for that.
#[test]
fn level0_is_in_shape_when_somebody_waited() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), options("true")?)?;
    for round in 0..60 {
        for key in 0..200 {
            db.put(format!("{key:08}"), format!("{round}{}", "v".repeat(900)))?;
        }
        db.flush()?;
    }
    db.wait_for_compaction()?;
    assert!(levels_files(&db)[0] < 4, "{:?}", levels_files(&db));
    Ok(())
}

/// Tables by level.
fn levels_files(db: &Db) -> Vec<usize> {
    let meta = db.family_metadata(&db.default_family_handle());
    meta.levels.iter().map(|l| l.files.len()).collect()
}

fn does_what_was_foretold(by_cost: &str) -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let statistics = Statistics::new();
    let mut options = options(by_cost)?;
    let family = options.family.clone().resolve();
    options.db.statistics = Some(statistics.clone());
    let db = Db::open(dir.path(), options)?;
    let mut random = 7u64;
    for _ in 0..FLUSHES {
        for _ in 0..EACH {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            db.put(format!("{:016}", random % KEYS), [b'v'; 230])?;
        }
        db.flush()?;
        db.wait_for_compaction()?;
    }
    let flushed = statistics.ticker(Ticker::FlushWriteBytes);
    let written = flushed + statistics.ticker(Ticker::CompactWriteBytes);
    let found = levels(&db);
    db.close()?;

    let entry_bytes = flushed / (FLUSHES * EACH);
    let load = Workload {
        keys: KEYS,
        entry_bytes,
        flush_bytes: entry_bytes * EACH,
        order: WriteOrder::AtRandom,
        service: f64::INFINITY,
        jobs: 1,
        level0_stop: 36,
        rests: true,
    };
    let mut forecast = Forecast::new(family.to_policy(), 7, load);
    forecast.write(FLUSHES * EACH)?;
    let (said, was) = (
        forecast.write_amplification(),
        written as f64 / flushed as f64,
    );
    assert!(
        (said / was - 1.0).abs() < 0.15,
        "write-amp: {said} foretold, {was} found"
    );
    let foretold: Vec<_> = forecast
        .version()
        .levels()
        .iter()
        .map(|l| l.bytes())
        .collect();
    let all: u64 = found.iter().sum();
    for (level, (said, was)) in foretold.iter().zip(&found).enumerate() {
        let off = said.abs_diff(*was) as f64 / all as f64;
        assert!(
            off < 0.1,
            "level {level}: {foretold:?} foretold, {found:?} found"
        );
    }
    Ok(())
}
