//! An iterator over an engine that only has ranges to walk: a new range for each seek and each
//! turn.

use std::ops::Bound;

use crate::store::Iter;
use crate::{Failure, Result};

/// Ranges of an engine, one under way at a time.
pub(crate) trait Ranges {
    /// A key, as long as the cursor stands on it.
    type Key: AsRef<[u8]>;
    /// A value, as long as the cursor stands on it.
    type Value: AsRef<[u8]>;

    /// Begins the range of these ends, from its first key on or from its last one down.
    ///
    /// # Errors
    /// As reported by the engine.
    fn begin(&mut self, from: Bound<&[u8]>, to: Bound<&[u8]>, is_forward: bool) -> Result<()>;

    /// The next pair of the range under way.
    ///
    /// # Errors
    /// As reported by the engine.
    fn step(&mut self) -> Result<Option<(Self::Key, Self::Value)>>;
}

/// An iterator between optional bounds: the lower one in, the upper one out.
pub(crate) struct Cursor<R: Ranges> {
    ranges: R,
    is_forward: bool,
    at: Option<(R::Key, R::Value)>,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    failure: Option<Failure>,
}

impl<R: Ranges> Cursor<R> {
    pub(super) fn new(ranges: R, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Cursor<R> {
        Cursor {
            ranges,
            is_forward: true,
            at: None,
            lower: lower.map(<[u8]>::to_vec),
            upper: upper.map(<[u8]>::to_vec),
            failure: None,
        }
    }

    fn go(&mut self, from: Bound<&[u8]>, to: Bound<&[u8]>, is_forward: bool) -> bool {
        self.is_forward = is_forward;
        match self.ranges.begin(from, to, is_forward) {
            Ok(()) => self.step(),
            Err(why) => self.fail(why),
        }
    }

    fn fail(&mut self, why: Failure) -> bool {
        (self.at, self.failure) = (None, Some(why));
        false
    }

    #[inline]
    fn step(&mut self) -> bool {
        match self.ranges.step() {
            Ok(pair) => {
                let (lower, upper) = (self.lower.as_deref(), self.upper.as_deref());
                self.at = pair.filter(|(key, _)| {
                    lower.is_none_or(|lower| lower <= key.as_ref())
                        && upper.is_none_or(|upper| key.as_ref() < upper)
                });
                self.at.is_some()
            }
            Err(why) => self.fail(why),
        }
    }
}

impl<R: Ranges> Iter for Cursor<R> {
    fn seek_to_first(&mut self) -> bool {
        let lower = self.lower.clone();
        let from = lower.as_deref().map_or(Bound::Unbounded, Bound::Included);
        self.go(from, Bound::Unbounded, true)
    }

    fn seek_to_last(&mut self) -> bool {
        let upper = self.upper.clone();
        let to = upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.go(Bound::Unbounded, to, false)
    }

    fn seek(&mut self, key: &[u8]) -> bool {
        if self.lower.as_deref().is_some_and(|lower| key < lower) {
            return self.seek_to_first();
        }
        self.go(Bound::Included(key), Bound::Unbounded, true)
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> bool {
        if self.upper.as_deref().is_some_and(|upper| upper <= key) {
            return self.seek_to_last();
        }
        self.go(Bound::Unbounded, Bound::Included(key), false)
    }

    #[inline]
    fn next(&mut self) -> bool {
        match self.at.take() {
            Some((key, _)) if !self.is_forward => {
                self.go(Bound::Excluded(key.as_ref()), Bound::Unbounded, true)
            }
            _ => self.step(),
        }
    }

    #[inline]
    fn prev(&mut self) -> bool {
        match self.at.take() {
            Some((key, _)) if self.is_forward => {
                self.go(Bound::Unbounded, Bound::Excluded(key.as_ref()), false)
            }
            _ => self.step(),
        }
    }

    fn key(&self) -> &[u8] {
        self.at.as_ref().map_or(&[], |(key, _)| key.as_ref())
    }

    fn value(&self) -> &[u8] {
        self.at.as_ref().map_or(&[], |(_, value)| value.as_ref())
    }

    fn status(&self) -> Result<()> {
        self.failure.clone().map_or(Ok(()), Err)
    }
}
