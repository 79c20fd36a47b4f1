//! Objects that options take: settings of compactions and codecs, limits on rate and space, indexes
//! of memtables.

use crate::boundary::handles;
use crate::database::Database;
use crate::disposals;
use crate::natives;
use crate::shared::{SharedValue, change, give, value};
use esker::options::{
    CompressionSettings, FifoSettings, FixedPrefixPartitions, MemtableKind, UniversalSettings,
};
use esker::{
    CompactFilesOptions, ImportOptions, IoPriority, Options, RateLimiter, RateLimiterMode,
    RateLimiterOptions, SstFileManager,
};
use esker_sync::Arc;
use jni_sys::{jbyte, jdouble, jint, jlong, jobject};
use std::collections::BTreeMap;

/// A limit on the bytes a second of background jobs.
pub(crate) struct Limiter(pub(crate) Arc<RateLimiter>);

/// A manager of the space that tables take.
pub(crate) struct Space(pub(crate) Arc<SstFileManager>);

/// The index of memtables, until options take it over.
pub(crate) struct Memtables(MemtableKind);

/// Rules for where tables end.
pub(crate) struct Partitions(FixedPrefixPartitions);

natives! {
    fn Java_org_rocksdb_CompactionOptionsUniversal_newCompactionOptionsUniversal(env) -> jlong {
        Ok(give(UniversalSettings::default()))
    }

    fn Java_org_rocksdb_CompactionOptionsFIFO_newCompactionOptionsFIFO(env) -> jlong {
        Ok(give(FifoSettings::default()))
    }

    fn Java_org_rocksdb_CompressionOptions_newCompressionOptions(env) -> jlong {
        Ok(give(CompressionSettings::default()))
    }

    fn Java_org_rocksdb_CompactionOptions_newCompactionOptions(env) -> jlong {
        Ok(give(CompactFilesOptions::default()))
    }

    fn Java_org_rocksdb_CompactionOptions_compression(env, options: jlong) -> jbyte {
        let options = value::<CompactFilesOptions>(options)?;
        let codec = options.compression.unwrap_or(esker::options::CompressionType::Disable);
        Ok(crate::access::JavaValue::from_field(&codec))
    }

    fn Java_org_rocksdb_CompactionOptions_setCompression(env, options: jlong, codec: jbyte) {
        let codec: Option<esker::options::CompressionType> =
            crate::access::JavaValue::to_field(codec);
        let none = esker::options::CompressionType::Disable;
        change::<CompactFilesOptions>(options, |o| o.compression = codec.filter(|c| *c != none))
    }

    fn Java_org_rocksdb_Options_setCompactionOptionsUniversal
        | Java_org_rocksdb_ColumnFamilyOptions_setCompactionOptionsUniversal(
        env, options: jlong, settings: jlong
    ) {
        let settings = UniversalSettings::clone(&*value::<UniversalSettings>(settings)?);
        change::<Options>(options, |o| o.family.compaction_options_universal = settings)
    }

    fn Java_org_rocksdb_Options_setCompactionOptionsFIFO
        | Java_org_rocksdb_ColumnFamilyOptions_setCompactionOptionsFIFO(
        env, options: jlong, settings: jlong
    ) {
        let settings = FifoSettings::clone(&*value::<FifoSettings>(settings)?);
        change::<Options>(options, |o| o.family.compaction_options_fifo = settings)
    }

    fn Java_org_rocksdb_Options_setCompressionOptions
        | Java_org_rocksdb_ColumnFamilyOptions_setCompressionOptions(
        env, options: jlong, settings: jlong
    ) {
        let settings = CompressionSettings::clone(&*value::<CompressionSettings>(settings)?);
        change::<Options>(options, |o| o.family.compression_opts = settings)
    }

    fn Java_org_rocksdb_Options_setBottommostCompressionOptions
        | Java_org_rocksdb_ColumnFamilyOptions_setBottommostCompressionOptions(
        env, options: jlong, settings: jlong
    ) {
        let settings = CompressionSettings::clone(&*value::<CompressionSettings>(settings)?);
        change::<Options>(options, |o| o.family.bottommost_compression_opts = settings)
    }

    fn Java_org_rocksdb_RateLimiter_newRateLimiterHandle(
        env, rate: jlong, refill_us: jlong, fairness: jint, mode: jbyte, tuned: bool
    ) -> jlong {
        let mut options = RateLimiterOptions::default();
        options.bytes_per_second = u64::try_from(rate).unwrap_or(0);
        options.refill_period_us = u64::try_from(refill_us).unwrap_or(0);
        options.fairness = u32::try_from(fairness).unwrap_or(1);
        options.mode = RateLimiterMode::from_number(i32::from(mode)).unwrap_or_default();
        options.auto_tuned = tuned;
        Ok(handles::give(Limiter(RateLimiter::with_options(options))))
    }

    fn Java_org_rocksdb_RateLimiter_getBytesPerSecond(env, limiter: jlong) -> jlong {
        Ok(handles::hold::<Limiter>(limiter)?.0.bytes_per_second() as jlong)
    }

    fn Java_org_rocksdb_RateLimiter_setBytesPerSecond(env, limiter: jlong, rate: jlong) {
        let rate = u64::try_from(rate).unwrap_or(0);
        handles::hold::<Limiter>(limiter)?.0.set_bytes_per_second(rate);
        Ok(())
    }

    /// Waits until so many bytes may be written.
    fn Java_org_rocksdb_RateLimiter_request(env, limiter: jlong, bytes: jlong) {
        let limiter = Arc::clone(&handles::hold::<Limiter>(limiter)?.0);
        let bytes = u64::try_from(bytes).unwrap_or(0);
        Ok(limiter.request(bytes, IoPriority::User, || false)?)
    }

    fn Java_org_rocksdb_RateLimiter_getSingleBurstBytes(env, limiter: jlong) -> jlong {
        Ok(handles::hold::<Limiter>(limiter)?.0.single_burst_bytes() as jlong)
    }

    fn Java_org_rocksdb_RateLimiter_getTotalBytesThrough(env, limiter: jlong) -> jlong {
        Ok(handles::hold::<Limiter>(limiter)?.0.total_bytes(None::<IoPriority>) as jlong)
    }

    fn Java_org_rocksdb_RateLimiter_getTotalRequests(env, limiter: jlong) -> jlong {
        Ok(handles::hold::<Limiter>(limiter)?.0.total_requests(None::<IoPriority>) as jlong)
    }

    fn Java_org_rocksdb_Options_setRateLimiter | Java_org_rocksdb_DBOptions_setRateLimiter(
        env, options: jlong, limiter: jlong
    ) {
        let limiter = handles::hold_if::<Limiter>(limiter)?.map(|l| Arc::clone(&l.0));
        change::<Options>(options, |o| o.db.rate_limiter = limiter)
    }

    /// Files are deleted at once and in one piece: the last argument has nothing to limit.
    fn Java_org_rocksdb_SstFileManager_newSstFileManager(
        env, _world: jlong, _logger: jlong, rate: jlong, ratio: jdouble, _chunk: jlong
    ) -> jlong {
        let manager = SstFileManager::new();
        manager.set_delete_rate_bytes_per_second(rate);
        manager.set_max_trash_db_ratio(ratio);
        Ok(handles::give(Space(manager)))
    }

    fn Java_org_rocksdb_SstFileManager_setMaxAllowedSpaceUsage(env, space: jlong, bytes: jlong) {
        handles::hold::<Space>(space)?.0.set_max_allowed_space_usage(bytes as u64);
        Ok(())
    }

    fn Java_org_rocksdb_SstFileManager_setCompactionBufferSize(env, space: jlong, bytes: jlong) {
        handles::hold::<Space>(space)?.0.set_compaction_buffer_size(bytes as u64);
        Ok(())
    }

    fn Java_org_rocksdb_SstFileManager_isMaxAllowedSpaceReached(env, space: jlong) -> bool {
        Ok(handles::hold::<Space>(space)?.0.is_max_allowed_space_reached())
    }

    fn Java_org_rocksdb_SstFileManager_isMaxAllowedSpaceReachedIncludingCompactions(
        env, space: jlong
    ) -> bool {
        Ok(handles::hold::<Space>(space)?.0.is_max_allowed_space_reached_including_compactions())
    }

    fn Java_org_rocksdb_SstFileManager_getTotalSize(env, space: jlong) -> jlong {
        Ok(handles::hold::<Space>(space)?.0.total_size() as jlong)
    }

    /// The tables and blob files of the open databases, and their sizes.
    fn Java_org_rocksdb_SstFileManager_getTrackedFiles(env, space: jlong) -> jobject {
        let space = handles::hold::<Space>(space)?;
        let mut files = BTreeMap::new();
        handles::each::<Database>(|database| database.add_tracked(&space.0, &mut files))?;
        env.reserve(2 * files.len() + 16)?;
        let mut entries = Vec::new();
        for (path, bytes) in files {
            entries.push((env.string(&path)?, env.long(bytes)?));
        }
        env.map(&entries)
    }

    fn Java_org_rocksdb_SstFileManager_getDeleteRateBytesPerSecond(env, space: jlong) -> jlong {
        Ok(handles::hold::<Space>(space)?.0.delete_rate_bytes_per_second())
    }

    fn Java_org_rocksdb_SstFileManager_setDeleteRateBytesPerSecond(
        env, space: jlong, rate: jlong
    ) {
        handles::hold::<Space>(space)?.0.set_delete_rate_bytes_per_second(rate);
        Ok(())
    }

    fn Java_org_rocksdb_SstFileManager_getMaxTrashDBRatio(env, space: jlong) -> jdouble {
        Ok(handles::hold::<Space>(space)?.0.max_trash_db_ratio())
    }

    fn Java_org_rocksdb_SstFileManager_setMaxTrashDBRatio(env, space: jlong, ratio: jdouble) {
        handles::hold::<Space>(space)?.0.set_max_trash_db_ratio(ratio);
        Ok(())
    }

    fn Java_org_rocksdb_Options_setSstFileManager | Java_org_rocksdb_DBOptions_setSstFileManager(
        env, options: jlong, space: jlong
    ) {
        let space = handles::hold_if::<Space>(space)?.map(|s| Arc::clone(&s.0));
        change::<Options>(options, |o| o.db.sst_file_manager = space)
    }

    fn Java_org_rocksdb_SkipListMemTableConfig_newMemTableFactoryHandle0(
        env, _lookahead: jlong
    ) -> jlong {
        Ok(handles::give(Memtables(MemtableKind::SkipList)))
    }

    fn Java_org_rocksdb_VectorMemTableConfig_newMemTableFactoryHandle(
        env, _reserved: jlong
    ) -> jlong {
        Ok(handles::give(Memtables(MemtableKind::Vector)))
    }

    fn Java_org_rocksdb_HashSkipListMemTableConfig_newMemTableFactoryHandle(
        env, _buckets: jlong, _height: jint, _branching: jint
    ) -> jlong {
        Ok(handles::give(Memtables(MemtableKind::HashSkipList)))
    }

    fn Java_org_rocksdb_HashLinkedListMemTableConfig_newMemTableFactoryHandle(
        env, _buckets: jlong, _page: jlong, _entries: jint, _logs: bool, _threshold: jint
    ) -> jlong {
        Ok(handles::give(Memtables(MemtableKind::HashLinkList)))
    }

    fn Java_org_rocksdb_Options_setMemTableFactory
        | Java_org_rocksdb_ColumnFamilyOptions_setMemTableFactory(
        env, options: jlong, factory: jlong
    ) {
        let kind = handles::hold::<Memtables>(factory)?.0;
        change::<Options>(options, |o| o.family.memtable_factory = kind)?;
        handles::take(factory);
        Ok(())
    }

    fn Java_org_rocksdb_SstPartitionerFixedPrefixFactory_newSstPartitionerFixedPrefixFactory0(
        env, length: jlong
    ) -> jlong {
        let length = usize::try_from(length).unwrap_or(0);
        Ok(handles::give(Partitions(FixedPrefixPartitions(length))))
    }

    fn Java_org_rocksdb_Options_setSstPartitionerFactory
        | Java_org_rocksdb_ColumnFamilyOptions_setSstPartitionerFactory(
        env, options: jlong, factory: jlong
    ) {
        let rules = handles::hold::<Partitions>(factory)?.0;
        change::<Options>(options, |o| o.family.sst_partitioner_factory = Some(Arc::new(rules)))
    }

    fn Java_org_rocksdb_ImportColumnFamilyOptions_newImportColumnFamilyOptions(env) -> jlong {
        Ok(give(ImportOptions::default()))
    }

    fn Java_org_rocksdb_Options_prepareForBulkLoad(env, options: jlong) {
        change::<Options>(options, |o| {
            let family = &mut o.family;
            family.level0_file_num_compaction_trigger = 1 << 30;
            family.level0_slowdown_writes_trigger = 1 << 30;
            family.level0_stop_writes_trigger = 1 << 30;
            family.soft_pending_compaction_bytes_limit = 0;
            family.hard_pending_compaction_bytes_limit = 0;
            family.disable_auto_compactions = true;
            family.max_compaction_bytes = 1 << 60;
            family.num_levels = 2;
            family.max_write_buffer_number = 6;
            family.min_write_buffer_number_to_merge = 1;
            family.target_file_size_base = 256 << 20;
            o.db.max_background_flushes = 4;
        })
    }
}

disposals! {
    SharedValue<UniversalSettings>: Java_org_rocksdb_CompactionOptionsUniversal_disposeInternal
        | Java_org_rocksdb_CompactionOptionsUniversal_disposeInternalJni;
    SharedValue<FifoSettings>: Java_org_rocksdb_CompactionOptionsFIFO_disposeInternal
        | Java_org_rocksdb_CompactionOptionsFIFO_disposeInternalJni;
    SharedValue<CompressionSettings>: Java_org_rocksdb_CompressionOptions_disposeInternal
        | Java_org_rocksdb_CompressionOptions_disposeInternalJni;
    SharedValue<CompactFilesOptions>: Java_org_rocksdb_CompactionOptions_disposeInternal
        | Java_org_rocksdb_CompactionOptions_disposeInternalJni;
    SharedValue<ImportOptions>: Java_org_rocksdb_ImportColumnFamilyOptions_disposeInternal;
    Limiter: Java_org_rocksdb_RateLimiter_disposeInternal
        | Java_org_rocksdb_RateLimiter_disposeInternalJni;
    Space: Java_org_rocksdb_SstFileManager_disposeInternal
        | Java_org_rocksdb_SstFileManager_disposeInternalJni;
    Partitions: Java_org_rocksdb_SstPartitionerFixedPrefixFactory_disposeInternal
        | Java_org_rocksdb_SstPartitionerFixedPrefixFactory_disposeInternalJni;
}
