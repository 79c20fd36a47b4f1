//! The properties of a table, and the collectors that see the entries of new ones.

use crate::boundary::callbacks::{self, Owner, Plain};
use crate::boundary::{attempt, destroy, exclusive, shared};
use crate::lent::{Text, lend_listed_texts, lend_texts, read_numbers};
use crate::*;
use esker::options::{CompactOnDeletion, TableFilter, TablePropertiesCollectorFactory};
use esker_format::properties::TableProperties;
use std::ffi::{c_uchar, c_void};
use std::sync::Arc;

/// The properties of a table.
pub struct rocksdb_table_properties_t {
    properties: Arc<TableProperties>,
    texts: Texts,
    collected: (Vec<Text>, Vec<Text>),
}

#[derive(Default)]
struct Texts {
    db_id: Text,
    db_session_id: Text,
    db_host_id: Text,
    column_family_name: Text,
    filter_policy_name: Text,
    comparator_name: Text,
    merge_operator_name: Text,
    prefix_extractor_name: Text,
    property_collectors_names: Text,
    compression_name: Text,
    compression_options: Text,
    seqno_to_time_mapping: Text,
}

impl rocksdb_table_properties_t {
    /// A handle on what a table says.
    pub(crate) fn new(properties: Arc<TableProperties>) -> Self {
        let p = &*properties;
        let texts = Texts {
            db_id: Text::new(&p.db_id),
            db_session_id: Text::new(&p.db_session_id),
            db_host_id: Text::new(&p.db_host_id),
            column_family_name: Text::new(&p.column_family_name),
            filter_policy_name: Text::new(&p.filter_policy_name),
            comparator_name: Text::new(&p.comparator_name),
            merge_operator_name: Text::new(&p.merge_operator_name),
            prefix_extractor_name: Text::new(&p.prefix_extractor_name),
            property_collectors_names: Text::new(&p.property_collectors_names),
            compression_name: Text::new(&p.compression_name),
            compression_options: Text::new(&p.compression_options),
            seqno_to_time_mapping: Text::new(&p.seqno_to_time_mapping),
        };
        let collected = p
            .user_collected
            .iter()
            .map(|(name, value)| (Text::new(name), Text::new(value)))
            .unzip();
        rocksdb_table_properties_t {
            properties,
            texts,
            collected,
        }
    }
}

impl Default for rocksdb_table_properties_t {
    fn default() -> Self {
        Self::new(Arc::default())
    }
}

read_numbers!(rocksdb_table_properties_t;
    rocksdb_table_properties_orig_file_number: u64 = |t| t.properties.orig_file_number,
    rocksdb_table_properties_data_size: u64 = |t| t.properties.data_size,
    rocksdb_table_properties_uncompressed_data_size: u64 = |t| t.properties.raw_key_size.saturating_add(t.properties.raw_value_size),
    rocksdb_table_properties_index_size: u64 = |t| t.properties.index_size,
    rocksdb_table_properties_index_partitions: u64 = |t| t.properties.index_partitions,
    rocksdb_table_properties_top_level_index_size: u64 = |t| t.properties.top_level_index_size,
    rocksdb_table_properties_index_key_is_user_key: u64 = |t| u64::from(t.properties.index_key_is_user_key),
    rocksdb_table_properties_index_value_is_delta_encoded: u64 = |t| u64::from(t.properties.index_value_is_delta_encoded),
    rocksdb_table_properties_udi_is_primary_index: u64 = |t| t.properties.udi_is_primary_index,
    rocksdb_table_properties_filter_size: u64 = |t| t.properties.filter_size,
    rocksdb_table_properties_raw_key_size: u64 = |t| t.properties.raw_key_size,
    rocksdb_table_properties_raw_value_size: u64 = |t| t.properties.raw_value_size,
    rocksdb_table_properties_num_data_blocks: u64 = |t| t.properties.num_data_blocks,
    rocksdb_table_properties_num_data_blocks_compression_rejected: u64 = |t| t.properties.num_data_blocks_compression_rejected,
    rocksdb_table_properties_num_data_blocks_compression_bypassed: u64 = |t| t.properties.num_data_blocks_compression_bypassed,
    rocksdb_table_properties_num_uniform_blocks: u64 = |t| t.properties.num_uniform_blocks,
    rocksdb_table_properties_num_entries: u64 = |t| t.properties.num_entries,
    rocksdb_table_properties_num_filter_entries: u64 = |t| t.properties.num_filter_entries,
    rocksdb_table_properties_num_deletions: u64 = |t| t.properties.num_deletions,
    rocksdb_table_properties_num_merge_operands: u64 = |t| t.properties.num_merge_operands,
    rocksdb_table_properties_num_range_deletions: u64 = |t| t.properties.num_range_deletions,
    rocksdb_table_properties_format_version: u64 = |t| t.properties.format_version,
    rocksdb_table_properties_fixed_key_len: u64 = |t| t.properties.fixed_key_len,
    rocksdb_table_properties_column_family_id: u64 = |t| t.properties.column_family_id,
    rocksdb_table_properties_creation_time: u64 = |t| t.properties.creation_time,
    rocksdb_table_properties_oldest_key_time: u64 = |t| t.properties.oldest_key_time,
    rocksdb_table_properties_newest_key_time: u64 = |t| t.properties.newest_key_time,
    rocksdb_table_properties_file_creation_time: u64 = |t| t.properties.file_creation_time,
    rocksdb_table_properties_slow_compression_estimated_data_size: u64 = |t| t.properties.slow_compression_estimated_data_size,
    rocksdb_table_properties_fast_compression_estimated_data_size: u64 = |t| t.properties.fast_compression_estimated_data_size,
    rocksdb_table_properties_external_sst_file_global_seqno_offset: u64 = |_t| 0,
    rocksdb_table_properties_tail_start_offset: u64 = |t| t.properties.tail_start_offset,
    rocksdb_table_properties_user_defined_timestamps_persisted: u64 = |t| u64::from(t.properties.user_defined_timestamps_persisted),
    rocksdb_table_properties_key_largest_seqno: u64 = |t| t.properties.key_largest_seqno.unwrap_or(u64::MAX),
    rocksdb_table_properties_key_smallest_seqno: u64 = |t| t.properties.key_smallest_seqno.unwrap_or(u64::MAX),
    rocksdb_table_properties_data_block_restart_interval: u64 = |t| t.properties.data_block_restart_interval,
    rocksdb_table_properties_index_block_restart_interval: u64 = |t| t.properties.index_block_restart_interval,
    rocksdb_table_properties_separate_key_value_in_data_block: u64 = |t| u64::from(t.properties.separate_key_value_in_data_block),
    rocksdb_table_properties_has_key_largest_seqno: c_uchar = |t| c_uchar::from(t.properties.key_largest_seqno.is_some()),
    rocksdb_table_properties_has_key_smallest_seqno: c_uchar = |t| c_uchar::from(t.properties.key_smallest_seqno.is_some()),
    rocksdb_table_properties_user_collected_properties_count: usize = |t| t.collected.0.len(),
    rocksdb_table_properties_readable_properties_count: usize = |_t| 0,
);

lend_texts!(rocksdb_table_properties_t;
    rocksdb_table_properties_db_id = |t| &t.texts.db_id,
    rocksdb_table_properties_db_session_id = |t| &t.texts.db_session_id,
    rocksdb_table_properties_db_host_id = |t| &t.texts.db_host_id,
    rocksdb_table_properties_column_family_name = |t| &t.texts.column_family_name,
    rocksdb_table_properties_filter_policy_name = |t| &t.texts.filter_policy_name,
    rocksdb_table_properties_comparator_name = |t| &t.texts.comparator_name,
    rocksdb_table_properties_merge_operator_name = |t| &t.texts.merge_operator_name,
    rocksdb_table_properties_prefix_extractor_name = |t| &t.texts.prefix_extractor_name,
    rocksdb_table_properties_property_collectors_names = |t| &t.texts.property_collectors_names,
    rocksdb_table_properties_compression_name = |t| &t.texts.compression_name,
    rocksdb_table_properties_compression_options = |t| &t.texts.compression_options,
    rocksdb_table_properties_seqno_to_time_mapping = |t| &t.texts.seqno_to_time_mapping,
);

// Collectors give no properties for people to read: the lists of those are empty.
lend_listed_texts!(rocksdb_table_properties_t;
    rocksdb_table_properties_user_collected_properties_key_at = |t| &t.collected.0,
    rocksdb_table_properties_user_collected_properties_value_at = |t| &t.collected.1,
    rocksdb_table_properties_readable_properties_key_at = |_t| &[],
    rocksdb_table_properties_readable_properties_value_at = |_t| &[],
);

/// A factory of collectors.
pub struct rocksdb_table_properties_collector_factory_t {
    pub(crate) factory: Arc<dyn TablePropertiesCollectorFactory>,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_table_properties_collector_factory_destroy(
    factory: *mut rocksdb_table_properties_collector_factory_t,
) {
    destroy(factory);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_add_table_properties_collector_factory(
    options: *mut rocksdb_options_t,
    table_properties_collector_factory: *mut rocksdb_table_properties_collector_factory_t,
) {
    attempt((), || {
        let factory = Arc::clone(&shared(table_properties_collector_factory)?.factory);
        add_factory(options, factory)
    });
}

fn add_factory(
    options: *mut rocksdb_options_t,
    factory: Arc<dyn TablePropertiesCollectorFactory>,
) -> esker::Result<()> {
    let family = &mut exclusive(options)?.options.family;
    family.table_properties_collector_factories.push(factory);
    Ok(())
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_add_compact_on_deletion_collector_factory(
    options: *mut rocksdb_options_t,
    window_size: usize,
    num_dels_trigger: usize,
) {
    let factory = CompactOnDeletion::new(window_size, num_dels_trigger);
    attempt((), || add_factory(options, Arc::new(factory)));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(
    options: *mut rocksdb_options_t,
    window_size: usize,
    num_dels_trigger: usize,
    deletion_ratio: f64,
) {
    let mut factory = CompactOnDeletion::new(window_size, num_dels_trigger);
    factory.ratio = deletion_ratio;
    attempt((), || add_factory(options, Arc::new(factory)));
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size(
    options: *mut rocksdb_options_t,
    window_size: usize,
    num_dels_trigger: usize,
    deletion_ratio: f64,
    min_file_size: u64,
) {
    let mut factory = CompactOnDeletion::new(window_size, num_dels_trigger);
    factory.ratio = deletion_ratio;
    factory.min_file_size = min_file_size;
    attempt((), || add_factory(options, Arc::new(factory)));
}

/// The state is destroyed when the filter is cleared or replaced, or with the options and the last
/// iterator made with them.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_set_table_filter(
    readoptions: *mut rocksdb_readoptions_t,
    state: *mut c_void,
    destructor: Plain,
    table_filter: rocksdb_readoptions_table_filter_cb,
) {
    attempt((), || {
        let owner = Owner::new(state, destructor);
        exclusive(readoptions)?.read.table_filter = table_filter.map(|ask| {
            TableFilter::new(move |properties| {
                let about = rocksdb_table_properties_t::new(Arc::new(properties.clone()));
                callbacks::ask(ask, &owner, &about)
            })
        });
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_clear_table_filter(readoptions: *mut rocksdb_readoptions_t) {
    attempt((), || {
        exclusive(readoptions)?.read.table_filter = None;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_readoptions_has_table_filter(
    readoptions: *const rocksdb_readoptions_t,
) -> c_uchar {
    attempt(0, || {
        Ok(c_uchar::from(
            shared(readoptions)?.read.table_filter.is_some(),
        ))
    })
}
