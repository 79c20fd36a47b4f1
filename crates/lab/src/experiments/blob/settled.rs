//! The overwriting as one step, from a settled tree to a settled tree.

use std::fs;
use std::path::Path;

use crate::experiment::record::Outcome;
use crate::report::Row;
use crate::{Failure, Result};

/// The benchmark that overwrites; a flush and a wait for compactions follow it.
pub(super) const BENCHMARK: &str = "overwrite";
/// The number of these benchmarks.
const PARTS: usize = 3;

/// Operations a second of the time until debts are paid.
pub(super) const RATE: &str = "settled_ops_sec";
/// Bytes to the device for each byte of the user.
pub(super) const WRITTEN: &str = "w_amp_settled";
/// Processor time of an operation, jobs included.
pub(super) const CPU: &str = "settled_cpu_us_op";
/// Bytes of the directory for each byte of live keys and values.
pub(super) const SPACE: &str = "space_amp_settled";

/// The outcome of the overwriting, from the rows of all benchmarks.
///
/// # Errors
/// The rows are not those of this experiment.
pub(super) fn outcome(rows: &[Row]) -> Result<Outcome> {
    let wrong = || Failure::new("the rows are not those of a load and an overwriting");
    let at = rows.iter().position(|row| row.test == BENCHMARK);
    let at = at.ok_or_else(wrong)?;
    let (load, work) = (rows.first(), rows.get(at..at + PARTS));
    let (load, work) = load.zip(work).ok_or_else(wrong)?;
    let sum = |name: &str| work.iter().map(|row| row.number(name)).sum::<Option<f64>>();
    let need = |found: Option<f64>| found.filter(|n| *n > 0.0).ok_or_else(wrong);
    let operations = need(work[0].number("operations"))?;
    let (bytes, live) = (need(work[0].number("bytes"))?, need(load.number("bytes"))?);
    let mut out = super::super::outcome::outcome(&work[0]);
    let mut put = |name: &str, value: Option<f64>, unit: &str| {
        out.put(name, value.unwrap_or(f64::NAN), unit);
    };
    let seconds = need(sum("seconds"))?;
    put("settled_sec", Some(seconds), "s");
    put(RATE, Some(operations / seconds), "ops/s");
    // A filesystem in memory has no device.
    let written = sum("device_write_bytes").filter(|bytes| *bytes > 0.0);
    put("settled_bytes", written, "B");
    put(WRITTEN, written.map(|written| written / bytes), "");
    let cpu = sum("u_cpu").zip(sum("s_cpu")).map(|(user, own)| user + own);
    put(CPU, cpu.map(|cpu| cpu * 1e6 / operations), "us");
    let space = work[PARTS - 1].number("lsm_sz");
    put("settled_sz", space, "B");
    put(SPACE, space.map(|space| space / live), "");
    Ok(out)
}

/// Bytes of all blob files of a database.
///
/// # Errors
/// The directory cannot be read.
pub(super) fn blob_bytes(database: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(database)? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|end| end == "blob") {
            sum += entry.metadata()?.len();
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rows() -> Vec<Row> {
        let rows = [
            json!({"test": "filluniquerandom", "bytes": 1000, "operations": 10}),
            json!({"test": "flush"}),
            json!({"test": "waitforcompaction"}),
            json!({"test": "overwrite", "operations": 20, "bytes": 2000, "seconds": 1.0,
                   "ops_sec": 20.0, "p99": 7.0, "u_cpu": 0.5, "s_cpu": 0.1, "lsm_sz": 9000,
                   "device_write_bytes": 3000}),
            json!({"test": "flush", "seconds": 1.0, "u_cpu": 0.1, "s_cpu": 0.1, "lsm_sz": 9500,
                   "device_write_bytes": 500}),
            json!({"test": "waitforcompaction", "seconds": 2.0, "u_cpu": 0.1, "s_cpu": 0.1,
                   "lsm_sz": 1500, "device_write_bytes": 1500}),
            json!({"test": "readrandom", "seconds": 5.0, "device_write_bytes": 7}),
        ];
        rows.iter().filter_map(Row::from_json).collect()
    }

    #[test]
    fn debts_belong_to_the_overwriting() {
        let out = outcome(&rows()).expect("an outcome");
        let of = |name: &str| out.figure(name).unwrap_or(f64::NAN);
        assert_eq!((of("ops_sec"), of("p99")), (20.0, 7.0));
        assert_eq!((of(RATE), of(WRITTEN)), (5.0, 2.5));
        assert!((of(CPU) - 1e6 / 20.0).abs() < 1e-6, "{}", of(CPU));
        assert_eq!((of(SPACE), of("settled_sz")), (1.5, 1500.0));
        assert!(
            outcome(&rows()[..5]).is_err(),
            "compactions were not waited for"
        );
        assert!(outcome(&rows()[..3]).is_err(), "nothing was overwritten");
    }

    #[test]
    fn blob_files_are_told_by_their_names() {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, bytes) in [("000009.blob", 5), ("000010.sst", 7), ("000011.blob", 6)] {
            fs::write(directory.path().join(name), vec![0; bytes]).expect("writes");
        }
        assert_eq!(blob_bytes(directory.path()), Ok(11));
        assert!(blob_bytes(&directory.path().join("none")).is_err());
    }
}
