//! Transactions in two phases, for the layer that makes transactions: prepared in the log, then
//! committed or rolled back.
//!
//! A prepared batch survives a crash (with `sync`, power loss), is visible to no reader, and needs
//! `allow_2pc` when the database is opened again.

use super::Db;
use crate::observe::OperationKind;
use crate::options::WriteOptions;
use esker_format::batch::WriteBatch;
use esker_status::Result;

impl Db {
    /// Writes `batch` into the log as the prepared transaction `name`. The name must not be in use.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, Options, WriteBatch, WriteOptions};
    ///
    /// let options = || Options::new().create_if_missing(true).set("allow_2pc", "true");
    /// let db = Db::open(dir.path(), options()?)?;
    /// let mut batch = WriteBatch::new();
    /// batch.put(b"key", b"value")?;
    /// db.prepare_transaction(b"first", &batch, &WriteOptions::default())?;
    /// assert_eq!(db.get("key")?, None);
    /// drop(db);
    ///
    /// let db = Db::open(dir.path(), options()?)?;
    /// let (name, batch) = db.take_prepared_transactions().remove(0);
    /// db.commit_transaction(&name, &batch, &WriteOptions::default())?;
    /// assert_eq!(db.get("key")?.as_deref(), Some(&b"value"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn prepare_transaction(
        &self,
        name: &[u8],
        batch: &WriteBatch,
        options: &WriteOptions,
    ) -> Result<()> {
        self.core().check_open_for_writes()?;
        self.core().writes.write_prepared(options, name, batch)
    }

    /// Commits the prepared transaction `name`, whose writes are `batch`, atomically.
    pub fn commit_transaction(
        &self,
        name: &[u8],
        batch: &WriteBatch,
        options: &WriteOptions,
    ) -> Result<()> {
        self.commit_prepared(name, None, batch, options)
    }

    /// As [`Db::commit_transaction`], with writes that were not prepared: those of `at_commit` come
    /// before those of `batch` and are in the same record of the log, so that a crash leaves both
    /// or neither.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, Options, WriteBatch, WriteOptions};
    ///
    /// let options = Options::new().create_if_missing(true).set("allow_2pc", "true")?;
    /// let db = Db::open(dir.path(), options)?;
    /// let (mut batch, mut at_commit) = (WriteBatch::new(), WriteBatch::new());
    /// batch.put(b"row", b"1")?;
    /// db.prepare_transaction(b"first", &batch, &WriteOptions::default())?;
    /// at_commit.put(b"position", b"42")?;
    /// db.commit_transaction_with(b"first", &at_commit, &batch, &WriteOptions::default())?;
    /// assert_eq!(db.get("position")?.as_deref(), Some(&b"42"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn commit_transaction_with(
        &self,
        name: &[u8],
        at_commit: &WriteBatch,
        batch: &WriteBatch,
        options: &WriteOptions,
    ) -> Result<()> {
        self.commit_prepared(name, Some(at_commit), batch, options)
    }

    fn commit_prepared(
        &self,
        name: &[u8],
        at_commit: Option<&WriteBatch>,
        batch: &WriteBatch,
        options: &WriteOptions,
    ) -> Result<()> {
        self.core().check_open_for_writes()?;
        let recorded = self.reads().operations.begin_write();
        let writes = &self.core().writes;
        let done = writes.write_committed(options, name, at_commit, batch);
        if let Some(start) = recorded {
            let family = || self.family_of(batch);
            (self.reads().operations).end(OperationKind::Write, start, family);
        }
        done
    }

    /// Rolls back the prepared transaction `name`.
    pub fn undo_transaction(&self, name: &[u8], options: &WriteOptions) -> Result<()> {
        self.core().check_open_for_writes()?;
        self.core().writes.write_undone(options, name)
    }

    /// The transactions that were prepared when the database was opened, by name; each is returned
    /// once. It stays prepared until it is committed or rolled back.
    pub fn take_prepared_transactions(&self) -> Vec<(Vec<u8>, WriteBatch)> {
        let found = self.core().writes.log.prepared.take_recovered();
        found.into_iter().collect()
    }
}
