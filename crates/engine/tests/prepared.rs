//! Transactions in two phases: what is prepared survives restarts and log switches, is seen by
//! nobody, and is committed or undone once; logs as RocksDB writes them, with commits by name.

mod common;

use common::copy_dir;
use esker::{Db, ErrorKind, FlushOptions, Options, ReadOptions, Result, WriteBatch, WriteOptions};
use esker_env::{Env, WriteOptions as FileOptions};
use esker_files::current;
use esker_files::log::{LogWriter, LogWriterOptions};
use esker_files::manifest::{ManifestReader, ManifestWriter};
use esker_format::batch::PrepareKind;
use esker_format::{FileNo, Seq, file_name};
use std::path::Path;

fn options() -> Options {
    Options::new()
        .create_if_missing(true)
        .set("allow_2pc", "true")
        .and_then(|o| o.set("merge_operator", "stringappend"))
        .expect("options")
}

fn batch(pairs: &[(&str, &str)]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for (k, v) in pairs {
        batch.put(k.as_bytes(), v.as_bytes()).expect("it fits");
    }
    batch
}

fn text(db: &Db, key: &str) -> Option<String> {
    let value = db.get(key).expect("reads")?;
    Some(String::from_utf8(value.to_vec()).expect("UTF-8"))
}

/// Leaves the database as a killed process would.
fn kill(db: Db, dir: &Path, copy: &Path) {
    copy_dir(&Env::posix(), dir, copy);
    drop(db);
}

#[test]
fn what_is_prepared_outlives_logs_and_processes() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (first, second) = (dir.path().join("1"), dir.path().join("2"));
    let write = WriteOptions::default();
    let db = Db::open(&first, options())?;
    db.put("before", "1")?;
    for name in ["committed", "undone", "left"] {
        db.prepare_transaction(
            name.as_bytes(),
            &batch(&[(name, "x"), ("both", name)]),
            &write,
        )?;
    }
    let seq = db.latest_sequence_number();
    assert_eq!(seq, 1, "what is prepared has no sequence numbers");
    assert_eq!(text(&db, "left"), None);
    // Logs come and go; the newest has what is prepared.
    for round in 0..4u8 {
        db.put([round], [round; 100])?;
        db.flush()?;
    }
    db.commit_transaction(
        b"committed",
        &batch(&[("committed", "x"), ("both", "c")]),
        &write,
    )?;
    db.undo_transaction(b"undone", &write)?;
    db.put("after", "1")?;
    kill(db, &first, &second);

    for round in 0..3 {
        let db = Db::open(&second, options())?;
        assert_eq!(text(&db, "committed").as_deref(), Some("x"), "{round}");
        assert_eq!(text(&db, "both").as_deref(), Some("c"));
        assert_eq!(text(&db, "after").as_deref(), Some("1"));
        assert_eq!(text(&db, "left"), None);
        assert_eq!(text(&db, "undone"), None);
        let found = db.take_prepared_transactions();
        let names: Vec<&[u8]> = found.iter().map(|(n, _)| n.as_slice()).collect();
        assert_eq!(names, [b"left"]);
        assert!(db.take_prepared_transactions().is_empty());
        if round == 2 {
            db.commit_transaction(b"left", &found[0].1, &write)?;
            assert_eq!(text(&db, "both").as_deref(), Some("left"));
        }
        db.put("after", "1")?;
        if round == 1 {
            db.close()?;
        }
    }
    let db = Db::open(&second, options().set("allow_2pc", "false")?)?;
    assert_eq!(text(&db, "left").as_deref(), Some("x"));
    assert!(db.take_prepared_transactions().is_empty());
    Ok(())
}

#[test]
fn prepared_transactions_need_whoever_finishes_them() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    let plain = || options().set("allow_2pc", "false");
    let db = Db::open(&at, options())?;
    db.put("k", "1")?;
    db.prepare_transaction(b"t", &batch(&[("k", "2")]), &WriteOptions::default())?;
    drop(db);
    let error = Db::open(&at, plain()?).expect_err("somebody has to finish it");
    assert_eq!(error.kind(), ErrorKind::NotSupported);
    assert!(error.to_string().contains("prepared"), "{error}");
    // Readers see what is committed.
    let reader = Db::open_read_only(&at, plain()?)?;
    assert_eq!(text(&reader, "k").as_deref(), Some("1"));
    drop(reader);
    let db = Db::open(&at, options())?;
    db.undo_transaction(b"t", &WriteOptions::default())?;
    drop(db);
    assert_eq!(text(&Db::open(&at, plain()?)?, "k").as_deref(), Some("1"));
    Ok(())
}

#[test]
fn updates_and_followers_see_commits_alone() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (at, beside) = (dir.path().join("db"), dir.path().join("second"));
    let write = WriteOptions::default();
    let db = Db::open(&at, options())?;
    db.put("a", "1")?;
    let second = Db::open_secondary(&at, beside, options())?;
    db.prepare_transaction(b"t", &batch(&[("b", "2"), ("c", "3")]), &write)?;
    db.put("d", "4")?;
    second.try_catch_up_with_primary()?;
    assert_eq!(
        (text(&second, "b"), text(&second, "d").is_some()),
        (None, true)
    );
    db.commit_transaction(b"t", &batch(&[("b", "2"), ("c", "3")]), &write)?;
    db.put("e", "5")?;
    second.try_catch_up_with_primary()?;
    assert_eq!(text(&second, "c").as_deref(), Some("3"));
    let mut log = db.updates_since(1)?;
    let mut seen = Vec::new();
    while log.valid() {
        seen.push((log.sequence(), log.batch().count()));
        log.next();
    }
    log.status()?;
    assert_eq!(seen, [(1, 1), (2, 1), (3, 2), (5, 1)]);
    Ok(())
}

/// Puts a log with these batches into a closed database, under a number above all others.
fn add_log(at: &Path, batches: &[WriteBatch]) -> Result<()> {
    add_log_as(at, 900, batches)
}

fn add_log_as(at: &Path, number: u64, batches: &[WriteBatch]) -> Result<()> {
    let env = Env::posix();
    let path = at.join(file_name::log_name(FileNo(number)));
    let file = env.fs.create(&path, FileOptions::default())?;
    let mut log = LogWriter::new(file, LogWriterOptions::default())?;
    for batch in batches {
        log.add_record(batch.data())?;
    }
    log.sync()?;
    log.close()
}

/// A batch as RocksDB's write-committed transactions write it: `prepare` a section, then `data`,
/// then ends by name.
fn record(seq: u64, section: Option<(&str, WriteBatch)>, data: &WriteBatch) -> Result<WriteBatch> {
    let mut out = WriteBatch::new();
    if let Some((name, prepared)) = section {
        out.mark_noop()?;
        out.append(&prepared, false)?;
        out.mark_end_prepare(PrepareKind::Committed, name.as_bytes())?;
    }
    out.append(data, false)?;
    out.set_seq(Seq(seq));
    Ok(out)
}

#[test]
fn commits_by_name_bring_their_sections() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    let db = Db::open(&at, options())?;
    db.put("m", "0")?;
    db.close()?;
    let mut section = batch(&[("k", "prepared")]);
    section.merge(b"m", b"1")?;
    let none = WriteBatch::new();
    // The commit-time batch is in the record of the commit, and comes before the section.
    let mut commit = batch(&[("with", "it"), ("k", "at commit")]);
    commit.mark_commit(b"one")?;
    let mut undo = WriteBatch::new();
    undo.mark_rollback(b"two")?;
    let mut unknown = WriteBatch::new();
    unknown.mark_commit(b"gone before")?;
    add_log(
        &at,
        &[
            record(2, Some(("one", section)), &none)?,
            // One record for what two threads wrote: a section, and a put.
            record(
                2,
                Some(("two", batch(&[("k", "no")]))),
                &batch(&[("p", "1")]),
            )?,
            record(3, Some(("three", batch(&[("k", "later")]))), &none)?,
            record(3, None, &commit)?,
            record(7, None, &undo)?,
            record(7, None, &unknown)?,
            record(7, None, &batch(&[("last", "1")]))?,
        ],
    )?;
    let reader = Db::open_read_only(&at, options())?;
    assert_eq!(text(&reader, "k").as_deref(), Some("prepared"));
    drop(reader);
    let db = Db::open(&at, options())?;
    assert_eq!(text(&db, "k").as_deref(), Some("prepared"));
    assert_eq!(text(&db, "m").as_deref(), Some("0,1"));
    assert_eq!(text(&db, "with").as_deref(), Some("it"));
    assert_eq!(text(&db, "p").as_deref(), Some("1"));
    assert_eq!(text(&db, "last").as_deref(), Some("1"));
    assert_eq!(db.latest_sequence_number(), 7);
    let found = db.take_prepared_transactions();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, b"three");
    db.commit_transaction(b"three", &found[0].1, &WriteOptions::default())?;
    drop(db);
    let db = Db::open(&at, options())?;
    assert_eq!(text(&db, "k").as_deref(), Some("later"));
    assert_eq!(text(&db, "m").as_deref(), Some("0,1"), "merged once");
    db.flush_cf(&db.default_family_handle(), &FlushOptions::default())?;
    let all = db.iter_opt(&db.default_family_handle(), ReadOptions::default(), None);
    drop(all);
    db.verify_checksums()
}

/// Lets the MANIFEST of a closed database say that every log is to be kept from `oldest` on, and
/// nothing of which logs are there, as RocksDB's.
fn keep_logs_from(at: &Path, oldest: u64) -> Result<()> {
    let env = Env::posix();
    let number = current::read(&*env.fs, at)?;
    let mut reader = ManifestReader::open(&*env.fs, &at.join(file_name::manifest_name(number)))?;
    let mut edits = Vec::new();
    while let Some(group) = reader.next_group()? {
        edits.extend(group.edits);
    }
    assert!(edits.iter().any(|e| e.min_log_number_to_keep.is_some()));
    for edit in &mut edits {
        let named = edit.min_log_number_to_keep.as_mut();
        named.into_iter().for_each(|n| *n = FileNo(oldest));
        edit.known_logs = None;
    }
    let mut writer = ManifestWriter::create(&*env.fs, at, number, FileOptions::default(), &edits)?;
    writer.sync()?;
    writer.close()
}

/// RocksDB keeps a log for what was prepared in it while families go on to newer ones.
#[test]
fn sections_in_logs_that_no_family_needs_are_found() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    let db = Db::open(&at, options().set("allow_2pc", "false")?)?;
    for round in 0..3u8 {
        db.put([round], [round])?;
        db.flush()?;
    }
    db.close()?;
    let section = record(1, Some(("old", batch(&[("k", "old")]))), &WriteBatch::new())?;
    add_log_as(&at, 1, &[section])?;
    keep_logs_from(&at, 1)?;
    let mut found = Vec::new();
    for _ in 0..3 {
        let db = Db::open(&at, options())?;
        found = db.take_prepared_transactions();
        assert_eq!(found.len(), 1);
        db.put("more", "1")?;
        db.flush()?;
        // The MANIFEST says where to begin: an older log is not looked at again.
        let stray = record(
            1,
            Some(("stray", batch(&[("k", "no")]))),
            &WriteBatch::new(),
        )?;
        drop(db);
        add_log_as(&at, 2, &[stray])?;
    }
    let db = Db::open(&at, options())?;
    db.commit_transaction(b"old", &found[0].1, &WriteOptions::default())?;
    drop(db);
    let db = Db::open(&at, options())?;
    assert!(db.take_prepared_transactions().is_empty());
    assert_eq!(text(&db, "k").as_deref(), Some("old"));
    assert_eq!(text(&db, "more").as_deref(), Some("1"));
    Ok(())
}

#[test]
fn other_policies_and_stray_markers_are_refused() -> Result<()> {
    for kind in [PrepareKind::Persisted, PrepareKind::Unprepared] {
        let dir = tempfile::tempdir().expect("a directory");
        let at = dir.path().join("db");
        drop(Db::open(&at, options())?);
        let mut section = WriteBatch::new();
        section.mark_noop()?;
        section.put(b"k", b"v")?;
        section.mark_end_prepare(kind, b"t")?;
        section.set_seq(Seq(1));
        add_log(&at, &[section.clone()])?;
        let error = Db::open(&at, options()).expect_err("another policy");
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
        // Nor may such a batch be written.
        let db = Db::open(dir.path().join("other"), options())?;
        let error = db.write(&mut section).expect_err("a marker");
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
        db.put("k", "1")?;
    }
    Ok(())
}

/// An edit that adds a family must not name the current log as the oldest.
#[test]
fn a_new_family_leaves_the_logs_of_the_default_one() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (first, second) = (dir.path().join("1"), dir.path().join("2"));
    let options = || {
        options()
            .set("write_buffer_size", "65536")?
            .set("max_write_buffer_number", "6")?
            .set("min_write_buffer_number_to_merge", "4")
    };
    let db = Db::open(&first, options()?)?;
    let value = vec![7; 24 << 10];
    for n in 0..6_u8 {
        db.put([n], &value)?;
    }
    let switched = db.property("rocksdb.num-immutable-mem-table");
    assert_ne!(switched.as_deref(), Some("0"), "the data is in two logs");
    db.create_family("other", options()?.family)?;
    kill(db, &first, &second);
    let db = Db::open(&second, options()?)?;
    for n in 0..6_u8 {
        assert!(db.get([n])?.is_some(), "key {n}");
    }
    Ok(())
}
