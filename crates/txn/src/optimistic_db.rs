//! The database with optimistic transactions: opening it, beginning transactions, and writes past
//! them.

use crate::optimistic::{LockBuckets, Optimistic};
use crate::retry::{self, RetryOptions};
use crate::transaction::{Transaction, TxnMode};
use esker::{Db, Error, FamilyDescriptor, FamilyHandle, Options, Result, WriteBatch, WriteOptions};
use std::borrow::BorrowMut;
use std::ops::Deref;
use std::path::Path;

/// How commits are kept apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValidatePolicy {
    /// One after the other, inside the engine's write.
    Serial = 0,
    /// By locks on buckets of keys.
    #[default]
    Parallel = 1,
}

/// How an [`OptimisticTransactionDb`] works.
#[derive(Clone, Debug)]
pub struct OptimisticTransactionDbOptions {
    /// How commits are kept apart.
    pub validate_policy: ValidatePolicy,
    /// How many buckets there are with parallel validation; at least 16.
    pub occ_lock_buckets: u32,
    /// Buckets that are shared with other databases, instead of own ones.
    pub shared_lock_buckets: Option<LockBuckets>,
}

impl Default for OptimisticTransactionDbOptions {
    fn default() -> Self {
        OptimisticTransactionDbOptions {
            validate_policy: ValidatePolicy::Parallel,
            occ_lock_buckets: 1 << 20,
            shared_lock_buckets: None,
        }
    }
}

/// How an optimistic transaction begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OptimisticTransactionOptions {
    /// Takes a snapshot at once: a key that others write after the beginning is a conflict.
    pub set_snapshot: bool,
}

/// A database with optimistic transactions. Cheap to clone: clones are the same database.
///
/// It reads and writes as the [`Db`] below it does: a write past the transactions is a conflict for
/// those that touched the key.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// use esker_txn::OptimisticTransactionDb;
///
/// let options = esker::Options::new().create_if_missing(true);
/// let db = OptimisticTransactionDb::open(dir.path(), options)?;
/// let mut txn = db.begin();
/// txn.put("key", "1")?;
/// db.put("key", "2")?;
/// assert_eq!(txn.commit().expect_err("a conflict").kind(), esker::ErrorKind::Busy);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct OptimisticTransactionDb {
    db: Db,
    /// `None` with serial validation.
    buckets: Option<LockBuckets>,
}

impl std::fmt::Debug for OptimisticTransactionDb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OptimisticTransactionDb")
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}

impl Deref for OptimisticTransactionDb {
    type Target = Db;
    fn deref(&self) -> &Db {
        &self.db
    }
}

/// Flushed memtables stay for the look for conflicts, unless the options say how many.
pub(crate) fn keep_history(mut families: Vec<FamilyDescriptor>) -> Vec<FamilyDescriptor> {
    for family in &mut families {
        if family.options.max_write_buffer_size_to_maintain == 0 {
            family.options.max_write_buffer_size_to_maintain = -1;
        }
    }
    families
}

impl OptimisticTransactionDb {
    /// Opens the database at `path` with the default family.
    pub fn open(path: impl AsRef<Path>, mut options: Options) -> Result<Self> {
        if options.family.max_write_buffer_size_to_maintain == 0 {
            options.family.max_write_buffer_size_to_maintain = -1;
        }
        Ok(Self::over(Db::open(path, options)?, &Default::default()))
    }

    /// Opens the database at `path` with these families.
    pub fn open_families(
        path: impl AsRef<Path>,
        options: Options,
        families: Vec<FamilyDescriptor>,
        transactions: &OptimisticTransactionDbOptions,
    ) -> Result<Self> {
        let db = Db::open_families(path, options, keep_history(families))?;
        Ok(Self::over(db, transactions))
    }

    /// Puts transactions on an open database. With `max_write_buffer_size_to_maintain` at 0 in a
    /// family, a flush makes commits that began before it fail with `TryAgain`.
    pub fn over(db: Db, options: &OptimisticTransactionDbOptions) -> Self {
        let buckets = match options.validate_policy {
            ValidatePolicy::Serial => None,
            ValidatePolicy::Parallel => {
                let own = || LockBuckets::new(options.occ_lock_buckets.max(16) as usize, false);
                Some(options.shared_lock_buckets.clone().unwrap_or_else(own))
            }
        };
        OptimisticTransactionDb { db, buckets }
    }

    /// The database under it. What is written to it directly is a conflict for transactions that
    /// touched the key.
    pub fn base(&self) -> &Db {
        &self.db
    }

    /// How commits are kept apart.
    pub fn validate_policy(&self) -> ValidatePolicy {
        match self.buckets {
            Some(_) => ValidatePolicy::Parallel,
            None => ValidatePolicy::Serial,
        }
    }

    /// Creates a family, with the flushed memtables that the look for conflicts needs.
    pub fn create_family(
        &self,
        name: &str,
        mut options: esker::FamilyOptions,
    ) -> Result<FamilyHandle> {
        if options.max_write_buffer_size_to_maintain == 0 {
            options.max_write_buffer_size_to_maintain = -1;
        }
        self.db.create_family(name, options)
    }

    fn kind(&self) -> TxnMode {
        TxnMode::Optimistic(Optimistic {
            buckets: self.buckets.clone(),
        })
    }

    /// Begins a transaction.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let options = esker::Options::new().create_if_missing(true);
    /// # let db = esker_txn::OptimisticTransactionDb::open(dir.path(), options)?;
    /// let mut txn = db.begin();
    /// txn.put("key", "value")?;
    /// txn.commit()?;
    /// assert!(db.contains_key("key")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn begin(&self) -> Transaction {
        self.begin_opt(
            WriteOptions::default(),
            OptimisticTransactionOptions::default(),
        )
    }

    /// Begins a transaction that writes with `write_options`.
    pub fn begin_opt(
        &self,
        write_options: WriteOptions,
        options: OptimisticTransactionOptions,
    ) -> Transaction {
        let mut txn = Transaction::new(self.db.clone(), self.kind(), write_options);
        if options.set_snapshot {
            txn.set_snapshot();
        }
        txn
    }

    /// Runs `body` as a transaction and commits it; again, with a pause that grows, after `Busy`
    /// and `TryAgain`, a hundred times at most. What else goes wrong undoes it, as does a panic.
    ///
    /// A key counts as touched when it is written, or read with
    /// [`Transaction::get_for_update`].
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker_txn::OptimisticTransactionDb;
    ///
    /// let options = esker::Options::new().create_if_missing(true);
    /// let db = OptimisticTransactionDb::open(dir.path(), options)?;
    /// let add_one = || db.transaction(|t| {
    ///     let before = t.get_for_update("n")?.map_or(0, |v| v.len());
    ///     t.put("n", "i".repeat(before + 1))
    /// });
    /// std::thread::scope(|s| {
    ///     (0..4).for_each(|_| drop(s.spawn(add_one)));
    /// });
    /// assert_eq!(db.get("n")?.as_deref(), Some(&b"iiii"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn transaction<T>(&self, body: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T> {
        self.transaction_opt(&RetryOptions::default(), body)
    }

    /// Runs `body` as a transaction and commits it, as often as `retry` says.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let options = esker::Options::new().create_if_missing(true);
    /// # let db = esker_txn::OptimisticTransactionDb::open(dir.path(), options)?;
    /// use esker_txn::RetryOptions;
    ///
    /// let twice = RetryOptions { attempts: 2, ..Default::default() };
    /// let mut runs = 0;
    /// db.transaction_opt(&twice, |txn| {
    ///     runs += 1;
    ///     txn.get_for_update("key")?;
    ///     if runs == 1 {
    ///         db.put("key", "somebody else")?;
    ///     }
    ///     txn.put("key", "value")
    /// })?;
    /// assert_eq!(runs, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn transaction_opt<T>(
        &self,
        retry: &RetryOptions,
        body: impl FnMut(&mut Transaction) -> Result<T>,
    ) -> Result<T> {
        retry::run(&self.db, retry, || self.begin(), body)
    }

    /// Begins a transaction in the memory of an old one, which is undone.
    pub fn begin_again(
        &self,
        old: &mut Transaction,
        write_options: WriteOptions,
        options: OptimisticTransactionOptions,
    ) {
        old.restart(self.db.clone(), self.kind(), write_options);
        if options.set_snapshot {
            old.set_snapshot();
        }
    }

    /// Writes a batch past the transactions. `NotSupported` when it deletes a range: transactions
    /// do not see that their keys are in it.
    pub fn write(
        &self,
        mut batch: impl BorrowMut<WriteBatch>,
        options: &WriteOptions,
    ) -> Result<()> {
        let batch = batch.borrow_mut();
        if batch.has_delete_range() {
            return Err(Error::not_supported(""));
        }
        self.db.write_opt(batch, options)
    }
}
