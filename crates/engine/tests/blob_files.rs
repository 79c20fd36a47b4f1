//! Large values in blob files: writing and reading them, what counts as garbage, collecting it, and
//! the way back.

mod common;

use common::blobs::{FRAME, key, opened, options, value};
use esker::merge_operator::StringAppend;
use esker::observe::{
    BlobFileCreation, BlobFileDeletion, CompactionInfo, CompactionReason, EventListener, FlushInfo,
    HistogramId, PerfContext, PerfLevel, PerfMetric, Statistics, Ticker, set_perf_level,
};
use esker::options::{BlobGarbageCollectionPolicy, BottommostLevelCompaction, FileChecksumCrc32c};
use esker::{
    BlobMeta, CompactRangeOptions, CompactionFilter, Db, Decision, Error, ErrorKind, FamilyHandle,
    FilterValue, IngestOptions, Options, ReadOptions, Result, SstFileWriter,
};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Large values for some keys.
fn put(db: &Db, keys: impl IntoIterator<Item = u32>, len: usize) -> Result<()> {
    keys.into_iter()
        .try_for_each(|n| db.put(key(n), value(n, len)))
}

fn blobs(db: &Db, family: &FamilyHandle) -> Vec<BlobMeta> {
    db.family_metadata(family).blob_files
}

/// Values and garbage of each blob file.
fn counts(db: &Db, family: &FamilyHandle) -> Vec<(u64, u64)> {
    let all = blobs(db, family);
    all.iter()
        .map(|b| (b.total_count, b.garbage_count))
        .collect()
}

/// The blob files on the disk.
fn on_disk(dir: &Path) -> usize {
    let names = std::fs::read_dir(dir).expect("a directory");
    let names = names.map(|e| e.expect("an entry").file_name());
    names
        .filter(|n| n.to_string_lossy().ends_with(".blob"))
        .count()
}

fn forced() -> CompactRangeOptions {
    let mut options = CompactRangeOptions::default();
    options.bottommost_level_compaction = BottommostLevelCompaction::ForceOptimized;
    options
}

fn compact(db: &Db, family: &FamilyHandle) -> Result<()> {
    db.compact_range_opt(family, None, None, &forced())
}

#[test]
fn large_values_are_written_read_iterated_and_kept_for_snapshots() -> Result<()> {
    for codec in ["kNoCompression", "kLZ4Compression", "kZSTD"] {
        let (dir, db, family) = opened(options(&format!("blob_compression_type={codec}")));
        put(&db, 0..50, 1_000)?;
        db.put("small", [7; 99])?;
        db.put("large", [7; 100])?;
        db.flush()?;
        let files = blobs(&db, &family);
        assert_eq!(counts(&db, &family), [(51, 0)]);
        let snapshot = db.snapshot();
        put(&db, (0..50).map(|n| n / 2), 300)?;
        db.delete(key(49))?;
        compact(&db, &family)?;
        let read = |db: &Db| -> Result<()> {
            for n in 0..25 {
                assert_eq!(db.get(key(n))?.as_deref(), Some(&value(n, 300)[..]));
            }
            for n in 25..49 {
                assert_eq!(db.get(key(n))?.as_deref(), Some(&value(n, 1_000)[..]));
            }
            assert_eq!(db.get(key(49))?, None);
            assert_eq!(db.get("small")?.as_deref(), Some(&[7; 99][..]));
            assert_eq!(db.get("large")?.as_deref(), Some(&[7; 100][..]));
            let mut it = db.iter();
            it.seek_to_first();
            let mut seen = 0;
            while let Some((k, v)) = it.entry() {
                seen += 1;
                assert!(k.starts_with(b"key") == (v.len() >= 300), "{seen}");
                it.next();
            }
            it.status()?;
            assert_eq!(seen, 51);
            Ok(())
        };
        read(&db)?;
        for n in 0..50 {
            let old = db.get_opt(&family, key(n), &Default::default(), Some(&snapshot))?;
            assert_eq!(old.as_deref(), Some(&value(n, 1_000)[..]));
        }
        // The snapshot keeps all of it.
        assert_eq!(blobs(&db, &family)[0], files[0]);
        drop(snapshot);
        compact(&db, &family)?;
        assert_eq!(counts(&db, &family)[0], (51, 26));
        let beside = tempfile::tempdir().expect("a directory");
        let checkpoint = beside.path().join("copy");
        db.checkpoint(&checkpoint)?;
        let copy = Db::open(&checkpoint, options(""))?;
        read(&copy)?;
        copy.close()?;
        db.close()?;
        let db = Db::open(dir.path(), options(""))?;
        read(&db)?;
        assert_eq!(counts(&db, &family_of(&db))[0], (51, 26));
    }
    Ok(())
}

fn family_of(db: &Db) -> FamilyHandle {
    db.default_family_handle()
}

#[test]
fn files_end_at_their_size_and_begin_at_their_level() -> Result<()> {
    let (dir, db, family) = opened(options("blob_file_size=10000"));
    put(&db, 0..100, 1_000)?;
    db.flush()?;
    assert_eq!(counts(&db, &family), vec![(10, 0); 10]);
    let all = blobs(&db, &family);
    assert!(all.iter().all(|b| b.total_bytes == 10 * (1_000 + FRAME)));
    assert_eq!(on_disk(dir.path()), 10);
    let (_dir, db, family) = opened(options("blob_file_starting_level=1"));
    put(&db, 0..100, 1_000)?;
    db.flush()?;
    assert!(blobs(&db, &family).is_empty());
    compact(&db, &family)?;
    assert_eq!(counts(&db, &family), [(100, 0)]);
    Ok(())
}

/// Changes values, makes them small, removes them, by the key.
struct Changes;

impl CompactionFilter for Changes {
    fn name(&self) -> &str {
        "test.Changes"
    }
    fn filter(&self, _: u8, key: &[u8], _: FilterValue<'_>, out: &mut Vec<u8>) -> Decision {
        match key.last() {
            Some(b'1') => {
                out.extend_from_slice(&[9; 500]);
                Decision::ChangeValue
            }
            Some(b'2') => {
                out.extend_from_slice(b"small");
                Decision::ChangeValue
            }
            Some(b'3') => Decision::Remove,
            _ => Decision::Keep,
        }
    }
}

#[test]
fn results_of_merges_and_filters_are_separated_as_well() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let mut with = options("");
    with.family.compaction_filter = Some(Arc::new(Changes));
    with.family.merge_operator = Some(Arc::new(StringAppend::new(b",")));
    let db = Db::open(dir.path(), with)?;
    let family = db.default_family_handle();
    put(&db, 0..10, 400)?;
    db.put("merged", [b'a'; 200])?;
    db.flush()?;
    assert_eq!(counts(&db, &family), [(11, 0)]);
    db.merge("merged", "b")?;
    compact(&db, &family)?;
    // The base of the merge and what the filter changed or removed are garbage.
    assert_eq!(counts(&db, &family), [(11, 4), (2, 0)]);
    let merged = [&[b'a'; 200][..], b",b"].concat();
    assert_eq!(db.get("merged")?, Some(merged.as_slice().into()));
    assert_eq!(db.get(key(1))?.as_deref(), Some(&[9; 500][..]));
    assert_eq!(db.get(key(2))?.as_deref(), Some(&b"small"[..]));
    assert_eq!(db.get(key(3))?, None);
    assert_eq!(db.get(key(4))?.as_deref(), Some(&value(4, 400)[..]));
    Ok(())
}

#[test]
fn garbage_is_counted_and_files_without_values_go() -> Result<()> {
    let (dir, db, family) = opened(options(""));
    put(&db, 0..20, 1_000)?;
    db.flush()?;
    put(&db, 0..15, 1_000)?;
    db.flush()?;
    assert_eq!(counts(&db, &family), [(20, 0), (15, 0)]);
    compact(&db, &family)?;
    assert_eq!(counts(&db, &family), [(20, 15), (15, 0)]);
    assert_eq!(blobs(&db, &family)[0].garbage_bytes, 15 * (1_000 + FRAME));
    db.delete_range(key(15), key(20))?;
    let held = db.iter();
    compact(&db, &family)?;
    assert_eq!(counts(&db, &family), [(15, 0)]);
    assert_eq!(on_disk(dir.path()), 2, "an iterator may read it");
    drop(held);
    db.put("x", "y")?;
    compact(&db, &family)?;
    common::until("it goes", || on_disk(dir.path()) == 1);
    Ok(())
}

#[test]
fn subcompactions_are_summed_once() -> Result<()> {
    let (_dir, db, family) = opened(options(
        "max_subcompactions=4;target_file_size_base=4000;block_size=200",
    ));
    put(&db, 0..2_000, 200)?;
    db.flush()?;
    compact(&db, &family)?;
    put(&db, (0..2_000).step_by(2), 200)?;
    db.flush()?;
    let mut how = forced();
    how.max_subcompactions = 4;
    db.compact_range_opt(&family, None, None, &how)?;
    assert_eq!(counts(&db, &family), [(2_000, 1_000), (1_000, 0)]);
    Ok(())
}

#[test]
fn live_values_leave_the_oldest_files() -> Result<()> {
    let (dir, db, family) = opened(options(""));
    for round in 0..4 {
        put(&db, round * 10..round * 10 + 10, 500)?;
        db.flush()?;
    }
    compact(&db, &family)?;
    assert_eq!(counts(&db, &family), [(10, 0); 4]);
    db.set_options(&family, &[("enable_blob_garbage_collection", "true")])?;
    compact(&db, &family)?;
    assert_eq!(
        counts(&db, &family),
        [(10, 0); 4],
        "a quarter, and then the others"
    );
    let first = blobs(&db, &family)[0].number;
    db.set_options(&family, &[("blob_garbage_collection_age_cutoff", "0.5")])?;
    let mut how = forced();
    how.blob_garbage_collection_policy = BlobGarbageCollectionPolicy::Disable;
    db.compact_range_opt(&family, None, None, &how)?;
    assert_eq!(blobs(&db, &family)[0].number, first);
    compact(&db, &family)?;
    assert_eq!(counts(&db, &family), [(10, 0), (10, 0), (20, 0)]);
    db.set_options(&family, &[("enable_blob_garbage_collection", "false")])?;
    how.blob_garbage_collection_policy = BlobGarbageCollectionPolicy::Force;
    how.blob_garbage_collection_age_cutoff = 1.0;
    db.compact_range_opt(&family, None, None, &how)?;
    assert_eq!(counts(&db, &family), [(40, 0)]);
    common::until("the others go", || on_disk(dir.path()) == 1);
    for n in 0..40 {
        assert_eq!(db.get(key(n))?.as_deref(), Some(&value(n, 500)[..]));
    }
    for (option, wrong) in [
        ("blob_garbage_collection_age_cutoff", "1.5"),
        ("blob_garbage_collection_force_threshold", "-0.5"),
    ] {
        let with = options("enable_blob_garbage_collection=true").set(option, wrong)?;
        let e = Db::open(dir.path().join("other"), with).expect_err(wrong);
        assert_eq!(e.kind(), ErrorKind::InvalidArgument);
        assert!(e.to_string().contains(option), "{e}");
    }
    Ok(())
}

#[test]
fn much_garbage_starts_a_compaction() -> Result<()> {
    let told = Arc::new(Told::default());
    let dir = tempfile::tempdir().expect("a directory");
    let mut with = options("enable_blob_garbage_collection=true");
    with.db
        .listeners
        .push(Arc::clone(&told) as Arc<dyn EventListener>);
    let db = Db::open(dir.path(), with)?;
    let family = db.default_family_handle();
    put(&db, 0..10, 500)?;
    db.flush()?;
    compact(&db, &family)?;
    put(&db, 2..10, 500)?;
    db.flush()?;
    let mut how = forced();
    how.blob_garbage_collection_policy = BlobGarbageCollectionPolicy::Disable;
    db.compact_range_opt(&family, None, None, &how)?;
    assert_eq!(counts(&db, &family), [(10, 8), (8, 0)]);
    let changes = [
        ("blob_garbage_collection_age_cutoff", "0.5"),
        ("blob_garbage_collection_force_threshold", "0.9"),
        ("disable_auto_compactions", "false"),
    ];
    db.set_options(&family, &changes)?;
    db.wait_for_compaction()?;
    assert_eq!(
        counts(&db, &family),
        [(10, 8), (8, 0)],
        "not enough garbage"
    );
    db.set_options(
        &family,
        &[("blob_garbage_collection_force_threshold", "0.75")],
    )?;
    common::until("the file goes", || counts(&db, &family) == [(8, 0), (2, 0)]);
    common::until("listeners are told why", || {
        let reasons = told.reasons.lock().expect("nobody panics");
        reasons.contains(&CompactionReason::ForcedBlobGc)
    });
    Ok(())
}

#[test]
fn dropping_tables_unread_counts_their_values() -> Result<()> {
    let (dir, db, family) = opened(options(
        "target_file_size_base=600;block_size=100;compression=kNoCompression",
    ));
    put(&db, 0..4_000, 100)?;
    db.flush()?;
    compact(&db, &family)?;
    assert!(db.live_files_metadata().len() > 4);
    let ranges = [(Some(key(800)), Some(key(3_200)))];
    db.delete_files_in_ranges(&family, &ranges, false)?;
    let left = (0..4_000)
        .filter(|n| db.get(key(*n)).expect("reads").is_some())
        .count() as u64;
    assert!(left < 2_400, "{left}");
    assert_eq!(counts(&db, &family), [(4_000, 4_000 - left)]);
    db.delete_files_in_ranges::<String>(&family, &[(None, None)], true)?;
    assert_eq!(counts(&db, &family), []);
    common::until("the last file goes", || on_disk(dir.path()) == 0);

    let fifo = "compaction_style=kCompactionStyleFIFO;disable_auto_compactions=false;\
                compaction_options_fifo={max_table_files_size=9000}";
    let (dir, db, family) = opened(options(fifo));
    for round in 0..20 {
        put(&db, round * 50..round * 50 + 50, 200)?;
        db.flush()?;
    }
    db.wait_for_compaction()?;
    let tables = db.live_files_metadata().len();
    assert!(tables < 15, "{tables}");
    assert_eq!(counts(&db, &family), vec![(50, 0); tables]);
    common::until("blob files go", || on_disk(dir.path()) == tables);
    Ok(())
}

#[test]
fn the_way_back_is_one_compaction() -> Result<()> {
    let (dir, db, family) = opened(options("enable_blob_garbage_collection=true"));
    put(&db, 0..50, 500)?;
    db.flush()?;
    compact(&db, &family)?;
    assert_eq!(on_disk(dir.path()), 1);
    db.set_options(&family, &[("enable_blob_files", "false")])?;
    db.compact_range(None, None)?;
    assert_eq!(counts(&db, &family), []);
    common::until("the last file goes", || on_disk(dir.path()) == 0);
    db.close()?;
    let db = Db::open(dir.path(), Options::new())?;
    for n in 0..50 {
        assert_eq!(db.get(key(n))?.as_deref(), Some(&value(n, 500)[..]));
    }
    Ok(())
}

#[test]
fn a_repair_counts_garbage_anew() -> Result<()> {
    for lost in ["MANIFEST", "CURRENT", ".sst"] {
        let (dir, db, family) = opened(options(""));
        put(&db, 0..20, 500)?;
        db.flush()?;
        put(&db, 0..5, 500)?;
        db.flush()?;
        compact(&db, &family)?;
        put(&db, 0..3, 500)?;
        db.flush()?;
        assert_eq!(counts(&db, &family), [(20, 5), (5, 0), (3, 0)]);
        let newest = db
            .live_files_metadata()
            .into_iter()
            .max_by_key(|f| f.number);
        let newest = newest.expect("a table").name;
        db.close()?;
        drop((family, db));
        for entry in std::fs::read_dir(dir.path())
            .expect("a directory")
            .flatten()
        {
            let name = entry.file_name().to_string_lossy().into_owned();
            let goes = match lost {
                ".sst" => newest.ends_with(&name),
                _ => name.starts_with(lost),
            };
            if goes {
                std::fs::remove_file(entry.path()).expect("it goes");
            }
        }
        Db::repair(dir.path(), &options(""))?;
        let db = Db::open(dir.path(), options(""))?;
        let family = db.default_family_handle();
        let expected: &[_] = match lost {
            // Nothing refers to its blob file any more.
            ".sst" => &[(20, 5), (5, 0)],
            _ => &[(20, 5), (5, 0), (3, 0)],
        };
        assert_eq!(counts(&db, &family), expected, "{lost}");
        for n in 0..20 {
            assert_eq!(
                db.get(key(n))?.as_deref(),
                Some(&value(n, 500)[..]),
                "{lost}"
            );
        }
        compact(&db, &family)?;
        let after: &[_] = match lost {
            ".sst" => &[(20, 5), (5, 0)],
            _ => &[(20, 5), (5, 3), (3, 0)],
        };
        assert_eq!(counts(&db, &family), after, "{lost}");
    }
    Ok(())
}

/// Fails, as corruption that names the blob file, the offset and the way out.
fn names_lost_file(error: &Error, name: &str, how: &str) {
    let text = error.to_string();
    assert!(error.is_corruption(), "{how}: {text}");
    assert!(text.contains(name), "{how}: {text}");
    assert!(error.offset().is_some(), "{how}: {text}");
    assert!(text.contains("restore the file"), "{how}: {text}");
}

#[test]
fn values_whose_files_a_repair_did_not_find_are_named_and_the_others_are_read() -> Result<()> {
    for others in [false, true] {
        let (dir, db, family) = opened(options(""));
        // A table whose values are all lost is set aside: this one has others.
        put(&db, 0..5, 500)?;
        put(&db, 10..15, 50)?;
        db.flush()?;
        let lost = blobs(&db, &family).remove(0).name;
        let lost = lost.trim_start_matches('/').to_owned();
        if others {
            put(&db, 20..25, 500)?;
            db.flush()?;
        }
        db.close()?;
        drop((family, db));
        // A MANIFEST that is there lists the file nevertheless.
        for entry in std::fs::read_dir(dir.path())
            .expect("a directory")
            .flatten()
        {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == lost || name.starts_with("MANIFEST") {
                std::fs::remove_file(entry.path()).expect("it goes");
            }
        }
        Db::repair(dir.path(), &options(""))?;
        let db = Db::open(dir.path(), options(""))?;
        let family = db.default_family_handle();
        assert_eq!(blobs(&db, &family).len(), usize::from(others));

        names_lost_file(&db.get(key(0)).expect_err("lost"), &lost, "get");
        let several = db.multi_get([key(1), key(10)]);
        names_lost_file(several[0].as_ref().expect_err("lost"), &lost, "several");
        assert_eq!(
            several[1].as_ref().expect("sound").as_deref(),
            Some(&value(10, 50)[..])
        );
        for unprepared in [false, true] {
            let mut how = ReadOptions::new();
            how.allow_unprepared_value = unprepared;
            let mut it = db.iter_opt(&family, how, None);
            it.seek_to_first();
            if unprepared && others {
                assert!(it.valid() && !it.prepare_value());
            }
            assert!(!it.valid());
            let error = it.status().expect_err("lost");
            names_lost_file(&error, &lost, "iterator");
            it.seek(key(10));
            assert_eq!(
                (it.key(), it.value()),
                (key(10).as_bytes(), &value(10, 50)[..])
            );
        }
        for n in (10..15).chain(if others { 20..25 } else { 0..0 }) {
            let len = if n < 15 { 50 } else { 500 };
            assert_eq!(db.get(key(n))?.as_deref(), Some(&value(n, len)[..]), "{n}");
        }

        // The way out: what was lost is written again or deleted, and goes with a compaction.
        put(&db, 0..4, 500)?;
        db.delete(key(4))?;
        compact(&db, &family)?;
        assert_eq!(db.get(key(0))?.as_deref(), Some(&value(0, 500)[..]));
        let mut it = db.iter();
        it.seek_to_first();
        while it.valid() {
            it.next();
        }
        it.status()?;
    }
    Ok(())
}

#[test]
fn a_repair_keeps_one_entry_of_a_key_whose_numbers_are_gone() -> Result<()> {
    let (dir, db, family) = opened(options(""));
    put(&db, 0..4, 500)?;
    db.flush()?;
    // The last level has no numbers, and the MANIFEST alone has those of ingested tables.
    compact(&db, &family)?;
    let outside = dir.path().join("outside");
    let mut writer = SstFileWriter::new(&options("enable_blob_files=false"))?;
    writer.open(&outside)?;
    writer.put(key(1), "small")?;
    writer.finish()?;
    db.ingest(&family, &[&outside], &IngestOptions::default())?;
    db.close()?;
    drop((family, db));
    for entry in std::fs::read_dir(dir.path()).expect("a directory") {
        let entry = entry.expect("an entry");
        if entry.file_name().to_string_lossy().starts_with("MANIFEST") {
            std::fs::remove_file(entry.path()).expect("it goes");
        }
    }
    Db::repair(dir.path(), &options(""))?;
    let db = Db::open(dir.path(), options(""))?;
    let mut it = db.iter();
    it.seek_to_first();
    for n in 0..4 {
        let (found, shown) = (db.get(key(n))?, it.value().to_vec());
        assert_eq!(found.as_deref(), Some(&shown[..]));
        it.next();
    }
    it.status()
}

#[test]
fn a_blob_file_that_is_not_sound_is_named_and_other_values_are_read() -> Result<()> {
    let (dir, db, family) = opened(options(""));
    put(&db, 0..10, 500)?;
    db.flush()?;
    put(&db, 10..20, 500)?;
    db.flush()?;
    let files = blobs(&db, &family);
    db.close()?;
    drop((family, db));
    let path = dir.path().join(&files[0].name);
    let sound = std::fs::read(&path).expect("reads");
    let damage = |what: &str| {
        let mut bytes = sound.clone();
        match what {
            "missing" => return std::fs::remove_file(&path).expect("it goes"),
            "short" => bytes.truncate(bytes.len() - 1),
            "foreign" => bytes[8] ^= 5,
            "codec" => bytes[13] = 4,
            "key" => bytes[30 + 32] ^= 1,
            "value" => bytes[30 + 32 + 8 + 3] ^= 1,
            "footer" => *bytes.last_mut().expect("not empty") ^= 1,
            _ => {}
        }
        std::fs::write(&path, bytes).expect("writes");
    };
    for what in [
        "missing", "short", "foreign", "codec", "key", "value", "footer",
    ] {
        damage(what);
        let db = Db::open(dir.path(), options(""))?;
        let e = db.get(key(0)).expect_err(what);
        let text = e.to_string();
        assert!(text.contains(&files[0].name), "{what}: {text}");
        assert!(e.is_corruption(), "{what}: {text}");
        assert!(e.offset().is_some() || what == "short", "{what}: {text}");
        for n in 10..20 {
            assert_eq!(db.get(key(n))?.as_deref(), Some(&value(n, 500)[..]));
        }
        // It keeps its inputs.
        let mut how = forced();
        how.blob_garbage_collection_policy = BlobGarbageCollectionPolicy::Force;
        how.blob_garbage_collection_age_cutoff = 1.0;
        assert!(
            db.compact_range_opt(&family_of(&db), None, None, &how)
                .is_err(),
            "{what}"
        );
        assert_eq!(blobs(&db, &family_of(&db)), files, "{what}");
        assert_eq!(on_disk(dir.path()), if what == "missing" { 1 } else { 2 });
        let _ = db.close();
    }
    damage("");
    let db = Db::open(dir.path(), options(""))?;
    assert_eq!(db.get(key(0))?.as_deref(), Some(&value(0, 500)[..]));
    Ok(())
}

/// Events that listeners got.
#[derive(Default)]
struct Told {
    made: Mutex<Vec<(u64, u64, u64)>>,
    deleted: Mutex<Vec<u64>>,
    flushed: Mutex<Vec<u64>>,
    garbage: Mutex<Vec<(u64, u64)>>,
    reasons: Mutex<Vec<CompactionReason>>,
}

impl EventListener for Told {
    fn on_blob_file_created(&self, info: &BlobFileCreation) {
        assert!(info.error.is_none() && info.file.is_file());
        let made = (info.file_no.0, info.blobs, info.blob_bytes);
        self.made.lock().expect("nobody panics").push(made);
    }
    fn on_blob_file_deleted(&self, info: &BlobFileDeletion) {
        assert!(info.error.is_none() && !info.file.exists());
        self.deleted
            .lock()
            .expect("nobody panics")
            .push(info.file_no.0);
    }
    fn on_flush_completed(&self, info: &FlushInfo) {
        let files = info.blob_files.iter().map(|f| f.file_no.0);
        self.flushed.lock().expect("nobody panics").extend(files);
    }
    fn on_compaction_completed(&self, info: &CompactionInfo) {
        let garbage = info.blob_garbage.iter().map(|g| (g.file_no.0, g.blobs));
        self.garbage.lock().expect("nobody panics").extend(garbage);
        self.reasons
            .lock()
            .expect("nobody panics")
            .push(info.reason);
    }
}

#[test]
fn blob_files_are_told_and_counted() -> Result<()> {
    let told = Arc::new(Told::default());
    let statistics = Statistics::new();
    let dir = tempfile::tempdir().expect("a directory");
    let mut with = options("");
    with.db.file_checksum_gen_factory = Some(Arc::new(FileChecksumCrc32c));
    with.db
        .listeners
        .push(Arc::clone(&told) as Arc<dyn EventListener>);
    with.db.statistics = Some(Arc::clone(&statistics));
    let db = Db::open(dir.path(), with)?;
    let family = db.default_family_handle();
    put(&db, 0..10, 500)?;
    db.flush()?;
    let first = blobs(&db, &family)[0].clone();
    let number = first.number;
    assert_eq!(first.checksum_method, "FileChecksumCrc32c");
    db.verify_file_checksums()?;
    assert_eq!(
        *told.made.lock().expect("sound"),
        [(number, 10, 10 * (500 + FRAME))]
    );
    assert_eq!(*told.flushed.lock().expect("sound"), [number]);
    let len = std::fs::metadata(dir.path().join(&first.name))
        .expect("it is there")
        .len();
    assert_eq!(statistics.ticker(Ticker::BlobDbBlobFileBytesWritten), len);
    assert_eq!(statistics.ticker(Ticker::BlobDbBlobFileSynced), 1);
    assert_eq!(
        statistics
            .histogram(HistogramId::BlobDbBlobFileWriteMicros)
            .count,
        10
    );
    assert_eq!(
        statistics
            .histogram(HistogramId::BlobDbBlobFileSyncMicros)
            .count,
        1
    );
    PerfContext.reset();
    set_perf_level(PerfLevel::EnableCount);
    db.get(key(0))?;
    assert_eq!(PerfContext.get(PerfMetric::BlobReadCount), 1);
    assert_eq!(PerfContext.get(PerfMetric::BlobReadByte), 500 + FRAME);
    set_perf_level(PerfLevel::Disable);
    assert_eq!(
        statistics.ticker(Ticker::BlobDbBlobFileBytesRead),
        500 + FRAME
    );
    put(&db, 0..4, 500)?;
    let mut how = forced();
    how.blob_garbage_collection_policy = BlobGarbageCollectionPolicy::Force;
    how.blob_garbage_collection_age_cutoff = 0.5;
    db.compact_range_opt(&family, None, None, &how)?;
    assert_eq!(*told.garbage.lock().expect("sound"), [(number, 10)]);
    assert_eq!(statistics.ticker(Ticker::BlobDbGcNumKeysRelocated), 6);
    assert_eq!(statistics.ticker(Ticker::BlobDbGcBytesRelocated), 6 * 500);
    let deleted = || told.deleted.lock().expect("sound").clone();
    common::until("it is deleted", || deleted() == [number]);
    let log = std::fs::read_to_string(dir.path().join("LOG")).expect("the LOG");
    for event in ["\"blob_file_creation\"", "\"blob_file_deletion\""] {
        assert!(log.contains(event), "{event}");
    }
    let stats = db.property("rocksdb.cfstats").expect("it is there");
    assert!(stats.contains("Blob file count: 2"), "{stats}");
    Ok(())
}
