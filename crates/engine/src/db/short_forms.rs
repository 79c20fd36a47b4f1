//! Short forms: calls that programs make often, in terms of the general ones.

use super::{BoundFamily, Db};
use crate::family::{Family, FamilyHandle};
use crate::options::{FamilyOptions, Options, ReadOptions, WriteOptions};
use crate::read::get::PointRead;
use esker_status::{Error, Result};
use std::path::Path;

impl Db {
    /// Opens the database at `path` with every option at its default, and creates it when there is
    /// none.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// let db = esker::Db::open_default(dir.path())?;
    /// db.put("key", "value")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn open_default(path: impl AsRef<Path>) -> Result<Db> {
        Db::open(path, Options::new().create_if_missing(true))
    }

    /// The family called `name`, which is created with `options` when it does not exist. The
    /// options of one that exists stay as they are.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.family_or_create("users", Default::default())?;
    /// users.put("ann", "1")?;
    /// let again = db.family_or_create("users", Default::default())?;
    /// assert_eq!(again.get("ann")?.as_deref(), Some(&b"1"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn family_or_create(&self, name: &str, options: FamilyOptions) -> Result<BoundFamily> {
        if let Some(family) = self.family(name) {
            return Ok(family);
        }
        match self.create_family(name, options) {
            Ok(made) => Ok(BoundFamily::new(self, &made)),
            // Another thread may have made it meanwhile.
            Err(e) => self.family(name).ok_or(e),
        }
    }

    /// Returns whether `key` is in the default family. Its value is not copied, nor read where it
    /// is in a blob file.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// assert!(db.contains_key("key")? && !db.contains_key("other")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.is_present(self.default_family(), key.as_ref())
    }

    /// Returns whether `key` is in `family`. Its value is neither copied nor read from a blob file.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.create_family("users", Default::default())?;
    /// assert!(!db.contains_key_cf(&users, "ann")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn contains_key_cf(&self, family: &FamilyHandle, key: impl AsRef<[u8]>) -> Result<bool> {
        self.is_present(&family.0, key.as_ref())
    }

    /// Returns whether `key` is in `family`, which is counted as a read without bytes of a blob.
    fn is_present(&self, family: &Family, key: &[u8]) -> Result<bool> {
        let (reads, options) = (self.reads(), ReadOptions::default());
        let _timed = reads.timed_get(family);
        let view = family.view_guard();
        let seq = reads.read_seq(&view, None)?;
        let read = PointRead::new(reads, family, &options).of_presence();
        let value = read.run(&view, key, seq)?.into_value()?;
        reads.count_get(value.as_deref().map(<[u8]>::len));
        Ok(value.is_some())
    }

    /// The first entry of the default family.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// assert_eq!(db.first_key_value()?, None);
    /// db.put("key", "value")?;
    /// assert_eq!(db.first_key_value()?, Some((b"key".to_vec(), b"value".to_vec())));
    /// # Ok(())
    /// # }
    /// ```
    #[allow(clippy::type_complexity, reason = "a key and a value")]
    pub fn first_key_value(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.first_of(&self.default_family_handle())
    }

    /// The last entry of the default family.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// assert_eq!(db.last_key_value()?, Some((b"b".to_vec(), b"2".to_vec())));
    /// # Ok(())
    /// # }
    /// ```
    #[allow(clippy::type_complexity, reason = "a key and a value")]
    pub fn last_key_value(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.last_of(&self.default_family_handle())
    }

    /// Returns whether the default family has no entry.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// assert!(db.is_empty()?);
    /// db.put("key", "value")?;
    /// assert!(!db.is_empty()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_empty(&self) -> Result<bool> {
        self.is_empty_of(&self.default_family_handle())
    }

    /// About how many keys the default family has: overwritten and deleted entries count until a
    /// compaction meets them.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// assert_eq!(db.approximate_len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn approximate_len(&self) -> u64 {
        self.approximate_len_cf(&self.default_family_handle())
    }

    /// About how many keys `family` has: see [`Db::approximate_len`].
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.create_family("users", Default::default())?;
    /// assert_eq!(db.approximate_len_cf(&users), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn approximate_len_cf(&self, family: &FamilyHandle) -> u64 {
        let keys = self.int_property(family, "rocksdb.estimate-num-keys");
        keys.unwrap_or(0)
    }

    /// Deletes the keys of `[begin, end)` of the default family.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("b", "value")?;
    /// db.delete_range("a", "c")?;
    /// assert!(db.is_empty()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn delete_range(&self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.delete_range_cf(&self.default_family_handle(), begin, end)
    }

    /// Deletes a key of the default family that was put at most once since it was deleted last:
    /// cheaper for compaction.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// db.single_delete("key")?;
    /// assert!(!db.contains_key("key")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn single_delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let family = self.default_family_handle();
        self.single_delete_opt(&family, key, &WriteOptions::default())
    }

    /// Deletes a key of `family` that was put at most once since it was deleted last.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.create_family("users", Default::default())?;
    /// db.put_cf(&users, "ann", "1")?;
    /// db.single_delete_cf(&users, "ann")?;
    /// assert!(!db.contains_key_cf(&users, "ann")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn single_delete_cf(&self, family: &FamilyHandle, key: impl AsRef<[u8]>) -> Result<()> {
        self.single_delete_opt(family, key, &WriteOptions::default())
    }

    /// Adds a merge operand to `key` in `family`.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let mut options = esker::FamilyOptions::default();
    /// options.merge_operator = esker::merge_operator::by_name("stringappend");
    /// let tags = db.create_family("tags", options)?;
    /// db.merge_cf(&tags, "key", "a")?;
    /// db.merge_cf(&tags, "key", "b")?;
    /// assert_eq!(db.get_cf(&tags, "key")?.as_deref(), Some(&b"a,b"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn merge_cf(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.merge_opt(family, key, operand, &WriteOptions::default())
    }

    /// The family called `name`; the error names it when it does not exist.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// assert!(db.existing_family("default").is_ok());
    /// let e = db.existing_family("users").expect_err("nobody made it");
    /// assert_eq!(e.to_string(), "NotFound: there is no family \"users\"");
    /// # Ok(())
    /// # }
    /// ```
    pub fn existing_family(&self, name: &str) -> Result<BoundFamily> {
        let missing = || Error::not_found(format!("there is no family {name:?}"));
        self.family(name).ok_or_else(missing)
    }
}
