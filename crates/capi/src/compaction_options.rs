//! The options of universal and of FIFO compaction as objects of their own. Their fields are
//! generated from the catalogue.

use crate::boundary::{attempt, destroy, exclusive, give, quiet, shared};
use crate::*;
use esker::options::{FifoSettings, UniversalSettings};
use std::ptr;

/// Universal compaction.
#[derive(Clone, Default)]
pub struct rocksdb_universal_compaction_options_t {
    pub(crate) universal: UniversalSettings,
}

/// FIFO compaction.
#[derive(Clone, Default)]
pub struct rocksdb_fifo_compaction_options_t {
    pub(crate) fifo: FifoSettings,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_universal_compaction_options_create()
-> *mut rocksdb_universal_compaction_options_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_universal_compaction_options_t::default())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_universal_compaction_options_destroy(
    universal_compaction_options: *mut rocksdb_universal_compaction_options_t,
) {
    destroy(universal_compaction_options);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_universal_compaction_options(
    options: *mut rocksdb_options_t,
    universal_compaction_options: *mut rocksdb_universal_compaction_options_t,
) {
    attempt((), || {
        exclusive(options)?
            .options
            .family
            .compaction_options_universal = shared(universal_compaction_options)?.universal.clone();
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_fifo_compaction_options_create() -> *mut rocksdb_fifo_compaction_options_t
{
    quiet(ptr::null_mut(), || {
        give(rocksdb_fifo_compaction_options_t::default())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_fifo_compaction_options_destroy(
    fifo_opts: *mut rocksdb_fifo_compaction_options_t,
) {
    destroy(fifo_opts);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_fifo_compaction_options(
    opt: *mut rocksdb_options_t,
    fifo: *mut rocksdb_fifo_compaction_options_t,
) {
    attempt((), || {
        exclusive(opt)?.options.family.compaction_options_fifo = shared(fifo)?.fifo.clone();
        Ok(())
    });
}
