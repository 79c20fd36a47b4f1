//! A node of the skiplist, as it lies in the arena.
//!
//! ```text
//!   next[h-1] .. next[1] | next[0] | back | prefix | key_len value_len | key | value
//!                        ^ the node's address, aligned to 8
//! ```
//! Tower pointers lie before the node (as in RocksDB's InlineSkipList), so that the address of level `l` needs
//! no height, and `next[0]`, the prefix and the start of the key share a cache line or two.
//!
//! `back` points to a node before this one, mostly the one just before: a hint that makes a step backwards
//! cheap. Since nodes never go away it can be behind the times, but never wrong.
//!
//! Invariant: everything but the links is written before a node is linked, and never again.

use crate::arena::Arena;
use crate::sync::{AtomicPtr, Once, Ordering};
use std::ptr::NonNull;

pub(crate) use crate::sync::HEIGHT_MAX;
const WORD: usize = size_of::<AtomicPtr<Node>>();

/// The fixed part of a node. Never made or moved as a value: it is only pointed to.
#[repr(C)]
pub(crate) struct Node {
    next0: AtomicPtr<Node>,
    back: AtomicPtr<Node>,
    prefix: Once<u64>,
    key_len: u32,
    value_len: u32,
}

pub(crate) const NODE_BYTES: usize = size_of::<Node>();

/// A pointer to a node whose arena is alive. Copying it is free; using it is what the `unsafe` fns promise.
pub(crate) type NodePtr = NonNull<Node>;

/// Lays out a node of `height` in `arena`: links null, lengths set, key and value not yet written.
pub(crate) fn allocate(arena: &Arena, height: usize, key_len: usize, value_len: usize) -> NodePtr {
    debug_assert!((1..=HEIGHT_MAX).contains(&height));
    let (k, v) = (u32::try_from(key_len), u32::try_from(value_len));
    let key_len_32 = k.expect("keys are shorter than 4 GiB");
    let value_len_32 = v.expect("values are shorter than 4 GiB");
    let tower = (height - 1) * WORD;
    let piece = arena.allocate(tower + NODE_BYTES + key_len + value_len);
    // SAFETY: the piece has `tower` bytes before the node.
    let node = unsafe { piece.add(tower) }.cast::<Node>();
    for level in 1..height {
        // SAFETY: the tower's words lie in the piece, below the node, and are aligned.
        unsafe {
            node.cast::<AtomicPtr<Node>>()
                .sub(level)
                .write(AtomicPtr::default())
        };
    }
    let head = Node {
        next0: AtomicPtr::default(),
        back: AtomicPtr::default(),
        prefix: Once::new(0),
        key_len: key_len_32,
        value_len: value_len_32,
    };
    // SAFETY: the piece is ours, large enough, and aligned to 8.
    unsafe { node.write(head) };
    node
}

/// The link of `node` at `level`.
///
/// # Safety
/// `node` lives and is higher than `level`.
#[inline(always)]
pub(crate) unsafe fn link<'a>(node: NodePtr, level: usize) -> &'a AtomicPtr<Node> {
    // SAFETY: the word lies in the node's piece (the tower, or `next0` at the node itself), initialised.
    unsafe { node.cast::<AtomicPtr<Node>>().sub(level).as_ref() }
}

/// The successor of `node` at `level`, with everything that was written before it was linked.
///
/// # Safety
/// As [`link`].
#[inline(always)]
pub(crate) unsafe fn next(node: NodePtr, level: usize) -> Option<NodePtr> {
    // SAFETY: the caller's promise.
    NonNull::new(unsafe { link(node, level) }.load(Ordering::Acquire))
}

/// The hint of `node`.
///
/// # Safety
/// `node` lives.
#[inline(always)]
pub(crate) unsafe fn back<'a>(node: NodePtr) -> &'a AtomicPtr<Node> {
    // SAFETY: the caller's promise; the field is initialised and only accessed atomically.
    unsafe { &(*node.as_ptr()).back }
}

/// # Safety
/// `node` lives, and its prefix is no longer written.
#[inline(always)]
pub(crate) unsafe fn prefix(node: NodePtr) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { (*node.as_ptr()).prefix.get() }
}

/// # Safety
/// `node` lives and is not linked yet, and the caller alone has it.
#[inline(always)]
pub(crate) unsafe fn set_prefix(node: NodePtr, prefix: u64) {
    // SAFETY: the caller's promise: nobody else reads or writes the field.
    unsafe { (*node.as_ptr()).prefix.set(prefix) };
}

/// Where the key of `node` starts, its length, and the length of the value after it.
///
/// # Safety
/// `node` lives.
#[inline(always)]
pub(crate) unsafe fn parts(node: NodePtr) -> (NonNull<u8>, usize, usize) {
    // SAFETY: the lengths are written when the node is laid out, and never again.
    let (k, v) = unsafe { ((*node.as_ptr()).key_len, (*node.as_ptr()).value_len) };
    // SAFETY: the key follows the fixed part in the same piece.
    (
        unsafe { node.cast::<u8>().add(NODE_BYTES) },
        k as usize,
        v as usize,
    )
}

/// # Safety
/// `node` lives for `'a`, and its key is no longer written.
#[inline(always)]
pub(crate) unsafe fn key<'a>(node: NodePtr) -> &'a [u8] {
    // SAFETY: the caller's promise.
    let (start, len, _) = unsafe { parts(node) };
    // SAFETY: `len` initialised bytes lie there, and nobody writes them any more.
    unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }
}

/// # Safety
/// `node` lives for `'a`, and its value is no longer written.
#[inline(always)]
pub(crate) unsafe fn value<'a>(node: NodePtr) -> &'a [u8] {
    // SAFETY: the caller's promise.
    let (start, key_len, len) = unsafe { parts(node) };
    // SAFETY: the value follows the key in the same piece, initialised, and nobody writes it any more.
    unsafe { std::slice::from_raw_parts(start.as_ptr().add(key_len), len) }
}

/// Asks for the cache line at `node`.
#[inline(always)]
pub(crate) fn prefetch(node: *mut Node) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that a program could see, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(node.cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = node;
}
