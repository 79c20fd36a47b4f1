//! The compaction table of one family: work by level and by thread pool, in RocksDB's layout.

use super::{PropertyMap, cache, human};
use crate::core::Core;
use crate::family::{CompactionStats, Family, IngestionCounts, LastDump, Pool};
use crate::observe::{StallCause, StallKind, StallLedger};
use crate::options::CompactionStyle;
use esker_format::Level;
use esker_lsm::score::scores;
use std::fmt::Write as _;

/// One row of the table.
#[derive(Default)]
struct Row {
    files: u64,
    busy_files: u64,
    bytes: u64,
    score: f64,
    write_amp: f64,
    work: CompactionStats,
}

/// The table's rows by level, and their sum.
struct StatsTable {
    levels: Vec<(usize, Row)>,
    sum: Row,
    flushed: u64,
}

fn ratio(written: u64, input: u64) -> f64 {
    if input == 0 {
        0.0
    } else {
        written as f64 / input as f64
    }
}

fn table(core: &Core, family: &Family) -> StatsTable {
    let totals = family.compaction_stats.totals();
    let options = family.options.load();
    let version = family.view_guard().version.clone();
    let jobs = core.background.jobs.lock();
    let busy = jobs.busy.get(&family.id).cloned().unwrap_or_default();
    drop(jobs);
    let scores = (options.compaction_style == CompactionStyle::Level)
        .then(|| scores(&version, &family.assessed(&version).policy, &busy));
    let flushed = totals.flush.all_written();
    let mut sum = Row::default();
    let mut levels = Vec::new();
    for l in 0..version.num_levels() {
        let level = Level(l as u8);
        let files = version.level(level);
        let work = totals.level(l);
        let busy_files = files
            .files()
            .iter()
            .filter(|f| busy.contains(f.number))
            .count();
        sum.files += files.len() as u64;
        sum.busy_files += busy_files as u64;
        if work == CompactionStats::default() && files.is_empty() {
            continue;
        }
        sum.work = sum.work.plus(&work);
        sum.bytes += files.bytes();
        let input = if l == 0 {
            flushed
        } else {
            work.bytes_read_upper + work.bytes_read_blob
        };
        let row = Row {
            files: files.len() as u64,
            busy_files: busy_files as u64,
            bytes: files.bytes(),
            score: scores.as_ref().map_or(0.0, |s| s.of(level)),
            write_amp: ratio(work.all_written(), input),
            work,
        };
        levels.push((l, row));
    }
    sum.write_amp = ratio(sum.work.all_written(), flushed);
    StatsTable {
        levels,
        sum,
        flushed,
    }
}

fn header(out: &mut String, family: &str, group: &str) {
    let line = format!(
        "{group}    Files   Size     Score Read(GB)  Rn(GB) Rnp1(GB) Write(GB) WPreComp(GB) Wnew(GB) \
         Moved(GB) W-Amp Rd(MB/s) Wr(MB/s) Comp(sec) CompMergeCPU(sec) Comp(cnt) Avg(sec) KeyIn \
         KeyDrop Rblob(GB) Wblob(GB)\n"
    );
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "\n** Compaction Stats [{family}] **\n{line}{}\n",
        "-".repeat(line.len())
    );
}

impl Row {
    /// Seconds of all jobs, never 0, and of a job on average.
    fn seconds(&self) -> (f64, f64) {
        let w = &self.work;
        let average = match w.jobs {
            0 => 0.0,
            jobs => w.micros as f64 / 1e6 / jobs as f64,
        };
        ((w.micros + 1) as f64 / 1e6, average)
    }
}

fn row(out: &mut String, name: &str, row: &Row) {
    let w = &row.work;
    let (seconds, average) = row.seconds();
    let _ = writeln!(
        out,
        "{name:>4} {:>6}/{:<3} {:>10} {:>5.1} {:>8.1} {:>7.1} {:>8.1} {:>9.1} {:>9.1} {:>8.1} {:>9.1} {:>5.1} \
         {:>8.1} {:>8.1} {:>9.2} {:>17.2} {:>9} {:>8.3} {:>7} {:>6} {:>9.1} {:>9.1}",
        row.files,
        row.busy_files,
        human::bytes(row.bytes),
        row.score,
        human::gb(w.bytes_read()),
        human::gb(w.bytes_read_upper),
        human::gb(w.bytes_read_output),
        human::gb(w.bytes_written),
        human::gb(w.bytes_written_raw),
        new_gb(w),
        human::gb(w.bytes_moved),
        row.write_amp,
        human::mb(w.bytes_read()) / seconds,
        human::mb(w.all_written()) / seconds,
        w.micros as f64 / 1e6,
        w.cpu_micros as f64 / 1e6,
        w.jobs,
        average,
        human::count(w.input_records),
        human::count(w.dropped_records),
        human::gb(w.bytes_read_blob),
        human::gb(w.bytes_written_blob),
    );
}

/// Bytes that came on top of what the output level held; less than nothing where data went away.
fn new_gb(w: &CompactionStats) -> f64 {
    human::gb(w.bytes_written) - human::gb(w.bytes_read_output)
}

pub(super) fn text(core: &Core, family: &Family, histogram: bool, periodic: bool) -> String {
    let table = table(core, family);
    let last = family.compaction_stats.dumped();
    let mut out = String::new();
    header(&mut out, &family.name, "Level");
    for (level, r) in &table.levels {
        row(&mut out, &format!("L{level}"), r);
    }
    row(&mut out, "Sum", &table.sum);
    let interval = Row {
        work: table.sum.work.since(&last.work),
        write_amp: ratio(
            table.sum.work.since(&last.work).bytes_written,
            table.flushed - last.flush_bytes + 1,
        ),
        ..Row::default()
    };
    row(&mut out, " Int", &interval);
    header(&mut out, &family.name, "Priority");
    let totals = family.compaction_stats.totals();
    for pool in Pool::ALL {
        let work = totals.pool(pool);
        if work.micros > 0 {
            let r = Row {
                work,
                ..Row::default()
            };
            row(&mut out, pool.name(), &r);
        }
    }
    blobs(&mut out, family);
    rates(&mut out, core, family, &table, &last);
    let stalls = family_total(&family.stalls);
    out.push_str(&stall_text(family, Some(stalls - last.stalls.min(stalls))));
    if periodic {
        family.compaction_stats.set_dumped(LastDump {
            at_us: core.uptime_us(),
            work: table.sum.work,
            flush_bytes: table.flushed,
            stalls,
            ingested: family.compaction_stats.totals().ingested,
        });
    }
    out.push_str(&cache::text(core, family).unwrap_or_default());
    if histogram {
        out.push_str(&file_histogram(family));
    }
    out
}

fn blobs(out: &mut String, family: &Family) {
    let view = family.view_guard();
    let files = view.version.blob_files();
    let total: u64 = files.values().map(|b| b.total_bytes).sum();
    let garbage: u64 = files.values().map(|b| b.garbage_bytes).sum();
    let _ = write!(
        out,
        "\nBlob file count: {}, total size: {:.1} GB, garbage size: {:.1} GB, space amp: {:.1}\n\n",
        files.len(),
        human::gb(total),
        human::gb(garbage),
        ratio(total, total - garbage.min(total)),
    );
}

/// The lines under the table.
fn rates(out: &mut String, core: &Core, family: &Family, table: &StatsTable, last: &LastDump) {
    let up_us = core.uptime_us();
    let (up, since) = (
        up_us as f64 / 1e6,
        (up_us - last.at_us.min(up_us)) as f64 / 1e6,
    );
    let _ = writeln!(out, "Uptime(secs): {up:.1} total, {since:.1} interval");
    let _ = writeln!(
        out,
        "Flush(GB): cumulative {:.3}, interval {:.3}",
        human::gb(table.flushed),
        human::gb(table.flushed - last.flush_bytes.min(table.flushed)),
    );
    let (all, before) = (family.compaction_stats.totals().ingested, last.ingested);
    let _ = writeln!(
        out,
        "AddFile(GB): cumulative {:.3}, interval {:.3}",
        human::gb(all.bytes),
        human::gb(all.bytes - before.bytes),
    );
    let count = |f: fn(&IngestionCounts) -> u64| (f(&all), f(&all) - f(&before));
    for (what, (cumulative, interval)) in [
        ("Total Files", count(|i| i.files)),
        ("L0 Files", count(|i| i.level0_files)),
        ("Keys", count(|i| i.keys)),
    ] {
        let _ = writeln!(
            out,
            "AddFile({what}): cumulative {cumulative}, interval {interval}"
        );
    }
    for (title, work, seconds) in [
        ("Cumulative", table.sum.work, up),
        ("Interval", table.sum.work.since(&last.work), since),
    ] {
        let seconds = seconds.max(0.001);
        let _ = writeln!(
            out,
            "{title} compaction: {:.2} GB write, {:.2} MB/s write, {:.2} GB read, {:.2} MB/s read, {:.1} seconds",
            human::gb(work.bytes_written),
            human::mb(work.bytes_written) / seconds,
            human::gb(work.bytes_read()),
            human::mb(work.bytes_read()) / seconds,
            work.micros as f64 / 1e6,
        );
    }
    let _ = writeln!(
        out,
        "Estimated pending compaction bytes: {}",
        family
            .assessed(&family.view_guard().version)
            .tree
            .pending_compaction_bytes,
    );
}

/// How long reads of files took, by level; only with statistics.
pub(super) fn file_histogram(family: &Family) -> String {
    let mut out = format!(
        "\n** File Read Latency Histogram By Level [{}] **\n",
        family.name
    );
    for (level, h) in family.watch.iter().flat_map(|w| w.latencies()) {
        if h.summary().count > 0 {
            let _ = writeln!(
                out,
                "** Level {level} read latency histogram (micros):\n{}",
                h.text()
            );
        }
    }
    out
}

fn family_total(stalls: &StallLedger) -> u64 {
    StallCause::OF_FAMILIES
        .iter()
        .flat_map(|c| StallKind::OF_ROCKSDB.map(|k| stalls.conditions(*c, k)))
        .sum()
}

/// How often the family was found in a condition that holds writers back, by cause.
pub(super) fn stall_map(family: &Family) -> PropertyMap {
    let mut out = PropertyMap::new();
    for kind in StallKind::OF_ROCKSDB {
        let mut total = 0;
        for cause in StallCause::OF_FAMILIES {
            let times = family.stalls.conditions(cause, kind);
            total += times;
            out.insert(
                format!("{}-{}", cause.name(), kind.name()),
                times.to_string(),
            );
        }
        out.insert(format!("total-{}", kind.name()), total.to_string());
        let ongoing = family.stalls.during_compaction(kind);
        out.insert(
            format!(
                "cf-l0-file-count-limit-{}-with-ongoing-compaction",
                kind.name()
            ),
            ongoing.to_string(),
        );
    }
    out
}

/// Prints the stalls as a line, with the count of the interval.
pub(super) fn stall_text(family: &Family, interval: Option<u64>) -> String {
    let mut out = line(&stall_map(family));
    let total = family_total(&family.stalls);
    if total > 0 {
        let _ = writeln!(out, "interval: {} total count", interval.unwrap_or(total));
    }
    out
}

/// `Write Stall (count): name: n, name: n`.
pub(super) fn line(counts: &PropertyMap) -> String {
    let list: Vec<String> = counts.iter().map(|(k, v)| format!("{k}: {v}")).collect();
    format!("Write Stall (count): {}\n", list.join(", "))
}

/// The table as named values: `compaction.L0.NumFiles`, `compaction.Sum.WriteAmp`...
pub(super) fn map(core: &Core, family: &Family) -> PropertyMap {
    let table = table(core, family);
    let mut out = stall_map(family);
    for (level, row) in &table.levels {
        row_map(&mut out, &format!("L{level}"), row);
    }
    row_map(&mut out, "Sum", &table.sum);
    out
}

fn row_map(out: &mut PropertyMap, name: &str, row: &Row) {
    let w = &row.work;
    let (seconds, average) = row.seconds();
    for (stat, value) in [
        ("NumFiles", row.files as f64),
        ("CompactedFiles", row.busy_files as f64),
        ("SizeBytes", row.bytes as f64),
        ("Score", row.score),
        ("ReadGB", human::gb(w.bytes_read())),
        ("RnGB", human::gb(w.bytes_read_upper)),
        ("Rnp1GB", human::gb(w.bytes_read_output)),
        ("WriteGB", human::gb(w.bytes_written)),
        ("WPreCompGB", human::gb(w.bytes_written_raw)),
        ("WnewGB", new_gb(w)),
        ("MovedGB", human::gb(w.bytes_moved)),
        ("WriteAmp", row.write_amp),
        ("ReadMBps", human::mb(w.bytes_read()) / seconds),
        ("WriteMBps", human::mb(w.bytes_written) / seconds),
        ("CompSec", w.micros as f64 / 1e6),
        ("CompMergeCPU", w.cpu_micros as f64 / 1e6),
        ("CompCount", w.jobs as f64),
        ("AvgSec", average),
        ("KeyIn", w.input_records as f64),
        ("KeyDrop", w.dropped_records as f64),
        ("RblobGB", human::gb(w.bytes_read_blob)),
        ("WblobGB", human::gb(w.bytes_written_blob)),
    ] {
        out.insert(format!("compaction.{name}.{stat}"), format!("{value:.6}"));
    }
}
