//! Writers yield early, and sleep instead of spinning, when there are as many as processors.
//!
//! With writers and background jobs on every processor, a thread that loses its processor inside a
//! write waits until all others have used their time slices, and the scheduler ends a slice only at
//! a timer tick: 4 ms at 250 Hz. So a writer that has run for [`SLICE_NS`] yields at the end of a
//! write, and none waits longer than it takes the others to run that long.
//!
//! [`WriterContention`] counts the threads that write: those that found the log lock taken within
//! the last [`WINDOW_NS`], and one more. Fewer than there are processors do not yield, and spin
//! before they sleep in the queue.
//! Thread-safety: everything may be called by any thread.

use esker_env::{Clock, TimeSlice};
use esker_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use esker_sync::thread;
use std::cell::Cell;

/// How long a writer runs before it yields, where no other program keeps the processor.
const SLICE_NS: u64 = 50_000;
/// How long waiting threads are counted.
const WINDOW_NS: u64 = 100_000_000;
/// A writer looks at the clock once in this many writes.
const WRITES_PER_LOOK: u32 = 8;

thread_local! {
    static WRITER: Writer = const { Writer::new() };
}

/// Record of a thread's writes to the database that it wrote to last.
struct Writer {
    /// The database and the thread that the rest is of.
    owner: Cell<(u64, u64)>,
    /// The window that has counted the thread last.
    counted_in_ms: Cell<Option<u64>>,
    writes: Cell<u32>,
    yielded_ns: Cell<u64>,
    /// How long it runs before it yields.
    slice: TimeSlice,
}

impl Writer {
    const fn new() -> Self {
        Writer {
            owner: Cell::new((0, 0)),
            counted_in_ms: Cell::new(None),
            writes: Cell::new(0),
            yielded_ns: Cell::new(0),
            slice: TimeSlice::new(SLICE_NS),
        }
    }

    /// Forgets another database, and another thread: a simulation runs several on one of the
    /// system's, and has to repeat.
    fn enter(&self, contention: &WriterContention) {
        let now = (contention.id, thread::number());
        if self.owner.replace(now) != now {
            self.counted_in_ms.set(None);
            self.writes.set(0);
            self.yielded_ns.set(0);
        }
    }
}

/// A span of time and the number of threads that waited in it, in one word.
#[derive(Clone, Copy, Debug)]
struct WaitWindow(u64);

impl WaitWindow {
    const COUNT_BITS: u32 = 24;
    const NS_PER_MS: u64 = 1_000_000;

    /// A window that begins now.
    fn beginning(now_ns: u64) -> Self {
        WaitWindow((now_ns / Self::NS_PER_MS) << Self::COUNT_BITS)
    }

    fn began_ms(self) -> u64 {
        self.0 >> Self::COUNT_BITS
    }

    fn threads(self) -> usize {
        (self.0 & ((1 << Self::COUNT_BITS) - 1)) as usize
    }

    fn is_over(self, now_ns: u64) -> bool {
        let began_ns = self.began_ms() * Self::NS_PER_MS;
        now_ns.saturating_sub(began_ns) >= WINDOW_NS
    }

    /// The thread that had the lock is one more, and background jobs need a processor.
    fn is_crowded(self, processors: usize) -> bool {
        self.threads() > 0 && self.threads() + 1 >= processors
    }
}

/// Counter of the threads that write, which tells whether they are at least as many as the
/// processors.
#[derive(Debug)]
pub(super) struct WriterContention {
    /// Tells databases apart.
    id: u64,
    is_crowded: AtomicBool,
    /// The current [`WaitWindow`].
    window: AtomicU64,
}

impl WriterContention {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        WriterContention {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            is_crowded: AtomicBool::new(false),
            window: AtomicU64::new(0),
        }
    }

    /// The calling thread found the log lock taken.
    #[cold]
    pub(super) fn note_wait(&self, now_ns: u64) {
        WRITER.with(|writer| {
            writer.enter(self);
            self.count(writer);
        });
        self.look_at_window(now_ns);
    }

    /// Counts a thread once in each window.
    fn count(&self, writer: &Writer) {
        let mut window = WaitWindow(self.window.load(Ordering::Relaxed));
        while writer.counted_in_ms.get() != Some(window.began_ms()) {
            let counted = self.window.compare_exchange_weak(
                window.0,
                window.0 + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match counted {
                Ok(_) => writer.counted_in_ms.set(Some(window.began_ms())),
                Err(now) => window = WaitWindow(now),
            }
        }
    }

    fn look_at_window(&self, now_ns: u64) {
        let window = WaitWindow(self.window.load(Ordering::Relaxed));
        if !window.is_over(now_ns) {
            return;
        }
        // One thread ends a window. When another one is counted meanwhile, the next look ends it.
        let ended = self.window.compare_exchange(
            window.0,
            WaitWindow::beginning(now_ns).0,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if ended.is_ok() {
            let is_crowded = window.is_crowded(thread::parallelism());
            self.is_crowded.store(is_crowded, Ordering::Relaxed);
        }
    }

    /// Returns whether writers and background jobs have to share the processors.
    #[inline]
    pub(super) fn is_crowded(&self) -> bool {
        self.is_crowded.load(Ordering::Relaxed)
    }

    /// At the end of a write: yields when the thread has run for long beside many.
    #[inline]
    pub(super) fn share_processor(&self, clock: &dyn Clock) {
        if self.is_crowded() {
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
            if now_ns.saturating_sub(writer.yielded_ns.get()) >= writer.slice.ns() {
                thread::yield_now();
                let back_ns = clock.now_ns();
                let away_ns = back_ns.saturating_sub(now_ns);
                writer
                    .slice
                    .note_away(away_ns, back_ns, || clock.process_cpu_ns());
                writer.yielded_ns.set(back_ns);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The window in which `threads` waited, each `times` times.
    fn window_of(threads: usize, times: usize) -> WaitWindow {
        let contention = WriterContention::new();
        contention.look_at_window(WINDOW_NS);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..times {
                        contention.note_wait(WINDOW_NS + 1);
                    }
                });
            }
        });
        WaitWindow(contention.window.load(Ordering::Relaxed))
    }

    #[test]
    fn threads_are_counted_once_however_many_there_are() {
        assert_eq!(window_of(0, 1).threads(), 0);
        assert_eq!(window_of(1, 1_000).threads(), 1);
        assert_eq!(window_of(200, 5).threads(), 200);
    }

    #[test]
    fn a_writer_for_each_processor_is_a_crowd() {
        assert!(!window_of(0, 1).is_crowded(1));
        assert!(window_of(1, 1).is_crowded(2));
        assert!(!window_of(1, 1).is_crowded(3));
        assert!(!window_of(126, 1).is_crowded(128));
        assert!(window_of(127, 1).is_crowded(128));
    }

    #[test]
    fn the_end_of_a_window_decides_and_counts_afresh() {
        let contention = WriterContention::new();
        contention.look_at_window(WINDOW_NS);
        let processors = thread::parallelism();
        std::thread::scope(|scope| {
            for _ in 0..processors {
                scope.spawn(|| contention.note_wait(WINDOW_NS + 1));
            }
        });
        assert!(!contention.is_crowded.load(Ordering::Relaxed));
        contention.look_at_window(2 * WINDOW_NS);
        assert!(contention.is_crowded.load(Ordering::Relaxed));
        assert_eq!(
            WaitWindow(contention.window.load(Ordering::Relaxed)).threads(),
            0
        );
    }

    #[test]
    fn a_crowd_that_went_away_is_forgotten_after_a_window() {
        let contention = WriterContention::new();
        contention.is_crowded.store(true, Ordering::Relaxed);
        contention.look_at_window(WINDOW_NS);
        assert!(!contention.is_crowded.load(Ordering::Relaxed));
    }
}
