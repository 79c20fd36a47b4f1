//! Tests of statistics, the perf context, the stall ledger and the event lines.

use super::log_line::timestamp;
use super::*;
use crate::options::{DbOptions, InfoLogLevel};

#[test]
fn statistics_add_up_over_threads() {
    let stats = Statistics::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for value in 1..=100 {
                    stats.add(Ticker::BlockCacheMiss, 2);
                    stats.record(HistogramId::DbGet, value);
                }
            });
        }
    });
    assert_eq!(stats.ticker(Ticker::BlockCacheMiss), 800);
    let get = stats.histogram(HistogramId::DbGet);
    assert_eq!(
        (get.count, get.sum, get.min, get.max),
        (400, 20_200, 1, 100)
    );
    assert!((45.0..=55.0).contains(&get.median), "{get:?}");
    assert!((95.0..=100.0).contains(&get.percentile99), "{get:?}");
    assert_eq!(stats.take_ticker(Ticker::BlockCacheMiss), 800);
    assert_eq!(stats.ticker(Ticker::BlockCacheMiss), 0);
}

#[test]
fn a_disabled_level_counts_nothing() {
    let stats = Statistics::new();
    stats.set_level(StatsLevel::DisableAll);
    stats.count(Ticker::BlockCacheHit);
    stats.record(HistogramId::DbWrite, 7);
    assert_eq!(stats.ticker(Ticker::BlockCacheHit), 0);
    assert_eq!(stats.histogram(HistogramId::DbWrite).count, 0);
    stats.set_level(StatsLevel::ExceptHistogramOrTimers);
    stats.count(Ticker::BlockCacheHit);
    stats.record(HistogramId::DbWrite, 7);
    assert_eq!(stats.ticker(Ticker::BlockCacheHit), 1);
    assert_eq!(stats.histogram(HistogramId::DbWrite).count, 0);
}

#[test]
fn numbers_and_names_lead_back_to_the_same_statistic() {
    for (at, &ticker) in Ticker::ALL.iter().enumerate() {
        assert_eq!(ticker.number() as usize, at);
        assert_eq!(Ticker::from_name(ticker.name()), Some(ticker));
    }
    for (at, &histogram) in HistogramId::ALL.iter().enumerate() {
        assert_eq!(histogram.number() as usize, at);
        assert_eq!(HistogramId::from_name(histogram.name()), Some(histogram));
    }
    assert_eq!(Ticker::from_number(u32::MAX), None);
}

#[test]
fn the_text_has_rocksdbs_lines() {
    let stats = Statistics::new();
    stats.add(Ticker::BlockCacheMiss, 3);
    stats.record(HistogramId::DbGet, 10);
    let text = stats.to_string();
    assert!(text.starts_with("rocksdb.block.cache.miss COUNT : 3\n"));
    assert!(text.contains(
        "rocksdb.db.get.micros P50 : 10.000000 P95 : 10.000000 P99 : 10.000000 P100 : 10.000000 COUNT : 1 SUM : 10\n"
    ));
}

#[test]
fn extreme_values_land_in_the_last_bucket() {
    let h = Histogram::new();
    h.add(0);
    h.add(u64::MAX);
    let s = h.summary();
    assert_eq!((s.count, s.min, s.max), (2, 0, u64::MAX));
    h.clear();
    assert_eq!(h.summary(), HistogramSummary::default());
}

#[test]
fn perf_counts_follow_the_level() {
    let perf = PerfContext;
    perf.reset();
    set_perf_level(PerfLevel::Disable);
    perf_count(PerfMetric::IterSeekCount, 1);
    assert_eq!(perf.get(PerfMetric::IterSeekCount), 0);
    set_perf_level(PerfLevel::EnableCount);
    perf_count(PerfMetric::IterSeekCount, 2);
    assert_eq!(perf.report(true), "iter_seek_count = 2");
}

#[test]
fn the_ledger_keeps_causes_apart() {
    let ledger = StallLedger::new();
    let add = |cause, kind, us| {
        let time = StallTime {
            clock_us: us,
            writers_us: 2 * us,
        };
        ledger.enter(cause, kind, time, true);
        ledger.longest(cause, kind, us);
    };
    add(StallCause::L0FileCountLimit, StallKind::Delay, 10);
    add(StallCause::L0FileCountLimit, StallKind::Delay, 30);
    add(StallCause::MemtableLimit, StallKind::Stop, 5);
    assert_eq!(ledger.stalled_us(), 45);
    assert_eq!(
        ledger.to_string(),
        "memtable-limit-stops: 1 times, 5 us, longest 5 us\nl0-file-count-limit-delays: 2 times, 40 us, longest 30 us\n"
    );
    // RocksDB has no such thing, or does not count it.
    add(StallCause::L0FileCountLimit, StallKind::Pace, 100);
    add(StallCause::Administration, StallKind::Stop, 100);
    assert_eq!(ledger.stalled_us(), 45);
    let of_writers = StallKind::ALL.map(|kind| ledger.writers_us(kind));
    assert_eq!(of_writers, [200, 80, 210]);
}

#[test]
fn event_lines_are_json() {
    let line = EventLine::new("table_file_deletion", 4, 99)
        .text("path", "a\"b\n")
        .number("file_number", 7)
        .numbers("files_L0", [1, 2])
        .finish();
    assert_eq!(
        line,
        "EVENT_LOG_v1 {\"time_micros\": 99, \"job\": 4, \"event\": \"table_file_deletion\", \"path\": \"a\\\"b\\n\", \
         \"file_number\": 7, \"files_L0\": [1, 2]}"
    );
}

#[test]
fn times_are_printed_as_dates() {
    assert_eq!(timestamp(0), "1970/01/01-00:00:00.000000");
    assert_eq!(timestamp(951_782_400_000_001), "2000/02/29-00:00:00.000001");
    assert_eq!(
        timestamp(1_795_226_400_000_000),
        "2026/11/21-02:00:00.000000"
    );
}

#[test]
fn the_log_file_rolls_by_size_and_keeps_as_many_as_asked() {
    let env = esker_env::Env::in_memory();
    let options = DbOptions {
        max_log_file_size: 100,
        keep_log_file_num: 3,
        ..DbOptions::default()
    };
    let directory = std::path::Path::new("/db");
    let log = InfoLog::open(&env, directory, &options.info_log_options()).expect("it opens");
    for round in 0..40 {
        log.info(format_args!("round {round}"));
    }
    log.write(InfoLogLevel::Debug, format_args!("not kept"));
    log.warn(format_args!("the last"));
    let names: Vec<String> = env
        .fs
        .read_dir(directory)
        .expect("it lists")
        .into_iter()
        .map(|e| e.name)
        .collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(names[0], "LOG");
    assert!(names[1].starts_with("LOG.old."));
    let text = env.fs.read_all(&log.path(), 1 << 20).expect("it reads");
    let text = String::from_utf8(text).expect("text");
    assert!(text.trim_end().ends_with("[WARN] the last"), "{text}");
    assert!(!text.contains("not kept"));
    assert_eq!(log.lost_lines(), 0);
    drop(log);
    let again =
        InfoLog::open(&env, directory, &options.info_log_options()).expect("it opens again");
    assert_eq!(env.fs.read_all(&again.path(), 10).expect("it reads"), b"");
}
