//! Work of the reads of one thread: blocks, filters, comparisons of keys.
//!
//! Each thread has its own figures, so counting takes no lock and no atomic operation. The perf
//! context shows them, and the read amplification of a family is a sum of differences of them. A
//! read counts in [`super::ReadCounters`] on its stack and adds them up here once; what goes with
//! I/O is added at once.

use super::observer::BlockRole;
use std::cell::Cell;

macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A figure of [`ReadWork`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum ReadFigure {
            $($(#[$doc])* $name,)*
        }

        impl ReadFigure {
            /// All of them.
            pub const ALL: &'static [ReadFigure] = &[$(ReadFigure::$name),*];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();
        }
    };
}

figures! {
    /// Blocks of entries read from files.
    DataBlocksRead,
    /// Blocks of indexes read from files.
    IndexBlocksRead,
    /// Blocks of filters read from files.
    FilterBlocksRead,
    /// Other blocks read from files: properties, tombstones, dictionaries.
    MetaBlocksRead,
    /// Stored bytes of the blocks of entries.
    DataBytesRead,
    /// Stored bytes of the blocks of indexes.
    IndexBytesRead,
    /// Stored bytes of the blocks of filters.
    FilterBytesRead,
    /// Stored bytes of the other blocks.
    MetaBytesRead,
    /// Blocks of entries found in the cache.
    DataHits,
    /// Blocks of indexes found in the cache.
    IndexHits,
    /// Blocks of filters found in the cache.
    FilterHits,
    /// Blocks of entries found in the second tier of the cache; they count as found in it, too.
    TierHits,
    /// Filters that said no.
    FiltersUseful,
    /// Filters that said maybe.
    FiltersPassed,
    /// Comparisons of keys in indexes and blocks: of whole keys, or of eight bytes of them.
    KeysCompared,
    /// Tables searched, by their filters alone or further.
    TablesSearched,
    /// Memtables searched.
    MemtablesSearched,
    /// Entries that an iterator passed over because a newer one of the key hides them.
    KeysSkipped,
    /// Deletions that an iterator passed over.
    DeletionsSkipped,
    /// Entries that an iterator passed over because they are newer than its snapshot.
    RecentSkipped,
}

struct WorkCounters {
    is_counting: Cell<bool>,
    figures: [Cell<u64>; ReadFigure::COUNT],
    /// Reads left until one of a kind is looked at, and how often one was.
    left: [Cell<u32>; READ_KINDS],
    rounds: Cell<u64>,
    mark: WorkMark,
}

/// Kinds of reads that [`count_down`] tells apart.
pub const READ_KINDS: usize = 4;

/// The figures when a read began, or before the first block that it read from a file.
struct WorkMark {
    figures: Cell<[u64; ReadFigure::COUNT]>,
    /// The read that it belongs to.
    read: Cell<(u64, [u32; READ_KINDS])>,
    /// It belongs to what is under way, whatever reads that has.
    is_held: Cell<bool>,
}

impl WorkCounters {
    /// Counters that no two reads of a thread have in common.
    fn read(&self) -> (u64, [u32; READ_KINDS]) {
        (
            self.rounds.get(),
            std::array::from_fn(|i| self.left[i].get()),
        )
    }

    fn set_mark(&self) {
        let figures = std::array::from_fn(|i| self.figures[i].get());
        self.mark.figures.set(figures);
        self.mark.read.set(self.read());
    }

    #[cold]
    fn end_round(&self, kind: usize, period: u32) -> bool {
        let is_first = self.left[kind].get() == 0;
        self.left[kind].set(if is_first { period - 1 } else { period });
        self.rounds.set(self.rounds.get() + 1);
        !is_first || period == 1
    }

    /// Sets the mark of the read under way, unless it has one.
    fn mark_read(&self) {
        if !self.mark.is_held.get() && self.mark.read.get() != self.read() {
            self.set_mark();
        }
    }
}

thread_local! {
    static FIGURES: WorkCounters = const {
        WorkCounters {
            is_counting: Cell::new(true),
            figures: [const { Cell::new(0) }; ReadFigure::COUNT],
            left: [const { Cell::new(0) }; READ_KINDS],
            rounds: Cell::new(0),
            mark: WorkMark {
                figures: Cell::new([0; ReadFigure::COUNT]),
                read: Cell::new((u64::MAX, [0; READ_KINDS])),
                is_held: Cell::new(false),
            },
        }
    };
}

/// The figures of a thread at a moment, or what was added to them since another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadWork([u64; ReadFigure::COUNT]);

impl ReadWork {
    /// The figures of the calling thread.
    pub fn of_thread() -> ReadWork {
        FIGURES.with(|f| ReadWork(std::array::from_fn(|i| f.figures[i].get())))
    }

    /// Returns the work added since `before`.
    pub fn since(&self, before: &ReadWork) -> ReadWork {
        ReadWork(std::array::from_fn(|i| self.0[i].wrapping_sub(before.0[i])))
    }

    /// One figure.
    pub fn get(&self, figure: ReadFigure) -> u64 {
        self.0[figure as usize]
    }

    /// The sum of several figures.
    pub fn sum(&self, figures: &[ReadFigure]) -> u64 {
        figures.iter().map(|f| self.get(*f)).sum()
    }
}

/// Adds to several figures of the calling thread, if it counts.
#[inline]
pub fn add_read_work<const N: usize>(amounts: [(ReadFigure, u64); N]) {
    FIGURES.with(|f| {
        if f.is_counting.get() {
            for (figure, amount) in amounts {
                let figure = &f.figures[figure as usize];
                figure.set(figure.get().wrapping_add(amount));
            }
        }
    });
}

/// Counts a read of a kind. Returns whether it is looked at: the last one of each `period` of the
/// thread is.
#[inline]
pub fn count_down(kind: usize, period: u32) -> bool {
    FIGURES.with(|f| {
        let left = &f.left[kind];
        let now = left.get();
        if now > 1 {
            left.set(now - 1);
            return false;
        }
        f.end_round(kind, period)
    })
}

/// The figures change from here on: they are marked, unless the read under way has a mark.
pub fn mark_read_work() {
    FIGURES.with(WorkCounters::mark_read);
}

/// Marks the figures of the calling thread for what begins, until [`release_read_work`].
pub fn hold_read_work() {
    FIGURES.with(|f| {
        f.set_mark();
        f.mark.is_held.set(true);
    });
}

/// Ends what [`hold_read_work`] began.
pub fn release_read_work() {
    FIGURES.with(|f| f.mark.is_held.set(false));
}

/// Work since the mark of the read under way; none if it has no mark.
pub fn read_work_since_mark() -> ReadWork {
    FIGURES.with(|f| {
        if !f.mark.is_held.get() && f.mark.read.get() != f.read() {
            return ReadWork::default();
        }
        ReadWork::of_thread().since(&ReadWork(f.mark.figures.get()))
    })
}

/// Sets the figures of the calling thread to 0.
pub fn reset_read_work() {
    FIGURES.with(|f| f.figures.iter().for_each(|figure| figure.set(0)));
}

/// Sets the figures of the calling thread.
pub fn set_read_work(work: &ReadWork) {
    FIGURES.with(|f| {
        f.figures
            .iter()
            .zip(work.0)
            .for_each(|(figure, n)| figure.set(n))
    });
}

/// Sets whether the calling thread counts; it does unless this sets it otherwise.
pub fn set_read_work_counting(counts: bool) {
    FIGURES.with(|f| f.is_counting.set(counts));
}

/// A block was read from a file; `None` for one that is neither data nor index nor filter.
pub(super) fn count_block_read(role: Option<BlockRole>, stored: usize) {
    use ReadFigure as F;
    let (blocks, bytes) = match role {
        Some(BlockRole::Data) => (F::DataBlocksRead, F::DataBytesRead),
        Some(BlockRole::Index) => (F::IndexBlocksRead, F::IndexBytesRead),
        Some(BlockRole::Filter) => (F::FilterBlocksRead, F::FilterBytesRead),
        None => (F::MetaBlocksRead, F::MetaBytesRead),
    };
    mark_read_work();
    add_read_work([(blocks, 1), (bytes, stored as u64)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_its_own_figures_and_counts_unless_told_otherwise() {
        reset_read_work();
        let before = ReadWork::of_thread();
        add_read_work([(ReadFigure::DataHits, 2), (ReadFigure::KeysCompared, 7)]);
        std::thread::scope(|scope| {
            scope.spawn(|| add_read_work([(ReadFigure::DataHits, 100)]));
        });
        set_read_work_counting(false);
        add_read_work([(ReadFigure::DataHits, 1000)]);
        set_read_work_counting(true);
        let work = ReadWork::of_thread().since(&before);
        assert_eq!(work.get(ReadFigure::DataHits), 2);
        assert_eq!(
            work.sum(&[ReadFigure::DataHits, ReadFigure::KeysCompared]),
            9
        );
        reset_read_work();
        assert_eq!(ReadWork::of_thread(), ReadWork::default());
    }

    #[test]
    fn a_read_is_marked_once_before_its_first_block() {
        reset_read_work();
        let begin = || count_down(1, 61);
        begin();
        add_read_work([(ReadFigure::IndexHits, 3)]);
        assert_eq!(read_work_since_mark(), ReadWork::default());
        for _ in 0..2 {
            count_block_read(Some(BlockRole::Data), 100);
        }
        assert_eq!(read_work_since_mark().get(ReadFigure::DataBlocksRead), 2);
        assert_eq!(read_work_since_mark().get(ReadFigure::IndexHits), 0);
        for _ in 0..61 {
            begin();
            assert_eq!(read_work_since_mark(), ReadWork::default());
        }
        count_block_read(None, 7);
        assert_eq!(read_work_since_mark().get(ReadFigure::MetaBlocksRead), 1);
        hold_read_work();
        for _ in 0..3 {
            begin();
            count_block_read(None, 7);
        }
        assert_eq!(read_work_since_mark().get(ReadFigure::MetaBlocksRead), 3);
        release_read_work();
        begin();
        assert_eq!(read_work_since_mark(), ReadWork::default());
    }

    #[test]
    fn one_of_each_period_is_looked_at() {
        std::thread::spawn(|| {
            let looked_at = |n: u32| (0..n).filter(|_| count_down(2, 5)).count();
            assert_eq!(
                [looked_at(4), looked_at(1), looked_at(4), looked_at(1)],
                [0, 1, 0, 1]
            );
            assert!(!count_down(3, 5), "a kind of its own");
            assert_eq!(looked_at(50), 10);
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn blocks_are_counted_by_what_they_are_for() {
        reset_read_work();
        count_block_read(Some(BlockRole::Data), 100);
        count_block_read(Some(BlockRole::Index), 20);
        count_block_read(Some(BlockRole::Filter), 3);
        count_block_read(None, 4000);
        let work = ReadWork::of_thread();
        let bytes = [
            ReadFigure::DataBytesRead,
            ReadFigure::IndexBytesRead,
            ReadFigure::FilterBytesRead,
            ReadFigure::MetaBytesRead,
        ];
        assert_eq!(bytes.map(|f| work.get(f)), [100, 20, 3, 4000]);
        assert_eq!(work.get(ReadFigure::FilterBlocksRead), 1);
    }
}
