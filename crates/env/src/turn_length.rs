//! How long a thread works before it lets others go on.
//!
//! A thread that yields has the processor again once those that wait for it have had their turns.
//! Threads of this process work for a moment and sleep. One of another program that computes keeps
//! the processor for the kernel's whole slice, some milliseconds: who yields to it every 150
//! microseconds has a twentieth of the processor. So turns double while a yield takes that long,
//! and halve when it does not.
//!
//! Thread-safety: any thread; where two change a length at once, one change is lost.

use esker_sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A yield that takes longer was to another program.
const FOREIGN_NS: u64 = 2_000_000;
/// No turn is longer: the kernel has ended it by then.
const LONGEST_NS: u64 = 20_000_000;

/// The length of turns.
#[derive(Debug)]
pub struct TurnLength {
    shortest_ns: u64,
    ns: AtomicU64,
}

impl TurnLength {
    /// Turns that are so long where no other program computes.
    pub const fn new(shortest_ns: u64) -> Self {
        TurnLength {
            shortest_ns,
            ns: AtomicU64::new(shortest_ns),
        }
    }

    /// The length of the next turn, in nanoseconds.
    #[inline]
    pub fn ns(&self) -> u64 {
        self.ns.load(Relaxed)
    }

    /// Takes note of how long a yield took.
    pub fn note_away(&self, away_ns: u64) {
        let ns = self.ns();
        let next = if away_ns >= FOREIGN_NS {
            (ns * 2).min(LONGEST_NS)
        } else {
            (ns / 2).max(self.shortest_ns)
        };
        if next != ns {
            self.ns.store(next, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_long_beside_another_program() {
        let turn = TurnLength::new(150_000);
        turn.note_away(1_900_000);
        assert_eq!(turn.ns(), 150_000);
        // Away for four milliseconds each time: soon most of the time is the thread's own.
        let (mut worked, mut away) = (0, 0);
        for _ in 0..30 {
            worked += turn.ns();
            away += 4_000_000;
            turn.note_away(4_000_000);
        }
        assert_eq!(turn.ns(), LONGEST_NS);
        assert!(worked > 3 * away, "{worked} {away}");
        for _ in 0..10 {
            turn.note_away(10_000);
        }
        assert_eq!(turn.ns(), 150_000);
    }
}
