//! The clock beside a plain map and beside the LRU cache: hits, evictions and sums.
#![cfg(not(loom))]

use esker_cache::{Cache, CacheKey, CacheOptions, Pinned, Priority};
use std::collections::HashMap;

fn key(n: u64) -> CacheKey {
    CacheKey::new(7, n * 4096)
}

/// A clock in one shard.
fn clock(capacity: usize) -> CacheOptions {
    CacheOptions {
        num_shard_bits: 0,
        charge_metadata: false,
        ..CacheOptions::hyper_clock(capacity, 0)
    }
}

fn lru(capacity: usize) -> CacheOptions {
    CacheOptions {
        num_shard_bits: 0,
        charge_metadata: false,
        ..CacheOptions::lru(capacity)
    }
}

fn put(cache: &Cache<u64>, n: u64) -> Pinned<u64> {
    (cache.insert(key(n), n, 1, Priority::Low)).expect("the limit is not strict")
}

/// Returns whether `n` was cached; it is afterwards, unless the cache is full of others.
fn read(cache: &Cache<u64>, n: u64) -> bool {
    match cache.lookup(key(n)) {
        Some(found) => {
            assert_eq!(*found, n, "another entry's value");
            true
        }
        None => {
            put(cache, n);
            false
        }
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Numbers below `n` with weights 1, 1/2^0.99, 1/3^0.99 and so on.
struct Zipfian(Vec<f64>);

impl Zipfian {
    fn new(n: usize) -> Self {
        let mut sum = 0.0;
        let mut sums: Vec<f64> = (1..=n)
            .map(|rank| {
                sum += 1.0 / (rank as f64).powf(0.99);
                sum
            })
            .collect();
        sums.iter_mut().for_each(|s| *s /= sum);
        Zipfian(sums)
    }
    fn next(&self, random: &mut Random) -> u64 {
        let at = random.unit();
        self.0.partition_point(|&sum| sum < at) as u64
    }
}

const DATA: usize = 20_000;

fn hit_rate(options: CacheOptions, zipfian: &Zipfian) -> f64 {
    let cache = Cache::new(options);
    let mut random = Random(88_172_645_463_325_252);
    let mut hits = 0;
    for i in 0..15 * DATA {
        let hit = read(&cache, zipfian.next(&mut random));
        hits += usize::from(hit && i >= 5 * DATA);
    }
    hits as f64 / (10 * DATA) as f64
}

#[test]
fn zipfian_reads_hit_no_less_than_in_the_lru_cache() {
    let zipfian = Zipfian::new(DATA);
    for percent in [1, 5, 10, 25, 50] {
        let capacity = DATA * percent / 100;
        let (old, new) = (
            hit_rate(lru(capacity), &zipfian),
            hit_rate(clock(capacity), &zipfian),
        );
        println!("cache of {percent} %: LRU {old:.4}, clock {new:.4}");
        assert!(new >= old, "{percent} %: {new} < {old}");
    }
}

/// The hot set's hits of one round after a scan of ten times the cache, without or with uses of the
/// hot set on the way.
fn after_scan(options: CacheOptions, used_meanwhile: bool) -> f64 {
    let capacity = options.capacity as u64;
    let hot = capacity * 3 / 4;
    let cache = Cache::new(options);
    for _ in 0..4 {
        (0..hot).for_each(|n| _ = read(&cache, n));
    }
    for n in 0..10 * capacity {
        read(&cache, 1_000_000 + n);
        if used_meanwhile {
            read(&cache, n % hot);
        }
    }
    let hits = (0..hot).filter(|&n| read(&cache, n)).count();
    hits as f64 / hot as f64
}

#[test]
fn a_scan_leaves_the_hot_set() {
    for capacity in [100, 1000, 5000] {
        for used_meanwhile in [false, true] {
            let share = after_scan(clock(capacity), used_meanwhile);
            println!("capacity {capacity}, used meanwhile: {used_meanwhile}: {share:.4}");
            assert!(share >= 0.95, "{capacity} {used_meanwhile} {share}");
        }
    }
    let without_pools = CacheOptions {
        high_pri_pool_ratio: 0.0,
        ..lru(1000)
    };
    assert!(after_scan(without_pools, false) < 0.05, "the scan is none");
}

#[test]
fn a_loop_over_more_than_the_trial_pool_stays() {
    let cache = Cache::new(clock(1000));
    // A hot set of before, which nobody needs any more.
    for _ in 0..4 {
        (5000..5900).for_each(|n| _ = read(&cache, n));
    }
    let mut hits = 0;
    for _ in 0..20 {
        hits = (0..800).filter(|&n| read(&cache, n)).count();
    }
    assert!(hits > 760, "{hits} of 800");
}

#[test]
fn high_priority_outlives_a_scan_and_bottom_goes_first() {
    let cache = Cache::new(clock(100));
    for n in 0..20 {
        let kept = cache.insert(key(n), n, 1, Priority::High);
        drop(kept.expect("not strict"));
    }
    (1000..3000).for_each(|n| _ = put(&cache, n));
    assert!((0..20).all(|n| cache.peek(key(n)).is_some()));

    let cache = Cache::new(clock(100));
    for n in 0..100 {
        let priority = [Priority::Bottom, Priority::Low][n as usize % 2];
        drop(cache.insert(key(n), n, 1, priority).expect("not strict"));
    }
    (1000..1040).for_each(|n| _ = put(&cache, n));
    let left = |odd: u64| {
        let those = (0..100).filter(|n| n % 2 == odd);
        those.filter(|&n| cache.peek(key(n)).is_some()).count()
    };
    assert!(left(1) > left(0) + 20, "{} {}", left(1), left(0));
}

#[test]
fn a_table_grows_and_keeps_all() {
    let cache = Cache::new(clock(200_000));
    let small = (cache.overhead(), cache.table_slots());
    (0..100_000).for_each(|n| _ = put(&cache, n));
    assert!((0..100_000).all(|n| cache.lookup(key(n)).as_deref() == Some(&n)));
    assert!((100_000..200_000).all(|n| cache.lookup(key(n)).is_none()));
    assert_eq!(cache.usage(), 100_000);
    let slots = cache.table_slots();
    assert!(
        slots > small.1 && (100_000..250_000).contains(&slots),
        "{slots}"
    );
    assert!(cache.overhead() > small.0 && cache.overhead() < slots * 16);
}

#[test]
fn small_shards_keep_all_that_fits() {
    let cache = Cache::new(CacheOptions {
        num_shard_bits: 6,
        charge_metadata: false,
        ..CacheOptions::hyper_clock(400_000, 0)
    });
    for n in 0..100_000 {
        put(&cache, n);
    }
    let lost = (0..100_000).filter(|&n| cache.lookup(key(n)).is_none());
    assert_eq!(lost.count(), 0);
}

#[test]
fn a_fixed_table_does_not_grow() {
    let options = CacheOptions {
        num_shard_bits: 0,
        charge_metadata: false,
        ..CacheOptions::hyper_clock(64_000, 640)
    };
    let cache = Cache::new(options);
    let slots = cache.table_slots();
    // Charges far below the estimate: the table is full before the capacity is used.
    let held: Vec<_> = (0..10_000).map(|n| put(&cache, n)).collect();
    assert_eq!(cache.table_slots(), slots);
    let inside = (0..10_000)
        .filter(|&n| cache.peek(key(n)).is_some())
        .count();
    assert!(inside <= slots && inside > slots / 2, "{inside} of {slots}");
    assert_eq!(cache.stats().entries(), inside);
    assert!(held.iter().enumerate().all(|(i, h)| **h == i as u64));
    drop(held);
    // The same with a strict limit, while all are held: refused.
    cache.set_strict_capacity_limit(true);
    let held: Vec<_> = (0..10_000)
        .map(|n| cache.insert(key(20_000 + n), n, 1, Priority::Low))
        .collect();
    assert!(held.iter().any(|h| h.is_err()));
    assert!(cache.stats().refused > 0);
}

#[test]
fn a_strict_limit_holds_with_threads() {
    let cache = Cache::new(CacheOptions {
        strict_capacity_limit: true,
        num_shard_bits: 1,
        charge_metadata: false,
        ..CacheOptions::hyper_clock(400, 0)
    });
    let (refused, over) = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=3u64)
            .map(|t| {
                let cache = &cache;
                scope.spawn(move || {
                    let mut random = Random(t.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                    let mut held = Vec::new();
                    let (mut refused, mut over) = (0, 0);
                    for i in 0..10_000 {
                        let n = random.next() % 3000;
                        let charge = 1 + (n % 5) as usize;
                        match cache.lookup(key(n)) {
                            Some(found) => assert_eq!(*found, n),
                            None => match cache.insert(key(n), n, charge, Priority::Low) {
                                Ok(kept) => held.push(kept),
                                Err(_) => refused += 1,
                            },
                        }
                        over += usize::from(cache.usage() > 400);
                        // One thread alone reaches the limit.
                        if i % 400 == 0 {
                            held.clear();
                        }
                    }
                    (refused, over)
                })
            })
            .collect();
        threads.into_iter().fold((0, 0), |sum, t| {
            let (refused, over) = t.join().expect("no assertion fails");
            (sum.0 + refused, sum.1 + over)
        })
    });
    assert_eq!(over, 0);
    assert!(refused > 0, "the limit was never reached");
    assert_eq!(cache.pinned_usage(), 0);
    let mut sum = 0;
    cache.for_each(|e| sum += e.charge);
    assert_eq!(sum, cache.usage());
}

#[test]
fn a_reservation_takes_room() {
    let cache = Cache::new(clock(100));
    (0..100).for_each(|n| _ = put(&cache, n));
    cache.reserve(60, 0);
    assert_eq!(cache.usage(), 100);
    assert_eq!(cache.stats().entries(), 40);
    assert_eq!(cache.pinned_usage(), 60);
    cache.reserve(0, 60);
    (0..100).for_each(|n| _ = read(&cache, n));
    assert_eq!((cache.usage(), cache.pinned_usage()), (100, 0));
    let held = put(&cache, 500);
    cache.erase_unpinned();
    assert_eq!((cache.usage(), *held), (1, 500));
}

/// Threads that insert, replace, erase and look up while the table grows and hands go round.
#[test]
fn threads_find_what_was_put() {
    let cache = Cache::new(clock(3000));
    std::thread::scope(|scope| {
        for t in 1..=4u64 {
            let cache = &cache;
            scope.spawn(move || {
                let mut random = Random(t.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                for i in 0..60_000u64 {
                    let n = random.next() % (100 + i / 8);
                    match random.next() % 16 {
                        0 => _ = cache.erase(key(n)),
                        1 => _ = put(cache, n),
                        _ => _ = read(cache, n),
                    }
                }
            });
        }
    });
    let mut seen = HashMap::new();
    cache.for_each(|e| {
        assert!(seen.insert(e.key, ()).is_none(), "twice");
        assert!(!e.pinned);
    });
    assert_eq!(
        (seen.len(), cache.usage()),
        (cache.stats().entries(), seen.len())
    );
    assert!(seen.len() <= 3000);
}

/// Threads that miss one key at once, in rounds; each round has one read, or two when one fails.
#[test]
fn threads_that_miss_at_once_read_once() {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU64, Ordering};
    const THREADS: usize = 4;
    let cache = Cache::new(clock(1000));
    let reads = AtomicU64::new(0);
    let barrier = Barrier::new(THREADS);
    let read_through = |n: u64| {
        while cache.lookup(key(n)).is_none() {
            let Some(_flight) = cache.begin_read(key(n)) else {
                continue;
            };
            if cache.lookup(key(n)).is_some() {
                return;
            }
            let read = reads.fetch_add(1, Ordering::Relaxed);
            std::thread::yield_now();
            // The first read of all fails: its thread gives up, and another one reads.
            if read == 0 {
                return;
            }
            put(&cache, n);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for n in 0..500 {
                    barrier.wait();
                    read_through(n);
                }
            });
        }
    });
    assert_eq!(reads.load(Ordering::Relaxed), 501);
}

/// A table of thousands of slots, some of which were filled once, some moved when it grew.
#[test]
fn a_dropped_cache_frees_its_values_and_no_held_one() {
    let value = std::sync::Arc::new(());
    let cache: Cache<std::sync::Arc<()>> = Cache::new(clock(10_000));
    for n in 0..30_000 {
        let put = cache.insert(key(n), value.clone(), 1, Priority::Low);
        drop(put.expect("the limit is not strict"));
        if n % 3 == 0 {
            cache.erase(key(n));
        }
    }
    let held = cache.lookup(key(29_999)).expect("the last one is cached");
    assert!(std::sync::Arc::strong_count(&value) > 1000);
    drop(cache);
    assert_eq!(std::sync::Arc::strong_count(&value), 2);
    drop(held);
    assert_eq!(std::sync::Arc::strong_count(&value), 1);
}
