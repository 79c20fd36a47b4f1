//! Where one output file ends and the next begins.
//!
//! A file ends when it reached its size, when it would overlap more of the level below than one later
//! compaction should read, or a little early where a file of the level below begins: then that later
//! compaction takes whole files (the idea of RocksDB's dynamic file sizes).

use crate::options::SstPartitioner;
use esker_format::KeyOrder;
use esker_format::key::user_key;
use esker_lsm::file::FileMeta;
use esker_sync::Arc;

/// Decides cuts for one pass over keys in order.
pub(crate) struct Cutter {
    order: KeyOrder,
    target: u64,
    max_overlap: u64,
    grandparents: Vec<Arc<FileMeta>>,
    /// The first grandparent that does not end before the keys seen.
    at: usize,
    /// Grandparent bytes that the open file meets.
    overlap: u64,
    seen: bool,
    partitioner: Option<Box<dyn SstPartitioner>>,
}

impl Cutter {
    /// One file, however large.
    pub(crate) fn never(order: KeyOrder) -> Self {
        Self::new(order, u64::MAX, u64::MAX, Vec::new())
    }

    pub(crate) fn new(
        order: KeyOrder,
        target: u64,
        max_overlap: u64,
        grandparents: Vec<Arc<FileMeta>>,
    ) -> Self {
        Cutter {
            order,
            target,
            max_overlap,
            grandparents,
            at: 0,
            overlap: 0,
            seen: false,
            partitioner: None,
        }
    }

    /// Ends files where `partitioner` says so, too.
    pub(crate) fn partitioned(mut self, partitioner: Option<Box<dyn SstPartitioner>>) -> Self {
        self.partitioner = partitioner;
        self
    }

    /// Whether the application wants a file of `size` bytes that ends with `last` to end before `key` (both
    /// internal).
    #[inline]
    pub(crate) fn is_boundary(&mut self, last: &[u8], key: &[u8], size: u64) -> bool {
        self.partitioner
            .as_mut()
            .is_some_and(|p| p.should_partition(user_key(last), user_key(key), size))
    }

    /// Whether a file of `size` bytes should end before `key` (internal).
    #[inline]
    pub(crate) fn should_cut(&mut self, size: u64, key: &[u8]) -> bool {
        let crossed = !self.grandparents.is_empty() && self.advance(key);
        if size >= self.target {
            return true;
        }
        if self.overlap > self.max_overlap {
            return true;
        }
        // At a boundary below, half a file is worth ending.
        crossed && size >= self.target / 2
    }

    /// Moves past the grandparents that end before `key`; true when a boundary was crossed.
    fn advance(&mut self, key: &[u8]) -> bool {
        let mut crossed = false;
        while let Some(file) = self.grandparents.get(self.at) {
            if self
                .order
                .compare_internal(key, file.largest.as_bytes())
                .is_le()
            {
                break;
            }
            if self.seen {
                self.overlap = self.overlap.saturating_add(file.size);
                crossed = true;
            }
            self.at += 1;
        }
        self.seen = true;
        crossed
    }

    /// A new file begins.
    pub(crate) fn start_file(&mut self) {
        self.overlap = 0;
    }
}
