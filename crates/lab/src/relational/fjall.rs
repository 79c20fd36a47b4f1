//! fjall behind the relational workloads: a log-structured tree in Rust, with its transactions of
//! one writer at a time.
//!
//! Compiled only with the feature `peer-fjall`.

use std::collections::BTreeMap;

use fjall::config::{BlockSizePolicy, CompressionPolicy};
use fjall::{
    CompressionType, Guard, KeyspaceCreateOptions, PersistMode, Readable as _,
    SingleWriterTxDatabase, SingleWriterTxKeyspace, SingleWriterWriteTx, Snapshot,
};

use super::embedded::FANOUT;
use super::engine::{Access, Durability, EngineInfo, EnginePlan, Outcome, Shape};
use super::kv::{Pairs, PairsBody, PairsEngine, PairsSession, RowEngine, VisitPair, failed};
use crate::process::{Usage, wait_until_quiet};
use crate::{Failure, Result};

/// An open database.
pub struct FjallRows {
    db: SingleWriterTxDatabase,
    pairs: SingleWriterTxKeyspace,
    mode: PersistMode,
}

fn sad(error: fjall::Error) -> Failure {
    Failure::new(format!("fjall: {error}"))
}

/// Opens an engine for `plan`.
///
/// # Errors
/// As reported by fjall.
pub fn open(plan: &EnginePlan) -> Result<RowEngine<FjallRows>> {
    let path = plan.directory.join("fjall");
    let db = SingleWriterTxDatabase::builder(&path)
        .cache_size(plan.cache)
        .open()
        .map_err(sad)?;
    let memtable = plan.memtable;
    let options = || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(memtable)
            .data_block_size_policy(BlockSizePolicy::all(8192))
            .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
    };
    let pairs = db.keyspace("pairs", options).map_err(sad)?;
    let (mode, durability) = match plan.durability {
        Durability::Sync => (
            PersistMode::SyncData,
            "PersistMode::SyncData at each commit",
        ),
        Durability::Process => (PersistMode::Buffer, "PersistMode::Buffer at each commit"),
    };
    let owned = |name: &str, value: String| (name.to_string(), value);
    let options = BTreeMap::from([
        owned("cache_size", plan.cache.to_string()),
        owned("max_memtable_size", memtable.to_string()),
        owned("data_block_size", "8192".into()),
        owned("compression", "none".into()),
        owned("transactions", "single writer".into()),
    ]);
    let facts = EngineInfo {
        name: "fjall 3".into(),
        options,
        durability: durability.into(),
        shape: Shape::Lsm { fanout: FANOUT },
    };
    let rows = FjallRows { db, pairs, mode };
    Ok(RowEngine::new(rows, plan, facts, path))
}

impl PairsEngine for FjallRows {
    fn session(&self) -> Result<Box<dyn PairsSession>> {
        Ok(Box::new(FjallSession {
            db: self.db.clone(),
            pairs: self.pairs.clone(),
            mode: self.mode,
        }))
    }

    fn settle(&self) -> Result<()> {
        self.db.persist(PersistMode::SyncAll).map_err(sad)?;
        // It offers no wait for compactions.
        wait_until_quiet(|| Usage::now().device_write_bytes);
        Ok(())
    }
}

struct FjallSession {
    db: SingleWriterTxDatabase,
    pairs: SingleWriterTxKeyspace,
    mode: PersistMode,
}

impl PairsSession for FjallSession {
    fn transact(&mut self, access: Access, body: &mut PairsBody<'_>) -> Outcome<()> {
        if access == Access::Read {
            return body(&mut FjallReads(self.db.read_tx(), &self.pairs));
        }
        let transaction = self.db.write_tx().durability(Some(self.mode));
        let mut pairs = FjallPairs(transaction, &self.pairs);
        match body(&mut pairs) {
            Ok(()) => pairs.0.commit().map_err(failed),
            Err(why) => {
                pairs.0.rollback();
                Err(why)
            }
        }
    }
}

fn walk(
    mut range: impl DoubleEndedIterator<Item = Guard>,
    descending: bool,
    visit: &mut VisitPair<'_>,
) -> Outcome<()> {
    loop {
        let next = if descending {
            range.next_back()
        } else {
            range.next()
        };
        let Some(pair) = next else {
            return Ok(());
        };
        let (key, value) = pair.into_inner().map_err(failed)?;
        if !visit(&key, &value)? {
            return Ok(());
        }
    }
}

struct FjallReads<'a>(Snapshot, &'a SingleWriterTxKeyspace);

impl Pairs for FjallReads<'_> {
    fn get(&mut self, key: &[u8], _lock: bool) -> Outcome<Option<Vec<u8>>> {
        let found = self.0.get(self.1, key).map_err(failed)?;
        Ok(found.map(|value| value.to_vec()))
    }

    fn scan(
        &mut self,
        low: &[u8],
        high: &[u8],
        descending: bool,
        visit: &mut VisitPair<'_>,
    ) -> Outcome<()> {
        walk(self.0.range(self.1, low..high), descending, visit)
    }
}

struct FjallPairs<'a>(SingleWriterWriteTx<'a>, &'a SingleWriterTxKeyspace);

impl Pairs for FjallPairs<'_> {
    fn get(&mut self, key: &[u8], _lock: bool) -> Outcome<Option<Vec<u8>>> {
        let found = self.0.get(self.1, key).map_err(failed)?;
        Ok(found.map(|value| value.to_vec()))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.0.insert(self.1, key, value);
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        self.0.remove(self.1, key);
        Ok(())
    }

    fn scan(
        &mut self,
        low: &[u8],
        high: &[u8],
        descending: bool,
        visit: &mut VisitPair<'_>,
    ) -> Outcome<()> {
        walk(self.0.range(self.1, low..high), descending, visit)
    }
}
