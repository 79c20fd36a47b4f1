//! How long a thread works before it lets others go on.
//!
//! A thread that yields has the processor again once those that wait for it have had their turns.
//! Threads of this process work for a moment and sleep. One of another program that computes keeps
//! the processor for the kernel's whole slice, some milliseconds: who yields to it every 150
//! microseconds has a twentieth of the processor. So slices double while yields take that long and
//! the process does not have the processors itself, and halve otherwise.
//!
//! Thread-safety: any thread; where two change a length at once, one change is lost.

use esker_sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Yields that take so long may be to another program.
const LONG_NS: u64 = 2_000_000;
/// No slice is longer: the kernel has ended it by then.
const LONGEST_NS: u64 = 20_000_000;
/// A process that has this part of the processors yields to itself.
const OWN_PART: f64 = 0.75;

/// The length of the time slices of a thread.
#[derive(Debug)]
pub struct TimeSlice {
    shortest_ns: u64,
    ns: AtomicU64,
    /// When a yield last took long, by the clock, and the processor time of the process then.
    looked_ns: AtomicU64,
    process_ns: AtomicU64,
}

impl TimeSlice {
    /// Slices that are so long where no other program computes.
    pub const fn new(shortest_ns: u64) -> Self {
        TimeSlice {
            shortest_ns,
            ns: AtomicU64::new(shortest_ns),
            looked_ns: AtomicU64::new(0),
            process_ns: AtomicU64::new(0),
        }
    }

    /// The length of the next slice, in nanoseconds.
    #[inline]
    pub fn ns(&self) -> u64 {
        self.ns.load(Relaxed)
    }

    /// Takes note of a yield that took `away_ns` and ended at `now_ns`. `process_ns` gives the
    /// processor time of the process, 0 where that is not known.
    pub fn note_away(&self, away_ns: u64, now_ns: u64, process_ns: impl FnOnce() -> u64) {
        let ns = self.ns();
        let next = if away_ns >= LONG_NS && self.is_elsewhere(now_ns, process_ns()) {
            (ns * 2).min(LONGEST_NS)
        } else {
            (ns / 2).max(self.shortest_ns)
        };
        if next != ns {
            self.ns.store(next, Relaxed);
        }
    }

    /// Returns whether other programs had a good part of the processors since the last look.
    fn is_elsewhere(&self, now_ns: u64, process_ns: u64) -> bool {
        let then_ns = self.looked_ns.swap(now_ns, Relaxed);
        let before_ns = self.process_ns.swap(process_ns, Relaxed);
        let all = now_ns.saturating_sub(then_ns) as f64 * esker_sync::thread::parallelism() as f64;
        let own = process_ns.saturating_sub(before_ns) as f64;
        before_ns > 0 && process_ns > 0 && own < OWN_PART * all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Turns after `yields` of four milliseconds, of a process with this part of the processors;
    /// and the part of the time that a thread of it worked.
    fn after(yields: u64, part: f64) -> (u64, f64) {
        let turn = TimeSlice::new(150_000);
        let (mut now, mut worked) = (1, 0);
        for _ in 0..yields {
            worked += turn.ns();
            now += turn.ns() + 4 * MS;
            let all = now as f64 * esker_sync::thread::parallelism() as f64;
            turn.note_away(4 * MS, now, || (all * part) as u64);
        }
        (turn.ns(), worked as f64 / now as f64)
    }

    #[test]
    fn turns_are_long_beside_another_program() {
        let (turn, worked) = after(30, 0.5);
        assert_eq!(turn, LONGEST_NS);
        assert!(worked > 0.7, "{worked}");
        let (turn, worked) = after(30, 0.95);
        assert_eq!(turn, 150_000);
        assert!(worked < 0.05);
        assert_eq!(
            after(30, 0.0).0,
            150_000,
            "processor time that is not known"
        );
    }

    #[test]
    fn turns_are_short_again_where_yields_are() {
        let turn = TimeSlice::new(150_000);
        for n in 1..30 {
            turn.note_away(4 * MS, n * 10 * MS, || n * MS);
        }
        assert_eq!(turn.ns(), LONGEST_NS);
        for n in 30..40 {
            turn.note_away(1_900_000, n * 10 * MS, || n * MS);
        }
        assert_eq!(turn.ns(), 150_000);
    }
}
