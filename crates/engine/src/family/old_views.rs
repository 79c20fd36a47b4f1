//! Views of a family that were replaced and that readers still hold.
//!
//! Each view has an identity of its own in the process, by which open iterators say what they hold
//! ([`super::open_iterators`]).
//!
//! Thread-safety: the list is guarded by the lock under which views change. What it refers to may
//! end at any time.

use super::View;
use esker_sync::atomic::{AtomicU64, Ordering};
use esker_sync::{Arc, Weak};

/// The identity of a view; never 0.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ViewId(pub(crate) u64);

impl Default for ViewId {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        ViewId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A view that was replaced.
#[derive(Clone, Debug)]
pub(super) struct OldView {
    view: Weak<View>,
    /// When a look first found it, by the clock; 0 before.
    seen_us: Arc<AtomicU64>,
}

impl OldView {
    pub(super) fn of(view: &Arc<View>) -> Self {
        OldView {
            view: Arc::downgrade(view),
            seen_us: Arc::default(),
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.view.strong_count() > 0
    }

    /// The view, and for how long it has been old at least; `None` when nobody holds it.
    pub(super) fn look(&self, now_us: u64) -> Option<(Arc<View>, u64)> {
        let view = self.view.upgrade()?;
        let first = self
            .seen_us
            .compare_exchange(0, now_us, Ordering::Relaxed, Ordering::Relaxed);
        let seen_us = first.map_or_else(|seen| seen, |_| now_us);
        Some((view, now_us.saturating_sub(seen_us)))
    }
}
