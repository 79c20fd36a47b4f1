//! A tree of two numbers below a writer without patience.

use super::*;

const TABLE: f64 = 16e6;
const STEP_S: f64 = 0.005;

fn limits() -> WriterLimits {
    let triggers = StallTriggers::new((12, 36), (64_000_000_000, 256_000_000_000));
    WriterLimits {
        compaction: 4.0,
        triggers: triggers.with_memtables(2, 1),
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
            let limit = pace.limit(&now, &limits(), 16e6);
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
        assert!((0.95..1.05).contains(&got), "{got} of the drain");
        let highest = level0.iter().copied().fold(0.0, f64::max);
        assert!(highest < 30.0, "level 0 rose to {highest} tables");
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
    let mut rate = |s: u64, level0, drained| {
        let now = Reading {
            now_us: s * 1_000_000,
            level0,
            drained,
            is_compacting: s < 3_600,
            ..Reading::default()
        };
        pace.limit(&now, &limits(), 1e6)
    };
    rate(0, 24.0, 0);
    assert!(rate(1, 24.0, 100_000_000).bytes_per_s < 80e6);
    // An hour in which only levels below are compacted: the mean begins anew, the drain stays.
    for s in 2..3_600 {
        assert_eq!(rate(s, 0.0, 100_000_000).bytes_per_s, UNLIMITED);
    }
    // A fifth of the way from the slowdown to the stop above its mean, and a little more: there
    // writers get the drain.
    let limit = rate(3_600, 12.0 + 0.42 * 24.0, 100_000_000);
    assert!((95e6..105e6).contains(&limit.bytes_per_s), "{limit:?}");
    assert_eq!(limit.cause, LoadCause::Runs);
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
        pace.limit(&now, &limits, 100e6).bytes_per_s
    };
    assert_eq!(limit_at(0, 0.0), UNLIMITED);
    let held: Vec<f64> = [4.0, 1.0].map(|beyond| limit_at(100, beyond)).into();
    assert!(
        held[0] < 10e6 && (132e6..136e6).contains(&held[1]),
        "{held:?}"
    );
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
        let limit = pace.limit(&now, &limits, 16e6);
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
        pace.limit(&now, &limits, 10e6).bytes_per_s
    };
    assert_eq!(rate(47_000_000_000), UNLIMITED);
    let rates = [
        48_000_000_000,
        64_000_000_000,
        106_240_000_000,
        255_999_999_999,
    ]
    .map(rate);
    let expected = [178e6, 13.44e6, 10e6, 0.8e6];
    for (rate, expected) in rates.into_iter().zip(expected) {
        assert!((rate / expected - 1.0).abs() < 0.05, "{rates:?}");
    }
}

#[test]
fn the_rate_falls_with_the_load_and_is_even_where_a_tree_settles() {
    assert_eq!(part_of_drain(0.749), UNLIMITED);
    let parts = [
        0.75,
        1.0,
        EVEN_LOAD - 0.1,
        EVEN_LOAD,
        EVEN_LOAD + 0.1,
        1.5,
        2.0,
    ];
    let parts = parts.map(part_of_drain);
    assert!(parts.windows(2).all(|w| w[0] > w[1]), "{parts:?}");
    assert!(
        (17.0..19.0).contains(&parts[0]) && parts[3] == 1.0 && parts[6] < 0.1,
        "{parts:?}"
    );
    assert!(parts[2] < 1.05 && parts[4] > 0.95, "{parts:?}");
}

#[test]
fn a_stack_counts_where_it_is_more_than_level_0() {
    let limits = limits();
    let rate = |stack, level0| {
        let now = Reading {
            stack: Some(stack),
            level0,
            ..Reading::default()
        };
        Pace::default().limit(&now, &limits, 10e6).bytes_per_s
    };
    assert_eq!(rate(0.2, 2.0), UNLIMITED);
    // A third of the room is as much as twelve tables of 36, where writers are slowed down.
    assert_eq!(rate(1.0 / 3.0, 2.0), rate(0.0, 12.0));
    assert!(rate(1.0, 2.0) < 1e6 && rate(0.0, 36.0) < 1e6);
}

#[test]
fn what_comes_until_a_merge_ends_fits_below_where_writers_stop() {
    let (mut pace, limits) = (Pace::default(), limits());
    let mut rate = |tables, idle, filled, relief_us| {
        let now = Reading {
            is_compaction_free: true,
            tables,
            idle,
            filled,
            relief_us,
            ..Reading::default()
        };
        pace.limit(&now, &limits, 1e9).bytes_per_s
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
    let now = Reading {
        level0: 1e6,
        debt: u64::MAX,
        ..Reading::default()
    };
    for triggers in [
        StallTriggers::new((-1, 0), (0, 0)),
        limits().triggers.without_compactions(),
    ] {
        let limits = WriterLimits {
            triggers,
            ..limits()
        };
        let limit = Pace::default().limit(&now, &limits, 1.0);
        assert_eq!(limit.bytes_per_s, UNLIMITED);
    }
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
        pace.limit(&now, &limits, 16e6).bytes_per_s
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
        pace.limit(&now, &limits, 16e6)
    };
    assert_eq!(rate(1, 0).bytes_per_s, UNLIMITED);
    // A sixteenth of 16 MB is left, at 16 MB a second at first: 430 bytes in 27 microseconds.
    assert_eq!(rate(2, 0).bytes_per_s, 16e6);
    assert_eq!(rate(2, 500_000).bytes_per_s, 1e6);
    assert_eq!(rate(2, 900_000).bytes_per_s, SLOWEST);
    assert_eq!(rate(2, 999_000).bytes_per_s, SLOWEST);
    let end = rate(2, 1_000_000);
    assert_eq!((end.bytes_per_s, end.cause), (0.0, LoadCause::Memtables));
    assert_eq!(rate(3, 0).bytes_per_s, 0.0, "it was given away before");
    let small = WriterLimits {
        memtable: 512.0 * 1024.0,
        ..limits
    };
    let now = Reading {
        waiting: 2,
        ..Reading::default()
    };
    assert_eq!(pace.limit(&now, &small, 16e6).bytes_per_s, 0.0);
}
