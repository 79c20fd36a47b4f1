//! Nanoseconds per hit of the LRU cache and of the clock, by one and by two threads.
//!
//! `cargo bench -p esker-cache -- [entries] [rounds]`; by default 200,000 entries of 4 KB, found at
//! random, 9 rounds. The rounds of the two kinds alternate; the medians are printed, and what is
//! found is read as a block's head would be.

use esker_cache::{Cache, CacheKey, CacheOptions, Priority};
use std::hint::black_box;
use std::time::Instant;

const LOOKUPS: u64 = 1_000_000;

fn key(n: u64) -> CacheKey {
    CacheKey::new(n % 61, n / 61 * 4096)
}

fn filled(options: CacheOptions, entries: u64) -> Cache<[u64; 8]> {
    let cache = Cache::new(options);
    for n in 0..entries {
        drop(cache.insert(key(n), [n; 8], 4096, Priority::Low));
    }
    cache
}

fn find_many(cache: &Cache<[u64; 8]>, entries: u64, mut random: u64) -> u64 {
    let mut found = 0;
    for _ in 0..LOOKUPS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if let Some(value) = cache.lookup(key(random % entries)) {
            found += u64::from(black_box(value[0]) < entries);
        }
    }
    found
}

/// Nanoseconds of a lookup, as its thread sees it.
fn round(cache: &Cache<[u64; 8]>, entries: u64, threads: u64) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for t in 0..threads {
            scope.spawn(move || {
                let found = find_many(cache, entries, 0x9E37_79B9_7F4A_7C15 ^ (t + 1));
                assert_eq!(found, LOOKUPS, "everything is cached");
            });
        }
    });
    start.elapsed().as_nanos() as f64 / LOOKUPS as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let mut numbers = std::env::args().filter_map(|a| a.parse::<u64>().ok());
    let entries = numbers.next().unwrap_or(200_000);
    let rounds = numbers.next().unwrap_or(9);
    let capacity = 2 * entries as usize * 4096;
    let caches = [
        filled(CacheOptions::lru(capacity), entries),
        filled(CacheOptions::hyper_clock(capacity, 0), entries),
        filled(CacheOptions::hyper_clock(capacity, 4096), entries),
    ];
    println!("{entries} entries, {rounds} rounds of {LOOKUPS} hits");
    for threads in [1, 2] {
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..rounds {
            for (cache, times) in caches.iter().zip(&mut times) {
                times.push(round(cache, entries, threads));
            }
        }
        let [lru, auto, fixed] = times.map(median);
        println!(
            "{threads} threads: LRU {lru:.1} ns, clock {auto:.1} ns ({:.2}x), fixed {fixed:.1} ns",
            lru / auto
        );
    }
}
