//! Where one output file of a compaction ends and the next begins.
//!
//! A file ends when it reached its size, when it would meet more of the level below (the
//! grandparents of the compaction) than one later compaction should read, and at two kinds of
//! places that make that later compaction smaller:
//! * where a grandparent ends, once the file has half its size: then the later compaction takes
//!   whole files and not two that it meets at their edges (the idea of RocksDB's dynamic file
//!   sizes);
//! * where whole grandparents lie between two of its keys: a file that went on would take them
//!   along for nothing.
//!
//! Gains of half the size, by forecasts of random overwrites (fanout 8, tables of 16 MB; write-amp
//! for 10, 20 and 50 million keys of 432 bytes; space is the same everywhere), and the rules that
//! lost:
//!
//! | rule | write-amp | mean table above the last level |
//! |---|---|---|
//! | no alignment | 9.87, 10.74, 13.65 | 14.8 MB |
//! | **from half the size** | 8.25, 9.14, 11.49 | 8.4 MB |
//! | from three quarters | 8.55, 9.32, 11.95 | 12.3 MB |
//! | from half, 10 % later for each boundary met (RocksDB's) | 8.76, 9.70, 12.28 | 13.3 MB |
//! | where the next boundary would come too late | 8.50, 9.34, 11.82 | 13.0 MB |
//! | at the boundary nearest to the size, up to 1.25 of it | 8.46, 9.20, 11.67 | 14.1 MB |
//! | the same up to 1.5 | 8.32, 9.24, 11.57 | 13.9 MB |
//! | at the first boundary after the size, up to twice it | 8.38, 9.18, 11.56 | 15.5 MB |
//! | from a quarter | 8.16, 8.97, 11.33 | 4.7 MB |
//!
//! Small files gain twice: their edges lie on the grandparents', and there are more to pick the
//! cheapest from. A quarter gains little more, for twice the tables.
//!
//! The second kind never comes with keys all over. With overwrites at both ends of a tree of 1 to 2
//! MB (tables of 64 KB, a base of 128 KB) it takes 5.21 to 5.13 where a third lies untouched
//! between them, and 5.09 to 4.92 where half does. A file so made has an eighth of its size at
//! least, unlike RocksDB's, where a few keys all over a large tree make a table each.
//!
//! Pure; owned by one part of a compaction.

use crate::file::FileMeta;
use crate::plan::Plan;
use esker_format::KeyOrder;
use esker_format::key::user_key;
use std::sync::Arc;

/// Decides cuts for one pass over keys in order.
pub struct Cutter {
    order: KeyOrder,
    target: u64,
    /// From this size on a file ends where a grandparent does.
    edge: u64,
    max_overlap: u64,
    grandparents: Vec<Arc<FileMeta>>,
    /// The first grandparent that does not end before the keys seen.
    at: usize,
    /// Grandparent bytes that the open file went past.
    overlap: u64,
    /// True if `at` was found.
    placed: bool,
}

impl Cutter {
    /// One file, however large.
    pub fn never(order: KeyOrder) -> Self {
        Self::new(order, u64::MAX, u64::MAX, Vec::new())
    }

    /// Files of `target` bytes over `grandparents`, sorted, of which none should meet more than
    /// `max_overlap` bytes.
    pub fn new(
        order: KeyOrder,
        target: u64,
        max_overlap: u64,
        grandparents: Vec<Arc<FileMeta>>,
    ) -> Self {
        Cutter {
            order,
            target,
            edge: target / 2,
            max_overlap,
            grandparents,
            at: 0,
            overlap: 0,
            placed: false,
        }
    }

    /// As `plan` wants the outputs of its merge.
    pub fn of(order: KeyOrder, plan: &Plan) -> Self {
        let grandparents = plan.grandparents.clone();
        let usual = Self::new(
            order,
            plan.max_output_file_size,
            plan.max_compaction_bytes,
            grandparents,
        );
        Cutter {
            edge: plan.edge_bytes.unwrap_or(usual.edge),
            ..usual
        }
    }

    /// The size at which a file ends wherever it is.
    pub fn target(&self) -> u64 {
        self.target
    }

    /// Returns whether the open file of `size` bytes, whose last entry is `last`, should end before
    /// `key` (both internal). To be asked for each key but a file's first.
    #[inline]
    pub fn should_cut(&mut self, size: u64, last: &[u8], key: &[u8]) -> bool {
        let skipped = if self.grandparents.is_empty() {
            None
        } else {
            self.cross(last, key)
        };
        if size >= self.target || self.overlap > self.max_overlap {
            return true;
        }
        let small = self.target / 8;
        skipped.is_some_and(|bytes| size >= self.edge || bytes.min(size) > small)
    }

    /// Goes past the grandparents that end before `key`: `None` when there is no such, else the
    /// bytes of those that lie between `last` and `key`.
    #[inline]
    fn cross(&mut self, last: &[u8], key: &[u8]) -> Option<u64> {
        if !self.placed {
            self.placed = true;
            self.at += self.grandparents[self.at..].partition_point(|f| self.ends_before(f, last));
        }
        let file = self.grandparents.get(self.at)?;
        self.ends_before(file, key).then(|| self.pass(last, key))
    }

    #[inline]
    fn ends_before(&self, file: &FileMeta, key: &[u8]) -> bool {
        self.order
            .compare_internal(file.largest.as_bytes(), key)
            .is_lt()
    }

    fn pass(&mut self, last: &[u8], key: &[u8]) -> u64 {
        let ahead = &self.grandparents[self.at..];
        let count = ahead.partition_point(|f| self.ends_before(f, key));
        let passed = &ahead[..count];
        let last = user_key(last);
        let begins_after = |f: &&Arc<FileMeta>| {
            let first = f.smallest.user();
            self.order.compare_without_timestamp(first, last).is_gt()
        };
        let bytes = |sum: u64, f: &Arc<FileMeta>| sum.saturating_add(f.size);
        self.overlap = passed.iter().fold(self.overlap, bytes);
        let skipped = passed.iter().filter(begins_after).fold(0, bytes);
        self.at += count;
        skipped
    }

    /// A new file begins.
    pub fn start_file(&mut self) {
        self.overlap = 0;
    }
}

#[cfg(test)]
mod tests;
