//! Entries as iterators of the standard library: unplaced cursors, both ends, families, snapshots,
//! and handles that outlive their database. Random walks are in the model test.

use esker::{
    Db, ErrorKind, Family, FamilyOptions, KeyOrder, Options, ReadOptions, Result, merge_operator,
};
use std::ops::Bound;

fn db() -> Result<(tempfile::TempDir, Db)> {
    let dir = tempfile::tempdir()?;
    let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    Ok((dir, db))
}

fn keys(entries: impl Iterator<Item = Result<Vec<u8>>>) -> Result<String> {
    let keys: Result<Vec<Vec<u8>>> = entries.collect();
    Ok(keys?.concat().escape_ascii().to_string())
}

#[test]
fn an_iterator_that_was_not_placed_stands_at_its_first_entry() -> Result<()> {
    let (_dir, db) = db()?;
    for key in ["a", "b", "c"] {
        db.put(key, key)?;
    }
    // Asked without being moved, by shared reference.
    let it = db.iter();
    assert!(!it.is_placed());
    assert!(it.valid());
    assert_eq!(it.entry(), Some((&b"a"[..], &b"a"[..])));
    assert_eq!((it.key(), it.value()), (&b"a"[..], &b"a"[..]));
    it.status()?;
    // Moved at once, and moved after it was asked.
    for asks in [false, true] {
        let mut it = db.iter();
        assert!(!asks || it.valid());
        it.next();
        assert_eq!(it.key(), b"b");
        let mut it = db.iter();
        assert!(!asks || it.valid());
        it.prev();
        assert!(!it.valid());
        let mut it = db.iter();
        assert!(!asks || it.valid());
        let mut shown = Vec::new();
        while it.next_batch(9, |key, _| shown.extend_from_slice(key)) > 0 {}
        assert_eq!(shown, b"bc");
    }
    // Bounds count.
    let options = ReadOptions::new().lower("b");
    let it = db.iter_opt(&db.default_family_handle(), options, None);
    assert_eq!(it.key(), b"b");
    // A seek goes elsewhere, and a refresh begins anew.
    let mut it = db.iter();
    it.seek("c");
    assert_eq!((it.key(), it.is_placed()), (&b"c"[..], true));
    db.put("0", "0")?;
    it.refresh(None)?;
    assert_eq!(it.key(), b"0");
    Ok(())
}

#[test]
fn a_cursor_goes_on_as_an_iterator_from_where_it_stands() -> Result<()> {
    let (_dir, db) = db()?;
    for key in ["a", "b", "c", "d"] {
        db.put(key, "")?;
    }
    assert_eq!(keys(db.iter().keys())?, "abcd");
    assert_eq!(keys(db.iter().keys().rev())?, "dcba");
    let mut it = db.iter();
    it.seek("b");
    assert_eq!(keys(it.keys())?, "bcd");
    let mut it = db.iter();
    it.seek("b");
    assert_eq!(keys(it.keys().rev())?, "dcb", "down to where it stands");
    let mut it = db.iter();
    it.seek("x");
    let mut both = it.keys();
    assert!(
        both.next_back().is_none() && both.next().is_none(),
        "it is at the end"
    );
    Ok(())
}

#[test]
fn the_ends_meet_and_it_stays_ended() -> Result<()> {
    let (_dir, db) = db()?;
    for key in ["a", "b", "c"] {
        db.put(key, "")?;
    }
    db.flush()?;
    db.put("b", "new")?;
    let mut all = db.range(..);
    assert_eq!(
        all.next_back().transpose()?.map(|e| e.0),
        Some(b"c".to_vec())
    );
    assert_eq!(all.next().transpose()?.map(|e| e.0), Some(b"a".to_vec()));
    // It shows the state of when it was made.
    db.delete("b")?;
    assert_eq!(
        all.next_back().transpose()?,
        Some((b"b".to_vec(), b"new".to_vec()))
    );
    for _ in 0..3 {
        assert!(all.next().is_none() && all.next_back().is_none());
    }
    Ok(())
}

#[test]
fn bounds_of_every_kind_in_every_order() -> Result<()> {
    let dir = tempfile::tempdir()?;
    for (n, order) in [KeyOrder::Bytewise, KeyOrder::ReverseBytewise]
        .into_iter()
        .enumerate()
    {
        let is_reverse = n == 1;
        let options = Options::new().create_if_missing(true).comparator(order);
        let db = Db::open(dir.path().join(n.to_string()), options)?;
        for key in ["a", "b", "b\0", "c"] {
            db.put(key, "")?;
        }
        let turned = |text: &str| {
            if is_reverse {
                text.chars().rev().collect::<String>()
            } else {
                text.to_owned()
            }
        };
        let range = |low: Bound<&str>, high: Bound<&str>| {
            let range = if is_reverse { (high, low) } else { (low, high) };
            let forward: Result<Vec<Vec<u8>>> = db.range(range).keys().collect();
            let mut backward: Vec<Vec<u8>> = db.range(range).keys().rev().collect::<Result<_>>()?;
            backward.reverse();
            assert_eq!(forward.as_ref(), Ok(&backward));
            let lengths = forward?
                .iter()
                .map(|k| char::from(k[0] + k.len() as u8 - 1))
                .collect();
            Ok::<String, esker::Error>(lengths)
        };
        use Bound::{Excluded, Included, Unbounded};
        // The key of two bytes shows as the letter that follows its first.
        assert_eq!(range(Unbounded, Unbounded)?, turned("abcc"));
        assert_eq!(range(Included("b"), Unbounded)?, turned("bcc"));
        assert_eq!(range(Excluded("b"), Unbounded)?, turned("cc"));
        assert_eq!(range(Unbounded, Included("b"))?, turned("ab"));
        assert_eq!(range(Unbounded, Excluded("b"))?, turned("a"));
        assert_eq!(range(Excluded("a"), Excluded("c"))?, turned("bc"));
        assert_eq!(
            range(Included("c"), Included("a"))?,
            "",
            "the wrong way round"
        );
        assert_eq!(db.prefix("b").count(), 2);
        assert_eq!(db.prefix("b").rev().count(), 2);
        assert_eq!(db.prefix("").count(), 4);
        assert_eq!(db.prefix("x").count(), 0);
    }
    Ok(())
}

#[test]
fn ranges_and_prefixes_see_every_key_beside_a_prefix_extractor() -> Result<()> {
    for memtable in ["skip_list", "prefix_hash"] {
        let dir = tempfile::tempdir()?;
        let options = Options::new()
            .create_if_missing(true)
            .prefix_len(2)
            .bloom_filter(10.0);
        let options = options.set("memtable_factory", memtable)?;
        let db = Db::open(dir.path(), options)?;
        for flushes in [false, true] {
            for key in ["a", "aa1", "aa2", "ab1", "b"] {
                db.put(key, "")?;
            }
            if flushes {
                db.flush()?;
            }
            assert_eq!(db.prefix("aa").count(), 2);
            assert_eq!(db.prefix("a").count(), 4, "shorter than the extractor's");
            assert_eq!(db.prefix("aa1").count(), 1);
            assert_eq!(db.range("aa2"..).count(), 3);
            assert_eq!(db.keys().count(), 5);
            assert_eq!(db.last_key_value()?.map(|e| e.0), Some(b"b".to_vec()));
        }
    }
    Ok(())
}

#[test]
fn tailing_iterators_go_forward_only() -> Result<()> {
    let (_dir, db) = db()?;
    db.put("a", "")?;
    let options = ReadOptions::new().tailing(true);
    let it = db.iter_opt(&db.default_family_handle(), options, None);
    let mut entries = it.into_iter();
    assert!(matches!(entries.next(), Some(Ok(_))));
    let refused = entries
        .next_back()
        .expect("an error")
        .expect_err("it is one");
    assert_eq!(refused.kind(), ErrorKind::NotSupported);
    assert!(entries.next().is_none(), "it has ended");
    Ok(())
}

#[test]
fn a_family_reads_and_writes_by_itself() -> Result<()> {
    let (_dir, db) = db()?;
    let options = FamilyOptions::new().merge_operator(merge_operator::UInt64Add);
    let counters = db.family_or_create("counters", options)?;
    counters.merge("a", 1_u64.to_le_bytes())?;
    counters.merge("a", 2_u64.to_le_bytes())?;
    assert_eq!(
        counters.get("a")?.as_deref(),
        Some(&3_u64.to_le_bytes()[..])
    );
    counters.put("b", "")?;
    counters.single_delete("b")?;
    counters.put("c", "")?;
    assert!(counters.contains_key("c")? && !counters.contains_key("b")?);
    assert_eq!(keys(counters.keys())?, "ac");
    assert_eq!(
        counters.first_key_value()?.map(|e| e.0),
        Some(b"a".to_vec())
    );
    assert_eq!(counters.last_key_value()?.map(|e| e.0), Some(b"c".to_vec()));
    assert!(db.is_empty()?, "the default family has nothing of it");
    // It goes where a handle goes.
    db.put_cf(&counters, "d", "")?;
    assert!(counters.approximate_len() >= 3);
    let again: Family = db.existing_family("counters")?;
    assert_eq!(again, counters);
    db.drop_family(&counters)?;
    assert!(db.existing_family("counters").is_err());
    Ok(())
}

#[test]
fn handles_that_outlive_the_database_say_that_it_is_closed() -> Result<()> {
    for by_close in [true, false] {
        let (_dir, db) = db()?;
        db.put("a", "1")?;
        let family = db.existing_family("default")?;
        let snapshot = db.snapshot();
        let mut begun = db.range("a"..);
        let cursor = db.iter();
        let other = by_close.then(|| db.clone());
        if by_close {
            db.close()?;
        }
        drop(db);
        let closed = |e: esker::Error| assert_eq!(e.kind(), ErrorKind::ShutdownInProgress);
        closed(family.put("b", "2").expect_err("closed"));
        closed(family.get("a").expect_err("closed"));
        closed(family.multi_get(["a"]).remove(0).expect_err("closed"));
        closed(family.is_empty().expect_err("closed"));
        closed(family.iter().status().expect_err("closed"));
        closed(
            family
                .range("a"..)
                .next()
                .expect("an error")
                .expect_err("closed"),
        );
        closed(snapshot.get("a").expect_err("closed"));
        closed(snapshot.iter().status().expect_err("closed"));
        closed(
            snapshot
                .range("a"..)
                .next_back()
                .expect("an error")
                .expect_err("closed"),
        );
        closed(
            snapshot
                .prefix_cf(&family, "a")
                .next()
                .expect("an error")
                .expect_err("closed"),
        );
        // Those that were made before go on reading.
        assert_eq!(begun.next().transpose()?.map(|e| e.1), Some(b"1".to_vec()));
        assert_eq!(cursor.entry(), Some((&b"a"[..], &b"1"[..])));
        drop(other);
    }
    Ok(())
}

#[test]
fn a_family_does_not_keep_the_database_open() -> Result<()> {
    let (dir, db) = db()?;
    let family = db.existing_family("default")?;
    family.put("a", "1")?;
    let snapshot = db.snapshot();
    drop(db);
    let db = Db::open(dir.path(), Options::new())?;
    assert_eq!(db.get("a")?.as_deref(), Some(&b"1"[..]));
    drop((family, snapshot));
    Ok(())
}

#[test]
fn closures_that_panic_fail_reads_and_no_write() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let operator = merge_operator::from_fn("picky", |key, base, operands| {
        assert_ne!(key, b"bad", "as the test wants");
        Some([base.unwrap_or_default(), &operands.concat()].concat())
    });
    let filter = esker::compaction_filter::from_fn("picky", |_, key, _| {
        assert_ne!(key, b"kept", "as the test wants");
        esker::Decision::Remove
    });
    let options = Options::new()
        .create_if_missing(true)
        .merge_operator(operator)
        .compaction_filter(filter);
    let db = Db::open(dir.path(), options)?;
    for n in 0..3 {
        db.merge("bad", n.to_string())?;
        db.merge("good", n.to_string())?;
        db.put("kept", "v")?;
        db.put("gone", "v")?;
        db.flush()?;
    }
    db.compact_range(None, None)?;
    let failed = db.get("bad").expect_err("it cannot be merged");
    assert_eq!(failed.subcode(), esker::Subcode::MergeOperatorFailed);
    assert!(db.contains_key("kept")?);
    assert!(!db.contains_key("gone")?);
    db.put("after", "v")?;
    assert_eq!(db.background_error(), None);
    // The operands are still there for an operator that works.
    drop(db);
    let appends = Options::new()
        .merge_operator(merge_operator::from_fn("picky", |_, base, operands| {
            Some([base.unwrap_or_default(), &operands.concat()].concat())
        }));
    let db = Db::open(dir.path(), appends)?;
    assert_eq!(db.get("bad")?.as_deref(), Some(&b"012"[..]));
    Ok(())
}

/// The front takes entries several at once: the back goes down to those that were not given yet.
#[test]
fn the_ends_meet_among_entries_that_were_taken_at_once() -> Result<()> {
    let (_dir, db) = db()?;
    let all: Vec<Vec<u8>> = (0..150_u8).map(|n| vec![n]).collect();
    for key in &all {
        db.put(key, key)?;
    }
    db.flush()?;
    for given in 0..=all.len() {
        let mut values = db.range(..).values();
        for key in &all[..given] {
            assert_eq!(values.next().transpose()?.as_ref(), Some(key));
        }
        // Some from the back, some from the front again, the rest from the back.
        let mut rest = all[given..].iter();
        for back in [true, true, false, true, false, false] {
            let (seen, wanted) = if back {
                (values.next_back(), rest.next_back())
            } else {
                (values.next(), rest.next())
            };
            assert_eq!(seen.transpose()?.as_ref(), wanted);
        }
        for wanted in rest.rev() {
            assert_eq!(values.next_back().transpose()?.as_ref(), Some(wanted));
        }
        assert!(values.next_back().is_none() && values.next().is_none());
    }
    // A walk that was broken off goes on behind the last entry that was shown.
    let mut entries = db.range(..);
    let mut shown = Vec::new();
    while shown.len() < all.len() {
        entries.for_each_entry(|key, _| {
            shown.push(key.to_vec());
            if shown.len() % 7 == 0 {
                return std::ops::ControlFlow::Break(());
            }
            std::ops::ControlFlow::Continue(())
        })?;
    }
    assert_eq!(shown, all);
    Ok(())
}
