//! Table formats.

use crate::access::JavaValue;
use crate::boundary::{Outcome, handles};
use crate::cache::{Cache, Filter, OnDevice};
use crate::natives;
use esker::options::{BlockCacheSource, TableFormat, TableSettings};
use esker_sync::Arc;
use jni_sys::{jbyte, jdouble, jint, jlong};

/// A table format with its settings, until options take it over.
pub(crate) struct Tables {
    pub(crate) format: TableFormat,
    pub(crate) settings: TableSettings,
}

/// Settings that Java gives: the fields of `BlockBasedTableConfig` that all versions have.
struct TableConfig {
    settings: TableSettings,
    cache: jlong,
    cache_size: jlong,
    cache_bits: jint,
    filter: jlong,
    persistent_cache: jlong,
}

impl TableConfig {
    fn tables(mut self) -> Outcome<jlong> {
        let table = &mut self.settings;
        handles::hold_if::<OnDevice>(self.persistent_cache.max(0))?;
        if !table.no_block_cache {
            if self.cache > 0 {
                let cache = Arc::clone(&handles::hold::<Cache>(self.cache)?.0);
                table.block_cache = BlockCacheSource::Shared(cache);
            } else if self.cache_size >= 0 {
                let mut limits = esker::CacheOptions::lru(self.cache_size as usize);
                if self.cache_bits > 0 {
                    limits.num_shard_bits = self.cache_bits;
                }
                table.block_cache = BlockCacheSource::Own(limits);
            } else {
                table.no_block_cache = true;
            }
        }
        if let Some(filter) = handles::hold_if::<Filter>(self.filter)? {
            table.filter_policy = Some(filter.0);
        }
        Ok(handles::give(Tables {
            format: TableFormat::BlockBased,
            settings: self.settings,
        }))
    }
}

/// Sets fields from Java's values; one that names nothing leaves its field.
macro_rules! fields {
    ($table:ident: $($field:ident = $value:expr),* $(,)?) => {$(
        if let Some(value) = JavaValue::to_field($value) {
            $table.$field = value;
        }
    )*};
}

/// Exports one version's method; its arguments are those that all have, in order, with what it has
/// more.
macro_rules! table {
    ($name:ident, [$($before:ident),*], [$($middle:ident: $middle_type:ty),*],
     [$($super:ident: $super_type:ty),*], [$($search:ident: $search_type:ty),*],
     [$($after:ident: $after_type:ty),*]) => {
        natives! {
            fn $name(
                env, cache_index: bool, high_priority: bool, pin_l0: bool, pin_top: bool,
                index_type: jbyte, data_index: jbyte, hash_ratio: jdouble, checksum: jbyte,
                no_cache: bool, cache: jlong, persistent_cache: jlong, $($before: jlong,)*
                block_size: jlong, deviation: jint, restart: jint, index_restart: jint,
                metadata_size: jlong, partitioned: bool, fit_memory: bool, delta: bool,
                filter: jlong, whole_keys: bool, verify: bool, read_amp: jint, version: jint,
                $($middle: $middle_type,)* index_compression: bool, align: bool,
                $($super: $super_type,)* shortening: jbyte, $($search: $search_type,)*
                cache_size: jlong, cache_bits: jint $(, $after: $after_type)*
            ) -> jlong {
                $(let _ = $before;)*
                $(let _ = $after;)*
                let mut settings = TableSettings::default();
                let table = &mut settings;
                fields!(table:
                    cache_index_and_filter_blocks = cache_index,
                    cache_index_and_filter_blocks_with_high_priority = high_priority,
                    pin_l0_filter_and_index_blocks_in_cache = pin_l0,
                    pin_top_level_index_and_filter = pin_top,
                    index_type = index_type,
                    data_block_index_type = data_index,
                    data_block_hash_table_util_ratio = hash_ratio,
                    checksum = checksum,
                    no_block_cache = no_cache,
                    block_size = block_size,
                    block_size_deviation = deviation,
                    block_restart_interval = restart,
                    index_block_restart_interval = index_restart,
                    metadata_block_size = metadata_size,
                    partition_filters = partitioned,
                    optimize_filters_for_memory = fit_memory,
                    use_delta_encoding = delta,
                    whole_key_filtering = whole_keys,
                    verify_compression = verify,
                    read_amp_bytes_per_bit = read_amp,
                    format_version = version,
                    enable_index_compression = index_compression,
                    block_align = align,
                    index_shortening = shortening,
                    $($middle = $middle,)*
                    $($super = $super,)*
                    $($search = $search,)*
                );
                TableConfig { settings, cache, cache_size, cache_bits, filter, persistent_cache }.tables()
            }
        }
    };
}

table!(
    Java_org_rocksdb_BlockBasedTableConfig_newTableFactoryHandle__ZZZZBBDBZJJJJIIIJZZZJZZIIZZBJIJI,
    [compressed_cache],
    [],
    [],
    [],
    [compressed_size: jlong, compressed_bits: jint]
);
table!(
    Java_org_rocksdb_BlockBasedTableConfig_newTableFactoryHandle__ZZZZBBDBZJJJIIIJZZZJZZIIZZBJI,
    [],
    [],
    [],
    [],
    []
);
table!(
    Java_org_rocksdb_BlockBasedTableConfig_newTableFactoryHandle__ZZZZBBDBZJJJIIIJZZZJZZIIZDZZJJBBJI,
    [],
    [separate_key_value_in_data_block: bool, uniform_cv_threshold: jdouble],
    [super_block_alignment_size: jlong, super_block_alignment_space_overhead_ratio: jlong],
    [index_block_search_type: jbyte],
    []
);

natives! {
    /// Tables are written block-based, whatever is asked for; the LOG says so.
    fn Java_org_rocksdb_PlainTableConfig_newTableFactoryHandle(
        env, _key_size: jint, _bloom_bits: jint, _ratio: jdouble, _sparseness: jint,
        _huge_pages: jint, _encoding: jbyte, _full_scan: bool, _store_index: bool
    ) -> jlong {
        Ok(handles::give(Tables {
            format: TableFormat::Plain,
            settings: TableSettings::default(),
        }))
    }
}
