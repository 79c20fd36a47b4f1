//! Tests of the cache against hand-made expectations and a plain model.

use crate::{Cache, CacheKey, CacheOptions, Priority};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

fn key(n: u64) -> CacheKey {
    CacheKey::new(1, n)
}

fn one_shard(capacity: usize) -> CacheOptions {
    CacheOptions {
        num_shard_bits: 0,
        charge_metadata: false,
        high_pri_pool_ratio: 0.0,
        ..CacheOptions::lru(capacity)
    }
}

fn put(cache: &Cache<u64>, n: u64, priority: Priority) {
    cache
        .insert(key(n), n, 1, priority)
        .expect("the limit is not strict");
}

fn inside(cache: &Cache<u64>, range: std::ops::Range<u64>) -> Vec<u64> {
    range.filter(|&n| cache.peek(key(n)).is_some()).collect()
}

#[test]
fn the_oldest_goes_first_and_a_hit_keeps() {
    let cache = Cache::new(one_shard(4));
    (0..4).for_each(|n| put(&cache, n, Priority::Low));
    assert_eq!(cache.lookup(key(0)).as_deref(), Some(&0));
    put(&cache, 4, Priority::Low);
    put(&cache, 5, Priority::Low);
    assert_eq!(inside(&cache, 0..6), [0, 3, 4, 5]);
    assert_eq!(cache.usage(), 4);
}

#[test]
fn high_priority_outlives_a_scan() {
    let cache = Cache::new(CacheOptions {
        high_pri_pool_ratio: 0.5,
        ..one_shard(10)
    });
    (0..3).for_each(|n| put(&cache, n, Priority::High));
    (100..200).for_each(|n| put(&cache, n, Priority::Low));
    assert_eq!(inside(&cache, 0..3), [0, 1, 2]);
    // More than the pool holds: the oldest falls to the pool below and goes with the scan.
    (3..8).for_each(|n| put(&cache, n, Priority::High));
    (200..300).for_each(|n| put(&cache, n, Priority::Low));
    assert_eq!(inside(&cache, 0..8), [3, 4, 5, 6, 7]);
}

#[test]
fn bottom_priority_goes_before_low() {
    let cache = Cache::new(CacheOptions {
        low_pri_pool_ratio: 0.5,
        ..one_shard(10)
    });
    (0..5).for_each(|n| put(&cache, n, Priority::Low));
    (100..200).for_each(|n| put(&cache, n, Priority::Bottom));
    assert_eq!(inside(&cache, 0..5), [0, 1, 2, 3, 4]);
}

#[test]
fn pinned_entries_stay_and_a_strict_limit_refuses() {
    let cache = Cache::new(CacheOptions {
        strict_capacity_limit: true,
        ..one_shard(2)
    });
    let a = cache.insert(key(0), 0, 1, Priority::Low).expect("room");
    let _b = cache.insert(key(1), 1, 1, Priority::Low).expect("room");
    assert_eq!(cache.pinned_usage(), 2);
    assert!(cache.insert(key(2), 2, 1, Priority::Low).is_err());
    drop(a);
    assert_eq!(cache.pinned_usage(), 1);
    cache
        .insert(key(2), 2, 1, Priority::Low)
        .expect("one can go");
    assert_eq!(inside(&cache, 0..3), [1, 2]);
    // A limit that is not strict goes over while entries are pinned.
    cache.set_strict_capacity_limit(false);
    let c = cache.lookup(key(2));
    put(&cache, 3, Priority::Low);
    assert_eq!((cache.usage(), c.is_some()), (3, true));
}

#[test]
fn a_smaller_capacity_evicts_at_once() {
    let cache = Cache::new(one_shard(100));
    (0..100).for_each(|n| put(&cache, n, Priority::Low));
    cache.set_capacity(10);
    assert_eq!(inside(&cache, 0..100), (90..100).collect::<Vec<_>>());
    assert_eq!(
        cache.stats().by_priority[Priority::Low as usize].evictions,
        90
    );
    // A value larger than the cache is not kept and pushes nothing over the limit for good.
    cache
        .insert(key(7), 7, 1000, Priority::Low)
        .expect("not strict");
    assert!(cache.peek(key(7)).is_none());
}

#[test]
fn replacing_and_erasing_keep_the_sums() {
    let cache = Cache::new(one_shard(100));
    put(&cache, 1, Priority::Low);
    cache.insert(key(1), 11, 5, Priority::High).expect("room");
    assert_eq!(
        (cache.usage(), cache.lookup(key(1)).as_deref().copied()),
        (5, Some(11))
    );
    assert!(cache.erase(key(1)) && !cache.erase(key(1)));
    let stats = cache.stats();
    assert_eq!((cache.usage(), stats.replaced), (0, 1));
    assert!(
        stats
            .by_priority
            .iter()
            .all(|p| p.entries == 0 && p.usage == 0)
    );
}

#[test]
fn shards_follow_the_capacity() {
    let shards = |capacity| Cache::<()>::new(CacheOptions::lru(capacity)).num_shards();
    assert_eq!(
        [100 << 10, 512 << 10, 8 << 20, 1 << 30].map(shards),
        [1, 1, 16, 64]
    );
}

#[test]
fn values_are_dropped_outside_the_lock() {
    struct Calls(std::sync::Weak<Cache<Calls>>);
    impl Drop for Calls {
        fn drop(&mut self) {
            if let Some(cache) = self.0.upgrade() {
                cache.usage();
            }
        }
    }
    let cache = Arc::new(Cache::new(one_shard(3)));
    for n in 0..10 {
        cache
            .insert(key(n), Calls(Arc::downgrade(&cache)), 1, Priority::Low)
            .expect("not strict");
    }
    cache.erase(key(9));
    cache.retain(|_| false);
    assert_eq!(cache.usage(), 0);
}

#[test]
fn threads_agree_on_the_sums() {
    let cache = Cache::new(CacheOptions {
        num_shard_bits: 2,
        charge_metadata: false,
        ..CacheOptions::lru(200)
    });
    std::thread::scope(|s| {
        for t in 0..4u64 {
            let cache = &cache;
            s.spawn(move || {
                let mut x = t + 1;
                for _ in 0..20_000 {
                    x = x
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    let n = (x >> 33) % 400;
                    match cache.lookup(key(n)) {
                        Some(v) => assert_eq!(*v, n),
                        None if x & 1 << 60 == 0 => put(cache, n, Priority::Low),
                        None => _ = cache.erase(key(n)),
                    }
                }
            });
        }
    });
    let mut sum = 0;
    cache.for_each(|e| sum += e.charge);
    assert_eq!(sum, cache.usage());
    assert!(sum <= 200 && sum > 100, "{sum}");
}

/// Operations on a cache of 40 bytes beside a map: whatever is found is what was put last, what is
/// held stays, the sums are right, and the limit holds unless entries are held.
fn beside_a_map(options: CacheOptions, ops: &[(u8, u64, usize, u8)]) -> Result<(), TestCaseError> {
    let cache = Cache::new(options);
    let mut model = HashMap::new();
    let mut held: Vec<(usize, crate::Pinned<usize>)> = Vec::new();
    for (i, &(op, n, charge, priority)) in ops.iter().enumerate() {
        let priority = [Priority::Bottom, Priority::Low, Priority::High][priority as usize];
        match op {
            0 | 1 => {
                let kept = cache.insert(key(n), i, charge, priority);
                prop_assert_eq!(*kept.expect("not strict"), i);
                model.insert(n, i);
                let found = cache.peek(key(n)).map(|v| *v);
                // A table that may not grow can be full of entries that are held.
                let full = options.kind.name().starts_with("Fixed") && held.len() >= 7;
                prop_assert!(found == Some(i) || (full && found.is_none()));
            }
            2 => {
                let found = cache.lookup(key(n));
                prop_assert!(found.is_none_or(|v| model.get(&n) == Some(&*v)));
            }
            3 => {
                cache.erase(key(n));
                model.remove(&n);
                prop_assert!(cache.lookup(key(n)).is_none());
            }
            4 => held.extend(cache.lookup(key(n)).map(|v| (*v, v))),
            _ => held.clear(),
        }
        prop_assert!(held.iter().all(|(value, h)| **h == *value));
        let mut sum = 0;
        let mut count = 0;
        let mut pinned = 0;
        cache.for_each(|e| {
            sum += e.charge;
            count += 1;
            pinned += if e.pinned { e.charge } else { 0 };
        });
        let stats = cache.stats();
        prop_assert_eq!(sum, cache.usage());
        prop_assert_eq!(pinned, cache.pinned_usage());
        prop_assert!(
            sum <= 40.max(pinned + charge),
            "{} with {} pinned",
            sum,
            pinned
        );
        prop_assert_eq!(count, stats.entries());
        let usage: usize = stats.by_priority.iter().map(|p| p.usage).sum();
        prop_assert_eq!(sum, usage);
    }
    Ok(())
}

proptest! {
    #[test]
    fn agrees_with_a_map(
        ops in prop::collection::vec((0u8..6, 0u64..30, 1usize..6, 0u8..3), 1..300)
    ) {
        let pools = CacheOptions {
            high_pri_pool_ratio: 0.4,
            low_pri_pool_ratio: 0.3,
            ..one_shard(40)
        };
        beside_a_map(pools, &ops)?;
        let clock = |charge| CacheOptions {
            num_shard_bits: 0,
            charge_metadata: false,
            ..CacheOptions::hyper_clock(40, charge)
        };
        beside_a_map(clock(0), &ops)?;
        beside_a_map(clock(3), &ops)?;
    }
}

/// A cache of one shard that charges what it takes itself.
fn charging(options: CacheOptions) -> CacheOptions {
    CacheOptions {
        num_shard_bits: 0,
        charge_metadata: true,
        ..options
    }
}

#[test]
fn metadata_are_charged_with_the_entries() {
    for options in [
        CacheOptions::lru(1 << 20),
        CacheOptions::hyper_clock(1 << 20, 0),
    ] {
        let cache = Cache::new(charging(options));
        let empty = cache.usage();
        assert!(empty <= cache.overhead(), "{empty}");
        let kept = cache.insert(key(1), 7u64, 1000, Priority::Low);
        drop(kept.expect("room"));
        // The allocation has a key, two counts and a charge beside the value.
        let metadata = cache.usage() - empty - 1000;
        assert!((48..256).contains(&metadata), "{options:?}: {metadata}");
        assert_eq!(cache.pinned_usage(), 0);
        cache.erase(key(1));
        assert_eq!(cache.usage(), empty);
    }
}

#[test]
fn no_more_memory_is_taken_than_the_capacity() {
    const CAPACITY: usize = 256 << 10;
    for options in [
        CacheOptions::lru(CAPACITY),
        CacheOptions::hyper_clock(CAPACITY, 0),
        CacheOptions::hyper_clock(CAPACITY, 64),
    ] {
        let cache = Cache::new(charging(options));
        for n in 0..50_000 {
            let kept = cache.insert(key(n), n, size_of::<u64>(), Priority::Low);
            drop(kept.expect("not strict"));
        }
        let entries = cache.stats().entries();
        assert!(cache.usage() <= CAPACITY, "{options:?}: {}", cache.usage());
        // A table that grew leaves less room, which the next insertion makes.
        let memory = cache.memory(|_| size_of::<u64>());
        let most = match options.kind {
            // Slots and buckets of a table that doubles may be empty.
            crate::CacheKind::Lru => 2 * CAPACITY,
            _ => CAPACITY + (4 << 10),
        };
        assert!(
            memory > CAPACITY / 2 && memory <= most,
            "{options:?}: {memory}"
        );
        assert!(entries > 500 && entries < CAPACITY / 64, "{entries}");
        // Without that, there are as many entries as values fit.
        let free = Cache::new(CacheOptions {
            charge_metadata: false,
            ..charging(options)
        });
        for n in 0..50_000 {
            let kept = free.insert(key(n), n, size_of::<u64>(), Priority::Low);
            drop(kept.expect("not strict"));
        }
        assert!(free.stats().entries() > 2 * entries);
        assert!(free.memory(|_| size_of::<u64>()) > CAPACITY);
    }
}

#[test]
fn what_finds_room_lets_nothing_leave() {
    for charge_metadata in [false, true] {
        for options in [
            CacheOptions::lru(1 << 16),
            CacheOptions::hyper_clock(1 << 16, 0),
        ] {
            let cache = Cache::new(CacheOptions {
                num_shard_bits: 1,
                charge_metadata,
                ..options
            });
            put(&cache, 0, Priority::Low);
            assert!(!cache.has_room(key(0), 1), "it is there");
            assert!(!cache.insert_if_room(key(0), 7, 1, Priority::Low));
            assert_eq!(cache.peek(key(0)).as_deref(), Some(&0));
            let added: Vec<u64> = (1..2_000)
                .filter(|n| cache.insert_if_room(key(*n), *n, 100, Priority::Low))
                .collect();
            assert!(added.len() > 150, "{} with {options:?}", added.len());
            assert!(
                cache.usage() <= 1 << 16,
                "{} with {options:?}",
                cache.usage()
            );
            let stats = cache.stats();
            assert_eq!(stats.entries(), added.len() + 1);
            assert_eq!(stats.by_priority.map(|p| p.evictions), [0; 3]);
            for n in added {
                assert_eq!(cache.lookup(key(n)).as_deref(), Some(&n));
            }
            assert!(!cache.has_room(key(5_000), 1 << 16));
            assert!(!cache.insert_if_room(key(5_000), 1, usize::MAX >> 1, Priority::Low));
        }
    }
}
