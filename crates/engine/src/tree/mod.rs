//! The files of trees: where they are, their numbers, the open tables and blob files, and what is
//! obsolete. [`crate::store`] has the changes of trees.

pub(crate) mod archive;
pub(crate) mod blobs;
pub(crate) mod obsolete;
pub(crate) mod paths;
pub(crate) mod sizes;
pub(crate) mod tables;

pub(crate) use archive::Archive;
pub(crate) use obsolete::{ObsoleteFiles, PurgeReport};
pub(crate) use paths::TablePaths;
pub(crate) use sizes::SizesIn;
pub(crate) use tables::Tables;

use esker_format::FileNo;
use esker_status::seeded::{Bug, seeded};
use esker_sync::atomic::{AtomicU64, Ordering};
use esker_sync::{Arc, Mutex, Rank};
use std::collections::BTreeMap;

/// The one sequence that tables, logs, MANIFESTs, OPTIONS and blob files take their numbers from.
#[derive(Debug)]
pub(crate) struct FileNumbers {
    next: AtomicU64,
    /// For each running job the number that was next when it began, with how many jobs began there.
    writing: Mutex<BTreeMap<FileNo, usize>>,
}

/// A job that writes tables; until it is dropped, tables from its first number on may be unlisted.
#[derive(Debug)]
pub(crate) struct UnlistedTables {
    numbers: Arc<FileNumbers>,
    from: FileNo,
}

impl Drop for UnlistedTables {
    fn drop(&mut self) {
        let mut writing = self.numbers.writing.lock();
        if let Some(n) = writing.get_mut(&self.from) {
            *n -= 1;
            if *n == 0 {
                writing.remove(&self.from);
            }
        }
    }
}

impl FileNumbers {
    pub(crate) fn new(next: FileNo) -> Self {
        let next = if seeded(Bug::FileNumberReused) {
            FileNo(2)
        } else {
            next
        };
        FileNumbers {
            next: AtomicU64::new(next.0),
            writing: Mutex::new(Rank::LEAF, BTreeMap::new()),
        }
    }

    /// A number that no file has had.
    pub(crate) fn next(&self) -> FileNo {
        FileNo(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// The number that the next call of [`FileNumbers::next`] gives.
    pub(crate) fn peek(&self) -> FileNo {
        FileNo(self.next.load(Ordering::Relaxed))
    }

    /// Makes sure that `used` is not given out.
    pub(crate) fn mark_used(&self, used: FileNo) {
        if !seeded(Bug::FileNumberReused) {
            self.next.fetch_max(used.0 + 1, Ordering::Relaxed);
        }
    }

    /// Takes note of a job that begins to write tables.
    pub(crate) fn protect(numbers: &Arc<Self>) -> UnlistedTables {
        let mut writing = numbers.writing.lock();
        let from = numbers.peek();
        *writing.entry(from).or_insert(0) += 1;
        UnlistedTables {
            numbers: Arc::clone(numbers),
            from,
        }
    }

    /// The first number that a running job may have given to a table that is not listed yet.
    pub(crate) fn oldest_writing(&self) -> Option<FileNo> {
        self.writing.lock().keys().next().copied()
    }
}
