//! Statistics, properties and listeners: what the database says about itself.
//!
//! `cargo run -p esker --example observe`

use esker::observe::{CompactionInfo, EventListener, FlushInfo, Statistics, Ticker};
use esker::{Db, Options, Result};
use std::sync::Arc;

/// Prints what background jobs do.
struct Printer;

impl EventListener for Printer {
    fn on_flush_completed(&self, info: &FlushInfo) {
        println!(
            "flush {}: {} entries, {} bytes ({})",
            info.job,
            info.entries,
            info.file_bytes,
            info.reason.text()
        );
    }

    fn on_compaction_completed(&self, info: &CompactionInfo) {
        println!(
            "compaction {}: {} files into {}, {} -> {} bytes ({})",
            info.job,
            info.input_files.len(),
            info.output_files.len(),
            info.input_bytes,
            info.output_bytes,
            info.reason.text()
        );
    }
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let statistics = Statistics::new();
    let mut options = Options::new().create_if_missing(true);
    options.db.statistics = Some(Arc::clone(&statistics));
    options.db.listeners.push(Arc::new(Printer));
    let db = Db::open(dir.path(), options)?;
    for round in 0..3u32 {
        for n in 0..2_000u32 {
            db.put(n.to_be_bytes(), (n + round).to_be_bytes())?;
        }
        db.flush()?;
    }
    db.compact_range(None, None)?;
    db.get(7u32.to_be_bytes())?;

    for name in [
        "rocksdb.estimate-num-keys",
        "rocksdb.num-files-at-level0",
        "rocksdb.cur-size-all-mem-tables",
    ] {
        println!("{name}: {}", db.property(name).unwrap_or_default());
    }
    println!(
        "bytes written by flushes: {}",
        statistics.ticker(Ticker::FlushWriteBytes)
    );
    assert!(statistics.ticker(Ticker::FlushWriteBytes) > 0);
    assert_eq!(statistics.ticker(Ticker::NumberKeysRead), 1);
    Ok(())
}
