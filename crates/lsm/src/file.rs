//! One table file as the tree knows it: boundaries, sequences, sizes and ages.
//!
//! A [`FileMeta`] never changes after it joined a [`crate::version::Version`]; it is shared as
//! `Arc<FileMeta>` by every version that holds the file, at whatever level. What is learned later
//! (the open reader, the counts of its properties block) goes into write-once cells, so that all
//! versions see it. Thread-safety: `Send + Sync`, lock-free reads.

use esker_format::blob_refs::BlobRefs;
use esker_format::edit::{NewFile, UNKNOWN_CHECKSUM};
use esker_format::{FileNo, InternalKey, KeyOrder, Seq, key};
use std::any::Any;
use std::cmp::Ordering;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// The engine's place in a file's metadata: filled once, read without a lock.
#[derive(Clone, Default)]
pub struct MetadataSlot(OnceLock<Arc<dyn Any + Send + Sync>>);

impl MetadataSlot {
    /// The slot's value, when it is a `T`.
    #[inline]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.get().and_then(|any| any.downcast_ref::<T>())
    }
    /// Fills the slot; the value comes back when somebody else was first.
    pub fn set<T: Send + Sync + 'static>(&self, value: Arc<T>) -> Result<(), Arc<T>> {
        let mut mine = Some(value);
        self.0
            .get_or_init(|| mine.take().expect("the closure runs at most once"));
        match mine {
            None => Ok(()),
            Some(unused) => Err(unused),
        }
    }
}

impl fmt::Debug for MetadataSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.get().is_some() {
            "Slot(full)"
        } else {
            "Slot(empty)"
        })
    }
}

/// Counts of a file's properties block that decisions use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileStats {
    /// Entries, range tombstones included.
    pub num_entries: u64,
    /// Deletions of every kind.
    pub num_deletions: u64,
    /// Range tombstones among them.
    pub num_range_deletions: u64,
    /// Sum of the sizes of the internal keys before compression.
    pub raw_key_size: u64,
    /// Sum of the sizes of the values before compression.
    pub raw_value_size: u64,
    /// Unix seconds of the newest write; 0 when the writer of the file did not say.
    pub newest_key_time: u64,
}

impl FileStats {
    /// Entries that are no range tombstones, and how many of them are deletions.
    pub fn points(&self) -> (u64, u64) {
        let deletions = self.num_deletions.saturating_sub(self.num_range_deletions);
        let entries = self.num_entries.saturating_sub(self.num_range_deletions);
        // Some writers count deletions otherwise than entries.
        (entries.max(deletions), deletions)
    }
}

/// Bytes of blob files that the entries of a table refer to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobShares {
    /// By file, ascending.
    by_file: Box<[(FileNo, u64)]>,
    total: u64,
}

impl From<&BlobRefs> for BlobShares {
    fn from(refs: &BlobRefs) -> Self {
        let by_file: Box<[_]> = refs.iter().map(|(file, n)| (file, n.bytes)).collect();
        let total = by_file.iter().map(|(_, bytes)| bytes).sum();
        BlobShares { by_file, total }
    }
}

impl BlobShares {
    /// All files with their bytes, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (FileNo, u64)> + '_ {
        self.by_file.iter().copied()
    }

    /// Bytes of this file; none where no entry refers to it.
    pub fn of(&self, file: FileNo) -> Option<u64> {
        let at = self.by_file.binary_search_by_key(&file, |(file, _)| *file);
        at.ok().map(|at| self.by_file[at].1)
    }
}

/// A table file: the fields of RocksDB's new-file record, and what the engine learns later.
#[derive(Debug, Default)]
pub struct FileMeta {
    /// The number in its name.
    pub number: FileNo,
    /// Which of the configured paths it lies on.
    pub path_id: u32,
    /// Bytes of the file.
    pub size: u64,
    /// At or before every point and tombstone.
    pub smallest: InternalKey,
    /// At or after every point and tombstone.
    pub largest: InternalKey,
    /// The smallest sequence of any entry.
    pub smallest_seq: Seq,
    /// The largest sequence of any entry.
    pub largest_seq: Seq,
    /// Orders the files of level 0; 0 when unknown.
    pub epoch: u64,
    /// True if the writer of the file asked for its compaction.
    pub marked_for_compaction: bool,
    /// The smallest blob file that an entry refers to.
    pub oldest_blob_file: Option<FileNo>,
    /// Unix seconds of the oldest data's first flush; 0 when unknown.
    pub oldest_ancestor_time: u64,
    /// Unix seconds of this file's creation; 0 when unknown.
    pub file_creation_time: u64,
    /// The checksum of the whole file; empty when unknown.
    pub file_checksum: Vec<u8>,
    /// Names the function of [`FileMeta::file_checksum`]; empty or `Unknown` when there is none.
    pub file_checksum_func_name: String,
    /// RocksDB's temperature byte.
    pub temperature: u8,
    /// The smallest user-defined timestamp.
    pub min_timestamp: Vec<u8>,
    /// The largest user-defined timestamp.
    pub max_timestamp: Vec<u8>,
    /// The unique id; `None` when it is not to be checked.
    pub unique_id: Option<[u64; 2]>,
    /// Estimated bytes below that its range tombstones make obsolete.
    pub compensated_range_deletion_size: u64,
    /// Bytes from the end of the data blocks to the end of the file.
    pub tail_size: u64,
    /// True if timestamps were stripped when the file was written.
    pub timestamps_stripped: bool,
    /// Opaque bytes of the new-file record's field 17.
    pub open_metadata: Vec<u8>,
    /// True if the user suggested to compact it; not stored.
    pub suggested: AtomicBool,
    /// Reads that searched the file and met a deletion, a merge operand or nothing there, by
    /// samples; not stored. Shared with what reads the file.
    pub collapsible_reads: Arc<AtomicU64>,
    /// Counts from the properties block, once somebody read them.
    pub stats: OnceLock<FileStats>,
    /// References of its entries to blob files, once somebody read them; not of a table that does
    /// not say it.
    pub blob_shares: OnceLock<BlobShares>,
    /// The engine's open reader.
    pub slot: MetadataSlot,
}

impl FileMeta {
    /// Bytes of its keys and values before compression; its own size when it was not opened yet.
    pub fn raw_bytes(&self) -> u64 {
        self.stats.get().map_or(self.size, |s| {
            s.raw_key_size.saturating_add(s.raw_value_size)
        })
    }
    /// Bytes of its keys and values before compression, with those in blob files.
    pub fn written_bytes(&self) -> u64 {
        let blobs = self.blob_bytes().unwrap_or(0);
        self.raw_bytes().saturating_add(blobs)
    }

    /// Bytes of blob files that its entries refer to; none where that is not known.
    pub fn blob_bytes(&self) -> Option<u64> {
        match self.oldest_blob_file {
            None => Some(0),
            Some(_) => self.blob_shares.get().map(|shares| shares.total),
        }
    }

    /// Bytes of a blob file that its entries refer to; none where they do not. A table that does
    /// not say it may refer to any file from its oldest one on.
    pub fn blob_share(&self, file: FileNo) -> Option<u64> {
        let oldest = self.oldest_blob_file?;
        match self.blob_shares.get() {
            Some(shares) => shares.of(file),
            None => (oldest <= file).then_some(0),
        }
    }

    /// Unix seconds at or after its newest write; 0 when unknown. Where the file itself does not
    /// say, or was not opened yet, all of it was written before it was made.
    pub fn newest_time(&self) -> u64 {
        let told = self.stats.get().map(|s| s.newest_key_time);
        let made = [self.file_creation_time, self.oldest_ancestor_time];
        let mut known = told.into_iter().chain(made).filter(|t| *t != 0);
        known.next().unwrap_or(0)
    }

    /// Returns whether it waits for its compaction, by its writer's wish or the user's.
    pub fn is_marked(&self) -> bool {
        self.marked_for_compaction || self.suggested.load(Relaxed)
    }

    /// [`FileMeta::collapsible_reads`] for each byte: what
    /// `read_triggered_compaction_threshold` is compared with.
    pub fn collapsible_reads_per_byte(&self) -> f64 {
        match self.size {
            0 => 0.0,
            size => self.collapsible_reads.load(Relaxed) as f64 / size as f64,
        }
    }

    /// Copies the metadata under another epoch number; what was learned of the file comes along.
    pub fn with_epoch(&self, epoch: u64) -> FileMeta {
        let suggested = AtomicBool::new(self.suggested.load(Relaxed));
        FileMeta {
            epoch,
            suggested,
            collapsible_reads: Arc::clone(&self.collapsible_reads),
            stats: self.stats.clone(),
            blob_shares: self.blob_shares.clone(),
            slot: self.slot.clone(),
            ..FileMeta::from(NewFile::from(self))
        }
    }

    /// Returns whether `other` describes the same file: a move keeps this one with its open reader.
    pub fn same_file(&self, other: &FileMeta) -> bool {
        NewFile::from(self) == NewFile::from(other)
    }

    /// Returns whether the file's user keys meet `[lo, hi]`; `None` is unbounded.
    pub fn overlaps(&self, order: &KeyOrder, lo: Option<&[u8]>, hi: Option<&[u8]>) -> bool {
        lo.is_none_or(|lo| !ends_before(order, &self.largest, lo))
            && hi.is_none_or(|hi| {
                order
                    .compare_without_timestamp(self.smallest.user(), hi)
                    .is_le()
            })
    }
}

/// Returns whether a file with this largest key ends before user key `key`.
fn ends_before(order: &KeyOrder, largest: &InternalKey, key: &[u8]) -> bool {
    match order.compare_without_timestamp(largest.user(), key) {
        Ordering::Less => true,
        Ordering::Equal => largest.is_range_end_sentinel(),
        Ordering::Greater => false,
    }
}

/// Compares two file boundaries (encoded internal keys) by user key; a range tombstone's exclusive
/// end sorts before every other boundary of its user key.
///
/// Equal means that the files must be taken together by a compaction.
pub fn compare_boundary(order: &KeyOrder, a: &[u8], b: &[u8]) -> Ordering {
    let sentinel = key::pack(Seq::MAX, key::ValueType::RangeDeletion);
    order
        .compare_without_timestamp(key::user_key(a), key::user_key(b))
        .then_with(|| (key::trailer(b) == sentinel).cmp(&(key::trailer(a) == sentinel)))
}

/// Newest first, as level 0 is kept when every file has an epoch number.
pub fn newest_first_by_epoch(a: &FileMeta, b: &FileMeta) -> Ordering {
    b.epoch
        .cmp(&a.epoch)
        .then_with(|| newest_first_by_seq(a, b))
}

/// Newest first, as level 0 is kept while a file without epoch number is in it.
pub fn newest_first_by_seq(a: &FileMeta, b: &FileMeta) -> Ordering {
    (b.largest_seq, b.smallest_seq, b.number).cmp(&(a.largest_seq, a.smallest_seq, a.number))
}

/// Puts the files of level 0 in order: by epoch number when all have one, else by sequence.
pub fn sort_newest_first(files: &mut [Arc<FileMeta>]) {
    if files.iter().all(|f| f.epoch != 0) {
        files.sort_by(|a, b| newest_first_by_epoch(a, b));
    } else {
        sort_by_seq(files);
    }
}

/// Puts files in order by sequence, newest first.
pub(crate) fn sort_by_seq(files: &mut [Arc<FileMeta>]) {
    files.sort_by(|a, b| newest_first_by_seq(a, b));
}

impl From<NewFile> for FileMeta {
    fn from(f: NewFile) -> Self {
        FileMeta {
            number: f.number,
            path_id: f.path_id,
            size: f.size,
            smallest: f.smallest,
            largest: f.largest,
            smallest_seq: f.smallest_seq,
            largest_seq: f.largest_seq,
            epoch: f.epoch_number,
            marked_for_compaction: f.marked_for_compaction,
            oldest_blob_file: f.oldest_blob_file,
            oldest_ancestor_time: f.oldest_ancestor_time,
            file_creation_time: f.creation_time,
            file_checksum: f.checksum,
            file_checksum_func_name: f.checksum_function,
            temperature: f.temperature,
            min_timestamp: f.min_timestamp,
            max_timestamp: f.max_timestamp,
            unique_id: f.unique_id,
            compensated_range_deletion_size: f.compensated_range_deletion_size,
            tail_size: f.tail_size,
            timestamps_stripped: !f.timestamps_persisted,
            open_metadata: f.open_metadata,
            suggested: AtomicBool::new(false),
            collapsible_reads: Arc::default(),
            stats: OnceLock::new(),
            blob_shares: OnceLock::new(),
            slot: MetadataSlot::default(),
        }
    }
}

impl From<&FileMeta> for NewFile {
    fn from(f: &FileMeta) -> Self {
        let unknown = f.file_checksum_func_name.is_empty();
        let function = if unknown {
            UNKNOWN_CHECKSUM
        } else {
            &f.file_checksum_func_name
        };
        NewFile {
            number: f.number,
            path_id: f.path_id,
            size: f.size,
            smallest: f.smallest.clone(),
            largest: f.largest.clone(),
            smallest_seq: f.smallest_seq,
            largest_seq: f.largest_seq,
            marked_for_compaction: f.marked_for_compaction,
            oldest_blob_file: f.oldest_blob_file,
            oldest_ancestor_time: f.oldest_ancestor_time,
            creation_time: f.file_creation_time,
            checksum: f.file_checksum.clone(),
            checksum_function: function.to_owned(),
            temperature: f.temperature,
            min_timestamp: f.min_timestamp.clone(),
            max_timestamp: f.max_timestamp.clone(),
            unique_id: f.unique_id,
            epoch_number: f.epoch,
            compensated_range_deletion_size: f.compensated_range_deletion_size,
            tail_size: f.tail_size,
            timestamps_persisted: !f.timestamps_stripped,
            open_metadata: f.open_metadata.clone(),
        }
    }
}
