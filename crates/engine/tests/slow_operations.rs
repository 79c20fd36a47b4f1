//! The slowest operations of a database, while somebody asks for them.

use esker::observe::{OperationKind, PerfMetric, SlowOperation};
use esker::{Db, Options, ReadOptions, WriteBatch, WriteOptions};
use std::collections::HashSet;
use std::time::Duration;

fn opened() -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), Options::new().create_if_missing(true)).expect("opens");
    for n in 0..2_000_u32 {
        db.put(format!("secret{n:06}"), [b'v'; 100])
            .expect("writes");
    }
    db.flush().expect("flushes");
    (dir, db)
}

fn of(db: &Db, kind: OperationKind) -> Vec<SlowOperation> {
    let all = db.slow_operations();
    all.into_iter().filter(|o| o.kind == kind).collect()
}

fn figure(operation: &SlowOperation, metric: PerfMetric) -> u64 {
    let found = operation.perf.iter().find(|(m, _)| *m == metric);
    found.map_or(0, |(_, value)| *value)
}

#[test]
fn each_kind_is_recorded_with_its_family_and_its_work() {
    let (_dir, db) = opened();
    let users = db
        .create_family("users", Options::new().family)
        .expect("creates");
    let sampling = db.sample_operations(None);
    assert!(db.slow_operations().is_empty());

    assert!(db.get("secret000007").expect("reads").is_some());
    let gets = of(&db, OperationKind::Get);
    assert_eq!(gets.len(), 1);
    assert_eq!(gets[0].family.as_deref(), Some("default"));
    // The block of the key, and what opening the table reads.
    let blocks = figure(&gets[0], PerfMetric::BlockReadCount);
    assert!((1..10).contains(&blocks), "{:?}", gets[0]);
    assert!(figure(&gets[0], PerfMetric::DataBlockReadByte) > 0);
    assert!(gets[0].took > Duration::ZERO && gets[0].took < Duration::from_secs(60));

    // Keys of one family, and of two.
    let _values = db.multi_get(["secret000001", "secret001900"]);
    let default = db.default_family_handle();
    let keys = [(&default, "secret000001"), (&users, "none")];
    let _values = db.multi_get_families(&keys, &ReadOptions::default(), None);
    let families: HashSet<_> = of(&db, OperationKind::MultiGet)
        .into_iter()
        .map(|o| o.family)
        .collect();
    assert_eq!(families, HashSet::from([Some("default".to_owned()), None]));

    let mut it = db.iter();
    it.seek("secret000100");
    it.next();
    it.prev();
    let shown = it.next_batch(10, |_, _| {});
    assert!((1..=10).contains(&shown), "{shown}");
    assert_eq!(of(&db, OperationKind::Seek).len(), 1);
    assert_eq!(of(&db, OperationKind::Next).len(), 2);
    assert_eq!(of(&db, OperationKind::Prev).len(), 1);

    db.put_cf(&users, "secret", "v").expect("writes");
    let mut both = WriteBatch::new();
    both.put("secret", "v").expect("a batch");
    both.put_cf(&users, b"secret", b"v").expect("a batch");
    db.write_opt(&mut both, &WriteOptions::new().sync(true))
        .expect("writes");
    let writes = of(&db, OperationKind::Write);
    let synced = writes.iter().find(|o| o.family.is_none());
    assert!(figure(synced.expect("of two families"), PerfMetric::WriteWalTime) > 0);
    let single = writes.iter().find(|o| o.family.as_deref() == Some("users"));
    assert_eq!(figure(single.expect("of one"), PerfMetric::WriteWalTime), 0);

    let shown = format!("{:?}", db.slow_operations());
    assert!(!shown.contains("secret"), "{shown}");
    drop(sampling);
    assert!(db.slow_operations().is_empty());
}

#[test]
fn an_iterator_is_looked_at_from_its_next_seek_on() {
    let (_dir, db) = opened();
    let mut it = db.iter();
    it.seek_to_first();
    let first = db.sample_operations(None);
    it.next();
    assert!(db.slow_operations().is_empty());
    it.seek_to_last();
    it.prev();
    assert_eq!(of(&db, OperationKind::Prev).len(), 1);
    drop(first);
    // It is not recorded any more, also before it notices.
    it.prev();
    let _again = db.sample_operations(None);
    assert!(db.slow_operations().is_empty());
}

#[test]
fn the_record_outlives_a_closed_database() {
    let (dir, db) = opened();
    let sampling = db.sample_operations(None);
    db.put("k", "v").expect("writes");
    db.close().expect("closes");
    assert_eq!(of(&db, OperationKind::Write).len(), 1);
    drop(db);
    // The directory is free.
    let again = Db::open(dir.path(), Options::new()).expect("opens");
    assert!(again.slow_operations().is_empty());
    drop(sampling);
}

#[test]
fn operations_of_many_threads_are_recorded() {
    let (_dir, db) = opened();
    let _sampling = db.sample_operations(None);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let db = &db;
            scope.spawn(move || {
                for n in 0..300_u32 {
                    db.put(format!("{thread}-{n}"), "v").expect("writes");
                    db.get(format!("{thread}-{n}")).expect("reads");
                }
            });
        }
    });
    for kind in [OperationKind::Get, OperationKind::Write] {
        let kept = of(&db, kind);
        assert_eq!(kept.len(), 32);
        assert!(kept.is_sorted_by(|a, b| a.took >= b.took));
    }
}
