//! The list of files that the contents of a database need: what a checkpoint shares and a backup copies.
//!
//! The database may be open; or closed: then the MANIFEST alone says what belongs to it. Thread-safety: the list is
//! a value, made between two writes and two changes of the tree.

use super::{Db, Options};
use crate::recover::fold::{Folded, fold};
use crate::recover::{replay, sweep};
use esker_env::Env;
use esker_files::current;
use esker_format::FileNo;
use esker_format::file_name::{self, FileKind, parse_file_name};
use esker_status::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A file that the present contents of a database need.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveFile {
    /// Its name in the database's directory.
    pub name: String,
    /// Where it is: logs may lie in `wal_dir`.
    pub path: PathBuf,
    /// Its bytes that count. A MANIFEST or a log may grow meanwhile: what comes after is not part of the contents.
    pub bytes: u64,
    /// Whether its bytes never change, so that a link is as good as a copy.
    pub is_immutable: bool,
    /// What it is, as its name says.
    pub kind: FileKind,
    /// The checksum of the whole file, when the MANIFEST has one.
    pub file_checksum: Vec<u8>,
    /// The function of that checksum; empty when there is none.
    pub file_checksum_func_name: String,
    /// Its temperature, as RocksDB numbers them.
    pub temperature: u8,
}

impl LiveFile {
    pub(super) fn new(dir: &Path, name: String, bytes: u64, is_immutable: bool) -> Self {
        let kind = parse_file_name(&name).map_or(FileKind::Temp, |(kind, _)| kind);
        LiveFile {
            path: dir.join(&name),
            name,
            kind,
            bytes,
            is_immutable,
            file_checksum: Vec::new(),
            file_checksum_func_name: String::new(),
            temperature: 0,
        }
    }
}

impl Db {
    /// The files that the contents of the database need now: tables, blob files, the MANIFEST, logs and the newest
    /// OPTIONS. With [`Db::disable_file_deletions`] called before, they stay until
    /// [`Db::enable_file_deletions`]. Not for databases opened for reading only.
    pub fn live_files(&self) -> Result<Vec<LiveFile>> {
        let core = self.core();
        core.check_open_for_writes()?;
        let mut files = Vec::new();
        // Both locks: no write and no change of a tree comes between what is listed here.
        let mut log = core.writes.lock();
        core.sequence.quiesce();
        log.flush()?;
        core.store.while_still(|manifest, bytes| -> Result<()> {
            for family in core.families.all() {
                let version = &family.view_guard().version;
                for (_, file) in version.files() {
                    let path = core.tables.path(file.number)?;
                    let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
                    files.push(LiveFile {
                        file_checksum: file.file_checksum.clone(),
                        file_checksum_func_name: file.file_checksum_func_name.clone(),
                        temperature: file.temperature,
                        ..LiveFile::new(&core.dir, name.unwrap_or_default(), file.size, true)
                    });
                }
                for blob in version.blob_files().values() {
                    let name = file_name::blob_name(blob.number);
                    let bytes = core.env.fs.metadata(&core.dir.join(&name))?.len;
                    files.push(LiveFile {
                        file_checksum: blob.checksum_value.clone(),
                        file_checksum_func_name: blob.checksum_method.clone(),
                        ..LiveFile::new(&core.dir, name, bytes, true)
                    });
                }
            }
            let name = file_name::manifest_name(manifest);
            files.push(LiveFile::new(&core.dir, name, bytes, false));
            for live in log.alive() {
                let name = file_name::log_name(live.number);
                files.push(LiveFile::new(log.dir(), name, live.bytes, false));
            }
            let newest = sweep::newest_options(&core.env, &core.dir, FileNo(0))?;
            if let Some(number) = newest.last().filter(|n| n.0 > 0) {
                let name = file_name::options_name(*number);
                let bytes = core.env.fs.metadata(&core.dir.join(&name))?.len;
                files.push(LiveFile::new(&core.dir, name, bytes, true));
            }
            Ok(())
        })?;
        Ok(files)
    }
}

/// What the contents of a database that nobody has open need.
pub(super) fn closed_files(env: &Env, dir: &Path, options: &Options) -> Result<Vec<LiveFile>> {
    let number = current::read(&*env.fs, dir)?;
    let folded = fold(&*env.fs, dir, number)?;
    let mut here = BTreeMap::new();
    for entry in env.fs.read_dir(dir)?.into_iter().filter(|e| e.is_file) {
        if let Some(named) = parse_file_name(&entry.name) {
            here.insert(named, entry.name);
        }
    }
    let mut out = Vec::new();
    let mut add = |dir: &Path, name: String, is_immutable: bool| -> Result<()> {
        let bytes = env.fs.metadata(&dir.join(&name))?.len;
        out.push(LiveFile::new(dir, name, bytes, is_immutable));
        Ok(())
    };
    for (kind, number) in placed_files(&folded, options, here.keys().copied())? {
        let name = here.get(&(kind, number)).ok_or_else(|| {
            let what = match kind {
                FileKind::Blob => "blob file",
                _ => "table",
            };
            Error::corruption(format!("{what} {number} is missing")).with_file(dir)
        })?;
        add(dir, name.clone(), true)?;
    }
    let wal_dir = match options.db.wal_dir.as_str() {
        "" => dir,
        given => Path::new(given),
    };
    for number in replay::list(env, wal_dir)? {
        if number >= folded.oldest_needed_log() {
            add(wal_dir, file_name::log_name(number), false)?;
        }
    }
    let newest = sweep::newest_options(env, dir, FileNo(0))?;
    if let Some(number) = newest.last().filter(|n| n.0 > 0) {
        add(dir, file_name::options_name(*number), true)?;
    }
    let name = file_name::manifest_name(number);
    out.push(LiveFile::new(dir, name, folded.valid_end, false));
    Ok(out)
}

/// The tables and blob files that the trees of `folded` list. Without a family's order there is no tree: then
/// all the blob files that are there count as listed.
fn placed_files(
    folded: &Folded,
    options: &Options,
    here: impl Iterator<Item = (FileKind, FileNo)>,
) -> Result<Vec<(FileKind, FileNo)>> {
    let mut out = Vec::new();
    let mut is_without_order = false;
    for family in folded.families.values() {
        for (_, file) in family.files().into_values() {
            if file.path_id != 0 {
                let what = format!("table {} lies in another of several db_paths", file.number);
                return Err(Error::not_supported(what));
            }
            out.push((FileKind::Table, file.number));
        }
        match family.order(&options.family.comparator) {
            Some(order) => {
                let version = family.version(&order, 64)?;
                out.extend(version.blob_files().keys().map(|n| (FileKind::Blob, *n)));
            }
            None => is_without_order = true,
        }
    }
    if is_without_order {
        out.extend(here.filter(|(kind, _)| *kind == FileKind::Blob));
        out.sort_unstable();
        out.dedup();
    }
    Ok(out)
}
