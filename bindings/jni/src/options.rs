//! The options of databases and families. Plain fields are generated; here is the rest. `Options`,
//! `DBOptions` and `ColumnFamilyOptions` are one kind of value, of which each uses its part.

use crate::boundary::{Env, Fault, Outcome, handles};
use crate::cache::{Buffers, Cache};
use crate::filters::{self, Factory, Filtering};
use crate::logger::Logging;
use crate::merge::SharedOperator;
use crate::shared::{SharedValue, change, give, value};
use crate::statistics::Stats;
use crate::table::Tables;
use crate::{disposals, natives};
use esker::options::{
    BlockCacheSource, CompactionPri, CompactionStyle, CompressionType, IndexType, PrefixExtractor,
    TableSettings, WalRecoveryMode,
};
use esker::{DbPath, KeyOrder, Options, WriteBufferManager};
use esker_format::filter::FilterPolicy;
use esker_sync::Arc;
use jni_sys::{jbyte, jint, jlong, jobject};

/// A world to run in: the operating system's for `None`.
pub(crate) struct SharedEnv(pub(crate) Option<esker::Env>);

impl SharedEnv {
    /// The environment of the engine.
    pub(crate) fn env(&self) -> esker::Env {
        self.0.clone().unwrap_or_else(esker::Env::posix)
    }
}

natives! {
    fn Java_org_rocksdb_Options_newOptions__ | Java_org_rocksdb_DBOptions_newDBOptions
        | Java_org_rocksdb_ColumnFamilyOptions_newColumnFamilyOptions(env) -> jlong {
        Ok(give(Options::default()))
    }

    fn Java_org_rocksdb_Options_newOptions__JJ(env, db: jlong, family: jlong) -> jlong {
        let mut options = Options::clone(&*value::<Options>(db)?);
        options.family = value::<Options>(family)?.family.clone();
        Ok(give(options))
    }

    fn Java_org_rocksdb_Options_copyOptions | Java_org_rocksdb_DBOptions_copyDBOptions
        | Java_org_rocksdb_ColumnFamilyOptions_copyColumnFamilyOptions
        | Java_org_rocksdb_DBOptions_newDBOptionsFromOptions
        | Java_org_rocksdb_ColumnFamilyOptions_newColumnFamilyOptionsFromOptions(
        env, from: jlong
    ) -> jlong {
        Ok(give(Options::clone(&*value::<Options>(from)?)))
    }

    fn Java_org_rocksdb_Options_setTableFactory
        | Java_org_rocksdb_ColumnFamilyOptions_setTableFactory(
        env, options: jlong, factory: jlong
    ) {
        // The options own the factory from now on.
        let tables = handles::hold::<Tables>(factory)?;
        change::<Options>(options, |o| {
            o.family.table_factory = tables.format;
            o.family.table = tables.settings.clone();
        })?;
        handles::take(factory);
        Ok(())
    }

    fn Java_org_rocksdb_Options_tableFactoryName
        | Java_org_rocksdb_ColumnFamilyOptions_tableFactoryName(env, options: jlong) -> jobject {
        // Whatever is asked for: tables are written block-based.
        value::<Options>(options)?;
        env.string("BlockBasedTable")
    }

    fn Java_org_rocksdb_Options_memTableFactoryName
        | Java_org_rocksdb_ColumnFamilyOptions_memTableFactoryName(env, options: jlong) -> jobject {
        value::<Options>(options)?;
        env.string("SkipListFactory")
    }

    fn Java_org_rocksdb_Options_setIncreaseParallelism
        | Java_org_rocksdb_DBOptions_setIncreaseParallelism(env, options: jlong, threads: jint) {
        change::<Options>(options, |o| o.db.max_background_jobs = threads)
    }

    fn Java_org_rocksdb_Options_optimizeForSmallDb__J(env, options: jlong) {
        change::<Options>(options, |o| {
            let cache = small_db(o, None);
            small_family(o, &cache);
        })
    }

    fn Java_org_rocksdb_DBOptions_optimizeForSmallDb(env, options: jlong) {
        change::<Options>(options, |o| {
            small_db(o, None);
        })
    }

    fn Java_org_rocksdb_ColumnFamilyOptions_optimizeForSmallDb__J(env, options: jlong) {
        change::<Options>(options, |o| {
            let cache = BlockCacheSource::with_capacity(32 << 20);
            small_family(o, &cache);
        })
    }

    fn Java_org_rocksdb_Options_optimizeForSmallDb__JJ
        | Java_org_rocksdb_ColumnFamilyOptions_optimizeForSmallDb__JJ(
        env, options: jlong, cache: jlong
    ) {
        let cache = Arc::clone(&handles::hold::<Cache>(cache)?.0);
        change::<Options>(options, |o| small_family(o, &BlockCacheSource::Shared(cache)))
    }

    fn Java_org_rocksdb_Options_optimizeForPointLookup
        | Java_org_rocksdb_ColumnFamilyOptions_optimizeForPointLookup(
        env, options: jlong, megabytes: jlong
    ) {
        change::<Options>(options, |o| {
            let mut table = TableSettings::default();
            table.data_block_index_type = esker::options::DataBlockIndexType::BinaryAndHash;
            table.filter_policy = Some(FilterPolicy::bloom(10.0));
            let bytes = (megabytes.max(0) as usize).saturating_mul(1 << 20);
            table.block_cache = BlockCacheSource::Own(esker::CacheOptions::lru(bytes));
            o.family.table = table;
            o.family.memtable_prefix_bloom_size_ratio = 0.02;
            o.family.memtable_whole_key_filtering = true;
        })
    }

    fn Java_org_rocksdb_Options_optimizeLevelStyleCompaction
        | Java_org_rocksdb_ColumnFamilyOptions_optimizeLevelStyleCompaction(
        env, options: jlong, budget: jlong
    ) {
        let budget = budget.max(0) as u64;
        change::<Options>(options, |o| {
            let family = &mut o.family;
            family.write_buffer_size = (budget / 4) as usize;
            family.min_write_buffer_number_to_merge = 2;
            family.max_write_buffer_number = 6;
            family.level0_file_num_compaction_trigger = 2;
            family.target_file_size_base = budget / 8;
            family.max_bytes_for_level_base = budget;
            family.compaction_style = CompactionStyle::Level;
            let codec = |level| match level {
                0 | 1 => CompressionType::None,
                _ => CompressionType::Lz4,
            };
            family.compression_per_level =
                (0..family.num_levels.clamp(0, 1000)).map(codec).collect();
        })
    }

    fn Java_org_rocksdb_Options_optimizeUniversalStyleCompaction
        | Java_org_rocksdb_ColumnFamilyOptions_optimizeUniversalStyleCompaction(
        env, options: jlong, budget: jlong
    ) {
        change::<Options>(options, |o| {
            let family = &mut o.family;
            family.write_buffer_size = (budget.max(0) / 4) as usize;
            family.min_write_buffer_number_to_merge = 2;
            family.max_write_buffer_number = 6;
            family.compaction_style = CompactionStyle::Universal;
            family.compaction_options_universal.compression_size_percent = 80;
        })
    }

    fn Java_org_rocksdb_Options_setStatistics | Java_org_rocksdb_DBOptions_setStatistics(
        env, options: jlong, statistics: jlong
    ) {
        let statistics = handles::hold_if::<Stats>(statistics)?.map(|s| Arc::clone(&s.0));
        change::<Options>(options, |o| o.db.statistics = statistics)
    }

    fn Java_org_rocksdb_Options_statistics | Java_org_rocksdb_DBOptions_statistics(
        env, options: jlong
    ) -> jlong {
        let statistics = value::<Options>(options)?.db.statistics.clone();
        Ok(statistics.map_or(0, |s| handles::give(Stats(s))))
    }

    fn Java_org_rocksdb_Options_setWriteBufferManager
        | Java_org_rocksdb_DBOptions_setWriteBufferManager(env, options: jlong, buffers: jlong) {
        let buffers = handles::hold_if::<Buffers>(buffers)?.map(|b| Arc::clone(&b.0));
        change::<Options>(options, |o| o.db.write_buffer_manager = buffers)
    }

    fn Java_org_rocksdb_Options_setMergeOperator
        | Java_org_rocksdb_ColumnFamilyOptions_setMergeOperator(
        env, options: jlong, operator: jlong
    ) {
        let operator = handles::hold_if::<SharedOperator>(operator)?.map(|m| Arc::clone(&m.0));
        change::<Options>(options, |o| o.family.merge_operator = operator)
    }

    fn Java_org_rocksdb_Options_setMergeOperatorName
        | Java_org_rocksdb_ColumnFamilyOptions_setMergeOperatorName(
        env, options: jlong, name: jobject
    ) {
        let operator = esker::merge_operator::by_name(&env.text(name)?);
        change::<Options>(options, |o| o.family.merge_operator = operator)
    }

    fn Java_org_rocksdb_Options_setCompactionFilterHandle
        | Java_org_rocksdb_ColumnFamilyOptions_setCompactionFilterHandle(
        env, options: jlong, filter: jlong
    ) {
        let filter = handles::hold_if::<Filtering>(filter)?.map(|f| Arc::clone(&f.0));
        change::<Options>(options, |o| o.family.compaction_filter = filter)
    }

    fn Java_org_rocksdb_Options_setCompactionFilterFactoryHandle
        | Java_org_rocksdb_ColumnFamilyOptions_setCompactionFilterFactoryHandle(
        env, options: jlong, factory: jlong
    ) {
        let factory = handles::hold_if::<Factory>(factory)?.map(|f| Arc::clone(&f.0));
        change::<Options>(options, |o| o.family.compaction_filter_factory = factory)
    }

    fn Java_org_rocksdb_Options_setComparatorHandle__JI
        | Java_org_rocksdb_ColumnFamilyOptions_setComparatorHandle__JI(
        env, options: jlong, builtin: jint
    ) {
        change::<Options>(options, |o| {
            o.family.comparator = match builtin {
                1 => KeyOrder::ReverseBytewise,
                _ => KeyOrder::Bytewise,
            };
        })
    }

    fn Java_org_rocksdb_Options_setComparatorHandle__JJB
        | Java_org_rocksdb_ColumnFamilyOptions_setComparatorHandle__JJB(
        env, options: jlong, comparator: jlong, _kind: jbyte
    ) {
        let order = filters::order(comparator)?;
        change::<Options>(options, |o| o.family.comparator = order)
    }

    fn Java_org_rocksdb_Options_setLogger__JJ | Java_org_rocksdb_DBOptions_setLogger__JJ(
        env, options: jlong, logger: jlong
    ) {
        let logger = handles::hold::<Logging>(logger)?.logger();
        change::<Options>(options, |o| o.db.info_log = Some(logger))
    }

    fn Java_org_rocksdb_Options_setLogger__JJB | Java_org_rocksdb_DBOptions_setLogger__JJB(
        env, options: jlong, logger: jlong, kind: jbyte
    ) {
        // Written in Java, or to standard error.
        if !(1..=2).contains(&kind) {
            return Err(Fault::Java(
                "java/lang/IllegalArgumentException",
                "Invalid argument: Unknown value for LoggerType".to_owned(),
            ));
        }
        let logger = handles::hold::<Logging>(logger)?.logger();
        change::<Options>(options, |o| o.db.info_log = Some(logger))
    }

    fn Java_org_rocksdb_Options_setEnv | Java_org_rocksdb_DBOptions_setEnv(
        env, options: jlong, world: jlong
    ) {
        let given = handles::hold::<SharedEnv>(world)?.0.clone();
        change::<Options>(options, |o| o.env = given)
    }

    fn Java_org_rocksdb_Env_getDefaultEnvInternal(env) -> jlong {
        Ok(handles::give(SharedEnv(None)))
    }

    /// An empty world whose files are in memory.
    fn Java_org_rocksdb_RocksMemEnv_createMemEnv(env, base: jlong) -> jlong {
        handles::hold::<SharedEnv>(base)?;
        Ok(handles::give(SharedEnv(Some(esker::Env::in_memory()))))
    }

    fn Java_org_rocksdb_Options_setWalDir | Java_org_rocksdb_DBOptions_setWalDir(
        env, options: jlong, path: jobject
    ) {
        let path = env.text(path)?;
        change::<Options>(options, |o| o.db.wal_dir = path)
    }

    fn Java_org_rocksdb_Options_walDir | Java_org_rocksdb_DBOptions_walDir(
        env, options: jlong
    ) -> jobject {
        env.string(&value::<Options>(options)?.db.wal_dir)
    }

    fn Java_org_rocksdb_Options_setDbLogDir | Java_org_rocksdb_DBOptions_setDbLogDir(
        env, options: jlong, path: jobject
    ) {
        let path = env.text(path)?;
        change::<Options>(options, |o| o.db.db_log_dir = path)
    }

    fn Java_org_rocksdb_Options_dbLogDir | Java_org_rocksdb_DBOptions_dbLogDir(
        env, options: jlong
    ) -> jobject {
        env.string(&value::<Options>(options)?.db.db_log_dir)
    }

    fn Java_org_rocksdb_Options_setDailyOffpeakTimeUTC
        | Java_org_rocksdb_DBOptions_setDailyOffpeakTimeUTC(env, options: jlong, text: jobject) {
        let text = env.text(text)?;
        change::<Options>(options, |o| o.db.daily_offpeak_time_utc = text)
    }

    fn Java_org_rocksdb_Options_dailyOffpeakTimeUTC
        | Java_org_rocksdb_DBOptions_dailyOffpeakTimeUTC(env, options: jlong) -> jobject {
        env.string(&value::<Options>(options)?.db.daily_offpeak_time_utc)
    }

    fn Java_org_rocksdb_Options_setDbPaths | Java_org_rocksdb_DBOptions_setDbPaths(
        env, options: jlong, paths: jobject, sizes: jobject
    ) {
        let paths = paths_of(env, paths, sizes)?;
        change::<Options>(options, |o| o.db.db_paths = paths)
    }

    fn Java_org_rocksdb_Options_setCfPaths | Java_org_rocksdb_ColumnFamilyOptions_setCfPaths(
        env, options: jlong, paths: jobject, sizes: jobject
    ) {
        let paths = paths_of(env, paths, sizes)?;
        change::<Options>(options, |o| o.family.cf_paths = paths)
    }

    fn Java_org_rocksdb_Options_dbPathsLen | Java_org_rocksdb_DBOptions_dbPathsLen(
        env, options: jlong
    ) -> jlong {
        Ok(value::<Options>(options)?.db.db_paths.len() as jlong)
    }

    fn Java_org_rocksdb_Options_cfPathsLen | Java_org_rocksdb_ColumnFamilyOptions_cfPathsLen(
        env, options: jlong
    ) -> jlong {
        Ok(value::<Options>(options)?.family.cf_paths.len() as jlong)
    }

    fn Java_org_rocksdb_Options_dbPaths | Java_org_rocksdb_DBOptions_dbPaths(
        env, options: jlong, paths: jobject, sizes: jobject
    ) {
        fill_paths(env, &value::<Options>(options)?.db.db_paths, paths, sizes)
    }

    fn Java_org_rocksdb_Options_cfPaths | Java_org_rocksdb_ColumnFamilyOptions_cfPaths(
        env, options: jlong, paths: jobject, sizes: jobject
    ) {
        fill_paths(env, &value::<Options>(options)?.family.cf_paths, paths, sizes)
    }

    fn Java_org_rocksdb_Options_oldDefaults | Java_org_rocksdb_ColumnFamilyOptions_oldDefaults(
        env, options: jlong, major: jint, minor: jint
    ) {
        change::<Options>(options, |o| old_defaults(o, (major, minor)))
    }

    fn Java_org_rocksdb_Options_useFixedLengthPrefixExtractor
        | Java_org_rocksdb_ColumnFamilyOptions_useFixedLengthPrefixExtractor(
        env, options: jlong, length: jint
    ) {
        let length = crate::boundary::count(length)?;
        change::<Options>(options, |o| {
            o.family.prefix_extractor = Some(PrefixExtractor::Fixed(length));
        })
    }

    fn Java_org_rocksdb_Options_useCappedPrefixExtractor
        | Java_org_rocksdb_ColumnFamilyOptions_useCappedPrefixExtractor(
        env, options: jlong, length: jint
    ) {
        let length = crate::boundary::count(length)?;
        change::<Options>(options, |o| {
            o.family.prefix_extractor = Some(PrefixExtractor::Capped(length));
        })
    }

    fn Java_org_rocksdb_Options_setCompressionPerLevel
        | Java_org_rocksdb_ColumnFamilyOptions_setCompressionPerLevel(
        env, options: jlong, codecs: jobject
    ) {
        let codecs = env.array(codecs)?;
        let codecs = codecs.iter().map(|b| crate::access::JavaValue::to_field(*b as jbyte));
        let codecs: Option<Vec<CompressionType>> = codecs.collect();
        change::<Options>(options, |o| {
            if let Some(codecs) = codecs {
                o.family.compression_per_level = codecs;
            }
        })
    }

    fn Java_org_rocksdb_Options_compressionPerLevel
        | Java_org_rocksdb_ColumnFamilyOptions_compressionPerLevel(
        env, options: jlong
    ) -> jobject {
        let options = value::<Options>(options)?;
        let number = |c| <jbyte as crate::access::JavaValue<CompressionType>>::from_field(c) as u8;
        let codecs: Vec<u8> = options.family.compression_per_level.iter().map(number).collect();
        env.new_array(&codecs)
    }

    fn Java_org_rocksdb_Options_setMaxBytesForLevelMultiplierAdditional
        | Java_org_rocksdb_ColumnFamilyOptions_setMaxBytesForLevelMultiplierAdditional(
        env, options: jlong, more: jobject
    ) {
        let more = env.ints(more)?;
        change::<Options>(options, |o| o.family.max_bytes_for_level_multiplier_additional = more)
    }

    fn Java_org_rocksdb_Options_maxBytesForLevelMultiplierAdditional
        | Java_org_rocksdb_ColumnFamilyOptions_maxBytesForLevelMultiplierAdditional(
        env, options: jlong
    ) -> jobject {
        env.new_ints(&value::<Options>(options)?.family.max_bytes_for_level_multiplier_additional)
    }

    fn Java_org_rocksdb_ColumnFamilyOptions_getColumnFamilyOptionsFromProps__Ljava_lang_String_2
        | Java_org_rocksdb_DBOptions_getDBOptionsFromProps__Ljava_lang_String_2(
        env, text: jobject
    ) -> jlong {
        // Java's side makes an exception of its own where there are no options.
        let made = Options::default().set_all(&env.text(text)?);
        Ok(made.map_or(0, give))
    }

    /// Of the configuration only the environment could count, which there is one of.
    fn Java_org_rocksdb_ColumnFamilyOptions_getColumnFamilyOptionsFromProps__JLjava_lang_String_2
        | Java_org_rocksdb_DBOptions_getDBOptionsFromProps__JLjava_lang_String_2(
        env, _config: jlong, text: jobject
    ) -> jlong {
        let made = Options::default().set_all(&env.text(text)?);
        Ok(made.map_or(0, give))
    }
}

/// Puts paths and their sizes into the arrays that Java gives.
fn fill_paths(env: Env<'_>, all: &[DbPath], paths: jobject, sizes: jobject) -> Outcome<()> {
    let room = env.array_length(paths)?;
    for (at, path) in all.iter().enumerate().take(room) {
        let text = env.string(&path.path.to_string_lossy())?;
        env.set(paths, at, text)?;
        env.forget(text);
    }
    let targets: Vec<jlong> = all
        .iter()
        .map(|p| p.target_size as jlong)
        .take(room)
        .collect();
    env.fill_longs(sizes, &targets)
}

/// The defaults that an old version of RocksDB had.
fn old_defaults(o: &mut Options, version: (jint, jint)) {
    if version <= (5, 18) {
        o.family.compaction_pri = CompactionPri::ByCompensatedSize;
    }
    if version < (4, 7) {
        o.family.write_buffer_size = 4 << 20;
        o.family.target_file_size_base = 2 << 20;
        o.family.max_bytes_for_level_base = 10 << 20;
        o.family.soft_pending_compaction_bytes_limit = 0;
        o.family.hard_pending_compaction_bytes_limit = 0;
        o.db.max_file_opening_threads = 1;
        o.db.table_cache_numshardbits = 4;
    }
    if version < (5, 0) {
        o.family.level0_stop_writes_trigger = 24;
    } else if version < (5, 2) {
        o.family.level0_stop_writes_trigger = 30;
    }
    if version < (5, 2) {
        o.db.delayed_write_rate = 2 << 20;
    } else if version < (5, 6) {
        o.db.delayed_write_rate = 16 << 20;
    }
    o.db.max_open_files = 5000;
    o.db.wal_recovery_mode = WalRecoveryMode::TolerateCorruptedTailRecords;
}

/// Paths and their sizes as Java gives them.
fn paths_of(env: Env<'_>, paths: jobject, sizes: jobject) -> Outcome<Vec<DbPath>> {
    let paths = env.each(paths, |p| env.text(p))?;
    let sizes = env.longs(sizes)?;
    Ok(paths
        .into_iter()
        .zip(sizes)
        .map(|(path, size)| DbPath::new(path, size as u64))
        .collect())
}

/// As for a database that is small; memtables are charged to the cache.
fn small_db(o: &mut Options, cache: Option<&Arc<esker::BlockCache>>) -> BlockCacheSource {
    let cache = cache.cloned().unwrap_or_else(|| {
        let limits = esker::CacheOptions::lru(16 << 20);
        Arc::new(esker::BlockCache::new(limits))
    });
    o.db.max_file_opening_threads = 1;
    o.db.max_open_files = 5000;
    o.db.write_buffer_manager = Some(WriteBufferManager::with_cache(0, Arc::clone(&cache), false));
    BlockCacheSource::Shared(cache)
}

/// As for a family that is small.
fn small_family(o: &mut Options, cache: &BlockCacheSource) {
    let family = &mut o.family;
    family.write_buffer_size = 2 << 20;
    family.target_file_size_base = 2 << 20;
    family.max_bytes_for_level_base = 10 << 20;
    family.soft_pending_compaction_bytes_limit = 256 << 20;
    family.hard_pending_compaction_bytes_limit = 1 << 30;
    let mut table = TableSettings::default();
    table.block_cache = cache.clone();
    table.cache_index_and_filter_blocks = true;
    table.index_type = IndexType::TwoLevelIndexSearch;
    family.table = table;
}

disposals! {
    SharedValue<Options>: Java_org_rocksdb_Options_disposeInternal
        | Java_org_rocksdb_Options_disposeInternalJni
        | Java_org_rocksdb_DBOptions_disposeInternal
        | Java_org_rocksdb_DBOptions_disposeInternalJni
        | Java_org_rocksdb_ColumnFamilyOptions_disposeInternal
        | Java_org_rocksdb_ColumnFamilyOptions_disposeInternalJni;
    SharedEnv: Java_org_rocksdb_RocksEnv_disposeInternal
        | Java_org_rocksdb_RocksEnv_disposeInternalJni
        | Java_org_rocksdb_RocksMemEnv_disposeInternal
        | Java_org_rocksdb_RocksMemEnv_disposeInternalJni;
}
