//! The shape of the tree, and amplification, read through properties and statistics by name.

use crate::store::Store;

/// Bytes of a gigabyte in the table of levels.
const GIGABYTE: f64 = 1_073_741_824.0;
/// Levels looked at; RocksDB's default is 7 and more are rare.
const MAX_LEVELS: u32 = 12;

/// One line that pictures the tree: memtables, then files and bytes of each level that has any.
pub fn shape_line<S: Store>(store: &S) -> String {
    let number = |name: &str| number(store, name);
    let mut line = String::from("lsm:");
    if let Some(bytes) = number("rocksdb.cur-size-all-mem-tables") {
        line.push_str(&format!(" mem {}", mb(bytes)));
    }
    if let Some(n) = number("rocksdb.num-immutable-mem-table") {
        line.push_str(&format!(" imm {n}"));
    }
    let sizes = level_sizes(&store.property("rocksdb.levelstats").unwrap_or_default());
    for level in 0..MAX_LEVELS {
        let Some(files) = files_at(store, level) else {
            break;
        };
        if files > 0 {
            let size = sizes
                .iter()
                .find(|s| s.0 == level)
                .map(|s| format!(" {} MB", s.1));
            line.push_str(&format!(
                " | L{level} {files} files{}",
                size.unwrap_or_default()
            ));
        }
    }
    if let Some(bytes) = number("rocksdb.total-sst-files-size") {
        line.push_str(&format!(" | tables {}", mb(bytes)));
    }
    if let Some(bytes) = number("rocksdb.estimate-pending-compaction-bytes").filter(|&b| b > 0) {
        line.push_str(&format!(" | due {}", mb(bytes)));
    }
    line
}

/// A property that is a number.
pub(crate) fn number<S: Store>(store: &S, name: &str) -> Option<u64> {
    store.property(name)?.trim().parse().ok()
}

fn files_at<S: Store>(store: &S, level: u32) -> Option<u64> {
    number(store, &format!("rocksdb.num-files-at-level{level}"))
}

fn mb(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1_048_576.0)
}

/// Level and megabytes from the table of `rocksdb.levelstats`, by the names in its header.
fn level_sizes(text: &str) -> Vec<(u32, u64)> {
    let mut lines = text.lines();
    let Some(header) = lines.next() else {
        return Vec::new();
    };
    let names: Vec<&str> = header.split_whitespace().collect();
    let column = |wanted: &str| names.iter().position(|name| name.starts_with(wanted));
    let (Some(level), Some(size)) = (column("Level"), column("Size")) else {
        return Vec::new();
    };
    lines
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            Some((
                fields.get(level)?.parse().ok()?,
                fields.get(size)?.parse().ok()?,
            ))
        })
        .collect()
}

/// Sorted runs that a read may have to look into: tables of level 0, and levels below that have
/// any.
pub fn runs<S: Store>(store: &S) -> u64 {
    let files = |level| files_at(store, level);
    let below = (1..MAX_LEVELS).map_while(files).filter(|n| *n > 0).count();
    files(0).unwrap_or(0) + below as u64
}

/// Bytes of an entry in table files, on average; 0 where there are none.
pub fn stored_bytes<S: Store>(store: &S) -> f64 {
    let bytes = number(store, "rocksdb.total-sst-files-size").unwrap_or(0);
    match number(store, "rocksdb.estimate-num-keys") {
        Some(entries) if entries > 0 => bytes as f64 / entries as f64,
        _ => 0.0,
    }
}

/// Cumulative figures of the engine; subtract two for a step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Work {
    /// Bytes written to logs.
    pub wal_bytes: Option<u64>,
    /// Bytes written by flushes.
    pub flush_bytes: Option<u64>,
    /// Bytes written by compactions.
    pub compact_write_bytes: Option<u64>,
    /// Bytes read by compactions.
    pub compact_read_bytes: Option<u64>,
    /// Bytes of tables that compactions read, as the table of levels has it: to a tenth of a
    /// gigabyte.
    pub tables_read: Option<f64>,
    /// Bytes that flushes and compactions wrote.
    pub tables_written: Option<f64>,
    /// Seconds that writes were delayed or stopped.
    pub stall_seconds: Option<f64>,
    /// Seconds that flushes and compactions took.
    pub compact_seconds: Option<f64>,
    /// Seconds of processor time that they took.
    pub compact_cpu_seconds: Option<f64>,
}

impl Work {
    /// The figures now: tickers when statistics are collected; stalls otherwise from the text of
    /// `rocksdb.dbstats`, which counts them always.
    pub fn now<S: Store>(store: &S) -> Work {
        let statistics = store.statistics().unwrap_or_default();
        let ticker = |name: &str| ticker(&statistics, name);
        let stall = ticker("rocksdb.stall.micros").map(|us| us as f64 / 1e6);
        let levels = store.property("rocksdb.cfstats").unwrap_or_default();
        let gigabytes = |column: &str| sum_of(&levels, column).map(|gb| gb * GIGABYTE);
        Work {
            wal_bytes: ticker("rocksdb.wal.bytes"),
            flush_bytes: ticker("rocksdb.flush.write.bytes"),
            compact_write_bytes: ticker("rocksdb.compact.write.bytes"),
            compact_read_bytes: ticker("rocksdb.compact.read.bytes"),
            tables_read: gigabytes("Read(GB)"),
            tables_written: gigabytes("Write(GB)"),
            stall_seconds: stall.or_else(|| stall_time(&store.property("rocksdb.dbstats")?)),
            compact_seconds: sum_of(&levels, "Comp(sec)"),
            compact_cpu_seconds: sum_of(&levels, "CompMergeCPU(sec)"),
        }
    }

    /// Returns the work since `before`.
    pub fn since(self, before: Work) -> Work {
        let less = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        let shorter = |now: Option<f64>, then: Option<f64>| Some((now? - then?).max(0.0));
        Work {
            wal_bytes: less(self.wal_bytes, before.wal_bytes),
            flush_bytes: less(self.flush_bytes, before.flush_bytes),
            compact_write_bytes: less(self.compact_write_bytes, before.compact_write_bytes),
            compact_read_bytes: less(self.compact_read_bytes, before.compact_read_bytes),
            tables_read: shorter(self.tables_read, before.tables_read),
            tables_written: shorter(self.tables_written, before.tables_written),
            stall_seconds: shorter(self.stall_seconds, before.stall_seconds),
            compact_seconds: shorter(self.compact_seconds, before.compact_seconds),
            compact_cpu_seconds: shorter(self.compact_cpu_seconds, before.compact_cpu_seconds),
        }
    }
}

/// One way in which writers were held back: why, how, how often, for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct Stall {
    /// RocksDB's name of the cause.
    pub cause: String,
    /// `stops`, `delays` (calls that were held back for a millisecond or more) or `paces` (for
    /// less).
    pub kind: String,
    /// Calls that waited.
    pub times: u64,
    /// Microseconds of the clock in which writers were held back.
    pub micros: u64,
    /// Microseconds that calls waited, added up.
    pub writers_micros: u64,
}

/// The kinds of stalls, each with the word for its share of the writers' time.
pub const HELD_BACK: [(&str, &str); 3] = [
    ("stops", "stopped%"),
    ("delays", "delayed%"),
    ("paces", "paced%"),
];

/// The database's stall ledger; empty for engines that keep none.
pub fn stalls<S: Store>(store: &S) -> Vec<Stall> {
    parse_stalls(&store.property("rocksdb.esker.stalls").unwrap_or_default())
}

fn parse_stalls(text: &str) -> Vec<Stall> {
    let lines = text.lines().filter(|l| l.ends_with(" (database)"));
    lines
        .filter_map(|line| {
            let mut fields = line.split_whitespace();
            Some(Stall {
                cause: fields.next()?.to_string(),
                kind: fields.next()?.to_string(),
                times: fields.next()?.parse().ok()?,
                micros: fields.next()?.parse().ok()?,
                writers_micros: fields.nth(1)?.parse().ok()?,
            })
        })
        .collect()
}

/// Returns the stalls of `now` that came after `before`.
pub fn stalls_since(now: Vec<Stall>, before: &[Stall]) -> Vec<Stall> {
    let mut grown = now;
    for stall in &mut grown {
        let mut known = before.iter();
        if let Some(b) = known.find(|b| (&b.cause, &b.kind) == (&stall.cause, &stall.kind)) {
            stall.times = stall.times.saturating_sub(b.times);
            stall.micros = stall.micros.saturating_sub(b.micros);
            stall.writers_micros = stall.writers_micros.saturating_sub(b.writers_micros);
        }
    }
    grown.retain(|s| s.times > 0 || s.micros > 0);
    grown
}

/// A table of `stalls`, each line indented, with their shares of the time of all writers: the
/// length of the step times their number. `None` when there were none.
pub fn stall_table(stalls: &[Stall], writers_seconds: f64) -> Option<String> {
    if stalls.is_empty() {
        return None;
    }
    let line = |cause: &str, kind: &str, times: u64, micros: u64| {
        let held = micros as f64 / 1e6;
        let share = 100.0 * held / writers_seconds.max(1e-6);
        format!("\n  {cause:<28} {kind:<6} {times:>9} {held:>10.3} {share:>6.1}")
    };
    let mut out = format!(
        "  {:<28} {:<6} {:>9} {:>10} {:>6}",
        "writers held back by", "", "times", "seconds", "%"
    );
    for s in stalls {
        out.push_str(&line(&s.cause, &s.kind, s.times, s.writers_micros));
    }
    let (times, micros) = stalls
        .iter()
        .fold((0, 0), |(t, m), s| (t + s.times, m + s.writers_micros));
    out.push_str(&line("all", "", times, micros));
    Some(out)
}

/// The number in a column of the first `Sum` line of `rocksdb.cfstats`. Columns are counted from
/// the right: a size on the left has a unit.
fn sum_of(text: &str, column: &str) -> Option<f64> {
    let mut lines = text.lines().map(|l| l.split_whitespace());
    let from_right =
        lines.find_map(|mut header| header.by_ref().rev().position(|name| name == column))?;
    let mut sum = lines.find(|line| line.clone().next() == Some("Sum"))?;
    sum.nth_back(from_right)?.parse().ok()
}

/// The value of `name COUNT : 123` in a statistics text.
fn ticker(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let found = fields.next() == Some(name) && fields.next() == Some("COUNT");
        found.then(|| fields.nth(1)?.parse().ok())?
    })
}

/// Seconds in `Cumulative stall: 00:00:1.234 H:M:S`.
fn stall_time(text: &str) -> Option<f64> {
    let (_, rest) = text.split_once("Cumulative stall: ")?;
    let clock = rest.split_whitespace().next()?;
    clock.split(':').try_fold(0.0, |sum, part| {
        Some(sum * 60.0 + part.parse::<f64>().ok()?)
    })
}

#[cfg(test)]
mod tests;
