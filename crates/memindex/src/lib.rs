//! The memtable's index: a skiplist in an arena, read without locks while it is written.
//!
//! [`Arena`] hands out memory that lives until the arena is dropped; [`SkipIndex`] keeps (key, value)
//! entries in it, in the order of an [`IndexOrder`]; a [`Writer`] adds entries, alone or beside others;
//! an [`IndexCursor`] walks them both ways. Entries are never removed or moved, so whatever a reader was shown
//! stays readable for as long as the index lives.
//!
//! The unsafe code of the memtable is confined to this crate.

mod arena;
mod cursor;
mod index;
mod node;
mod order;
mod sync;
mod writer;

pub use arena::{Arena, ArenaOptions};
pub use cursor::{IndexCursor, IndexHandle};
pub use index::SkipIndex;
pub use order::{BytewiseInternal, BytewisePlain, IndexOrder, bytewise_prefix};
pub use writer::{Entry, Writer};

#[cfg(all(test, not(loom)))]
mod tests;
