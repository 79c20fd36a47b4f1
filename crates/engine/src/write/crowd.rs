//! Writers that share the processors with other writers give them up early.
//!
//! With writers and background jobs on every processor, a thread that loses its processor inside a
//! write waits until all others have used their time slices, and the scheduler ends a slice only at
//! a timer tick: 4 ms at 250 Hz. So a writer that has run for [`SLICE_NS`] yields at the end of a
//! write, and none waits longer than it takes the others to run that long.
//!
//! [`Crowd`] estimates how many threads write: those that found the log lock taken within the last
//! [`WINDOW_NS`], and one more. Fewer than there are processors do not yield, and no more than 64
//! are told apart. Thread-safety: everything may be called by any thread.

use esker_env::Clock;
use esker_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use esker_sync::thread;
use std::cell::Cell;

/// How long a writer runs before it yields.
const SLICE_NS: u64 = 50_000;
/// How long waiting threads are counted before the estimate is made.
const WINDOW_NS: u64 = 100_000_000;
/// A writer looks at the clock once in this many writes.
const WRITES_PER_LOOK: u32 = 8;

thread_local! {
    static WRITER: Writer = const { Writer::new() };
}

/// What a thread remembers of its writes to the database that it wrote to last.
struct Writer {
    crowd: Cell<u64>,
    /// Its bit in [`Crowd::waited`]; 0 before it has waited.
    bit: Cell<u64>,
    writes: Cell<u32>,
    yielded_ns: Cell<u64>,
}

impl Writer {
    const fn new() -> Self {
        Writer {
            crowd: Cell::new(0),
            bit: Cell::new(0),
            writes: Cell::new(0),
            yielded_ns: Cell::new(0),
        }
    }

    /// Forgets another database: what a thread does must follow from this one alone, so that a
    /// simulation repeats.
    fn enter(&self, crowd: &Crowd) {
        if self.crowd.replace(crowd.id) != crowd.id {
            self.bit.set(0);
            self.writes.set(0);
            self.yielded_ns.set(0);
        }
    }

    fn bit(&self, crowd: &Crowd) -> u64 {
        self.enter(crowd);
        if self.bit.get() == 0 {
            let index = crowd.threads.fetch_add(1, Ordering::Relaxed) % u64::BITS;
            self.bit.set(1 << index);
        }
        self.bit.get()
    }
}

/// Whether as many threads write as there are processors, or more.
#[derive(Debug)]
pub(super) struct Crowd {
    /// Tells databases apart.
    id: u64,
    /// Threads that ever waited.
    threads: AtomicU32,
    is_crowded: AtomicBool,
    /// A bit for each thread that waited in this window; threads may share one.
    waited: AtomicU64,
    window_began_ns: AtomicU64,
}

impl Crowd {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Crowd {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            threads: AtomicU32::new(0),
            is_crowded: AtomicBool::new(false),
            waited: AtomicU64::new(0),
            window_began_ns: AtomicU64::new(0),
        }
    }

    /// The calling thread found the log lock taken.
    #[cold]
    pub(super) fn note_wait(&self, now_ns: u64) {
        let bit = WRITER.with(|writer| writer.bit(self));
        if self.waited.load(Ordering::Relaxed) & bit == 0 {
            self.waited.fetch_or(bit, Ordering::Relaxed);
        }
        self.look_at_window(now_ns);
    }

    fn look_at_window(&self, now_ns: u64) {
        let began_ns = self.window_began_ns.load(Ordering::Relaxed);
        if now_ns.saturating_sub(began_ns) < WINDOW_NS {
            return;
        }
        // One thread ends a window: a second one would count nobody.
        let ended = self.window_began_ns.compare_exchange(
            began_ns,
            now_ns,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if ended.is_err() {
            return;
        }
        let waited = self.waited.swap(0, Ordering::Relaxed).count_ones() as usize;
        // The thread that had the lock is one more, and background jobs need a processor.
        let is_crowded = waited > 0 && waited + 1 >= thread::parallelism();
        self.is_crowded.store(is_crowded, Ordering::Relaxed);
    }

    /// At the end of a write: yields when the thread has run for long beside many.
    #[inline]
    pub(super) fn share_processor(&self, clock: &dyn Clock) {
        if self.is_crowded.load(Ordering::Relaxed) {
            self.yield_in_time(clock);
        }
    }

    #[cold]
    fn yield_in_time(&self, clock: &dyn Clock) {
        WRITER.with(|writer| {
            writer.enter(self);
            let writes = writer.writes.get() + 1;
            writer.writes.set(writes % WRITES_PER_LOOK);
            if writes < WRITES_PER_LOOK {
                return;
            }
            let now_ns = clock.now_ns();
            self.look_at_window(now_ns);
            if now_ns.saturating_sub(writer.yielded_ns.get()) >= SLICE_NS {
                thread::yield_now();
                writer.yielded_ns.set(clock.now_ns());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the estimate is "crowded" after `threads` waited in one window.
    fn is_crowded_after(threads: usize) -> bool {
        let crowd = Crowd::new();
        crowd.look_at_window(WINDOW_NS);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| crowd.note_wait(WINDOW_NS + 1));
            }
        });
        crowd.look_at_window(2 * WINDOW_NS);
        crowd.is_crowded.load(Ordering::Relaxed)
    }

    #[test]
    fn a_writer_for_each_processor_is_a_crowd() {
        let processors = thread::parallelism();
        assert!(!is_crowded_after(0));
        assert_eq!(is_crowded_after(1), processors <= 2);
        assert!(is_crowded_after((processors - 1).clamp(1, 60)));
    }

    #[test]
    fn one_thread_that_waits_often_is_counted_once() {
        let crowd = Crowd::new();
        crowd.look_at_window(WINDOW_NS);
        for _ in 0..1_000 {
            crowd.note_wait(WINDOW_NS + 1);
        }
        assert_eq!(crowd.waited.load(Ordering::Relaxed).count_ones(), 1);
    }

    #[test]
    fn a_crowd_that_went_away_is_forgotten_after_a_window() {
        let crowd = Crowd::new();
        crowd.is_crowded.store(true, Ordering::Relaxed);
        crowd.look_at_window(WINDOW_NS);
        assert!(!crowd.is_crowded.load(Ordering::Relaxed));
    }
}
