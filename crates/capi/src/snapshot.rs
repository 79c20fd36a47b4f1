//! Snapshots.

use crate::boundary::{attempt, destroy, give, shared};
use crate::db::database;
use crate::*;
use esker::Snapshot;
use std::ptr;

/// A moment of a database that readers can go back to.
pub struct rocksdb_snapshot_t {
    /// `None` for the snapshot of a transaction that has none.
    pub(crate) snapshot: Option<Snapshot>,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_snapshot(db: *mut rocksdb_t) -> *const rocksdb_snapshot_t {
    attempt(ptr::null(), || {
        let snapshot = Some(database(db)?.snapshot());
        Ok(give(rocksdb_snapshot_t { snapshot }).cast_const())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_release_snapshot(
    _db: *mut rocksdb_t,
    snapshot: *const rocksdb_snapshot_t,
) {
    release(snapshot);
}

/// Gives a snapshot back, also where read options name it still.
pub(crate) fn release(snapshot: *const rocksdb_snapshot_t) {
    attempt((), || {
        if let Some(held) = &shared(snapshot)?.snapshot {
            held.release();
        }
        Ok(())
    });
    destroy(snapshot.cast_mut());
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_snapshot_get_sequence_number(snapshot: *const rocksdb_snapshot_t) -> u64 {
    attempt(0, || {
        let snapshot = &shared(snapshot)?.snapshot;
        Ok(snapshot.as_ref().map_or(0, Snapshot::sequence))
    })
}
