//! Caches, the limit on memtables, and filter policies: objects that options share.

use crate::boundary::handles;
use crate::{disposals, natives};
use esker::{BlockCache, CacheOptions, WriteBufferManager};
use esker_format::filter::FilterPolicy;
use esker_sync::Arc;
use jni_sys::{jdouble, jint, jlong};

/// A block cache.
pub(crate) struct Cache(pub(crate) Arc<BlockCache>);

/// A cache on a device, which holds nothing.
pub(crate) struct OnDevice;

/// A limit on the memory of memtables.
pub(crate) struct Buffers(pub(crate) Arc<WriteBufferManager>);

/// A filter policy.
pub(crate) struct Filter(pub(crate) FilterPolicy);

/// A size from Java: the bits as they are.
fn size(n: jlong) -> usize {
    n as u64 as usize
}

fn lru(capacity: jlong, bits: jint, strict: bool, high: f64, low: f64) -> jlong {
    let mut options = CacheOptions::lru(size(capacity));
    options.num_shard_bits = bits;
    options.strict_capacity_limit = strict;
    options.high_pri_pool_ratio = high;
    options.low_pri_pool_ratio = low;
    handles::give(Cache(Arc::new(BlockCache::new(options))))
}

natives! {
    fn Java_org_rocksdb_LRUCache_newLRUCache__JIZD(
        env, capacity: jlong, bits: jint, strict: bool, high: jdouble
    ) -> jlong {
        Ok(lru(capacity, bits, strict, high, 0.0))
    }

    fn Java_org_rocksdb_LRUCache_newLRUCache__JIZDD(
        env, capacity: jlong, bits: jint, strict: bool, high: jdouble, low: jdouble
    ) -> jlong {
        Ok(lru(capacity, bits, strict, high, low))
    }

    /// RocksDB has an LRU cache under this name since 7.7.
    fn Java_org_rocksdb_ClockCache_newClockCache(
        env, capacity: jlong, bits: jint, strict: bool
    ) -> jlong {
        Ok(lru(capacity, bits, strict, 0.5, 0.0))
    }

    fn Java_org_rocksdb_HyperClockCache_newHyperClockCache(
        env, capacity: jlong, charge: jlong, bits: jint, strict: bool
    ) -> jlong {
        let mut options = CacheOptions::hyper_clock(size(capacity), size(charge));
        options.num_shard_bits = bits;
        options.strict_capacity_limit = strict;
        Ok(handles::give(Cache(Arc::new(BlockCache::new(options)))))
    }

    fn Java_org_rocksdb_Cache_getUsage(env, cache: jlong) -> jlong {
        Ok(handles::hold::<Cache>(cache)?.0.usage() as jlong)
    }

    fn Java_org_rocksdb_Cache_getPinnedUsage(env, cache: jlong) -> jlong {
        Ok(handles::hold::<Cache>(cache)?.0.pinned_usage() as jlong)
    }

    fn Java_org_rocksdb_WriteBufferManager_newWriteBufferManager__JJ(
        env, bytes: jlong, cache: jlong
    ) -> jlong {
        let cache = Arc::clone(&handles::hold::<Cache>(cache)?.0);
        Ok(handles::give(Buffers(WriteBufferManager::with_cache(size(bytes), cache, false))))
    }

    fn Java_org_rocksdb_WriteBufferManager_newWriteBufferManager__JJZ(
        env, bytes: jlong, cache: jlong, stall: bool
    ) -> jlong {
        let cache = Arc::clone(&handles::hold::<Cache>(cache)?.0);
        Ok(handles::give(Buffers(WriteBufferManager::with_cache(size(bytes), cache, stall))))
    }

    fn Java_org_rocksdb_BloomFilter_createNewBloomFilter__D(env, bits: jdouble) -> jlong {
        Ok(handles::give(Filter(FilterPolicy::bloom(bits))))
    }

    /// The second argument asked for a format of filters that RocksDB no longer writes.
    fn Java_org_rocksdb_BloomFilter_createNewBloomFilter__DZ(
        env, bits: jdouble, _block_based: bool
    ) -> jlong {
        Ok(handles::give(Filter(FilterPolicy::bloom(bits))))
    }
}

disposals! {
    Cache: Java_org_rocksdb_LRUCache_disposeInternal | Java_org_rocksdb_LRUCache_disposeInternalJni
        | Java_org_rocksdb_ClockCache_disposeInternal
        | Java_org_rocksdb_ClockCache_disposeInternalJni
        | Java_org_rocksdb_HyperClockCache_disposeInternalJni;
    Buffers: Java_org_rocksdb_WriteBufferManager_disposeInternal
        | Java_org_rocksdb_WriteBufferManager_disposeInternalJni;
    Filter: Java_org_rocksdb_Filter_disposeInternal | Java_org_rocksdb_Filter_disposeInternalJni;
}
