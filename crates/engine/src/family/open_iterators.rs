//! Open iterators of the process, as far as there is room: each says which view it holds, and which
//! thread made it. Only for people who look for what pins files and memory
//! ([`crate::core::long_readers`]).
//!
//! Each thread has a row of places; where it is full an iterator is not listed. A row may have
//! several threads. No thread waits, and an iterator costs two stores to a line that no other
//! thread uses.
//!
//! Thread-safety: any thread; an iterator may end on another one than it began on.

use esker_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::cell::Cell;

/// Rows of places.
const ROWS: usize = 64;
/// Places of a row: four cache lines.
const PLACES: usize = 16;

#[derive(Debug)]
struct Place {
    /// The identity of the view; 0 while nobody has the place.
    view: AtomicU64,
    /// The thread, as the system numbers it.
    thread: AtomicU64,
}

static PLACE_TABLE: [Place; ROWS * PLACES] = [const {
    Place {
        view: AtomicU64::new(0),
        thread: AtomicU64::new(0),
    }
}; ROWS * PLACES];

thread_local! {
    /// The first place of the thread's row, and its number; no thread has the number 0.
    static OWN: Cell<(usize, u64)> = const { Cell::new((0, 0)) };
}

#[cold]
fn find_row() -> (usize, u64) {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let row = NEXT.fetch_add(1, Ordering::Relaxed) % ROWS;
    let own = (row * PLACES, esker_env::thread_id());
    OWN.set(own);
    own
}

/// The entry of an iterator in the list, if it has one; gone when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct ListedIterator(Option<&'static Place>);

impl ListedIterator {
    /// Lists an iterator of the calling thread over the view with this identity.
    #[inline]
    pub(crate) fn new(view: u64) -> Self {
        let own = OWN.get();
        let (first, thread) = if own.1 == 0 { find_row() } else { own };
        let place = PLACE_TABLE[first..first + PLACES].iter().find(|place| {
            let is_free = place.view.load(Ordering::Relaxed) == 0;
            let (order, no) = (Ordering::Relaxed, Ordering::Relaxed);
            is_free && place.view.compare_exchange(0, view, order, no).is_ok()
        });
        if let Some(place) = place {
            place.thread.store(thread, Ordering::Relaxed);
        }
        ListedIterator(place)
    }
}

impl Drop for ListedIterator {
    #[inline]
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            place.view.store(0, Ordering::Relaxed);
        }
    }
}

/// The threads whose iterators hold the view with this identity, one for each iterator. A thread is
/// 0 where its iterator is being made.
pub(crate) fn holders(view: u64) -> Vec<u64> {
    let held = PLACE_TABLE.iter();
    let held = held.filter(|place| place.view.load(Ordering::Relaxed) == view);
    held.map(|place| place.thread.load(Ordering::Relaxed))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iterator_is_listed_while_it_lives() {
        let view = u64::MAX - 7;
        let first = ListedIterator::new(view);
        let second = ListedIterator::new(view);
        let own = esker_env::thread_id();
        assert_eq!(holders(view), [own, own]);
        drop(first);
        let other = std::thread::spawn(move || drop(second));
        other.join().expect("the other thread ends");
        assert_eq!(holders(view), []);
    }

    #[test]
    fn a_full_row_lists_no_more() {
        let view = u64::MAX - 8;
        let many: Vec<_> = (0..PLACES + 5).map(|_| ListedIterator::new(view)).collect();
        assert!(holders(view).len() <= PLACES);
        drop(many);
        assert_eq!(holders(view), []);
    }
}
