//! The options that a database was last opened with: its newest OPTIONS file.

use super::{LoadRules, LoadedOptions, load_options_text};
use esker_env::Env;
use esker_format::file_name::{FileKind, options_name, parse_file_name};
use esker_status::{Error, ErrorKind, Result};
use std::path::Path;

/// An OPTIONS file is not larger: it has some kilobytes for each family.
const LARGEST: u64 = 1 << 30;

/// Reads the newest OPTIONS file of the database at `dir`, which may be open or RocksDB's.
///
/// `NotFound` when there is none.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// use esker::options::{LoadRules, load_latest_options};
/// use esker::{Db, Env, Options};
///
/// let options = Options::new().create_if_missing(true).set("max_background_jobs", "7")?;
/// Db::open(dir.path(), options)?.close()?;
/// let loaded = load_latest_options(dir.path(), &Env::posix(), LoadRules::default())?;
/// assert_eq!(loaded.db.max_background_jobs, 7);
/// assert_eq!(loaded.families[0].0, "default");
/// # Ok(())
/// # }
/// ```
pub fn load_latest_options(
    dir: impl AsRef<Path>,
    env: &Env,
    rules: LoadRules,
) -> Result<LoadedOptions> {
    let dir = dir.as_ref();
    if !env.fs.exists(dir)? {
        return Err(none(dir));
    }
    let entries = env.fs.read_dir(dir)?;
    let newest = entries
        .iter()
        .filter_map(|e| match parse_file_name(&e.name) {
            Some((FileKind::Options, number)) => Some(number),
            _ => None,
        })
        .max()
        .ok_or_else(|| none(dir))?;
    let path = dir.join(options_name(newest));
    let bytes = env.fs.read_all(&path, LARGEST)?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| Error::invalid_argument("an OPTIONS file is UTF-8").with_file(&path))?;
    load_options_text(text, rules).map_err(|e| e.with_file(path))
}

#[cold]
fn none(dir: &Path) -> Error {
    let said = "No such file or directory: No options files found in the DB directory.";
    Error::new(ErrorKind::NotFound, said).with_file(dir)
}
