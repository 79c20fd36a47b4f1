//! Pessimistic transactions: locks, time limits, expiry, deadlocks, save points, and counters under
//! contention.

use esker::{
    ErrorKind, FamilyOptions, Options, ReadOptions, Result, Subcode, WriteBatch, WriteOptions,
};
use esker_txn::{
    Transaction, TransactionDb, TransactionDbOptions, TransactionOptions, TransactionState,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

fn open(dir: &tempfile::TempDir, transactions: TransactionDbOptions) -> TransactionDb {
    let options = Options::new().create_if_missing(true);
    TransactionDb::open(dir.path(), options, transactions).expect("opens")
}

fn no_wait() -> TransactionDbOptions {
    TransactionDbOptions {
        transaction_lock_timeout: 0,
        default_lock_timeout: 0,
        ..Default::default()
    }
}

fn locked_out<T: std::fmt::Debug>(result: Result<T>) {
    let e = result.expect_err("the key is locked");
    assert_eq!(
        (e.kind(), e.subcode()),
        (ErrorKind::TimedOut, Subcode::LockTimeout)
    );
    assert_eq!(
        e.to_string(),
        "Operation timed out: Timeout waiting to lock key"
    );
}

fn begin(db: &TransactionDb, options: TransactionOptions) -> Transaction {
    db.begin_opt(WriteOptions::default(), &options)
}

#[test]
fn locks_keep_others_out_until_the_end() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(&dir, no_wait());
    let family = db.base().default_family_handle();
    let write = WriteOptions::default();
    let (mut a, mut b) = (db.begin(), db.begin());
    a.put("k", "1")?;
    locked_out(b.put("k", "2"));
    locked_out(b.get_for_update("k"));
    locked_out(db.put("k", "3"));
    locked_out(db.delete_opt(&family, "k", &write));
    let mut batch = WriteBatch::new();
    batch.put(b"free", b"1")?;
    batch.put(b"k", b"4")?;
    locked_out(db.write(&mut batch, &write));
    assert_eq!(db.base().get("free")?, None);
    assert_eq!(db.lock_status().len(), 1);
    assert_eq!(db.lock_status()[0].holders, [a.id()]);
    assert_eq!(a.state(), TransactionState::Started);
    a.commit()?;
    assert_eq!(a.state(), TransactionState::Committed);
    assert_eq!(
        a.commit().expect_err("over").to_string(),
        "Invalid argument: Transaction has already been committed."
    );
    assert_eq!(
        a.rollback().expect_err("over").to_string(),
        "Invalid argument: This transaction has already been committed."
    );
    assert!(db.lock_status().is_empty());
    b.put("k", "2")?;
    b.rollback()?;
    db.write(&mut batch, &write)?;
    b.put("k", "5")?;
    drop(b);
    db.put("k", "6")?;
    assert_eq!(db.base().get("k")?.as_deref(), Some(&b"6"[..]));
    let mut range = WriteBatch::new();
    range.delete_range(b"a", b"b")?;
    assert!(db.write(&mut range, &write).is_err());
    assert!(db.lock_status().is_empty());
    Ok(())
}

#[test]
fn shared_locks_and_upgrades() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(&dir, no_wait());
    let family = db.base().default_family_handle();
    let read = ReadOptions::default();
    let (mut a, mut b) = (db.begin(), db.begin());
    a.get_for_update_opt(&family, "k", &read, None, false, true)?;
    b.get_for_update_opt(&family, "k", &read, None, false, true)?;
    assert_eq!(db.lock_status()[0].holders.len(), 2);
    locked_out(a.put("k", "1"));
    b.undo_get_for_update(&family, "k");
    a.put("k", "1")?;
    assert!(db.lock_status()[0].exclusive);
    locked_out(b.get_for_update_opt(&family, "k", &read, None, false, true));
    a.undo_get_for_update(&family, "k");
    assert_eq!(db.lock_status().len(), 1);
    a.commit()?;
    assert!(db.lock_status().is_empty());
    Ok(())
}

#[test]
fn a_snapshot_makes_earlier_writes_conflicts() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(&dir, no_wait());
    let family = db.base().default_family_handle();
    let mut txn = begin(
        &db,
        TransactionOptions {
            set_snapshot: true,
            ..Default::default()
        },
    );
    db.put("k", "other")?;
    let e = txn.put("k", "1").expect_err("written since");
    assert_eq!(e.to_string(), "Resource busy: ");
    assert!(db.lock_status().is_empty());
    txn.put_untracked(&family, "k", "2")?;
    let e = txn.put("k", "3").expect_err("written since");
    assert_eq!(e.kind(), ErrorKind::Busy);
    assert_eq!(db.lock_status().len(), 1);
    txn.commit()?;
    // After a flush the tables tell.
    let mut txn = begin(
        &db,
        TransactionOptions {
            set_snapshot: true,
            ..Default::default()
        },
    );
    db.put("t", "other")?;
    db.base().flush()?;
    assert_eq!(
        txn.put("t", "1").expect_err("written since").kind(),
        ErrorKind::Busy
    );
    txn.set_snapshot();
    txn.put("t", "1")?;
    txn.commit()
}

#[test]
fn save_points_give_back_the_locks_taken_after_them() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(&dir, no_wait());
    let mut txn = db.begin();
    txn.put("a", "1")?;
    txn.set_save_point();
    txn.put("a", "2")?;
    txn.put("b", "2")?;
    txn.get_for_update("c")?;
    assert_eq!(db.lock_status().len(), 3);
    txn.rollback_to_save_point()?;
    let held: Vec<_> = db.lock_status().into_iter().map(|l| l.key).collect();
    assert_eq!(held, [b"a"]);
    db.put("b", "other")?;
    locked_out(db.put("a", "other"));
    txn.commit()?;
    assert_eq!(db.base().get("a")?.as_deref(), Some(&b"1"[..]));
    Ok(())
}

#[test]
fn waits_end_with_the_lock_or_with_their_time() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(
        &dir,
        TransactionDbOptions {
            transaction_lock_timeout: 60_000,
            ..Default::default()
        },
    );
    let mut a = db.begin();
    a.put("k", "a")?;
    let mut impatient = begin(
        &db,
        TransactionOptions {
            lock_timeout: 20,
            ..Default::default()
        },
    );
    locked_out(impatient.put("k", "b"));
    let waiter = {
        let db = db.clone();
        std::thread::spawn(move || -> Result<()> {
            let mut b = db.begin();
            b.put("k", "b")?;
            b.commit()
        })
    };
    std::thread::sleep(Duration::from_millis(50));
    a.commit()?;
    waiter.join().expect("no panic")?;
    assert_eq!(db.base().get("k")?.as_deref(), Some(&b"b"[..]));
    Ok(())
}

#[test]
fn readers_who_wait_get_the_lock_together() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(
        &dir,
        TransactionDbOptions {
            transaction_lock_timeout: 120_000,
            ..Default::default()
        },
    );
    let family = db.base().default_family_handle();
    let mut writer = db.begin();
    writer.put("k", "v")?;
    // Everybody holds the shared lock at once, or nobody passes.
    let all = Arc::new(Barrier::new(4));
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let (db, family, all) = (db.clone(), family.clone(), Arc::clone(&all));
            std::thread::spawn(move || -> Result<()> {
                let mut txn = db.begin();
                txn.lock_for_update(&family, "k", false, true)?;
                all.wait();
                txn.rollback()
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(100));
    writer.commit()?;
    for t in readers {
        t.join().expect("no panic")?;
    }
    assert!(db.lock_status().is_empty());
    Ok(())
}

#[test]
fn expired_transactions_lose_their_locks() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(
        &dir,
        TransactionDbOptions {
            transaction_lock_timeout: 60_000,
            ..Default::default()
        },
    );
    let mut a = begin(
        &db,
        TransactionOptions {
            expiration: 30,
            ..Default::default()
        },
    );
    a.put("k", "a")?;
    let mut b = db.begin();
    b.put("k", "b")?;
    assert_eq!(a.state(), TransactionState::LocksStolen);
    assert_eq!(
        a.commit().expect_err("too late").to_string(),
        "Operation expired: "
    );
    drop(a);
    assert_eq!(db.lock_status()[0].holders, [b.id()]);
    b.commit()?;
    assert_eq!(db.base().get("k")?.as_deref(), Some(&b"b"[..]));
    // One that ends in time is not disturbed.
    let mut c = begin(
        &db,
        TransactionOptions {
            expiration: 600_000,
            ..Default::default()
        },
    );
    c.put("k", "c")?;
    c.commit()?;
    assert!(db.lock_status().is_empty());
    Ok(())
}

#[test]
fn rings_of_waits_are_found() -> Result<()> {
    const RING: usize = 3;
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(
        &dir,
        TransactionDbOptions {
            transaction_lock_timeout: 120_000,
            ..Default::default()
        },
    );
    let barrier = Arc::new(Barrier::new(RING));
    let deadlocks = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..RING)
        .map(|t| {
            let (db, barrier, deadlocks) =
                (db.clone(), Arc::clone(&barrier), Arc::clone(&deadlocks));
            std::thread::spawn(move || -> Result<()> {
                let options = TransactionOptions {
                    deadlock_detect: true,
                    ..Default::default()
                };
                let mut txn = begin(&db, options);
                txn.put(format!("k{t}"), "v")?;
                barrier.wait();
                match txn.put(format!("k{}", (t + 1) % RING), "v") {
                    Ok(()) => txn.commit(),
                    Err(e) => {
                        assert_eq!(
                            (e.kind(), e.subcode()),
                            (ErrorKind::Busy, Subcode::Deadlock)
                        );
                        assert_eq!(e.to_string(), "Resource busy: Deadlock");
                        deadlocks.fetch_add(1, Ordering::Relaxed);
                        txn.rollback()
                    }
                }
            })
        })
        .collect();
    for t in threads {
        t.join().expect("no panic")?;
    }
    assert_eq!(deadlocks.load(Ordering::Relaxed), 1);
    let found = db.deadlocks();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].path.len(), RING);
    assert!(!found[0].limit_exceeded);
    assert!(db.lock_status().is_empty());
    db.set_max_num_deadlocks(0);
    assert!(db.deadlocks().is_empty());
    Ok(())
}

#[test]
fn locks_are_limited_in_number() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(
        &dir,
        TransactionDbOptions {
            max_num_locks: 3,
            ..no_wait()
        },
    );
    let mut txn = db.begin();
    for k in ["a", "b", "c", "a"] {
        txn.put(k, "v")?;
    }
    let e = txn.put("d", "v").expect_err("too many");
    assert_eq!(e.subcode(), Subcode::LockLimit);
    assert_eq!(
        e.to_string(),
        "Operation aborted: Failed to acquire lock due to max_num_locks limit"
    );
    txn.commit()?;
    db.put("d", "v")?;
    assert_eq!(db.base().get("c")?.as_deref(), Some(&b"v"[..]));
    Ok(())
}

#[test]
fn names_prepare_and_limits_on_size() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(&dir, no_wait());
    let (mut a, mut b) = (db.begin(), db.begin());
    assert_eq!(
        a.prepare().expect_err("no name").to_string(),
        "Invalid argument: Cannot prepare a transaction that has not been named."
    );
    a.set_name(b"one")?;
    assert_eq!(a.name(), b"one");
    assert_eq!(
        b.set_name(b"one").expect_err("taken").to_string(),
        "Invalid argument: Duplicate txn name one"
    );
    assert!(a.set_name(b"two").is_err());
    assert!(b.set_name(b"").is_err());
    a.put("k", "v")?;
    a.commit()?;
    b.set_name(b"one")?;
    let must = TransactionOptions {
        skip_prepare: false,
        ..Default::default()
    };
    let mut c = begin(&db, must);
    let e = c.commit().expect_err("not prepared");
    assert_eq!(e.to_string(), "Invalid argument: Txn not prepared");
    let small = TransactionOptions {
        max_write_batch_size: 30,
        ..Default::default()
    };
    let mut d = begin(&db, small);
    d.put("1", "small")?;
    let e = d.put("2", vec![b'x'; 100]).expect_err("too large");
    assert_eq!(e.subcode(), Subcode::MemoryLimit);
    let family = db.base().default_family_handle();
    assert!(d.put_assume_tracked(&family, "new", "v").is_err());
    d.put_assume_tracked(&family, "1", "v")?;
    Ok(())
}

#[test]
fn families_have_locks_of_their_own() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(&dir, no_wait());
    let other = db.create_family("other", FamilyOptions::default())?;
    let (mut a, mut b) = (db.begin(), db.begin());
    a.put("k", "default")?;
    b.put_cf(&other, "k", "other")?;
    locked_out(a.put_cf(&other, "k", "x"));
    a.commit()?;
    b.commit()?;
    db.drop_family(&other)?;
    assert!(db.lock_status().is_empty());
    Ok(())
}

#[test]
fn no_update_is_lost_and_nobody_starves() -> Result<()> {
    const THREADS: u64 = 4;
    const EACH: u64 = 100;
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(
        &dir,
        TransactionDbOptions {
            transaction_lock_timeout: 120_000,
            ..Default::default()
        },
    );
    let threads: Vec<_> = (0..THREADS)
        .map(|t| {
            let db = db.clone();
            std::thread::spawn(move || -> Result<()> {
                let options = TransactionOptions {
                    deadlock_detect: true,
                    ..Default::default()
                };
                let mut txn = begin(&db, options.clone());
                for i in 0..EACH {
                    loop {
                        let keys = [format!("n{}", (t + i) % 3), format!("n{}", i % 3)];
                        let done = keys.iter().try_for_each(|k| -> Result<()> {
                            let old = txn.get_for_update(k)?.unwrap_or_default();
                            let n: u64 = String::from_utf8_lossy(&old).parse().unwrap_or(0);
                            txn.put(k, (n + 1).to_string())
                        });
                        match done.and_then(|()| txn.commit()) {
                            Ok(()) => break,
                            Err(e) => {
                                assert_eq!(e.subcode(), Subcode::Deadlock, "{e}");
                                txn.rollback()?;
                            }
                        }
                    }
                    db.begin_again(&mut txn, WriteOptions::default(), &options);
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
    assert!(db.lock_status().is_empty());
    Ok(())
}

#[test]
fn who_comes_again_and_again_does_not_pass_who_waits() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(
        &dir,
        TransactionDbOptions {
            transaction_lock_timeout: 120_000,
            default_lock_timeout: 120_000,
            ..Default::default()
        },
    );
    let stop = Arc::new(AtomicBool::new(false));
    let greedy: Vec<_> = (0..2)
        .map(|_| {
            let (db, stop) = (db.clone(), Arc::clone(&stop));
            std::thread::spawn(move || -> Result<()> {
                while !stop.load(Ordering::Relaxed) {
                    db.put("k", "greedy")?;
                }
                Ok(())
            })
        })
        .collect();
    for n in 0..50 {
        let mut txn = db.begin();
        txn.put("k", n.to_string())?;
        txn.commit()?;
    }
    stop.store(true, Ordering::Relaxed);
    for t in greedy {
        t.join().expect("no panic")?;
    }
    assert!(db.lock_status().is_empty());
    Ok(())
}

#[test]
fn commits_in_two_phases_survive_a_restart() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let open = || {
        let options = Options::new().create_if_missing(true);
        let transactions = TransactionDbOptions {
            default_lock_timeout: 0,
            transaction_lock_timeout: 0,
            ..TransactionDbOptions::default()
        };
        TransactionDb::open(dir.path(), options, transactions)
    };
    let db = open()?;
    let mut unnamed = db.begin();
    unnamed.put("k0", "v")?;
    let error = unnamed.prepare().expect_err("it has no name");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    unnamed.set_name(b"t0")?;
    unnamed.prepare()?;
    assert_eq!(unnamed.state(), TransactionState::Prepared);
    let again = unnamed.prepare().expect_err("it is prepared");
    assert!(
        again.to_string().contains("already been prepared"),
        "{again}"
    );
    assert_eq!(db.base().get("k0")?, None);
    unnamed.commit()?;
    assert_eq!(db.base().get("k0")?.as_deref(), Some(&b"v"[..]));
    for (name, key) in [("t1", "k1"), ("t2", "k2")] {
        let mut txn = db.begin();
        txn.put(key, "v")?;
        txn.set_name(name.as_bytes())?;
        txn.prepare()?;
        db.put(key, "other").expect_err("it is locked");
    }
    drop((unnamed, db));

    let db = open()?;
    db.put("k1", "other").expect_err("it is locked again");
    assert!(db.begin().set_name(b"t1").is_err(), "the name is taken");
    for mut txn in db.prepared_transactions()? {
        assert_eq!(txn.state(), TransactionState::Prepared);
        if txn.name() == b"t1" {
            txn.commit()?;
        } else {
            txn.rollback()?;
            assert_eq!(txn.state(), TransactionState::RolledBack);
        }
    }
    assert!(db.prepared_transactions()?.is_empty());
    assert!(db.lock_status().is_empty());
    db.put("k2", "free")?;
    drop(db);

    let db = open()?;
    assert!(db.prepared_transactions()?.is_empty());
    assert_eq!(db.base().get("k1")?.as_deref(), Some(&b"v"[..]));
    assert_eq!(db.base().get("k2")?.as_deref(), Some(&b"free"[..]));
    Ok(())
}

#[test]
fn prepared_transactions_that_wrote_one_key_past_its_lock_come_back() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(&dir, no_wait());
    let past_locks = TransactionOptions {
        skip_concurrency_control: true,
        ..Default::default()
    };
    for name in ["t1", "t2"] {
        let mut txn = db.begin_opt(WriteOptions::default(), &past_locks);
        txn.put("counter", name)?;
        txn.put(name, "v")?;
        txn.set_name(name.as_bytes())?;
        txn.prepare()?;
    }
    drop(db);

    let db = open(&dir, no_wait());
    locked_out(db.put("counter", "other"));
    let mut found = db.prepared_transactions()?;
    assert_eq!(found.len(), 2);
    found.sort_by(|a, b| a.name().cmp(b.name()));
    // A found transaction locks as others do: it gets no lock that another one holds.
    let mut other = db.begin();
    other.put("held", "v")?;
    locked_out(found[0].get_for_update("held").map(drop));
    other.rollback()?;
    for txn in &mut found {
        locked_out(db.put(txn.name(), "other"));
        txn.commit()?;
    }
    assert!(db.lock_status().is_empty());
    assert_eq!(db.base().get("counter")?.as_deref(), Some(&b"t2"[..]));
    assert_eq!(db.base().get("t1")?.as_deref(), Some(&b"v"[..]));
    Ok(())
}
