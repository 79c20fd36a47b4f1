//! The Insert Benchmark: inserts with secondary indexes, then queries beside paced inserts.
//!
//! | step | what |
//! |---|---|
//! | `l.i0` | loads in the order of the primary key, without secondary indexes |
//! | `l.x` | makes the three secondary indexes |
//! | `l.i1` | inserts, and deletes the oldest rows at the same rate, 50 rows a commit |
//! | `l.i2` | the same with 5 rows a commit |
//! | `qr100`, `qr500`, `qr1000` | short index-only scans beside 100, 500, 1000 inserts and deletes a second |
//! | `qp100`, `qp500`, `qp1000` | point queries by the primary key beside the same |
//!
//! The columns and indexes are those of iibench. At the end the rows are counted, and each index
//! has to have as many entries.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use super::drive::{OperationResult, Pace, StepFigures, Worker, drive};
use super::engine::{Access, Engine, Scan, Session, retry};
use super::row::{ColumnType, Index, Row, Schema, Table, Value, size};
use crate::generate::{Rng, ValueSizes, ValueSource};
use crate::{Result, interrupt};

// Columns.
const TIME: usize = 1;
const REGISTER: usize = 2;
const CUSTOMER: usize = 3;
const PRICE: usize = 5;

/// The table: a purchase.
pub fn schema() -> Schema {
    use ColumnType::{Bytes, Int};
    let index = |name, columns: &[usize]| Index {
        name,
        columns: columns.to_vec(),
        carried: Vec::new(),
        later: true,
    };
    Schema {
        tables: vec![Table {
            name: "purchases",
            columns: vec![
                ("transactionid", Int),
                ("dateandtime", Int),
                ("cashregisterid", Int),
                ("customerid", Int),
                ("productid", Int),
                ("price", Int),
                ("data", Bytes(4000)),
            ],
            key: 1,
            indexes: vec![
                index("marketsegment", &[PRICE, CUSTOMER]),
                index("registersegment", &[REGISTER, PRICE, CUSTOMER]),
                index("pdc", &[PRICE, TIME, CUSTOMER]),
            ],
        }],
    }
}

const REGISTERS: u64 = 1000;
const CUSTOMERS: u64 = 100_000;
const PRODUCTS: u64 = 10_000;
const PRICES: u64 = 500_000;
/// Rows of a short scan, as iibench has it.
const SCAN: u64 = 10;

/// State that all threads share: the rows that there are.
pub struct Bench {
    /// The next row to insert.
    next: AtomicI64,
    /// The oldest row that is left.
    oldest: AtomicI64,
    data: usize,
}

impl Bench {
    /// An empty table whose rows have this number of bytes of data.
    pub fn new(data: usize) -> Arc<Bench> {
        Arc::new(Bench {
            next: AtomicI64::new(1),
            oldest: AtomicI64::new(1),
            data,
        })
    }

    /// Rows that there should be.
    pub fn rows(&self) -> u64 {
        let rows = self.next.load(Ordering::SeqCst) - self.oldest.load(Ordering::SeqCst);
        rows.unsigned_abs()
    }

    fn row(&self, id: i64, rng: &mut Rng, values: &mut ValueSource) -> Row {
        let mut below = |bound| Value::Int(rng.below(bound) as i64);
        vec![
            Value::Int(id),
            Value::Int(id),
            below(REGISTERS),
            below(CUSTOMERS),
            below(PRODUCTS),
            below(PRICES),
            Value::Bytes(values.value_of(self.data).to_vec()),
        ]
    }
}

/// Inserts, and deletes as many of the oldest.
struct Writer {
    bench: Arc<Bench>,
    rng: Rng,
    values: ValueSource,
    batch: u64,
    deletes: bool,
    /// Rows that are left to insert, of all writers.
    left: Arc<AtomicI64>,
}

impl Writer {
    fn new(
        bench: &Arc<Bench>,
        seed: u64,
        batch: u64,
        deletes: bool,
        left: &Arc<AtomicI64>,
    ) -> Self {
        Writer {
            bench: Arc::clone(bench),
            rng: Rng::new(seed),
            values: ValueSource::new(ValueSizes::Fixed(8), 0.5),
            batch,
            deletes,
            left: Arc::clone(left),
        }
    }

    /// One commit.
    fn commit(&mut self, session: &mut dyn Session) -> Result<Option<OperationResult>> {
        let batch = self.batch as i64;
        if self.left.fetch_sub(batch, Ordering::Relaxed) <= 0 {
            return Ok(None);
        }
        let from = self.bench.next.fetch_add(batch, Ordering::SeqCst);
        let rows: Vec<Row> = (from..from + batch)
            .map(|id| self.bench.row(id, &mut self.rng, &mut self.values))
            .collect();
        let gone = if self.deletes {
            self.bench.oldest.fetch_add(batch, Ordering::SeqCst)
        } else {
            0
        };
        let mut conflicts = retry(session, Access::Write, &mut |inside| {
            for row in &rows {
                if !inside.insert(0, row)? {
                    return Err(crate::Failure::new("a row is there already").into());
                }
            }
            Ok(())
        })?;
        if self.deletes {
            conflicts += retry(session, Access::Write, &mut |inside| {
                for id in gone..gone + batch {
                    if !inside.delete(0, &[Value::Int(id)])? {
                        return Err(super::engine::TransactionError::Conflict);
                    }
                }
                Ok(())
            })?;
        }
        let deleted = if self.deletes { 8 * self.batch } else { 0 };
        Ok(Some(OperationResult {
            wrote: rows.iter().map(|row| size(row)).sum::<u64>() + deleted,
            conflicts,
            ..OperationResult::default()
        }))
    }
}

impl Worker for Writer {
    fn operation(&mut self, session: &mut dyn Session) -> Result<Option<OperationResult>> {
        self.commit(session)
    }
}

/// Inserts `rows` in commits of `batch`.
///
/// # Errors
/// The engine's error.
pub fn insert(
    bench: &Arc<Bench>,
    engine: &dyn Engine,
    name: &str,
    (rows, batch): (u64, u64),
    threads: usize,
    deletes: bool,
) -> Result<StepFigures> {
    let left = Arc::new(AtomicI64::new(i64::try_from(rows).unwrap_or(i64::MAX)));
    let pace = Pace {
        threads,
        ..Pace::default()
    };
    drive(engine, name, pace, &["commit"], &|number| {
        Box::new(Writer::new(bench, number as u64 + 1, batch, deletes, &left))
    })
}

/// Makes the secondary indexes, and says how long that took.
///
/// # Errors
/// The engine's error.
pub fn build_indexes(engine: &dyn Engine) -> Result<f64> {
    let begin = Instant::now();
    for index in 0..schema().tables[0].indexes.len() {
        engine.build_index(0, index)?;
    }
    engine.settle()?;
    Ok(begin.elapsed().as_secs_f64())
}

/// Which query a step asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// Short scans of the secondary indexes, one after the other.
    Range,
    /// Rows by the primary key.
    Point,
}

struct Reader {
    bench: Arc<Bench>,
    rng: Rng,
    query: Query,
    turn: usize,
}

impl Reader {
    fn scan(&mut self) -> Scan {
        let price = Value::Int(self.rng.below(PRICES) as i64);
        let index = self.turn % 3;
        self.turn += 1;
        let prefix = match index {
            1 => vec![Value::Int(self.rng.below(REGISTERS) as i64)],
            _ => Vec::new(),
        };
        Scan {
            index: Some(index),
            prefix,
            low: Some(price),
            limit: SCAN,
            ..Scan::default()
        }
    }
}

impl Worker for Reader {
    fn operation(&mut self, session: &mut dyn Session) -> Result<Option<OperationResult>> {
        let mut did = OperationResult::default();
        if self.query == Query::Range {
            let scan = self.scan();
            did.conflicts = retry(session, Access::Read, &mut |rows| {
                did.read = 0;
                did.rows = rows.scan(&scan, &mut |row| {
                    did.read += size(row);
                    true
                })?;
                Ok(())
            })?;
            return Ok(Some(did));
        }
        let oldest = self.bench.oldest.load(Ordering::Relaxed);
        let rows = self.bench.rows().max(1);
        let id = Value::Int(oldest + self.rng.below(rows) as i64);
        did.conflicts = retry(session, Access::Read, &mut |rows| {
            let row = rows.get(0, std::slice::from_ref(&id), false)?;
            did.rows = u64::from(row.is_some());
            did.read = row.map_or(0, |row| size(&row));
            Ok(())
        })?;
        Ok(Some(did))
    }
}

/// Figures of a step of queries: the queries, and the inserts beside them.
pub struct QueryFigures {
    /// The queries.
    pub step: StepFigures,
    /// Inserts a second that were asked for.
    pub asked: f64,
    /// Inserts a second that were done.
    pub reached: f64,
}

/// Queries with `pace` beside `rate` inserts and as many deletes a second.
///
/// # Errors
/// The engine's error.
pub fn query(
    bench: &Arc<Bench>,
    engine: &dyn Engine,
    name: &str,
    query: Query,
    rate: u64,
    pace: Pace,
) -> Result<QueryFigures> {
    let over = std::sync::atomic::AtomicBool::new(false);
    let mut background = engine.session()?;
    let (step, inserted) = std::thread::scope(|scope| {
        let over = &over;
        let writer = scope.spawn(move || -> Result<(u64, f64)> {
            let left = Arc::new(AtomicI64::new(i64::MAX / 2));
            // Ten commits a second, so that the rate is even.
            let batch = (rate / 10).max(1);
            let mut writer = Writer::new(bench, 77, batch, true, &left);
            let begin = Instant::now();
            let mut done = 0;
            while !over.load(Ordering::Relaxed) && !interrupt::stopped() {
                writer.commit(&mut *background)?;
                done += batch;
                let due = done as f64 / rate as f64;
                let ahead = due - begin.elapsed().as_secs_f64();
                if ahead > 0.0 {
                    std::thread::sleep(std::time::Duration::from_secs_f64(ahead));
                }
            }
            Ok((done, begin.elapsed().as_secs_f64()))
        });
        let step = drive(engine, name, pace, &["query"], &|number| {
            Box::new(Reader {
                bench: Arc::clone(bench),
                rng: Rng::new(1000 + number as u64),
                query,
                turn: number,
            })
        });
        over.store(true, Ordering::Relaxed);
        let joined = writer.join();
        let inserted = joined.unwrap_or_else(|_| Err(crate::Failure::new("the writer panicked")));
        (step, inserted)
    });
    let (done, seconds) = inserted?;
    Ok(QueryFigures {
        step: step?,
        asked: rate as f64,
        reached: done as f64 / seconds.max(1e-9),
    })
}

/// Counts rows and entries, and says what is wrong, and how many bytes are live.
///
/// # Errors
/// The engine's error.
pub fn verify(bench: &Bench, engine: &dyn Engine) -> Result<(Vec<String>, u64)> {
    let mut session = engine.session()?;
    let mut wrong = Vec::new();
    let mut live = 0;
    let indexes = schema().tables[0].indexes.len();
    let mut counted = |index: Option<usize>| -> Result<u64> {
        let scan = Scan {
            index,
            ..Scan::default()
        };
        let mut seen = 0;
        retry(&mut *session, Access::Read, &mut |rows| {
            seen = rows.scan(&scan, &mut |row| {
                if index.is_none() {
                    live += size(row);
                }
                true
            })?;
            Ok(())
        })?;
        Ok(seen)
    };
    let (rows, wanted) = (counted(None)?, bench.rows());
    if rows != wanted {
        wrong.push(format!("{rows} rows instead of {wanted}"));
    }
    for index in 0..indexes {
        let entries = counted(Some(index))?;
        if entries != wanted {
            wrong.push(format!(
                "index {index}: {entries} entries instead of {wanted}"
            ));
        }
    }
    Ok((wrong, live))
}
