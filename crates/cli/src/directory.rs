//! A database's directory, examined without opening the database.
//!
//! Nothing here writes, locks or trusts what it reads. Tables and logs may lie outside of the
//! directory (`db_paths`, `wal_dir`): the directory itself is searched first, then the places that
//! the newest OPTIONS file names, so that a copied directory is not read through a stale path.

use crate::options_file::{RULES, text_of};
use esker::options::{LoadedOptions, load_options_text};
use esker_env::{FileSystem, PosixFs};
use esker_format::FileNo;
use esker_format::file_name::{ARCHIVE_DIR, FileKind, LOST_DIR, parse_file_name};
use esker_status::{Error, Result};
use std::path::{Path, PathBuf};

/// A file of a database.
#[derive(Clone, Debug)]
pub(crate) struct FileAt {
    /// The kind that its name says.
    pub(crate) kind: FileKind,
    /// Its number.
    pub(crate) number: FileNo,
    /// Its name.
    pub(crate) name: String,
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its bytes.
    pub(crate) len: u64,
}

/// A database's directory.
#[derive(Debug)]
pub(crate) struct Directory {
    /// Its path.
    pub(crate) path: PathBuf,
    /// The machine's filesystem.
    pub(crate) fs: PosixFs,
    /// The files with names of the format, by kind and number.
    pub(crate) files: Vec<FileAt>,
    /// Other names.
    pub(crate) foreign: Vec<String>,
    /// The newest OPTIONS file, and what it says.
    pub(crate) options: Option<(PathBuf, Result<LoadedOptions>)>,
}

impl Directory {
    /// Lists `path`.
    pub(crate) fn read(path: &Path) -> Result<Directory> {
        let fs = PosixFs::new();
        let mut dir = Directory {
            path: path.to_owned(),
            fs,
            files: Vec::new(),
            foreign: Vec::new(),
            options: None,
        };
        dir.list(path, true)?;
        let newest = dir.newest(FileKind::Options).map(|f| f.path.clone());
        if let Some(path) = newest {
            let loaded = load_options(&path);
            let elsewhere = loaded.as_ref().map(places).unwrap_or_default();
            for place in elsewhere {
                let place = if place.is_absolute() {
                    place
                } else {
                    dir.path.join(place)
                };
                // A place that is gone shows in the files that are missed.
                if dir.is_elsewhere(&place) {
                    let _ = dir.list(&place, false);
                }
            }
            dir.options = Some((path, loaded));
        }
        dir.files.sort_by_key(|f| (f.kind, f.number));
        Ok(dir)
    }

    fn is_elsewhere(&self, place: &Path) -> bool {
        match (self.fs.canonical(place), self.fs.canonical(&self.path)) {
            (Ok(there), Ok(here)) => there != here,
            _ => false,
        }
    }

    fn list(&mut self, path: &Path, main: bool) -> Result<()> {
        for entry in self.fs.read_dir(path)? {
            let at = path.join(&entry.name);
            match parse_file_name(&entry.name) {
                Some((kind, number)) if entry.is_file => {
                    let known = self.files.iter().any(|f| f.name == entry.name);
                    let placed = matches!(kind, FileKind::Table | FileKind::Wal | FileKind::Blob);
                    if !known && (main || placed) {
                        let len = self.fs.metadata(&at)?.len;
                        let name = entry.name;
                        self.files.push(FileAt {
                            kind,
                            number,
                            name,
                            path: at,
                            len,
                        });
                    }
                }
                _ if !main || entry.name == ARCHIVE_DIR || entry.name == LOST_DIR => {}
                _ => self.foreign.push(entry.name),
            }
        }
        Ok(())
    }

    /// The file of this kind and number.
    pub(crate) fn find(&self, kind: FileKind, number: FileNo) -> Option<&FileAt> {
        self.files
            .iter()
            .find(|f| f.kind == kind && f.number == number)
    }

    /// The files of a kind, by number.
    pub(crate) fn of(&self, kind: FileKind) -> impl Iterator<Item = &FileAt> {
        self.files.iter().filter(move |f| f.kind == kind)
    }

    /// The files outside of the directory itself.
    pub(crate) fn elsewhere(&self) -> impl Iterator<Item = &FileAt> {
        let here = |f: &&FileAt| f.path.parent() != Some(&*self.path);
        self.files.iter().filter(here)
    }

    /// Where the logs are, as `wal_dir` says it: empty for the directory itself. Refuses databases
    /// whose logs lie in several directories.
    pub(crate) fn place_of_logs(&self) -> Result<String> {
        let mut place = None;
        for file in self.elsewhere().filter(|f| f.kind == FileKind::Wal) {
            let parent = file.path.parent();
            if place.is_some_and(|p| Some(p) != parent) {
                let e = Error::not_supported("a database with logs in several directories");
                return Err(e.with_file(&file.path));
            }
            place = parent;
        }
        let mut here = self.of(FileKind::Wal);
        let Some(place) = place else {
            // Where all logs are missing, they are missed where they should be.
            let named = match &self.options {
                Some((_, Ok(loaded))) if here.next().is_none() => loaded.db.wal_dir.clone(),
                _ => String::new(),
            };
            return Ok(named);
        };
        if let Some(file) = here.find(|f| f.path.parent() == Some(&*self.path)) {
            let e = Error::not_supported("a database with logs in two directories");
            return Err(e.with_file(&file.path));
        }
        Ok(place.to_string_lossy().into_owned())
    }

    fn newest(&self, kind: FileKind) -> Option<&FileAt> {
        self.of(kind).max_by_key(|f| f.number)
    }
}

fn places(options: &LoadedOptions) -> Vec<PathBuf> {
    let wal_dir = Some(&options.db.wal_dir).filter(|d| !d.is_empty());
    let own = options.families.iter().flat_map(|(_, o)| &o.cf_paths);
    let tables = options.db.db_paths.iter().chain(own);
    let tables = tables.map(|p| p.path.clone());
    wal_dir
        .map(PathBuf::from)
        .into_iter()
        .chain(tables)
        .collect()
}

/// Reads an OPTIONS file, going on at what cannot be taken over.
pub(crate) fn load_options(path: &Path) -> Result<LoadedOptions> {
    load_options_text(&text_of(path)?, RULES).map_err(|e| e.with_file(path))
}

/// Returns whether `path` is a directory; an error names a path that does not exist.
pub(crate) fn is_dir(path: &Path) -> Result<bool> {
    Ok(PosixFs::new().metadata(path)?.is_dir)
}

/// The files that an argument `FILE|DB` means: the file, or those of `kind` in the directory. One
/// that is not the directory of a database is an error.
pub(crate) fn files_of(path: &Path, kind: FileKind) -> Result<Vec<FileAt>> {
    if is_dir(path)? {
        let dir = Directory::read(path)?;
        if dir.files.is_empty() {
            let e = Error::not_found("no files of a database here").with_file(path);
            return Err(e.with_hint("is this the directory of a database?"));
        }
        return Ok(dir.of(kind).cloned().collect());
    }
    let name = path
        .file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default();
    let number = match parse_file_name(&name) {
        Some((k, number)) if k == kind => number,
        _ => FileNo(0),
    };
    let len = PosixFs::new().metadata(path)?.len;
    Ok(vec![FileAt {
        kind,
        number,
        name,
        path: path.to_owned(),
        len,
    }])
}
