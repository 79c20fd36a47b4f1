//! The option sets under which processes load and die.
//!
//! Each recipe stands for one way of writing. Memtables and tables are small, so that flushes,
//! compactions and new MANIFESTs are under way at any moment. Options are RocksDB's names and
//! texts. Values, shared by all.

use esker::merge_operator::UInt64Add;
use esker::{FamilyDescriptor, FamilyOptions, Options, Result};
use std::sync::Arc;

/// The families of a loaded database: counters, all operations, slots that are overwritten.
pub(crate) const FAMILIES: [&str; 3] = ["default", "all", "slots"];

/// One way of writing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe {
    /// Its name on the command line and in reports.
    pub(crate) name: &'static str,
    /// Options of the database and of every family.
    options: &'static [(&'static str, &'static str)],
    /// One write in this many is synced; 0 for none.
    pub(crate) sync_one_in: u64,
    /// The application hands the log to the operating system.
    pub(crate) manual_wal_flush: bool,
    /// Writes are transactions with two phases.
    pub(crate) two_phase: bool,
}

const fn recipe(
    name: &'static str,
    sync_one_in: u64,
    options: &'static [(&'static str, &'static str)],
) -> Recipe {
    Recipe {
        name,
        options,
        sync_one_in,
        manual_wal_flush: false,
        two_phase: false,
    }
}

/// Choices of a run.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Choices {
    /// One recipe alone
    #[arg(long, value_parser = named, value_name = "NAME")]
    pub(crate) recipe: Option<Recipe>,
    /// Other moments and other choices
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) seed: u64,
}

/// Every recipe.
pub(crate) const RECIPES: &[Recipe] = &[
    recipe("sync", 1, &[("max_manifest_file_size", "3000")]),
    recipe("some-sync", 16, &[("max_subcompactions", "3")]),
    recipe("no-sync", 0, &[("avoid_flush_during_recovery", "true")]),
    recipe(
        "pipelined",
        16,
        &[
            ("enable_pipelined_write", "true"),
            ("avoid_flush_during_shutdown", "true"),
        ],
    ),
    recipe("unordered", 16, &[("unordered_write", "true")]),
    Recipe {
        manual_wal_flush: true,
        ..recipe("manual-wal-flush", 32, &[("manual_wal_flush", "true")])
    },
    recipe(
        "atomic-flush",
        16,
        &[("atomic_flush", "true"), ("max_manifest_file_size", "3000")],
    ),
    recipe(
        "blobs",
        16,
        &[
            ("enable_blob_files", "true"),
            ("min_blob_size", "100"),
            ("blob_file_size", "20000"),
            ("enable_blob_garbage_collection", "true"),
            ("blob_garbage_collection_age_cutoff", "0.5"),
        ],
    ),
    recipe(
        "tiers",
        16,
        &[
            ("enable_blob_files", "true"),
            ("min_medium_blob_size", "60"),
            ("min_large_blob_size", "1000"),
            ("blob_file_size", "20000"),
            ("enable_blob_garbage_collection", "true"),
        ],
    ),
    recipe(
        "logs",
        16,
        &[
            ("wal_compression", "kZSTD"),
            ("max_total_wal_size", "40000"),
            ("recycle_log_file_num", "2"),
            ("track_and_verify_wals_in_manifest", "true"),
        ],
    ),
    recipe(
        "universal",
        16,
        &[
            ("compaction_style", "kCompactionStyleUniversal"),
            ("db_write_buffer_size", "40000"),
            ("avoid_flush_during_recovery", "true"),
        ],
    ),
    recipe(
        "direct",
        16,
        &[
            ("use_direct_io_for_flush_and_compaction", "true"),
            ("use_direct_reads", "true"),
            ("background_io", "threads"),
        ],
    ),
    recipe(
        "direct-uring",
        16,
        &[
            ("use_direct_io_for_flush_and_compaction", "true"),
            ("use_direct_reads", "true"),
            ("background_io", "io_uring"),
            ("max_subcompactions", "3"),
        ],
    ),
    recipe(
        "mapped-log",
        16,
        &[
            ("allow_mmap_writes", "true"),
            ("avoid_flush_during_recovery", "true"),
        ],
    ),
    recipe(
        "recycled-mapped-log",
        16,
        &[("allow_mmap_writes", "true"), ("recycle_log_file_num", "4")],
    ),
    Recipe {
        two_phase: true,
        ..recipe("two-phase", 16, &[])
    },
];

/// The recipe called `name`.
pub(crate) fn named(name: &str) -> std::result::Result<Recipe, String> {
    let found = RECIPES.iter().find(|r| r.name == name);
    found.copied().ok_or_else(|| {
        let names: Vec<_> = RECIPES.iter().map(|r| r.name).collect();
        format!("{name} is not a recipe: {}", names.join(", "))
    })
}

impl Recipe {
    /// Options and families to open a database with.
    pub(crate) fn options(&self) -> Result<(Options, Vec<FamilyDescriptor>)> {
        let mut options = Options::new()
            .create_if_missing(true)
            .create_missing_column_families(true);
        options.db.max_background_jobs = 3;
        options.db.keep_log_file_num = 3;
        options.db.stats_dump_period_sec = 0;
        small(&mut options.family, 16 << 10);
        for (name, value) in self.options {
            options.set_in_place(name, value)?;
        }
        let common = options.family.clone();
        options.family.merge_operator = Some(Arc::new(UInt64Add));
        let sizes = [16 << 10, 48 << 10, 24 << 10];
        let families = FAMILIES.iter().zip(sizes).map(|(name, size)| {
            let mut family = common.clone();
            family.write_buffer_size = size;
            if *name == "default" {
                family.merge_operator = options.family.merge_operator.clone();
            }
            FamilyDescriptor::new(*name, family)
        });
        Ok((options.clone(), families.collect()))
    }
}

fn small(family: &mut FamilyOptions, write_buffer: usize) {
    family.write_buffer_size = write_buffer;
    family.arena_block_size = 4 << 10;
    family.target_file_size_base = 32 << 10;
    family.max_bytes_for_level_base = 128 << 10;
    family.max_bytes_for_level_multiplier = 4.0;
    family.level0_file_num_compaction_trigger = 2;
}
