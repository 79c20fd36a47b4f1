//! Which database is simulated: options drawn from a seed, and how they are spelt for the engine.
//!
//! A value. Options that make the oracle's question meaningless (WAL recovery modes that skip) are
//! left out.

use super::area::{self, Area, area_of};
use crate::disk::SimFs;
use crate::rng::Rng;
use crate::sim_env::SimEnv;
use esker::merge_operator::StringAppend;
use esker::observe::Logger;
use esker::options::InfoLogLevel;
use esker::{DbPath, FamilyOptions, Options};
use esker_status::Result;
use std::sync::{Arc, OnceLock};

/// Where the database is.
pub const DIR: &str = "/db";
/// Where its logs are, when not there.
pub const WAL_DIR: &str = "/wal";

/// Where tables are when they have directories of their own: the first few bytes here.
const FAST: &str = "/fast";
/// The rest here.
const LARGE: &str = "/large";

/// Where files for ingestion are made.
pub const EXTERNAL: &str = "/external";

/// Options and the values that each is drawn from.
const CHOICES: &[(&str, &[&str])] = &[
    ("max_background_jobs", &["1", "1", "2"]),
    ("db_write_buffer_size", &["0", "2048", "6000", "16000"]),
    ("max_total_wal_size", &["0", "1000", "4000"]),
    ("max_write_buffer_number", &["2", "3"]),
    ("level0_file_num_compaction_trigger", &["2", "4"]),
    ("target_file_size_base", &["4000", "64000"]),
    ("max_bytes_for_level_base", &["8000", "256000"]),
    ("max_manifest_file_size", &["500", "2000", "1000000000"]),
    ("memtable_max_range_deletions", &["0", "0", "3"]),
    ("min_tombstones_for_range_conversion", &["0", "1", "3"]),
    ("avoid_flush_during_recovery", &["true", "false"]),
    ("avoid_flush_during_shutdown", &["false", "false", "true"]),
    ("block_size", &["256", "4096"]),
    ("writable_file_max_buffer_size", &["512", "1048576"]),
    ("compression", &["kNoCompression", "kLZ4Compression"]),
    (
        "compaction_style",
        &[
            "kCompactionStyleLevel",
            "kCompactionStyleLevel",
            "kCompactionStyleUniversal",
        ],
    ),
    (
        "wal_compression",
        &["kNoCompression", "kNoCompression", "kZSTD"],
    ),
    ("recycle_log_file_num", &["0", "0", "2"]),
    (
        "track_and_verify_wals_in_manifest",
        &["false", "false", "true"],
    ),
    ("max_open_files", &["-1", "-1", "20"]),
    ("use_fsync", &["false", "false", "true"]),
    ("write_dbid_to_manifest", &["true", "true", "false"]),
    ("allow_fallocate", &["true", "false"]),
];

/// Options that reads go by and their values, drawn beside the others.
const READING: &[(&str, &[&str])] = &[
    (
        "filter_policy",
        &["nullptr", "bloomfilter:10:false", "ribbonfilter:10"],
    ),
    ("whole_key_filtering", &["true", "false"]),
    (
        "prefix_extractor",
        &["nullptr", "rocksdb.FixedPrefix.3", "rocksdb.FixedPrefix.3"],
    ),
    ("cache_index_and_filter_blocks", &["false", "false", "true"]),
];

/// Options of databases with many small levels.
const SMALL: &[(&str, &[&str])] = &[
    ("db_write_buffer_size", &["2048", "6000"]),
    ("max_bytes_for_level_base", &["1500", "3000"]),
    ("max_bytes_for_level_multiplier", &["2", "3"]),
    ("target_file_size_base", &["500", "1500"]),
    ("level0_file_num_compaction_trigger", &["1", "2"]),
    (
        "level_compaction_dynamic_level_bytes",
        &["true", "true", "false"],
    ),
];

/// Options of databases with blob files.
const BLOBS: &[(&str, &[&str])] = &[
    ("enable_blob_files", &["true"]),
    ("min_blob_size", &["0", "0", "10", "30"]),
    ("min_medium_blob_size", &["0", "1", "15"]),
    ("min_large_blob_size", &["0", "25", "60"]),
    ("blob_file_size", &["200", "2000", "100000"]),
    (
        "blob_compression_type",
        &["kNoCompression", "kLZ4Compression"],
    ),
    ("blob_file_starting_level", &["0", "0", "0", "1"]),
    ("enable_blob_garbage_collection", &["true", "true", "false"]),
    (
        "blob_garbage_collection_age_cutoff",
        &["0.25", "0.5", "1.0"],
    ),
    (
        "blob_garbage_collection_force_threshold",
        &["0.3", "0.6", "1.0"],
    ),
    (
        "max_space_amplification_percent",
        &["0", "0", "110", "150", "400"],
    ),
    ("blob_cache", &["nullptr", "1000", "100000"]),
    ("prepopulate_blob_cache", &["kDisable", "kFlushOnly"]),
    ("blob_compaction_readahead_size", &["0", "300", "100000"]),
];

struct Silent;

/// A LOG that nobody writes.
pub fn silent() -> Arc<dyn Logger> {
    Arc::new(Silent)
}

impl Logger for Silent {
    fn level(&self) -> InfoLogLevel {
        InfoLogLevel::Fatal
    }
    fn log(&self, _level: InfoLogLevel, _line: &str) {}
    fn is_silent(&self) -> bool {
        true
    }
}

/// Whose directories tables are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// `db_paths`.
    Database,
    /// `cf_paths`.
    Family,
}

/// The options of one simulated database.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Options of the database and the families, as RocksDB writes them.
    pub options: Vec<(&'static str, String)>,
    /// All families are flushed together.
    pub atomic_flush: bool,
    /// The application hands the log to the operating system.
    pub manual_wal_flush: bool,
    /// Logs have a directory of their own.
    pub wal_dir: bool,
    /// A LOG file is written to the disk.
    pub info_log: bool,
    /// Transactions are committed in two phases.
    pub two_phase: bool,
    /// Nothing is written to the log: what was not flushed is lost.
    pub unlogged: bool,
    /// Several threads write.
    pub threads: bool,
    /// Files are ingested.
    pub ingests: bool,
    /// Backups are made.
    pub backups: bool,
    /// Levels are so small that there are many, and calls that change no contents are made.
    pub is_small: bool,
    /// Tables have several directories: the database's, or each family's.
    pub table_dirs: Option<Owner>,
    /// The area of the workload.
    pub area: Option<Area>,
    /// The seed of the environment's randomness.
    pub seed: u64,
    /// The options as the engine has them, parsed once; without an environment.
    parsed: OnceLock<Options>,
}

impl Settings {
    /// The settings of a seed.
    pub fn draw(seed: u64) -> Settings {
        let mut rng = Rng::new(seed ^ 0x5e77_1265);
        let mut options: Vec<(&'static str, String)> = CHOICES
            .iter()
            .map(|(name, values)| (*name, (*rng.pick(values)).to_owned()))
            .collect();
        let mut beside = Rng::new(seed ^ 0x6265_7369_6465);
        let reading = READING
            .iter()
            .map(|(name, values)| (*name, (*beside.pick(values)).to_owned()));
        options.extend(reading);
        if beside.one_in(3) {
            options.push(("index_type", "kTwoLevelIndexSearch".to_owned()));
            options.push(("partition_filters", beside.one_in(2).to_string()));
        }
        let mut around = Rng::new(seed ^ 0x6172_6f75_6e64);
        let unlogged = beside.one_in(12);
        let two_phase = !unlogged && beside.one_in(4);
        // Without the log only families that are flushed together are one state.
        let atomic_flush = rng.one_in(4) || unlogged;
        let manual_wal_flush = rng.one_in(5) && !unlogged;
        options.push(("allow_2pc", two_phase.to_string()));
        options.push(("atomic_flush", atomic_flush.to_string()));
        options.push(("manual_wal_flush", manual_wal_flush.to_string()));
        let mut settings = Settings {
            options,
            atomic_flush,
            manual_wal_flush,
            wal_dir: rng.one_in(5),
            info_log: rng.one_in(8),
            two_phase,
            unlogged,
            threads: !unlogged && beside.one_in(3),
            ingests: !unlogged && beside.one_in(2),
            backups: around.one_in(3),
            is_small: false,
            table_dirs: around
                .one_in(5)
                .then(|| *around.pick(&[Owner::Database, Owner::Family])),
            area: None,
            seed,
            parsed: OnceLock::new(),
        };
        if around.one_in(8) {
            settings.push("memory_budget", "2097152");
        }
        let saves = around.one_in(3).to_string();
        settings.push("save_block_cache", &saves);
        if around.one_in(4) {
            settings.push("block_cache", area::TIERED);
        }
        if around.one_in(4) {
            settings.push(
                "memtable_op_scan_flush_trigger",
                around.pick::<&str>(&["1", "3"]),
            );
            settings.push(
                "memtable_avg_op_scan_flush_trigger",
                around.pick::<&str>(&["0", "1"]),
            );
        }
        if let Some(area) = area_of(seed) {
            settings.lean(area);
        }
        settings.draw_shape();
        settings.draw_blobs();
        let has_budget = |(name, value): &(&str, String)| *name == "memory_budget" && value != "0";
        if settings.options.iter().any(has_budget) {
            // Its cache has no second tier.
            settings.options.retain(|(name, _)| *name != "block_cache");
        }
        settings
    }

    /// Makes some databases such that have many levels.
    fn draw_shape(&mut self) {
        let mut rng = Rng::new(self.seed ^ 0x7368_6170);
        let often = matches!(self.area, Some(Area::Tables | Area::Ingestion));
        self.is_small = rng.one_in(if often { 2 } else { 4 });
        if self.is_small {
            for (name, values) in SMALL {
                let value: &str = values[rng.index(values.len())];
                self.push(name, value);
            }
        }
    }

    /// Lets some databases have blob files.
    fn draw_blobs(&mut self) {
        let mut rng = Rng::new(self.seed ^ 0x626c_6f62);
        let often = self.area == Some(Area::Tables);
        if rng.one_in(if often { 2 } else { 4 }) {
            for (name, values) in BLOBS {
                let value: &str = values[rng.index(values.len())];
                self.push(name, value);
            }
        }
    }

    /// Makes it a database that is about `area`.
    fn lean(&mut self, area: Area) {
        let mut rng = Rng::new(self.seed ^ 0x6c65_616e);
        for (name, values) in area::choices(area) {
            let value: &str = values[rng.index(values.len())];
            self.push(name, value);
        }
        let is = |other| area == other;
        self.unlogged &= matches!(area, Area::Tables | Area::Reading);
        self.wal_dir |= is(Area::Log) && rng.one_in(2);
        // Changes that belong together are many then.
        self.atomic_flush |= is(Area::Manifest) && rng.one_in(2);
        self.ingests |= is(Area::Ingestion);
        self.threads |= is(Area::Threads);
        self.two_phase |= is(Area::Transactions);
        self.push("allow_2pc", &self.two_phase.to_string());
        self.push("atomic_flush", &self.atomic_flush.to_string());
        self.area = Some(area);
    }

    /// Returns the options of the engine, around `disk`.
    pub fn options(&self, world: &SimEnv, disk: &SimFs) -> Result<Options> {
        let parsed = match self.parsed.get() {
            Some(parsed) => parsed.clone(),
            None => {
                let parsed = self.parse()?;
                self.parsed.get_or_init(|| parsed).clone()
            }
        };
        Ok(parsed.env(world.env(disk, self.seed)))
    }

    /// Sets an option, whatever was drawn for it.
    pub fn push(&mut self, name: &'static str, value: &str) {
        self.options.retain(|(other, _)| *other != name);
        self.options.push((name, value.to_owned()));
        self.parsed = OnceLock::new();
    }

    fn parse(&self) -> Result<Options> {
        let mut options = Options::new().create_if_missing(true);
        for (name, value) in &self.options {
            options.set_in_place(name, value)?;
        }
        options.family.merge_operator = Some(Arc::new(StringAppend::new(b",")));
        options.family.arena_block_size = 4 << 10;
        if self.wal_dir {
            options.db.wal_dir = WAL_DIR.to_owned();
        }
        if !self.info_log {
            options.db.info_log = Some(silent());
        }
        options.db.stats_dump_period_sec = 0;
        let dirs = vec![DbPath::new(FAST, 3000), DbPath::new(LARGE, 0)];
        match self.table_dirs {
            Some(Owner::Database) => options.db.db_paths = dirs,
            Some(Owner::Family) => options.family.cf_paths = dirs,
            None => {}
        }
        Ok(options)
    }

    /// Returns whether keys that share their first three bytes can be sought together.
    pub fn has_prefixes(&self) -> bool {
        self.options
            .iter()
            .any(|(name, value)| *name == "prefix_extractor" && value != "nullptr")
    }

    /// Returns whether large values are in blob files.
    pub fn has_blobs(&self) -> bool {
        let is_on =
            |(name, value): &(&str, String)| *name == "enable_blob_files" && value == "true";
        self.options.iter().any(is_on)
    }

    /// The options of every family.
    pub fn family(&self, options: &Options) -> FamilyOptions {
        options.family.clone()
    }
}
