//! The options that a database was last opened with: its newest OPTIONS file, held against the
//! MANIFEST.
//!
//! A crash may leave the two apart: a family was just made or dropped, or a filesystem kept the
//! name of a file and not all of its contents. Opening wants exactly the families of the MANIFEST,
//! so those are what is loaded. Where the newest file is cut off, or lacks a family, the one before
//! it is asked. Reads only; used by any thread.

use super::fold::{family_names, known_order};
use crate::options::{FamilyOptions, LoadRules, LoadedOptions, Remark, load_options_text};
use esker_env::Env;
use esker_format::FileNo;
use esker_format::file_name::{FileKind, options_name, parse_file_name};
use esker_format::options_text::escape;
use esker_status::{Error, ErrorKind, Result};
use std::path::Path;

/// An OPTIONS file is not larger: it has some kilobytes for each family.
const LARGEST: u64 = 1 << 30;

/// How often files may go while they are read: a database that is open replaces them.
const ATTEMPTS: usize = 5;

/// Reads the newest OPTIONS file of the database at `dir`, which may be open or RocksDB's.
///
/// The families are those that the MANIFEST has, where it can be read: one that the file lacks is
/// taken from the file before, or has the defaults and a remark. `NotFound` when there is no
/// OPTIONS file.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// use esker::options::LoadRules;
/// use esker::{Db, Env, Options, load_latest_options};
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
    let mut attempt = 1;
    loop {
        let numbers = list(dir, env)?;
        match load(dir, env, rules, &numbers) {
            Err(e) if e.is_not_found() && attempt < ATTEMPTS => attempt += 1,
            done => return done,
        }
    }
}

/// The numbers of the OPTIONS files, the newest first.
fn list(dir: &Path, env: &Env) -> Result<Vec<FileNo>> {
    if !env.fs.exists(dir)? {
        return Err(none(dir));
    }
    let entries = env.fs.read_dir(dir)?;
    let number = |name: &str| match parse_file_name(name) {
        Some((FileKind::Options, number)) => Some(number),
        _ => None,
    };
    let mut numbers: Vec<_> = entries.iter().filter_map(|e| number(&e.name)).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    if numbers.is_empty() {
        Err(none(dir))
    } else {
        Ok(numbers)
    }
}

fn load(dir: &Path, env: &Env, rules: LoadRules, numbers: &[FileNo]) -> Result<LoadedOptions> {
    let mut torn = None;
    for (at, number) in numbers.iter().enumerate() {
        let path = dir.join(options_name(*number));
        match read(env, &path)? {
            // A whole file that cannot be loaded is what the caller has to know of.
            Ok(text) => {
                let loaded = load_options_text(&text, rules);
                let mut loaded = loaded.map_err(|e| e.with_file(&path))?;
                match_manifest(dir, env, &numbers[at + 1..], &mut loaded);
                return Ok(loaded);
            }
            Err(e) => torn = torn.or(Some(e.with_file(&path))),
        }
    }
    Err(torn.unwrap_or_else(|| none(dir)))
}

/// The text of an OPTIONS file; the inner error says that it is not whole.
fn read(env: &Env, path: &Path) -> Result<Result<String>> {
    let bytes = env.fs.read_all(path, LARGEST)?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) if is_whole(&text) => Ok(text),
        _ => Err(
            Error::corruption("the OPTIONS file is not whole").with_hint(
                "remove it when an older one is there, or write it anew by opening the database",
            ),
        ),
    })
}

/// Returns whether a file ends where its writer ended: behind the table options of a family, with a
/// line end. Blocks that a filesystem lost read as zeros.
fn is_whole(text: &str) -> bool {
    let sections = || text.lines().filter(|l| l.trim_start().starts_with('['));
    let has = |title: &str| sections().any(|l| l.trim_start().starts_with(title));
    let last = sections().next_back().map(str::trim_start);
    text.ends_with('\n')
        && !text.contains('\0')
        && has("[DBOptions]")
        && has("[CFOptions \"default\"]")
        && last.is_some_and(|l| l.starts_with("[TableOptions/"))
}

/// Makes the families those of the MANIFEST, with `older` files for those that are missing. Without
/// a MANIFEST that can be read they stay as they are: opening the database reports that.
fn match_manifest(dir: &Path, env: &Env, older: &[FileNo], loaded: &mut LoadedOptions) {
    let Ok(there) = family_names(&*env.fs, dir) else {
        return;
    };
    let is_there = |name: &str| there.iter().any(|(n, _)| n == name);
    loaded.families.retain(|(name, _)| is_there(name));
    for (name, comparator) in &there {
        if loaded.families.iter().any(|(n, _)| n == name) {
            continue;
        }
        let before = older
            .iter()
            .find_map(|number| family_in(dir, env, *number, name));
        let options = before.unwrap_or_else(|| {
            let mut options = FamilyOptions::default();
            let order = known_order(comparator.as_deref(), &options.comparator);
            options.comparator = order.unwrap_or(options.comparator);
            loaded.remarks.push(Remark {
                family: Some(name.clone()),
                option: String::new(),
                value: String::new(),
                reason: "no OPTIONS file has the family: its options are the defaults".to_owned(),
            });
            options
        });
        loaded.families.push((name.clone(), options));
    }
}

/// The options that an older file has for a family.
fn family_in(dir: &Path, env: &Env, number: FileNo, name: &str) -> Option<FamilyOptions> {
    let text = read(env, &dir.join(options_name(number))).ok()?.ok()?;
    if !text.contains(&format!("[CFOptions \"{}\"]", escape(name))) {
        return None;
    }
    let rules = LoadRules {
        ignore_unknown: true,
        strict: false,
    };
    let families = load_options_text(&text, rules).ok()?.families;
    families
        .into_iter()
        .find(|(n, _)| n == name)
        .map(|(_, options)| options)
}

#[cold]
fn none(dir: &Path) -> Error {
    let said = "No such file or directory: No options files found in the DB directory.";
    Error::new(ErrorKind::NotFound, said).with_file(dir)
}
