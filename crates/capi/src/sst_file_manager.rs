//! The manager of table files: the room that databases may take, and how fast their files are
//! deleted.

use crate::boundary::{attempt, destroy, exclusive, give, quiet, shared};
use crate::*;
use esker::SstFileManager;
use std::ptr;
use std::sync::Arc;

/// A manager. Options and databases that were given it keep it alive.
pub struct rocksdb_sst_file_manager_t {
    manager: Arc<SstFileManager>,
}

/// The environment is not needed: each database looks after its own files.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_manager_create(
    _env: *mut rocksdb_env_t,
) -> *mut rocksdb_sst_file_manager_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_sst_file_manager_t {
            manager: SstFileManager::new(),
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_manager_destroy(sfm: *mut rocksdb_sst_file_manager_t) {
    destroy(sfm);
}

/// NULL takes the manager away.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_sst_file_manager(
    opt: *mut rocksdb_options_t,
    sfm: *mut rocksdb_sst_file_manager_t,
) {
    attempt((), || {
        let manager = shared(sfm).ok().map(|m| Arc::clone(&m.manager));
        exclusive(opt)?.options.db.sst_file_manager = manager;
        Ok(())
    });
}

fn tell(sfm: *mut rocksdb_sst_file_manager_t, tell: impl FnOnce(&SstFileManager)) {
    attempt((), || {
        tell(&shared(sfm)?.manager);
        Ok(())
    });
}

fn ask<R: Default>(
    sfm: *mut rocksdb_sst_file_manager_t,
    ask: impl FnOnce(&SstFileManager) -> R,
) -> R {
    attempt(R::default(), || Ok(ask(&shared(sfm)?.manager)))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_manager_set_max_allowed_space_usage(
    sfm: *mut rocksdb_sst_file_manager_t,
    max_allowed_space: u64,
) {
    tell(sfm, |m| m.set_max_allowed_space_usage(max_allowed_space));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_manager_set_compaction_buffer_size(
    sfm: *mut rocksdb_sst_file_manager_t,
    compaction_buffer_size: u64,
) {
    tell(sfm, |m| {
        m.set_compaction_buffer_size(compaction_buffer_size);
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_manager_is_max_allowed_space_reached(
    sfm: *mut rocksdb_sst_file_manager_t,
) -> bool {
    ask(sfm, SstFileManager::is_max_allowed_space_reached)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_manager_is_max_allowed_space_reached_including_compactions(
    sfm: *mut rocksdb_sst_file_manager_t,
) -> bool {
    ask(
        sfm,
        SstFileManager::is_max_allowed_space_reached_including_compactions,
    )
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_manager_get_total_size(
    sfm: *mut rocksdb_sst_file_manager_t,
) -> u64 {
    ask(sfm, SstFileManager::total_size)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_manager_get_delete_rate_bytes_per_second(
    sfm: *mut rocksdb_sst_file_manager_t,
) -> i64 {
    ask(sfm, SstFileManager::delete_rate_bytes_per_second)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_manager_set_delete_rate_bytes_per_second(
    sfm: *mut rocksdb_sst_file_manager_t,
    delete_rate: i64,
) {
    tell(sfm, |m| m.set_delete_rate_bytes_per_second(delete_rate));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_manager_get_max_trash_db_ratio(
    sfm: *mut rocksdb_sst_file_manager_t,
) -> f64 {
    ask(sfm, SstFileManager::max_trash_db_ratio)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_manager_set_max_trash_db_ratio(
    sfm: *mut rocksdb_sst_file_manager_t,
    ratio: f64,
) {
    tell(sfm, |m| m.set_max_trash_db_ratio(ratio));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_file_manager_get_total_trash_size(
    sfm: *mut rocksdb_sst_file_manager_t,
) -> u64 {
    ask(sfm, SstFileManager::total_trash_size)
}
