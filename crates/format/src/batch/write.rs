//! Building a batch.
//!
//! `rep` is always a well-formed batch: a refused record leaves no bytes behind. A batch is a plain
//! value; the writer stamps the sequence with [`WriteBatch::set_seq`] when the batch is ordered.

use super::memory::CountedBatch;
use super::records::{BatchReader, PrepareKind, Record, Records};
use super::{HEADER_LEN, count_of, seq_of, tag};
use crate::blob::BlobIndex;
use crate::coding::{put_lpstr, put_varint32};
use crate::ids::{FamilyId, Seq};
use crate::wide_column::{self, Column};
use esker_status::{Error, ErrorKind, Result, Subcode};
use std::fmt;

/// A place in a batch that can be returned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavePoint {
    len: usize,
    count: u32,
    flags: u16,
}

impl SavePoint {
    /// Bytes of the batch at the save point, the header included.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Returns whether the save point stands before the first record.
    pub fn is_empty(&self) -> bool {
        self.len <= HEADER_LEN
    }
    /// Counted records at the save point.
    pub fn count(&self) -> u32 {
        self.count
    }
}

pub(super) mod flag {
    pub(in crate::batch) const PUT: u16 = 1;
    pub(in crate::batch) const DELETE: u16 = 1 << 1;
    pub(in crate::batch) const SINGLE_DELETE: u16 = 1 << 2;
    pub(in crate::batch) const DELETE_RANGE: u16 = 1 << 3;
    pub(in crate::batch) const MERGE: u16 = 1 << 4;
    pub(in crate::batch) const BLOB_INDEX: u16 = 1 << 5;
    pub(in crate::batch) const ENTITY: u16 = 1 << 6;
    pub(in crate::batch) const TIMED_PUT: u16 = 1 << 7;
    pub(in crate::batch) const BEGIN_PREPARE: u16 = 1 << 8;
    pub(in crate::batch) const END_PREPARE: u16 = 1 << 9;
    pub(in crate::batch) const COMMIT: u16 = 1 << 10;
    pub(in crate::batch) const ROLLBACK: u16 = 1 << 11;
}

/// A user key may have this many bytes at most: the internal key's length must fit 32 bits.
const MAX_KEY_LEN: usize = u32::MAX as usize - 8;
const MAX_VALUE_LEN: usize = u32::MAX as usize;

/// An ordered set of changes that becomes visible at once.
///
/// ```
/// # fn main() -> esker_status::Result<()> {
/// # use esker_format::batch::WriteBatch;
/// let mut batch = WriteBatch::new();
/// batch.put("from", "90")?;
/// batch.put("to", "110")?;
/// batch.delete("pending")?;
/// assert_eq!(batch.count(), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct WriteBatch {
    pub(super) rep: Vec<u8>,
    counted: CountedBatch,
    flags: u16,
    max_bytes: usize,
    save_points: Vec<SavePoint>,
    wal_end: Option<SavePoint>,
    /// Where the records begin whose keys were given with their timestamps, or with room for them.
    pub(super) timestamped: Vec<usize>,
    pub(super) timestamps: Timestamps,
}

impl fmt::Debug for WriteBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteBatch")
            .field("records", &self.count())
            .field("bytes", &self.rep.len())
            .finish_non_exhaustive()
    }
}

/// State of the timestamps of a batch's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timestamps {
    /// Those noted in `timestamped` are there.
    Noted,
    /// Some of those noted are only room, which waits for [`WriteBatch::update_timestamps`].
    Waiting,
    /// Every key is as it is to be stored: the batch was taken over as bytes.
    Whole,
}

impl Default for WriteBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// An empty batch with room for `bytes` of records.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut rep = Vec::with_capacity(HEADER_LEN.saturating_add(bytes));
        rep.extend_from_slice(&[0; HEADER_LEN]);
        WriteBatch {
            rep,
            counted: CountedBatch::default(),
            flags: 0,
            max_bytes: 0,
            save_points: Vec::new(),
            wal_end: None,
            timestamped: Vec::new(),
            timestamps: Timestamps::Noted,
        }
    }

    /// Takes over encoded bytes after parsing every record, and values that the engine would have
    /// to understand: a blob index that is none would be found when it cannot be refused any more.
    /// In families with timestamps keys are as they are to be stored.
    pub fn from_bytes(rep: Vec<u8>) -> Result<Self> {
        let mut flags = 0;
        for record in BatchReader::parse(&rep)?.records() {
            let record = record?;
            check_decodes(&record)?;
            flags |= flag_of(&record);
        }
        Ok(WriteBatch {
            rep,
            counted: CountedBatch::default(),
            flags,
            max_bytes: 0,
            save_points: Vec::new(),
            wal_end: None,
            timestamped: Vec::new(),
            timestamps: Timestamps::Whole,
        })
    }

    /// Refuses records that would make the batch longer than `max_bytes`; 0 for no limit.
    pub fn set_max_bytes(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
    }

    /// Sets `key` to `value` in the default family.
    #[inline]
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_cf(FamilyId::DEFAULT, key, value)
    }

    /// Sets `key` to `value`.
    #[inline]
    pub fn put_cf(
        &mut self,
        family: impl Into<FamilyId>,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (family, key, value) = (family.into(), key.as_ref(), value.as_ref());
        self.two(tag::PUT, tag::FAMILY_PUT, flag::PUT, family, key, value)
    }

    /// Removes `key` from the default family.
    #[inline]
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_cf(FamilyId::DEFAULT, key)
    }

    /// Removes `key`.
    #[inline]
    pub fn delete_cf(&mut self, family: impl Into<FamilyId>, key: impl AsRef<[u8]>) -> Result<()> {
        let (family, key) = (family.into(), key.as_ref());
        self.one(tag::DELETE, tag::FAMILY_DELETE, flag::DELETE, family, key)
    }

    /// Removes a key of the default family that was put exactly once.
    pub fn single_delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.single_delete_cf(FamilyId::DEFAULT, key)
    }

    /// Removes a key that was put exactly once.
    pub fn single_delete_cf(
        &mut self,
        family: impl Into<FamilyId>,
        key: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.one(
            tag::SINGLE_DELETE,
            tag::FAMILY_SINGLE_DELETE,
            flag::SINGLE_DELETE,
            family.into(),
            key.as_ref(),
        )
    }

    /// Adds a merge operand in the default family.
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_cf(FamilyId::DEFAULT, key, operand)
    }

    /// Adds a merge operand.
    pub fn merge_cf(
        &mut self,
        family: impl Into<FamilyId>,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.two(
            tag::MERGE,
            tag::FAMILY_MERGE,
            flag::MERGE,
            family.into(),
            key.as_ref(),
            operand.as_ref(),
        )
    }

    /// Removes the keys of `[begin, end)` from the default family.
    pub fn delete_range(&mut self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.delete_range_cf(FamilyId::DEFAULT, begin, end)
    }

    /// Removes the keys of `[begin, end)`.
    pub fn delete_range_cf(
        &mut self,
        family: impl Into<FamilyId>,
        begin: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (family, begin, end) = (family.into(), begin.as_ref(), end.as_ref());
        let (plain, with_family) = (tag::DELETE_RANGE, tag::FAMILY_DELETE_RANGE);
        self.two(plain, with_family, flag::DELETE_RANGE, family, begin, end)
    }

    /// Sets `key` to an entity with these columns, in any order; names must differ.
    pub fn put_entity_cf(
        &mut self,
        family: FamilyId,
        key: &[u8],
        columns: &[Column<'_>],
    ) -> Result<()> {
        let mut entity = Vec::new();
        wide_column::encode(columns, &mut entity)?;
        self.put_encoded_entity_cf(family, key, &entity)
    }

    /// Sets `key` to an entity that is already encoded.
    pub fn put_encoded_entity_cf(
        &mut self,
        family: FamilyId,
        key: &[u8],
        entity: &[u8],
    ) -> Result<()> {
        self.two(
            tag::PUT_ENTITY,
            tag::FAMILY_PUT_ENTITY,
            flag::ENTITY,
            family,
            key,
            entity,
        )
    }

    /// Sets `key` to `value` as written at `unix_seconds`. RocksDB 7.8 cannot read such a log.
    pub fn timed_put_cf(
        &mut self,
        family: FamilyId,
        key: &[u8],
        value: &[u8],
        unix_seconds: u64,
    ) -> Result<()> {
        let packed = [value, &unix_seconds.to_le_bytes()].concat();
        self.two(
            tag::TIMED_PUT,
            tag::FAMILY_TIMED_PUT,
            flag::TIMED_PUT,
            family,
            key,
            &packed,
        )
    }

    /// Sets `key` to a value that stands in a blob file.
    pub fn put_blob_index_cf(&mut self, family: FamilyId, key: &[u8], index: &[u8]) -> Result<()> {
        self.two(
            tag::BLOB_INDEX,
            tag::FAMILY_BLOB_INDEX,
            flag::BLOB_INDEX,
            family,
            key,
            index,
        )
    }

    /// Like [`WriteBatch::put_cf`] with key and value given in pieces.
    pub fn put_parts(&mut self, family: FamilyId, key: &[&[u8]], value: &[&[u8]]) -> Result<()> {
        self.parts(
            tag::PUT,
            tag::FAMILY_PUT,
            flag::PUT,
            family,
            key,
            Some(value),
        )
    }

    /// Like [`WriteBatch::merge_cf`] with key and operand given in pieces.
    pub fn merge_parts(&mut self, family: FamilyId, key: &[&[u8]], value: &[&[u8]]) -> Result<()> {
        self.parts(
            tag::MERGE,
            tag::FAMILY_MERGE,
            flag::MERGE,
            family,
            key,
            Some(value),
        )
    }

    /// Like [`WriteBatch::delete_cf`] with the key given in pieces.
    pub fn delete_parts(&mut self, family: FamilyId, key: &[&[u8]]) -> Result<()> {
        self.parts(
            tag::DELETE,
            tag::FAMILY_DELETE,
            flag::DELETE,
            family,
            key,
            None,
        )
    }

    /// Like [`WriteBatch::single_delete_cf`] with the key given in pieces.
    pub fn single_delete_parts(&mut self, family: FamilyId, key: &[&[u8]]) -> Result<()> {
        let (plain, with_family) = (tag::SINGLE_DELETE, tag::FAMILY_SINGLE_DELETE);
        self.parts(plain, with_family, flag::SINGLE_DELETE, family, key, None)
    }

    /// Like [`WriteBatch::delete_range_cf`] with the keys given in pieces.
    pub fn delete_range_parts(
        &mut self,
        family: FamilyId,
        begin: &[&[u8]],
        end: &[&[u8]],
    ) -> Result<()> {
        let (plain, with_family) = (tag::DELETE_RANGE, tag::FAMILY_DELETE_RANGE);
        self.parts(
            plain,
            with_family,
            flag::DELETE_RANGE,
            family,
            begin,
            Some(end),
        )
    }

    /// Adds bytes that only readers of the log see.
    pub fn log_data(&mut self, blob: &[u8]) -> Result<()> {
        check_value(blob.len())?;
        let before = self.rep.len();
        self.rep.push(tag::LOG_DATA);
        put_lpstr(&mut self.rep, blob);
        self.admit(before)
    }

    /// Adds a record without effect, the place that [`WriteBatch::mark_end_prepare`] turns into a
    /// begin.
    pub fn mark_noop(&mut self) -> Result<()> {
        let before = self.rep.len();
        self.rep.push(tag::NOOP);
        self.admit(before)
    }

    /// Closes a prepared section: the batch must start with [`WriteBatch::mark_noop`].
    pub fn mark_end_prepare(&mut self, kind: PrepareKind, xid: &[u8]) -> Result<()> {
        if self.rep.get(HEADER_LEN) != Some(&tag::NOOP) {
            return Err(Error::invalid_argument(
                "a prepared batch must begin with a no-op record",
            ));
        }
        check_value(xid.len())?;
        let before = self.rep.len();
        self.rep.push(tag::END_PREPARE);
        put_lpstr(&mut self.rep, xid);
        self.admit(before)?;
        self.rep[HEADER_LEN] = match kind {
            PrepareKind::Committed => tag::BEGIN_PREPARE,
            PrepareKind::Persisted => tag::BEGIN_PERSISTED_PREPARE,
            PrepareKind::Unprepared => tag::BEGIN_UNPREPARE,
        };
        self.flags |= flag::BEGIN_PREPARE | flag::END_PREPARE;
        Ok(())
    }

    /// Commits a prepared transaction.
    pub fn mark_commit(&mut self, xid: &[u8]) -> Result<()> {
        self.mark(tag::COMMIT, flag::COMMIT, &[xid])
    }

    /// Commits a prepared transaction at a user-defined timestamp.
    pub fn mark_commit_with_timestamp(&mut self, timestamp: &[u8], xid: &[u8]) -> Result<()> {
        self.mark(tag::COMMIT_WITH_TIMESTAMP, flag::COMMIT, &[timestamp, xid])
    }

    /// Undoes a prepared transaction.
    pub fn mark_rollback(&mut self, xid: &[u8]) -> Result<()> {
        self.mark(tag::ROLLBACK, flag::ROLLBACK, &[xid])
    }

    /// Adds the records of `other` to the end. With `wal_only`, those before its log mark.
    pub fn append(&mut self, other: &WriteBatch, wal_only: bool) -> Result<()> {
        let end = if wal_only {
            other.wal_mark()
        } else {
            other.here()
        };
        let before = self.rep.len();
        let count = self.count().checked_add(end.count).ok_or_else(too_many)?;
        self.rep.extend_from_slice(&other.rep[HEADER_LEN..end.len]);
        self.admit(before)?;
        self.set_count(count);
        self.flags |= end.flags;
        self.append_timestamps(other, before, end.len);
        Ok(())
    }

    /// Empties the batch and forgets its save points; memory is kept.
    #[inline]
    pub fn clear(&mut self) {
        self.rep.clear();
        self.rep.extend_from_slice(&[0; HEADER_LEN]);
        self.flags = 0;
        self.save_points.clear();
        self.wal_end = None;
        self.timestamped.clear();
        self.timestamps = Timestamps::Noted;
    }

    /// Remembers this place.
    pub fn set_save_point(&mut self) {
        let here = self.here();
        self.save_points.push(here);
    }

    /// Returns to the last save point and forgets it; `NotFound` without one.
    ///
    /// ```
    /// # fn main() -> esker_status::Result<()> {
    /// # use esker_format::batch::WriteBatch;
    /// let mut batch = WriteBatch::new();
    /// batch.put("a", "1")?;
    /// batch.set_save_point();
    /// batch.put("b", "2")?;
    /// batch.rollback_to_save_point()?;
    /// assert_eq!(batch.count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn rollback_to_save_point(&mut self) -> Result<()> {
        let to = self.save_points.pop().ok_or_else(no_save_point)?;
        self.rep.truncate(to.len);
        self.set_count(to.count);
        self.flags = to.flags;
        if self.wal_end.is_some_and(|end| end.len > to.len) {
            self.wal_end = None;
        }
        self.forget_timestamps_from(to.len);
        Ok(())
    }

    /// Forgets the last save point; `NotFound` without one.
    pub fn pop_save_point(&mut self) -> Result<()> {
        self.save_points.pop().map(drop).ok_or_else(no_save_point)
    }

    /// Marks the end of what the log gets: records added from here reach the memtable only.
    pub fn mark_wal_termination_point(&mut self) {
        self.wal_end = Some(self.here());
    }

    /// Where the part for the log ends: the mark, or the end of the batch.
    pub fn wal_mark(&self) -> SavePoint {
        self.wal_end.unwrap_or_else(|| self.here())
    }

    /// The records that the log gets, without the header.
    #[inline]
    pub fn wal_body(&self) -> &[u8] {
        match self.wal_end {
            Some(end) => &self.rep[HEADER_LEN..end.len],
            None => self.body(),
        }
    }

    /// The sequence in the header.
    #[inline]
    pub fn seq(&self) -> Seq {
        seq_of(&self.rep)
    }

    /// Writes the sequence of the first counted record into the header.
    #[inline]
    pub fn set_seq(&mut self, seq: Seq) {
        self.rep[..8].copy_from_slice(&seq.0.to_le_bytes());
    }

    /// Counted records.
    #[inline]
    pub fn count(&self) -> u32 {
        count_of(&self.rep)
    }

    /// Returns whether there are no counted records.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// All bytes, the header included.
    #[inline]
    pub fn data(&self) -> &[u8] {
        &self.rep
    }

    /// The bytes after the header.
    #[inline]
    pub fn body(&self) -> &[u8] {
        &self.rep[HEADER_LEN..]
    }

    /// Length of [`WriteBatch::data`].
    #[inline]
    pub fn data_size(&self) -> usize {
        self.rep.len()
    }

    /// Gives the bytes away.
    pub fn into_bytes(self) -> Vec<u8> {
        self.rep
    }

    /// The records.
    pub fn records(&self) -> Records<'_> {
        self.reader().records()
    }

    /// A reader of the bytes.
    pub fn reader(&self) -> BatchReader<'_> {
        BatchReader::parse(&self.rep).expect("a batch always has its header")
    }

    /// Returns whether a put is in it.
    pub fn has_put(&self) -> bool {
        self.flags & flag::PUT != 0
    }
    /// Returns whether a delete is in it.
    pub fn has_delete(&self) -> bool {
        self.flags & flag::DELETE != 0
    }
    /// Returns whether a single delete is in it.
    pub fn has_single_delete(&self) -> bool {
        self.flags & flag::SINGLE_DELETE != 0
    }
    /// Returns whether a range delete is in it.
    pub fn has_delete_range(&self) -> bool {
        self.flags & flag::DELETE_RANGE != 0
    }
    /// Returns whether a merge operand is in it.
    pub fn has_merge(&self) -> bool {
        self.flags & flag::MERGE != 0
    }
    /// Returns whether an entity is in it.
    pub fn has_put_entity(&self) -> bool {
        self.flags & flag::ENTITY != 0
    }
    /// Returns whether a timed put is in it.
    pub fn has_timed_put(&self) -> bool {
        self.flags & flag::TIMED_PUT != 0
    }
    /// Returns whether a blob index is in it.
    pub fn has_blob_index(&self) -> bool {
        self.flags & flag::BLOB_INDEX != 0
    }
    /// Returns whether a prepared section begins in it.
    pub fn has_begin_prepare(&self) -> bool {
        self.flags & flag::BEGIN_PREPARE != 0
    }
    /// Returns whether a prepared section ends in it.
    pub fn has_end_prepare(&self) -> bool {
        self.flags & flag::END_PREPARE != 0
    }
    /// Returns whether a commit is in it.
    pub fn has_commit(&self) -> bool {
        self.flags & flag::COMMIT != 0
    }
    /// Returns whether a rollback is in it.
    pub fn has_rollback(&self) -> bool {
        self.flags & flag::ROLLBACK != 0
    }

    fn here(&self) -> SavePoint {
        SavePoint {
            len: self.rep.len(),
            count: self.count(),
            flags: self.flags,
        }
    }

    #[inline]
    fn set_count(&mut self, count: u32) {
        self.rep[8..HEADER_LEN].copy_from_slice(&count.to_le_bytes());
    }

    #[inline(always)]
    fn open(&mut self, plain: u8, with_family: u8, family: FamilyId, bytes: usize) {
        // Tag, family and two lengths take at most 16 bytes: one growth check for the record.
        self.rep.reserve(bytes + 16);
        if family == FamilyId::DEFAULT {
            self.rep.push(plain);
        } else {
            self.rep.push(with_family);
            put_varint32(&mut self.rep, family.0);
        }
    }

    #[inline]
    fn two(
        &mut self,
        plain: u8,
        with_family: u8,
        flag: u16,
        family: FamilyId,
        a: &[u8],
        b: &[u8],
    ) -> Result<()> {
        check_key(a.len())?;
        check_value(b.len())?;
        let before = self.rep.len();
        self.open(plain, with_family, family, a.len() + b.len());
        put_lpstr(&mut self.rep, a);
        put_lpstr(&mut self.rep, b);
        self.count_in(before, flag)
    }

    #[inline]
    fn one(
        &mut self,
        plain: u8,
        with_family: u8,
        flag: u16,
        family: FamilyId,
        key: &[u8],
    ) -> Result<()> {
        check_key(key.len())?;
        let before = self.rep.len();
        self.open(plain, with_family, family, key.len());
        put_lpstr(&mut self.rep, key);
        self.count_in(before, flag)
    }

    pub(super) fn parts(
        &mut self,
        plain: u8,
        with_family: u8,
        flag: u16,
        family: FamilyId,
        a: &[&[u8]],
        b: Option<&[&[u8]]>,
    ) -> Result<()> {
        let sum = |parts: &[&[u8]]| parts.iter().fold(0usize, |n, p| n.saturating_add(p.len()));
        check_key(sum(a))?;
        check_value(b.map_or(0, sum))?;
        let before = self.rep.len();
        self.open(plain, with_family, family, sum(a) + b.map_or(0, sum));
        for parts in std::iter::once(a).chain(b) {
            put_varint32(&mut self.rep, sum(parts) as u32);
            parts.iter().for_each(|p| self.rep.extend_from_slice(p));
        }
        self.count_in(before, flag)
    }

    fn mark(&mut self, tag: u8, flag: u16, strings: &[&[u8]]) -> Result<()> {
        let before = self.rep.len();
        for s in strings {
            check_value(s.len())?;
        }
        self.rep.push(tag);
        strings.iter().for_each(|s| put_lpstr(&mut self.rep, s));
        self.admit(before)?;
        self.flags |= flag;
        Ok(())
    }

    #[inline]
    fn count_in(&mut self, before: usize, flag: u16) -> Result<()> {
        let Some(count) = self.count().checked_add(1) else {
            self.rep.truncate(before);
            return Err(too_many());
        };
        self.admit(before)?;
        self.set_count(count);
        self.flags |= flag;
        Ok(())
    }

    /// Takes the new bytes back when they make the batch too long.
    #[inline]
    fn admit(&mut self, before: usize) -> Result<()> {
        self.counted.follow(self.rep.capacity());
        if self.max_bytes != 0 && self.rep.len() > self.max_bytes {
            self.rep.truncate(before);
            return Err(too_long(self.max_bytes));
        }
        Ok(())
    }
}

/// `Corruption` for an entity or a blob index that does not decode.
fn check_decodes(record: &Record<'_>) -> Result<()> {
    match record {
        Record::BlobIndex { index, .. } => BlobIndex::decode(index).map(drop),
        Record::PutEntity { entity, .. } => wide_column::decode(entity).map(drop),
        _ => Ok(()),
    }
}

fn flag_of(record: &Record<'_>) -> u16 {
    match record {
        Record::Put { .. } => flag::PUT,
        Record::Delete { .. } => flag::DELETE,
        Record::SingleDelete { .. } => flag::SINGLE_DELETE,
        Record::DeleteRange { .. } => flag::DELETE_RANGE,
        Record::Merge { .. } => flag::MERGE,
        Record::BlobIndex { .. } => flag::BLOB_INDEX,
        Record::PutEntity { .. } => flag::ENTITY,
        Record::TimedPut { .. } => flag::TIMED_PUT,
        Record::BeginPrepare(_) => flag::BEGIN_PREPARE,
        Record::EndPrepare { .. } => flag::END_PREPARE,
        Record::Commit { .. } | Record::CommitWithTimestamp { .. } => flag::COMMIT,
        Record::Rollback { .. } => flag::ROLLBACK,
        Record::LogData(_) | Record::Noop => 0,
    }
}

#[inline(always)]
fn check_key(len: usize) -> Result<()> {
    if len > MAX_KEY_LEN {
        Err(Error::invalid_argument("key is too large"))
    } else {
        Ok(())
    }
}

#[inline(always)]
fn check_value(len: usize) -> Result<()> {
    if len > MAX_VALUE_LEN {
        Err(Error::invalid_argument("value is too large"))
    } else {
        Ok(())
    }
}

#[cold]
fn too_many() -> Error {
    Error::invalid_argument("a batch holds at most 2^32 - 1 records")
}

#[cold]
fn too_long(max_bytes: usize) -> Error {
    Error::new(
        ErrorKind::Aborted,
        format!("the batch would exceed max_bytes = {max_bytes}"),
    )
    .with_subcode(Subcode::MemoryLimit)
}

#[cold]
fn no_save_point() -> Error {
    Error::not_found("")
}
