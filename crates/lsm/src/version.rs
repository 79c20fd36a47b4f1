//! One family's tree at one moment: an immutable value, shared by readers and jobs.
//!
//! Invariants ([`crate::check::verify`]): level 0 is ordered newest first and its files may
//! overlap; deeper levels are sorted and disjoint by internal key. Levels and blob lists that an
//! edit did not touch are shared with the version before. Every function is pure; thread-safety:
//! `Send + Sync`.

use crate::file::{FileMeta, MetadataSlot, compare_boundary};
use crate::policy::ForcedBlobGc;
use esker_format::blob_groups::BlobTier;
use esker_format::key::{ValueType, user_key};
use esker_format::{FileNo, InternalKey, KeyOrder, Level, Seq};
use std::collections::BTreeMap;
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The files of one level, with flat copies of what searches touch first.
#[derive(Debug, Default)]
pub struct LevelFiles {
    files: Box<[Arc<FileMeta>]>,
    numbers: Box<[FileNo]>,
    /// The bytes that all user keys of the level begin with (byte-wise order only).
    common: Box<[u8]>,
    /// The eight bytes after `common` of each file's smallest and largest user key, big-endian
    /// (byte-wise order only; else empty).
    smallest: Box<[u64]>,
    largest: Box<[u64]>,
    bytes: u64,
    /// True if all files were found to hold no range deletions, which stays true.
    without_range_deletions: AtomicBool,
}

/// Where a key lies relative to what the keys of a level share.
enum KeyPlace {
    Before,
    Within(u64),
    After,
}

/// The first eight bytes as a big-endian number, zero-filled: smaller numbers mean smaller keys.
#[inline]
fn prefix(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => {
            let mut chunk = [0; 8];
            chunk[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(chunk)
        }
    }
}

impl LevelFiles {
    /// A level of `files`, which are in the level's order already.
    pub fn new(order: &KeyOrder, files: Vec<Arc<FileMeta>>) -> Self {
        let numbers = files.iter().map(|f| f.number).collect();
        let bytes = files.iter().fold(0u64, |sum, f| sum.saturating_add(f.size));
        let mut level = LevelFiles {
            files: files.into(),
            numbers,
            bytes,
            ..Default::default()
        };
        if order.is_bytewise() {
            level.index_prefixes();
        }
        level
    }

    /// Returns whether a file may hold range deletions: not once the properties of all were read
    /// and name none.
    pub fn may_delete_ranges(&self) -> bool {
        if self.without_range_deletions.load(Ordering::Relaxed) {
            return false;
        }
        let mut stats = self.files.iter().map(|f| f.stats.get());
        let may = stats.any(|s| s.is_none_or(|s| s.num_range_deletions > 0));
        if !may {
            self.without_range_deletions.store(true, Ordering::Relaxed);
        }
        may
    }

    fn index_prefixes(&mut self) {
        let edges = || {
            self.files
                .iter()
                .flat_map(|f| [f.smallest.user(), f.largest.user()])
        };
        let (first, last) = (
            edges().min().unwrap_or_default(),
            edges().max().unwrap_or_default(),
        );
        // Every key between two keys begins with what the two share.
        let shared = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        self.common = first[..shared].into();
        self.smallest = self
            .files
            .iter()
            .map(|f| prefix(&f.smallest.user()[shared..]))
            .collect();
        self.largest = self
            .files
            .iter()
            .map(|f| prefix(&f.largest.user()[shared..]))
            .collect();
    }

    #[inline]
    fn place(&self, user: &[u8]) -> KeyPlace {
        match user.strip_prefix(&*self.common) {
            Some(rest) => KeyPlace::Within(prefix(rest)),
            None if user < &*self.common => KeyPlace::Before,
            None => KeyPlace::After,
        }
    }

    /// The files, in the level's order.
    #[inline]
    pub fn files(&self) -> &[Arc<FileMeta>] {
        &self.files
    }
    /// Their numbers, in the same order.
    pub fn numbers(&self) -> &[FileNo] {
        &self.numbers
    }
    /// How many.
    pub fn len(&self) -> usize {
        self.files.len()
    }
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
    /// Sum of the file sizes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    /// The index of a file.
    pub fn position(&self, number: FileNo) -> Option<usize> {
        self.numbers.iter().position(|n| *n == number)
    }

    /// For a sorted level: the index of the first file whose largest key is at or after the
    /// internal key `target`; `len()` when there is none.
    #[inline]
    pub fn find(&self, order: &KeyOrder, target: &[u8]) -> usize {
        if self.largest.is_empty() {
            return self.find_in(order, target, 0..self.files.len());
        }
        let wanted = match self.place(user_key(target)) {
            KeyPlace::Before => return 0,
            KeyPlace::After => return self.files.len(),
            KeyPlace::Within(p) => p,
        };
        let from = self.largest.partition_point(|p| *p < wanted);
        if self.largest.get(from).is_none_or(|p| *p != wanted) {
            return from;
        }
        let to = from + self.largest[from..].partition_point(|p| *p == wanted);
        self.find_in(order, target, from..to)
    }

    fn find_in(&self, order: &KeyOrder, target: &[u8], within: Range<usize>) -> usize {
        // `partition_point` is a call of its own, and this is part of each Get.
        let Range { mut start, mut end } = within;
        while start < end {
            let middle = start + (end - start) / 2;
            let largest = self.files[middle].largest.as_bytes();
            if order.compare_internal(largest, target).is_lt() {
                start = middle + 1;
            } else {
                end = middle;
            }
        }
        start
    }

    /// The part of a user key that decides most comparisons in this level without touching a file.
    #[inline]
    fn hint(&self, user: &[u8]) -> Option<u64> {
        match self.place(user) {
            KeyPlace::Within(p) if !self.largest.is_empty() => Some(p),
            _ => None,
        }
    }

    /// Returns whether file `index` begins at or before the user key, whose [`LevelFiles::hint`] is
    /// given.
    #[inline]
    fn begins_at_or_before(
        &self,
        order: &KeyOrder,
        index: usize,
        user: &[u8],
        hint: Option<u64>,
    ) -> bool {
        match hint {
            Some(p) if self.smallest[index] != p => self.smallest[index] < p,
            _ => order
                .compare_without_timestamp(self.files[index].smallest.user(), user)
                .is_le(),
        }
    }

    /// The user key against the largest user key of file `index`.
    #[inline]
    fn against_end(
        &self,
        order: &KeyOrder,
        index: usize,
        user: &[u8],
        hint: Option<u64>,
    ) -> std::cmp::Ordering {
        match hint {
            Some(p) if self.largest[index] != p => p.cmp(&self.largest[index]),
            _ => order.compare_without_timestamp(user, self.files[index].largest.user()),
        }
    }

    /// For a sorted level: the indexes of the files that meet the boundaries `[lo, hi]`, which are
    /// encoded internal keys compared by user key ([`compare_boundary`]); `None` is unbounded.
    pub fn overlapping(
        &self,
        order: &KeyOrder,
        lo: Option<&[u8]>,
        hi: Option<&[u8]>,
    ) -> Range<usize> {
        let before =
            |f: &Arc<FileMeta>, lo| compare_boundary(order, f.largest.as_bytes(), lo).is_lt();
        let from = lo.map_or(0, |lo| self.files.partition_point(|f| before(f, lo)));
        let starts =
            |f: &Arc<FileMeta>, hi| compare_boundary(order, f.smallest.as_bytes(), hi).is_le();
        let count = hi.map_or(self.files.len() - from, |hi| {
            self.files[from..].partition_point(|f| starts(f, hi))
        });
        from..from + count
    }
}

/// A blob file of the version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobFile {
    /// The number in its name.
    pub number: FileNo,
    /// Records in it.
    pub total_count: u64,
    /// Bytes of its records.
    pub total_bytes: u64,
    /// Names the checksum function; empty when there is none.
    pub checksum_method: String,
    /// The checksum of the whole file.
    pub checksum_value: Vec<u8>,
    /// Records that no table refers to any more.
    pub garbage_count: u64,
    /// Their bytes.
    pub garbage_bytes: u64,
    /// Tables whose oldest blob file this is.
    pub linked_tables: u64,
    /// Values that it is for.
    pub tier: BlobTier,
}

impl BlobFile {
    /// Bytes of the records that tables refer to.
    pub fn live_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub(self.garbage_bytes)
    }
}

/// A blob file of a tree, and what the engine learned of it.
#[derive(Clone, Debug, Default)]
pub struct TreeBlob {
    /// The file.
    pub file: BlobFile,
    /// The engine's open reader, which all versions share that have the file.
    pub slot: Arc<MetadataSlot>,
}

/// By the files: what was learned later makes no difference.
impl PartialEq for TreeBlob {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file
    }
}

impl Eq for TreeBlob {}

impl Deref for TreeBlob {
    type Target = BlobFile;
    fn deref(&self) -> &BlobFile {
        &self.file
    }
}

/// How many of `count` blob files make up the share `age_cutoff` of the oldest.
fn oldest_part(count: usize, age_cutoff: f64) -> usize {
    // A float beyond the range converts to the nearest number.
    ((age_cutoff * count as f64) as usize).min(count)
}

/// A family's tree.
#[derive(Clone, Debug)]
pub struct Version {
    pub(crate) order: KeyOrder,
    pub(crate) levels: Vec<Arc<LevelFiles>>,
    pub(crate) blobs: Arc<BTreeMap<FileNo, Arc<TreeBlob>>>,
    pub(crate) cursors: Arc<BTreeMap<Level, InternalKey>>,
    /// No epoch number that the family gave so far is above.
    pub(crate) last_epoch: u64,
}

impl Version {
    /// An empty tree of `num_levels` levels.
    pub fn empty(order: KeyOrder, num_levels: usize) -> Self {
        let none = Arc::new(LevelFiles::default());
        Version {
            order,
            levels: vec![none; num_levels.max(1)],
            blobs: Arc::default(),
            cursors: Arc::default(),
            last_epoch: 0,
        }
    }
    /// The order of its keys.
    #[inline]
    pub fn order(&self) -> &KeyOrder {
        &self.order
    }
    /// Levels it may use.
    pub fn num_levels(&self) -> usize {
        self.levels.len()
    }
    /// The levels, 0 first.
    #[inline]
    pub fn levels(&self) -> &[Arc<LevelFiles>] {
        &self.levels
    }
    /// One level; empty when beyond the last.
    #[inline]
    pub fn level(&self, level: Level) -> &LevelFiles {
        static NONE: std::sync::OnceLock<LevelFiles> = std::sync::OnceLock::new();
        match self.levels.get(level.index()) {
            Some(files) => files,
            None => NONE.get_or_init(LevelFiles::default),
        }
    }
    /// Every table with its level.
    pub fn files(&self) -> impl Iterator<Item = (Level, &Arc<FileMeta>)> {
        (0u8..)
            .zip(&self.levels)
            .flat_map(|(l, files)| files.files().iter().map(move |f| (Level(l), f)))
    }
    /// The level and metadata of a table.
    pub fn find_file(&self, number: FileNo) -> Option<(Level, &Arc<FileMeta>)> {
        (0u8..)
            .zip(&self.levels)
            .find_map(|(l, files)| Some((Level(l), &files.files()[files.position(number)?])))
    }
    /// The deepest level that has files.
    pub fn deepest_level(&self) -> Option<Level> {
        (0u8..)
            .zip(&self.levels)
            .filter(|(_, files)| !files.is_empty())
            .last()
            .map(|(l, _)| Level(l))
    }
    /// The sorted runs that a read searches: each table of level 0, and each level with tables
    /// below.
    pub fn sorted_runs(&self) -> usize {
        let below = self.levels.iter().skip(1);
        self.level(Level::L0).len() + below.filter(|l| !l.is_empty()).count()
    }
    /// The first blob file that is not among the oldest, of which there are `age_cutoff` of all.
    pub fn blob_cutoff(&self, age_cutoff: f64) -> FileNo {
        let first = oldest_part(self.blobs.len(), age_cutoff);
        let after = self.blobs.keys().nth(first).copied();
        after.unwrap_or(FileNo(u64::MAX))
    }

    /// The oldest blob file, when compactions are to leave it because of the garbage in the oldest
    /// ones together.
    pub fn forced_blob_gc(&self, gc: &ForcedBlobGc) -> Option<FileNo> {
        let count = oldest_part(self.blobs.len(), gc.age_cutoff);
        let oldest = || self.blobs.values().take(count);
        let first = oldest().next()?.number;
        let sum = |of: fn(&BlobFile) -> u64| oldest().map(|b| of(b) as f64).sum::<f64>();
        let (all, garbage) = (sum(|b| b.total_bytes), sum(|b| b.garbage_bytes));
        (garbage > 0.0 && garbage >= all * gc.threshold).then_some(first)
    }

    /// Blob files by number.
    pub fn blob_files(&self) -> &BTreeMap<FileNo, Arc<TreeBlob>> {
        &self.blobs
    }
    /// Where round-robin picking goes on at a level.
    pub fn compact_cursor(&self, level: Level) -> Option<&InternalKey> {
        self.cursors.get(&level)
    }
    /// All of those.
    pub fn compact_cursors(&self) -> &BTreeMap<Level, InternalKey> {
        &self.cursors
    }
    /// Bytes of all tables.
    pub fn bytes(&self) -> u64 {
        self.levels
            .iter()
            .fold(0, |sum, l| sum.saturating_add(l.bytes()))
    }
    /// The largest epoch number that a table of the family got since it was opened, also where the
    /// table is gone: the next flush takes the one after it.
    pub fn last_epoch(&self) -> u64 {
        self.last_epoch
    }
    /// Returns whether level 0 has tables without an epoch number: it goes by sequence numbers
    /// then, and these do not tell which of two is newer ([`crate::edit::recover_epochs`]).
    pub fn lacks_epochs(&self) -> bool {
        self.level(Level::L0).files().iter().any(|f| f.epoch == 0)
    }
    /// The largest sequence of any table.
    pub fn max_seq(&self) -> Seq {
        self.files()
            .map(|(_, f)| f.largest_seq)
            .max()
            .unwrap_or(Seq::ZERO)
    }

    /// The tables that may hold the user key of `target` (an internal key: user key and the read's
    /// sequence with [`ValueType::SEEK`]), newest first, without allocating.
    #[inline]
    pub fn candidates<'v>(&'v self, target: &'v [u8]) -> Candidates<'v> {
        Candidates {
            version: self,
            target,
            level: 0,
            next: 0,
            sought: false,
            hint: None,
        }
    }

    /// The tables of a level that meet the user keys `[lo, hi]`; `None` is unbounded.
    pub fn overlapping_files<'v>(
        &'v self,
        level: Level,
        lo: Option<&'v [u8]>,
        hi: Option<&'v [u8]>,
    ) -> impl Iterator<Item = &'v Arc<FileMeta>> {
        let files = self.level(level);
        let range = if level == Level::L0 {
            0..files.len()
        } else {
            let edge = |user: &[u8]| InternalKey::new(user, Seq::MAX, ValueType::SEEK);
            let (lo, hi) = (lo.map(edge), hi.map(edge));
            files.overlapping(
                &self.order,
                lo.as_ref().map(InternalKey::as_bytes),
                hi.as_ref().map(InternalKey::as_bytes),
            )
        };
        files.files()[range]
            .iter()
            .filter(move |f| f.overlaps(&self.order, lo, hi))
    }
    /// Returns whether any table of a level meets the user keys `[lo, hi]`.
    pub fn overlaps_level(&self, level: Level, lo: Option<&[u8]>, hi: Option<&[u8]>) -> bool {
        self.overlapping_files(level, lo, hi).next().is_some()
    }
}

/// The walk of a point lookup through the tree: see [`Version::candidates`].
#[derive(Clone)]
pub struct Candidates<'v> {
    version: &'v Version,
    target: &'v [u8],
    level: usize,
    next: usize,
    /// True if `next` and `hint` were set for this level already.
    sought: bool,
    hint: Option<u64>,
}

impl<'v> Iterator for Candidates<'v> {
    type Item = (Level, &'v Arc<FileMeta>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (order, user) = (&self.version.order, user_key(self.target));
        while let Some(files) = self.version.levels.get(self.level) {
            let level = Level(self.level as u8);
            if !self.sought {
                self.next = match self.level {
                    0 => 0,
                    _ => files.find(order, self.target),
                };
                self.hint = files.hint(user);
                self.sought = true;
            }
            while self.next < files.len() {
                let index = self.next;
                self.next += 1;
                if !files.begins_at_or_before(order, index, user, self.hint) {
                    if self.level == 0 {
                        continue;
                    }
                    break;
                }
                match files.against_end(order, index, user, self.hint) {
                    std::cmp::Ordering::Greater => continue,
                    // Older versions of the key may open the next file of a sorted level.
                    std::cmp::Ordering::Less if self.level > 0 => self.next = files.len(),
                    _ => {}
                }
                return Some((level, &files.files[index]));
            }
            self.level += 1;
            self.sought = false;
        }
        None
    }
}
