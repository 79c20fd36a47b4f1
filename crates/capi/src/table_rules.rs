//! Objects of the library's own that options take: checksums of whole files, partitions of keys,
//! allocators.
//!
//! Options share an object with its handle.

use crate::boundary::{attempt, destroy, exclusive, give, quiet, shared};
use crate::*;
use esker::options::{
    FileChecksumCrc32c, FileChecksumGenFactory, FixedPrefixPartitions, SstPartitionerFactory,
};
use std::ptr;
use std::sync::Arc;

/// Makes checksums of whole files.
pub struct rocksdb_file_checksum_gen_factory_t {
    factory: Arc<dyn FileChecksumGenFactory>,
}

/// Decides which keys share a table.
pub struct rocksdb_sst_partitioner_factory_t {
    factory: Arc<dyn SstPartitionerFactory>,
}

/// An allocator for caches. There is none: memory is the process's allocator's.
pub struct rocksdb_memory_allocator_t {}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_file_checksum_gen_crc32c_factory_create()
-> *mut rocksdb_file_checksum_gen_factory_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_file_checksum_gen_factory_t {
            factory: Arc::new(FileChecksumCrc32c),
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_file_checksum_gen_factory_destroy(
    factory: *mut rocksdb_file_checksum_gen_factory_t,
) {
    destroy(factory);
}

/// NULL changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_file_checksum_gen_factory(
    options: *mut rocksdb_options_t,
    file_checksum_gen_factory: *mut rocksdb_file_checksum_gen_factory_t,
) {
    attempt((), || {
        let factory = Arc::clone(&shared(file_checksum_gen_factory)?.factory);
        exclusive(options)?.options.db.file_checksum_gen_factory = Some(factory);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_partitioner_fixed_prefix_factory_create(
    prefix_len: usize,
) -> *mut rocksdb_sst_partitioner_factory_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_sst_partitioner_factory_t {
            factory: Arc::new(FixedPrefixPartitions(prefix_len)),
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_sst_partitioner_factory_destroy(
    factory: *mut rocksdb_sst_partitioner_factory_t,
) {
    destroy(factory);
}

/// NULL changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_sst_partitioner_factory(
    options: *mut rocksdb_options_t,
    sst_partitioner_factory: *mut rocksdb_sst_partitioner_factory_t,
) {
    attempt((), || {
        let factory = Arc::clone(&shared(sst_partitioner_factory)?.factory);
        exclusive(options)?.options.family.sst_partitioner_factory = Some(factory);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_memory_allocator_destroy(
    memory_allocator: *mut rocksdb_memory_allocator_t,
) {
    destroy(memory_allocator);
}
