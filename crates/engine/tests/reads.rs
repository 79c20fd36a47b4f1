//! The read API beyond Get: many keys, entities, operands, prefixes, tailing, tiers, deadlines;
//! each against a model or against the plain read.

use esker::options::ReadTier;
use esker::{Db, ErrorKind, FamilyHandle, Options, ReadOptions, Result, WriteOptions};
use std::collections::BTreeMap;
use std::time::Duration;

fn open(options: Options) -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), options.create_if_missing(true)).expect("opens");
    (dir, db)
}

fn small() -> Options {
    Options::new()
        .set("write_buffer_size", "32768")
        .and_then(|o| o.set("target_file_size_base", "32768"))
        .and_then(|o| o.set("max_bytes_for_level_base", "65536"))
        .and_then(|o| o.set("merge_operator", "stringappend"))
        .and_then(|o| {
            o.set(
                "block_based_table_factory",
                "{block_size=512;filter_policy=bloomfilter:10:false;}",
            )
        })
        .expect("options")
}

/// A generator that gives the same numbers for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Prefix of two bytes, then six digits.
fn key(n: u64) -> Vec<u8> {
    format!("{}{:06}", ["aa", "ab", "b0", "zz"][(n % 4) as usize], n / 4).into_bytes()
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Random writes of every kind; flushes and compactions happen on the way.
fn fill(db: &Db, family: &FamilyHandle, seed: u64, steps: u64) -> Model {
    let mut random = Random(seed);
    let mut model = Model::new();
    let write = WriteOptions::default();
    for step in 0..steps {
        let k = key(random.below(2_000));
        match random.below(20) {
            0..=2 => {
                db.delete_cf(family, &k).expect("deletes");
                model.remove(&k);
            }
            3 | 4 => {
                db.merge_opt(family, &k, format!("m{step}"), &write)
                    .expect("merges");
                let v = model.entry(k).or_default();
                if !v.is_empty() {
                    v.push(b',');
                }
                v.extend_from_slice(format!("m{step}").as_bytes());
            }
            5 if step % 10 == 0 => {
                let end = [k.clone(), vec![b'~']].concat();
                db.delete_range_cf(family, &k, &end).expect("deletes");
                model.retain(|m, _| *m < k || *m >= end);
            }
            _ => {
                let value = format!("value{step}-{}", "x".repeat(random.below(60) as usize));
                db.put_cf(family, &k, &value).expect("puts");
                model.insert(k, value.into_bytes());
            }
        }
        if step % 4_001 == 4_000 {
            db.flush().expect("flushes");
        }
    }
    model
}

#[test]
fn many_keys_read_as_one_by_one() {
    let (_dir, db) = open(small());
    let family = db.default_family_handle();
    let model = fill(&db, &family, 7, 15_000);
    let snapshot = db.snapshot();
    let mut random = Random(8);
    for _ in 0..300 {
        db.put(key(random.below(2_000)), "later").expect("puts");
    }
    for round in 0..60 {
        let n = random.below(80);
        // Duplicates and keys that are not there, in any order.
        let keys: Vec<_> = (0..n).map(|_| key(random.below(2_200))).collect();
        let then = db.multi_get_opt(&family, &keys, &ReadOptions::default(), Some(&snapshot));
        assert_eq!(then.len(), keys.len());
        for (k, v) in keys.iter().zip(then) {
            let v = v.expect("reads");
            assert_eq!(
                v.as_deref(),
                model.get(k).map(Vec::as_slice),
                "{round} {k:?}"
            );
        }
        for (k, v) in keys.iter().zip(db.multi_get(&keys)) {
            let one = db.get(k).expect("reads");
            assert_eq!(
                v.expect("reads").as_deref(),
                one.as_deref(),
                "{round} {k:?}"
            );
        }
    }
    assert!(db.multi_get(Vec::<Vec<u8>>::new()).is_empty());
}

#[test]
fn many_keys_of_many_families_are_of_one_state() -> Result<()> {
    let (_dir, db) = open(small());
    let first = db.default_family_handle();
    let second = db.create_family("second", small().family)?;
    db.put_cf(&first, "k", "1")?;
    db.put_cf(&second, "k", "2")?;
    let values = db.multi_get_families(
        &[
            (&second, "k"),
            (&first, "k"),
            (&second, "none"),
            (&first, "k"),
        ],
        &ReadOptions::default(),
        None,
    );
    let values: Vec<_> = values
        .into_iter()
        .map(|v| v.map(|v| v.map(Vec::from)))
        .collect::<Result<_>>()?;
    let some = |v: &str| Some(v.as_bytes().to_vec());
    assert_eq!(values, [some("2"), some("1"), None, some("1")]);
    Ok(())
}

#[test]
fn a_soft_limit_stops_many_keys() {
    let (_dir, db) = open(small());
    for n in 0..10u8 {
        db.put([n], vec![n; 100]).expect("puts");
    }
    let mut options = ReadOptions::default();
    options.value_size_soft_limit = 250;
    let family = db.default_family_handle();
    let values = db.multi_get_opt(&family, (0..10u8).map(|n| [n]), &options, None);
    let served = values.iter().filter(|v| v.is_ok()).count();
    assert_eq!(served, 3);
    let refused = values[9].as_ref().expect_err("is over the limit");
    assert_eq!(refused.kind(), ErrorKind::Aborted);
}

#[test]
fn operands_are_shown_unmerged() -> Result<()> {
    let (_dir, db) = open(small());
    let family = db.default_family_handle();
    let operands =
        |k: &str, limit| db.get_merge_operands(&family, k, &ReadOptions::default(), None, limit);
    db.put("base", "b")?;
    db.flush()?;
    db.merge("base", "1")?;
    db.flush()?;
    db.merge("base", "2")?;
    db.merge("bare", "3")?;
    db.delete("gone")?;
    db.merge("gone", "4")?;
    assert_eq!(operands("base", 10)?, [b"b", b"1", b"2"]);
    assert_eq!(operands("bare", 10)?, [b"3"]);
    assert_eq!(operands("gone", 10)?, [b"4"]);
    assert!(operands("none", 10)?.is_empty());
    let error = operands("base", 2).expect_err("there are three");
    assert_eq!(error.kind(), ErrorKind::Incomplete);
    assert_eq!(db.get("base")?.as_deref(), Some(&b"b,1,2"[..]));
    Ok(())
}

#[test]
fn entities_are_read_as_of_a_snapshot() -> Result<()> {
    let (_dir, db) = open(small());
    let family = db.default_family_handle();
    db.put_entity(&family, "e", &[("z", "26"), ("", "plain"), ("a", "1")])?;
    let snapshot = db.snapshot();
    db.put("e", "later")?;
    db.flush()?;
    let columns = db.get_entity_columns(&family, "e")?.expect("is there");
    assert_eq!(columns, [(b"".to_vec(), b"later".to_vec())]);
    let options = ReadOptions::default();
    let old = db
        .get_entity_opt(&family, "e", &options, Some(&snapshot))?
        .expect("was there");
    let now = db.get_entity(&family, "e", &options)?.expect("is there");
    assert_ne!(old, now);
    let plain = db.get_opt(&family, "e", &options, Some(&snapshot))?;
    assert_eq!(plain.as_deref(), Some(&b"plain"[..]));
    assert!(db.get_entity(&family, "none", &options)?.is_none());
    let twice = db.put_entity(&family, "e", &[("a", "1"), ("a", "2")]);
    assert!(twice.is_err(), "a column is named twice");
    Ok(())
}

/// The keys that a walk shows.
fn walk(db: &Db, options: &ReadOptions, from: &[u8]) -> Vec<Vec<u8>> {
    let mut it = db.iter_opt(&db.default_family_handle(), options.clone(), None);
    it.seek(from);
    let mut out = Vec::new();
    while it.valid() {
        out.push(it.key().to_vec());
        it.next();
    }
    it.status().expect("no failure");
    out
}

#[test]
fn prefixes_bound_and_filter_but_never_lose() {
    for partitioned in [false, true] {
        let options = small()
            .set("prefix_extractor", "rocksdb.FixedPrefix.2")
            .and_then(|o| {
                o.set(
                    "block_based_table_factory",
                    if partitioned {
                        "{whole_key_filtering=false;filter_policy=bloomfilter:10:false;partition_filters=true;index_type=kTwoLevelIndexSearch;metadata_block_size=512;block_size=512;}"
                    } else {
                        "{whole_key_filtering=false;filter_policy=bloomfilter:10:false;block_size=512;}"
                    },
                )
            })
            .expect("options");
        let (_dir, db) = open(options);
        let family = db.default_family_handle();
        let model = fill(&db, &family, 21, 12_000);
        let mut random = Random(22);
        // An iterator that seeks again and again, also to prefixes that tables do not have.
        let mut options = ReadOptions::default();
        options.prefix_same_as_start = true;
        let mut again = db.iter_opt(&family, options, None);
        for round in 0..400 {
            let mut from = key(random.below(2_200));
            if round % 5 == 0 {
                // A prefix that no key has, and a key shorter than a prefix.
                from = if round % 2 == 0 {
                    b"ac0001".to_vec()
                } else {
                    b"a".to_vec()
                };
            }
            let all: Vec<Vec<u8>> = model
                .range(from.clone()..)
                .map(|(k, _)| k.clone())
                .collect();
            let same: Vec<Vec<u8>> = if from.len() < 2 {
                all.clone()
            } else {
                all.iter()
                    .take_while(|k| k[..2] == from[..2])
                    .cloned()
                    .collect()
            };
            let mut options = ReadOptions::default();
            options.prefix_same_as_start = true;
            assert_eq!(
                walk(&db, &options, &from),
                same,
                "same prefix from {from:?}"
            );
            again.seek(&from);
            let first = again.valid().then(|| again.key().to_vec());
            assert_eq!(first.as_ref(), same.first(), "again from {from:?}");
            let mut options = ReadOptions::default();
            options.total_order_seek = true;
            assert_eq!(walk(&db, &options, &from), all, "total order from {from:?}");
            let mut options = ReadOptions::default();
            options.auto_prefix_mode = true;
            assert_eq!(walk(&db, &options, &from), all, "auto mode from {from:?}");
            let upper = key(random.below(2_200));
            let bounded: Vec<_> = all.iter().filter(|k| **k < upper).cloned().collect();
            options.iterate_upper_bound = Some(upper.clone());
            assert_eq!(
                walk(&db, &options, &from),
                bounded,
                "auto mode {from:?} to {upper:?}"
            );
            // A walk back from inside stays inside.
            let mut options = ReadOptions::default();
            options.prefix_same_as_start = true;
            let mut it = db.iter_opt(&family, options, None);
            it.seek_for_prev(&from);
            let mut back = Vec::new();
            while it.valid() {
                back.push(it.key().to_vec());
                it.prev();
            }
            let expected: Vec<_> = model
                .range(..=from.clone())
                .rev()
                .map(|(k, _)| k.clone())
                .take_while(|k| from.len() < 2 || k[..2] == from[..2])
                .collect();
            assert_eq!(back, expected, "back from {from:?}");
            assert_eq!(db.get(&from).expect("reads"), model.get(&from).cloned());
        }
    }
}

#[test]
fn a_tailing_iterator_sees_what_comes_later() -> Result<()> {
    let (_dir, db) = open(small());
    let family = db.default_family_handle();
    let mut options = ReadOptions::default();
    options.tailing = true;
    let mut tail = db.iter_opt(&family, options, None);
    let mut fixed = db.iter();
    tail.seek_to_first();
    assert!(!tail.valid());
    let mut random = Random(3);
    let mut model = Model::new();
    for step in 0..2_000u64 {
        let k = key(random.below(500));
        db.put(&k, step.to_string())?;
        model.insert(k.clone(), step.to_string().into_bytes());
        if step % 300 == 0 {
            db.flush()?;
        }
        tail.seek(&k);
        assert_eq!(tail.entry(), Some((&k[..], step.to_string().as_bytes())));
    }
    tail.seek_to_first();
    let mut seen = Model::new();
    while tail.valid() {
        seen.insert(tail.key().to_vec(), tail.value().to_vec());
        tail.next();
    }
    assert_eq!(seen, model);
    fixed.seek_to_first();
    assert!(!fixed.valid(), "an ordinary iterator stays at its view");
    fixed.refresh(None)?;
    fixed.seek_to_first();
    assert!(fixed.valid(), "a refreshed one has moved on");
    let snapshot = db.snapshot();
    db.delete(fixed.key())?;
    let first = model.keys().next().expect("not empty");
    fixed.refresh(Some(&snapshot))?;
    fixed.seek_to_first();
    assert_eq!(fixed.key(), first);
    fixed.refresh(None)?;
    fixed.seek_to_first();
    assert_ne!(fixed.key(), first);
    assert!(
        fixed
            .property("rocksdb.iterator.super-version-number")
            .is_some()
    );
    Ok(())
}

#[test]
fn too_many_hidden_keys_end_a_walk() -> Result<()> {
    let (_dir, db) = open(small());
    for n in 0..100u8 {
        db.put([n], "v")?;
    }
    for n in 1..99u8 {
        db.delete([n])?;
    }
    let mut options = ReadOptions::default();
    options.max_skippable_internal_keys = 20;
    let mut it = db.iter_opt(&db.default_family_handle(), options.clone(), None);
    it.seek_to_first();
    assert!(it.valid());
    it.next();
    assert!(!it.valid());
    let error = it.status().expect_err("gave up");
    assert_eq!(error.kind(), ErrorKind::Incomplete);
    it.seek([99]);
    assert!(it.valid(), "a new seek starts anew");
    options.max_skippable_internal_keys = 1_000;
    assert_eq!(walk(&db, &options, b""), [[0], [99]]);
    Ok(())
}

#[test]
fn tiers_say_where_reads_may_go() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let open = || Db::open(dir.path(), small().create_if_missing(true));
    let db = open()?;
    db.put("table", "t")?;
    db.flush()?;
    db.close()?;
    drop(db);
    let db = open()?;
    let family = db.default_family_handle();
    db.put("memory", "m")?;
    let tier = |t| {
        let mut options = ReadOptions::default();
        options.read_tier = t;
        options
    };
    let get = |k: &str, t| {
        db.get_opt(&family, k, &tier(t), None)
            .map(|v| v.map(Vec::from))
    };
    assert_eq!(get("memory", ReadTier::Memtable)?, Some(b"m".to_vec()));
    assert_eq!(get("table", ReadTier::Memtable)?, None);
    let cold = get("table", ReadTier::BlockCache).expect_err("not in memory");
    assert_eq!(cold.kind(), ErrorKind::Incomplete);
    assert!(db.key_may_exist(&family, "table"));
    assert_eq!(get("table", ReadTier::All)?, Some(b"t".to_vec()));
    assert_eq!(get("table", ReadTier::BlockCache)?, Some(b"t".to_vec()));
    assert_eq!(get("memory", ReadTier::Persisted)?, Some(b"m".to_vec()));
    db.put_opt(&family, "volatile", "v", &WriteOptions::unlogged())?;
    assert_eq!(get("volatile", ReadTier::Persisted)?, None);
    assert_eq!(get("table", ReadTier::Persisted)?, Some(b"t".to_vec()));
    assert_eq!(
        walk(&db, &tier(ReadTier::Memtable), b""),
        [&b"memory"[..], b"volatile"]
    );
    let refused = db.iter_opt(&family, tier(ReadTier::Persisted), None);
    assert_eq!(
        refused.status().expect_err("refused").kind(),
        ErrorKind::NotSupported
    );
    Ok(())
}

#[test]
fn a_deadline_ends_reads() -> Result<()> {
    let (_dir, db) = open(small());
    db.put("k", "v")?;
    db.flush()?;
    let family = db.default_family_handle();
    let mut options = ReadOptions::default();
    options.deadline = Some(Duration::ZERO);
    let mut it = db.iter_opt(&family, options.clone(), None);
    std::thread::sleep(Duration::from_millis(2));
    it.seek_to_first();
    assert!(!it.valid());
    assert_eq!(
        it.status().expect_err("too late").kind(),
        ErrorKind::TimedOut
    );
    options.deadline = Some(Duration::from_secs(3_600));
    assert_eq!(walk(&db, &options, b""), [b"k"]);
    assert!(db.get_opt(&family, "k", &options, None)?.is_some());
    Ok(())
}

#[test]
fn a_tailing_iterator_moves_through_what_comes_later() -> Result<()> {
    for flushes in [false, true] {
        let (_dir, db) = open(Options::new());
        let mut options = ReadOptions::default();
        options.tailing = true;
        db.put("k1", "1")?;
        let mut it = db.iter_opt(&db.default_family_handle(), options, None);
        it.seek_to_first();
        for (k, v) in [("k0", "0"), ("k2", "2"), ("k3", "3")] {
            db.put(k, v)?;
        }
        if flushes {
            db.flush()?;
            db.compact_range(None, None)?;
        }
        // Placed before they were written, it comes to them as it moves.
        let mut seen = Vec::new();
        while it.valid() {
            seen.push(String::from_utf8_lossy(it.key()).into_owned());
            it.next();
        }
        assert_eq!(seen, ["k1", "k2", "k3"], "flushes {flushes}");
        it.status()?;
        // At the end a move does nothing; a seek goes on.
        db.put("k4", "4")?;
        it.next();
        assert!(!it.valid());
        it.seek("k3");
        db.delete("k3")?;
        db.put("k35", "35")?;
        it.next();
        assert_eq!(it.entry(), Some((&b"k35"[..], &b"35"[..])));
        db.delete("k35")?;
        db.put("k33", "33")?;
        it.prev();
        assert_eq!(it.entry(), Some((&b"k33"[..], &b"33"[..])));
        db.delete("k33")?;
        db.delete("k4")?;
        it.next();
        assert!(!it.valid());
        it.status()?;
    }
    Ok(())
}

#[test]
fn a_step_shows_the_entry_where_it_lands() {
    let (_dir, db) = open(small());
    let family = db.default_family_handle();
    // Operands to combine, ranges deleted, versions hidden, in memory and in tables.
    let model = fill(&db, &family, 31, 15_000);
    assert!(model.len() > 100, "{}", model.len());
    for tailing in [false, true] {
        let mut options = ReadOptions::default();
        options.tailing = tailing;
        let mut it = db.iter_opt(&family, options, None);
        let mut random = Random(32);
        it.seek_to_first();
        let mut expected = model.iter();
        let first = expected.next().map(|(k, v)| (&k[..], &v[..]));
        assert_eq!(it.entry(), first);
        loop {
            // A turn leaves the walk in buffers of its own, out of which it must come again.
            if random.below(7) == 0 {
                let here = it.key().to_vec();
                it.prev();
                if it.valid() {
                    it.next_showing(|key, _| assert_eq!(key, here));
                } else {
                    it.seek(&here);
                }
            }
            let mut seen = None;
            it.next_showing(|key, value| {
                assert!(seen.is_none(), "one entry a step");
                seen = Some((key.to_vec(), value.to_vec()));
            });
            let wanted = expected.next();
            assert_eq!(seen.as_ref().map(|(k, v)| (k, v)), wanted);
            assert_eq!(it.entry(), wanted.map(|(k, v)| (&k[..], &v[..])));
            if wanted.is_none() {
                break;
            }
        }
        it.next_showing(|_, _| panic!("there is none"));
        it.status().expect("no failure");
    }
}

#[test]
fn hashed_memtables_show_one_prefix_unless_asked_for_the_order() -> Result<()> {
    for kind in ["prefix_hash", "hash_linkedlist"] {
        let options = Options::new()
            .set("prefix_extractor", "fixed:3")?
            .set("memtable_factory", kind)?;
        let (_dir, db) = open(options);
        let family = db.default_family_handle();
        for k in ["aaa1", "aaa2", "bbb1", "bbb2"] {
            db.put(k, k)?;
        }
        let all = |total: bool| {
            let mut options = ReadOptions::default();
            options.total_order_seek = total;
            options
        };
        let mut it = db.iter_opt(&family, all(false), None);
        it.seek_to_first();
        assert!(!it.valid(), "{kind}");
        it.seek_to_last();
        assert!(!it.valid(), "{kind}");
        let mut seen = Vec::new();
        it.seek("aaa");
        while it.valid() {
            seen.push(it.key().to_vec());
            it.next();
        }
        assert_eq!(seen, [b"aaa1", b"aaa2"], "{kind}");
        it.status()?;
        it.seek("bbb2");
        it.prev();
        assert_eq!(it.entry().map(|e| e.0), Some(&b"bbb1"[..]));
        it.prev();
        assert!(!it.valid(), "{kind}");
        assert_eq!(walk(&db, &all(true), b"").len(), 4);
        assert_eq!(db.get("bbb1")?.as_deref(), Some(&b"bbb1"[..]));
        // Tables are in order for everybody, with a newer memtable above them too.
        db.flush()?;
        db.put("bbb3", "bbb3")?;
        assert_eq!(walk(&db, &all(false), b"aaa").len(), 4);
        assert_eq!(walk(&db, &all(true), b"aaa").len(), 5);
        assert_eq!(walk(&db, &all(false), b"bbb").len(), 3);
    }
    Ok(())
}
