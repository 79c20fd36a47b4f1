//! Nanoseconds per key hash and per filter query, cold and warm:
//! `cargo run --release --example filter_speed`.

use esker_format::filter::{BuildLevel, FilterBuilder, FilterPolicy, FilterReader, KeyHash};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: u64 = 4_000_000;

/// The best of five runs, in nanoseconds per round.
fn time(what: &str, mut run: impl FnMut()) {
    let best = (0..5)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_nanos() as f64 / ROUNDS as f64
        })
        .fold(f64::INFINITY, f64::min);
    println!("{what:<44} {best:7.2} ns");
}

fn main() {
    let buffer: Vec<u8> = (0..4096u32).map(|i| (i * 31) as u8).collect();
    for len in [8usize, 16, 24, 64, 200, 1024] {
        time(&format!("hash64 of {len} bytes"), || {
            let mut sum = 0u64;
            for i in 0..ROUNDS {
                let at = (i & 1023) as usize;
                sum = sum.wrapping_add(KeyHash::of(black_box(&buffer[at..at + len])).0);
            }
            black_box(sum);
        });
    }
    for (policy, keys) in [
        ("bloomfilter:10", 20_000u64),
        ("bloomfilter:10", 8_000_000),
        ("ribbonfilter:10", 20_000),
    ] {
        let policy_of = FilterPolicy::parse(policy).expect("the policy parses");
        let mut builder =
            FilterBuilder::new(policy_of, 5, BuildLevel::Level(3)).expect("it builds");
        let start = Instant::now();
        (0..keys).for_each(|i| builder.add_key(&i.to_be_bytes()));
        let block = builder.finish();
        let built = start.elapsed().as_nanos() as f64 / keys as f64;
        println!(
            "{policy} of {keys} keys: {built:.1} ns per key to build, {} bytes",
            block.len()
        );
        let reader = FilterReader::parse(&block);
        for (what, base) in [("present", 0), ("absent", 1 << 40)] {
            let hashes: Vec<KeyHash> = (0..1 << 16)
                .map(|i: u64| KeyHash::of(&(base + i * 7919 % keys).to_be_bytes()))
                .collect();
            time(&format!("  query, {what}"), || {
                let mut hits = 0u64;
                for i in 0..ROUNDS {
                    let hash = hashes[(i & 0xffff) as usize];
                    hits += u64::from(reader.may_match(black_box(&block), b"", hash));
                }
                black_box(hits);
            });
            time(&format!("  query, {what}, 8 prefetched"), || {
                let mut hits = 0u64;
                for i in (0..ROUNDS).step_by(8) {
                    let at = (i & 0xffff) as usize;
                    let group = &hashes[at..at + 8];
                    group
                        .iter()
                        .for_each(|h| reader.prefetch(black_box(&block), *h));
                    hits += group
                        .iter()
                        .filter(|h| reader.may_match(&block, b"", **h))
                        .count() as u64;
                }
                black_box(hits);
            });
        }
    }
}
