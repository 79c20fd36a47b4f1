//! The result record of one benchmark, with columns by name, and its JSON and table forms.

use serde_json::{Map, Value, json};

use crate::interrupt;
use crate::limits::Limit;
use crate::measure::{Interval, Intervals, Measurement, RateStability};
use crate::memory::named_percent;
use crate::pauses::Pause;
use crate::process::{Device, Usage};
use crate::read_work::{self, ReadWork};
use crate::say::plain;
use crate::shape::{HELD_BACK, Stall, Work, stall_table};
use crate::{Failure, Result};

/// Everything known about one benchmark's run.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// The benchmark's name.
    pub test: String,
    columns: Map<String, Value>,
}

/// Figures around a measurement.
#[derive(Debug, Clone, Default)]
pub struct StepContext {
    /// Process figures of the step.
    pub usage: Usage,
    /// Figures of the device below the directory in the step.
    pub device: Option<Device>,
    /// Engine figures of the step.
    pub work: Work,
    /// By cause and kind, how writers were held back in the step.
    pub stalls: Vec<Stall>,
    /// Work of the reads in the step, by kind.
    pub reads: Vec<ReadWork>,
    /// True if the engine keeps a ledger of them.
    pub keeps_ledger: bool,
    /// Bytes of the directory after the step.
    pub directory_bytes: u64,
    /// The most bytes of the directory in the step.
    pub peak_bytes: u64,
    /// Bytes of distinct pairs the workload knows to be in the database.
    pub live_bytes: u64,
    /// The tree before the step.
    pub shape_before: String,
    /// The tree after the step.
    pub shape_after: String,
    /// Operations per second, second by second.
    pub rates: Vec<u64>,
    /// Report of the background thread.
    pub background: Option<String>,
    /// Figures of the background thread.
    pub beside: Option<BackgroundFigures>,
    /// Stalls, processor time, memory and device, second by second.
    pub seconds: Vec<Second>,
    /// Figures of the time behind the last whole second.
    pub rest: Second,
    /// Pauses of the machine, where they were watched.
    pub pauses: Option<Vec<Pause>>,
    /// Resident bytes by owner, after the step.
    pub memory: Vec<(&'static str, i64)>,
}

/// Figures of the thread beside a benchmark.
#[derive(Debug, Clone, Default)]
pub struct BackgroundFigures {
    /// As a line for people.
    pub line: String,
    /// Bytes a second that it was to write; 0 for no limit.
    pub asked: f64,
    /// Bytes a second that it wrote.
    pub reached: f64,
    /// Its latencies in microseconds: p50, p99, p99.9 and the longest.
    pub latency: [Option<f64>; 4],
    /// Latencies from the intended start.
    pub intended: [Option<f64>; 4],
}

/// The causes of stalls that `rocksdb.stall.micros` counts.
const STATISTICS_COUNT: [&str; 3] = [
    "memtable-limit",
    "l0-file-count-limit",
    "pending-compaction-bytes",
];
/// Seconds below which a sum of stalls is rounding.
const LEAST_STALL: f64 = 0.01;
/// Seconds by which two readings of the text of `rocksdb.dbstats` round the time between them.
const STALL_ROUNDING: f64 = 0.001;

/// Resident bytes below which a few buffers of 1 MB weigh too much.
const LEAST_RESIDENT: u64 = 64 << 20;

/// The names of the percentiles of [`BackgroundFigures`].
const PERCENTILES_BESIDE: [&str; 4] = ["p50", "p99", "p99.9", "pmax"];

/// One second of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Second {
    /// Microseconds that writers were stopped, all of them together.
    pub stopped_us: u64,
    /// Microseconds that they were delayed.
    pub delayed_us: u64,
    /// Microseconds that they were paced.
    pub paced_us: u64,
    /// Processor time of the process.
    pub cpu_seconds: f64,
    /// Resident bytes at the end of it.
    pub rss_bytes: u64,
    /// Bytes that the device read.
    pub read_bytes: u64,
    /// Bytes that it wrote.
    pub write_bytes: u64,
}

impl Row {
    /// A row without a measurement.
    pub fn named(test: &str) -> Row {
        Row {
            test: test.to_string(),
            columns: Map::new(),
        }
    }

    /// A row of a benchmark that the engine has no call for.
    pub fn missing(test: &str, why: &str) -> Row {
        let mut row = Row::named(test);
        row.put("test", test);
        row.put("missing", why);
        row
    }

    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.columns.insert(name.to_string(), value.into());
    }

    fn round(&mut self, name: &str, value: Option<f64>) {
        if let Some(value) = value.filter(|v| v.is_finite()) {
            // A sum of nothing is -0.
            self.put(name, (value * 1000.0).round() / 1000.0 + 0.0);
        }
    }

    /// A row of a measurement and its surroundings. `wrote` says that the bytes were written.
    pub fn new(test: &str, run: &Measurement, around: &StepContext, wrote: bool) -> Row {
        let mut row = Row::named(test);
        row.put("test", test);
        row.round("ops_sec", Some(run.ops_per_second()));
        row.round("mb_sec", run.mb_per_second());
        row.round(
            "usec_op",
            Some(run.thread_seconds * 1e6 / run.done.max(1) as f64),
        );
        row.put("operations", run.done);
        row.put("bytes", run.bytes);
        row.round("seconds", Some(run.seconds()));
        row.round("thread_seconds", Some(run.thread_seconds));
        for (name, p) in [
            ("p50", 50.0),
            ("p99", 99.0),
            ("p99.9", 99.9),
            ("p99.99", 99.99),
            ("pmax", 100.0),
        ] {
            row.round(name, run.percentile_us(p));
        }
        let pauses = around.pauses.as_ref();
        let outside = pauses.and_then(|pauses| run.longest_outside_us(pauses));
        row.round("pmax_less_pauses", outside);
        row.usage(run.seconds(), around);
        row.held_back(run, around);
        row.intended(run);
        row.each(run, around);
        row.reads(&around.reads);
        let cpu = around.usage.user_seconds + around.usage.system_seconds;
        row.round("cpu_us_op", Some(cpu * 1e6 / run.done.max(1) as f64));
        row.requests(around.device);
        if wrote && run.bytes > 0 {
            row.amplification(run.bytes as f64, around);
        }
        if around.live_bytes > 0 {
            row.round(
                "space_amp",
                Some(around.directory_bytes as f64 / around.live_bytes as f64),
            );
        }
        row.tree(around);
        row.steadiness(&around.rates);
        row.intervals(&run.intervals);
        if let Some(text) = &around.background {
            row.put("background", text.clone());
        }
        if let Some(beside) = &around.beside {
            row.beside(beside);
        }
        row.seconds(&around.seconds);
        row.ledger(around);
        row.end(around);
        row
    }

    /// Latencies from the intended start.
    fn intended(&mut self, run: &Measurement) {
        for (name, p) in [
            ("p50_intended", 50.0),
            ("p99_intended", 99.0),
            ("p99.9_intended", 99.9),
            ("p99.99_intended", 99.99),
            ("pmax_intended", 100.0),
        ] {
            self.round(name, run.intended_us(p));
        }
    }

    /// Adds the cost of an operation: requests and kilobytes of the device, switches of processors,
    /// processor time of its own thread.
    fn each(&mut self, run: &Measurement, around: &StepContext) {
        let each = |sum: f64| Some(sum / run.done.max(1) as f64);
        self.round("cpu_client_us_op", each(run.ran.as_secs_f64() * 1e6));
        self.put("switches", around.usage.switches);
        self.precise("cs_op", each(around.usage.switches as f64));
        if let Some(Device { reads, writes }) = around.device {
            self.precise("r_op", each(reads.done as f64));
            self.precise("rkb_op", each(reads.bytes as f64 / 1024.0));
            self.precise("wkb_op", each(writes.bytes as f64 / 1024.0));
        }
    }

    /// Adds the work of reads: of all kinds, and as columns those of the kind that the row is
    /// about.
    fn reads(&mut self, reads: &[ReadWork]) {
        let Some(chief) = read_work::chief(reads) else {
            return;
        };
        for (name, parts) in read_work::COLUMNS {
            self.round(name, Some(parts.iter().map(|part| chief.each(part)).sum()));
        }
        self.put("read_amplification", read_work::json(reads));
    }

    fn beside(&mut self, beside: &BackgroundFigures) {
        self.round("beside_asked", Some(beside.asked));
        self.round("beside_reached", Some(beside.reached));
        for (at, name) in PERCENTILES_BESIDE.iter().enumerate() {
            self.round(&format!("beside_{name}"), beside.latency[at]);
            self.round(&format!("beside_{name}_intended"), beside.intended[at]);
        }
    }

    fn seconds(&mut self, seconds: &[Second]) {
        if seconds.is_empty() {
            return;
        }
        let each = |s: &Second| {
            json!({
                "stopped_us": s.stopped_us, "delayed_us": s.delayed_us, "paced_us": s.paced_us,
                "cpu": (s.cpu_seconds * 100.0).round() / 100.0, "rss": s.rss_bytes,
                "read_bytes": s.read_bytes, "write_bytes": s.write_bytes,
            })
        };
        self.put("seconds_held", seconds.iter().map(each).collect::<Vec<_>>());
    }

    /// The ledger's sums by cause, by second, and as the statistics have them, and by how much
    /// they differ: what is in one and not in another was lost on the way to the page.
    fn ledger(&mut self, around: &StepContext) {
        if !around.keeps_ledger {
            return;
        }
        let seconds = |us: u64| us as f64 / 1e6;
        let by_cause = seconds(around.stalls.iter().map(|s| s.writers_micros).sum());
        let held = |s: &Second| s.stopped_us + s.delayed_us + s.paced_us;
        let by_second = around.seconds.iter().chain([&around.rest]);
        let by_second = seconds(by_second.map(held).sum());
        let counted = around.stalls.iter().filter(|s| {
            let is_counted = STATISTICS_COUNT.contains(&s.cause.as_str());
            is_counted && s.kind != "paces"
        });
        let counted = seconds(counted.map(|s| s.micros).sum());
        let off = |a: f64, b: f64, rounding: f64| match a.max(b) {
            most if most < LEAST_STALL => 0.0,
            most => 100.0 * ((a - b).abs() - rounding).max(0.0) / most,
        };
        let statistics = around.work.stall_seconds;
        let counted_off = statistics.map_or(0.0, |s| off(counted, s, STALL_ROUNDING));
        let worst = off(by_cause, by_second, 0.0).max(counted_off);
        self.precise("ledger_sec", Some(by_cause));
        self.precise("ledger_by_second_sec", Some(by_second));
        self.round("ledger_off%", Some(worst));
    }

    /// Adds the figures at the end of a step of any kind.
    fn end(&mut self, around: &StepContext) {
        if !around.memory.is_empty() {
            let owners = around.memory.iter();
            let owners = owners.map(|(name, bytes)| ((*name).to_string(), json!(bytes)));
            self.put("memory", Value::Object(owners.collect()));
            let resident = around.usage.rss_bytes;
            let part = named_percent(&around.memory, resident);
            self.round(
                "memory_named%",
                (resident >= LEAST_RESIDENT).then_some(part),
            );
        }
        if interrupt::stopped() {
            self.put("cut_short", true);
        }
    }

    /// Digits enough for small parts of an operation.
    fn precise(&mut self, name: &str, value: Option<f64>) {
        if let Some(value) = value.filter(|v| v.is_finite()) {
            self.put(name, (value * 1e6).round() / 1e6 + 0.0);
        }
    }

    /// A row of a step that does no operations of its own: what jobs did until it was over.
    pub fn of_step(test: &str, seconds: f64, around: &StepContext) -> Row {
        let mut row = Row::named(test);
        row.put("test", test);
        row.round("seconds", Some(seconds));
        row.usage(seconds, around);
        row.requests(around.device);
        row.tree(around);
        row.end(around);
        row
    }

    /// Adds the limit of the machine, and the part of it that this row reached.
    pub fn note_limit(&mut self, limit: &Limit) {
        let reached = self.number("ops_sec").unwrap_or(0.0);
        self.round("limit_ops_sec", Some(limit.ops_per_second));
        self.round("of_limit", Some(reached / limit.ops_per_second));
        self.put("limit_by", limit.by);
    }

    fn tree(&mut self, around: &StepContext) {
        self.put("lsm_sz", around.directory_bytes);
        self.put("peak_sz", around.peak_bytes);
        self.put("shape_before", around.shape_before.clone());
        self.put("shape_after", around.shape_after.clone());
    }

    fn usage(&mut self, seconds: f64, around: &StepContext) {
        let usage = around.usage;
        self.round("u_cpu", Some(usage.user_seconds));
        self.round("s_cpu", Some(usage.system_seconds));
        self.put("rss", usage.rss_bytes);
        self.put("device_read_bytes", usage.device_read_bytes);
        self.put("device_write_bytes", usage.device_write_bytes);
        self.put("given_up_bytes", usage.given_up_bytes);
        self.round("c_wsecs", around.work.compact_seconds);
        self.round("c_csecs", around.work.compact_cpu_seconds);
        let Work {
            wal_bytes,
            flush_bytes,
            compact_write_bytes,
            ..
        } = around.work;
        if let (Some(wal), Some(flush), Some(compact)) =
            (wal_bytes, flush_bytes, compact_write_bytes)
        {
            self.put("written_bytes", wal + flush + compact);
        }
        if let Some(stalled) = around.work.stall_seconds {
            self.round("stall_sec", Some(stalled));
            self.round("stall%", Some(100.0 * stalled / seconds));
        }
        if !around.stalls.is_empty() {
            let stall = |s: &Stall| {
                json!({
                    "cause": s.cause, "kind": s.kind, "times": s.times,
                    "micros": s.micros, "writers_micros": s.writers_micros,
                })
            };
            self.put(
                "stalls",
                around.stalls.iter().map(stall).collect::<Vec<_>>(),
            );
        }
    }

    /// How large a part of the writers' time each word for being held back has, where the engine
    /// keeps a ledger; of any engine the part that is in calls of a millisecond or more.
    fn held_back(&mut self, run: &Measurement, around: &StepContext) {
        self.round("calls_1ms%", run.slow_calls_percent());
        if !around.keeps_ledger {
            return;
        }
        for (kind, name) in HELD_BACK {
            let of_kind = around.stalls.iter().filter(|s| s.kind == kind);
            let us: u64 = of_kind.map(|s| s.writers_micros).sum();
            let seconds = run.thread_seconds.max(1e-9);
            self.round(name, Some(us as f64 / 1e4 / seconds));
        }
    }

    /// The average request that the device got, in kilobytes, and how many there were.
    fn requests(&mut self, device: Option<Device>) {
        let Some(Device { reads, writes }) = device else {
            return;
        };
        self.round("rareq_kb", reads.average_kb());
        self.round("r_await", reads.average_ms());
        self.round("w_await", writes.average_ms());
        self.put("device_bytes_read", reads.bytes);
        self.put("device_reads", reads.done);
        self.put("device_reads_merged", reads.merged);
        self.round("wareq_kb", writes.average_kb());
        self.put("device_written_bytes", writes.bytes);
        self.put("device_writes", writes.done);
        self.put("device_writes_merged", writes.merged);
    }

    /// Write amplification by cause, and their sum; the device's figure is what reached it, from
    /// whatever process and with the delay of the page cache, or what the process caused where no
    /// single device is below the directory.
    fn amplification(&mut self, user_bytes: f64, around: &StepContext) {
        let work = around.work;
        let part = |bytes: Option<u64>| bytes.map(|b| b as f64 / user_bytes);
        let (wal, flush, compact) = (
            part(work.wal_bytes),
            part(work.flush_bytes),
            part(work.compact_write_bytes),
        );
        self.round("w_amp_wal", wal);
        self.round("w_amp_flush", flush);
        self.round("w_amp_compact", compact);
        if let (Some(wal), Some(flush), Some(compact)) = (wal, flush, compact) {
            self.round("w_amp", Some(wal + flush + compact));
        }
        let device = around.device.map(|device| device.writes.bytes);
        let reached = device.unwrap_or(around.usage.device_write_bytes);
        self.round("w_amp_device", part(Some(reached)));
    }

    fn steadiness(&mut self, rates: &[u64]) {
        let Some(steady) = RateStability::of(rates) else {
            return;
        };
        self.round("qps_cv", Some(steady.cv));
        self.put("qps_min", steady.min);
        self.put("qps_p1", steady.p1);
        self.put("seconds_below_half_median", steady.below_half_median);
        self.put("qps", rates.to_vec());
    }

    /// The latencies of each second.
    fn intervals(&mut self, intervals: &Intervals) {
        let round = |us: f64| (us * 1000.0).round() / 1000.0;
        let row = |(i, x): (usize, &Interval)| {
            json!({
                "second": i + 1, "count": x.count, "p50": round(x.p50), "p99": round(x.p99),
                "p99.9": round(x.p999), "max": round(x.max)
            })
        };
        let rows = intervals.rows();
        if !rows.is_empty() {
            let rows: Vec<Value> = rows.iter().enumerate().map(row).collect();
            self.put("intervals", rows);
        }
    }

    /// A number by column name.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.columns.get(name)?.as_f64()
    }

    /// A text by column name.
    pub fn text(&self, name: &str) -> &str {
        self.columns.get(name).and_then(Value::as_str).unwrap_or("")
    }

    /// How writers were held back, by cause and kind.
    pub fn stalls(&self) -> Vec<Stall> {
        let list = self.columns.get("stalls").and_then(Value::as_array);
        let stall = |v: &Value| {
            Some(Stall {
                cause: v.get("cause")?.as_str()?.to_string(),
                kind: v.get("kind")?.as_str()?.to_string(),
                times: v.get("times")?.as_u64()?,
                micros: v.get("micros")?.as_u64()?,
                writers_micros: v.get("writers_micros")?.as_u64()?,
            })
        };
        list.into_iter().flatten().filter_map(stall).collect()
    }

    /// The row as a JSON object.
    pub fn json(&self) -> Value {
        Value::Object(self.columns.clone())
    }

    /// A row from its JSON object.
    pub fn from_json(value: &Value) -> Option<Row> {
        let columns = value.as_object()?.clone();
        Some(Row {
            test: columns.get("test")?.as_str()?.to_string(),
            columns,
        })
    }
}

/// The document of `--json`.
pub fn document(engine: &str, args: &[String], rows: &[Row]) -> Value {
    json!({
        "engine": engine,
        "version": env!("CARGO_PKG_VERSION"),
        "machine": crate::process::machine(),
        "args": args,
        "rows": rows.iter().map(Row::json).collect::<Vec<_>>(),
    })
}

/// The document of `--json` for runs of several engines.
pub(crate) fn document_of_engines(engines: &[String], args: &[String], rows: &[Value]) -> Value {
    json!({
        "engines": engines,
        "args": args,
        "machine": crate::process::machine(),
        "rows": rows,
    })
}

/// Puts a document where `--json` says: into a file, on standard output for `-`, nowhere without a
/// name. It is made only when wanted.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(target: &str, make: impl FnOnce() -> Value) -> Result<()> {
    if target.is_empty() {
        return Ok(());
    }
    let document = make();
    if target == "-" {
        // On one line, as all objects of a stream.
        plain(format_args!("{document}"));
        return Ok(());
    }
    std::fs::write(target, format!("{document:#}\n"))
        .map_err(|e| Failure::new(format!("cannot write {target}: {e}")))
}

/// A readable table of all rows.
pub fn summary(rows: &[Row]) -> String {
    let columns = [
        ("ops_sec", "ops/sec"),
        ("mb_sec", "MB/sec"),
        ("usec_op", "us/op"),
        ("p50", "p50 us"),
        ("p99", "p99 us"),
        ("pmax", "max us"),
        ("pmax_less_pauses", "net max us"),
        ("cpu_us_op", "cpu us/op"),
        ("w_amp", "write-amp"),
        ("space_amp", "space-amp"),
        ("stall%", "stall %"),
        ("stopped%", "stopped %"),
        ("delayed%", "delayed %"),
        ("paced%", "paced %"),
        ("calls_1ms%", "1 ms+ %"),
    ];
    let is_known = |name: &str| rows.iter().any(|row| row.number(name).is_some());
    let columns: Vec<(&str, &str)> = columns
        .into_iter()
        .filter(|(name, _)| is_known(name))
        .collect();
    let mut out = format!("{:<24}", "benchmark");
    for (_, title) in &columns {
        out.push_str(&format!(" {title:>10}"));
    }
    for row in rows {
        out.push_str(&format!("\n{:<24}", row.test));
        if !row.text("missing").is_empty() {
            out.push_str(&format!(" skipped: {}", row.text("missing")));
            continue;
        }
        if row.number("ops_sec").is_none() {
            let seconds = row.number("seconds").unwrap_or(0.0);
            out.push_str(&format!(
                " took {seconds:.1} s; it has no operations of its own"
            ));
            continue;
        }
        for (name, _) in &columns {
            let cell = match row.number(name) {
                Some(v) if v >= 10_000.0 => format!("{v:.0}"),
                Some(v) if v >= 100.0 => format!("{v:.1}"),
                Some(v) => format!("{v:.2}"),
                None => "-".into(),
            };
            out.push_str(&format!(" {cell:>10}"));
        }
    }
    out.push('\n');
    out
}

/// Prints the causes of stalls in each row with stalls; empty when that was none.
pub fn stall_summary(rows: &[Row]) -> String {
    let mut out = String::new();
    for row in rows {
        // Of all threads together. Records of earlier versions have the length of the step alone.
        let threads = row.number("thread_seconds");
        let seconds = threads.or_else(|| row.number("seconds")).unwrap_or(0.0);
        if let Some(table) = stall_table(&row.stalls(), seconds) {
            out.push_str(&format!("\n{}\n{table}\n", row.test));
        }
    }
    out
}
