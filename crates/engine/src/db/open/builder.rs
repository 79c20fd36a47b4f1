//! Opening a database by a chain of calls: one for all modes.

use super::{Db, FamilyDescriptor, OpenMode, Opening};
use crate::options::{FamilyOptions, Options};
use crate::ttl::TimeToLive;
use esker_env::Env;
use esker_files::current;
use esker_status::{Error, Result};
use std::path::{Path, PathBuf};

/// A database that is to be opened, and how: see [`Db::builder`].
#[derive(Clone)]
#[must_use = "nothing is opened before `open` is called"]
pub struct DbBuilder {
    path: PathBuf,
    options: Options,
    families: Vec<(FamilyDescriptor, Option<TimeToLive>)>,
    mode: OpenMode,
    secondary: PathBuf,
    ttl: Option<TimeToLive>,
}

impl std::fmt::Debug for DbBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DbBuilder")
            .field("path", &self.path)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

impl Db {
    /// Begins to open the database at `path`: what follows says how.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, FamilyOptions};
    ///
    /// let users = FamilyOptions::new().bloom_filter(10.0);
    /// let db = Db::builder(dir.path())
    ///     .create_if_missing()
    ///     .family("users", users)
    ///     .open()?;
    /// db.existing_family("users")?.put("ann", "1")?;
    /// drop(db);
    ///
    /// let copy = Db::builder(dir.path()).read_only().open()?;
    /// assert!(copy.existing_family("users")?.contains_key("ann")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(path: impl AsRef<Path>) -> DbBuilder {
        DbBuilder {
            path: path.as_ref().to_path_buf(),
            options: Options::new(),
            families: Vec::new(),
            mode: OpenMode::ReadWrite,
            secondary: PathBuf::new(),
            ttl: None,
        }
    }
}

impl DbBuilder {
    /// The options of the database and of its default family, which families that are not named
    /// share.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, Options};
    ///
    /// let options = Options::new().write_buffer_size(16 << 20);
    /// let db = Db::builder(dir.path()).options(options).create_if_missing().open()?;
    /// # drop(db);
    /// # Ok(())
    /// # }
    /// ```
    pub fn options(mut self, options: Options) -> Self {
        let before = std::mem::replace(&mut self.options, options);
        if before.db.create_if_missing {
            self = self.create_if_missing();
        }
        self
    }

    /// Creates the database, and families that are named, where there are none.
    pub fn create_if_missing(mut self) -> Self {
        self.options.db.create_if_missing = true;
        self.options.db.create_missing_column_families = true;
        self
    }

    /// Names a family with options of its own. Those that exist and are not named have the options
    /// of the default family.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, FamilyOptions};
    ///
    /// let counters = FamilyOptions::new().merge_operator(esker::merge_operator::UInt64Add);
    /// let db = Db::builder(dir.path())
    ///     .create_if_missing()
    ///     .family("counters", counters)
    ///     .open()?;
    /// db.existing_family("counters")?.merge("visits", 1_u64.to_le_bytes())?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn family(mut self, name: impl Into<String>, options: FamilyOptions) -> Self {
        let named = FamilyDescriptor::new(name, options);
        self.families.push((named, None));
        self
    }

    /// Names a family with options of its own, whose values live so long.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, FamilyOptions};
    /// use std::time::Duration;
    ///
    /// let an_hour = Duration::from_secs(3600);
    /// let db = Db::builder(dir.path())
    ///     .create_if_missing()
    ///     .family_with_ttl("sessions", FamilyOptions::new(), an_hour)
    ///     .open()?;
    /// let sessions = db.existing_family("sessions")?;
    /// assert_eq!(db.ttl(&sessions), Some(3600));
    /// assert_eq!(db.ttl(&db.default_family_handle()), Some(0), "for ever");
    /// # Ok(())
    /// # }
    /// ```
    pub fn family_with_ttl(
        mut self,
        name: impl Into<String>,
        options: FamilyOptions,
        ttl: impl Into<TimeToLive>,
    ) -> Self {
        let named = FamilyDescriptor::new(name, options);
        self.families.push((named, Some(ttl.into())));
        self.ttl.get_or_insert(TimeToLive::FOREVER);
        self
    }

    /// Opens a database whose values expire, and live so long in families that have no time of
    /// their own: see [`crate::ttl`].
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use std::time::Duration;
    ///
    /// let a_day = Duration::from_secs(86_400);
    /// let db = esker::Db::builder(dir.path()).create_if_missing().ttl(a_day).open()?;
    /// db.put("session", "alive")?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "open_with_ttl")]
    pub fn ttl(mut self, ttl: impl Into<TimeToLive>) -> Self {
        self.ttl = Some(ttl.into());
        self
    }

    /// Opens it for reading the state of now; nothing in the directory changes and no lock is
    /// taken.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// let writer = esker::Db::open_default(dir.path())?;
    /// writer.put("key", "value")?;
    /// let reader = esker::Db::builder(dir.path()).read_only().open()?;
    /// assert!(reader.is_read_only() && reader.contains_key("key")?);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "open_for_read_only")]
    pub fn read_only(mut self) -> Self {
        self.mode = OpenMode::ReadOnly;
        self
    }

    /// Opens it for reading beside the process that writes it: see [`Db::open_secondary`]. `dir`
    /// is where this instance has its LOG.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// let at = dir.path().join("db");
    /// let primary = esker::Db::open_default(&at)?;
    /// let secondary = esker::Db::builder(&at).secondary(dir.path().join("second")).open()?;
    /// primary.put("key", "value")?;
    /// secondary.try_catch_up_with_primary()?;
    /// assert!(secondary.contains_key("key")?);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "open_as_secondary")]
    pub fn secondary(mut self, dir: impl AsRef<Path>) -> Self {
        self.mode = OpenMode::Secondary;
        self.secondary = dir.as_ref().to_path_buf();
        self
    }

    /// Runs in `env` instead of on the operating system.
    pub fn env(mut self, env: Env) -> Self {
        self.options.env = Some(env);
        self
    }

    /// Opens the database.
    pub fn open(self) -> Result<Db> {
        if self.mode == OpenMode::Secondary && self.ttl.is_some() {
            return Err(Error::not_supported(
                "a secondary instance of a database with times to live",
            ));
        }
        let named = self.all_families()?;
        let times: Vec<TimeToLive> = named
            .iter()
            .map(|(_, ttl)| ttl.or(self.ttl).unwrap_or(TimeToLive::FOREVER))
            .collect();
        let families = (!named.is_empty()).then(|| named.into_iter().map(|(f, _)| f).collect());
        let mut opening = Opening::new(&self.path, self.options, families, self.mode)?;
        if self.mode == OpenMode::Secondary {
            opening = opening.secondary(&self.secondary);
        }
        if let Some(others) = self.ttl {
            opening = opening.with_ttl(&times, others);
        }
        opening.run()
    }

    /// The families that are named, with the default one and those that exist; none when none is
    /// named.
    fn all_families(&self) -> Result<Vec<(FamilyDescriptor, Option<TimeToLive>)>> {
        let mut all = self.families.clone();
        if all.is_empty() {
            return Ok(all);
        }
        let env = self.options.env.clone().unwrap_or_else(Env::posix);
        let mut names = vec!["default".to_owned()];
        match current::read(&*env.fs, &self.path) {
            Ok(_) => names.extend(Db::list_families(&self.path, &self.options)?),
            Err(e) if e.is_not_found() => {}
            Err(e) => return Err(e),
        }
        for name in names {
            if !all.iter().any(|(f, _)| f.name == name) {
                let options = self.options.family.clone();
                all.push((FamilyDescriptor::new(name, options), None));
            }
        }
        Ok(all)
    }
}
