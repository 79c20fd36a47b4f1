//! Destroy, repair, checkpoint and verification, on real directories.

use esker::{Db, Env, FamilyOptions, Options, RepairMode, Result, Subcode, WriteBatch};
use esker_files::log::{LogWriter, LogWriterOptions};
use esker_files::table::{BlockKind, TableReader, TableReaderOptions};
use esker_format::Seq;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> Options {
    Options::new()
        .create_if_missing(true)
        .set_all("write_buffer_size=65536;target_file_size_base=65536;max_bytes_for_level_base=262144;compression=kNoCompression")
        .expect("these options exist")
}

/// A database of two families with several levels and a log that is not empty, and what it holds.
fn fill(dir: &Path) -> Result<(Model, Model)> {
    let db = Db::open(dir, options())?;
    let other = db.create_family("other", FamilyOptions::default())?;
    let (mut first, mut second) = (Model::new(), Model::new());
    for n in 0..12_000u32 {
        let key = format!("key{:06}", n.wrapping_mul(2_654_435_761) % 5_000).into_bytes();
        let value = format!("value{n:0100}").into_bytes();
        if n % 9 == 4 {
            db.delete(&key)?;
            first.remove(&key);
        } else {
            db.put(&key, &value)?;
            first.insert(key.clone(), value.clone());
        }
        if n % 5 == 0 {
            db.put_cf(&other, &key, &value)?;
            second.insert(key, value);
        }
    }
    db.wait_for_compaction()?;
    let mut batch = WriteBatch::new();
    batch.put(b"last", b"in the log")?;
    db.write(&mut batch)?;
    first.insert(b"last".to_vec(), b"in the log".to_vec());
    db.close()?;
    Ok((first, second))
}

fn contents(db: &Db, family: &str) -> Result<Model> {
    let family = db.family(family).expect("the family exists");
    let mut out = Model::new();
    let mut it = db.iter_cf(&family);
    it.seek_to_first();
    while it.valid() {
        out.insert(it.key().to_vec(), it.value().to_vec());
        it.next();
    }
    it.status()?;
    // Point reads stop at the first table that has the key: they need the tables in the right
    // order.
    for (key, value) in &out {
        assert_eq!(db.get_cf(&family, key)?.as_ref(), Some(value));
    }
    Ok(out)
}

fn files(dir: &Path, of: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut out: Vec<_> = fs::read_dir(dir)
        .expect("the directory is there")
        .map(|e| e.expect("an entry").path())
        .filter(|p| of(&p.file_name().expect("a name").to_string_lossy()))
        .collect();
    out.sort();
    out
}

#[test]
fn destroy_removes_a_database_and_nothing_else() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    fill(dir.path())?;
    fs::write(dir.path().join("notes.txt"), "mine").expect("written");
    {
        let _open = Db::open(dir.path(), Options::new())?;
        let refused = Db::destroy(dir.path(), &Options::new()).expect_err("it is open");
        assert!(refused.to_string().contains("lock"), "{refused}");
    }
    Db::destroy(dir.path(), &Options::new())?;
    assert_eq!(files(dir.path(), |_| true), [dir.path().join("notes.txt")]);
    Db::destroy(dir.path(), &Options::new())?;
    Db::destroy(dir.path().join("nothing"), &Options::new()).map(drop)
}

#[test]
fn destroy_does_not_touch_tables_that_repair_could_save() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    fill(dir.path())?;
    for path in files(dir.path(), |n| n == "CURRENT" || n.starts_with("MANIFEST")) {
        fs::remove_file(path).expect("removed");
    }
    let before = files(dir.path(), |_| true);
    Db::destroy(dir.path(), &Options::new()).expect_err("doubtful");
    assert_eq!(files(dir.path(), |_| true), before);
    Ok(())
}

#[test]
fn repair_of_a_sound_database_changes_no_content() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (first, second) = fill(dir.path())?;
    let before = files(dir.path(), |_| true);
    let report = Db::repair(dir.path(), &Options::new())?;
    assert!(
        report.is_sound && report.manifest.is_some() && report.set_aside.is_empty(),
        "{report:?}"
    );
    assert_eq!(files(dir.path(), |_| true), before);
    assert_eq!(report.families, ["default", "other"]);
    let db = Db::open(dir.path(), Options::new())?;
    assert!(
        db.property("rocksdb.num-files-at-level0")
            .is_some_and(|n| n != "99")
    );
    assert!(contents(&db, "default")? == first && contents(&db, "other")? == second);
    Ok(())
}

#[test]
fn repair_makes_a_database_of_tables_and_logs_alone() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (first, second) = fill(dir.path())?;
    for path in files(dir.path(), |n| {
        n == "CURRENT" || n == "IDENTITY" || n.starts_with("MANIFEST")
    }) {
        fs::remove_file(path).expect("removed");
    }
    let report = Db::repair(dir.path(), &Options::new())?;
    assert_eq!(report.manifest, None);
    assert!(report.losses.is_empty() && report.logs > 0, "{report:?}");
    let db = Db::open(dir.path(), Options::new())?;
    assert!(contents(&db, "default")? == first && contents(&db, "other")? == second);
    Ok(())
}

#[test]
fn repair_sets_a_damaged_table_and_a_damaged_manifest_aside() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (first, _) = fill(dir.path())?;
    let tables = files(dir.path(), |n| n.ends_with(".sst"));
    let victim = tables[tables.len() / 2].clone();
    let mut bytes = fs::read(&victim).expect("read");
    bytes[10] ^= 0xff;
    fs::write(&victim, &bytes).expect("written");
    let manifest = files(dir.path(), |n| n.starts_with("MANIFEST"))
        .pop()
        .expect("a MANIFEST");
    let mut text = fs::read(&manifest).expect("read");
    text[9] ^= 0xff;
    fs::write(&manifest, &text).expect("written");

    let report = Db::repair(dir.path(), &Options::new())?;
    assert_eq!(report.manifest, None);
    assert!(
        report.losses.iter().any(|l| l.contains("sst")),
        "{report:?}"
    );
    let kept = dir
        .path()
        .join("lost")
        .join(victim.file_name().expect("a name"));
    assert!(fs::read(kept).expect("kept") == bytes);
    let db = Db::open(dir.path(), Options::new())?;
    let now = contents(&db, "default")?;
    assert!(now.len() > first.len() / 4);
    assert_eq!(now.get(&b"last"[..]), first.get(&b"last"[..]));
    db.verify_checksums()
}

#[test]
fn repair_reports_missing_tables_and_keeps_the_others() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    fill(dir.path())?;
    let victim = files(dir.path(), |n| n.ends_with(".sst")).remove(0);
    fs::remove_file(&victim).expect("removed");
    let report = Db::repair(dir.path(), &Options::new())?;
    let name = victim
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    assert_eq!(report.missing, [name]);
    let db = Db::open(dir.path(), Options::new())?;
    db.verify_checksums()
}

#[test]
fn a_dry_run_of_repair_says_what_would_be_and_changes_nothing() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    fill(dir.path())?;
    fs::remove_file(dir.path().join("CURRENT")).expect("removed");
    let victim = files(dir.path(), |n| n.ends_with(".sst")).remove(0);
    let mut bytes = fs::read(&victim).expect("read");
    bytes[10] ^= 0xff;
    fs::write(&victim, &bytes).expect("written");
    let before = files(dir.path(), |_| true);
    let would = Db::repair_families(dir.path(), &Options::new(), &[], RepairMode::DryRun)?;
    assert_eq!(files(dir.path(), |_| true), before);
    assert!(
        would.set_aside.iter().any(|f| f.path == victim),
        "{would:?}"
    );
    let did = Db::repair(dir.path(), &Options::new())?;
    assert_eq!(did, would);
    for file in &did.set_aside {
        assert!(file.now.exists(), "{file:?}");
    }
    assert!(
        fs::read(
            dir.path()
                .join("lost")
                .join(victim.file_name().expect("a name"))
        )
        .is_ok()
    );
    Ok(())
}

#[test]
fn repair_does_not_follow_a_manifest_older_than_the_tables() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), options())?;
    db.put("first", "1")?;
    db.flush()?;
    db.close()?;
    let manifest = files(dir.path(), |n| n.starts_with("MANIFEST")).remove(0);
    let old = fs::read(&manifest).expect("read");
    let (first, second) = fill(dir.path())?;
    for path in files(dir.path(), |n| n == "CURRENT" || n.starts_with("MANIFEST")) {
        fs::remove_file(path).expect("removed");
    }
    fs::write(&manifest, old).expect("written");
    let report = Db::repair(dir.path(), &Options::new())?;
    assert_eq!(report.manifest, None);
    let db = Db::open(dir.path(), Options::new())?;
    let mut expected = first;
    expected.insert(b"first".to_vec(), b"1".to_vec());
    assert!(contents(&db, "default")? == expected && contents(&db, "other")? == second);
    Ok(())
}

#[test]
fn repair_takes_the_tables_of_the_living_family_of_a_name() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), options())?;
    let old = db.create_family("twice", FamilyOptions::default())?;
    db.put_cf(&old, "key", "old")?;
    db.flush()?;
    let saved: Vec<_> = files(dir.path(), |n| n.ends_with(".sst"))
        .into_iter()
        .map(|p| (fs::read(&p).expect("read"), p))
        .collect();
    db.drop_family(&old)?;
    drop(old);
    let new = db.create_family("twice", FamilyOptions::default())?;
    db.put_cf(&new, "key", "new")?;
    db.flush()?;
    drop(new);
    db.close()?;
    for (bytes, path) in saved {
        fs::write(path, bytes).expect("written");
    }
    for path in files(dir.path(), |n| {
        n == "CURRENT" || n.starts_with("MANIFEST") || n.ends_with(".log")
    }) {
        fs::remove_file(path).expect("removed");
    }
    let report = Db::repair(dir.path(), &Options::new())?;
    assert!(
        report.set_aside.iter().any(|f| f.reason.contains("twice")),
        "{report:?}"
    );
    let db = Db::open(dir.path(), Options::new())?;
    let family = db.family("twice").expect("the family exists");
    assert_eq!(db.get_cf(&family, "key")?.as_deref(), Some(&b"new"[..]));
    Ok(())
}

#[test]
fn a_checkpoint_of_a_closed_database_leaves_it_as_it_is() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (from, to) = (dir.path().join("db"), dir.path().join("copy"));
    let (first, second) = fill(&from)?;
    {
        let _open = Db::open(&from, options())?;
        Db::checkpoint_closed(&from, &to, &Options::new()).expect_err("it is open");
    }
    let before: Vec<_> = files(&from, |_| true)
        .into_iter()
        .map(|p| (fs::read(&p).expect("read"), p))
        .collect();
    let report = Db::checkpoint_closed(&from, &to, &Options::new())?;
    assert!(report.linked > 0 && report.copied >= 2, "{report:?}");
    for (bytes, path) in before {
        assert!(fs::read(&path).expect("read") == bytes, "{path:?}");
    }
    Db::checkpoint_closed(&from, &to, &Options::new()).expect_err("it is there");
    let copy = Db::open(&to, Options::new())?;
    assert!(contents(&copy, "default")? == first && contents(&copy, "other")? == second);
    copy.verify_checksums()
}

#[test]
fn a_sequence_that_does_not_fit_is_damage_to_repair_and_to_opening() -> Result<()> {
    for sequence in [Seq::MAX.0 - 1, u64::MAX] {
        let dir = tempfile::tempdir().expect("a directory");
        let db = Db::open(dir.path(), options())?;
        db.put("first", "1")?;
        db.close()?;
        let mut batch = WriteBatch::new();
        batch.put(b"second", b"2")?;
        batch.set_seq(Seq(sequence));
        let path = dir.path().join("record");
        let file = Env::posix().fs.create(&path, Default::default())?;
        let mut writer = LogWriter::new(file, LogWriterOptions::default())?;
        writer.add_record(batch.data())?;
        writer.close()?;
        let log = files(dir.path(), |n| n.ends_with(".log")).remove(0);
        let mut bytes = fs::read(&log).expect("read");
        bytes.extend(fs::read(&path).expect("read"));
        fs::remove_file(path).expect("removed");
        fs::write(log, bytes).expect("written");
        let report = Db::repair(dir.path(), &Options::new())?;
        assert!(!report.is_sound, "{report:?}");
        let db = Db::open(dir.path(), Options::new())?;
        assert!(db.get("first")?.is_some() && db.get("second")?.is_none());
        db.put("third", "3")?;
        db.close()?;
        let db = Db::open(dir.path(), Options::new())?;
        assert!(db.get("third")?.is_some());
    }
    Ok(())
}

/// Where the blocks of a table that `wanted` wants begin.
fn blocks(table: &Path, wanted: impl Fn(&BlockKind) -> bool) -> Result<Vec<usize>> {
    let file = Env::posix().fs.open_read(table, Default::default())?;
    let len = file.len();
    let reader = TableReader::open(file, len, TableReaderOptions::default())?;
    let all = reader.block_handles()?.into_iter();
    let wanted = all.filter(|(kind, _)| wanted(kind));
    Ok(wanted.map(|(_, h)| h.offset as usize).collect())
}

#[test]
fn repair_keeps_range_deletions_and_says_when_they_are_lost() -> Result<()> {
    let data: fn(&BlockKind) -> bool = |kind| *kind == BlockKind::Data;
    let ranges: fn(&BlockKind) -> bool =
        |kind| matches!(kind, BlockKind::Meta(name) if name == "rocksdb.range_del");
    for (wanted, is_kept) in [(data, true), (ranges, false)] {
        let dir = tempfile::tempdir().expect("a directory");
        let own = options().set("disable_auto_compactions", "true")?;
        let db = Db::open(dir.path(), own)?;
        let family = db.default_family_handle();
        for n in 0..500 {
            db.put(format!("key{n:03}"), "old")?;
        }
        db.flush()?;
        db.delete_range_cf(&family, "key100", "key200")?;
        for n in 300..500 {
            db.put(format!("key{n:03}"), "a new value of some length")?;
        }
        db.flush()?;
        drop(family);
        db.close()?;
        let table = files(dir.path(), |n| n.ends_with(".sst")).remove(1);
        let mut bytes = fs::read(&table).expect("read");
        bytes[blocks(&table, wanted)?[0] + 5] ^= 1;
        fs::write(&table, &bytes).expect("written");
        let report = Db::repair(dir.path(), &Options::new())?;
        let told = &report.salvaged[0];
        assert!(report.has_lost_data, "{report:?}");
        assert_eq!(told.lost_range_deletions, !is_kept, "{report:?}");
        assert_eq!(report.losses.len(), 1, "{report:?}");
        let db = Db::open(dir.path(), Options::new())?;
        assert_eq!(db.get("key150")?.is_none(), is_kept);
        // What is lost of the newer table shows as it was before.
        let left = (300..500).filter(|n| {
            let value = db.get(format!("key{n}")).ok().flatten();
            value.is_some_and(|v| v != b"old")
        });
        let lost = told.lost.expect("the properties are there") as usize;
        assert_eq!(left.count(), if is_kept { 200 - lost } else { 200 });
        db.verify_checksums()?;
    }
    Ok(())
}

#[test]
fn repair_refuses_what_is_no_database_or_is_open() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("notes.txt"), "mine").expect("written");
    Db::repair(dir.path(), &Options::new()).expect_err("nothing to repair");
    assert_eq!(files(dir.path(), |_| true).len(), 1);
    let other = tempfile::tempdir().expect("a directory");
    let _open = Db::open(other.path(), options())?;
    Db::repair(other.path(), &Options::new()).expect_err("it is open");
    Ok(())
}

#[test]
fn manual_compactions_are_forbidden_and_allowed_in_pairs() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), options())?;
    // Allowed once before it is forbidden once: allowed.
    db.enable_manual_compaction();
    db.disable_manual_compaction();
    for round in 0..2u8 {
        db.put([round], [round])?;
        db.flush()?;
    }
    db.compact_range(None, None)?;
    db.disable_manual_compaction();
    db.disable_manual_compaction();
    db.enable_manual_compaction();
    db.put("more", "")?;
    let error = db.compact_range(None, None).expect_err("forbidden once");
    assert_eq!(error.subcode(), Subcode::ManualCompactionPaused);
    db.enable_manual_compaction();
    db.compact_range(None, None)
}

#[test]
fn an_exported_family_is_taken_into_another_database() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (from, to) = (dir.path().join("db"), dir.path().join("export"));
    let (first, second) = fill(&from)?;
    let db = Db::open(&from, options())?;
    db.put("only in memory", "yet")?;
    let family = db.family("other").expect("it is there");
    let mut exported = vec![
        (db.export_family(&db.default_family_handle(), &to)?, first),
        (db.export_family(&family, to.with_extension("2"))?, second),
    ];
    assert!(exported[1].0.files.iter().all(|f| f.family.is_empty()));
    let key: Vec<u8> = "only in memory".into();
    exported[0].1.insert(key, "yet".into());
    db.export_family(&family, &to).expect_err("it is there");
    drop(db);
    fs::remove_dir_all(&from).expect("only the exports are left");

    let other = Db::open(dir.path().join("other"), options())?;
    for (n, (files, content)) in exported.into_iter().enumerate() {
        let name = format!("import {n}");
        other.import_family(&name, Default::default(), &Default::default(), &[files])?;
        assert!(contents(&other, &name)? == content, "{name}");
    }
    other.verify_checksums()
}

#[test]
fn a_checkpoint_flushes_when_the_logs_are_large() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path().join("db"), options())?;
    db.put("key", vec![7; 10_000])?;
    let mut how = esker::CheckpointOptions::default();
    for (bytes, tables) in [(u64::MAX, 0), (20_000, 0), (10_000, 1), (0, 1)] {
        how.log_size_for_flush = bytes;
        let to = dir.path().join(format!("checkpoint {bytes}"));
        let report = db.checkpoint_opt(&to, &how)?;
        assert_eq!(report.sequence, db.latest_sequence_number());
        let is_table = |n: &str| n.ends_with(".sst");
        assert_eq!(files(&to, is_table).len(), tables, "{bytes}");
        let copy = Db::open(&to, Options::new())?;
        assert_eq!(copy.get("key")?, Some(vec![7; 10_000]));
    }
    Ok(())
}

#[test]
fn a_checkpoint_replaces_one_that_was_interrupted() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path().join("db"), options())?;
    db.put("key", "value")?;
    let (to, staging) = (dir.path().join("copy"), dir.path().join("copy.tmp"));
    let leave = |names: &[&str]| {
        fs::create_dir(&staging).expect("makes");
        for name in names {
            fs::write(staging.join(name), "part").expect("writes");
        }
    };
    for other in ["CURRENT", "LOCK", "notes.txt"] {
        leave(&["000007.sst", "000009.blob", other]);
        let refused = db.checkpoint(&to);
        let refused = refused.expect_err("it may be whole, or another's");
        assert!(refused.to_string().contains(other), "{refused}");
        assert_eq!(fs::read_dir(&staging).expect("lists").count(), 3);
        fs::remove_dir_all(&staging).expect("removes");
    }
    leave(&["000007.sst", "000009.blob", "000008.log", "000010.dbtmp"]);
    fs::write(staging.join("MANIFEST-000005"), "part").expect("writes");
    db.checkpoint(&to)?;
    assert!(!staging.exists());
    assert!(!to.join("000009.blob").exists());
    let copy = Db::open(&to, Options::new())?;
    assert_eq!(copy.get("key")?, Some(b"value".to_vec()));
    Ok(())
}

#[test]
fn a_checkpoint_holds_the_moment_and_shares_tables() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (from, to) = (dir.path().join("db"), dir.path().join("copy"));
    let (first, second) = fill(&from)?;
    let db = Db::open(&from, options())?;
    let unlogged = esker::WriteOptions::unlogged();
    db.put_opt(&db.default_family_handle(), "unlogged", "too", &unlogged)?;
    db.checkpoint(&to)?;
    db.checkpoint(&to).expect_err("it is there");
    let nowhere = dir.path().join("missing");
    let refused = db.checkpoint(nowhere.join("copy"));
    let refused = refused.expect_err("its directory is not there");
    assert_eq!(refused.subcode(), Subcode::PathNotFound, "{refused}");
    assert!(!nowhere.exists());
    db.put("key000001", "later")?;
    db.compact_range(None, None)?;
    let linked = files(&to, |n| n.ends_with(".sst"));
    assert!(!linked.is_empty());
    drop(db);

    let copy = Db::open(&to, Options::new())?;
    let mut expected = first;
    expected.insert(b"unlogged".to_vec(), b"too".to_vec());
    assert!(contents(&copy, "default")? == expected && contents(&copy, "other")? == second);
    copy.verify_checksums()
}

#[test]
fn a_checkpoint_under_writes_is_a_prefix() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path().join("db"), options())?;
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| -> Result<()> {
        let writer = scope.spawn(|| -> Result<u64> {
            let mut n = 0u64;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                db.put(format!("{n:012}"), vec![b'v'; 200])?;
                n += 1;
            }
            Ok(n)
        });
        for i in 0..5 {
            let to = dir.path().join(format!("copy{i}"));
            let made = db.checkpoint(&to);
            if i == 4 || made.is_err() {
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            made?;
            let copy = Db::open_read_only(&to, Options::new())?;
            let keys = contents(&copy, "default")?;
            for (n, key) in keys.keys().enumerate() {
                assert_eq!(
                    *key,
                    format!("{n:012}").into_bytes(),
                    "checkpoint {i} has a hole"
                );
            }
        }
        writer.join().expect("no panic").map(|_| ())
    })
}

#[test]
fn verification_names_the_damaged_file() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    fill(dir.path())?;
    // The damaged file has to stay in use.
    let db = Db::open(
        dir.path(),
        Options::new().set("disable_auto_compactions", "true")?,
    )?;
    db.verify_checksums()?;
    let victim = files(dir.path(), |n| n.ends_with(".sst")).remove(0);
    let mut bytes = fs::read(&victim).expect("read");
    bytes[20] ^= 1;
    fs::write(&victim, bytes).expect("written");
    let error = db.verify_checksums().expect_err("damaged");
    assert!(error.is_corruption());
    assert_eq!(error.file(), Some(&*victim));
    Ok(())
}
