//! Free pages of the allocator, given back to the system.
//!
//! An allocator keeps what the program freed, for the next allocation. After memtables were
//! flushed, dropped with their families or made smaller, that can be more than is in use. A thread
//! has it given back, at most once in ten seconds, where eight megabytes of memtables went since.
//!
//! Thread-safety: any thread. Nothing is done in a child of a fork.

use crate::sys::give_back_free_pages;
use esker::env::{Env, Executor, Ticking};
use esker::memtable_arenas;
use esker_sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use esker_sync::{Arc, Mutex, OnceLock, Rank};

/// Ticks of an executor between two looks.
const PERIOD: u64 = 10;
/// Bytes that are worth giving back.
const LEAST: usize = 8 << 20;

#[derive(Debug, Default)]
struct FreePages {
    ticks: AtomicU64,
    /// The most bytes of memtables since pages were given back.
    most: AtomicUsize,
}

impl FreePages {
    /// Takes note of a tick. Returns whether pages are to be given back.
    fn tick(&self, bytes: usize) -> bool {
        let most = self.most.fetch_max(bytes, Relaxed).max(bytes);
        let is_turn = self.ticks.fetch_add(1, Relaxed) % PERIOD == PERIOD - 1;
        let is_due = is_turn && most - bytes >= LEAST;
        if is_due {
            self.most.store(bytes, Relaxed);
        }
        is_due
    }
}

/// Watches the memory of this process from now on; once.
pub(crate) fn watch() {
    static WATCH: OnceLock<Mutex<Option<Box<dyn Ticking>>>> = OnceLock::new();
    WATCH.get_or_init(|| Mutex::new(Rank::LEAF, begin(&Env::posix().executor)));
}

fn begin(executor: &Arc<dyn Executor>) -> Option<Box<dyn Ticking>> {
    let (pages, own) = (FreePages::default(), Arc::clone(executor));
    let tick = move || {
        if pages.tick(memtable_arenas()) {
            // On a thread of its own: it may take milliseconds. The next turn tries again.
            let body = Box::new(give_back_free_pages);
            let _not_now = own.spawn_patient("esker-pages", body);
        }
    };
    executor.tick(Arc::new(tick)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: usize = 1 << 20;

    #[test]
    fn pages_are_given_back_after_much_was_freed() {
        let pages = FreePages::default();
        let ten_ticks = |bytes| (0..PERIOD).map(|_| pages.tick(bytes)).collect::<Vec<_>>();
        let never = vec![false; PERIOD as usize];
        assert_eq!(ten_ticks(0), never);
        assert_eq!(ten_ticks(100 * MB), never);
        assert_eq!(ten_ticks(93 * MB), never, "too little");
        let mut once = never.clone();
        once[PERIOD as usize - 1] = true;
        assert_eq!(ten_ticks(20 * MB), once);
        assert_eq!(ten_ticks(20 * MB), never, "they are gone");
        // What came and went between two looks counts.
        assert!(!pages.tick(200 * MB));
        assert!((1..PERIOD).any(|_| pages.tick(20 * MB)));
    }
}
