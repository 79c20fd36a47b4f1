//! Calls with user-defined timestamps, on families whose order has them; `esker_format::timestamp`
//! says what they are.
//!
//! Reads and iterators at a timestamp are the usual ones with [`ReadOptions::timestamp`] set.

use super::Db;
use super::reads::families_of;
use crate::family::FamilyHandle;
use crate::options::{ReadOptions, WriteOptions};
use crate::read::PinnedValue;
use crate::read::get::{PointRead, PointResult};
use crate::read::multi;
use crate::snapshot::Snapshot;
use crate::timestamp;
use esker_format::Seq;
use esker_format::batch::WriteBatch;
use esker_status::{Error, Result};
use std::cell::RefCell;

/// A value and the timestamp that it was written at.
pub type Timestamped = (PinnedValue, Vec<u8>);

impl Db {
    /// Sets `key` to `value` as of `timestamp`, in a family whose keys have timestamps of that
    /// size. The timestamps of a key must not decrease from write to write.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::options::{FamilyOptions, ReadOptions};
    /// use esker::{Db, KeyOrder, Options, WriteOptions};
    ///
    /// let mut options = FamilyOptions::default();
    /// options.comparator = KeyOrder::BytewiseU64Ts;
    /// let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    /// let prices = db.create_family("prices", options)?;
    /// for (year, price) in [(2024u64, "10"), (2026, "12")] {
    ///     let write = WriteOptions::default();
    ///     db.put_with_timestamp(&prices, "tea", year.to_le_bytes(), price, &write)?;
    /// }
    /// let mut read = ReadOptions::default();
    /// read.timestamp = Some(2025u64.to_le_bytes().to_vec());
    /// let (value, at) = db.get_with_timestamp(&prices, "tea", &read, None)?.expect("was put");
    /// assert_eq!((&value[..], at), (&b"10"[..], 2024u64.to_le_bytes().to_vec()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn put_with_timestamp(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.single_at(family, timestamp.as_ref(), options, |b, timestamp| {
            b.put_with_timestamp(family.0.id, key.as_ref(), timestamp, value.as_ref())
        })
    }

    /// Deletes `key` as of `timestamp`; readers at older timestamps still find it.
    pub fn delete_with_timestamp(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.single_at(family, timestamp.as_ref(), options, |b, timestamp| {
            b.delete_with_timestamp(family.0.id, key.as_ref(), timestamp)
        })
    }

    /// Deletes, as of `timestamp`, a key that was put at most once since it was deleted last.
    pub fn single_delete_with_timestamp(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.single_at(family, timestamp.as_ref(), options, |b, timestamp| {
            b.single_delete_with_timestamp(family.0.id, key.as_ref(), timestamp)
        })
    }

    /// Deletes the keys of `[begin, end)` as of `timestamp`; readers at older timestamps still find
    /// them.
    pub fn delete_range_with_timestamp(
        &self,
        family: &FamilyHandle,
        begin: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let (begin, end) = (begin.as_ref(), end.as_ref());
        self.single_at(family, timestamp.as_ref(), options, |b, timestamp| {
            b.delete_range_with_timestamp(family.0.id, begin, end, timestamp)
        })
    }

    /// Adds a merge operand to `key` as of `timestamp`.
    pub fn merge_with_timestamp(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        timestamp: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.single_at(family, timestamp.as_ref(), options, |b, timestamp| {
            b.merge_with_timestamp(family.0.id, key.as_ref(), timestamp, operand.as_ref())
        })
    }

    /// Writes a batch of one record, whose key has `timestamp`.
    fn single_at(
        &self,
        family: &FamilyHandle,
        timestamp: &[u8],
        options: &WriteOptions,
        fill: impl FnOnce(&mut WriteBatch, &[u8]) -> Result<()>,
    ) -> Result<()> {
        timestamp::check(&family.0, timestamp)?;
        self.single(options, |b| fill(b, timestamp))
    }

    /// The value of `key` at `options.timestamp`, and the timestamp that it was written at (of
    /// merged operands, the newest one's; empty in a family without timestamps).
    pub fn get_with_timestamp(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
        snapshot: Option<&Snapshot>,
    ) -> Result<Option<Timestamped>> {
        let found = self.multi_get_with_timestamps(&[(family, key)], options, snapshot);
        found.into_iter().next().unwrap_or(Ok(None))
    }

    /// The values of keys of several families at `options.timestamp`, with the timestamps that they
    /// were written at, all as of one state of the database; in the order given.
    pub fn multi_get_with_timestamps<K: AsRef<[u8]>>(
        &self,
        keys: &[(&FamilyHandle, K)],
        options: &ReadOptions,
        snapshot: Option<&Snapshot>,
    ) -> Vec<Result<Option<Timestamped>>> {
        let reads = self.reads();
        let _timed = reads.timed_multi_get(None);
        // Every view before the sequence: what a view holds, it holds for every later sequence.
        let views = reads.views(keys.iter().map(|(f, _)| &f.0));
        let seq = match views.first().map(|v| reads.read_seq(v, snapshot)) {
            None => Seq::ZERO,
            Some(Ok(seq)) => seq,
            Some(Err(e)) => return keys.iter().map(|_| Err(e.clone())).collect(),
        };
        let mut bytes = 0u64;
        let mut times = Vec::with_capacity(keys.len());
        let mut answers = Vec::with_capacity(keys.len());
        for ((family, key), view) in keys.iter().zip(&views) {
            let at = RefCell::new(Vec::new());
            let answer = if bytes > options.value_size_soft_limit {
                Err(multi::over_soft_limit())
            } else {
                let read = PointRead::new(reads, &family.0, options).telling(&at);
                read.run(view, key.as_ref(), seq)
            };
            if let Ok(PointResult::Value(v) | PointResult::Entity(v)) = &answer {
                bytes = bytes.saturating_add(v.len() as u64);
            }
            answers.push(answer);
            times.push(at.into_inner());
        }
        self.counted(families_of(keys).len(), answers)
            .into_iter()
            .zip(times)
            .map(|(value, at)| Ok(value?.map(|v| (v, at))))
            .collect()
    }

    /// Lets compactions drop versions of keys below `timestamp` that newer ones hide; reads below
    /// it fail once that may have happened. It holds for ever and only rises: `InvalidArgument` for
    /// a timestamp below the one there is.
    pub fn increase_full_history_ts_low(
        &self,
        family: &FamilyHandle,
        timestamp: impl AsRef<[u8]>,
    ) -> Result<()> {
        let core = self.core();
        core.check_open_for_writes()?;
        let (family, low) = (&family.0, timestamp.as_ref());
        check_enabled(family.order.timestamp_size())?;
        if low.len() != family.order.timestamp_size() {
            return Err(Error::invalid_argument("ts_low size mismatch"));
        }
        match core
            .trees
            .store
            .raise_history(&core.trees.families, family, low)?
        {
            None => Ok(()),
            Some(now) => Err(Error::invalid_argument(format!(
                "Current full_history_ts_low: {} is higher than provided ts: {}\n",
                esker_format::timestamp::text(&family.order, &now),
                esker_format::timestamp::text(&family.order, low)
            ))),
        }
    }

    /// The timestamp below which versions of keys may be gone; empty before
    /// [`Db::increase_full_history_ts_low`].
    pub fn full_history_ts_low(&self, family: &FamilyHandle) -> Result<Vec<u8>> {
        check_enabled(family.0.order.timestamp_size())?;
        let low = family.0.full_history_ts_low();
        Ok(low.map(|ts| ts.to_vec()).unwrap_or_default())
    }
}

fn check_enabled(size: usize) -> Result<()> {
    if size > 0 {
        return Ok(());
    }
    Err(Error::invalid_argument(
        "Timestamp is not enabled in this column family",
    ))
}
