//! The time of flushes and compactions by output level and stage, and the bytes that each writes.
//!
//! Flushes have a row of their own; the row of level 0 is of compactions into it. Where the time
//! comes from says `esker_files::table::StageClock`.

use super::{PropertyMap, human};
use crate::core::Core;
use crate::family::{CompactionStats, Family, Totals};
use esker_files::table::Stage;
use esker_format::Level;
use std::fmt::Write as _;

/// Rows that did anything: flushes, then compactions by output level.
fn rows(family: &Family, totals: &Totals) -> Vec<(String, CompactionStats)> {
    let mut rows = vec![("flush".to_owned(), totals.flush)];
    for l in 0..family.view_guard().version.num_levels() {
        let mut work = totals.level(l);
        if l == Level::L0.index() {
            work = work.since(&totals.flush);
        }
        rows.push((format!("L{l}"), work));
    }
    rows.retain(|(_, work)| *work != CompactionStats::default());
    rows
}

/// The table, and the line of write amplification.
pub(super) fn text(core: &Core, family: &Family) -> String {
    let totals = family.compaction_stats.totals();
    let rows = rows(family, &totals);
    let mut out = format!(
        "\n** Compaction Stages [{}] **\nLevel    Jobs   CPU(s)",
        family.name
    );
    // Writing to a string cannot fail.
    for stage in Stage::ALL {
        let _ = write!(out, " {:>10}%", stage.name());
    }
    out.push_str("  Wall(s) Read-wall(s) Write-wall(s)  In(GB) Out(GB)   KeyIn  KeyOut\n");
    let mut sum = CompactionStats::default();
    for (name, work) in &rows {
        line(&mut out, name, work);
        sum = sum.plus(work);
    }
    line(&mut out, "Sum", &sum);
    amplification(&mut out, core, &rows, totals.flush.bytes_in);
    out
}

fn line(out: &mut String, name: &str, work: &CompactionStats) {
    let t = &work.stages;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let all = t.total_cpu_ns();
    let _ = write!(out, "{name:<6} {:>6} {:>8.2}", work.jobs, seconds(all));
    for stage in Stage::ALL {
        let share = 100.0 * t.cpu_ns(stage) as f64 / all.max(1) as f64;
        let _ = write!(out, " {share:>11.1}");
    }
    let _ = writeln!(
        out,
        " {:>8.2} {:>12.2} {:>13.2} {:>7.2} {:>7.2} {:>7} {:>7}",
        seconds(t.total_wall_ns()),
        seconds(t.wall_ns(Stage::Read)),
        seconds(t.wall_ns(Stage::Write)),
        human::gb(work.bytes_in),
        human::gb(work.bytes_written),
        human::count(work.entries_in),
        human::count(work.entries_out),
    );
}

/// Bytes written for each byte of entries that was flushed, by component. The log is the whole
/// database's: for each byte that was written into the database.
fn amplification(
    out: &mut String,
    core: &Core,
    rows: &[(String, CompactionStats)],
    user_bytes: u64,
) {
    let ratio = |bytes: u64, of: u64| bytes as f64 / of.max(1) as f64;
    let counters = core.writes.log.counters.read();
    let wal = ratio(counters.wal_bytes, counters.bytes);
    let _ = write!(out, "Write-amp: WAL {wal:.2}");
    let mut sum = wal;
    for (name, work) in rows {
        let part = ratio(work.bytes_written, user_bytes);
        let _ = write!(out, " + {name} {part:.2}");
        sum += part;
    }
    let _ = writeln!(
        out,
        " = {sum:.2} for {:.3} GB of flushed entries",
        human::gb(user_bytes)
    );
}

/// Every figure by name: `ROW.STAGE.cpu-nanos`, `ROW.STAGE.wall-nanos` and `ROW.WHAT`, where a row
/// is `flush`, `L0`, `L1`...
pub(super) fn map(family: &Family) -> PropertyMap {
    let totals = family.compaction_stats.totals();
    let mut out = PropertyMap::new();
    for (row, work) in rows(family, &totals) {
        for stage in Stage::ALL {
            let (stage, cpu, wall) = (
                stage.name(),
                work.stages.cpu_ns(stage),
                work.stages.wall_ns(stage),
            );
            out.insert(format!("{row}.{stage}.cpu-nanos"), cpu.to_string());
            out.insert(format!("{row}.{stage}.wall-nanos"), wall.to_string());
        }
        for (what, n) in [
            ("jobs", work.jobs),
            ("cpu-micros", work.cpu_micros),
            ("bytes-in", work.bytes_in),
            ("bytes-out", work.bytes_written),
            ("entries-in", work.entries_in),
            ("entries-out", work.entries_out),
        ] {
            out.insert(format!("{row}.{what}"), n.to_string());
        }
    }
    out
}
