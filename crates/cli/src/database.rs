//! Opening a database for the commands that go through the engine.
//!
//! Options come from the database's newest OPTIONS file, as `ldb` takes them, then from
//! `--options-file` when given, then from `--set`, which counts for the database and for all its
//! families.

use crate::directory::{Directory, load_options};
use crate::failure::{Failure, Outcome};
use crate::text::{argument, one_line, put_bytes};
use crate::{options_file, say, times};
use clap::Args;
use esker::options::{LoadedOptions, load_options_text, names};
use esker::{Db, Env, FamilyDescriptor, FamilyHandle, FamilyOptions, Options};
use esker_env::{FileSystem, PosixFs};
use esker_format::file_name::CURRENT;
use esker_status::{Error, Result};
use serde_json::{Map, Value};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Which database, and how it is opened.
#[derive(Args, Debug)]
pub(crate) struct DbArgs {
    /// The database's directory
    #[arg(long, value_name = "DB")]
    pub(crate) db: PathBuf,
    /// The column family
    #[arg(
        long,
        alias = "column_family",
        alias = "cf",
        value_name = "NAME",
        default_value = "default"
    )]
    pub(crate) column_family: String,
    /// Set an option by RocksDB's name; can be given often. `esker options explain` lists the names
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Take options from this OPTIONS file instead of the database's own
    #[arg(long, alias = "options_file", value_name = "FILE")]
    options_file: Option<PathBuf>,
    /// Start from default options instead of the database's own OPTIONS file
    #[arg(long, conflicts_with = "options_file")]
    pub(crate) default_options: bool,
    /// Go on at options of the file that nobody knows, without them
    #[arg(long, alias = "ignore_unknown_options")]
    pub(crate) ignore_unknown_options: bool,
    /// Values end in the second at which they were written, and live for SECONDS (0: for ever).
    /// Not needed where the OPTIONS file says so
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true,
        default_missing_value = "0")]
    pub(crate) ttl: Option<i32>,
    /// Read as a secondary instance, whose LOG goes into DIR; another process may have the database
    /// open
    #[arg(long, alias = "secondary_path", value_name = "DIR")]
    pub(crate) secondary_path: Option<PathBuf>,
}

/// Permission to make the database.
#[derive(Args, Debug)]
pub(crate) struct CreateArgs {
    /// Create the database, and the column family, when they are missing
    #[arg(long, alias = "create_if_missing")]
    pub(crate) create_if_missing: bool,
}

/// How keys and values are given and shown.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct HexArgs {
    /// Keys and values are hexadecimal: 0x and two digits for each byte
    #[arg(long)]
    pub(crate) hex: bool,
    /// Keys are hexadecimal
    #[arg(long, alias = "key_hex")]
    pub(crate) key_hex: bool,
    /// Values are hexadecimal
    #[arg(long, alias = "value_hex")]
    pub(crate) value_hex: bool,
}

impl HexArgs {
    /// Returns whether keys are hexadecimal.
    pub(crate) fn keys(self) -> bool {
        self.hex || self.key_hex
    }

    /// Returns whether values are hexadecimal.
    pub(crate) fn values(self) -> bool {
        self.hex || self.value_hex
    }

    /// The key that an argument means.
    pub(crate) fn key(self, text: &OsStr) -> Outcome<Vec<u8>> {
        given(text, self.keys())
    }

    /// The value that an argument means.
    pub(crate) fn value(self, text: &OsStr) -> Outcome<Vec<u8>> {
        given(text, self.values())
    }

    /// A key as this command shows keys: raw bytes, or hexadecimal.
    pub(crate) fn show_key(self, key: &[u8]) -> Vec<u8> {
        shown(key, self.keys())
    }

    /// A value as this command shows values.
    pub(crate) fn show_value(self, value: &[u8]) -> Vec<u8> {
        shown(value, self.values())
    }

    /// An entry as an object of `kind`; without a value where there is none.
    pub(crate) fn entry(self, kind: &str, key: &[u8], value: Option<&[u8]>) -> Value {
        let mut object = Map::new();
        object.insert("type".to_owned(), kind.into());
        put_bytes(&mut object, "key", key, self.keys());
        match value {
            Some(value) => put_bytes(&mut object, "value", value, self.values()),
            None => {
                object.insert("value".to_owned(), Value::Null);
            }
        }
        Value::Object(object)
    }
}

fn given(text: &OsStr, hex: bool) -> Outcome<Vec<u8>> {
    argument(text, hex).map_err(|e| Failure::Usage(e.message().to_owned()))
}

fn shown(bytes: &[u8], hex: bool) -> Vec<u8> {
    if hex {
        crate::text::hex(bytes).into_bytes()
    } else {
        bytes.to_vec()
    }
}

/// An open database and the family that the command works on.
pub(crate) struct Open {
    /// The database.
    pub(crate) db: Db,
    /// The family.
    pub(crate) family: FamilyHandle,
    /// The options of the default family.
    pub(crate) default_options: FamilyOptions,
}

impl Open {
    /// Closes the database, telling what only a close can tell.
    pub(crate) fn close(self) -> Outcome {
        drop(self.family);
        Ok(self.db.close()?)
    }
}

impl DbArgs {
    /// The database at `db`, opened as it is.
    pub(crate) fn at(db: PathBuf) -> DbArgs {
        DbArgs {
            db,
            column_family: "default".to_owned(),
            set: Vec::new(),
            options_file: None,
            default_options: false,
            ignore_unknown_options: false,
            ttl: None,
            secondary_path: None,
        }
    }

    /// The database's directory.
    pub(crate) fn path(&self) -> &Path {
        &self.db
    }

    /// Opens for reading; nothing in the directory changes.
    pub(crate) fn read(&self) -> Outcome<Open> {
        let Opening {
            options,
            families,
            ttl,
        } = self.options(false)?;
        let default_options = options.family.clone();
        let db = match (&self.secondary_path, ttl) {
            (Some(_), Some(_)) => {
                return Err(Failure::Usage(
                    "a database with times to live is not read as a secondary instance: leave \
                     --secondary-path out"
                        .to_owned(),
                ));
            }
            (Some(own), None) => Db::open_families_secondary(&self.db, own, options, families)?,
            (None, Some(_)) => Db::open_read_only_with_ttl(&self.db, options)?,
            (None, None) => Db::open_families_read_only(&self.db, options, families)?,
        };
        let family = self.family(&db)?;
        Ok(Open {
            db,
            family,
            default_options,
        })
    }

    /// Opens for writing.
    pub(crate) fn write(&self, create: bool) -> Outcome<Open> {
        self.write_in(create, None)
    }

    /// Opens for writing, in an environment that is not the usual one.
    pub(crate) fn write_in(&self, create: bool, env: Option<Env>) -> Outcome<Open> {
        if self.secondary_path.is_some() {
            return Err(Failure::Usage(
                "a secondary instance only reads: leave --secondary-path out".to_owned(),
            ));
        }
        let Opening {
            mut options,
            families,
            ttl,
        } = self.options(create)?;
        options.env = env;
        let own = families.iter().find(|f| f.name == "default");
        let default_options = own.map(|f| f.options.clone()).unwrap_or_default();
        let db = match ttl {
            Some(seconds) => {
                let families = families.into_iter().map(|f| (f, seconds)).collect();
                Db::open_families_with_ttl(&self.db, options, families)?
            }
            None => Db::open_families(&self.db, options, families)?,
        };
        if create && db.family(&self.column_family).is_none() {
            match ttl {
                Some(seconds) => db.create_family_with_ttl(
                    &self.column_family,
                    default_options.clone(),
                    seconds,
                )?,
                None => db.create_family(&self.column_family, default_options.clone())?,
            };
        }
        let family = self.family(&db)?;
        Ok(Open {
            db,
            family,
            default_options,
        })
    }

    fn family(&self, db: &Db) -> Result<FamilyHandle> {
        let family = db.family(&self.column_family).map(FamilyHandle::from);
        family.ok_or_else(|| {
            let names: Vec<_> = db.families().iter().map(|f| f.name().to_owned()).collect();
            self.no_family(&names)
        })
    }

    fn no_family(&self, names: &[String]) -> Error {
        let name = &self.column_family;
        Error::invalid_argument(format!("there is no column family {name:?}"))
            .with_hint(format!("there are: {}", names.join(", ")))
    }

    /// Options of the file, and the times to live that it names.
    fn loaded(&self, exists: bool) -> Result<(LoadedOptions, Option<i32>)> {
        let mut loaded = match &self.options_file {
            Some(path) => self.of_file(path)?,
            None if self.default_options || !exists => LoadedOptions::default(),
            None => match Directory::read(&self.db)?.options {
                Some((path, Err(_))) if self.ignore_unknown_options => self.of_file(&path)?,
                Some((_, loaded)) => loaded.map_err(|e| {
                    e.with_hint("--default-options or --options-file opens without this file")
                })?,
                None => LoadedOptions::default(),
            },
        };
        let ttl = times::taken(&mut loaded)?;
        // Listeners are a program's code.
        for r in loaded.remarks.iter().filter(|r| r.option != "listeners") {
            let text = format!(
                "option {}={} is not taken over: {}",
                r.option, r.value, r.reason
            );
            say::note(&text);
        }
        Ok((loaded, ttl))
    }

    fn of_file(&self, path: &Path) -> Result<LoadedOptions> {
        if !self.ignore_unknown_options {
            return load_options(path);
        }
        let text = options_file::text_of(path)?;
        let mut faults = options_file::faults(&text);
        faults.retain(|f| !names::is_known(&f.name));
        let known = options_file::without(&text, &faults);
        load_options_text(&known, options_file::RULES).map_err(|e| e.with_file(path))
    }

    fn options(&self, create: bool) -> Outcome<Opening> {
        let exists = PosixFs::new().exists(&self.db.join(CURRENT))?;
        let (loaded, named) = self.loaded(exists)?;
        let described = |name: &str| {
            let own = loaded.families.iter().find(|(n, _)| n == name);
            own.or(loaded.families.first())
                .map(|(_, o)| o.clone())
                .unwrap_or_default()
        };
        let mut options = Options::new().create_if_missing(create);
        options.db = loaded.db.clone();
        options.db.create_if_missing = create;
        options.db.error_if_exists = false;
        options.family = described("default");
        set_all(&mut options, &self.set)?;
        let names = if exists {
            Db::list_families(&self.db, &options)?
        } else {
            vec!["default".to_owned()]
        };
        if exists && !create && !names.contains(&self.column_family) {
            return Err(self.no_family(&names).into());
        }
        let mut families = Vec::new();
        for name in names {
            let mut one = Options::new();
            one.family = described(&name);
            set_all(&mut one, &self.set)?;
            families.push(FamilyDescriptor::new(name, one.family));
        }
        Ok(Opening {
            options,
            families,
            ttl: self.ttl.or(named),
        })
    }
}

/// A database is opened with these.
struct Opening {
    options: Options,
    families: Vec<FamilyDescriptor>,
    /// Seconds that values live, in a database with times to live.
    ttl: Option<i32>,
}

/// Sets options from `NAME=VALUE` each, for the database and for a family.
pub(crate) fn set_all(options: &mut Options, pairs: &[String]) -> Outcome {
    for pair in pairs {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(Failure::Usage(format!(
                "--set {pair}: it must be NAME=VALUE"
            )));
        };
        options
            .set_in_place(name.trim(), value)
            .map_err(|e| Failure::Usage(one_line(&e.to_string())))?;
    }
    Ok(())
}
