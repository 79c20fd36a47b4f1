//! Opening a database: from a directory to a [`Core`].
//!
//! The order is: lock; read (CURRENT, MANIFEST, tables, logs, which are replayed into memory);
//! check; then make what the new state needs beside the old one (directories, tables from the logs,
//! OPTIONS, LOG); switch CURRENT to a new MANIFEST; begin a log; sweep what nothing needs. Until
//! CURRENT is switched a failure takes back what was made: the directory stays byte for byte as it
//! was, LOCK included. The new MANIFEST has the families that are made at open. A new database
//! begins its log before CURRENT, so that the first MANIFEST names it.
//!
//! `assemble` puts the parts together and looks at the tables, `commit` writes, `traces` takes
//! back.

mod assemble;
mod builder;
mod commit;
mod traces;

pub use self::builder::DbBuilder;
use self::traces::Traces;
use super::{Db, Handle};
use crate::core::Core;
use crate::job::{manual, table_opening, workers};
use crate::observe::{DbRef, InfoLog};
use crate::options::Options;
use crate::options::{self as opt, DbOptions, FamilyOptions};
use crate::ranks;
use crate::recover::create;
use crate::recover::evidence;
use crate::recover::fold::{Fold, ManifestContents, fold};
use crate::recover::follow::LogFollower;
use crate::recover::replay::{self, Replay, ReplayBounds};
use crate::runtime::whole_files::lock_closed;
use crate::tree::paths;
use crate::ttl::{TimeToLive, Ttls};
use esker_env::{Env, FileLock};
use esker_files::{current, identity};
use esker_format::FileNo;
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use esker_sync::{Arc, Mutex};
use std::path::{Path, PathBuf};

/// A column family to open: its name and its options.
///
/// ```
/// use esker::{FamilyDescriptor, FamilyOptions};
///
/// let users = FamilyDescriptor::new("users", FamilyOptions::new().bloom_filter(10.0));
/// assert_eq!(users.name, "users");
/// ```
#[doc(alias = "ColumnFamilyDescriptor")]
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

/// Uses of the database that are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OpenMode {
    /// Everything.
    #[default]
    ReadWrite,
    /// Reading the state at the time of opening; nothing in the directory changes and no lock is
    /// taken.
    ReadOnly,
    /// Reading the state at the time of opening and, after each catch-up, a newer one; nothing in
    /// the directory changes and no lock is taken.
    Secondary,
}

impl Db {
    /// Opens the database at `path` with all of its families, each with the default family's
    /// options.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, Options};
    ///
    /// let options = Options::new().create_if_missing(true).write_buffer_size(32 << 20);
    /// let db = Db::open(dir.path(), options)?;
    /// db.put("key", "value")?;
    /// db.close()?;
    /// let db = Db::open(dir.path(), Options::new())?;
    /// assert!(db.contains_key("key")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        Opening::new(path.as_ref(), options, None, OpenMode::ReadWrite)?.run()
    }

    /// Opens the database at `path` with exactly these families; all that exist must be named.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, FamilyDescriptor, FamilyOptions, Options};
    ///
    /// let options = Options::new().create_if_missing(true).create_missing_column_families(true);
    /// let families = vec![
    ///     FamilyDescriptor::new("default", FamilyOptions::new()),
    ///     FamilyDescriptor::new("users", FamilyOptions::new().bloom_filter(10.0)),
    /// ];
    /// let db = Db::open_families(dir.path(), options, families)?;
    /// assert!(db.family("users").is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn open_families(
        path: impl AsRef<Path>,
        options: Options,
        families: Vec<FamilyDescriptor>,
    ) -> Result<Db> {
        Opening::new(path.as_ref(), options, Some(families), OpenMode::ReadWrite)?.run()
    }

    /// Opens the database for a repair: no compaction begins, so all tables stay as they are.
    pub(crate) fn open_uncompacted(
        path: impl AsRef<Path>,
        options: Options,
        families: Vec<FamilyDescriptor>,
    ) -> Result<Db> {
        let mut opening =
            Opening::new(path.as_ref(), options, Some(families), OpenMode::ReadWrite)?;
        opening.holds_compactions = true;
        opening.run()
    }

    /// Opens the database at `path` with all of its families, whose values live so long: a
    /// [`std::time::Duration`], or seconds (0 and less: for ever). See [`crate::ttl`].
    pub fn open_with_ttl(
        path: impl AsRef<Path>,
        options: Options,
        ttl: impl Into<TimeToLive>,
    ) -> Result<Db> {
        let opening = Opening::new(path.as_ref(), options, None, OpenMode::ReadWrite)?;
        opening.with_ttl(&[], ttl.into()).run()
    }

    /// Opens the database at `path` with exactly these families, each with the seconds that its
    /// values live.
    pub fn open_families_with_ttl(
        path: impl AsRef<Path>,
        options: Options,
        families: Vec<(FamilyDescriptor, i32)>,
    ) -> Result<Db> {
        let families = families.into_iter();
        let (families, named): (Vec<_>, Vec<TimeToLive>) =
            families.map(|(f, s)| (f, TimeToLive::from(s))).unzip();
        let opening = Opening::new(path.as_ref(), options, Some(families), OpenMode::ReadWrite)?;
        opening.with_ttl(&named, TimeToLive::FOREVER).run()
    }

    /// Opens the database at `path`, which was written with times to live, for reading only.
    pub fn open_read_only_with_ttl(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        let opening = Opening::new(path.as_ref(), options, None, OpenMode::ReadOnly)?;
        opening.with_ttl(&[], TimeToLive::FOREVER).run()
    }

    /// Opens the database at `path` for reading only, as it is now; writers are not disturbed.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, ErrorKind, Options};
    ///
    /// let writer = Db::open_default(dir.path())?;
    /// writer.put("key", "value")?;
    /// writer.flush()?;
    /// let reader = Db::open_read_only(dir.path(), Options::new())?;
    /// assert!(reader.contains_key("key")?);
    /// let error = reader.put("key", "other").expect_err("it only reads");
    /// assert_eq!(error.kind(), ErrorKind::NotSupported);
    /// # Ok(())
    /// # }
    /// ```
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

    /// Returns whether the database at `path` has write-ahead logs, which opening it would replay.
    pub fn has_logs(path: impl AsRef<Path>, options: &Options) -> Result<bool> {
        let env = options.env.clone().unwrap_or_else(Env::posix);
        let dir = wal_dir(path.as_ref(), &options.db);
        Ok(env.fs.exists(&dir)? && !replay::list(&env, &dir)?.is_empty())
    }

    /// Opens the database at `primary`, which another process may have open, for reading. It shows
    /// the state of the primary as of now, and a newer one after each
    /// [`Db::try_catch_up_with_primary`].
    ///
    /// Nothing is written into the primary's directories and no lock is taken there; the LOG of
    /// this instance goes into `secondary`. Writes fail with `NotSupported`, as do snapshots and
    /// tailing iterators. With `max_open_files` -1, the default, tables stay readable here after
    /// the primary has deleted them.
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

    /// Opens some or all families of the database at `primary` as [`Db::open_secondary`] does.
    /// Families that the primary creates later are seen when it is opened again.
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

    /// Shows what the primary has written since. All or nothing: after an error the state shown
    /// before stays, and the call may be repeated. `TryAgain` when the primary changed too fast;
    /// `NotSupported` unless the database was opened by [`Db::open_secondary`].
    pub fn try_catch_up_with_primary(&self) -> Result<()> {
        self.core().catch_up()
    }

    /// The names of the families of the database at `path`, `default` first.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, Options};
    ///
    /// let db = Db::open_default(dir.path())?;
    /// db.create_family("users", Default::default())?;
    /// drop(db);
    /// assert_eq!(Db::list_families(dir.path(), &Options::new())?, ["default", "users"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn list_families(path: impl AsRef<Path>, options: &Options) -> Result<Vec<String>> {
        let env = options.env.clone().unwrap_or_else(Env::posix);
        let dir = path.as_ref();
        let folded = evidence::settled(&env, dir, &wal_dir(dir, &options.db), || {
            let number = current::read(&*env.fs, dir)?;
            fold(&*env.fs, dir, number)
        })?;
        Ok(folded.families.values().map(|f| f.name.clone()).collect())
    }
}

/// Tells the database who it is, for listeners and for [`Db::downgrade`]. Once, when it is put
/// together.
fn introduce(core: &Arc<Core>) {
    let own = DbRef::new(Some(Arc::downgrade(core) as _));
    let _first = core.services.database.set(own);
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
    /// No compaction may begin.
    holds_compactions: bool,
    /// Where a secondary instance keeps its LOG.
    secondary: PathBuf,
    /// The times to live of the families, when values have the time of their writing behind them.
    ttl: Option<Arc<Ttls>>,
    /// The seconds that values of unnamed families live.
    ttl_seconds: i32,
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
        let mut db = options.db.resolve();
        db.make_memory_budget(options.family.table.block_cache.limits());
        Ok(Opening {
            env,
            dir: path.to_path_buf(),
            wal_dir,
            db,
            default: options.family,
            families,
            mode,
            holds_compactions: false,
            secondary: PathBuf::new(),
            ttl: None,
            ttl_seconds: 0,
        })
    }

    /// Values have times: those of the named families live for `named`, those of others for
    /// `others`.
    fn with_ttl(mut self, named: &[TimeToLive], others: TimeToLive) -> Self {
        let ttl = Ttls::new(Arc::clone(&self.env.clock));
        for (family, named) in self.families.iter().flatten().zip(named) {
            ttl.register(&family.name, named.seconds());
        }
        self.ttl = Some(ttl);
        self.ttl_seconds = others.seconds();
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
        let mut traces = Traces::new(&self.env);
        let lock = self
            .lock_directory(&mut traces)
            .inspect_err(|_| traces.take_back())?;
        // Still locked when traces are taken back: no process has opened the database meanwhile.
        let core = self
            .recover_settled(&mut traces)
            .inspect_err(|_| traces.take_back())?;
        core.writes.admission.watch(
            Arc::clone(&core.trees.families),
            Arc::clone(&core.services.pending),
        );
        // From here on a failure closes what was opened.
        let db = Db(Arc::new(Handle {
            reads: Arc::clone(&core.reads),
            core,
            ticking: Mutex::new(ranks::ADMIN, None),
            lock: Mutex::new(ranks::ADMIN, lock),
            is_borrowed: false,
        }));
        if self.holds_compactions {
            db.core().background.jobs.lock().compactions_paused += 1;
        } else if !self.is_read_only() {
            for family in db.core().trees.families.all() {
                manual::order_level0(db.core(), &family)?;
            }
        }
        if !self.is_read_only() {
            *db.0.ticking.lock() = Some(workers::begin(db.core())?);
            // A thread for it would find nothing, mostly.
            workers::look_here(db.core(), |_| false);
        }
        Ok(db)
    }

    /// A reader without the lock may meet two states of the directory: it reads again then.
    fn recover_settled(&self, traces: &mut Traces) -> Result<Arc<Core>> {
        if self.mode == OpenMode::ReadOnly {
            let (dir, wal_dir) = (&self.dir, &self.wal_dir);
            return evidence::settled(&self.env, dir, wal_dir, || self.recover(traces));
        }
        self.recover(traces)
    }

    /// From the directory to the parts of an open database.
    fn recover(&self, traces: &mut Traces) -> Result<Arc<Core>> {
        let is_new = self.is_new()?;
        if self.mode == OpenMode::Secondary {
            return self.follow();
        }
        let folded = if is_new {
            self.first_state()?
        } else {
            evidence::manifest(&self.env, &self.dir, &self.wal_dir, &self.db)?
        };
        if !self.is_read_only() {
            folded.check_room(&self.dir)?;
        }
        let info_log = Arc::new(if self.is_read_only() && self.db.info_log.is_none() {
            InfoLog::silent(&self.env)
        } else {
            InfoLog::prepare(&self.env, &self.dir, &self.db.info_log_options())
        });
        let core = Arc::new(self.assemble(&folded, info_log)?);
        introduce(&core);
        self.check_paths(&core, &core.trees.table_dirs())?;
        if self.db.max_open_files == -1 && !self.db.open_files_async || is_new {
            table_opening::open_all(&core)?;
        } else {
            self.check_tables(&core)?;
        }
        let outcome = self.replay(&core, &folded)?;
        if !self.is_read_only() {
            self.commit(&core, &folded, outcome, is_new, traces)?;
        }
        for family in core.trees.families.all() {
            family.begin_after(core.reads.sequence.published());
        }
        Ok(core)
    }

    /// The contents of a new database's MANIFEST.
    fn first_state(&self) -> Result<ManifestContents> {
        let comparator = self.options_of("default").comparator;
        let db_id = identity::new_db_id(&*self.env.entropy);
        create::first_state(comparator.name(), &db_id)
    }

    /// The parts of a secondary instance, which shows the primary as it is now.
    fn follow(&self) -> Result<Arc<Core>> {
        let fold = self.fold_moving()?;
        let info_log = Arc::new(InfoLog::prepare(
            &self.env,
            &self.secondary,
            &self.db.info_log_options(),
        ));
        let mut core = self.assemble(fold.folded(), info_log)?;
        let is_eager = self.db.max_open_files == -1;
        let reads = Arc::get_mut(&mut core.reads).expect("nothing holds it yet");
        reads.follower = Some(Box::new(LogFollower::new(
            &self.env,
            &self.dir,
            &self.wal_dir,
            replay::mode_of(self.db.wal_recovery_mode),
            is_eager,
            fold,
            &core.trees.families,
        )));
        let core = Arc::new(core);
        introduce(&core);
        core.catch_up()?;
        core.services.info_log.start()?;
        core.services
            .info_log
            .info(format_args!("Opening the db in secondary mode"));
        core.log_opening();
        self.log_findings(&core.services.info_log);
        if !is_eager {
            core.services.info_log.warn(format_args!(
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

    /// Writes options that contradict each other into the LOG.
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

    fn lock_directory(&self, traces: &mut Traces) -> Result<Option<Box<dyn FileLock>>> {
        if self.is_read_only() {
            return Ok(None);
        }
        if self.db.create_if_missing {
            traces.make_dir(&self.dir)?;
            traces.make_dir(&self.wal_dir)?;
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
        let path = self.dir.join("LOCK");
        let is_there = self.env.fs.exists(&path)?;
        let lock = lock_closed(&self.env, &self.dir)?;
        if !is_there {
            // Only now: the lock of another owner is not taken back.
            traces.add_file(path);
        }
        Ok(Some(lock))
    }

    fn missing(&self) -> Error {
        Error::invalid_argument("there is no database (CURRENT does not exist)")
            .with_file(self.dir.join("CURRENT"))
            .with_hint("set create_if_missing to make one")
    }

    /// The directories of tables outside of the database's own.
    fn table_dirs(&self) -> Vec<PathBuf> {
        let named = self.families.iter().flatten().map(|f| &f.options);
        let others = self.families.is_none().then_some(&self.default);
        paths::of_options(&self.env, &self.dir, &self.db, named.chain(others))
    }

    /// Returns whether a missing database is to be created.
    fn is_new(&self) -> Result<bool> {
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
        Ok(true)
    }

    fn options_of(&self, name: &str) -> FamilyOptions {
        let named = self.families.iter().flatten().find(|f| f.name == name);
        let mut options = named
            .map_or(&self.default, |f| &f.options)
            .resolve_in(&self.db);
        if self.is_read_only() {
            // Nothing is flushed, as RocksDB's options then say.
            options.memtable_op_scan_flush_trigger = 0;
            options.memtable_avg_op_scan_flush_trigger = 0;
        }
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

    fn replay(&self, core: &Arc<Core>, folded: &ManifestContents) -> Result<replay::ReplayResult> {
        let oldest = replay::oldest_log(folded, self.db.allow_2pc);
        let logs = evidence::logs(&self.env, &self.wal_dir, folded, &self.db)?;
        let families: Vec<_> = folded
            .families
            .iter()
            .filter_map(|(id, f)| {
                core.trees
                    .families
                    .get(*id)
                    .map(|family| (family, f.log_number))
            })
            .collect();
        let read_only = self.is_read_only();
        let replay = Replay::new(
            &self.env,
            self.wal_dir.clone(),
            replay::mode_of(self.db.wal_recovery_mode),
            folded.last_sequence,
            families,
            |family| {
                // Full memtables are flushed after all logs were read.
                if !read_only {
                    family.switch_memtable(FileNo(0), None);
                }
                Ok(())
            },
        )
        .filtered(self.db.wal_filter.clone());
        let replay = replay.with_known(ReplayBounds::of(folded, oldest));
        let replay = if read_only {
            replay
        } else {
            replay.for_writing()
        };
        let outcome = replay.run(&logs)?;
        core.admin
            .recovery_losses
            .lock()
            .extend(outcome.losses.iter().cloned());
        core.reads
            .sequence
            .reset(outcome.last.max(folded.last_sequence));
        if !outcome.prepared.is_empty() && !read_only && !self.db.allow_2pc {
            return Err(Error::not_supported(
                "the log holds prepared transactions, which are not over",
            )
            .with_hint("open it as a transaction database, and commit or undo them"));
        }
        Ok(outcome)
    }
}
