//! The database with pessimistic transactions: opening it, beginning transactions, and writes past
//! them.

use crate::optimistic_db::keep_history;
use crate::pessimistic::{
    DeadlockPath, KeyLock, LockTable, NEXT_ID, Pessimistic, PreparedTransaction, Request,
    TransactionDbOptions, TransactionDbState, TransactionOptions,
};
use crate::ranks;
use crate::retry::{self, RetryOptions};
use crate::transaction::{Transaction, TxnMode};
use esker::{
    Db, Error, ErrorKind, FamilyDescriptor, FamilyHandle, FamilyOptions, Options, Result,
    WriteBatch, WriteOptions,
};
use esker_format::batch::Record;
use esker_format::timestamp;
use esker_format::wide_column::Column;
use esker_sync::atomic::Ordering;
use esker_sync::{Arc, Mutex};
use std::borrow::BorrowMut;
use std::collections::{BTreeSet, HashMap};
use std::ops::Deref;
use std::path::Path;

/// A database whose transactions lock the keys they touch. Cheap to clone: clones are the same
/// database.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// use esker_txn::{TransactionDb, TransactionDbOptions};
///
/// let options = esker::Options::new().create_if_missing(true);
/// let transactions = TransactionDbOptions { transaction_lock_timeout: 0, ..Default::default() };
/// let db = TransactionDb::open(dir.path(), options, transactions)?;
/// let mut first = db.begin();
/// let mut second = db.begin();
/// first.put("k", "1")?;
/// let refused = second.put("k", "2").expect_err("the key is locked");
/// assert_eq!(refused.to_string(), "Operation timed out: Timeout waiting to lock key");
/// first.commit()?;
/// second.put("k", "2")?;
/// second.commit()?;
/// # Ok(())
/// # }
/// ```
///
/// It reads as the [`Db`] below it does; its own writes wait for the locks of transactions, while
/// those of [`TransactionDb::base`] take none.
#[derive(Clone)]
pub struct TransactionDb(Arc<TransactionDbState>);

impl std::fmt::Debug for TransactionDb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TransactionDb")
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}

impl Deref for TransactionDb {
    type Target = Db;
    fn deref(&self) -> &Db {
        &self.0.db
    }
}

impl TransactionDb {
    /// Opens the database at `path` with the default family.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker_txn::{TransactionDb, TransactionDbOptions};
    /// use std::time::Duration;
    ///
    /// let options = esker::Options::new().create_if_missing(true);
    /// let transactions = TransactionDbOptions::default().lock_timeout(Duration::from_millis(100));
    /// let db = TransactionDb::open(dir.path(), options, transactions)?;
    /// db.put("key", "value")?;
    /// assert!(db.contains_key("key")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn open(
        path: impl AsRef<Path>,
        mut options: Options,
        transactions: TransactionDbOptions,
    ) -> Result<Self> {
        if options.family.max_write_buffer_size_to_maintain == 0 {
            options.family.max_write_buffer_size_to_maintain = -1;
        }
        options.db.allow_2pc = true;
        let db = Db::open(path, options)?;
        Self::with_prepared(db, transactions)
    }

    /// Opens the database at `path` with these families.
    pub fn open_families(
        path: impl AsRef<Path>,
        mut options: Options,
        families: Vec<FamilyDescriptor>,
        transactions: TransactionDbOptions,
    ) -> Result<Self> {
        options.db.allow_2pc = true;
        let db = Db::open_families(path, options, keep_history(families))?;
        Self::with_prepared(db, transactions)
    }

    /// Puts transactions on a database that was just opened; what was prepared before holds its
    /// locks again.
    fn with_prepared(db: Db, options: TransactionDbOptions) -> Result<Self> {
        let this = Self::over(db, options);
        let shared = &this.0;
        for (name, batch) in shared.db.take_prepared_transactions() {
            let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
            let request = Request {
                transaction: id,
                timeout_us: 0,
                ..this.request()
            };
            for (family, key) in keys_of(&batch, &shared.db)? {
                match shared.locks.lock(&request, family, &key, true) {
                    // Another one holds it: both wrote it without locks, or by the batch alone.
                    Err(e) if e.kind() == ErrorKind::TimedOut => {}
                    locked => locked?,
                }
            }
            shared.register(&name, id)?;
            shared
                .found
                .lock()
                .push(PreparedTransaction { name, batch, id });
        }
        Ok(this)
    }

    /// The transactions that were prepared when the database was opened and have not been given
    /// out: each is to be committed or rolled back. Their keys are locked. A key that two of them
    /// wrote past its lock is locked until the first of them ends.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker_txn::TransactionDb;
    ///
    /// let options = esker::Options::new().create_if_missing(true);
    /// let db = TransactionDb::open(dir.path(), options.clone(), Default::default())?;
    /// let mut txn = db.begin();
    /// txn.set_name(b"transfer 1")?;
    /// txn.put("key", "value")?;
    /// txn.prepare()?;
    /// drop(txn);
    /// drop(db);
    ///
    /// let db = TransactionDb::open(dir.path(), options, Default::default())?;
    /// for mut txn in db.prepared_transactions()? {
    ///     assert_eq!(txn.name(), b"transfer 1");
    ///     txn.commit()?;
    /// }
    /// assert!(db.contains_key("key")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prepared_transactions(&self) -> Result<Vec<Transaction>> {
        let found = std::mem::take(&mut *self.0.found.lock());
        let restored = found.into_iter().map(|found| {
            let kind = TxnMode::Pessimistic(Pessimistic::found(&self.0, found.name, found.id));
            let options = WriteOptions::default();
            let mut txn = Transaction::new(self.0.db.clone(), kind, options);
            txn.restore(&found.batch).map(|()| txn)
        });
        restored.collect()
    }

    /// Puts transactions on an open database.
    pub fn over(db: Db, options: TransactionDbOptions) -> Self {
        let locks = LockTable::new(
            options.num_stripes,
            options.max_num_locks,
            options.max_num_deadlocks as usize,
            Arc::clone(&db.env().clock),
            options.lock_waits.clone(),
        );
        TransactionDb(Arc::new(TransactionDbState {
            db,
            options,
            locks,
            names: Mutex::new(ranks::NAMES, HashMap::new()),
            found: Mutex::new(ranks::NAMES, Vec::new()),
        }))
    }

    /// The database under it. What is written to it directly takes no locks.
    pub fn base(&self) -> &Db {
        &self.0.db
    }

    /// The options it was opened with.
    pub fn options(&self) -> &TransactionDbOptions {
        &self.0.options
    }

    /// Begins a transaction.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let options = esker::Options::new().create_if_missing(true);
    /// # let db = esker_txn::TransactionDb::open(dir.path(), options, Default::default())?;
    /// let mut txn = db.begin();
    /// txn.put("key", "value")?;
    /// assert_eq!(db.get("key")?, None, "others do not see it");
    /// txn.commit()?;
    /// assert!(db.contains_key("key")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn begin(&self) -> Transaction {
        self.begin_opt(WriteOptions::default(), &TransactionOptions::default())
    }

    /// Begins a transaction that writes with `write_options`.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let options = esker::Options::new().create_if_missing(true);
    /// # let db = esker_txn::TransactionDb::open(dir.path(), options, Default::default())?;
    /// use esker::WriteOptions;
    /// use esker_txn::TransactionOptions;
    ///
    /// let options = TransactionOptions { set_snapshot: true, ..Default::default() };
    /// let mut txn = db.begin_opt(WriteOptions::synced(), &options);
    /// db.put("key", "written since")?;
    /// assert_eq!(txn.put("key", "2").expect_err("a conflict").kind(), esker::ErrorKind::Busy);
    /// # Ok(())
    /// # }
    /// ```
    pub fn begin_opt(
        &self,
        write_options: WriteOptions,
        options: &TransactionOptions,
    ) -> Transaction {
        let kind = TxnMode::Pessimistic(Pessimistic::new(&self.0, options));
        let mut txn = Transaction::new(self.0.db.clone(), kind, write_options);
        start(&mut txn, options);
        txn
    }

    /// Runs `body` as a transaction and commits it; again, with a pause that grows, after `Busy`
    /// and `TryAgain`, a hundred times at most. What else goes wrong undoes it, as does a panic.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker_txn::TransactionDb;
    ///
    /// let options = esker::Options::new().create_if_missing(true);
    /// let db = TransactionDb::open(dir.path(), options, Default::default())?;
    /// db.put("from", "10")?;
    /// let moved = db.transaction(|t| {
    ///     let found = t.get_for_update("from")?;
    ///     t.put("to", found.as_deref().unwrap_or_default())?;
    ///     t.delete("from")?;
    ///     Ok(found.is_some())
    /// })?;
    /// assert!(moved);
    /// assert_eq!(db.get("to")?.as_deref(), Some(&b"10"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn transaction<T>(&self, body: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T> {
        self.transaction_opt(&RetryOptions::default(), body)
    }

    /// Runs `body` as a transaction and commits it, as often as `retry` says.
    pub fn transaction_opt<T>(
        &self,
        retry: &RetryOptions,
        body: impl FnMut(&mut Transaction) -> Result<T>,
    ) -> Result<T> {
        retry::run(&self.0.db, retry, || self.begin(), body)
    }

    /// Begins a transaction in the memory of an old one, which is undone.
    pub fn begin_again(
        &self,
        old: &mut Transaction,
        write_options: WriteOptions,
        options: &TransactionOptions,
    ) {
        let kind = TxnMode::Pessimistic(Pessimistic::new(&self.0, options));
        old.restart(self.0.db.clone(), kind, write_options);
        start(old, options);
    }

    /// Creates a family, with the flushed memtables that the look for conflicts needs.
    pub fn create_family(&self, name: &str, mut options: FamilyOptions) -> Result<FamilyHandle> {
        if options.max_write_buffer_size_to_maintain == 0 {
            options.max_write_buffer_size_to_maintain = -1;
        }
        self.0.db.create_family(name, options)
    }

    /// Drops a family and forgets its locks.
    pub fn drop_family(&self, family: &FamilyHandle) -> Result<()> {
        self.0.db.drop_family(family)?;
        self.0.locks.forget_family(family.id());
        Ok(())
    }

    /// The locks that are held, by family and key.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let options = esker::Options::new().create_if_missing(true);
    /// # let db = esker_txn::TransactionDb::open(dir.path(), options, Default::default())?;
    /// let mut txn = db.begin();
    /// txn.put("key", "value")?;
    /// let locks = db.lock_status();
    /// assert_eq!((&locks[0].key[..], &locks[0].holders), (&b"key"[..], &vec![txn.id()]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn lock_status(&self) -> Vec<KeyLock> {
        self.0.locks.all()
    }

    /// The lock that the transaction of this number waits for, with those who hold it; `None` when
    /// it waits for none. Looks through all locks.
    pub fn waiting_for(&self, transaction: u64) -> Option<KeyLock> {
        self.0.locks.waited_for_by(transaction)
    }

    /// The deadlocks that were found last, the latest first.
    pub fn deadlocks(&self) -> Vec<DeadlockPath> {
        self.0.locks.waits.found()
    }

    /// Remembers this many deadlocks from now on.
    pub fn set_max_num_deadlocks(&self, max: u32) {
        self.0.locks.waits.set_found_max(max as usize);
    }

    /// How a write past the transactions asks for its locks.
    fn request(&self) -> Request {
        Request {
            transaction: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            expires_us: 0,
            timeout_us: self.0.options.default_lock_timeout.saturating_mul(1000),
            detect_depth: None,
        }
    }

    /// Writes under the lock of `key`.
    pub(crate) fn locked<R>(
        &self,
        family: &FamilyHandle,
        key: &[u8],
        write: impl FnOnce(&Db) -> Result<R>,
    ) -> Result<R> {
        let request = self.request();
        let locks = &self.0.locks;
        locks.lock(&request, family.id(), key, true)?;
        let done = write(&self.0.db);
        locks.unlock(request.transaction, family.id(), key);
        done
    }

    /// Sets `key` to `value` in `family`, when no transaction holds the key.
    pub fn put_opt(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let key = key.as_ref();
        self.locked(family, key, |db| db.put_opt(family, key, value, options))
    }

    /// Sets `key` to `value` in the default family, when no transaction holds the key.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let options = esker::Options::new().create_if_missing(true);
    /// # let db = esker_txn::TransactionDb::open(dir.path(), options, Default::default())?;
    /// db.put("key", "value")?;
    /// assert_eq!(db.get("key")?.as_deref(), Some(&b"value"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let family = self.0.db.default_family_handle();
        self.put_opt(&family, key, value, &WriteOptions::default())
    }

    /// Sets `key` in `family` to an entity, when no transaction holds the key.
    pub fn put_entity_opt(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        columns: &[Column<'_>],
        options: &WriteOptions,
    ) -> Result<()> {
        let key = key.as_ref();
        let columns: Vec<_> = columns.iter().map(|c| (c.name, c.value)).collect();
        self.locked(family, key, |db| {
            db.put_entity_opt(family, key, &columns, options)
        })
    }

    /// Adds a merge operand to `key` in `family`, when no transaction holds the key.
    pub fn merge_opt(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let key = key.as_ref();
        self.locked(family, key, |db| {
            db.merge_opt(family, key, operand, options)
        })
    }

    /// Deletes `key` in `family`, when no transaction holds the key.
    pub fn delete_opt(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let key = key.as_ref();
        self.locked(family, key, |db| db.delete_opt(family, key, options))
    }

    /// Deletes a key of `family` that was put once, when no transaction holds it.
    pub fn single_delete_opt(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let key = key.as_ref();
        self.locked(family, key, |db| db.single_delete_opt(family, key, options))
    }

    /// `NotSupported`: a range cannot be locked.
    pub fn delete_range(&self) -> Result<()> {
        Err(Error::not_supported(""))
    }

    /// Writes a batch when no transaction holds one of its keys. Range deletions are refused,
    /// unless `skip_concurrency_control` is set: a range cannot be locked.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let options = esker::Options::new().create_if_missing(true);
    /// # let db = esker_txn::TransactionDb::open(dir.path(), options, Default::default())?;
    /// let mut batch = esker::WriteBatch::new();
    /// batch.put("a", "1")?;
    /// batch.put("b", "2")?;
    /// db.write(batch, &Default::default())?;
    /// assert!(db.contains_key("a")? && db.contains_key("b")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn write(
        &self,
        mut batch: impl BorrowMut<WriteBatch>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.with_locks(batch.borrow_mut(), |db, batch| db.write_opt(batch, options))
    }

    /// Writes a batch under the locks of its keys.
    pub(crate) fn with_locks(
        &self,
        batch: &mut WriteBatch,
        write: impl FnOnce(&Db, &mut WriteBatch) -> Result<()>,
    ) -> Result<()> {
        let shared = &self.0;
        if shared.options.skip_concurrency_control {
            return write(&shared.db, batch);
        }
        if batch.has_timestamps() {
            return Err(Error::not_supported(
                "Batch to commit includes timestamp assigned before locking",
            ));
        }
        let keys = keys_of(batch, &shared.db)?;
        let request = self.request();
        // In one order, so that two batches never wait for each other in a ring.
        let mut held: Vec<&(u32, Vec<u8>)> = Vec::with_capacity(keys.len());
        let locked = keys.iter().try_for_each(|at| {
            shared.locks.lock(&request, at.0, &at.1, true)?;
            held.push(at);
            Ok(())
        });
        let done = locked.and_then(|()| write(&shared.db, batch));
        for (family, key) in held {
            shared.locks.unlock(request.transaction, *family, key);
        }
        done
    }
}

fn start(txn: &mut Transaction, options: &TransactionOptions) {
    txn.batch.set_max_bytes(options.max_write_batch_size);
    if options.set_snapshot {
        txn.set_snapshot();
    }
}

/// The keys that a batch changes, without timestamps.
fn keys_of(batch: &WriteBatch, db: &Db) -> Result<BTreeSet<(u32, Vec<u8>)>> {
    let mut keys = BTreeSet::new();
    for record in batch.records() {
        match record? {
            Record::Put { family, key, .. }
            | Record::PutEntity { family, key, .. }
            | Record::Merge { family, key, .. }
            | Record::TimedPut { family, key, .. }
            | Record::BlobIndex { family, key, .. }
            | Record::Delete { family, key }
            | Record::SingleDelete { family, key } => {
                let known = db.family_by_id(family.0);
                let size = known.map_or(0, |f| f.order().timestamp_size());
                keys.insert((family.0, timestamp::bare(key, size).to_vec()));
            }
            Record::DeleteRange { .. } => {
                return Err(Error::invalid_argument("DeleteRangeCF not implemented"));
            }
            _ => {}
        }
    }
    Ok(keys)
}
