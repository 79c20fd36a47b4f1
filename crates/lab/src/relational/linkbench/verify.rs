//! Counts all links again, and compares the index with its table.

use std::collections::HashMap;

use super::{COUNT, COUNTS, LINKS, NODES, VISIBILITY, VISIBLE};
use crate::Result;
use crate::relational::engine::{Access, Engine, Scan, Session, retry};
use crate::relational::row::{Value, size};

/// Result of a check of all rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verification {
    /// Nodes, links and counts.
    pub rows: [u64; 3],
    /// Links that are visible.
    pub visible: u64,
    /// Bytes of the application in all rows, without what indexes repeat.
    pub live_bytes: u64,
    /// Bytes of the application in the entries of the index.
    pub index_bytes: u64,
    /// Errors; the first twenty.
    pub wrong: Vec<String>,
    /// How much is wrong.
    pub mismatches: u64,
}

impl Verification {
    /// Returns whether all counts are right and the index agrees with its table.
    pub fn is_right(&self) -> bool {
        self.mismatches == 0
    }

    fn note(&mut self, what: String) {
        self.mismatches += 1;
        if self.wrong.len() < 20 {
            self.wrong.push(what);
        }
    }
}

/// A number that depends on all values, whatever the order of rows that are added up.
fn print(values: &[&Value]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut eat = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    for value in values {
        match value {
            Value::Absent => eat(&[0]),
            Value::Int(number) => eat(&number.to_be_bytes()),
            Value::Bytes(bytes) => {
                eat(&(bytes.len() as u64).to_be_bytes());
                eat(bytes);
            }
        }
    }
    hash ^ (hash >> 29)
}

fn all(session: &mut dyn Session, scan: &Scan, visit: &mut dyn FnMut(&[Value])) -> Result<()> {
    retry(session, Access::Read, &mut |rows| {
        rows.scan(scan, &mut |row| {
            visit(row);
            true
        })?;
        Ok(())
    })?;
    Ok(())
}

/// Looks at every row and every entry. Nothing else may run.
///
/// # Errors
/// The engine's error.
pub fn verify(engine: &dyn Engine) -> Result<Verification> {
    let mut session = engine.session()?;
    let table = |table: usize| Scan {
        table,
        ..Scan::default()
    };
    let mut found = Verification::default();
    let mut counted: HashMap<(i64, i64), i64> = HashMap::new();
    let mut sums = [0u64; 2];
    all(&mut *session, &table(NODES), &mut |row| {
        found.rows[0] += 1;
        found.live_bytes += size(row);
    })?;
    all(&mut *session, &table(LINKS), &mut |row| {
        found.rows[1] += 1;
        found.live_bytes += size(row);
        let values: Vec<&Value> = row.iter().collect();
        sums[0] = sums[0].wrapping_add(print(&values));
        if row[VISIBILITY].int() == VISIBLE {
            found.visible += 1;
            *counted.entry((row[1].int(), row[0].int())).or_default() += 1;
        }
    })?;
    let index = Scan {
        index: Some(0),
        ..table(LINKS)
    };
    let mut entries = 0;
    all(&mut *session, &index, &mut |row| {
        entries += 1;
        found.index_bytes += size(row);
        let values: Vec<&Value> = row.iter().collect();
        sums[1] = sums[1].wrapping_add(print(&values));
    })?;
    if entries != found.rows[1] || sums[0] != sums[1] {
        let links = found.rows[1];
        found.note(format!(
            "index id1_type: {entries} entries for {links} links, or other values"
        ));
    }
    all(&mut *session, &table(COUNTS), &mut |row| {
        found.rows[2] += 1;
        found.live_bytes += size(row);
        let key = (row[0].int(), row[1].int());
        let (has, is) = (row[COUNT].int(), counted.remove(&key).unwrap_or(0));
        if has != is {
            found.note(format!(
                "node {} type {}: count {has}, links {is}",
                key.0, key.1
            ));
        }
    })?;
    for (key, is) in counted {
        found.note(format!(
            "node {} type {}: no count, links {is}",
            key.0, key.1
        ));
    }
    Ok(found)
}
