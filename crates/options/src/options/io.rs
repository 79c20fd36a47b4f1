//! Options of single calls: reads, writes, flushes, compactions of a range, ingestion.

use super::{BottommostLevelCompaction, CompressionType, Temperature};
use esker_format::properties::TableProperties;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Decides by its properties whether an iterator reads a table.
#[derive(Clone)]
pub struct TableFilter(Arc<dyn Fn(&TableProperties) -> bool + Send + Sync>);

impl TableFilter {
    /// Tables for which `wanted` says no are passed over, their range deletions excepted.
    pub fn new(wanted: impl Fn(&TableProperties) -> bool + Send + Sync + 'static) -> Self {
        TableFilter(Arc::new(wanted))
    }

    /// Returns whether a table is read.
    pub fn wants(&self, properties: &TableProperties) -> bool {
        (self.0)(properties)
    }
}

impl std::fmt::Debug for TableFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TableFilter")
    }
}

/// From where a read may be served.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
/// use esker::ReadOptions;
/// use esker::options::ReadTier;
///
/// let family = db.default_family_handle();
/// db.put("key", "value")?;
/// let in_memory = ReadOptions::new().read_tier(ReadTier::Memtable);
/// assert!(db.get_opt(&family, "key", &in_memory, None)?.is_some());
/// db.flush()?;
/// assert!(db.get_opt(&family, "key", &in_memory, None)?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadTier {
    /// From anywhere.
    #[default]
    All,
    /// From memory: `Incomplete` when that would need the disk.
    BlockCache,
    /// From data that is in table files, or that the log protects. Point reads only.
    Persisted,
    /// From memtables alone.
    Memtable,
}

impl ReadTier {
    const ALL: [ReadTier; 4] = [
        ReadTier::All,
        ReadTier::BlockCache,
        ReadTier::Persisted,
        ReadTier::Memtable,
    ];

    /// RocksDB's number.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The tier with RocksDB's number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// The snapshot of an engine, as options carry it.
#[derive(Clone)]
pub struct SnapshotRef(Arc<dyn Any + Send + Sync>);

impl SnapshotRef {
    /// Refers to the value that the engine knows a snapshot by, and keeps it.
    pub fn new(snapshot: Arc<dyn Any + Send + Sync>) -> Self {
        SnapshotRef(snapshot)
    }

    /// The value that the engine knows the snapshot by.
    pub fn inner(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::clone(&self.0)
    }
}

impl std::fmt::Debug for SnapshotRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SnapshotRef")
    }
}

/// How to read. Fields may be added: use a constructor, or `..Default::default()`.
///
/// ```
/// use esker::ReadOptions;
///
/// let by_calls = ReadOptions::new().lower("a").upper("c").fill_cache(false);
/// let by_fields = ReadOptions {
///     fill_cache: false,
///     ..Default::default()
/// };
/// assert_eq!(by_calls.fill_cache, by_fields.fill_cache);
/// ```
#[derive(Clone)]
pub struct ReadOptions {
    /// Checks the checksum of each block that is read.
    pub verify_checksums: bool,
    /// Keeps blocks that are read in the cache.
    pub fill_cache: bool,
    /// Smallest key of interest, itself included.
    pub iterate_lower_bound: Option<Vec<u8>>,
    /// First key that is no longer of interest.
    pub iterate_upper_bound: Option<Vec<u8>>,
    /// Ends when the prefix of the key that was sought changes.
    pub prefix_same_as_start: bool,
    /// Ignores prefix filters: every key in order is seen.
    pub total_order_seek: bool,
    /// Uses prefix filters only where the bounds show that the answer is the same. The answer is
    /// that of the total order in any case.
    pub auto_prefix_mode: bool,
    /// Sees writes that come after the iterator was made.
    pub tailing: bool,
    /// An iterator at a snapshot lets go of files and memtables that the database has replaced, at
    /// its next move. It sees the same.
    pub auto_refresh_iterator_with_snapshot: bool,
    /// Asks for keys and values that stay in place while the iterator lives. Here they live until
    /// the next move.
    pub pin_data: bool,
    /// Ignores range deletions: faster where there are none.
    pub ignore_range_deletions: bool,
    /// Readahead of iterators in bytes; 0 grows by itself.
    pub readahead_size: usize,
    /// Cuts that readahead at the upper bound. A hint: readahead adapts to what is read.
    pub auto_readahead_size: bool,
    /// Keeps the readahead when the iterator moves to the next file. A hint, as above.
    pub adaptive_readahead: bool,
    /// A seek of an iterator begins the reads of all sorted runs before it waits for one. So do all
    /// seeks where `use_direct_reads` is on.
    pub async_io: bool,
    /// Hidden entries after which an iterator gives up with `Incomplete`; 0 for no limit.
    pub max_skippable_internal_keys: u64,
    /// From where a read may be served.
    pub read_tier: ReadTier,
    /// Bytes of values after which a `multi_get` stops with `Aborted` for the rest.
    pub value_size_soft_limit: u64,
    /// Time after which the read fails with `TimedOut`; `None` for no limit. Looked at between
    /// files and between the moves of an iterator, whose time runs from when it was made.
    pub deadline: Option<Duration>,
    /// The deadline as a moment: microseconds since 1970, by the system's clock. The earlier of the
    /// two counts.
    pub deadline_at: Option<u64>,
    /// Deletes files that the iterator held in the background rather than in the caller's thread.
    /// They always are.
    pub background_purge_on_iterator_cleanup: bool,
    /// Lets an iterator leave values of blob files unread until `DbIterator::prepare_value`, and
    /// show them as empty before. Iterators that have no such call read them at once.
    pub allow_unprepared_value: bool,
    /// User timestamp up to which versions are seen.
    pub timestamp: Option<Vec<u8>>,
    /// With `timestamp`, for iterators: they show every version down to this timestamp, deletions
    /// among them.
    pub iter_start_ts: Option<Vec<u8>>,
    /// Decides which tables an iterator reads; point reads look at all.
    pub table_filter: Option<TableFilter>,
    /// The state that is read, unless the call names another.
    pub snapshot: Option<SnapshotRef>,
}

impl fmt::Debug for ReadOptions {
    /// The choices that most reads differ by.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadOptions")
            .field("read_tier", &self.read_tier)
            .field("fill_cache", &self.fill_cache)
            .field("tailing", &self.tailing)
            .finish_non_exhaustive()
    }
}

impl ReadOptions {
    /// Reads as they are without options.
    pub const DEFAULT: ReadOptions = ReadOptions {
        verify_checksums: true,
        fill_cache: true,
        iterate_lower_bound: None,
        iterate_upper_bound: None,
        prefix_same_as_start: false,
        total_order_seek: false,
        auto_prefix_mode: false,
        tailing: false,
        auto_refresh_iterator_with_snapshot: false,
        pin_data: false,
        ignore_range_deletions: false,
        readahead_size: 0,
        auto_readahead_size: true,
        adaptive_readahead: false,
        async_io: false,
        max_skippable_internal_keys: 0,
        read_tier: ReadTier::All,
        value_size_soft_limit: u64::MAX,
        deadline: None,
        deadline_at: None,
        background_purge_on_iterator_cleanup: false,
        allow_unprepared_value: false,
        timestamp: None,
        iter_start_ts: None,
        table_filter: None,
        snapshot: None,
    };
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions::DEFAULT
    }
}

/// How to write. Fields may be added: use a constructor, or `..Default::default()`.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
/// use esker::WriteOptions;
///
/// let family = db.default_family_handle();
/// let options = WriteOptions { sync: true, no_slowdown: true, ..Default::default() };
/// db.put_opt(&family, "key", "value", &options)?;
/// assert_eq!(options, WriteOptions::synced().no_slowdown(true));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Returns only when the write survives power loss.
    pub sync: bool,
    /// Skips the log: the write survives once its memtable is flushed.
    pub disable_wal: bool,
    /// Ignores records for families that do not exist (any more).
    pub ignore_missing_column_families: bool,
    /// Fails with `Incomplete` instead of waiting when writers to one of its families, or all, are
    /// slowed or stopped.
    pub no_slowdown: bool,
    /// Yields to other writers, for a tenth of a second at most, while those of any family are
    /// slowed or stopped.
    pub low_pri: bool,
    /// Remembers the place of the last insertion within the batch. The memtable always does.
    pub memtable_insert_hint_per_batch: bool,
    /// Bytes of checksum per entry that protect the batch in memory: 0 or 8. Batches are protected
    /// by the log's and the tables' checksums alone.
    pub protection_bytes_per_key: usize,
}

impl fmt::Debug for WriteOptions {
    /// The options that are set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = [
            ("sync", self.sync),
            ("disable_wal", self.disable_wal),
            ("ignore_missing", self.ignore_missing_column_families),
            ("no_slowdown", self.no_slowdown),
            ("low_pri", self.low_pri),
        ];
        let mut shown = f.debug_struct("WriteOptions");
        for (name, _) in flags.iter().filter(|(_, is_set)| *is_set) {
            shown.field(name, &true);
        }
        shown.finish_non_exhaustive()
    }
}

impl WriteOptions {
    /// A write that survives power loss.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let family = db.default_family_handle();
    /// db.put_opt(&family, "order 1", "paid", &esker::WriteOptions::synced())?;
    /// assert!(db.contains_key("order 1")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn synced() -> Self {
        WriteOptions {
            sync: true,
            ..Self::default()
        }
    }

    /// A write without the log.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let family = db.default_family_handle();
    /// db.put_opt(&family, "key", "value", &esker::WriteOptions::unlogged())?;
    /// db.flush()?;
    /// assert!(db.contains_key("key")?, "and it survives from here on");
    /// # Ok(())
    /// # }
    /// ```
    pub fn unlogged() -> Self {
        WriteOptions {
            disable_wal: true,
            ..Self::default()
        }
    }
}

/// How to flush.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
/// let users = db.create_family("users", Default::default())?;
/// db.put_cf(&users, "ann", "1")?;
/// let mut options = esker::FlushOptions::default();
/// options.allow_write_stall = true;
/// db.flush_cf(&users, &options)?;
/// assert_eq!(db.family_metadata(&users).file_count, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlushOptions {
    /// Returns when the data is in tables.
    pub wait: bool,
    /// Flushes at once even when that makes writers wait.
    pub allow_write_stall: bool,
}

impl Default for FlushOptions {
    fn default() -> Self {
        FlushOptions {
            wait: true,
            allow_write_stall: false,
        }
    }
}

/// How to compact a range.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
/// use esker::CompactRangeOptions;
/// use esker::options::BottommostLevelCompaction;
///
/// let family = db.default_family_handle();
/// db.put("key", "value")?;
/// let mut options = CompactRangeOptions::default();
/// options.bottommost_level_compaction = BottommostLevelCompaction::Force;
/// options.max_subcompactions = 4;
/// db.compact_range_opt(&family, None, None, &options)?;
/// assert_eq!(db.property("rocksdb.num-files-at-level0").as_deref(), Some("0"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompactRangeOptions {
    /// Runs no automatic compaction meanwhile.
    pub exclusive_manual_compaction: bool,
    /// Moves the result to `target_level`.
    pub change_level: bool,
    /// Where to; -1 for the highest level that fits.
    pub target_level: i32,
    /// Rewriting of the last level.
    pub bottommost_level_compaction: BottommostLevelCompaction,
    /// Starts at once even when that makes writers wait.
    pub allow_write_stall: bool,
    /// Parts that it may be split into; 0 for the database's `max_subcompactions`.
    pub max_subcompactions: u32,
    /// The path of `db_paths` or `cf_paths` that its files are written to, by number.
    pub target_path_id: u32,
    /// Raised first, as by `Db::increase_full_history_ts_low`; not together with a range.
    pub full_history_ts_low: Option<Vec<u8>>,
    /// Set to true by any thread, makes it give up with `Incomplete`; the steps that are done stay.
    pub canceled: Option<Arc<AtomicBool>>,
    /// Live values leave old blob files, or do not, whatever the family's options say.
    pub blob_garbage_collection_policy: BlobGarbageCollectionPolicy,
    /// The share of the oldest blob files that they leave, from 0 to 1; any other number for the
    /// family's own.
    pub blob_garbage_collection_age_cutoff: f64,
}

impl Default for CompactRangeOptions {
    fn default() -> Self {
        CompactRangeOptions {
            exclusive_manual_compaction: false,
            change_level: false,
            target_level: -1,
            bottommost_level_compaction: BottommostLevelCompaction::default(),
            allow_write_stall: false,
            max_subcompactions: 0,
            target_path_id: 0,
            full_history_ts_low: None,
            canceled: None,
            blob_garbage_collection_policy: BlobGarbageCollectionPolicy::UseDefault,
            blob_garbage_collection_age_cutoff: -1.0,
        }
    }
}

/// Garbage collection of blob files by one compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlobGarbageCollectionPolicy {
    /// Live values leave old blob files.
    Force,
    /// No value leaves its blob file.
    Disable,
    /// As the family's options say.
    #[default]
    UseDefault,
}

/// How to wait for background work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitForCompactOptions {
    /// Gives up with `Aborted` while background work is paused.
    pub abort_on_pause: bool,
    /// Flushes what is in memory first.
    pub flush: bool,
    /// Gives up with `TimedOut` after this time; `None` for no limit.
    pub timeout: Option<Duration>,
}

/// How to compact files that are named. The names are those of RocksDB's `CompactionOptions`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompactFilesOptions {
    /// The codec of what is made; `None` for the one that the family's options give the level.
    pub compression: Option<CompressionType>,
    /// Bytes at which a file made ends.
    pub output_file_size_limit: u64,
    /// Parts that it may be cut into; 0 for the database's `max_subcompactions`.
    pub max_subcompactions: u32,
    /// Set to true by any thread, makes it give up with `Incomplete`; nothing has changed then.
    pub canceled: Option<Arc<AtomicBool>>,
    /// The temperature that the files made are said to have; `None` for no special one.
    pub output_temperature_override: Option<Temperature>,
    /// Lets files change their level without being read, where that is possible.
    pub allow_trivial_move: bool,
    /// The path of `db_paths` or `cf_paths` that its files are written to, by number.
    pub output_path_id: u32,
}

impl Default for CompactFilesOptions {
    fn default() -> Self {
        CompactFilesOptions {
            compression: None,
            output_file_size_limit: u64::MAX,
            max_subcompactions: 0,
            canceled: None,
            output_temperature_override: None,
            allow_trivial_move: false,
            output_path_id: 0,
        }
    }
}

/// How to take in table files made elsewhere. The names are those of RocksDB's
/// `IngestExternalFileOptions`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IngestOptions {
    /// Moves files instead of copying them: they get a second name in the database, and lose the
    /// first when everything went well.
    pub move_files: bool,
    /// Shares files instead of copying them: they keep their first name. Not together with
    /// `move_files`.
    pub link_files: bool,
    /// Copies where the filesystem cannot give a file a second name.
    pub failed_move_fall_back_to_copy: bool,
    /// Hides the new data from snapshots that exist.
    pub snapshot_consistency: bool,
    /// Lets files overlap existing data or each other, under sequence numbers of their own.
    pub allow_global_seqno: bool,
    /// Flushes memtables that hold keys of the files' ranges; without, such an ingestion fails.
    pub allow_blocking_flush: bool,
    /// Puts the files below everything that exists. `NotSupported`.
    pub ingest_behind: bool,
    /// Writes the sequence number into the file as well, as RocksDB before 5.16 needs it. Such
    /// files are copied.
    pub write_global_seqno: bool,
    /// Reads and checks every block and the order of all keys first.
    pub verify_checksums_before_ingest: bool,
    /// Bytes to read ahead for that; 0 for a good size.
    pub verify_checksums_readahead_size: usize,
    /// Compares checksums of whole files with what the caller says they are. Nothing is compared
    /// while the database makes no such checksums itself.
    pub verify_file_checksum: bool,
    /// Fails with `TryAgain` unless all files fit on the last level.
    pub fail_if_not_bottommost_level: bool,
    /// Takes files that a database wrote, with the sequence numbers that they have. They must not
    /// overlap data that is there; where they overlap each other, older ones come first.
    pub allow_db_generated_files: bool,
    /// Keeps blocks that are read in the process in the block cache.
    pub fill_cache: bool,
    /// Loads index and filter of files on the last level at once. They always are.
    pub prefetch_lmax_index_and_filter_blocks: bool,
    /// Threads that open the files. They are opened one after the other.
    pub file_opening_threads: i32,
}

impl Default for IngestOptions {
    fn default() -> Self {
        IngestOptions {
            move_files: false,
            link_files: false,
            failed_move_fall_back_to_copy: true,
            snapshot_consistency: true,
            allow_global_seqno: true,
            allow_blocking_flush: true,
            ingest_behind: false,
            write_global_seqno: false,
            verify_checksums_before_ingest: false,
            verify_checksums_readahead_size: 0,
            verify_file_checksum: true,
            fail_if_not_bottommost_level: false,
            allow_db_generated_files: false,
            fill_cache: true,
            prefetch_lmax_index_and_filter_blocks: true,
            file_opening_threads: 1,
        }
    }
}

/// How to take in the files of an exported family. The name is that of RocksDB's
/// `ImportColumnFamilyOptions`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportOptions {
    /// Moves files instead of copying them, as [`IngestOptions::move_files`] does.
    pub move_files: bool,
}

/// Parts of the size of a key range. The names are those of RocksDB's `SizeApproximationOptions`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SizeOptions {
    /// Counts the data in memtables.
    pub include_memtables: bool,
    /// Counts the data in table files.
    pub include_files: bool,
    /// The share of the blob files that goes with the table files' share.
    pub include_blob_files: bool,
    /// By how much the figure for files may be off, as a part of it, to be found faster: files at
    /// the edges of the range then count by half. Exact when it is not positive.
    pub files_size_error_margin: f64,
}

impl Default for SizeOptions {
    fn default() -> Self {
        SizeOptions {
            include_memtables: false,
            include_files: true,
            include_blob_files: false,
            files_size_error_margin: -1.0,
        }
    }
}
