//! The figures of the whole database: writes, log, stalls; cumulative and since they were last
//! shown.

use super::{PropertyMap, compaction, human};
use crate::core::{Core, DbStats};
use crate::observe::{StallCause, StallKind};
use crate::write::log::WriteCountersSnapshot;
use std::fmt::Write as _;

impl Core {
    /// Microseconds since the database was opened.
    pub(crate) fn uptime_us(&self) -> u64 {
        self.services
            .env
            .clock
            .now_us()
            .saturating_sub(self.admin.opened_us)
    }

    fn stall_us(&self) -> u64 {
        self.writes.admission.stall_tracker.settle();
        self.services.stalls.stalled_us()
    }

    fn figures(&self) -> DbStats {
        DbStats {
            at_us: self.uptime_us(),
            counters: self.writes.log.counters.read(),
            stall_us: self.stall_us(),
        }
    }
}

/// The text; asking for it begins a new interval.
pub(super) fn text(core: &Core) -> String {
    let now = core.figures();
    let last = std::mem::replace(&mut *core.admin.shown.lock(), now);
    let seconds = now.at_us as f64 / 1e6;
    let interval = now.at_us.saturating_sub(last.at_us) as f64 / 1e6;
    let mut out =
        format!("\n** DB Stats **\nUptime(secs): {seconds:.1} total, {interval:.1} interval\n");
    let t = &now.counters;
    writes(&mut out, "Cumulative", t, seconds, true);
    wal(&mut out, "Cumulative", t, seconds);
    stall(&mut out, "Cumulative", now.stall_us, seconds);
    let since = since(t, &last.counters);
    writes(&mut out, "Interval", &since, interval, false);
    wal(&mut out, "Interval", &since, interval);
    stall(&mut out, "Interval", now.stall_us - last.stall_us, interval);
    out.push_str(&stall_text(core));
    out.push_str(&ledger(core));
    out
}

fn since(now: &WriteCountersSnapshot, last: &WriteCountersSnapshot) -> WriteCountersSnapshot {
    WriteCountersSnapshot {
        groups: now.groups - last.groups,
        writes: now.writes - last.writes,
        keys: now.keys - last.keys,
        bytes: now.bytes - last.bytes,
        wal_writes: now.wal_writes - last.wal_writes,
        wal_bytes: now.wal_bytes - last.wal_bytes,
        wal_syncs: now.wal_syncs - last.wal_syncs,
    }
}

fn writes(out: &mut String, title: &str, t: &WriteCountersSnapshot, seconds: f64, in_gb: bool) {
    let ingest = if in_gb {
        format!("{:.2} GB", human::gb(t.bytes))
    } else {
        format!("{:.2} MB", human::mb(t.bytes))
    };
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{title} writes: {} writes, {} keys, {} commit groups, {:.1} writes per commit group, ingest: {ingest}, {:.2} MB/s",
        human::count(t.writes),
        human::count(t.keys),
        human::count(t.groups),
        t.writes as f64 / t.groups.max(1) as f64,
        human::mb(t.bytes) / seconds.max(0.001),
    );
}

fn wal(out: &mut String, title: &str, t: &WriteCountersSnapshot, seconds: f64) {
    let _ = writeln!(
        out,
        "{title} WAL: {} writes, {} syncs, {:.2} writes per sync, written: {:.2} GB, {:.2} MB/s",
        human::count(t.wal_writes),
        human::count(t.wal_syncs),
        t.wal_writes as f64 / t.wal_syncs.max(1) as f64,
        human::gb(t.wal_bytes),
        human::mb(t.wal_bytes) / seconds.max(0.001),
    );
}

fn stall(out: &mut String, title: &str, us: u64, seconds: f64) {
    let _ = writeln!(
        out,
        "{title} stall: {}, {:.1} percent",
        human::hours(us),
        us as f64 / 10_000.0 / seconds.max(0.001),
    );
}

/// Microseconds of the clock by cause, which RocksDB does not print, and all writers' time in the
/// three words.
fn ledger(core: &Core) -> String {
    let mut out = String::from("Write Stall (micros): ");
    let mut total = 0;
    for row in core.services.stalls.rows().filter(|r| r.times > 0) {
        total += row.stall_us;
        let _ = write!(
            out,
            "{}-{}: {} (max {}), ",
            row.cause.name(),
            row.kind.name(),
            row.stall_us,
            row.stall_us_max
        );
    }
    let _ = writeln!(out, "total: {total}");
    let words = StallKind::ALL.into_iter().rev().map(|kind| {
        let us = core.services.stalls.writers_us(kind);
        format!("{} {us}", kind.word())
    });
    let words: Vec<String> = words.collect();
    let _ = writeln!(out, "Writers held back (micros): {}", words.join(", "));
    out
}

/// Stops that concern the database and not one family.
pub(super) fn stall_map(core: &Core) -> PropertyMap {
    let stops = core
        .services
        .stalls
        .row(StallCause::WriteBufferManagerLimit, StallKind::Stop);
    PropertyMap::from([(
        "write-buffer-manager-limit-stops".to_owned(),
        stops.times.to_string(),
    )])
}

pub(super) fn stall_text(core: &Core) -> String {
    compaction::line(&stall_map(core))
}

/// The figures that only grow, by name.
pub(super) fn numbers(core: &Core) -> [(&'static str, u64); 8] {
    figures_by_name(&core.figures())
}

fn figures_by_name(now: &DbStats) -> [(&'static str, u64); 8] {
    let t = &now.counters;
    [
        ("db.wal_bytes_written", t.wal_bytes),
        ("db.wal_syncs", t.wal_syncs),
        ("db.user_bytes_written", t.bytes),
        ("db.user_keys_written", t.keys),
        ("db.user_writes_by_other", t.writes.saturating_sub(t.groups)),
        ("db.user_writes_by_self", t.groups),
        ("db.user_writes_with_wal", t.wal_writes),
        ("db.user_write_stall_micros", now.stall_us),
    ]
}

/// Returns the figures as named values.
pub(super) fn map(core: &Core) -> PropertyMap {
    let now = core.figures();
    let mut out = stall_map(core);
    for (name, value) in figures_by_name(&now) {
        out.insert(name.to_owned(), value.to_string());
    }
    out.insert(
        "db.uptime".to_owned(),
        format!("{:.6}", now.at_us as f64 / 1e6),
    );
    out
}
