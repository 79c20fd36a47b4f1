//! An arena: memory that is allocated piece by piece and freed all at once.
//!
//! Each thread allocates from one of a few shards, and a shard is a block with an atomic fill mark:
//! an allocation is one `fetch_add`, and two threads meet only when they share a shard. A full
//! block is replaced under a lock. Blocks grow with the arena, so that many small arenas waste
//! little. Blocks are freed when the arena is dropped, and not before, so a
//! thread that still looks at a replaced block does no harm. Pieces too large for a block get one
//! of their own.
//!
//! Invariants: every piece is aligned to [`ALIGN`] and belongs to one caller; `fill` of a block may
//! run past its end (a lost race), and whoever runs past takes nothing from it.

use crate::sync::{AtomicPtr, AtomicUsize, Mutex, Ordering, Rank};
use esker_sync::CachePadded;
use esker_sync::memory::Gauge;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// The alignment of every piece.
pub(crate) const ALIGN: usize = 8;
/// Where the first piece of a block starts, which is aligned to it: pieces of multiples of 64 all
/// are.
const BLOCK_HEAD: usize = 64;
const _: () = assert!(size_of::<Block>() <= BLOCK_HEAD);
const HUGE_PAGE: usize = 2 << 20;
const SHARDS_MAX: usize = 16;
const BLOCK_BYTES_MIN: usize = 4 << 10;
/// The first blocks of an arena: a database in which little is written holds no more.
const FIRST_BLOCK_BYTES: usize = 8 << 10;
/// Blocks once the arena has as much, where blocks may be as large.
const EARLY_BLOCK_BYTES: usize = 64 << 10;
/// A block is this part of what the arena has, until it is as large as the options say.
const GROWTH: usize = 8;

/// Bytes of all arenas of this process.
pub static ARENAS: Gauge = Gauge::new();

/// Tells the system that huge pages shall back these bytes. It must not change their contents.
pub type HugePageCall = fn(NonNull<u8>, usize);

/// How an index takes memory from the system.
#[derive(Clone, Copy, Debug)]
pub struct ArenaOptions {
    /// Most bytes taken at once; RocksDB's `arena_block_size`. At least 4 KB.
    pub block_size: usize,
    /// Align blocks to 2 MB and ask the system for huge pages this way (blocks of 2 MB and more).
    pub huge_pages: Option<HugePageCall>,
}

impl Default for ArenaOptions {
    fn default() -> Self {
        ArenaOptions {
            block_size: 1 << 20,
            huge_pages: None,
        }
    }
}

/// The head of a block; the pieces follow it.
struct Block {
    /// Bytes handed out, head included.
    fill: AtomicUsize,
    size: usize,
}

#[derive(Debug)]
struct OwnedBlock {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: an `OwnedBlock` is the sole owner of its memory, which any thread may free.
unsafe impl Send for OwnedBlock {}

/// Memory handed out piece by piece; see the head of this file. `Send + Sync`.
#[derive(Debug)]
pub(crate) struct Arena {
    options: ArenaOptions,
    /// The block that each shard fills; null before its first piece.
    shards: Box<[CachePadded<AtomicPtr<Block>>]>,
    blocks: Mutex<Vec<OwnedBlock>>,
    reserved: AtomicUsize,
}

impl Arena {
    /// An arena that holds no memory yet.
    pub(crate) fn new(mut options: ArenaOptions) -> Self {
        options.block_size = options
            .block_size
            .max(BLOCK_BYTES_MIN)
            .next_multiple_of(ALIGN);
        let threads = esker_sync::thread::parallelism();
        let shards = threads.next_power_of_two().min(SHARDS_MAX);
        Arena {
            options,
            shards: (0..shards)
                .map(|_| CachePadded::new(AtomicPtr::new(std::ptr::null_mut())))
                .collect(),
            blocks: Mutex::new(Rank::LEAF, Vec::new()),
            reserved: AtomicUsize::new(0),
        }
    }

    /// Bytes taken from the system.
    #[inline]
    pub(crate) fn memory_usage(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }

    /// Bytes handed out or lost at the ends of blocks: [`Arena::memory_usage`] without what the
    /// blocks being filled still have.
    pub(crate) fn used(&self) -> usize {
        let left: usize = self
            .shards
            .iter()
            .map(|s| block_left(s.load(Ordering::Acquire)))
            .sum();
        self.memory_usage().saturating_sub(left)
    }

    /// `len` bytes, uninitialised, aligned to 8, valid until the arena is dropped. No other
    /// caller gets them.
    #[inline]
    pub(crate) fn allocate(&self, len: usize) -> NonNull<u8> {
        // Lengths of entries are below 2^33, so this cannot wrap.
        let len = len.next_multiple_of(ALIGN);
        let shard = &self.shards[esker_sync::thread::number() as usize & (self.shards.len() - 1)];
        match try_bump(shard.load(Ordering::Acquire), len) {
            Some(piece) => piece,
            None => self.allocate_slow(shard, len),
        }
    }

    #[cold]
    fn allocate_slow(&self, shard: &AtomicPtr<Block>, len: usize) -> NonNull<u8> {
        let mut blocks = self.blocks.lock();
        let size = self.next_block_size();
        if len > size / 4 {
            let block = self.new_block(&mut blocks, len + BLOCK_HEAD, None);
            return try_bump(block, len).expect("the block was made for this piece");
        }
        // Another thread of the same shard may have replaced the block meanwhile.
        if let Some(piece) = try_bump(shard.load(Ordering::Acquire), len) {
            return piece;
        }
        let block = self.new_block(&mut blocks, size, self.options.huge_pages);
        let piece = try_bump(block, len).expect("a piece is at most a quarter of a block");
        shard.store(block, Ordering::Release);
        piece
    }

    /// Returns the size of the next block that a shard fills.
    fn next_block_size(&self) -> usize {
        let most = self.options.block_size;
        if self.options.huge_pages.is_some() && most >= HUGE_PAGE {
            return most;
        }
        let has = self.memory_usage();
        let least = if has < EARLY_BLOCK_BYTES {
            FIRST_BLOCK_BYTES
        } else {
            EARLY_BLOCK_BYTES
        };
        (has / GROWTH)
            .next_multiple_of(BLOCK_BYTES_MIN)
            .clamp(least.min(most), most)
    }

    /// Takes `size` bytes from the system, as a block with nothing handed out.
    fn new_block(
        &self,
        blocks: &mut Vec<OwnedBlock>,
        size: usize,
        huge: Option<HugePageCall>,
    ) -> *mut Block {
        let huge = huge.filter(|_| size >= HUGE_PAGE);
        let align = if huge.is_some() { HUGE_PAGE } else { 64 };
        let layout =
            Layout::from_size_align(size, align).expect("entry lengths are far below isize::MAX");
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout)
        };
        if let Some(advise) = huge {
            advise(start, size & !(HUGE_PAGE - 1));
        }
        let block = start.cast::<Block>().as_ptr();
        // SAFETY: the memory is ours, large enough and aligned to 64.
        unsafe {
            block.write(Block {
                fill: AtomicUsize::new(BLOCK_HEAD),
                size,
            })
        };
        blocks.push(OwnedBlock { start, layout });
        self.reserved.fetch_add(size, Ordering::Relaxed);
        ARENAS.add(size);
        block
    }
}

/// Bytes of a block that are not handed out; 0 for null.
fn block_left(block: *mut Block) -> usize {
    // SAFETY: a shard's pointer is null or a block of this arena, which lives as long as the arena.
    match unsafe { block.as_ref() } {
        Some(b) => b.size.saturating_sub(b.fill.load(Ordering::Relaxed)),
        None => 0,
    }
}

/// Takes `len` bytes from a block, if it has them.
#[inline(always)]
fn try_bump(block: *mut Block, len: usize) -> Option<NonNull<u8>> {
    // SAFETY: as for `block_left`.
    let b = unsafe { block.as_ref() }?;
    // A full block is only looked at, so that its mark cannot run away and wrap.
    if b.fill.load(Ordering::Relaxed) > b.size {
        return None;
    }
    let at = b.fill.fetch_add(len, Ordering::Relaxed);
    if at + len > b.size {
        return None;
    }
    // SAFETY: `at + len <= size`, so the piece is inside the block.
    NonNull::new(unsafe { block.cast::<u8>().add(at) })
}

impl Drop for Arena {
    fn drop(&mut self) {
        for block in self.blocks.get_mut().drain(..) {
            ARENAS.take(block.layout.size());
            // SAFETY: the block was allocated with this layout, and no borrow outlives a dropped
            // arena.
            unsafe { dealloc(block.start.as_ptr(), block.layout) };
        }
    }
}
