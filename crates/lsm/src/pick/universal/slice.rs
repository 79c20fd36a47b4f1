//! Slices: a range of keys of the oldest two levels, merged by itself.
//!
//! A merge of whole runs takes as much space again as it reads until it is done. A slice takes some
//! files of the last level but one, what they meet in the oldest run, and what lies in their range
//! in the levels above, as far up as every file that a taken one overlaps on its way down is taken,
//! too. Level 0 cannot be cut.

use super::Run;
use crate::file::{FileMeta, compare_boundary};
use crate::pick::inputs::{Context, bytes, clean_cut};
use crate::plan::{CompactionReason, LevelInputs, Plan, hull};
use esker_format::{InternalKey, Level};
use std::ops::Range;
use std::sync::Arc;

/// Limits of a slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    /// Bytes of its inputs; a slice that is as small as can be may have more only where this is 0.
    pub(super) most_bytes: u64,
    /// Bytes of the oldest run for each byte of the level above it.
    pub(super) most_fanout: f64,
}

impl Slice {
    /// The one that takes least space, whatever it costs.
    pub(super) const LEAST: Slice = Slice {
        most_bytes: 0,
        most_fanout: f64::INFINITY,
    };
}

/// Files of the last level but one with what they meet in the oldest run.
struct Window {
    upper: Range<usize>,
    lower: Range<usize>,
    upper_bytes: u64,
    lower_bytes: u64,
}

impl Window {
    fn bytes(&self) -> u64 {
        self.upper_bytes.saturating_add(self.lower_bytes)
    }
    fn fanout(&self) -> f64 {
        self.lower_bytes as f64 / self.upper_bytes.max(1) as f64
    }
}

impl<'a> Context<'a> {
    /// The slice that rewrites the fewest bytes of the oldest run for each byte that comes down;
    /// with
    /// [`Slice::LEAST`] the one with the fewest bytes.
    pub(super) fn slice(&self, runs: &[Run<'a>], wanted: Slice) -> Option<Plan> {
        let [.., upper, lower] = runs else {
            return None;
        };
        if upper.busy || lower.busy || upper.level == Level::L0 {
            return None;
        }
        let window = if wanted.most_bytes == 0 {
            let singles =
                (0..upper.files.len()).filter_map(|i| self.window(upper, lower, i..i + 1));
            singles.min_by_key(Window::bytes)?
        } else {
            self.cheapest(upper, lower, wanted.most_bytes)?
        };
        if window.fanout() > wanted.most_fanout {
            return None;
        }
        self.slice_of(runs, window, wanted.most_bytes)
    }

    /// The window of at most `most` bytes with the least fanout.
    fn cheapest(&self, upper: &Run<'a>, lower: &Run<'a>, most: u64) -> Option<Window> {
        let mut best: Option<Window> = None;
        let mut end = 0;
        for start in 0..upper.files.len() {
            end = end.max(start + 1);
            let mut window = self.window(upper, lower, start..end)?;
            while window.bytes() <= most && end < upper.files.len() {
                let wider = self.window(upper, lower, start..end + 1)?;
                if wider.bytes() > most {
                    break;
                }
                (window, end) = (wider, end + 1);
            }
            let cheaper = best.as_ref().is_none_or(|b| window.fanout() < b.fanout());
            if window.bytes() <= most && cheaper {
                best = Some(window);
            }
        }
        best
    }

    fn window(&self, upper: &Run<'a>, lower: &Run<'a>, files: Range<usize>) -> Option<Window> {
        let files = clean_cut(self.order(), upper.files, files);
        let (lo, hi) = hull(self.order(), &upper.files[files.clone()])?;
        let met = self.overlapping(lower.level, lo, hi);
        Some(Window {
            upper_bytes: bytes(&upper.files[files.clone()]),
            lower_bytes: bytes(&lower.files[met.clone()]),
            upper: files,
            lower: met,
        })
    }

    fn slice_of(&self, runs: &[Run<'a>], window: Window, most: u64) -> Option<Plan> {
        let [newer @ .., upper, lower] = runs else {
            return None;
        };
        let start = &upper.files[window.upper.clone()];
        let (lo, hi) = hull(self.order(), start)?;
        let mut inputs = self.above(newer, (lo, hi), most.saturating_sub(window.bytes()));
        inputs.push(LevelInputs {
            level: upper.level,
            files: start.to_vec(),
        });
        inputs.push(LevelInputs {
            level: lower.level,
            files: lower.files[window.lower].to_vec(),
        });
        let path = self.policy.path_of_run(lower.bytes);
        let reason = CompactionReason::UniversalSizeAmplification;
        let mut plan = self.plan_to(inputs, lower.level, path, reason)?;
        self.finish(&mut plan, false);
        Some(plan)
    }

    /// The files of the newer levels that lie in the range and can come along, newest level first.
    /// A level with a file that only reaches into the range ends it: older files are not to stay
    /// above newer ones.
    fn above(
        &self,
        newer: &[Run<'a>],
        range: (&'a InternalKey, &'a InternalKey),
        mut room: u64,
    ) -> Vec<LevelInputs> {
        let (mut lo, mut hi) = range;
        let mut inputs = Vec::new();
        for run in newer.iter().rev() {
            if run.level == Level::L0 || run.busy {
                break;
            }
            if self.overlapping(run.level, lo, hi).is_empty() {
                continue;
            }
            let files = self.inside(run, lo, hi);
            let size = bytes(files);
            let Some(ends) = hull(self.order(), files).filter(|_| size <= room) else {
                break;
            };
            room -= size;
            (lo, hi) = ends;
            inputs.push(LevelInputs {
                level: run.level,
                files: files.to_vec(),
            });
        }
        inputs.reverse();
        inputs
    }

    /// The files of a run that do not reach beyond `[lo, hi]`; none when they cannot be cut off
    /// from the others.
    fn inside(&self, run: &Run<'a>, lo: &InternalKey, hi: &InternalKey) -> &'a [Arc<FileMeta>] {
        let reaches_out = |f: &Arc<FileMeta>| {
            compare_boundary(self.order(), f.smallest.as_bytes(), lo.as_bytes()).is_lt()
                || compare_boundary(self.order(), f.largest.as_bytes(), hi.as_bytes()).is_gt()
        };
        let met = self.overlapping(run.level, lo, hi);
        let files = &run.files[met.clone()];
        let skipped = files.iter().take_while(|f| reaches_out(f)).count();
        let kept = files[skipped..]
            .iter()
            .take_while(|f| !reaches_out(f))
            .count();
        let from = met.start + skipped;
        if clean_cut(self.order(), run.files, from..from + kept) != (from..from + kept) {
            return &[];
        }
        &run.files[from..from + kept]
    }
}
