//! The LOG file: what it begins with, and the statistics that are written into it.

use esker::observe::Statistics;
use esker::{Db, Options, Result};
use std::time::{Duration, Instant};

#[test]
fn the_log_begins_with_the_options() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options::new()
        .create_if_missing(true)
        .set("write_buffer_size", "1234567")?
        .set("compression", "kLZ4Compression")?;
    let db = Db::open(dir.path(), options.clone())?;
    db.create_family("more", options.family)?;
    let log = std::fs::read_to_string(dir.path().join("LOG")).expect("a LOG");
    for text in [
        "RocksDB version: ",
        "Git sha ",
        "DB SUMMARY",
        "DB Session ID:  ",
        "Options.create_if_missing: 1",
        "Options.max_background_jobs: 2",
        "--------------- Options for column family [default]:",
        "Options.write_buffer_size: 1234567",
        "Options.compression: LZ4",
        "--------------- Options for column family [more]:",
    ] {
        assert!(log.contains(text), "no `{text}` in\n{log}");
    }
    // Every line has a time, so that tools can cut it off.
    assert!(
        log.lines().all(|l| l.len() > 26 && l.as_bytes()[4] == b'/'),
        "{log}"
    );
    Ok(())
}

#[test]
fn statistics_are_dumped_from_time_to_time() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = Options::new()
        .create_if_missing(true)
        .set("stats_dump_period_sec", "1")?;
    options.db.statistics = Some(Statistics::new());
    let db = Db::open(dir.path(), options)?;
    db.put("k", "v")?;
    let begun = Instant::now();
    loop {
        let log = std::fs::read_to_string(dir.path().join("LOG")).expect("a LOG");
        let wanted = [
            "------- DUMPING STATS -------",
            "** DB Stats **",
            "Cumulative writes: 1 writes, 1 keys",
            "** Compaction Stats [default] **",
            "rocksdb.number.keys.written COUNT : 1",
        ];
        if wanted.iter().all(|w| log.contains(w)) {
            return Ok(());
        }
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "no dump in\n{log}"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}
