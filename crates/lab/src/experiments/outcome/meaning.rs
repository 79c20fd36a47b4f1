//! The meaning of figures: what a stored raw run gives has to stay, or the version has to change.
//!
//! `tests/meaning/raw.json` has counters, times and latencies of six runs on two engines, and
//! `tests/meaning/figures.json` every figure, ratio and verdict that follow. With `ESKER_BLESS=1`
//! the latter is written, but only for a version that is higher than the one it has.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::outcome;
use crate::experiment::ratio;
use crate::experiment::record::{Aim, Engine, MEANING, Record, Step};
use crate::measure::Measurement;
use crate::process::{Device, Requests, Usage, directory_bytes};
use crate::read_work::ReadWork;
use crate::report::{BackgroundFigures, Row, Second, StepContext};
use crate::shape::{Stall, Work};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/meaning")
        .join(name)
}

fn read(name: &str) -> Value {
    let text = std::fs::read_to_string(path(name)).unwrap_or_else(|_| "null".into());
    serde_json::from_str(&text).expect("a document")
}

fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn real(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}

fn each<T>(value: &Value, of: impl Fn(&Value) -> T) -> Vec<T> {
    value.as_array().into_iter().flatten().map(of).collect()
}

fn histogram(pairs: &Value) -> Option<Box<Histogram<u64>>> {
    let mut out = Histogram::new_with_bounds(1, 120_000_000_000, 3).expect("a histogram");
    for pair in pairs.as_array()? {
        let count = whole(&pair[1]);
        out.record_n(whole(&pair[0]), count).expect("within bounds");
    }
    Some(Box::new(out))
}

fn measured(raw: &Value) -> Measurement {
    let start = Instant::now();
    let finish = start + Duration::from_nanos(whole(&raw["nanos"]));
    let mut out = Measurement::between(start, finish, whole(&raw["done"]));
    out.thread_seconds = real(&raw["thread_seconds"]);
    out.bytes = whole(&raw["bytes"]);
    out.histogram = histogram(&raw["latencies"]);
    out.intended = histogram(&raw["intended"]);
    out.ran = Duration::from_nanos(whole(&raw["ran_nanos"]));
    out
}

fn requests(raw: &Value) -> Requests {
    Requests {
        done: whole(&raw["done"]),
        merged: whole(&raw["merged"]),
        bytes: whole(&raw["bytes"]),
        millis: whole(&raw["millis"]),
    }
}

fn second(raw: &Value) -> Second {
    Second {
        stopped_us: whole(&raw["stopped_us"]),
        delayed_us: whole(&raw["delayed_us"]),
        paced_us: whole(&raw["paced_us"]),
        cpu_seconds: real(&raw["cpu_seconds"]),
        rss_bytes: whole(&raw["rss_bytes"]),
        read_bytes: whole(&raw["read_bytes"]),
        write_bytes: whole(&raw["write_bytes"]),
    }
}

fn beside(raw: &Value) -> BackgroundFigures {
    let four = |list: &Value| [0, 1, 2, 3].map(|at| list[at].as_f64());
    BackgroundFigures {
        asked: real(&raw["asked"]),
        reached: real(&raw["reached"]),
        latency: four(&raw["latency"]),
        intended: four(&raw["intended"]),
        ..BackgroundFigures::default()
    }
}

fn surroundings(raw: &Value) -> StepContext {
    let (usage, work) = (&raw["usage"], &raw["work"]);
    let stall = |stall: &Value| Stall {
        cause: word(&stall["cause"]),
        kind: word(&stall["kind"]),
        times: whole(&stall["times"]),
        micros: whole(&stall["micros"]),
        writers_micros: whole(&stall["writers_micros"]),
    };
    let read = |read: &Value| ReadWork {
        operation: word(&read["operation"]),
        count: whole(&read["count"]),
        sums: each(&read["sums"], |pair| (word(&pair[0]), whole(&pair[1]))),
    };
    StepContext {
        usage: Usage {
            user_seconds: real(&usage["user_seconds"]),
            system_seconds: real(&usage["system_seconds"]),
            device_write_bytes: whole(&usage["device_write_bytes"]),
            given_up_bytes: whole(&usage["given_up_bytes"]),
            device_read_bytes: whole(&usage["device_read_bytes"]),
            rss_bytes: whole(&usage["rss_bytes"]),
            switches: whole(&usage["switches"]),
        },
        device: Some(Device {
            reads: requests(&raw["device"]["reads"]),
            writes: requests(&raw["device"]["writes"]),
        }),
        work: Work {
            wal_bytes: work["wal_bytes"].as_u64(),
            flush_bytes: work["flush_bytes"].as_u64(),
            compact_write_bytes: work["compact_write_bytes"].as_u64(),
            stall_seconds: work["stall_seconds"].as_f64(),
            compact_seconds: work["compact_seconds"].as_f64(),
            compact_cpu_seconds: work["compact_cpu_seconds"].as_f64(),
            ..Work::default()
        },
        stalls: each(&raw["stalls"], stall),
        reads: each(&raw["reads"], read),
        keeps_ledger: raw["keeps_ledger"].as_bool().unwrap_or(false),
        directory_bytes: whole(&raw["directory_bytes"]),
        peak_bytes: whole(&raw["peak_bytes"]),
        live_bytes: whole(&raw["live_bytes"]),
        rates: each(&raw["rates"], whole),
        beside: Some(beside(&raw["beside"])),
        seconds: each(&raw["seconds"], second),
        rest: second(&raw["rest"]),
        ..StepContext::default()
    }
}

/// The record of the raw runs: from counters to figures on the way that every run takes.
fn record() -> Record {
    let raw = read("raw.json");
    let results = each(&raw, |raw| {
        let row = Row::new(
            &word(&raw["test"]),
            &measured(raw),
            &surroundings(raw),
            true,
        );
        let mut out = outcome(&row);
        out.engine = whole(&raw["engine"]) as usize;
        (out.pair, out.turn) = (whole(&raw["pair"]) as usize, whole(&raw["turn"]) as usize);
        out
    });
    let engine = |name: &str| Engine {
        name: name.into(),
        ..Engine::default()
    };
    Record {
        pairs: 3,
        engines: vec![engine("ours"), engine("theirs")],
        base: 1,
        steps: vec![Step {
            name: "overwrite".into(),
            figure: "ops_sec".into(),
            counts: true,
            ..Step::default()
        }],
        results,
        ..Record::default()
    }
}

/// Six digits, so that the last bits of a sum are no change of meaning.
fn rounded(value: f64) -> Value {
    json!(format!("{value:.6e}"))
}

fn figures() -> Value {
    let record = record();
    let mut out = BTreeMap::new();
    for name in record.results[0].figures.keys() {
        let of = |engine| record.median(0, engine, name).map(rounded);
        let found = ratio::of_figure(&record, 0, 0, name, Aim::Less).map(|found| {
            let all = [found.median, found.low, found.high, found.min, found.max];
            json!({"ratio": all.map(rounded), "verdict": found.verdict()})
        });
        let unit = &record.results[0].figures[name].unit;
        out.insert(name, json!([of(0), of(1), unit, found]));
    }
    json!({
        "figures": out,
        "write_amp": record.results[0].write_amp,
        "latency": record.results[0].latency,
        "intended": record.results[0].intended,
        "target": record.results[0].target,
        "second": record.results[0].series[0],
        "sparse_file": sparse_file(),
    })
}

/// A sparse file takes what it takes on the disk, not what its length says.
fn sparse_file() -> &'static str {
    let directory = tempfile::tempdir().expect("a directory");
    let file = std::fs::File::create(directory.path().join("map")).expect("a file");
    file.set_len(1 << 30).expect("a length");
    if directory_bytes(directory.path()) < 1 << 20 {
        "as on the disk"
    } else {
        "its length"
    }
}

#[test]
fn figures_mean_what_they_meant_or_have_another_version() {
    let (found, kept) = (figures(), read("figures.json"));
    let version = kept["meaning"].as_u64().unwrap_or(0);
    let bless = std::env::var_os("ESKER_BLESS").is_some();
    if bless && u64::from(MEANING) > version {
        let document = json!({"meaning": MEANING, "of": found});
        std::fs::write(path("figures.json"), format!("{document:#}\n")).expect("writes");
        return;
    }
    assert_eq!(
        version,
        u64::from(MEANING),
        "ESKER_BLESS=1 writes the figures of a new version"
    );
    assert_eq!(
        kept["of"], found,
        "the meaning of a figure changed: raise MEANING in experiment/record.rs, then run this \
         test with ESKER_BLESS=1"
    );
}
