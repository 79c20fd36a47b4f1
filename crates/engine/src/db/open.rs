//! Opening a database: from a directory to a [`Core`] with its background threads.
//!
//! The order is: lock, read (CURRENT, MANIFEST, tables, logs), check, and only then write (LOG, tables from the
//! logs, a new log, a new MANIFEST, OPTIONS), and at last sweep what nothing needs. A failure before the first
//! write leaves the directory as it was, LOCK included: what is damaged stays as it was found.
//!
//! The file is long because opening is one story, told here in its order.

use super::{Db, Handle, Options, Shown};
use crate::core::{Core, Identity};
use crate::family::{Family, FamilySet, Storage};
use crate::health::Health;
use crate::job::limiter::Limiter;
use crate::job::resume::Retry;
use crate::job::{Halt, Jobs, Wake, Workers, flush};
use crate::memory::{SstFileManager, WriteBufferManager};
use crate::observe::{EventLine, InfoLog, Pending, StallLedger, TableWatch};
use crate::options::{self as opt, BlockCacheSource, DbOptions, FamilyOptions};
use crate::ranks;
use crate::read::blobs::Blobs;
use crate::recover::create;
use crate::recover::fold::{Fold, Folded, fold};
use crate::recover::follow::Follower;
use crate::recover::replay::{self, Known, Replay};
use crate::recover::sweep::{self, Needed};
use crate::snapshot::SnapshotList;
use crate::tree::{Archive, FileNumbers, Garbage, Store, TablePaths, Tables, paths};
use crate::ttl::Ttls;
use crate::write::admission::Admission;
use crate::write::continuity::{ManifestMark, Ties};
use crate::write::log_state::{AliveLog, LogSettings, LogState};
use crate::write::path::{Limits, WritePath};
use crate::write::sequence::Sequence;
use esker_cache::CacheOptions;
use esker_env::{Env, FileLock, WriteOptions as FileWriteOptions, make_dir};
use esker_files::log::RecoveryMode;
use esker_files::manifest::check_newest;
use esker_files::table::BlockCache;
use esker_files::{current, identity};
use esker_format::{FamilyId, FileNo, KeyOrder, file_name};
use esker_lsm::version::Version;
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use esker_sync::atomic::{AtomicBool, AtomicU64};
use esker_sync::{Arc, ArcSwap, Mutex, OnceLock, Rank};
use std::path::{Path, PathBuf};

/// A column family to open: its name and its options.
#[derive(Clone, Debug)]
pub struct FamilyDescriptor {
    /// The family's name.
    pub name: String,
    /// Its options.
    pub options: FamilyOptions,
}

impl FamilyDescriptor {
    /// The family `name` with `options`.
    pub fn new(name: impl Into<String>, options: FamilyOptions) -> Self {
        FamilyDescriptor {
            name: name.into(),
            options,
        }
    }
}

/// What may be done with the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OpenMode {
    /// Everything.
    #[default]
    ReadWrite,
    /// Reading the state at the time of opening; nothing in the directory changes and no lock is taken.
    ReadOnly,
    /// Reading the state at the time of opening and, after each catch-up, a newer one; nothing in the directory
    /// changes and no lock is taken.
    Secondary,
}

impl Db {
    /// Opens the database at `path` with all of its families, each with the default family's options.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        Opening::new(path.as_ref(), options, None, OpenMode::ReadWrite)?.run()
    }

    /// Opens the database at `path` with exactly these families; all that exist must be named.
    pub fn open_families(
        path: impl AsRef<Path>,
        options: Options,
        families: Vec<FamilyDescriptor>,
    ) -> Result<Db> {
        Opening::new(path.as_ref(), options, Some(families), OpenMode::ReadWrite)?.run()
    }

    /// [`Db::open_families`] for a repair: batches of the logs that are not sound are no reason to
    /// refuse.
    pub(crate) fn open_salvaging(
        path: &Path,
        options: Options,
        families: Vec<FamilyDescriptor>,
    ) -> Result<Db> {
        let opening = Opening::new(path, options, Some(families), OpenMode::ReadWrite)?;
        opening.salvaging().run()
    }

    /// Opens the database at `path` with all of its families, whose values live for `seconds` (0 and less: for
    /// ever). See [`crate::ttl`].
    pub fn open_with_ttl(path: impl AsRef<Path>, options: Options, seconds: i32) -> Result<Db> {
        let opening = Opening::new(path.as_ref(), options, None, OpenMode::ReadWrite)?;
        opening.with_ttl(&[], seconds).run()
    }

    /// Opens the database at `path` with exactly these families, each with the seconds that its values live.
    pub fn open_families_with_ttl(
        path: impl AsRef<Path>,
        options: Options,
        families: Vec<(FamilyDescriptor, i32)>,
    ) -> Result<Db> {
        let (families, seconds): (Vec<_>, Vec<_>) = families.into_iter().unzip();
        let opening = Opening::new(path.as_ref(), options, Some(families), OpenMode::ReadWrite)?;
        opening.with_ttl(&seconds, 0).run()
    }

    /// Opens the database at `path`, which was written with times to live, for reading only.
    pub fn open_read_only_with_ttl(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        let opening = Opening::new(path.as_ref(), options, None, OpenMode::ReadOnly)?;
        opening.with_ttl(&[], 0).run()
    }

    /// Opens the database at `path` for reading only, as it is now; writers are not disturbed.
    pub fn open_read_only(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        Opening::new(path.as_ref(), options, None, OpenMode::ReadOnly)?.run()
    }

    /// Opens some or all families of the database at `path` for reading only.
    pub fn open_families_read_only(
        path: impl AsRef<Path>,
        options: Options,
        families: Vec<FamilyDescriptor>,
    ) -> Result<Db> {
        Opening::new(path.as_ref(), options, Some(families), OpenMode::ReadOnly)?.run()
    }

    /// Whether the database at `path` has write-ahead logs, which opening it would replay.
    pub fn has_logs(path: impl AsRef<Path>, options: &Options) -> Result<bool> {
        let env = options.env.clone().unwrap_or_else(Env::posix);
        let dir = wal_dir(path.as_ref(), &options.db);
        Ok(env.fs.exists(&dir)? && !replay::list(&env, &dir)?.is_empty())
    }

    /// Opens the database at `primary`, which another process may have open, for reading. It shows the state of
    /// the primary as of now, and a newer one after each [`Db::try_catch_up_with_primary`].
    ///
    /// Nothing is written into the primary's directories and no lock is taken there; the LOG of this instance goes
    /// into `secondary`. Writes fail with `NotSupported`, as do snapshots and tailing iterators. With
    /// `max_open_files` -1, the default, tables stay readable here after the primary has deleted them.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, Options};
    ///
    /// let at = dir.path().join("db");
    /// let primary = Db::open(&at, Options::new().create_if_missing(true))?;
    /// primary.put("key", "old")?;
    /// let secondary = Db::open_secondary(&at, dir.path().join("second"), Options::new())?;
    ///
    /// primary.put("key", "new")?;
    /// assert_eq!(secondary.get("key")?.as_deref(), Some(&b"old"[..]));
    /// secondary.try_catch_up_with_primary()?;
    /// assert_eq!(secondary.get("key")?.as_deref(), Some(&b"new"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn open_secondary(
        primary: impl AsRef<Path>,
        secondary: impl AsRef<Path>,
        options: Options,
    ) -> Result<Db> {
        let opening = Opening::new(primary.as_ref(), options, None, OpenMode::Secondary)?;
        opening.secondary(secondary.as_ref()).run()
    }

    /// Opens some or all families of the database at `primary` as [`Db::open_secondary`] does. Families that the
    /// primary creates later are seen when it is opened again.
    pub fn open_families_secondary(
        primary: impl AsRef<Path>,
        secondary: impl AsRef<Path>,
        options: Options,
        families: Vec<FamilyDescriptor>,
    ) -> Result<Db> {
        let mode = OpenMode::Secondary;
        let opening = Opening::new(primary.as_ref(), options, Some(families), mode)?;
        opening.secondary(secondary.as_ref()).run()
    }

    /// Shows what the primary has written since. All or nothing: after an error the state shown before stays, and
    /// the call may be repeated. `TryAgain` when the primary changed too fast; `NotSupported` unless the database was
    /// opened by [`Db::open_secondary`].
    pub fn try_catch_up_with_primary(&self) -> Result<()> {
        self.core().catch_up()
    }

    /// The names of the families of the database at `path`, `default` first.
    pub fn list_families(path: impl AsRef<Path>, options: &Options) -> Result<Vec<String>> {
        let env = options.env.clone().unwrap_or_else(Env::posix);
        let number = current::read(&*env.fs, path.as_ref())?;
        let folded = fold(&*env.fs, path.as_ref(), number)?;
        Ok(folded.families.values().map(|f| f.name.clone()).collect())
    }
}

/// Where the logs of the database at `path` are.
fn wal_dir(path: &Path, options: &DbOptions) -> PathBuf {
    if options.wal_dir.is_empty() {
        path.to_path_buf()
    } else {
        PathBuf::from(&options.wal_dir)
    }
}

/// The state of one call to open.
struct Opening {
    env: Env,
    dir: PathBuf,
    wal_dir: PathBuf,
    db: DbOptions,
    default: FamilyOptions,
    families: Option<Vec<FamilyDescriptor>>,
    mode: OpenMode,
    /// Where a secondary instance keeps its LOG.
    secondary: PathBuf,
    /// The times to live of the families, when values have the time of their writing behind them.
    ttl: Option<Arc<Ttls>>,
    /// The seconds that values of unnamed families live.
    ttl_seconds: i32,
    /// Takes what can be read of logs.
    is_salvage: bool,
}

impl Opening {
    fn new(
        path: &Path,
        options: Options,
        families: Option<Vec<FamilyDescriptor>>,
        mode: OpenMode,
    ) -> Result<Self> {
        let env = options.env.unwrap_or_else(Env::posix);
        let env = options.db.background_env(env);
        match &families {
            None => opt::check(&options.db, [("default", &options.family)])?,
            Some(named) => {
                opt::check(
                    &options.db,
                    named.iter().map(|f| (f.name.as_str(), &f.options)),
                )?;
            }
        }
        let wal_dir = wal_dir(path, &options.db);
        Ok(Opening {
            env,
            dir: path.to_path_buf(),
            wal_dir,
            db: options.db.resolve(),
            default: options.family,
            families,
            mode,
            secondary: PathBuf::new(),
            ttl: None,
            ttl_seconds: 0,
            is_salvage: false,
        })
    }

    /// Values have times: those of the named families live for `named` seconds, those of others for `others`.
    fn with_ttl(mut self, named: &[i32], others: i32) -> Self {
        let ttl = Ttls::new(Arc::clone(&self.env.clock));
        for (family, seconds) in self.families.iter().flatten().zip(named) {
            ttl.register(&family.name, *seconds);
        }
        self.ttl = Some(ttl);
        self.ttl_seconds = others;
        self
    }

    fn salvaging(mut self) -> Self {
        self.is_salvage = true;
        self
    }

    fn secondary(mut self, path: &Path) -> Self {
        self.secondary = path.to_path_buf();
        self
    }

    fn is_read_only(&self) -> bool {
        self.mode != OpenMode::ReadWrite
    }

    fn run(self) -> Result<Db> {
        let lock_path = self.dir.join("LOCK");
        let had_lock = self.is_read_only() || self.env.fs.exists(&lock_path)?;
        let lock = self.lock_directory()?;
        let core = match self.recover() {
            Ok(core) => core,
            Err(e) => {
                if !had_lock {
                    // Still locked: nobody else has opened the database meanwhile. The first error counts.
                    let _ = self.env.fs.remove_file(&lock_path);
                }
                return Err(e);
            }
        };
        core.admission
            .watch(Arc::clone(&core.families), Arc::clone(&core.pending));
        // From here on a failure closes what was opened, background threads included.
        let db = Db(Arc::new(Handle {
            core,
            workers: Mutex::new(ranks::ADMIN, Workers::default()),
            lock: Mutex::new(ranks::ADMIN, lock),
            closed: AtomicBool::new(false),
            is_borrowed: false,
        }));
        if !self.is_read_only() {
            db.0.add_workers()?;
        }
        self.create_missing(db.core())?;
        db.core().wake.notify();
        Ok(db)
    }

    /// From the directory to the parts of an open database. Nothing changes before everything was read.
    fn recover(&self) -> Result<Arc<Core>> {
        let created = self.create_if_wanted()?;
        if self.mode == OpenMode::Secondary {
            return self.follow();
        }
        let number = current::read(&*self.env.fs, &self.dir)?;
        check_newest(&*self.env.fs, &self.dir, number)?;
        let folded = fold(&*self.env.fs, &self.dir, number)?;
        folded.check_end(&*self.env.fs, &self.dir, &self.wal_dir)?;
        if folded.torn_tail
            && replay::mode_of(self.db.wal_recovery_mode) == RecoveryMode::AbsoluteConsistency
        {
            return Err(Error::corruption("the MANIFEST ends inside a record")
                .with_file(self.dir.join(file_name::manifest_name(number))));
        }
        let info_log = Arc::new(if self.is_read_only() && self.db.info_log.is_none() {
            InfoLog::silent(&self.env)
        } else {
            InfoLog::prepare(&self.env, &self.dir, &self.db)
        });
        let core = Arc::new(self.assemble(&folded, info_log)?);
        // Set once, here.
        let _first = core.me.set(Arc::downgrade(&core));
        let table_dirs = core.table_dirs();
        self.check_paths(&core, &table_dirs)?;
        if self.db.max_open_files == -1 || created {
            self.open_tables(&core)?;
        } else {
            self.check_tables(&core)?;
        }
        let outcome = self.replay(&core, &folded)?;
        if !self.is_read_only() {
            paths::make(&self.env, &table_dirs)?;
            self.commit(&core, &folded, outcome)?;
        }
        for family in core.families.all() {
            family.begin_after(core.sequence.published());
        }
        Ok(core)
    }

    /// The parts of a secondary instance, which shows the primary as it is now.
    fn follow(&self) -> Result<Arc<Core>> {
        let fold = self.fold_moving()?;
        let info_log = Arc::new(InfoLog::prepare(&self.env, &self.secondary, &self.db));
        let mut core = self.assemble(fold.folded(), info_log)?;
        let is_eager = self.db.max_open_files == -1;
        core.follower = Some(Follower::new(
            &self.env,
            &self.dir,
            &self.wal_dir,
            replay::mode_of(self.db.wal_recovery_mode),
            is_eager,
            fold,
            &core.families,
        ));
        let core = Arc::new(core);
        core.catch_up()?;
        core.info_log.start()?;
        core.info_log
            .info(format_args!("Opening the db in secondary mode"));
        core.log_opening();
        self.log_findings(&core.info_log);
        if !is_eager {
            core.info_log.warn(format_args!(
                "max_open_files is not -1: tables that the primary deletes may be missed by reads before the next catch-up"
            ));
        }
        Ok(core)
    }

    /// Reads the MANIFEST of a database that may replace it meanwhile.
    fn fold_moving(&self) -> Result<Fold> {
        let fs = &*self.env.fs;
        let mut number = current::read(fs, &self.dir)?;
        loop {
            let failed = match Fold::open(fs, &self.dir, number) {
                Ok(fold) => return Ok(fold),
                Err(e) => e,
            };
            let newer = current::read(fs, &self.dir)?;
            if newer == number || !failed.is_not_found() {
                return Err(failed);
            }
            number = newer;
        }
    }

    /// What does not fit together in the options goes into the LOG.
    fn log_findings(&self, info_log: &InfoLog) {
        let named = self.families.iter().flatten();
        let named = named.map(|f| (f.name.as_str(), &f.options));
        let others = self
            .families
            .is_none()
            .then_some(("default", &self.default));
        for finding in opt::lint(&self.db, named.chain(others)) {
            info_log.warn(format_args!("options: {finding}"));
        }
    }

    fn lock_directory(&self) -> Result<Option<Box<dyn FileLock>>> {
        if self.is_read_only() {
            return Ok(None);
        }
        if self.db.create_if_missing {
            make_dir(&*self.env.fs, &self.dir)?;
            make_dir(&*self.env.fs, &self.wal_dir)?;
        } else if !self.env.fs.exists(&self.dir)? {
            return Err(self.missing());
        } else if !self.env.fs.exists(&self.dir.join("CURRENT"))? {
            // Do not leave a LOCK file in a directory that holds no database.
            create::check_empty(&self.env, &self.dir, &self.wal_dir, &[])?;
            return Err(self.missing());
        }
        if seeded(Bug::LockNotTaken) {
            return Ok(None);
        }
        self.env.fs.lock(&self.dir.join("LOCK")).map(Some)
    }

    fn missing(&self) -> Error {
        Error::invalid_argument("there is no database (CURRENT does not exist)")
            .with_file(self.dir.join("CURRENT"))
            .with_hint("set create_if_missing to make one")
    }

    /// The directories outside of the database's in which the options put tables.
    fn table_dirs(&self) -> Vec<PathBuf> {
        let named = self.families.iter().flatten().map(|f| &f.options);
        let others = self.families.is_none().then_some(&self.default);
        paths::of_options(&self.env, &self.dir, &self.db, named.chain(others))
    }

    /// Makes a new database where there is none; true when it did.
    fn create_if_wanted(&self) -> Result<bool> {
        if self.env.fs.exists(&self.dir.join("CURRENT"))? {
            if self.db.error_if_exists && !self.is_read_only() {
                return Err(Error::invalid_argument(
                    "the database exists (error_if_exists is set)",
                )
                .with_file(&self.dir));
            }
            return Ok(false);
        }
        let table_dirs = self.table_dirs();
        create::check_empty(&self.env, &self.dir, &self.wal_dir, &table_dirs)?;
        if self.is_read_only() || !self.db.create_if_missing {
            return Err(self.missing());
        }
        paths::make(&self.env, &table_dirs)?;
        let comparator = self.options_of("default").comparator.name().to_owned();
        create::create(
            &self.env,
            &self.dir,
            &comparator,
            self.db.write_identity_file,
            self.db.write_dbid_to_manifest,
        )?;
        Ok(true)
    }

    fn options_of(&self, name: &str) -> FamilyOptions {
        let named = self.families.iter().flatten().find(|f| f.name == name);
        let options = named
            .map_or(&self.default, |f| &f.options)
            .resolve_in(&self.db);
        match &self.ttl {
            None => options,
            Some(ttl) => {
                if ttl.seconds(name).is_none() {
                    ttl.register(name, self.ttl_seconds);
                }
                ttl.wrap(name, options)
            }
        }
    }

    /// The families to open: those of the MANIFEST that the caller named (all when none is named).
    fn build_families(&self, folded: &Folded) -> Result<Vec<(Arc<Family>, FileNo)>> {
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
        let mut out = Vec::new();
        let mut caches = Caches::default();
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
            let cache = caches.of(&options);
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

    fn assemble(&self, folded: &Folded, info_log: Arc<InfoLog>) -> Result<Core> {
        let env = &self.env;
        let families = self.build_families(folded)?;
        let families = FamilySet::new(families.into_iter().map(|(f, _)| f).collect())
            .ok_or_else(|| Error::corruption("the default column family is missing"))?;
        let families = Arc::new(families);
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
        let identity = self.identity(folded)?;
        let sequence = Arc::new(Sequence::new(folded.last_sequence));
        let garbage = Arc::new(Garbage::new(
            env.clone(),
            self.dir.clone(),
            Archive::of(env, &self.wal_dir, &self.db),
            self.db.recycle_log_file_num,
            self.space(),
        ));
        if let Some(space) = self.space() {
            space.join(&families, &garbage);
        }
        let stalls = Arc::new(StallLedger::new());
        let admission = Admission::new(
            Arc::clone(&env.clock),
            Arc::clone(&stalls),
            self.db.statistics.clone(),
            self.db.delayed_write_rate,
            self.db.atomic_flush,
        );
        admission.holdups.tell(Arc::clone(&info_log));
        let pending = Pending::new(!self.db.listeners.is_empty());
        let health = Arc::new(Health::new(Arc::clone(&pending)));
        let wake = Arc::new(Wake::new());
        let mark = ManifestMark {
            number: folded.manifest,
            bytes: folded.valid_end,
        };
        let ties = Arc::new(Ties::new(mark, folded.known_logs));
        let store = Store::new(
            env.clone(),
            self.dir.clone(),
            Arc::clone(&numbers),
            Arc::clone(&sequence),
            Arc::clone(&garbage),
            self.db
                .write_dbid_to_manifest
                .then(|| identity.db_id.clone()),
            self.db.max_manifest_file_size,
            Arc::clone(&ties),
            folded.max_family,
        );
        let write_buffer = families.default_family().options.load().write_buffer_size;
        let log = LogState::new(
            env.clone(),
            Arc::clone(&garbage),
            self.wal_dir.clone(),
            LogSettings::of(&self.db, write_buffer),
            ties,
        );
        let max_total_wal = match self.db.max_total_wal_size {
            0 => super::admin::default_wal_limit(&families),
            n => n,
        };
        let writes = WritePath::new(
            Arc::clone(&families),
            Arc::clone(&sequence),
            Arc::clone(&admission),
            Arc::clone(&health),
            Arc::clone(&numbers),
            Arc::clone(&wake),
            self.db.statistics.clone(),
            log,
            Limits {
                max_total_wal_size: AtomicU64::new(max_total_wal),
                atomic_flush: self.db.atomic_flush,
                group_bytes_max: usize::try_from(self.db.max_write_batch_group_size_bytes)
                    .unwrap_or(usize::MAX)
                    .max(1 << 10),
            },
            WriteBufferManager::join(&self.buffers(), &families, &wake),
        );
        Ok(Core {
            env: env.clone(),
            dir: self.dir.clone(),
            families,
            sequence,
            snapshots: SnapshotList::new(),
            health,
            admission,
            numbers,
            store,
            tables: Arc::new(Tables::new(env.clone(), &self.db)),
            garbage,
            writes,
            wake,
            jobs: Mutex::new(ranks::SCHEDULER, Jobs::default()),
            statistics: self.db.statistics.clone(),
            info_log,
            me: OnceLock::new(),
            identity,
            admin: Mutex::new(ranks::ADMIN, ()),
            blobs: Blobs::new(env.clone()),
            limiter: Limiter::new(Arc::clone(&env.clock), &self.db),
            retry: Retry::default(),
            stalls,
            options: ArcSwap::from_pointee(self.db.clone()),
            pending,
            last_job: AtomicU64::new(0),
            recovery_losses: Mutex::new(Rank::LEAF, Vec::new()),
            opened_us: env.clock.now_us(),
            dumped_us: AtomicU64::new(env.clock.now_us()),
            shown: Mutex::new(Rank::LEAF, Shown::default()),
            read_only: self.is_read_only(),
            follower: None,
            ttl: self.ttl.clone(),
            halt: Halt::default(),
        })
    }

    /// Who watches the files: nobody where nothing is written.
    fn space(&self) -> Option<Arc<SstFileManager>> {
        let given = self.db.sst_file_manager.as_ref();
        given.filter(|_| !self.is_read_only()).map(Arc::clone)
    }

    /// The limit on memtables: the one given, or the database's own. What is opened for reading has nobody who would
    /// flush, so it keeps to itself.
    fn buffers(&self) -> Arc<WriteBufferManager> {
        match &self.db.write_buffer_manager {
            Some(shared) if !self.is_read_only() => Arc::clone(shared),
            _ => WriteBufferManager::new(self.db.db_write_buffer_size, false),
        }
    }

    fn identity(&self, folded: &Folded) -> Result<Identity> {
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

    /// Writes IDENTITY where it is missing or names another database.
    fn write_identity(&self, db_id: &str) -> Result<()> {
        let fs = &*self.env.fs;
        if !self.db.write_identity_file {
            return Ok(());
        }
        let there =
            fs.exists(&self.dir.join("IDENTITY"))? && identity::read(fs, &self.dir)? == db_id;
        if there {
            Ok(())
        } else {
            identity::write(fs, &self.dir, db_id)
        }
    }

    fn host_id(&self) -> String {
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

    /// A table that its path should have and that is in the database's directory shows that this is a copy, as
    /// checkpoints and restored backups are: its paths belong to another database, and so do the files there.
    fn check_paths(&self, core: &Core, table_dirs: &[PathBuf]) -> Result<()> {
        for family in core.families.all() {
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

    /// Opens every table: a missing or foreign file is found now and not in the middle of a read.
    fn open_tables(&self, core: &Core) -> Result<()> {
        for family in core.families.all() {
            let version = Arc::clone(&family.view_guard().version);
            for (level, file) in version.files() {
                core.tables.get(file, level, &family.reading)?;
            }
        }
        Ok(())
    }

    /// Every table must be there with the size that the MANIFEST says; what is inside is looked at when it
    /// is first read.
    fn check_tables(&self, core: &Core) -> Result<()> {
        for family in core.families.all() {
            let version = Arc::clone(&family.view_guard().version);
            for (_, file) in version.files() {
                let paths = &family.reading.paths;
                let path = core.tables.path(paths, file)?;
                let found = self.env.fs.metadata(&path);
                let len = found.map_err(|e| paths.explain(file, e))?.len;
                if len != file.size {
                    return Err(Error::corruption(format!(
                        "the file has {len} bytes and the MANIFEST says {}",
                        file.size
                    ))
                    .with_file(path));
                }
            }
        }
        Ok(())
    }

    fn replay(&self, core: &Arc<Core>, folded: &Folded) -> Result<replay::Outcome> {
        let oldest = replay::oldest_log(folded, self.db.allow_2pc);
        let mut logs = if self.env.fs.exists(&self.wal_dir)? {
            replay::list(&self.env, &self.wal_dir)?
        } else {
            Vec::new()
        };
        logs.retain(|n| *n >= oldest);
        if self.db.track_and_verify_wals_in_manifest {
            check_tracked(&self.env, &self.wal_dir, folded, &logs)?;
        }
        let families: Vec<_> = folded
            .families
            .iter()
            .filter_map(|(id, f)| core.families.get(*id).map(|family| (family, f.log_number)))
            .collect();
        let read_only = self.is_read_only();
        let replay = Replay::new(
            &self.env,
            self.wal_dir.clone(),
            replay::mode_of(self.db.wal_recovery_mode),
            folded.last_sequence,
            families,
            |family| {
                // Only in memory here: what is full is flushed once everything was read.
                if !read_only {
                    family.switch_memtable(FileNo(0), None);
                }
                Ok(())
            },
        )
        .salvaging(self.is_salvage)
        .filtered(self.db.wal_filter.clone());
        // Beside a writer logs come and go while they are listed.
        let replay = match read_only {
            true => replay,
            false => replay.with_known(Known::of(folded, oldest)),
        };
        let outcome = replay.run(&logs)?;
        core.recovery_losses
            .lock()
            .extend(outcome.losses.iter().cloned());
        core.sequence.reset(outcome.last.max(folded.last_sequence));
        if !outcome.prepared.is_empty() && !read_only && !self.db.allow_2pc {
            return Err(Error::not_supported(
                "the log holds prepared transactions, which are not over",
            )
            .with_hint("open it as a transaction database, and commit or undo them"));
        }
        Ok(outcome)
    }

    /// Writes what the open changed: tables for what the logs held, a log, a MANIFEST, OPTIONS; then sweeps.
    fn commit(&self, core: &Arc<Core>, folded: &Folded, outcome: replay::Outcome) -> Result<()> {
        core.info_log.start()?;
        core.log_opening();
        self.log_findings(&core.info_log);
        let event = |name| EventLine::new(name, 0, self.env.clock.unix_us());
        let started =
            event("recovery_started").numbers("wal_files", outcome.logs.iter().map(|(n, _)| n.0));
        core.info_log.info(format_args!("{}", started.finish()));
        for loss in &outcome.losses {
            core.info_log.warn(format_args!("recovery: {loss}"));
        }
        if folded.torn_tail {
            core.info_log.warn(format_args!(
                "recovery: an unfinished edit at the end of {} was ignored",
                file_name::manifest_name(folded.manifest)
            ));
        }
        self.write_identity(&core.identity.db_id)?;
        let last_log = outcome.logs.last().map_or(FileNo(0), |(n, _)| *n);
        core.numbers.mark_used(last_log);
        let log_number = core.numbers.next();
        let keep_memtables = self.db.avoid_flush_during_recovery
            // What a commit took from an older section may be in no log that stays.
            && !outcome.has_sections
            && outcome.damaged.is_empty()
            && core
                .families
                .all()
                .iter()
                .all(|f| f.view_guard().immutable.is_empty());
        // Until what is in the logs is in tables, or in the new log.
        let oldest = replay::oldest_log(folded, self.db.allow_2pc);
        core.store.name_oldest_log(oldest);
        core.store.start_manifest(&core.families)?;
        {
            let mut log = core.writes.lock();
            if keep_memtables {
                log.adopt(
                    outcome
                        .logs
                        .iter()
                        .map(|&(number, bytes)| AliveLog::found(number, bytes)),
                );
            }
            for family in core.families.all() {
                log.note_family(family.id, &family.order)?;
            }
            core.writes.prepared.adopt(outcome.prepared.clone())?;
            if !outcome.prepared.is_empty() {
                // The new log has it, synced, before what was written earlier is in tables.
                self.sync_kept_logs(&outcome)?;
            }
            core.writes.start_log(&mut log, log_number)?;
            if outcome.stopped || !outcome.losses.is_empty() {
                // An empty batch at the next sequence shows a later recovery that the logs join up.
                let header =
                    esker_format::batch::encode_header(core.sequence.published().next(), 0);
                log.append(&[&header])?;
            }
            if keep_memtables && outcome.logs.iter().any(|(_, bytes)| *bytes > 0) {
                log.say_now(core.sequence.published().next())?;
            }
        }
        if keep_memtables {
            self.sync_kept_logs(&outcome)?;
            let first = outcome.logs.first().map_or(log_number, |(n, _)| *n);
            for family in core.families.all() {
                family.view_guard().mem.set_log_number(first);
            }
            core.store.note_logs(None)?;
        } else {
            self.flush_recovered(core, log_number)?;
        }
        self.keep_damaged_logs(core, &outcome)?;
        let finished = event("recovery_finished").text("status", "OK");
        core.info_log.info(format_args!("{}", finished.finish()));
        let options_number = self.write_options(core)?;
        self.sweep(
            core,
            folded,
            if keep_memtables {
                folded.oldest_needed_log()
            } else {
                log_number
            },
            options_number,
            outcome.is_doubtful,
        )
    }

    /// Makes logs survive power loss that stay in use, or that something newer is to be synced beside: the process that wrote
    /// them may have died before it synced them, and a sync of the new log alone would leave a hole before it. One without a batch
    /// too: torn, it would look like one that has lost some.
    fn sync_kept_logs(&self, outcome: &replay::Outcome) -> Result<()> {
        for (number, _) in &outcome.logs {
            let path = self.wal_dir.join(file_name::log_name(*number));
            let mut file = self
                .env
                .fs
                .open_append(&path, FileWriteOptions::default())?;
            file.sync()?;
            file.close()?;
        }
        Ok(())
    }

    /// Puts what recovery found in memtables into tables, of all families at once: a crash in between would leave some
    /// with tables that are ahead of what the logs still hold for the others.
    fn flush_recovered(&self, core: &Arc<Core>, log_number: FileNo) -> Result<()> {
        let families = core.families.all();
        for family in &families {
            if !family.view_guard().mem.is_empty() {
                family.switch_memtable(log_number, None);
            }
            family.view_guard().mem.set_log_number(log_number);
        }
        flush::run_all(core, &families, log_number)
    }

    /// Logs with bytes that were not replayed are set aside under a name that nothing deletes.
    fn keep_damaged_logs(&self, core: &Core, outcome: &replay::Outcome) -> Result<()> {
        for number in &outcome.damaged {
            let path = self.wal_dir.join(file_name::log_name(*number));
            let aside = self
                .wal_dir
                .join(format!("{}.damaged", file_name::log_name(*number)));
            self.env.fs.rename(&path, &aside)?;
            core.info_log.warn(format_args!(
                "the damaged log is kept as {}",
                aside.display()
            ));
        }
        if !outcome.damaged.is_empty() {
            self.env.fs.sync_dir(&self.wal_dir)?;
        }
        Ok(())
    }

    fn write_options(&self, core: &Core) -> Result<FileNo> {
        let number = core.numbers.next();
        core.write_options_file(number)?;
        Ok(number)
    }

    fn sweep(
        &self,
        core: &Core,
        folded: &Folded,
        oldest_log: FileNo,
        newest_options: FileNo,
        is_doubtful: bool,
    ) -> Result<()> {
        let mut needed = Needed {
            is_doubtful: is_doubtful || folded.torn_tail,
            oldest_log,
            manifest: core.store.manifest_number(),
            ..Needed::default()
        };
        for family in core.families.all() {
            let version: Arc<Version> = Arc::clone(&family.view_guard().version);
            needed.tables.extend(version.files().map(|(_, f)| f.number));
            needed.blobs.extend(version.blob_files().keys().copied());
        }
        needed.options = sweep::newest_options(&self.env, &self.dir, newest_options)?;
        let mut files = sweep::unneeded(&self.env, &self.dir, folded, &needed)?;
        if self.wal_dir != self.dir {
            files.extend(sweep::unneeded(&self.env, &self.wal_dir, folded, &needed)?);
        }
        for dir in core.table_dirs() {
            if self.env.fs.exists(&dir.join(file_name::CURRENT))? {
                core.info_log.warn(format_args!(
                    "{} is the directory of another database: nothing is deleted there that this one does not know",
                    dir.display()
                ));
                continue;
            }
            let mut found = sweep::unneeded(&self.env, &dir, folded, &needed)?;
            found.retain(|path| sweep::is_data(path) && !files.contains(path));
            files.extend(found);
        }
        for path in files {
            core.garbage.retire_file(path);
        }
        core.purge();
        Ok(())
    }

    fn create_missing(&self, core: &Arc<Core>) -> Result<()> {
        for wanted in self.families.iter().flatten() {
            if core.families.by_name(&wanted.name).is_none() {
                core.create_family(&wanted.name, wanted.options.clone())?;
            }
        }
        Ok(())
    }
}

/// Families with the same options share a block cache, as they do in RocksDB when they share a table factory.
#[derive(Default)]
struct Caches(Vec<(CacheOptions, Arc<BlockCache>)>);

impl Caches {
    fn of(&mut self, options: &FamilyOptions) -> Option<Arc<BlockCache>> {
        if options.table.no_block_cache {
            return None;
        }
        let limits = match &options.table.block_cache {
            BlockCacheSource::Shared(given) => return Some(Arc::clone(given)),
            BlockCacheSource::Own(limits) => *limits,
        };
        if let Some((_, c)) = self.0.iter().find(|(l, _)| *l == limits) {
            return Some(Arc::clone(c));
        }
        let cache = Arc::new(BlockCache::new(limits));
        self.0.push((limits, Arc::clone(&cache)));
        Some(cache)
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

/// Every log that the MANIFEST tracks must be there, with at least the bytes that were synced.
fn check_tracked(env: &Env, dir: &Path, folded: &Folded, logs: &[FileNo]) -> Result<()> {
    for (number, synced) in &folded.tracked_logs {
        let path = dir.join(file_name::log_name(*number));
        if !logs.contains(number) {
            return Err(
                Error::corruption("a log that the MANIFEST tracks is missing").with_file(path),
            );
        }
        let len = env.fs.metadata(&path)?.len;
        if synced.is_some_and(|s| len < s) {
            return Err(Error::corruption(format!(
                "the log has {len} bytes, fewer than were synced"
            ))
            .with_file(path));
        }
    }
    Ok(())
}
