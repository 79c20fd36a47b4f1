//! Making table files outside of any database, to be taken in whole by [`crate::Db::ingest`].
//!
//! Such a file says so in its properties (`rocksdb.external_sst_file.version` 2), and all of its
//! entries have sequence number 0: the database that takes it in gives it one, for all entries
//! together. Files made here are RocksDB's in every byte that matters: either engine takes those of
//! the other.
//!
//! One writer belongs to one thread. It can make several files, one after the other.

use crate::family::FamilyHandle;
use crate::job::ingest::UNKNOWN_FAMILY;
use crate::job::output::{Placement, codec_for, compression_for, compressors_for};
use crate::options::Options;
use crate::options::check as check_options;
use crate::options::collector::Collectors;
use crate::options::{CollectorContext, EntryKind, TablePropertiesCollectorFactory};
use esker_env::{Env, WriteOptions as FileWriteOptions};
use esker_files::identity::new_session_id;
use esker_files::table::{TableBuilder, TableBuilderOptions};
use esker_format::key::append_internal;
use esker_format::wide_column::{self, Column};
use esker_format::{FileNo, KeyOrder, Level, RawTombstone, Seq, ValueType};
use esker_status::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The database that such files name as their origin.
const DB_ID: &str = "SST Writer";
/// The version of files for ingestion.
const VERSION: i32 = 2;

/// A file that [`SstFileWriter::finish`] has made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExternalFileInfo {
    /// Where it is.
    pub file_path: PathBuf,
    /// The smallest key; empty when there are only range deletions.
    pub smallest_key: Vec<u8>,
    /// The largest key.
    pub largest_key: Vec<u8>,
    /// Where the first range deletion begins; empty when there is none.
    pub smallest_range_del_key: Vec<u8>,
    /// Where the last range deletion ends.
    pub largest_range_del_key: Vec<u8>,
    /// The checksum of the whole file; empty, since none is made.
    pub file_checksum: Vec<u8>,
    /// The function of that checksum; empty.
    pub file_checksum_func_name: String,
    /// The sequence number of all entries: 0 until the file is taken in.
    pub sequence_number: u64,
    /// Bytes of the file.
    pub file_size: u64,
    /// Entries, without range deletions.
    pub num_entries: u64,
    /// Range deletions.
    pub num_range_del_entries: u64,
    /// The version of the kind of file: 2.
    pub version: i32,
}

/// A file being written.
struct Open {
    builder: TableBuilder,
    collectors: Collectors,
    info: ExternalFileInfo,
    /// The internal key of the last entry.
    last: Vec<u8>,
    /// The first failure: nothing more can be added after it.
    failed: Option<Error>,
}

/// Makes table files for ingestion.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// use esker::{Db, IngestOptions, Options, SstFileWriter};
///
/// let options = Options::new().create_if_missing(true);
/// let file = dir.path().join("new.sst");
/// let mut writer = SstFileWriter::new(&options)?;
/// writer.open(&file)?;
/// writer.put("a", "1")?;
/// writer.put("b", "2")?;
/// assert!(writer.put("a", "again").is_err(), "keys come in order");
/// assert_eq!(writer.finish()?.num_entries, 2);
///
/// let db = Db::open(dir.path().join("db"), options)?;
/// db.ingest(&db.default_family_handle(), &[file], &IngestOptions::default())?;
/// assert_eq!(db.get("b")?.as_deref(), Some(&b"2"[..]));
/// # Ok(())
/// # }
/// ```
pub struct SstFileWriter {
    env: Env,
    table: TableBuilderOptions,
    collectors: Vec<Arc<dyn TablePropertiesCollectorFactory>>,
    file_options: FileWriteOptions,
    open: Option<Open>,
    next_file_no: u64,
    file_size: u64,
}

impl std::fmt::Debug for SstFileWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SstFileWriter")
            .field("file", &self.open.as_ref().map(|o| &o.info.file_path))
            .field("file_size", &self.file_size)
            .finish_non_exhaustive()
    }
}

impl SstFileWriter {
    /// A writer of files in the shape that `options` give the last level of their default family.
    ///
    /// `InvalidArgument` or `NotSupported` for options that no database opens with.
    pub fn new(options: &Options) -> Result<Self> {
        check_options(&options.db, [("default", &options.family)])?;
        let env = options.env.clone().unwrap_or_else(Env::posix);
        let env = options.db.background_env(env);
        let db = options.db.resolve();
        let family = options.family.clone().resolve();
        // The last entry of a list by level counts, as for the deepest level.
        let placement = Placement {
            level: Level(u8::MAX),
            base: Level::L0,
            bottommost: true,
            uncompressed: false,
        };
        let (compression, compression_opts) = codec_for(&family, placement);
        let threads = compression_for(&family, placement).1.parallel_threads;
        let table = TableBuilderOptions {
            order: family.comparator.clone(),
            table: family.table.to_table_options(),
            compression,
            compression_opts,
            compressors: compressors_for(threads, &env),
            prefix_extractor: family.prefix_extractor.clone(),
            family: UNKNOWN_FAMILY,
            family_name: String::new(),
            merge_operator: family.merge_operator.as_ref().map(|m| m.name().to_owned()),
            db_id: DB_ID.to_owned(),
            db_session_id: new_session_id(&*env.entropy),
            external: true,
            collectors: family
                .table_properties_collector_factories
                .iter()
                .map(|f| f.name().to_owned())
                .collect(),
            ..TableBuilderOptions::default()
        };
        Ok(SstFileWriter {
            file_options: FileWriteOptions {
                direct: db.use_direct_io_for_flush_and_compaction,
                bytes_per_sync: db.bytes_per_sync,
                buffer_size: db.writable_file_max_buffer_size,
                background: true,
                ..FileWriteOptions::default()
            },
            env,
            table,
            collectors: family.table_properties_collector_factories.clone(),
            open: None,
            next_file_no: 1,
            file_size: 0,
        })
    }

    /// Makes the writer write files that are to go into `family` and into no other.
    #[must_use]
    pub fn for_family(mut self, family: &FamilyHandle) -> Self {
        self.table.family = family.0.id;
        self.table.family_name.clone_from(&family.0.name);
        self
    }

    /// Sets another order of keys than the options say.
    #[must_use]
    pub fn with_order(mut self, order: KeyOrder) -> Self {
        self.table.order = order;
        self
    }

    /// Sets how files are written. A file that exists is written anew in any case.
    #[must_use]
    pub fn with_file_options(mut self, options: FileWriteOptions) -> Self {
        self.file_options = FileWriteOptions {
            exclusive: false,
            background: true,
            mapped: false,
            ..options
        };
        self
    }

    /// Begins the file at `path`. A file that was not finished is abandoned, and stays as it is.
    pub fn open(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        self.open = None;
        let file = self.env.fs.create(path, self.file_options)?;
        let options = TableBuilderOptions {
            // Different for every file of this writer: it is part of the file's identity.
            file_no: FileNo(self.next_file_no),
            ..self.table.clone()
        };
        self.next_file_no += 1;
        self.file_size = 0;
        let context = CollectorContext {
            family: self.table.family.0,
            ..CollectorContext::default()
        };
        self.open = Some(Open {
            collectors: Collectors::new(&self.collectors, &context),
            builder: TableBuilder::new(file, options)?,
            info: ExternalFileInfo {
                file_path: path.to_owned(),
                version: VERSION,
                ..ExternalFileInfo::default()
            },
            last: Vec::new(),
            failed: None,
        });
        Ok(())
    }

    /// Adds `key` with `value`. Keys come in strictly ascending order, whatever is done to them.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.check_timestamp(0)?;
        self.add(key.as_ref(), value.as_ref(), ValueType::Value)
    }

    /// Adds `key` with `value` as of the user-defined timestamp `timestamp`.
    pub fn put_with_timestamp(
        &mut self,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.check_timestamp(timestamp.as_ref().len())?;
        let key = [key.as_ref(), timestamp.as_ref()].concat();
        self.add(&key, value.as_ref(), ValueType::Value)
    }

    /// Adds `key` with an entity of named columns.
    pub fn put_entity<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        key: impl AsRef<[u8]>,
        columns: &[(N, V)],
    ) -> Result<()> {
        self.check_timestamp(0)?;
        let columns: Vec<Column<'_>> = columns
            .iter()
            .map(|(n, v)| Column::new(n.as_ref(), v.as_ref()))
            .collect();
        let mut entity = Vec::new();
        wide_column::encode(&columns, &mut entity)?;
        self.add(key.as_ref(), &entity, ValueType::WideColumnEntity)
    }

    /// Adds a merge operand for `key`. The family that takes the file needs a merge operator;
    /// nothing is asked of the options here.
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.check_timestamp(0)?;
        self.add(key.as_ref(), operand.as_ref(), ValueType::Merge)
    }

    /// Adds a deletion of `key`: it hides what the database has when the file comes.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.check_timestamp(0)?;
        self.add(key.as_ref(), b"", ValueType::Deletion)
    }

    /// Adds a deletion of `key` as of the user-defined timestamp `timestamp`.
    pub fn delete_with_timestamp(
        &mut self,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.check_timestamp(timestamp.as_ref().len())?;
        let key = [key.as_ref(), timestamp.as_ref()].concat();
        self.add(&key, b"", ValueType::DeletionWithTimestamp)
    }

    /// Adds a deletion of the keys of `[begin, end)`, in any order relative to everything else. It
    /// hides what the database has when the file comes, and nothing of the file itself.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, IngestOptions, Options, SstFileWriter};
    ///
    /// let db = Db::open_default(dir.path().join("db"))?;
    /// db.put("b", "old")?;
    /// let file = dir.path().join("new.sst");
    /// let mut writer = SstFileWriter::new(&Options::new())?;
    /// writer.open(&file)?;
    /// writer.delete_range("a", "z")?;
    /// writer.put("c", "new")?;
    /// writer.finish()?;
    /// db.ingest(&db.default_family_handle(), &[file], &IngestOptions::default())?;
    /// assert_eq!(db.keys().collect::<Result<Vec<_>, _>>()?, [b"c"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn delete_range(&mut self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.check_timestamp(0)?;
        self.add_range_deletion(begin.as_ref(), end.as_ref())
    }

    /// Adds a deletion of the keys of `[begin, end)` as of `timestamp`.
    pub fn delete_range_with_timestamp(
        &mut self,
        begin: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
    ) -> Result<()> {
        let timestamp = timestamp.as_ref();
        self.check_timestamp(timestamp.len())?;
        let begin = [begin.as_ref(), timestamp].concat();
        let end = [end.as_ref(), timestamp].concat();
        self.add_range_deletion(&begin, &end)
    }

    fn add_range_deletion(&mut self, begin: &[u8], end: &[u8]) -> Result<()> {
        let order = &self.table.order;
        let Some(open) = &mut self.open else {
            return Err(not_open());
        };
        check_len(begin, end, "end key is too large")?;
        match order.compare_without_timestamp(begin, end) {
            std::cmp::Ordering::Greater => {
                return Err(Error::invalid_argument("end key comes before start key"));
            }
            std::cmp::Ordering::Equal => return Ok(()),
            std::cmp::Ordering::Less => {}
        }
        open.builder.add_tombstone(&RawTombstone {
            start: begin.to_vec(),
            end: end.to_vec(),
            seq: Seq::ZERO,
        });
        let size = open.builder.file_size();
        open.collectors
            .add(begin, end, EntryKind::RangeDeletion, Seq::ZERO, size);
        let info = &mut open.info;
        let first = info.num_range_del_entries == 0;
        if first || order.compare(begin, &info.smallest_range_del_key).is_lt() {
            info.smallest_range_del_key = begin.to_vec();
        }
        if first || order.compare(end, &info.largest_range_del_key).is_gt() {
            info.largest_range_del_key = end.to_vec();
        }
        info.num_range_del_entries += 1;
        self.file_size = open.builder.file_size();
        Ok(())
    }

    /// Writes the rest of the file, makes it survive power loss, and closes it. After a failure
    /// there is no file.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Options, SstFileWriter};
    ///
    /// let mut writer = SstFileWriter::new(&Options::new())?;
    /// writer.open(dir.path().join("new.sst"))?;
    /// writer.put("a", "1")?;
    /// writer.put("b", "2")?;
    /// let info = writer.finish()?;
    /// assert_eq!((&info.smallest_key[..], &info.largest_key[..]), (&b"a"[..], &b"b"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn finish(&mut self) -> Result<ExternalFileInfo> {
        let Some(mut open) = self.open.take_if(|o| !o.builder.is_empty()) else {
            return Err(match &self.open {
                Some(_) => Error::invalid_argument("Cannot create sst file with no entries"),
                None => not_open(),
            });
        };
        let (properties, _) = open.collectors.finish();
        for (name, value) in properties {
            open.builder.add_user_property(name, value);
        }
        let mut info = open.info;
        let written = match open.failed {
            Some(e) => Err(e),
            None => open.builder.finish(),
        };
        let done = written.and_then(|(summary, mut file)| {
            file.sync()?;
            file.close()?;
            Ok(summary)
        });
        match done {
            Ok(summary) => {
                info.file_size = summary.file_size;
                self.file_size = summary.file_size;
                if let Some((smallest, largest)) = summary.bounds {
                    info.smallest_key = smallest.user().to_vec();
                    info.largest_key = largest.user().to_vec();
                }
                Ok(info)
            }
            Err(e) => {
                // The first error is the one to be told.
                let _ = self.env.fs.remove_file(&info.file_path);
                Err(e)
            }
        }
    }

    /// Bytes of the file so far; of the whole file once it is finished.
    pub fn file_size(&self) -> u64 {
        self.file_size
    }

    /// The order that keys come in.
    pub fn order(&self) -> &KeyOrder {
        &self.table.order
    }

    fn check_timestamp(&self, len: usize) -> Result<()> {
        if self.table.order.timestamp_size() == len {
            return Ok(());
        }
        Err(Error::invalid_argument("Timestamp size mismatch"))
    }

    fn add(&mut self, user: &[u8], value: &[u8], kind: ValueType) -> Result<()> {
        let Some(open) = &mut self.open else {
            return Err(not_open());
        };
        if let Some(e) = &open.failed {
            return Err(e.clone());
        }
        check_len(user, value, "value is too large")?;
        let last = esker_format::key::user_key(&open.last);
        if open.info.num_entries > 0 && self.table.order.compare(user, last).is_le() {
            return Err(Error::invalid_argument(
                "Keys must be added in strict ascending order.",
            ));
        }
        open.last.clear();
        append_internal(&mut open.last, user, Seq::ZERO, kind);
        open.builder
            .add(&open.last, value)
            .inspect_err(|e| open.failed = Some(e.clone()))?;
        open.info.num_entries += 1;
        self.file_size = open.builder.file_size();
        if !open.collectors.is_empty() {
            open.collectors
                .add(user, value, kind.into(), Seq::ZERO, self.file_size);
        }
        Ok(())
    }
}

fn not_open() -> Error {
    Error::invalid_argument("File is not opened")
}

/// Blocks hold lengths of 32 bits, those of keys with their trailer.
fn check_len(key: &[u8], value: &[u8], what: &str) -> Result<()> {
    if u32::try_from(key.len() + 8).is_err() {
        return Err(Error::invalid_argument("key is too large"));
    }
    if u32::try_from(value.len()).is_err() {
        return Err(Error::invalid_argument(what));
    }
    Ok(())
}
