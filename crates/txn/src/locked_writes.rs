//! The short forms of writes past the transactions. They hide those of the database below, which
//! take no locks.

use crate::transaction_db::TransactionDb;
use esker::{Error, FamilyHandle, FamilyOptions, Result, WriteBatch, WriteOptions};
use esker_format::wide_column::Column;
use std::borrow::BorrowMut;

#[cold]
fn no_ranges() -> Error {
    Error::not_supported("a range cannot be locked")
        .with_hint("delete the keys one by one, or in `base()`, which takes no locks")
}

impl TransactionDb {
    /// Sets `key` to `value` in `family`, when no transaction holds the key.
    pub fn put_cf(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.put_opt(family, key, value, &WriteOptions::default())
    }

    /// Sets `key` in `family` to an entity, when no transaction holds the key.
    pub fn put_entity<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        columns: &[(N, V)],
    ) -> Result<()> {
        let columns: Vec<Column<'_>> = columns
            .iter()
            .map(|(name, value)| Column::new(name.as_ref(), value.as_ref()))
            .collect();
        self.put_entity_opt(family, key, &columns, &WriteOptions::default())
    }

    /// Deletes `key` in the default family, when no transaction holds the key.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker_txn::{TransactionDb, TransactionDbOptions};
    ///
    /// let options = esker::Options::new().create_if_missing(true);
    /// let at_once = std::time::Duration::ZERO;
    /// let transactions = TransactionDbOptions::default().lock_timeout(at_once);
    /// let db = TransactionDb::open(dir.path(), options, transactions)?;
    /// let mut holder = db.begin();
    /// holder.put("key", "value")?;
    /// assert!(db.delete("key").is_err(), "a transaction holds it");
    /// holder.commit()?;
    /// db.delete("key")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_cf(&self.base().default_family_handle(), key)
    }

    /// Deletes `key` in `family`, when no transaction holds the key.
    pub fn delete_cf(&self, family: &FamilyHandle, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_opt(family, key, &WriteOptions::default())
    }

    /// Deletes a key of the default family that was put once, when no transaction holds it.
    pub fn single_delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.single_delete_cf(&self.base().default_family_handle(), key)
    }

    /// Deletes a key of `family` that was put once, when no transaction holds it.
    pub fn single_delete_cf(&self, family: &FamilyHandle, key: impl AsRef<[u8]>) -> Result<()> {
        self.single_delete_opt(family, key, &WriteOptions::default())
    }

    /// Adds a merge operand to `key` in the default family, when no transaction holds the key.
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_cf(&self.base().default_family_handle(), key, operand)
    }

    /// Adds a merge operand to `key` in `family`, when no transaction holds the key.
    pub fn merge_cf(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.merge_opt(family, key, operand, &WriteOptions::default())
    }

    /// `NotSupported`: a range cannot be locked.
    pub fn delete_range_cf(
        &self,
        _family: &FamilyHandle,
        _begin: impl AsRef<[u8]>,
        _end: impl AsRef<[u8]>,
    ) -> Result<()> {
        Err(no_ranges())
    }

    /// `NotSupported`: a range cannot be locked.
    pub fn delete_range_opt(
        &self,
        _family: &FamilyHandle,
        _begin: impl AsRef<[u8]>,
        _end: impl AsRef<[u8]>,
        _options: &WriteOptions,
    ) -> Result<()> {
        Err(no_ranges())
    }

    /// Writes a batch when no transaction holds one of its keys: see [`TransactionDb::write`].
    pub fn write_opt(
        &self,
        mut batch: impl BorrowMut<WriteBatch>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.write(batch.borrow_mut(), options)
    }

    /// Writes a batch if `check` finds nothing against it, when no transaction holds one of its
    /// keys: see [`esker::Db::write_if`].
    pub fn write_if(
        &self,
        batch: &mut WriteBatch,
        options: &WriteOptions,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.with_locks(batch, |db, batch| db.write_if(batch, options, check))
    }

    /// Sets `key` to `value` as of `timestamp`, when no transaction holds the key.
    pub fn put_with_timestamp(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let key = key.as_ref();
        self.locked(family, key, |db| {
            db.put_with_timestamp(family, key, timestamp, value, options)
        })
    }

    /// Deletes `key` as of `timestamp`, when no transaction holds the key.
    pub fn delete_with_timestamp(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let key = key.as_ref();
        self.locked(family, key, |db| {
            db.delete_with_timestamp(family, key, timestamp, options)
        })
    }

    /// Deletes, as of `timestamp`, a key that was put once, when no transaction holds it.
    pub fn single_delete_with_timestamp(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let key = key.as_ref();
        self.locked(family, key, |db| {
            db.single_delete_with_timestamp(family, key, timestamp, options)
        })
    }

    /// Adds a merge operand to `key` as of `timestamp`, when no transaction holds the key.
    pub fn merge_with_timestamp(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let key = key.as_ref();
        self.locked(family, key, |db| {
            db.merge_with_timestamp(family, key, timestamp, operand, options)
        })
    }

    /// `NotSupported`: a range cannot be locked.
    pub fn delete_range_with_timestamp(
        &self,
        _family: &FamilyHandle,
        _begin: impl AsRef<[u8]>,
        _end: impl AsRef<[u8]>,
        _timestamp: impl AsRef<[u8]>,
        _options: &WriteOptions,
    ) -> Result<()> {
        Err(no_ranges())
    }

    /// The family called `name`, if it exists. A handle alone: an [`esker::Family`] writes without
    /// locks.
    pub fn family(&self, name: &str) -> Option<FamilyHandle> {
        self.base().family(name).map(FamilyHandle::from)
    }

    /// The family called `name`; the error names it when it does not exist.
    pub fn existing_family(&self, name: &str) -> Result<FamilyHandle> {
        self.base().existing_family(name).map(FamilyHandle::from)
    }

    /// The family called `name`, which is created with `options` when it does not exist.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker_txn::TransactionDb;
    ///
    /// let options = esker::Options::new().create_if_missing(true);
    /// let db = TransactionDb::open(dir.path(), options, Default::default())?;
    /// let users = db.family_or_create("users", Default::default())?;
    /// db.transaction(|t| t.put_cf(&users, "ann", "1"))?;
    /// assert!(db.contains_key_cf(&users, "ann")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn family_or_create(&self, name: &str, options: FamilyOptions) -> Result<FamilyHandle> {
        if let Some(family) = self.family(name) {
            return Ok(family);
        }
        match self.create_family(name, options) {
            Ok(made) => Ok(made),
            // Another thread may have made it meanwhile.
            Err(e) => self.family(name).ok_or(e),
        }
    }
}
