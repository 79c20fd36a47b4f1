//! The options of traces. Starting a trace is refused: there is nothing that writes one yet.

use crate::boundary::{destroy, give, quiet};
use crate::call_options::lifecycle;
use std::ptr;

/// Most bytes of a trace file, unless something else is asked for.
const MAX_TRACE_FILE_SIZE: u64 = 64 << 30;

/// Options of a trace of calls.
pub struct rocksdb_trace_options_t {
    pub(crate) max_trace_file_size: u64,
    pub(crate) sampling_frequency: u64,
    pub(crate) filter: u64,
    pub(crate) preserve_write_order: bool,
}

impl Default for rocksdb_trace_options_t {
    fn default() -> Self {
        rocksdb_trace_options_t {
            max_trace_file_size: MAX_TRACE_FILE_SIZE,
            sampling_frequency: 1,
            filter: 0,
            preserve_write_order: false,
        }
    }
}

/// How a trace is played.
pub struct rocksdb_replay_options_t {
    pub(crate) num_threads: u32,
    pub(crate) fast_forward: f64,
}

impl Default for rocksdb_replay_options_t {
    fn default() -> Self {
        rocksdb_replay_options_t {
            num_threads: 1,
            fast_forward: 1.0,
        }
    }
}

/// Options of a trace of the block cache.
pub struct rocksdb_block_cache_trace_options_t {
    pub(crate) sampling_frequency: u64,
}

impl Default for rocksdb_block_cache_trace_options_t {
    fn default() -> Self {
        rocksdb_block_cache_trace_options_t {
            sampling_frequency: 1,
        }
    }
}

/// How such a trace is written.
pub struct rocksdb_block_cache_trace_writer_options_t {
    pub(crate) max_trace_file_size: u64,
}

impl Default for rocksdb_block_cache_trace_writer_options_t {
    fn default() -> Self {
        rocksdb_block_cache_trace_writer_options_t {
            max_trace_file_size: MAX_TRACE_FILE_SIZE,
        }
    }
}

lifecycle!(
    rocksdb_trace_options_t,
    rocksdb_trace_options_create,
    rocksdb_trace_options_destroy
);
lifecycle!(
    rocksdb_replay_options_t,
    rocksdb_replay_options_create,
    rocksdb_replay_options_destroy
);
lifecycle!(
    rocksdb_block_cache_trace_options_t,
    rocksdb_block_cache_trace_options_create,
    rocksdb_block_cache_trace_options_destroy
);
lifecycle!(
    rocksdb_block_cache_trace_writer_options_t,
    rocksdb_block_cache_trace_writer_options_create,
    rocksdb_block_cache_trace_writer_options_destroy
);
