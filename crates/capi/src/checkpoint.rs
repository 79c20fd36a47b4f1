//! Checkpoints, and families exported.

use crate::boundary::{call, destroy, give, path, shared};
use crate::db::database;
use crate::*;
use esker::{CheckpointOptions, Db};
use std::ffi::c_char;
use std::ptr;

/// An object that makes checkpoints of a database.
pub struct rocksdb_checkpoint_t {
    pub(crate) db: Db,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_checkpoint_object_create(
    db: *mut rocksdb_t,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_checkpoint_t {
    call(errptr, ptr::null_mut(), || {
        let db = database(db)?.clone();
        Ok(give(rocksdb_checkpoint_t { db }))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_checkpoint_create(
    checkpoint: *mut rocksdb_checkpoint_t,
    checkpoint_dir: *const c_char,
    log_size_for_flush: u64,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let mut options = CheckpointOptions::default();
        options.log_size_for_flush = log_size_for_flush;
        // As RocksDB 11, whose interface this is: clients count the log.
        options.keep_empty_log = true;
        let db = &shared(checkpoint)?.db;
        db.checkpoint_opt(path(checkpoint_dir)?, &options)?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_checkpoint_export_column_family(
    checkpoint: *mut rocksdb_checkpoint_t,
    column_family: *mut rocksdb_column_family_handle_t,
    export_dir: *const c_char,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_export_import_files_metadata_t {
    call(errptr, ptr::null_mut(), || {
        let db = &shared(checkpoint)?.db;
        let family = &shared(column_family)?.family;
        if !db.owns(family) {
            return Err(esker::Error::invalid_argument(format!(
                "column family {} belongs to another database",
                family.name()
            )));
        }
        let exported = db.export_family(family, path(export_dir)?)?;
        Ok(give(rocksdb_export_import_files_metadata_t { exported }))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_checkpoint_object_destroy(checkpoint: *mut rocksdb_checkpoint_t) {
    destroy(checkpoint);
}
