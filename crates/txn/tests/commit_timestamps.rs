//! Transactions in families whose keys have timestamps: what a commit gives them, and what counts
//! as a conflict.

use esker::{
    ErrorKind, FamilyDescriptor, FamilyHandle, FamilyOptions, FlushOptions, KeyOrder, Options,
    ReadOptions, Result, WriteBatch, WriteOptions,
};
use esker_txn::{OptimisticTransactionDb, TransactionDb, TransactionDbOptions, TransactionOptions};
use std::path::Path;

fn timed() -> FamilyOptions {
    let mut options = FamilyOptions::default();
    options.comparator = KeyOrder::BytewiseU64Ts;
    options
}

fn open_with(dir: &Path, validates: bool) -> (TransactionDb, FamilyHandle) {
    let transactions = TransactionDbOptions {
        transaction_lock_timeout: 0,
        default_lock_timeout: 0,
        enable_udt_validation: validates,
        ..Default::default()
    };
    let mut options = Options::new().create_if_missing(true);
    options.db.create_missing_column_families = true;
    let families = vec![
        FamilyDescriptor::new("default", FamilyOptions::default()),
        FamilyDescriptor::new("timed", timed()),
    ];
    let db = TransactionDb::open_families(dir, options, families, transactions).expect("opens");
    let family = db.base().family("timed").expect("it is there");
    (db, family.into())
}

fn open(dir: &tempfile::TempDir) -> (TransactionDb, FamilyHandle) {
    open_with(dir.path(), true)
}

fn at(timestamp: u64) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.timestamp = Some(timestamp.to_le_bytes().to_vec());
    options
}

fn read(db: &TransactionDb, family: &FamilyHandle, key: &str, timestamp: u64) -> Option<String> {
    let found = db.base().get_opt(family, key, &at(timestamp), None);
    let found = found.expect("read");
    found.map(|v| String::from_utf8(v.into_vec()).expect("text"))
}

#[track_caller]
fn told<T: std::fmt::Debug>(result: Result<T>, message: &str) {
    let e = result.expect_err("refused");
    assert_eq!(e.to_string(), message);
}

#[test]
fn a_commit_gives_all_keys_its_timestamp() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (db, family) = open(&dir);
    let plain = db.base().default_family_handle();
    let mut txn = db.begin();
    txn.put_cf(&family, "a", "1")?;
    txn.put_cf(&family, "b", "1")?;
    txn.put_cf(&plain, "a", "plain")?;
    txn.set_commit_timestamp(10)?;
    txn.commit()?;
    let mut txn = db.begin();
    txn.put_cf(&family, "a", "2")?;
    txn.delete_cf(&family, "b")?;
    txn.set_commit_timestamp(20)?;
    txn.commit()?;
    for reopened in [false, true] {
        let (db, family) = if reopened {
            db.base().close()?;
            open(&dir)
        } else {
            (db.clone(), family.clone())
        };
        let of = |key| [9, 10, 19, 20].map(|t| read(&db, &family, key, t));
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of("a"), [None, some("1"), some("1"), some("2")]);
        assert_eq!(of("b"), [None, some("1"), some("1"), None]);
        assert_eq!(db.base().get("a")?.as_deref(), Some(&b"plain"[..]));
    }
    Ok(())
}

#[test]
fn a_commit_needs_a_timestamp_where_keys_have_them() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (db, family) = open(&dir);
    let mut txn = db.begin();
    txn.put_cf(&family, "k", "v")?;
    told(
        txn.commit(),
        "Invalid argument: Must assign a commit timestamp",
    );
    assert_eq!(read(&db, &family, "k", u64::MAX - 1), None);
    // Without such keys it needs none, and does not mind one.
    let mut txn = db.begin();
    txn.put("k", "v")?;
    txn.set_commit_timestamp(7)?;
    txn.commit()?;
    let mut txn = db.begin();
    txn.put("k", "w")?;
    txn.commit()?;
    assert_eq!(db.base().get("k")?.as_deref(), Some(&b"w"[..]));
    Ok(())
}

#[test]
fn a_transaction_reads_what_it_wrote() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (db, family) = open(&dir);
    let mut txn = db.begin();
    for key in ["a", "b", "d"] {
        txn.put_cf(&family, key, "old")?;
    }
    txn.set_commit_timestamp(5)?;
    txn.commit()?;
    let mut txn = db.begin();
    txn.put_cf(&family, "b", "new")?;
    txn.put_cf(&family, "c", "new")?;
    txn.delete_cf(&family, "d")?;
    let get = |key: &str| txn.get_opt(&family, key, &at(9), None);
    assert_eq!(get("a")?.as_deref(), Some(&b"old"[..]));
    assert_eq!(get("b")?.as_deref(), Some(&b"new"[..]));
    assert_eq!(get("c")?.as_deref(), Some(&b"new"[..]));
    assert!(get("d")?.is_none());
    told(
        txn.get_opt(&family, "b", &ReadOptions::default(), None),
        "Invalid argument: Must specify timestamp",
    );
    let mut it = txn.iter_opt(&family, at(9), None);
    let mut seen = Vec::new();
    it.seek_to_first();
    while let Some((key, value)) = it.entry() {
        seen.push((key.to_vec(), value.to_vec()));
        it.next();
    }
    it.status()?;
    let pair = |k: &str, v: &str| (k.as_bytes().to_vec(), v.as_bytes().to_vec());
    assert_eq!(seen, [pair("a", "old"), pair("b", "new"), pair("c", "new")]);
    it.seek_for_prev("b");
    assert_eq!(it.entry(), Some((&b"b"[..], &b"new"[..])));
    it.prev();
    assert_eq!(it.entry(), Some((&b"a"[..], &b"old"[..])));
    drop(it);
    let keys: Vec<_> = txn.changes(&family)?.into_iter().map(|e| e.key).collect();
    assert_eq!(keys, [b"b", b"c", b"d"]);
    // What is taken back is not committed.
    txn.set_save_point();
    txn.put_cf(&family, "e", "new")?;
    txn.rollback_to_save_point()?;
    assert!(txn.get_opt(&family, "e", &at(9), None)?.is_none());
    txn.set_commit_timestamp(8)?;
    txn.commit()?;
    assert_eq!(read(&db, &family, "e", 9), None);
    assert_eq!(read(&db, &family, "c", 8).as_deref(), Some("new"));
    Ok(())
}

#[test]
fn a_later_timestamp_than_the_read_one_is_a_conflict() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (db, family) = open(&dir);
    let commit = |key: &str, timestamp| -> Result<()> {
        let mut txn = db.begin();
        txn.put_cf(&family, key, format!("at {timestamp}"))?;
        txn.set_commit_timestamp(timestamp)?;
        txn.commit()
    };
    commit("k", 10)?;
    commit("flushed", 10)?;
    for flushed in [false, true] {
        if flushed {
            db.base().flush_cf(&family, &FlushOptions::default())?;
            commit("other", 50)?;
        }
        let mut txn = db.begin();
        let read_k = |txn: &mut esker_txn::Transaction| {
            txn.get_for_update_opt(&family, "k", &ReadOptions::default(), None, true, true)
        };
        told(
            read_k(&mut txn),
            "Invalid argument: read_timestamp must be set for validation",
        );
        txn.set_read_timestamp_for_validation(9)?;
        let e = read_k(&mut txn).expect_err("10 is later");
        assert_eq!(e.kind(), ErrorKind::Busy);
        // It is not locked then.
        let e = txn.put_cf(&family, "k", "x").expect_err("10 is later");
        assert_eq!(e.kind(), ErrorKind::Busy);
        txn.set_read_timestamp_for_validation(10)?;
        assert_eq!(read_k(&mut txn)?.as_deref(), Some(&b"at 10"[..]));
        told(
            txn.set_read_timestamp_for_validation(9),
            "Invalid argument: Cannot decrease read timestamp for validation",
        );
        let wrong = txn.get_for_update_opt(&family, "k", &at(8), None, true, true);
        told(
            wrong,
            "Invalid argument: Must read from the same read_timestamp",
        );
        let unvalidated =
            txn.get_for_update_opt(&family, "k", &ReadOptions::default(), None, true, false);
        told(
            unvalidated,
            "Invalid argument: If do_validate is false then GetForUpdate with read_timestamp is not defined.",
        );
        told(
            txn.set_commit_timestamp(10),
            "Invalid argument: Cannot commit at timestamp smaller than or equal to read timestamp",
        );
        txn.rollback()?;
    }
    // A family without timestamps takes none.
    let mut txn = db.begin();
    let plain = db.base().default_family_handle();
    told(
        txn.get_for_update_opt(&plain, "k", &at(3), None, true, true),
        "Invalid argument: cannot call this method on column family default that does not enable timestamp",
    );
    Ok(())
}

#[test]
fn validation_can_be_off() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (db, family) = open_with(dir.path(), false);
    let mut first = db.begin();
    first.put_cf(&family, "k", "1")?;
    first.set_commit_timestamp(10)?;
    first.commit()?;
    let mut txn = db.begin();
    let found = txn.get_for_update_opt(&family, "k", &ReadOptions::default(), None, true, true)?;
    assert_eq!(found.as_deref(), Some(&b"1"[..]), "the newest");
    txn.set_read_timestamp_for_validation(3)?;
    told(
        txn.get_for_update_opt(&family, "k", &ReadOptions::default(), None, true, true),
        "Invalid argument: read_timestamp is set but timestamp validation is disabled for the DB",
    );
    txn.put_cf(&family, "k", "2")?;
    txn.set_commit_timestamp(2)?;
    Ok(())
}

#[test]
fn a_prepared_transaction_gets_its_timestamp_when_it_is_committed() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (db, family) = open(&dir);
    for (name, key) in [("here", "a"), ("later", "b"), ("never", "c")] {
        let mut txn = db.begin_opt(WriteOptions::default(), &TransactionOptions::default());
        txn.set_name(name.as_bytes())?;
        txn.put_cf(&family, key, name)?;
        txn.prepare()?;
        if name == "here" {
            let e = txn.commit().expect_err("no timestamp");
            assert!(e.to_string().contains("Must assign a commit timestamp"));
            txn.set_commit_timestamp(30)?;
            txn.commit()?;
        }
    }
    db.base().close()?;
    drop(db);
    let (db, family) = open(&dir);
    assert_eq!(read(&db, &family, "a", 29), None);
    assert_eq!(read(&db, &family, "a", 30).as_deref(), Some("here"));
    for mut txn in db.prepared_transactions()? {
        // The key is locked as the application knows it.
        let key = if txn.name() == b"later" { "b" } else { "c" };
        let mut other = db.begin();
        let e = other.put_cf(&family, key, "x").expect_err("it is locked");
        assert_eq!(e.kind(), ErrorKind::TimedOut);
        let own = txn.get_opt(&family, key, &at(99), None)?;
        assert_eq!(own.as_deref(), Some(txn.name()));
        if txn.name() == b"later" {
            txn.set_commit_timestamp(40)?;
            txn.commit()?;
        } else {
            txn.rollback()?;
        }
    }
    db.base().flush_cf(&family, &FlushOptions::default())?;
    assert_eq!(read(&db, &family, "b", 39), None);
    assert_eq!(read(&db, &family, "b", 40).as_deref(), Some("later"));
    assert_eq!(read(&db, &family, "c", 99), None);
    Ok(())
}

#[test]
fn what_has_no_commit_timestamp_says_so() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let (db, family) = open(&dir);
    let mut batch = WriteBatch::new();
    let id = esker::FamilyId::from(&family);
    batch.put_with_timestamp(id, b"k", &7u64.to_le_bytes(), b"v")?;
    told(
        db.write(&mut batch, &WriteOptions::default()),
        "Not implemented: Batch to commit includes timestamp assigned before locking",
    );
    db.base().close()?;
    drop((db, family));
    let mut options = Options::new().create_if_missing(true);
    options.family = FamilyOptions::default();
    let other = tempfile::tempdir().expect("a directory");
    let db = OptimisticTransactionDb::open(other.path(), options)?;
    let mut txn = db.begin();
    let unsupported = "Not implemented: timestamp not supported";
    told(txn.set_commit_timestamp(7), unsupported);
    told(txn.set_read_timestamp_for_validation(7), unsupported);
    Ok(())
}
