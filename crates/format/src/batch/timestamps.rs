//! Keys with user-defined timestamps in a batch.
//!
//! In the bytes, a timestamp is the end of the key. A batch does not know which families have
//! timestamps, so it notes which of its records were given one: the writer holds that against the
//! families, and a key that was put without its timestamp is refused instead of losing its last
//! bytes to one. Batches without timestamps note nothing.

use super::records::{Record, Records};
use super::write::{Timestamps, WriteBatch, flag};
use super::{HEADER_LEN, tag};
use crate::ids::FamilyId;
use crate::timestamp::SMALLEST;
use esker_status::{Error, Result};

/// Room for a timestamp of at most this many bytes comes without an allocation.
const ROOM: [u8; 16] = [SMALLEST; 16];

impl WriteBatch {
    /// Sets `key` to `value` as of `timestamp`.
    ///
    /// ```
    /// # fn main() -> esker_status::Result<()> {
    /// use esker_format::{FamilyId, batch::WriteBatch};
    ///
    /// let mut batch = WriteBatch::new();
    /// batch.put_with_timestamp(FamilyId::DEFAULT, b"key", &7u64.to_le_bytes(), b"value")?;
    /// assert!(batch.has_timestamps());
    /// # Ok(())
    /// # }
    /// ```
    pub fn put_with_timestamp(
        &mut self,
        family: FamilyId,
        key: &[u8],
        timestamp: &[u8],
        value: &[u8],
    ) -> Result<()> {
        self.noting(|b| b.put_parts(family, &[key, timestamp], &[value]))
    }

    /// Removes `key` as of `timestamp`; older versions stay for readers at older timestamps.
    pub fn delete_with_timestamp(
        &mut self,
        family: FamilyId,
        key: &[u8],
        timestamp: &[u8],
    ) -> Result<()> {
        self.noting(|b| b.delete_parts(family, &[key, timestamp]))
    }

    /// Removes, as of `timestamp`, a key that was put exactly once.
    pub fn single_delete_with_timestamp(
        &mut self,
        family: FamilyId,
        key: &[u8],
        timestamp: &[u8],
    ) -> Result<()> {
        self.noting(|b| b.single_delete_parts(family, &[key, timestamp]))
    }

    /// Adds a merge operand as of `timestamp`.
    pub fn merge_with_timestamp(
        &mut self,
        family: FamilyId,
        key: &[u8],
        timestamp: &[u8],
        operand: &[u8],
    ) -> Result<()> {
        self.noting(|b| b.merge_parts(family, &[key, timestamp], &[operand]))
    }

    /// Deletes the keys of `[begin, end)` as of `timestamp`.
    pub fn delete_range_with_timestamp(
        &mut self,
        family: FamilyId,
        begin: &[u8],
        end: &[u8],
        timestamp: &[u8],
    ) -> Result<()> {
        let (begin, end) = ([begin, timestamp], [end, timestamp]);
        self.noting(|b| b.delete_range_parts(family, &begin, &end))
    }

    /// Adds `record`, whose key has no timestamp yet, with room for one of `size` bytes. The batch
    /// cannot be written before [`WriteBatch::update_timestamps`].
    pub fn add_without_timestamp(&mut self, record: &Record<'_>, size: usize) -> Result<()> {
        let long;
        let room = match ROOM.get(..size) {
            Some(room) => room,
            None => {
                long = vec![SMALLEST; size];
                &long
            }
        };
        self.noting(|b| match *record {
            Record::Put { family, key, value } => b.put_parts(family, &[key, room], &[value]),
            Record::Delete { family, key } => b.delete_parts(family, &[key, room]),
            Record::SingleDelete { family, key } => b.single_delete_parts(family, &[key, room]),
            Record::Merge {
                family,
                key,
                operand,
            } => b.merge_parts(family, &[key, room], &[operand]),
            Record::DeleteRange { family, begin, end } => {
                b.delete_range_parts(family, &[begin, room], &[end, room])
            }
            Record::PutEntity {
                family,
                key,
                entity,
            } => {
                let (plain, with_family) = (tag::PUT_ENTITY, tag::FAMILY_PUT_ENTITY);
                let (key, entity) = ([key, room], [entity]);
                b.parts(
                    plain,
                    with_family,
                    flag::ENTITY,
                    family,
                    &key,
                    Some(&entity),
                )
            }
            _ => Err(Error::not_supported(
                "a record of this kind with a user-defined timestamp",
            )),
        })?;
        if size > 0 && self.timestamps == Timestamps::Noted {
            self.timestamps = Timestamps::Waiting;
        }
        Ok(())
    }

    /// Sets the timestamps of all keys in families that have them. `size_of` says how long the
    /// timestamps of a family are: 0 for a family without, `None` for one that it does not know,
    /// which is an error, as is a timestamp of another size. Every key must have been added with a
    /// timestamp, or with room for one.
    pub fn update_timestamps(
        &mut self,
        timestamp: &[u8],
        mut size_of: impl FnMut(FamilyId) -> Option<usize>,
    ) -> Result<()> {
        if timestamp.is_empty() {
            return Err(Error::invalid_argument("Timestamp is empty"));
        }
        let mut ends = Vec::new();
        let start = self.rep.as_ptr() as usize;
        for record in self.noted() {
            let (record, is_noted) = record?;
            let Some(family) = record.family() else {
                continue;
            };
            match size_of(family) {
                None => return Err(Error::not_found("")),
                Some(0) => continue,
                Some(size) if size != timestamp.len() => {
                    return Err(Error::invalid_argument("timestamp size mismatch"));
                }
                Some(_) => {}
            }
            if !is_noted && self.timestamps != Timestamps::Whole {
                return Err(without_timestamp());
            }
            let (key, end) = keys_of(&record);
            for key in std::iter::once(key).chain(end) {
                if key.len() < timestamp.len() {
                    return Err(too_short());
                }
                // The key is a part of `rep`: its place there.
                ends.push(key.as_ptr() as usize - start + key.len());
            }
        }
        for end in ends {
            self.rep[end - timestamp.len()..end].copy_from_slice(timestamp);
        }
        if self.timestamps == Timestamps::Waiting {
            self.timestamps = Timestamps::Noted;
        }
        Ok(())
    }

    /// Returns whether some key was given with its timestamp, or with room for one.
    pub fn has_timestamps(&self) -> bool {
        !self.timestamped.is_empty()
    }

    /// Returns whether keys wait for [`WriteBatch::update_timestamps`].
    pub fn awaits_timestamps(&self) -> bool {
        self.timestamps == Timestamps::Waiting
    }

    /// `InvalidArgument` unless the keys of families with timestamps have them, and no others.
    /// `missing` is the error for a key without.
    pub fn check_timestamps(
        &self,
        mut size_of: impl FnMut(FamilyId) -> usize,
        missing: impl FnOnce(FamilyId) -> Error,
    ) -> Result<()> {
        if self.awaits_timestamps() {
            return Err(Error::invalid_argument(
                "write batch must have timestamp(s) set",
            ));
        }
        for record in self.noted() {
            let (record, is_noted) = record?;
            let Some(family) = record.family() else {
                continue;
            };
            let size = size_of(family);
            let (key, end) = keys_of(&record);
            if size == 0 && is_noted {
                return Err(Error::invalid_argument("timestamp disabled"));
            }
            if size == 0 {
                continue;
            }
            if !is_noted && self.timestamps != Timestamps::Whole {
                return Err(missing(family));
            }
            if std::iter::once(key).chain(end).any(|k| k.len() < size) {
                return Err(too_short());
            }
        }
        Ok(())
    }

    /// The records, each with whether its key was given a timestamp or room for one.
    fn noted(&self) -> impl Iterator<Item = Result<(Record<'_>, bool)>> {
        let mut noted = self.timestamped.iter().copied().peekable();
        let mut records = Records::over_body(self.body());
        std::iter::from_fn(move || {
            let begin = HEADER_LEN + records.position();
            let record = records.next()?;
            Some(record.map(|r| (r, noted.next_if_eq(&begin).is_some())))
        })
    }

    /// Adds a record whose key ends in a timestamp.
    fn noting(&mut self, add: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let before = self.rep.len();
        add(self)?;
        self.timestamped.push(before);
        Ok(())
    }

    /// Takes over the timestamps that `other` has of its records up to `end` (bytes of it), which
    /// were added from byte `at` on.
    pub(super) fn append_timestamps(&mut self, other: &WriteBatch, at: usize, end: usize) {
        if end == HEADER_LEN {
            return;
        }
        match other.timestamps {
            // Whole bytes after noted records, or before them: the records that are whole cannot be
            // told apart any more, so all are noted.
            Timestamps::Whole => {
                if at == HEADER_LEN {
                    self.timestamps = Timestamps::Whole;
                    return;
                }
                let mut records = Records::over_body(&other.rep[HEADER_LEN..end]);
                let mut begin = at;
                while let Some(Ok(_)) = records.next() {
                    self.timestamped.push(begin);
                    begin = at + records.position();
                }
            }
            other_has => {
                let moved = other.timestamped.iter().take_while(|o| **o < end);
                self.timestamped.extend(moved.map(|o| o - HEADER_LEN + at));
                if other_has == Timestamps::Waiting && self.timestamps == Timestamps::Noted {
                    self.timestamps = Timestamps::Waiting;
                }
            }
        }
    }

    /// The records from byte `len` on are gone.
    pub(super) fn forget_timestamps_from(&mut self, len: usize) {
        let kept = self.timestamped.partition_point(|at| *at < len);
        self.timestamped.truncate(kept);
        if len == HEADER_LEN || (kept == 0 && self.timestamps == Timestamps::Waiting) {
            self.timestamps = Timestamps::Noted;
        }
    }
}

/// The key of a record, and the end of its range if it has one.
fn keys_of<'a>(record: &Record<'a>) -> (&'a [u8], Option<&'a [u8]>) {
    match *record {
        Record::Put { key, .. }
        | Record::Delete { key, .. }
        | Record::SingleDelete { key, .. }
        | Record::Merge { key, .. }
        | Record::BlobIndex { key, .. }
        | Record::PutEntity { key, .. }
        | Record::TimedPut { key, .. } => (key, None),
        Record::DeleteRange { begin, end, .. } => (begin, Some(end)),
        _ => (&[], None),
    }
}

#[cold]
fn without_timestamp() -> Error {
    Error::invalid_argument("a key without a timestamp in a column family that enables timestamp")
}

#[cold]
fn too_short() -> Error {
    Error::invalid_argument("a key is shorter than its timestamp")
}
