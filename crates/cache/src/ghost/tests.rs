//! The curve against an exact model: a list of all keys, the last used first.

use super::*;
use crate::CacheKey;
use proptest::prelude::*;

/// An exact LRU stack: a `Vec` of keys with their bytes, the newest first.
#[derive(Default)]
struct Model {
    keys: Vec<(u64, u64)>,
    /// The least capacity at which each use hits; `None` for the first use of a key.
    needed: Vec<Option<u64>>,
}

impl Model {
    fn used(&mut self, hash: u64, bytes: u64) {
        let at = self.keys.iter().position(|(h, _)| *h == hash);
        let newer = |at: usize| self.keys[..at].iter().map(|(_, b)| b).sum::<u64>();
        self.needed.push(at.map(|at| newer(at) + bytes));
        if let Some(at) = at {
            self.keys.remove(at);
        }
        self.keys.insert(0, (hash, bytes));
    }

    fn hits_at(&self, capacity: u64) -> usize {
        let hits = self.needed.iter().flatten();
        hits.filter(|needed| **needed <= capacity).count()
    }
}

fn hash(n: u64) -> u64 {
    CacheKey::new(7, n).hash()
}

/// Watches all keys.
fn exact(most: usize) -> Ghost {
    let ghost = Ghost::new();
    ghost.watch_share(most, ALL);
    ghost
}

proptest! {
    #[test]
    fn without_sampling_the_curve_is_exact(
        uses in prop::collection::vec((0u64..60, 1usize..5), 1..400),
    ) {
        // A step of one byte.
        let ghost = exact(STEPS);
        let mut model = Model::default();
        for (n, bytes) in uses {
            // The size of a value follows from its key: it never changes.
            let bytes = (n as usize + bytes / 8) % 4 + 1;
            ghost.used(hash(n), bytes);
            model.used(hash(n), bytes as u64);
        }
        let curve = ghost.take_curve().expect("it watches");
        prop_assert_eq!(curve.uses as usize, model.needed.len());
        for capacity in 0..=STEPS {
            let expected = model.hits_at(capacity as u64);
            prop_assert_eq!(curve.hits_at(capacity) as usize, expected, "{}", capacity);
        }
    }
}

/// Pseudo-random numbers below `n`.
fn random(state: &mut u64, n: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % n
}

#[test]
fn a_sample_of_a_skewed_load_is_near_the_exact_curve() {
    let (most, value) = (20_000 * 4096, 4096);
    let ghost = Ghost::new();
    ghost.watch_share(most, ALL / 8);
    let mut model = Model::default();
    let mut state = 42;
    let count = 60_000;
    for _ in 0..count {
        // The product of two draws: the small numbers come often.
        let n = random(&mut state, 140) * random(&mut state, 140);
        model.used(hash(n), value);
        if ghost.has(hash(n)) {
            ghost.used(hash(n), value as usize);
        }
    }
    let curve = ghost.take_curve().expect("it watches");
    for percent in [5, 10, 25, 50, 75, 100] {
        let capacity = most / 100 * percent;
        let exact = model.hits_at(capacity as u64) as f64 / f64::from(count);
        let sampled = curve.hits_at(capacity) / curve.uses;
        let off = (exact - sampled).abs();
        assert!(off < 0.04, "{percent} %: {exact:.3} and {sampled:.3}");
    }
    let all = curve.uses / f64::from(count);
    assert!((0.8..1.25).contains(&all), "{all}");
}

#[test]
fn a_loop_hits_where_all_of_it_fits_and_nowhere_else() {
    let ghost = exact(64_000);
    for _ in 0..5 {
        (0..40).for_each(|n| ghost.used(hash(n), 1000));
    }
    let curve = ghost.take_curve().expect("it watches");
    assert_eq!(curve.hits_at(39_000), 0.0);
    assert_eq!(curve.hits_at(40_000), 160.0);
    // What was taken is counted once; the keys are still known.
    assert_eq!(ghost.take_curve().map(|c| c.uses), Some(0.0));
    ghost.used(hash(0), 1000);
    assert_eq!(ghost.take_curve().map(|c| c.hits_at(64_000)), Some(1.0));
}

#[test]
fn memory_is_bounded_whatever_comes() {
    let ghost = exact(usize::MAX / 2);
    for n in 0..100_000 {
        if ghost.has(hash(n)) {
            ghost.used(hash(n), 1);
        }
    }
    let below = ghost.sampled_below.load(Ordering::Relaxed);
    assert!(below < ALL / 8 && below > 0, "{below}");
    assert!(ghost.memory() < 1 << 20, "{}", ghost.memory());
    let curve = ghost.take_curve().expect("it watches");
    assert!((curve.uses / 100_000.0 - 1.0).abs() < 0.1, "{}", curve.uses);
}

#[test]
fn keys_beyond_the_largest_capacity_are_forgotten() {
    let ghost = exact(1000);
    (0..50).for_each(|n| ghost.used(hash(n), 100));
    let state = ghost.state.lock();
    let stack = &state.as_ref().expect("it watches").stack;
    assert_eq!((stack.bytes, stack.place_of.len()), (1000, 10));
}

#[test]
fn nobody_watches_at_first() {
    let ghost = Ghost::new();
    assert!((0..1000).all(|n| !ghost.has(hash(n))));
    assert_eq!((ghost.take_curve(), ghost.memory()), (None, 0));
}

#[test]
fn the_first_share_follows_the_capacity() {
    assert_eq!(first_share(1 << 20), ALL / 16);
    assert_eq!(first_share(1 << 30), ALL / 128);
    assert_eq!(first_share(1 << 62), 1);
}

#[test]
fn uses_and_reads_of_a_cache_reach_its_ghosts() {
    use crate::{Cache, CacheOptions, Priority};
    use std::sync::Arc;
    for options in [
        CacheOptions::lru(1 << 20),
        CacheOptions::with_capacity(1 << 20),
    ] {
        let cache = Cache::new(options);
        let ticks = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&ticks);
        cache.watch(64 << 10, move || clock.fetch_add(500, Ordering::Relaxed));
        let keys = (0..2_000).map(|n| CacheKey::new(7, n));
        let sampled: Vec<_> = keys.filter(|k| cache.is_watched(*k)).collect();
        assert!((60..250).contains(&sampled.len()), "{}", sampled.len());
        for key in &sampled {
            assert!(cache.lookup(*key).is_none());
            let flight = cache.begin_read(*key).expect("alone");
            cache
                .insert(*key, 1, 10, Priority::Low)
                .expect("not strict");
            drop(flight);
            assert!(cache.lookup(*key).is_some());
            assert!(cache.glimpse(*key).is_some());
        }
        let curve = cache.take_ghost_curve().expect("it watches");
        let count = sampled.len();
        // The two look-ups found what was inserted just before.
        assert_eq!(curve.uses, (3 * count * 16) as f64);
        assert_eq!(curve.hits_at(1 << 10), (2 * count * 16) as f64);
        assert_eq!(
            (curve.reads, curve.read_ns),
            (count as u64, 500 * count as u64)
        );
    }
}
