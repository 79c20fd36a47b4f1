//! The indexed batch against a model: reads, cursors, save points, and merged iteration in both
//! directions.

use esker::{
    Comparator, Db, FamilyHandle, FamilyOptions, KeyOrder, Options, ReadOptions, Result,
    WriteOptions,
};
use esker_txn::{EntryKind, IndexedBatch, MergedIterator};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Kind, key and value of a record.
type Shown = (EntryKind, Vec<u8>, Vec<u8>);
type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn open(dir: &tempfile::TempDir) -> Db {
    let options = Options::new()
        .create_if_missing(true)
        .set("merge_operator", "stringappend")
        .expect("a known operator");
    Db::open(dir.path(), options).expect("opens")
}

#[derive(Clone, Debug)]
enum Op {
    Put(u8, u8),
    Delete(u8),
    SingleDelete(u8),
    Merge(u8, u8),
    LogData,
    SavePoint,
    Rollback,
    PopSavePoint,
    Clear,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        8 => (0u8..24, any::<u8>()).prop_map(|(k, v)| Op::Put(k, v)),
        4 => (0u8..24).prop_map(Op::Delete),
        1 => (0u8..24).prop_map(Op::SingleDelete),
        4 => (0u8..24, any::<u8>()).prop_map(|(k, v)| Op::Merge(k, v)),
        1 => Just(Op::LogData),
        2 => Just(Op::SavePoint),
        2 => Just(Op::Rollback),
        1 => Just(Op::PopSavePoint),
        1 => Just(Op::Clear),
    ];
    proptest::collection::vec(op, 0..60)
}

fn key(k: u8) -> Vec<u8> {
    format!("k{k:02}").into_bytes()
}

fn value(v: u8) -> Vec<u8> {
    v.to_string().into_bytes()
}

fn apply_to_model(model: &mut Model, op: &Op) {
    match op {
        Op::Put(k, v) => {
            model.insert(key(*k), value(*v));
        }
        Op::Delete(k) | Op::SingleDelete(k) => {
            model.remove(&key(*k));
        }
        Op::Merge(k, v) => {
            let old = model.entry(key(*k)).or_default();
            if !old.is_empty() {
                old.push(b',');
            }
            old.extend(value(*v));
        }
        _ => {}
    }
}

/// Applies the operations to a batch over `db`; returns what the database would hold afterwards.
fn run(batch: &IndexedBatch, family: &FamilyHandle, base: &Model, ops: &[Op]) -> Model {
    let mut model = base.clone();
    let mut points = Vec::new();
    for op in ops {
        apply_to_model(&mut model, op);
        match op {
            Op::Put(k, v) => batch.put_cf(family, &key(*k), &value(*v)).expect("fits"),
            Op::Delete(k) => batch.delete(&key(*k)).expect("fits"),
            Op::SingleDelete(k) => batch.single_delete_cf(family, &key(*k)).expect("fits"),
            Op::Merge(k, v) => batch.merge_cf(family, &key(*k), &value(*v)).expect("fits"),
            Op::LogData => batch.log_data(b"note").expect("fits"),
            Op::SavePoint => {
                batch.set_save_point();
                points.push(model.clone());
            }
            Op::Rollback => match points.pop() {
                Some(old) => {
                    batch.rollback_to_save_point().expect("there is one");
                    model = old;
                }
                None => assert!(batch.rollback_to_save_point().is_err()),
            },
            Op::PopSavePoint => assert_eq!(points.pop().is_some(), batch.pop_save_point().is_ok()),
            Op::Clear => {
                batch.clear();
                points.clear();
                model = base.clone();
            }
        }
    }
    model
}

fn forward(it: &mut MergedIterator) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut out = Vec::new();
    while let Some((k, v)) = it.entry() {
        out.push((k.to_vec(), v.to_vec()));
        it.next();
    }
    it.status().expect("no failure");
    out
}

fn check_moves(it: &mut MergedIterator, model: &Model, moves: &[(u8, u8)]) {
    let all: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    let mut at: Option<usize> = None;
    for (kind, k) in moves {
        let target = key(*k);
        at = match kind % 8 {
            0 => {
                it.seek_to_first();
                (!all.is_empty()).then_some(0)
            }
            1 => {
                it.seek_to_last();
                all.len().checked_sub(1)
            }
            2 => {
                it.seek(&target);
                all.iter().position(|(k, _)| *k >= target)
            }
            3 => {
                it.seek_for_prev(&target);
                all.iter().rposition(|(k, _)| *k <= target)
            }
            4 | 5 => match at {
                None => continue,
                Some(i) => {
                    it.next();
                    (i + 1 < all.len()).then_some(i + 1)
                }
            },
            _ => match at {
                None => continue,
                Some(i) => {
                    it.prev();
                    i.checked_sub(1)
                }
            },
        };
        let seen = it.entry().map(|(k, v)| (k.to_vec(), v.to_vec()));
        assert_eq!(seen, at.map(|i| all[i].clone()));
        it.status().expect("no failure");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn reads_and_iterators_agree_with_a_model(
        base in ops(),
        changes in ops(),
        overwrite in any::<bool>(),
        moves in proptest::collection::vec((any::<u8>(), 0u8..26), 0..80),
        bounds in (0u8..26, 0u8..26),
    ) {
        let dir = tempfile::tempdir().expect("a directory");
        let db = open(&dir);
        let family = db.default_family_handle();
        let below = IndexedBatch::new(true);
        let plain: Vec<Op> = base.into_iter().filter(|o| !matches!(o, Op::SingleDelete(_))).collect();
        let base = run(&below, &family, &Model::new(), &plain);
        below.write(&db, &WriteOptions::default()).expect("written");

        let changes: Vec<Op> = changes.into_iter().filter(|o| !matches!(o, Op::SingleDelete(_))).collect();
        let batch = IndexedBatch::new(overwrite);
        let model = run(&batch, &family, &base, &changes);
        let read = ReadOptions::default();
        let keys: Vec<Vec<u8>> = (0..26).map(key).collect();
        for k in &keys {
            let seen = batch.get_over(&db, &family, k, &read, None).expect("readable");
            prop_assert_eq!(seen.map(Vec::from), model.get(k).cloned());
        }
        let asked: Vec<_> = keys.iter().map(|k| (&family, k)).collect();
        for (k, seen) in keys.iter().zip(batch.multi_get_over(&db, &asked, &read, None)) {
            prop_assert_eq!(seen.expect("readable").map(Vec::from), model.get(k).cloned());
        }
        let mut it = batch.iter_over(db.iter(), Some(&family), None);
        it.seek_to_first();
        let all: Vec<_> = model.clone().into_iter().collect();
        prop_assert_eq!(forward(&mut it), all);
        check_moves(&mut it, &model, &moves);

        let (lower, upper) = (bounds.0.min(bounds.1), bounds.0.max(bounds.1));
        let mut options = ReadOptions::default();
        options.iterate_lower_bound = Some(key(lower));
        options.iterate_upper_bound = Some(key(upper));
        let inside: Model = model
            .range(key(lower)..key(upper))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        let base_iter = db.iter_opt(&family, options.clone(), None);
        let mut it = batch.iter_over(base_iter, Some(&family), Some(&options));
        check_bounded(&mut it, &inside, &moves, &key(lower), &key(upper));
        // An iterator that stood elsewhere, within other bounds.
        let base_iter = db.iter_opt(&family, ReadOptions::default(), None);
        let mut it = batch.iter_over(base_iter, Some(&family), None);
        it.seek_to_last();
        it.set_bounds(Some(&key(lower)), Some(&key(upper)));
        check_bounded(&mut it, &inside, &moves, &key(lower), &key(upper));

        batch.write(&db, &WriteOptions::default()).expect("written");
        let mut written = db.iter();
        written.seek_to_first();
        let mut held = Model::new();
        while let Some((k, v)) = written.entry() {
            held.insert(k.to_vec(), v.to_vec());
            written.next();
        }
        prop_assert_eq!(held, model);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn base_and_batch_have_ranges_of_their_own(
        base in proptest::collection::btree_set(0u8..26, 0..20),
        puts in proptest::collection::btree_map(0u8..26, any::<bool>(), 0..20),
        of_base in (0u8..26, 0u8..26),
        of_batch in (0u8..26, 0u8..26),
        moves in proptest::collection::vec((any::<u8>(), 0u8..26), 0..60),
    ) {
        let dir = tempfile::tempdir().expect("a directory");
        let db = open(&dir);
        let family = db.default_family_handle();
        for k in &base {
            db.put(key(*k), value(0)).expect("written");
        }
        let batch = IndexedBatch::new(true);
        for (k, is_put) in &puts {
            let changed = if *is_put {
                batch.put(&key(*k), &value(1))
            } else {
                batch.delete(&key(*k))
            };
            changed.expect("room");
        }
        let range = |(a, b): (u8, u8)| a.min(b)..a.max(b);
        let (of_base, of_batch) = (range(of_base), range(of_batch));
        let mut model: Model = base
            .iter()
            .filter(|k| of_base.contains(*k))
            .map(|k| (key(*k), value(0)))
            .collect();
        for (k, is_put) in puts.iter().filter(|(k, _)| of_batch.contains(*k)) {
            if *is_put {
                model.insert(key(*k), value(1));
            } else {
                model.remove(&key(*k));
            }
        }
        let within = |range: &std::ops::Range<u8>| {
            let mut options = ReadOptions::default();
            options.iterate_lower_bound = Some(key(range.start));
            options.iterate_upper_bound = Some(key(range.end));
            options
        };
        let below = db.iter_opt(&family, within(&of_base), None);
        let mut it = batch.iter_over(below, Some(&family), Some(&within(&of_batch)));
        check_moves(&mut it, &model, &moves);
        // Set later, one after the other.
        let mut it = batch.iter_over(db.iter(), Some(&family), None);
        it.seek_to_first();
        it.set_batch_bounds(Some(&key(of_batch.start)), Some(&key(of_batch.end)));
        prop_assert!(!it.valid());
        it.set_base_bounds(Some(&key(of_base.start)), Some(&key(of_base.end)));
        check_moves(&mut it, &model, &moves);
    }
}

/// As [`check_moves`], for seeks inside the bounds only: elsewhere both sides clamp.
fn check_bounded(
    it: &mut MergedIterator,
    model: &Model,
    moves: &[(u8, u8)],
    lower: &[u8],
    upper: &[u8],
) {
    let inside: Vec<(u8, u8)> = moves
        .iter()
        .filter(|(_, k)| key(*k).as_slice() >= lower && key(*k).as_slice() < upper)
        .copied()
        .collect();
    check_moves(it, model, &inside);
}

#[test]
fn cursors_show_every_record_newest_first() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(&dir);
    let family = db.default_family_handle();
    let fill = |batch: &IndexedBatch| -> Result<Vec<Shown>> {
        batch.put(b"b", b"1")?;
        batch.put(b"a", b"1")?;
        batch.merge_cf(&family, b"b", b"2")?;
        batch.delete(b"a")?;
        batch.single_delete(b"c")?;
        let mut cursor = batch.cursor(None);
        let mut out = Vec::new();
        cursor.seek_to_first()?;
        while let Some(e) = cursor.entry() {
            out.push((e.kind, e.key.clone(), e.value.clone()));
            cursor.forward()?;
        }
        let mut back = Vec::new();
        cursor.seek_to_last()?;
        while let Some(e) = cursor.entry() {
            back.push((e.kind, e.key.clone(), e.value.clone()));
            cursor.back()?;
        }
        back.reverse();
        assert_eq!(out, back);
        Ok(out)
    };
    let entry = |kind, k: &str, v: &str| (kind, k.as_bytes().to_vec(), v.as_bytes().to_vec());
    assert_eq!(
        fill(&IndexedBatch::new(false))?,
        [
            entry(EntryKind::Delete, "a", ""),
            entry(EntryKind::Put, "a", "1"),
            entry(EntryKind::Merge, "b", "2"),
            entry(EntryKind::Put, "b", "1"),
            entry(EntryKind::SingleDelete, "c", ""),
        ]
    );
    assert_eq!(
        fill(&IndexedBatch::new(true))?,
        [
            entry(EntryKind::Delete, "a", ""),
            entry(EntryKind::Merge, "b", "2"),
            entry(EntryKind::Put, "b", "1"),
            entry(EntryKind::SingleDelete, "c", ""),
        ]
    );
    Ok(())
}

#[test]
fn the_batch_alone_says_what_it_needs() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(&dir);
    let family = db.default_family_handle();
    let batch = IndexedBatch::new(true);
    batch.merge(b"m", b"1")?;
    let needs = batch.get_cf(&family, b"m").expect_err("needs the database");
    assert_eq!(needs.to_string(), "Merge in progress: ");
    batch.put(b"m", b"0")?;
    batch.merge(b"m", b"1")?;
    assert_eq!(batch.get_cf(&family, b"m")?.as_deref(), Some(&b"0,1"[..]));
    let needs = batch.get(b"m").expect_err("needs the operator");
    assert_eq!(
        needs.to_string(),
        "Invalid argument: Must provide a column family"
    );
    assert_eq!(batch.get(b"other")?, None);
    let refused = batch.delete_range(b"a", b"b").expect_err("refused");
    assert_eq!(
        refused.to_string(),
        "Not implemented: DeleteRange unsupported in WriteBatchWithIndex"
    );
    assert_eq!(batch.count(), 3);
    Ok(())
}

#[test]
fn entities_are_read_whole_and_by_their_default_column() -> Result<()> {
    use esker_format::wide_column::{Column, decode};
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(&dir);
    let family = db.default_family_handle();
    let batch = IndexedBatch::new(true);
    let columns = [Column::new(b"", b"d"), Column::new(b"c", b"1")];
    batch.put_entity_cf(&family, b"e", &columns)?;
    assert_eq!(batch.get(b"e")?.as_deref(), Some(&b"d"[..]));
    let entity = batch.get_entity_cf(&family, b"e")?.expect("is there");
    assert_eq!(decode(&entity)?, columns);
    batch.merge_cf(&family, b"e", b"x")?;
    let read = ReadOptions::default();
    let entity = batch
        .get_entity_over(&db, &family, b"e", &read, None)?
        .expect("is there");
    assert_eq!(decode(&entity)?[0].value, b"d,x");
    db.put_entity(&family, "w", &[("", "0"), ("c", "1")])?;
    batch.merge_cf(&family, b"w", b"y")?;
    let mut it = batch.iter_over(db.iter(), Some(&family), None);
    it.seek("w");
    assert_eq!(it.entry(), Some((&b"w"[..], &b"0,y"[..])));
    assert_eq!(decode(it.entity().expect("an entity"))?.len(), 2);
    Ok(())
}

/// Compares keys by their length, then backwards.
struct ByLength;

impl Comparator for ByLength {
    fn name(&self) -> &str {
        "test.ByLength"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.len().cmp(&b.len()).then(b.cmp(a))
    }
}

#[test]
fn families_have_their_own_order() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(&dir);
    let mut options = FamilyOptions::default();
    options.comparator = KeyOrder::Custom(Arc::new(ByLength));
    let other = db.create_family("other", options)?;
    db.put_cf(&other, "ccc", "base")?;
    db.put_cf(&other, "b", "base")?;
    let batch = IndexedBatch::new(true);
    for k in ["aa", "zz", "a", "dddd"] {
        batch.put_cf(&other, k.as_bytes(), b"batch")?;
        batch.put(k.as_bytes(), b"default")?;
    }
    batch.delete_cf(&other, b"b")?;
    let mut it = batch.iter_over(db.iter_cf(&other), Some(&other), None);
    it.seek_to_first();
    let keys: Vec<_> = forward(&mut it).into_iter().map(|(k, _)| k).collect();
    assert_eq!(keys, [&b"a"[..], b"zz", b"aa", b"ccc", b"dddd"]);
    it.seek_to_last();
    let mut back = Vec::new();
    while it.valid() {
        back.push(it.key().to_vec());
        it.prev();
    }
    back.reverse();
    assert_eq!(back, keys);
    Ok(())
}

#[test]
fn an_iterator_sees_what_is_added_ahead_of_it() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(&dir);
    db.put("c", "base")?;
    let batch = IndexedBatch::new(true);
    batch.put(b"a", b"1")?;
    batch.put(b"e", b"1")?;
    let mut it = batch.iter_over(db.iter(), None, None);
    it.seek_to_first();
    assert_eq!(it.key(), b"a");
    batch.put(b"d", b"2")?;
    batch.put(b"b", b"2")?;
    it.next();
    assert_eq!(it.key(), b"b");
    it.next();
    assert_eq!(it.key(), b"c");
    batch.clear();
    it.prev();
    assert!(!it.valid());
    it.seek_to_first();
    assert_eq!(it.key(), b"c");
    it.next();
    it.next();
    assert_eq!(
        it.status().expect_err("moved past the end").to_string(),
        "Not implemented: Next() on invalid iterator"
    );
    Ok(())
}

#[test]
fn a_large_batch_stays_in_order() -> Result<()> {
    let batch = IndexedBatch::new(false);
    let mut model = BTreeMap::new();
    let mut n = 12345u64;
    for i in 0..20_000u64 {
        n = n
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let k = (n >> 40).to_be_bytes();
        batch.put(&k, &i.to_le_bytes())?;
        model.insert(k.to_vec(), i.to_le_bytes().to_vec());
    }
    let mut cursor = batch.cursor(None);
    let mut last: Option<Vec<u8>> = None;
    let mut newest = BTreeMap::new();
    cursor.seek_to_first()?;
    while let Some(e) = cursor.entry() {
        assert!(last.as_ref().is_none_or(|l| *l <= e.key));
        newest
            .entry(e.key.clone())
            .or_insert_with(|| e.value.clone());
        last = Some(e.key.clone());
        cursor.forward()?;
    }
    assert_eq!(newest, model);
    Ok(())
}
