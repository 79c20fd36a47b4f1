//! A thin path through every floor on a real directory: write, flush, compact, reopen, read.

use esker::{
    Db, ErrorKind, FamilyOptions, KeyOrder, LockHolder, Options, Result, Subcode, WriteBatch,
};
use esker_format::FamilyId;

fn small(dir: &std::path::Path) -> Result<Db> {
    let options = Options::new()
        .create_if_missing(true)
        .set("write_buffer_size", "65536")?
        .set("target_file_size_base", "65536")?
        .set("max_bytes_for_level_base", "262144")?;
    Db::open(dir, options)
}

fn key(n: u32) -> Vec<u8> {
    format!("key{:08}", n.wrapping_mul(2_654_435_761) % 20_000).into_bytes()
}

#[test]
fn what_is_written_is_read_after_flush_compaction_and_reopen() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let mut model = std::collections::BTreeMap::new();
    let db = small(dir.path())?;
    for n in 0..30_000u32 {
        let value = format!("value{n}").into_bytes();
        if n % 7 == 3 {
            db.delete(key(n / 2))?;
            model.remove(&key(n / 2));
        } else {
            db.put(key(n), &value)?;
            model.insert(key(n), value);
        }
    }
    let verify = |db: &Db| -> Result<()> {
        let mut it = db.iter();
        it.seek_to_first();
        let mut seen = Vec::new();
        while it.valid() {
            seen.push((it.key().to_vec(), it.value().to_vec()));
            it.next();
        }
        it.status()?;
        let expected: Vec<_> = model.clone().into_iter().collect();
        assert_eq!(seen.len(), expected.len());
        assert!(seen == expected);
        let mut back = Vec::new();
        it.seek_to_last();
        while it.valid() {
            back.push((it.key().to_vec(), it.value().to_vec()));
            it.prev();
        }
        it.status()?;
        back.reverse();
        assert!(back == expected);
        for n in 0..20_000u32 {
            let k = format!("key{n:08}").into_bytes();
            assert_eq!(db.get(&k)?, model.get(&k).cloned(), "{}", k.escape_ascii());
        }
        Ok(())
    };
    verify(&db)?;
    db.flush()?;
    verify(&db)?;
    db.wait_for_compaction()?;
    verify(&db)?;
    db.close()?;
    drop(db);
    let db = small(dir.path())?;
    verify(&db)?;
    db.compact_range(None, None)?;
    verify(&db)?;
    drop(db);
    let db = Db::open_read_only(dir.path(), Options::new())?;
    verify(&db)
}

#[test]
fn unflushed_writes_come_back_from_the_log() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    {
        let db = small(dir.path())?;
        let mut batch = WriteBatch::new();
        batch.put(b"a", b"1")?;
        batch.put(b"b", b"2")?;
        batch.delete(b"a")?;
        db.write(&mut batch)?;
        db.delete_range_cf(&db.default_family_handle(), "x", "z")?;
    }
    let db = small(dir.path())?;
    assert_eq!(db.get("a")?, None);
    assert_eq!(db.get("b")?.as_deref(), Some(&b"2"[..]));
    Ok(())
}

#[test]
fn a_second_opener_is_refused() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let _db = small(dir.path())?;
    let error = small(dir.path()).expect_err("locked");
    assert_eq!(error.subcode(), Subcode::Locked, "{error}");
    assert_eq!(error.lock_holder(), Some(&LockHolder::ThisProcess));
    let hint = format!("{} is open in this process", dir.path().display());
    assert_eq!(error.hint(), Some(&*hint));
    Ok(())
}

#[test]
fn families_with_timestamps_take_no_keys_without() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    let mut options = FamilyOptions::default();
    options.comparator =
        KeyOrder::builtin("leveldb.BytewiseComparator.u64ts").expect("a built-in comparator");
    db.put("before", "1")?;
    let timed = db.create_family("timed", options)?;
    let mut batch = WriteBatch::new();
    for refused in [
        db.put_cf(&timed, "key", "value"),
        db.delete_cf(&timed, "key"),
    ] {
        let error = refused.expect_err("a key without a timestamp");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains("timed"), "{error}");
    }
    batch.put(b"both", b"2")?;
    batch.put_cf(FamilyId(timed.id()), b"key", b"value")?;
    assert!(db.write(&mut batch).is_err());
    assert_eq!(db.get("both")?, None);
    db.put("after", "3")?;
    assert_eq!(db.get("after")?.as_deref(), Some(&b"3"[..]));
    Ok(())
}
