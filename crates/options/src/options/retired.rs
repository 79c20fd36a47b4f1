//! Names that RocksDB accepts without effect, names that are aliases, and values that old releases
//! wrote wrongly.

use std::borrow::Cow;

/// Which part of an OPTIONS file an option lives in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// `[DBOptions]`.
    Db,
    /// `[CFOptions "name"]`.
    Family,
    /// `[TableOptions/BlockBasedTable "name"]`.
    Table,
    /// Inside `compression_opts={...}`, `bottommost_compression_opts` and `blob_compression_opts`.
    Compression,
    /// Inside `compaction_options_universal={...}`.
    Universal,
    /// Inside `compaction_options_fifo={...}`.
    Fifo,
    /// Inside `metadata_cache_options={...}`.
    MetadataCache,
}

impl Section {
    /// The name that messages and the compatibility table use.
    pub fn title(self) -> &'static str {
        match self {
            Section::Db => "DBOptions",
            Section::Family => "CFOptions",
            Section::Table => "BlockBasedTableOptions",
            Section::Compression => "compression_opts",
            Section::Universal => "compaction_options_universal",
            Section::Fifo => "compaction_options_fifo",
            Section::MetadataCache => "metadata_cache_options",
        }
    }
}

/// A name that RocksDB once had and now parses without effect.
#[derive(Clone, Copy, Debug)]
pub struct Retired {
    /// The name.
    pub name: &'static str,
    /// Where it is accepted.
    pub section: Section,
    /// Another name for a live option, or nothing.
    pub alias_of: Option<&'static str>,
}

const fn gone(section: Section, name: &'static str) -> Retired {
    Retired {
        name,
        section,
        alias_of: None,
    }
}

const fn alias(section: Section, name: &'static str, real: &'static str) -> Retired {
    Retired {
        name,
        section,
        alias_of: Some(real),
    }
}

/// All of them.
pub static RETIRED: &[Retired] = &[
    gone(Section::Db, "allow_os_buffer"),
    gone(Section::Db, "base_background_compactions"),
    gone(Section::Db, "use_direct_writes"),
    gone(Section::Db, "disableDataSync"),
    gone(Section::Db, "disable_data_sync"),
    gone(Section::Db, "experimental_allow_mempurge"),
    gone(Section::Db, "experimental_mempurge_policy"),
    gone(Section::Db, "experimental_mempurge_threshold"),
    gone(Section::Db, "skip_log_error_on_recovery"),
    gone(Section::Db, "new_table_reader_for_compaction_inputs"),
    gone(Section::Db, "preserve_deletes"),
    gone(Section::Db, "concurrent_prepare"),
    gone(Section::Db, "seq_per_batch"),
    gone(Section::Family, "filter_deletes"),
    gone(Section::Family, "verify_checksums_in_compaction"),
    gone(Section::Family, "hard_rate_limit"),
    gone(Section::Family, "soft_rate_limit"),
    gone(Section::Family, "expanded_compaction_factor"),
    gone(Section::Family, "max_grandparent_overlap_factor"),
    gone(Section::Family, "source_compaction_factor"),
    gone(Section::Family, "memtable_prefix_bloom_huge_page_tlb_size"),
    gone(Section::Family, "memtable_prefix_bloom_bits"),
    gone(Section::Family, "memtable_prefix_bloom_probes"),
    gone(Section::Family, "min_partial_merge_operands"),
    gone(Section::Family, "snap_refresh_nanos"),
    gone(Section::Family, "bottommost_temperature"),
    gone(Section::Family, "compaction_measure_io_stats"),
    gone(Section::Family, "purge_redundant_kvs_while_flush"),
    gone(Section::Family, "max_mem_compaction_level"),
    gone(Section::Family, "rate_limit_delay_max_milliseconds"),
    alias(Section::Family, "memtable", "memtable_factory"),
    alias(
        Section::Family,
        "memtable_veirfy_per_key_checksum_on_seek",
        "memtable_verify_per_key_checksum_on_seek",
    ),
    alias(Section::Family, "block_based_table_factory", "table"),
    gone(Section::Table, "hash_index_allow_collision"),
    gone(Section::Table, "index_per_partition"),
    gone(Section::Table, "reserve_table_builder_memory"),
    gone(Section::Table, "reserve_table_reader_memory"),
    gone(Section::Table, "skip_table_builder_flush"),
    gone(Section::Table, "block_cache_compressed"),
    gone(Section::Fifo, "ttl"),
];

/// The row of `name` in `section`.
pub(super) fn find(section: Section, name: &str) -> Option<&'static Retired> {
    RETIRED
        .iter()
        .find(|r| r.section == section && r.name == name)
}

/// The value that was meant by `value`, which an OPTIONS file has for `name`.
///
/// RocksDB up to 6.14 printed eight bytes of `read_amp_bytes_per_bit`, which has four: the upper
/// half is of the field behind it.
pub(super) fn meant<'v>(section: Section, name: &str, value: &'v str) -> Cow<'v, str> {
    let is_wide = section == Section::Table && name == "read_amp_bytes_per_bit";
    match value.parse::<u64>() {
        Ok(wide) if is_wide => Cow::Owned((wide & u64::from(u32::MAX)).to_string()),
        _ => Cow::Borrowed(value),
    }
}
