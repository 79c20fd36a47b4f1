//! The functions of RocksDB's C API that the driver calls, all optional: a library that lacks some
//! is compared without the kinds of calls that need them.
//!
//! Signatures as in RocksDB's `c.h`. The table owns the loaded library, so that no function
//! outlives it.
#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::path::Path;

use crate::{Failure, Result};

/// Calls a function of the library of something that has an `api`.
macro_rules! c {
    ($self:expr, $function:ident $(, $argument:expr)* $(,)?) => {{
        let function = $self.api.$function.expect("kinds that need a missing function are not drawn");
        // SAFETY: handles come from this library and are alive; buffers outlive the call.
        unsafe { function($($argument),*) }
    }};
}
pub(super) use c;

/// An object of the library.
pub(super) type H = *mut c_void;
/// Text or bytes for the library.
pub(super) type T = *const c_char;
/// Bytes from the library.
pub(super) type V = *mut c_char;
/// Where an error goes.
pub(super) type E = *mut *mut c_char;

pub(super) type Destroy = extern "C" fn(*mut c_void);
pub(super) type Name = extern "C" fn(*mut c_void) -> T;
pub(super) type Compare = extern "C" fn(*mut c_void, T, usize, T, usize) -> c_int;
pub(super) type FullMerge = extern "C" fn(
    *mut c_void,
    T,
    usize,
    T,
    usize,
    *const T,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> V;
pub(super) type PartialMerge = extern "C" fn(
    *mut c_void,
    T,
    usize,
    *const T,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> V;
pub(super) type Filter = extern "C" fn(
    *mut c_void,
    c_int,
    T,
    usize,
    T,
    usize,
    *mut V,
    *mut usize,
    *mut c_uchar,
) -> c_uchar;
pub(super) type PutVisitor = extern "C" fn(*mut c_void, u32, T, usize, T, usize);
pub(super) type DeleteVisitor = extern "C" fn(*mut c_void, u32, T, usize);
pub(super) type DeleteValue = extern "C" fn(*mut c_void, T, usize);
pub(super) type FilterDecision =
    extern "C" fn(*mut c_void, c_int, T, usize, c_int, T, usize, *mut T, *mut usize) -> c_int;
/// Bytes that the library lends.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct LentSlice {
    pub(super) data: T,
    pub(super) size: usize,
}
pub(super) type NamedValue = extern "C" fn(*mut c_void, T, usize, T, usize);
pub(super) type EachLock = extern "C" fn(*mut c_void, u32, T, usize, *const u64, usize, c_uchar);
pub(super) type EachDeadlock =
    extern "C" fn(*mut c_void, usize, u64, c_uchar, u64, u32, c_uchar, T, usize);
pub(super) type BeginWait = extern "C" fn(*mut c_void) -> H;
pub(super) type SleepIn = extern "C" fn(H, i64) -> c_int;
pub(super) type OfWait = extern "C" fn(H);

/// The exported name of a function: Esker's additions are called by their own names.
fn symbol(function: &str) -> String {
    if function.starts_with("esker_") {
        function.to_owned()
    } else {
        format!("rocksdb_{function}")
    }
}

macro_rules! functions {
    ($($field:ident ($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        /// The table of functions.
        // Fields are named like the functions, one of which has capitals.
        #[allow(clippy::type_complexity, non_snake_case)]
        pub(super) struct Api {
            $(pub(super) $field: Option<unsafe extern "C" fn($($arg),*) $(-> $ret)?>,)*
            /// Names that the library does not export.
            pub(super) missing: BTreeSet<&'static str>,
            _library: libloading::Library,
        }

        impl Api {
            /// Loads a library and looks the functions up.
            #[allow(non_snake_case)]
            pub(super) fn load(path: &Path) -> Result<Api> {
                // SAFETY: the person at the terminal chose to run this library's initialisers.
                let library = unsafe { libloading::Library::new(path) }
                    .map_err(|e| Failure::new(format!("cannot load {}: {e}", path.display())))?;
                let mut missing = BTreeSet::new();
                $(
                    // SAFETY: the signature is the one that RocksDB's header declares.
                    let $field = unsafe {
                        library.get::<unsafe extern "C" fn($($arg),*) $(-> $ret)?>(
                            symbol(stringify!($field)).as_bytes(),
                        )
                    };
                    let $field = $field.ok().map(|found| *found);
                    if $field.is_none() {
                        missing.insert(stringify!($field));
                    }
                )*
                Ok(Api { $($field,)* missing, _library: library })
            }
        }
    };
}

functions! {
    free(*mut c_void);
    options_create() -> H;
    options_destroy(H);
    get_options_from_string(H, T, H, E);
    options_set_create_if_missing(H, c_uchar);
    options_set_create_missing_column_families(H, c_uchar);
    options_set_merge_operator(H, H);
    options_set_comparator(H, H);
    options_get_write_buffer_size(H) -> usize;
    options_get_max_open_files(H) -> c_int;
    options_get_num_levels(H) -> c_int;
    options_get_target_file_size_base(H) -> u64;
    options_get_compression(H) -> c_int;
    mergeoperator_create(*mut c_void, Destroy, FullMerge, PartialMerge, DeleteValue, Name) -> H;
    comparator_create(*mut c_void, Destroy, Compare, Name) -> H;
    open_column_families(H, T, c_int, *const T, *const H, *mut H, E) -> H;
    open_for_read_only_column_families(H, T, c_int, *const T, *const H, *mut H, c_uchar, E) -> H;
    open_as_secondary_column_families(H, T, T, c_int, *const T, *const H, *mut H, E) -> H;
    try_catch_up_with_primary(H, E);
    close(H);
    list_column_families(H, T, *mut usize, E) -> *mut V;
    list_column_families_destroy(*mut V, usize);
    create_column_family(H, H, T, E) -> H;
    drop_column_family(H, H, E);
    column_family_handle_destroy(H);
    column_family_handle_get_id(H) -> u32;
    writeoptions_create() -> H;
    readoptions_create() -> H;
    readoptions_destroy(H);
    readoptions_set_snapshot(H, H);
    readoptions_set_iterate_lower_bound(H, T, usize);
    readoptions_set_iterate_upper_bound(H, T, usize);
    readoptions_set_total_order_seek(H, c_uchar);
    readoptions_set_prefix_same_as_start(H, c_uchar);
    put_cf(H, H, H, T, usize, T, usize, E);
    delete_cf(H, H, H, T, usize, E);
    singledelete_cf(H, H, H, T, usize, E);
    merge_cf(H, H, H, T, usize, T, usize, E);
    delete_range_cf(H, H, H, T, usize, T, usize, E);
    write(H, H, H, E);
    get_cf(H, H, H, T, usize, *mut usize, E) -> V;
    get_pinned_cf(H, H, H, T, usize, E) -> H;
    pinnableslice_value(H, *mut usize) -> T;
    pinnableslice_destroy(H);
    get_into_buffer_cf(H, H, H, T, usize, V, usize, *mut usize, *mut c_uchar, E) -> c_uchar;
    multi_get_cf(H, H, *const H, usize, *const T, *const usize, *mut V, *mut usize, *mut V);
    batched_multi_get_cf(H, H, H, usize, *const T, *const usize, *mut H, *mut V, c_uchar);
    key_may_exist_cf(H, H, H, T, usize, *mut V, *mut usize, T, usize, *mut c_uchar) -> c_uchar;
    writebatch_create() -> H;
    writebatch_create_from(T, usize) -> H;
    writebatch_destroy(H);
    writebatch_count(H) -> c_int;
    writebatch_put_cf(H, H, T, usize, T, usize);
    writebatch_delete_cf(H, H, T, usize);
    writebatch_merge_cf(H, H, T, usize, T, usize);
    writebatch_delete_range_cf(H, H, T, usize, T, usize);
    writebatch_put_log_data(H, T, usize);
    writebatch_data(H, *mut usize) -> T;
    writebatch_set_save_point(H);
    writebatch_rollback_to_save_point(H, E);
    writebatch_pop_save_point(H, E);
    writebatch_wi_create(usize, c_uchar) -> H;
    writebatch_wi_destroy(H);
    writebatch_wi_count(H) -> c_int;
    writebatch_wi_put_cf(H, H, T, usize, T, usize);
    writebatch_wi_delete_cf(H, H, T, usize);
    writebatch_wi_merge_cf(H, H, T, usize, T, usize);
    writebatch_wi_get_from_batch_and_db_cf(H, H, H, H, T, usize, *mut usize, E) -> V;
    writebatch_wi_create_iterator_with_base_cf(H, H, H) -> H;
    write_writebatch_wi(H, H, H, E);
    create_iterator_cf(H, H, H) -> H;
    iter_destroy(H);
    iter_valid(H) -> c_uchar;
    iter_seek_to_first(H);
    iter_seek_to_last(H);
    iter_seek(H, T, usize);
    iter_seek_for_prev(H, T, usize);
    iter_next(H);
    iter_prev(H);
    iter_key(H, *mut usize) -> T;
    iter_value(H, *mut usize) -> T;
    iter_get_error(H, E);
    iter_refresh(H, E);
    create_snapshot(H) -> H;
    release_snapshot(H, H);
    snapshot_get_sequence_number(H) -> u64;
    get_latest_sequence_number(H) -> u64;
    flushoptions_create() -> H;
    flush_cf(H, H, H, E);
    flush_cfs(H, H, *const H, c_int, E);
    flush_wal(H, c_uchar, E);
    compact_range_cf(H, H, T, usize, T, usize);
    suggest_compact_range_cf(H, H, T, usize, T, usize, E);
    property_value_cf(H, H, T) -> V;
    property_int_cf(H, H, T, *mut u64) -> c_int;
    approximate_sizes_cf(H, H, c_int, *const T, *const usize, *const T, *const usize, *mut u64, E);
    set_options_cf(H, H, c_int, *const T, *const T, E);
    set_db_options(H, c_int, *const T, *const T, E);
    disable_file_deletions(H, E);
    enable_file_deletions(H, E);
    get_db_identity(H, *mut usize) -> V;
    get_updates_since(H, u64, H, E) -> H;
    wal_iter_valid(H) -> c_uchar;
    wal_iter_next(H);
    wal_iter_status(H, E);
    wal_iter_get_batch(H, *mut u64) -> H;
    wal_iter_destroy(H);
    checkpoint_object_create(H, E) -> H;
    checkpoint_create(H, T, u64, E);
    checkpoint_object_destroy(H);
    backup_engine_open(H, T, E) -> H;
    backup_engine_create_new_backup_flush(H, H, c_uchar, E);
    backup_engine_get_backup_info(H) -> H;
    backup_engine_info_count(H) -> c_int;
    backup_engine_info_backup_id(H, c_int) -> u32;
    backup_engine_info_destroy(H);
    backup_engine_verify_backup(H, u32, E);
    backup_engine_purge_old_backups(H, u32, E);
    backup_engine_restore_db_from_latest_backup(H, T, T, H, E);
    backup_engine_close(H);
    restore_options_create() -> H;
    restore_options_destroy(H);
    envoptions_create() -> H;
    envoptions_destroy(H);
    sstfilewriter_create(H, H) -> H;
    sstfilewriter_open(H, T, E);
    sstfilewriter_put(H, T, usize, T, usize, E);
    sstfilewriter_delete(H, T, usize, E);
    sstfilewriter_merge(H, T, usize, T, usize, E);
    sstfilewriter_finish(H, E);
    sstfilewriter_destroy(H);
    ingestexternalfileoptions_create() -> H;
    ingestexternalfileoptions_destroy(H);
    ingestexternalfileoptions_set_move_files(H, c_uchar);
    ingest_external_file_cf(H, H, *const T, usize, H, E);
    optimistictransactiondb_open_column_families(H, T, c_int, *const T, *const H, *mut H, E) -> H;
    optimistictransactiondb_get_base_db(H) -> H;
    optimistictransactiondb_close_base_db(H);
    optimistictransactiondb_close(H);
    optimistictransaction_options_create() -> H;
    optimistictransaction_options_destroy(H);
    optimistictransaction_options_set_set_snapshot(H, c_uchar);
    optimistictransaction_begin(H, H, H, H) -> H;
    transaction_put_cf(H, H, T, usize, T, usize, E);
    transaction_delete_cf(H, H, T, usize, E);
    transaction_merge_cf(H, H, T, usize, T, usize, E);
    transaction_get_cf(H, H, H, T, usize, *mut usize, E) -> V;
    transaction_get_for_update_cf(H, H, H, T, usize, *mut usize, c_uchar, E) -> V;
    transaction_create_iterator_cf(H, H, H) -> H;
    transaction_set_savepoint(H);
    transaction_rollback_to_savepoint(H, E);
    transaction_commit(H, E);
    transaction_rollback(H, E);
    transaction_destroy(H);
    transaction_get_snapshot(H) -> H;
    transaction_multi_get_cf(H, H, *const H, usize, *const T, *const usize, *mut V, *mut usize, *mut V);
    transactiondb_options_create() -> H;
    transactiondb_options_destroy(H);
    transactiondb_options_set_default_lock_timeout(H, i64);
    transactiondb_open_column_families(H, H, T, c_int, *const T, *const H, *mut H, E) -> H;
    transactiondb_get_base_db(H) -> H;
    transactiondb_close_base_db(H);
    transactiondb_close(H);
    transactiondb_write(H, H, H, E);
    transaction_options_create() -> H;
    transaction_options_destroy(H);
    transaction_options_set_set_snapshot(H, c_uchar);
    transaction_options_set_lock_timeout(H, i64);
    transaction_options_set_deadlock_detect(H, c_uchar);
    transaction_begin(H, H, H, H) -> H;
    open_column_families_with_ttl(H, T, c_int, *const T, *const H, *mut H, *const c_int, E) -> H;
    compactionfilter_create(*mut c_void, Destroy, Filter, Name) -> H;
    options_set_compaction_filter(H, H);
    options_set_disable_auto_compactions(H, c_int);
    options_set_uint64add_merge_operator(H);
    options_enable_statistics(H);
    options_statistics_get_ticker_count(H, u32) -> u64;
    checkpoint_export_column_family(H, H, T, E) -> H;
    export_import_files_metadata_destroy(H);
    import_column_family_options_create() -> H;
    import_column_family_options_destroy(H);
    import_column_family_options_set_move_files(H, c_uchar);
    create_column_family_with_import(H, H, T, H, H, E) -> H;
    delete_file_in_range_cf(H, H, T, usize, T, usize, E);
    compactoptions_create() -> H;
    compactoptions_destroy(H);
    compactoptions_set_exclusive_manual_compaction(H, c_uchar);
    compactoptions_set_bottommost_level_compaction(H, c_uchar);
    compactoptions_set_change_level(H, c_uchar);
    compactoptions_set_target_level(H, c_int);
    compact_range_cf_opt(H, H, H, T, usize, T, usize);
    wait_for_compact(H, H, E);
    wait_for_compact_options_create() -> H;
    wait_for_compact_options_destroy(H);
    wait_for_compact_options_set_timeout(H, u64);
    create_iterators(H, H, *const H, *mut H, usize, E);
    readoptions_set_verify_checksums(H, c_uchar);
    readoptions_set_fill_cache(H, c_uchar);
    cache_create_lru(usize) -> H;
    cache_destroy(H);
    options_set_blob_cache(H, H);
    readoptions_set_readahead_size(H, usize);
    readoptions_set_pin_data(H, c_uchar);
    readoptions_set_tailing(H, c_uchar);
    readoptions_set_async_io(H, c_uchar);
    readoptions_set_auto_prefix_mode(H, c_uchar);
    readoptions_set_background_purge_on_iterator_cleanup(H, c_uchar);
    writeoptions_destroy(H);
    writeoptions_set_sync(H, c_uchar);
    writeoptions_set_low_pri(H, c_uchar);
    writeoptions_set_ignore_missing_column_families(H, c_uchar);
    writeoptions_disable_WAL(H, c_int);
    writebatch_iterate_cf(H, *mut c_void, PutVisitor, DeleteVisitor, PutVisitor);
    writebatch_clear(H);
    destroy_db(H, T, E);
    sstfilewriter_delete_range(H, T, usize, T, usize, E);
    livefiles(H) -> H;
    livefiles_count(H) -> c_int;
    livefiles_entries(H, c_int) -> u64;
    livefiles_destroy(H);
    livefiles_column_family_name(H, c_int) -> T;
    livefiles_name(H, c_int) -> T;
    livefiles_level(H, c_int) -> c_int;
    compaction_options_create() -> H;
    compaction_options_destroy(H);
    compact_files_cf(H, H, H, *const T, usize, c_int, c_int, *mut *mut V, *mut usize, H, E);
    compact_files_output_file_names_destroy(*mut V, usize);
    compactoptions_set_max_subcompactions(H, c_int);
    compactoptions_set_allow_write_stall(H, c_uchar);
    flushoptions_destroy(H);
    flushoptions_set_wait(H, c_uchar);
    pause_background_work(H, E);
    continue_background_work(H, E);
    cancel_all_background_work(H, c_uchar);
    disable_manual_compaction(H);
    enable_manual_compaction(H);
    ingestexternalfileoptions_set_snapshot_consistency(H, c_uchar);
    ingestexternalfileoptions_set_allow_blocking_flush(H, c_uchar);
    ingestexternalfileoptions_set_fail_if_not_bottommost_level(H, c_uchar);
    verify_checksum(H, E);
    transaction_set_name(H, T, usize, E);
    transaction_prepare(H, E);
    transactiondb_get_prepared_transactions(H, *mut usize) -> *mut H;
    esker_interface_version() -> u32;
    esker_last_error_code() -> u32;
    esker_last_error_subcode() -> u32;
    esker_options_set(H, c_int, T, T, E);
    esker_options_get(H, c_int, T, E) -> V;
    esker_options_share_statistics(H, H);
    esker_options_reset_statistics(H);
    esker_options_take_ticker(H, u32) -> u64;
    esker_current_options(H, H, E) -> H;
    esker_compact_range_cf(H, H, H, T, usize, T, usize, E);
    esker_writebatch_assign(H, H, E);
    esker_iter_entry(H) -> *const [LentSlice; 2];
    esker_iter_set_bounds(H, T, usize, T, usize);
    esker_iter_set_base_bounds(H, T, usize, T, usize);
    esker_iter_set_batch_bounds(H, T, usize, T, usize);
    esker_resume(H, E);
    esker_backup_engine_delete_backup(H, u32, E);
    esker_map_property_cf(H, H, T, *mut c_void, NamedValue, E) -> c_uchar;
    esker_compactionfilter_create(*mut c_void, Destroy, FilterDecision, Name) -> H;
    esker_transaction_single_delete_cf(H, H, T, usize, E);
    esker_transaction_change_cf(H, H, c_int, c_int, T, usize, T, usize, E);
    esker_transaction_undo_get_for_update_cf(H, H, T, usize, E);
    esker_transaction_pop_savepoint(H, E);
    esker_transaction_set_snapshot(H, E);
    esker_transaction_set_snapshot_on_next_operation(H, E);
    esker_transaction_clear_snapshot(H, E);
    esker_transaction_set_lock_timeout(H, i64, E);
    esker_transaction_id(H) -> u64;
    esker_transaction_state(H) -> c_int;
    esker_transaction_has_snapshot(H) -> c_uchar;
    esker_transaction_num_keys(H) -> u64;
    esker_transaction_commit_time_batch(H) -> H;
    esker_transaction_get_for_update_cf(H, H, H, T, usize, c_uchar, c_uchar, E) -> H;
    esker_transactiondb_single_delete_cf(H, H, H, T, usize, E);
    esker_transactiondb_options_set_lock_waits(H, *mut c_void, Destroy, BeginWait, SleepIn, OfWait, OfWait, E);
    esker_transactiondb_each_lock(H, *mut c_void, EachLock, E);
    esker_transactiondb_waiting_for(H, u64, *mut c_void, EachLock, E) -> c_uchar;
    esker_transactiondb_each_deadlock(H, *mut c_void, EachDeadlock, E);
    esker_transactiondb_set_max_deadlocks(H, u32, E);
}
