//! Putting an open database together from what its MANIFEST says, and looking at its tables.
//! Nothing is written here.
//!
//! Used by one thread, the one that opens.

use super::Opening;
use crate::core::long_readers::LongReaderState;
use crate::core::{Admin, Background, BudgetPart, Core, Identity, ReadCore, SavedCacheState};
use crate::core::{Services, Trees};
use crate::family::backpressure::admission::Admission;
use crate::family::{Family, FamilySet, choose_block_cache};
use crate::health::Health;
use crate::memory::{SstFileManager, WriteBufferManager};
use crate::observe::{InfoLog, OperationRecord, Pending, StallLedger, TableWatch};
use crate::ranks;
use crate::recover::fold::ManifestContents;
use crate::recover::sweep;
use crate::registry::Jobs;
use crate::runtime::{BackgroundCv, CompactionAbort, JobLimiter, ResumeBackoff};
use crate::snapshot::SnapshotList;
use crate::store::Store;
use crate::store::continuity::{ManifestEnd, WalManifestLink};
use crate::tree::blobs::Blobs;
use crate::tree::tables::Storage;
use crate::tree::{Archive, FileNumbers, ObsoleteFiles, TablePaths, Tables, paths};
use crate::write::log::Log;
use crate::write::log_state::{LogSettings, LogState};
use crate::write::memtables::LiveMemtables;
use crate::write::path::{Limits, WritePath};
use crate::write::queue::WriteQueue;
use crate::write::sequence::Sequence;
use esker_files::identity;
use esker_format::{FamilyId, FileNo, KeyOrder, file_name};
use esker_status::{Error, Result};
use esker_sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize};
use esker_sync::{Arc, ArcSwap, Mutex, OnceLock, Rank};
use std::path::{Path, PathBuf};

impl Opening {
    /// The families to open: those of the MANIFEST that the caller named (all when none is named).
    pub(super) fn build_families(
        &self,
        folded: &ManifestContents,
    ) -> Result<Vec<(Arc<Family>, FileNo)>> {
        if let Some(named) = &self.families {
            let unnamed: Vec<_> = folded
                .families
                .values()
                .filter(|f| !named.iter().any(|n| n.name == f.name))
                .map(|f| f.name.as_str())
                .collect();
            if !self.is_read_only() && !unnamed.is_empty() {
                return Err(Error::invalid_argument(format!(
                    "Column families not opened: {}",
                    unnamed.join(", ")
                ))
                .with_hint("name every family of the database when it is opened for writing"));
            }
            if let Some(absent) = named
                .iter()
                .find(|n| !folded.families.values().any(|f| f.name == n.name))
                && (self.is_read_only() || !self.db.create_missing_column_families)
            {
                return Err(Error::invalid_argument(format!(
                    "Column family not found: {}",
                    absent.name
                )));
            }
        }
        let mut out: Vec<(Arc<Family>, FileNo)> = Vec::new();
        let budget = self.db.shared_memory_budget.as_deref();
        for (id, family) in &folded.families {
            let wanted = self
                .families
                .as_ref()
                .is_none_or(|n| n.iter().any(|f| f.name == family.name));
            if !wanted && *id != FamilyId::DEFAULT {
                continue;
            }
            let mut options = self.options_of(&family.name);
            options.comparator = choose_order(
                &options.comparator,
                family.comparator.as_deref(),
                family.timestamps_persisted,
            )?;
            let levels = usize::try_from(options.num_levels).unwrap_or(7);
            let version = family.version(&options.comparator, levels).map_err(|e| {
                e.with_file(self.dir.join(file_name::manifest_name(folded.manifest)))
            })?;
            let others = || out.iter().map(|(f, _)| Arc::clone(f));
            let cache = choose_block_cache(&options, budget, others);
            let watch = self.db.statistics.clone().map(|s| {
                let clock = Arc::clone(&self.env.clock);
                TableWatch::new(s, clock, version.num_levels())
            });
            let paths = TablePaths::new(&self.dir, &options.cf_paths);
            let built = Family::new(
                *id,
                family.name.clone(),
                options,
                Storage {
                    paths,
                    cache,
                    watch,
                },
                Arc::new(version),
                family.log_number,
            );
            if let Some(low) = &family.full_history_ts_low {
                built.raise_full_history_ts_low(low);
                built.change_view(|v| v.with_version(Arc::clone(&v.version)));
            }
            out.push((built, family.log_number));
        }
        Ok(out)
    }

    /// The parts of the database.
    pub(super) fn assemble(
        &self,
        folded: &ManifestContents,
        info_log: Arc<InfoLog>,
    ) -> Result<Core> {
        let env = &self.env;
        let families = self.build_families(folded)?;
        let families = FamilySet::new(families.into_iter().map(|(f, _)| f).collect())
            .ok_or_else(|| Error::corruption("the default column family is missing"))?;
        let families = Arc::new(families);
        let numbers = self.numbers(folded, &families)?;
        let services = self.services(folded, info_log)?;
        let sequence = Arc::new(Sequence::new(folded.last_sequence));
        let mark = ManifestEnd {
            number: folded.manifest,
            bytes: folded.valid_end,
        };
        let wal_link = Arc::new(WalManifestLink::new(mark, folded.known_logs));
        let trees = self.trees(folded, &services, families, numbers, &sequence, &wal_link);
        let background_cv = Arc::new(BackgroundCv::default());
        let writes = self.writes(&services, &trees, &background_cv, &sequence, wal_link);
        let reads = ReadCore {
            env: env.clone(),
            families: Arc::clone(&trees.families),
            sequence,
            snapshots: SnapshotList::new(),
            tables: Arc::clone(&trees.tables),
            blobs: Arc::clone(&trees.blobs),
            obsolete_files: Arc::clone(&trees.obsolete_files),
            background_cv: Arc::clone(&background_cv),
            statistics: services.statistics.clone(),
            operations: OperationRecord::new(
                Arc::clone(&env.clock),
                Arc::clone(&services.info_log),
            ),
            info_log: Arc::clone(&services.info_log),
            ttl: self.ttl.clone(),
            follower: None,
            unlogged: writes.log.unlogged(),
        };
        let background = Background {
            services: Arc::clone(&services),
            admission: Arc::clone(&writes.admission),
            cv: background_cv,
            jobs: Mutex::new(ranks::SCHEDULER, Jobs::default()),
            deletion: AtomicU8::default(),
            upkeep: AtomicUsize::default(),
            limiter: JobLimiter::new(
                Arc::clone(&env.clock),
                self.db.rate_limiter.clone(),
                self.db.rate_limiter_bytes_per_sec,
            ),
            resume_backoff: ResumeBackoff::default(),
            compaction_abort: CompactionAbort::default(),
            saved_cache: SavedCacheState::new(self.db.save_block_cache && !self.is_read_only()),
            slot_wanted: AtomicU64::new(0),
            long_readers: LongReaderState::default(),
            opens_tables: AtomicBool::new(self.opens_tables_later()),
            dumped_us: AtomicU64::new(env.clock.now_us()),
        };
        let given = self.db.shared_memory_budget.as_ref();
        let budget = given.filter(|_| !self.is_read_only());
        let budget = budget.map(|b| BudgetPart::join(b, &trees, &env.clock));
        Ok(Core {
            services,
            trees: Arc::new(trees),
            reads: Arc::new(reads),
            writes,
            background: Arc::new(background),
            admin: Admin::new(self.is_read_only(), env.clock.now_us()),
            budget,
            ttl: self.ttl.clone(),
        })
    }

    /// The numbers of files: the next is above all that are there.
    fn numbers(&self, folded: &ManifestContents, families: &FamilySet) -> Result<Arc<FileNumbers>> {
        let env = &self.env;
        let numbers = Arc::new(FileNumbers::new(folded.next_file));
        numbers.mark_used(sweep::largest_number(env, &self.dir)?);
        if self.wal_dir != self.dir && env.fs.exists(&self.wal_dir)? {
            numbers.mark_used(sweep::largest_number(env, &self.wal_dir)?);
        }
        let all = families.all();
        for dir in paths::beside(env, &self.dir, all.iter().map(|f| &*f.reading.paths)) {
            if env.fs.exists(&dir)? {
                numbers.mark_used(sweep::largest_number(env, &dir)?);
            }
        }
        Ok(numbers)
    }

    fn services(&self, folded: &ManifestContents, info_log: Arc<InfoLog>) -> Result<Arc<Services>> {
        let pending = Pending::new(!self.db.listeners.is_empty());
        Ok(Arc::new(Services {
            env: self.env.clone(),
            dir: self.dir.clone(),
            options: ArcSwap::from_pointee(self.db.clone()),
            identity: self.identity(folded)?,
            health: Arc::new(Health::new(Arc::clone(&pending))),
            statistics: self.db.statistics.clone(),
            info_log,
            stalls: Arc::new(StallLedger::new()),
            pending,
            database: OnceLock::new(),
            last_job: AtomicU64::new(0),
            overtaken_plans: AtomicU64::new(0),
            yields: AtomicU64::new(0),
            yielded_us: AtomicU64::new(0),
        }))
    }

    fn trees(
        &self,
        folded: &ManifestContents,
        services: &Arc<Services>,
        families: Arc<FamilySet>,
        numbers: Arc<FileNumbers>,
        sequence: &Arc<Sequence>,
        wal_link: &Arc<WalManifestLink>,
    ) -> Trees {
        let env = &self.env;
        let obsolete_files = Arc::new(ObsoleteFiles::new(
            env.clone(),
            self.dir.clone(),
            Archive::of(env, &self.wal_dir, &self.db),
            self.db.recycle_log_file_num,
            self.space(),
        ));
        if let Some(space) = self.space() {
            space.join(
                Arc::downgrade(&families) as _,
                Arc::downgrade(&obsolete_files) as _,
            );
        }
        let store = Store::new(
            env.clone(),
            self.dir.clone(),
            Arc::clone(&numbers),
            Arc::clone(sequence) as _,
            Arc::clone(&obsolete_files),
            self.db
                .write_dbid_to_manifest
                .then(|| services.identity.db_id.clone()),
            self.db.max_manifest_file_size,
            Arc::clone(wal_link),
            folded.max_family,
        );
        let tables = Arc::new(Tables::new(env.clone(), &self.db));
        Trees {
            services: Arc::clone(services),
            families,
            store,
            numbers,
            blobs: Blobs::new(
                env.clone(),
                services.statistics.clone(),
                &self.db,
                tables.salt(),
            ),
            tables,
            obsolete_files,
            options_files: Mutex::new(Rank::LEAF, Vec::new()),
        }
    }

    fn writes(
        &self,
        services: &Services,
        trees: &Trees,
        background_cv: &Arc<BackgroundCv>,
        sequence: &Arc<Sequence>,
        wal_link: Arc<WalManifestLink>,
    ) -> WritePath {
        let families = &trees.families;
        let admission = Admission::new(
            Arc::clone(&self.env.clock),
            Arc::clone(&services.stalls),
            self.db.statistics.clone(),
            self.db.delayed_write_rate,
            self.db.atomic_flush,
        );
        admission.stall_tracker.tell(Arc::clone(&services.info_log));
        let write_buffer = families.default_family().options.load().write_buffer_size;
        let state = LogState::new(
            self.env.clone(),
            Arc::clone(&trees.obsolete_files),
            self.wal_dir.clone(),
            LogSettings::of(&self.db, write_buffer),
            wal_link,
        );
        let group_bytes_max = usize::try_from(self.db.max_write_batch_group_size_bytes)
            .unwrap_or(usize::MAX)
            .max(1 << 10);
        let clock = &self.env.clock;
        let queue = WriteQueue::new(
            state,
            Arc::clone(sequence),
            Arc::clone(clock),
            group_bytes_max,
        );
        let log = Log::new(
            Arc::clone(&services.health),
            Arc::clone(background_cv),
            self.db.statistics.clone(),
            Arc::clone(&admission),
            Arc::clone(&trees.numbers),
        );
        let memtables = LiveMemtables::new(
            Arc::clone(families),
            Arc::clone(&services.health),
            Arc::clone(background_cv),
            Arc::clone(clock),
        );
        let buffers = WriteBufferManager::join(
            &self.buffers(),
            Arc::downgrade(families) as _,
            background_cv,
        );
        let max_total_wal = match self.db.max_total_wal_size {
            0 => crate::db::admin::default_wal_limit(families),
            n => n,
        };
        let limits = Limits {
            max_total_wal_size: AtomicU64::new(max_total_wal),
            atomic_flush: self.db.atomic_flush,
        };
        WritePath::new(queue, log, memtables, admission, buffers, limits)
    }

    /// The observer of files: none where nothing is written.
    pub(super) fn space(&self) -> Option<Arc<SstFileManager>> {
        let given = self.db.sst_file_manager.as_ref();
        given.filter(|_| !self.is_read_only()).map(Arc::clone)
    }

    /// The limit on memtables: the budget's, the one given, or the database's own. What is opened
    /// for reading has no thread that flushes, so it shares no limit.
    pub(super) fn buffers(&self) -> Arc<WriteBufferManager> {
        let budget = self.db.shared_memory_budget.as_ref();
        let given = self.db.write_buffer_manager.as_ref();
        match budget.map(|b| b.buffers()).or(given) {
            Some(shared) if !self.is_read_only() => Arc::clone(shared),
            _ => WriteBufferManager::new(self.db.db_write_buffer_size, false),
        }
    }

    pub(super) fn identity(&self, folded: &ManifestContents) -> Result<Identity> {
        let fs = &*self.env.fs;
        let stored = if fs.exists(&self.dir.join("IDENTITY"))? {
            Some(identity::read(fs, &self.dir)?)
        } else {
            None
        };
        let db_id = match (&folded.db_id, &stored) {
            (Some(id), _) => id.clone(),
            (None, Some(id)) if !id.is_empty() => id.clone(),
            _ => identity::new_db_id(&*self.env.entropy),
        };
        Ok(Identity {
            db_id,
            session_id: identity::new_session_id(&*self.env.entropy),
            host_id: self.host_id(),
        })
    }

    pub(super) fn host_id(&self) -> String {
        if self.db.db_host_id != "__hostname__" {
            return self.db.db_host_id.clone();
        }
        self.env
            .fs
            .read_all(Path::new("/etc/hostname"), 256)
            .map_or_else(
                |_| String::new(),
                |name| String::from_utf8_lossy(&name).trim().to_owned(),
            )
    }

    /// A table that its path should have and that is in the database's directory shows that this is
    /// a copy, as checkpoints and restored backups are: its paths belong to another database, and
    /// so do the files there.
    pub(super) fn check_paths(&self, core: &Core, table_dirs: &[PathBuf]) -> Result<()> {
        for family in core.trees.families.all() {
            let version = Arc::clone(&family.view_guard().version);
            let paths = &family.reading.paths;
            for (_, file) in version.files() {
                if !table_dirs.iter().any(|d| d == paths.dir(file.path_id)) {
                    continue;
                }
                let here = self.dir.join(file_name::table_name(file.number));
                if self.env.fs.exists(&here)? {
                    return Err(Error::invalid_argument(format!(
                        "the table lies in the database's directory and not in {}, as the options say",
                        paths.dir(file.path_id).display()
                    ))
                    .with_file(here)
                    .with_hint(
                        "open a checkpoint or a restored backup without db_paths and cf_paths, or with the \
                         database's directory as the only one; give a database that gets paths its own \
                         directory as the first of them",
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns whether tables that stay open are opened once the database is.
    pub(super) fn opens_tables_later(&self) -> bool {
        self.db.open_files_async && self.db.max_open_files == -1 && !self.is_read_only()
    }

    /// Every table must be there with the size that the MANIFEST says; what is inside is looked at
    /// when it is first read.
    pub(super) fn check_tables(&self, core: &Core) -> Result<()> {
        for family in core.trees.families.all() {
            let version = Arc::clone(&family.view_guard().version);
            for (_, file) in version.files() {
                core.trees.tables.check_there(&family.reading.paths, file)?;
            }
        }
        Ok(())
    }
}

/// The order of a family: the caller's, which must be the one that the MANIFEST names.
fn choose_order(
    given: &KeyOrder,
    stored: Option<&str>,
    timestamps_persisted: bool,
) -> Result<KeyOrder> {
    let Some(stored) = stored else {
        return Ok(given.clone());
    };
    if stored == given.name() {
        return Ok(given.clone());
    }
    // Timestamps that are not in the tables can be left out of the comparator too.
    if !timestamps_persisted && stored.strip_suffix(".u64ts") == Some(given.name()) {
        return Ok(given.clone());
    }
    // RocksDB's words, which programs look for.
    Err(Error::invalid_argument(format!(
        "{}: does not match existing comparator {stored}",
        given.name()
    )))
}
