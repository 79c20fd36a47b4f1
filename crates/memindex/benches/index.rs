//! Nanoseconds per insertion and per seek of a memtable-sized index.
//!
//! `cargo bench -p esker-memindex -- [entries] [huge]`; by default a million entries of 20 + 400
//! bytes.

use esker_memindex::{ArenaOptions, BytewiseInternal, HugePageCall, TreeIndex};
use std::hint::black_box;
use std::time::Instant;

fn mix(n: u64) -> u64 {
    let z = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn user_key(n: u64) -> [u8; 20] {
    let mut key = [b'0'; 20];
    key[..8].copy_from_slice(&n.to_be_bytes());
    key
}

fn report(what: &str, count: u64, run: impl FnOnce()) {
    let start = Instant::now();
    run();
    println!(
        "{what:<40} {:>8.1} ns",
        start.elapsed().as_nanos() as f64 / count as f64
    );
}

fn main() {
    let count = std::env::args()
        .find_map(|a| a.parse().ok())
        .unwrap_or(1_000_000u64);
    let huge_pages = std::env::args().any(|a| a == "huge");
    let value = [7u8; 400];
    let new = || {
        let options = ArenaOptions {
            block_size: 1 << 20,
            huge_pages: huge_pages.then_some(esker_env::advise_huge_pages as HugePageCall),
        };
        TreeIndex::new(BytewiseInternal::default(), options)
    };
    println!("{count} entries of 20 + 400 bytes, huge pages {huge_pages}");

    let index = new();
    report("insert in order", count, || {
        for n in 0..count {
            index.add_internal(&user_key(n), n << 8 | 1, &value);
        }
    });
    drop(index);

    let index = new();
    report("insert at random", count, || {
        for n in 0..count {
            index.add_internal(&user_key(mix(n)), n << 8 | 1, &value);
        }
    });
    report("seek at random", 20 * count, || {
        let mut cursor = index.cursor();
        for n in 0..20 * count {
            let mut target = [0xff; 28];
            target[..20].copy_from_slice(&user_key(mix(mix(n) % count)));
            cursor.seek(&target);
            black_box(cursor.key());
        }
    });
    report("next", count, || {
        let mut cursor = index.cursor();
        cursor.seek_to_first();
        while cursor.valid() {
            black_box(cursor.key());
            cursor.next();
        }
    });
    report("next, reading values", count, || {
        let mut cursor = index.cursor();
        cursor.seek_to_first();
        let mut sum = 0u64;
        while cursor.valid() {
            let value = cursor.value().iter().step_by(64);
            sum += value.map(|byte| u64::from(*byte)).sum::<u64>();
            cursor.next();
        }
        black_box(sum);
    });
    report("prev", count, || {
        let mut cursor = index.cursor();
        cursor.seek_to_last();
        while cursor.valid() {
            black_box(cursor.key());
            cursor.prev();
        }
    });
    drop(index);

    let index = new();
    report("insert at random, two threads (wall)", count, || {
        std::thread::scope(|s| {
            for half in 0..2 {
                let (index, value) = (&index, &value);
                s.spawn(move || {
                    for batch in (half..count).step_by(2 * 16) {
                        for n in (batch..count.min(batch + 32)).step_by(2) {
                            index.add_internal(&user_key(mix(n)), n << 8 | 1, value);
                        }
                    }
                });
            }
        });
    });
    println!("memory {} MB", index.memory_usage() >> 20);
}
