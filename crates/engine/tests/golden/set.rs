//! Where the golden databases are, and what is expected of each.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One line of `expected.tsv`.
#[derive(Clone)]
pub(crate) struct Expected {
    pub(crate) version: String,
    pub(crate) database: String,
    pub(crate) entries: usize,
    pub(crate) md5: String,
}

/// The databases of all versions.
pub(crate) struct GoldenSet {
    root: PathBuf,
    /// Where archives were unpacked; removed when dropped.
    unpacked: tempfile::TempDir,
}

impl GoldenSet {
    /// The set that `ESKER_GOLDEN` names; without it, says so and returns nothing.
    pub(crate) fn find() -> Option<GoldenSet> {
        let Some(root) = std::env::var_os("ESKER_GOLDEN").filter(|r| !r.is_empty()) else {
            println!("SKIPPED: ESKER_GOLDEN is not set");
            return None;
        };
        Some(GoldenSet {
            root: PathBuf::from(root),
            unpacked: tempfile::tempdir().expect("a temporary directory"),
        })
    }

    /// Reads `expected.tsv`.
    pub(crate) fn expected(&self) -> Vec<Expected> {
        let path = self.root.join("expected.tsv");
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        text.lines()
            .map(|line| {
                let fields: Vec<_> = line.split('\t').collect();
                let [version, database, entries, md5] = fields[..] else {
                    panic!("{}: not four fields: {line:?}", path.display());
                };
                Expected {
                    version: version.to_owned(),
                    database: database.to_owned(),
                    entries: entries.parse().expect("a number of entries"),
                    md5: md5.to_owned(),
                }
            })
            .collect()
    }

    /// The directory of one database, unpacked first where only the archive is there.
    pub(crate) fn database(&self, version: &str, name: &str) -> PathBuf {
        let given = self.root.join(version);
        if given.is_dir() {
            return given.join(name);
        }
        let unpacked = self.unpacked.path().join(version);
        if !unpacked.is_dir() {
            self.unpack(version);
        }
        unpacked.join(name)
    }

    fn unpack(&self, version: &str) {
        let archive = self.root.join(format!("rocksdb-{version}.tar.xz"));
        let status = Command::new("tar")
            .arg("-xJf")
            .arg(&archive)
            .arg("-C")
            .arg(self.unpacked.path())
            .status()
            .expect("the tar command runs");
        assert!(status.success(), "cannot unpack {}", archive.display());
    }
}

/// Names and bytes of the files in `dir`, in order of name.
pub(crate) fn contents(dir: &Path) -> Vec<(OsString, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .expect("a directory of the set")
        .map(|e| e.expect("an entry of it"))
        .filter(|e| e.path().is_file())
        .map(|e| {
            (
                e.file_name(),
                std::fs::read(e.path()).expect("a file of it"),
            )
        })
        .collect();
    files.sort();
    files
}

/// The names of the tables in `dir`.
pub(crate) fn tables(dir: &Path) -> Vec<OsString> {
    contents(dir)
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| Path::new(name).extension() == Some("sst".as_ref()))
        .collect()
}

/// A copy of `dir` to write to.
pub(crate) fn copy_of(dir: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a temporary directory");
    for (name, bytes) in contents(dir) {
        std::fs::write(copy.path().join(name), bytes).expect("a file of the copy");
    }
    copy
}
