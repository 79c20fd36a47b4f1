//! A family with its database: reads and writes that need no other handle.
//!
//! A [`BoundFamily`] does not keep the database open. Once it is closed, or its last handle is
//! gone, each call fails with `ShutdownInProgress`. Thread-safety: a value; any thread.

use super::{Db, Entries, KeyRange, Keys, Values};
use crate::family::FamilyHandle;
use crate::options::ReadOptions;
use crate::read::{DbIterator, PinnedValue};
use esker_format::FamilyId;
use esker_status::Result;
use esker_sync::Arc;
use std::ops::Deref;

/// A column family of an open database: what [`Db`] does with the default family, it does with this
/// one. Cheap to clone.
///
/// It goes wherever a [`FamilyHandle`] is asked for. It does not keep the database open: when that
/// is closed, calls fail with `ShutdownInProgress`.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
/// let users = db.family_or_create("users", Default::default())?;
/// users.put("ann", "1")?;
/// users.put("bob", "2")?;
/// assert_eq!(users.get("ann")?.as_deref(), Some(&b"1"[..]));
/// assert_eq!(users.range("b"..).count(), 1);
/// drop(db);
/// let late = users.get("ann").expect_err("the database is closed");
/// assert_eq!(late.kind(), esker::ErrorKind::ShutdownInProgress);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "ColumnFamily")]
#[derive(Clone)]
pub struct BoundFamily {
    db: Db,
    handle: FamilyHandle,
}

impl std::fmt::Debug for BoundFamily {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.handle, f)
    }
}

impl Deref for BoundFamily {
    type Target = FamilyHandle;
    fn deref(&self) -> &FamilyHandle {
        &self.handle
    }
}

impl AsRef<FamilyHandle> for BoundFamily {
    fn as_ref(&self) -> &FamilyHandle {
        &self.handle
    }
}

impl From<BoundFamily> for FamilyHandle {
    fn from(family: BoundFamily) -> FamilyHandle {
        family.handle
    }
}

impl From<&BoundFamily> for FamilyId {
    fn from(family: &BoundFamily) -> FamilyId {
        FamilyId::from(&family.handle)
    }
}

impl PartialEq for BoundFamily {
    fn eq(&self, other: &Self) -> bool {
        self.handle == other.handle
    }
}

impl BoundFamily {
    /// The family of `handle` in `db`, which it belongs to.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let handle = db.create_family("users", Default::default())?;
    /// let users = esker::Family::new(&db, &handle);
    /// assert_eq!(users.name(), "users");
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(db: &Db, handle: &FamilyHandle) -> Self {
        BoundFamily {
            db: Db::lent(Arc::clone(db.core())),
            handle: handle.clone(),
        }
    }

    /// The handle alone.
    pub fn handle(&self) -> &FamilyHandle {
        &self.handle
    }

    /// The value of `key`.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.family_or_create("users", Default::default())?;
    /// users.put("ann", "1")?;
    /// assert_eq!(users.get("ann")?.as_deref(), Some(&b"1"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        Ok(self.get_pinned(key)?.map(PinnedValue::into_vec))
    }

    /// The value of `key`, without a copy where it is in a cached block.
    pub fn get_pinned(&self, key: impl AsRef<[u8]>) -> Result<Option<PinnedValue>> {
        self.db.check_open()?;
        let options = ReadOptions::default();
        self.db.get_opt(&self.handle, key, &options, None)
    }

    /// The values of many keys, all as of one state of the database.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.family_or_create("users", Default::default())?;
    /// users.put("ann", "1")?;
    /// let found = users.multi_get(["ann", "bob"]);
    /// assert!(matches!(found[..], [Ok(Some(_)), Ok(None)]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Vec<Result<Option<PinnedValue>>> {
        if let Err(e) = self.db.check_open() {
            return keys.into_iter().map(|_| Err(e.clone())).collect();
        }
        let options = ReadOptions::default();
        self.db.multi_get_opt(&self.handle, keys, &options, None)
    }

    /// Returns whether `key` is there. Its value is neither copied nor read from a blob file.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.db.check_open()?;
        self.db.contains_key_cf(&self.handle, key)
    }

    /// Sets `key` to `value`.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.family_or_create("users", Default::default())?;
    /// users.put("ann", "1")?;
    /// assert!(users.contains_key("ann")? && !db.contains_key("ann")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.db.put_cf(&self.handle, key, value)
    }

    /// Deletes `key`; fine when it is not there.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.family_or_create("users", Default::default())?;
    /// users.put("ann", "1")?;
    /// users.delete("ann")?;
    /// assert!(users.is_empty()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.db.delete_cf(&self.handle, key)
    }

    /// Deletes a key that was put at most once since it was deleted last.
    pub fn single_delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.db.single_delete_cf(&self.handle, key)
    }

    /// Deletes the keys of `[begin, end)`.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.family_or_create("users", Default::default())?;
    /// users.put("ann", "1")?;
    /// users.delete_range("a", "b")?;
    /// assert!(users.is_empty()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn delete_range(&self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.db.delete_range_cf(&self.handle, begin, end)
    }

    /// Adds a merge operand to `key`.
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.db.merge_cf(&self.handle, key, operand)
    }

    /// A cursor over it, as it is now.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.family_or_create("users", Default::default())?;
    /// users.put("ann", "1")?;
    /// for entry in users.iter() {
    ///     assert_eq!(entry?, (b"ann".to_vec(), b"1".to_vec()));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn iter(&self) -> DbIterator {
        let options = ReadOptions::default();
        self.db.iter_while_open(&self.handle, options, None)
    }

    /// The entries whose keys are in `range`, from both ends: see [`Db::range`].
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.family_or_create("users", Default::default())?;
    /// for name in ["ann", "bob", "cid"] {
    ///     users.put(name, "1")?;
    /// }
    /// let names: Vec<_> = users.range("b"..).keys().rev().collect::<Result<_, _>>()?;
    /// assert_eq!(names, [b"cid", b"bob"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn range(&self, range: impl KeyRange) -> Entries {
        self.db.range_cf(&self.handle, range)
    }

    /// The entries whose keys begin with `prefix`, from both ends: see [`Db::prefix`].
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.family_or_create("users", Default::default())?;
    /// users.put("ann", "1")?;
    /// assert_eq!(users.prefix("an").count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Entries {
        self.db.prefix_cf(&self.handle, prefix)
    }

    /// Its keys.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.family_or_create("users", Default::default())?;
    /// users.put("ann", "1")?;
    /// assert_eq!(users.keys().next().transpose()?, Some(b"ann".to_vec()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn keys(&self) -> Keys {
        self.range(..).keys()
    }

    /// Its values, in the order of their keys.
    pub fn values(&self) -> Values {
        self.range(..).values()
    }

    /// Its first entry.
    #[allow(clippy::type_complexity, reason = "a key and a value")]
    pub fn first_key_value(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.db.first_of(&self.handle)
    }

    /// Its last entry.
    #[allow(clippy::type_complexity, reason = "a key and a value")]
    pub fn last_key_value(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.db.last_of(&self.handle)
    }

    /// Returns whether it has no entry.
    pub fn is_empty(&self) -> Result<bool> {
        self.db.is_empty_of(&self.handle)
    }

    /// About how many keys it has: see [`Db::approximate_len`].
    pub fn approximate_len(&self) -> u64 {
        self.db.approximate_len_cf(&self.handle)
    }
}
