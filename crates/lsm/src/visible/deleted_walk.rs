//! The deletions that a walk passed over since the key that it showed last, and the range that
//! comes of them ([`super::known`]). One cursor has it.

use super::deleted::DeletedRange;
use super::known::{FoundRange, KnownDeletions, ReaderPlace};
use super::options::VisibleOptions;
use esker_format::{KeyOrder, Seq};
use esker_status::seeded::{Bug, seeded};
use std::sync::Arc;

/// Deletions of a walk that are worth a range. Tests that check assertions meet short ones.
const LEAST_DELETIONS: u32 = if cfg!(debug_assertions) { 2 } else { 16 };
/// As many beside a range that is known make it longer.
const LEAST_BESIDE: u32 = if cfg!(debug_assertions) { 1 } else { 8 };
/// The first deletions of a walk are looked up, and one in as many after that.
pub(super) const LOOK_UP_EVERY: u32 = 8;

/// Deletions that a walk passed over since the key that it showed last.
#[derive(Debug)]
pub(super) struct DeletedWalk {
    source: KnownDeletions,
    is_open: bool,
    /// Deletions that no known range has.
    pub(super) deletions: u32,
    /// Nothing is visible in between; the end is not part of it.
    begin: Vec<u8>,
    end: Vec<u8>,
    known: Vec<Arc<DeletedRange>>,
    pub(super) found: Option<Box<FoundRange>>,
}

impl DeletedWalk {
    pub(super) fn wanted(options: &VisibleOptions) -> Option<Box<Self>> {
        let counts = options.min_deleted_run > 0
            || options.hidden_limits.is_any()
            || options.order.timestamp_size() > 0;
        let source = options.known.clone().filter(|_| !counts)?;
        Some(Box::new(DeletedWalk {
            source,
            is_open: false,
            deletions: 0,
            begin: Vec::new(),
            end: Vec::new(),
            known: Vec::new(),
            found: None,
        }))
    }

    /// The cursor goes to another reader: what this one found and did not take is lost.
    pub(super) fn change_reader(&mut self, epoch: u64) {
        self.source.epoch = epoch;
        self.found = None;
        self.reset();
    }

    fn place(&self, snapshot: Seq) -> ReaderPlace {
        ReaderPlace {
            snapshot,
            view: self.source.view,
            epoch: self.source.epoch,
        }
    }

    /// Forgets what was seen.
    pub(super) fn reset(&mut self) {
        self.is_open = false;
        self.deletions = 0;
        self.known.clear();
    }

    /// Returns whether there may be known ranges.
    #[inline]
    pub(super) fn is_any(&self) -> bool {
        self.source.ranges.is_any()
    }

    pub(super) fn covering(&self, key: &[u8], snapshot: Seq) -> Option<Arc<DeletedRange>> {
        self.source.ranges.covering(key, &self.place(snapshot))
    }

    pub(super) fn push(&mut self, key: &[u8], forward: bool, order: &KeyOrder) {
        if !self.is_open || forward {
            set(&mut self.end, key);
            if order.is_bytewise() {
                // The least key after it.
                self.end.push(0);
            }
        }
        if !self.is_open || !forward {
            set(&mut self.begin, key);
        }
        self.is_open = true;
    }

    /// Takes in a known range that the walk goes past.
    pub(super) fn enter(&mut self, range: Arc<DeletedRange>, order: &KeyOrder) {
        if !self.is_open || order.compare(&range.begin, &self.begin).is_lt() {
            set(&mut self.begin, &range.begin);
        }
        if !self.is_open || order.compare(&range.end, &self.end).is_gt() {
            set(&mut self.end, &range.end);
        }
        self.is_open = true;
        self.known.push(range);
    }

    /// Ends a walk; going forward, `shown` is the key where it ended.
    pub(super) fn close(&mut self, shown: Option<&[u8]>, snapshot: Seq) {
        let least = if self.known.is_empty() {
            LEAST_DELETIONS
        } else {
            LEAST_BESIDE
        };
        if let Some(shown) = shown {
            set(&mut self.end, shown);
            if seeded(Bug::DeletedRangeWidened) {
                self.end.push(0);
            }
        }
        if self.deletions >= least {
            self.found = Some(Box::new(FoundRange {
                range: DeletedRange {
                    begin: self.begin.clone(),
                    end: self.end.clone(),
                },
                place: self.place(snapshot),
                known: std::mem::take(&mut self.known),
            }));
        }
        self.reset();
    }
}

fn set(buffer: &mut Vec<u8>, to: &[u8]) {
    buffer.clear();
    buffer.extend_from_slice(to);
}
