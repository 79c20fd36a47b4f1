//! Statistics. Java's numbers of tickers and histograms are not RocksDB's: `spec/tickers.txt` and
//! `spec/histograms.txt` have them by name.

use crate::boundary::{Fault, Outcome, handles};
use crate::{disposals, natives};
use esker::observe::{HistogramId, Statistics, StatsLevel, Ticker};
use esker_sync::{Arc, OnceLock};
use jni_sys::{jbyte, jlong, jobject, jvalue};
use std::collections::HashMap;

/// Statistics that databases count into.
pub(crate) struct Stats(pub(crate) Arc<Statistics>);

/// The meaning of each of Java's numbers; `None` where the engine counts nothing under that name.
fn numbers<T: Copy>(text: &str, all: &HashMap<&'static str, T>) -> HashMap<jbyte, Option<T>> {
    let lines = text.lines().filter(|l| !l.starts_with('#'));
    let pairs = lines.filter_map(|l| l.split_once(' '));
    pairs
        .filter_map(|(n, name)| Some((n.parse().ok()?, all.get(name).copied())))
        .collect()
}

fn ticker(number: jbyte) -> Outcome<Option<Ticker>> {
    static TICKERS: OnceLock<HashMap<jbyte, Option<Ticker>>> = OnceLock::new();
    let known = TICKERS.get_or_init(|| {
        let all = Ticker::ALL.iter().map(|t| (t.name(), *t)).collect();
        numbers(include_str!("../spec/tickers.txt"), &all)
    });
    known.get(&number).copied().ok_or_else(|| unknown(number))
}

fn histogram(number: jbyte) -> Outcome<Option<HistogramId>> {
    static HISTOGRAMS: OnceLock<HashMap<jbyte, Option<HistogramId>>> = OnceLock::new();
    let known = HISTOGRAMS.get_or_init(|| {
        let all = HistogramId::ALL.iter().map(|h| (h.name(), *h)).collect();
        numbers(include_str!("../spec/histograms.txt"), &all)
    });
    known.get(&number).copied().ok_or_else(|| unknown(number))
}

#[cold]
fn unknown(number: jbyte) -> Fault {
    Fault::Java(
        "java/lang/IllegalArgumentException",
        format!("there is no statistic with the number {number}"),
    )
}

/// Another object's statistics are counted into as well, so both are the same.
fn new(other: jlong) -> Outcome<jlong> {
    Ok(handles::give(Stats(
        match handles::hold_if::<Stats>(other)? {
            Some(other) => Arc::clone(&other.0),
            None => Statistics::new(),
        },
    )))
}

natives! {
    fn Java_org_rocksdb_Statistics_newStatistics__(env) -> jlong {
        new(0)
    }

    fn Java_org_rocksdb_Statistics_newStatistics__J(env, other: jlong) -> jlong {
        new(other)
    }

    /// Histograms that are to be left out are kept all the same: they cost little.
    fn Java_org_rocksdb_Statistics_newStatistics___3B(env, _ignored: jobject) -> jlong {
        new(0)
    }

    fn Java_org_rocksdb_Statistics_newStatistics___3BJ(
        env, _ignored: jobject, other: jlong
    ) -> jlong {
        new(other)
    }

    fn Java_org_rocksdb_Statistics_statsLevel(env, statistics: jlong) -> jbyte {
        Ok(match handles::hold::<Stats>(statistics)?.0.level() {
            StatsLevel::All => 2,
            StatsLevel::ExceptTimeForMutex => 1,
            _ => 0,
        })
    }

    fn Java_org_rocksdb_Statistics_setStatsLevel(env, statistics: jlong, level: jbyte) {
        handles::hold::<Stats>(statistics)?.0.set_level(match level {
            1 => StatsLevel::ExceptTimeForMutex,
            2 => StatsLevel::All,
            _ => StatsLevel::ExceptDetailedTimers,
        });
        Ok(())
    }

    fn Java_org_rocksdb_Statistics_getTickerCount(env, statistics: jlong, n: jbyte) -> jlong {
        let statistics = handles::hold::<Stats>(statistics)?;
        Ok(ticker(n)?.map_or(0, |t| statistics.0.ticker(t)) as jlong)
    }

    fn Java_org_rocksdb_Statistics_getAndResetTickerCount(
        env, statistics: jlong, n: jbyte
    ) -> jlong {
        let statistics = handles::hold::<Stats>(statistics)?;
        Ok(ticker(n)?.map_or(0, |t| statistics.0.take_ticker(t)) as jlong)
    }

    fn Java_org_rocksdb_Statistics_getHistogramData(env, statistics: jlong, n: jbyte) -> jobject {
        let statistics = handles::hold::<Stats>(statistics)?;
        let data = histogram(n)?.map(|h| statistics.0.histogram(h)).unwrap_or_default();
        let arguments = [
            jvalue { d: data.median },
            jvalue { d: data.percentile95 },
            jvalue { d: data.percentile99 },
            jvalue { d: data.average },
            jvalue { d: data.standard_deviation },
            jvalue { d: data.max as f64 },
            jvalue { j: data.count as jlong },
            jvalue { j: data.sum as jlong },
            jvalue { d: data.min as f64 },
        ];
        env.construct("org/rocksdb/HistogramData", "(DDDDDDJJD)V", &arguments)
    }

    fn Java_org_rocksdb_Statistics_getHistogramString(env, statistics: jlong, n: jbyte) -> jobject {
        let statistics = handles::hold::<Stats>(statistics)?;
        let data = histogram(n)?.map(|h| statistics.0.histogram(h)).unwrap_or_default();
        let text = format!(
            "Count: {} Average: {:.4}  StdDev: {:.2}\nMin: {}  Median: {:.4}  Max: {}\n\
             Percentiles: P50: {:.2} P95: {:.2} P99: {:.2}\n",
            data.count, data.average, data.standard_deviation, data.min, data.median, data.max,
            data.median, data.percentile95, data.percentile99,
        );
        env.string(&text)
    }

    fn Java_org_rocksdb_Statistics_reset(env, statistics: jlong) {
        handles::hold::<Stats>(statistics)?.0.reset();
        Ok(())
    }

    fn Java_org_rocksdb_Statistics_toString(env, statistics: jlong) -> jobject {
        env.string(&handles::hold::<Stats>(statistics)?.0.to_string())
    }
}

disposals! {
    Stats: Java_org_rocksdb_Statistics_disposeInternal
        | Java_org_rocksdb_Statistics_disposeInternalJni;
}
