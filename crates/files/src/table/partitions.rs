//! The blocks that a reader holds: partitions of an index or a filter, and references to blocks.

use super::cached::{CachedBlock, SharedBlock};
use super::observer::BlockRole;
use esker_cache::Glimpse;
use esker_format::block::IndexForm;
use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The kind of block behind a handle.
#[derive(Clone, Copy, Debug)]
pub(super) enum HandleKind {
    Data,
    Index(IndexForm),
    Filter,
}

impl HandleKind {
    pub(super) fn role(self) -> BlockRole {
        match self {
            HandleKind::Data => BlockRole::Data,
            HandleKind::Index(_) => BlockRole::Index,
            HandleKind::Filter => BlockRole::Filter,
        }
    }
    pub(super) fn fits(self, block: &CachedBlock) -> bool {
        matches!(
            (self, block),
            (HandleKind::Data, CachedBlock::Data(_))
                | (HandleKind::Index(_), CachedBlock::Index(_))
                | (HandleKind::Filter, CachedBlock::Filter(_))
        )
    }
}

/// Partitions that the reader holds, each loaded when first needed.
#[derive(Debug, Default)]
pub(super) struct Partitions {
    pub(super) slots: Vec<OnceLock<SharedBlock>>,
    pub(super) memory: AtomicUsize,
}

impl Partitions {
    pub(super) fn new(n: usize) -> Self {
        let mut slots = Vec::new();
        slots.resize_with(n, OnceLock::new);
        Partitions {
            slots,
            memory: AtomicUsize::new(0),
        }
    }
    #[inline]
    pub(super) fn get(&self, i: usize) -> Option<&SharedBlock> {
        self.slots.get(i)?.get()
    }
    pub(super) fn set(&self, i: usize, block: &SharedBlock) {
        if let Some(slot) = self.slots.get(i)
            && slot.set(block.clone()).is_ok()
        {
            self.memory.fetch_add(block.memory(), Ordering::Relaxed);
        }
    }
}

/// A block that the reader holds, or one that the cache holds.
pub(super) enum BlockRef<'a> {
    Borrowed(&'a CachedBlock),
    Shared(SharedBlock),
    Glimpse(Glimpse<CachedBlock>),
}

impl Deref for BlockRef<'_> {
    type Target = CachedBlock;
    #[inline]
    fn deref(&self) -> &CachedBlock {
        match self {
            BlockRef::Borrowed(b) => b,
            BlockRef::Shared(b) => b,
            BlockRef::Glimpse(b) => b,
        }
    }
}
