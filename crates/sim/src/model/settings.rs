//! Which database is simulated: options drawn from a seed, and how they are spelt for the engine.
//!
//! A value. Options that make the oracle's question meaningless (WAL recovery modes that skip) are left out.

use crate::disk::SimFs;
use crate::rng::Rng;
use crate::world::World;
use esker::merge_operator::StringAppend;
use esker::observe::Logger;
use esker::options::InfoLogLevel;
use esker::{FamilyOptions, Options};
use esker_status::Result;
use std::sync::Arc;

/// Where the database is.
pub const DIR: &str = "/db";
/// Where its logs are, when not there.
pub const WAL_DIR: &str = "/wal";

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

struct Silent;

impl Logger for Silent {
    fn level(&self) -> InfoLogLevel {
        InfoLogLevel::Fatal
    }
    fn log(&self, _level: InfoLogLevel, _line: &str) {}
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
    /// The seed of the environment's randomness.
    pub seed: u64,
}

impl Settings {
    /// The settings of a seed.
    pub fn draw(seed: u64) -> Settings {
        let mut rng = Rng::new(seed ^ 0x5e77_1265);
        let mut options: Vec<(&'static str, String)> = CHOICES
            .iter()
            .map(|(name, values)| (*name, (*rng.pick(values)).to_owned()))
            .collect();
        let atomic_flush = rng.one_in(4);
        let manual_wal_flush = rng.one_in(5);
        options.push(("atomic_flush", atomic_flush.to_string()));
        options.push(("manual_wal_flush", manual_wal_flush.to_string()));
        Settings {
            options,
            atomic_flush,
            manual_wal_flush,
            wal_dir: rng.one_in(5),
            info_log: rng.one_in(8),
            seed,
        }
    }

    /// The same as options of the engine, around `disk`.
    pub fn options(&self, world: &World, disk: &SimFs) -> Result<Options> {
        let mut options = Options::new()
            .create_if_missing(true)
            .env(world.env(disk, self.seed));
        for (name, value) in &self.options {
            options.set_in_place(name, value)?;
        }
        options.family.merge_operator = Some(Arc::new(StringAppend::new(b",")));
        options.family.arena_block_size = 4 << 10;
        if self.wal_dir {
            options.db.wal_dir = WAL_DIR.to_owned();
        }
        if !self.info_log {
            options.db.info_log = Some(Arc::new(Silent));
        }
        options.db.stats_dump_period_sec = 0;
        Ok(options)
    }

    /// The options of every family.
    pub fn family(&self, options: &Options) -> FamilyOptions {
        options.family.clone()
    }
}
