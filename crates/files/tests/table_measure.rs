//! Costs of a cached point read and of a step. Ignored:
//! `cargo test --release -- --ignored --nocapture`.

use esker_env::{Env, ReadOptions, WriteOptions};
use esker_files::table::*;
use esker_format::filter::FilterPolicy;
use esker_format::key::append_internal;
use esker_format::{Cursor, Seq, ValueType};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const N: u64 = 100_000;

fn key(i: u64) -> Vec<u8> {
    let mut out = Vec::new();
    append_internal(
        &mut out,
        format!("{i:020}").as_bytes(),
        Seq(i + 1),
        ValueType::Value,
    );
    out
}

/// Nanoseconds that this thread has run, where the kernel tells.
fn on_cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ')
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

#[derive(Clone, Copy)]
struct Start(Instant, u64);

fn start() -> Start {
    Start(Instant::now(), on_cpu_ns())
}

fn report(what: &str, count: u64, from: Start) {
    println!(
        "{what}: {:.1} ns, {:.1} ns on the processor",
        from.0.elapsed().as_nanos() as f64 / count as f64,
        (on_cpu_ns() - from.1) as f64 / count as f64
    );
}

#[test]
#[ignore = "a measurement: cargo test --release -p esker-files --test table_measure -- --ignored --nocapture"]
fn measure_get_and_next() {
    let env = Env::in_memory();
    let path = Path::new("/000001.sst");
    let table = TableOptions {
        block_size: 8192,
        filter_policy: Some(FilterPolicy::bloom(10.0)),
        ..TableOptions::default()
    };
    let file = env
        .fs
        .create(
            path,
            WriteOptions {
                buffer_size: 1 << 20,
                ..WriteOptions::default()
            },
        )
        .expect("creates");
    let options = TableBuilderOptions {
        table: table.clone(),
        ..TableBuilderOptions::default()
    };
    let mut b = TableBuilder::new(file, options).expect("valid");
    let keys: Vec<_> = (0..N).map(key).collect();
    let value = [7u8; 400];
    let from = start();
    for k in &keys {
        b.add(k, &value).expect("adds");
    }
    let (summary, mut file) = b.finish().expect("finishes");
    report("build, per entry", N, from);
    file.close().expect("closes");
    let options = TableReaderOptions {
        table,
        cache: Some(Arc::new(BlockCache::new(
            esker_cache::CacheOptions::with_capacity(256 << 20),
        ))),
        ..TableReaderOptions::default()
    };
    let file = env
        .fs
        .open_read(path, ReadOptions::default())
        .expect("opens");
    let reader = TableReader::open(file, summary.file_size, options).expect("a table");
    let ctx = ReadContext::default();
    for round in ["cold", "warm"] {
        let mut c = reader.cursor(&ctx);
        let from = start();
        let mut sum = 0;
        c.seek_to_first();
        while c.valid() {
            sum += c.value().len() as u64;
            c.next();
        }
        report(&format!("next, {round}"), N, from);
        assert_eq!(sum, N * 400);
        let from = start();
        c.seek_to_last();
        while c.valid() {
            sum -= c.value().len() as u64;
            c.prev();
        }
        report(&format!("prev, {round}"), N, from);
        assert_eq!(sum, 0);
    }
    let order: Vec<usize> = (0..N).map(|i| (i * 48_271 % N) as usize).collect();
    for round in ["first", "second"] {
        let from = start();
        let mut found = 0;
        for i in &order {
            let lookup = LookupKey::new(&keys[*i], 0);
            reader
                .get(&ctx, &lookup, |e| {
                    found += e.value().len();
                    false
                })
                .expect("reads");
        }
        report(&format!("get at random, cached, {round}"), N, from);
        assert_eq!(found as u64, N * 400);
    }
    let mut c = reader.cursor(&ctx);
    let from = start();
    for i in &order {
        c.seek(&keys[*i]);
        assert!(c.valid());
    }
    report("seek at random, cached", N, from);
}
