//! Rows and indexes over an ordered key-value store with transactions.
//!
//! One layer for every such store, so that all of them do the same work. A change reads the row
//! under a lock, then writes the row and those entries of indexes that differ.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::encode::{after, decode, entry_key, entry_value, push_key, row_key, row_value, space};
use super::engine::{
    Access, Body, Engine, EngineInfo, EnginePlan, Outcome, Rows, Scan, Session, TransactionError,
    Visit,
};
use super::row::{Row, Schema, Table, Value};
use crate::process::directory_bytes;
use crate::{Failure, Result};

/// Looks at a pair; `false` ends the scan.
pub type VisitPair<'a> = dyn FnMut(&[u8], &[u8]) -> Outcome<bool> + 'a;

/// Pairs within a transaction. Reads see the transaction's own changes.
pub trait Pairs {
    /// The value at a key. With `lock` nobody else changes it before the transaction ends, whether
    /// it exists or not.
    ///
    /// # Errors
    /// A conflict, or what the store says.
    fn get(&mut self, key: &[u8], lock: bool) -> Outcome<Option<Vec<u8>>>;

    /// Writes a pair.
    ///
    /// # Errors
    /// A conflict, what the store says, or that the transaction only reads.
    fn put(&mut self, _key: &[u8], _value: &[u8]) -> Outcome<()> {
        Err(read_only())
    }

    /// Deletes a pair.
    ///
    /// # Errors
    /// A conflict, what the store says, or that the transaction only reads.
    fn delete(&mut self, _key: &[u8]) -> Outcome<()> {
        Err(read_only())
    }

    /// Visits the pairs from `low` on, before `high`, in order or in the reverse of it.
    ///
    /// # Errors
    /// The error of the store or of `visit`.
    fn scan(
        &mut self,
        low: &[u8],
        high: &[u8],
        descending: bool,
        visit: &mut VisitPair<'_>,
    ) -> Outcome<()>;
}

fn read_only() -> TransactionError {
    TransactionError::Failed(Failure::new("a change in a transaction that only reads"))
}

/// The body of a transaction over pairs.
pub type PairsBody<'a> = dyn FnMut(&mut dyn Pairs) -> Outcome<()> + 'a;

/// One thread's view of a store.
pub trait PairsSession: Send {
    /// Runs `body` in a transaction and commits it.
    ///
    /// # Errors
    /// A conflict, or what the store or `body` says; the transaction is rolled back then.
    fn transact(&mut self, access: Access, body: &mut PairsBody<'_>) -> Outcome<()>;
}

/// An open key-value store.
pub trait PairsEngine: Send + Sync {
    /// A session of the calling thread.
    ///
    /// # Errors
    /// The store's error.
    fn session(&self) -> Result<Box<dyn PairsSession>>;

    /// Ends background work.
    ///
    /// # Errors
    /// The store's error.
    fn settle(&self) -> Result<()>;
}

/// The tables, and which of their indexes exist.
struct Catalogue {
    schema: Schema,
    built: Vec<Vec<AtomicBool>>,
}

impl Catalogue {
    fn built(&self, table: usize) -> impl Iterator<Item = usize> {
        let built = self.built[table].iter().enumerate();
        built
            .filter(|(_, is)| is.load(Ordering::Acquire))
            .map(|(index, _)| index)
    }
}

/// Rows over a store.
pub struct RowEngine<E> {
    store: E,
    catalogue: Arc<Catalogue>,
    facts: EngineInfo,
    /// Where all of its files are.
    path: PathBuf,
}

impl<E: PairsEngine> RowEngine<E> {
    /// Rows of a plan's schema over `store`, whose files are below `path`.
    pub fn new(store: E, plan: &EnginePlan, facts: EngineInfo, path: PathBuf) -> RowEngine<E> {
        let schema = plan.schema.clone();
        let built = |table: &Table| {
            let made = table
                .indexes
                .iter()
                .map(|index| AtomicBool::new(!index.later));
            made.collect()
        };
        let built = schema.tables.iter().map(built).collect();
        let catalogue = Arc::new(Catalogue { schema, built });
        RowEngine {
            store,
            catalogue,
            facts,
            path,
        }
    }

    /// Returns the same rows over a store that is made of this one.
    #[cfg(test)]
    pub(crate) fn over<F>(self, make: impl FnOnce(E) -> F) -> RowEngine<F> {
        RowEngine {
            store: make(self.store),
            catalogue: self.catalogue,
            facts: self.facts,
            path: self.path,
        }
    }
}

impl<E: PairsEngine> Engine for RowEngine<E> {
    fn facts(&self) -> EngineInfo {
        self.facts.clone()
    }

    fn session(&self) -> Result<Box<dyn Session>> {
        Ok(Box::new(RowSession {
            store: self.store.session()?,
            catalogue: Arc::clone(&self.catalogue),
        }))
    }

    fn build_index(&self, table: usize, index: usize) -> Result<()> {
        const BATCH: usize = 1000;
        let of = &self.catalogue.schema.tables[table];
        let mut session = self.store.session()?;
        let high = after(&space(table, None));
        let mut from = space(table, None).to_vec();
        loop {
            let mut batch: Vec<Row> = Vec::new();
            let mut last = Vec::new();
            let read = session.transact(Access::Read, &mut |pairs| {
                batch.clear();
                pairs.scan(&from, &high, false, &mut |key, value| {
                    batch.push(decode(of, None, key, value)?);
                    last = key.to_vec();
                    Ok(batch.len() < BATCH)
                })
            });
            super::engine::settled(read)?;
            let write = session.transact(Access::Write, &mut |pairs| {
                for row in &batch {
                    let key = entry_key(of, table, index, row);
                    pairs.put(&key, &entry_value(of, index, row))?;
                }
                Ok(())
            });
            super::engine::settled(write)?;
            if batch.len() < BATCH {
                break;
            }
            last.push(0);
            from = last;
        }
        self.catalogue.built[table][index].store(true, Ordering::Release);
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        self.store.settle()
    }

    fn disk_bytes(&self) -> u64 {
        directory_bytes(&self.path)
    }
}

struct RowSession {
    store: Box<dyn PairsSession>,
    catalogue: Arc<Catalogue>,
}

impl Session for RowSession {
    fn transact(&mut self, access: Access, body: &mut Body<'_>) -> Outcome<()> {
        let catalogue = &*self.catalogue;
        self.store.transact(access, &mut |pairs| {
            let mut rows = RowOps { pairs, catalogue };
            body(&mut rows)
        })
    }
}

/// Rows of a transaction.
struct RowOps<'a> {
    pairs: &'a mut dyn Pairs,
    catalogue: &'a Catalogue,
}

impl RowOps<'_> {
    fn table(&self, table: usize) -> &Table {
        &self.catalogue.schema.tables[table]
    }

    fn read(&mut self, table: usize, key: &[Value], lock: bool) -> Outcome<Option<Row>> {
        let key = row_key(table, key);
        let Some(value) = self.pairs.get(&key, lock)? else {
            return Ok(None);
        };
        Ok(Some(decode(self.table(table), None, &key, &value)?))
    }

    /// Writes a row and brings its entries up to date.
    fn write(&mut self, table: usize, old: Option<&[Value]>, new: &[Value]) -> Outcome<()> {
        let catalogue = self.catalogue;
        let of = &catalogue.schema.tables[table];
        let key = row_key(table, &new[..of.key]);
        self.pairs.put(&key, &row_value(of, new))?;
        let built: Vec<usize> = self.catalogue.built(table).collect();
        for index in built {
            let entry = (
                entry_key(of, table, index, new),
                entry_value(of, index, new),
            );
            if let Some(old) = old {
                let before = entry_key(of, table, index, old);
                if before == entry.0 && entry_value(of, index, old) == entry.1 {
                    continue;
                }
                if before != entry.0 {
                    self.pairs.delete(&before)?;
                }
            }
            self.pairs.put(&entry.0, &entry.1)?;
        }
        Ok(())
    }
}

impl Rows for RowOps<'_> {
    fn insert(&mut self, table: usize, row: &[Value]) -> Outcome<bool> {
        let key = row_key(table, &row[..self.table(table).key]);
        if self.pairs.get(&key, true)?.is_some() {
            return Ok(false);
        }
        self.write(table, None, row)?;
        Ok(true)
    }

    fn update(&mut self, table: usize, key: &[Value], set: &[(usize, Value)]) -> Outcome<bool> {
        let Some(old) = self.read(table, key, true)? else {
            return Ok(false);
        };
        let mut new = old.clone();
        for (column, value) in set {
            new[*column] = value.clone();
        }
        self.write(table, Some(&old), &new)?;
        Ok(true)
    }

    fn add(&mut self, table: usize, otherwise: &[Value], column: usize, by: i64) -> Outcome<()> {
        let key = &otherwise[..self.table(table).key];
        let Some(old) = self.read(table, key, true)? else {
            return self.write(table, None, otherwise);
        };
        let mut new = old.clone();
        new[column] = Value::Int(old[column].int().wrapping_add(by));
        self.write(table, Some(&old), &new)
    }

    fn delete(&mut self, table: usize, key: &[Value]) -> Outcome<bool> {
        let Some(old) = self.read(table, key, true)? else {
            return Ok(false);
        };
        self.pairs.delete(&row_key(table, key))?;
        let built: Vec<usize> = self.catalogue.built(table).collect();
        for index in built {
            let entry = entry_key(self.table(table), table, index, &old);
            self.pairs.delete(&entry)?;
        }
        Ok(true)
    }

    fn get(&mut self, table: usize, key: &[Value], lock: bool) -> Outcome<Option<Row>> {
        self.read(table, key, lock)
    }

    fn scan(&mut self, scan: &Scan, visit: &mut Visit<'_>) -> Outcome<u64> {
        let (low, high) = bounds(scan);
        let of = &self.catalogue.schema.tables[scan.table];
        let lookup = scan.fetch && scan.index.is_some();
        let mut seen = 0;
        let mut found: Vec<Row> = Vec::new();
        let limit = if scan.limit == 0 {
            u64::MAX
        } else {
            scan.limit
        };
        self.pairs
            .scan(&low, &high, scan.descending, &mut |key, value| {
                let row = decode(of, scan.index, key, value)?;
                seen += 1;
                if lookup {
                    found.push(row);
                    return Ok(seen < limit);
                }
                Ok(visit(&row) && seen < limit)
            })?;
        if !lookup {
            return Ok(seen);
        }
        let mut looked = 0;
        for entry in found {
            // Without a snapshot a row may have gone since its entry was read.
            if let Some(row) = self.read(scan.table, &entry[..of.key], false)? {
                looked += 1;
                if !visit(&row) {
                    break;
                }
            }
        }
        Ok(looked)
    }
}

/// The keys that a scan lies between: the first one in, the second one out.
fn bounds(scan: &Scan) -> (Vec<u8>, Vec<u8>) {
    let mut prefix = space(scan.table, scan.index).to_vec();
    for value in &scan.prefix {
        push_key(&mut prefix, value);
    }
    let mut low = prefix.clone();
    if let Some(value) = &scan.low {
        push_key(&mut low, value);
    }
    let high = match &scan.high {
        None => after(&prefix),
        Some(value) => {
            let mut high = prefix;
            push_key(&mut high, value);
            after(&high)
        }
    };
    (low, high)
}

/// Converts the error of an engine in this process.
pub(crate) fn failed(error: impl std::fmt::Display) -> TransactionError {
    TransactionError::Failed(Failure::new(error.to_string()))
}
