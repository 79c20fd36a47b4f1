//! How a transaction ends: it is prepared, committed or rolled back.

use super::{Transaction, TxnMode, stamps};
use crate::errors;
use esker::{Error, Result, WriteBatch};

impl Transaction {
    /// The first phase of a commit in two phases: the changes are in the log under the
    /// transaction's name, and survive the process, until they are committed or rolled back. A
    /// prepared transaction that is dropped stays prepared; it comes back from
    /// [`crate::TransactionDb::prepared_transactions`] when the database is opened again.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let options = esker::Options::new().create_if_missing(true);
    /// # let db = esker_txn::TransactionDb::open(dir.path(), options, Default::default())?;
    /// let mut txn = db.begin();
    /// txn.set_name(b"transfer 1")?;
    /// txn.put("key", "value")?;
    /// txn.prepare()?;
    /// // The other databases of the transaction prepare meanwhile.
    /// txn.commit()?;
    /// assert!(db.contains_key("key")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prepare(&mut self) -> Result<()> {
        match &mut self.kind {
            TxnMode::Optimistic(_) => Err(Error::invalid_argument(
                "Two phase commit not supported for optimistic transactions.",
            )),
            TxnMode::Pessimistic(p) => {
                p.begin_prepare()?;
                let (db, options) = (&self.db, &self.write_options);
                let done = self.batch.with_batch_mut(|batch| {
                    stamps::stamp_for_prepare(db, batch)?;
                    db.prepare_transaction(p.name(), batch, options)
                });
                p.end_prepare(done.is_ok());
                done
            }
        }
    }

    /// The commit-time batch: changes that are not prepared, and that the commit of a prepared
    /// transaction writes with it, in the same record of the log. They come before those of the
    /// transaction, lock nothing and are read by nobody before. The end of the transaction empties
    /// the batch.
    ///
    /// A commit that was not prepared refuses what is in it. So does that of a database whose
    /// [`crate::WritePolicy`] is not `Committed`, unless the transaction has
    /// [`crate::TransactionOptions::use_only_the_last_commit_time_batch_for_recovery`].
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// let options = esker::Options::new().create_if_missing(true);
    /// let db = esker_txn::TransactionDb::open(dir.path(), options, Default::default())?;
    /// let mut txn = db.begin();
    /// txn.set_name(b"first")?;
    /// txn.put("row", "1")?;
    /// txn.prepare()?;
    /// txn.commit_time_batch().put("position of the log", "42")?;
    /// txn.commit()?;
    /// assert_eq!(db.get("position of the log")?.as_deref(), Some(&b"42"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn commit_time_batch(&mut self) -> &mut WriteBatch {
        self.at_commit.get_or_insert_with(WriteBatch::new)
    }

    /// Writes the changes, all or nothing. `Busy` when somebody else wrote a key that the
    /// transaction depends on; `TryAgain` when that cannot be told from memory. A pessimistic
    /// transaction is over in any case, an optimistic one only when it succeeds.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let options = esker::Options::new().create_if_missing(true);
    /// # let db = esker_txn::OptimisticTransactionDb::open(dir.path(), options)?;
    /// let (mut first, mut second) = (db.begin(), db.begin());
    /// first.put("key", "1")?;
    /// second.put("key", "2")?;
    /// first.commit()?;
    /// assert_eq!(second.commit().expect_err("a conflict").kind(), esker::ErrorKind::Busy);
    /// # Ok(())
    /// # }
    /// ```
    pub fn commit(&mut self) -> Result<()> {
        let at_commit = self.at_commit.as_ref().filter(|b| !b.body().is_empty());
        let has_changes = at_commit.is_some_and(|b| b.count() > 0);
        match &mut self.kind {
            TxnMode::Optimistic(_) if has_changes => Err(errors::commit_time_batch()),
            TxnMode::Optimistic(o) => {
                o.commit(&self.db, &self.tracked, &self.batch, &self.write_options)?;
                self.clear();
                Ok(())
            }
            TxnMode::Pessimistic(p) => {
                p.begin_commit(has_changes)?;
                let (db, at) = (&self.db, self.stamps.commit);
                let stamped = self
                    .batch
                    .with_batch_mut(|batch| stamps::stamp(db, batch, at));
                if p.is_prepared() {
                    let (name, options) = (p.name(), &self.write_options);
                    stamped?;
                    // After a failure it is still prepared, and can be committed again.
                    self.batch.with_batch(|batch| match at_commit {
                        None => db.commit_transaction(name, batch, options),
                        Some(extra) => db.commit_transaction_with(name, extra, batch, options),
                    })?;
                    p.end_commit(true);
                    self.clear();
                    return Ok(());
                }
                let done = stamped.and_then(|()| self.batch.write(db, &self.write_options));
                p.end_commit(done.is_ok());
                self.clear();
                done
            }
        }
    }

    /// Undoes everything. The transaction can be used again, unless it was prepared.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let options = esker::Options::new().create_if_missing(true);
    /// # let db = esker_txn::TransactionDb::open(dir.path(), options, Default::default())?;
    /// let mut txn = db.begin();
    /// txn.put("key", "value")?;
    /// txn.rollback()?;
    /// db.put("key", "other")?;
    /// assert_eq!(txn.get("key")?.as_deref(), Some(&b"other"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn rollback(&mut self) -> Result<()> {
        if let TxnMode::Pessimistic(p) = &mut self.kind {
            p.check_rollback()?;
            if p.is_prepared() {
                self.db.undo_transaction(p.name(), &self.write_options)?;
                p.end_rollback();
            }
        }
        self.clear();
        Ok(())
    }
}
