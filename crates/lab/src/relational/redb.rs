//! redb behind the relational workloads: a copy-on-write B-tree with one writer at a time.
//!
//! Compiled only with the feature `peer-redb`. It has no commit that is written to the system and
//! not synced, so that it runs only where each commit is synced.

use std::collections::BTreeMap;
use std::sync::Arc;

use redb::{Database, ReadableDatabase as _, ReadableTable, Table, TableDefinition};

use super::engine::{Access, Durability, EngineInfo, EnginePlan, Outcome, Shape};
use super::kv::{Pairs, PairsBody, PairsEngine, PairsSession, RowEngine, VisitPair, failed};
use crate::{Failure, Result};

const PAIRS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("pairs");

/// An open database.
pub struct RedbRows {
    db: Arc<Database>,
}

fn sad(error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("redb: {error}"))
}

/// Opens an engine for `plan`.
///
/// # Errors
/// As reported by redb, or when commits are not to be synced.
pub fn open(plan: &EnginePlan) -> Result<RowEngine<RedbRows>> {
    if plan.durability != Durability::Sync {
        let text = "redb syncs a commit or keeps it in memory; it has nothing in between";
        return Err(Failure::new(text));
    }
    let path = plan.directory.join("redb");
    std::fs::create_dir_all(&path)?;
    let cache = usize::try_from(plan.cache).unwrap_or(usize::MAX);
    let db = Database::builder()
        .set_cache_size(cache)
        .create(path.join("data.redb"))
        .map_err(sad)?;
    let transaction = db.begin_write().map_err(sad)?;
    transaction.open_table(PAIRS).map_err(sad)?;
    transaction.commit().map_err(sad)?;
    let options = BTreeMap::from([("cache_size".to_string(), plan.cache.to_string())]);
    let facts = EngineInfo {
        name: "redb 4".into(),
        options,
        durability: "Durability::Immediate".into(),
        shape: Shape::CopyOnWrite { page: 4096.0 },
    };
    let rows = RedbRows { db: Arc::new(db) };
    Ok(RowEngine::new(rows, plan, facts, path))
}

impl PairsEngine for RedbRows {
    fn session(&self) -> Result<Box<dyn PairsSession>> {
        Ok(Box::new(RedbSession(Arc::clone(&self.db))))
    }

    fn settle(&self) -> Result<()> {
        Ok(())
    }
}

struct RedbSession(Arc<Database>);

impl PairsSession for RedbSession {
    fn transact(&mut self, access: Access, body: &mut PairsBody<'_>) -> Outcome<()> {
        if access == Access::Read {
            let transaction = self.0.begin_read().map_err(failed)?;
            let table = transaction.open_table(PAIRS).map_err(failed)?;
            return body(&mut RedbReads(table));
        }
        let transaction = self.0.begin_write().map_err(failed)?;
        let done = {
            let table = transaction.open_table(PAIRS).map_err(failed)?;
            body(&mut RedbPairs(table))
        };
        match done {
            Ok(()) => transaction.commit().map_err(failed),
            Err(why) => {
                transaction.abort().map_err(failed)?;
                Err(why)
            }
        }
    }
}

type Key = &'static [u8];

fn find(table: &impl ReadableTable<Key, Key>, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
    let found = table.get(key).map_err(failed)?;
    Ok(found.map(|guard| guard.value().to_vec()))
}

fn walk(
    table: &impl ReadableTable<Key, Key>,
    (low, high): (&[u8], &[u8]),
    descending: bool,
    visit: &mut VisitPair<'_>,
) -> Outcome<()> {
    let mut range = table.range::<&[u8]>(low..high).map_err(failed)?;
    loop {
        let next = if descending {
            range.next_back()
        } else {
            range.next()
        };
        let Some(pair) = next else {
            return Ok(());
        };
        let (key, value) = pair.map_err(failed)?;
        if !visit(key.value(), value.value())? {
            return Ok(());
        }
    }
}

struct RedbReads(redb::ReadOnlyTable<Key, Key>);

impl Pairs for RedbReads {
    fn get(&mut self, key: &[u8], _lock: bool) -> Outcome<Option<Vec<u8>>> {
        find(&self.0, key)
    }

    fn scan(
        &mut self,
        low: &[u8],
        high: &[u8],
        descending: bool,
        visit: &mut VisitPair<'_>,
    ) -> Outcome<()> {
        walk(&self.0, (low, high), descending, visit)
    }
}

struct RedbPairs<'a>(Table<'a, Key, Key>);

impl Pairs for RedbPairs<'_> {
    fn get(&mut self, key: &[u8], _lock: bool) -> Outcome<Option<Vec<u8>>> {
        find(&self.0, key)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.0.insert(key, value).map(|_| ()).map_err(failed)
    }

    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        self.0.remove(key).map(|_| ()).map_err(failed)
    }

    fn scan(
        &mut self,
        low: &[u8],
        high: &[u8],
        descending: bool,
        visit: &mut VisitPair<'_>,
    ) -> Outcome<()> {
        walk(&self.0, (low, high), descending, visit)
    }
}
