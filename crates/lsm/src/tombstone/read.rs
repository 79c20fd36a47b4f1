//! Range deletions as a scan meets them.
//!
//! [`ReadTombstones`] remembers the widest stretch of user keys around the last question in which
//! no answer changes: a scan in either direction pays two key comparisons a step, and nothing when
//! there are no tombstones. Levels are asked lazily, file by file ([`LevelTombstones`]), so that a
//! scan opens only the files that it walks over.
//!
//! Limits are user keys: a file that begins or ends inside the versions of one user key shares its
//! tombstones with its neighbour, so both speak for the whole key.
//!
//! Owned by one iterator; not shared between threads.

use super::{Clip, ClippedTombstones, FragmentedTombstones};
use esker_format::{KeyOrder, Seq, timestamp};
use esker_status::Result;
use std::cmp::Ordering;
use std::sync::Arc;

/// The files of one sorted level, as far as their tombstones matter.
pub trait LevelTombstones: Send {
    /// How many files the level has.
    fn len(&self) -> usize;
    /// Returns whether it has none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The limits of file `i`; they ascend.
    fn clip(&self, i: usize) -> &Clip;
    /// The tombstones of file `i` (`None`: it has none); opens the file's table.
    fn load(&mut self, i: usize) -> Result<Option<Arc<FragmentedTombstones>>>;
}

/// One side of a window.
#[derive(Clone, Debug, Default)]
struct WindowBound {
    bounded: bool,
    inclusive: bool,
    key: Vec<u8>,
}

impl WindowBound {
    fn set(&mut self, key: &[u8], inclusive: bool) {
        self.bounded = true;
        self.inclusive = inclusive;
        self.key.clear();
        self.key.extend_from_slice(key);
    }
}

/// A stretch of user keys with one answer.
#[derive(Clone, Debug, Default)]
struct TombstoneWindow {
    known: bool,
    low: WindowBound,
    high: WindowBound,
    seq: Seq,
    older_from: usize,
}

impl TombstoneWindow {
    #[inline]
    fn contains(&self, order: &KeyOrder, user: &[u8]) -> bool {
        self.known && self.above_low(order, user) && self.below_high(order, user)
    }

    #[inline]
    fn above_low(&self, order: &KeyOrder, user: &[u8]) -> bool {
        !self.low.bounded
            || match order.compare(user, &self.low.key) {
                Ordering::Greater => true,
                Ordering::Equal => self.low.inclusive,
                Ordering::Less => false,
            }
    }

    #[inline]
    fn below_high(&self, order: &KeyOrder, user: &[u8]) -> bool {
        !self.high.bounded
            || match order.compare(user, &self.high.key) {
                Ordering::Less => true,
                Ordering::Equal => self.high.inclusive,
                Ordering::Greater => false,
            }
    }

    fn raise_low(&mut self, order: &KeyOrder, key: &[u8], inclusive: bool) {
        let tighter = !self.low.bounded
            || match order.compare(key, &self.low.key) {
                Ordering::Greater => true,
                Ordering::Equal => !inclusive,
                Ordering::Less => false,
            };
        if tighter {
            self.low.set(key, inclusive);
        }
    }

    fn lower_high(&mut self, order: &KeyOrder, key: &[u8], inclusive: bool) {
        let tighter = !self.high.bounded
            || match order.compare(key, &self.high.key) {
                Ordering::Less => true,
                Ordering::Equal => !inclusive,
                Ordering::Greater => false,
            };
        if tighter {
            self.high.set(key, inclusive);
        }
    }

    fn cover(&mut self, seq: Seq, older_from: usize) {
        if seq > self.seq {
            self.seq = seq;
            self.older_from = older_from;
        }
    }

    /// Narrows the window round `user` to where `tombstones` give one answer, and adds that answer.
    fn narrow(
        &mut self,
        tombstones: &FragmentedTombstones,
        user: &[u8],
        point: Point<'_>,
        older_from: usize,
    ) {
        let order = tombstones.order();
        let i = tombstones.first_ending_after(user);
        if i < tombstones.len() {
            let fragment = tombstones.get(i);
            if order.compare(fragment.start, user).is_le() {
                self.raise_low(order, fragment.start, true);
                self.lower_high(order, fragment.end, false);
                return self.cover(
                    fragment.visible_seq(order, point.snapshot, point.timestamp),
                    older_from,
                );
            }
            self.lower_high(order, fragment.start, false);
        }
        if i > 0 {
            self.raise_low(order, tombstones.get(i - 1).end, true);
        }
    }

    /// Narrows the window by the tombstones of a file, which say nothing outside its limits.
    fn narrow_clipped(
        &mut self,
        clip: &Clip,
        tombstones: &FragmentedTombstones,
        user: &[u8],
        point: Point<'_>,
        older_from: usize,
    ) {
        let order = tombstones.order();
        if order.compare(user, &clip.low).is_lt() {
            return self.lower_high(order, &clip.low, false);
        }
        if clip.is_past(order, user) {
            return self.raise_low(order, &clip.high, !clip.high_inclusive);
        }
        self.raise_low(order, &clip.low, true);
        self.lower_high(order, &clip.high, clip.high_inclusive);
        self.narrow(tombstones, user, point, older_from);
    }
}

/// The view of a reader.
#[derive(Clone, Copy)]
struct Point<'a> {
    snapshot: Seq,
    timestamp: &'a [u8],
}

enum Tombstones {
    Run(ClippedTombstones),
    Level(Box<dyn LevelTombstones>),
}

struct Source {
    tombstones: Tombstones,
    older_from: usize,
}

/// Every range deletion that a read view holds.
pub struct ReadTombstones {
    order: KeyOrder,
    snapshot: Seq,
    /// Deletions above it are not seen; empty in orders without timestamps.
    timestamp: Vec<u8>,
    sources: Vec<Source>,
    window: TombstoneWindow,
}

impl ReadTombstones {
    /// None yet, for a reader at `snapshot`, and at the greatest timestamp where there are any.
    pub fn new(order: KeyOrder, snapshot: Seq) -> Self {
        ReadTombstones {
            timestamp: vec![timestamp::GREATEST; order.timestamp_size()],
            order,
            snapshot,
            sources: Vec::new(),
            window: TombstoneWindow::default(),
        }
    }

    /// For a reader at `timestamp`.
    pub(crate) fn set_timestamp(&mut self, timestamp: &[u8]) {
        self.timestamp.clear();
        self.timestamp.extend_from_slice(timestamp);
        self.window.known = false;
    }

    /// Adds a memtable or a file. The runs of the merging cursor from index `older_from` on hold
    /// only older data for the keys that this source deletes (for run `i` that is `i + 1`).
    pub fn add(&mut self, tombstones: ClippedTombstones, older_from: usize) {
        if !tombstones.is_empty() && tombstones.fragments().oldest_seq() <= self.snapshot {
            self.sources.push(Source {
                tombstones: Tombstones::Run(tombstones),
                older_from,
            });
            self.window.known = false;
        }
    }

    /// Adds a sorted level whose files are opened as the scan reaches them.
    pub fn add_level(&mut self, level: Box<dyn LevelTombstones>, older_from: usize) {
        if !level.is_empty() {
            self.sources.push(Source {
                tombstones: Tombstones::Level(level),
                older_from,
            });
            self.window.known = false;
        }
    }

    /// Returns whether nothing can be deleted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Changes the snapshot, for an iterator that is refreshed.
    pub fn set_snapshot(&mut self, snapshot: Seq) {
        self.snapshot = snapshot;
        self.window.known = false;
    }

    /// Returns whether a deletion that the reader sees hides the version `seq` of `user`.
    #[inline]
    pub fn covers(&mut self, user: &[u8], seq: Seq) -> Result<bool> {
        if self.sources.is_empty() {
            return Ok(false);
        }
        if !self.window.contains(&self.order, user) {
            self.locate(user)?;
        }
        Ok(self.window.seq > seq)
    }

    /// The newest visible deletion of `user`; zero for none.
    pub fn max_covering_seq(&mut self, user: &[u8]) -> Result<Seq> {
        self.covers(user, Seq::ZERO)?;
        Ok(if self.sources.is_empty() {
            Seq::ZERO
        } else {
            self.window.seq
        })
    }

    /// After [`ReadTombstones::covers`] said yes: the first user key to which the answer may not
    /// apply (and whether the answer still applies to that key), and the first run that holds only
    /// deleted entries until there. For `Cursor::skip_runs`.
    pub fn covered_until(&self) -> Option<(&[u8], bool, usize)> {
        let w = &self.window;
        (w.known && w.seq > Seq::ZERO && w.high.bounded).then_some((
            w.high.key.as_slice(),
            w.high.inclusive,
            w.older_from,
        ))
    }

    #[cold]
    fn locate(&mut self, user: &[u8]) -> Result<()> {
        let w = &mut self.window;
        let point = Point {
            snapshot: self.snapshot,
            timestamp: &self.timestamp,
        };
        w.known = false;
        w.low.bounded = false;
        w.high.bounded = false;
        w.seq = Seq::ZERO;
        w.older_from = usize::MAX;
        for source in &mut self.sources {
            match &mut source.tombstones {
                Tombstones::Run(t) => match t.clip() {
                    None => w.narrow(t.fragments(), user, point, source.older_from),
                    Some(c) => {
                        w.narrow_clipped(c, t.fragments(), user, point, source.older_from);
                    }
                },
                Tombstones::Level(level) => {
                    narrow_level(
                        w,
                        level.as_mut(),
                        &self.order,
                        user,
                        point,
                        source.older_from,
                    )?;
                }
            }
        }
        w.known = true;
        Ok(())
    }
}

/// Narrows the window to one file of a level, or to the gap between two.
fn narrow_level(
    w: &mut TombstoneWindow,
    level: &mut dyn LevelTombstones,
    order: &KeyOrder,
    user: &[u8],
    point: Point<'_>,
    older_from: usize,
) -> Result<()> {
    let (mut low, mut high) = (0, level.len());
    while low < high {
        let mid = (low + high) / 2;
        if level.clip(mid).is_past(order, user) {
            low = mid + 1
        } else {
            high = mid
        }
    }
    if low > 0 {
        let before = level.clip(low - 1);
        w.raise_low(order, &before.high, !before.high_inclusive);
    }
    // Neighbours can share a user key: every file that holds it speaks.
    for i in low..level.len() {
        if order.compare(user, &level.clip(i).low).is_lt() {
            w.lower_high(order, &level.clip(i).low, false);
            break;
        }
        match level.load(i)? {
            Some(tombstones) if !tombstones.is_empty() => {
                w.narrow_clipped(level.clip(i), &tombstones, user, point, older_from);
            }
            _ => {
                let clip = level.clip(i);
                w.raise_low(order, &clip.low, true);
                w.lower_high(order, &clip.high, clip.high_inclusive);
            }
        }
    }
    Ok(())
}
