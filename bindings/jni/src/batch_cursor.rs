//! Iterators over the records of an indexed batch.

use crate::batch::IndexedBatch;
use crate::boundary::{Env, Fault, Outcome, handles};
use crate::database::Family;
use crate::shared::ExclusiveValue;
use crate::slice::slice_of;
use crate::{disposals, natives};
use esker_status::Error;
use esker_txn::{BatchCursor, EntryKind};
use jni_sys::{jint, jlong, jobject};

/// A place in a batch.
struct Records {
    cursor: ExclusiveValue<(BatchCursor, Option<Error>)>,
}

impl Records {
    fn give(batch: jlong, family: jlong) -> Outcome<jlong> {
        let batch = handles::hold::<IndexedBatch>(batch)?;
        let family = handles::hold_if::<Family>(family)?;
        let cursor = batch.lock().cursor(family.as_ref().map(|f| &f.0));
        Ok(handles::give(Records {
            cursor: ExclusiveValue::new((cursor, None)),
        }))
    }
}

/// Moves, and keeps what went wrong for `status`.
fn step(records: jlong, how: impl FnOnce(&mut BatchCursor) -> esker::Result<()>) -> Outcome<()> {
    let held = handles::hold::<Records>(records)?;
    let mut at = held.cursor.lock();
    let outcome = how(&mut at.0);
    at.1 = outcome.err();
    Ok(())
}

macro_rules! moves {
    ($($method:ident: $($name:ident)|+;)*) => {$(natives! {
        fn $($name)|+(env, records: jlong) {
            step(records, BatchCursor::$method)
        }
    })*};
}

moves! {
    seek_to_first: Java_org_rocksdb_WBWIRocksIterator_seekToFirst0
        | Java_org_rocksdb_WBWIRocksIterator_seekToFirst0Jni;
    seek_to_last: Java_org_rocksdb_WBWIRocksIterator_seekToLast0
        | Java_org_rocksdb_WBWIRocksIterator_seekToLast0Jni;
    forward: Java_org_rocksdb_WBWIRocksIterator_next0
        | Java_org_rocksdb_WBWIRocksIterator_next0Jni;
    back: Java_org_rocksdb_WBWIRocksIterator_prev0
        | Java_org_rocksdb_WBWIRocksIterator_prev0Jni;
}

macro_rules! seeks {
    ($($method:ident: $($name:ident)|+ [$($part:ident)|+] [$($direct:ident)|+];)*) => {$(natives! {
        fn $($name)|+(env, records: jlong, target: jobject, n: jint) {
            let target = env.region(target, 0, n)?;
            step(records, |c| c.$method(&target))
        }

        fn $($part)|+(env, records: jlong, target: jobject, at: jint, n: jint) {
            let target = env.region(target, at, n)?;
            step(records, |c| c.$method(&target))
        }

        fn $($direct)|+(env, records: jlong, target: jobject, at: jint, n: jint) {
            let target = env.direct(target, at, n)?;
            step(records, |c| c.$method(target))
        }
    })*};
}

seeks! {
    seek: Java_org_rocksdb_WBWIRocksIterator_seek0 | Java_org_rocksdb_WBWIRocksIterator_seek0Jni
        [Java_org_rocksdb_WBWIRocksIterator_seekByteArray0
            | Java_org_rocksdb_WBWIRocksIterator_seekByteArray0Jni]
        [Java_org_rocksdb_WBWIRocksIterator_seekDirect0
            | Java_org_rocksdb_WBWIRocksIterator_seekDirect0Jni];
    seek_for_prev: Java_org_rocksdb_WBWIRocksIterator_seekForPrev0
        | Java_org_rocksdb_WBWIRocksIterator_seekForPrev0Jni
        [Java_org_rocksdb_WBWIRocksIterator_seekForPrevByteArray0
            | Java_org_rocksdb_WBWIRocksIterator_seekForPrevByteArray0Jni]
        [Java_org_rocksdb_WBWIRocksIterator_seekForPrevDirect0
            | Java_org_rocksdb_WBWIRocksIterator_seekForPrevDirect0Jni];
}

/// The kind, and slices with key and value, which Java closes.
fn entry(env: Env<'_>, records: jlong) -> Outcome<jobject> {
    let held = handles::hold::<Records>(records)?;
    let at = held.cursor.lock();
    let Some(entry) = at.0.entry() else {
        return Err(Fault::Message(
            "the iterator does not stand at a record".to_owned(),
        ));
    };
    let (kind, has_value) = match entry.kind {
        EntryKind::Put => (0, true),
        EntryKind::Merge => (1, true),
        EntryKind::Delete => (2, false),
        EntryKind::SingleDelete => (3, false),
        EntryKind::PutEntity => {
            let text = "the record is an entity, which Java has no type for";
            return Err(Error::not_supported(text).into());
        }
    };
    let key = slice_of(Some(&entry.key));
    let value = slice_of(has_value.then_some(&entry.value[..]));
    env.new_longs(&[kind, key, value])
}

natives! {
    fn Java_org_rocksdb_WriteBatchWithIndex_iterator0(env, batch: jlong) -> jlong {
        Records::give(batch, 0)
    }

    fn Java_org_rocksdb_WriteBatchWithIndex_iterator1(
        env, batch: jlong, family: jlong
    ) -> jlong {
        Records::give(batch, family)
    }

    fn Java_org_rocksdb_WBWIRocksIterator_isValid0
        | Java_org_rocksdb_WBWIRocksIterator_isValid0Jni(env, records: jlong) -> bool {
        Ok(handles::hold::<Records>(records)?.cursor.lock().0.entry().is_some())
    }

    fn Java_org_rocksdb_WBWIRocksIterator_status0
        | Java_org_rocksdb_WBWIRocksIterator_status0Jni(env, records: jlong) {
        match &handles::hold::<Records>(records)?.cursor.lock().1 {
            Some(error) => Err(error.clone().into()),
            None => Ok(()),
        }
    }

    fn Java_org_rocksdb_WBWIRocksIterator_refresh0
        | Java_org_rocksdb_WBWIRocksIterator_refresh0Jni(env, records: jlong) {
        handles::hold::<Records>(records)?;
        Err(Error::not_supported("Refresh() is not supported").into())
    }

    fn Java_org_rocksdb_WBWIRocksIterator_refresh1(env, records: jlong, _snapshot: jlong) {
        handles::hold::<Records>(records)?;
        Err(Error::not_supported("Refresh() is not supported").into())
    }

    fn Java_org_rocksdb_WBWIRocksIterator_entry1(env, records: jlong) -> jobject {
        entry(env, records)
    }
}

disposals! {
    Records: Java_org_rocksdb_WBWIRocksIterator_disposeInternal
        | Java_org_rocksdb_WBWIRocksIterator_disposeInternalJni;
}
