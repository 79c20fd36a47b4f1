//! Writing through the facade.

use super::Db;
use crate::family::FamilyHandle;
use crate::observe::OperationKind;
use crate::options::WriteOptions;
use esker_format::batch::WriteBatch;
use esker_format::wide_column::Column;
use esker_status::{Error, Result};
use std::borrow::BorrowMut;
use std::cell::RefCell;

/// A thread keeps the memory of its batch up to this many bytes.
const KEPT: usize = 1 << 20;

thread_local! {
    /// The batch that single writes of this thread are put into.
    static SINGLE: RefCell<WriteBatch> = RefCell::new(WriteBatch::new());
}

impl Db {
    /// Sets `key` to `value` in the default family.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// db.put([0_u8, 255], vec![1; 1000])?;
    /// assert_eq!(db.get("key")?.as_deref(), Some(&b"value"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.single(&WriteOptions::default(), |b| {
            b.put(key.as_ref(), value.as_ref())
        })
    }

    /// Sets `key` to `value` in `family`.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.create_family("users", Default::default())?;
    /// db.put_cf(&users, "ann", "1")?;
    /// assert!(db.contains_key_cf(&users, "ann")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn put_cf(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.put_opt(family, key, value, &WriteOptions::default())
    }

    /// Sets `key` to `value` in `family`, as `options` say.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// use esker::WriteOptions;
    ///
    /// let family = db.default_family_handle();
    /// db.put_opt(&family, "order 1", "paid", &WriteOptions::synced())?;
    /// assert!(db.contains_key("order 1")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn put_opt(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.single(options, |b| {
            b.put_cf(family.0.id, key.as_ref(), value.as_ref())
        })
    }

    /// Sets `key` in `family` to an entity of named columns; the column with the empty name is what
    /// plain reads see.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let family = db.default_family_handle();
    /// db.put_entity(&family, "ann", &[("", "1"), ("city", "Oslo")])?;
    /// assert_eq!(db.get("ann")?.as_deref(), Some(&b"1"[..]));
    /// let columns = db.get_entity_columns(&family, "ann")?.expect("was put");
    /// assert_eq!(columns[1], (b"city".to_vec(), b"Oslo".to_vec()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn put_entity<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        columns: &[(N, V)],
    ) -> Result<()> {
        self.put_entity_opt(family, key, columns, &WriteOptions::default())
    }

    /// Sets `key` in `family` to an entity of named columns, as `options` say.
    pub fn put_entity_opt<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        columns: &[(N, V)],
        options: &WriteOptions,
    ) -> Result<()> {
        let mut columns: Vec<Column<'_>> = columns
            .iter()
            .map(|(n, v)| Column::new(n.as_ref(), v.as_ref()))
            .collect();
        columns.sort_by(|a, b| a.name.cmp(b.name));
        self.single(options, |b| {
            b.put_entity_cf(family.0.id, key.as_ref(), &columns)
        })
    }

    /// Deletes `key` in the default family; fine when it is not there.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// db.delete("key")?;
    /// assert_eq!(db.get("key")?, None);
    /// db.delete("never put")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.single(&WriteOptions::default(), |b| b.delete(key.as_ref()))
    }

    /// Deletes `key` in `family`.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.create_family("users", Default::default())?;
    /// db.put_cf(&users, "ann", "1")?;
    /// db.delete_cf(&users, "ann")?;
    /// assert_eq!(db.get_cf(&users, "ann")?, None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn delete_cf(&self, family: &FamilyHandle, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_opt(family, key, &WriteOptions::default())
    }

    /// Deletes `key` in `family`, as `options` say.
    pub fn delete_opt(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.single(options, |b| b.delete_cf(family.0.id, key.as_ref()))
    }

    /// Deletes a key that was put at most once since it was deleted last: cheaper for compaction.
    pub fn single_delete_opt(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.single(options, |b| b.single_delete_cf(family.0.id, key.as_ref()))
    }

    /// Deletes the keys of `[begin, end)` in `family`.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let logs = db.create_family("logs", Default::default())?;
    /// for day in ["0131", "0201", "0202"] {
    ///     db.put_cf(&logs, day, "line")?;
    /// }
    /// db.delete_range_cf(&logs, "0201", "0301")?;
    /// assert_eq!(db.iter_cf(&logs).keys().count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn delete_range_cf(
        &self,
        family: &FamilyHandle,
        begin: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.delete_range_opt(family, begin, end, &WriteOptions::default())
    }

    /// Deletes the keys of `[begin, end)` in `family`, as `options` say.
    pub fn delete_range_opt(
        &self,
        family: &FamilyHandle,
        begin: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let (begin, end) = (begin.as_ref(), end.as_ref());
        let order = &family.0.order;
        if order.timestamp_size() == 0 && order.compare(begin, end).is_gt() {
            return Err(Error::invalid_argument(
                "a range deletion ends before it begins",
            ));
        }
        self.single(options, |b| b.delete_range_cf(family.0.id, begin, end))
    }

    /// Adds a merge operand to `key` in the default family.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::merge_operator::UInt64Add;
    /// use esker::{Db, Options};
    ///
    /// let options = Options::new().create_if_missing(true).merge_operator(UInt64Add);
    /// let db = Db::open(dir.path(), options)?;
    /// for _visit in 0..3 {
    ///     db.merge("visits", 1_u64.to_le_bytes())?;
    /// }
    /// assert_eq!(db.get("visits")?.as_deref(), Some(&3_u64.to_le_bytes()[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.single(&WriteOptions::default(), |b| {
            b.merge(key.as_ref(), operand.as_ref())
        })
    }

    /// Adds a merge operand to `key` in `family`, as `options` say.
    pub fn merge_opt(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.single(options, |b| {
            b.merge_cf(family.0.id, key.as_ref(), operand.as_ref())
        })
    }

    /// Writes all of `batch`, or nothing. A batch that is lent as `&mut` keeps its records and its
    /// memory.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let mut batch = esker::WriteBatch::new();
    /// batch.put("a", "1")?;
    /// batch.delete("b")?;
    /// db.write(&mut batch)?;
    /// batch.clear();
    /// batch.put("c", "2")?;
    /// db.write(batch)?;
    /// assert_eq!(db.keys().count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn write(&self, batch: impl BorrowMut<WriteBatch>) -> Result<()> {
        self.write_opt(batch, &WriteOptions::default())
    }

    /// Writes all of `batch`, or nothing, as `options` say: see [`Db::write`].
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// use esker::{WriteBatch, WriteOptions};
    ///
    /// let mut batch = WriteBatch::new();
    /// batch.put("from", "90")?;
    /// batch.put("to", "110")?;
    /// db.write_opt(batch, &WriteOptions::synced())?;
    /// assert!(db.contains_key("from")? && db.contains_key("to")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn write_opt(
        &self,
        mut batch: impl BorrowMut<WriteBatch>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.stamped(batch.borrow_mut(), |batch| {
            self.core().writes.write(options, batch)
        })
    }

    /// Writes `batch` by `write`, with times behind its values in a database with times to live.
    #[inline]
    fn stamped(
        &self,
        batch: &mut WriteBatch,
        write: impl FnOnce(&mut WriteBatch) -> Result<()>,
    ) -> Result<()> {
        let recorded = self.reads().operations.begin_write();
        let done = self.stamped_now(batch, write);
        if let Some(start) = recorded {
            let family = || self.family_of(batch);
            (self.reads().operations).end(OperationKind::Write, start, family);
        }
        done
    }

    #[inline]
    fn stamped_now(
        &self,
        batch: &mut WriteBatch,
        write: impl FnOnce(&mut WriteBatch) -> Result<()>,
    ) -> Result<()> {
        let core = self.core();
        core.check_open_for_writes()?;
        let Some(ttl) = &core.ttl else {
            return write(batch);
        };
        let mut stamped = ttl.stamp(batch)?;
        write(&mut stamped)?;
        batch.set_seq(stamped.seq());
        Ok(())
    }

    /// Writes `batch` if `check` finds nothing against it. `check` runs when every write before
    /// this one is visible and none is under way, and other writers wait meanwhile: between its
    /// answer and the batch there is no other write. It must be quick, and must not write itself.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Error, WriteBatch, WriteOptions};
    ///
    /// let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let mut batch = WriteBatch::new();
    /// batch.put(b"once", b"1")?;
    /// for wanted in [true, false] {
    ///     let check = || match db.get("once")? {
    ///         None => Ok(()),
    ///         Some(_) => Err(Error::busy("it is there")),
    ///     };
    ///     let written = db.write_if(&mut batch, &WriteOptions::default(), check);
    ///     assert_eq!(written.is_ok(), wanted);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn write_if(
        &self,
        batch: &mut WriteBatch,
        options: &WriteOptions,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.stamped(batch, |batch| {
            self.core().writes.write_if(options, batch, check)
        })
    }

    pub(super) fn single(
        &self,
        options: &WriteOptions,
        fill: impl FnOnce(&mut WriteBatch) -> Result<()>,
    ) -> Result<()> {
        SINGLE.with(|cell| {
            let mut own;
            let mut shared = cell.try_borrow_mut().ok();
            let batch = match &mut shared {
                Some(b) => &mut **b,
                None => {
                    own = WriteBatch::new();
                    &mut own
                }
            };
            batch.clear();
            let written = fill(batch).and_then(|()| self.write_opt(&mut *batch, options));
            if batch.data_size() > KEPT {
                *batch = WriteBatch::new();
            }
            written
        })
    }

    /// Hands buffered log records to the operating system, and to the device with `sync`.
    pub fn flush_wal(&self, sync: bool) -> Result<()> {
        let core = self.core();
        core.check_open_for_writes()?;
        let mut log = core.writes.lock();
        core.writes.save(&mut log, sync)
    }

    /// Makes every write so far survive power loss.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// for n in 0..100_u8 {
    ///     db.put([n], "value")?;
    /// }
    /// db.sync_wal()?;
    /// assert_eq!(db.keys().count(), 100);
    /// # Ok(())
    /// # }
    /// ```
    pub fn sync_wal(&self) -> Result<()> {
        self.flush_wal(true)
    }
}
