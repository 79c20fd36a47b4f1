//! Options of single reads: where to look, how long, how much.

use esker::options::ReadTier;
use esker::{Db, ErrorKind, Options, ReadOptions, Result, WriteOptions};
use std::time::Duration;

fn filled(dir: &std::path::Path) -> Result<Db> {
    let db = Db::open(dir, Options::new().create_if_missing(true))?;
    db.put("a", "table")?;
    db.flush()?;
    db.put("b", "memory")?;
    Ok(db)
}

fn asking(change: impl FnOnce(&mut ReadOptions)) -> ReadOptions {
    let mut options = ReadOptions::default();
    change(&mut options);
    options
}

fn get(db: &Db, key: &str, options: &ReadOptions) -> Result<Option<Vec<u8>>> {
    let found = db.get_opt(&db.default_family_handle(), key, options, None)?;
    Ok(found.map(|v| v.to_vec()))
}

#[test]
fn tiers_say_where_to_look() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = filled(dir.path())?;
    let memory = asking(|o| o.read_tier = ReadTier::Memtable);
    assert_eq!(get(&db, "a", &memory)?, None);
    assert_eq!(get(&db, "b", &memory)?.as_deref(), Some(&b"memory"[..]));
    let mut it = db.iter_opt(&db.default_family_handle(), memory, None);
    it.seek_to_first();
    assert_eq!(it.key(), b"b");

    let persisted = asking(|o| o.read_tier = ReadTier::Persisted);
    assert!(get(&db, "b", &persisted)?.is_some(), "the log protects it");
    db.put_opt(
        &db.default_family_handle(),
        "c",
        "unlogged",
        &WriteOptions::unlogged(),
    )?;
    assert_eq!(get(&db, "c", &persisted)?, None);
    assert!(get(&db, "c", &ReadOptions::default())?.is_some());
    db.flush()?;
    assert!(get(&db, "c", &persisted)?.is_some());
    let refused = db
        .iter_opt(&db.default_family_handle(), persisted, None)
        .status();
    assert_eq!(
        refused.expect_err("refused").kind(),
        ErrorKind::NotSupported
    );
    Ok(())
}

#[test]
fn a_read_that_takes_too_long_fails() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = filled(dir.path())?;
    let at_once = asking(|o| o.deadline = Some(Duration::ZERO));
    assert_eq!(
        get(&db, "a", &at_once).expect_err("late").kind(),
        ErrorKind::TimedOut
    );
    let mut it = db.iter_opt(&db.default_family_handle(), at_once.clone(), None);
    it.seek_to_first();
    assert!(!it.valid());
    assert_eq!(it.status().expect_err("late").kind(), ErrorKind::TimedOut);
    let many = db.multi_get_opt(&db.default_family_handle(), ["a", "b"], &at_once, None);
    assert!(many.iter().all(Result::is_err));
    let later = asking(|o| o.deadline = Some(Duration::from_secs(600)));
    assert!(get(&db, "a", &later)?.is_some());
    Ok(())
}

#[test]
fn a_multi_get_stops_at_its_size_limit() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = filled(dir.path())?;
    let little = asking(|o| o.value_size_soft_limit = 3);
    let found = db.multi_get_opt(&db.default_family_handle(), ["a", "b"], &little, None);
    assert!(found[0].is_ok());
    assert_eq!(
        found[1].as_ref().expect_err("too much").kind(),
        ErrorKind::Aborted
    );
    Ok(())
}

#[test]
fn bounds_and_modes_leave_the_answer_alone() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options::new()
        .create_if_missing(true)
        .set("prefix_extractor", "fixed:1")?;
    let db = Db::open(
        dir.path(),
        options.set("filter_policy", "bloomfilter:10:false")?,
    )?;
    for key in ["a1", "a2", "b1", "c1"] {
        db.put(key, key)?;
    }
    db.flush()?;
    let walk = |options: ReadOptions, from: &str| -> Result<Vec<Vec<u8>>> {
        let mut it = db.iter_opt(&db.default_family_handle(), options, None);
        let mut out = Vec::new();
        it.seek(from);
        while it.valid() {
            out.push(it.key().to_vec());
            it.next();
        }
        it.status().map(|()| out)
    };
    assert_eq!(walk(asking(|o| o.auto_prefix_mode = true), "a2")?.len(), 3);
    assert_eq!(
        walk(
            asking(|o| o.iterate_upper_bound = Some(b"b1".to_vec())),
            "a"
        )?,
        [b"a1", b"a2"]
    );
    assert_eq!(
        walk(asking(|o| o.iterate_lower_bound = Some(b"b".to_vec())), "a")?,
        [b"b1", b"c1"]
    );
    assert_eq!(
        walk(asking(|o| o.prefix_same_as_start = true), "a")?,
        [b"a1", b"a2"]
    );
    Ok(())
}
