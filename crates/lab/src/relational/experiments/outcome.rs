//! From a step of [`drive`](crate::relational::drive) to an outcome of the record.

use hdrhistogram::Histogram;

use crate::experiment::record::{Latency, Operation, Outcome, Second};
use crate::experiment::validity::ROWS;
use crate::relational::drive::StepFigures;

const PERCENTILES: [f64; 5] = [50.0, 99.0, 99.9, 99.99, 100.0];

fn latency(of: &Histogram<u64>) -> Latency {
    if of.is_empty() {
        return Latency::default();
    }
    let at = |p: f64| (p, of.value_at_quantile(p / 100.0) as f64);
    Latency {
        percentiles: PERCENTILES.map(at).to_vec(),
    }
}

/// Adds up the histograms of all kinds.
fn sum(step: &StepFigures, of: impl Fn(usize) -> Histogram<u64>) -> Option<Histogram<u64>> {
    let mut all = of(0);
    for kind in 1..step.latencies.len() {
        all.add(of(kind)).ok()?;
    }
    Some(all)
}

/// Makes the outcome of a step. `live` is the application's bytes in the database, where they are
/// known.
pub(super) fn outcome(step: &StepFigures, live: Option<u64>) -> Outcome {
    let mut out = Outcome {
        seconds: step.seconds,
        ..Outcome::default()
    };
    let service = sum(step, |kind| step.latencies[kind].service.clone());
    let intended = sum(step, |kind| step.latencies[kind].intended.clone());
    out.latency = service.as_ref().map(latency).unwrap_or_default();
    out.intended = intended.as_ref().map(latency).unwrap_or_default();
    out.operations = step
        .latencies
        .iter()
        .filter(|kind| !kind.service.is_empty())
        .map(|kind| Operation {
            name: kind.name.into(),
            count: kind.service.len(),
            latency: latency(&kind.service),
            intended: latency(&kind.intended),
        })
        .collect();
    out.series = step
        .by_second
        .iter()
        .map(|&operations| Second {
            operations: operations as f64,
            ..Second::default()
        })
        .collect();
    figures(step, &mut out);
    if let Some(live) = live.filter(|live| *live > 0) {
        out.put("space_amp", step.disk_bytes as f64 / live as f64, "");
    }
    if step.missed() {
        out.flags.push(format!(
            "{:.0} of {:.0} requests a second were reached",
            step.rate(),
            step.pace.rate
        ));
    }
    out
}

/// Rows that an operation of a step reads.
pub(super) fn rows_of(step: &StepFigures) -> f64 {
    step.rows as f64 / step.operations.max(1) as f64
}

fn figures(step: &StepFigures, out: &mut Outcome) {
    let operations = step.operations.max(1) as f64;
    let (engine, client) = (step.used.engine(), step.used.client);
    let cpu = |usage: crate::process::Usage| usage.user_seconds + usage.system_seconds;
    let both = match step.used.server {
        Some(server) => cpu(server) + cpu(client),
        None => cpu(client),
    };
    out.put("ops_sec", step.rate(), "ops/s");
    out.put("seconds", step.seconds, "s");
    out.put("operations", step.operations as f64, "");
    out.put(
        "usec_op",
        1e6 * step.seconds * step.pace.threads.max(1) as f64 / operations,
        "us",
    );
    out.put("cpu_us_op", 1e6 * both / operations, "us");
    if let Some(server) = step.used.server {
        out.put("cpu_client_us_op", 1e6 * cpu(client) / operations, "us");
        out.put("cpu_server_us_op", 1e6 * cpu(server) / operations, "us");
    }
    out.put(
        "rkb_op",
        engine.device_read_bytes as f64 / 1024.0 / operations,
        "KB",
    );
    let written = step.written() as f64;
    let of_processes = step.settled.engine().device_write_bytes as f64;
    out.put("process_written_bytes", of_processes, "B");
    out.put("wkb_op", written / 1024.0 / operations, "KB");
    out.put("device_written_bytes", written, "B");
    out.put("written_bytes", step.wrote as f64, "B");
    out.put("seen_bytes", step.read as f64, "B");
    out.put(ROWS, rows_of(step), "");
    out.put("conflicts", step.conflicts as f64, "");
    out.put("lsm_sz", step.disk_bytes as f64, "B");
    out.put("rss", engine.rss_bytes as f64, "B");
    if let Some(amp) = step.write_amp() {
        out.put("w_amp_device", amp, "");
        let parts = step.parts.iter();
        let parts = parts.map(|(name, bytes)| (*name, *bytes as f64 / step.wrote as f64));
        let all = parts.chain([("device", amp)]);
        out.write_amp = all.map(|(name, amp)| (name.to_string(), amp)).collect();
    }
    if let Some(amp) = step.read_amp() {
        out.put("r_amp_device", amp, "");
    }
    if let Some(variation) = step.variation() {
        out.put("qps_cv", variation, "");
    }
    let least = step.by_second.iter().min();
    if let Some(least) = least {
        out.put("qps_min", *least as f64, "ops/s");
    }
    let judged = if step.pace.rate > 0.0 {
        &out.intended
    } else {
        &out.latency
    };
    let named = [
        (50.0, "p50"),
        (99.0, "p99"),
        (99.9, "p99.9"),
        (99.99, "p99.99"),
        (100.0, "pmax"),
    ];
    let found = named.map(|(p, name)| (name, judged.at(p)));
    for (name, value) in found {
        if let Some(value) = value {
            out.put(name, value, "us");
        }
    }
}

/// The outcome of a check: how much is wrong, with the first faults.
pub(super) fn checked(mismatches: u64, wrong: &[String], live: u64, disk: u64) -> Outcome {
    let mut out = Outcome::default();
    out.put("mismatches", mismatches as f64, "");
    out.put("live_bytes", live as f64, "B");
    out.put("lsm_sz", disk as f64, "B");
    if live > 0 {
        out.put("space_amp", disk as f64 / live as f64, "");
    }
    out.flags = wrong.to_vec();
    out
}
