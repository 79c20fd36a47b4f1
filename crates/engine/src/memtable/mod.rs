//! The memtable: entries that no table has yet.
//!
//! Points live in a concurrent ordered index, range tombstones in a list of their own that readers
//! see in fragmented form. Everything is inserted before its sequence number is published, so a
//! reader at a published sequence finds all of it. Writers insert concurrently; readers never wait.

mod cursor;
mod deleted_ranges;
pub(crate) mod held_logs;
mod order;

pub(crate) use cursor::MemCursor;

use crate::observe::FlushReason;
use crate::options::FamilyOptions;
use cursor::Points;
use deleted_ranges::DeletedRanges;
use esker_format::key::{append_internal, pack};
use esker_format::{Cursor, FileNo, KeyOrder, ParsedKey, RawTombstone, Seq, ValueType};
use esker_lsm::tombstone::{Fragment, FragmentedTombstones};
use esker_lsm::visible::{FoundRange, KnownRanges};
use esker_memindex::{ArenaOptions, HugePageCall};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use esker_sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use esker_sync::{Arc, ArcSwapOption, Mutex, OnceLock, Rank};
use held_logs::FamilyLogs;

/// The sequence of a memtable that holds nothing yet.
const NO_SEQ: u64 = u64::MAX;

/// One memtable.
#[derive(Debug)]
pub(crate) struct MemTable {
    id: u64,
    order: KeyOrder,
    /// The type under which a deletion is stored.
    deletion: ValueType,
    points: Points,
    tombstones: Mutex<Vec<RawTombstone>>,
    tombstone_count: AtomicUsize,
    fragmented: ArcSwapOption<TombstoneView>,
    deleted_ranges: Arc<DeletedRanges>,
    /// Bytes of entries, as [`MemTable::data_bytes`] counts them, at which it is full.
    limit: usize,
    range_deletions_max: usize,
    tombstone_bytes: AtomicUsize,
    /// The log that the oldest data in it is in; of an empty one some older log.
    log_number: AtomicU64,
    /// Enters it into the index of logs at its first write.
    log_hold: Arc<FamilyLogs>,
    first_seq: AtomicU64,
    /// Every later write of the family, up to the memtable's switch, is in it; `NO_SEQ` when that
    /// is not known.
    begins_after: AtomicU64,
    deletions: AtomicU64,
    /// Why it takes no more writes, once that is so.
    sealed_for: OnceLock<FlushReason>,
}

/// The tombstones as readers use them, and how many there were when that was made.
#[derive(Debug)]
struct TombstoneView {
    count: usize,
    tombstones: Arc<FragmentedTombstones>,
}

/// Bytes by which RocksDB's skip list takes more than the arena for `entries`: links of 32/3 bytes
/// on average and pieces aligned to 16 instead of 8 bytes, but lengths of 2 instead of 8 bytes.
fn skip_list_extra(entries: usize) -> usize {
    entries * 26 / 3
}

/// Bytes of entries at which RocksDB switches a memtable: it fills three quarters of the last arena
/// block that it takes, which may end beyond the buffer by 0.6 of a block.
fn full_at(write_buffer_size: usize, block: usize) -> usize {
    let block = block.max(4096);
    let rest = write_buffer_size % block;
    let blocks = write_buffer_size / block + usize::from(rest / 2 > block / 5);
    match blocks {
        // The buffer is smaller than half a block.
        0 => write_buffer_size,
        _ => blocks * block - block / 4,
    }
}

/// Bytes that the memtables of all databases of this process have from the allocator.
pub fn memtable_arenas() -> usize {
    esker_memindex::ARENAS.get()
}

fn is_point_deletion(kind: ValueType) -> bool {
    matches!(
        kind,
        ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp
    )
}

impl MemTable {
    /// An empty one. Its keys are expected to begin like those of `before`.
    pub(crate) fn new(
        id: u64,
        order: KeyOrder,
        options: &FamilyOptions,
        log: FileNo,
        before: Option<&MemTable>,
        log_hold: &Arc<FamilyLogs>,
    ) -> Self {
        let expected = before.map(|m| m.points.common_prefix()).unwrap_or_default();
        let memory = ArenaOptions {
            block_size: options.arena_block_size,
            huge_pages: (options.memtable_huge_page_size > 0)
                .then_some(esker_env::advise_huge_pages as HugePageCall),
        };
        MemTable {
            id,
            points: Points::new(&order, memory, &expected),
            deletion: match order.timestamp_size() {
                0 => ValueType::Deletion,
                _ => ValueType::DeletionWithTimestamp,
            },
            deleted_ranges: Arc::new(DeletedRanges::new(&order)),
            order,
            tombstones: Mutex::new(Rank::LEAF, Vec::new()),
            tombstone_count: AtomicUsize::new(0),
            fragmented: ArcSwapOption::empty(),
            limit: full_at(options.write_buffer_size, options.arena_block_size),
            range_deletions_max: options.memtable_max_range_deletions as usize,
            tombstone_bytes: AtomicUsize::new(0),
            log_number: AtomicU64::new(log.0),
            log_hold: Arc::clone(log_hold),
            first_seq: AtomicU64::new(NO_SEQ),
            begins_after: AtomicU64::new(NO_SEQ),
            deletions: AtomicU64::new(0),
            sealed_for: OnceLock::new(),
        }
    }

    /// Rises with every memtable of the family.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Adds a point entry. `Corruption` when the same sequence was used for the key before.
    #[inline]
    pub(crate) fn add(&self, seq: Seq, kind: ValueType, key: &[u8], value: &[u8]) -> Result<()> {
        if !self.points.add(key, pack(seq, kind), value) {
            return Err(Error::corruption(format!(
                "sequence {seq} was used twice for one key"
            )));
        }
        self.note(seq);
        if is_point_deletion(kind) {
            self.deletions.fetch_add(1, Ordering::Relaxed);
        } else {
            self.deleted_ranges.note_write(key);
        }
        Ok(())
    }

    /// Adds a deletion of `key`.
    #[inline]
    pub(crate) fn add_deletion(&self, seq: Seq, key: &[u8]) -> Result<()> {
        self.add(seq, self.deletion, key, b"")
    }

    /// Adds a range tombstone over `[begin, end)`; an empty range does nothing.
    pub(crate) fn add_range_tombstone(&self, seq: Seq, begin: &[u8], end: &[u8]) -> Result<()> {
        match self.order.compare_without_timestamp(begin, end) {
            std::cmp::Ordering::Equal => return Ok(()),
            std::cmp::Ordering::Greater => {
                return Err(Error::invalid_argument(
                    "a range deletion ends before it begins",
                ));
            }
            std::cmp::Ordering::Less => {}
        }
        self.push_range_tombstone(&mut self.tombstones.lock(), seq, begin, end);
        self.note(seq);
        Ok(())
    }

    fn push_range_tombstone(
        &self,
        list: &mut Vec<RawTombstone>,
        seq: Seq,
        begin: &[u8],
        end: &[u8],
    ) {
        list.push(RawTombstone {
            start: begin.to_vec(),
            end: end.to_vec(),
            seq,
        });
        self.tombstone_count.store(list.len(), Ordering::Release);
        self.tombstone_bytes
            .fetch_add(begin.len() + end.len() + 64, Ordering::Relaxed);
        self.deletions.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds a range tombstone over keys that are all deleted as of `seq`: it is in no log, since
    /// nothing is lost without it. False where `seq` does not lie among the writes of this memtable
    /// (an older one may hold later entries of these keys then), where it takes no more writes,
    /// where `may` says no, and where one tombstone covers the range already.
    pub(crate) fn convert(
        &self,
        seq: Seq,
        begin: &[u8],
        end: &[u8],
        may: impl FnOnce() -> bool,
    ) -> Result<bool> {
        let is_among = self.begins_after().is_some_and(|before| before < seq)
            && self.first_seq().is_some_and(|first| first <= seq);
        if !(is_among || seeded(Bug::ConvertedIntoLater)) || self.is_empty() {
            return Ok(false);
        }
        let covers = |found: Fragment<'_>| {
            self.order.compare_without_timestamp(end, found.end).is_le()
                && found.deletions().any(|(own, _)| own <= seq)
        };
        let covering = self.tombstones()?;
        if covering.is_some_and(|t| t.covering(begin).is_some_and(covers)) {
            return Ok(false);
        }
        let mut list = self.tombstones.lock();
        let may = self.sealed_for.get().is_none() && may();
        if may {
            self.push_range_tombstone(&mut list, seq, begin, end);
        }
        Ok(may)
    }

    /// The ranges in which readers saw nothing.
    pub(crate) fn deleted_ranges(&self) -> Arc<dyn KnownRanges> {
        Arc::<DeletedRanges>::clone(&self.deleted_ranges)
    }

    /// Keeps a range in which a reader saw nothing. Not where its place does not lie among the
    /// writes of this memtable: entries that came later may be in another one then.
    pub(crate) fn keep_deleted(&self, found: &FoundRange) {
        let seq = found.place.snapshot;
        if self.begins_after().is_some_and(|before| before <= seq) {
            let is_clean = |begin: &[u8], end: &[u8]| !self.has_values_after(seq, begin, end);
            self.deleted_ranges.keep(found, is_clean);
        }
    }

    /// Takes over the ranges of the memtable that took writes before. No write is in flight.
    pub(crate) fn take_deleted_ranges(&self, before: &MemTable) {
        self.deleted_ranges.take_over(&before.deleted_ranges);
    }

    /// Returns whether it has an entry of `[begin, end)` after `seq` that is no deletion. Sees all
    /// that were added before a full fence of the caller.
    fn has_values_after(&self, seq: Seq, begin: &[u8], end: &[u8]) -> bool {
        if self.points.len() == 0 {
            return false;
        }
        fence(Ordering::Acquire);
        let mut target = Vec::with_capacity(begin.len() + 8);
        append_internal(&mut target, begin, Seq::MAX, ValueType::SEEK);
        let mut cursor = self.points.cursor();
        cursor.seek(&target);
        while cursor.valid() {
            let Ok(key) = ParsedKey::parse(cursor.key()) else {
                return true;
            };
            if self.order.compare(key.user, end).is_ge() {
                return false;
            }
            if key.seq > seq && !is_point_deletion(key.kind) {
                return true;
            }
            cursor.next();
        }
        false
    }

    /// Returns once no thread is about to add a tombstone by [`MemTable::convert`] for which it
    /// asked before.
    pub(crate) fn wait_for_conversion(&self) {
        drop(self.tombstones.lock());
    }

    #[inline]
    fn note(&self, seq: Seq) {
        let first = self.first_seq.load(Ordering::Relaxed);
        if first > seq.0 {
            // A thread that finds data in it finds the log of the data, too.
            if first == NO_SEQ {
                self.log_hold.begin(self);
            }
            self.first_seq.fetch_min(seq.0, Ordering::Release);
        }
    }

    /// Returns whether it holds nothing. Otherwise [`MemTable::log_number`] is the log of its
    /// oldest data.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first_seq.load(Ordering::Acquire) == NO_SEQ
    }

    /// Tells whether it should be switched: its entries reached the limit.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        // Entries count for no more than the memory taken, which one load tells.
        self.memory_usage() >= self.limit && self.data_bytes() >= self.limit as u64
            || (self.range_deletions_max > 0
                && self.tombstone_count.load(Ordering::Relaxed) >= self.range_deletions_max)
    }

    /// Returns whether it is full because of its range deletions.
    pub(crate) fn has_too_many_range_deletions(&self) -> bool {
        self.range_deletions_max > 0
            && self.tombstone_count.load(Ordering::Relaxed) >= self.range_deletions_max
    }

    /// Takes note of why it is switched away from.
    pub(crate) fn seal(&self, reason: FlushReason) {
        // Nothing is converted from then on.
        let _list = self.tombstones.lock();
        let _first = self.sealed_for.set(reason);
    }

    /// Why it was switched away from; `None` during recovery.
    pub(crate) fn sealed_for(&self) -> Option<FlushReason> {
        self.sealed_for.get().copied()
    }

    /// Bytes taken from the system.
    #[inline]
    pub(crate) fn memory_usage(&self) -> usize {
        self.points.memory_usage() + self.tombstone_bytes.load(Ordering::Relaxed)
    }

    /// The oldest log that holds data of it.
    pub(crate) fn log_number(&self) -> FileNo {
        FileNo(self.log_number.load(Ordering::Acquire))
    }

    /// Takes note of the log that its data begins in. For [`FamilyLogs`].
    pub(crate) fn set_log_number(&self, log: FileNo) {
        self.log_number.store(log.0, Ordering::Release);
    }

    /// Points inside.
    pub(crate) fn points(&self) -> u64 {
        self.points.len() as u64
    }

    /// Points and range tombstones inside.
    pub(crate) fn entries(&self) -> u64 {
        (self.points.len() + self.tombstone_count.load(Ordering::Relaxed)) as u64
    }

    /// Deletions of all kinds inside.
    pub(crate) fn deletions(&self) -> u64 {
        self.deletions.load(Ordering::Relaxed)
    }

    /// Bytes that the entries would take in RocksDB's skip list, within a few percent:
    /// `write_buffer_size` means as many entries as there.
    pub(crate) fn data_bytes(&self) -> u64 {
        let points = self.points.entry_bytes() + skip_list_extra(self.points.len());
        (points + self.tombstone_bytes.load(Ordering::Relaxed)) as u64
    }

    /// The oldest sequence inside.
    pub(crate) fn first_seq(&self) -> Option<Seq> {
        let s = self.first_seq.load(Ordering::Relaxed);
        (s != NO_SEQ).then_some(Seq(s))
    }

    /// Takes note that every write after `last` goes here.
    pub(crate) fn begin_after(&self, last: Seq) {
        self.begins_after.store(last.0, Ordering::Release);
    }

    /// Writes went past it: it no longer knows where it begins.
    pub(crate) fn forget_beginning(&self) {
        self.begins_after.store(NO_SEQ, Ordering::Release);
    }

    /// The sequence after which every write of the family, up to the memtable's switch, is in it.
    pub(crate) fn begins_after(&self) -> Option<Seq> {
        let s = self.begins_after.load(Ordering::Acquire);
        (s != NO_SEQ).then_some(Seq(s))
    }

    /// A cursor over the points that keeps the index alive.
    pub(crate) fn cursor(&self) -> MemCursor {
        self.points.cursor()
    }

    /// Shows every entry of the user key of `internal` at or below its sequence, newest first,
    /// until `visit` says no.
    #[inline]
    pub(crate) fn get<'a>(
        &'a self,
        internal: &[u8],
        visit: impl FnMut(&'a [u8], &'a [u8]) -> bool,
    ) {
        self.points.get(&self.order, internal, visit);
    }

    /// The range tombstones as they were written.
    pub(crate) fn raw_tombstones(&self) -> Vec<RawTombstone> {
        self.tombstones.lock().clone()
    }

    /// Returns whether some range was deleted.
    pub(crate) fn has_tombstones(&self) -> bool {
        self.tombstone_count.load(Ordering::Acquire) > 0
    }

    /// The range tombstones in fragmented form; `None` when there are none.
    pub(crate) fn tombstones(&self) -> Result<Option<Arc<FragmentedTombstones>>> {
        let count = self.tombstone_count.load(Ordering::Acquire);
        if count == 0 {
            return Ok(None);
        }
        if let Some(f) = &*self.fragmented.load()
            && f.count >= count
        {
            return Ok(Some(Arc::clone(&f.tombstones)));
        }
        self.fragment().map(Some)
    }

    #[cold]
    fn fragment(&self) -> Result<Arc<FragmentedTombstones>> {
        let raw = self.tombstones.lock().clone();
        let tombstones = FragmentedTombstones::new(&raw, &self.order)?;
        self.fragmented.store(Some(Arc::new(TombstoneView {
            count: raw.len(),
            tombstones: Arc::clone(&tombstones),
        })));
        Ok(tombstones)
    }

    /// The newest tombstone at or below `snapshot`, and the timestamp of `user`, that covers
    /// `user`; zero for none.
    #[inline]
    pub(crate) fn covering_seq(&self, user: &[u8], snapshot: Seq) -> Result<Seq> {
        if self.tombstone_count.load(Ordering::Acquire) == 0 {
            return Ok(Seq::ZERO);
        }
        Ok(self
            .tombstones()?
            .map_or(Seq::ZERO, |t| t.max_covering_seq(user, snapshot)))
    }

    /// About how many entries lie in `[begin, end)` (internal keys), and their bytes.
    pub(crate) fn approximate_range(&self, begin: &[u8], end: &[u8]) -> (u64, u64) {
        let n = self
            .points
            .rank(end)
            .saturating_sub(self.points.rank(begin)) as u64;
        let mean = self.data_bytes().checked_div(self.entries()).unwrap_or(0);
        (n, n * mean)
    }
}
