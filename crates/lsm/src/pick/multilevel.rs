//! A slice of a stack of runs: a range of keys from the uppermost run to the last level, which one
//! merge takes down.
//!
//! It is found from the top: tables of the uppermost run, what lies under them in the next level,
//! what lies under all these, and so on. A table that reaches out of what lies over it widens the
//! slice for all levels below it, and so for what is read of the last level. Then it is filled
//! from below: tables that lie within that width, and on nothing that stays, go along for their own
//! bytes alone.

use super::inputs::{Context, bytes, clean_cut};
use crate::file::FileMeta;
use crate::plan::{LevelInputs, hull, spanned};
use esker_format::{InternalKey, Level};
use std::ops::Range;

/// Tables from level `top` to the last one. For each of them it has all older ones that meet it.
pub(super) struct MultiLevelSlice {
    top: Level,
    /// By level from the top on; some may be empty.
    ranges: Vec<Range<usize>>,
    /// Bytes above the last level, and of that.
    above: u64,
    met: u64,
}

impl MultiLevelSlice {
    /// Tables `range` of level `top` with all that goes down with them; `None` where a running plan
    /// has or writes some of what lies below them.
    pub(super) fn of(cx: &Context<'_>, top: Level, range: Range<usize>) -> Option<Self> {
        let files = &cx.files(top)[range.clone()];
        let (lo, hi) = hull(cx.order(), files)?;
        let mut found = SliceBuilder {
            cx,
            top,
            ranges: vec![range],
            lo,
            hi,
        };
        found.go_down()?;
        found.fill_up();
        Some(found.slice())
    }

    /// Bytes of the last level for each byte that comes down.
    pub(super) fn overlap_ratio(&self) -> f64 {
        self.met as f64 / self.above.max(1) as f64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.above.saturating_add(self.met)
    }

    pub(super) fn inputs(self, cx: &Context<'_>) -> Vec<LevelInputs> {
        let levels = (self.top.0..).map(Level).zip(self.ranges);
        let inputs = levels.map(|(level, range)| LevelInputs {
            level,
            files: cx.files(level)[range].to_vec(),
        });
        inputs.collect()
    }
}

/// A slice that is being put together.
struct SliceBuilder<'a> {
    cx: &'a Context<'a>,
    top: Level,
    ranges: Vec<Range<usize>>,
    /// The keys of all its tables.
    lo: &'a InternalKey,
    hi: &'a InternalKey,
}

/// Keys that what stays leaves free, both ends exclusive; none for as far as it goes.
#[derive(Default)]
struct Gap<'a> {
    after: Option<&'a InternalKey>,
    before: Option<&'a InternalKey>,
}

impl<'a> SliceBuilder<'a> {
    /// Takes all that lies under the tables of level `top`.
    fn go_down(&mut self) -> Option<()> {
        let (cx, top) = (self.cx, self.top);
        for level in (top.0..=cx.last_level().0).map(Level) {
            if level > top {
                let range = cx.overlapping(level, self.lo, self.hi);
                self.ranges.push(range);
            }
            let files = &cx.files(level)[self.ranges[usize::from(level.0 - top.0)].clone()];
            if let Some(keys) = hull(cx.order(), files) {
                (self.lo, self.hi) = spanned(cx.order(), (self.lo, self.hi), keys);
            }
            if cx.busy.any_of(files) || self.is_written(level) {
                return None;
            }
        }
        Some(())
    }

    /// Returns whether a running plan writes into its keys of a level.
    fn is_written(&self, level: Level) -> bool {
        let cx = self.cx;
        cx.busy.writes_into(cx.order(), level, self.lo, self.hi)
    }

    /// Takes what lies within its keys, and on nothing that stays.
    fn fill_up(&mut self) {
        let mut gap = Gap::default();
        let levels = (self.top.0..=self.cx.last_level().0).map(Level);
        for (at, level) in levels.enumerate().rev() {
            if self.is_written(level) {
                return;
            }
            self.ranges[at] = self.grown(level, self.ranges[at].clone(), &gap);
            gap.close(self.cx, level, &self.ranges[at]);
        }
    }

    fn grown(&self, level: Level, range: Range<usize>, gap: &Gap<'_>) -> Range<usize> {
        let (cx, files) = (self.cx, self.cx.files(level));
        let fits = |f: &FileMeta| {
            let within =
                cx.compare(&f.smallest, self.lo).is_ge() && cx.compare(&f.largest, self.hi).is_le();
            within && gap.has(cx, f) && !cx.is_busy(f)
        };
        let more = files[..range.start].iter().rev().take_while(|f| fits(f));
        let mut from = range.start - more.count();
        let more = files[range.end..].iter().take_while(|f| fits(f));
        let mut to = range.end + more.count();
        // What was there stays cut cleanly; where nothing was, all of it can be cut off again.
        let taken = if range.is_empty() { to..from } else { range };
        let cut = |at: usize| clean_cut(cx.order(), files, at..at + 1);
        while from < taken.start && cut(from).start < from {
            from += 1;
        }
        while to > taken.end.max(from) && cut(to - 1).end > to {
            to -= 1;
        }
        from..to
    }

    fn slice(self) -> MultiLevelSlice {
        let levels = (self.top.0..).map(Level).zip(&self.ranges);
        let sizes = levels.map(|(level, range)| bytes(&self.cx.files(level)[range.clone()]));
        let (mut above, mut met) = (0_u64, 0);
        for size in sizes {
            above = above.saturating_add(met);
            met = size;
        }
        MultiLevelSlice {
            top: self.top,
            above,
            met,
            ranges: self.ranges,
        }
    }
}

impl<'a> Gap<'a> {
    fn has(&self, cx: &Context<'_>, f: &FileMeta) -> bool {
        self.after
            .is_none_or(|key| cx.compare(key, &f.smallest).is_lt())
            && self
                .before
                .is_none_or(|key| cx.compare(&f.largest, key).is_lt())
    }

    /// Tables of a level on both sides of `range` stay.
    fn close(&mut self, cx: &'a Context<'_>, level: Level, range: &Range<usize>) {
        let files = cx.files(level);
        if let Some(stays) = files[..range.start].last()
            && self
                .after
                .is_none_or(|key| cx.compare(key, &stays.largest).is_lt())
        {
            self.after = Some(&stays.largest);
        }
        if let Some(stays) = files[range.end..].first()
            && self
                .before
                .is_none_or(|key| cx.compare(&stays.smallest, key).is_lt())
        {
            self.before = Some(&stays.smallest);
        }
    }
}
