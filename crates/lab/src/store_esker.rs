//! The embedded engine as a [`Store`]: `--engine=esker`, which is the default.
//!
//! It is driven through the engine's public API alone, with the same option strings that a loaded
//! library gets. A session owns its write batch and its options; values are looked at where they
//! lie.

mod level;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::codec::Codec;
use esker::observe::{PerfContext, PerfLevel, Statistics, set_perf_level};
use esker::options::{
    BlockCacheSource, BottommostLevelCompaction, IngestOptions, LoadRules, ReadTier,
    load_options_text,
};
use esker::{
    CacheOptions, CompactRangeOptions, CompressedTierOptions, Db, DbIterator, Env, ErrorKind,
    FamilyDescriptor, FamilyHandle, FamilyId, FlushOptions, Options, ReadOptions, SstFileWriter,
    WriteBatch, WriteOptions,
};
use esker_backup::{BackupEngine, BackupEngineOptions, BackupEngineReadOnly, RestoreOptions};
use esker_txn::{
    OptimisticTransactionDb, OptimisticTransactionDbOptions, OptimisticTransactionOptions,
    Transaction, TransactionDb, TransactionDbOptions, TransactionOptions,
};

use crate::slowest::Account;
use crate::store::{
    CachePlan, CachePolicy, Iter, OpenPlan, PairSource, Session, SessionPlan, Store, TierPlan,
    Transactions, add_in_batch, number,
};
use crate::{Failure, Result};

impl From<esker::Error> for Failure {
    fn from(error: esker::Error) -> Failure {
        Failure::new(error.to_string())
    }
}

/// One of the databases of a store.
#[derive(Clone)]
struct One {
    db: Db,
    families: Vec<FamilyHandle>,
    transactions: Layer,
}

/// The kind of transactions.
#[derive(Clone)]
enum Layer {
    None,
    Pessimistic(TransactionDb),
    Optimistic(OptimisticTransactionDb),
}

/// Databases opened with the embedded engine; nearly always one, with one family.
#[derive(Clone)]
pub struct EskerStore {
    all: Vec<One>,
    /// Of 100 operations the sums that go to each family; empty for all alike.
    shares: Arc<[u64]>,
    options: Options,
    statistics: Option<Arc<Statistics>>,
}

/// The options of `plan`.
fn options_of(plan: &OpenPlan) -> Result<Options> {
    let mut options = Options::new();
    if plan.options_file.as_os_str().is_empty() {
        for (name, value) in plan.options.iter().chain(&plan.table) {
            options
                .set_in_place(name, value)
                .map_err(|e| Failure::from(e).context(format!("option {name}={value}")))?;
        }
    } else {
        options = options_of_file(&plan.options_file)?;
    }
    match plan.cache.capacity {
        0 => options.family.table.no_block_cache = true,
        n => {
            if let Ok(capacity) = usize::try_from(n) {
                let limits = cache_of(&plan.cache, capacity);
                options.family.table.block_cache = match plan.cache.tier {
                    Some(tier) => BlockCacheSource::Tiered(limits, tier_of(tier)?),
                    None => BlockCacheSource::Own(limits),
                };
            }
        }
    }
    options.db.create_if_missing = !plan.must_exist;
    options.db.create_missing_column_families = true;
    Ok(options)
}

/// The second tier of a plan.
fn tier_of(plan: TierPlan) -> Result<CompressedTierOptions> {
    let capacity = usize::try_from(plan.capacity).unwrap_or(usize::MAX);
    let level = i32::try_from(plan.level);
    Ok(CompressedTierOptions {
        capacity,
        num_shard_bits: i32::try_from(plan.shard_bits).unwrap_or(-1),
        codec: Codec::from_option_name(plan.codec)
            .ok_or_else(|| Failure::new(format!("unknown compression `{}`", plan.codec)))?,
        level: level.map_err(|_| Failure::new("compressed_secondary_cache_compression_level"))?,
    })
}

/// The block cache of a plan. Pools by priority are an LRU cache's.
fn cache_of(plan: &CachePlan, capacity: usize) -> CacheOptions {
    let mut limits = match plan.policy {
        CachePolicy::Lru => CacheOptions {
            high_pri_pool_ratio: plan.high_priority_ratio,
            low_pri_pool_ratio: plan.low_priority_ratio,
            ..CacheOptions::lru(capacity)
        },
        CachePolicy::HyperClock => CacheOptions::hyper_clock(capacity, 0),
    };
    limits.num_shard_bits = i32::try_from(plan.shard_bits).unwrap_or(-1);
    limits
}

/// The options of the default family and of the database in an OPTIONS file.
fn options_of_file(path: &Path) -> Result<Options> {
    let at =
        |text: String| Failure::new(text).context(format!("--options_file={}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| at(e.to_string()))?;
    let loaded = load_options_text(&text, LoadRules::default()).map_err(|e| at(e.to_string()))?;
    let mut options = Options::new();
    options.db = loaded.db;
    let default = loaded
        .families
        .into_iter()
        .find(|(name, _)| name == "default");
    options.family = default
        .ok_or_else(|| at("there is no default family".into()))?
        .1;
    Ok(options)
}

impl One {
    fn open(path: &Path, plan: &OpenPlan, options: &Options) -> Result<One> {
        // RocksDB's program names them so.
        let name = |i: usize| match i {
            0 => "default".to_string(),
            i => format!("column_family_name_{i:06}"),
        };
        let names: Vec<String> = (0..plan.families).map(name).collect();
        let describe = |name: &String| FamilyDescriptor::new(name, options.family.clone());
        let families: Vec<FamilyDescriptor> = names.iter().map(describe).collect();
        let options = options.clone();
        let (db, transactions) = match plan.transactions {
            _ if plan.read_only => (Db::open_read_only(path, options)?, Layer::None),
            Transactions::None if plan.families == 1 => (Db::open(path, options)?, Layer::None),
            Transactions::None => (Db::open_families(path, options, families)?, Layer::None),
            Transactions::Pessimistic => {
                let rules = TransactionDbOptions::default();
                let layer = TransactionDb::open_families(path, options, families, rules)?;
                (layer.base().clone(), Layer::Pessimistic(layer))
            }
            Transactions::Optimistic => {
                let rules = OptimisticTransactionDbOptions::default();
                let layer =
                    OptimisticTransactionDb::open_families(path, options, families, &rules)?;
                (layer.base().clone(), Layer::Optimistic(layer))
            }
        };
        let all = db.families();
        let find = |name: &String| all.iter().find(|family| family.name() == *name).cloned();
        let families: Option<Vec<FamilyHandle>> = names.iter().map(find).collect();
        let missing = || Failure::new("the database has fewer families than were asked for");
        Ok(One {
            db,
            families: families.ok_or_else(missing)?,
            transactions,
        })
    }
}

impl EskerStore {
    /// Opens what `plan` says.
    ///
    /// # Errors
    /// An option that is unknown or refused, or a database that does not open.
    pub fn open(plan: &OpenPlan) -> Result<EskerStore> {
        let mut options = options_of(plan)?;
        let statistics = plan.statistics.then(Statistics::new);
        options.db.statistics = statistics.clone();
        let mut all = Vec::new();
        for number in 0..plan.databases {
            let mut path = plan.path.clone();
            if plan.in_directories {
                path.push(number.to_string());
            }
            all.push(One::open(&path, plan, &options)?);
        }
        Ok(EskerStore {
            all,
            shares: plan.shares.clone().into(),
            options,
            statistics,
        })
    }

    /// The database that is asked where one answers for all.
    fn first(&self) -> &Db {
        &self.all[0].db
    }

    fn databases(&self) -> impl Iterator<Item = &Db> {
        self.all.iter().map(|one| &one.db)
    }
}

impl Store for EskerStore {
    type Session = EskerSession;

    fn describe(&self) -> String {
        format!("esker {}", env!("CARGO_PKG_VERSION"))
    }

    fn session(&self, plan: &SessionPlan) -> Result<EskerSession> {
        let mut write = WriteOptions::default();
        write.sync = plan.sync;
        write.disable_wal = plan.disable_wal;
        let mut read = ReadOptions::default();
        read.verify_checksums = plan.verify_checksums;
        read.readahead_size = plan.readahead_size;
        read.async_io = plan.async_io;
        read.read_tier = ReadTier::All;
        read.adaptive_readahead = plan.adaptive_readahead;
        read.auto_readahead_size = plan.auto_readahead_size;
        read.total_order_seek = plan.total_order_seek;
        read.prefix_same_as_start = plan.prefix_same_as_start;
        read.auto_prefix_mode = plan.auto_prefix_mode;
        read.tailing = plan.tailing;
        read.auto_refresh_iterator_with_snapshot = plan.auto_refresh;
        Ok(EskerSession {
            db: self.first().clone(),
            family: self.all[0].families[0].clone(),
            spread: (self.all.len() > 1 || self.all[0].families.len() > 1).then(|| self.clone()),
            layer: self.all[0].transactions.clone(),
            write,
            read,
            has_snapshot: plan.explicit_snapshot,
            lock_timeout_ms: plan.lock_timeout_ms,
            set_snapshot: plan.set_snapshot,
            batch: WriteBatch::new(),
            refused: None,
        })
    }

    fn flush(&self) -> Result<()> {
        for one in &self.all {
            let families: Vec<&FamilyHandle> = one.families.iter().collect();
            one.db.flush_families(&families, &FlushOptions::default())?;
        }
        Ok(())
    }

    fn compact_all(&self, force_bottommost: bool, subcompactions: u32) -> Result<()> {
        let mut options = CompactRangeOptions::default();
        options.max_subcompactions = subcompactions;
        if force_bottommost {
            options.bottommost_level_compaction = BottommostLevelCompaction::ForceOptimized;
        }
        for one in &self.all {
            for family in &one.families {
                one.db.compact_range_opt(family, None, None, &options)?;
            }
        }
        Ok(())
    }

    fn compact_level(&self, from: u32) -> Result<String> {
        let mut said = Vec::new();
        for one in &self.all {
            for family in &one.families {
                said.push(level::compact(&one.db, family, from)?);
            }
        }
        Ok(said.join("; "))
    }

    fn wait_for_compaction(&self) -> Result<()> {
        for db in self.databases() {
            db.wait_for_compaction()?;
        }
        Ok(())
    }

    fn property(&self, name: &str) -> Option<String> {
        self.first().property(name)
    }

    fn statistics(&self) -> Option<String> {
        self.statistics.as_ref().map(ToString::to_string)
    }

    fn reset_statistics(&self) -> bool {
        let Some(statistics) = &self.statistics else {
            return false;
        };
        statistics.reset();
        true
    }

    fn verify_checksums(&self) -> Result<()> {
        for db in self.databases() {
            db.verify_checksums()?;
        }
        Ok(())
    }

    fn verify_file_checksums(&self) -> Result<()> {
        for db in self.databases() {
            db.verify_file_checksums()?;
        }
        Ok(())
    }

    fn backup(&self, directory: &Path, rate: u64) -> Result<()> {
        let mut options = BackupEngineOptions::new(directory);
        options.destroy_old_data = true;
        options.backup_rate_limit = rate;
        let backups = BackupEngine::open(options, &Env::posix())?;
        backups.create_new_backup(self.first())?;
        Ok(())
    }

    fn restore(&self, backups: &Path, target: &Path, rate: u64) -> Result<()> {
        let mut options = BackupEngineOptions::new(backups);
        options.restore_rate_limit = rate;
        let backups = BackupEngineReadOnly::open(options, &Env::posix())?;
        Ok(backups.restore_db_from_latest_backup(target, target, &RestoreOptions::default())?)
    }

    fn make_table(&self, file: &Path, pairs: &mut PairSource<'_>) -> Result<()> {
        let mut writer = SstFileWriter::new(&self.options)?;
        writer.open(file)?;
        pairs(&mut |key, value| Ok(writer.put(key, value)?))?;
        writer.finish()?;
        Ok(())
    }

    fn ingest(&self, files: &[PathBuf], fill_cache: bool) -> Result<()> {
        let mut options = IngestOptions::default();
        options.move_files = true;
        options.fill_cache = fill_cache;
        let one = &self.all[0];
        Ok(one.db.ingest(&one.families[0], files, &options)?)
    }
}

/// One thread's view of an [`EskerStore`].
pub struct EskerSession {
    db: Db,
    family: FamilyHandle,
    /// The store, where there is more than one family to choose from.
    spread: Option<EskerStore>,
    layer: Layer,
    write: WriteOptions,
    read: ReadOptions,
    /// Iterators have a snapshot of their own.
    has_snapshot: bool,
    lock_timeout_ms: i64,
    set_snapshot: bool,
    batch: WriteBatch,
    /// Why a record did not fit into the batch; told by the next write.
    refused: Option<esker::Error>,
}

impl EskerSession {
    fn note(&mut self, outcome: esker::Result<()>) {
        if let Err(error) = outcome {
            self.refused.get_or_insert(error);
        }
    }
}

impl EskerSession {
    /// The database and the family that the key of this number is in.
    #[cold]
    fn spread_to(&mut self, number: u64) {
        let Some(store) = &self.spread else { return };
        if self.batch.count() == 0 {
            self.db = store.all[number as usize % store.all.len()].db.clone();
        }
        let same = |one: &&One| one.db.db_id() == self.db.db_id();
        let one = store.all.iter().find(same).unwrap_or(&store.all[0]);
        let share = (number / store.all.len() as u64) % 100;
        let family = match store.shares.iter().position(|sum| share < *sum) {
            Some(family) => family,
            None => number as usize / store.all.len() % one.families.len(),
        };
        self.family = one.families[family].clone();
    }

    /// A transaction on the numbers at `keys`; `Busy` and its like are for the caller.
    fn add_within(
        mut transaction: Transaction,
        keys: &[Vec<u8>],
        amount: u64,
        between: &mut dyn FnMut(),
    ) -> Result<bool> {
        let mut work = || -> std::result::Result<(), Broken> {
            for key in keys {
                let now = match transaction.get_for_update(key)? {
                    Some(value) => number(&value)?,
                    None => 0,
                };
                between();
                transaction.put(key, now.wrapping_add(amount).to_string())?;
            }
            Ok(transaction.commit()?)
        };
        match work() {
            Ok(()) => Ok(true),
            Err(Broken::Engine(error)) if is_conflict(&error) => {
                transaction.rollback()?;
                Ok(false)
            }
            Err(Broken::Engine(error)) => Err(error.into()),
            Err(Broken::Content(failure)) => Err(failure),
        }
    }
}

/// Why a transaction did not get to its end.
enum Broken {
    Engine(esker::Error),
    Content(Failure),
}

impl From<esker::Error> for Broken {
    fn from(error: esker::Error) -> Broken {
        Broken::Engine(error)
    }
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Broken {
        Broken::Content(failure)
    }
}

/// Returns whether another transaction was in the way, so that one may try again.
fn is_conflict(error: &esker::Error) -> bool {
    use ErrorKind::{Busy, TimedOut, TryAgain};
    matches!(error.kind(), Busy | TimedOut | TryAgain)
}

/// The perf context of the calling thread.
struct EskerAccount(PerfContext);

impl Account for EskerAccount {
    fn reset(&mut self) {
        self.0.reset();
    }

    fn report(&mut self) -> String {
        self.0.report(true)
    }
}

impl Session for EskerSession {
    type Iter<'a> = EskerIter;

    fn account(&self) -> Result<Box<dyn Account>> {
        set_perf_level(PerfLevel::EnableTimeExceptForMutex);
        Ok(Box::new(EskerAccount(PerfContext)))
    }

    #[inline]
    fn choose(&mut self, number: u64) {
        if self.spread.is_some() {
            self.spread_to(number);
        }
    }

    fn single_delete(&mut self, key: &[u8]) -> Result<()> {
        Ok(self.db.single_delete_opt(&self.family, key, &self.write)?)
    }

    fn delete_range(&mut self, from: &[u8], to: &[u8]) -> Result<()> {
        Ok(self
            .db
            .delete_range_opt(&self.family, from, to, &self.write)?)
    }

    fn merge_operands(&mut self, key: &[u8]) -> Result<(u64, u64)> {
        let all = self
            .db
            .get_merge_operands(&self.family, key, &self.read, None, usize::MAX);
        match all {
            Ok(all) => {
                let bytes = all.iter().map(|operand| operand.len() as u64).sum();
                Ok((all.len() as u64, bytes))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok((0, 0)),
            Err(error) => Err(error.into()),
        }
    }

    fn approximate_size(&mut self, from: &[u8], to: &[u8]) -> Result<u64> {
        let sizes = self.db.approximate_sizes(&self.family, &[(from, to)])?;
        Ok(sizes.iter().sum())
    }

    fn memtable_entries(&mut self, from: &[u8], to: &[u8]) -> Result<u64> {
        Ok(self.db.approximate_memtable_stats(&self.family, from, to).0)
    }

    fn add(&mut self, keys: &[Vec<u8>], amount: u64, between: &mut dyn FnMut()) -> Result<bool> {
        let transaction = match &self.layer {
            Layer::None => return add_in_batch(self, keys, amount, between),
            Layer::Pessimistic(db) => {
                let options = TransactionOptions {
                    lock_timeout: self.lock_timeout_ms,
                    set_snapshot: self.set_snapshot,
                    ..TransactionOptions::default()
                };
                db.begin_opt(self.write, &options)
            }
            Layer::Optimistic(db) => {
                let options = OptimisticTransactionOptions {
                    set_snapshot: self.set_snapshot,
                };
                db.begin_opt(self.write, options)
            }
        };
        EskerSession::add_within(transaction, keys, amount, between)
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.db.put_opt(&self.family, key, value, &self.write)?)
    }

    #[inline]
    fn merge(&mut self, key: &[u8], operand: &[u8]) -> Result<()> {
        Ok(self.db.merge_opt(&self.family, key, operand, &self.write)?)
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        Ok(self.db.delete_opt(&self.family, key, &self.write)?)
    }

    fn batch_clear(&mut self) {
        self.batch.clear();
        self.refused = None;
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        let outcome = self.batch.put_cf(FamilyId(self.family.id()), key, value);
        self.note(outcome);
    }

    fn batch_delete(&mut self, key: &[u8]) {
        let outcome = self.batch.delete_cf(FamilyId(self.family.id()), key);
        self.note(outcome);
    }

    fn batch_write(&mut self) -> Result<()> {
        if let Some(error) = self.refused.take() {
            return Err(error.into());
        }
        self.db.write_opt(&mut self.batch, &self.write)?;
        // The next key may be in another database.
        if self.spread.is_some() {
            self.batch.clear();
        }
        Ok(())
    }

    #[inline]
    fn get<R>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let value = self.db.get_opt(&self.family, key, &self.read, None)?;
        Ok(value.map(|v| look(&v)))
    }

    fn multi_get(&mut self, keys: &[u8], key_size: usize) -> Result<(u64, u64)> {
        let keys = keys.chunks_exact(key_size);
        let (mut found, mut bytes) = (0, 0);
        for value in self.db.multi_get_opt(&self.family, keys, &self.read, None) {
            if let Some(value) = value? {
                found += 1;
                bytes += value.len() as u64;
            }
        }
        Ok((found, bytes))
    }

    fn iter(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Result<EskerIter> {
        let mut read = self.read.clone();
        read.iterate_lower_bound = lower.map(<[u8]>::to_vec);
        read.iterate_upper_bound = upper.map(<[u8]>::to_vec);
        let snapshot = self.has_snapshot.then(|| self.db.snapshot());
        Ok(EskerIter(self.db.iter_opt(
            &self.family,
            read,
            snapshot.as_ref(),
        )))
    }
}

/// An iterator of the embedded engine.
pub struct EskerIter(DbIterator);

impl Iter for EskerIter {
    fn seek_to_first(&mut self) -> bool {
        self.0.seek_to_first();
        self.0.valid()
    }

    fn seek_to_last(&mut self) -> bool {
        self.0.seek_to_last();
        self.0.valid()
    }

    #[inline]
    fn seek(&mut self, key: &[u8]) -> bool {
        self.0.seek(key);
        self.0.valid()
    }

    #[inline]
    fn seek_for_prev(&mut self, key: &[u8]) -> bool {
        self.0.seek_for_prev(key);
        self.0.valid()
    }

    #[inline]
    fn next(&mut self) -> bool {
        self.0.next();
        self.0.valid()
    }

    #[inline]
    fn prev(&mut self) -> bool {
        self.0.prev();
        self.0.valid()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.0.key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.0.value()
    }

    fn status(&self) -> Result<()> {
        Ok(self.0.status()?)
    }
}
