//! Pauses of the machine: times in which a thread that only sleeps was not woken when it was due.
//!
//! A hypervisor or the scheduler stops every thread of a process alike. An operation that took long
//! while such a pause lasted says so much less of the engine, so the longest operation is given
//! with and without them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long the watching thread sleeps.
const STEP: Duration = Duration::from_millis(1);
/// Being late by less is how timers and schedulers are.
const LEAST_PAUSE: Duration = Duration::from_millis(2);

/// A time in which the watching thread was due and did not run.
#[derive(Debug, Clone, Copy)]
pub struct Pause {
    /// When it was due.
    pub from: Instant,
    /// When it ran.
    pub until: Instant,
}

/// Watches from the calling thread until `stop` is set; in the order of time.
pub fn watch(stop: &AtomicBool) -> Vec<Pause> {
    let mut pauses = Vec::new();
    while !stop.load(Ordering::Acquire) {
        let from = Instant::now() + STEP;
        std::thread::sleep(STEP);
        let until = Instant::now();
        if until.saturating_duration_since(from) >= LEAST_PAUSE {
            pauses.push(Pause { from, until });
        }
    }
    pauses
}

/// How much of the time between two moments lies outside of all pauses, which are in order.
pub fn outside(pauses: &[Pause], from: Instant, until: Instant) -> Duration {
    let first = pauses.partition_point(|pause| pause.until <= from);
    let inside = pauses[first..]
        .iter()
        .take_while(|pause| pause.from < until);
    let shared = |pause: &Pause| {
        let end = pause.until.min(until);
        end.saturating_duration_since(pause.from.max(from))
    };
    until.saturating_duration_since(from) - inside.map(shared).sum::<Duration>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_pause_shares_with_an_operation_is_left_out() {
        let zero = Instant::now();
        let at = |ms| zero + Duration::from_millis(ms);
        let pause = |from, until| Pause {
            from: at(from),
            until: at(until),
        };
        let pauses = [pause(10, 20), pause(30, 35), pause(50, 60)];
        let outside = |from, until| outside(&pauses, at(from), at(until)).as_millis();
        assert_eq!(outside(0, 10), 10);
        assert_eq!(outside(12, 18), 0);
        assert_eq!(outside(15, 32), 10);
        assert_eq!(outside(5, 100), 70);
        assert_eq!(outside(60, 70), 10);
    }

    #[test]
    fn a_watch_that_is_stopped_ends() {
        let stop = AtomicBool::new(false);
        let pauses = std::thread::scope(|scope| {
            let watch = scope.spawn(|| watch(&stop));
            std::thread::sleep(Duration::from_millis(20));
            stop.store(true, Ordering::Release);
            watch.join().expect("it does not panic")
        });
        assert!(pauses.is_sorted_by_key(|pause| pause.from));
    }
}
