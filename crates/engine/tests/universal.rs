//! Universal and FIFO compaction in a running engine: what is left is right, compressed as asked,
//! and within its bounds.

mod common;
mod rocksdb_tools;

use common::{Rng, SetClock};
use esker::{Db, Env, Options, Result};
use rocksdb_tools::{Content, Contents, Tally, Tools, compare_ours};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn options(list: &str) -> Options {
    let small = "write_buffer_size=65536;target_file_size_base=65536;max_bytes_for_level_base=262144;\
         level0_file_num_compaction_trigger=4;max_background_jobs=4;";
    Options::new()
        .create_if_missing(true)
        .set_all(&format!("{small}{list}"))
        .expect("these options exist")
}

/// Codecs by level, as the tables say.
fn codecs(db: &Db) -> Result<BTreeMap<u8, BTreeSet<String>>> {
    let properties = db.properties_of_all_tables(&db.default_family_handle())?;
    let mut out: BTreeMap<u8, BTreeSet<String>> = BTreeMap::new();
    for file in db.live_files_metadata() {
        let path = file.directory.join(file.name.trim_start_matches('/'));
        let codec = properties[&path].compression_name.clone();
        out.entry(file.level).or_default().insert(codec);
    }
    Ok(out)
}

fn value(n: u64) -> Vec<u8> {
    let mut rng = Rng::new(n);
    let words: Vec<_> = (0..5).map(|_| format!("{:016x}", rng.next())).collect();
    format!("{n:08}{}", words.join(" ")).into_bytes()
}

fn of(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|n| (*n).to_owned()).collect()
}

#[test]
fn the_newest_data_stays_uncompressed() -> Result<()> {
    let list = "compaction_style=kCompactionStyleUniversal;compression=kLZ4Compression;\
         compaction_options_universal={compression_size_percent=70;max_size_amplification_percent=400};";
    let db = Db::open("/db", options(list).env(Env::in_memory()))?;
    let mut rng = Rng::new(1);
    let mut fill = |n: u64| -> Result<()> {
        for _ in 0..n {
            let k = rng.below(1 << 40);
            db.put(format!("{k:012}"), value(k))?;
        }
        db.flush()?;
        db.wait_for_compaction()
    };
    fill(200)?;
    assert_eq!(codecs(&db)?[&0], of(&["NoCompression"]), "a flush");
    fill(6000)?;
    db.compact_range(None, None)?;
    assert_eq!(codecs(&db)?, BTreeMap::from([(6, of(&["LZ4"]))]));
    // A merge of new runs above a run that is most of the data.
    for _ in 0..3 {
        fill(200)?;
    }
    let by_level = codecs(&db)?;
    assert_eq!(by_level[&6], of(&["LZ4"]));
    assert_eq!(by_level.keys().copied().collect::<Vec<_>>(), [5, 6]);
    assert_eq!(by_level[&5], of(&["NoCompression"]), "{by_level:?}");
    db.close()
}

#[test]
fn tables_are_compressed_as_their_level_asks() -> Result<()> {
    for sequential in [true, false] {
        let list = "compression_per_level=kNoCompression:kSnappyCompression:kLZ4Compression;\
             level_compaction_dynamic_level_bytes=false;num_levels=4;max_bytes_for_level_multiplier=3;\
             bottommost_compression=kZSTD;bottommost_compression_opts={enabled=true;level=5;max_dict_bytes=4096};";
        let db = Db::open("/db", options(list).env(Env::in_memory()))?;
        let mut rng = Rng::new(2);
        for n in 0..40_000 {
            let k = if sequential { n } else { rng.below(20_000) };
            db.put(format!("{k:012}"), value(n))?;
        }
        db.flush()?;
        db.wait_for_compaction()?;
        let by_level = codecs(&db)?;
        // What lies on nothing is bottommost, on whichever level.
        let expected = ["NoCompression", "Snappy", "LZ4", "ZSTD"];
        for (level, found) in &by_level {
            let allowed = of(&[expected[usize::from(*level)], "ZSTD"]);
            assert!(found.is_subset(&allowed), "{by_level:?}");
        }
        assert!(by_level.len() > 1, "{by_level:?}");
        assert_eq!(by_level[&3], of(&["ZSTD"]));
        let properties = db.properties_of_all_tables(&db.default_family_handle())?;
        let zstd = |p: &&esker::TableProperties| p.compression_name == "ZSTD";
        let mut settings = properties.values().filter(zstd);
        assert!(settings.all(|p| p.compression_options.contains("level=5; ")));
        for k in (0..20_000).step_by(7) {
            let found = db.get(format!("{k:012}"))?;
            assert!(!sequential || found == Some(value(k)));
        }
        db.close()?;
    }
    Ok(())
}

/// A random universal set of options, the own ones too.
fn drawn(rng: &mut Rng) -> String {
    let members = [
        format!("size_ratio={}", rng.pick(&[0, 1, 20, 50])),
        format!("min_merge_width={}", 2 + rng.below(2)),
        format!("max_merge_width={}", rng.pick(&[4, 6, 1000])),
        format!(
            "max_size_amplification_percent={}",
            rng.pick(&[20, 50, 200])
        ),
        format!("compression_size_percent={}", rng.pick(&[-1, 0, 60])),
        format!("max_read_amp={}", rng.pick(&[-1, 0, 6])),
        format!(
            "stop_style={}",
            rng.pick(&[
                "kCompactionStopStyleTotalSize",
                "kCompactionStopStyleSimilarSize"
            ])
        ),
        format!("incremental={}", rng.one_in(2)),
        format!("allow_trivial_move={}", rng.one_in(2)),
        format!(
            "max_peak_size_amplification_percent={}",
            rng.pick(&[0, 40, 120])
        ),
    ];
    format!(
        "compaction_style=kCompactionStyleUniversal;num_levels={};max_subcompactions={};\
         max_compaction_bytes={};compaction_options_universal={{{}}};",
        rng.pick(&[1, 3, 7]),
        rng.pick(&[1, 3]),
        rng.pick(&[0, 400_000]),
        members.join(";")
    )
}

/// Writes, deletes, deletes ranges and reopens; what is left is the model's, also for RocksDB.
#[test]
fn universal_trees_hold_what_was_written() -> Result<()> {
    let tools = Tools::find();
    let mut tally = Tally::default();
    for seed in rocksdb_tools::seeds(6) {
        let mut rng = Rng::new(seed);
        let list = drawn(&mut rng);
        println!("seed {seed}: {list}");
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("db");
        let mut model = Content::new();
        let mut db = Db::open(&path, options(&list))?;
        let keys = *rng.pick(&[500, 4000, 30_000]);
        for n in 0..12_000 {
            let k = rng.below(keys);
            let key = format!("{k:08}").into_bytes();
            match rng.below(1000) {
                0..150 => {
                    db.delete(&key)?;
                    model.remove(&key);
                }
                150 => {
                    let end = format!("{:08}", k + rng.below(keys / 20)).into_bytes();
                    if key < end {
                        db.delete_range_cf(&db.default_family_handle(), &key, &end)?;
                        model.retain(|k, _| *k < key || *k >= end);
                    }
                }
                151 => db.flush()?,
                152 if rng.one_in(3) => {
                    db.close()?;
                    db = Db::open(&path, options(&list))?;
                }
                153 if rng.one_in(4) => db.compact_range(None, None)?,
                _ => {
                    db.put(&key, value(n))?;
                    model.insert(key, value(n));
                }
            }
        }
        let expected = Contents::from([("default".to_owned(), model)]);
        compare_ours(&db, &expected, "beside compactions");
        db.flush()?;
        db.wait_for_compaction()?;
        compare_ours(&db, &expected, "afterwards");
        db.close()?;
        if let Some(tools) = tools {
            tools.compare(&path, &expected, "by RocksDB", &mut tally);
            tools.verify_tables(&path, &mut tally);
        }
        let db = Db::open(&path, options(&list))?;
        compare_ours(&db, &expected, "once more");
        db.close()?;
    }
    println!("{tally:?}");
    Ok(())
}

/// Bytes of all tables, and of those that running merges write, which are at most as many as they
/// read.
fn taken(db: &Db) -> u64 {
    let files = db.live_files_metadata();
    let bytes = |f: &esker::LiveFileMeta| f.size * if f.being_compacted { 2 } else { 1 };
    files.iter().map(bytes).sum()
}

/// Overwrites a database for a while; the most that its tables took.
fn peak(universal: &str) -> Result<(u64, u64)> {
    let list = format!(
        "compaction_style=kCompactionStyleUniversal;compression=kNoCompression;max_compaction_bytes=1048576;\
         compaction_options_universal={{max_size_amplification_percent=40;{universal}}};"
    );
    let db = Db::open("/db", options(&list).env(Env::in_memory()))?;
    let keys = 40_000;
    for k in 0..keys {
        db.put(format!("{:012}", k * 7919 % keys), value(k))?;
    }
    db.compact_range(None, None)?;
    let alive = taken(&db);
    let (mut rng, mut peak) = (Rng::new(3), 0);
    for n in 0..120_000 {
        let k = rng.below(keys);
        db.put(format!("{k:012}"), value(n))?;
        if n % 50 == 0 {
            peak = peak.max(taken(&db));
        }
    }
    db.close()?;
    Ok((peak, alive))
}

#[test]
fn the_peak_of_space_is_bounded() -> Result<()> {
    let (free, alive) = peak("")?;
    let (bounded, _) = peak("max_peak_size_amplification_percent=60")?;
    let percent = |bytes: u64| bytes * 100 / alive;
    println!(
        "at most {}% of what is alive, bounded {}%",
        percent(free),
        percent(bounded)
    );
    assert!(
        percent(free) > 200,
        "merges of everything: {}%",
        percent(free)
    );
    // What is flushed while a merge runs comes on top, more of it where compactions get little of
    // the processors, and the merge of a few memtables that may run beside it.
    assert!(percent(bounded) < 250, "{}%", percent(bounded));
    assert!(bounded * 4 < free * 3, "{bounded} of {free}");
    Ok(())
}

/// The numbers of the keys that are there.
fn keys(db: &Db) -> Result<Vec<u64>> {
    let mut it = db.iter();
    it.seek_to_first();
    let mut out = Vec::new();
    while it.valid() {
        let text = String::from_utf8_lossy(it.key()).into_owned();
        out.push(text.parse().expect("a number"));
        it.next();
    }
    it.status()?;
    Ok(out)
}

#[test]
fn a_fifo_tree_holds_the_newest_writes() -> Result<()> {
    for (seed, members) in [
        "max_table_files_size=600000",
        "max_table_files_size=600000;allow_compaction=true",
        "max_data_files_size=600000;allow_compaction=true;use_kv_ratio_compaction=true;max_table_files_size=1",
    ]
    .iter()
    .enumerate()
    {
        let dir = tempfile::tempdir().expect("a directory");
        let list = format!(
            "compaction_style=kCompactionStyleFIFO;compression=kNoCompression;ttl=0;compaction_options_fifo={{{members}}};"
        );
        let path = dir.path().join("db");
        let mut db = Db::open(&path, options(&list))?;
        let mut rng = Rng::new(seed as u64);
        let count = 20_000;
        for n in 0..count {
            db.put(format!("{n:012}"), value(n))?;
            if rng.one_in(700) {
                db.flush()?;
                // Tables that pile up become one, and go as one: more than the limit asks for.
                db.wait_for_compaction()?;
            }
            if rng.one_in(5000) {
                db.close()?;
                db = Db::open(&path, options(&list))?;
            }
        }
        db.flush()?;
        db.wait_for_compaction()?;
        let left = keys(&db)?;
        let first = count - left.len() as u64;
        assert_eq!(left, (first..count).collect::<Vec<_>>(), "{members}");
        let bytes: u64 = db.live_files_metadata().iter().map(|f| f.size).sum();
        assert!((300_000..=600_000).contains(&bytes), "{bytes} with {members}");
        let files = db.live_files_metadata().len();
        assert!(seed == 0 || files < 12, "{files} files with {members}");
        db.close()?;
        if let Some(tools) = Tools::find() {
            let model: Content = (first..count)
                .map(|n| (format!("{n:012}").into_bytes(), value(n)))
                .collect();
            let expected = Contents::from([("default".to_owned(), model)]);
            tools.compare(&path, &expected, members, &mut Tally::default());
        }
    }
    Ok(())
}

#[test]
fn a_fifo_tree_cools_and_expires() -> Result<()> {
    const START: u64 = 1_700_000_000;
    let mut env = Env::in_memory();
    let clock = Arc::new(SetClock {
        real: Arc::clone(&Env::posix().clock),
        unix: AtomicU64::new(START),
    });
    env.clock = clock.clone();
    let list = "compaction_style=kCompactionStyleFIFO;num_levels=1;ttl=1000;compaction_options_fifo={allow_compaction=true;\
         file_temperature_age_thresholds={{temperature=kWarm;age=100;}:{temperature=kCold;age=500;}}};";
    let db = Db::open("/db", options(list).env(env))?;
    let temperatures = || -> Result<Vec<u8>> {
        db.wait_for_compaction()?;
        let mut files = db.live_files_metadata();
        files.sort_by_key(|f| f.smallest_seq);
        Ok(files.iter().map(|f| f.temperature).collect())
    };
    // Four flushes are merged: the file is as young as the last of them.
    for n in 0..4 {
        db.put(format!("{n:012}"), "old")?;
        db.flush()?;
        clock.unix.fetch_add(60, Ordering::Relaxed);
    }
    assert_eq!(temperatures()?, [0]);
    clock.unix.store(START + 400, Ordering::Relaxed);
    db.put("000000000004", "new")?;
    db.flush()?;
    assert_eq!(temperatures()?, [8, 0]);
    assert_eq!(keys(&db)?, [0, 1, 2, 3, 4]);
    clock.unix.store(START + 700, Ordering::Relaxed);
    assert_eq!(temperatures()?, [12, 8]);
    clock.unix.store(START + 1150, Ordering::Relaxed);
    assert_eq!(temperatures()?, [12, 12], "a write is less than 1000 s old");
    clock.unix.store(START + 1200, Ordering::Relaxed);
    assert_eq!(temperatures()?, [12]);
    assert_eq!(keys(&db)?, [4]);
    db.close()
}

#[test]
fn old_runs_of_a_universal_tree_are_rewritten() -> Result<()> {
    let mut env = Env::in_memory();
    let clock = Arc::new(SetClock {
        real: Arc::clone(&Env::posix().clock),
        unix: AtomicU64::new(1_700_000_000),
    });
    env.clock = clock.clone();
    // `ttl` is the same thing here, and the smaller of both counts.
    let list = "compaction_style=kCompactionStyleUniversal;ttl=1000;";
    let db = Db::open("/db", options(list).env(env))?;
    db.put("a", "1")?;
    db.flush()?;
    clock.unix.fetch_add(500, Ordering::Relaxed);
    db.put("a", "2")?;
    db.flush()?;
    db.wait_for_compaction()?;
    assert_eq!(db.live_files_metadata().len(), 2);
    clock.unix.fetch_add(600, Ordering::Relaxed);
    db.wait_for_compaction()?;
    let files = db.live_files_metadata();
    assert_eq!((files.len(), files[0].level), (1, 6));
    assert_eq!(db.get("a")?.as_deref(), Some(&b"2"[..]));
    db.close()
}
