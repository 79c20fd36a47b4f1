//! Programs as users of the `rocksdb` crate, fjall and redb write them: each compiles as it stands.

use esker::{Db, Options, Result};
use std::time::Duration;

fn open() -> Result<(tempfile::TempDir, Db)> {
    let dir = tempfile::tempdir()?;
    let db = Db::open_default(dir.path())?;
    Ok((dir, db))
}

#[test]
fn put_and_get_take_what_is_bytes() -> Result<()> {
    let (_dir, db) = open()?;
    db.put("k", "v")?;
    db.put(b"k", b"v")?;
    db.put(String::from("k"), vec![1, 2, 3])?;
    assert_eq!(db.get("k")?, Some(vec![1, 2, 3]));
    Ok(())
}

#[test]
fn errors_are_matched_by_kind() -> Result<()> {
    let dir = tempfile::tempdir()?;
    match Db::open(dir.path().join("nothing"), Options::default()) {
        Ok(_) => panic!("there is nothing"),
        Err(e) if e.kind() == esker::ErrorKind::InvalidArgument => {}
        Err(e) => return Err(e),
    }
    Ok(())
}

#[test]
fn everything_can_be_printed() -> Result<()> {
    let (_dir, db) = open()?;
    println!("{db:?} {:?} {:?}", db.iter(), db.default_family_handle());
    Ok(())
}

#[test]
fn open_default() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let db = Db::open_default(dir.path())?;
    db.put("k", "v")
}

#[test]
fn a_batch_takes_text_and_is_consumed() -> Result<()> {
    let (_dir, db) = open()?;
    let mut b = esker::WriteBatch::new();
    b.put("a", "1")?;
    b.delete("b")?;
    db.write(b)?;
    assert!(db.contains_key("a")?);
    Ok(())
}

#[test]
fn a_batch_takes_a_family() -> Result<()> {
    let (_dir, db) = open()?;
    let f = db.family_or_create("users", Default::default())?;
    let mut batch = esker::WriteBatch::new();
    batch.put_cf(&f, "ann", "1")?;
    db.write(&mut batch)?;
    assert_eq!(f.get("ann")?, Some(b"1".to_vec()));
    Ok(())
}

#[test]
fn a_range_is_deleted() -> Result<()> {
    let (_dir, db) = open()?;
    db.put("b", "1")?;
    db.delete_range("a", "c")?;
    assert!(db.is_empty()?);
    Ok(())
}

#[test]
fn a_time_to_live_is_a_duration() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let options = Options::default().create_if_missing(true);
    let db = Db::open_with_ttl(dir.path(), options, Duration::from_secs(60))?;
    db.put("k", "v")
}

#[test]
fn options_are_a_chain() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let options = Options::default().create_if_missing(true);
    let db = Db::open(dir.path(), options)?;
    db.put("k", "v")
}

#[test]
fn for_over_everything() -> Result<()> {
    let (_dir, db) = open()?;
    db.put("k", "v")?;
    for kv in db.iter() {
        let (k, v) = kv?;
        assert_eq!((&k[..], &v[..]), (&b"k"[..], &b"v"[..]));
    }
    Ok(())
}

#[test]
fn for_over_a_range() -> Result<()> {
    let (_dir, db) = open()?;
    db.put("b", "v")?;
    let mut seen = 0;
    for kv in db.range("a".."f") {
        kv?;
        seen += 1;
    }
    assert_eq!(seen, 1);
    Ok(())
}

#[test]
fn for_over_a_prefix() -> Result<()> {
    let (_dir, db) = open()?;
    db.put("user:1", "v")?;
    let mut seen = 0;
    for kv in db.prefix("user:") {
        kv?;
        seen += 1;
    }
    assert_eq!(seen, 1);
    Ok(())
}

#[test]
fn iterator_modes() -> Result<()> {
    use esker::{Direction, IteratorMode};
    let (_dir, db) = open()?;
    db.put("a", "1")?;
    db.put("b", "2")?;
    let mut iter = db.iterator(IteratorMode::From(b"b", Direction::Forward));
    assert_eq!(iter.next().transpose()?.map(|kv| kv.0), Some(b"b".to_vec()));
    for item in db.iterator(IteratorMode::End) {
        let (_key, _value) = item?;
    }
    Ok(())
}

#[test]
fn a_snapshot_reads() -> Result<()> {
    let (_dir, db) = open()?;
    db.put("k", "old")?;
    let snapshot = db.snapshot();
    db.put("k", "new")?;
    assert_eq!(snapshot.get("k")?, Some(b"old".to_vec()));
    for kv in snapshot.iter() {
        assert_eq!(kv?.1, b"old");
    }
    Ok(())
}

#[test]
fn a_chain_of_typed_options() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let cache = std::sync::Arc::new(esker::new_block_cache(
        esker::CacheOptions::with_capacity(8 << 20),
        None,
    ));
    let options = Options::new()
        .create_if_missing(true)
        .write_buffer_size(64 << 20)
        .compression(esker::options::CompressionType::Lz4)
        .max_background_jobs(4)
        .block_cache(cache)
        .bloom_filter(10.0)
        .prefix_len(8)
        .statistics(esker::observe::Statistics::new());
    let db = Db::open(dir.path(), options)?;
    db.put("k", "v")
}

#[test]
fn read_options_by_fields() -> Result<()> {
    let (_dir, db) = open()?;
    db.put("k", "v")?;
    let options = esker::ReadOptions {
        fill_cache: false,
        ..Default::default()
    };
    let family = db.default_family_handle();
    assert!(db.get_opt(&family, "k", &options, None)?.is_some());
    let options = esker::WriteOptions {
        sync: true,
        ..Default::default()
    };
    db.put_opt(&family, "k", "v", &options)
}

#[test]
fn errors_go_to_and_from_those_of_the_system() -> std::io::Result<()> {
    fn size(db: &Db) -> Result<u64> {
        Ok(std::fs::metadata(db.path().join("CURRENT"))?.len())
    }
    let dir = tempfile::tempdir()?;
    let db = Db::open_default(dir.path())?;
    assert!(size(&db)? > 0);
    Ok(())
}

#[test]
fn a_merge_operator_is_a_closure() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let concat = esker::merge_operator::from_fn("concat", |_key, existing, operands| {
        let mut out = existing.unwrap_or_default().to_vec();
        for op in operands {
            out.extend_from_slice(op);
        }
        Some(out)
    });
    let options = Options::new()
        .create_if_missing(true)
        .merge_operator(concat);
    let db = Db::open(dir.path(), options)?;
    db.merge("k", "a")?;
    db.merge("k", "b")?;
    assert_eq!(db.get("k")?, Some(b"ab".to_vec()));
    Ok(())
}

#[test]
fn transactions_and_backups_are_in_the_crate() -> Result<()> {
    use esker::backup::BackUp;
    use esker::txn::TransactionDb;
    let dir = tempfile::tempdir()?;
    let options = Options::new().create_if_missing(true);
    let db = TransactionDb::open(dir.path().join("db"), options, Default::default())?;
    let mut txn = db.begin();
    txn.put("k", "v")?;
    txn.commit()?;
    db.transaction(|t| t.put("k2", "v"))?;
    assert_eq!(db.get("k")?, Some(b"v".to_vec()));
    assert_eq!(db.backup_to(dir.path().join("backups"))?, 1);
    Ok(())
}
