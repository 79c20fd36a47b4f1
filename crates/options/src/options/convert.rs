//! From resolved options to what the lower floors take: compaction policy, table and codec options.

use super::{CompressionSettings, CompressionType, DbOptions, FamilyOptions, TableSettings};
use crate::enums as e;
use crate::observe::InfoLogOptions;
use esker_codec::checksum::ChecksumType;
use esker_codec::compress::{Codec, CompressionOptions};
use esker_env::{BackgroundIo, Env};
use esker_files::table::{self, TableOptions};
use esker_lsm::load::StallTriggers;
use esker_lsm::pick;

fn unsigned(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

/// Whether a kind of metadata block stays in the cache: as its tier says, or the older option.
fn is_pinned(tier: e::PinningTier, older: bool) -> bool {
    match tier {
        e::PinningTier::Fallback => older,
        e::PinningTier::None => false,
        e::PinningTier::FlushedAndSimilar | e::PinningTier::All => true,
    }
}

impl DbOptions {
    /// `env` as the options want large requests carried out, where it has the choice.
    pub fn background_env(&self, mut env: Env) -> Env {
        let wanted = match self.background_io {
            e::BackgroundIoKind::Auto => BackgroundIo::Auto,
            e::BackgroundIoKind::Threads => BackgroundIo::Threads,
            e::BackgroundIoKind::IoUring => BackgroundIo::IoUring,
        };
        if let Some(fs) = env.fs.with_background_io(wanted) {
            env.fs = fs;
        }
        env
    }

    /// What is said of the LOG file.
    pub fn info_log_options(&self) -> InfoLogOptions {
        InfoLogOptions {
            sink: self.info_log.clone(),
            level: self.info_log_level,
            directory: self.db_log_dir.clone(),
            max_file_bytes: self.max_log_file_size as u64,
            max_file_age_us: (self.log_file_time_to_roll as u64).saturating_mul(1_000_000),
            keep_files: self.keep_log_file_num,
        }
    }

    /// Whether anything goes past the page cache.
    pub fn has_direct_io(&self) -> bool {
        self.use_direct_reads
            || self.use_direct_io_for_compaction_reads
            || self.use_direct_io_for_flush_and_compaction
    }
}

impl CompressionType {
    /// The codec, or `None` for [`CompressionType::Disable`].
    pub fn codec(self) -> Option<Codec> {
        match self {
            CompressionType::Disable => None,
            given => Codec::from_u8(given.number()),
        }
    }
}

impl CompressionSettings {
    /// What the codec floor takes.
    pub fn to_codec(&self) -> CompressionOptions {
        CompressionOptions {
            window_bits: self.window_bits,
            level: self.level,
            strategy: self.strategy,
            max_dict_bytes: self.max_dict_bytes,
            zstd_max_train_bytes: self.zstd_max_train_bytes,
            enabled: self.enabled,
            max_dict_buffer_bytes: self.max_dict_buffer_bytes,
            use_zstd_dict_trainer: self.use_zstd_dict_trainer,
            max_compressed_bytes_per_kb: self.max_compressed_bytes_per_kb,
            checksum: self.checksum,
        }
    }
}

impl TableSettings {
    /// What readers and builders of tables take.
    pub fn to_table_options(&self) -> TableOptions {
        TableOptions {
            cache_index_and_filter_blocks: self.cache_index_and_filter_blocks,
            cache_index_and_filter_blocks_with_high_priority: self
                .cache_index_and_filter_blocks_with_high_priority,
            pin_l0_filter_and_index_blocks_in_cache: is_pinned(
                self.metadata_cache_options.unpartitioned_pinning,
                self.pin_l0_filter_and_index_blocks_in_cache,
            ),
            pin_top_level_index_and_filter: is_pinned(
                self.metadata_cache_options.top_level_index_pinning,
                self.pin_top_level_index_and_filter,
            ),
            index_type: match self.index_type {
                e::IndexType::BinarySearch => table::IndexType::BinarySearch,
                e::IndexType::HashSearch => table::IndexType::HashSearch,
                e::IndexType::TwoLevelIndexSearch => table::IndexType::TwoLevelIndexSearch,
                e::IndexType::BinarySearchWithFirstKey => {
                    table::IndexType::BinarySearchWithFirstKey
                }
            },
            data_block_index_type: match self.data_block_index_type {
                e::DataBlockIndexType::BinarySearch => table::DataBlockIndexType::BinarySearch,
                e::DataBlockIndexType::BinaryAndHash => table::DataBlockIndexType::BinaryAndHash,
            },
            data_block_hash_table_util_ratio: self.data_block_hash_table_util_ratio,
            checksum: match self.checksum {
                e::ChecksumKind::None => ChecksumType::None,
                e::ChecksumKind::Crc32c => ChecksumType::Crc32c,
                e::ChecksumKind::XxHash => ChecksumType::XxHash,
                e::ChecksumKind::XxHash64 => ChecksumType::XxHash64,
                e::ChecksumKind::Xxh3 => ChecksumType::Xxh3,
            },
            no_block_cache: self.no_block_cache,
            block_size: usize::try_from(self.block_size).unwrap_or(usize::MAX),
            block_size_deviation: unsigned(self.block_size_deviation),
            block_restart_interval: unsigned(self.block_restart_interval),
            index_block_restart_interval: unsigned(self.index_block_restart_interval),
            metadata_block_size: usize::try_from(self.metadata_block_size).unwrap_or(usize::MAX),
            partition_filters: self.partition_filters,
            use_delta_encoding: self.use_delta_encoding,
            filter_policy: self.filter_policy,
            whole_key_filtering: self.whole_key_filtering,
            enable_index_compression: self.enable_index_compression,
            block_align: self.block_align,
            format_version: self.format_version,
            index_shortening: match self.index_shortening {
                e::IndexShortening::NoShortening => table::IndexShortening::NoShortening,
                e::IndexShortening::ShortenSeparators => table::IndexShortening::ShortenSeparators,
                e::IndexShortening::ShortenSeparatorsAndSuccessor => {
                    table::IndexShortening::ShortenSeparatorsAndSuccessor
                }
            },
            max_auto_readahead_size: self.max_auto_readahead_size,
            initial_auto_readahead_size: self.initial_auto_readahead_size,
            num_file_reads_for_auto_readahead: self.num_file_reads_for_auto_readahead,
        }
    }
}

impl FamilyOptions {
    /// The memtables that may wait to be flushed; writers stop when as many do.
    pub fn memtables_max(&self) -> usize {
        usize::try_from(self.max_write_buffer_number).map_or(2, |n| n.max(2))
    }

    /// What holds writers back.
    pub fn stall_triggers(&self) -> StallTriggers {
        let merged = usize::try_from(self.min_write_buffer_number_to_merge).unwrap_or(0);
        let all = self
            .tree_triggers()
            .with_memtables(self.memtables_max(), merged);
        if self.disable_auto_compactions {
            all.without_compactions()
        } else {
            all
        }
    }

    /// Those of the tree, while it is compacted.
    fn tree_triggers(&self) -> StallTriggers {
        StallTriggers::new(
            (
                i64::from(self.level0_slowdown_writes_trigger),
                i64::from(self.level0_stop_writes_trigger),
            ),
            (
                self.soft_pending_compaction_bytes_limit,
                self.hard_pending_compaction_bytes_limit,
            ),
        )
    }

    /// What decisions about compactions take. Call it on [resolved](FamilyOptions::resolve)
    /// options.
    pub fn to_policy(&self) -> pick::Policy {
        pick::Policy {
            compaction_style: self.compaction_style,
            compaction_pri: self.compaction_pri,
            disable_auto_compactions: self.disable_auto_compactions,
            level0_file_num_compaction_trigger: unsigned(self.level0_file_num_compaction_trigger),
            max_bytes_for_level_base: self.max_bytes_for_level_base,
            max_bytes_for_level_multiplier: self.max_bytes_for_level_multiplier,
            max_bytes_for_level_multiplier_additional: self
                .max_bytes_for_level_multiplier_additional
                .iter()
                .map(|&m| unsigned(m))
                .collect(),
            level_compaction_dynamic_level_bytes: self.level_compaction_dynamic_level_bytes,
            level_shape_by_cost: self.level_shape_by_cost,
            compaction_for_reads: self.compaction_for_reads,
            read_triggered_compaction_threshold: self.read_triggered_compaction_threshold,
            stall_triggers: self.tree_triggers(),
            target_file_size_base: self.target_file_size_base,
            target_file_size_multiplier: unsigned(self.target_file_size_multiplier),
            max_compaction_bytes: self.max_compaction_bytes,
            write_buffer_size: self.write_buffer_size as u64,
            ttl: self.ttl,
            periodic_compaction_seconds: self.periodic_compaction_seconds,
            compaction_options_universal: self.compaction_options_universal.clone(),
            compaction_options_fifo: self.compaction_options_fifo.clone(),
            path_targets: match self.cf_paths.as_slice() {
                [] | [_] => Vec::new(),
                several => several.iter().map(|p| p.target_size).collect(),
            },
            ..pick::Policy::default()
        }
    }
}
