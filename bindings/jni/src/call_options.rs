//! Options of single calls: reads, writes, flushes, compactions of a range, ingestions. Plain
//! fields are generated.

use crate::boundary::handles;
use crate::shared::{SharedValue, change, give, value};
use crate::slice::bound;
use crate::snapshot::SharedSnapshot;
use crate::{disposals, natives};
use esker::options::BottommostLevelCompaction;
use esker::{
    CompactRangeOptions, FlushOptions, IngestOptions, ReadOptions, Snapshot, WriteOptions,
};
use esker_sync::Arc;
use esker_sync::atomic::Ordering;
use jni_sys::{jint, jlong, jobject, jvalue};
use std::ptr;

/// How to read.
#[derive(Clone, Default)]
pub(crate) struct ReadState {
    pub(crate) read: CopyOnWrite,
    pub(crate) snapshot: Option<Snapshot>,
    /// The handle that the snapshot came by, which its getter tells.
    snapshot_handle: jlong,
    pub(crate) managed: bool,
    pub(crate) io_timeout: u64,
}

/// How to flush.
#[derive(Clone, Default)]
pub(crate) struct FlushState {
    pub(crate) flush: FlushOptions,
    /// A flush that waits returns after its listeners were told in any case.
    pub(crate) listener_wait: bool,
}

/// Options that iterators share with the handle they were made with, until the handle is changed.
#[derive(Clone, Default)]
pub(crate) struct CopyOnWrite(pub(crate) Arc<ReadOptions>);

impl std::ops::Deref for CopyOnWrite {
    type Target = ReadOptions;
    fn deref(&self) -> &ReadOptions {
        &self.0
    }
}

impl std::ops::DerefMut for CopyOnWrite {
    fn deref_mut(&mut self) -> &mut ReadOptions {
        Arc::make_mut(&mut self.0)
    }
}

natives! {
    fn Java_org_rocksdb_ReadOptions_newReadOptions__(env) -> jlong {
        Ok(give(ReadState::default()))
    }

    fn Java_org_rocksdb_ReadOptions_newReadOptions__ZZ(env, checks: bool, fill: bool) -> jlong {
        let mut state = ReadState::default();
        state.read.verify_checksums = checks;
        state.read.fill_cache = fill;
        Ok(give(state))
    }

    fn Java_org_rocksdb_ReadOptions_copyReadOptions(env, from: jlong) -> jlong {
        Ok(give(ReadState::clone(&*value::<ReadState>(from)?)))
    }

    fn Java_org_rocksdb_ReadOptions_setSnapshot(env, options: jlong, snapshot: jlong) {
        let moment = handles::hold_if::<SharedSnapshot>(snapshot)?.map(|m| m.0.clone());
        change::<ReadState>(options, |o| {
            o.snapshot = moment;
            o.snapshot_handle = snapshot;
        })
    }

    fn Java_org_rocksdb_ReadOptions_snapshot(env, options: jlong) -> jlong {
        Ok(value::<ReadState>(options)?.snapshot_handle)
    }

    fn Java_org_rocksdb_ReadOptions_setIterateLowerBound(env, options: jlong, slice: jlong) {
        let at = bound(slice)?;
        change::<ReadState>(options, |o| o.read.iterate_lower_bound = at)
    }

    fn Java_org_rocksdb_ReadOptions_setIterateUpperBound(env, options: jlong, slice: jlong) {
        let at = bound(slice)?;
        change::<ReadState>(options, |o| o.read.iterate_upper_bound = at)
    }

    fn Java_org_rocksdb_ReadOptions_setTimestamp(env, options: jlong, slice: jlong) {
        let at = bound(slice)?;
        change::<ReadState>(options, |o| o.read.timestamp = at)
    }

    fn Java_org_rocksdb_ReadOptions_setIterStartTs(env, options: jlong, slice: jlong) {
        let at = bound(slice)?;
        change::<ReadState>(options, |o| o.read.iter_start_ts = at)
    }

    fn Java_org_rocksdb_ReadOptions_iterateLowerBound(env, options: jlong) -> jlong {
        Ok(crate::slice::slice_of(value::<ReadState>(options)?.read.iterate_lower_bound.as_deref()))
    }

    fn Java_org_rocksdb_ReadOptions_iterateUpperBound(env, options: jlong) -> jlong {
        Ok(crate::slice::slice_of(value::<ReadState>(options)?.read.iterate_upper_bound.as_deref()))
    }

    fn Java_org_rocksdb_ReadOptions_timestamp(env, options: jlong) -> jlong {
        Ok(crate::slice::slice_of(value::<ReadState>(options)?.read.timestamp.as_deref()))
    }

    fn Java_org_rocksdb_ReadOptions_iterStartTs(env, options: jlong) -> jlong {
        Ok(crate::slice::slice_of(value::<ReadState>(options)?.read.iter_start_ts.as_deref()))
    }

    fn Java_org_rocksdb_WriteOptions_newWriteOptions(env) -> jlong {
        Ok(give(WriteOptions::default()))
    }

    fn Java_org_rocksdb_WriteOptions_copyWriteOptions(env, from: jlong) -> jlong {
        Ok(give(**value::<WriteOptions>(from)?))
    }

    fn Java_org_rocksdb_FlushOptions_newFlushOptions(env) -> jlong {
        Ok(give(FlushState::default()))
    }

    fn Java_org_rocksdb_CompactRangeOptions_newCompactRangeOptions(env) -> jlong {
        let mut options = CompactRangeOptions::default();
        options.canceled = Some(Arc::default());
        Ok(give(options))
    }

    /// For the calls that run with the options too.
    fn Java_org_rocksdb_CompactRangeOptions_setCanceled(env, o: jlong, yes: bool) {
        if let Some(canceled) = &value::<CompactRangeOptions>(o)?.canceled {
            canceled.store(yes, Ordering::Release);
        }
        Ok(())
    }

    fn Java_org_rocksdb_CompactRangeOptions_canceled(env, o: jlong) -> bool {
        let options = value::<CompactRangeOptions>(o)?;
        Ok(options.canceled.as_ref().is_some_and(|c| c.load(Ordering::Acquire)))
    }

    fn Java_org_rocksdb_CompactRangeOptions_bottommostLevelCompaction(env, o: jlong) -> jint {
        Ok(jint::from(value::<CompactRangeOptions>(o)?.bottommost_level_compaction.number()))
    }

    fn Java_org_rocksdb_CompactRangeOptions_setBottommostLevelCompaction(env, o: jlong, n: jint) {
        let how = u8::try_from(n).ok().and_then(BottommostLevelCompaction::from_number);
        change::<CompactRangeOptions>(o, |o| {
            if let Some(how) = how {
                o.bottommost_level_compaction = how;
            }
        })
    }

    /// A timestamp of 16 bytes, as RocksDB's library makes it.
    fn Java_org_rocksdb_CompactRangeOptions_setFullHistoryTSLow(
        env, o: jlong, start: jlong, range: jlong
    ) {
        let low = [start.to_le_bytes(), range.to_le_bytes()].concat();
        change::<CompactRangeOptions>(o, |o| o.full_history_ts_low = Some(low))
    }

    fn Java_org_rocksdb_CompactRangeOptions_fullHistoryTSLow(env, o: jlong) -> jobject {
        let options = value::<CompactRangeOptions>(o)?;
        let low = options.full_history_ts_low.as_deref().map(<[u8]>::as_chunks::<8>);
        let Some((&[start, range], [])) = low else {
            return Ok(ptr::null_mut());
        };
        let arguments = [start, range].map(|n| jvalue { j: jlong::from_le_bytes(n) });
        env.construct("org/rocksdb/CompactRangeOptions$Timestamp", "(JJ)V", &arguments)
    }

    fn Java_org_rocksdb_IngestExternalFileOptions_newIngestExternalFileOptions__(env) -> jlong {
        Ok(give(IngestOptions::default()))
    }

    fn Java_org_rocksdb_IngestExternalFileOptions_newIngestExternalFileOptions__ZZZZ(
        env, move_files: bool, consistent: bool, global: bool, flush: bool
    ) -> jlong {
        let mut options = IngestOptions::default();
        options.move_files = move_files;
        options.snapshot_consistency = consistent;
        options.allow_global_seqno = global;
        options.allow_blocking_flush = flush;
        Ok(give(options))
    }
}

disposals! {
    SharedValue<ReadState>: Java_org_rocksdb_ReadOptions_disposeInternal
        | Java_org_rocksdb_ReadOptions_disposeInternalJni;
    SharedValue<WriteOptions>: Java_org_rocksdb_WriteOptions_disposeInternal
        | Java_org_rocksdb_WriteOptions_disposeInternalJni;
    SharedValue<FlushState>: Java_org_rocksdb_FlushOptions_disposeInternal
        | Java_org_rocksdb_FlushOptions_disposeInternalJni;
    SharedValue<CompactRangeOptions>: Java_org_rocksdb_CompactRangeOptions_disposeInternal
        | Java_org_rocksdb_CompactRangeOptions_disposeInternalJni;
    SharedValue<IngestOptions>: Java_org_rocksdb_IngestExternalFileOptions_disposeInternal
        | Java_org_rocksdb_IngestExternalFileOptions_disposeInternalJni;
}
