//! Write batches, plain and indexed, and what walks them.

use crate::boundary::{Outcome, handles, upcall::Target};
use crate::call_options::ReadState;
use crate::database::{Database, Family};
use crate::iterator::{Iter, Walk};
use crate::shared::{ExclusiveValue, dispose, value};
use crate::{disposals, natives};
use esker::{FamilyId, KeyOrder, ReadOptions, WriteBatch};
use esker_format::batch::Record;
use esker_sync::MutexGuard;
use esker_sync::atomic::{AtomicI64, Ordering};
use esker_txn::IndexedBatch as Index;
use jni_sys::{jbyte, jint, jlong, jobject, jvalue};
use std::ptr;

/// A plain batch.
pub(crate) struct Plain {
    pub(crate) batch: WriteBatch,
}

/// A plain batch that one call at a time may use.
pub(crate) type Batch = ExclusiveValue<Plain>;

/// A batch that can be read, by one call at a time.
pub(crate) struct IndexedBatch {
    index: ExclusiveValue<Index>,
    /// The plain batch that was lent of it, which goes with it; 0 when nobody asked for one.
    lent: AtomicI64,
}

impl IndexedBatch {
    pub(crate) fn new(index: Index) -> Self {
        IndexedBatch {
            index: ExclusiveValue::new(index),
            lent: AtomicI64::new(0),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Index> {
        self.index.lock()
    }

    /// The handle of a plain batch with what is in this one now: the same one for each call.
    fn lend(&self) -> jlong {
        let plain = self.lock().to_batch();
        let known = self.lent.load(Ordering::Relaxed);
        if let Some(lent) = handles::find::<Batch>(known) {
            lent.lock().batch = plain;
            return known;
        }
        let made = handles::give(Batch::new(Plain { batch: plain }));
        handles::take(self.lent.swap(made, Ordering::Relaxed));
        made
    }
}

impl Drop for IndexedBatch {
    fn drop(&mut self) {
        handles::take(*self.lent.get_mut());
    }
}

/// The change that a write of one key or range makes.
pub(crate) enum Change<'a> {
    Put(&'a [u8], &'a [u8]),
    Merge(&'a [u8], &'a [u8]),
    Delete(&'a [u8]),
    SingleDelete(&'a [u8]),
    DeleteRange(&'a [u8], &'a [u8]),
}

fn add(batch: jlong, family: jlong, change: &Change<'_>) -> Outcome<()> {
    let batch = handles::hold::<Batch>(batch)?;
    let family = match handles::hold_if::<Family>(family)? {
        Some(family) => FamilyId(family.0.id()),
        None => FamilyId::DEFAULT,
    };
    let mut batch = batch.lock();
    let batch = &mut batch.batch;
    Ok(match *change {
        Change::Put(key, value) => batch.put_cf(family, key, value),
        Change::Merge(key, value) => batch.merge_cf(family, key, value),
        Change::Delete(key) => batch.delete_cf(family, key),
        Change::SingleDelete(key) => batch.single_delete_cf(family, key),
        Change::DeleteRange(begin, end) => batch.delete_range_cf(family, begin, end),
    }?)
}

fn add_indexed(batch: jlong, family: jlong, change: &Change<'_>) -> Outcome<()> {
    let batch = handles::hold::<IndexedBatch>(batch)?;
    let family = handles::hold_if::<Family>(family)?;
    let family = family.as_ref().map(|f| &f.0);
    let batch = batch.lock();
    Ok(match *change {
        Change::Put(key, value) => batch.put_parts(family, &[key], &[value]),
        Change::Merge(key, value) => batch.merge_parts(family, &[key], &[value]),
        Change::Delete(key) => batch.delete_parts(family, &[key]),
        Change::SingleDelete(key) => batch.single_delete_parts(family, &[key]),
        Change::DeleteRange(begin, end) => batch.delete_range(begin, end),
    }?)
}

/// Methods that add a key and a value.
macro_rules! two {
    ($($add:ident $change:ident: $($plain:ident)|+, $($named:ident)|+;)*) => {$(natives! {
        fn $($plain)|+(env, batch: jlong, key: jobject, n: jint, value: jobject, m: jint) {
            let (key, value) = (env.region(key, 0, n)?, env.region(value, 0, m)?);
            $add(batch, 0, &Change::$change(&key, &value))
        }

        fn $($named)|+(
            env, batch: jlong, key: jobject, n: jint, value: jobject, m: jint, family: jlong
        ) {
            let (key, value) = (env.region(key, 0, n)?, env.region(value, 0, m)?);
            $add(batch, family, &Change::$change(&key, &value))
        }
    })*};
}

/// Methods that add a key.
macro_rules! one {
    ($($add:ident $change:ident: $($plain:ident)|+, $($named:ident)|+;)*) => {$(natives! {
        fn $($plain)|+(env, batch: jlong, key: jobject, n: jint) {
            let key = env.region(key, 0, n)?;
            $add(batch, 0, &Change::$change(&key))
        }

        fn $($named)|+(env, batch: jlong, key: jobject, n: jint, family: jlong) {
            let key = env.region(key, 0, n)?;
            $add(batch, family, &Change::$change(&key))
        }
    })*};
}

two! {
    add Put: Java_org_rocksdb_WriteBatch_put__J_3BI_3BI
        | Java_org_rocksdb_WriteBatch_putJni__J_3BI_3BI,
        Java_org_rocksdb_WriteBatch_put__J_3BI_3BIJ
        | Java_org_rocksdb_WriteBatch_putJni__J_3BI_3BIJ;
    add Merge: Java_org_rocksdb_WriteBatch_merge__J_3BI_3BI
        | Java_org_rocksdb_WriteBatch_mergeJni__J_3BI_3BI,
        Java_org_rocksdb_WriteBatch_merge__J_3BI_3BIJ
        | Java_org_rocksdb_WriteBatch_mergeJni__J_3BI_3BIJ;
    add DeleteRange: Java_org_rocksdb_WriteBatch_deleteRange__J_3BI_3BI
        | Java_org_rocksdb_WriteBatch_deleteRangeJni__J_3BI_3BI,
        Java_org_rocksdb_WriteBatch_deleteRange__J_3BI_3BIJ
        | Java_org_rocksdb_WriteBatch_deleteRangeJni__J_3BI_3BIJ;
    add_indexed Put: Java_org_rocksdb_WriteBatchWithIndex_put__J_3BI_3BI
        | Java_org_rocksdb_WriteBatchWithIndex_putJni__J_3BI_3BI,
        Java_org_rocksdb_WriteBatchWithIndex_put__J_3BI_3BIJ
        | Java_org_rocksdb_WriteBatchWithIndex_putJni__J_3BI_3BIJ;
    add_indexed Merge: Java_org_rocksdb_WriteBatchWithIndex_merge__J_3BI_3BI
        | Java_org_rocksdb_WriteBatchWithIndex_mergeJni__J_3BI_3BI,
        Java_org_rocksdb_WriteBatchWithIndex_merge__J_3BI_3BIJ
        | Java_org_rocksdb_WriteBatchWithIndex_mergeJni__J_3BI_3BIJ;
    add_indexed DeleteRange: Java_org_rocksdb_WriteBatchWithIndex_deleteRange__J_3BI_3BI
        | Java_org_rocksdb_WriteBatchWithIndex_deleteRangeJni__J_3BI_3BI,
        Java_org_rocksdb_WriteBatchWithIndex_deleteRange__J_3BI_3BIJ
        | Java_org_rocksdb_WriteBatchWithIndex_deleteRangeJni__J_3BI_3BIJ;
}

one! {
    add Delete: Java_org_rocksdb_WriteBatch_delete__J_3BI
        | Java_org_rocksdb_WriteBatch_deleteJni__J_3BI,
        Java_org_rocksdb_WriteBatch_delete__J_3BIJ
        | Java_org_rocksdb_WriteBatch_deleteJni__J_3BIJ;
    add SingleDelete: Java_org_rocksdb_WriteBatch_singleDelete__J_3BI
        | Java_org_rocksdb_WriteBatch_singleDeleteJni__J_3BI,
        Java_org_rocksdb_WriteBatch_singleDelete__J_3BIJ
        | Java_org_rocksdb_WriteBatch_singleDeleteJni__J_3BIJ;
    add_indexed Delete: Java_org_rocksdb_WriteBatchWithIndex_delete__J_3BI
        | Java_org_rocksdb_WriteBatchWithIndex_deleteJni__J_3BI,
        Java_org_rocksdb_WriteBatchWithIndex_delete__J_3BIJ
        | Java_org_rocksdb_WriteBatchWithIndex_deleteJni__J_3BIJ;
    add_indexed SingleDelete: Java_org_rocksdb_WriteBatchWithIndex_singleDelete__J_3BI
        | Java_org_rocksdb_WriteBatchWithIndex_singleDeleteJni__J_3BI,
        Java_org_rocksdb_WriteBatchWithIndex_singleDelete__J_3BIJ
        | Java_org_rocksdb_WriteBatchWithIndex_singleDeleteJni__J_3BIJ;
}

/// Methods that both kinds of batches have under the same names.
macro_rules! on_plain {
    ($($(($ret:ty))? |$batch:ident| $body:expr; $($name:ident)|+;)*) => {$(natives! {
        fn $($name)|+(env, batch: jlong) $(-> $ret)? {
            let held = handles::hold::<Batch>(batch)?;
            let mut guard = held.lock();
            let $batch = &mut guard.batch;
            $body
        }
    })*};
}

macro_rules! on_indexed {
    ($($(($ret:ty))? |$batch:ident| $body:expr; $($name:ident)|+;)*) => {$(natives! {
        fn $($name)|+(env, batch: jlong) $(-> $ret)? {
            let held = handles::hold::<IndexedBatch>(batch)?;
            let guard = held.lock();
            let $batch = &*guard;
            $body
        }
    })*};
}

on_plain! {
    (jint) |b| Ok(b.count() as jint);
        Java_org_rocksdb_WriteBatch_count0 | Java_org_rocksdb_WriteBatch_count0Jni;
    |b| { b.clear(); Ok(()) };
        Java_org_rocksdb_WriteBatch_clear0 | Java_org_rocksdb_WriteBatch_clear0Jni;
    |b| { b.set_save_point(); Ok(()) };
        Java_org_rocksdb_WriteBatch_setSavePoint0 | Java_org_rocksdb_WriteBatch_setSavePoint0Jni;
    |b| Ok(b.rollback_to_save_point()?);
        Java_org_rocksdb_WriteBatch_rollbackToSavePoint0
        | Java_org_rocksdb_WriteBatch_rollbackToSavePoint0Jni;
    |b| Ok(b.pop_save_point()?);
        Java_org_rocksdb_WriteBatch_popSavePoint | Java_org_rocksdb_WriteBatch_popSavePointJni;
    |b| { b.mark_wal_termination_point(); Ok(()) };
        Java_org_rocksdb_WriteBatch_markWalTerminationPoint;
    (jlong) |b| Ok(b.data_size() as jlong); Java_org_rocksdb_WriteBatch_getDataSize;
    (bool) |b| Ok(b.has_put()); Java_org_rocksdb_WriteBatch_hasPut;
    (bool) |b| Ok(b.has_delete()); Java_org_rocksdb_WriteBatch_hasDelete;
    (bool) |b| Ok(b.has_single_delete()); Java_org_rocksdb_WriteBatch_hasSingleDelete;
    (bool) |b| Ok(b.has_delete_range()); Java_org_rocksdb_WriteBatch_hasDeleteRange;
    (bool) |b| Ok(b.has_merge()); Java_org_rocksdb_WriteBatch_hasMerge;
    (bool) |b| Ok(b.has_begin_prepare()); Java_org_rocksdb_WriteBatch_hasBeginPrepare;
    (bool) |b| Ok(b.has_end_prepare()); Java_org_rocksdb_WriteBatch_hasEndPrepare;
    (bool) |b| Ok(b.has_commit()); Java_org_rocksdb_WriteBatch_hasCommit;
    (bool) |b| Ok(b.has_rollback()); Java_org_rocksdb_WriteBatch_hasRollback;
}

on_indexed! {
    (jint) |b| Ok(b.count() as jint);
        Java_org_rocksdb_WriteBatchWithIndex_count0
        | Java_org_rocksdb_WriteBatchWithIndex_count0Jni;
    |b| { b.clear(); Ok(()) };
        Java_org_rocksdb_WriteBatchWithIndex_clear0
        | Java_org_rocksdb_WriteBatchWithIndex_clear0Jni;
    |b| { b.set_save_point(); Ok(()) };
        Java_org_rocksdb_WriteBatchWithIndex_setSavePoint0
        | Java_org_rocksdb_WriteBatchWithIndex_setSavePoint0Jni;
    |b| Ok(b.rollback_to_save_point()?);
        Java_org_rocksdb_WriteBatchWithIndex_rollbackToSavePoint0
        | Java_org_rocksdb_WriteBatchWithIndex_rollbackToSavePoint0Jni;
    |b| Ok(b.pop_save_point()?);
        Java_org_rocksdb_WriteBatchWithIndex_popSavePoint
        | Java_org_rocksdb_WriteBatchWithIndex_popSavePointJni;
}

natives! {
    fn Java_org_rocksdb_WriteBatch_newWriteBatch__I(env, reserved: jint) -> jlong {
        let reserved = usize::try_from(reserved).unwrap_or(0);
        Ok(handles::give(Batch::new(Plain { batch: WriteBatch::with_capacity(reserved) })))
    }

    fn Java_org_rocksdb_WriteBatch_newWriteBatch___3BI(env, data: jobject, n: jint) -> jlong {
        let batch = WriteBatch::from_bytes(env.region(data, 0, n)?.to_vec())?;
        Ok(handles::give(Batch::new(Plain { batch })))
    }

    fn Java_org_rocksdb_WriteBatch_data(env, batch: jlong) -> jobject {
        env.new_array(handles::hold::<Batch>(batch)?.lock().batch.data())
    }

    fn Java_org_rocksdb_WriteBatch_putLogData | Java_org_rocksdb_WriteBatch_putLogDataJni(
        env, batch: jlong, data: jobject, n: jint
    ) {
        let data = env.region(data, 0, n)?;
        Ok(handles::hold::<Batch>(batch)?.lock().batch.log_data(&data)?)
    }

    fn Java_org_rocksdb_WriteBatch_setMaxBytes | Java_org_rocksdb_WriteBatch_setMaxBytesJni(
        env, batch: jlong, bytes: jlong
    ) {
        handles::hold::<Batch>(batch)?.lock().batch.set_max_bytes(bytes as usize);
        Ok(())
    }

    fn Java_org_rocksdb_WriteBatch_putDirect | Java_org_rocksdb_WriteBatch_putDirectJni(
        env, batch: jlong, key: jobject, at: jint, n: jint, value: jobject, from: jint, m: jint,
        family: jlong
    ) {
        let (key, value) = (env.direct(key, at, n)?, env.direct(value, from, m)?);
        add(batch, family, &Change::Put(key, value))
    }

    fn Java_org_rocksdb_WriteBatch_deleteDirect | Java_org_rocksdb_WriteBatch_deleteDirectJni
        | Java_org_rocksdb_WriteBatch_removeDirect(
        env, batch: jlong, key: jobject, at: jint, n: jint, family: jlong
    ) {
        add(batch, family, &Change::Delete(env.direct(key, at, n)?))
    }

    fn Java_org_rocksdb_WriteBatch_getWalTerminationPoint(env, batch: jlong) -> jobject {
        let mark = handles::hold::<Batch>(batch)?.lock().batch.wal_mark();
        let arguments = [
            jvalue { j: mark.len() as jlong },
            jvalue { j: jlong::from(mark.count()) },
            jvalue { j: 0 },
        ];
        env.construct("org/rocksdb/WriteBatch$SavePoint", "(JJJ)V", &arguments)
    }

    fn Java_org_rocksdb_WriteBatch_iterate(env, batch: jlong, handler: jlong) {
        let handler = handles::hold::<Handler>(handler)?;
        // The handler may use the batch: it walks a copy.
        let batch = handles::hold::<Batch>(batch)?.lock().batch.clone();
        handler.walk(&batch)
    }

    fn Java_org_rocksdb_WriteBatch_00024Handler_createNewHandler0(env) -> jlong {
        Ok(handles::give(Handler(Target::new(env, env.this())?)))
    }

    fn Java_org_rocksdb_WriteBatchWithIndex_newWriteBatchWithIndex__(env) -> jlong {
        Ok(handles::give(IndexedBatch::new(Index::new(false))))
    }

    fn Java_org_rocksdb_WriteBatchWithIndex_newWriteBatchWithIndex__Z(
        env, overwrites: bool
    ) -> jlong {
        Ok(handles::give(IndexedBatch::new(Index::new(overwrites))))
    }

    fn Java_org_rocksdb_WriteBatchWithIndex_newWriteBatchWithIndex__JBIZ(
        env, comparator: jlong, _kind: jbyte, reserved: jint, overwrites: bool
    ) -> jlong {
        let order = match comparator {
            0 => KeyOrder::Bytewise,
            comparator => crate::filters::order(comparator)?,
        };
        let reserved = usize::try_from(reserved).unwrap_or(0).min(1 << 30);
        let batch = Index::with_order(overwrites, order, reserved);
        Ok(handles::give(IndexedBatch::new(batch)))
    }

    fn Java_org_rocksdb_WriteBatchWithIndex_putLogData
        | Java_org_rocksdb_WriteBatchWithIndex_putLogDataJni(
        env, batch: jlong, data: jobject, n: jint
    ) {
        let data = env.region(data, 0, n)?;
        Ok(handles::hold::<IndexedBatch>(batch)?.lock().log_data(&data)?)
    }

    fn Java_org_rocksdb_WriteBatchWithIndex_setMaxBytes
        | Java_org_rocksdb_WriteBatchWithIndex_setMaxBytesJni(env, batch: jlong, bytes: jlong) {
        handles::hold::<IndexedBatch>(batch)?.lock().set_max_bytes(bytes as usize);
        Ok(())
    }

    fn Java_org_rocksdb_WriteBatchWithIndex_putDirect
        | Java_org_rocksdb_WriteBatchWithIndex_putDirectJni(
        env, batch: jlong, key: jobject, at: jint, n: jint, value: jobject, from: jint, m: jint,
        family: jlong
    ) {
        let (key, value) = (env.direct(key, at, n)?, env.direct(value, from, m)?);
        add_indexed(batch, family, &Change::Put(key, value))
    }

    fn Java_org_rocksdb_WriteBatchWithIndex_deleteDirect
        | Java_org_rocksdb_WriteBatchWithIndex_deleteDirectJni
        | Java_org_rocksdb_WriteBatchWithIndex_removeDirect(
        env, batch: jlong, key: jobject, at: jint, n: jint, family: jlong
    ) {
        add_indexed(batch, family, &Change::Delete(env.direct(key, at, n)?))
    }

    fn Java_org_rocksdb_WriteBatchWithIndex_getFromBatch__JJ_3BI(
        env, batch: jlong, _options: jlong, key: jobject, n: jint
    ) -> jobject {
        let key = env.region(key, 0, n)?;
        let found = handles::hold::<IndexedBatch>(batch)?.lock().get(&key)?;
        found.map_or(Ok(ptr::null_mut()), |value| env.new_array(&value))
    }

    fn Java_org_rocksdb_WriteBatchWithIndex_getFromBatch__JJ_3BIJ(
        env, batch: jlong, _options: jlong, key: jobject, n: jint, family: jlong
    ) -> jobject {
        let key = env.region(key, 0, n)?;
        let family = handles::hold::<Family>(family)?;
        let found = handles::hold::<IndexedBatch>(batch)?.lock().get_cf(&family.0, &key)?;
        found.map_or(Ok(ptr::null_mut()), |value| env.new_array(&value))
    }

    fn Java_org_rocksdb_WriteBatchWithIndex_getFromBatchAndDB__JJJ_3BI(
        env, batch: jlong, db: jlong, options: jlong, key: jobject, n: jint
    ) -> jobject {
        let key = env.region(key, 0, n)?;
        let found = get_over(batch, db, options, &key, 0)?;
        found.map_or(Ok(ptr::null_mut()), |value| env.new_array(&value))
    }

    fn Java_org_rocksdb_WriteBatchWithIndex_getFromBatchAndDB__JJJ_3BIJ(
        env, batch: jlong, db: jlong, options: jlong, key: jobject, n: jint, family: jlong
    ) -> jobject {
        let key = env.region(key, 0, n)?;
        let found = get_over(batch, db, options, &key, family)?;
        found.map_or(Ok(ptr::null_mut()), |value| env.new_array(&value))
    }

    /// The base iterator is given away, as Java's side expects.
    fn Java_org_rocksdb_WriteBatchWithIndex_iteratorWithBase(
        env, batch: jlong, family: jlong, base: jlong, options: jlong
    ) -> jlong {
        let batch = handles::hold::<IndexedBatch>(batch)?;
        let held = handles::hold::<Iter>(base)?;
        let owner = held.owner();
        let database = handles::hold::<Database>(owner)?;
        let walk = std::mem::replace(&mut *held.lock(), Walk::Gone);
        let Walk::Base(walk) = walk else {
            return Err(esker::Error::invalid_argument("the base iterator was given away").into());
        };
        handles::take(base);
        let options = match options {
            0 => ReadOptions::default(),
            options => ReadOptions::clone(&value::<ReadState>(options)?.read),
        };
        database.with_family(family, |_, family| {
            let merged = batch.lock().iter_over(walk, Some(family), Some(&options));
            Ok(handles::give_owned(Iter::new(Walk::Merged(Box::new(merged))), owner))
        })
    }
}

fn get_over(
    batch: jlong,
    db: jlong,
    options: jlong,
    key: &[u8],
    family: jlong,
) -> Outcome<Option<esker::PinnedValue>> {
    let batch = handles::hold::<IndexedBatch>(batch)?;
    let database = handles::hold::<Database>(db)?;
    let state = value::<ReadState>(options)?;
    database.with_family(family, |db, family| {
        let snapshot = state.snapshot.as_ref();
        Ok(batch
            .lock()
            .get_over(db, family, key, &state.read, snapshot)?)
    })
}

/// A `WriteBatch.Handler`, which is told the records of a batch.
pub(crate) struct Handler(Target);

impl Handler {
    fn walk(&self, batch: &WriteBatch) -> Outcome<()> {
        for record in batch.records() {
            let goes_on = self.0.calling(|env, handler| {
                let class = env.class_of(handler)?;
                let go_on = env.method(class, "shouldContinue", "()Z")?;
                if !env.call_bool(handler, go_on, &[])? {
                    return Ok(false);
                }
                tell(env, handler, class, &record?)?;
                Ok(true)
            })?;
            if !goes_on {
                break;
            }
        }
        Ok(())
    }
}

/// Tells one record.
fn tell(
    env: crate::boundary::Env<'_>,
    handler: jobject,
    class: jobject,
    record: &Record<'_>,
) -> Outcome<()> {
    let call = |name: &str, family: Option<FamilyId>, parts: &[&[u8]]| {
        let arrays = "[B".repeat(parts.len());
        let mut arguments = Vec::new();
        let descriptor = match family {
            Some(family) => {
                arguments.push(jvalue {
                    i: family.0 as jint,
                });
                format!("(I{arrays})V")
            }
            None => format!("({arrays})V"),
        };
        for part in parts {
            arguments.push(jvalue {
                l: env.new_array(part)?,
            });
        }
        let method = env.method(class, name, &descriptor)?;
        env.call_void(handler, method, &arguments)
    };
    match *record {
        Record::Put { family, key, value } => call("put", Some(family), &[key, value]),
        Record::Merge {
            family,
            key,
            operand,
        } => call("merge", Some(family), &[key, operand]),
        Record::Delete { family, key } => call("delete", Some(family), &[key]),
        Record::SingleDelete { family, key } => call("singleDelete", Some(family), &[key]),
        Record::DeleteRange { family, begin, end } => {
            call("deleteRange", Some(family), &[begin, end])
        }
        Record::BlobIndex { family, key, index } => {
            let method = env.method(class, "putBlobIndex", "(I[B[B)V")?;
            let arguments = [
                jvalue {
                    i: family.0 as jint,
                },
                jvalue {
                    l: env.new_array(key)?,
                },
                jvalue {
                    l: env.new_array(index)?,
                },
            ];
            env.call_void(handler, method, &arguments)
        }
        Record::LogData(data) => call("logData", None, &[data]),
        Record::BeginPrepare(_) => call("markBeginPrepare", None, &[]),
        Record::EndPrepare { xid } => call("markEndPrepare", None, &[xid]),
        Record::Commit { xid } => call("markCommit", None, &[xid]),
        Record::Rollback { xid } => call("markRollback", None, &[xid]),
        Record::Noop => {
            let method = env.method(class, "markNoop", "(Z)V")?;
            env.call_void(handler, method, &[jvalue { z: false }])
        }
        _ => Err(esker::Error::not_supported(
            "the batch has a record that a Java handler has no method for",
        )
        .into()),
    }
}

natives! {
    /// A copy as of now, which goes with the indexed batch; the next call renews it.
    fn Java_org_rocksdb_WriteBatchWithIndex_getWriteBatch
        | Java_org_rocksdb_WriteBatchWithIndex_getWriteBatchJni(env, batch: jlong) -> jobject {
        let lent = handles::hold::<IndexedBatch>(batch)?.lend();
        env.construct("org/rocksdb/WriteBatch", "(J)V", &[jvalue { j: lent }])
    }

    fn Java_org_rocksdb_WriteBatchWithIndex_disposeInternal
        | Java_org_rocksdb_WriteBatchWithIndex_disposeInternalJni(env, batch: jlong) {
        dispose::<IndexedBatch>(batch)
    }
}

disposals! {
    Batch: Java_org_rocksdb_WriteBatch_disposeInternal
        | Java_org_rocksdb_WriteBatch_disposeInternalJni;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_batch_of_a_transaction_takes_what_was_lent_of_it_with_it() {
        let batch = handles::give(IndexedBatch::new(Index::new(true)));
        let held = handles::hold::<IndexedBatch>(batch).expect("open");
        held.lock().put(b"key", b"value").expect("room");
        let lent = held.lend();
        assert_eq!(held.lend(), lent);
        drop(held);
        let plain = handles::hold::<Batch>(lent).expect("open");
        assert_eq!(plain.lock().batch.count(), 1);
        // A transaction that goes closes its batch by handle.
        assert!(handles::take(batch));
        assert!(handles::find::<Batch>(lent).is_none());
    }
}
