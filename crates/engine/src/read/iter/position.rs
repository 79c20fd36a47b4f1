//! The entry at which an iterator stands, and its status. Nothing here moves it, but that one which
//! was not placed looks for its first entry.

use super::super::cursors::MergedRuns;
use super::DbIterator;
#[cfg(doc)]
use crate::options::ReadOptions;
use crate::ttl;
use esker_lsm::visible::VisibleCursor;
use esker_status::Result;

impl DbIterator {
    #[inline(always)]
    pub(super) fn inner(&self) -> Option<&VisibleCursor<MergedRuns>> {
        match &self.cursors {
            Some(cursors) => Some(&cursors.cursor),
            None => self.first(),
        }
    }

    /// Returns whether it stands on a key.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// let mut it = db.iter();
    /// it.seek("a");
    /// assert!(it.valid());
    /// it.seek("z");
    /// assert!(!it.valid(), "no key is there or behind it");
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn valid(&self) -> bool {
        self.inner().is_some_and(VisibleCursor::valid)
    }

    /// `Ok`, or why the iterator is not valid.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// use esker::{ErrorKind, ReadOptions};
    /// use std::time::Duration;
    ///
    /// db.put("key", "value")?;
    /// let options = ReadOptions::new().timeout(Duration::ZERO);
    /// let mut it = db.iter_opt(&db.default_family_handle(), options, None);
    /// it.seek_to_first();
    /// assert!(!it.valid(), "but not because it is at the end");
    /// assert_eq!(it.status().expect_err("no time").kind(), ErrorKind::TimedOut);
    /// # Ok(())
    /// # }
    /// ```
    pub fn status(&self) -> Result<()> {
        if let Some((e, _)) = &self.failure {
            return Err(e.clone());
        }
        match &self.cursors {
            Some(cursors) => cursors.cursor.status(),
            None => self.unplaced.status(),
        }
    }

    /// The key; only while valid.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// let mut it = db.iter();
    /// it.seek("k");
    /// assert_eq!(it.key(), b"key");
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.inner().map_or(&[], VisibleCursor::key)
    }

    /// The value (of a wide-column entity: its default column); only while valid.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// let mut it = db.iter();
    /// it.seek("key");
    /// assert_eq!(it.value(), b"value");
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.without_time(self.inner().map_or(&[], VisibleCursor::value))
    }

    /// Values without room for a time are not valid positions.
    #[inline]
    fn without_time<'a>(&self, value: &'a [u8]) -> &'a [u8] {
        &value[..value.len().saturating_sub(self.time_len)]
    }

    /// The encoded wide-column entity, when the entry is one.
    pub fn entity(&self) -> Option<&[u8]> {
        self.inner()?.entity()
    }

    /// The user-defined timestamp of the entry; empty in families without.
    pub fn timestamp(&self) -> &[u8] {
        self.inner().map_or(&[], VisibleCursor::timestamp)
    }

    /// Returns whether it shows the versions of keys one by one: [`ReadOptions::iter_start_ts`] was
    /// given.
    pub fn shows_versions(&self) -> bool {
        self.options.iter_start_ts.is_some()
    }

    /// Returns whether the entry is a deletion; with [`ReadOptions::iter_start_ts`], which shows
    /// them.
    pub fn is_deletion(&self) -> bool {
        self.inner().is_some_and(VisibleCursor::is_deletion)
    }

    /// With [`ReadOptions::iter_start_ts`]: key, timestamp, sequence number and type of the entry
    /// in RocksDB's form, as the iterators of its C interface show them; only while valid.
    pub fn internal_key(&self) -> &[u8] {
        self.inner().map_or(&[], VisibleCursor::internal_key)
    }

    /// Key and value, while valid: quicker than both by themselves. Small, once for each entry:
    /// always inlined.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// let mut it = db.iter();
    /// let mut pairs = 0;
    /// while let Some((key, value)) = it.entry() {
    ///     assert_eq!((key.len(), value.len()), (1, 1));
    ///     pairs += 1;
    ///     it.next();
    /// }
    /// it.status()?;
    /// assert_eq!(pairs, 2);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        let (key, value) = self.inner()?.entry()?;
        Some((key, self.without_time(value)))
    }

    /// The second of the Unix epoch in which the entry was written, in a database with times to
    /// live.
    pub fn ttl_time(&self) -> Option<i32> {
        let value = self
            .inner()
            .filter(|c| self.time_len > 0 && c.valid())?
            .value();
        ttl::time_of(value).ok()
    }

    /// A figure of the iterator by RocksDB's name, such as `rocksdb.iterator.super-version-number`.
    pub fn property(&self, name: &str) -> Option<String> {
        match name {
            "rocksdb.iterator.super-version-number" => Some(self.view.number.to_string()),
            // Slices live until the next move: nothing is promised beyond it.
            "rocksdb.iterator.is-key-pinned" | "rocksdb.iterator.is-value-pinned" => {
                Some("0".to_owned())
            }
            "rocksdb.iterator.internal-key" if self.valid() => {
                Some(String::from_utf8_lossy(self.key()).into_owned())
            }
            _ => None,
        }
    }
}
