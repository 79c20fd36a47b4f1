//! Commits on one row: how many a second, and how many while 99 of 100 stay below a limit.
//!
//! Every transaction adds 1 to the same row, so that all of them wait for each other. A closed loop
//! gives the most that goes; then rates are tried, by halving, for the highest at which the 99th
//! percentile from the intended start stays within the objective. The row is right at the end.

use super::drive::{OperationResult, Pace, StepFigures, Worker, drive};
use super::engine::{Access, Engine, Session, retry};
use super::row::{ColumnType, Schema, Table, Value};
use crate::{Failure, Result, interrupt};

/// One table of counters.
pub fn schema() -> Schema {
    Schema {
        tables: vec![Table {
            name: "counters",
            columns: vec![
                ("id", ColumnType::Int),
                ("value", ColumnType::Int),
                ("pad", ColumnType::Bytes(100)),
            ],
            key: 1,
            indexes: Vec::new(),
        }],
    }
}

/// Rows beside the hot one, so that the table is not empty around it.
const ROWS: i64 = 1000;
const HOT: i64 = ROWS / 2;

/// Makes the rows.
///
/// # Errors
/// The engine's error.
pub fn load(engine: &dyn Engine) -> Result<()> {
    let mut session = engine.session()?;
    retry(&mut *session, Access::Write, &mut |rows| {
        for id in 0..ROWS {
            let row = [Value::Int(id), Value::Int(0), Value::Bytes(vec![b'x'; 100])];
            rows.insert(0, &row)?;
        }
        Ok(())
    })?;
    engine.settle()
}

struct IncrementWorker;

impl Worker for IncrementWorker {
    fn operation(&mut self, session: &mut dyn Session) -> Result<Option<OperationResult>> {
        let row = [
            Value::Int(HOT),
            Value::Int(1),
            Value::Bytes(vec![b'x'; 100]),
        ];
        let conflicts = retry(session, Access::Single, &mut |rows| rows.add(0, &row, 1, 1))?;
        Ok(Some(OperationResult {
            wrote: 8,
            conflicts,
            ..OperationResult::default()
        }))
    }
}

/// Adds to the hot row at a pace.
///
/// # Errors
/// The engine's error.
pub fn run(engine: &dyn Engine, name: &str, pace: Pace) -> Result<StepFigures> {
    drive(engine, name, pace, &["commit"], &|_| {
        Box::new(IncrementWorker)
    })
}

/// The number in the hot row.
///
/// # Errors
/// The engine's error, or that the row is gone.
pub fn value(engine: &dyn Engine) -> Result<i64> {
    let mut session = engine.session()?;
    let mut found = None;
    retry(&mut *session, Access::Read, &mut |rows| {
        found = rows.get(0, &[Value::Int(HOT)], false)?;
        Ok(())
    })?;
    let row = found.ok_or_else(|| Failure::new("the hot row is gone"))?;
    Ok(row[1].int())
}

/// Parts of the closed loop's rate at which the curve of latencies is taken.
const PARTS: [f64; 8] = [0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 1.0];

/// Rates with the 99th percentile of each in microseconds, from the intended start.
pub type Curve = Vec<(f64, u64)>;

/// Latencies at rising parts of `most`, and all commits. A rate that was missed has the rate that
/// was reached.
///
/// # Errors
/// The engine's error.
pub fn curve(engine: &dyn Engine, pace: Pace, most: f64) -> Result<(Curve, u64)> {
    let (mut curve, mut done) = (Vec::new(), 0);
    for part in PARTS {
        if interrupt::stopped() {
            break;
        }
        let rate = (most * part).max(1.0);
        let step = run(engine, "curve", Pace { rate, ..pace })?;
        done += step.operations;
        if let Some(all) = step.overall().filter(|all| !all.is_empty()) {
            curve.push((step.rate(), all.value_at_quantile(0.99)));
        }
    }
    Ok((curve, done))
}

/// The highest rate of a curve whose 99th percentile lies within a bound.
pub fn rate_at(curve: &[(f64, u64)], bound: u64) -> Option<f64> {
    let within = curve.iter().filter(|(_, p99)| *p99 <= bound);
    within.map(|(rate, _)| *rate).reduce(f64::max)
}

/// The highest rate at which the 99th percentile stays within `objective` microseconds, between 5 %
/// of `most` and all of it, and the steps that were tried.
///
/// # Errors
/// The engine's error.
pub fn rate_within(
    engine: &dyn Engine,
    pace: Pace,
    most: f64,
    objective: u64,
    tries: u32,
) -> Result<(Option<StepFigures>, u64)> {
    let (mut low, mut high) = (0.0, 1.0);
    let (mut best, mut done) = (None, 0);
    let mut part: f64 = 0.8;
    for _ in 0..tries {
        if interrupt::stopped() {
            break;
        }
        let rate = (most * part).max(1.0);
        let step = run(engine, "objective", Pace { rate, ..pace })?;
        done += step.operations;
        let p99 = step
            .overall()
            .map_or(u64::MAX, |all| all.value_at_quantile(0.99));
        if p99 <= objective && !step.missed() {
            low = part;
            best = Some(step);
        } else {
            high = part;
        }
        part = 0.5 * (low + high);
        if part < 0.05 {
            break;
        }
    }
    Ok((best, done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_at_a_bound_is_the_highest_that_keeps_it() {
        let curve = [(100.0, 50), (200.0, 80), (300.0, 400), (250.0, 90_000)];
        assert_eq!(rate_at(&curve, 49), None);
        assert_eq!(rate_at(&curve, 50), Some(100.0));
        assert_eq!(rate_at(&curve, 399), Some(200.0));
        assert_eq!(rate_at(&curve, 1_000_000), Some(300.0));
    }
}
