//! Common parts of recipes: settings, and the tree of RocksDB's comparison scripts.

use crate::experiment::plan::Setting;
pub(super) use crate::experiment::plan::setting;

/// Bytes of a key and its value.
pub(super) const ENTRY: u64 = 420;

/// Flags of nearly all stages: the tree of the scripts.
pub(super) const TREE: [&str; 16] = [
    "--key_size=20",
    "--value_size=400",
    "--block_size=8192",
    "--bloom_bits=10",
    "--write_buffer_size=16777216",
    "--target_file_size_base=16777216",
    "--max_bytes_for_level_base=67108864",
    "--max_bytes_for_level_multiplier=8",
    "--level_compaction_dynamic_level_bytes=true",
    "--cache_index_and_filter_blocks=true",
    "--cache_high_pri_pool_ratio=0.5",
    "--open_files=-1",
    "--bytes_per_sync=1048576",
    "--max_background_jobs=3",
    "--histogram",
    "--verify_checksum=true",
];

/// How often the database is overwritten behind the load, before anything else is measured.
pub(super) const AGE: Setting = setting(
    "age",
    "0",
    "0",
    "times that the database is overwritten at random behind the load, before the other steps",
);

/// `--name=value`.
pub(super) fn flag(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}

/// [`TREE`] and more flags.
pub(super) fn tree_and(more: &[String]) -> Vec<String> {
    let tree = TREE.iter().map(|flag| (*flag).to_string());
    tree.chain(more.iter().cloned()).collect()
}
