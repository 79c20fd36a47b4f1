//! LMDB behind the relational workloads, through the crate `heed`: a copy-on-write B-tree in a
//! memory map, with one writer at a time.
//!
//! Compiled only with the feature `peer-lmdb`. The two unsafe calls set up the environment.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, RoTxn, RwTxn};

use super::engine::{Access, Durability, EngineInfo, EnginePlan, Outcome, Shape};
use super::kv::{Pairs, PairsBody, PairsEngine, PairsSession, RowEngine, VisitPair, failed};
use crate::{Failure, Result};

/// The address space of the map, which a database cannot outgrow. Unused pages take nothing.
const MAP: usize = 256 << 30;

/// A tree of the environment.
pub(crate) type Pages = Database<Bytes, Bytes>;

/// An open environment.
pub struct LmdbRows {
    env: Env,
    pages: Pages,
}

fn sad(error: heed::Error) -> Failure {
    Failure::new(format!("LMDB: {error}"))
}

/// The version of the library.
pub(crate) fn version() -> String {
    let heed::LmdbVersion {
        major,
        minor,
        patch,
        ..
    } = heed::lmdb_version();
    format!("{major}.{minor}.{patch}")
}

/// Opens or creates the environment in `path`, whose commits need not survive the machine where
/// they are `unsynced`, with its main tree; tells the flags too. `writes_map` lets writes go
/// through the map.
///
/// # Errors
/// As reported by LMDB.
pub(crate) fn environment(
    path: &Path,
    unsynced: bool,
    writes_map: bool,
) -> Result<(Env, Pages, EnvFlags)> {
    std::fs::create_dir_all(path)?;
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP).max_readers(1024);
    // Reads are random: what the system reads ahead is not asked for.
    let mut flags = EnvFlags::NO_READ_AHEAD;
    flags.set(EnvFlags::NO_SYNC, unsynced);
    flags.set(EnvFlags::WRITE_MAP, writes_map);
    // SAFETY: without sync the file can be damaged by the death of the machine, not of the process;
    // the run ends with either. Nothing here writes outside of transactions into the map.
    unsafe { options.flags(flags) };
    // SAFETY: the directory belongs to this run, so that nobody else changes the files.
    let env = unsafe { options.open(path) }.map_err(sad)?;
    let mut transaction = env.write_txn().map_err(sad)?;
    let pages = env.create_database(&mut transaction, None).map_err(sad)?;
    transaction.commit().map_err(sad)?;
    Ok((env, pages, flags))
}

/// Opens an engine for `plan`.
///
/// # Errors
/// As reported by LMDB.
pub fn open(plan: &EnginePlan) -> Result<RowEngine<LmdbRows>> {
    let path = plan.directory.join("lmdb");
    let unsynced = plan.durability == Durability::Process;
    let (env, pages, flags) = environment(&path, unsynced, false)?;
    let mut facts = EngineInfo {
        name: format!("LMDB {} (heed)", version()),
        options: BTreeMap::new(),
        durability: match plan.durability {
            Durability::Sync => "each commit is synced (the default)",
            Durability::Process => "MDB_NOSYNC",
        }
        .into(),
        shape: Shape::CopyOnWrite { page: 4096.0 },
    };
    let mut say = |name: &str, value: String| facts.options.insert(name.into(), value);
    say("mapsize", MAP.to_string());
    say("flags", format!("{flags:?}"));
    say(
        "cache",
        "the system's page cache; the limit of other engines does not hold".into(),
    );
    let rows = LmdbRows { env, pages };
    Ok(RowEngine::new(rows, plan, facts, path))
}

impl PairsEngine for LmdbRows {
    fn session(&self) -> Result<Box<dyn PairsSession>> {
        Ok(Box::new(LmdbSession {
            env: self.env.clone(),
            pages: self.pages,
        }))
    }

    fn settle(&self) -> Result<()> {
        self.env.force_sync().map_err(sad)
    }
}

struct LmdbSession {
    env: Env,
    pages: Pages,
}

impl PairsSession for LmdbSession {
    fn transact(&mut self, access: Access, body: &mut PairsBody<'_>) -> Outcome<()> {
        if access == Access::Read {
            let transaction = self.env.read_txn().map_err(failed)?;
            return body(&mut LmdbReads(&transaction, self.pages));
        }
        let mut transaction = self.env.write_txn().map_err(failed)?;
        body(&mut LmdbPairs(&mut transaction, self.pages))?;
        transaction.commit().map_err(failed)
    }
}

fn walk(
    transaction: &RoTxn<'_>,
    pages: Pages,
    (low, high): (&[u8], &[u8]),
    descending: bool,
    visit: &mut VisitPair<'_>,
) -> Outcome<()> {
    let range = (Bound::Included(low), Bound::Excluded(high));
    if descending {
        for pair in pages.rev_range(transaction, &range).map_err(failed)? {
            let (key, value) = pair.map_err(failed)?;
            if !visit(key, value)? {
                break;
            }
        }
        return Ok(());
    }
    for pair in pages.range(transaction, &range).map_err(failed)? {
        let (key, value) = pair.map_err(failed)?;
        if !visit(key, value)? {
            break;
        }
    }
    Ok(())
}

fn find(transaction: &RoTxn<'_>, pages: Pages, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
    let found = pages.get(transaction, key).map_err(failed)?;
    Ok(found.map(<[u8]>::to_vec))
}

struct LmdbReads<'a>(&'a RoTxn<'a>, Pages);

impl Pairs for LmdbReads<'_> {
    fn get(&mut self, key: &[u8], _lock: bool) -> Outcome<Option<Vec<u8>>> {
        find(self.0, self.1, key)
    }

    fn scan(
        &mut self,
        low: &[u8],
        high: &[u8],
        descending: bool,
        visit: &mut VisitPair<'_>,
    ) -> Outcome<()> {
        walk(self.0, self.1, (low, high), descending, visit)
    }
}

struct LmdbPairs<'a, 'e>(&'a mut RwTxn<'e>, Pages);

impl Pairs for LmdbPairs<'_, '_> {
    fn get(&mut self, key: &[u8], _lock: bool) -> Outcome<Option<Vec<u8>>> {
        find(self.0, self.1, key)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.1.put(self.0, key, value).map_err(failed)
    }

    fn delete(&mut self, key: &[u8]) -> Outcome<()> {
        self.1.delete(self.0, key).map(|_| ()).map_err(failed)
    }

    fn scan(
        &mut self,
        low: &[u8],
        high: &[u8],
        descending: bool,
        visit: &mut VisitPair<'_>,
    ) -> Outcome<()> {
        walk(self.0, self.1, (low, high), descending, visit)
    }
}
