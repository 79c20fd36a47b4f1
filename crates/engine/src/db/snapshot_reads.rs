//! Reads by a snapshot itself. Once the database is closed they fail with `ShutdownInProgress`.

use super::{Db, Entries, KeyRange};
use crate::core::ReadCore;
use crate::family::{Family, FamilyHandle};
use crate::options::ReadOptions;
use crate::read::{DbIterator, PinnedValue};
use crate::snapshot::Snapshot;
use esker_status::{Error, Result};
use esker_sync::Arc;

impl Snapshot {
    /// The database, while it is open.
    fn open_db(&self) -> Result<Db> {
        let db = Db::of(self.home().db()).ok_or_else(Error::shutdown)?;
        db.check_open()?;
        Ok(db)
    }

    /// An iterator that fails with `e`, over `family` or the default family.
    #[cold]
    fn failed(&self, family: Option<&FamilyHandle>, e: Error) -> DbIterator {
        let reads = self.home().reads().downcast::<ReadCore>();
        let reads: Arc<ReadCore> =
            reads.unwrap_or_else(|_| unreachable!("the reads of a database"));
        let family: Arc<Family> = match family {
            Some(given) => Arc::clone(&given.0),
            None => Arc::clone(reads.families.default_family()),
        };
        DbIterator::failed(reads, family, e)
    }

    /// The value that `key` of the default family had.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "old")?;
    /// let before = db.snapshot();
    /// db.put("key", "new")?;
    /// assert_eq!(before.get("key")?.as_deref(), Some(&b"old"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let db = self.open_db()?;
        let family = db.default_family_handle();
        let found = db.get_opt(&family, key, &ReadOptions::default(), Some(self))?;
        Ok(found.map(PinnedValue::into_vec))
    }

    /// The value that `key` of `family` had.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.family_or_create("users", Default::default())?;
    /// let before = db.snapshot();
    /// users.put("ann", "1")?;
    /// assert_eq!(before.get_cf(&users, "ann")?, None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_cf(&self, family: &FamilyHandle, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let found = self.get_opt(family, key, &ReadOptions::default())?;
        Ok(found.map(PinnedValue::into_vec))
    }

    /// The value that `key` of `family` had, read as `options` say.
    pub fn get_opt(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<PinnedValue>> {
        self.open_db()?.get_opt(family, key, options, Some(self))
    }

    /// A cursor over the default family as it was.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// let before = db.snapshot();
    /// db.delete("key")?;
    /// for entry in before.iter() {
    ///     assert_eq!(entry?, (b"key".to_vec(), b"value".to_vec()));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn iter(&self) -> DbIterator {
        match self.open_db() {
            Ok(db) => {
                let family = db.default_family_handle();
                db.iter_opt(&family, ReadOptions::default(), Some(self))
            }
            Err(e) => self.failed(None, e),
        }
    }

    /// A cursor over `family` as it was.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.family_or_create("users", Default::default())?;
    /// let before = db.snapshot();
    /// users.put("ann", "1")?;
    /// assert_eq!(before.iter_cf(&users).into_iter().count(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn iter_cf(&self, family: &FamilyHandle) -> DbIterator {
        match self.open_db() {
            Ok(db) => db.iter_opt(family, ReadOptions::default(), Some(self)),
            Err(e) => self.failed(Some(family), e),
        }
    }

    /// The entries that the default family had in `range`, from both ends.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("a", "1")?;
    /// let before = db.snapshot();
    /// db.put("b", "2")?;
    /// assert_eq!(before.range("a"..).count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn range(&self, range: impl KeyRange) -> Entries {
        match self.open_db() {
            Ok(db) => db.range_at(&db.default_family_handle(), &range, Some(self)),
            Err(e) => self.failed(None, e).into_iter(),
        }
    }

    /// The entries that `family` had in `range`, from both ends.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.family_or_create("users", Default::default())?;
    /// users.put("ann", "1")?;
    /// let before = db.snapshot();
    /// users.delete("ann")?;
    /// assert_eq!(before.range_cf(&users, "a".."b").count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn range_cf(&self, family: &FamilyHandle, range: impl KeyRange) -> Entries {
        match self.open_db() {
            Ok(db) => db.range_at(family, &range, Some(self)),
            Err(e) => self.failed(Some(family), e).into_iter(),
        }
    }

    /// The entries of the default family whose keys began with `prefix`: see [`Db::prefix`].
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("user:ann", "1")?;
    /// let before = db.snapshot();
    /// db.put("user:bob", "2")?;
    /// assert_eq!(before.prefix("user:").count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Entries {
        match self.open_db() {
            Ok(db) => db.prefix_at(&db.default_family_handle(), prefix.as_ref(), Some(self)),
            Err(e) => self.failed(None, e).into_iter(),
        }
    }

    /// The entries of `family` whose keys began with `prefix`: see [`Db::prefix`].
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.family_or_create("users", Default::default())?;
    /// users.put("ann", "1")?;
    /// assert_eq!(db.snapshot().prefix_cf(&users, "a").count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prefix_cf(&self, family: &FamilyHandle, prefix: impl AsRef<[u8]>) -> Entries {
        match self.open_db() {
            Ok(db) => db.prefix_at(family, prefix.as_ref(), Some(self)),
            Err(e) => self.failed(Some(family), e).into_iter(),
        }
    }
}
