//! User-defined timestamps through the Rust interface: merges, iterators over versions, several
//! families in a batch. The C library's tests hold the rest against a model.

use esker::options::{FamilyOptions, ReadOptions};
use esker::{
    CompactRangeOptions, Db, Env, ErrorKind, FamilyHandle, FamilyId, FlushOptions, KeyOrder,
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
        let value = if it.is_deletion() {
            "gone".to_owned()
        } else {
            it.value().escape_ascii().to_string()
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
                    if back {
                        it.seek_to_last()
                    } else {
                        it.seek_to_first()
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

/// Range deletions and puts of few keys, held against a list of all that was done.
#[test]
fn range_deletions_hide_what_is_older_from_readers_that_are_later() -> Result<()> {
    for (order, seed) in [("leveldb.BytewiseComparator.u64ts", 7), (REVERSE, 19)] {
        check_range_deletions(order, seed)?;
    }
    Ok(())
}

const REVERSE: &str = "rocksdb.ReverseBytewiseComparator.u64ts";

/// Operation at each timestamp: a key that was put, or a range that was deleted.
type Done = Vec<(u64, u8, Option<u8>)>;

fn check_range_deletions(order: &str, seed: u64) -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = Options::new().create_if_missing(true);
    options.family = timed(order);
    options.family.target_file_size_base = 4 << 10;
    let is_reverse = order == REVERSE;
    let (mut done, mut random, mut low) = (Done::new(), seed, 0);
    let mut below = |n: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % n
    };
    let write = WriteOptions::default();
    for round in 0..6_u64 {
        let db = Db::open(dir.path(), options.clone())?;
        let family = db.default_family_handle();
        for step in 0..80 {
            let now = 1 + round * 80 + step;
            let key = u8::try_from(below(40)).expect("small");
            match below(10) {
                0..7 => {
                    let value = [key; 300];
                    db.put_with_timestamp(&family, [key], bytes(now), value, &write)?;
                    done.push((now, key, None));
                }
                7..9 => {
                    let end = key + 1 + u8::try_from(below(12)).expect("small");
                    let (from, to) = if is_reverse { (end, key) } else { (key, end) };
                    db.delete_range_with_timestamp(&family, [from], [to], bytes(now), &write)?;
                    done.push((now, from, Some(to)));
                }
                _ => db.flush_cf(&family, &FlushOptions::default())?,
            }
        }
        check_reads(&db, &family, &done, low, is_reverse)?;
        if round % 2 == 1 {
            low = round * 80 - below(60);
            let mut compact = CompactRangeOptions::default();
            compact.full_history_ts_low = Some(bytes(low).to_vec());
            db.compact_range_opt(&family, None, None, &compact)?;
            check_reads(&db, &family, &done, low, is_reverse)?;
        }
        db.close()?;
    }
    Ok(())
}

/// When the value of `key` was put that a reader at `ts` sees.
fn expected(done: &Done, key: u8, ts: u64, is_reverse: bool) -> Option<u64> {
    let covers = |from: u8, to: u8| {
        if is_reverse {
            to < key && key <= from
        } else {
            from <= key && key < to
        }
    };
    let of_key = done
        .iter()
        .rev()
        .find(|(at, from, to)| *at <= ts && to.map_or(*from == key, |to| covers(*from, to)));
    of_key.and_then(|(at, _, to)| to.is_none().then_some(*at))
}

fn check_reads(
    db: &Db,
    family: &FamilyHandle,
    done: &Done,
    low: u64,
    is_reverse: bool,
) -> Result<()> {
    let last = done.last().map_or(1, |(at, ..)| *at);
    let shown = |at: u64| if at < low { 0 } else { at };
    for ts in (low.max(1)..=last).step_by(7) {
        let mut wanted = Vec::new();
        for key in 0..60 {
            let found = db.get_with_timestamp(family, [key], &read_at(ts), None)?;
            let found = found.map(|(_, at)| at.try_into().map(u64::from_le_bytes));
            let found = found.map(|at| shown(at.expect("eight bytes")));
            let want = expected(done, key, ts, is_reverse).map(shown);
            assert_eq!(found, want, "key {key} at {ts}, history from {low}");
            wanted.extend(want.map(|_| key));
        }
        if is_reverse {
            wanted.reverse();
        }
        let mut it = db.iter_opt(family, read_at(ts), None);
        let mut keys = Vec::new();
        it.seek_to_first();
        while it.valid() {
            keys.push(it.key()[0]);
            it.next();
        }
        it.status()?;
        assert_eq!(keys, wanted, "forward at {ts}");
        keys.clear();
        it.seek_to_last();
        while it.valid() {
            keys.insert(0, it.key()[0]);
            it.prev();
        }
        assert_eq!(keys, wanted, "backward at {ts}");
    }
    Ok(())
}

/// Once nobody reads before it, a range deletion and what it covers go.
#[test]
fn a_range_deletion_goes_with_its_history() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = Options::new().create_if_missing(true);
    options.family = timed("leveldb.BytewiseComparator.u64ts");
    let db = Db::open(dir.path(), options)?;
    let (family, write) = (db.default_family_handle(), WriteOptions::default());
    for key in ["a", "b", "c"] {
        db.put_with_timestamp(&family, key, bytes(10), "old", &write)?;
    }
    db.delete_range_with_timestamp(&family, "a", "c", bytes(20), &write)?;
    db.put_with_timestamp(&family, "b", bytes(30), "new", &write)?;
    let entries = |low: u64| -> Result<(u64, u64)> {
        let mut compact = CompactRangeOptions::default();
        compact.full_history_ts_low = Some(bytes(low).to_vec());
        compact.bottommost_level_compaction = esker::options::BottommostLevelCompaction::Force;
        db.compact_range_opt(&family, None, None, &compact)?;
        let mut counted = (0, 0);
        for file in db.live_files_metadata() {
            let table = esker::read_table_properties(&Env::posix(), file.path())?;
            counted.1 += table.num_range_deletions;
            counted.0 += table.num_entries - table.num_range_deletions;
        }
        Ok(counted)
    };
    assert_eq!(entries(15)?, (4, 1));
    assert_eq!(get(&db, &family, "a", 19)?, Some(("old".to_owned(), 0)));
    assert_eq!(get(&db, &family, "a", 20)?, None);
    assert_eq!(entries(20)?, (4, 1), "a reader at 20 does not see a");
    assert_eq!(entries(21)?, (2, 0));
    assert_eq!(get(&db, &family, "b", 30)?, Some(("new".to_owned(), 30)));
    assert_eq!(get(&db, &family, "a", 30)?, None);
    Ok(())
}
