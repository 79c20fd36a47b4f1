//! Ranges and prefixes of keys as iterators of the standard library.
//!
//! In the order by bytes a range becomes the bounds of the cursors. In other orders the cursors
//! have the bounds that they can express, and [`EntryLimits`] has the rest.

use super::Db;
use super::entries::{Direction, Entries, EntriesFrom, EntryLimits, IteratorMode};
use crate::family::FamilyHandle;
use crate::options::{ReadOptions, behind_prefix};
use crate::snapshot::Snapshot;
use esker_format::KeyOrder;
use esker_status::Result;
use std::ops::{
    Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};

/// A range of keys: `"a".."c"`, `b"a"..`, `..=key`, `..`, or a pair of [`Bound`]s.
///
/// The ranges of the standard library implement it for whatever is bytes.
pub trait KeyRange {
    /// Where it begins and where it ends.
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>);
}

/// The bounds of a range as bytes.
fn bytes<'a, K: AsRef<[u8]> + 'a>(
    range: &'a impl RangeBounds<K>,
) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    let of = |bound: Bound<&'a K>| bound.map(AsRef::as_ref);
    (of(range.start_bound()), of(range.end_bound()))
}

/// Implements the trait for ranges of the standard library.
macro_rules! key_ranges {
    ($($range:ident)*) => {$(
        impl<K: AsRef<[u8]>> KeyRange for $range<K> {
            fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
                bytes::<K>(self)
            }
        }
    )*};
}

key_ranges! { Range RangeFrom RangeInclusive RangeTo RangeToInclusive }

impl KeyRange for RangeFull {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyRange for (Bound<K>, Bound<K>) {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        bytes::<K>(self)
    }
}

/// A part of a family's keys, as cursors and entries know it.
#[derive(Default)]
struct KeyBounds {
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    limits: EntryLimits,
}

/// The key that follows `key` in the order by bytes.
fn next_by_bytes(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

impl KeyBounds {
    fn of_range(order: &KeyOrder, range: &impl KeyRange) -> Self {
        let mut bounds = KeyBounds::default();
        let (start, end) = range.bounds();
        match start {
            Bound::Unbounded => {}
            Bound::Included(key) => bounds.lower = Some(key.to_vec()),
            Bound::Excluded(key) if order.is_bytewise() => {
                bounds.lower = Some(next_by_bytes(key));
            }
            Bound::Excluded(key) => {
                bounds.lower = Some(key.to_vec());
                bounds.limits.after = Some(key.to_vec());
            }
        }
        match end {
            Bound::Unbounded => {}
            Bound::Excluded(key) => bounds.upper = Some(key.to_vec()),
            Bound::Included(key) if order.is_bytewise() => {
                bounds.upper = Some(next_by_bytes(key));
            }
            Bound::Included(key) => bounds.limits.up_to = Some(key.to_vec()),
        }
        bounds
    }

    fn of_prefix(order: &KeyOrder, prefix: &[u8]) -> Self {
        if prefix.is_empty() {
            return KeyBounds::default();
        }
        if order.is_bytewise_without_timestamp() {
            return KeyBounds {
                lower: Some(prefix.to_vec()),
                upper: behind_prefix(prefix),
                ..Self::default()
            };
        }
        // Its keys may lie anywhere.
        KeyBounds {
            limits: EntryLimits {
                prefix: Some(prefix.to_vec()),
                ..EntryLimits::default()
            },
            ..Self::default()
        }
    }
}

/// Options of an iterator that is to see every key in order, whatever the memtables and filters of
/// the family are.
fn in_order(family: &FamilyHandle) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.total_order_seek = family.0.options.load().prefix_extractor.is_some();
    options
}

impl Db {
    fn entries(
        &self,
        family: &FamilyHandle,
        mut options: ReadOptions,
        bounds: KeyBounds,
        snapshot: Option<&Snapshot>,
    ) -> Entries {
        options.iterate_lower_bound = bounds.lower;
        options.iterate_upper_bound = bounds.upper;
        // They are read when they are given.
        options.allow_unprepared_value = true;
        let front = self.iter_while_open(family, options, snapshot);
        Entries::new(front, bounds.limits)
    }

    pub(super) fn range_at(
        &self,
        family: &FamilyHandle,
        range: &impl KeyRange,
        snapshot: Option<&Snapshot>,
    ) -> Entries {
        let bounds = KeyBounds::of_range(family.order(), range);
        self.entries(family, in_order(family), bounds, snapshot)
    }

    pub(super) fn prefix_at(
        &self,
        family: &FamilyHandle,
        prefix: &[u8],
        snapshot: Option<&Snapshot>,
    ) -> Entries {
        let bounds = KeyBounds::of_prefix(family.order(), prefix);
        let mut options = in_order(family);
        if bounds.lower.is_some() && options.total_order_seek {
            // Filters of prefixes may answer where the bounds show that they may.
            options.total_order_seek = false;
            options.auto_prefix_mode = true;
        }
        self.entries(family, options, bounds, snapshot)
    }

    /// The entries of the default family whose keys are in `range`, from both ends.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// for key in ["a", "b", "c"] {
    ///     db.put(key, "value")?;
    /// }
    /// for entry in db.range("b"..) {
    ///     let (key, value) = entry?;
    ///     println!("{} is {}", key.escape_ascii(), value.escape_ascii());
    /// }
    /// assert_eq!(db.range("b"..).count(), 2);
    /// assert_eq!(db.range("a".."c").rev().count(), 2);
    /// assert_eq!(db.range(b"c"..=b"c").count(), 1);
    /// assert_eq!(db.range(..).count(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn range(&self, range: impl KeyRange) -> Entries {
        self.range_at(&self.default_family_handle(), &range, None)
    }

    /// The entries of `family` whose keys are in `range`, from both ends.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.create_family("users", Default::default())?;
    /// db.put_cf(&users, "ann", "1")?;
    /// assert_eq!(db.range_cf(&users, "a".."b").count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn range_cf(&self, family: &FamilyHandle, range: impl KeyRange) -> Entries {
        self.range_at(family, &range, None)
    }

    /// The entries of the default family whose keys begin with `prefix`, from both ends. With a
    /// `prefix_extractor` the filters of tables pass over those without such keys.
    ///
    /// In an order that is not by bytes every key of the family is looked at.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("user:ann", "1")?;
    /// db.put("user:bob", "2")?;
    /// db.put("visit:1", "3")?;
    /// let users: Vec<_> = db.prefix("user:").keys().collect::<Result<_, _>>()?;
    /// assert_eq!(users, [b"user:ann", b"user:bob"]);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "prefix_iterator")]
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Entries {
        self.prefix_at(&self.default_family_handle(), prefix.as_ref(), None)
    }

    /// The entries of `family` whose keys begin with `prefix`: see [`Db::prefix`].
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.create_family("users", Default::default())?;
    /// db.put_cf(&users, "ann", "1")?;
    /// assert_eq!(db.prefix_cf(&users, "a").count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "prefix_iterator_cf")]
    pub fn prefix_cf(&self, family: &FamilyHandle, prefix: impl AsRef<[u8]>) -> Entries {
        self.prefix_at(family, prefix.as_ref(), None)
    }

    /// The keys of the default family.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// assert_eq!(db.keys().next().transpose()?, Some(b"key".to_vec()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn keys(&self) -> super::Keys {
        self.range(..).keys()
    }

    /// The values of the default family, in the order of their keys.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// assert_eq!(db.values().next().transpose()?, Some(b"value".to_vec()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn values(&self) -> super::Values {
        self.range(..).values()
    }

    /// The entries of the default family from a place on, in one direction, as the `rocksdb` crate
    /// names them.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// use esker::{Direction, IteratorMode};
    ///
    /// for key in ["a", "b", "c"] {
    ///     db.put(key, "value")?;
    /// }
    /// let from_b = IteratorMode::From(b"b", Direction::Reverse);
    /// let (key, _) = db.iterator(from_b).last().expect("there are two")?;
    /// assert_eq!(key, b"a");
    /// assert_eq!(db.iterator(IteratorMode::Start).count(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn iterator(&self, mode: IteratorMode<'_>) -> EntriesFrom {
        self.iterator_cf(&self.default_family_handle(), mode)
    }

    /// The entries of `family` from a place on, in one direction.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.create_family("users", Default::default())?;
    /// db.put_cf(&users, "ann", "1")?;
    /// assert_eq!(db.iterator_cf(&users, esker::IteratorMode::End).count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn iterator_cf(&self, family: &FamilyHandle, mode: IteratorMode<'_>) -> EntriesFrom {
        let range = |from: Bound<&[u8]>, to: Bound<&[u8]>| self.range_at(family, &(from, to), None);
        let (entries, direction) = match mode {
            IteratorMode::Start => (
                range(Bound::Unbounded, Bound::Unbounded),
                Direction::Forward,
            ),
            IteratorMode::End => (
                range(Bound::Unbounded, Bound::Unbounded),
                Direction::Reverse,
            ),
            IteratorMode::From(key, Direction::Forward) => (
                range(Bound::Included(key), Bound::Unbounded),
                Direction::Forward,
            ),
            IteratorMode::From(key, Direction::Reverse) => (
                range(Bound::Unbounded, Bound::Included(key)),
                Direction::Reverse,
            ),
        };
        EntriesFrom::new(entries, direction)
    }

    pub(super) fn first_of(&self, family: &FamilyHandle) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let mut all = self.range_at(family, &.., None);
        all.next().transpose()
    }

    pub(super) fn last_of(&self, family: &FamilyHandle) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let mut all = self.range_at(family, &.., None);
        all.next_back().transpose()
    }

    pub(super) fn is_empty_of(&self, family: &FamilyHandle) -> Result<bool> {
        let all = self.range_at(family, &.., None);
        Ok(all.keys().next().transpose()?.is_none())
    }
}
