//! TSBS, devops, cpu-only: one point of ten figures for each host every ten seconds, then the
//! published kinds of queries.
//!
//! The key is host and time; an index by time carries the figure that queries over all hosts ask
//! for. Aggregates are computed by the client, on every engine, from rows that the engine gives: it
//! is storage that is measured, not the executor of a server.

use std::collections::BTreeMap;

use super::drive::{OperationResult, Pace, StepFigures, Worker, drive};
use super::engine::{Access, Engine, Outcome, Rows, Scan, Session, retry};
use super::row::{ColumnType, Index, Row, Schema, Table, Value, size};
use crate::Result;
use crate::generate::Rng;

/// Seconds between two points of a host.
const EVERY: i64 = 10;
const HOUR: i64 = 3600;
/// Figures of a point.
const METRICS: usize = 10;
/// The first figure: usage_user.
const USER: usize = 2;

/// The table: a point.
pub fn schema() -> Schema {
    let names = [
        "host",
        "time",
        "usage_user",
        "usage_system",
        "usage_idle",
        "usage_nice",
        "usage_iowait",
        "usage_irq",
        "usage_softirq",
        "usage_steal",
        "usage_guest",
        "usage_guest_nice",
    ];
    Schema {
        tables: vec![Table {
            name: "cpu",
            columns: names.map(|name| (name, ColumnType::Int)).to_vec(),
            key: 2,
            indexes: vec![Index {
                name: "by_time",
                columns: vec![1],
                carried: vec![USER],
                later: false,
            }],
        }],
    }
}

/// A kind of query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// The most of some figures of some hosts by minute, over some hours.
    SingleGroupBy {
        /// Figures.
        metrics: usize,
        /// Hosts.
        hosts: u64,
        /// Hours.
        hours: i64,
    },
    /// The most of all figures of some hosts by hour, over 8 hours.
    CpuMaxAll {
        /// Hosts.
        hosts: u64,
    },
    /// The mean of some figures of every host by hour, over 12 hours.
    DoubleGroupBy {
        /// Figures.
        metrics: usize,
    },
    /// Points with usage_user above 90, of one host or of all, over 12 hours.
    HighCpu {
        /// Of all hosts.
        all: bool,
    },
    /// The last point of every host.
    LastPoint,
    /// The most of usage_user by minute, the last 5 minutes before a time.
    GroupByOrderByLimit,
}

impl Query {
    /// In words, for a page.
    pub fn words(self) -> String {
        let count = |n: u64, what: &str| match n {
            1 => format!("1 {what}"),
            n => format!("{n} {what}s"),
        };
        match self {
            Query::SingleGroupBy {
                metrics,
                hosts,
                hours,
            } => format!(
                "the most of {} of {} by minute, over {}",
                count(metrics as u64, "figure"),
                count(hosts, "host"),
                count(hours.unsigned_abs(), "hour")
            ),
            Query::CpuMaxAll { hosts } => format!(
                "the most of all figures of {} by hour, over 8 hours",
                count(hosts, "host")
            ),
            Query::DoubleGroupBy { metrics } => format!(
                "the mean of {} of every host by hour, over 12 hours",
                count(metrics as u64, "figure")
            ),
            Query::HighCpu { all } => format!(
                "points with usage_user above 90 of {}, over 12 hours",
                if all { "all hosts" } else { "one host" }
            ),
            Query::LastPoint => "the last point of every host".into(),
            Query::GroupByOrderByLimit => {
                "the most of usage_user by minute, the last 5 minutes before a time".into()
            }
        }
    }
}

/// The published kinds.
pub fn queries() -> Vec<(&'static str, Query)> {
    let single = |metrics, hosts, hours| Query::SingleGroupBy {
        metrics,
        hosts,
        hours,
    };
    vec![
        ("single-groupby-1-1-1", single(1, 1, 1)),
        ("single-groupby-1-1-12", single(1, 1, 12)),
        ("single-groupby-1-8-1", single(1, 8, 1)),
        ("single-groupby-5-1-1", single(5, 1, 1)),
        ("single-groupby-5-1-12", single(5, 1, 12)),
        ("single-groupby-5-8-1", single(5, 8, 1)),
        ("cpu-max-all-1", Query::CpuMaxAll { hosts: 1 }),
        ("cpu-max-all-8", Query::CpuMaxAll { hosts: 8 }),
        ("double-groupby-1", Query::DoubleGroupBy { metrics: 1 }),
        ("double-groupby-5", Query::DoubleGroupBy { metrics: 5 }),
        (
            "double-groupby-all",
            Query::DoubleGroupBy { metrics: METRICS },
        ),
        ("high-cpu-1", Query::HighCpu { all: false }),
        ("high-cpu-all", Query::HighCpu { all: true }),
        ("lastpoint", Query::LastPoint),
        ("groupby-orderby-limit", Query::GroupByOrderByLimit),
    ]
}

/// Hosts and the time that their points cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bench {
    /// Hosts.
    pub hosts: u64,
    /// Hours of points.
    pub hours: u64,
}

impl Bench {
    /// Points of all hosts.
    pub fn points(&self) -> u64 {
        self.hosts * self.hours * (HOUR / EVERY) as u64
    }

    fn end(&self) -> i64 {
        self.hours as i64 * HOUR
    }

    /// A point: figures between 0 and 100 that wander, the same for the same host and time.
    pub fn point(&self, host: i64, time: i64) -> Row {
        let mut row = vec![Value::Int(host), Value::Int(time)];
        for metric in 0..METRICS as u64 {
            let slow = Rng::new((host as u64) << 32 ^ (time / 600) as u64 ^ metric << 56);
            let mut fast = Rng::new((host as u64) << 40 ^ time as u64 ^ metric << 58);
            let base = slow.clone().below(90) as i64;
            row.push(Value::Int(base + fast.below(11) as i64));
        }
        row
    }

    /// Loads the points in the order of time, all hosts of a time in a commit.
    ///
    /// # Errors
    /// The engine's error.
    pub fn load(&self, engine: &dyn Engine, threads: usize) -> Result<StepFigures> {
        let threads = threads.clamp(1, self.hosts.max(1) as usize);
        let pace = Pace {
            threads,
            ..Pace::default()
        };
        let bench = *self;
        drive(engine, "load", pace, &["batch"], &|number| {
            Box::new(Loader {
                bench,
                hosts: (number as i64..bench.hosts as i64)
                    .step_by(threads)
                    .collect(),
                time: 0,
            })
        })
    }

    /// Asks one kind of query.
    ///
    /// # Errors
    /// The engine's error.
    pub fn run(
        &self,
        engine: &dyn Engine,
        (name, query): (&'static str, Query),
        pace: Pace,
    ) -> Result<StepFigures> {
        let bench = *self;
        drive(engine, name, pace, &["query"], &|number| {
            Box::new(Reader {
                bench,
                query,
                rng: Rng::new(number as u64 + 1),
            })
        })
    }
}

struct Loader {
    bench: Bench,
    hosts: Vec<i64>,
    time: i64,
}

impl Worker for Loader {
    fn operation(&mut self, session: &mut dyn Session) -> Result<Option<OperationResult>> {
        /// Points of a host in a commit.
        const TIMES: i64 = 20;
        if self.time >= self.bench.end() || self.hosts.is_empty() {
            return Ok(None);
        }
        let end = (self.time + TIMES * EVERY).min(self.bench.end());
        let times = (self.time..end).step_by(EVERY as usize);
        let points: Vec<Row> = times
            .flat_map(|time| self.hosts.iter().map(move |host| (*host, time)))
            .map(|(host, time)| self.bench.point(host, time))
            .collect();
        self.time = end;
        let conflicts = retry(session, Access::Write, &mut |rows| {
            for point in &points {
                rows.insert(0, point)?;
            }
            Ok(())
        })?;
        Ok(Some(OperationResult {
            wrote: points.iter().map(|row| size(row)).sum(),
            rows: points.len() as u64,
            conflicts,
            ..OperationResult::default()
        }))
    }
}

struct Reader {
    bench: Bench,
    query: Query,
    rng: Rng,
}

/// Result of a query: its groups, and the rows and bytes that it took.
#[derive(Debug, Default, PartialEq)]
pub struct QueryResult {
    /// Values by group.
    pub groups: BTreeMap<(i64, i64), Vec<i64>>,
    rows: u64,
    bytes: u64,
}

/// Points of a host between two times, the second one out.
fn between(host: i64, from: i64, to: i64) -> Scan {
    Scan {
        prefix: vec![Value::Int(host)],
        low: Some(Value::Int(from)),
        high: Some(Value::Int(to - 1)),
        ..Scan::default()
    }
}

impl QueryResult {
    /// Adds points of a host to groups of `step` seconds by `fold`.
    fn group(
        &mut self,
        rows: &mut dyn Rows,
        scan: &Scan,
        step: i64,
        metrics: usize,
        fold: fn(i64, i64) -> i64,
    ) -> Outcome<()> {
        self.rows += rows.scan(scan, &mut |row| {
            self.bytes += size(row);
            let key = (row[0].int(), row[1].int() / step * step);
            let values = &row[USER..USER + metrics];
            let values: Vec<i64> = values.iter().map(Value::int).collect();
            self.groups
                .entry(key)
                .and_modify(|kept| {
                    kept.iter_mut()
                        .zip(&values)
                        .for_each(|(a, b)| *a = fold(*a, *b));
                })
                .or_insert(values);
            true
        })?;
        Ok(())
    }
}

/// Asks a query over the hosts from `host` on, with times from `from` on.
///
/// # Errors
/// The engine's error.
pub fn ask(
    bench: &Bench,
    rows: &mut dyn Rows,
    query: Query,
    (host, from): (i64, i64),
) -> Outcome<QueryResult> {
    let mut found = QueryResult::default();
    let all = bench.hosts as i64;
    let some = |count: u64| (0..count.min(bench.hosts) as i64).map(move |i| (host + i) % all);
    match query {
        Query::SingleGroupBy {
            metrics,
            hosts,
            hours,
        } => {
            for host in some(hosts) {
                let scan = between(host, from, from + hours * HOUR);
                found.group(rows, &scan, 60, metrics, i64::max)?;
            }
        }
        Query::CpuMaxAll { hosts } => {
            for host in some(hosts) {
                let scan = between(host, from, from + 8 * HOUR);
                found.group(rows, &scan, HOUR, METRICS, i64::max)?;
            }
        }
        Query::DoubleGroupBy { metrics } => {
            // Sums; means are sums divided by the number of points.
            for host in 0..all {
                let scan = between(host, from, from + 12 * HOUR);
                found.group(rows, &scan, HOUR, metrics, |a, b| a + b)?;
            }
        }
        Query::HighCpu { all: every } => {
            let hosts = if every { bench.hosts } else { 1 };
            for host in some(hosts) {
                let scan = between(host, from, from + 12 * HOUR);
                found.rows += rows.scan(&scan, &mut |row| {
                    found.bytes += size(row);
                    if row[USER].int() > 90 {
                        let key = (row[0].int(), row[1].int());
                        found.groups.insert(key, vec![row[USER].int()]);
                    }
                    true
                })?;
            }
        }
        Query::LastPoint => {
            for host in 0..all {
                let scan = Scan {
                    prefix: vec![Value::Int(host)],
                    descending: true,
                    limit: 1,
                    ..Scan::default()
                };
                found.group(rows, &scan, 1, METRICS, i64::max)?;
            }
        }
        Query::GroupByOrderByLimit => minutes(bench, rows, from, &mut found)?,
    }
    Ok(found)
}

/// The most of usage_user by minute over all hosts, the last 5 minutes before a time.
fn minutes(bench: &Bench, rows: &mut dyn Rows, from: i64, found: &mut QueryResult) -> Outcome<()> {
    let to = (from + HOUR).min(bench.end());
    let first = (to - 1) / 60 - 4;
    let scan = Scan {
        index: Some(0),
        low: Some(Value::Int(first * 60)),
        high: Some(Value::Int(to - 1)),
        descending: true,
        ..Scan::default()
    };
    found.rows += rows.scan(&scan, &mut |row| {
        let minute = row[1].int() / 60;
        found.bytes += size(row);
        let most = found.groups.entry((0, minute)).or_insert_with(|| vec![0]);
        most[0] = most[0].max(row[USER].int());
        true
    })?;
    Ok(())
}

impl Worker for Reader {
    fn operation(&mut self, session: &mut dyn Session) -> Result<Option<OperationResult>> {
        let host = self.rng.below(self.bench.hosts) as i64;
        let times = (self.bench.end() - 12 * HOUR).max(1) as u64;
        let from = self.rng.below(times) as i64 / EVERY * EVERY;
        let mut did = OperationResult::default();
        did.conflicts = retry(session, Access::Read, &mut |rows| {
            let found = ask(&self.bench, rows, self.query, (host, from))?;
            (did.rows, did.read) = (found.rows, found.bytes);
            std::hint::black_box(found.groups.len());
            Ok(())
        })?;
        Ok(Some(did))
    }
}
