//! The families of the model: their orders, and options drawn at random.

use crate::common::Rng;
use esker::merge_operator::{Max, StringAppend, UInt64Add};
use esker::options::{
    BlobCacheSource, BlockCacheSource, CompactionStyle, CompressionType, OptionSet,
};
use esker::{Comparator, FamilyOptions, KeyOrder};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const FAMILIES: [&str; 5] = ["default", "reverse", "counters", "universal", "backwards"];

/// The order of a family's keys, as the map sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Bytes,
    Reverse,
    /// By the bytes read from the end: an application's own order.
    FromTheEnd,
}

pub(crate) const ORDERS: [Order; 5] = [
    Order::Bytes,
    Order::Reverse,
    Order::Bytes,
    Order::Bytes,
    Order::FromTheEnd,
];

pub(crate) struct FromTheEnd;

impl Comparator for FromTheEnd {
    fn name(&self) -> &str {
        "test.FromTheEnd"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.iter().rev().cmp(b.iter().rev())
    }
    fn can_keys_with_different_bytes_be_equal(&self) -> bool {
        false
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key(pub(crate) Order, pub(crate) Vec<u8>);

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        match self.0 {
            Order::Bytes => self.1.cmp(&other.1),
            Order::Reverse => other.1.cmp(&self.1),
            Order::FromTheEnd => FromTheEnd.compare(&self.1, &other.1),
        }
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

pub(crate) type Map = BTreeMap<Key, Vec<u8>>;
pub(crate) type State = [Arc<Map>; 5];

pub(crate) fn options_of(family: usize, rng: &mut Rng) -> FamilyOptions {
    let mut o = FamilyOptions::default();
    o.write_buffer_size = *rng.pick(&[8 << 10, 16 << 10, 48 << 10]);
    o.arena_block_size = 4 << 10;
    o.max_write_buffer_number = *rng.pick(&[2, 3, 5]);
    o.min_write_buffer_number_to_merge = *rng.pick(&[1, 1, 2]);
    o.target_file_size_base = *rng.pick(&[8 << 10, 24 << 10]);
    o.max_bytes_for_level_base = *rng.pick(&[32 << 10, 100 << 10]);
    o.max_bytes_for_level_multiplier = 4.0;
    o.level0_file_num_compaction_trigger = *rng.pick(&[2, 4]);
    o.level_compaction_dynamic_level_bytes = rng.one_in(2);
    o.max_compaction_bytes = if rng.one_in(3) { 64 << 10 } else { 0 };
    o.memtable_max_range_deletions = if rng.one_in(3) { 5 } else { 0 };
    o.min_tombstones_for_range_conversion = if rng.one_in(2) { 2 } else { 0 };
    o.paranoid_file_checks = rng.one_in(4);
    o.memtable_op_scan_flush_trigger = if rng.one_in(4) { 2 } else { 0 };
    let table: &[&[(&str, &str)]] = &[
        &[("block_size", "512")],
        &[
            ("block_size", "1024"),
            ("filter_policy", "bloomfilter:10:false"),
        ],
        &[
            ("block_size", "400"),
            ("index_type", "kTwoLevelIndexSearch"),
            ("partition_filters", "true"),
            ("metadata_block_size", "300"),
            ("filter_policy", "ribbonfilter:10"),
        ],
        &[
            ("block_size", "700"),
            ("data_block_index_type", "kDataBlockBinaryAndHash"),
        ],
        &[
            ("block_size", "300"),
            ("format_version", "2"),
            ("checksum", "kCRC32c"),
        ],
        &[
            ("block_size", "2000"),
            ("format_version", "6"),
            ("block_restart_interval", "4"),
        ],
    ];
    for (name, value) in *rng.pick(table) {
        // An application's order has no hash of its own.
        if family != 4 || *name != "data_block_index_type" {
            o.table.set(name, value).expect("an option of ours");
        }
    }
    let fresh = *rng.pick(&["kDisable", "kFlushOnly", "kFlushAndCompaction"]);
    o.table
        .set("prepopulate_block_cache", fresh)
        .expect("an option of ours");
    o.table
        .set("cache_index_and_filter_blocks", &rng.one_in(2).to_string())
        .expect("an option of ours");
    if rng.one_in(2) {
        blobs(&mut o, rng);
    }
    o.max_space_amplification_percent = *rng.pick(&[0, 0, 110, 130, 250]);
    match family {
        0 => o.merge_operator = Some(Arc::new(StringAppend::new(b","))),
        1 => {
            o.comparator = KeyOrder::ReverseBytewise;
            o.merge_operator = Some(Arc::new(StringAppend::test_variant(b"|")));
        }
        2 => o.merge_operator = Some(Arc::new(UInt64Add)),
        3 => {
            o.merge_operator = Some(Arc::new(Max));
            o.compaction_style = CompactionStyle::Universal;
            o.num_levels = *rng.pick(&[1, 4, 7]);
            o.level0_file_num_compaction_trigger = 3;
            let universal = &mut o.compaction_options_universal;
            universal.max_size_amplification_percent = *rng.pick(&[20, 200]);
            universal.max_peak_size_amplification_percent = *rng.pick(&[0, 30, 100]);
            universal.incremental = rng.one_in(2);
            universal.allow_trivial_move = rng.one_in(2);
            o.max_compaction_bytes = *rng.pick(&[0, 1 << 17]);
        }
        _ => {
            o.comparator = KeyOrder::Custom(Arc::new(FromTheEnd));
            o.merge_operator = Some(Arc::new(StringAppend::new(b"")));
        }
    }
    o
}

/// Small blob files, most of them collected.
fn blobs(o: &mut FamilyOptions, rng: &mut Rng) {
    o.enable_blob_files = true;
    o.min_blob_size = *rng.pick(&[0, 8, 24, 100]);
    if rng.one_in(2) {
        o.min_medium_blob_size = *rng.pick(&[1, 8, 24]);
        o.min_large_blob_size = *rng.pick(&[0, 30, 60]);
    }
    o.blob_file_size = *rng.pick(&[300, 2 << 10, 16 << 10]);
    o.blob_compression_type = *rng.pick(&[CompressionType::None, CompressionType::Lz4]);
    o.blob_file_starting_level = *rng.pick(&[0, 0, 0, 2]);
    o.enable_blob_garbage_collection = !rng.one_in(3);
    o.blob_garbage_collection_age_cutoff = *rng.pick(&[0.0, 0.25, 0.6, 1.0]);
    o.blob_garbage_collection_force_threshold = *rng.pick(&[0.2, 0.5, 1.0]);
    for (name, values) in [
        ("blob_cache", &["nullptr", "2000", "200000"]),
        (
            "prepopulate_blob_cache",
            &["kDisable", "kFlushOnly", "kFlushOnly"],
        ),
        ("blob_compaction_readahead_size", &["0", "500", "100000"]),
    ] {
        let value: &str = values[rng.below(3) as usize];
        o.set(name, value).expect("an option of ours");
    }
    if rng.one_in(4) {
        let shared = o.table.block_cache.make();
        o.table.block_cache = BlockCacheSource::Shared(Arc::clone(&shared));
        o.blob_cache = BlobCacheSource::shared_with(shared);
    }
}
