//! Where the time of a write goes, as the perf context of its thread tells it.

use esker::observe::{HistogramId, PerfContext, PerfLevel, PerfMetric, Statistics, set_perf_level};
use esker::{Db, Options, env::Env};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const PARTS: [PerfMetric; 6] = [
    PerfMetric::WriteWalTime,
    PerfMetric::WriteMemtableTime,
    PerfMetric::WriteDelayTime,
    PerfMetric::WriteSchedulingFlushesCompactionsTime,
    PerfMetric::WriteThreadWaitNanos,
    PerfMetric::WritePreAndPostProcessTime,
];

fn open(statistics: Option<Arc<Statistics>>) -> Db {
    let mut options = Options::new().create_if_missing(true).env(Env::in_memory());
    options.family.write_buffer_size = 256 << 10;
    options.db.statistics = statistics;
    Db::open("/db", options).expect("opens")
}

/// Writes some memtables' worth; how long that took.
fn write(db: &Db) -> Duration {
    let start = Instant::now();
    for i in 0..2_000_u32 {
        db.put(i.to_be_bytes(), vec![b'x'; 500]).expect("written");
    }
    start.elapsed()
}

#[test]
fn the_parts_of_writes_are_what_they_took() {
    let statistics = Statistics::new();
    let db = open(Some(Arc::clone(&statistics)));
    set_perf_level(PerfLevel::EnableTime);
    PerfContext.reset();
    let elapsed = write(&db);
    set_perf_level(PerfLevel::Disable);
    for part in [
        PerfMetric::WriteWalTime,
        PerfMetric::WriteMemtableTime,
        PerfMetric::WriteSchedulingFlushesCompactionsTime,
        PerfMetric::WritePreAndPostProcessTime,
    ] {
        assert!(PerfContext.get(part) > 0, "{}", part.name());
    }
    let told_ns: u64 = PARTS.iter().map(|&part| PerfContext.get(part)).sum();
    assert!(u128::from(told_ns) <= elapsed.as_nanos());
    // Each write is in the histogram with whole microseconds.
    let writes_us = statistics.histogram(HistogramId::DbWrite).sum;
    assert!(told_ns >= writes_us * 1_000, "{told_ns} ns, {writes_us} us");
}

#[test]
fn a_thread_that_asks_for_no_times_gets_none() {
    let db = open(None);
    set_perf_level(PerfLevel::EnableWait);
    PerfContext.reset();
    write(&db);
    // Being held back is entered anyway: it costs only those who wait.
    let timed = PARTS
        .iter()
        .filter(|&&part| part != PerfMetric::WriteDelayTime);
    for &part in timed {
        assert_eq!(PerfContext.get(part), 0, "{}", part.name());
    }
}

#[test]
fn a_follower_waits_for_its_leader() {
    let (db, seen) = (open(None), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let (db, seen) = (&db, &seen);
            scope.spawn(move || {
                set_perf_level(PerfLevel::EnableTime);
                let start = Instant::now();
                while !seen.load(Ordering::Relaxed) && start.elapsed() < Duration::from_secs(30) {
                    db.put([thread], [b'x'; 4_000]).expect("written");
                    let waited = PerfContext.get(PerfMetric::WriteThreadWaitNanos) > 0;
                    seen.fetch_or(waited, Ordering::Relaxed);
                }
            });
        }
    });
    assert!(seen.into_inner());
}
