//! The read amplification of a family: what its reads took, by operation.
//!
//! One read in [`SAMPLE`] of a thread is looked at: the difference of the thread's own figures
//! ([`esker_files::table::ReadWork`]) is added here, and stands for all of them. The others pay for
//! a countdown. Each kind of read has its own countdown, so that kinds which alternate are all
//! looked at; the period is prime, so that patterns of reads do not fall in with it.
//!
//! Thread-safety: sums that readers add to.

use super::Family;
use esker_files::table::{READ_KINDS, ReadFigure, ReadWork, count_down};
use esker_sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Reads that one stands for.
pub(crate) const SAMPLE: u32 = 61;

/// Operation that a caller asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOperation {
    Get,
    /// A key of a `multi_get`.
    MultiGet,
    /// The positioning of an iterator.
    Seek,
    /// A step of an iterator, forward or backward.
    Next,
}

impl ReadOperation {
    pub(crate) const ALL: [ReadOperation; 4] = [
        ReadOperation::Get,
        ReadOperation::MultiGet,
        ReadOperation::Seek,
        ReadOperation::Next,
    ];
    const COUNT: usize = READ_KINDS;

    pub(crate) fn name(self) -> &'static str {
        match self {
            ReadOperation::Get => "get",
            ReadOperation::MultiGet => "multiget",
            ReadOperation::Seek => "seek",
            ReadOperation::Next => "next",
        }
    }
}

/// Returns whether this read of the thread is looked at.
#[inline]
pub(crate) fn is_sampled(operation: ReadOperation) -> bool {
    count_down(operation as usize, SAMPLE)
}

/// The sums of one kind of read.
#[derive(Debug, Default)]
struct Sums {
    looked_at: AtomicU64,
    operations: AtomicU64,
    figures: [AtomicU64; ReadFigure::COUNT],
}

/// Sums of the work of a family's reads, by operation.
#[derive(Debug, Default)]
pub(crate) struct ReadTotals([Sums; ReadOperation::COUNT]);

/// The sums of one kind of read at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadRow {
    /// Reads that were looked at.
    pub(crate) looked_at: u64,
    /// Reads that these stand for.
    pub(crate) operations: u64,
    figures: [u64; ReadFigure::COUNT],
}

impl ReadRow {
    /// The sum of several figures.
    pub(crate) fn sum(&self, figures: &[ReadFigure]) -> u64 {
        figures.iter().map(|f| self.figures[*f as usize]).sum()
    }
}

impl ReadTotals {
    /// Adds `count` reads, or steps of one, that were looked at and took `work` together.
    pub(crate) fn add(&self, operation: ReadOperation, count: u64, work: &ReadWork) {
        let (sums, weight) = (&self.0[operation as usize], u64::from(SAMPLE));
        sums.looked_at.fetch_add(count, Relaxed);
        sums.operations.fetch_add(count * weight, Relaxed);
        for figure in ReadFigure::ALL {
            let amount = work.get(*figure);
            if amount > 0 {
                sums.figures[*figure as usize].fetch_add(amount * weight, Relaxed);
            }
        }
    }

    /// The sums of one kind of read.
    pub(crate) fn row(&self, operation: ReadOperation) -> ReadRow {
        let sums = &self.0[operation as usize];
        ReadRow {
            looked_at: sums.looked_at.load(Relaxed),
            operations: sums.operations.load(Relaxed),
            figures: std::array::from_fn(|i| sums.figures[i].load(Relaxed)),
        }
    }

    /// Begins anew.
    pub(crate) fn reset(&self) {
        for sums in &self.0 {
            sums.looked_at.store(0, Relaxed);
            sums.operations.store(0, Relaxed);
            sums.figures.iter().for_each(|f| f.store(0, Relaxed));
        }
    }
}

/// A walk of an iterator that is looked at: the figures of the thread when the move began.
#[derive(Debug, Default)]
pub(crate) struct SampledMove(ReadWork);

impl SampledMove {
    pub(crate) fn begin(&mut self) {
        self.0 = ReadWork::of_thread();
    }

    /// The move is over.
    pub(crate) fn end(&self, totals: &ReadTotals, operation: ReadOperation) {
        totals.add(operation, 1, &ReadWork::of_thread().since(&self.0));
    }
}

impl Family {
    /// Carries out reads that are looked at, `count` of them.
    #[cold]
    pub(crate) fn look_at<R>(
        &self,
        operation: ReadOperation,
        count: u64,
        read: impl FnOnce() -> R,
    ) -> R {
        let before = ReadWork::of_thread();
        let out = read();
        let work = ReadWork::of_thread().since(&before);
        self.read_totals.add(operation, count, &work);
        out
    }
}
