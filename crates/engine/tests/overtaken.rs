//! Newer data never comes to lie below older, whatever runs beside a compaction; and directories
//! in which it does are found and put in order.
//!
//! A compaction filter that changes nothing holds a job until the test lets it go on.

mod common;

use common::until;
use esker::env::{Env, MemFs, WriteOptions};
use esker::options::{CompactFilesOptions, CompactRangeOptions, IngestOptions};
use esker::{
    CompactionFilter, Db, Decision, ErrorKind, FilterValue, Options, RepairMode, Result,
    SstFileWriter,
};
use esker_files::manifest::{ManifestReader, ManifestWriter};
use esker_files::{current, identity};
use esker_format::edit::{NewFile, VersionEdit};
use esker_format::file_name::{manifest_name, table_name};
use esker_format::{FamilyId, FileNo, Level};
use esker_lsm::fold::FoldedEdits;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Holds compactions while it is closed.
#[derive(Debug, Default)]
struct Gate {
    is_closed: AtomicBool,
    held: AtomicUsize,
}

impl Gate {
    fn close(&self) {
        self.held.store(0, Ordering::SeqCst);
        self.is_closed.store(true, Ordering::SeqCst);
    }

    fn open(&self) {
        self.is_closed.store(false, Ordering::SeqCst);
    }

    fn wait_until_held(&self) {
        until("a job is held", || self.held.load(Ordering::SeqCst) > 0);
    }
}

impl CompactionFilter for Gate {
    fn name(&self) -> &str {
        "gate"
    }

    fn filter(&self, _: u8, _: &[u8], _: FilterValue<'_>, _: &mut Vec<u8>) -> Decision {
        while self.is_closed.load(Ordering::SeqCst) {
            self.held.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1));
        }
        Decision::Keep
    }
}

fn options(gate: &Arc<Gate>) -> Options {
    let mut options = Options::new().create_if_missing(true);
    options.family.disable_auto_compactions = true;
    options.family.compaction_filter = Some(Arc::clone(gate) as _);
    options
}

fn value(tag: &str, size: usize, i: usize) -> Vec<u8> {
    let rest = (tag.len()..size).map(|n| b'a' + ((n * 7 + i * 13) % 26) as u8);
    tag.bytes().chain(rest).collect()
}

/// Puts keys `0..keys` and flushes them.
fn fill(db: &Db, keys: usize, tag: &str, size: usize) -> Result<()> {
    for i in 0..keys {
        db.put(format!("k{i:03}"), value(tag, size, i))?;
    }
    db.flush()
}

/// The names of the tables of a level.
fn tables(db: &Db, level: u8) -> Vec<String> {
    let all = db.live_files_metadata().into_iter();
    all.filter(|f| f.level == level).map(|f| f.name).collect()
}

fn level0_to(db: &Db, level: u8) -> Result<()> {
    let files = tables(db, 0);
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    db.compact_files(&db.default_family_handle(), &names, level)
        .map(drop)
}

/// Compacts a range and moves the result to `target`.
fn to_level(target: i32) -> CompactRangeOptions {
    let mut options = CompactRangeOptions::default();
    options.change_level = true;
    options.target_level = target;
    options
}

fn assert_never_overtaken(db: &Db) {
    let count = db.property("rocksdb.esker.overtaken-plans");
    assert_eq!(count.as_deref(), Some("0"), "plans were refused");
}

#[test]
fn a_manual_compaction_goes_to_the_base_as_it_is_when_it_runs() -> Result<()> {
    for exclusive in [false, true] {
        let dir = tempfile::tempdir().expect("a directory");
        let gate = Arc::new(Gate::default());
        let options = options(&gate).set_all(
            "max_bytes_for_level_base=10000;level0_file_num_compaction_trigger=2;\
             compression=kNoCompression;write_buffer_size=16384;max_background_jobs=6",
        )?;
        let db = Db::open(dir.path(), options)?;
        let family = db.default_family_handle();
        let set = |name, value| db.set_options(&family, &[(name, value)]);
        fill(&db, 100, "base", 4000)?;
        level0_to(&db, 6)?;
        fill(&db, 50, "mid", 2000)?;
        level0_to(&db, 5)?;
        for _ in 0..12 {
            fill(&db, 10, "old", 30)?;
        }
        // An automatic compaction takes level 0 to level 4.
        gate.close();
        set("disable_auto_compactions", "false")?;
        gate.wait_until_held();
        set("disable_auto_compactions", "true")?;
        // A large level 0 makes level 5 the base.
        set("write_buffer_size", "67108864")?;
        fill(&db, 100, "new", 8000)?;
        let mut manual = CompactRangeOptions::default();
        manual.exclusive_manual_compaction = exclusive;
        std::thread::scope(|scope| {
            let range = scope.spawn(|| db.compact_range_opt(&family, None, None, &manual));
            std::thread::sleep(Duration::from_millis(100));
            gate.open();
            range.join().expect("no panic")
        })?;
        for i in 0..100 {
            let got = db.get(format!("k{i:03}"))?.expect("it was put");
            assert!(got.starts_with(b"new"), "key {i} is old");
        }
        assert_never_overtaken(&db);
    }
    Ok(())
}

#[test]
fn change_level_passes_no_table_that_another_call_is_writing() -> Result<()> {
    for dynamic in [false, true] {
        let dir = tempfile::tempdir().expect("a directory");
        let gate = Arc::new(Gate::default());
        let mut options = options(&gate);
        options.family.level_compaction_dynamic_level_bytes = dynamic;
        let db = Db::open(dir.path(), options)?;
        let family = db.default_family_handle();
        db.put("k", "old")?;
        db.flush()?;
        level0_to(&db, 6)?;
        db.put("k", "new")?;
        db.flush()?;
        gate.close();
        let refused = std::thread::scope(|scope| {
            let held = scope.spawn(|| level0_to(&db, 4));
            gate.wait_until_held();
            let up = to_level(2);
            let moved = db.compact_range_opt(&family, Some(b"x"), Some(b"y"), &up);
            gate.open();
            held.join().expect("no panic").expect("compact_files");
            moved.expect_err("newer data is on its way to level 4")
        });
        assert_eq!(refused.kind(), ErrorKind::NotSupported, "{refused}");
        assert_eq!(db.get("k")?.as_deref(), Some(&b"new"[..]));
        assert_never_overtaken(&db);
        db.compact_range(None, None)?;
        assert_eq!(db.get("k")?.as_deref(), Some(&b"new"[..]));
    }
    Ok(())
}

#[test]
fn a_flush_after_an_ingestion_lies_above_what_was_merged_with_it() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path().join("db"), options(&Arc::default()))?;
    merge_ingested_below_a_memtable(&db, dir.path())?;
    db.flush()?;
    for _ in 0..2 {
        assert_eq!(db.get("k")?.as_deref(), Some(&b"v2"[..]));
        assert_eq!(db.get("m")?.as_deref(), Some(&b"2"[..]));
        let mut it = db.iter();
        it.seek("k");
        assert_eq!(it.value(), b"v2");
        drop(it);
        assert!(db.live_files_metadata().iter().all(|f| f.epoch_number > 0));
        db.compact_range(None, None)?;
    }
    assert_never_overtaken(&db);
    Ok(())
}

/// Leaves a table with sequence numbers on both sides of those of the memtable, whose newer value
/// of `k` it must not hide.
fn merge_ingested_below_a_memtable(db: &Db, beside: &Path) -> Result<()> {
    for (key, value) in [("a", "0"), ("k", "v0"), ("z", "0")] {
        db.put(key, value)?;
    }
    db.flush()?;
    db.compact_range(None, None)?;
    for (key, value) in [("k", "v1"), ("m", "1"), ("z", "1")] {
        db.put(key, value)?;
    }
    db.flush()?;
    db.put("k", "v2")?;
    let external = beside.join("external.sst");
    let mut writer = SstFileWriter::new(&Options::new())?;
    writer.open(&external)?;
    writer.put("m", "2")?;
    writer.finish()?;
    let family = db.default_family_handle();
    db.ingest(&family, &[&external], &IngestOptions::default())?;
    level0_to(db, 0)
}

#[test]
fn a_merge_into_level_0_writes_one_table() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = options(&Arc::default());
    options.family.target_file_size_base = 4096;
    let db = Db::open(dir.path(), options)?;
    for tag in ["a", "b"] {
        fill(&db, 100, tag, 1000)?;
    }
    let family = db.default_family_handle();
    let files = tables(&db, 0);
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    let mut limited = CompactFilesOptions::default();
    limited.output_file_size_limit = 4096;
    db.compact_files_opt(&family, &names, 0, &limited)?;
    // Several would have one epoch number, by which level 0 could not order what meets them later.
    assert_eq!(tables(&db, 0).len(), 1);
    Ok(())
}

#[test]
fn exclusive_compactions_of_two_callers_run_one_at_a_time() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let gate = Arc::new(Gate::default());
    let db = Db::open(dir.path(), options(&gate))?;
    let family = db.default_family_handle();
    for tag in ["a", "b"] {
        fill(&db, 10, tag, 100)?;
    }
    let mut exclusive = CompactRangeOptions::default();
    exclusive.exclusive_manual_compaction = true;
    let shared = CompactRangeOptions::default();
    gate.close();
    let order = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let run = |name, how| {
            let (db, family, order) = (&db, &family, &order);
            move || {
                let done = db.compact_range_opt(family, None, None, how);
                order.lock().expect("no panic").push(name);
                done
            }
        };
        let first = scope.spawn(run("first", &exclusive));
        gate.wait_until_held();
        let second = scope.spawn(run("second", &exclusive));
        let third = scope.spawn(run("third", &shared));
        std::thread::sleep(Duration::from_millis(100));
        assert!(order.lock().expect("no panic").is_empty());
        gate.open();
        for thread in [first, second, third] {
            thread.join().expect("no panic")?;
        }
        Ok::<(), esker::Error>(())
    })?;
    assert_eq!(order.into_inner().expect("no panic")[0], "first");
    Ok(())
}

/// Copies the tables of the closed database at `from` into a new directory, where a MANIFEST lists
/// them as `listed` says.
fn relisted(from: &Path, to: &Path, listed: impl Fn(Level, &mut NewFile) -> Level) -> Result<()> {
    let fs = Env::posix().fs;
    let number = current::read(&*fs, from)?;
    let mut reader = ManifestReader::open(&*fs, &from.join(manifest_name(number)))?;
    let mut folded = FoldedEdits::default();
    while let Some(group) = reader.next_group()? {
        for edit in group.edits {
            folded.add(edit, &mut Err)?;
        }
    }
    std::fs::create_dir(to).expect("it is new");
    let family = &folded.families[&FamilyId::DEFAULT];
    let mut tree = VersionEdit::for_family(FamilyId::DEFAULT);
    for (number, (level, file)) in family.files() {
        let name = table_name(number);
        std::fs::copy(from.join(&name), to.join(&name)).expect("a table");
        let mut file = file.clone();
        let level = listed(level, &mut file);
        tree.new_files.push((level, file));
    }
    tree.log_number = Some(FileNo(1000));
    let head = VersionEdit {
        db_id: folded.db_id.clone(),
        comparator: family.comparator.clone(),
        ..VersionEdit::default()
    };
    let last = VersionEdit {
        prev_log_number: Some(FileNo(0)),
        next_file_number: Some(FileNo(2000)),
        last_sequence: folded.last_sequence,
        ..VersionEdit::default()
    };
    identity::write(&*fs, to, folded.db_id.as_deref().unwrap_or_default())?;
    let edits = [head, tree, last];
    let options = WriteOptions::default();
    let mut writer = ManifestWriter::create(&*fs, to, FileNo(1500), options, &edits)?;
    writer.sync()?;
    writer.close()?;
    current::install(&*fs, to, FileNo(1500))
}

#[test]
fn a_level_0_without_epochs_that_cannot_be_ordered_is_merged_at_opening() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (made, old) = (dir.path().join("made"), dir.path().join("old"));
    let db = Db::open(&made, options(&Arc::default()))?;
    merge_ingested_below_a_memtable(&db, dir.path())?;
    db.flush()?;
    assert_eq!(tables(&db, 0).len(), 2);
    db.close()?;
    relisted(&made, &old, |level, file| {
        file.epoch_number = 0;
        level
    })?;
    let again = || Db::open(&old, options(&Arc::default()));
    let db = again()?;
    assert_eq!(tables(&db, 0).len(), 1);
    assert_eq!(db.get("k")?.as_deref(), Some(&b"v2"[..]));
    db.put("k", "v3")?;
    db.flush()?;
    assert_eq!(db.get("k")?.as_deref(), Some(&b"v3"[..]));
    db.close()?;
    // It has an order now, and stays as it is.
    let db = again()?;
    assert_eq!(tables(&db, 0).len(), 2);
    assert_eq!(db.get("k")?.as_deref(), Some(&b"v3"[..]));
    Ok(())
}

#[test]
fn a_repair_puts_versions_in_the_wrong_order_right_and_says_where() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (made, wrong) = (dir.path().join("made"), dir.path().join("wrong"));
    let db = Db::open(&made, options(&Arc::default()))?;
    for (value, level) in [("old", 6), ("new", 5)] {
        for key in ["b", "c", "d"] {
            db.put(key, value)?;
        }
        db.put(value, value)?;
        db.flush()?;
        level0_to(&db, level)?;
    }
    db.close()?;
    relisted(&made, &wrong, |level, _| match level {
        Level(5) => Level(6),
        _ => Level(4),
    })?;
    let db = Db::open_read_only(&wrong, Options::new())?;
    assert_eq!(db.get("b")?.as_deref(), Some(&b"old"[..]), "that is wrong");
    drop(db);
    let dry = Db::repair_families(&wrong, &Options::new(), &[], RepairMode::DryRun)?;
    let report = Db::repair(&wrong, &Options::new())?;
    assert_eq!(dry.losses, report.losses);
    let [loss] = report.losses.as_slice() else {
        panic!("{:?}", report.losses)
    };
    assert!(
        loss.contains("3 keys") && loss.contains("\"b\" and \"d\""),
        "{loss}"
    );
    assert!(report.has_lost_data);
    let db = Db::open(&wrong, Options::new())?;
    for (key, wanted) in [("b", "new"), ("d", "new"), ("old", "old"), ("new", "new")] {
        assert_eq!(db.get(key)?.as_deref(), Some(wanted.as_bytes()));
    }
    db.close()?;
    assert!(Db::repair(&wrong, &Options::new())?.is_sound);
    Ok(())
}

/// Writes a key by put and flush or by ingestion, and reads it.
fn rewrite(db: &Db, env: &Env, round: u32) -> std::result::Result<(), String> {
    let wanted = format!("{round}");
    let write = || -> Result<Option<Vec<u8>>> {
        if round.is_multiple_of(3) {
            let path = format!("/external{round}.sst");
            let mut writer = SstFileWriter::new(&Options::new().env(env.clone()))?;
            writer.open(&path)?;
            writer.put("k", &wanted)?;
            writer.finish()?;
            db.ingest(
                &db.default_family_handle(),
                &[&path],
                &IngestOptions::default(),
            )?;
        } else {
            db.put("k", &wanted)?;
            db.flush()?;
        }
        db.get("k")
    };
    match write() {
        Ok(Some(got)) if got == wanted.as_bytes() => Ok(()),
        other => Err(format!("round {round}: {other:?}")),
    }
}

#[test]
fn promotions_and_refits_beside_ingestions_and_flushes_keep_the_newest() -> Result<()> {
    let env = Env {
        fs: Arc::new(MemFs::default()),
        ..Env::in_memory()
    };
    let db = Db::open("/db", options(&Arc::default()).env(env.clone()))?;
    let family = db.default_family_handle();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut target = 0;
            while !is_over.load(Ordering::SeqCst) {
                target = (target + 1) % 7;
                // It may be refused.
                let _ = db.compact_range_opt(&family, None, None, &to_level(target));
                let _ = db.promote_l0(&family, 1 + target as u8 % 6);
            }
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                let _ = level0_to(&db, 3);
            }
        });
        let written = (0..300).find_map(|round| rewrite(&db, &env, round).err());
        is_over.store(true, Ordering::SeqCst);
        assert_eq!(written, None);
    });
    db.compact_range(None, None)?;
    assert_eq!(db.get("k")?.as_deref(), Some(&b"299"[..]));
    Ok(())
}
