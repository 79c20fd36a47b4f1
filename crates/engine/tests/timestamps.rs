//! User-defined timestamps through the Rust interface: merges, iterators over versions, several families in a batch.
//! The C library's tests hold the rest against a model.

use esker::options::{FamilyOptions, ReadOptions};
use esker::{
    CompactRangeOptions, Db, ErrorKind, FamilyHandle, FamilyId, FlushOptions, KeyOrder,
    MergeOperator, Options, Result, WriteBatch, WriteOptions, merge_operator::StringAppend,
};
use std::sync::Arc;

fn bytes(ts: u64) -> [u8; 8] {
    ts.to_le_bytes()
}

fn read_at(ts: u64) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.timestamp = Some(bytes(ts).to_vec());
    options
}

fn timed(name: &str) -> FamilyOptions {
    let mut options = FamilyOptions::default();
    options.comparator = KeyOrder::builtin(name).expect("a built-in order");
    let append: Arc<dyn MergeOperator> = Arc::new(StringAppend::new(b","));
    options.merge_operator = Some(append);
    options
}

fn get(db: &Db, family: &FamilyHandle, key: &str, ts: u64) -> Result<Option<(String, u64)>> {
    let found = db.get_with_timestamp(family, key, &read_at(ts), None)?;
    Ok(found.map(|(value, at)| {
        let at: [u8; 8] = at.try_into().expect("eight bytes");
        (
            String::from_utf8(value.to_vec()).expect("UTF-8"),
            u64::from_le_bytes(at),
        )
    }))
}

/// Timestamps (those below `low` as 0), values and deletions of all versions from `since` on.
fn versions(db: &Db, family: &FamilyHandle, since: u64, low: u64) -> Result<Vec<String>> {
    let mut options = read_at(u64::MAX);
    options.iter_start_ts = Some(bytes(since).to_vec());
    let mut it = db.iter_opt(family, options, None);
    let mut out = Vec::new();
    it.seek_to_first();
    while it.valid() {
        let at: [u8; 8] = it.timestamp().try_into().expect("eight bytes");
        let at = u64::from_le_bytes(at);
        let value = match it.is_deletion() {
            true => "gone".to_owned(),
            false => it.value().escape_ascii().to_string(),
        };
        let key = it.key().escape_ascii().to_string();
        out.push(format!("{key}@{}={value}", if at < low { 0 } else { at }));
        it.next();
    }
    it.status()?;
    Ok(out)
}

#[test]
fn operands_are_merged_down_to_the_history_that_is_kept() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let write = WriteOptions::default();
    for (n, name) in [
        "leveldb.BytewiseComparator.u64ts",
        "rocksdb.ReverseBytewiseComparator.u64ts",
    ]
    .into_iter()
    .enumerate()
    {
        let path = dir.path().join(n.to_string());
        let db = Db::open(&path, Options::new().create_if_missing(true))?;
        let family = db.create_family("timed", timed(name))?;
        db.put_with_timestamp(&family, "k", bytes(1), "a", &write)?;
        for (ts, operand) in [(2, "b"), (3, "c"), (5, "d")] {
            db.merge_with_timestamp(&family, "k", bytes(ts), operand, &write)?;
        }
        db.delete_with_timestamp(&family, "k", bytes(6), &write)?;
        db.merge_with_timestamp(&family, "k", bytes(7), "e", &write)?;
        let wanted = [(1, "a"), (2, "a,b"), (3, "a,b,c"), (5, "a,b,c,d"), (7, "e")];
        let check = |low: u64| -> Result<()> {
            for (ts, value) in wanted.iter().filter(|(ts, _)| *ts >= low) {
                let found = get(&db, &family, "k", *ts)?.map(|(v, _)| v);
                assert_eq!(found.as_deref(), Some(*value), "{name} at {ts}, from {low}");
                let mut it = db.iter_opt(&family, read_at(*ts), None);
                for back in [false, true] {
                    match back {
                        true => it.seek_to_last(),
                        false => it.seek_to_first(),
                    }
                    let shown = it.valid().then(|| it.value().to_vec());
                    assert_eq!(shown.as_deref(), Some(value.as_bytes()), "{name} at {ts}");
                }
            }
            assert_eq!(get(&db, &family, "k", 6)?, None);
            Ok(())
        };
        check(0)?;
        db.flush_cf(&family, &FlushOptions::default())?;
        check(0)?;
        let mut compact = CompactRangeOptions::default();
        for low in [0, 3, 4, 6] {
            compact.full_history_ts_low = Some(bytes(low).to_vec());
            compact.bottommost_level_compaction = esker::options::BottommostLevelCompaction::Force;
            db.compact_range_opt(&family, None, None, &compact)?;
            check(low)?;
        }
        let refused = get(&db, &family, "k", 5).expect_err("history is gone");
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
        let all = versions(&db, &family, 6, 6)?;
        assert_eq!(all.len(), 2, "{all:?}");
        compact.full_history_ts_low = Some(bytes(100).to_vec());
        db.compact_range_opt(&family, None, None, &compact)?;
        assert_eq!(get(&db, &family, "k", 100)?, Some(("e".to_owned(), 0)));
        let lower = db.increase_full_history_ts_low(&family, bytes(99));
        let refused = lower.expect_err("it only rises").to_string();
        let wanted = "Current full_history_ts_low: 100 is higher than provided ts: 99";
        assert!(refused.contains(wanted), "{refused}");
    }
    Ok(())
}

#[test]
fn a_batch_may_have_keys_with_timestamps_and_without() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    let family = db.create_family("timed", timed("leveldb.BytewiseComparator.u64ts"))?;
    let id = FamilyId::from(&family);
    let mut batch = WriteBatch::new();
    batch.put(b"plain", b"1")?;
    batch.put_with_timestamp(id, b"k", &bytes(1), b"one")?;
    batch.set_save_point();
    batch.put_with_timestamp(id, b"k", &bytes(2), b"taken back")?;
    batch.rollback_to_save_point()?;
    let mut more = WriteBatch::new();
    more.put(b"more", b"2")?;
    more.delete_with_timestamp(id, b"k", &bytes(3))?;
    batch.append(&more, false)?;
    db.write(&mut batch)?;
    assert_eq!(versions(&db, &family, 0, 0)?, ["k@3=gone", "k@1=one"]);
    assert_eq!(db.get("plain")?.as_deref(), Some(&b"1"[..]));
    assert_eq!(db.get("more")?.as_deref(), Some(&b"2"[..]));

    batch.clear();
    batch.put_cf(id, b"long enough for one", b"x")?;
    let refused = db.write(&mut batch).expect_err("no timestamp");
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
    batch.clear();
    batch.put_with_timestamp(FamilyId::DEFAULT, b"k", &bytes(1), b"x")?;
    let refused = db.write(&mut batch).expect_err("no timestamps there");
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");

    // A batch of bytes, as a replica gets it, has its keys as they are stored.
    let mut source = WriteBatch::new();
    source.put_with_timestamp(id, b"k", &bytes(9), b"nine")?;
    db.write(&mut WriteBatch::from_bytes(source.into_bytes())?)?;
    assert_eq!(get(&db, &family, "k", 9)?, Some(("nine".to_owned(), 9)));
    Ok(())
}
