//! Properties by RocksDB's names: what the database says about itself in numbers, text and maps.
//!
//! A name ends where its trailing digits begin: those are its argument (a level, a temperature).
//! Every name that RocksDB 11.8 answers is answered here, with its layout, so that tools which read
//! the texts go on working; a name has no answer exactly where RocksDB has none (no cache, no such
//! level). Everything is computed when asked for, from the family's view; nothing is kept up to
//! date meanwhile.

mod cache;
mod compaction;
mod database;
mod human;
mod jobs;
mod memory;
mod metrics;
mod numbers;
mod reads;
mod stages;
mod stalls;
mod tables;
mod texts;

use super::Db;
use crate::core::Core;
use crate::family::{Family, FamilyHandle};
use crate::options::{InfoLogLevel, dump};
use esker_format::file_name;
use esker_sync::Arc;
use esker_sync::atomic::Ordering::Relaxed;
use std::collections::BTreeMap;
use std::path::PathBuf;
use texts::{TEXTS, TextOf};

/// The RocksDB whose formats, names and layouts these are.
const ROCKSDB_VERSION: &str = "11.8.1";

/// A property that is a list of named values.
pub type PropertyMap = BTreeMap<String, String>;

impl Db {
    /// The property `name` of the default family; `None` for a name that does not exist.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// assert_eq!(db.property("rocksdb.estimate-num-keys").as_deref(), Some("1"));
    /// assert_eq!(db.property("rocksdb.no-such-property"), None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn property(&self, name: &str) -> Option<String> {
        self.property_cf(&self.default_family_handle(), name)
    }

    /// The property `name` of `family`.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.create_family("users", Default::default())?;
    /// db.put_cf(&users, "ann", "1")?;
    /// let keys = db.property_cf(&users, "rocksdb.estimate-num-keys");
    /// assert_eq!(keys.as_deref(), Some("1"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn property_cf(&self, family: &FamilyHandle, name: &str) -> Option<String> {
        let core = self.core();
        name.strip_prefix("rocksdb.")
            .and_then(|name| texts::text(core, &family.0, name))
            .or_else(|| numbers::number(self.core(), &family.0, name).map(|n| n.to_string()))
    }

    /// The property `name` of `family` as a number; `None` for texts, and for names that do not
    /// exist.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let family = db.default_family_handle();
    /// let held = db.snapshot();
    /// assert_eq!(db.int_property(&family, "rocksdb.num-snapshots"), Some(1));
    /// drop(held);
    /// assert_eq!(db.int_property(&family, "rocksdb.num-snapshots"), Some(0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn int_property(&self, family: &FamilyHandle, name: &str) -> Option<u64> {
        numbers::number(self.core(), &family.0, name)
    }

    /// The property `name` as a number, added up over all families; caches that several families
    /// share count once.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.create_family("users", Default::default())?;
    /// db.put("key", "value")?;
    /// db.put_cf(&users, "ann", "1")?;
    /// assert_eq!(db.aggregated_int_property("rocksdb.estimate-num-keys"), Some(2));
    /// # Ok(())
    /// # }
    /// ```
    pub fn aggregated_int_property(&self, name: &str) -> Option<u64> {
        let core = self.core();
        let mut seen = Vec::new();
        let mut sum = 0u64;
        for family in core.trees.families.all() {
            if name.starts_with("rocksdb.block-cache-") {
                let cache = family
                    .reading
                    .cache()
                    .map(|c| esker_sync::Arc::as_ptr(&c).addr());
                if seen.contains(&cache) {
                    continue;
                }
                seen.push(cache);
            }
            sum = sum.wrapping_add(numbers::number(core, &family, name)?);
        }
        Some(sum)
    }

    /// The property `name` of `family` as named values; `None` for a name that has none.
    pub fn map_property(&self, family: &FamilyHandle, name: &str) -> Option<PropertyMap> {
        texts::map(self.core(), &family.0, name.strip_prefix("rocksdb.")?)
    }

    /// The names of all properties, with `N` where a number belongs.
    ///
    /// ```
    /// let names = esker::Db::property_names();
    /// assert!(names.iter().any(|name| name == "rocksdb.stats"));
    /// ```
    pub fn property_names() -> Vec<String> {
        let number = |text: &TextOf| match text {
            TextOf::Plain(_) => "",
            TextOf::Numbered(_) => "N",
        };
        TEXTS
            .iter()
            .map(|t| format!("rocksdb.{}{}", t.name, number(&t.text)))
            .chain(
                numbers::NUMBERS
                    .iter()
                    .map(|n| format!("rocksdb.{}", n.name)),
            )
            .collect()
    }
}

/// The memory budget; empty without one.
fn memory_budget(core: &Core) -> String {
    let part = core.budget.as_ref();
    part.map_or_else(String::new, |part| part.budget.describe())
}

/// The LOG has the options of at most this many families.
const FAMILIES_LOGGED: usize = 10;

impl Core {
    /// Writes the first lines of the LOG: version, database, options.
    pub(crate) fn log_opening(&self) {
        if !self.services.info_log.keeps(InfoLogLevel::Header) {
            return;
        }
        let mut lines = vec![
            format!(
                "RocksDB version: {ROCKSDB_VERSION} (formats and options of; the engine is Esker {})",
                env!("CARGO_PKG_VERSION")
            ),
            // Scripts take it from here; like RocksDB from a source package, 0 where it is not
            // given.
            format!("Git sha {}", option_env!("ESKER_GIT_SHA").unwrap_or("0")),
            "DB SUMMARY".to_owned(),
            format!("Host name (Env):  {}", self.services.identity.host_id),
            format!("DB Session ID:  {}", self.services.identity.session_id),
            format!("DB ID:  {}", self.services.identity.db_id),
        ];
        lines.extend(self.carrier_line());
        lines.extend(self.table_lines());
        lines.extend(dump::build_lines());
        lines.extend(dump::db_lines(&self.services.options.load()));
        self.services
            .info_log
            .write_lines(InfoLogLevel::Header, &lines);
        for (n, family) in self.trees.families.all().iter().enumerate() {
            self.log_family(family, n);
        }
    }

    /// Names the carrier of large requests, if there is one.
    fn carrier_line(&self) -> Option<String> {
        let buffered = self.services.env.fs.background_carrier(false)?;
        let direct = if self.services.options.load().has_direct_io() {
            self.services.env.fs.background_carrier(true)
        } else {
            None
        };
        let direct = direct.map_or_else(String::new, |by| format!("direct by {by}; "));
        Some(format!("Background I/O:  {direct}buffered by {buffered}"))
    }

    /// How many tables each directory has, with the names of some.
    fn table_lines(&self) -> Vec<String> {
        const NAMED: usize = 9;
        let mut found: Vec<(PathBuf, usize, String)> = std::iter::once(self.services.dir.clone())
            .chain(self.trees.table_dirs())
            .map(|dir| (dir, 0, String::new()))
            .collect();
        for family in self.trees.families.all() {
            let version = Arc::clone(&family.view_guard().version);
            for (_, file) in version.files() {
                let dir = family.reading.paths.dir(file.path_id);
                let at = found.iter_mut().find(|(d, _, _)| d == dir);
                let Some((_, count, names)) = at else {
                    continue;
                };
                *count += 1;
                if *count <= NAMED {
                    names.push_str(&file_name::table_name(file.number));
                    names.push(' ');
                }
            }
        }
        let line = |(dir, count, names): (PathBuf, usize, String)| {
            let dir = dir.display();
            format!("SST files in {dir} dir, Total Num: {count}, files: {names}")
        };
        found.into_iter().map(line).collect()
    }

    /// A family's options, into the LOG, unless as many families as RocksDB prints came `before`.
    pub(crate) fn log_family(&self, family: &Family, before: usize) {
        if !self.services.info_log.keeps(InfoLogLevel::Header) {
            return;
        }
        let lines = if before < FAMILIES_LOGGED {
            dump::family_lines(&family.name, &family.options.load())
        } else {
            vec![format!(
                "--------------- Options for column family [{}]: (skipping printing options)",
                family.name
            )]
        };
        self.services
            .info_log
            .write_lines(InfoLogLevel::Header, &lines);
    }

    /// Returns whether `stats_dump_period_sec` have passed since statistics were last written into
    /// the LOG.
    pub(crate) fn is_statistics_dump_due(&self) -> bool {
        let period = u64::from(self.services.options.load().stats_dump_period_sec) * 1_000_000;
        let last = self.background.dumped_us.load(Relaxed);
        let now = self.services.env.clock.now_us();
        period > 0 && now.saturating_sub(last) >= period
    }

    /// Writes the statistics into the LOG when that is due.
    pub(crate) fn dump_statistics_if_due(&self) {
        let last = self.background.dumped_us.load(Relaxed);
        let now = self.services.env.clock.now_us();
        if !self.is_statistics_dump_due() {
            return;
        }
        // One of the threads that notice does it.
        if self
            .background
            .dumped_us
            .compare_exchange(last, now, Relaxed, Relaxed)
            .is_ok()
        {
            self.dump_statistics();
        }
    }

    /// The periodic dump of statistics into the LOG: what `stats_dump_period_sec` asks for.
    pub(crate) fn dump_statistics(&self) {
        self.services.info_log.info(format_args!(
            "------- DUMPING STATS -------\n{}",
            database::text(self)
        ));
        for family in self.trees.families.all() {
            self.services.info_log.info(format_args!(
                "{}",
                compaction::text(self, &family, false, true)
            ));
            self.services
                .info_log
                .info(format_args!("{}", compaction::file_histogram(&family)));
            self.services
                .info_log
                .info(format_args!("{}", stages::text(self, &family)));
            self.services
                .info_log
                .info(format_args!("{}", reads::text(&family)));
        }
        let stalls = stalls::text(self);
        if !stalls.is_empty() {
            self.services
                .info_log
                .info(format_args!("** Stalls **\n{stalls}"));
        }
        if let Some(s) = &self.services.statistics {
            self.services
                .info_log
                .info(format_args!("STATISTICS:\n{s}"));
        }
    }
}
