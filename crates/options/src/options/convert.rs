//! From resolved options to what the lower floors take: compaction policy, table and codec options.

use super::{CompressionSettings, CompressionType, DbOptions, FamilyOptions, TableSettings};
use crate::enums as e;
use crate::observe::InfoLogOptions;
use esker_codec::checksum::ChecksumType;
use esker_codec::compress::{Codec, CompressionOptions};
use esker_env::{BackgroundIo, Env};
use esker_files::table::{self, TableOptions};
use esker_format::Level;
use esker_lsm::load::StallTriggers;
use esker_lsm::policy::{self, ForcedBlobGc, Policy};

/// Returns whether a kind of metadata block stays in the cache: as its tier says, or the older
/// option.
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

    /// Returns the options of the LOG file.
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

    /// Returns whether anything goes past the page cache.
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

    /// The codec that new tables get unless another is asked for: LZ4, or the nearest to it that
    /// this build has.
    pub fn usual() -> CompressionType {
        let all = [CompressionType::Lz4, CompressionType::Snappy];
        let built = |c: &CompressionType| c.codec().is_some_and(Codec::is_supported);
        all.into_iter().find(built).unwrap_or(CompressionType::None)
    }
}

impl CompressionSettings {
    /// Converts into the options of the codecs.
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
    /// Converts into the options of readers and builders of tables.
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
            block_size_deviation: policy::unsigned(&self.block_size_deviation),
            block_restart_interval: policy::unsigned(&self.block_restart_interval),
            index_block_restart_interval: policy::unsigned(&self.index_block_restart_interval),
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

    /// Returns the numbers at which writers are held back.
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

    /// The bytes aimed at for each path of the tables; none where there is one path.
    fn path_targets(&self) -> Vec<u64> {
        match self.cf_paths.as_slice() {
            [] | [_] => Vec::new(),
            several => several.iter().map(|p| p.target_size).collect(),
        }
    }

    /// When garbage starts compactions; 1 turns that off, and a bound on space decides itself.
    fn forced_blob_gc(&self) -> Option<ForcedBlobGc> {
        let threshold = self.blob_garbage_collection_force_threshold;
        let gc = ForcedBlobGc {
            age_cutoff: self.blob_garbage_collection_age_cutoff,
            threshold,
        };
        let is_bounded = self.max_space_amplification_percent > 0;
        let is_on = self.enable_blob_garbage_collection && !is_bounded;
        (is_on && threshold < 1.0).then_some(gc)
    }

    /// The first level to which medium values move with their keys, where there are groups.
    fn blob_groups_from(&self) -> Option<Level> {
        let is_on = self.enable_blob_files && self.min_medium_blob_size > 0;
        let first = u8::try_from(self.blob_file_starting_level.max(0)).unwrap_or(u8::MAX);
        is_on.then_some(Level(first))
    }
}

/// Makes the policy from the rows of the picker's options.
macro_rules! policy_from_rows {
    ({ $(
        $(#[doc = $doc:literal])+
        $field:ident : $ty:ty = $default:expr,
        $fate:ident, $group:ident, $known:ident, $change:ident => $picked:ty, $convert:ident;
    )* }) => {
        impl FamilyOptions {
            /// The options of the picker. Call it on [resolved](FamilyOptions::resolve) options.
            pub fn to_policy(&self) -> Policy {
                Policy {
                    $( $field: policy::$convert(&self.$field), )*
                    stall_triggers: self.tree_triggers(),
                    path_targets: self.path_targets(),
                    forced_blob_gc: self.forced_blob_gc(),
                    blob_groups_from: self.blob_groups_from(),
                    allow_trivial_move: true,
                }
            }
        }
    };
}

esker_lsm::picker_options!(policy_from_rows);
