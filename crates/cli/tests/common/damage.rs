//! Databases as users have them after something went wrong: made here, damaged, looked at before
//! and after, and used by somebody who may not do everything.

use super::Ran;
use esker::{Db, FamilyOptions, FlushOptions, Options};
use esker_env::{FileSystem, PosixFs};
use esker_files::table::{BlockKind, TableReader, TableReaderOptions};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The user and group that have no rights of their own.
const NOBODY: u32 = 65534;

/// Entries of each of the tables that [`make`] makes.
pub(crate) const ENTRIES: u32 = 2_000;

/// The key of entry `n`.
pub(crate) fn key(n: u32) -> String {
    format!("key{n:06}")
}

/// The options of [`make`]: small blocks, filters, and nothing compacted behind the test's back.
pub(crate) fn options() -> Options {
    Options::new()
        .create_if_missing(true)
        .set_all(
            "disable_auto_compactions=true;compression=kNoCompression;\
             block_based_table_factory={block_size=1024;filter_policy=bloomfilter:10:false}",
        )
        .expect("these options exist")
}

/// A database of three tables with keys that do not overlap, one table of family `other`, and a log
/// with one entry.
pub(crate) fn make(dir: &Path) {
    make_with(dir, options());
}

/// Makes the database of [`make`] with other options.
pub(crate) fn make_with(dir: &Path, options: Options) {
    let db = Db::open(dir, options).expect("a new database");
    for table in 0..3 {
        for n in table * ENTRIES..(table + 1) * ENTRIES {
            db.put(key(n), format!("value{n}")).expect("written");
        }
        db.flush().expect("flushed");
    }
    let other = db.create_family("other", FamilyOptions::default());
    let other = other.expect("a family");
    db.put_cf(&other, "a", "1").expect("written");
    db.flush_cf(&other, &FlushOptions::default())
        .expect("flushed");
    db.put("last", "in the log").expect("written");
    drop(other);
    db.close().expect("closed");
}

/// How many keys the default family of the database has, read through the library.
pub(crate) fn count(dir: &Path) -> usize {
    let db = Db::open_read_only(dir, Options::new()).expect("it opens");
    let mut it = db.iter();
    let mut n = 0;
    it.seek_to_first();
    while it.entry().is_some() {
        n += 1;
        it.next();
    }
    it.status().expect("it can be read");
    n
}

/// The files below `dir` whose names have `part` in them, in order.
pub(crate) fn files(dir: &Path, part: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("a directory");
    let paths = entries.map(|e| e.expect("an entry").path());
    let mut all: Vec<_> = paths
        .filter(|p| {
            p.is_file()
                && p.file_name()
                    .is_some_and(|n| n.to_string_lossy().contains(part))
        })
        .collect();
    all.sort();
    all
}

/// Length and checksum of every file below `dir`, by its path. As somebody else than root this
/// needs files that may be read.
pub(crate) fn checksums(dir: &Path) -> BTreeMap<PathBuf, (usize, u64)> {
    let mut out = BTreeMap::new();
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            out.extend(checksums(&path));
            continue;
        }
        let bytes = std::fs::read(&path).expect("a file");
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        out.insert(path, (bytes.len(), hasher.finish()));
    }
    out
}

/// Changes one byte of a file.
pub(crate) fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).expect("a file");
    bytes[at] ^= 0x10;
    std::fs::write(path, bytes).expect("written");
}

/// Where the blocks of a table that `wanted` wants are: offset and size.
pub(crate) fn blocks(table: &Path, wanted: impl Fn(&BlockKind) -> bool) -> Vec<(usize, usize)> {
    let file = PosixFs::new().open_read(table, Default::default());
    let file = file.expect("a table");
    let len = file.len();
    let reader = TableReader::open(file, len, TableReaderOptions::default()).expect("it opens");
    let all = reader.block_handles().expect("an index").into_iter();
    all.filter(|(kind, _)| wanted(kind))
        .map(|(_, h)| (h.offset as usize, h.size as usize))
        .collect()
}

/// Sets the permissions of a file.
pub(crate) fn mode(path: &Path, mode: u32) {
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, permissions).expect("permissions are set");
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("Uid:"));
    line.is_some_and(|l| l.split_whitespace().nth(2) == Some("0"))
}

/// Somebody for whom permissions count: the user of the test, or nobody when that is root.
pub(crate) struct Somebody {
    /// A copy of the command where everybody may run it; `None` when the test's own will do.
    command: Option<tempfile::TempDir>,
}

impl Somebody {
    /// `None`, and a word, when the test runs as root and cannot become somebody else.
    pub(crate) fn new() -> Option<Somebody> {
        if !is_root() {
            return Some(Somebody { command: None });
        }
        let home = tempfile::tempdir().expect("a directory");
        mode(home.path(), 0o755);
        let to = home.path().join("esker");
        std::fs::copy(env!("CARGO_BIN_EXE_esker"), &to).expect("a copy");
        mode(&to, 0o755);
        let me = Somebody {
            command: Some(home),
        };
        match me.command_line().arg("--version").output() {
            Ok(ran) if ran.status.success() => Some(me),
            ran => {
                println!("skipped: root cannot become another user here: {ran:?}");
                None
            }
        }
    }

    /// Gives everything below `dir`, and the way to it, to this user.
    pub(crate) fn give(&self, dir: &Path) {
        if self.command.is_none() {
            return;
        }
        if let Some(parent) = dir.parent() {
            mode(parent, 0o755);
        }
        for entry in std::fs::read_dir(dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                self.give(&path)
            } else {
                chown(&path, Some(NOBODY), Some(NOBODY)).expect("given away")
            }
        }
        chown(dir, Some(NOBODY), Some(NOBODY)).expect("given away");
    }

    fn command_line(&self) -> Command {
        match &self.command {
            None => Command::new(env!("CARGO_BIN_EXE_esker")),
            Some(home) => {
                let mut command = Command::new("setpriv");
                command
                    .args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")])
                    .arg("--clear-groups")
                    .arg(home.path().join("esker"));
                command
            }
        }
    }

    /// Runs `esker` as this user.
    pub(crate) fn esker<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Ran {
        let output = self.command_line().args(args).output();
        Ran::of(output.expect("the command runs"))
    }
}
