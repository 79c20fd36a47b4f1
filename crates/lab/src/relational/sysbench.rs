//! The microbenchmarks of sysbench over one table with a secondary index.
//!
//! Each is one kind of transaction, named as in the field's scripts: reads by the primary key and
//! by the index, covered and not, by points and by ranges; writes of one row and of many; reads
//! before the writes (`.pre`) and after them. Sums, orders and distinct values are computed by the
//! client, on every engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use super::drive::{OperationResult, Pace, StepFigures, Worker, drive};
use super::engine::{Access, AnyOf, Engine, Outcome, Rows, Scan, Session, retry};
use super::row::{ColumnType, Index, Row, Schema, Table, Value, size};
use crate::Result;
use crate::generate::{Rng, ValueSizes, ValueSource};
use crate::workload::zipf::Zipf;

const K: usize = 1;
const C: usize = 2;

/// The table of sysbench.
pub fn schema() -> Schema {
    Schema {
        tables: vec![Table {
            name: "sbtest1",
            columns: vec![
                ("id", ColumnType::Int),
                ("k", ColumnType::Int),
                ("c", ColumnType::Bytes(120)),
                ("pad", ColumnType::Bytes(60)),
            ],
            key: 1,
            indexes: vec![Index {
                name: "k_1",
                columns: vec![K],
                carried: Vec::new(),
                later: false,
            }],
        }],
    }
}

/// The work of the transactions of a microbenchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Rows by key: their number, and whether they are always the same ones.
    Points {
        /// How many.
        count: u64,
        /// Always the same ones.
        hot: bool,
    },
    /// 100 values of the key or of the index, covered or not.
    AnyOf {
        /// By the index.
        index: bool,
        /// All columns.
        fetch: bool,
    },
    /// A range of 100 values of the key or of the index, covered or not.
    Range {
        /// By the index.
        index: bool,
        /// All columns.
        fetch: bool,
    },
    /// A range of 100 keys, and something computed from it.
    Compute(Sum),
    /// Ten rows by key, then four ranges of this number of keys.
    ReadOnly {
        /// Keys of a range.
        range: u64,
    },
    /// The whole table.
    FullScan,
    /// Changes the indexed column of a row.
    UpdateIndex,
    /// Changes another column of a row.
    UpdateOther {
        /// Hot rows more often.
        zipf: bool,
        /// Always the same row.
        one: bool,
    },
    /// Changes another column of 100 rows.
    UpdateMany,
    /// Deletes a row, if it is there.
    Delete,
    /// Inserts a row.
    Insert,
    /// Two updates, a deletion and an insertion of the deleted row; reads before them, or none.
    ReadWrite {
        /// Keys of a range.
        range: u64,
    },
}

/// The value that is computed from a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sum {
    /// Nothing.
    Plain,
    /// The sum of the indexed column.
    Sum,
    /// How many rows.
    Count,
    /// All of them in the order of a column.
    Order,
    /// The different values of a column in order.
    Distinct,
}

impl Work {
    /// In words, for a page.
    pub fn words(self) -> String {
        let by = |index: bool| if index { "the index" } else { "the key" };
        let of = |fetch: bool| {
            if fetch {
                "all columns"
            } else {
                "that column alone"
            }
        };
        match self {
            Work::Points { count, hot } => format!(
                "{count} rows by key{}",
                if hot { ", always the same" } else { "" }
            ),
            Work::AnyOf { index, fetch } => {
                format!("100 values of {}, {}", by(index), of(fetch))
            }
            Work::Range { index, fetch } => {
                format!("a range of 100 values of {}, {}", by(index), of(fetch))
            }
            Work::Compute(sum) => format!("a range of 100 keys{}", sum.words()),
            Work::ReadOnly { range } => format!("ten rows by key, four ranges of {range} keys"),
            Work::FullScan => "the whole table".into(),
            Work::UpdateIndex => "changes the indexed column of a row".into(),
            Work::UpdateOther { zipf, one } => format!(
                "changes another column of {}",
                match (zipf, one) {
                    (_, true) => "one row, always the same",
                    (true, _) => "a row, hot rows more often",
                    _ => "a row",
                }
            ),
            Work::UpdateMany => "changes another column of 100 rows".into(),
            Work::Delete => "deletes random rows, as often as a tenth of the table".into(),
            Work::Insert => "inserts new rows, a tenth of the table".into(),
            Work::ReadWrite { range: 0 } => "two updates, a deletion, an insertion".into(),
            Work::ReadWrite { range } => format!(
                "ten rows by key, four ranges of {range} keys, two updates, a deletion, an insertion"
            ),
        }
    }
}

impl Sum {
    fn words(self) -> &'static str {
        match self {
            Sum::Plain => "",
            Sum::Sum => ", and the sum of a column",
            Sum::Count => ", and their number",
            Sum::Order => ", in the order of a column",
            Sum::Distinct => ", and the different values of a column",
        }
    }
}

/// Reads that run before the writes and after them.
fn reads() -> [(&'static str, Work); 11] {
    let any = |index, fetch| Work::AnyOf { index, fetch };
    let range = |index, fetch| Work::Range { index, fetch };
    let all = |range| Work::ReadOnly { range };
    [
        ("points-covered-pk", any(false, false)),
        ("points-covered-si", any(true, false)),
        ("points-notcovered-pk", any(false, true)),
        ("points-notcovered-si", any(true, true)),
        ("range-covered-pk", range(false, false)),
        ("range-covered-si", range(true, false)),
        ("range-notcovered-pk", range(false, true)),
        ("range-notcovered-si", range(true, true)),
        ("read-only_range=10", all(10)),
        ("read-only_range=100", all(100)),
        ("read-only_range=10000", all(10_000)),
    ]
}

/// Reads that run once.
fn single_reads() -> [(&'static str, Work); 11] {
    let points = |count, hot| Work::Points { count, hot };
    [
        ("hot-points", points(100, true)),
        ("point-query", points(1, false)),
        ("random-points_range=10", points(10, false)),
        ("random-points_range=100", points(100, false)),
        ("random-points_range=1000", points(1000, false)),
        ("read-only-count", Work::Compute(Sum::Count)),
        ("read-only-distinct", Work::Compute(Sum::Distinct)),
        ("read-only-order", Work::Compute(Sum::Order)),
        ("read-only-simple", Work::Compute(Sum::Plain)),
        ("read-only-sum", Work::Compute(Sum::Sum)),
        ("scan", Work::FullScan),
    ]
}

fn writes() -> [(&'static str, Work); 10] {
    let other = |zipf, one| Work::UpdateOther { zipf, one };
    let mixed = |range| Work::ReadWrite { range };
    [
        ("update-inlist", Work::UpdateMany),
        ("update-index", Work::UpdateIndex),
        ("update-nonindex", other(false, false)),
        ("update-one", other(false, true)),
        ("update-zipf", other(true, false)),
        ("write-only", mixed(0)),
        ("read-write_range=10", mixed(10)),
        ("read-write_range=100", mixed(100)),
        ("insert", Work::Insert),
        ("delete", Work::Delete),
    ]
}

/// Names and work, in the order of running: reads, writes, the reads again.
pub fn all() -> Vec<(String, Work)> {
    let named = |(name, work): &(&str, Work)| (name.to_string(), *work);
    let before = |(name, work): &(&str, Work)| (format!("{name}.pre"), *work);
    let mut out: Vec<(String, Work)> = reads().iter().map(before).collect();
    out.extend(single_reads().iter().map(named));
    out.extend(writes().iter().map(named));
    out.extend(reads().iter().map(named));
    out
}

/// State that all threads share.
pub struct Bench {
    rows: u64,
    zipf: Zipf,
    /// Ids that were inserted after the load.
    next: AtomicI64,
}

impl Bench {
    /// A table with this number of rows.
    pub fn new(rows: u64) -> Arc<Bench> {
        Arc::new(Bench {
            rows: rows.max(2),
            zipf: Zipf::new(rows.max(2), 0.8),
            next: AtomicI64::new(rows as i64 + 1),
        })
    }

    fn row(&self, id: i64, rng: &mut Rng, values: &mut ValueSource) -> Row {
        vec![
            Value::Int(id),
            Value::Int(rng.below(self.rows) as i64 + 1),
            Value::Bytes(values.value_of(120).to_vec()),
            Value::Bytes(values.value_of(60).to_vec()),
        ]
    }

    /// Fills the table.
    ///
    /// # Errors
    /// The engine's error.
    pub fn load(self: &Arc<Bench>, engine: &dyn Engine, threads: usize) -> Result<StepFigures> {
        let part = self.rows.div_ceil(threads.max(1) as u64);
        let pace = Pace {
            threads,
            ..Pace::default()
        };
        drive(engine, "load", pace, &["batch"], &|number| {
            let from = number as u64 * part + 1;
            Box::new(Loader {
                bench: Arc::clone(self),
                next: from as i64,
                end: (from + part).min(self.rows + 1) as i64,
                rng: Rng::new(number as u64 + 1),
                values: ValueSource::new(ValueSizes::Fixed(8), 0.5),
            })
        })
    }

    /// Runs one microbenchmark.
    ///
    /// # Errors
    /// The engine's error.
    pub fn run(
        self: &Arc<Bench>,
        engine: &dyn Engine,
        (name, work): (&str, Work),
        pace: Pace,
    ) -> Result<StepFigures> {
        drive(engine, name, pace, &["transaction"], &|number| {
            Box::new(Client {
                bench: Arc::clone(self),
                work,
                rng: Rng::new(100 + number as u64),
                values: ValueSource::new(ValueSizes::Fixed(8), 0.5),
            })
        })
    }
}

struct Loader {
    bench: Arc<Bench>,
    next: i64,
    end: i64,
    rng: Rng,
    values: ValueSource,
}

impl Worker for Loader {
    fn operation(&mut self, session: &mut dyn Session) -> Result<Option<OperationResult>> {
        if self.next >= self.end {
            return Ok(None);
        }
        let end = (self.next + 1000).min(self.end);
        let rows: Vec<Row> = (self.next..end)
            .map(|id| self.bench.row(id, &mut self.rng, &mut self.values))
            .collect();
        self.next = end;
        let conflicts = retry(session, Access::Write, &mut |inside| {
            for row in &rows {
                inside.insert(0, row)?;
            }
            Ok(())
        })?;
        Ok(Some(OperationResult {
            wrote: rows.iter().map(|row| size(row)).sum(),
            conflicts,
            ..OperationResult::default()
        }))
    }
}

struct Client {
    bench: Arc<Bench>,
    work: Work,
    rng: Rng,
    values: ValueSource,
}

/// The rows that a transaction saw.
#[derive(Default)]
struct RowTotals {
    rows: u64,
    bytes: u64,
    wrote: u64,
    /// Keeps the compiler from leaving computations out.
    sum: i64,
}

impl RowTotals {
    fn scan(&mut self, rows: &mut dyn Rows, scan: &Scan) -> Outcome<()> {
        self.rows += rows.scan(scan, &mut |row| {
            self.bytes += size(row);
            true
        })?;
        Ok(())
    }

    fn compute(&mut self, rows: &mut dyn Rows, scan: &Scan, what: Sum) -> Outcome<()> {
        let mut kept: Vec<Vec<u8>> = Vec::new();
        self.rows += rows.scan(scan, &mut |row| {
            self.bytes += size(row);
            match what {
                Sum::Plain => {}
                Sum::Count => self.sum += 1,
                Sum::Sum => self.sum += row[K].int(),
                Sum::Order | Sum::Distinct => kept.push(row[C].bytes().to_vec()),
            }
            true
        })?;
        kept.sort_unstable();
        if what == Sum::Distinct {
            kept.dedup();
        }
        self.sum += kept.len() as i64;
        Ok(())
    }
}

/// A range of this number of keys from `from` on.
fn keys(from: i64, count: u64) -> Scan {
    Scan {
        low: Some(Value::Int(from)),
        high: Some(Value::Int(from + count as i64 - 1)),
        ..Scan::default()
    }
}

impl Client {
    fn id(&mut self) -> i64 {
        self.rng.below(self.bench.rows) as i64 + 1
    }

    fn ids(&mut self, count: u64, hot: bool) -> Vec<Value> {
        let pick = |i: u64, client: &mut Client| {
            if hot {
                (i * 37 % client.bench.rows) as i64 + 1
            } else {
                client.id()
            }
        };
        (0..count).map(|i| Value::Int(pick(i, self))).collect()
    }

    fn read(&mut self, session: &mut dyn Session) -> Result<Option<(RowTotals, u64)>> {
        let mut asks: Vec<(Option<AnyOf>, Scan, Sum)> = Vec::new();
        let mut any = |any: AnyOf| asks.push((Some(any), Scan::default(), Sum::Plain));
        match self.work {
            Work::Points { count, hot } => {
                let values = self.ids(count, hot);
                any(AnyOf {
                    values,
                    fetch: true,
                    ..AnyOf::default()
                });
            }
            Work::AnyOf { index, fetch } => {
                let (values, index) = (self.ids(100, false), index.then_some(0));
                any(AnyOf {
                    values,
                    index,
                    fetch,
                    table: 0,
                });
            }
            Work::Range { index, fetch } => {
                let scan = keys(self.id(), 100);
                let scan = Scan {
                    index: index.then_some(0),
                    fetch,
                    ..scan
                };
                asks.push((None, scan, Sum::Plain));
            }
            Work::Compute(sum) => asks.push((None, keys(self.id(), 100), sum)),
            Work::ReadOnly { range } => {
                asks = self.mixed(range);
            }
            Work::FullScan => asks.push((None, Scan::default(), Sum::Count)),
            _ => return Ok(None),
        }
        let mut seen = RowTotals::default();
        let conflicts = retry(session, Access::Read, &mut |rows| {
            seen = RowTotals::default();
            ask(rows, &asks, &mut seen)
        })?;
        Ok(Some((seen, conflicts)))
    }

    /// Ten rows by key and four ranges.
    fn mixed(&mut self, range: u64) -> Vec<(Option<AnyOf>, Scan, Sum)> {
        let mut asks = Vec::new();
        for _ in 0..10 {
            let values = self.ids(1, false);
            let any = AnyOf {
                values,
                fetch: true,
                ..AnyOf::default()
            };
            asks.push((Some(any), Scan::default(), Sum::Plain));
        }
        for sum in [Sum::Plain, Sum::Sum, Sum::Order, Sum::Distinct] {
            asks.push((None, keys(self.id(), range), sum));
        }
        asks
    }

    fn change(&mut self, session: &mut dyn Session) -> Result<(RowTotals, u64)> {
        let c = Value::Bytes(self.values.value_of(120).to_vec());
        let set_c = [(C, c)];
        let mut wrote = 0;
        let conflicts = match self.work {
            Work::UpdateIndex => {
                let (id, k) = (self.id(), self.id());
                let set = [(K, Value::Int(k))];
                retry(session, Access::Single, &mut |rows| {
                    wrote = 16 * u64::from(rows.update(0, &[Value::Int(id)], &set)?);
                    Ok(())
                })?
            }
            Work::UpdateOther { zipf, one } => {
                let id = match (zipf, one) {
                    (true, _) => self.bench.zipf.draw(&mut self.rng) as i64 + 1,
                    (_, true) => 1,
                    _ => self.id(),
                };
                retry(session, Access::Single, &mut |rows| {
                    wrote = 128 * u64::from(rows.update(0, &[Value::Int(id)], &set_c)?);
                    Ok(())
                })?
            }
            Work::UpdateMany => {
                let mut ids = self.ids(100, false);
                // In order, so that two of them do not wait for each other.
                ids.sort();
                ids.dedup();
                retry(session, Access::Write, &mut |rows| {
                    wrote = 0;
                    for id in &ids {
                        wrote +=
                            128 * u64::from(rows.update(0, std::slice::from_ref(id), &set_c)?);
                    }
                    Ok(())
                })?
            }
            Work::Delete => {
                let id = self.id();
                retry(session, Access::Single, &mut |rows| {
                    wrote = 8 * u64::from(rows.delete(0, &[Value::Int(id)])?);
                    Ok(())
                })?
            }
            Work::Insert => {
                let id = self.bench.next.fetch_add(1, Ordering::Relaxed);
                let row = self.bench.clone().row(id, &mut self.rng, &mut self.values);
                wrote = size(&row);
                retry(session, Access::Single, &mut |rows| {
                    rows.insert(0, &row)?;
                    Ok(())
                })?
            }
            Work::ReadWrite { range } => return self.read_write(session, range),
            _ => return Err(crate::Failure::new("a read is no change")),
        };
        let seen = RowTotals {
            wrote,
            ..RowTotals::default()
        };
        Ok((seen, conflicts))
    }

    fn read_write(&mut self, session: &mut dyn Session, range: u64) -> Result<(RowTotals, u64)> {
        let asks = if range > 0 {
            self.mixed(range)
        } else {
            Vec::new()
        };
        let c = Value::Bytes(self.values.value_of(120).to_vec());
        let (first, second, k) = (self.id(), self.id(), self.id());
        let again = self.id();
        let row = self
            .bench
            .clone()
            .row(again, &mut self.rng, &mut self.values);
        let mut seen = RowTotals::default();
        let conflicts = retry(session, Access::Write, &mut |rows| {
            seen = RowTotals::default();
            ask(rows, &asks, &mut seen)?;
            rows.update(0, &[Value::Int(first)], &[(K, Value::Int(k))])?;
            rows.update(0, &[Value::Int(second)], &[(C, c.clone())])?;
            rows.delete(0, &row[..1])?;
            if !rows.insert(0, &row)? {
                return Err(super::engine::TransactionError::Conflict);
            }
            seen.wrote = 16 + 128 + 8 + size(&row);
            Ok(())
        })?;
        Ok((seen, conflicts))
    }
}

fn ask(
    rows: &mut dyn Rows,
    asks: &[(Option<AnyOf>, Scan, Sum)],
    seen: &mut RowTotals,
) -> Outcome<()> {
    for (any, scan, sum) in asks {
        match any {
            Some(any) => {
                seen.rows += rows.any_of(any, &mut |row| {
                    seen.bytes += size(row);
                    true
                })?;
            }
            None if *sum == Sum::Plain => seen.scan(rows, scan)?,
            None => seen.compute(rows, scan, *sum)?,
        }
    }
    Ok(())
}

impl Worker for Client {
    fn operation(&mut self, session: &mut dyn Session) -> Result<Option<OperationResult>> {
        let (seen, conflicts) = match self.read(session)? {
            Some(read) => read,
            None => self.change(session)?,
        };
        std::hint::black_box(seen.sum);
        Ok(Some(OperationResult {
            kind: 0,
            wrote: seen.wrote,
            read: seen.bytes,
            rows: seen.rows,
            conflicts,
        }))
    }
}

/// Checks that table and index have the same rows; returns the differences, and the live bytes.
///
/// # Errors
/// The engine's error.
pub fn verify(engine: &dyn Engine) -> Result<(Vec<String>, u64)> {
    let mut session = engine.session()?;
    let mut seen = [(0u64, 0i64); 2];
    let mut live = 0;
    for (at, index) in [None, Some(0)].into_iter().enumerate() {
        let scan = Scan {
            index,
            ..Scan::default()
        };
        retry(&mut *session, Access::Read, &mut |rows| {
            let mut sum = 0i64;
            let count = rows.scan(&scan, &mut |row| {
                if index.is_none() {
                    live += size(row);
                }
                sum = sum.wrapping_add(row[0].int().wrapping_mul(31).wrapping_add(row[K].int()));
                true
            })?;
            seen[at] = (count, sum);
            Ok(())
        })?;
    }
    let mut wrong = Vec::new();
    if seen[0] != seen[1] {
        wrong.push(format!(
            "{} rows, {} entries, or other values",
            seen[0].0, seen[1].0
        ));
    }
    Ok((wrong, live))
}
