//! Where the table files of a family are.
//!
//! A family has one directory or several in an order; a table's metadata says by number in which it
//! lies. Blob files lie in the first. Immutable: paths change only when a database is opened.

use crate::options::{DbOptions, DbPath, FamilyOptions};
use esker_env::{Env, make_dir};
use esker_format::{FileNo, file_name};
use esker_lsm::file::FileMeta;
use esker_status::{Error, Result};
use esker_sync::Arc;
use std::path::{Path, PathBuf};

/// The directories of a family's tables.
#[derive(Debug)]
pub(crate) struct TablePaths {
    first: PathBuf,
    /// The directories after the first; mostly none.
    others: Vec<PathBuf>,
}

impl TablePaths {
    /// The paths given, or the database's directory.
    pub(crate) fn new(dir: &Path, given: &[DbPath]) -> Arc<Self> {
        let mut all = given.iter().map(|p| p.path.clone());
        Arc::new(TablePaths {
            first: all.next().unwrap_or_else(|| dir.to_path_buf()),
            others: all.collect(),
        })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        1 + self.others.len()
    }

    /// All of them, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.first)
            .chain(&self.others)
            .map(PathBuf::as_path)
    }

    /// The first, for flushes, files from outside and blob files.
    pub(crate) fn first(&self) -> &Path {
        &self.first
    }

    /// The path with this number. One beyond the last stands for the last, as where the options
    /// have fewer paths than those that a table was written with.
    pub(crate) fn dir(&self, path_id: u32) -> &Path {
        match usize::try_from(path_id).unwrap_or(usize::MAX) {
            0 => &self.first,
            n => self
                .others
                .get(n - 1)
                .or(self.others.last())
                .unwrap_or(&self.first),
        }
    }

    /// Where the table with this number is in a path.
    pub(crate) fn table(&self, number: FileNo, path_id: u32) -> PathBuf {
        self.dir(path_id).join(file_name::table_name(number))
    }

    /// Where a table is.
    pub(crate) fn of(&self, file: &FileMeta) -> PathBuf {
        self.table(file.number, file.path_id)
    }

    /// Where the blob file with this number is.
    pub(crate) fn blob(&self, number: FileNo) -> PathBuf {
        self.first.join(file_name::blob_name(number))
    }

    /// `e`, met when the table was looked for, with what may be the reason.
    #[cold]
    pub(crate) fn explain(&self, file: &FileMeta, e: Error) -> Error {
        if !e.is_not_found() || (file.path_id == 0 && self.others.is_empty()) {
            return e;
        }
        let (wanted, count) = (file.path_id, self.count());
        e.with_hint(format!(
            "the MANIFEST puts the table into path {wanted}, counted from 0, and db_paths or cf_paths name {count}: open \
             the database with the paths that it was written with, in their order"
        ))
    }
}

/// The directories of several families that are not `dir`, each once, whatever they are called.
pub(crate) fn beside<'a>(
    env: &Env,
    dir: &Path,
    families: impl IntoIterator<Item = &'a TablePaths>,
) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = Vec::new();
    let mut seen: Vec<PathBuf> = vec![dir.to_path_buf()];
    for path in families.into_iter().flat_map(TablePaths::all) {
        if seen.iter().any(|p| p == path) {
            continue;
        }
        let is_same = |other: &PathBuf| match (env.fs.canonical(path), env.fs.canonical(other)) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        };
        if !seen.iter().any(is_same) {
            out.push(path.to_path_buf());
        }
        seen.push(path.to_path_buf());
    }
    out
}

/// The directories outside of that of the database at `dir` in which its options put tables: those
/// of `families`, and those of families without paths of their own.
pub(crate) fn of_options<'a>(
    env: &Env,
    dir: &Path,
    db: &DbOptions,
    families: impl IntoIterator<Item = &'a FamilyOptions>,
) -> Vec<PathBuf> {
    let own = families.into_iter().map(|f| &f.cf_paths);
    let given = own.filter(|p| !p.is_empty()).chain([&db.db_paths]);
    let given: Vec<_> = given.map(|p| TablePaths::new(dir, p)).collect();
    beside(env, dir, given.iter().map(|p| &**p))
}

/// `e`, which tells why a directory of tables could not be made, with what to do.
#[cold]
pub(crate) fn explain_missing(e: Error) -> Error {
    e.with_hint(
        "it is one of db_paths or cf_paths: make it, allow it to be made, or take it out of the options",
    )
}

/// Makes the directories that are not there.
pub(crate) fn make(env: &Env, paths: &[PathBuf]) -> Result<()> {
    for path in paths {
        // Tables must not be lost with the name of their directory.
        make_dir(&*env.fs, path).map_err(explain_missing)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_the_last_path_are_the_last() {
        let one = TablePaths::new(Path::new("/db"), &[]);
        assert_eq!(one.table(FileNo(7), 3), Path::new("/db/000007.sst"));
        let given = [DbPath::new("/a", 1), DbPath::new("/b", 1)];
        let two = TablePaths::new(Path::new("/db"), &given);
        let dirs: Vec<_> = [0, 1, 2, 9].into_iter().map(|n| two.dir(n)).collect();
        assert_eq!(dirs, ["/a", "/b", "/b", "/b"].map(Path::new));
        assert_eq!(two.blob(FileNo(9)), Path::new("/a/000009.blob"));
        let found = beside(&Env::in_memory(), Path::new("/a"), [&*one, &*two]);
        assert_eq!(found, ["/db", "/b"].map(PathBuf::from));
    }
}
