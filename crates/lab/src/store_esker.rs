//! The embedded engine as a [`Store`]: `--engine=esker`, which is the default.
//!
//! It is driven through the engine's public API alone, with the same option strings that a loaded
//! library gets. A session owns its write batch and its options; values are looked at where they lie.

use std::sync::Arc;

use esker::observe::{PerfContext, PerfLevel, Statistics, set_perf_level};
use esker::options::{BlockCacheSource, BottommostLevelCompaction, ReadTier};
use esker::{
    CompactRangeOptions, Db, DbIterator, FamilyHandle, Options, ReadOptions, WriteBatch,
    WriteOptions,
};

use crate::slowest::Account;
use crate::store::{CachePolicy, Iter, OpenPlan, Session, SessionPlan, Store};
use crate::{Failure, Result};

impl From<esker::Error> for Failure {
    fn from(error: esker::Error) -> Failure {
        Failure::new(error.to_string())
    }
}

/// A database opened with the embedded engine.
#[derive(Clone)]
pub struct EskerStore {
    db: Db,
    family: FamilyHandle,
    statistics: Option<Arc<Statistics>>,
}

impl EskerStore {
    /// Opens what `plan` says.
    ///
    /// # Errors
    /// An option that is unknown or refused, or a database that does not open.
    pub fn open(plan: &OpenPlan) -> Result<EskerStore> {
        let mut options = Options::new().create_if_missing(!plan.must_exist);
        for (name, value) in plan.options.iter().chain(&plan.table) {
            options
                .set_in_place(name, value)
                .map_err(|e| Failure::from(e).context(format!("option {name}={value}")))?;
        }
        if plan.cache.policy == CachePolicy::HyperClock {
            return Err(Failure::new("the embedded engine has no hyper_clock_cache"));
        }
        match plan.cache.capacity {
            0 => options.family.table.no_block_cache = true,
            n => {
                if let Ok(capacity) = usize::try_from(n) {
                    options.family.table.block_cache = BlockCacheSource::with_capacity(capacity);
                }
            }
        }
        let statistics = plan.statistics.then(Statistics::new);
        options.db.statistics = statistics.clone();
        let db = Db::open(&plan.path, options)?;
        let family = db.default_family_handle();
        Ok(EskerStore {
            db,
            family,
            statistics,
        })
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
        Ok(EskerSession {
            db: self.db.clone(),
            family: self.family.clone(),
            write,
            read,
            batch: WriteBatch::new(),
            refused: None,
        })
    }

    fn flush(&self) -> Result<()> {
        Ok(self.db.flush()?)
    }

    fn compact_all(&self, force_bottommost: bool, subcompactions: u32) -> Result<()> {
        let mut options = CompactRangeOptions::default();
        options.max_subcompactions = subcompactions;
        if force_bottommost {
            options.bottommost_level_compaction = BottommostLevelCompaction::ForceOptimized;
        }
        Ok(self
            .db
            .compact_range_opt(&self.family, None, None, &options)?)
    }

    fn compact_level(&self, _from: u32) -> Result<String> {
        Err(Failure::new(
            "the embedded engine offers no compaction of chosen files",
        ))
    }

    fn wait_for_compaction(&self) -> Result<()> {
        Ok(self.db.wait_for_compaction()?)
    }

    fn property(&self, name: &str) -> Option<String> {
        self.db.property(name)
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
        // A full scan that bypasses the cache reads, and so verifies, every data block.
        let mut read = ReadOptions::default();
        read.fill_cache = false;
        let mut entries = self.db.iter_opt(&self.family, read, None);
        entries.seek_to_first();
        while entries.valid() {
            entries.next();
        }
        Ok(entries.status()?)
    }
}

/// One thread's view of an [`EskerStore`].
pub struct EskerSession {
    db: Db,
    family: FamilyHandle,
    write: WriteOptions,
    read: ReadOptions,
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
        let outcome = self.batch.put(key, value);
        self.note(outcome);
    }

    fn batch_delete(&mut self, key: &[u8]) {
        let outcome = self.batch.delete(key);
        self.note(outcome);
    }

    fn batch_write(&mut self) -> Result<()> {
        if let Some(error) = self.refused.take() {
            return Err(error.into());
        }
        Ok(self.db.write_opt(&mut self.batch, &self.write)?)
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
        Ok(EskerIter(self.db.iter_opt(&self.family, read, None)))
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
