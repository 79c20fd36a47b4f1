//! One gate, and numbers for the time.

use super::*;

fn paced(bytes_per_s: f64) -> Limit {
    Limit {
        cause: LoadCause::Runs,
        bytes_per_s,
    }
}

fn gate(bytes_per_s: f64) -> WriteController {
    let gate = WriteController::new();
    gate.set(&gate.lock(), 0, None, paced(bytes_per_s), false);
    gate
}

fn enter(gate: &WriteController, now_us: u64, bytes: u64) -> (Position, u64) {
    gate.enter(now_us, bytes, true).expect("it may wait")
}

#[test]
fn the_state_follows_from_stop_pace_and_flush() {
    let gate = WriteController::new();
    let set = |stop, rate, flushing| {
        gate.set(&gate.lock(), 0, stop, paced(rate), flushing);
        gate.read()
    };
    let cause = StallCause::L0FileCountLimit;
    assert_eq!(set(None, UNLIMITED, false).0, ControllerState::Free);
    assert_eq!(set(None, UNLIMITED, true).0, ControllerState::Monitored);
    assert_eq!(set(None, 1e6, true), (ControllerState::Paced, cause));
    for cause in StallCause::ALL {
        let told = set(Some(cause), 1e6, true);
        assert_eq!(told, (ControllerState::Stopped, cause));
    }
    gate.open(&gate.lock(), 0);
    assert_eq!(gate.state(), ControllerState::Free);
}

#[test]
fn few_batches_look_at_the_clock() {
    // A hundred bytes a microsecond: 15,000 may be owed.
    let gate = gate(1e8);
    let through = |bytes| gate.lets_through(bytes);
    assert!((0..8).all(|_| through(1_000)));
    assert!(!through(1_000), "8 KB went since the last look");
    gate.note_look();
    assert!(through(8_000), "what was let through is in the bucket");
    assert_eq!(enter(&gate, 0, 0).1, 160);
    gate.note_look();
    assert!(!through(0), "it would have to wait, by the last look");
    enter(&gate, 160, 0);
    assert!(through(0), "all is paid now");
    gate.note_look();
    gate.set(&gate.lock(), 200, None, paced(UNLIMITED), true);
    assert!(through(8_000), "memtables are flushed, and nothing is owed");
    assert!(!through(8_000));
    gate.note_look();
    let cause = Some(StallCause::L0FileCountLimit);
    gate.set(&gate.lock(), 300, cause, paced(1e8), true);
    assert!(!through(1));
}

#[test]
fn writers_go_in_the_order_in_which_they_came() {
    // A byte a microsecond.
    let gate = gate(1e6);
    let (_, first) = enter(&gate, 0, 10_000);
    assert_eq!(first, 0, "what is written is paid for afterwards");
    let (second, wait_us) = enter(&gate, 0, 2_000);
    assert_eq!(wait_us, 10_000);
    let (third, wait_us) = enter(&gate, 1_000, 500);
    assert_eq!(wait_us, 11_000, "the first's and the second's bytes");
    assert_eq!(gate.wait_us(6_000, second), 4_000);
    assert_eq!(gate.wait_us(6_000, third), 6_000);
    assert!(gate.is_in_debt(12_300), "the third's own bytes");
    // The second overslept: that is not the third's loss.
    assert_eq!(gate.wait_us(13_000, second), 0);
    assert_eq!(gate.wait_us(13_000, third), 0);
    assert!(!gate.is_in_debt(20_000));
    // Unused rate is not saved up.
    enter(&gate, 1_000_000, 5_000);
    assert_eq!(enter(&gate, 1_000_000, 0).1, 5_000);
}

#[test]
fn a_hundred_and_fifty_microseconds_may_be_owed() {
    let gate = gate(1e6);
    enter(&gate, 0, 150);
    assert_eq!(enter(&gate, 0, 1).1, 0);
    assert_eq!(enter(&gate, 0, 1).1, 151);
}

#[test]
fn writers_that_slow_down_owe_no_longer_than_before() {
    let gate = gate(1e8);
    enter(&gate, 0, 15_000);
    let (place, wait_us) = enter(&gate, 0, 1_000);
    assert_eq!(wait_us, 0);
    gate.set(&gate.lock(), 0, None, paced(1e6), false);
    assert_eq!(
        gate.wait_us(0, place),
        0,
        "150 bytes are left, as many as may be owed"
    );
    assert_eq!(enter(&gate, 0, 0).1, 1_150, "the batch of 1,000 bytes, too");
    // A writer that waits for others' batches goes on waiting for them.
    gate.set(&gate.lock(), 0, None, paced(5e5), false);
    assert_eq!(enter(&gate, 0, 0).1, 2_150);
    // A writer that goes faster is not charged again.
    gate.set(&gate.lock(), 0, None, paced(1e8), false);
    assert_eq!(enter(&gate, 0, 0).1, 0);
}

#[test]
fn who_may_not_wait_owes_nothing() {
    let gate = gate(1e6);
    assert!(gate.enter(0, 1_000, false).is_some());
    assert!(gate.enter(0, 1_000, false).is_none());
    assert_eq!(enter(&gate, 0, 0).1, 1_000);
}

#[test]
fn time_is_paid_at_the_rate_of_the_time() {
    let gate = gate(1e6);
    enter(&gate, 0, 10_000);
    let (place, _) = enter(&gate, 0, 0);
    // Half of it at a byte a microsecond, the rest at ten.
    gate.set(&gate.lock(), 5_000, None, paced(1e7), false);
    assert_eq!(gate.wait_us(5_000, place), 500);
    assert_eq!(gate.wait_us(5_500, place), 0);
    // No pace at all.
    enter(&gate, 5_500, 1 << 30);
    let (place, wait_us) = enter(&gate, 5_500, 0);
    assert!(wait_us > 100_000_000);
    gate.set(&gate.lock(), 5_600, None, paced(UNLIMITED), true);
    assert_eq!(gate.wait_us(5_600, place), 0);
    gate.set(&gate.lock(), 5_700, None, paced(1e6), true);
    assert_eq!(enter(&gate, 5_700, 1).1, 0, "nothing is left of it");
    // Writers crawl at least.
    gate.set(&gate.lock(), 5_700, None, paced(0.0), true);
    enter(&gate, 1_000_000, 64 * 1024);
    assert_eq!(enter(&gate, 1_000_000, 0).1, 1_000_000);
}

#[test]
fn one_writer_at_a_time_looks_at_the_pace() {
    let gate = gate(1e6);
    assert!(!gate.takes_rate_update(PAUSE_US - 1));
    assert!(gate.takes_rate_update(PAUSE_US));
    assert!(!gate.takes_rate_update(PAUSE_US));
    assert!(gate.takes_rate_update(2 * PAUSE_US));
}

#[test]
fn a_pace_counts_for_a_second_after_it_held_somebody_back() {
    let gate = gate(1e6);
    assert_eq!(gate.delayed_rate(1), None, "no writer waited");
    gate.note_held(10);
    assert_eq!(gate.delayed_rate(11), Some(1_000_000));
    assert!(gate.is_throttling(REST_US) && !gate.is_throttling(REST_US + 10));
    gate.set(
        &gate.lock(),
        0,
        Some(StallCause::MemtableLimit),
        paced(1e6),
        true,
    );
    assert!(gate.is_throttling(2 * REST_US) && gate.delayed_rate(11).is_none());
}

#[test]
fn who_is_stopped_is_woken_when_the_gate_opens() {
    let gate = gate(1e6);
    let stop = |stop| gate.set(&gate.lock(), 0, stop, paced(UNLIMITED), false);
    stop(Some(StallCause::MemtableLimit));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            while gate.is_stopped() {
                gate.wait_stopped(|| false);
            }
        });
        stop(None);
        waiter.join().expect("no panic");
    });
    // The reason to wait is gone: it does not.
    stop(Some(StallCause::MemtableLimit));
    gate.wait_stopped(|| true);
}
