//! Listeners that a job calls before its result is there.
//!
//! A write in such a callback must not wait for what only that job can give, since the job goes on
//! when the callback returns: such a write fails instead. A pace, which only spreads writes over
//! time, is passed over. Where the flush of an older memtable is what writers wait for, the
//! callback waits with them: flushes of a family are installed in order, so no older one waits for
//! a younger one. RocksDB waits in each case, for ever where the job is the one that is needed.
//!
//! The mark belongs to a thread: what the callback has other threads do waits as ever.

use esker_format::FamilyId;
use esker_status::{Error, ErrorKind};
use std::cell::Cell;

/// The event of a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallbackEvent {
    /// A flush of this family, with the number of the oldest memtable that it takes.
    Flush(FamilyId, u64),
    /// Another job.
    Other,
}

thread_local! {
    static INSIDE: Cell<Option<CallbackEvent>> = const { Cell::new(None) };
}

/// While it lives, this thread is in a callback of a job that is not done.
#[derive(Debug)]
pub struct Callback {
    before: Option<CallbackEvent>,
}

impl Callback {
    /// Marks this thread until the value is dropped.
    pub fn enter(told: CallbackEvent) -> Callback {
        let before = INSIDE.replace(Some(told));
        Callback { before }
    }

    /// Returns the event of the callback that this thread is in.
    #[inline]
    pub fn current() -> Option<CallbackEvent> {
        INSIDE.get()
    }

    /// Returns whether this thread is in one.
    #[inline]
    pub fn is_inside() -> bool {
        Self::current().is_some()
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        INSIDE.set(self.before);
    }
}

/// The answer to a call that would wait in a callback.
#[cold]
pub fn would_wait() -> Error {
    let said = "a call from a listener would have to wait for the job that the listener is told of";
    Error::new(ErrorKind::Incomplete, said)
        .with_hint("make the call from another thread, or when the job has ended")
}
