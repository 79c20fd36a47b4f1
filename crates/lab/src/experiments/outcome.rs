//! From a row of `esker bench` to an outcome of the record.

use serde_json::Value;

use crate::experiment::record::{Device, Latency, Outcome, Second, Shape, Stall, Target};
use crate::report::Row;

/// Columns that become figures, with their units.
const FIGURES: &[(&str, &str)] = &[
    ("ops_sec", "ops/s"),
    ("mb_sec", "MB/s"),
    ("usec_op", "us"),
    ("seconds", "s"),
    ("operations", ""),
    ("bytes", "B"),
    ("cpu_us_op", "us"),
    ("cpu_client_us_op", "us"),
    ("u_cpu", "s"),
    ("s_cpu", "s"),
    ("cs_op", ""),
    ("r_op", ""),
    ("rkb_op", "KB"),
    ("wkb_op", "KB"),
    ("read_blocks_op", ""),
    ("read_bytes_op", "B"),
    ("cache_hits_op", ""),
    ("filters_op", ""),
    ("filters_useful_op", ""),
    ("keys_compared_op", ""),
    ("runs_op", ""),
    ("skipped_op", ""),
    ("p50", "us"),
    ("p99", "us"),
    ("p99.9", "us"),
    ("p99.99", "us"),
    ("pmax", "us"),
    ("p99_intended", "us"),
    ("p99.9_intended", "us"),
    ("w_amp", ""),
    ("w_amp_device", ""),
    ("space_amp", ""),
    ("lsm_sz", "B"),
    ("peak_sz", "B"),
    ("rss", "B"),
    ("stall%", "%"),
    ("stall_sec", "s"),
    ("stopped%", "%"),
    ("delayed%", "%"),
    ("paced%", "%"),
    ("calls_1ms%", "%"),
    ("qps_cv", ""),
    ("qps_min", "ops/s"),
    ("qps_p1", "ops/s"),
    ("seconds_below_half_median", "s"),
    ("c_wsecs", "s"),
    ("c_csecs", "s"),
    ("written_bytes", "B"),
    ("ledger_sec", "s"),
    ("ledger_by_second_sec", "s"),
    ("ledger_off%", "%"),
    ("memory_named%", "%"),
    ("device_written_bytes", "B"),
    ("beside_p50", "us"),
    ("beside_p99", "us"),
    ("beside_p99.9", "us"),
    ("beside_pmax", "us"),
    ("beside_p99_intended", "us"),
    ("beside_p99.9_intended", "us"),
    ("beside_pmax_intended", "us"),
];

/// Percentiles, and the columns that have them.
const PERCENTILES: [(f64, &str); 5] = [
    (50.0, "p50"),
    (99.0, "p99"),
    (99.9, "p99.9"),
    (99.99, "p99.99"),
    (100.0, "pmax"),
];

/// The parts of write amplification, and their columns.
const WRITE_AMP: [(&str, &str); 4] = [
    ("log", "w_amp_wal"),
    ("flush", "w_amp_flush"),
    ("compaction", "w_amp_compact"),
    ("device", "w_amp_device"),
];

/// Returns whether a signal ended the benchmark early.
pub(super) fn is_cut_short(row: &Row) -> bool {
    row.json()["cut_short"].as_bool().unwrap_or(false)
}

/// All that a row says.
pub(super) fn outcome(row: &Row) -> Outcome {
    let json = row.json();
    let seconds = row.number("seconds").unwrap_or(0.0);
    let mut out = Outcome {
        seconds,
        thread_seconds: row.number("thread_seconds").unwrap_or(0.0),
        series: series(&json),
        stalls: stalls(row),
        latency: latency(row, ""),
        intended: latency(row, "_intended"),
        shape_before: shape(row.text("shape_before")),
        shape_after: shape(row.text("shape_after")),
        device: device(row, seconds),
        memory: memory(&json["memory"]),
        target: target(row),
        ..Outcome::default()
    };
    for (name, unit) in FIGURES {
        if let Some(value) = row.number(name) {
            out.put(name, value, unit);
        }
    }
    let parts = WRITE_AMP.iter();
    let parts = parts.filter_map(|(name, column)| Some((*name, row.number(column)?)));
    out.write_amp = parts.map(|(name, x)| (name.to_string(), x)).collect();
    out
}

fn latency(row: &Row, end: &str) -> Latency {
    let all = PERCENTILES.iter().filter_map(|(p, name)| {
        let us = row.number(&format!("{name}{end}"))?;
        Some((*p, us))
    });
    Latency {
        percentiles: all.collect(),
    }
}

fn target(row: &Row) -> Option<Target> {
    Some(Target {
        asked: row.number("beside_asked")?,
        reached: row.number("beside_reached")?,
    })
}

fn series(json: &Value) -> Vec<Second> {
    let rates = json["qps"].as_array().cloned().unwrap_or_default();
    let held = json["seconds_held"].as_array().cloned().unwrap_or_default();
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let count = rates.len().max(held.len());
    let second = |at: usize| {
        let (held, interval) = (
            held.get(at).cloned().unwrap_or_default(),
            &json["intervals"][at],
        );
        Second {
            operations: rates.get(at).map_or(0.0, number),
            stopped: number(&held["stopped_us"]),
            delayed: number(&held["delayed_us"]),
            paced: number(&held["paced_us"]),
            p99: number(&interval["p99"]),
            worst: number(&interval["max"]),
            cpu: number(&held["cpu"]),
            resident: number(&held["rss"]),
            read_bytes: number(&held["read_bytes"]),
            write_bytes: number(&held["write_bytes"]),
        }
    };
    (0..count).map(second).collect()
}

fn stalls(row: &Row) -> Vec<Stall> {
    let word = |kind: &str| match kind {
        "stops" => "stopped",
        "delays" => "delayed",
        _ => "paced",
    };
    let all = row.stalls().into_iter().map(|stall| Stall {
        kind: word(&stall.kind).to_string(),
        cause: stall.cause,
        times: stall.times,
        micros: stall.micros,
        writers_micros: stall.writers_micros,
    });
    all.collect()
}

/// `lsm: mem 1.0 MB imm 0 | L0 2 files 11 MB | tables 651.2 MB`, in parts.
pub(super) fn shape(text: &str) -> Shape {
    const MB: f64 = 1_048_576.0;
    let mut parts = Vec::new();
    for part in text.trim_start_matches("lsm:").split('|') {
        let words: Vec<&str> = part.split_whitespace().collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok());
        match words.first() {
            Some(&"mem") => {
                let bytes = number(1).unwrap_or(0.0) * MB;
                parts.push(("mem".to_string(), 1, bytes));
            }
            Some(level) if level.starts_with('L') => {
                let (files, bytes) = (number(1).unwrap_or(0.0), number(3).unwrap_or(0.0) * MB);
                parts.push(((*level).to_string(), files as u64, bytes));
            }
            _ => {}
        }
    }
    Shape {
        text: text.to_string(),
        parts,
    }
}

fn device(row: &Row, seconds: f64) -> Device {
    let number = |name: &str| row.number(name).unwrap_or(0.0);
    let each_second = |sum: f64| if seconds > 0.0 { sum / seconds } else { 0.0 };
    let mb = |bytes: f64| each_second(bytes) / 1_048_576.0;
    Device {
        rps: each_second(number("device_reads")),
        r_mb: mb(number("device_bytes_read")),
        r_await: number("r_await"),
        rareq_kb: number("rareq_kb"),
        wps: each_second(number("device_writes")),
        w_mb: mb(number("device_written_bytes")),
        w_await: number("w_await"),
        wareq_kb: number("wareq_kb"),
    }
}

fn memory(owners: &Value) -> Vec<(String, f64)> {
    let all = owners.as_object().into_iter().flatten();
    let all = all.filter_map(|(name, bytes)| Some((name.clone(), bytes.as_f64()?)));
    all.collect()
}

#[cfg(test)]
mod meaning;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tree_in_one_line_is_taken_apart() {
        let text =
            "lsm: mem 1.5 MB imm 0 | L0 2 files 11 MB | L6 40 files 640 MB | tables 651.0 MB";
        let shape = shape(text);
        let mb = 1_048_576.0;
        let expected = [
            ("mem".to_string(), 1, 1.5 * mb),
            ("L0".to_string(), 2, 11.0 * mb),
            ("L6".to_string(), 40, 640.0 * mb),
        ];
        assert_eq!(shape.parts, expected);
    }

    #[test]
    fn all_that_a_row_says_is_in_the_outcome() {
        let row = Row::from_json(&json!({
            "test": "readwhilewriting", "ops_sec": 1000.0, "seconds": 2.0, "p50": 1.5, "p99": 9.0,
            "thread_seconds": 16.0,
            "p99_intended": 90.0, "w_amp_wal": 1.1, "w_amp_flush": 1.0, "qps": [900, 1100],
            "seconds_held": [{"stopped_us": 5, "cpu": 0.5}, {"paced_us": 7}],
            "intervals": [{"p99": 3.0, "max": 8.0}],
            "device_reads": 10, "device_bytes_read": 1 << 21, "rareq_kb": 4.0,
            "beside_asked": 100.0, "beside_reached": 99.0, "memory": {"block cache": 5},
            "shape_after": "lsm: mem 1.0 MB imm 0",
            "stalls": [{"cause": "l0", "kind": "stops", "times": 1, "micros": 2,
                        "writers_micros": 3}],
        }))
        .expect("a row");
        let out = outcome(&row);
        assert_eq!((out.figure("ops_sec"), out.writers()), (Some(1000.0), 8.0));
        assert_eq!(
            (out.latency.at(99.0), out.intended.at(99.0)),
            (Some(9.0), Some(90.0))
        );
        assert_eq!(out.series.len(), 2);
        assert_eq!((out.series[0].stopped, out.series[1].paced), (5.0, 7.0));
        assert_eq!(
            (out.series[0].worst, out.series[1].operations),
            (8.0, 1100.0)
        );
        assert_eq!((out.device.rps, out.device.r_mb), (5.0, 1.0));
        assert_eq!(out.write_amp.len(), 2);
        assert_eq!(out.target.map(|t| t.reached), Some(99.0));
        assert_eq!(out.memory, [("block cache".to_string(), 5.0)]);
        assert_eq!(out.stalls[0].kind, "stopped");
        assert!(!is_cut_short(&row));
    }
}
