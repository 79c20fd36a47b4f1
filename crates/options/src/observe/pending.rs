//! Events that are noticed where a lock is held, kept until a thread without locks tells them.
//!
//! A memtable is sealed and a stall condition changes under the log lock, and listeners are called
//! without any lock. What is kept here is told by the next background thread that comes by; there
//! always is one, since each of these changes wakes the background threads.

use super::{BackgroundErrorInfo, EventListener, MemtableInfo, StallInfo};
use esker_sync::atomic::{AtomicUsize, Ordering};
use esker_sync::{Mutex, Rank};
use std::sync::Arc;

/// Something to be told.
#[derive(Clone, Debug)]
pub enum PendingEvent {
    /// A memtable was sealed.
    Sealed(MemtableInfo),
    /// The stall condition of a family changed.
    Stall(StallInfo),
    /// A background error.
    Error(BackgroundErrorInfo),
}

/// The events that wait, in the order in which they were noticed.
#[derive(Debug)]
pub struct Pending {
    waiting: Mutex<Vec<PendingEvent>>,
    count: AtomicUsize,
    listened: bool,
}

impl Pending {
    /// `listened` says whether there are listeners; without, only errors are kept, for the LOG.
    pub fn new(listened: bool) -> Arc<Self> {
        Arc::new(Pending {
            waiting: Mutex::new(Rank::LEAF, Vec::new()),
            count: AtomicUsize::new(0),
            listened,
        })
    }

    /// Returns whether it is worth putting an event together.
    pub fn is_listened(&self) -> bool {
        self.listened
    }

    /// Adds one to those that wait for a thread without locks.
    pub fn add(&self, event: PendingEvent) {
        if !self.listened && !matches!(event, PendingEvent::Error(_)) {
            return;
        }
        let mut waiting = self.waiting.lock();
        waiting.push(event);
        self.count.store(waiting.len(), Ordering::Release);
    }

    /// Returns whether some wait.
    pub fn is_any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Takes what waits.
    pub fn take(&self) -> Vec<PendingEvent> {
        if !self.is_any() {
            return Vec::new();
        }
        let mut waiting = self.waiting.lock();
        self.count.store(0, Ordering::Release);
        std::mem::take(&mut waiting)
    }
}

impl PendingEvent {
    /// Tells one listener.
    pub fn tell(&self, listener: &dyn EventListener) {
        match self {
            PendingEvent::Sealed(info) => listener.on_memtable_sealed(info),
            PendingEvent::Stall(info) => listener.on_stall_conditions_changed(info),
            PendingEvent::Error(info) => listener.on_background_error(info),
        }
    }
}
