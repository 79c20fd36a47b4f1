//! Models of the clock: loom runs each in every order of a few threads' steps, up to three
//! preemptions, with every value that a load may see. `cargo xtask loom`.
//!
//! The tables are small there: one bucket of two slots, which doubles.
#![cfg(loom)]

use esker_cache::{Cache, CacheKey, CacheOptions, Priority};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs a model in all its orders and says how many there were.
fn explore(name: &str, preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        model();
    });
    println!("loom {name}: {} runs", runs.load(Ordering::Relaxed));
}

fn clock(capacity: usize) -> Arc<Cache<u64>> {
    Arc::new(Cache::new(CacheOptions {
        num_shard_bits: 0,
        charge_metadata: false,
        ..CacheOptions::hyper_clock(capacity, 0)
    }))
}

fn key(n: u64) -> CacheKey {
    CacheKey::new(3, n)
}

fn put(cache: &Cache<u64>, n: u64, value: u64) -> bool {
    cache.insert(key(n), value, 1, Priority::Low).is_ok()
}

fn get(cache: &Cache<u64>, n: u64) -> Option<u64> {
    cache.lookup(key(n)).map(|v| *v)
}

/// The sums of the cache are those of its entries.
fn check_sums(cache: &Cache<u64>, most: usize) {
    let mut entries = 0;
    cache.for_each(|e| {
        assert!(!e.pinned, "nobody holds it");
        entries += e.charge;
    });
    assert_eq!(entries, cache.usage());
    assert_eq!(entries, cache.stats().entries());
    assert!(entries <= most, "{entries} of {most}");
}

/// Runs `a` and `b` beside a thread that does `c`, then checks the sums.
fn beside(
    cache: &Arc<Cache<u64>>,
    most: usize,
    a: impl FnOnce(&Cache<u64>) + Send + 'static,
    b: impl FnOnce(&Cache<u64>) + Send + 'static,
) {
    let own = Arc::clone(cache);
    let thread = thread::spawn(move || a(&own));
    b(cache);
    thread.join().expect("no assertion fails");
    check_sums(cache, most);
}

#[test]
fn a_lookup_finds_its_own_value_or_none() {
    explore("lookup beside insert, replace and erase", 3, || {
        let cache = clock(10);
        put(&cache, 1, 10);
        let writer = |cache: &Cache<u64>| {
            put(cache, 1, 11);
            put(cache, 2, 20);
            cache.erase(key(1));
        };
        beside(&cache, 10, writer, |cache| {
            let first = get(cache, 1);
            let second = get(cache, 1);
            assert!(matches!(first, None | Some(10 | 11)), "{first:?}");
            assert!(matches!(second, None | Some(10 | 11)), "{second:?}");
            assert!((first, second) != (Some(11), Some(10)), "a value came back");
            assert!(matches!(get(cache, 2), None | Some(20)));
        });
        assert_eq!((get(&cache, 1), get(&cache, 2)), (None, Some(20)));
    });
}

/// Keys that a growing table holds without evicting any, found by trying.
fn keys_that_fit(count: usize) -> Vec<u64> {
    let cache = clock(100);
    let mut fit = Vec::new();
    for n in 0.. {
        put(&cache, n, n);
        if fit.iter().all(|&k| cache.peek(key(k)).is_some()) && cache.peek(key(n)).is_some() {
            fit.push(n);
        }
        if fit.len() == count {
            break;
        }
    }
    fit
}

#[test]
fn growth_hides_no_entry() {
    explore("lookup while the table grows", 3, || {
        let keys = keys_that_fit(4);
        let cache = clock(100);
        for &n in &keys[..2] {
            put(&cache, n, n);
        }
        let slots = cache.table_slots();
        let (there, new) = ([keys[0], keys[1]], [keys[2], keys[3]]);
        let writer = move |cache: &Cache<u64>| new.iter().for_each(|&n| _ = put(cache, n, n));
        beside(&cache, 4, writer, move |cache| {
            for n in there {
                assert_eq!(get(cache, n), Some(n), "an entry that stays was not found");
            }
        });
        assert!(cache.table_slots() > slots, "the table did not grow");
        assert!(keys.iter().all(|&n| get(&cache, n) == Some(n)));
    });
}

#[test]
fn an_evicted_value_stays_good() {
    explore("lookup beside eviction", 3, || {
        let cache = clock(1);
        put(&cache, 1, 10);
        let writer = |cache: &Cache<u64>| {
            put(cache, 2, 20);
            put(cache, 3, 30);
        };
        beside(&cache, 3, writer, |cache| {
            if let Some(held) = cache.lookup(key(1)) {
                assert!(matches!(get(cache, 3), None | Some(30)));
                assert_eq!(*held, 10);
            }
        });
    });
}

#[test]
fn a_strict_limit_is_never_exceeded() {
    explore("strict limit beside a held entry", 3, || {
        let cache = Arc::new(Cache::new(CacheOptions {
            num_shard_bits: 0,
            strict_capacity_limit: true,
            charge_metadata: false,
            ..CacheOptions::hyper_clock(1, 0)
        }));
        put(&cache, 1, 10);
        let writer = |cache: &Cache<u64>| _ = put(cache, 2, 20);
        beside(&cache, 1, writer, |cache| {
            let held = cache.lookup(key(1));
            assert!(cache.usage() <= 1);
            assert!(held.is_none_or(|h| *h == 10));
        });
    });
}

#[test]
fn two_writers_agree() {
    explore("two writers of the same keys", 2, || {
        let cache = clock(2);
        let writer = |cache: &Cache<u64>| {
            put(cache, 1, 10);
            put(cache, 2, 20);
        };
        beside(&cache, 2, writer, |cache| {
            put(cache, 2, 21);
            cache.erase(key(1));
            put(cache, 3, 30);
        });
        assert!(matches!(get(&cache, 2), None | Some(20 | 21)));
    });
}

/// Reads through the cache; `reads` counts, and those that are in `fail` fail.
fn read_through(cache: &Cache<u64>, reads: &AtomicUsize, fail: usize) -> Option<u64> {
    loop {
        if let Some(found) = get(cache, 1) {
            return Some(found);
        }
        let Some(_flight) = cache.begin_read(key(1)) else {
            continue;
        };
        if let Some(found) = get(cache, 1) {
            return Some(found);
        }
        if reads.fetch_add(1, Ordering::Relaxed) < fail {
            return None;
        }
        put(cache, 1, 10);
        return Some(10);
    }
}

#[test]
fn threads_that_miss_at_once_read_once() {
    for fail in [0, 1] {
        explore("two readers of one value", 3, move || {
            let cache = clock(10);
            let reads = Arc::new(AtomicUsize::new(0));
            let (own, counted) = (Arc::clone(&cache), Arc::clone(&reads));
            let thread = thread::spawn(move || read_through(&own, &counted, fail));
            let here = read_through(&cache, &reads, fail);
            let there = thread.join().expect("no assertion fails");
            assert_eq!(reads.load(Ordering::Relaxed), 1 + fail);
            let found = [here, there].into_iter().flatten().count();
            assert_eq!(found, 2 - fail, "{here:?} {there:?}");
        });
    }
}
