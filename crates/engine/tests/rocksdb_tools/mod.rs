//! Helpers of the tests against real RocksDB: its command-line tools, copies of directories, and
//! content.
//!
//! A test asks [`Tools::find`] first and says that it skips when the tools are not installed.
//! Directories are given to RocksDB as copies, because opening one changes it. Content is always
//! compared entry by entry; that something opens says little. Used by several test programs, each
//! of which uses a part.
#![allow(dead_code)]

pub(crate) mod library;
pub(crate) mod settings;
pub(crate) mod workload;

use esker::options::{LoadRules, load_options_text};
use esker::{Db, FamilyDescriptor, Options};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The entries of one family.
pub(crate) type Content = BTreeMap<Vec<u8>, Vec<u8>>;
/// The entries of each family, by its name.
pub(crate) type Contents = BTreeMap<String, Content>;

/// Counts of the work of a test program, for its closing line.
#[derive(Default, Debug)]
pub(crate) struct Tally {
    pub(crate) databases: usize,
    pub(crate) files: usize,
    pub(crate) entries: usize,
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "compat: {} databases, {} files verified, {} entries compared, 0 differences",
            self.databases, self.files, self.entries
        )
    }
}

/// Prints a line that `cargo test` shows also when the test passes.
pub(crate) fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// RocksDB's tools.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tools;

fn starts(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

impl Tools {
    /// The tools, or `None` and a line that says so.
    pub(crate) fn find() -> Option<Tools> {
        let missing: Vec<_> = ["ldb", "sst_dump", "db_bench"]
            .into_iter()
            .filter(|p| !starts(p))
            .collect();
        if missing.is_empty() {
            return Some(Tools);
        }
        say(format_args!(
            "compat: skipped, {} not installed (Debian: apt-get install rocksdb-tools)",
            missing.join(", ")
        ));
        None
    }

    /// Runs `program`; `None` when it failed, with what it said.
    pub(crate) fn try_run(self, program: &str, args: &[&str]) -> Result<Output, String> {
        let out = Command::new(program)
            .args(args)
            .output()
            .unwrap_or_else(|e| panic!("{program} does not start: {e}"));
        let failed = !out.status.success()
            || out.stdout.starts_with(b"Failed")
            || out.stderr.windows(7).any(|w| w == b"Failed:");
        if !failed {
            return Ok(out);
        }
        Err(format!(
            "{program} {} failed ({})\n{}\n{}",
            args.join(" "),
            out.status,
            tail(&out.stdout),
            tail(&out.stderr)
        ))
    }

    fn run(self, program: &str, args: &[&str]) -> Output {
        self.try_run(program, args)
            .unwrap_or_else(|e| panic!("{e}"))
    }

    /// Runs `ldb` on `dir`. It loads the newest OPTIONS file there and refuses names that it does
    /// not know.
    pub(crate) fn ldb(self, dir: &Path, args: &[&str]) -> Output {
        let db = format!("--db={}", dir.display());
        let mut all = vec![db.as_str()];
        all.extend(args);
        self.run("ldb", &all)
    }

    /// As [`Tools::ldb`], on one family.
    pub(crate) fn ldb_family(self, dir: &Path, family: &str, args: &[&str]) -> Output {
        let family = format!("--column_family={family}");
        let mut all = vec![family.as_str()];
        all.extend(args);
        self.ldb(dir, &all)
    }

    /// The names of the families, as `ldb` lists them.
    pub(crate) fn families(self, dir: &Path) -> Vec<String> {
        let out = self.ldb(dir, &["list_column_families"]);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let inner = text.split_once('{').and_then(|(_, t)| t.rsplit_once('}'));
        let Some((inner, _)) = inner else {
            return text.lines().map(str::to_owned).collect();
        };
        inner.split(", ").map(|n| n.trim().to_owned()).collect()
    }

    /// Every entry of one family, as `ldb scan` reads it.
    pub(crate) fn scan(self, dir: &Path, family: &str) -> Content {
        let out = self.ldb_family(dir, family, &["scan", "--hex"]);
        let text = String::from_utf8_lossy(&out.stdout);
        let mut content = Content::new();
        for line in text.lines() {
            let Some((key, value)) = line.split_once(" : ") else {
                panic!("a line of ldb scan that is no entry: {line:?}");
            };
            let old = content.insert(unhex(key), unhex(value));
            assert!(old.is_none(), "ldb scan shows a key twice: {key}");
        }
        content
    }

    /// Compares every family as RocksDB reads it with what it should hold.
    pub(crate) fn compare(self, dir: &Path, expected: &Contents, what: &str, tally: &mut Tally) {
        let mut names = self.families(dir);
        names.sort();
        let wanted: Vec<_> = expected.keys().cloned().collect();
        assert_eq!(names, wanted, "{what}: the families that RocksDB lists");
        for (family, content) in expected {
            let theirs = self.scan(dir, family);
            same(&format!("{what}, RocksDB reads {family}"), &theirs, content);
            tally.entries += content.len();
        }
    }

    /// Has every table file checked: all checksums, then all entries in order.
    pub(crate) fn verify_tables(self, dir: &Path, tally: &mut Tally) {
        let tables = with_suffix(dir, ".sst");
        if tables.is_empty() {
            return;
        }
        for command in ["verify", "check"] {
            let file = format!("--file={}", dir.display());
            let command = format!("--command={command}");
            let out = self.run("sst_dump", &[&file, &command]);
            let text = String::from_utf8_lossy(&out.stdout).into_owned()
                + &String::from_utf8_lossy(&out.stderr);
            let seen = text.matches("Process ").count();
            assert_eq!(seen, tables.len(), "{command}: {text}");
            for bad in ["Corrupt", "corrupt", "not a valid", "not ok", "rror"] {
                assert!(!text.contains(bad), "sst_dump {command}: {text}");
            }
            if command.ends_with("verify") {
                let fine = text.matches("The file is ok").count();
                assert_eq!(fine, tables.len(), "{command}: {text}");
            }
        }
        tally.files += tables.len();
    }

    /// Dumps the MANIFEST that CURRENT names, by RocksDB's tool. A process killed after it began a
    /// new one leaves two, and `ldb` does not choose.
    fn dump_manifest(self, dir: &Path, more: &[&str]) -> Output {
        let current = std::fs::read_to_string(dir.join("CURRENT")).expect("a CURRENT file");
        let path = format!("--path={}", dir.join(current.trim_end()).display());
        let mut all = vec!["manifest_dump", path.as_str()];
        all.extend(more);
        self.ldb(dir, &all)
    }

    /// The names of the table files that the MANIFEST of `dir` holds, as RocksDB reads it.
    fn live_tables(self, dir: &Path) -> Vec<PathBuf> {
        let out = self.dump_manifest(dir, &[]);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let number =
            |line: &str| -> Option<u64> { line.strip_prefix(' ')?.split_once(':')?.0.parse().ok() };
        let mut live: Vec<_> = text
            .lines()
            .filter_map(number)
            .map(|n| dir.join(format!("{n:06}.sst")))
            .collect();
        live.sort();
        live
    }

    /// Everything that RocksDB can say about a directory at rest, on a copy of it.
    pub(crate) fn examine(self, dir: &Path, expected: &Contents, what: &str, tally: &mut Tally) {
        self.look_through(dir, true, expected, what, tally);
    }

    /// As [`Tools::examine`], on what a killed process left: there may be tables that never became
    /// part of the database, and nothing is expected of them.
    pub(crate) fn examine_wreck(
        self,
        dir: &Path,
        expected: &Contents,
        what: &str,
        tally: &mut Tally,
    ) {
        self.look_through(dir, false, expected, what, tally);
    }

    fn look_through(
        self,
        dir: &Path,
        tidy: bool,
        expected: &Contents,
        what: &str,
        tally: &mut Tally,
    ) {
        let copy = Copy::of(dir);
        let live = self.live_tables(&copy.path);
        if tidy {
            assert_eq!(live, with_suffix(&copy.path, ".sst"), "{what}: tables");
            assert_eq!(manifests(&copy.path), 1, "{what}: MANIFESTs");
        }
        for path in with_suffix(&copy.path, ".sst") {
            if !live.contains(&path) {
                std::fs::remove_file(path).expect("a removed file");
            }
        }
        self.verify_tables(&copy.path, tally);
        self.dump_manifest(&copy.path, &["--verbose"]);
        for log in with_suffix(&copy.path, ".log") {
            let arg = format!("--walfile={}", log.display());
            let out = self.ldb(&copy.path, &["dump_wal", &arg, "--header", "--print_value"]);
            let text = String::from_utf8_lossy(&out.stdout);
            assert!(!text.contains("Corruption"), "{what}: dump_wal: {text}");
        }
        self.compare(&copy.path, expected, what, tally);
        let consistent = self.ldb(&copy.path, &["checkconsistency"]);
        let said = String::from_utf8_lossy(&consistent.stdout);
        assert!(said.lines().any(|l| l == "OK"), "{what}: {said}");
        tally.databases += 1;
    }
}

/// Tells whether RocksDB before 8.0 misreads a log: a compressed record has a fragment that fills a
/// whole block: <https://github.com/facebook/rocksdb/pull/11198>.
pub(crate) fn is_misread(log: &Path) -> bool {
    const BLOCK: usize = 32 << 10;
    const SET_COMPRESSION: u8 = 9;
    const MIDDLES: [u8; 2] = [3, 7];
    let bytes = std::fs::read(log).expect("a log");
    let kind = |at: usize| bytes.get(at + 6).copied();
    let mut blocks = (0..bytes.len()).step_by(BLOCK);
    kind(0) == Some(SET_COMPRESSION)
        && blocks.any(|at| kind(at).is_some_and(|kind| MIDDLES.contains(&kind)))
}

fn tail(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(4000)..]).into_owned()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text
        .strip_prefix("0x")
        .unwrap_or_else(|| panic!("{text:?} is not hexadecimal"));
    let value = |c: u8| (c as char).to_digit(16).expect("a hexadecimal digit") as u8;
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| value(pair[0]) << 4 | value(pair[1]))
        .collect()
}

/// `bytes` as `ldb --hex` takes them.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|b| format!("{b:02X}")).collect();
    format!("0x{digits}")
}

/// The files of `dir` whose names end in `suffix`, in order.
pub(crate) fn with_suffix(dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut out: Vec<_> = std::fs::read_dir(dir)
        .expect("a readable directory")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.to_string_lossy().ends_with(suffix))
        .collect();
    out.sort();
    out
}

fn manifests(dir: &Path) -> usize {
    let files = with_suffix(dir, "");
    let names = files.iter().filter_map(|f| f.file_name());
    names
        .filter(|n| n.to_string_lossy().starts_with("MANIFEST-"))
        .count()
}

/// Panics with the first difference between two contents.
pub(crate) fn same(what: &str, found: &Content, expected: &Content) {
    if found == expected {
        return;
    }
    let show = |c: &Content, k: &[u8]| match c.get(k) {
        None => "absent".to_owned(),
        Some(v) => format!("{} bytes {}", v.len(), v[..v.len().min(40)].escape_ascii()),
    };
    let keys: std::collections::BTreeSet<_> = found.keys().chain(expected.keys()).collect();
    let differing: Vec<_> = keys
        .into_iter()
        .filter(|k| found.get(*k) != expected.get(*k))
        .collect();
    let first = differing[0];
    panic!(
        "{what}: {} of {} entries differ; first {}: found {}, expected {}",
        differing.len(),
        expected.len(),
        first.escape_ascii(),
        show(found, first),
        show(expected, first)
    );
}

/// A copy of a directory that goes away with it.
#[derive(Debug)]
pub(crate) struct Copy {
    _home: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

impl Copy {
    pub(crate) fn of(dir: &Path) -> Copy {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("db");
        std::fs::create_dir(&path).expect("a new directory");
        for entry in std::fs::read_dir(dir).expect("a readable directory") {
            let from = entry.expect("an entry").path();
            let to = path.join(from.file_name().expect("a name"));
            std::fs::copy(&from, &to).expect("a copied file");
        }
        Copy { _home: home, path }
    }
}

/// The options and families that the newest OPTIONS file of `dir` describes.
pub(crate) fn latest_options(dir: &Path) -> (Options, Vec<FamilyDescriptor>) {
    let number = |p: &PathBuf| -> u64 {
        let name = p
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let digits = name.strip_prefix("OPTIONS-").unwrap_or("");
        digits.parse().unwrap_or(0)
    };
    let newest = std::fs::read_dir(dir)
        .expect("a readable directory")
        .map(|e| e.expect("an entry").path())
        .max_by_key(number)
        .expect("a file");
    let text = std::fs::read_to_string(&newest).expect("a readable OPTIONS file");
    let loaded = load_options_text(&text, LoadRules::default())
        .unwrap_or_else(|e| panic!("{}: {e}", newest.display()));
    for remark in &loaded.remarks {
        println!("  {remark:?}");
    }
    let mut options = Options::new();
    options.db = loaded.db;
    options.family = loaded.families[0].1.clone();
    let families = loaded.families.into_iter();
    let families = families.map(|(n, o)| FamilyDescriptor::new(n, o)).collect();
    (options, families)
}

/// Every entry of every family, by an iterator; also checks that going backwards gives the same.
pub(crate) fn read_all(db: &Db) -> Contents {
    let mut all = Contents::new();
    for family in db.families() {
        let mut reading = esker::ReadOptions::default();
        reading.total_order_seek = true;
        let mut it = db.iter_opt(&family, reading, None);
        let mut content = Content::new();
        it.seek_to_first();
        while let Some((key, value)) = it.entry() {
            let last = content.last_key_value().map(|(k, _)| k.as_slice());
            assert!(last < Some(key), "the iterator goes forward");
            content.insert(key.to_vec(), value.to_vec());
            it.next();
        }
        it.status().expect("a whole scan");
        let mut back = content.len();
        it.seek_to_last();
        while let Some((key, value)) = it.entry() {
            assert_eq!(content.get(key).map(Vec::as_slice), Some(value));
            back -= 1;
            it.prev();
        }
        it.status().expect("a whole scan backwards");
        assert_eq!(back, 0, "as many entries backwards");
        all.insert(family.name().to_owned(), content);
    }
    all
}

/// Compares what Esker reads with what it should read: by iterators and key by key.
pub(crate) fn compare_ours(db: &Db, expected: &Contents, what: &str) {
    let ours = read_all(db);
    let names: Vec<_> = ours.keys().collect();
    assert_eq!(names, expected.keys().collect::<Vec<_>>(), "{what}");
    for (family, content) in expected {
        same(
            &format!("{what}, Esker scans {family}"),
            &ours[family],
            content,
        );
        let handle = db.family(family).expect("a family that was listed");
        for (key, value) in content.iter().step_by(7) {
            let found = db.get_cf(&handle, key).expect("a readable key");
            assert_eq!(
                found.as_ref(),
                Some(value),
                "{what}: {}",
                key.escape_ascii()
            );
        }
    }
}

/// The seeds to run: `default` of them, or the range that `ESKER_COMPAT_SEEDS` gives.
pub(crate) fn seeds(default: u64) -> std::ops::Range<u64> {
    let text = std::env::var("ESKER_COMPAT_SEEDS").unwrap_or_default();
    let seeds = match text.split_once("..") {
        Some((from, to)) => {
            let number = |t: &str| t.parse().expect("ESKER_COMPAT_SEEDS=FROM..TO");
            number(from)..number(to)
        }
        None => 1..default + 1,
    };
    say(format_args!("compat: seeds {seeds:?}"));
    seeds
}
