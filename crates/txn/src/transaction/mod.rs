//! A transaction: a batch that reads through to the database, and the keys that it touched.
//!
//! Both kinds share everything but what touching a key means. An optimistic transaction takes note
//! of the key and looks at commit whether somebody else wrote it since; a pessimistic one locks it
//! at once. A transaction is used by one thread at a time.

mod ending;
mod stamps;

use stamps::TxnTimestamps;

use crate::indexed::{IndexedBatch, MergedIterator};
use crate::optimistic::Optimistic;
use crate::pessimistic::{LockTimeout, Pessimistic};
use crate::state::TransactionState;
use crate::touch::{Access, AccessedKey, SnapshotFields, SnapshotState};
use crate::tracked::{TrackedKeys, UndoResult};
use crate::{BatchEntry, errors};
use esker::{
    Db, Error, FamilyHandle, FamilyId, PinnedValue, ReadOptions, Result, Snapshot, WriteBatch,
    WriteOptions,
};
use esker_format::batch::Record;
use esker_format::timestamp;
use esker_format::wide_column::{self, Column};

/// Optimistic or pessimistic: what touching a key does.
#[derive(Debug)]
pub(crate) enum TxnMode {
    Optimistic(Optimistic),
    Pessimistic(Pessimistic),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    puts: u64,
    entities: u64,
    deletes: u64,
    merges: u64,
}

struct SavePoint {
    snapshot: SnapshotState,
    counts: Counts,
    /// The touches since.
    touched: TrackedKeys,
}

/// A transaction of an [`crate::OptimisticTransactionDb`] or a [`crate::TransactionDb`].
///
/// Dropping it undoes it: nothing it wrote is seen, and its locks go.
pub struct Transaction {
    pub(crate) db: Db,
    pub(crate) kind: TxnMode,
    pub(crate) write_options: WriteOptions,
    pub(crate) batch: IndexedBatch,
    pub(crate) tracked: TrackedKeys,
    save_points: Vec<SavePoint>,
    pub(crate) snapshot: SnapshotFields,
    counts: Counts,
    started_us: u64,
    indexing: bool,
    default: FamilyHandle,
    stamps: TxnTimestamps,
    at_commit: Option<WriteBatch>,
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction")
            .field("is_optimistic", &self.is_optimistic())
            .field("records", &self.batch.count())
            .field("keys", &self.tracked.len())
            .finish_non_exhaustive()
    }
}

impl Transaction {
    pub(crate) fn new(db: Db, kind: TxnMode, write_options: WriteOptions) -> Transaction {
        let default = db.default_family_handle();
        let batch = IndexedBatch::with_order(true, default.order().clone(), 0);
        Transaction {
            started_us: db.env().clock.now_us(),
            default,
            batch,
            db,
            kind,
            write_options,
            tracked: TrackedKeys::default(),
            save_points: Vec::new(),
            snapshot: SnapshotFields::default(),
            counts: Counts::default(),
            indexing: true,
            stamps: TxnTimestamps::default(),
            at_commit: None,
        }
    }

    /// Becomes the prepared transaction that `batch` is what is left of.
    pub(crate) fn restore(&mut self, batch: &WriteBatch) -> Result<()> {
        self.rebuild_from_batch(batch)?;
        if let TxnMode::Pessimistic(p) = &mut self.kind {
            p.end_restoration();
        }
        Ok(())
    }

    /// Begins anew with these parts; locks are released.
    pub(crate) fn restart(&mut self, db: Db, kind: TxnMode, write_options: WriteOptions) {
        self.clear();
        self.end();
        self.clear_snapshot();
        self.default = db.default_family_handle();
        self.started_us = db.env().clock.now_us();
        self.batch.set_max_bytes(0);
        self.db = db;
        self.kind = kind;
        self.write_options = write_options;
        self.indexing = true;
        self.stamps = TxnTimestamps::default();
    }

    /// Forgets changes, save points and touched keys; locks are released.
    pub(crate) fn clear(&mut self) {
        if let TxnMode::Pessimistic(p) = &self.kind {
            p.unlock(&self.tracked);
        }
        self.save_points.clear();
        self.batch.clear();
        self.tracked.clear();
        self.counts = Counts::default();
        if let Some(at_commit) = &mut self.at_commit {
            at_commit.clear();
        }
    }

    /// Takes the transaction out of the registers of its database.
    fn end(&mut self) {
        if let TxnMode::Pessimistic(p) = &mut self.kind {
            p.end();
        }
    }

    /// The database under it.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Returns whether it looks for conflicts only when it commits.
    pub fn is_optimistic(&self) -> bool {
        matches!(self.kind, TxnMode::Optimistic(_))
    }

    /// A number that no other pessimistic transaction of this process has; 0 for an optimistic one.
    pub fn id(&self) -> u64 {
        match &self.kind {
            TxnMode::Optimistic(_) => 0,
            TxnMode::Pessimistic(p) => p.id(),
        }
    }

    /// How far it has come. An optimistic transaction is always started.
    pub fn state(&self) -> TransactionState {
        match &self.kind {
            TxnMode::Optimistic(_) => TransactionState::Started,
            TxnMode::Pessimistic(p) => p.state(),
        }
    }

    /// Its name; empty without one.
    pub fn name(&self) -> &[u8] {
        match &self.kind {
            TxnMode::Optimistic(_) => b"",
            TxnMode::Pessimistic(p) => p.name(),
        }
    }

    /// Names it, once, with 1 to 512 bytes that no other transaction of the database has.
    pub fn set_name(&mut self, name: &[u8]) -> Result<()> {
        match &mut self.kind {
            TxnMode::Optimistic(_) => Err(Error::invalid_argument(
                "Optimistic transactions cannot be named.",
            )),
            TxnMode::Pessimistic(p) => p.set_name(name),
        }
    }

    /// How long a lock is waited for: a [`std::time::Duration`], zero for not at all and `None` for
    /// ever; or milliseconds, negative for ever.
    pub fn set_lock_timeout(&mut self, time: impl Into<LockTimeout>) {
        if let TxnMode::Pessimistic(p) = &mut self.kind {
            p.set_lock_timeout(time.into().milliseconds());
        }
    }

    /// The options that it writes with.
    pub fn write_options(&self) -> &WriteOptions {
        &self.write_options
    }

    /// Writes with other options from now on.
    pub fn set_write_options(&mut self, options: WriteOptions) {
        self.write_options = options;
    }

    /// Milliseconds since it began.
    pub fn elapsed_ms(&self) -> u64 {
        (self.db.env().clock.now_us() - self.started_us) / 1000
    }

    /// Puts so far.
    pub fn num_puts(&self) -> u64 {
        self.counts.puts
    }

    /// Puts of entities so far.
    pub fn num_put_entities(&self) -> u64 {
        self.counts.entities
    }

    /// Deletions so far.
    pub fn num_deletes(&self) -> u64 {
        self.counts.deletes
    }

    /// Merges so far.
    pub fn num_merges(&self) -> u64 {
        self.counts.merges
    }

    /// Keys that are locked or tracked.
    pub fn num_keys(&self) -> u64 {
        self.tracked.len() as u64
    }

    /// Sets whether changes that follow can be read in the transaction; they can unless this was
    /// set to false.
    pub fn set_indexing(&mut self, yes: bool) {
        self.indexing = yes;
    }

    /// The batch of its changes: the same one, not a copy.
    pub fn indexed_batch(&self) -> &IndexedBatch {
        &self.batch
    }

    // Snapshots.

    /// Takes a snapshot: from here on, a key that others write after this moment is a conflict.
    pub fn set_snapshot(&mut self) {
        self.snapshot.0 = SnapshotState {
            snapshot: Some(self.db.snapshot()),
            ..SnapshotState::default()
        };
    }

    /// Takes a snapshot when the next operation touches a key, just before it does.
    pub fn set_snapshot_on_next_operation(&mut self) {
        self.snapshot.0.wanted = true;
        self.snapshot.0.notifier = None;
    }

    /// As [`Transaction::set_snapshot_on_next_operation`], and shows the snapshot to `notify`.
    pub fn set_snapshot_on_next_operation_and_notify(
        &mut self,
        notify: impl Fn(&Snapshot) + Send + Sync + 'static,
    ) {
        self.snapshot.0.wanted = true;
        self.snapshot.0.notifier = Some(std::sync::Arc::new(notify));
    }

    /// The snapshot. Reads see it only when it is given to them.
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.0.snapshot.as_ref()
    }

    /// Gives the snapshot back.
    pub fn clear_snapshot(&mut self) {
        self.snapshot.0 = SnapshotState::default();
    }

    // Save points.

    /// Remembers this state.
    pub fn set_save_point(&mut self) {
        self.save_points.push(SavePoint {
            snapshot: self.snapshot.0.clone(),
            counts: self.counts,
            touched: TrackedKeys::default(),
        });
        self.batch.set_save_point();
    }

    /// Undoes what came after the last save point, and forgets it: changes, snapshot, and the locks
    /// of keys that were not touched before. `NotFound` without one.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let options = esker::Options::new().create_if_missing(true);
    /// # let db = esker_txn::TransactionDb::open(dir.path(), options, Default::default())?;
    /// let mut txn = db.begin();
    /// txn.put("a", "1")?;
    /// txn.set_save_point();
    /// txn.put("b", "2")?;
    /// txn.rollback_to_save_point()?;
    /// txn.commit()?;
    /// assert!(db.contains_key("a")? && !db.contains_key("b")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn rollback_to_save_point(&mut self) -> Result<()> {
        if let TxnMode::Pessimistic(p) = &self.kind
            && p.state() != TransactionState::Started
        {
            return Err(Error::invalid_argument(
                "Transaction is beyond state for rollback.",
            ));
        }
        let Some(point) = self.save_points.pop() else {
            return Err(errors::no_save_point());
        };
        self.snapshot.0 = point.snapshot;
        self.counts = point.counts;
        let done = self.batch.rollback_to_save_point();
        let gone = self.tracked.subtract(&point.touched);
        if let TxnMode::Pessimistic(p) = &self.kind {
            p.unlock(&gone);
        }
        done
    }

    /// Forgets the last save point; what came after it stays. `NotFound` without one.
    pub fn pop_save_point(&mut self) -> Result<()> {
        let Some(point) = self.save_points.pop() else {
            return Err(errors::no_save_point());
        };
        if let Some(below) = self.save_points.last_mut() {
            below.touched.merge(&point.touched);
        }
        self.batch.pop_save_point()
    }

    // Touching keys.

    fn touch(&mut self, family: &FamilyHandle, key: &[u8], touch: Access) -> Result<()> {
        let read_at = self.validated_at(family);
        let seq = match &mut self.kind {
            TxnMode::Optimistic(o) => o.touch(&self.db, &mut self.snapshot, touch),
            TxnMode::Pessimistic(p) => p.touch(
                &self.db,
                &mut self.snapshot,
                &self.tracked,
                AccessedKey { family, key },
                touch,
                read_at,
            )?,
        };
        if let Some(seq) = seq {
            self.tracked
                .track(family, key, seq, touch.is_read, touch.exclusive);
            if let Some(point) = self.save_points.last_mut() {
                point
                    .touched
                    .track(family, key, seq, touch.is_read, touch.exclusive);
            }
        }
        Ok(())
    }

    fn change(
        &mut self,
        family: &FamilyHandle,
        key: &[u8],
        touch: Access,
        write: impl FnOnce(&mut WriteBatch, FamilyId) -> Result<()>,
    ) -> Result<()> {
        self.touch(family, key, touch)?;
        self.batch.add(Some(family), self.indexing, write)
    }

    /// Sets `key` to `value` in the default family.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_cf(&self.default.clone(), key, value)
    }

    /// Sets `key` to `value` in `family`.
    pub fn put_cf(
        &mut self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.put_as(family, key.as_ref(), value.as_ref(), Access::WRITE)
    }

    /// As [`Transaction::put_cf`], without a look for conflicts. A pessimistic transaction locks
    /// the key all the same.
    pub fn put_untracked(
        &mut self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.put_as(family, key.as_ref(), value.as_ref(), Access::UNTRACKED)
    }

    /// As [`Transaction::put_cf`], for a key that the transaction has locked already.
    pub fn put_assume_tracked(
        &mut self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.put_as(family, key.as_ref(), value.as_ref(), Access::ASSUMED)
    }

    fn put_as(&mut self, family: &FamilyHandle, k: &[u8], v: &[u8], touch: Access) -> Result<()> {
        self.change(family, k, touch, |b, f| b.put_cf(f, k, v))?;
        self.counts.puts += 1;
        Ok(())
    }

    /// Sets `key` in `family` to an entity of named columns.
    pub fn put_entity(
        &mut self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        columns: &[Column<'_>],
    ) -> Result<()> {
        let key = key.as_ref();
        self.change(family, key, Access::WRITE, |b, f| {
            b.put_entity_cf(f, key, columns)
        })?;
        self.counts.entities += 1;
        Ok(())
    }

    /// As [`Transaction::put_entity`], without a look for conflicts.
    pub fn put_entity_untracked(
        &mut self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        columns: &[Column<'_>],
    ) -> Result<()> {
        let key = key.as_ref();
        self.change(family, key, Access::UNTRACKED, |b, f| {
            b.put_entity_cf(f, key, columns)
        })?;
        self.counts.entities += 1;
        Ok(())
    }

    /// Adds a merge operand to `key` in the default family.
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_cf(&self.default.clone(), key, operand)
    }

    /// Adds a merge operand to `key` in `family`.
    pub fn merge_cf(
        &mut self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.merge_as(family, key.as_ref(), operand.as_ref(), Access::WRITE)
    }

    /// As [`Transaction::merge_cf`], without a look for conflicts.
    pub fn merge_untracked(
        &mut self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.merge_as(family, key.as_ref(), operand.as_ref(), Access::UNTRACKED)
    }

    /// As [`Transaction::merge_cf`], for a key that the transaction has locked already.
    pub fn merge_assume_tracked(
        &mut self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.merge_as(family, key.as_ref(), operand.as_ref(), Access::ASSUMED)
    }

    fn merge_as(&mut self, family: &FamilyHandle, k: &[u8], v: &[u8], touch: Access) -> Result<()> {
        self.change(family, k, touch, |b, f| b.merge_cf(f, k, v))?;
        self.counts.merges += 1;
        Ok(())
    }

    /// Deletes `key` in the default family.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_cf(&self.default.clone(), key)
    }

    /// Deletes `key` in `family`.
    pub fn delete_cf(&mut self, family: &FamilyHandle, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_as(family, key.as_ref(), Access::WRITE)
    }

    /// As [`Transaction::delete_cf`], without a look for conflicts.
    pub fn delete_untracked(&mut self, family: &FamilyHandle, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_as(family, key.as_ref(), Access::UNTRACKED)
    }

    /// As [`Transaction::delete_cf`], for a key that the transaction has locked already.
    pub fn delete_assume_tracked(
        &mut self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.delete_as(family, key.as_ref(), Access::ASSUMED)
    }

    fn delete_as(&mut self, family: &FamilyHandle, key: &[u8], touch: Access) -> Result<()> {
        self.change(family, key, touch, |b, f| b.delete_cf(f, key))?;
        self.counts.deletes += 1;
        Ok(())
    }

    /// Deletes a key of `family` that was put once.
    pub fn single_delete_cf(&mut self, family: &FamilyHandle, key: impl AsRef<[u8]>) -> Result<()> {
        self.single_delete_as(family, key.as_ref(), Access::WRITE)
    }

    /// As [`Transaction::single_delete_cf`], without a look for conflicts.
    pub fn single_delete_untracked(
        &mut self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.single_delete_as(family, key.as_ref(), Access::UNTRACKED)
    }

    /// As [`Transaction::single_delete_cf`], for a key that the transaction has locked already.
    pub fn single_delete_assume_tracked(
        &mut self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.single_delete_as(family, key.as_ref(), Access::ASSUMED)
    }

    fn single_delete_as(&mut self, family: &FamilyHandle, key: &[u8], touch: Access) -> Result<()> {
        self.change(family, key, touch, |b, f| b.single_delete_cf(f, key))?;
        self.counts.deletes += 1;
        Ok(())
    }

    /// Adds bytes that only readers of the log see.
    pub fn log_data(&mut self, blob: &[u8]) -> Result<()> {
        self.batch.log_data(blob)
    }

    /// Repeats the puts, merges and deletions of `batch` in this transaction, touching each key.
    pub fn rebuild_from_batch(&mut self, batch: &WriteBatch) -> Result<()> {
        for record in batch.records() {
            let record = record?;
            let Some(id) = record.family() else {
                match record {
                    Record::LogData(_) | Record::Noop => continue,
                    _ => return Err(Error::invalid_argument("")),
                }
            };
            let family = self.db.family_by_id(id.0).ok_or_else(|| {
                Error::invalid_argument(format!("Could not access column family {id}"))
            })?;
            // Its keys get their timestamps when this is committed.
            let bare = |key| timestamp::bare(key, family.order().timestamp_size());
            match record {
                Record::Put { key, value, .. } => self.put_cf(&family, bare(key), value)?,
                Record::Delete { key, .. } => self.delete_cf(&family, bare(key))?,
                Record::SingleDelete { key, .. } => self.single_delete_cf(&family, bare(key))?,
                Record::Merge { key, operand, .. } => {
                    self.merge_cf(&family, bare(key), operand)?;
                }
                Record::PutEntity { key, entity, .. } => {
                    self.put_entity(&family, bare(key), &wide_column::decode(entity)?)?;
                }
                Record::DeleteRange { .. } => {
                    return Err(Error::invalid_argument("DeleteRangeCF not implemented"));
                }
                _ => return Err(Error::invalid_argument("not supported in transactions")),
            }
        }
        Ok(())
    }

    // Reading.

    /// The value of `key` in the default family: this transaction's, or the database's as it is
    /// now.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let found = self.get_opt(&self.default, key, &ReadOptions::default(), None)?;
        Ok(found.map(PinnedValue::into_vec))
    }

    /// The value of `key` in `family`: this transaction's, or the database's as of `snapshot` or
    /// now.
    pub fn get_opt(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
        snapshot: Option<&Snapshot>,
    ) -> Result<Option<PinnedValue>> {
        self.batch
            .get_over(&self.db, family, key.as_ref(), options, snapshot)
    }

    /// As [`Transaction::get_opt`], as an encoded entity.
    pub fn get_entity_opt(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
        snapshot: Option<&Snapshot>,
    ) -> Result<Option<Vec<u8>>> {
        self.batch
            .get_entity_over(&self.db, family, key.as_ref(), options, snapshot)
    }

    /// The values of many keys; in their order.
    pub fn multi_get_opt<K: AsRef<[u8]>>(
        &self,
        keys: &[(&FamilyHandle, K)],
        options: &ReadOptions,
        snapshot: Option<&Snapshot>,
    ) -> Vec<Result<Option<PinnedValue>>> {
        self.batch.multi_get_over(&self.db, keys, options, snapshot)
    }

    /// Reads a key of the default family that the transaction depends on: a write of it by others
    /// before the commit is a conflict, or waits.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let options = esker::Options::new().create_if_missing(true);
    /// # let db = esker_txn::TransactionDb::open(dir.path(), options, Default::default())?;
    /// db.put("stock", "3")?;
    /// let mut txn = db.begin();
    /// if txn.get_for_update("stock")?.as_deref() == Some(b"3") {
    ///     txn.put("stock", "2")?;
    /// }
    /// txn.commit()?;
    /// assert_eq!(db.get("stock")?.as_deref(), Some(&b"2"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_for_update(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let default = self.default.clone();
        let found =
            self.get_for_update_opt(&default, key, &ReadOptions::default(), None, true, true)?;
        Ok(found.map(PinnedValue::into_vec))
    }

    /// Touches `key` without reading it, as [`Transaction::get_for_update_opt`] does before it
    /// reads.
    pub fn lock_for_update(
        &mut self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        exclusive: bool,
        validate: bool,
    ) -> Result<()> {
        self.touch(family, key.as_ref(), Access::of_read(exclusive, validate))
    }

    /// Reads a key that the transaction depends on. `exclusive` or shared says how a pessimistic
    /// transaction locks it; without `validate` it is not looked at whether others wrote it since
    /// the transaction's snapshot.
    pub fn get_for_update_opt(
        &mut self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
        snapshot: Option<&Snapshot>,
        exclusive: bool,
        validate: bool,
    ) -> Result<Option<PinnedValue>> {
        if !validate && snapshot.is_some() {
            return Err(Error::invalid_argument(
                "If do_validate is false then GetForUpdate with snapshot is not defined.",
            ));
        }
        let touch = Access::of_read(exclusive, validate);
        let options = self.for_update(family, options, touch, "read_timestamp")?;
        self.touch(family, key.as_ref(), touch)?;
        self.get_opt(family, key, &options, snapshot)
    }

    /// As [`Transaction::get_for_update_opt`], as an encoded entity.
    pub fn get_entity_for_update_opt(
        &mut self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
        snapshot: Option<&Snapshot>,
        exclusive: bool,
        validate: bool,
    ) -> Result<Option<Vec<u8>>> {
        if !validate && snapshot.is_some() {
            return Err(Error::invalid_argument(
                "Snapshot must not be set if validation is disabled",
            ));
        }
        let touch = Access::of_read(exclusive, validate);
        let options = self.for_update(family, options, touch, "read timestamp")?;
        self.touch(family, key.as_ref(), touch)?;
        self.get_entity_opt(family, key, &options, snapshot)
    }

    /// Reads many keys that the transaction depends on. When one of them cannot be locked, every
    /// answer says why.
    pub fn multi_get_for_update_opt<K: AsRef<[u8]>>(
        &mut self,
        keys: &[(&FamilyHandle, K)],
        options: &ReadOptions,
        snapshot: Option<&Snapshot>,
    ) -> Vec<Result<Option<PinnedValue>>> {
        for (family, key) in keys {
            if let Err(e) = self.lock_for_update(family, key.as_ref(), true, true) {
                return keys.iter().map(|_| Err(e.clone())).collect();
            }
        }
        self.multi_get_opt(keys, options, snapshot)
    }

    /// Takes back one read for update: if nothing else touched the key, it may change again.
    pub fn undo_get_for_update(&mut self, family: &FamilyHandle, key: impl AsRef<[u8]>) {
        let key = key.as_ref();
        let here = match self.save_points.last_mut() {
            Some(point) => point.touched.untrack_read(family, key) != UndoResult::NotTracked,
            None => true,
        };
        if here
            && self.tracked.untrack_read(family, key) == UndoResult::Removed
            && let TxnMode::Pessimistic(p) = &self.kind
        {
            p.unlock_key(family.id(), key);
        }
    }

    /// An iterator over `family` with this transaction's changes, as of `snapshot` or now.
    pub fn iter_opt(
        &self,
        family: &FamilyHandle,
        options: ReadOptions,
        snapshot: Option<&Snapshot>,
    ) -> MergedIterator {
        let base = self.db.iter_opt(family, options.clone(), snapshot);
        self.batch.iter_over(base, Some(family), Some(&options))
    }

    /// An iterator over the default family with this transaction's changes.
    pub fn iter(&self) -> MergedIterator {
        self.iter_opt(&self.default, ReadOptions::default(), None)
    }

    /// The records of its changes of one family, by key.
    pub fn changes(&self, family: &FamilyHandle) -> Result<Vec<BatchEntry>> {
        let mut cursor = self.batch.cursor(Some(family));
        let mut out = Vec::new();
        cursor.seek_to_first()?;
        while let Some(entry) = cursor.entry() {
            out.push(entry.clone());
            cursor.forward()?;
        }
        Ok(out)
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.clear();
        self.end();
    }
}
