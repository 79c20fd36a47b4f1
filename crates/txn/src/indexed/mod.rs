//! A write batch that can be read: every record is also found by its key.
//!
//! The records and their index lie behind one lock that is shared by the batch's handles and its
//! iterators, so an iterator may stay open while the batch changes: it sees what comes after the
//! place where it stands. A handle is cheap to clone, and a clone is the same batch. Any thread;
//! calls take turns.

mod cursor;
mod index;
mod iter;
mod resolve;

pub use cursor::{BatchCursor, BatchEntry, EntryKind};
pub use iter::{MergedEntries, MergedIterator};
pub(crate) use resolve::{InBatch, Value};

use crate::ranks;
use esker::{
    Db, DbIterator, Error, ErrorKind, FamilyHandle, FamilyId, KeyOrder, PinnedValue, ReadOptions,
    Result, Snapshot, WriteBatch, WriteOptions,
};
use esker_format::batch::Record;
use esker_format::timestamp;
use esker_format::wide_column::Column;
use esker_sync::{Arc, Mutex};
use index::KeyIndex;
use resolve::{Latest, merge, record_at};

/// A set of changes that becomes visible at once when it is written, and that can be read before.
///
/// With `overwrite` a later change of a key hides the earlier ones in iteration; without it,
/// cursors over the batch show them all, the newest first. Reads see the newest in both cases.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
/// db.put("a", "old")?;
/// db.put("b", "old")?;
/// let batch = esker_txn::IndexedBatch::new(true);
/// batch.put(b"b", b"new")?;
/// batch.delete(b"a")?;
/// let mut it = batch.iter_over(db.iter(), None, None);
/// it.seek_to_first();
/// assert_eq!((it.key(), it.value()), (&b"b"[..], &b"new"[..]));
/// batch.write(&db, &esker::WriteOptions::default())?;
/// assert_eq!(db.get("a")?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct IndexedBatch(Arc<Mutex<Inner>>);

impl std::fmt::Debug for IndexedBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexedBatch")
            .field("records", &self.count())
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(crate) struct Inner {
    batch: WriteBatch,
    families: Vec<(FamilyId, KeyIndex)>,
    default_order: KeyOrder,
    overwrite: bool,
    /// Rises when records go: cursors then find their place again by key.
    generation: u64,
}

/// A family as an operation names it: `None` for the default family with the batch's own order.
type OptionalFamily<'a> = Option<&'a FamilyHandle>;

fn id_of(family: OptionalFamily<'_>) -> FamilyId {
    family.map_or(FamilyId::DEFAULT, FamilyId::from)
}

impl Inner {
    fn index(&self, family: FamilyId) -> Option<&KeyIndex> {
        self.families
            .iter()
            .find(|(id, _)| *id == family)
            .map(|(_, index)| index)
    }

    /// Puts the record at `at` into the index of its family.
    fn index_record(&mut self, at: usize, order: Option<&KeyOrder>) -> Result<()> {
        let rep = self.batch.data();
        let (family, key, is_merge) = match record_at(rep, at)? {
            Record::Put { family, key, .. }
            | Record::PutEntity { family, key, .. }
            | Record::Delete { family, key }
            | Record::SingleDelete { family, key } => (family, key, false),
            Record::Merge { family, key, .. } => (family, key, true),
            Record::LogData(_)
            | Record::Noop
            | Record::BeginPrepare(_)
            | Record::EndPrepare { .. }
            | Record::Commit { .. }
            | Record::CommitWithTimestamp { .. }
            | Record::Rollback { .. } => return Ok(()),
            Record::DeleteRange { .. } | Record::BlobIndex { .. } | Record::TimedPut { .. } => {
                return Err(Error::corruption("unknown WriteBatch tag in ReBuildIndex"));
            }
        };
        // The key is a part of the batch's bytes.
        let key_at = (key.as_ptr() as usize).saturating_sub(rep.as_ptr() as usize);
        let replaces = self.overwrite && !is_merge;
        let families = &mut self.families;
        let number = match families.iter().position(|(id, _)| *id == family) {
            Some(number) => number,
            None => {
                let order = order.unwrap_or(&self.default_order).clone();
                families.push((family, KeyIndex::new(order)));
                families.len() - 1
            }
        };
        let index = &mut families[number].1;
        let key = timestamp::bare(key, index.order.timestamp_size());
        index.add(rep, key_at, key.len(), at, replaces)
    }

    /// Makes the index anew from the batch's records.
    fn rebuild(&mut self) -> Result<()> {
        self.generation += 1;
        self.families.iter_mut().for_each(|(_, i)| i.clear());
        let mut starts = Vec::with_capacity(self.batch.count() as usize);
        let mut records = self.batch.records();
        loop {
            let at = records.position();
            match records.next() {
                None => break,
                Some(Err(e)) => return Err(e),
                Some(Ok(_)) => starts.push(esker_format::batch::HEADER_LEN + at),
            }
        }
        starts
            .into_iter()
            .try_for_each(|at| self.index_record(at, None))
    }

    fn latest(&self, family: FamilyId, key: &[u8]) -> Result<Latest> {
        let rep = self.batch.data();
        match self.index(family) {
            Some(index) => Latest::of(index, rep, index.find(rep, key)),
            None => Ok(Latest::nothing()),
        }
    }
}

/// A read over a family with timestamps says at which one, also where the batch alone answers.
fn check_read(family: &FamilyHandle, options: &ReadOptions) -> Result<()> {
    if family.order().timestamp_size() > 0 && options.timestamp.is_none() {
        return Err(Error::invalid_argument("Must specify timestamp"));
    }
    Ok(())
}

impl IndexedBatch {
    /// An empty batch; operations without a family handle compare keys byte by byte.
    pub fn new(overwrite: bool) -> Self {
        Self::with_order(overwrite, KeyOrder::Bytewise, 0)
    }

    /// An empty batch with room for `bytes` of records. Operations without a family handle compare
    /// keys by `default_order`.
    pub fn with_order(overwrite: bool, default_order: KeyOrder, bytes: usize) -> Self {
        IndexedBatch(Arc::new(Mutex::new(
            ranks::BATCH,
            Inner {
                batch: WriteBatch::with_capacity(bytes),
                families: Vec::new(),
                default_order,
                overwrite,
                generation: 0,
            },
        )))
    }

    pub(crate) fn shared(&self) -> &Arc<Mutex<Inner>> {
        &self.0
    }

    /// Adds a record through `write` and, with `indexed`, to the index.
    pub(crate) fn add(
        &self,
        family: OptionalFamily<'_>,
        indexed: bool,
        write: impl FnOnce(&mut WriteBatch, FamilyId) -> Result<()>,
    ) -> Result<()> {
        let mut inner = self.0.lock();
        let at = inner.batch.data_size();
        match family.map_or(0, |f| f.order().timestamp_size()) {
            0 => write(&mut inner.batch, id_of(family))?,
            // Its key gets the timestamp when the batch is committed.
            size => {
                let mut one = WriteBatch::new();
                write(&mut one, id_of(family))?;
                for record in one.records() {
                    inner.batch.add_without_timestamp(&record?, size)?;
                }
            }
        }
        if indexed {
            inner.index_record(at, family.map(FamilyHandle::order))?;
        }
        Ok(())
    }

    /// Sets `key` to `value` in the default family.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.add(None, true, |b, f| b.put_cf(f, key, value))
    }

    /// Sets `key` to `value` in `family`.
    pub fn put_cf(&self, family: &FamilyHandle, key: &[u8], value: &[u8]) -> Result<()> {
        self.add(Some(family), true, |b, f| b.put_cf(f, key, value))
    }

    /// Sets `key` in `family` to an entity of named columns.
    pub fn put_entity_cf(
        &self,
        family: &FamilyHandle,
        key: &[u8],
        columns: &[Column<'_>],
    ) -> Result<()> {
        self.add(Some(family), true, |b, f| b.put_entity_cf(f, key, columns))
    }

    /// Deletes `key` in the default family.
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        self.add(None, true, |b, f| b.delete_cf(f, key))
    }

    /// Deletes `key` in `family`.
    pub fn delete_cf(&self, family: &FamilyHandle, key: &[u8]) -> Result<()> {
        self.add(Some(family), true, |b, f| b.delete_cf(f, key))
    }

    /// Deletes a key of the default family that was put once.
    pub fn single_delete(&self, key: &[u8]) -> Result<()> {
        self.add(None, true, |b, f| b.single_delete_cf(f, key))
    }

    /// Deletes a key of `family` that was put once.
    pub fn single_delete_cf(&self, family: &FamilyHandle, key: &[u8]) -> Result<()> {
        self.add(Some(family), true, |b, f| b.single_delete_cf(f, key))
    }

    /// Adds a merge operand in the default family. Reading it needs the family: see
    /// [`IndexedBatch::get_cf`].
    pub fn merge(&self, key: &[u8], operand: &[u8]) -> Result<()> {
        self.add(None, true, |b, f| b.merge_cf(f, key, operand))
    }

    /// Adds a merge operand in `family`.
    pub fn merge_cf(&self, family: &FamilyHandle, key: &[u8], operand: &[u8]) -> Result<()> {
        self.add(Some(family), true, |b, f| b.merge_cf(f, key, operand))
    }

    /// `NotSupported`: a range cannot be found by its key.
    pub fn delete_range(&self, begin: &[u8], end: &[u8]) -> Result<()> {
        let _ = (begin, end);
        Err(Error::not_supported(
            "DeleteRange unsupported in WriteBatchWithIndex",
        ))
    }

    /// Adds a record whose key and value are given in pieces; `None` for the default family with
    /// the batch's order.
    pub fn put_parts(
        &self,
        family: OptionalFamily<'_>,
        key: &[&[u8]],
        value: &[&[u8]],
    ) -> Result<()> {
        self.add(family, true, |b, f| b.put_parts(f, key, value))
    }

    /// As [`IndexedBatch::put_parts`], for a merge operand.
    pub fn merge_parts(
        &self,
        family: OptionalFamily<'_>,
        key: &[&[u8]],
        value: &[&[u8]],
    ) -> Result<()> {
        self.add(family, true, |b, f| b.merge_parts(f, key, value))
    }

    /// As [`IndexedBatch::put_parts`], for a deletion.
    pub fn delete_parts(&self, family: OptionalFamily<'_>, key: &[&[u8]]) -> Result<()> {
        self.add(family, true, |b, f| b.delete_parts(f, key))
    }

    /// As [`IndexedBatch::put_parts`], for the deletion of a key that was put once.
    pub fn single_delete_parts(&self, family: OptionalFamily<'_>, key: &[&[u8]]) -> Result<()> {
        self.add(family, true, |b, f| b.single_delete_parts(f, key))
    }

    /// Adds bytes that only readers of the log see.
    pub fn log_data(&self, blob: &[u8]) -> Result<()> {
        self.0.lock().batch.log_data(blob)
    }

    /// Empties the batch and forgets its save points.
    pub fn clear(&self) {
        let mut inner = self.0.lock();
        inner.batch.clear();
        inner.generation += 1;
        inner.families.iter_mut().for_each(|(_, i)| i.clear());
    }

    /// Refuses records that would make the batch longer than `max_bytes`; 0 for no limit.
    pub fn set_max_bytes(&self, max_bytes: usize) {
        self.0.lock().batch.set_max_bytes(max_bytes);
    }

    /// Remembers this place.
    pub fn set_save_point(&self) {
        self.0.lock().batch.set_save_point();
    }

    /// Returns to the last save point and forgets it; `NotFound` without one.
    pub fn rollback_to_save_point(&self) -> Result<()> {
        let mut inner = self.0.lock();
        inner.batch.rollback_to_save_point()?;
        inner.rebuild()
    }

    /// Forgets the last save point; `NotFound` without one.
    pub fn pop_save_point(&self) -> Result<()> {
        self.0.lock().batch.pop_save_point()
    }

    /// Counted records.
    pub fn count(&self) -> u32 {
        self.0.lock().batch.count()
    }

    /// Returns whether a later change of a key hides the earlier ones.
    pub fn overwrites(&self) -> bool {
        self.0.lock().overwrite
    }

    /// Bytes of the batch.
    pub fn data_size(&self) -> usize {
        self.0.lock().batch.data_size()
    }

    /// A copy of the records as a plain batch.
    pub fn to_batch(&self) -> WriteBatch {
        self.0.lock().batch.clone()
    }

    /// Shows the records to `look`, which must not use this batch.
    pub fn with_batch<R>(&self, look: impl FnOnce(&WriteBatch) -> R) -> R {
        look(&self.0.lock().batch)
    }

    /// Changes the records past the index, which does not see what is added; `change` must not use
    /// this batch.
    pub(crate) fn with_batch_mut<R>(&self, change: impl FnOnce(&mut WriteBatch) -> R) -> R {
        change(&mut self.0.lock().batch)
    }

    /// Writes all of the batch to `db`, or nothing. The batch keeps its records.
    pub fn write(&self, db: &Db, options: &WriteOptions) -> Result<()> {
        db.write_opt(&mut self.0.lock().batch, options)
    }

    pub(crate) fn in_batch(&self, family: OptionalFamily<'_>, key: &[u8]) -> Result<InBatch> {
        let latest = self.0.lock().latest(id_of(family), key)?;
        latest.settle(family, key)
    }

    fn value_in_batch(&self, family: OptionalFamily<'_>, key: &[u8]) -> Result<Option<Value>> {
        match self.in_batch(family, key)? {
            InBatch::Absent | InBatch::Deleted => Ok(None),
            InBatch::Value(v) => Ok(Some(v)),
            InBatch::Operands(_) => Err(Error::new(ErrorKind::MergeInProgress, "")),
        }
    }

    /// Returns the value that the batch alone holds for `key` of the default family.
    /// `MergeInProgress` when that needs a database; `InvalidArgument` when it needs a merge
    /// operator, which a handle brings: see [`IndexedBatch::get_cf`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.value_in_batch(None, key)?
            .map(Value::into_plain)
            .transpose()
    }

    /// Returns the value that the batch alone holds for `key` of `family`. `MergeInProgress` when
    /// that needs a database.
    pub fn get_cf(&self, family: &FamilyHandle, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.value_in_batch(Some(family), key)?
            .map(Value::into_plain)
            .transpose()
    }

    /// The encoded entity that the batch alone holds for `key` of `family`.
    pub fn get_entity_cf(&self, family: &FamilyHandle, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.value_in_batch(Some(family), key)?
            .map(Value::into_entity)
            .transpose()
    }

    /// Returns the value that `key` of `family` would have if the batch was written: the batch's
    /// records over what `db` holds, as of `snapshot` or now.
    pub fn get_over(
        &self,
        db: &Db,
        family: &FamilyHandle,
        key: &[u8],
        options: &ReadOptions,
        snapshot: Option<&Snapshot>,
    ) -> Result<Option<PinnedValue>> {
        check_read(family, options)?;
        match self.in_batch(Some(family), key)? {
            InBatch::Absent => db.get_opt(family, key, options, snapshot),
            InBatch::Deleted => Ok(None),
            InBatch::Value(v) => Ok(Some(v.into_plain()?.into())),
            InBatch::Operands(operands) => {
                let base = db.get_entity_opt(family, key, options, snapshot)?;
                let base = base.map(Value::of_entity).transpose()?;
                let merged = merge(Some(family), key, base.as_ref(), &operands)?;
                Ok(Some(merged.into_plain()?.into()))
            }
        }
    }

    /// As [`IndexedBatch::get_over`], as an encoded entity.
    pub fn get_entity_over(
        &self,
        db: &Db,
        family: &FamilyHandle,
        key: &[u8],
        options: &ReadOptions,
        snapshot: Option<&Snapshot>,
    ) -> Result<Option<Vec<u8>>> {
        check_read(family, options)?;
        match self.in_batch(Some(family), key)? {
            InBatch::Absent => db.get_entity_opt(family, key, options, snapshot),
            InBatch::Deleted => Ok(None),
            InBatch::Value(v) => v.into_entity().map(Some),
            InBatch::Operands(operands) => {
                let base = db.get_entity_opt(family, key, options, snapshot)?;
                let base = base.map(Value::of_entity).transpose()?;
                merge(Some(family), key, base.as_ref(), &operands)?
                    .into_entity()
                    .map(Some)
            }
        }
    }

    /// As [`IndexedBatch::get_over`], for many keys; what the batch does not answer is read at
    /// once.
    pub fn multi_get_over<K: AsRef<[u8]>>(
        &self,
        db: &Db,
        keys: &[(&FamilyHandle, K)],
        options: &ReadOptions,
        snapshot: Option<&Snapshot>,
    ) -> Vec<Result<Option<PinnedValue>>> {
        let mut answers: Vec<Option<Result<Option<PinnedValue>>>> = Vec::with_capacity(keys.len());
        let mut missing = Vec::new();
        for (at, (family, key)) in keys.iter().enumerate() {
            let key = key.as_ref();
            let found = check_read(family, options).and_then(|()| self.in_batch(Some(family), key));
            answers.push(match found {
                Ok(InBatch::Absent) => {
                    missing.push((at, (*family, key)));
                    None
                }
                Ok(_) => Some(self.get_over(db, family, key, options, snapshot)),
                Err(e) => Some(Err(e)),
            });
        }
        let wanted: Vec<_> = missing.iter().map(|(_, k)| *k).collect();
        let read = db.multi_get_families(&wanted, options, snapshot);
        for ((at, _), answer) in missing.into_iter().zip(read) {
            answers[at] = Some(answer);
        }
        answers.into_iter().map(|a| a.unwrap_or(Ok(None))).collect()
    }

    /// The keys of `base` as they would be if the batch was written.
    ///
    /// `family` is the one that `base` walks; without it the batch's default order is used, and
    /// merge operands cannot be read. `options` brings the bounds of the batch's keys; `base` keeps
    /// its own.
    pub fn iter_over(
        &self,
        base: DbIterator,
        family: Option<&FamilyHandle>,
        options: Option<&ReadOptions>,
    ) -> MergedIterator {
        MergedIterator::new(self, base, family, options)
    }

    /// A cursor over the batch's own records of `family` (`None` for the default family), by key.
    pub fn cursor(&self, family: Option<&FamilyHandle>) -> BatchCursor {
        BatchCursor::new(self, id_of(family))
    }
}
