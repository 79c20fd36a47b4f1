//! A loaded `librocksdb.so` behind the relational workloads: its pessimistic transactions, with the
//! options that Esker gets.

use std::path::Path;
use std::sync::Arc;

use super::embedded::{table_options, tree_facts, tree_options};
use super::engine::{Access, Durability, EnginePlan, Outcome, TransactionError};
use super::kv::{Pairs, PairsBody, PairsEngine, PairsSession, RowEngine, VisitPair};
use crate::dlopen::{LibTransaction, LibTransactions};
use crate::store::{CachePlan, Iter as _, OpenPlan, Store as _};
use crate::{Failure, Result};

/// An open database of a loaded library.
pub struct LibraryRows {
    db: Arc<LibTransactions>,
}

/// Converts the library's error: a conflict where its text says so.
fn trouble(failure: Failure) -> TransactionError {
    let text = failure.to_string();
    let passing = [
        "Resource busy",
        "Operation timed out",
        "Operation failed. Try again",
    ];
    if passing.iter().any(|words| text.starts_with(words)) {
        TransactionError::Conflict
    } else {
        TransactionError::Failed(failure)
    }
}

/// Opens an engine for `plan` with the library at `library`.
///
/// # Errors
/// As reported by the library, or that it has no transactions.
pub fn open(library: &Path, plan: &EnginePlan) -> Result<RowEngine<LibraryRows>> {
    let open = OpenPlan {
        path: plan.directory.clone(),
        databases: 1,
        families: 1,
        options: tree_options(plan),
        table: table_options(),
        cache: CachePlan {
            capacity: i64::try_from(plan.cache).unwrap_or(i64::MAX),
            shard_bits: -1,
            ..CachePlan::default()
        },
        ..OpenPlan::default()
    };
    let db = LibTransactions::open(library, &open, plan.durability == Durability::Sync)?;
    let facts = tree_facts(db.store().describe(), plan);
    let rows = LibraryRows { db: Arc::new(db) };
    let path = plan.directory.clone();
    Ok(RowEngine::new(rows, plan, facts, path))
}

impl PairsEngine for LibraryRows {
    fn session(&self) -> Result<Box<dyn PairsSession>> {
        Ok(Box::new(LibrarySession(Arc::clone(&self.db))))
    }

    fn settle(&self) -> Result<()> {
        self.db.store().flush()?;
        self.db.store().wait_for_compaction()
    }
}

struct LibrarySession(Arc<LibTransactions>);

impl PairsSession for LibrarySession {
    fn transact(&mut self, access: Access, body: &mut PairsBody<'_>) -> Outcome<()> {
        let mut pairs = LibraryPairs(self.0.begin());
        body(&mut pairs)?;
        if access == Access::Read {
            return Ok(());
        }
        pairs.0.commit().map_err(trouble)
    }
}

/// Pairs of a transaction; one that only reads is rolled back, which costs nothing.
struct LibraryPairs<'a>(LibTransaction<'a>);

impl Pairs for LibraryPairs<'_> {
    fn get(&mut self, key: &[u8], lock: bool) -> Outcome<Option<Vec<u8>>> {
        self.0.get(key, lock).map_err(trouble)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.0.put(key, value).map_err(trouble)
    }

    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        self.0.delete(key).map_err(trouble)
    }

    fn scan(
        &mut self,
        low: &[u8],
        high: &[u8],
        descending: bool,
        visit: &mut VisitPair<'_>,
    ) -> Outcome<()> {
        let mut iter = self.0.iter();
        let mut on = if descending {
            // The last key before `high`: the one at `high` is out.
            let found = iter.seek_for_prev(high);
            if found && iter.key() == high {
                iter.prev()
            } else {
                found
            }
        } else {
            iter.seek(low)
        };
        while on {
            let key = iter.key();
            let out = if descending { key < low } else { key >= high };
            if out || !visit(key, iter.value())? {
                return Ok(());
            }
            on = if descending { iter.prev() } else { iter.next() };
        }
        iter.status().map_err(trouble)
    }
}
