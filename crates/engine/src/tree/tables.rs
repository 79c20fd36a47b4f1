//! The open tables: from a file's metadata to its reader.
//!
//! Without a limit on open files (`max_open_files` -1) a reader hangs on the file's metadata once
//! it was opened and is found by one load. With a limit, readers live in an LRU of that many.
//! Either way a reader stays usable for as long as it is held.

use super::TablePaths;
use crate::observe::TableWatch;
use crate::options::{DbOptions, FamilyOptions};
use crate::runtime::work_signal::{self as signal, WorkSignal};
use esker_cache::{Cache, CacheKey, CacheOptions, Pinned, Priority};
use esker_env::{Env, ReadOptions as FileReadOptions};
use esker_files::table::{
    BlockCache, PrepopulateTarget, ReadContext, TableCursor, TableObserver, TableReader,
    TableReaderOptions, cache_name,
};
use esker_format::blob_refs::{self, BlobRefs};
use esker_format::{FileNo, KeyOrder, Level, file_name};
use esker_lsm::file::{BlobShares, FileMeta, FileStats};
use esker_lsm::tombstone::FragmentedTombstones;
use esker_status::{Error, Result};
use esker_sync::{Arc, OnceLock};
use std::path::PathBuf;

/// An open table with what reads need beside the blocks.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) reader: Arc<TableReader>,
    tombstones: OnceLock<Option<Arc<FragmentedTombstones>>>,
}

impl Table {
    /// The range tombstones, fragmented, not clipped; `None` when there are none.
    pub(crate) fn tombstones(&self) -> Result<Option<&Arc<FragmentedTombstones>>> {
        if let Some(t) = self.tombstones.get() {
            return Ok(t.as_ref());
        }
        let raw = self.reader.range_tombstones();
        let made = if raw.is_empty() {
            None
        } else {
            Some(FragmentedTombstones::new(raw, self.reader.order())?)
        };
        Ok(self.tombstones.get_or_init(|| made).as_ref())
    }
}

/// A reader in use.
pub(crate) enum TableRef<'a> {
    Slot(&'a Table),
    Shared(Pinned<Table>),
}

impl std::ops::Deref for TableRef<'_> {
    type Target = Table;
    #[inline]
    fn deref(&self) -> &Table {
        match self {
            TableRef::Slot(t) => t,
            TableRef::Shared(t) => t,
        }
    }
}

/// Opens tables and keeps them open.
#[derive(Debug)]
pub(crate) struct Tables {
    env: Env,
    direct_reads: bool,
    /// Compactions read past the page cache though all other readers do not.
    direct_job_reads: bool,
    advise_random: bool,
    verify_unique_id: bool,
    limited: Option<Cache<Table>>,
    salt: u64,
}

/// Opens the tables of one family. It does not keep the family alive.
#[derive(Debug)]
pub(crate) struct TableAccess {
    pub(crate) tables: Arc<Tables>,
    pub(crate) reading: Arc<TableSetting>,
    pub(crate) order: KeyOrder,
}

impl Tables {
    pub(crate) fn new(env: Env, options: &DbOptions) -> Self {
        let limited = usize::try_from(options.max_open_files).ok().map(|n| {
            Cache::new(CacheOptions {
                capacity: n.saturating_sub(10).max(1),
                num_shard_bits: 0,
                // Files are counted, not bytes.
                charge_metadata: false,
                ..CacheOptions::lru(0)
            })
        });
        let salt = env.entropy.next_u64();
        Tables {
            env,
            direct_reads: options.use_direct_reads,
            direct_job_reads: options.use_direct_io_for_compaction_reads
                && !options.use_direct_reads,
            advise_random: options.advise_random_on_open,
            verify_unique_id: options.verify_sst_unique_id_in_manifest,
            limited,
            salt,
        }
    }

    /// Returns whether readers bypass the page cache.
    pub(crate) fn reads_directly(&self) -> bool {
        self.direct_reads
    }

    /// The open table of `file`.
    #[inline]
    pub(crate) fn get<'a>(
        &self,
        file: &'a FileMeta,
        level: Level,
        how: &TableSetting,
    ) -> Result<TableRef<'a>> {
        if let Some(table) = file.slot.get::<Table>() {
            return Ok(TableRef::Slot(table));
        }
        self.get_slow(file, level, how)
    }

    /// The open table of `file`, if it is open.
    pub(crate) fn opened<'a>(&self, file: &'a FileMeta) -> Option<TableRef<'a>> {
        if let Some(table) = file.slot.get::<Table>() {
            return Some(TableRef::Slot(table));
        }
        let key = CacheKey {
            hi: self.salt,
            lo: file.number.0,
        };
        self.limited.as_ref()?.peek(key).map(TableRef::Shared)
    }

    fn get_slow<'a>(
        &self,
        file: &'a FileMeta,
        level: Level,
        how: &TableSetting,
    ) -> Result<TableRef<'a>> {
        let Some(cache) = &self.limited else {
            let table = Arc::new(self.open(file, level, how)?);
            let _raced = file.slot.set(table);
            return match file.slot.get::<Table>() {
                Some(t) => Ok(TableRef::Slot(t)),
                None => Err(Error::aborted("the open table was lost")),
            };
        };
        let key = CacheKey {
            hi: self.salt,
            lo: file.number.0,
        };
        if let Some(t) = cache.lookup(key) {
            return Ok(TableRef::Shared(t));
        }
        let table = self.open(file, level, how)?;
        // The limit is not strict.
        let held = cache.insert(key, table, 1, Priority::High);
        held.map(TableRef::Shared)
            .map_err(|full| Error::aborted(full.to_string()))
    }

    /// Opens a table for one use, outside of every cache of readers.
    pub(crate) fn open(&self, file: &FileMeta, level: Level, how: &TableSetting) -> Result<Table> {
        let path = self.path(&how.paths, file)?;
        let options = FileReadOptions {
            direct: self.direct_reads,
            random: self.advise_random,
        };
        let handle = self.env.fs.open_read(&path, options);
        let handle = handle.map_err(|e| how.paths.explain(file, e))?;
        if handle.len() != file.size {
            return Err(Error::corruption(format!(
                "the file has {} bytes, but {} in the MANIFEST",
                handle.len(),
                file.size
            ))
            .with_file(&path)
            .with_hint(
                "restore the file from a backup, or run `esker repair` on a copy of the directory",
            ));
        }
        let reader = TableReader::open(
            handle,
            file.size,
            how.reader_options(file, level, self.salt),
        )?;
        self.check_unique_id(file, &reader)
            .map_err(|e| e.with_file(&path))?;
        let p = reader.properties();
        let is_first = file.stats.set(FileStats {
            num_entries: p.num_entries,
            num_deletions: p.num_deletions,
            num_range_deletions: p.num_range_deletions,
            raw_key_size: p.raw_key_size,
            raw_value_size: p.raw_value_size,
            newest_key_time: p.newest_key_time,
        });
        if file.oldest_blob_file.is_some()
            && let Some(refs) = p.user_collected.get(blob_refs::PROPERTY.as_bytes())
        {
            // A table with other sums counts as one without.
            let known = BlobRefs::decode(refs).map(|refs| BlobShares::from(&refs));
            let _raced = known.map(|shares| file.blob_shares.set(shares));
        }
        if let (Ok(()), Some(signal)) = (is_first, &how.signal) {
            signal.mark(signal::TREE);
        }
        Ok(Table {
            reader,
            tombstones: OnceLock::new(),
        })
    }

    /// A cursor over an open table for a compaction: one that reads past the page cache where the
    /// options say so.
    pub(crate) fn job_cursor(
        &self,
        table: &Table,
        ctx: &ReadContext,
        file: &FileMeta,
        how: &TableSetting,
    ) -> Result<TableCursor> {
        if !self.direct_job_reads {
            return Ok(table.reader.cursor(ctx));
        }
        let path = self.path(&how.paths, file)?;
        let options = FileReadOptions {
            direct: true,
            random: false,
        };
        let own = self.env.fs.open_read(&path, options);
        let own = own.map_err(|e| how.paths.explain(file, e))?;
        Ok(table.reader.cursor_through(ctx, Some(own)))
    }

    /// Where the table is: older databases call it `.ldb`.
    pub(crate) fn path(&self, paths: &TablePaths, file: &FileMeta) -> Result<PathBuf> {
        let path = paths.of(file);
        let old = paths
            .dir(file.path_id)
            .join(file_name::old_table_name(file.number));
        if !self.env.fs.exists(&path)? && self.env.fs.exists(&old)? {
            Ok(old)
        } else {
            Ok(path)
        }
    }

    /// The table must be there with the size that the MANIFEST says.
    pub(crate) fn check_there(&self, paths: &TablePaths, file: &FileMeta) -> Result<()> {
        let path = self.path(paths, file)?;
        let found = self.env.fs.metadata(&path);
        let len = found.map_err(|e| paths.explain(file, e))?.len;
        if len == file.size {
            return Ok(());
        }
        let why = format!(
            "the file has {len} bytes, but {} in the MANIFEST",
            file.size
        );
        Err(Error::corruption(why).with_file(path))
    }

    fn check_unique_id(&self, file: &FileMeta, reader: &TableReader) -> Result<()> {
        let Some(expected) = file
            .unique_id
            .filter(|id| *id != [0, 0] && self.verify_unique_id)
        else {
            return Ok(());
        };
        match reader.properties().unique_id() {
            Some(id) if id.0 != expected => Err(Error::corruption(
                "the file's unique id is not the one in the MANIFEST",
            )
            .with_hint(
                "the file belongs to another database or another number; restore the right one",
            )),
            _ => Ok(()),
        }
    }

    /// The cache that new blocks of a table go into as they are written, if `priority` says so.
    pub(crate) fn fresh_blocks(
        &self,
        how: &TableSetting,
        priority: Priority,
    ) -> Option<PrepopulateTarget> {
        let (options, table) = (&how.options, &how.options.table);
        let in_cache = table.cache_index_and_filter_blocks;
        let filters = if table.cache_index_and_filter_blocks_with_high_priority {
            Priority::High
        } else {
            Priority::Low
        };
        let cache = options.cache.clone().filter(|_| !table.no_block_cache)?;
        Some(PrepopulateTarget {
            cache,
            salt: self.salt,
            priority,
            filters: in_cache.then_some(filters),
            observer: options.observer.clone(),
        })
    }

    /// The database in the names of cached blocks.
    pub(crate) fn salt(&self) -> u64 {
        self.salt
    }

    /// The first half of the names that the table's blocks have in the block cache.
    pub(crate) fn cache_name(&self, number: FileNo) -> u64 {
        cache_name(self.salt, number)
    }

    /// Forgets the reader of a table that was deleted.
    pub(crate) fn forget(&self, number: FileNo) {
        if let Some(cache) = &self.limited {
            cache.erase(CacheKey {
                hi: self.salt,
                lo: number.0,
            });
        }
    }

    /// Returns whether tables stay open for as long as the tree has them.
    pub(crate) fn are_unlimited(&self) -> bool {
        self.limited.is_none()
    }

    /// Changes how many tables may stay open. Without a limit readers hang on their files and
    /// cannot be limited later.
    pub(crate) fn set_limit(&self, max_open_files: i32) -> Result<()> {
        match (&self.limited, usize::try_from(max_open_files)) {
            (None, Err(_)) => Ok(()),
            (Some(cache), limit) => {
                let tables = limit.map_or(UNLIMITED, |n| n.saturating_sub(10).max(1));
                cache.set_capacity(tables);
                Ok(())
            }
            (None, Ok(_)) => Err(Error::invalid_argument(
                "max_open_files changes from -1 to a limit only when the database is opened",
            )),
        }
    }
}

/// As many tables as may stay open where a limit was taken back.
const UNLIMITED: usize = 1 << 22;

/// Files and caches that a family's tables are read through.
#[derive(Debug)]
pub(crate) struct Storage {
    pub(crate) paths: Arc<TablePaths>,
    pub(crate) cache: Option<Arc<BlockCache>>,
    /// Told what reading costs; only with statistics.
    pub(crate) watch: Option<Arc<TableWatch>>,
}

/// The options of a family for reading its tables; made once per change of options.
#[derive(Clone, Debug)]
pub(crate) struct TableSetting {
    options: TableReaderOptions,
    /// Where they are.
    pub(crate) paths: Arc<TablePaths>,
    /// Told when a table's statistics become known: the tree may need something then.
    signal: Option<Arc<WorkSignal>>,
    /// The cache of values of blob files.
    blob_cache: Option<Arc<BlockCache>>,
}

impl TableSetting {
    pub(crate) fn of(options: &FamilyOptions, order: &KeyOrder, storage: &Storage) -> Self {
        let watch = storage.watch.clone();
        TableSetting {
            paths: Arc::clone(&storage.paths),
            signal: None,
            blob_cache: options.blob_cache.shared().cloned(),
            options: TableReaderOptions {
                order: order.clone(),
                table: options.table.to_table_options(),
                cache: storage.cache.clone(),
                prefix_extractor: options.prefix_extractor.clone(),
                observer: watch.map(|w| w as Arc<dyn TableObserver>),
                walks: Some(Arc::default()),
                ..TableReaderOptions::default()
            },
        }
    }

    /// Sets the signal of the family.
    pub(crate) fn with_signal(self, signal: &Arc<WorkSignal>) -> Self {
        TableSetting {
            signal: Some(Arc::clone(signal)),
            ..self
        }
    }

    /// The block cache that the tables use.
    pub(crate) fn cache(&self) -> Option<Arc<BlockCache>> {
        self.options.cache.clone()
    }

    /// The cache of values of blob files.
    pub(crate) fn blob_cache(&self) -> Option<&Arc<BlockCache>> {
        self.blob_cache.as_ref()
    }

    /// Its block cache and its blob cache, which may be one.
    pub(crate) fn caches(&self) -> impl Iterator<Item = &Arc<BlockCache>> {
        self.options.cache.iter().chain(&self.blob_cache)
    }

    /// Bytes of the timestamp behind each user key.
    pub(crate) fn timestamp_size(&self) -> usize {
        self.options.order.timestamp_size()
    }

    /// For a table that is not part of the database: outside of every cache.
    pub(crate) fn outside(&self) -> TableReaderOptions {
        TableReaderOptions {
            cache: None,
            ..self.options.clone()
        }
    }

    fn reader_options(&self, file: &FileMeta, level: Level, salt: u64) -> TableReaderOptions {
        TableReaderOptions {
            file_no: file.number,
            cache_salt: salt,
            level,
            largest_seq: Some(file.largest_seq),
            tail_size: (file.tail_size > 0).then_some(file.tail_size),
            collapsible_reads: Some(Arc::clone(&file.collapsible_reads)),
            ..self.options.clone()
        }
    }
}
