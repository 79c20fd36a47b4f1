//! The public interface of a database.

mod admin;
mod background;
mod bound_family;
mod checkpoint;
mod closed;
mod counting;
mod destroy;
mod entries;
mod entry_ranges;
mod ingest;
mod live_files;
mod memory_budget;
mod memory_usage;
mod metadata;
mod open;
mod operations;
mod options_file;
mod prepared;
mod properties;
mod ranges;
mod reads;
mod saved_cache;
mod short_forms;
mod snapshot_reads;
mod table_file;
mod timestamps;
mod updates;
mod write;

pub use bound_family::BoundFamily;
pub use checkpoint::{CheckpointOptions, CheckpointReport};
pub use closed::{ClosedDb, LogReport};
pub use destroy::DestroyReport;
pub use entries::{Direction, Entries, EntriesFrom, IteratorMode, Keys, Values};
pub use entry_ranges::KeyRange;
pub use ingest::IngestArg;
pub use live_files::LiveFile;
pub use memory_usage::MemoryUsage;
pub use open::{DbBuilder, FamilyDescriptor, OpenMode};
pub use operations::OperationSampling;
pub use properties::PropertyMap;
pub use table_file::read_table_properties;
pub use timestamps::Timestamped;
pub use updates::{TransactionLog, WalFile, WalKind};

use crate::core::{Core, ReadCore};
use crate::family::{Family, FamilyHandle};
use crate::observe::{DbRef, HistogramId, OperationKind};
use crate::options::{InfoLogLevel, ReadOptions};
use crate::read::get::PointRead;
use crate::read::{DbIterator, PinnedValue};
use crate::snapshot::{Snapshot, SnapshotSource};
use esker_env::{Env, FileLock, Ticking};
use esker_format::FamilyId;
use esker_status::{Error, Result};
use esker_sync::{Arc, Mutex};
use std::path::{Path, PathBuf};

/// The options of reads that name none, made once.
static PLAIN_READ: ReadOptions = ReadOptions::DEFAULT;

/// An open database. Cheap to clone: clones are the same database, which closes when the last one
/// is gone, or at [`Db::close`]. Families, snapshots and iterators do not keep it open.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// use esker::{Db, Options};
///
/// let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
/// let clone = db.clone();
/// std::thread::spawn(move || clone.put("key", "value")).join().expect("no panic")?;
/// assert_eq!(db.get("key")?.as_deref(), Some(&b"value"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Db(Arc<Handle>);

/// Closes the database when it is dropped.
struct Handle {
    core: Arc<Core>,
    /// The part of `core` that reads use: one pointer away.
    reads: Arc<ReadCore>,
    /// The timer that notices work that is due by time alone.
    ticking: Mutex<Option<Box<dyn Ticking>>>,
    lock: Mutex<Option<Box<dyn FileLock>>>,
    /// It was lent to a listener, which does not close the database.
    is_borrowed: bool,
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Db")
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}

impl Db {
    /// The database that `reference` refers to, while it is there.
    pub fn of(reference: &DbRef) -> Option<Db> {
        let core: Arc<Core> = reference.parts()?.downcast().ok()?;
        Some(Self::lent(core))
    }

    /// A value for an open database that it does not close.
    fn lent(core: Arc<Core>) -> Db {
        Db(Arc::new(Handle {
            reads: Arc::clone(&core.reads),
            core,
            ticking: Mutex::new(crate::ranks::ADMIN, None),
            lock: Mutex::new(crate::ranks::ADMIN, None),
            is_borrowed: true,
        }))
    }

    /// An iterator over `family`, which fails once the database is closed.
    fn iter_while_open(
        &self,
        family: &FamilyHandle,
        options: ReadOptions,
        snapshot: Option<&Snapshot>,
    ) -> DbIterator {
        match self.check_open() {
            Ok(()) => self.iter_opt(family, options, snapshot),
            Err(e) => DbIterator::failed(Arc::clone(self.reads()), Arc::clone(&family.0), e),
        }
    }

    /// `ShutdownInProgress` once the database is closed.
    fn check_open(&self) -> Result<()> {
        if self.core().writes.is_closed() {
            return Err(Error::shutdown());
        }
        Ok(())
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.0.core
    }

    pub(crate) fn reads(&self) -> &Arc<ReadCore> {
        &self.0.reads
    }

    pub(crate) fn default_family(&self) -> &Arc<Family> {
        self.reads().families.default_family()
    }

    /// Where it is.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// assert_eq!(db.path(), dir.path());
    /// # Ok(())
    /// # }
    /// ```
    pub fn path(&self) -> &Path {
        &self.0.core.services.dir
    }

    /// The family called `name`, if it exists.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.create_family("users", Default::default())?;
    /// let users = db.family("users").expect("it was made");
    /// users.put("ann", "1")?;
    /// assert!(db.family("orders").is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "cf_handle")]
    pub fn family(&self, name: &str) -> Option<BoundFamily> {
        let family = self.core().trees.families.by_name(name)?;
        Some(BoundFamily::new(self, &FamilyHandle(family)))
    }

    /// The family called `default`.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let family = db.default_family_handle();
    /// db.put_cf(&family, "key", "value")?;
    /// assert!(db.contains_key("key")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn default_family_handle(&self) -> FamilyHandle {
        FamilyHandle(Arc::clone(self.default_family()))
    }

    /// The family with this number, if it exists.
    pub fn family_by_id(&self, id: u32) -> Option<FamilyHandle> {
        self.core()
            .trees
            .families
            .get(FamilyId(id))
            .map(FamilyHandle)
    }

    /// The world it runs in.
    pub fn env(&self) -> &Env {
        &self.core().services.env
    }

    /// All families, by number.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.create_family("users", Default::default())?;
    /// let families = db.families();
    /// let names: Vec<_> = families.iter().map(|family| family.name()).collect();
    /// assert_eq!(names, ["default", "users"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn families(&self) -> Vec<FamilyHandle> {
        self.core()
            .trees
            .families
            .all()
            .into_iter()
            .map(FamilyHandle)
            .collect()
    }

    /// Returns whether `family` belongs to this database, dropped or not.
    #[inline]
    pub fn owns(&self, family: &FamilyHandle) -> bool {
        self.reads().families.owns(&family.0)
    }

    /// Returns whether `other` is the same open database.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// let db = esker::Db::open_default(dir.path().join("one"))?;
    /// let other = esker::Db::open_default(dir.path().join("other"))?;
    /// assert!(db.is_same(&db.clone()) && !db.is_same(&other));
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_same(&self, other: &Db) -> bool {
        Arc::ptr_eq(self.core(), other.core())
    }

    /// Writes a line into the database's LOG.
    pub fn log(&self, level: InfoLogLevel, line: &str) {
        self.core()
            .services
            .info_log
            .write(level, format_args!("{line}"));
    }

    /// The value of `key` in the default family.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// if let Some(value) = db.get("key")? {
    ///     assert_eq!(value, b"value");
    /// }
    /// assert_eq!(db.get("other")?, None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        Ok(self.get_pinned(key)?.map(PinnedValue::into_vec))
    }

    /// The value of `key` in the default family, without a copy where it is in a cached block.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", vec![7; 100_000])?;
    /// let value = db.get_pinned("key")?.expect("was put");
    /// assert_eq!(value.iter().map(|byte| u64::from(*byte)).sum::<u64>(), 700_000);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_pinned(&self, key: impl AsRef<[u8]>) -> Result<Option<PinnedValue>> {
        self.read(self.default_family(), key.as_ref(), &PLAIN_READ, None)
    }

    /// The value of `key` in `family`.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.create_family("users", Default::default())?;
    /// db.put_cf(&users, "ann", "1")?;
    /// assert_eq!(db.get_cf(&users, "ann")?.as_deref(), Some(&b"1"[..]));
    /// assert_eq!(db.get("ann")?, None, "another family");
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_cf(&self, family: &FamilyHandle, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let found = self.read(&family.0, key.as_ref(), &PLAIN_READ, None)?;
        Ok(found.map(PinnedValue::into_vec))
    }

    /// The value of `key` in `family`, read as `options` say, as of `snapshot` or now.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let family = db.default_family_handle();
    /// db.put("key", "old")?;
    /// let before = db.snapshot();
    /// db.put("key", "new")?;
    /// let options = esker::ReadOptions::new().fill_cache(false);
    /// let value = db.get_opt(&family, "key", &options, Some(&before))?;
    /// assert_eq!(value.as_deref(), Some(&b"old"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_opt(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
        snapshot: Option<&Snapshot>,
    ) -> Result<Option<PinnedValue>> {
        let named = Snapshot::of(options);
        self.read(
            &family.0,
            key.as_ref(),
            options,
            snapshot.or(named.as_ref()),
        )
    }

    #[inline]
    fn read(
        &self,
        family: &Family,
        key: &[u8],
        options: &ReadOptions,
        snapshot: Option<&Snapshot>,
    ) -> Result<Option<PinnedValue>> {
        let recorded = self.reads().operations.begin_read();
        let answer = self.read_now(family, key, options, snapshot);
        if let Some(start) = recorded {
            self.reads()
                .end_read(OperationKind::Get, start, Some(family));
        }
        answer
    }

    #[inline]
    fn read_now(
        &self,
        family: &Family,
        key: &[u8],
        options: &ReadOptions,
        snapshot: Option<&Snapshot>,
    ) -> Result<Option<PinnedValue>> {
        let reads = self.reads();
        let _timed = reads.timed(HistogramId::DbGet);
        let view = family.view_guard();
        let seq = reads.read_seq(&view, snapshot)?;
        let answer = PointRead::new(reads, family, options)
            .run(&view, key, seq)?
            .into_value()?;
        let answer = PinnedValue::without_time(reads, answer)?;
        reads.count_get(answer.as_deref().map(<[u8]>::len));
        Ok(answer)
    }

    /// An iterator over the default family, as it is now.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// let mut it = db.iter();
    /// it.seek("b");
    /// assert_eq!((it.key(), it.value()), (&b"b"[..], &b"2"[..]));
    /// it.next();
    /// assert!(!it.valid());
    /// it.status()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn iter(&self) -> DbIterator {
        self.iter_cf(&self.default_family_handle())
    }

    /// An iterator over `family`, as it is now.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.create_family("users", Default::default())?;
    /// db.put_cf(&users, "ann", "1")?;
    /// for entry in db.iter_cf(&users) {
    ///     let (key, value) = entry?;
    ///     assert_eq!((&key[..], &value[..]), (&b"ann"[..], &b"1"[..]));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn iter_cf(&self, family: &FamilyHandle) -> DbIterator {
        self.iter_opt(family, ReadOptions::default(), None)
    }

    /// An iterator over `family` as of `snapshot` or now. A failure to make it shows in its status.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// for key in ["a", "b", "c"] {
    ///     db.put(key, "value")?;
    /// }
    /// let family = db.default_family_handle();
    /// let options = esker::ReadOptions::new().upper("c");
    /// let mut it = db.iter_opt(&family, options, None);
    /// it.seek_to_last();
    /// assert_eq!(it.key(), b"b");
    /// # Ok(())
    /// # }
    /// ```
    pub fn iter_opt(
        &self,
        family: &FamilyHandle,
        options: impl Into<Arc<ReadOptions>>,
        snapshot: Option<&Snapshot>,
    ) -> DbIterator {
        let options = options.into();
        let snapshot = snapshot.cloned().or_else(|| Snapshot::of(&options));
        DbIterator::new(
            Arc::clone(self.reads()),
            Arc::clone(&family.0),
            options,
            snapshot,
        )
    }

    /// A snapshot of the database as it is now.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "old")?;
    /// let before = db.snapshot();
    /// db.delete("key")?;
    /// assert_eq!(before.get("key")?.as_deref(), Some(&b"old"[..]));
    /// assert_eq!(db.get("key")?, None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        let reads = self.reads();
        let unix = reads.env.clock.unix_us() / 1_000_000;
        let db = self.core().services.lent();
        let home = SnapshotSource::new(db, Arc::clone(reads) as _);
        reads
            .snapshots
            .take(home, unix, || reads.sequence.published())
    }

    /// The sequence number of the newest write that readers see.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let before = db.latest_sequence_number();
    /// db.put("key", "value")?;
    /// assert_eq!(db.latest_sequence_number(), before + 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn latest_sequence_number(&self) -> u64 {
        self.reads().sequence.published().0
    }

    /// The database's id, as in the file IDENTITY.
    pub fn db_id(&self) -> &str {
        &self.core().services.identity.db_id
    }

    /// The directories in which `family` has its tables, in the order of its paths.
    pub fn table_paths(&self, family: &FamilyHandle) -> Vec<PathBuf> {
        let paths = family.0.reading.paths.all();
        paths.map(Path::to_path_buf).collect()
    }

    /// The directory of a database as a path to one of its files.
    pub fn file_path(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}
