//! The controller beside loads of which the best split is known.

use super::*;
use std::cell::RefCell;

const MB: usize = 1 << 20;
/// Prices of a database at rest.
const NOTHING: MemoryValues<'_> = MemoryValues {
    cache: &|_| BudgetSlopes {
        gain: 0.0,
        loss: 0.0,
    },
    memtables: &|_| 0.0,
};

/// A budget of a thousand megabytes, split in the middle.
fn middle() -> ControllerInput {
    ControllerInput {
        total: 1000 * MB,
        cache: 500 * MB,
        memtables: 500 * MB,
        cache_min: 60 * MB,
        memtables_min: 60 * MB,
        cache_worth: BudgetSlopes::default(),
        memtables_worth: 0.0,
    }
}

fn slopes(gain: f64, loss: f64) -> BudgetSlopes {
    BudgetSlopes { gain, loss }
}

/// Carries a decision out.
fn carry_out(now: &mut ControllerInput, decision: &BudgetDecision) {
    match decision.to {
        Some(BudgetSide::BlockCache) => {
            now.cache += decision.bytes;
            now.memtables -= decision.bytes;
        }
        Some(BudgetSide::Memtables) => {
            now.memtables += decision.bytes;
            now.cache -= decision.bytes;
        }
        None => assert_eq!(decision.bytes, 0),
    }
}

/// Looks `times` times at a load that `worth` prices by the split.
fn run(
    controller: &mut Controller,
    now: &mut ControllerInput,
    times: usize,
    mut worth: impl FnMut(&ControllerInput) -> (BudgetSlopes, f64),
) -> Vec<BudgetDecision> {
    let mut all = Vec::new();
    for _ in 0..times {
        (now.cache_worth, now.memtables_worth) = worth(now);
        let worth = RefCell::new(&mut worth);
        let with_cache = |cache: usize| {
            let memtables = 1000 * MB - cache;
            let then = ControllerInput {
                cache,
                memtables,
                ..*now
            };
            (worth.borrow_mut())(&then)
        };
        let prices = MemoryValues {
            cache: &|cache| with_cache(cache).0,
            memtables: &|share| with_cache(1000 * MB - share).1,
        };
        let decision = controller.decide(now, &prices);
        carry_out(now, &decision);
        assert_eq!(now.cache + now.memtables, 1000 * MB);
        assert!(now.cache >= now.cache_min && now.memtables >= now.memtables_min);
        all.push(decision);
    }
    all
}

fn reversals(all: &[BudgetDecision]) -> usize {
    let moves: Vec<_> = all.iter().filter(|d| d.bytes > 0).map(|d| d.to).collect();
    moves.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

#[test]
fn reads_move_memory_to_the_cache_until_memtables_have_their_minimum() {
    let (mut controller, mut now) = (Controller::default(), middle());
    let all = run(&mut controller, &mut now, 12, |_| (slopes(80.0, 90.0), 0.0));
    let parts: Vec<_> = all.iter().map(|d| d.bytes / MB).collect();
    assert_eq!(parts[..5], [20, 40, 80, 160, 140], "until the minimum");
    assert_eq!(now.memtables, now.memtables_min);
    assert_eq!(all.last().map(|d| d.reason), Some(BudgetReason::AtMinimum));
}

#[test]
fn writes_move_memory_to_memtables_until_the_cache_has_its_minimum() {
    let (mut controller, mut now) = (Controller::default(), middle());
    let all = run(&mut controller, &mut now, 12, |m| {
        (slopes(0.0, 0.0), 50_000.0 / (m.memtables / MB) as f64)
    });
    assert!(all.iter().all(|d| d.to == Some(BudgetSide::Memtables)));
    assert_eq!(now.cache, now.cache_min);
}

#[test]
fn an_idle_database_moves_nothing() {
    let (mut controller, mut now) = (Controller::default(), middle());
    let all = run(&mut controller, &mut now, 20, |_| (slopes(0.0, 0.0), 0.0));
    let idle = BudgetDecision::stays(None, BudgetReason::Idle);
    assert!(all.iter().all(|d| *d == idle));
    // Nor does one that does hardly anything.
    let all = run(&mut controller, &mut now, 20, |_| (slopes(1.0, 1.0), 0.5));
    assert!(
        all.iter()
            .all(|d| d.bytes == 0 && d.reason == BudgetReason::Idle)
    );
}

/// Worth that falls with what a side has, like that of most loads: equal at 600 MB of cache.
fn mixed(now: &ControllerInput) -> (BudgetSlopes, f64) {
    let cache = 60_000.0 / (now.cache / MB) as f64;
    let memtables = 40_000.0 / (now.memtables / MB) as f64;
    (slopes(cache, cache), memtables)
}

#[test]
fn a_constant_load_comes_to_rest_near_the_best_split() {
    for start in [60, 200, 500, 800, 940] {
        let mut controller = Controller::default();
        let mut now = middle();
        now.cache = start * MB;
        now.memtables = (1000 - start) * MB;
        let all = run(&mut controller, &mut now, 200, mixed);
        assert!(reversals(&all) <= 1, "from {start}: {all:?}");
        assert!(all[60..].iter().all(|d| d.bytes == 0), "from {start}");
        let cache = now.cache / MB;
        assert!((500..=700).contains(&cache), "{start}: {cache}");
    }
}

#[test]
fn noise_moves_memory_back_and_forth_seldom() {
    let (mut controller, mut now) = (Controller::default(), middle());
    let mut state = 7u64;
    let mut noise = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        0.7 + 0.6 * (state % 1000) as f64 / 1000.0
    };
    let all = run(&mut controller, &mut now, 500, |m| {
        let (cache, memtables) = mixed(m);
        let times = noise();
        (
            slopes(cache.gain * times, cache.loss * times),
            memtables * noise(),
        )
    });
    assert!(reversals(&all) < 25, "{}", reversals(&all));
    let cache = now.cache / MB;
    assert!((400..=800).contains(&cache), "{cache}");
}

#[test]
fn a_new_phase_turns_the_direction_after_a_rest() {
    let (mut controller, mut now) = (Controller::default(), middle());
    run(&mut controller, &mut now, 3, |_| (slopes(80.0, 90.0), 0.0));
    let all = run(&mut controller, &mut now, 4, |_| (slopes(0.0, 0.0), 90.0));
    let reasons: Vec<_> = all.iter().map(|d| d.reason).collect();
    use BudgetReason::{Benefit, Resting};
    assert_eq!(reasons, [Resting, Resting, Benefit, Benefit]);
    // The first part of a new direction is a small one.
    assert_eq!(all[2].bytes, 20 * MB);
}

#[test]
fn a_side_below_its_minimum_takes_what_it_lacks() {
    let mut controller = Controller::default();
    // What other owners hold came out of the cache.
    let mut now = ControllerInput {
        cache: 10 * MB,
        ..middle()
    };
    let decision = controller.decide(&now, &NOTHING);
    assert_eq!(decision.bytes, 50 * MB);
    assert_eq!(decision.to, Some(BudgetSide::BlockCache));
    assert_eq!(decision.reason, BudgetReason::BelowMinimum);
    // Neither has enough: memtables are not taken from.
    now.memtables = 60 * MB;
    assert_eq!(controller.decide(&now, &NOTHING).bytes, 0);
}

#[test]
fn a_clear_gain_moves_no_further_than_where_both_are_worth_the_same() {
    let mut controller = Controller::default();
    let mut now = middle();
    // The cache gains much as long as it has less than 680 MB.
    let cliff = |m: &ControllerInput| match m.cache / MB {
        0..680 => (slopes(900.0, 900.0), 10.0),
        _ => (slopes(0.0, 900.0), 10.0),
    };
    let all = run(&mut controller, &mut now, 12, cliff);
    assert!((650..680).contains(&(now.cache / MB)), "{all:?}");
    assert_eq!(reversals(&all), 0);
    assert!(all[..6].iter().any(|d| d.bytes == 0), "soon: {all:?}");
}

#[test]
fn memtables_that_cost_more_than_they_save_give_memory_back() {
    let (mut controller, mut now) = (Controller::default(), middle());
    run(&mut controller, &mut now, 30, |m| {
        let is_large = m.memtables > 128 * MB;
        (BudgetSlopes::default(), if is_large { -90.0 } else { 90.0 })
    });
    assert!((100..150).contains(&(now.memtables / MB)), "{now:?}");
}
