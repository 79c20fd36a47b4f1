//! Snapshots.

use crate::boundary::handles;
use crate::database::Database;
use crate::natives;
use crate::shared::dispose;
use esker::Snapshot;
use jni_sys::jlong;

/// A moment of a database.
pub(crate) struct SharedSnapshot(pub(crate) Snapshot);

natives! {
    fn Java_org_rocksdb_RocksDB_getSnapshot(env, db: jlong) -> jlong {
        let snapshot = handles::hold::<Database>(db)?.open()?.snapshot();
        Ok(handles::give_owned(SharedSnapshot(snapshot), db))
    }

    /// Also where read options name it still. A snapshot goes with its database.
    fn Java_org_rocksdb_RocksDB_releaseSnapshot(env, _db: jlong, snapshot: jlong) {
        if let Some(moment) = handles::find::<SharedSnapshot>(snapshot) {
            moment.0.release();
        }
        dispose::<SharedSnapshot>(snapshot)
    }

    fn Java_org_rocksdb_Snapshot_getSequenceNumber(env, snapshot: jlong) -> jlong {
        Ok(handles::hold::<SharedSnapshot>(snapshot)?.0.sequence() as jlong)
    }
}
