//! The options that a database is opened with: the database's own and the default family's.

use super::{Change, DbOptions, FamilyOptions, OptionSet, TableSettings, names};
use esker_env::Env;
use esker_status::{Error, Result};

/// How to open a database: its own options, those of its default family (which families without
/// their own share), and the environment.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// let options = esker::Options::new()
///     .create_if_missing(true)
///     .set("write_buffer_size", "16777216")?
///     .set("compression", "kZSTD")?;
/// assert_eq!(options.family.write_buffer_size, 16 << 20);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The database's options.
    pub db: DbOptions,
    /// The options of the default family.
    pub family: FamilyOptions,
    /// The world it runs in; `None` for the operating system's.
    pub env: Option<Env>,
}

impl Options {
    /// Every option at its default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the database when there is none.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, Options};
    ///
    /// assert!(Db::open(dir.path(), Options::new()).is_err(), "there is no database");
    /// Db::open(dir.path(), Options::new().create_if_missing(true))?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn create_if_missing(mut self, yes: bool) -> Self {
        self.db.create_if_missing = yes;
        self
    }

    /// Creates families that are named at open and do not exist.
    #[must_use]
    pub fn create_missing_column_families(mut self, yes: bool) -> Self {
        self.db.create_missing_column_families = yes;
        self
    }

    /// Runs in `env` instead of on the operating system.
    #[must_use]
    pub fn env(mut self, env: Env) -> Self {
        self.env = Some(env);
        self
    }

    /// Sets an option of the database, the default family or its tables by RocksDB's name.
    ///
    /// `InvalidArgument` for a name that does not exist or a value that cannot be read.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// let options = esker::Options::new().set("max_background_jobs", "4")?;
    /// assert_eq!(options.db.max_background_jobs, 4);
    /// let error = esker::Options::new().set("max_background_jbos", "4").expect_err("a typo");
    /// assert!(error.to_string().contains("max_background_jbos"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn set(mut self, name: &str, value: &str) -> Result<Self> {
        self.set_in_place(name, value)?;
        Ok(self)
    }

    /// Sets several options given as `name=value;name=value`.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// let options = esker::Options::new().set_all("write_buffer_size=8388608;block_size=16384")?;
    /// assert_eq!(options.family.write_buffer_size, 8 << 20);
    /// assert_eq!(options.family.table.block_size, 16 << 10);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_all(mut self, list: &str) -> Result<Self> {
        for (name, value) in esker_format::options_text::parse_pairs(list)? {
            self.set_in_place(&name, &value)?;
        }
        Ok(self)
    }

    /// As [`Options::set`], in place.
    pub fn set_in_place(&mut self, name: &str, value: &str) -> Result<()> {
        let head = name.split('.').next().unwrap_or(name);
        if DbOptions::entry(head).is_some() {
            self.db.set(name, value)
        } else if TableSettings::entry(head).is_some() {
            self.family.table.set(name, value)
        } else if !names::is_known(head) {
            let meant = names::suggestion(name).unwrap_or_default();
            Err(Error::invalid_argument(format!("unknown option {name:?}"))
                .with_hint(format!("{meant} `esker options explain` lists the names")))
        } else {
            // Retired names are taken by whichever section had them.
            self.family.set(name, value).or_else(|e| {
                self.db
                    .set(name, value)
                    .or_else(|_| self.family.table.set(name, value))
                    .map_err(|_| e)
            })
        }
    }

    /// Returns whether an option may be changed while the database is open.
    ///
    /// ```
    /// use esker::Options;
    ///
    /// assert!(Options::is_mutable("write_buffer_size"));
    /// assert!(!Options::is_mutable("num_levels"));
    /// ```
    pub fn is_mutable(name: &str) -> bool {
        let change = DbOptions::entry(name)
            .map(|e| e.info.change)
            .or_else(|| FamilyOptions::entry(name).map(|e| e.info.change))
            .or_else(|| TableSettings::entry(name).map(|e| e.info.change));
        change == Some(Change::AnyTime)
    }
}
