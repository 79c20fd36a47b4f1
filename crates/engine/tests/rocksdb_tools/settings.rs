//! Options drawn at random from what RocksDB 7.8 reads too, by RocksDB's names.

use super::workload::{FAMILIES, Rng};
use esker::{Db, FamilyDescriptor, FamilyOptions, Options};
use std::path::Path;

/// Options that one database is opened with.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) db: String,
    pub(crate) families: Vec<(String, String)>,
}

impl Settings {
    /// The settings of `seed`.
    pub(crate) fn random(seed: u64, newest_format: u64) -> Settings {
        let mut rng = Rng(seed ^ 0xC0FF_EE00);
        let db = database(&mut rng);
        let families = FAMILIES.iter().map(|name| {
            let merge = match *name {
                "strings" => "merge_operator=stringappend;",
                "counters" => "merge_operator=uint64add;",
                _ => "",
            };
            let table = family(&mut rng, newest_format);
            ((*name).to_owned(), format!("{merge}{table}"))
        });
        let families = families.collect();
        Settings { db, families }
    }

    /// Opens or creates the database with all of its families.
    pub(crate) fn open(&self, dir: &Path) -> esker::Result<Db> {
        let mut options = Options::new()
            .create_if_missing(true)
            .create_missing_column_families(true)
            .set_all(&self.db)?;
        let mut families = Vec::new();
        for (name, settings) in &self.families {
            let with = Options::new().set_all(settings)?;
            let own: FamilyOptions = with.family;
            if name == "default" {
                options.family = own.clone();
            }
            families.push(FamilyDescriptor::new(name.as_str(), own));
        }
        Db::open_families(dir, options, families)
    }
}

fn set(list: &mut String, name: &str, value: &str) {
    list.push_str(name);
    list.push('=');
    list.push_str(value);
    list.push(';');
}

fn database(rng: &mut Rng) -> String {
    let mut list = String::new();
    let yes_no = ["true", "false"];
    set(
        &mut list,
        "wal_compression",
        rng.word(&["kNoCompression", "kZSTD"]),
    );
    set(
        &mut list,
        "recycle_log_file_num",
        rng.word(&["0", "0", "2"]),
    );
    set(
        &mut list,
        "manual_wal_flush",
        rng.word(&["false", "false", "true"]),
    );
    set(&mut list, "max_subcompactions", rng.word(&["1", "3"]));
    set(&mut list, "max_background_jobs", rng.word(&["2", "4"]));
    set(
        &mut list,
        "track_and_verify_wals_in_manifest",
        rng.word(&yes_no),
    );
    set(&mut list, "write_dbid_to_manifest", rng.word(&yes_no));
    set(&mut list, "avoid_flush_during_recovery", rng.word(&yes_no));
    set(&mut list, "avoid_flush_during_shutdown", rng.word(&yes_no));
    let pipelined = rng.word(&["false", "false", "true"]);
    set(&mut list, "enable_pipelined_write", pipelined);
    set(
        &mut list,
        "max_manifest_file_size",
        rng.word(&["4096", "1073741824"]),
    );
    // A file of our own beside those that RocksDB knows.
    set(&mut list, "save_block_cache", "true");
    list
}

fn family(rng: &mut Rng, newest_format: u64) -> String {
    let mut list = String::new();
    let yes_no = ["true", "false"];
    let codecs = [
        "kNoCompression",
        "kSnappyCompression",
        "kZlibCompression",
        "kBZip2Compression",
        "kLZ4Compression",
        "kLZ4HCCompression",
        "kZSTD",
    ];
    let codec = rng.word(&codecs);
    set(&mut list, "compression", codec);
    if rng.one_in(3) {
        set(&mut list, "bottommost_compression", rng.word(&codecs));
    }
    if rng.one_in(3) {
        let train = rng.word(&["0", "65536"]);
        let opts = format!("{{max_dict_bytes=4096;zstd_max_train_bytes={train};}}");
        set(&mut list, "compression_opts", &opts);
    }
    let prefix = rng.word(&["nullptr", "rocksdb.FixedPrefix.5", "rocksdb.CappedPrefix.9"]);
    set(&mut list, "prefix_extractor", prefix);
    set(
        &mut list,
        "write_buffer_size",
        rng.word(&["65536", "131072"]),
    );
    set(
        &mut list,
        "target_file_size_base",
        rng.word(&["32768", "131072"]),
    );
    set(
        &mut list,
        "max_bytes_for_level_base",
        rng.word(&["131072", "524288"]),
    );
    set(
        &mut list,
        "level_compaction_dynamic_level_bytes",
        rng.word(&yes_no),
    );
    let style = rng.word(&[
        "kCompactionStyleLevel",
        "kCompactionStyleLevel",
        "kCompactionStyleUniversal",
    ]);
    set(&mut list, "compaction_style", style);
    let universal = format!(
        "{{compression_size_percent={};incremental={};allow_trivial_move={};max_size_amplification_percent={}}}",
        rng.word(&["-1", "0", "60"]),
        rng.word(&yes_no),
        rng.word(&yes_no),
        rng.word(&["30", "200"]),
    );
    set(&mut list, "compaction_options_universal", &universal);
    set(&mut list, "optimize_filters_for_hits", rng.word(&yes_no));
    let ratio = rng.word(&["0", "0.1"]);
    set(&mut list, "memtable_prefix_bloom_size_ratio", ratio);
    // Of tables.
    set(
        &mut list,
        "format_version",
        &(2 + rng.below(newest_format - 1)).to_string(),
    );
    let sums = [
        "kNoChecksum",
        "kCRC32c",
        "kxxHash",
        "kxxHash64",
        "kXXH3",
        "kXXH3",
    ];
    set(&mut list, "checksum", rng.word(&sums));
    let filters = [
        "nullptr",
        "bloomfilter:10:false",
        "ribbonfilter:10:0",
        "ribbonfilter:10:-1",
    ];
    set(&mut list, "filter_policy", rng.word(&filters));
    set(&mut list, "whole_key_filtering", rng.word(&yes_no));
    let mut indexes = vec![
        "kBinarySearch",
        "kTwoLevelIndexSearch",
        "kBinarySearchWithFirstKey",
    ];
    if prefix != "nullptr" {
        indexes.push("kHashSearch");
    }
    let index = rng.word(&indexes);
    set(&mut list, "index_type", index);
    if index == "kTwoLevelIndexSearch" {
        set(&mut list, "partition_filters", rng.word(&yes_no));
    }
    let restarts: &[&str] = if index == "kHashSearch" {
        &["1"]
    } else {
        &["1", "4", "16"]
    };
    set(
        &mut list,
        "index_block_restart_interval",
        rng.word(restarts),
    );
    set(&mut list, "metadata_block_size", rng.word(&["256", "4096"]));
    let data = rng.word(&["kDataBlockBinarySearch", "kDataBlockBinaryAndHash"]);
    set(&mut list, "data_block_index_type", data);
    set(&mut list, "block_size", rng.word(&["256", "1024", "4096"]));
    set(
        &mut list,
        "block_restart_interval",
        rng.word(&["1", "3", "16"]),
    );
    set(&mut list, "enable_index_compression", rng.word(&yes_no));
    let shortening = [
        "kNoShortening",
        "kShortenSeparators",
        "kShortenSeparatorsAndSuccessor",
    ];
    set(&mut list, "index_shortening", rng.word(&shortening));
    set(
        &mut list,
        "cache_index_and_filter_blocks",
        rng.word(&yes_no),
    );
    set(
        &mut list,
        "pin_l0_filter_and_index_blocks_in_cache",
        rng.word(&yes_no),
    );
    let plain = codec == "kNoCompression" && !list.contains("bottommost_compression");
    if plain && rng.one_in(2) {
        set(&mut list, "block_align", "true");
    }
    if rng.one_in(2) {
        blobs(rng, &mut list);
    }
    list
}

/// Small blob files, most of them collected.
fn blobs(rng: &mut Rng, list: &mut String) {
    set(list, "enable_blob_files", "true");
    set(list, "min_blob_size", rng.word(&["0", "20", "100"]));
    if rng.one_in(2) {
        set(list, "min_medium_blob_size", rng.word(&["1", "20"]));
        set(list, "min_large_blob_size", rng.word(&["0", "100"]));
    }
    set(list, "blob_file_size", rng.word(&["2000", "65536"]));
    let codecs = [
        "kNoCompression",
        "kSnappyCompression",
        "kLZ4Compression",
        "kZSTD",
    ];
    set(list, "blob_compression_type", rng.word(&codecs));
    set(list, "blob_file_starting_level", rng.word(&["0", "0", "1"]));
    let gc = rng.word(&["true", "true", "false"]);
    set(list, "enable_blob_garbage_collection", gc);
    let age = rng.word(&["0.25", "0.5", "1.0"]);
    set(list, "blob_garbage_collection_age_cutoff", age);
    let force = rng.word(&["0.3", "0.7", "1.0"]);
    set(list, "blob_garbage_collection_force_threshold", force);
}
