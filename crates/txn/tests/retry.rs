//! Closures as transactions: again after a conflict, undone after anything else, and the short
//! forms of writes past the transactions, which wait for locks.

use esker::{Error, ErrorKind, Options, Result, WriteBatch, WriteOptions};
use esker_txn::{
    LockTimeout, OptimisticTransactionDb, RetryOptions, TransactionDb, TransactionDbOptions,
    TransactionOptions,
};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

fn options() -> Options {
    Options::new().create_if_missing(true)
}

fn locking() -> Result<(tempfile::TempDir, TransactionDb)> {
    let dir = tempfile::tempdir()?;
    let at_once = TransactionDbOptions::default().lock_timeout(Duration::ZERO);
    let db = TransactionDb::open(dir.path(), options(), at_once)?;
    Ok((dir, db))
}

fn optimistic() -> Result<(tempfile::TempDir, OptimisticTransactionDb)> {
    let dir = tempfile::tempdir()?;
    let db = OptimisticTransactionDb::open(dir.path(), options())?;
    Ok((dir, db))
}

#[test]
fn a_conflict_runs_the_closure_again() -> Result<()> {
    let (_dir, db) = optimistic()?;
    let runs = Cell::new(0);
    db.transaction(|t| {
        runs.set(runs.get() + 1);
        t.put("key", "mine")?;
        if runs.get() < 4 {
            // Somebody else writes it before the commit.
            db.put("key", "theirs")?;
        }
        Ok(())
    })?;
    assert_eq!(runs.get(), 4);
    assert_eq!(db.get("key")?, Some(b"mine".to_vec()));
    Ok(())
}

#[test]
fn attempts_end_and_other_errors_are_given_at_once() -> Result<()> {
    let (_dir, db) = optimistic()?;
    for (kind, expected) in [
        (ErrorKind::Busy, 3),
        (ErrorKind::TryAgain, 3),
        (ErrorKind::Aborted, 1),
        (ErrorKind::TimedOut, 1),
    ] {
        let retry = RetryOptions {
            attempts: 3,
            ..RetryOptions::default()
        };
        let mut runs = 0;
        let failed = db.transaction_opt::<()>(&retry, |t| {
            runs += 1;
            t.put("key", "value")?;
            Err(Error::new(kind, "as the test wants"))
        });
        assert_eq!(failed.expect_err("it fails").kind(), kind);
        assert_eq!(runs, expected, "{kind:?}");
    }
    assert!(db.is_empty()?, "nothing of it is left");
    Ok(())
}

#[test]
fn counters_of_many_threads_lose_nothing() -> Result<()> {
    let (_dir, locks) = locking()?;
    let (_other, looks) = optimistic()?;
    let number =
        |v: Option<Vec<u8>>| v.map_or(0, |v| String::from_utf8_lossy(&v).parse().unwrap_or(0));
    let patient = RetryOptions {
        attempts: 100_000,
        longest_pause: Duration::from_millis(1),
        ..RetryOptions::default()
    };
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for _ in 0..50 {
                    let add = |t: &mut esker_txn::Transaction| {
                        // A lock that another holds is no conflict: it is waited for.
                        t.set_lock_timeout(LockTimeout::FOREVER);
                        let n: u64 = number(t.get_for_update("n")?);
                        t.put("n", (n + 1).to_string())
                    };
                    locks.transaction_opt(&patient, add).expect("it commits");
                    looks.transaction_opt(&patient, add).expect("it commits");
                }
            });
        }
    });
    assert_eq!(number(locks.get("n")?), 200);
    assert_eq!(number(looks.get("n")?), 200);
    Ok(())
}

#[test]
fn a_panic_undoes_it_and_frees_its_locks() -> Result<()> {
    let (_dir, db) = locking()?;
    let body = || {
        db.transaction::<()>(|t| {
            t.put("key", "value")?;
            panic!("as the test wants");
        })
    };
    assert!(catch_unwind(AssertUnwindSafe(body)).is_err());
    assert_eq!(db.get("key")?, None);
    db.put("key", "after")?;
    assert!(db.lock_status().is_empty());
    Ok(())
}

#[test]
fn no_short_form_writes_past_a_lock() -> Result<()> {
    let (_dir, db) = locking()?;
    let family = db.existing_family("default")?;
    let mut holder = db.begin_opt(WriteOptions::new(), &TransactionOptions::default());
    holder.put("k", "held")?;
    let mut batch = WriteBatch::new();
    batch.put("k", "v")?;
    let at = WriteOptions::new();
    let tries: Vec<(&str, Result<()>)> = vec![
        ("put", db.put("k", "v")),
        ("put_cf", db.put_cf(&family, "k", "v")),
        ("put_opt", db.put_opt(&family, "k", "v", &at)),
        ("put_entity", db.put_entity(&family, "k", &[("a", "b")])),
        ("delete", db.delete("k")),
        ("delete_cf", db.delete_cf(&family, "k")),
        ("delete_opt", db.delete_opt(&family, "k", &at)),
        ("single_delete", db.single_delete("k")),
        ("single_delete_cf", db.single_delete_cf(&family, "k")),
        ("single_delete_opt", db.single_delete_opt(&family, "k", &at)),
        ("merge", db.merge("k", "v")),
        ("merge_cf", db.merge_cf(&family, "k", "v")),
        ("merge_opt", db.merge_opt(&family, "k", "v", &at)),
        ("write", db.write(&mut batch, &at)),
        ("write_opt", db.write_opt(&mut batch, &at)),
        ("write_if", db.write_if(&mut batch, &at, || Ok(()))),
        ("delete_range_cf", db.delete_range_cf(&family, "a", "z")),
        (
            "delete_range_opt",
            db.delete_range_opt(&family, "a", "z", &at),
        ),
    ];
    for (name, done) in tries {
        let e = done.expect_err(name);
        let is_refused = matches!(e.kind(), ErrorKind::TimedOut | ErrorKind::NotSupported);
        assert!(is_refused, "{name}: {e}");
    }
    assert_eq!(db.get("k")?, None);
    holder.commit()?;
    assert_eq!(db.get("k")?, Some(b"held".to_vec()));
    Ok(())
}

#[test]
fn both_read_as_the_database_below() -> Result<()> {
    let (_dir, locks) = locking()?;
    let (_other, looks) = optimistic()?;
    for db in [&*locks, &*looks] {
        db.put("a", "1")?;
    }
    let shared = Arc::new(locks);
    assert_eq!(shared.range("a"..).count(), 1);
    assert_eq!(looks.snapshot().get("a")?, Some(b"1".to_vec()));
    assert!(looks.contains_key("a")? && !shared.is_empty()?);
    Ok(())
}
