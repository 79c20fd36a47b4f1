//! The memtable's index: a tree in an arena, read without locks while it is written.
//!
//! [`TreeIndex`] keeps (key, value) entries in arenas, in the order of an [`IndexOrder`]; any
//! number of threads add entries and read, and no reader waits; an [`IndexCursor`] walks both ways.
//! Entries are never removed or moved, so whatever a reader was shown stays readable for as long as
//! the index lives.
//!
//! The unsafe code of the memtable is confined to this crate.

mod arena;
mod cursor;
mod entry;
mod index;
mod node;
mod order;
mod ranks;
mod sync;

pub use arena::{ARENAS, ArenaOptions, HugePageCall};
pub use cursor::{IndexCursor, IndexHandle};
pub use index::TreeIndex;
pub use order::{BytewiseInternal, BytewisePlain, IndexOrder, bytewise_prefix};

#[cfg(all(test, not(loom)))]
mod tests;
