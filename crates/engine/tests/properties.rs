//! Properties by RocksDB's names: every name answers, and what it says is so.

use esker::observe::{HistogramId, Statistics, Ticker};
use esker::{CompactRangeOptions, Db, FlushOptions, Options};
use std::sync::Arc;

/// A family with two tables in level 0 or below, a memtable, and deletions.
fn filled(options: Options) -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), options.create_if_missing(true)).expect("opens");
    for n in 0..1_000u32 {
        db.put(format!("key{n:06}"), vec![7; 100]).expect("writes");
    }
    db.flush().expect("flushes");
    for n in 0..500u32 {
        db.put(format!("key{n:06}"), vec![8; 100]).expect("writes");
    }
    db.flush().expect("flushes");
    for n in 0..10u32 {
        db.delete(format!("key{n:06}")).expect("deletes");
    }
    (dir, db)
}

fn quiet() -> Options {
    Options::new()
        .set("disable_auto_compactions", "true")
        .expect("an option")
}

fn number(db: &Db, name: &str) -> u64 {
    let family = db.default_family_handle();
    db.int_property(&family, name)
        .unwrap_or_else(|| panic!("{name} is a number"))
}

#[test]
fn every_name_answers() {
    let (_dir, db) = filled(quiet());
    // These have no answer in RocksDB either: no statistics, keys of mixed age, and no blob cache.
    let silent = [
        "rocksdb.options-statistics",
        "rocksdb.estimate-oldest-key-time",
        "rocksdb.blob-cache-capacity",
        "rocksdb.blob-cache-usage",
        "rocksdb.blob-cache-pinned-usage",
    ];
    for name in Db::property_names() {
        let name = match name.strip_suffix('N') {
            Some(stem) => format!("{stem}1"),
            None => name,
        };
        let answer = db.property(&name);
        if !silent.contains(&name.as_str()) {
            let answer = answer.unwrap_or_else(|| panic!("{name} has no answer"));
            // Nobody was held back, nobody holds much, and there is no budget.
            let may_be_empty = [
                "rocksdb.esker.stalls",
                "rocksdb.esker.memory-budget",
                "rocksdb.esker.long-readers",
            ];
            assert!(
                !answer.is_empty() || may_be_empty.contains(&&*name),
                "{name}"
            );
        }
    }
    for wrong in [
        "rocksdb.",
        "estimate-num-keys",
        "rocksdb.nothing",
        "rocksdb.num-files-at-level",
        "rocksdb.num-files-at-level99",
        "rocksdb.num-files-at-level18446744073709551616",
        "rocksdb.stats1",
        "rocksdb.aggregated-table-properties-at-level77",
        "rocksdb.blob-cache-capacity",
    ] {
        assert_eq!(db.property(wrong), None, "{wrong}");
    }
}

#[test]
fn numbers_tell_what_is_there() {
    let (_dir, db) = filled(quiet());
    assert_eq!(number(&db, "rocksdb.num-entries-active-mem-table"), 10);
    assert_eq!(number(&db, "rocksdb.num-deletes-active-mem-table"), 10);
    assert_eq!(number(&db, "rocksdb.num-entries-imm-mem-tables"), 0);
    assert_eq!(number(&db, "rocksdb.estimate-num-keys"), 1_490);
    assert_eq!(
        db.property("rocksdb.num-files-at-level0").as_deref(),
        Some("2")
    );
    assert_eq!(number(&db, "rocksdb.num-live-versions"), 1);
    assert_eq!(number(&db, "rocksdb.background-errors"), 0);
    assert_eq!(number(&db, "rocksdb.is-file-deletions-enabled"), 1);
    assert_eq!(number(&db, "rocksdb.base-level"), 6);
    assert_eq!(
        number(&db, "rocksdb.min-obsolete-sst-number-to-keep"),
        u64::MAX
    );
    assert!(number(&db, "rocksdb.estimate-table-readers-mem") > 0);
    let size = number(&db, "rocksdb.live-sst-files-size");
    assert_eq!(size, number(&db, "rocksdb.total-sst-files-size"));
    let files = db.live_files_metadata();
    assert_eq!(files.iter().map(|f| f.size).sum::<u64>(), size);
    // The newer file hides the first half of the older one: only one of them counts.
    assert!(number(&db, "rocksdb.estimate-live-data-size") < size);
    let snapshot = db.snapshot();
    assert_eq!(number(&db, "rocksdb.num-snapshots"), 1);
    assert_eq!(
        number(&db, "rocksdb.oldest-snapshot-sequence"),
        db.latest_sequence_number()
    );
    drop(snapshot);
    assert_eq!(number(&db, "rocksdb.num-snapshots"), 0);
}

#[test]
fn an_iterator_keeps_its_version_and_its_files() {
    let (_dir, db) = filled(quiet());
    let before = number(&db, "rocksdb.live-sst-files-size");
    let it = db.iter();
    db.compact_range(None, None).expect("compacts");
    assert_eq!(number(&db, "rocksdb.num-live-versions"), 2);
    let now = number(&db, "rocksdb.live-sst-files-size");
    assert!(now < before, "{now} {before}");
    assert!(number(&db, "rocksdb.total-sst-files-size") >= now + before);
    assert!(number(&db, "rocksdb.obsolete-sst-files-size") >= before);
    drop(it);
    assert_eq!(number(&db, "rocksdb.num-live-versions"), 1);
    assert_eq!(number(&db, "rocksdb.total-sst-files-size"), now);
}

#[test]
fn the_compaction_table_has_rocksdbs_columns() {
    let (_dir, db) = filled(quiet());
    db.compact_range(None, None).expect("compacts");
    let text = db.property("rocksdb.stats").expect("a text");
    let header = text
        .lines()
        .find(|l| l.starts_with("Level    Files"))
        .expect("a header");
    let columns: Vec<&str> = header.split_whitespace().collect();
    assert_eq!(
        columns,
        [
            "Level",
            "Files",
            "Size",
            "Score",
            "Read(GB)",
            "Rn(GB)",
            "Rnp1(GB)",
            "Write(GB)",
            "WPreComp(GB)",
            "Wnew(GB)",
            "Moved(GB)",
            "W-Amp",
            "Rd(MB/s)",
            "Wr(MB/s)",
            "Comp(sec)",
            "CompMergeCPU(sec)",
            "Comp(cnt)",
            "Avg(sec)",
            "KeyIn",
            "KeyDrop",
            "Rblob(GB)",
            "Wblob(GB)"
        ]
    );
    // The size takes two words.
    for name in ["  L0", "  L6", " Sum", " Int"] {
        let row = text
            .lines()
            .find(|l| l.starts_with(name))
            .unwrap_or_else(|| panic!("no row {name} in {text}"));
        assert_eq!(row.split_whitespace().count(), columns.len() + 1, "{row}");
    }
    for line in [
        "** Compaction Stats [default] **",
        "Priority    Files",
        "Uptime(secs): ",
        "Flush(GB): cumulative ",
        "Cumulative compaction: ",
        "Interval compaction: ",
        "Estimated pending compaction bytes: 0",
        "Write Stall (count): cf-l0-file-count-limit-delays-with-ongoing-compaction: 0, ",
        "** File Read Latency Histogram By Level [default] **",
        "** DB Stats **",
        "Cumulative writes: 1510 writes, 1510 keys, 1510 commit groups, 1.0 writes per commit group",
        "Cumulative WAL: 1510 writes, 0 syncs, ",
        "Cumulative stall: 00:00:0.000 H:M:S, 0.0 percent",
        "Interval writes: 1510 writes",
        "Interval stall: ",
        "Block cache entry stats(count,size,portion):",
    ] {
        assert!(text.contains(line), "no `{line}` in {text}");
    }
    let again = db.property("rocksdb.dbstats").expect("a text");
    assert!(
        again.contains("Interval writes: 0 writes, 0 keys"),
        "{again}"
    );
}

#[test]
fn maps_hold_the_figures_of_the_texts() {
    let (_dir, db) = filled(quiet());
    db.compact_range(None, None).expect("compacts");
    let family = db.default_family_handle();
    let map = |name: &str| {
        db.map_property(&family, name)
            .unwrap_or_else(|| panic!("{name} is a map"))
    };
    let cf = map("rocksdb.cfstats");
    let figure = |key: &str| -> f64 { cf[key].parse().expect("a number") };
    assert_eq!(figure("compaction.Sum.NumFiles"), 1.0);
    // Two flushes before and one by the manual compaction.
    assert_eq!(figure("compaction.L0.CompCount"), 3.0);
    assert_eq!(figure("compaction.L6.KeyIn"), 1_510.0);
    assert_eq!(figure("compaction.L6.KeyDrop"), 520.0);
    assert!(figure("compaction.Sum.WriteAmp") > 1.0);
    assert_eq!(cf["total-stops"], "0");
    let dbstats = map("rocksdb.dbstats");
    assert_eq!(dbstats["db.user_keys_written"], "1510");
    assert_eq!(dbstats["db.user_writes_by_self"], "1510");
    let tables = map("rocksdb.aggregated-table-properties");
    assert_eq!(tables["num_entries"], "990");
    let at_six = map("rocksdb.aggregated-table-properties-at-level6");
    assert_eq!(tables, at_six);
    let cache = map("rocksdb.block-cache-entry-stats");
    assert!(cache.contains_key("count.data-block"), "{cache:?}");
    assert!(db.map_property(&family, "rocksdb.levelstats").is_none());
}

#[test]
fn sizes_follow_the_keys() {
    let (_dir, db) = filled(quiet());
    let family = db.default_family_handle();
    let sizes = db
        .approximate_sizes(
            &family,
            &[
                ("key000000", "key999999"),
                ("key000000", "key000500"),
                ("a", "b"),
                ("z", "a"),
            ],
        )
        .expect("sizes");
    let all = number(&db, "rocksdb.live-sst-files-size");
    assert!(sizes[0] <= all && sizes[0] > all / 2, "{sizes:?} of {all}");
    assert!(sizes[1] < sizes[0] && sizes[1] > 0, "{sizes:?}");
    assert_eq!(sizes[2..], [0, 0]);
    let (entries, bytes) = db.approximate_memtable_stats(&family, "key000000", "key000005");
    assert_eq!(entries, 5);
    assert!(bytes > 0);
    assert_eq!(db.approximate_memtable_stats(&family, "x", "z").0, 0);
    let properties = db.properties_of_all_tables(&family).expect("properties");
    assert_eq!(properties.len(), 2);
    let entries: u64 = properties.values().map(|p| p.num_entries).sum();
    assert_eq!(entries, 1_500);
}

#[test]
fn statistics_count_at_the_source() {
    let statistics = Statistics::new();
    let mut options = quiet();
    options.db.statistics = Some(Arc::clone(&statistics));
    let (_dir, db) = filled(options);
    let family = db.default_family_handle();
    let ticker = |t: Ticker| statistics.ticker(t);
    assert_eq!(ticker(Ticker::NumberKeysWritten), 1_510);
    assert_eq!(ticker(Ticker::WriteDoneBySelf), 1_510);
    assert_eq!(ticker(Ticker::WriteWithWal), 1_510);
    assert_eq!(ticker(Ticker::BytesWritten), ticker(Ticker::WalFileBytes));
    assert_eq!(statistics.histogram(HistogramId::DbWrite).count, 1_510);
    assert_eq!(
        statistics.histogram(HistogramId::BytesPerWrite).count,
        1_510
    );
    assert_eq!(statistics.histogram(HistogramId::FlushTime).count, 2);
    assert!(ticker(Ticker::FlushWriteBytes) > 10_000);

    db.flush_wal(true).expect("syncs");
    assert_eq!(ticker(Ticker::WalFileSynced), 1);
    assert_eq!(
        statistics.histogram(HistogramId::WalFileSyncMicros).count,
        1
    );

    assert!(db.get("key000700").expect("reads").is_some());
    assert!(db.get("key000700").expect("reads").is_some());
    assert!(db.get("key000005").expect("reads").is_none());
    assert_eq!(ticker(Ticker::NumberKeysRead), 3);
    assert_eq!(ticker(Ticker::BytesRead), 200);
    assert_eq!(ticker(Ticker::MemtableHit), 1);
    assert_eq!(ticker(Ticker::MemtableMiss), 2);
    assert_eq!(ticker(Ticker::GetHitL0), 2);
    assert_eq!(statistics.histogram(HistogramId::DbGet).count, 3);
    assert_eq!(ticker(Ticker::BlockCacheDataMiss), 1);
    assert_eq!(ticker(Ticker::BlockCacheDataHit), 1);
    assert_eq!(ticker(Ticker::BlockCacheDataAdd), 1);
    assert!(ticker(Ticker::BlockCacheBytesRead) > 0);
    assert_eq!(
        ticker(Ticker::BlockCacheHit),
        ticker(Ticker::BlockCacheDataHit)
            + ticker(Ticker::BlockCacheIndexHit)
            + ticker(Ticker::BlockCacheFilterHit)
    );
    assert!(statistics.histogram(HistogramId::SstReadMicros).count > 0);

    db.compact_range_opt(&family, None, None, &CompactRangeOptions::default())
        .expect("compacts");
    assert_eq!(ticker(Ticker::CompactionKeyDropNewerEntry), 510);
    assert_eq!(ticker(Ticker::CompactionKeyDropObsolete), 10);
    assert!(ticker(Ticker::CompactReadBytes) > ticker(Ticker::CompactWriteBytes));
    assert_eq!(statistics.histogram(HistogramId::CompactionTime).count, 1);
    let text = db.property("rocksdb.options-statistics").expect("a text");
    assert!(text.contains("rocksdb.number.keys.written COUNT : 1510"));
    let histogram = db.property("rocksdb.cf-file-histogram").expect("a text");
    assert!(histogram.contains("read latency histogram (micros):\nCount: "));

    statistics.reset();
    assert_eq!(ticker(Ticker::NumberKeysWritten), 0);
    assert_eq!(statistics.histogram(HistogramId::DbWrite).count, 0);
    db.flush_cf(&family, &FlushOptions::default())
        .expect("flushes nothing");
}
