//! Optimistic transactions: conflicts, snapshots, save points, and counters that many threads
//! raise.

use esker::{
    Db, ErrorKind, FamilyDescriptor, FamilyOptions, Options, ReadOptions, Result, WriteOptions,
};
use esker_txn::{
    LockBuckets, OptimisticTransactionDb, OptimisticTransactionDbOptions,
    OptimisticTransactionOptions, Transaction, ValidatePolicy,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn options() -> Options {
    Options::new()
        .create_if_missing(true)
        .set("merge_operator", "uint64add")
        .expect("a known operator")
}

fn open(dir: &tempfile::TempDir, policy: ValidatePolicy) -> OptimisticTransactionDb {
    let transactions = OptimisticTransactionDbOptions {
        validate_policy: policy,
        occ_lock_buckets: 16,
        shared_lock_buckets: None,
    };
    let families = vec![FamilyDescriptor::new("default", options().family)];
    OptimisticTransactionDb::open_families(dir.path(), options(), families, &transactions)
        .expect("opens")
}

fn busy(result: Result<()>) {
    let e = result.expect_err("a conflict");
    assert_eq!(e.kind(), ErrorKind::Busy);
    assert_eq!(e.to_string(), "Resource busy: ");
}

const BOTH: [ValidatePolicy; 2] = [ValidatePolicy::Serial, ValidatePolicy::Parallel];

#[test]
fn a_write_by_others_is_a_conflict_and_the_transaction_can_go_on() -> Result<()> {
    for policy in BOTH {
        let dir = tempfile::tempdir().expect("a directory");
        let db = open(&dir, policy);
        assert_eq!(db.validate_policy(), policy);
        let mut txn = db.begin();
        txn.put("a", "1")?;
        txn.put("b", "1")?;
        db.base().put("a", "other")?;
        busy(txn.commit());
        assert_eq!(txn.get("b")?.as_deref(), Some(&b"1"[..]));
        assert_eq!(db.base().get("b")?, None);
        txn.rollback()?;
        assert_eq!(txn.get("b")?, None);
        txn.put("a", "2")?;
        txn.commit()?;
        assert_eq!(db.base().get("a")?.as_deref(), Some(&b"2"[..]));
        // The same transaction again, after its commit.
        txn.put("a", "3")?;
        txn.commit()?;
        assert_eq!(db.base().get("a")?.as_deref(), Some(&b"3"[..]));
    }
    Ok(())
}

#[test]
fn reads_for_update_and_untracked_writes() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(&dir, ValidatePolicy::Parallel);
    let family = db.base().default_family_handle();
    db.base().put("r", "0")?;
    let mut txn = db.begin();
    assert_eq!(txn.get_for_update("r")?.as_deref(), Some(&b"0"[..]));
    txn.put("w", "1")?;
    db.base().put("r", "1")?;
    busy(txn.commit());
    txn.undo_get_for_update(&family, "r");
    txn.commit()?;
    let mut txn = db.begin();
    txn.put_untracked(&family, "u", "1")?;
    txn.merge_untracked(&family, "n", 1u64.to_le_bytes())?;
    txn.delete_untracked(&family, "w")?;
    for k in ["u", "n", "w"] {
        db.base().put(k, 7u64.to_le_bytes())?;
    }
    txn.commit()?;
    assert_eq!(db.base().get("u")?.as_deref(), Some(&b"1"[..]));
    assert_eq!(
        db.base().get("n")?.as_deref(),
        Some(&8u64.to_le_bytes()[..])
    );
    assert_eq!(db.base().get("w")?, None);
    Ok(())
}

#[test]
fn conflicts_count_from_the_snapshot_on() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(&dir, ValidatePolicy::Parallel);
    let with_snapshot = OptimisticTransactionOptions { set_snapshot: true };
    let mut txn = db.begin_opt(WriteOptions::default(), with_snapshot);
    db.base().put("a", "other")?;
    txn.put("a", "1")?;
    busy(txn.commit());
    let mut txn = db.begin();
    db.base().put("a", "other")?;
    txn.put("a", "1")?;
    txn.commit()?;
    let mut txn = db.begin();
    let seen = Arc::new(AtomicU64::new(0));
    let tell = Arc::clone(&seen);
    txn.set_snapshot_on_next_operation_and_notify(move |s| {
        tell.store(s.sequence(), Ordering::Relaxed);
    });
    assert!(txn.snapshot().is_none());
    db.base().put("b", "other")?;
    txn.put("x", "1")?;
    let taken = txn.snapshot().expect("taken by the put").clone();
    assert_eq!(seen.load(Ordering::Relaxed), taken.sequence());
    db.base().put("b", "later")?;
    let family = db.base().default_family_handle();
    let old = txn.get_opt(&family, "b", &ReadOptions::default(), Some(&taken))?;
    assert_eq!(old.as_deref(), Some(&b"other"[..]));
    txn.put("b", "mine")?;
    busy(txn.commit());
    txn.rollback()?;
    txn.clear_snapshot();
    txn.put("b", "mine")?;
    txn.commit()
}

#[test]
fn what_memory_cannot_tell_is_tried_again() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), options())?;
    let db = OptimisticTransactionDb::over(db, &OptimisticTransactionDbOptions::default());
    db.base().put("a", "0")?;
    let mut txn = db.begin();
    txn.put("a", "1")?;
    let since = db.base().latest_sequence_number();
    db.base().put("b", "0")?;
    let earliest = db.base().latest_sequence_number();
    db.base().flush()?;
    let e = txn.commit().expect_err("memory does not reach back");
    assert_eq!(
        e.to_string(),
        format!(
            "Operation failed. Try again.: Transaction could not check for conflicts for operation at \
             SequenceNumber {since} as the MemTable only contains changes newer than SequenceNumber \
             {earliest}.  Increasing the value of the max_write_buffer_size_to_maintain option could \
             reduce the frequency of this error."
        )
    );
    // With the history that opening it for transactions keeps, a flush does no harm.
    let dir = tempfile::tempdir().expect("a directory");
    let db = OptimisticTransactionDb::open(dir.path(), options())?;
    let mut txn = db.begin();
    let mut other = db.begin();
    txn.put("a", "1")?;
    other.put("b", "1")?;
    db.base().put("b", "0")?;
    db.base().flush()?;
    txn.commit()?;
    busy(other.commit());
    Ok(())
}

#[test]
fn save_points_forget_what_was_touched_after_them() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(&dir, ValidatePolicy::Parallel);
    let mut txn = db.begin();
    assert_eq!(
        txn.rollback_to_save_point().expect_err("none").to_string(),
        "NotFound: "
    );
    txn.put("a", "1")?;
    txn.set_save_point();
    txn.put("a", "2")?;
    txn.put("b", "2")?;
    txn.set_save_point();
    txn.put("c", "3")?;
    txn.pop_save_point()?;
    assert_eq!((txn.num_puts(), txn.num_keys()), (4, 3));
    txn.rollback_to_save_point()?;
    assert_eq!((txn.num_puts(), txn.num_keys()), (1, 1));
    assert!(txn.pop_save_point().is_err());
    assert_eq!(txn.get("a")?.as_deref(), Some(&b"1"[..]));
    assert_eq!(txn.get("b")?, None);
    db.base().put("b", "other")?;
    db.base().put("c", "other")?;
    txn.commit()?;
    Ok(())
}

#[test]
fn families_many_keys_and_batches() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = OptimisticTransactionDb::open(dir.path(), options())?;
    let other = db.create_family("other", FamilyOptions::default())?;
    let default = db.base().default_family_handle();
    db.base().put_cf(&other, "a", "base")?;
    let mut txn = db.begin();
    txn.put_cf(&other, "b", "1")?;
    txn.put("a", "0")?;
    txn.log_data(b"note")?;
    let keys = [
        (&other, "a"),
        (&other, "b"),
        (&default, "a"),
        (&default, "b"),
    ];
    let read: Vec<_> = txn
        .multi_get_opt(&keys, &ReadOptions::default(), None)
        .into_iter()
        .map(|v| v.map(|v| v.map(Vec::from)))
        .collect::<Result<_>>()?;
    let expected = [
        Some(b"base".to_vec()),
        Some(b"1".to_vec()),
        Some(b"0".to_vec()),
        None,
    ];
    assert_eq!(read, expected);
    let mut it = txn.iter_opt(&other, ReadOptions::default(), None);
    it.seek_to_last();
    assert_eq!(it.entry(), Some((&b"b"[..], &b"1"[..])));
    it.prev();
    assert_eq!(it.entry(), Some((&b"a"[..], &b"base"[..])));
    let copy = txn.indexed_batch().to_batch();
    let mut again = db.begin();
    again.rebuild_from_batch(&copy)?;
    assert_eq!(again.changes(&other)?, txn.changes(&other)?);
    txn.commit()?;
    busy(again.commit());
    let mut txn = db.begin();
    let read = txn.multi_get_for_update_opt(&keys, &ReadOptions::default(), None);
    assert!(read.iter().all(Result::is_ok));
    db.base().delete_cf(&other, "b")?;
    busy(txn.commit());
    let mut range = esker::WriteBatch::new();
    range.delete_range(b"a", b"b")?;
    assert_eq!(
        db.write(&mut range, &WriteOptions::default())
            .expect_err("refused")
            .kind(),
        ErrorKind::NotSupported
    );
    assert!(txn.prepare().is_err());
    assert!(txn.set_name(b"name").is_err());
    Ok(())
}

#[test]
fn a_transaction_begins_again_in_its_old_memory() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(&dir, ValidatePolicy::Parallel);
    let mut txn = db.begin();
    txn.put("a", "1")?;
    txn.set_snapshot();
    txn.set_save_point();
    db.begin_again(
        &mut txn,
        WriteOptions::default(),
        OptimisticTransactionOptions::default(),
    );
    assert_eq!((txn.num_puts(), txn.num_keys()), (0, 0));
    assert!(txn.snapshot().is_none());
    assert!(txn.rollback_to_save_point().is_err());
    db.base().put("a", "other")?;
    txn.commit()?;
    assert_eq!(db.base().get("a")?.as_deref(), Some(&b"other"[..]));
    Ok(())
}

/// Adds one to the number under `key`.
fn raise(txn: &mut Transaction, key: &str) -> Result<()> {
    let old = txn.get_for_update(key)?.unwrap_or_default();
    let n: u64 = String::from_utf8_lossy(&old).parse().unwrap_or(0);
    txn.put(key, (n + 1).to_string())
}

#[test]
fn no_update_is_lost_with_many_threads() -> Result<()> {
    const THREADS: u64 = 4;
    const EACH: u64 = 150;
    for policy in BOTH {
        let dir = tempfile::tempdir().expect("a directory");
        let db = open(&dir, policy);
        let threads: Vec<_> = (0..THREADS)
            .map(|t| {
                let db = db.clone();
                std::thread::spawn(move || -> Result<()> {
                    let mut txn = db.begin();
                    for i in 0..EACH {
                        loop {
                            // Two counters in one transaction, in different orders.
                            let keys = [format!("n{}", (t + i) % 3), format!("n{}", i % 3)];
                            let done = keys.iter().try_for_each(|k| raise(&mut txn, k));
                            match done.and_then(|()| txn.commit()) {
                                Ok(()) => break,
                                Err(e) => {
                                    let kind = e.kind();
                                    assert!(
                                        matches!(kind, ErrorKind::Busy | ErrorKind::TryAgain),
                                        "{e}"
                                    );
                                    txn.rollback()?;
                                }
                            }
                        }
                        if i % 50 == 49 {
                            db.base().flush()?;
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        for t in threads {
            t.join().expect("no panic")?;
        }
        let mut sum = 0;
        for n in 0..3 {
            let value = db.base().get(format!("n{n}"))?.expect("was raised");
            sum += String::from_utf8_lossy(&value)
                .parse::<u64>()
                .expect("a number");
        }
        assert_eq!(sum, 2 * THREADS * EACH);
    }
    Ok(())
}

#[test]
fn write_skew_needs_reads_for_update() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(&dir, ValidatePolicy::Serial);
    db.base().put("x", "1")?;
    db.base().put("y", "1")?;
    let (mut a, mut b) = (db.begin(), db.begin());
    a.get_for_update("x")?;
    a.get_for_update("y")?;
    b.get_for_update("x")?;
    b.get_for_update("y")?;
    a.put("x", "0")?;
    b.put("y", "0")?;
    a.commit()?;
    busy(b.commit());
    Ok(())
}

#[test]
fn buckets_may_be_shared() {
    let buckets = LockBuckets::new(64, true);
    assert_eq!(buckets.count(), 64);
    assert!(buckets.approximate_memory_usage() >= 64 * 64);
    let dense = LockBuckets::new(0, false);
    assert_eq!(dense.count(), 1);
    assert!(dense.approximate_memory_usage() < 64);
    let dirs = [tempfile::tempdir(), tempfile::tempdir()].map(|d| d.expect("a directory"));
    let transactions = OptimisticTransactionDbOptions {
        shared_lock_buckets: Some(buckets),
        ..Default::default()
    };
    for dir in &dirs {
        let db = Db::open(dir.path(), options()).expect("opens");
        let db = OptimisticTransactionDb::over(db, &transactions);
        let mut txn = db.begin();
        txn.put("k", "v").expect("fits");
        txn.commit().expect("no conflict");
    }
}
