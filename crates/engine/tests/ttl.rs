//! Databases with times to live: what is stored, what is seen, what goes; and the same directory
//! under RocksDB.

mod common;

use common::SetClock;
use esker::{
    CompactionFilter, Db, Decision, Env, ErrorKind, FamilyDescriptor, FamilyOptions, FilterValue,
    Options, ReadOptions, Result, WriteBatch,
};
use esker_format::FamilyId;
use esker_format::blob::BlobIndex;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const START: u64 = 1_700_000_000;

fn world() -> (Env, Arc<SetClock>) {
    let mut env = Env::in_memory();
    let clock = Arc::new(SetClock {
        real: Arc::clone(&Env::posix().clock),
        unix: AtomicU64::new(START),
    });
    env.clock = clock.clone();
    (env, clock)
}

fn options(env: &Env) -> Options {
    Options::new().create_if_missing(true).env(env.clone())
}

#[test]
fn values_carry_four_bytes_that_nobody_sees() -> Result<()> {
    let (env, _clock) = world();
    let db = Db::open_with_ttl("/db", options(&env), 100)?;
    db.put("a", "one")?;
    db.put("empty", "")?;
    let mut batch = WriteBatch::new();
    batch.put(b"b", b"two")?;
    batch.delete(b"nothing")?;
    batch.put(b"c", b"three")?;
    db.write(&mut batch)?;
    for flushed in [false, true] {
        if flushed {
            db.flush()?;
        }
        assert_eq!(db.get("a")?.as_deref(), Some(&b"one"[..]));
        assert_eq!(db.get("empty")?.as_deref(), Some(&b""[..]));
        let many: Result<Vec<_>> = db.multi_get(["b", "x", "c"]).into_iter().collect();
        let many: Vec<_> = many?.into_iter().map(|v| v.map(Vec::from)).collect();
        assert_eq!(many, [Some(b"two".to_vec()), None, Some(b"three".to_vec())]);
        let mut it = db.iter();
        it.seek_to_last();
        let mut seen = Vec::new();
        while it.valid() {
            assert_eq!(it.ttl_time(), Some(START as i32));
            seen.push((it.key().to_vec(), it.value().to_vec()));
            it.prev();
        }
        it.status()?;
        seen.reverse();
        let all = [("a", "one"), ("b", "two"), ("c", "three"), ("empty", "")];
        assert_eq!(
            seen,
            all.map(|(k, v)| (k.as_bytes().to_vec(), v.as_bytes().to_vec()))
        );
        let family = db.default_family_handle();
        let columns = db.get_entity_columns(&family, "a")?.expect("was put");
        assert_eq!(columns, [(Vec::new(), b"one".to_vec())]);
    }
    let family = db.default_family_handle();
    let error = db
        .put_entity(&family, "e", &[("x", "y")])
        .expect_err("an entity");
    assert_eq!(error.kind(), ErrorKind::NotSupported);
    db.close()?;
    drop(db);
    // Without the mode the bytes show.
    let db = Db::open("/db", options(&env))?;
    let mut stored = b"one".to_vec();
    stored.extend_from_slice(&(START as u32).to_le_bytes());
    assert_eq!(db.get("a")?, Some(stored));
    Ok(())
}

#[test]
fn compactions_drop_what_is_over_by_family() -> Result<()> {
    let (env, clock) = world();
    let families = vec![
        (
            FamilyDescriptor::new("default", FamilyOptions::default()),
            100,
        ),
        (
            FamilyDescriptor::new("long", FamilyOptions::default()),
            1000,
        ),
    ];
    let mut create = options(&env);
    create.db.create_missing_column_families = true;
    let db = Db::open_families_with_ttl("/db", create, families)?;
    let long = db.family("long").expect("was created");
    let kept = db.create_family("kept", FamilyOptions::default())?;
    let short = db.create_family_with_ttl("short", FamilyOptions::default(), 10)?;
    let families = [
        db.default_family_handle(),
        long.handle().clone(),
        kept.clone(),
        short.clone(),
    ];
    assert_eq!(
        families.each_ref().map(|f| db.ttl(f)),
        [Some(100), Some(1000), Some(0), Some(10)]
    );
    for family in &families {
        db.put_cf(family, "old", "1")?;
    }
    clock.unix.store(START + 50, Ordering::Relaxed);
    for family in &families {
        db.put_cf(family, "young", "2")?;
    }
    db.flush()?;
    let keys_at = |after: u64| -> Result<Vec<Vec<String>>> {
        clock.unix.store(START + after, Ordering::Relaxed);
        let mut out = Vec::new();
        for family in &families {
            let mut how = esker::CompactRangeOptions::default();
            how.bottommost_level_compaction = esker::options::BottommostLevelCompaction::Force;
            db.compact_range_opt(family, None, None, &how)?;
            let mut keys = Vec::new();
            let mut it = db.iter_cf(family);
            it.seek_to_first();
            while it.valid() {
                keys.push(String::from_utf8_lossy(it.key()).into_owned());
                it.next();
            }
            it.status()?;
            out.push(keys);
        }
        Ok(out)
    };
    let both = || vec!["old".to_owned(), "young".to_owned()];
    let young = || vec!["young".to_owned()];
    let none = Vec::<String>::new;
    assert_eq!(keys_at(60)?, [both(), both(), both(), young()]);
    assert_eq!(keys_at(100)?, [both(), both(), both(), none()]);
    assert_eq!(keys_at(101)?, [young(), both(), both(), none()]);
    db.set_ttl(&kept, 200)?;
    assert_eq!(keys_at(201)?, [none(), both(), young(), none()]);
    assert_eq!(keys_at(1051)?, [none(), none(), none(), none()]);
    Ok(())
}

#[test]
fn operands_and_the_applications_filter_work_on_bare_values() -> Result<()> {
    struct Shout;
    impl CompactionFilter for Shout {
        fn name(&self) -> &str {
            "Shout"
        }
        fn filter(
            &self,
            _level: u8,
            key: &[u8],
            value: FilterValue<'_>,
            out: &mut Vec<u8>,
        ) -> Decision {
            match value {
                FilterValue::Value(b"go") => Decision::Remove,
                FilterValue::Value(v) if key == b"loud" => {
                    out.extend(v.to_ascii_uppercase());
                    Decision::ChangeValue
                }
                _ => Decision::Keep,
            }
        }
    }
    let (env, clock) = world();
    let mut options = options(&env).set("merge_operator", "stringappend")?;
    options.family.compaction_filter = Some(Arc::new(Shout));
    let db = Db::open_with_ttl("/db", options, 100)?;
    db.put("m", "a")?;
    db.merge("m", "b")?;
    db.merge("n", "x")?;
    db.put("loud", "hey")?;
    db.put("gone", "go")?;
    assert_eq!(db.get("m")?.as_deref(), Some(&b"a,b"[..]));
    db.flush()?;
    clock.unix.store(START + 60, Ordering::Relaxed);
    db.merge("n", "y")?;
    db.merge("m", "c")?;
    let family = db.default_family_handle();
    let operands = db.get_merge_operands(&family, "n", &ReadOptions::default(), None, 10)?;
    assert_eq!(operands, [b"x".to_vec(), b"y".to_vec()]);
    db.flush()?;
    db.compact_range(None, None)?;
    assert_eq!(db.get("m")?.as_deref(), Some(&b"a,b,c"[..]));
    assert_eq!(db.get("n")?.as_deref(), Some(&b"x,y"[..]));
    assert_eq!(db.get("loud")?.as_deref(), Some(&b"HEY"[..]));
    assert_eq!(db.get("gone")?, None);
    // What was merged is as young as the merge; what was changed as old as before.
    clock.unix.store(START + 120, Ordering::Relaxed);
    db.put("more", "1")?;
    db.flush()?;
    let mut how = esker::CompactRangeOptions::default();
    how.bottommost_level_compaction = esker::options::BottommostLevelCompaction::Force;
    db.compact_range_opt(&family, None, None, &how)?;
    assert_eq!(db.get("loud")?, None);
    assert_eq!(db.get("m")?.as_deref(), Some(&b"a,b,c"[..]));
    Ok(())
}

#[test]
fn a_database_without_times_is_not_taken_for_one_with_them() -> Result<()> {
    let (env, _clock) = world();
    let plain = Db::open("/db", options(&env))?;
    plain.put("a", "x")?;
    plain.put("b", "a value that is longer")?;
    plain.close()?;
    drop(plain);
    let db = Db::open_with_ttl("/db", options(&env), 1)?;
    assert!(db.get("a").expect_err("too short").is_corruption());
    let mut it = db.iter();
    it.seek_to_first();
    assert!(!it.valid() && it.status().expect_err("too short").is_corruption());
    db.put("c", "3")?;
    db.flush()?;
    db.compact_range(None, None)?;
    it = db.iter();
    it.seek("c");
    assert_eq!(it.entry(), Some((&b"c"[..], &b"3"[..])));
    drop(it);
    db.close()?;
    drop(db);
    // Compactions keep what is in doubt.
    let plain = Db::open("/db", options(&env))?;
    assert_eq!(plain.get("a")?.as_deref(), Some(&b"x"[..]));
    assert_eq!(
        plain.get("b")?.as_deref(),
        Some(&b"a value that is longer"[..])
    );
    let family = plain.default_family_handle();
    assert_eq!(plain.ttl(&family), None);
    assert_eq!(
        plain.set_ttl(&family, 1).expect_err("plain").kind(),
        ErrorKind::InvalidArgument
    );
    Ok(())
}

#[test]
fn a_value_of_a_clock_that_stood_at_1970_ends_no_scan_and_expires() -> Result<()> {
    let (env, clock) = world();
    let db = Db::open_with_ttl("/db", options(&env), 100)?;
    db.put("a", "1")?;
    clock.unix.store(0, Ordering::SeqCst);
    db.put("b", "early")?;
    clock.unix.store(START, Ordering::SeqCst);
    db.put("c", "3")?;
    let keys = || -> Result<Vec<Vec<u8>>> {
        let mut it = db.iter();
        let mut keys = Vec::new();
        it.seek_to_first();
        while it.valid() {
            keys.push(it.key().to_vec());
            it.next();
        }
        it.status()?;
        Ok(keys)
    };
    assert_eq!(keys()?, [b"a", b"b", b"c"]);
    // As in RocksDB, whose scans do not look at the time and whose point reads do.
    assert!(db.get("b").expect_err("an early time").is_corruption());
    db.flush()?;
    db.compact_range(None, None)?;
    assert_eq!(keys()?, [b"a", b"c"]);
    assert_eq!(db.get("b")?, None);
    Ok(())
}

#[test]
fn a_blob_index_with_a_time_to_live_is_refused_by_name() -> Result<()> {
    let (env, _clock) = world();
    let db = Db::open("/db", options(&env))?;
    let inlined = BlobIndex::InlinedTtl {
        expiration: 1,
        value: b"value".to_vec(),
    };
    let mut index = Vec::new();
    inlined.encode(&mut index);
    let mut batch = WriteBatch::new();
    batch.put_blob_index_cf(FamilyId::DEFAULT, b"k", &index)?;
    db.write(&mut batch)?;
    for _ in 0..2 {
        let refused = db.get("k").expect_err("its time may be over");
        assert_eq!(refused.kind(), ErrorKind::NotSupported);
        assert!(refused.message().contains("time to live"), "{refused}");
        let mut it = db.iter();
        it.seek_to_first();
        assert_eq!(it.valid().then(|| it.value().to_vec()), None);
        db.flush()?;
    }
    Ok(())
}

/// Runs `ldb --ttl`; `None` when there is no `ldb`.
fn ldb(dir: &std::path::Path, args: &[&str]) -> Option<String> {
    let mut command = Command::new("ldb");
    command
        .arg(format!("--db={}", dir.display()))
        .arg("--ttl")
        .args(args);
    match command.output() {
        Ok(out) => {
            // ldb 7.8 fails once it has done its work when the directory was there before: it
            // counts the default family as several.
            let complaint = "doesn't support TTL DB with multiple column families";
            assert!(
                out.status.success() || String::from_utf8_lossy(&out.stderr).contains(complaint),
                "ldb {args:?}: {}{}",
                String::from_utf8_lossy(&out.stdout),
                String::from_utf8_lossy(&out.stderr)
            );
            Some(String::from_utf8_lossy(&out.stdout).into_owned())
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => panic!("ldb: {e}"),
    }
}

#[test]
fn rocksdb_and_we_take_turns_on_one_directory() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    let open = || Db::open_with_ttl(&at, Options::new().create_if_missing(true), 1_000_000);
    let db = open()?;
    db.put("ours", "from here")?;
    db.flush()?;
    db.put("logged", "in the log")?;
    db.close()?;
    drop(db);
    let Some(scan) = ldb(&at, &["scan"]) else {
        eprintln!("skipped: there is no ldb");
        return Ok(());
    };
    assert!(
        scan.contains("ours : from here") && scan.contains("logged : in the log"),
        "{scan}"
    );
    ldb(&at, &["put", "theirs", "from there"]);
    ldb(&at, &["compact"]);
    let db = open()?;
    assert_eq!(db.get("theirs")?.as_deref(), Some(&b"from there"[..]));
    assert_eq!(db.get("ours")?.as_deref(), Some(&b"from here"[..]));
    let mut it = db.iter();
    it.seek("theirs");
    let written = it.ttl_time().expect("it has a time");
    assert!(written > START as i32, "{written}");
    db.delete("ours")?;
    drop(it);
    db.close()?;
    drop(db);
    let scan = ldb(&at, &["scan"]).expect("it was there before");
    assert!(
        !scan.contains("ours") && scan.contains("theirs : from there"),
        "{scan}"
    );
    Ok(())
}
