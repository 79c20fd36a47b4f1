//! A tree of two numbers below a writer without patience.

use super::*;

const TABLE: f64 = 16e6;
const STEP_S: f64 = 0.005;

fn limits() -> WriterLimits {
    let triggers = StallTriggers::new((12, 36), (64_000_000_000, 256_000_000_000));
    WriterLimits {
        compaction: 4.0,
        triggers: triggers.with_memtables(2, 1),
        space: StallTrigger {
            slowdown: 1.0,
            stop: 4.0,
        },
        memtable: TABLE,
    }
}

/// Compactions that take turns: level 0 as it is when its turn comes, then the levels below for
/// `below` times as long.
struct Turns {
    bytes_per_s: f64,
    below: f64,
    taking: f64,
    taken: f64,
    resting_s: f64,
    rested_s: f64,
}

impl Turns {
    fn new(bytes_per_s: f64, below: f64) -> Turns {
        Turns {
            bytes_per_s,
            below,
            taking: 0.0,
            taken: 0.0,
            resting_s: 0.0,
            rested_s: 0.0,
        }
    }

    /// Bytes that leave level 0, which holds `level0` without what was taken before.
    fn step(&mut self, level0: f64) -> f64 {
        if self.rested_s < self.resting_s {
            self.rested_s += STEP_S;
            return 0.0;
        }
        if self.taking == 0.0 {
            if level0 < 4.0 * TABLE {
                return 0.0;
            }
            (self.taking, self.taken) = (level0, 0.0);
        }
        let now = (self.bytes_per_s * STEP_S).min(self.taking - self.taken);
        self.taken += now;
        if self.taken >= self.taking {
            (self.resting_s, self.rested_s) = (self.below * self.taking / self.bytes_per_s, 0.0);
            self.taking = 0.0;
        }
        now
    }
}

struct Run {
    by_second: Vec<f64>,
    level0: Vec<f64>,
}

/// Writers that could bring `most` bytes a second, for `seconds`.
fn run(turns: &mut Turns, most: f64, seconds: usize) -> Run {
    let (mut pace, mut level0, mut drained) = (Pace::default(), 0.0, 0.0);
    let mut out = Run {
        by_second: Vec::new(),
        level0: Vec::new(),
    };
    let steps = (1.0 / STEP_S) as usize;
    for second in 0..seconds {
        let mut written = 0.0;
        for step in 0..steps {
            let now = Reading {
                now_us: ((second * steps + step) as f64 * STEP_S * 1e6) as u64,
                level0: level0 / TABLE,
                drained: drained as u64,
                is_compacting: level0 > 0.0,
                ..Reading::default()
            };
            let limit = pace.update_rate(&now, &limits(), 16e6);
            let brought = limit.bytes_per_s.min(most) * STEP_S;
            let gone = turns.step(level0);
            level0 += brought - gone;
            drained += gone;
            written += brought;
            out.level0.push(level0 / TABLE);
        }
        out.by_second.push(written);
    }
    out
}

fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len() as f64
}

fn variation(of: &[f64]) -> f64 {
    let m = mean(of);
    let square = of.iter().map(|x| (x - m) * (x - m)).sum::<f64>() / of.len() as f64;
    square.sqrt() / m
}

#[test]
fn pressed_writers_get_the_drain_without_standing_still() {
    for (speed, below) in [
        (100e6, 2.0),
        (300e6, 5.0),
        (300e6, 2.0),
        (20e6, 0.5),
        (90e6, 1.0),
    ] {
        let drain = speed / (1.0 + below);
        let run = run(&mut Turns::new(speed, below), 400e6, 240);
        let (rates, level0) = (&run.by_second[120..], &run.level0[run.level0.len() / 2..]);
        let got = mean(rates) / drain;
        assert!((0.97..1.03).contains(&got), "{got} of the drain");
        let highest = level0.iter().copied().fold(0.0, f64::max);
        assert!(highest < 28.0, "level 0 rose to {highest} tables");
        let swing = variation(rates);
        assert!(swing < 0.15, "rates of a second vary by {swing}");
    }
}

#[test]
fn writers_below_the_drain_are_left_alone() {
    let run = run(&mut Turns::new(300e6, 1.0), 80e6, 60);
    assert!(run.by_second.iter().all(|r| *r >= 80e6 * 0.999));
}

#[test]
fn a_rest_does_not_make_writers_slow() {
    let mut pace = Pace::default();
    let reading = |now_us, level0, drained, is_compacting| Reading {
        now_us,
        level0,
        drained,
        is_compacting,
        ..Reading::default()
    };
    let limits = limits();
    pace.update_rate(&reading(0, 20.0, 0, true), &limits, 1e6);
    pace.update_rate(&reading(1_000_000, 20.0, 100_000_000, true), &limits, 1e6);
    // An hour in which only levels below are compacted.
    for s in 2..3_600 {
        pace.update_rate(
            &reading(s * 1_000_000, 0.0, 100_000_000, true),
            &limits,
            1e6,
        );
    }
    // A quarter of the way from the mark to the stop above its estimate: that stands where writers
    // get the drain.
    let after = reading(3_600_000_000, 26.0, 100_000_000, false);
    let limit = pace.update_rate(&after, &limits, 1e6);
    assert!((90e6..110e6).contains(&limit.bytes_per_s), "{limit:?}");
    assert_eq!(limit.cause, StallCause::L0FileCountLimit);
}

#[test]
fn space_beyond_its_bound_holds_writers_back_no_longer_than_it_is_taken() {
    let (mut pace, limits) = (Pace::default(), limits());
    let mut limit_at = |ms: u64, beyond: f64| {
        let now = Reading {
            now_us: ms * 1_000,
            level0: 3.0,
            beyond,
            ..Reading::default()
        };
        pace.update_rate(&now, &limits, 100e6).bytes_per_s
    };
    assert_eq!(limit_at(0, 0.0), UNLIMITED);
    assert_eq!(limit_at(100, 4.0), 25e6);
    assert_eq!(limit_at(200, 1.0), 200e6);
    assert_eq!(limit_at(300, 0.5), UNLIMITED);
}

#[test]
fn a_memtable_fills_up_when_the_flush_before_it_ends() {
    let (mut pace, limits) = (Pace::default(), limits());
    let (flush_rate, mut left, mut filled, mut us) = (40e6, TABLE, 0.0, 0);
    while left > 0.0 {
        let now = Reading {
            now_us: us,
            filled: filled as u64,
            waiting: 1,
            left: left as u64,
            flush_rate: flush_rate as u64,
            ..Reading::default()
        };
        let limit = pace.update_rate(&now, &limits, 16e6);
        filled += limit.bytes_per_s.min(400e6) * 0.001;
        left -= flush_rate * 0.001;
        us += 1_000;
        assert!(
            filled <= TABLE * 1.05,
            "full with {left} bytes left to flush"
        );
    }
    assert!(filled > TABLE * 0.9, "writers got {filled} bytes of room");
}

#[test]
fn the_limits_of_pending_bytes_have_a_slope_between_them() {
    let (mut pace, limits) = (Pace::default(), limits());
    let mut rate = |debt| {
        let now = Reading {
            debt,
            ..Reading::default()
        };
        pace.update_rate(&now, &limits, 10e6).bytes_per_s
    };
    assert_eq!(rate(47_000_000_000), UNLIMITED);
    assert_eq!(rate(64_000_000_000), 20e6);
    assert_eq!(rate(128_000_000_000), 10e6);
    assert_eq!(rate(256_000_000_000), 2.5e6);
}

#[test]
fn writers_slow_down_by_degrees_below_the_slowdown_trigger() {
    let (mut pace, limits) = (Pace::default(), limits());
    let mut rate = |level0| {
        // Each reading alone: the estimate of the one before is forgotten.
        pace.before_us = None;
        let now = Reading {
            level0,
            ..Reading::default()
        };
        pace.update_rate(&now, &limits, 10e6).bytes_per_s
    };
    assert_eq!(rate(8.9), UNLIMITED);
    let rates = [9.0, 12.0, 20.0, 28.0, 36.0].map(&mut rate);
    assert!((190e6..200e6).contains(&rates[0]), "{rates:?}");
    assert!((7.1e6..7.3e6).contains(&rates[3]), "{rates:?}");
    assert_eq!(
        [rates[1], rates[2], rates[4]],
        [20e6, 10e6, 2.5e6],
        "{rates:?}"
    );
}

fn stack_of(part: f64, room: f64) -> StackFill {
    StackFill {
        above: (part * room) as u64,
        room: room as u64,
    }
}

/// Bytes that writers bring in each second into a stack with this much room, from which columns
/// take `drain` bytes a second in the mean, but nothing for a third of the `turn_s`. `height` is
/// the part of the room that is taken first, and then last.
fn into_stack(room: f64, drain: f64, turn_s: f64, height: &mut f64) -> Vec<f64> {
    let (mut pace, mut above, mut drained) = (Pace::default(), *height * room, 0.0);
    let steps = (1.0 / STEP_S) as usize * 5;
    let seconds = (0..400).map(|second| {
        let brought = (0..steps).map(|step| {
            let at_s = second as f64 + step as f64 * STEP_S / 5.0;
            let now = Reading {
                now_us: (at_s * 1e6) as u64,
                stack: Some(stack_of(above / room, room)),
                stack_drained: drained as u64,
                is_compacting: true,
                ..Reading::default()
            };
            let limit = pace
                .update_rate(&now, &limits(), drain)
                .bytes_per_s
                .min(4.0 * drain);
            let rests = (at_s / turn_s).fract() < 1.0 / 3.0;
            let gone = if rests {
                0.0
            } else {
                1.5 * drain * STEP_S / 5.0
            };
            let came = limit * STEP_S / 5.0;
            drained += gone;
            above += came - gone;
            came
        });
        brought.sum()
    });
    let by_second = seconds.collect();
    *height = above / room;
    by_second
}

#[test]
fn columns_that_come_and_go_do_not_move_writers() {
    for (room, drain, turn_s) in [(4e9, 250e6, 3.0), (4e9, 80e6, 10.0), (100e6, 100e6, 0.2)] {
        for begin in [0.0, 0.5, 1.2] {
            let mut height = begin;
            let by_second = into_stack(room, drain, turn_s, &mut height);
            let settled = &by_second[200..];
            let got = mean(settled) / drain;
            assert!((0.97..1.03).contains(&got), "{got} of the drain");
            let swing = variation(settled);
            assert!(swing < 0.03, "rates of a second vary by {swing}");
            assert!(
                (0.4..0.75).contains(&height),
                "{height} of the room is taken"
            );
        }
    }
}

#[test]
fn writers_go_by_a_stack_of_runs_and_not_by_turns_of_level_0() {
    let (mut pace, limits) = (Pace::default(), limits());
    let mut at_s = 0;
    let mut rate = |stack, level0| {
        at_s += 1;
        let now = Reading {
            now_us: at_s * 1_000_000,
            stack: Some(stack_of(stack, 36e3)),
            level0,
            drained: at_s * 10_000_000,
            stack_drained: at_s * 10_000_000,
            is_compacting: true,
            ..Reading::default()
        };
        pace.update_rate(&now, &limits, 10e6).bytes_per_s
    };
    // All of it is full where level 0 would stop writers. Twice the drain, as level 0 would let
    // them have, would fill this one in no time.
    assert_eq!(rate(0.1, 2.0), UNLIMITED);
    let slowing = rate(1.0 / 3.0, 2.0);
    assert!((11e6..12e6).contains(&slowing), "{slowing}");
    assert_eq!(rate(1.0, 2.0), 2.5e6);
    // Neither a turn of level 0 nor what it was moves them, until it is about to stop them.
    let even = 20.0 / 36.0;
    let rates = [0.0, 12.0, 4.0, 12.0].map(|level0| rate(even, level0));
    assert!(rates.iter().all(|r| (*r - 10e6).abs() < 1e3), "{rates:?}");
    assert_eq!(rate(even, 36.0), 2.5e6);
}

#[test]
fn a_stack_that_has_room_holds_nobody_back_while_it_fills_up() {
    let (mut pace, limits) = (Pace::default(), limits());
    let mut rate = |at_s: u64, stack: Option<f64>| {
        let now = Reading {
            now_us: at_s * 1_000_000,
            level0: 20.0,
            stack: stack.map(|part| stack_of(part, 1e9)),
            drained: at_s * 100_000_000,
            is_compacting: true,
            ..Reading::default()
        };
        pace.update_rate(&now, &limits, 1e6).bytes_per_s
    };
    let alone = (0..30).map(|s| rate(s, None)).last();
    assert_eq!(alone, Some(100e6));
    // Nothing leaves the stack yet, and nothing has to.
    let filling = (30..60).map(|s| rate(s, Some(0.2)));
    assert!(filling.into_iter().all(|r| (r - 100e6).abs() < 1e3));
    // Once it should be emptied it says by itself how fast it is.
    let full: Vec<f64> = (60..200).map(|s| rate(s, Some(0.6))).collect();
    assert!(full[0] > 50e6 && full[139] < 10e6, "{full:?}");
}

#[test]
fn writers_that_fill_a_stack_slow_down_evenly_to_what_leaves_it() {
    for (room, drain) in [(8e9, 130e6), (2e9, 250e6)] {
        let mut height = 0.0;
        let by_second = into_stack(room, drain, 3.0, &mut height);
        let tens: Vec<f64> = by_second.chunks(10).map(|s| mean(s) / drain).collect();
        assert!(tens[0] > 1.2, "a stack with room takes more: {tens:?}");
        assert!(tens[0] < 2.5, "its room lasts for a while: {tens:?}");
        let falls = tens.windows(2).all(|two| two[1] < two[0] + 0.03);
        assert!(falls, "the rate rises again: {tens:?}");
        assert!(tens.iter().all(|r| *r > 0.95), "less than leaves: {tens:?}");
    }
}

#[test]
fn what_comes_until_a_merge_ends_fits_below_where_writers_stop() {
    let (mut pace, limits) = (Pace::default(), limits());
    let mut rate = |tables, idle, filled, relief_us| {
        let now = Reading {
            tables,
            idle,
            filled,
            relief_us,
            ..Reading::default()
        };
        pace.update_rate(&now, &limits, 1e9).bytes_per_s
    };
    assert_eq!(rate(23, 0, 0, Some(2_000_000)), UNLIMITED);
    assert_eq!(rate(30, 0, 0, None), UNLIMITED);
    // Four tables and an empty memtable until the 35th, in two seconds; then half a memtable in
    // half a second.
    assert_eq!(rate(30, 3, 0, Some(2_000_000)), 5.0 * TABLE / 2.0);
    assert_eq!(rate(34, 3, 8_000_000, Some(500_000)), 0.5 * TABLE / 0.5);
    // The 35th has come, since the merge is late: it may be so again.
    assert_eq!(rate(35, 3, 8_000_000, Some(1_000)), 0.5 * TABLE / 0.25);
    // Tables that no job merges yet will be merged among themselves long before.
    assert_eq!(rate(30, 4, 0, Some(20_000_000)), 5.0 * TABLE);
    // However far the end of the merge is, writers crawl.
    assert_eq!(rate(35, 3, 15_900_000, Some(60_000_000)), SLOWEST);
}

#[test]
fn options_that_switch_limits_off_are_kept_to() {
    let mut options = FamilyOptions::default();
    options.level0_slowdown_writes_trigger = -1;
    options.soft_pending_compaction_bytes_limit = 0;
    let now = Reading {
        level0: 1e6,
        debt: u64::MAX,
        ..Reading::default()
    };
    let limit = Pace::default().update_rate(&now, &WriterLimits::of(&options), 1.0);
    assert_eq!(limit.bytes_per_s, UNLIMITED);
    let mut off = FamilyOptions::default();
    off.disable_auto_compactions = true;
    let limit = Pace::default().update_rate(&now, &WriterLimits::of(&off), 1.0);
    assert_eq!(limit.bytes_per_s, UNLIMITED);
}

#[test]
fn memtables_hold_nobody_back_while_another_flush_may_begin() {
    let (mut pace, limits) = (Pace::default(), limits());
    let mut rate = |is_flush_free| {
        let now = Reading {
            filled: TABLE as u64 / 2,
            waiting: 1,
            left: TABLE as u64,
            flush_rate: 40_000_000,
            is_flush_free,
            ..Reading::default()
        };
        pace.update_rate(&now, &limits, 16e6).bytes_per_s
    };
    assert_eq!(rate(true), UNLIMITED);
    assert!((19e6..21e6).contains(&rate(false)));
}

#[test]
fn writers_crawl_through_the_reserve_before_they_stand() {
    let (mut pace, limits) = (Pace::default(), limits());
    let mut rate = |waiting, filled| {
        let now = Reading {
            filled,
            waiting,
            is_flush_free: true,
            ..Reading::default()
        };
        pace.update_rate(&now, &limits, 16e6)
    };
    assert_eq!(rate(1, 0).bytes_per_s, UNLIMITED);
    // A sixteenth of 16 MB, in a twelfth of a second at first: 430 bytes in 36 microseconds.
    assert_eq!(rate(2, 0).bytes_per_s, 12e6);
    assert_eq!(rate(2, 500_000).bytes_per_s, 750e3);
    assert_eq!(rate(2, 900_000).bytes_per_s, SLOWEST);
    assert_eq!(rate(2, 999_000).bytes_per_s, SLOWEST);
    let end = rate(2, 1_000_000);
    assert_eq!(
        (end.bytes_per_s, end.cause),
        (0.0, StallCause::MemtableLimit)
    );
    assert_eq!(rate(3, 0).bytes_per_s, 0.0, "it was given away before");
    let small = WriterLimits {
        memtable: 512.0 * 1024.0,
        ..limits
    };
    let now = Reading {
        waiting: 2,
        ..Reading::default()
    };
    assert_eq!(pace.update_rate(&now, &small, 16e6).bytes_per_s, 0.0);
}
