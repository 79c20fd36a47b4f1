//! The batch that the commit of a prepared transaction writes with it.

use esker::{ErrorKind, Options, Result, WriteOptions};
use esker_txn::{
    OptimisticTransactionDb, Transaction, TransactionDb, TransactionDbOptions, TransactionOptions,
    TransactionState, WritePolicy,
};
use std::path::Path;

fn open(dir: &Path, policy: WritePolicy) -> TransactionDb {
    let options = Options::new().create_if_missing(true);
    let transactions = TransactionDbOptions {
        write_policy: policy,
        transaction_lock_timeout: 0,
        default_lock_timeout: 0,
        ..Default::default()
    };
    TransactionDb::open(dir, options, transactions).expect("opens")
}

fn named(db: &TransactionDb, name: &str, options: &TransactionOptions) -> Result<Transaction> {
    let mut txn = db.begin_opt(WriteOptions::default(), options);
    txn.set_name(name.as_bytes())?;
    txn.put("row", name)?;
    Ok(txn)
}

fn text(db: &TransactionDb, key: &str) -> Option<String> {
    let found = db.get(key).expect("reads")?;
    Some(String::from_utf8_lossy(&found).into_owned())
}

#[test]
fn it_comes_with_the_commit_and_before_it() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(dir.path(), WritePolicy::Committed);
    let mut txn = named(&db, "one", &TransactionOptions::default())?;
    txn.commit_time_batch().put("position", "1")?;
    // What comes first is overwritten by what was prepared.
    txn.commit_time_batch().put("row", "at commit")?;
    txn.prepare()?;
    txn.commit_time_batch().put("added", "1")?;
    assert_eq!(text(&db, "position"), None);
    assert_eq!(txn.get("position")?, None);
    // It locks nothing.
    db.put("position", "0")?;
    let before = db.latest_sequence_number();
    txn.commit()?;
    assert_eq!(db.latest_sequence_number(), before + 4);
    assert_eq!(text(&db, "position").as_deref(), Some("1"));
    assert_eq!(text(&db, "added").as_deref(), Some("1"));
    assert_eq!(text(&db, "row").as_deref(), Some("one"));
    assert!(txn.commit_time_batch().is_empty(), "it is used once");
    drop((txn, db));
    let db = open(dir.path(), WritePolicy::Committed);
    assert_eq!(text(&db, "position").as_deref(), Some("1"));
    assert_eq!(text(&db, "row").as_deref(), Some("one"));
    Ok(())
}

#[test]
fn a_commit_without_preparation_refuses_it_and_goes_on() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(dir.path(), WritePolicy::Committed);
    let expiring = TransactionOptions {
        expiration: 60_000,
        ..Default::default()
    };
    for options in [TransactionOptions::default(), expiring] {
        let mut txn = db.begin_opt(WriteOptions::default(), &options);
        txn.put("k", "v")?;
        txn.commit_time_batch().put("lost", "1")?;
        let refused = txn.commit().expect_err("it was not prepared");
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        assert!(refused.to_string().contains("will not be committed"));
        assert_eq!(txn.state(), TransactionState::Started);
        assert_eq!(text(&db, "k"), None);
        txn.commit_time_batch().clear();
        txn.commit_time_batch().log_data(b"a note is no change")?;
        txn.commit()?;
        assert_eq!(text(&db, "k").as_deref(), Some("v"));
        db.delete("k")?;
    }
    // What was undone leaves nothing of it.
    let mut txn = named(&db, "undone", &TransactionOptions::default())?;
    txn.prepare()?;
    txn.commit_time_batch().put("lost", "1")?;
    txn.rollback()?;
    assert!(txn.commit_time_batch().is_empty());
    assert_eq!(text(&db, "lost"), None);
    Ok(())
}

#[test]
fn optimistic_transactions_have_none() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options::new().create_if_missing(true);
    let db = OptimisticTransactionDb::open(dir.path(), options)?;
    let mut txn = db.begin();
    txn.put("k", "v")?;
    txn.commit_time_batch().put("lost", "1")?;
    let refused = txn.commit().expect_err("nothing would write it");
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    txn.commit_time_batch().clear();
    txn.commit()
}

#[test]
fn other_policies_want_to_know_what_it_is_for() -> Result<()> {
    for policy in [WritePolicy::Prepared, WritePolicy::Unprepared] {
        let dir = tempfile::tempdir().expect("a directory");
        let db = open(dir.path(), policy);
        let mut txn = named(&db, "one", &TransactionOptions::default())?;
        txn.prepare()?;
        txn.commit_time_batch().put("position", "1")?;
        let refused = txn.commit().expect_err("the option is not set");
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        assert_eq!(txn.state(), TransactionState::Prepared);
        txn.rollback()?;
        drop(txn);
        let latest = TransactionOptions {
            use_only_the_last_commit_time_batch_for_recovery: true,
            ..Default::default()
        };
        let mut txn = named(&db, "two", &latest)?;
        txn.prepare()?;
        txn.commit_time_batch().put("position", "2")?;
        txn.commit()?;
        drop((txn, db));
        let db = open(dir.path(), policy);
        assert_eq!(text(&db, "position").as_deref(), Some("2"));
        assert_eq!(text(&db, "row").as_deref(), Some("two"));
    }
    Ok(())
}

#[test]
fn a_commit_that_fails_keeps_it() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(dir.path(), WritePolicy::Committed);
    let mut txn = named(&db, "one", &TransactionOptions::default())?;
    txn.prepare()?;
    // No operator merges this.
    txn.commit_time_batch().merge("position", "1")?;
    assert!(txn.commit().is_err());
    assert_eq!(txn.state(), TransactionState::Prepared);
    assert_eq!(txn.commit_time_batch().count(), 1);
    assert_eq!(text(&db, "row"), None);
    txn.commit_time_batch().clear();
    txn.commit_time_batch().put("position", "1")?;
    txn.commit()?;
    assert_eq!(text(&db, "position").as_deref(), Some("1"));
    assert_eq!(text(&db, "row").as_deref(), Some("one"));
    Ok(())
}
