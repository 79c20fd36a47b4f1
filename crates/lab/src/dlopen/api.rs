//! The functions of RocksDB's C API that the laboratory calls, looked up by name.
//!
//! Signatures as in RocksDB's `c.h`; opaque objects are all [`Handle`]. The library stays loaded as
//! long as the table lives, and is never unloaded while a function is running because [`Api`] is
//! owned by what the functions work on.

use std::ffi::{c_char, c_double, c_int, c_uchar, c_void};
use std::path::Path;

use super::Handle;
use crate::{Failure, Result};

type Text = *const c_char;
type Error = *mut *mut c_char;

/// Bytes that the library shows by value: `rocksdb_slice_t`.
#[repr(C)]
pub(super) struct Slice {
    pub(super) data: Text,
    pub(super) size: usize,
}

/// The figures of `mallinfo2`, in its order.
#[repr(C)]
pub(super) struct MallInfo {
    /// Bytes of all heaps.
    pub(super) arena: usize,
    _pieces: [usize; 3],
    /// Bytes of pieces that have a mapping of their own.
    pub(super) mapped: usize,
    _unused: [usize; 2],
    /// Bytes of pieces in heaps that are in use.
    pub(super) used: usize,
    _free: [usize; 2],
}

/// A failure with what the loader says went wrong; the error's own text has only the name of the
/// call.
fn refused(what: &str, path: &Path, error: &libloading::Error) -> Failure {
    let why = std::error::Error::source(error).map(ToString::to_string);
    let why = why.unwrap_or_else(|| error.to_string());
    Failure::new(format!("{what} {}: {why}", path.display()))
}

macro_rules! functions {
    (
        required { $($field:ident = $name:literal ($($arg:ty),*) $(-> $ret:ty)?;)* }
        optional { $($ofield:ident = $oname:literal ($($oarg:ty),*) $(-> $oret:ty)?;)* }
    ) => {
        /// The table of functions, with the library they point into.
        pub(super) struct Api {
            $(pub(super) $field: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
            $(pub(super) $ofield: Option<unsafe extern "C" fn($($oarg),*) $(-> $oret)?>,)*
            _library: libloading::Library,
        }

        impl Api {
            /// Loads a library and looks all functions up.
            pub(super) fn load(path: &Path) -> Result<Api> {
                // SAFETY: the person at the terminal chose to run this library's initialisers.
                let library = unsafe { libloading::Library::new(path) }
                    .map_err(|e| refused("cannot load", path, &e))?;
                $(
                    // SAFETY: the signature is the one that RocksDB's header declares.
                    let $field = unsafe { library.get::<unsafe extern "C" fn($($arg),*) $(-> $ret)?>($name) };
                    let $field = *$field
                        .map_err(|e| refused("this is no RocksDB C library:", path, &e))?;
                )*
                $(
                    // SAFETY: the signature is the one that RocksDB's or the allocator's header
                    // declares.
                    let $ofield = unsafe { library.get::<unsafe extern "C" fn($($oarg),*) $(-> $oret)?>($oname) };
                    let $ofield = $ofield.ok().map(|found| *found);
                )*
                Ok(Api { $($field,)* $($ofield,)* _library: library })
            }
        }
    };
}

functions! {
    required {
        free = b"rocksdb_free" (*mut c_void);
        open = b"rocksdb_open" (Handle, Text, Error) -> Handle;
        close = b"rocksdb_close" (Handle);
        options_create = b"rocksdb_options_create" () -> Handle;
        options_destroy = b"rocksdb_options_destroy" (Handle);
        options_set_create_if_missing = b"rocksdb_options_set_create_if_missing" (Handle, c_uchar);
        options_enable_statistics = b"rocksdb_options_enable_statistics" (Handle);
        options_statistics_get_string = b"rocksdb_options_statistics_get_string" (Handle) -> *mut c_char;
        get_options_from_string = b"rocksdb_get_options_from_string" (Handle, Text, Handle, Error);
        options_set_table_factory = b"rocksdb_options_set_block_based_table_factory" (Handle, Handle);
        table_create = b"rocksdb_block_based_options_create" () -> Handle;
        table_destroy = b"rocksdb_block_based_options_destroy" (Handle);
        table_set_block_cache = b"rocksdb_block_based_options_set_block_cache" (Handle, Handle);
        table_set_no_block_cache = b"rocksdb_block_based_options_set_no_block_cache" (Handle, c_uchar);
        table_set_block_size = b"rocksdb_block_based_options_set_block_size" (Handle, usize);
        table_set_block_restart_interval = b"rocksdb_block_based_options_set_block_restart_interval" (Handle, c_int);
        table_set_index_block_restart_interval = b"rocksdb_block_based_options_set_index_block_restart_interval" (Handle, c_int);
        table_set_metadata_block_size = b"rocksdb_block_based_options_set_metadata_block_size" (Handle, u64);
        table_set_partition_filters = b"rocksdb_block_based_options_set_partition_filters" (Handle, c_uchar);
        table_set_index_type = b"rocksdb_block_based_options_set_index_type" (Handle, c_int);
        table_set_filter_policy = b"rocksdb_block_based_options_set_filter_policy" (Handle, Handle);
        table_set_whole_key_filtering = b"rocksdb_block_based_options_set_whole_key_filtering" (Handle, c_uchar);
        table_set_format_version = b"rocksdb_block_based_options_set_format_version" (Handle, c_int);
        table_set_checksum = b"rocksdb_block_based_options_set_checksum" (Handle, c_char);
        table_set_cache_index_and_filter_blocks = b"rocksdb_block_based_options_set_cache_index_and_filter_blocks" (Handle, c_uchar);
        table_set_pin_l0 = b"rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache" (Handle, c_uchar);
        table_set_pin_top = b"rocksdb_block_based_options_set_pin_top_level_index_and_filter" (Handle, c_uchar);
        bloom_create = b"rocksdb_filterpolicy_create_bloom_full" (c_double) -> Handle;
        ribbon_create = b"rocksdb_filterpolicy_create_ribbon" (c_double) -> Handle;
        cache_destroy = b"rocksdb_cache_destroy" (Handle);
        writeoptions_create = b"rocksdb_writeoptions_create" () -> Handle;
        writeoptions_destroy = b"rocksdb_writeoptions_destroy" (Handle);
        writeoptions_set_sync = b"rocksdb_writeoptions_set_sync" (Handle, c_uchar);
        writeoptions_disable_wal = b"rocksdb_writeoptions_disable_WAL" (Handle, c_int);
        readoptions_create = b"rocksdb_readoptions_create" () -> Handle;
        readoptions_destroy = b"rocksdb_readoptions_destroy" (Handle);
        readoptions_set_verify_checksums = b"rocksdb_readoptions_set_verify_checksums" (Handle, c_uchar);
        readoptions_set_readahead_size = b"rocksdb_readoptions_set_readahead_size" (Handle, usize);
        readoptions_set_iterate_lower_bound = b"rocksdb_readoptions_set_iterate_lower_bound" (Handle, Text, usize);
        readoptions_set_iterate_upper_bound = b"rocksdb_readoptions_set_iterate_upper_bound" (Handle, Text, usize);
        put = b"rocksdb_put" (Handle, Handle, Text, usize, Text, usize, Error);
        merge = b"rocksdb_merge" (Handle, Handle, Text, usize, Text, usize, Error);
        delete = b"rocksdb_delete" (Handle, Handle, Text, usize, Error);
        write = b"rocksdb_write" (Handle, Handle, Handle, Error);
        writebatch_create = b"rocksdb_writebatch_create" () -> Handle;
        writebatch_destroy = b"rocksdb_writebatch_destroy" (Handle);
        writebatch_clear = b"rocksdb_writebatch_clear" (Handle);
        writebatch_put = b"rocksdb_writebatch_put" (Handle, Text, usize, Text, usize);
        writebatch_delete = b"rocksdb_writebatch_delete" (Handle, Text, usize);
        get_pinned = b"rocksdb_get_pinned" (Handle, Handle, Text, usize, Error) -> Handle;
        pinnableslice_value = b"rocksdb_pinnableslice_value" (Handle, *mut usize) -> Text;
        pinnableslice_destroy = b"rocksdb_pinnableslice_destroy" (Handle);
        multi_get = b"rocksdb_multi_get" (Handle, Handle, usize, *const Text, *const usize, *mut *mut c_char, *mut usize, Error);
        create_iterator = b"rocksdb_create_iterator" (Handle, Handle) -> Handle;
        iter_destroy = b"rocksdb_iter_destroy" (Handle);
        iter_valid = b"rocksdb_iter_valid" (Handle) -> c_uchar;
        iter_seek_to_first = b"rocksdb_iter_seek_to_first" (Handle);
        iter_seek_to_last = b"rocksdb_iter_seek_to_last" (Handle);
        iter_seek = b"rocksdb_iter_seek" (Handle, Text, usize);
        iter_seek_for_prev = b"rocksdb_iter_seek_for_prev" (Handle, Text, usize);
        iter_next = b"rocksdb_iter_next" (Handle);
        iter_prev = b"rocksdb_iter_prev" (Handle);
        iter_key = b"rocksdb_iter_key" (Handle, *mut usize) -> Text;
        iter_value = b"rocksdb_iter_value" (Handle, *mut usize) -> Text;
        iter_get_error = b"rocksdb_iter_get_error" (Handle, Error);
        flushoptions_create = b"rocksdb_flushoptions_create" () -> Handle;
        flushoptions_destroy = b"rocksdb_flushoptions_destroy" (Handle);
        flushoptions_set_wait = b"rocksdb_flushoptions_set_wait" (Handle, c_uchar);
        flush = b"rocksdb_flush" (Handle, Handle, Error);
        compactoptions_create = b"rocksdb_compactoptions_create" () -> Handle;
        compactoptions_destroy = b"rocksdb_compactoptions_destroy" (Handle);
        compactoptions_set_bottommost = b"rocksdb_compactoptions_set_bottommost_level_compaction" (Handle, c_uchar);
        compact_range_opt = b"rocksdb_compact_range_opt" (Handle, Handle, Text, usize, Text, usize);
        property_value = b"rocksdb_property_value" (Handle, Text) -> *mut c_char;
        livefiles = b"rocksdb_livefiles" (Handle) -> Handle;
        livefiles_count = b"rocksdb_livefiles_count" (Handle) -> c_int;
        livefiles_name = b"rocksdb_livefiles_name" (Handle, c_int) -> Text;
        livefiles_level = b"rocksdb_livefiles_level" (Handle, c_int) -> c_int;
        livefiles_destroy = b"rocksdb_livefiles_destroy" (Handle);
    }
    optional {
        mallctl = b"mallctl" (Text, *mut c_void, *mut usize, *mut c_void, usize) -> c_int;
        mallinfo2 = b"mallinfo2" () -> MallInfo;
        set_perf_level = b"rocksdb_set_perf_level" (c_int);
        perfcontext_create = b"rocksdb_perfcontext_create" () -> Handle;
        perfcontext_reset = b"rocksdb_perfcontext_reset" (Handle);
        perfcontext_report = b"rocksdb_perfcontext_report" (Handle, c_uchar) -> *mut c_char;
        perfcontext_destroy = b"rocksdb_perfcontext_destroy" (Handle);
        iter_key_slice = b"rocksdb_iter_key_slice" (Handle) -> Slice;
        iter_value_slice = b"rocksdb_iter_value_slice" (Handle) -> Slice;
        hyper_clock_create = b"rocksdb_cache_create_hyper_clock" (usize, usize) -> Handle;
        verify_checksum = b"rocksdb_verify_checksum" (Handle, Error);
        wait_for_compact = b"rocksdb_wait_for_compact" (Handle, Handle, Error);
        wait_options_create = b"rocksdb_wait_for_compact_options_create" () -> Handle;
        wait_options_destroy = b"rocksdb_wait_for_compact_options_destroy" (Handle);
        compact_files = b"rocksdb_compact_files" (Handle, Handle, *const Text, usize, c_int, c_int, *mut *mut *mut c_char, *mut usize, Handle, Error);
        compact_files_names_destroy = b"rocksdb_compact_files_output_file_names_destroy" (*mut *mut c_char, usize);
        compaction_options_create = b"rocksdb_compaction_options_create" () -> Handle;
        compaction_options_destroy = b"rocksdb_compaction_options_destroy" (Handle);
        compaction_options_set_compression = b"rocksdb_compaction_options_set_compression" (Handle, c_int);
        compaction_options_set_limit = b"rocksdb_compaction_options_set_output_file_size_limit" (Handle, u64);
        options_get_target_file_size_base = b"rocksdb_options_get_target_file_size_base" (Handle) -> u64;
        compactoptions_set_max_subcompactions = b"rocksdb_compactoptions_set_max_subcompactions" (Handle, c_int);
        readoptions_set_async_io = b"rocksdb_readoptions_set_async_io" (Handle, c_uchar);
        readoptions_set_tailing = b"rocksdb_readoptions_set_tailing" (Handle, c_uchar);
        readoptions_set_auto_refresh_iterator_with_snapshot = b"rocksdb_readoptions_set_auto_refresh_iterator_with_snapshot" (Handle, c_uchar);
        readoptions_set_total_order_seek = b"rocksdb_readoptions_set_total_order_seek" (Handle, c_uchar);
        readoptions_set_prefix_same_as_start = b"rocksdb_readoptions_set_prefix_same_as_start" (Handle, c_uchar);
        readoptions_set_adaptive_readahead = b"rocksdb_readoptions_set_adaptive_readahead" (Handle, c_uchar);
        readoptions_set_auto_readahead_size = b"rocksdb_readoptions_set_auto_readahead_size" (Handle, c_uchar);
        open_column_families = b"rocksdb_open_column_families" (Handle, Text, c_int, *const Text, *const Handle, *mut Handle, Error) -> Handle;
        set_options = b"rocksdb_set_options" (Handle, c_int, *const Text, *const Text, Error);
        options_get_level0_trigger = b"rocksdb_options_get_level0_file_num_compaction_trigger" (Handle) -> c_int;
        default_column_family = b"rocksdb_get_default_column_family_handle" (Handle) -> Handle;
        column_family_handle_destroy = b"rocksdb_column_family_handle_destroy" (Handle);
        layer_options_create = b"rocksdb_transactiondb_options_create" () -> Handle;
        layer_options_destroy = b"rocksdb_transactiondb_options_destroy" (Handle);
        layer_open = b"rocksdb_transactiondb_open" (Handle, Handle, Text, Error) -> Handle;
        layer_close = b"rocksdb_transactiondb_close" (Handle);
        layer_get_base = b"rocksdb_transactiondb_get_base_db" (Handle) -> Handle;
        layer_close_base = b"rocksdb_transactiondb_close_base_db" (Handle);
        transaction_options_create = b"rocksdb_transaction_options_create" () -> Handle;
        transaction_options_destroy = b"rocksdb_transaction_options_destroy" (Handle);
        transaction_begin = b"rocksdb_transaction_begin" (Handle, Handle, Handle, Handle) -> Handle;
        transaction_destroy = b"rocksdb_transaction_destroy" (Handle);
        transaction_commit = b"rocksdb_transaction_commit" (Handle, Error);
        transaction_rollback = b"rocksdb_transaction_rollback" (Handle, Error);
        transaction_put = b"rocksdb_transaction_put" (Handle, Text, usize, Text, usize, Error);
        transaction_delete = b"rocksdb_transaction_delete" (Handle, Text, usize, Error);
        transaction_get = b"rocksdb_transaction_get_pinned" (Handle, Handle, Text, usize, Error) -> Handle;
        transaction_get_for_update = b"rocksdb_transaction_get_pinned_for_update" (Handle, Handle, Text, usize, c_uchar, Error) -> Handle;
        transaction_iterator = b"rocksdb_transaction_create_iterator" (Handle, Handle) -> Handle;
        batched_multi_get = b"rocksdb_batched_multi_get_cf" (Handle, Handle, Handle, usize, *const Text, *const usize, *mut Handle, Error, bool);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_loaded_says_what_the_loader_says() {
        let directory = tempfile::tempdir().expect("a directory");
        let text = directory.path().join("librocksdb.so");
        std::fs::write(
            &text,
            "this is no library, and longer than the head of one\n".repeat(9),
        )
        .expect("writes");
        let said = |path: &Path| match Api::load(path) {
            Err(failure) => failure.to_string(),
            Ok(_) => panic!("{} was loaded", path.display()),
        };
        let missing = said(Path::new("/no/such/library.so"));
        assert!(
            missing.contains("cannot load /no/such/library.so: "),
            "{missing}"
        );
        assert!(
            missing.contains("cannot open shared object file"),
            "{missing}"
        );
        let wrong = said(&text);
        assert!(wrong.contains("invalid ELF header"), "{wrong}");
        assert!(!wrong.contains("dlopen failed"), "{wrong}");
    }
}
