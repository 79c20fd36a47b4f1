//! Options that fill the block cache ahead, open tables on threads, compress on threads, and let go
//! of old files: each fails here when it is passed over.

mod common;

use common::numbered::{all, forward, key};
use common::{Ahead, until};
use esker::env::{Clock, Env, Executor, JoinHandle};
use esker::observe::{Statistics, Ticker};
use esker::options::BottommostLevelCompaction;
use esker::{CompactRangeOptions, Db, IngestOptions, Options, ReadOptions, Result, SstFileWriter};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// The threads of the system; keeps the names by which they were asked for.
#[derive(Debug)]
struct NamedThreads {
    threads: Arc<dyn Executor>,
    names: Mutex<Vec<String>>,
}

impl NamedThreads {
    fn of(env: &mut Env) -> Arc<Self> {
        let own = Arc::new(NamedThreads {
            threads: Arc::clone(&env.executor),
            names: Mutex::default(),
        });
        env.executor = Arc::clone(&own) as Arc<dyn Executor>;
        own
    }

    fn started(&self, name: &str) -> usize {
        let names = self.names.lock().expect("nobody panics");
        names.iter().filter(|n| *n == name).count()
    }

    fn note(&self, name: &str) {
        let mut names = self.names.lock().expect("nobody panics");
        names.push(name.to_owned());
    }
}

impl Executor for NamedThreads {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn JoinHandle>> {
        self.note(name);
        self.threads.spawn(name, body)
    }
    fn spawn_patient(
        &self,
        name: &str,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<Box<dyn JoinHandle>> {
        self.note(name);
        self.threads.spawn_patient(name, body)
    }
    fn parallelism(&self) -> usize {
        4
    }
}

fn value(n: u32) -> Vec<u8> {
    format!("{n:04}").repeat(50).into_bytes()
}

fn put(db: &Db, numbers: impl IntoIterator<Item = u32>) {
    for n in numbers {
        db.put(key(n), value(n)).expect("written");
    }
}

fn options(env: &Env, changes: &str) -> Options {
    let options = Options::new().create_if_missing(true).env(env.clone());
    let options = options.set_all("disable_auto_compactions=true;compression=kNoCompression");
    options.and_then(|o| o.set_all(changes)).expect("options")
}

/// Blocks that reads of all keys do not find in the cache.
fn misses(db: &Db, statistics: &Statistics, n: u32) -> [u64; 2] {
    let missed =
        || [Ticker::BlockCacheDataMiss, Ticker::BlockCacheFilterMiss].map(|t| statistics.ticker(t));
    let before = missed();
    for i in 0..n {
        assert_eq!(db.get(key(i)).expect("reads"), Some(value(i)));
    }
    let after = missed();
    [after[0] - before[0], after[1] - before[1]]
}

#[test]
fn fresh_blocks_are_in_the_cache() {
    let cached = "block_based_table_factory={block_cache=64M;cache_index_and_filter_blocks=true;\
                  filter_policy=bloomfilter:10:false;prepopulate_block_cache=";
    for (how, after_flush, after_merge) in [
        ("kDisable", false, false),
        ("kFlushOnly", true, false),
        ("kFlushAndCompaction", true, true),
    ] {
        for partitioned in [
            "",
            ";index_type=kTwoLevelIndexSearch;partition_filters=true",
        ] {
            let statistics = Arc::new(Statistics::new());
            let mut options = options(&Env::in_memory(), &format!("{cached}{how}{partitioned}}}"));
            options.db.statistics = Some(Arc::clone(&statistics));
            let db = Db::open("/db", options).expect("opens");
            put(&db, 0..2_000);
            db.flush().expect("flushed");
            let missed = misses(&db, &statistics, 2_000);
            assert_eq!(
                missed == [0, 0],
                after_flush,
                "{how}: {missed:?} after a flush"
            );
            put(&db, [0, 1_999]);
            db.flush().expect("flushed");
            db.compact_range(None, None).expect("merged");
            let missed = misses(&db, &statistics, 2_000);
            assert_eq!(
                missed == [0, 0],
                after_merge,
                "{how}: {missed:?} after a merge"
            );
            assert_eq!(forward(db.iter()), all(0..2_000));
        }
    }
}

#[test]
fn an_iterator_at_a_snapshot_lets_go_of_old_files() {
    for refreshes in [false, true] {
        let db = Db::open("/db", options(&Env::in_memory(), "")).expect("opens");
        put(&db, 0..1_000);
        db.flush().expect("flushed");
        let snapshot = db.snapshot();
        let mut read = ReadOptions::default();
        read.auto_refresh_iterator_with_snapshot = refreshes;
        let mut it = db.iter_opt(&db.default_family_handle(), read, Some(&snapshot));
        it.seek(key(500));
        put(&db, 1_000..2_000);
        for n in 0..1_000 {
            db.delete(key(n)).expect("deleted");
        }
        db.compact_range(None, None).expect("merged");
        let versions = || db.property("rocksdb.num-live-versions").expect("a number");
        assert_eq!(versions(), "2", "held before a move");
        let mut seen = Vec::new();
        while it.valid() {
            seen.push(it.key().to_vec());
            assert_eq!(it.value(), value(500 + seen.len() as u32 - 1));
            it.next();
            let expected = if refreshes { "1" } else { "2" };
            assert_eq!(versions(), expected);
        }
        it.status().expect("walks to the end");
        assert_eq!(seen, all(500..1_000));
        it.seek_for_prev(key(499));
        it.prev();
        assert_eq!(it.key(), key(498));
    }
}

/// A database of `n` tables at `/db`.
fn with_tables(env: &Env, n: u32) {
    let db = Db::open("/db", options(env, "")).expect("opens");
    for table in 0..n {
        put(&db, table * 10..table * 10 + 10);
        db.flush().expect("flushed");
    }
    db.close().expect("closes");
}

fn tables(env: &Env) -> Vec<std::path::PathBuf> {
    let entries = env.fs.read_dir(Path::new("/db")).expect("lists");
    let names = entries.into_iter().map(|e| Path::new("/db").join(e.name));
    let mut tables: Vec<_> = names
        .filter(|p| p.extension().is_some_and(|e| e == "sst"))
        .collect();
    tables.sort();
    tables
}

#[test]
fn tables_are_opened_on_threads() {
    for (asked, started) in [("1", 0), ("3", 2), ("16", 5)] {
        let mut env = Env::in_memory();
        with_tables(&env, 12);
        let threads = NamedThreads::of(&mut env);
        let changes = format!("max_file_opening_threads={asked}");
        let db = Db::open("/db", options(&env, &changes)).expect("opens");
        assert_eq!(threads.started("esker-open"), started, "{asked} asked for");
        assert_eq!(forward(db.iter()), all(0..120));
        db.close().expect("closes");
        // Two damaged ones: the one that the tree has first is named, whoever met the other before.
        let tables = tables(&env);
        for table in [&tables[2], &tables[9]] {
            let mut file = env
                .fs
                .create(table, esker::env::WriteOptions::default())
                .expect("made");
            file.append(b"nothing like a table").expect("written");
            file.close().expect("closed");
        }
        for _ in 0..20 {
            let e = Db::open("/db", options(&env, &changes)).expect_err("two are damaged");
            let name = tables[9].file_name().expect("a name").to_string_lossy();
            assert!(e.to_string().contains(&*name), "{e} names {name}");
        }
    }
}

#[test]
fn tables_are_opened_after_the_database() {
    let mut env = Env::in_memory();
    with_tables(&env, 12);
    let threads = NamedThreads::of(&mut env);
    let later = "open_files_async=true;info_log_level=INFO_LEVEL";
    let log = |env: &Env| {
        let read = env.fs.read_all(Path::new("/db/LOG"), 1 << 20);
        String::from_utf8(read.expect("reads")).expect("text")
    };
    let db = Db::open("/db", options(&env, later)).expect("opens");
    until("the tables are open", || {
        log(&env).contains("open_files_async: opened 12 tables")
    });
    assert_eq!(threads.started("esker-open"), 1);
    assert_eq!(forward(db.iter()), all(0..120));
    db.close().expect("closes");

    // What is inside is looked at later; a table that is not there is missed at once.
    let tables = tables(&env);
    let whole = env.fs.read_all(&tables[5], 1 << 20).expect("reads");
    let damaged: Vec<u8> = whole.iter().map(|_| 7).collect();
    let rewrite = |bytes: &[u8]| {
        let made = env
            .fs
            .create(&tables[5], esker::env::WriteOptions::default());
        let mut file = made.expect("made");
        file.append(bytes).expect("written");
        file.close().expect("closed");
    };
    rewrite(&damaged);
    Db::open("/db", options(&env, "")).expect_err("opening looks inside");
    let db = Db::open("/db", options(&env, later)).expect("opens");
    until("the LOG has it", || {
        log(&env).contains("open_files_async: a table cannot be opened")
    });
    db.get(key(55)).expect_err("the table is damaged");
    assert_eq!(db.get(key(5)).expect("reads"), Some(value(5)));
    db.close().expect("closes");
    env.fs.remove_file(&tables[5]).expect("removed");
    Db::open("/db", options(&env, later)).expect_err("a table is missing");
}

#[test]
fn tables_are_compressed_on_threads() {
    let dictionary = "{max_dict_bytes=4096;zstd_max_train_bytes=100000;parallel_threads=";
    for plain in ["{parallel_threads=", dictionary] {
        let mut sizes = Vec::new();
        for asked in [1, 4] {
            let mut env = Env::in_memory();
            let threads = NamedThreads::of(&mut env);
            let changes = format!("compression=kZSTD;compression_opts={plain}{asked}}}");
            let own = options(&env, &changes);
            let mut writer = SstFileWriter::new(&own).expect("a writer");
            writer.open("/file.sst").expect("created");
            for n in 0..30_000 {
                writer.put(&key(n), &value(n)).expect("written");
            }
            let info = writer.finish().expect("finished");
            assert_eq!(threads.started("esker-compress") > 0, asked > 1);
            sizes.push(info.file_size);
            let db = Db::open("/db", own).expect("opens");
            let family = db.default_family_handle();
            db.ingest(&family, &["/file.sst"], &IngestOptions::default())
                .expect("taken in");
            db.verify_checksums().expect("whole");
            for n in (0..30_000).step_by(97) {
                assert_eq!(db.get(key(n)).expect("reads"), Some(value(n)));
            }
            // Jobs compress in the same way.
            put(&db, 30_000..40_000);
            db.flush().expect("flushed");
            db.compact_range(None, None).expect("merged");
            assert_eq!(forward(db.iter()), all(0..40_000));
        }
        assert_eq!(sizes[0], sizes[1], "the same blocks");
    }
}

#[test]
fn what_holds_much_is_named() {
    let db = Db::open("/db", options(&Env::in_memory(), "")).expect("opens");
    let long = || db.property("rocksdb.esker.long-readers").expect("a text");
    put(&db, 0..20_000);
    db.flush().expect("flushed");
    let it = db.iter();
    assert_eq!(long(), "", "nothing was replaced");
    db.compact_range(None, None).expect("merged");
    put(&db, 0..20_000);
    db.compact_range(None, None).expect("merged");
    let thread = esker::env::thread_id();
    let text = long();
    assert!(text.contains("[default] 1 iterators hold"), "{text}");
    assert!(
        text.trim_end()
            .ends_with(&format!("made by thread {thread}")),
        "{text}"
    );
    drop(it);
    assert_eq!(long(), "");
    let snapshot = db.snapshot();
    assert_eq!(long(), "");
    put(&db, 0..20_000);
    db.flush().expect("flushed");
    let text = long();
    assert!(text.contains("[default] the snapshot at"), "{text}");
    assert!(
        text.contains(&format!("taken by thread {thread}")),
        "{text}"
    );
    drop(snapshot);
    assert_eq!(long(), "");
}

#[test]
fn what_keeps_more_than_a_bound_on_space_is_named() {
    let mut env = Env::in_memory();
    // The background looks for holders of space every ten seconds: the clock makes them pass.
    let clock = Ahead::of(&env);
    env.clock = Arc::clone(&clock) as Arc<dyn Clock>;
    let blobs = "enable_blob_files=true;min_blob_size=100";
    let db = Db::open("/db", options(&env, blobs)).expect("opens");
    let family = db.default_family_handle();
    // Writers are to be paced by nothing, and a memtable counts among what the bound leaves.
    let bound = |percent, memtable| {
        let settings = [
            ("max_space_amplification_percent", percent),
            ("write_buffer_size", memtable),
        ];
        db.set_options(&family, &settings).expect("set");
    };
    let fill = |round: u8| {
        bound("0", "64M");
        for n in 0..4_000 {
            db.put(key(n), [round; 1000]).expect("written");
        }
        db.flush().expect("flushed");
        bound("110", "64k");
    };
    let long = || db.property("rocksdb.esker.long-readers").expect("a text");
    let bytes_of = |line: &str, before: &str| -> u64 {
        let (_, rest) = line.split_once(before).expect("the kind of holder");
        let number: String = rest
            .trim_start()
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        number.parse().expect("bytes")
    };
    let passes = ": more than max_space_amplification_percent leaves";
    let mut forced = CompactRangeOptions::default();
    forced.bottommost_level_compaction = BottommostLevelCompaction::ForceOptimized;
    let compact = || {
        db.compact_range_opt(&family, None, None, &forced)
            .expect("merged")
    };
    fill(1);
    compact();

    // A snapshot keeps the values that are overwritten, which lie in blob files.
    let snapshot = db.snapshot();
    fill(2);
    let text = long();
    let line = text
        .lines()
        .find(|l| l.contains("[default] the snapshot at"));
    let line = line.unwrap_or_else(|| panic!("{text:?}"));
    assert!(bytes_of(line, "keeps up to") > 3_000_000, "{line}");
    assert!(line.ends_with(passes), "{line}");
    clock.by_us.fetch_add(20_000_000, Ordering::Relaxed);
    let log = || {
        let bytes = db
            .env()
            .fs
            .open_read(Path::new("/db/LOG"), Default::default());
        let bytes = bytes.and_then(|f| {
            let mut all = vec![0; f.len() as usize];
            f.read_at(0, &mut all).map(|_| all)
        });
        String::from_utf8_lossy(&bytes.expect("the LOG")).into_owned()
    };
    db.put("wakes", "the background").expect("written");
    db.flush().expect("flushed");
    until("the LOG names the snapshot", || {
        log()
            .lines()
            .any(|l| l.contains("the snapshot at") && l.contains(passes))
    });
    drop(snapshot);
    assert_eq!(long(), "");

    // An iterator keeps the blob files of its tree.
    let it = db.iter();
    compact();
    fill(3);
    compact();
    let text = long();
    assert!(text.starts_with("[default] 1 iterators hold"), "{text}");
    assert!(bytes_of(&text, "iterators hold") > 3_000_000, "{text}");
    assert!(text.trim_end().ends_with(passes), "{text}");
    drop(it);
    assert_eq!(long(), "");

    // A checkpoint turns deletions off while it runs.
    db.disable_file_deletions();
    clock.by_us.fetch_add(7_000_000, Ordering::Relaxed);
    fill(4);
    compact();
    let text = long();
    assert!(text.starts_with("deletions are off for "), "{text}");
    assert!(text.contains(" s, by 1 checkpoints"), "{text}");
    assert!(bytes_of(&text, "deletions are off for") >= 7, "{text}");
    assert!(bytes_of(&text, "obsolete files of") > 3_000_000, "{text}");
    assert!(text.trim_end().ends_with(passes), "{text}");
    db.enable_file_deletions(false);
    assert_eq!(long(), "");
}
