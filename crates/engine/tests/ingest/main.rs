//! Files taken in from outside, against a model: what is seen before, meanwhile and after; and what
//! is refused.

#[path = "../common/mod.rs"]
mod common;
mod model;
mod writer;

use esker::merge_operator::StringAppend;
use esker::{
    CompactRangeOptions, Db, ErrorKind, ExportedFiles, FamilyHandle, FamilyOptions, ImportOptions,
    IngestArg, IngestOptions, Options, ReadOptions, Snapshot, SstFileWriter,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> Options {
    let mut options = Options::new()
        .create_if_missing(true)
        .set_all("write_buffer_size=65536;target_file_size_base=16384;max_bytes_for_level_base=65536;compression=kNoCompression")
        .expect("these options exist");
    options.family.merge_operator = Some(Arc::new(StringAppend::new(b",")));
    options
}

fn open(dir: &Path) -> Db {
    Db::open(dir.join("db"), options()).expect("opens")
}

fn ingest() -> IngestOptions {
    IngestOptions::default()
}

fn contents(db: &Db, family: &FamilyHandle, snapshot: Option<&Snapshot>) -> Model {
    let mut out = Model::new();
    let mut it = db.iter_opt(family, ReadOptions::default(), snapshot);
    it.seek_to_first();
    while it.valid() {
        out.insert(it.key().to_vec(), it.value().to_vec());
        it.next();
    }
    it.status().expect("reads");
    for (key, value) in &out {
        let found = db
            .get_opt(family, key, &ReadOptions::default(), snapshot)
            .expect("reads");
        assert_eq!(found.as_deref(), Some(&value[..]), "{}", key.escape_ascii());
    }
    out
}

fn key(n: u64) -> Vec<u8> {
    format!("key{n:04}").into_bytes()
}

const KEYS: u64 = 400;

/// A file of `keys` with `value` each.
fn file(dir: &Path, name: &str, keys: &[&str], value: &str) -> PathBuf {
    let path = dir.join(name);
    let mut writer = SstFileWriter::new(&options()).expect("a writer");
    writer.open(&path).expect("opens");
    for k in keys {
        writer.put(k, value).expect("is added");
    }
    writer.finish().expect("is finished");
    path
}

fn levels(db: &Db) -> Vec<(u8, String, u64)> {
    let files = db.live_files_metadata().into_iter();
    files
        .map(|f| {
            let key = String::from_utf8_lossy(&f.smallest_key).into_owned();
            (f.level, key, f.largest_seq)
        })
        .collect()
}

#[test]
fn files_go_as_deep_as_they_can() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(dir.path());
    let family = db.default_family_handle();
    let at = dir.path();
    // Nothing is there: the last level, and no sequence number.
    let a = file(at, "a.sst", &["b", "d"], "1");
    db.ingest(&family, &[a], &ingest()).expect("is taken in");
    assert_eq!(levels(&db), [(6, "b".into(), 0)]);
    // Between two keys of the file: no key in common, but no place beside it either.
    let b = file(at, "b.sst", &["c"], "2");
    db.ingest(&family, &[b], &ingest()).expect("is taken in");
    assert_eq!(levels(&db)[0].2, 0);
    assert!(levels(&db)[0].0 < 6);
    // A key in common: above it, with a sequence number.
    let before = db.latest_sequence_number();
    let c = file(at, "c.sst", &["b"], "3");
    db.ingest(&family, &[c], &ingest()).expect("is taken in");
    assert_eq!(db.latest_sequence_number(), before + 1);
    assert_eq!(levels(&db).iter().filter(|l| l.2 == before + 1).count(), 1);
    assert_eq!(db.get("b").expect("reads").as_deref(), Some(&b"3"[..]));
    assert_eq!(db.get("c").expect("reads").as_deref(), Some(&b"2"[..]));
    assert_eq!(db.get("d").expect("reads").as_deref(), Some(&b"1"[..]));
    // Memory with a key of the range is flushed first.
    db.put("b", "4").expect("writes");
    db.put("z", "4").expect("writes");
    let d = file(at, "d.sst", &["b"], "5");
    db.ingest(&family, &[d], &ingest()).expect("is taken in");
    assert_eq!(db.get("b").expect("reads").as_deref(), Some(&b"5"[..]));
    // A write after it is newer.
    db.put("b", "6").expect("writes");
    assert_eq!(db.get("b").expect("reads").as_deref(), Some(&b"6"[..]));
    drop((db, family));
    let db = open(dir.path());
    for (k, v) in [("b", "6"), ("c", "2"), ("d", "1"), ("z", "4")] {
        assert_eq!(db.get(k).expect("reads").as_deref(), Some(v.as_bytes()));
    }
}

#[test]
fn snapshots_do_not_see_what_comes_later() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(dir.path());
    let family = db.default_family_handle();
    let seen = |s: &Snapshot| {
        let o = ReadOptions::default();
        let v = db.get_opt(&family, "k", &o, Some(s)).expect("reads");
        v.map(|v| v.to_vec())
    };
    let before = db.snapshot();
    let a = file(dir.path(), "a.sst", &["k"], "1");
    db.ingest(&family, &[&a], &ingest()).expect("is taken in");
    assert_eq!(seen(&before), None);
    let mut shown = ingest();
    shown.snapshot_consistency = false;
    let between = db.snapshot();
    let b = file(dir.path(), "b.sst", &["l"], "2");
    db.ingest(&family, &[&b], &shown).expect("is taken in");
    assert_eq!(seen(&between).as_deref(), Some(&b"1"[..]));
    let o = ReadOptions::default();
    let l = db.get_opt(&family, "l", &o, Some(&between)).expect("reads");
    assert_eq!(l.as_deref(), Some(&b"2"[..]));
    db.compact_range(None, None).expect("compacts");
    assert_eq!(seen(&before), None);
}

#[test]
fn what_does_not_fit_is_refused_and_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(dir.path());
    let family = db.default_family_handle();
    let other = db
        .create_family("other", FamilyOptions::default())
        .expect("is created");
    db.put("b", "old").expect("writes");
    let at = dir.path();
    let a = file(at, "a.sst", &["a", "c"], "1");
    let overlapping = file(at, "b.sst", &["b"], "2");
    let bad = at.join("bad.sst");
    std::fs::write(&bad, vec![7; 3_000]).expect("written");
    let mut for_other = SstFileWriter::new(&options())
        .expect("a writer")
        .for_family(&other);
    let foreign = at.join("foreign.sst");
    for_other.open(&foreign).expect("opens");
    for_other.put("x", "1").expect("is added");
    for_other.finish().expect("is finished");
    db.put_cf(&other, "y", "1").expect("writes");
    db.flush_cf(&other, &esker::FlushOptions::default())
        .expect("flushes");
    let own = db.live_files_metadata()[0].path();

    let with = |f: fn(&mut IngestOptions)| {
        let mut o = ingest();
        f(&mut o);
        o
    };
    let cases: Vec<(Vec<PathBuf>, IngestOptions, ErrorKind, &str)> = vec![
        (
            vec![],
            ingest(),
            ErrorKind::InvalidArgument,
            "The list of files is empty",
        ),
        (
            vec![at.join("nothing.sst")],
            ingest(),
            ErrorKind::Io,
            "nothing.sst",
        ),
        (vec![bad], ingest(), ErrorKind::Corruption, ""),
        (
            vec![foreign],
            ingest(),
            ErrorKind::InvalidArgument,
            "External file column family id don't match",
        ),
        (
            vec![own.clone()],
            ingest(),
            ErrorKind::Corruption,
            "External file version not found",
        ),
        (
            vec![a.clone()],
            with(|o| o.allow_blocking_flush = false),
            ErrorKind::InvalidArgument,
            "External file requires flush",
        ),
        (
            vec![a.clone()],
            with(|o| o.ingest_behind = true),
            ErrorKind::NotSupported,
            "ingest_behind",
        ),
        (
            vec![a.clone()],
            with(|o| (o.move_files, o.link_files) = (true, true)),
            ErrorKind::InvalidArgument,
            "`move_files` and `link_files` can not both be true.",
        ),
        (
            vec![a.clone(), overlapping.clone()],
            with(|o| o.allow_global_seqno = false),
            ErrorKind::InvalidArgument,
            "Global seqno is required, but disabled (because external files key range overlaps).",
        ),
        (
            vec![overlapping.clone()],
            with(|o| o.allow_global_seqno = false),
            ErrorKind::InvalidArgument,
            "Global seqno is required, but disabled",
        ),
        (
            vec![overlapping.clone()],
            with(|o| o.fail_if_not_bottommost_level = true),
            ErrorKind::TryAgain,
            "Files cannot be ingested to Lmax.",
        ),
        (
            vec![own],
            with(|o| (o.allow_db_generated_files, o.write_global_seqno) = (true, true)),
            ErrorKind::NotSupported,
            "write_global_seqno is deprecated",
        ),
    ];
    for (paths, options, kind, text) in cases {
        let e = db
            .ingest(&family, &paths, &options)
            .expect_err("does not fit");
        assert_eq!(e.kind(), kind, "{e}");
        assert!(e.to_string().contains(text), "{e}");
    }
    let live: Vec<_> = db.live_files_metadata().iter().map(|f| f.path()).collect();
    let tables = std::fs::read_dir(at.join("db")).expect("the directory is there");
    for entry in tables {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|e| e == "sst") {
            assert!(live.contains(&path), "{} is nobody's", path.display());
        }
    }
    assert_eq!(db.get("b").expect("reads").as_deref(), Some(&b"old"[..]));
    assert_eq!(db.get("a").expect("reads"), None);
    // After all that it still takes what fits.
    db.ingest(&family, &[a, overlapping], &ingest())
        .expect("is taken in");
    assert_eq!(db.get("b").expect("reads").as_deref(), Some(&b"2"[..]));
}

#[test]
fn several_families_take_all_or_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(dir.path());
    let (one, two) = (
        db.default_family_handle(),
        db.create_family("two", options().family)
            .expect("is created"),
    );
    db.put_cf(&two, "k", "old").expect("writes");
    let a = file(dir.path(), "a.sst", &["k"], "1");
    let b = file(dir.path(), "b.sst", &["k"], "2");
    let both = |strict: bool| {
        let mut second = ingest();
        second.fail_if_not_bottommost_level = strict;
        db.ingest_many(&[
            IngestArg {
                family: &one,
                files: vec![a.clone()],
                options: ingest(),
            },
            IngestArg {
                family: &two,
                files: vec![b.clone()],
                options: second,
            },
        ])
    };
    let e = both(true).expect_err("the second does not fit");
    assert_eq!(e.kind(), ErrorKind::TryAgain);
    assert_eq!(db.get_cf(&one, "k").expect("reads"), None);
    both(false).expect("are taken in");
    let twice = [&one, &one].map(|family| IngestArg {
        family,
        files: vec![a.clone()],
        options: ingest(),
    });
    let e = db.ingest_many(&twice).expect_err("one family twice");
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    db.close().expect("closes");
    let db = open(dir.path());
    for (name, value) in [("default", "1"), ("two", "2")] {
        let family = db.family(name).expect("is there");
        let found = db.get_cf(&family, "k").expect("reads");
        assert_eq!(found.as_deref(), Some(value.as_bytes()));
    }
}

#[test]
fn a_file_whose_number_was_written_is_taken_in_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(dir.path());
    let family = db.default_family_handle();
    db.put("k", "old").expect("writes");
    let a = file(dir.path(), "a.sst", &["k"], "1");
    let mut options = ingest();
    options.write_global_seqno = true;
    db.ingest(&family, &[&a], &options).expect("is taken in");
    let inside = db
        .live_files_metadata()
        .into_iter()
        .find(|f| f.level == 0 && f.largest_seq == db.latest_sequence_number())
        .or_else(|| {
            db.live_files_metadata()
                .into_iter()
                .max_by_key(|f| f.largest_seq)
        })
        .expect("a table");
    let stored = std::fs::read(inside.path()).expect("reads");
    assert_ne!(stored, std::fs::read(&a).expect("reads"), "it was written");
    // The file inside is a copy: the one outside is as it was.
    let again = dir.path().join("again.sst");
    std::fs::copy(inside.path(), &again).expect("copied");
    db.put("k", "newer").expect("writes");
    for write in [true, false] {
        options.write_global_seqno = write;
        db.ingest(&family, &[&again], &options)
            .expect("is taken in");
        assert_eq!(db.get("k").expect("reads").as_deref(), Some(&b"1"[..]));
    }
    db.close().expect("closes");
    let db = open(dir.path());
    assert_eq!(db.get("k").expect("reads").as_deref(), Some(&b"1"[..]));
    db.verify_checksums().expect("whole");
}

#[test]
fn families_move_between_databases() {
    let dir = tempfile::tempdir().expect("a directory");
    let from = Db::open(dir.path().join("from"), options()).expect("opens");
    let mut model = Model::new();
    for n in 0..3_000u64 {
        let (k, v) = (key(n * 7 % 1_000), format!("{n:050}").into_bytes());
        from.put(&k, &v).expect("writes");
        model.insert(k, v);
    }
    let family = from.default_family_handle();
    from.delete_range_cf(&family, key(100), key(130))
        .expect("writes");
    model.retain(|k, _| *k < key(100) || *k >= key(130));
    // A file with a sequence number in the MANIFEST alone is among those that go.
    let a = file(dir.path(), "a.sst", &["key0110"], "in");
    from.ingest(&family, &[a], &ingest()).expect("is taken in");
    model.insert(key(110), b"in".to_vec());
    from.flush().expect("flushes");
    // The files stay as they are listed.
    from.pause_background_work().expect("pauses");
    let exported = ExportedFiles {
        db_comparator_name: "leveldb.BytewiseComparator".into(),
        files: from.live_files_metadata(),
    };
    assert!(exported.files.len() > 3);

    let to = open(dir.path());
    to.put("other", "data").expect("writes");
    let taken = |db: &Db, name: &str, set: &ExportedFiles| {
        db.import_family(
            name,
            options().family,
            &ImportOptions::default(),
            std::slice::from_ref(set),
        )
    };
    let wrong = ExportedFiles {
        db_comparator_name: "rocksdb.ReverseBytewiseComparator".into(),
        ..exported.clone()
    };
    let e = taken(&to, "new", &wrong).expect_err("another order");
    assert_eq!(e.message(), "Comparator name mismatch");
    taken(&to, "new", &ExportedFiles::default()).expect_err("no files");
    let mut cut = exported.clone();
    cut.files[1].size += 1;
    taken(&to, "new", &cut).expect_err("another file");
    assert!(to.family("new").is_none());
    // So that it has the files that came, and not what was made of them.
    to.pause_background_work().expect("pauses");
    let new = taken(&to, "new", &exported).expect("is imported");
    taken(&to, "new", &exported).expect_err("exists");
    assert_eq!(contents(&to, &new, None), model);
    assert!(to.latest_sequence_number() >= from.latest_sequence_number());
    assert_eq!(to.family_metadata(&new).file_count, exported.files.len());
    to.continue_background_work();
    to.put_cf(&new, key(5), "newer").expect("writes");
    model.insert(key(5), b"newer".to_vec());
    to.close().expect("closes");
    let to = open(dir.path());
    let new = to.family("new").expect("is there");
    assert_eq!(contents(&to, &new, None), model);
    to.compact_range_opt(&new, None, None, &CompactRangeOptions::default())
        .expect("compacts");
    assert_eq!(contents(&to, &new, None), model);
    let twice = [exported.clone(), exported];
    let e = to
        .import_family("twice", options().family, &ImportOptions::default(), &twice)
        .expect_err("overlap");
    assert_eq!(e.message(), "CFs have overlapping ranges");
}

#[test]
fn tables_of_another_database_are_taken_as_they_are() {
    let dir = tempfile::tempdir().expect("a directory");
    let from = Db::open(dir.path().join("from"), options()).expect("opens");
    for round in ["1", "2"] {
        for n in 0..300u64 {
            from.put(key(n), round).expect("writes");
        }
        from.flush().expect("flushes");
    }
    from.pause_background_work().expect("pauses");
    let family = from.default_family_handle();
    let mut files: Vec<_> = from.live_files_metadata();
    // Oldest first.
    files.sort_by_key(|f| f.largest_seq);
    let paths: Vec<_> = files.iter().map(|f| f.path()).collect();
    let to = open(dir.path());
    let into = to.default_family_handle();
    let mut options = ingest();
    options.allow_db_generated_files = true;
    to.ingest(&into, &paths, &options).expect("are taken in");
    assert_eq!(contents(&to, &into, None), contents(&from, &family, None));
    assert!(to.latest_sequence_number() >= 600);
    let e = to.ingest(&into, &paths, &options).expect_err("overlaps");
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn writers_and_readers_go_on_beside_ingestions() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(dir.path());
    let family = db.default_family_handle();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for t in 0..3u64 {
            let (db, stop) = (&db, &stop);
            scope.spawn(move || {
                let mut n = 0u64;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    // Each writer owns keys of its own, and keys that files cover.
                    let own = format!("w{t}-{:03}", n % 500);
                    db.put(&own, n.to_string()).expect("writes");
                    let back = db.get(&own).expect("reads").expect("was put");
                    assert_eq!(back, n.to_string().into_bytes());
                    db.put(format!("shared{t}"), n.to_string()).expect("writes");
                    n += 1;
                }
            });
        }
        for round in 0..30u64 {
            let value = format!("file{round}");
            let keys: Vec<String> = (0..3).map(|t| format!("shared{t}")).collect();
            let keys: Vec<&str> = keys
                .iter()
                .map(String::as_str)
                .chain(["zz-a", "zz-b"])
                .collect();
            let path = file(dir.path(), &format!("{round}.sst"), &keys, &value);
            let mut options = ingest();
            options.move_files = true;
            db.ingest(&family, &[path], &options).expect("is taken in");
            // Both keys that nobody else writes come from the same file.
            let snapshot = db.snapshot();
            let get = |k: &str| {
                let o = ReadOptions::default();
                let v = db.get_opt(&family, k, &o, Some(&snapshot)).expect("reads");
                v.expect("is there").to_vec()
            };
            assert_eq!(get("zz-a"), value.as_bytes());
            assert_eq!(get("zz-b"), value.as_bytes());
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    db.close().expect("closes");
    let db = open(dir.path());
    assert_eq!(
        db.get("zz-a").expect("reads").as_deref(),
        Some(&b"file29"[..])
    );
}
