//! The families whose memtables are full, until the next leader switches them. Thread-safety: any
//! thread; a look that finds none takes no lock.

use esker_format::FamilyId;
use esker_sync::atomic::{AtomicBool, Ordering};
use esker_sync::{Mutex, Rank};

/// The families whose memtables are full, until they are switched.
#[derive(Debug)]
pub(super) struct FullFamilies {
    is_any: AtomicBool,
    families: Mutex<Vec<FamilyId>>,
}

impl FullFamilies {
    pub(super) fn new() -> Self {
        FullFamilies {
            is_any: AtomicBool::new(false),
            families: Mutex::new(Rank::LEAF, Vec::new()),
        }
    }

    /// Whether a memtable is full.
    #[inline]
    pub(super) fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Acquire)
    }

    /// The family's memtable is full.
    pub(super) fn add(&self, family: FamilyId) {
        self.families.lock().push(family);
        self.is_any.store(true, Ordering::Release);
    }

    /// Takes the families out, each once.
    pub(super) fn take(&self) -> Vec<FamilyId> {
        self.is_any.store(false, Ordering::Release);
        let mut families = std::mem::take(&mut *self.families.lock());
        families.sort_unstable();
        families.dedup();
        families
    }
}
