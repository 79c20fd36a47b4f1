//! Entries as iterators of the standard library, from both ends.
//!
//! A [`Walk`] goes along a [`DbIterator`]; the first step from the back makes a second one over the
//! same view. The front takes several entries at once while nothing was asked of the back. Each end
//! stands on the entry that it took last, and the iterator ends where they would meet, once the
//! entries that were taken are given. It ends after its first error as well.
//!
//! Thread-safety: values, for one thread at a time.

use crate::read::DbIterator;
use esker_format::KeyOrder;
use esker_status::{Error, Result};
use std::iter::FusedIterator;
use std::ops::{ControlFlow, Range};

/// A pair of key and value.
type Pair = (Vec<u8>, Vec<u8>);

/// Limits that the bounds of the cursors do not say: those of an order that is not by bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct EntryLimits {
    /// Keys up to this one do not belong.
    pub(super) after: Option<Vec<u8>>,
    /// Keys beyond this one do not belong.
    pub(super) up_to: Option<Vec<u8>>,
    /// Keys that begin otherwise are passed over.
    pub(super) prefix: Option<Vec<u8>>,
}

/// Where a key is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeySide {
    Inside,
    Before,
    Beyond,
    PassedOver,
}

impl EntryLimits {
    fn is_any(&self) -> bool {
        self.after.is_some() || self.up_to.is_some() || self.prefix.is_some()
    }

    fn place(&self, order: &KeyOrder, key: &[u8]) -> KeySide {
        let within = |limit: &Vec<u8>| order.compare_bare(key, limit).is_le();
        if self.after.as_ref().is_some_and(within) {
            KeySide::Before
        } else if self.up_to.as_ref().is_some_and(|limit| !within(limit)) {
            KeySide::Beyond
        } else if self.prefix.as_ref().is_some_and(|p| !key.starts_with(p)) {
            KeySide::PassedOver
        } else {
            KeySide::Inside
        }
    }
}

/// Most entries that the front takes at once. A walk begins with two and takes twice as many each
/// time, so that a short one decodes little that it does not show.
const BATCH: usize = 64;

/// The two ends of a walk.
struct Walk {
    front: DbIterator,
    /// None before the first step from the back.
    back: Option<Box<DbIterator>>,
    limits: Option<Box<EntryLimits>>,
    /// True if the entry where `front` stands was given, or is among those that it took.
    is_front_given: bool,
    /// True if nothing is left but `unseen`.
    is_done: bool,
    /// True if values of blob files are read when they are given: keys alone need none.
    leaves_values: bool,
    /// Entries that `front` took and that were not given yet, by their numbers.
    unseen: Range<usize>,
    /// Entries to take next.
    batch: usize,
}

impl Walk {
    /// Ends. The error that the cursor met, if there is one.
    #[cold]
    fn end<T>(&mut self, status: Result<()>) -> Option<Result<T>> {
        self.is_done = true;
        status.err().map(|e| {
            self.unseen = 0..0;
            Err(e)
        })
    }

    /// Ends where the two ends meet: what the front took is the rest.
    #[cold]
    fn meet<T>(&mut self, make: impl FnOnce(&[u8], &[u8]) -> T) -> Option<Result<T>> {
        self.is_done = true;
        let last = self.unseen.next_back()?;
        self.front
            .taken(last)
            .map(|(key, value)| Ok(make(key, value)))
    }

    #[inline]
    fn place(&self, key: &[u8]) -> KeySide {
        match &self.limits {
            None => KeySide::Inside,
            Some(limits) => limits.place(self.front.order(), key),
        }
    }

    /// Returns whether entries can be taken from the front several at once.
    #[inline]
    fn takes_batches(&self) -> bool {
        self.is_front_given
            && self.limits.is_none()
            && self.back.is_none()
            && !self.leaves_values
            && !self.front.steps_singly()
    }

    /// The next entry as `make` makes it; its value may be missing unless `reads` says that it is
    /// wanted.
    #[inline]
    fn step<T>(&mut self, reads: bool, make: impl FnOnce(&[u8], &[u8]) -> T) -> Option<Result<T>> {
        if self.unseen.is_empty() {
            if self.is_done || !self.takes_batches() {
                return self.step_singly(reads, make);
            }
            self.batch = (self.batch * 2).min(BATCH);
            self.unseen = 0..self.front.take_next(self.batch);
        }
        let next = self.unseen.next();
        match next.and_then(|n| self.front.taken(n)) {
            Some((key, value)) => Some(Ok(make(key, value))),
            None => {
                let status = self.front.status();
                self.end(status)
            }
        }
    }

    fn step_singly<T>(
        &mut self,
        reads: bool,
        make: impl FnOnce(&[u8], &[u8]) -> T,
    ) -> Option<Result<T>> {
        if self.is_done {
            return None;
        }
        loop {
            if self.is_front_given {
                self.front.next();
            } else if !self.front.is_placed() {
                self.front.place_at_first();
            }
            self.is_front_given = true;
            let Some((key, value)) = self.front.entry() else {
                let status = self.front.status();
                return self.end(status);
            };
            match self.place(key) {
                KeySide::Inside => {}
                KeySide::Before | KeySide::PassedOver => continue,
                KeySide::Beyond => return self.end(Ok(())),
            }
            if let Some(back) = &self.back
                && self.front.order().compare_bare(key, back.key()).is_ge()
            {
                return self.end(Ok(()));
            }
            if !self.leaves_values || !reads {
                return Some(Ok(make(key, value)));
            }
            self.front.prepare_value();
            let Some((key, value)) = self.front.entry() else {
                let status = self.front.status();
                return self.end(status);
            };
            return Some(Ok(make(key, value)));
        }
    }

    /// The cursor of the back, at its next entry.
    fn move_back(&mut self) -> &DbIterator {
        let front = &self.front;
        let is_first = self.back.is_none();
        let back = self.back.get_or_insert_with(|| Box::new(front.twin()));
        match self.limits.as_ref().and_then(|l| l.up_to.as_ref()) {
            _ if !is_first => back.prev(),
            Some(up_to) => back.seek_for_prev(up_to),
            None => back.seek_to_last(),
        }
        back
    }

    /// The next entry from the back as `make` makes it; its value may be missing unless `reads`
    /// says that it is wanted.
    fn step_back<T>(
        &mut self,
        reads: bool,
        make: impl FnOnce(&[u8], &[u8]) -> T,
    ) -> Option<Result<T>> {
        if self.is_done {
            return self.meet(make);
        }
        if !self.front.has_two_ends() {
            return self.end(Err(Error::not_supported(
                "a tailing iterator, or one over versions, goes forward only",
            )));
        }
        if self.front.is_placed() && !self.front.valid() {
            let status = self.front.status();
            return self.end(status);
        }
        while self.move_back().valid() {
            let (Some(back), front) = (self.back.as_deref(), &self.front) else {
                return None;
            };
            let (key, value) = back.entry()?;
            match self.place(key) {
                KeySide::Inside => {}
                KeySide::Beyond | KeySide::PassedOver => continue,
                KeySide::Before => return self.end(Ok(())),
            }
            if front.is_placed() {
                let order = front.order().compare_bare(key, front.key());
                if order.is_lt() || (order.is_eq() && self.is_front_given) {
                    return self.meet(make);
                }
            }
            if !self.leaves_values || !reads {
                return Some(Ok(make(key, value)));
            }
            let back = self.back.as_mut()?;
            if !back.prepare_value() {
                break;
            }
            let (key, value) = back.entry()?;
            return Some(Ok(make(key, value)));
        }
        let status = self.back.as_ref().map_or(Ok(()), |back| back.status());
        self.end(status)
    }
}

impl std::fmt::Debug for Walk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Walk")
            .field("is_done", &self.is_done)
            .finish_non_exhaustive()
    }
}

/// The entries of a range of keys, in order, from both ends, as one state of the database.
///
/// Keys and values are owned: each is copied once. [`Entries::for_each_entry`] shows them without a
/// copy. The first error is the last item.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
/// for key in ["a", "b", "c", "d"] {
///     db.put(key, key.to_uppercase())?;
/// }
/// let mut entries = db.range("a"..="c");
/// assert_eq!(entries.next().transpose()?, Some((b"a".to_vec(), b"A".to_vec())));
/// assert_eq!(entries.next_back().transpose()?, Some((b"c".to_vec(), b"C".to_vec())));
/// let rest: Vec<_> = entries.collect::<Result<_, _>>()?;
/// assert_eq!(rest, [(b"b".to_vec(), b"B".to_vec())]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "an iterator does nothing until it is asked"]
pub struct Entries(Walk);

impl Entries {
    pub(super) fn new(front: DbIterator, limits: EntryLimits) -> Self {
        Entries(Walk {
            leaves_values: front.leaves_values(),
            front,
            back: None,
            limits: limits.is_any().then(|| Box::new(limits)),
            is_front_given: false,
            is_done: false,
            unseen: 0..0,
            batch: 1,
        })
    }

    /// Shows the entries that are left, in order, until `show` breaks off. Nothing is copied.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// use std::ops::ControlFlow;
    ///
    /// for n in 0..9_u8 {
    ///     db.put([n], vec![0; usize::from(n)])?;
    /// }
    /// let mut bytes = 0;
    /// db.range([2]..).for_each_entry(|_key, value| {
    ///     bytes += value.len();
    ///     if bytes < 9 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    /// })?;
    /// assert_eq!(bytes, 2 + 3 + 4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn for_each_entry(
        &mut self,
        mut show: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        while let Some(shown) = self.0.step(true, &mut show) {
            if shown?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The keys alone: no value is copied, and none is read from a blob file.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// let keys: Vec<_> = db.range("a"..).keys().collect::<Result<_, _>>()?;
    /// assert_eq!(keys, [b"a", b"b"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn keys(self) -> Keys {
        Keys(self.0)
    }

    /// The values alone: no key is copied.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// let values: Vec<_> = db.range("a"..).values().rev().collect::<Result<_, _>>()?;
    /// assert_eq!(values, [b"2", b"1"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn values(self) -> Values {
        Values(self.0)
    }
}

#[inline(always)]
fn pair(key: &[u8], value: &[u8]) -> Pair {
    (key.to_vec(), value.to_vec())
}

/// The keys of [`Entries`].
#[derive(Debug)]
#[must_use = "an iterator does nothing until it is asked"]
pub struct Keys(Walk);

/// The values of [`Entries`].
#[derive(Debug)]
#[must_use = "an iterator does nothing until it is asked"]
pub struct Values(Walk);

impl Iterator for Entries {
    type Item = Result<Pair>;
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.step(true, pair)
    }
}

impl DoubleEndedIterator for Entries {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.step_back(true, pair)
    }
}

impl Iterator for Keys {
    type Item = Result<Vec<u8>>;
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.step(false, |key, _| key.to_vec())
    }
}

impl DoubleEndedIterator for Keys {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.step_back(false, |key, _| key.to_vec())
    }
}

impl Iterator for Values {
    type Item = Result<Vec<u8>>;
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.step(true, |_, value| value.to_vec())
    }
}

impl DoubleEndedIterator for Values {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.step_back(true, |_, value| value.to_vec())
    }
}

impl FusedIterator for Entries {}
impl FusedIterator for Keys {}
impl FusedIterator for Values {}

impl IntoIterator for DbIterator {
    type Item = Result<Pair>;
    type IntoIter = Entries;

    /// The entries from the one where the iterator stands: its first one, unless it was placed.
    fn into_iter(self) -> Entries {
        Entries::new(self, EntryLimits::default())
    }
}

impl DbIterator {
    /// The keys from the one where the iterator stands.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// assert_eq!(db.iter().keys().count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn keys(self) -> Keys {
        self.into_iter().keys()
    }

    /// The values from the key on where the iterator stands.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// assert_eq!(db.iter().values().next().transpose()?, Some(b"value".to_vec()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn values(self) -> Values {
        self.into_iter().values()
    }

    /// Shows the entries from the one on where the iterator stands, until `show` breaks off; the
    /// iterator then stays there. Nothing is copied.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// use std::ops::ControlFlow;
    ///
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// let mut it = db.iter();
    /// it.for_each_entry(|key, _| {
    ///     if key == b"a" { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    /// })?;
    /// assert_eq!(it.key(), b"b");
    /// # Ok(())
    /// # }
    /// ```
    pub fn for_each_entry(
        &mut self,
        mut show: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        if !self.is_placed() {
            self.place_at_first();
        }
        while let Some((key, value)) = self.entry() {
            if show(key, value).is_break() {
                return Ok(());
            }
            self.next();
        }
        self.status()
    }
}

/// Towards larger or smaller keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Towards larger keys.
    Forward,
    /// Towards smaller keys.
    Reverse,
}

/// Where [`crate::Db::iterator`] begins, and where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IteratorMode<'a> {
    /// At the first key, forward.
    Start,
    /// At the last key, backward.
    End,
    /// At a key, or the next one in that direction.
    From(&'a [u8], Direction),
}

/// The entries from a place on, in one direction: see [`crate::Db::iterator`].
#[derive(Debug)]
#[must_use = "an iterator does nothing until it is asked"]
pub struct EntriesFrom {
    entries: Entries,
    direction: Direction,
}

impl EntriesFrom {
    pub(super) fn new(entries: Entries, direction: Direction) -> Self {
        EntriesFrom { entries, direction }
    }
}

impl Iterator for EntriesFrom {
    type Item = Result<Pair>;
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.direction {
            Direction::Forward => self.entries.next(),
            Direction::Reverse => self.entries.next_back(),
        }
    }
}

impl FusedIterator for EntriesFrom {}
