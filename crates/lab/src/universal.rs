//! Ten configurations of universal compaction:
//! `esker bench universal --engine=A --engine=B --num=N ...`.
//!
//! The experiment is that of the blog Small Datum: load in key order, overwrite some, let
//! compactions end, overwrite and wait again. A configuration is named by
//! `compression_size_percent` (`m1` for -1) and its codecs: one for all data, or three letters for
//! flushes, newer runs and the oldest run (n none, l LZ4, z zstd); `lz` compresses all but the
//! oldest run by LZ4. Every run has a process and a directory of its own, and all engines get the
//! same flags; flags that are given replace those of the experiment. The last benchmark that writes
//! and what comes after it are reported.

use crate::compare::child;
use crate::flags::Flags;
use crate::report::{self, Row};
use crate::say::say;
use crate::{Failure, Result};
use serde_json::{Value, json};

const STEPS: &[&str] = &[
    "--benchmarks=fillseq,waitforcompaction,overwrite,waitforcompaction,overwrite,waitforcompaction",
    "--compaction_style=1",
    "--statistics",
    "--num=1000000",
    "--duration=60",
];

/// Name, `compression_size_percent`, `compression`, `bottommost_compression`.
pub(crate) type Config = (&'static str, &'static str, &'static str, &'static str);

/// The configurations.
pub(crate) const CONFIGS: [Config; 10] = [
    ("m1.none", "-1", "none", ""),
    ("m1.lz4", "-1", "lz4", ""),
    ("m1.zstd", "-1", "zstd", ""),
    ("m1.lz", "-1", "lz4", "zstd"),
    ("80.none", "80", "none", ""),
    ("80.lz4", "80", "lz4", ""),
    ("80.zstd", "80", "zstd", ""),
    ("90.nnl", "90", "none", "lz4"),
    ("90.nnz", "90", "none", "zstd"),
    ("90.nlz", "90", "lz4", "zstd"),
];

/// The columns, with the digits after the point.
const COLUMNS: [(&str, usize); 7] = [
    ("ips", 0),
    ("stall%", 1),
    ("w_amp", 1),
    ("c_wsecs", 0),
    ("c_csecs", 0),
    ("sizeGB", 2),
    ("peakGB", 2),
];

/// Runs `esker bench universal`.
///
/// # Errors
/// Wrong flags, or a run that failed.
pub fn main(args: &[String]) -> Result<()> {
    let (mut engines, mut rest) = (Vec::new(), Vec::new());
    for arg in args {
        match arg.trim_start_matches('-').strip_prefix("engine=") {
            Some(engine) => engines.push(engine.to_string()),
            None => rest.push(arg.clone()),
        }
    }
    if engines.is_empty() {
        engines.push("esker".into());
    }
    let given = Flags::parse(&rest)?;
    if given.asked.is_some() {
        say!("{}", crate::flags::help());
        return Ok(());
    }
    if given.flag("use_existing_db") {
        return Err(Failure::usage("every configuration gets a fresh database"));
    }
    say!(
        "machine: {}\nload at start: {:.2}\nflags: {}\n",
        crate::process::machine(),
        crate::process::load(),
        rest.join(" ")
    );
    let configs = chosen(given.text("configs"))?;
    say!("{}", header());
    let mut done = Vec::new();
    for config in configs {
        for engine in &engines {
            let flags = flags_of(config, &rest);
            let rows = child(&given, &flags, engine, 42);
            if crate::interrupt::stopped() {
                break;
            }
            let rows = rows?;
            say!("{}", line(config.0, engine, &rows));
            done.push(record(config.0, engine, &rows));
        }
    }
    report::write(given.text("json"), || {
        report::document_of_engines(&engines, &rest, &done)
    })
}

/// The configurations of these names, with commas between; all of them for none.
pub(crate) fn chosen(names: &str) -> Result<Vec<&'static Config>> {
    if names.is_empty() {
        return Ok(CONFIGS.iter().collect());
    }
    let find = |name: &str| {
        let known = || CONFIGS.map(|c| c.0).join(", ");
        let found = CONFIGS.iter().find(|c| c.0 == name.trim());
        found.ok_or_else(|| {
            Failure::usage(format!(
                "no configuration is called {name:?}: there are {}",
                known()
            ))
        })
    };
    names.split(',').map(find).collect()
}

/// A line for `--json`: what is printed, and the rows of its benchmarks.
fn record(config: &str, engine: &str, rows: &[Row]) -> Value {
    let mut out = json!({"config": config, "engine": engine});
    for ((name, _), value) in COLUMNS.iter().zip(summary(rows)) {
        out[*name] = json!(value);
    }
    out["benchmarks"] = rows.iter().map(Row::json).collect();
    out
}

fn flags_of(config: &Config, given: &[String]) -> Vec<String> {
    let mut flags: Vec<String> = STEPS.iter().map(|s| (*s).to_string()).collect();
    flags.extend_from_slice(given);
    flags.extend(config_flags(config));
    flags
}

/// The flags that make a configuration.
pub(crate) fn config_flags(config: &Config) -> Vec<String> {
    let (_, percent, codec, bottommost) = config;
    let mut flags = vec![
        format!("--universal_compression_size_percent={percent}"),
        format!("--compression_type={codec}"),
    ];
    if !bottommost.is_empty() {
        flags.push(format!("--bottommost_compression={bottommost}"));
    }
    flags
}

fn header() -> String {
    let mut out = format!("{:<8}", "config");
    for (name, _) in COLUMNS {
        out.push_str(&format!(" {name:>9}"));
    }
    out.push_str("  engine");
    out
}

fn line(config: &str, engine: &str, rows: &[Row]) -> String {
    let mut out = format!("{config:<8}");
    for ((_, digits), value) in COLUMNS.iter().zip(summary(rows)) {
        let cell = value.map_or("-".into(), |v| format!("{v:.digits$}"));
        out.push_str(&format!(" {cell:>9}"));
    }
    let engine = engine.rsplit('/').next().unwrap_or(engine);
    out.push_str(&format!("  {engine}"));
    out
}

/// The values of [`COLUMNS`]: rate and stalls of the last writing, work from there to the end, size
/// at the end, and the largest ever.
pub(crate) fn summary(rows: &[Row]) -> [Option<f64>; COLUMNS.len()] {
    let Some(last) = rows.iter().rposition(|r| r.number("w_amp").is_some()) else {
        return [None; COLUMNS.len()];
    };
    let from = &rows[last..];
    let sum = |name: &str| {
        let parts = from.iter().filter_map(|r| r.number(name));
        parts.reduce(|a, b| a + b)
    };
    let written = sum("written_bytes").zip(rows[last].number("bytes"));
    let size = rows.last().and_then(|r| r.number("lsm_sz"));
    let peak = rows.iter().filter_map(|r| r.number("peak_sz"));
    let gb = |bytes: f64| bytes / f64::from(1 << 30);
    [
        rows[last].number("ops_sec"),
        rows[last].number("stall%"),
        written.map(|(all, user)| all / user.max(1.0)),
        sum("c_wsecs"),
        sum("c_csecs"),
        size.map(gb),
        peak.reduce(f64::max).map(gb),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_writing_and_what_follows_are_reported() {
        let row = |value| Row::from_json(&value).expect("a row");
        let rows = [
            row(
                json!({"test": "fillseq", "ops_sec": 9.0, "w_amp": 2.0, "written_bytes": 500, "bytes": 100, "peak_sz": 1u64 << 31}),
            ),
            row(
                json!({"test": "overwrite", "ops_sec": 7.0, "stall%": 12.5, "w_amp": 3.0,
                       "written_bytes": 400, "bytes": 100, "c_wsecs": 4.0, "c_csecs": 3.0}),
            ),
            row(
                json!({"test": "waitforcompaction", "peak_sz": 1 << 30, "written_bytes": 150,
                       "c_wsecs": 2.5, "c_csecs": 1.5, "lsm_sz": 1 << 29}),
            ),
        ];
        let expected = [7.0, 12.5, 5.5, 6.5, 4.5, 0.5, 2.0].map(Some);
        assert_eq!(summary(&rows), expected);
        assert_eq!(
            line("m1.lz4", "lib:/a/librocksdb.so", &rows),
            "m1.lz4           7      12.5       5.5         6         4      0.50      2.00  librocksdb.so"
        );
        let said = record("m1.lz4", "esker", &rows);
        assert_eq!(
            (&said["config"], &said["w_amp"]),
            (&json!("m1.lz4"), &json!(5.5))
        );
        assert_eq!(said["benchmarks"][1]["stall%"], json!(12.5));
        assert_eq!(summary(&rows[2..]), [None; 7]);
    }

    #[test]
    fn configurations_are_chosen_by_name() {
        let names = |text| chosen(text).map(|all| all.iter().map(|c| c.0).collect::<Vec<_>>());
        assert_eq!(names("").map(|all| all.len()).ok(), Some(CONFIGS.len()));
        let two = names("90.nlz, m1.lz4").ok();
        assert_eq!(two, Some(vec!["90.nlz", "m1.lz4"]));
        let wrong = names("m1.lz4,80.nlz").expect_err("no such configuration");
        let said = wrong.to_string();
        assert!(
            said.contains("\"80.nlz\"") && said.contains("90.nlz"),
            "{said}"
        );
    }

    #[test]
    fn flags_of_the_caller_come_before_those_of_the_configuration() {
        let flags = flags_of(
            &CONFIGS[3],
            &["--num=5".into(), "--compression_type=zlib".into()],
        );
        let parsed = Flags::parse(&flags).expect("known flags");
        assert_eq!(parsed.count("num"), 5);
        assert_eq!(parsed.text("compression_type"), "lz4");
        assert_eq!(parsed.text("bottommost_compression"), "zstd");
    }
}
