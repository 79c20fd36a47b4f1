//! The embedded engine behind the relational workloads: pessimistic transactions of `esker-txn`.

use std::collections::BTreeMap;

use esker::options::BlockCacheSource;
use esker::{ErrorKind, Options, ReadOptions, WriteOptions};
use esker_txn::{Transaction, TransactionDb, TransactionDbOptions, TransactionOptions};

use super::engine::{Access, Durability, EngineInfo, EnginePlan, Outcome, Shape, TransactionError};
use super::kv::{Pairs, PairsBody, PairsEngine, PairsSession, RowEngine, VisitPair, failed};
use crate::{Failure, Result};

/// Growth of levels in both log-structured engines.
pub(crate) const FANOUT: f64 = 10.0;

/// The options of Esker and of RocksDB: the same text for both.
pub(crate) fn tree_options(plan: &EnginePlan) -> Vec<(String, String)> {
    let memtable = plan.memtable;
    let owned = |name: &str, value: String| (name.to_string(), value);
    vec![
        owned("write_buffer_size", memtable.to_string()),
        owned("target_file_size_base", memtable.to_string()),
        owned("max_bytes_for_level_base", (4 * memtable).to_string()),
        owned("max_bytes_for_level_multiplier", FANOUT.to_string()),
        owned("compression", "kNoCompression".into()),
        owned("max_background_jobs", "3".into()),
        owned("max_open_files", "-1".into()),
    ]
}

/// The options of their tables.
pub(crate) fn table_options() -> Vec<(String, String)> {
    let owned = |name: &str, value: &str| (name.to_string(), value.to_string());
    vec![
        owned("block_size", "8192"),
        owned("filter_policy", "bloomfilter:10:false"),
    ]
}

/// Makes the facts that both report.
pub(crate) fn tree_facts(name: String, plan: &EnginePlan) -> EngineInfo {
    let mut options: BTreeMap<String, String> = tree_options(plan).into_iter().collect();
    options.extend(table_options());
    options.insert("block_cache".into(), plan.cache.to_string());
    let durability = match plan.durability {
        Durability::Sync => "WriteOptions.sync = true",
        Durability::Process => "WriteOptions.sync = false, log on",
    };
    options.insert(
        "transactions".into(),
        "pessimistic, deadlocks looked for".into(),
    );
    EngineInfo {
        name,
        options,
        durability: durability.into(),
        shape: Shape::Lsm { fanout: FANOUT },
    }
}

/// An open database.
pub struct EskerRows {
    db: TransactionDb,
    write: WriteOptions,
}

fn trouble(error: esker::Error) -> TransactionError {
    use ErrorKind::{Busy, TimedOut, TryAgain};
    match error.kind() {
        Busy | TimedOut | TryAgain => TransactionError::Conflict,
        _ => failed(error),
    }
}

/// Opens an engine for `plan`.
///
/// # Errors
/// As reported by the engine.
pub fn open(plan: &EnginePlan) -> Result<RowEngine<EskerRows>> {
    let mut options = Options::new();
    for (name, value) in tree_options(plan).iter().chain(&table_options()) {
        options
            .set_in_place(name, value)
            .map_err(|e| Failure::from(e).context(format!("option {name}={value}")))?;
    }
    let cache = usize::try_from(plan.cache).unwrap_or(usize::MAX);
    options.family.table.block_cache = BlockCacheSource::with_capacity(cache);
    options.db.create_if_missing = true;
    let db = TransactionDb::open(&plan.directory, options, TransactionDbOptions::default())?;
    let mut write = WriteOptions::default();
    write.sync = plan.durability == Durability::Sync;
    let facts = tree_facts(format!("esker {}", env!("CARGO_PKG_VERSION")), plan);
    let rows = EskerRows { db, write };
    let path = plan.directory.clone();
    Ok(RowEngine::new(rows, plan, facts, path))
}

impl PairsEngine for EskerRows {
    fn session(&self) -> Result<Box<dyn PairsSession>> {
        Ok(Box::new(EskerSession {
            db: self.db.clone(),
            write: self.write,
        }))
    }

    fn settle(&self) -> Result<()> {
        self.db.base().flush()?;
        Ok(self.db.base().wait_for_compaction()?)
    }
}

struct EskerSession {
    db: TransactionDb,
    write: WriteOptions,
}

impl PairsSession for EskerSession {
    fn transact(&mut self, access: Access, body: &mut PairsBody<'_>) -> Outcome<()> {
        if access == Access::Read {
            return body(&mut EskerReads(&self.db));
        }
        let rules = TransactionOptions {
            deadlock_detect: true,
            ..TransactionOptions::default()
        };
        let mut transaction = self.db.begin_opt(self.write, &rules);
        match body(&mut EskerPairs(&mut transaction)) {
            Ok(()) => transaction.commit().map_err(trouble),
            Err(why) => {
                transaction.rollback().map_err(trouble)?;
                Err(why)
            }
        }
    }
}

fn bounded(low: &[u8], high: &[u8]) -> ReadOptions {
    let mut read = ReadOptions::default();
    read.iterate_lower_bound = Some(low.to_vec());
    read.iterate_upper_bound = Some(high.to_vec());
    read
}

/// Walks an iterator of either kind.
macro_rules! walk {
    ($iter:expr, $descending:expr, $visit:expr) => {{
        let mut iter = $iter;
        if $descending {
            iter.seek_to_last();
        } else {
            iter.seek_to_first();
        }
        while iter.valid() {
            if !$visit(iter.key(), iter.value())? {
                return Ok(());
            }
            if $descending {
                iter.prev();
            } else {
                iter.next();
            }
        }
        iter.status().map_err(trouble)
    }};
}

/// Reads without a transaction.
struct EskerReads<'a>(&'a TransactionDb);

impl Pairs for EskerReads<'_> {
    fn get(&mut self, key: &[u8], _lock: bool) -> Outcome<Option<Vec<u8>>> {
        self.0.base().get(key).map_err(trouble)
    }

    fn scan(
        &mut self,
        low: &[u8],
        high: &[u8],
        descending: bool,
        visit: &mut VisitPair<'_>,
    ) -> Outcome<()> {
        let db = self.0.base();
        let family = db.default_family_handle();
        walk!(
            db.iter_opt(&family, bounded(low, high), None),
            descending,
            visit
        )
    }
}

/// Pairs of a transaction.
struct EskerPairs<'a>(&'a mut Transaction);

impl Pairs for EskerPairs<'_> {
    fn get(&mut self, key: &[u8], lock: bool) -> Outcome<Option<Vec<u8>>> {
        if lock {
            return self.0.get_for_update(key).map_err(trouble);
        }
        self.0.get(key).map_err(trouble)
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
        let family = self.0.db().default_family_handle();
        walk!(
            self.0.iter_opt(&family, bounded(low, high), None),
            descending,
            visit
        )
    }
}
