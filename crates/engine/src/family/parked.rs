//! Cursors over a view that no iterator uses, kept for the next iterator over the same view.
//!
//! To make and to drop the cursors of all runs costs more than a seek in a cached tree, and it
//! counts references that all threads share. They end with their view, so they keep nothing alive
//! that the view does not. A thread has one place, which it may share with others: nobody waits
//! for it. What is parked is up to [`crate::read`].

use esker_sync::{Mutex, Rank};
use std::any::Any;
use std::fmt;

/// Places of a view. More threads than that share them.
const PLACES: usize = 8;

type ErasedCursors = Box<dyn Any + Send>;

/// On a cache line of its own: threads park and take at every iterator.
#[repr(align(64))]
struct CursorSlot(Mutex<Option<ErasedCursors>>);

/// The places of a view.
pub(crate) struct ParkedCursors([CursorSlot; PLACES]);

impl Default for ParkedCursors {
    fn default() -> Self {
        ParkedCursors(std::array::from_fn(|_| {
            CursorSlot(Mutex::new(Rank::LEAF, None))
        }))
    }
}

impl fmt::Debug for ParkedCursors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ParkedCursors")
    }
}

impl ParkedCursors {
    fn mine(&self) -> &Mutex<Option<ErasedCursors>> {
        let thread = esker_sync::thread::number() as usize;
        &self.0[thread % PLACES].0
    }

    /// Takes the cursors out of the calling thread's place; `None` when it is empty or in use.
    pub(crate) fn take(&self) -> Option<ErasedCursors> {
        self.mine().try_lock()?.take()
    }

    /// Puts `cursor` into the calling thread's place. What was there ends.
    pub(crate) fn put(&self, cursor: ErasedCursors) {
        let before = match self.mine().try_lock() {
            Some(mut place) => place.replace(cursor),
            None => Some(cursor),
        };
        // Past the lock: dropping cursors may end the last use of a file.
        drop(before);
    }
}
