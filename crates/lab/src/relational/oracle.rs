//! The model: rows in a `BTreeMap`, indexes by sorting all rows. Slow, and obviously right.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::engine::{
    Access, Body, Durability, Engine, EngineInfo, Outcome, Rows, Scan, Session, Shape,
    TransactionError, Visit,
};
use super::row::{Row, Schema, Value};
use crate::{Failure, Result};

type Tables = Vec<BTreeMap<Vec<Value>, Row>>;

/// Tables in memory; transactions one after the other.
#[derive(Debug, Clone)]
pub struct Oracle {
    schema: Arc<Schema>,
    tables: Arc<Mutex<Tables>>,
}

impl Oracle {
    /// Empty tables.
    pub fn new(schema: Schema) -> Oracle {
        let tables = vec![BTreeMap::new(); schema.tables.len()];
        Oracle {
            schema: Arc::new(schema),
            tables: Arc::new(Mutex::new(tables)),
        }
    }
}

impl Engine for Oracle {
    fn facts(&self) -> EngineInfo {
        EngineInfo {
            name: "model".into(),
            options: BTreeMap::new(),
            durability: format!("none, whatever {:?} asks for", Durability::Process),
            shape: Shape::CopyOnWrite { page: 4096.0 },
        }
    }

    fn session(&self) -> Result<Box<dyn Session>> {
        Ok(Box::new(self.clone()))
    }

    fn build_index(&self, _table: usize, _index: usize) -> Result<()> {
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        Ok(())
    }

    fn disk_bytes(&self) -> u64 {
        0
    }
}

impl Session for Oracle {
    fn transact(&mut self, _access: Access, body: &mut Body<'_>) -> Outcome<()> {
        let poisoned =
            |_| TransactionError::Failed(Failure::new("a thread with the model panicked"));
        let mut tables = self.tables.lock().map_err(poisoned)?;
        // Changed in place, and put back when the transaction fails.
        let saved = tables.clone();
        let mut rows = Work {
            schema: &self.schema,
            tables: &mut tables,
        };
        let outcome = body(&mut rows);
        if outcome.is_err() {
            *tables = saved;
        }
        outcome
    }
}

struct Work<'a> {
    schema: &'a Schema,
    tables: &'a mut Tables,
}

impl Rows for Work<'_> {
    fn insert(&mut self, table: usize, row: &[Value]) -> Outcome<bool> {
        let key = row[..self.schema.tables[table].key].to_vec();
        if self.tables[table].contains_key(&key) {
            return Ok(false);
        }
        self.tables[table].insert(key, row.to_vec());
        Ok(true)
    }

    fn update(&mut self, table: usize, key: &[Value], set: &[(usize, Value)]) -> Outcome<bool> {
        let Some(row) = self.tables[table].get_mut(key) else {
            return Ok(false);
        };
        for (column, value) in set {
            row[*column] = value.clone();
        }
        Ok(true)
    }

    fn add(&mut self, table: usize, otherwise: &[Value], column: usize, by: i64) -> Outcome<()> {
        let key = otherwise[..self.schema.tables[table].key].to_vec();
        match self.tables[table].get_mut(&key) {
            Some(row) => row[column] = Value::Int(row[column].int().wrapping_add(by)),
            None => {
                self.tables[table].insert(key, otherwise.to_vec());
            }
        }
        Ok(())
    }

    fn delete(&mut self, table: usize, key: &[Value]) -> Outcome<bool> {
        Ok(self.tables[table].remove(key).is_some())
    }

    fn get(&mut self, table: usize, key: &[Value], _lock: bool) -> Outcome<Option<Row>> {
        Ok(self.tables[table].get(key).cloned())
    }

    fn scan(&mut self, scan: &Scan, visit: &mut Visit<'_>) -> Outcome<u64> {
        let table = &self.schema.tables[scan.table];
        let order = table.order(scan.index);
        let next = order.get(scan.prefix.len()).copied();
        let fits = |row: &&Row| {
            let prefix = order.iter().zip(&scan.prefix);
            let low = scan.low.as_ref().zip(next);
            let high = scan.high.as_ref().zip(next);
            prefix
                .into_iter()
                .all(|(column, value)| row[*column] == *value)
                && low.is_none_or(|(low, next)| row[next] >= *low)
                && high.is_none_or(|(high, next)| row[next] <= *high)
        };
        let mut rows: Vec<&Row> = self.tables[scan.table].values().filter(fits).collect();
        let place = |row: &Row| -> Vec<Value> { order.iter().map(|c| row[*c].clone()).collect() };
        rows.sort_by_key(|row| place(row));
        if scan.descending {
            rows.reverse();
        }
        let covered = table.covered(scan.index);
        let mut seen = 0;
        for row in rows {
            let mut row = row.clone();
            if !scan.fetch {
                for (column, value) in row.iter_mut().enumerate() {
                    if !covered.contains(&column) {
                        *value = Value::Absent;
                    }
                }
            }
            seen += 1;
            if !visit(&row) || (scan.limit > 0 && seen == scan.limit) {
                break;
            }
        }
        Ok(seen)
    }
}
