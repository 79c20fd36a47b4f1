//! Opens that are refused, for every reason that is known: an error of the right kind, and the
//! directory is byte for byte what it was, with no LOCK, no LOG and no directory more.
//!
//! `hostile.rs` has damaged files, the simulator's `opens.rs` has disks whose calls fail; here are
//! options and directories that do not fit.

use esker::merge_operator::StringAppend;
use esker::options::WalRecoveryMode;
use esker::{
    Db, DbPath, ErrorKind, FamilyDescriptor, FamilyOptions, KeyOrder, Options, Result, WriteBatch,
    WriteOptions,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Everything below `dir`: files with their bytes, directories with `None`.
fn everything(dir: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut out = BTreeMap::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).expect("reads") {
            let path = entry.expect("reads").path();
            if path.is_dir() {
                out.insert(path.clone(), None);
                open.push(path);
            } else {
                let bytes = fs::read(&path).expect("reads");
                out.insert(path, Some(bytes));
            }
        }
    }
    out
}

fn good() -> Options {
    let mut options = Options::new();
    options.family.merge_operator = Some(Arc::new(StringAppend::new(b",")));
    options
}

fn both(options: &Options) -> Vec<FamilyDescriptor> {
    let named = |name: &str| FamilyDescriptor::new(name, options.family.clone());
    vec![named("default"), named("other")]
}

/// A database with two families, tables, and a log that holds merges for both and a prepared
/// transaction if wanted.
fn make(dir: &Path, prepared: bool) {
    let mut options = good().create_if_missing(true);
    options.db.create_missing_column_families = true;
    options.db.allow_2pc = prepared;
    options.db.avoid_flush_during_shutdown = true;
    let families = both(&options);
    let db = Db::open_families(dir, options, families).expect("opens");
    let other = db.family("other").expect("is there");
    db.put("a", "1").expect("writes");
    db.flush().expect("flushes");
    let mut batch = WriteBatch::new();
    batch.put(b"b", b"2").expect("fits");
    batch.merge_cf(&other, b"c", b"3").expect("fits");
    db.write_opt(&mut batch, &WriteOptions::synced())
        .expect("writes");
    if prepared {
        let mut batch = WriteBatch::new();
        batch.put(b"d", b"4").expect("fits");
        db.prepare_transaction(b"t", &batch, &WriteOptions::synced())
            .expect("prepares");
    }
    db.close().expect("closes");
    drop(db);
}

/// How an open is tried, in a directory that holds the database `db` and room beside it.
struct Case {
    name: &'static str,
    /// Changes the directory first.
    prepare: fn(&Path),
    open: fn(&Path) -> Result<Db>,
    kind: ErrorKind,
    /// A word of the error.
    says: &'static str,
}

fn as_it_is(_: &Path) {}

fn first(dir: &Path, extension: &str) -> PathBuf {
    let mut found: Vec<PathBuf> = fs::read_dir(dir)
        .expect("reads")
        .map(|e| e.expect("reads").path())
        .filter(|p| p.to_string_lossy().contains(extension))
        .collect();
    found.sort();
    found.pop().unwrap_or_else(|| panic!("no {extension}"))
}

fn flip(path: &Path, at_end: bool) {
    let mut bytes = fs::read(path).expect("reads");
    let at = if at_end { bytes.len() - 3 } else { 20 };
    bytes[at] ^= 0x40;
    fs::write(path, bytes).expect("writes");
}

const CASES: &[Case] = &[
    Case {
        name: "no merge operator for what the log holds",
        prepare: as_it_is,
        open: |dir| {
            let mut options = good();
            let mut families = both(&options);
            families[1].options.merge_operator = None;
            options.family.merge_operator = None;
            Db::open_families(dir, options, families)
        },
        kind: ErrorKind::InvalidArgument,
        says: "merge operator",
    },
    Case {
        name: "no merge operator, and the log would be kept",
        prepare: as_it_is,
        open: |dir| {
            let mut options = good();
            options.db.avoid_flush_during_recovery = true;
            let mut families = both(&options);
            families[1].options.merge_operator = None;
            Db::open_families(dir, options, families)
        },
        kind: ErrorKind::InvalidArgument,
        says: "merge operator",
    },
    Case {
        name: "another comparator",
        prepare: as_it_is,
        open: |dir| {
            let options = good();
            let mut families = both(&options);
            families[1].options.comparator =
                KeyOrder::builtin("rocksdb.ReverseBytewiseComparator").expect("is built in");
            Db::open_families(dir, options, families)
        },
        kind: ErrorKind::InvalidArgument,
        says: "comparator",
    },
    Case {
        name: "a comparator with timestamps",
        prepare: as_it_is,
        open: |dir| {
            let options = good();
            let mut families = both(&options);
            families[0].options.comparator =
                KeyOrder::builtin("leveldb.BytewiseComparator.u64ts").expect("is built in");
            Db::open_families(dir, options, families)
        },
        kind: ErrorKind::InvalidArgument,
        says: "comparator",
    },
    Case {
        name: "a family is not named",
        prepare: as_it_is,
        open: |dir| {
            let options = good();
            let families = both(&options).into_iter().take(1).collect();
            Db::open_families(dir, options, families)
        },
        kind: ErrorKind::InvalidArgument,
        says: "not opened: other",
    },
    Case {
        name: "a family is not there",
        prepare: as_it_is,
        open: |dir| {
            let options = good();
            let mut families = both(&options);
            families.push(FamilyDescriptor::new("third", FamilyOptions::default()));
            Db::open_families(dir, options, families)
        },
        kind: ErrorKind::InvalidArgument,
        says: "not found: third",
    },
    Case {
        name: "a family to make has options that do not fit",
        prepare: as_it_is,
        open: |dir| {
            let mut options = good();
            options.db.create_missing_column_families = true;
            let mut families = both(&options);
            families.push(FamilyDescriptor::new("third", FamilyOptions::default()));
            families[2].options.num_levels = 0;
            Db::open_families(dir, options, families)
        },
        kind: ErrorKind::InvalidArgument,
        says: "num_levels",
    },
    Case {
        name: "a family to make has a path that cannot be made",
        prepare: |dir| fs::write(dir.with_file_name("file"), "").expect("writes"),
        open: |dir| {
            let mut options = good();
            options.db.create_missing_column_families = true;
            let mut families = both(&options);
            families.push(FamilyDescriptor::new("third", FamilyOptions::default()));
            let paths = ["fresh/a", "fresh/b", "file/c"].map(|p| dir.with_file_name(p));
            families[2].options.cf_paths = paths.map(|p| DbPath::new(p, 1 << 20)).to_vec();
            Db::open_families(dir, options, families)
        },
        kind: ErrorKind::Io,
        says: "cf_paths",
    },
    Case {
        name: "db_paths cannot be made",
        prepare: |dir| fs::write(dir.with_file_name("file"), "").expect("writes"),
        open: |dir| {
            let mut options = good();
            let paths = [dir.to_path_buf(), dir.with_file_name("file/c")];
            options.db.db_paths = paths.map(|p| DbPath::new(p, 1 << 20)).to_vec();
            let families = both(&options);
            Db::open_families(dir, options, families)
        },
        kind: ErrorKind::Io,
        says: "db_paths",
    },
    Case {
        name: "the LOG cannot be made",
        prepare: |dir| fs::write(dir.with_file_name("file"), "").expect("writes"),
        open: |dir| {
            let mut options = good();
            options.db.db_log_dir = dir.with_file_name("file/logs").display().to_string();
            let families = both(&options);
            Db::open_families(dir, options, families)
        },
        kind: ErrorKind::Io,
        says: "file/logs",
    },
    Case {
        name: "it exists",
        prepare: as_it_is,
        open: |dir| {
            let mut options = good();
            options.db.error_if_exists = true;
            let families = both(&options);
            Db::open_families(dir, options, families)
        },
        kind: ErrorKind::InvalidArgument,
        says: "error_if_exists",
    },
    Case {
        name: "there is none",
        prepare: |dir| fs::remove_dir_all(dir).expect("removes"),
        open: |dir| Db::open(dir, good()),
        kind: ErrorKind::InvalidArgument,
        says: "create_if_missing",
    },
    Case {
        name: "a new one whose paths cannot be made",
        prepare: |dir| {
            fs::remove_dir_all(dir).expect("removes");
            fs::write(dir.with_file_name("file"), "").expect("writes");
        },
        open: |dir| {
            let mut options = good().create_if_missing(true);
            options.db.wal_dir = dir.with_file_name("wal/deep").display().to_string();
            let paths = ["fresh/a", "file/c"].map(|p| dir.with_file_name(p));
            options.db.db_paths = paths.map(|p| DbPath::new(p, 1 << 20)).to_vec();
            Db::open(dir, options)
        },
        kind: ErrorKind::Io,
        says: "db_paths",
    },
    Case {
        name: "a new one whose log directory cannot be made",
        prepare: |dir| {
            fs::remove_dir_all(dir).expect("removes");
            fs::write(dir.with_file_name("file"), "").expect("writes");
        },
        open: |dir| {
            let mut options = good().create_if_missing(true);
            options.db.wal_dir = dir.with_file_name("file/wal").display().to_string();
            Db::open(dir, options)
        },
        kind: ErrorKind::Io,
        says: "file/wal",
    },
    Case {
        name: "options that do not fit",
        prepare: as_it_is,
        open: |dir| {
            let mut options = good();
            options.family.num_levels = 0;
            Db::open(dir, options)
        },
        kind: ErrorKind::InvalidArgument,
        says: "num_levels",
    },
    Case {
        name: "CURRENT is gone",
        prepare: |dir| fs::remove_file(dir.join("CURRENT")).expect("removes"),
        open: |dir| Db::open(dir, good().create_if_missing(true)),
        kind: ErrorKind::Corruption,
        says: "CURRENT",
    },
    Case {
        name: "the MANIFEST is damaged",
        prepare: |dir| flip(&first(dir, "MANIFEST-"), false),
        open: |dir| Db::open(dir, good()),
        kind: ErrorKind::Corruption,
        says: "MANIFEST-",
    },
    Case {
        name: "a table is gone",
        prepare: |dir| fs::remove_file(first(dir, ".sst")).expect("removes"),
        open: |dir| Db::open(dir, good()),
        kind: ErrorKind::Io,
        says: ".sst",
    },
    Case {
        name: "a table is of no known format",
        prepare: |dir| flip(&first(dir, ".sst"), true),
        open: |dir| Db::open(dir, good()),
        kind: ErrorKind::Corruption,
        says: ".sst",
    },
    Case {
        name: "the logs are gone",
        prepare: |dir| fs::remove_file(first(dir, ".log")).expect("removes"),
        open: |dir| Db::open(dir, good()),
        kind: ErrorKind::Corruption,
        says: "log is missing",
    },
    Case {
        name: "the log is damaged and must be whole",
        prepare: |dir| flip(&first(dir, ".log"), false),
        open: |dir| {
            let mut options = good();
            options.db.wal_recovery_mode = WalRecoveryMode::AbsoluteConsistency;
            Db::open(dir, options)
        },
        kind: ErrorKind::Corruption,
        says: ".log",
    },
];

#[track_caller]
fn refused(case: &Case, home: &Path, dir: &Path) {
    (case.prepare)(dir);
    let before = everything(home);
    let name = case.name;
    let error = (case.open)(dir).expect_err(name);
    assert_eq!(error.kind(), case.kind, "{name}: {error}");
    assert!(error.to_string().contains(case.says), "{name}: {error}");
    let after = everything(home);
    let names = |all: &BTreeMap<PathBuf, _>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&after), names(&before), "{name}");
    assert!(after == before, "{name}: bytes have changed");
}

#[test]
fn an_open_that_is_refused_changes_nothing() {
    for case in CASES {
        let home = tempfile::tempdir().expect("a directory");
        let dir = home.path().join("db");
        make(&dir, false);
        refused(case, home.path(), &dir);
        // A directory without a LOCK, as a checkpoint is, gets none.
        let home = tempfile::tempdir().expect("a directory");
        let dir = home.path().join("db");
        make(&dir, false);
        for name in ["LOCK", "LOG"] {
            fs::remove_file(dir.join(name)).expect("removes");
        }
        refused(case, home.path(), &dir);
    }
}

#[test]
fn prepared_transactions_refuse_an_open_without_two_phase_commit() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("db");
    make(&dir, true);
    let case = Case {
        name: "prepared transactions",
        prepare: as_it_is,
        open: |dir| Db::open(dir, good()),
        kind: ErrorKind::NotSupported,
        says: "prepared",
    };
    refused(&case, home.path(), &dir);
}

#[test]
fn another_opener_is_refused_and_takes_nothing_away() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("db");
    let db = Db::open(&dir, good().create_if_missing(true)).expect("opens");
    let case = Case {
        name: "open already",
        prepare: as_it_is,
        open: |dir| Db::open(dir, good().create_if_missing(true)),
        kind: ErrorKind::Io,
        says: "LOCK",
    };
    refused(&case, home.path(), &dir);
    db.put("k", "v").expect("writes");
}

#[test]
fn what_was_refused_opens_when_the_reason_is_gone() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("db");
    make(&dir, false);
    (CASES[0].open)(&dir).expect_err("has no merge operator");
    let options = good();
    let families = both(&options);
    let db = Db::open_families(&dir, options, families).expect("opens");
    let other = db.family("other").expect("is there");
    assert_eq!(db.get("b").expect("reads").as_deref(), Some(&b"2"[..]));
    let merged = db.get_cf(&other, "c").expect("reads");
    assert_eq!(merged.as_deref(), Some(&b"3"[..]));
    // What the LOG has to say of opening is there, though it was started late.
    let log = fs::read_to_string(dir.join("LOG")).expect("reads");
    for line in [
        "DB SUMMARY",
        "recovery_started",
        "flush_started",
        "recovery_finished",
    ] {
        assert!(log.contains(line), "{line} in {log}");
    }
}

type Damage = (&'static str, fn(&Path));

/// Ways to damage the database.
const DAMAGES: &[Damage] = &[
    ("CURRENT is gone", |dir| {
        fs::remove_file(dir.join("CURRENT")).expect("removes");
    }),
    ("CURRENT is damaged", |dir| {
        fs::write(dir.join("CURRENT"), "MANIFEST-x\n").expect("writes");
    }),
    ("the MANIFEST is gone", |dir| {
        fs::remove_file(first(dir, "MANIFEST")).expect("removes");
    }),
    ("the MANIFEST is damaged", |dir| {
        flip(&first(dir, "MANIFEST"), false);
    }),
    ("a table is gone", |dir| {
        fs::remove_file(first(dir, ".sst")).expect("removes");
    }),
    ("a table ends early", |dir| {
        let table = first(dir, ".sst");
        let bytes = fs::read(&table).expect("reads");
        fs::write(table, &bytes[..bytes.len() / 2]).expect("writes");
    }),
    ("a table is of no known format", |dir| {
        flip(&first(dir, ".sst"), true);
    }),
    ("the logs are gone", |dir| {
        fs::remove_file(first(dir, ".log")).expect("removes");
    }),
];

type Mode = (&'static str, fn(&Path, &Path, Options) -> Result<Db>);

/// Each way to open a database that exists, with a directory for a secondary.
const MODES: &[Mode] = &[
    ("writing", |dir, _, options| Db::open(dir, options)),
    ("families", |dir, _, options| {
        let families = both(&options);
        Db::open_families(dir, options, families)
    }),
    ("times to live", |dir, _, options| {
        Db::open_with_ttl(dir, options, 0)
    }),
    ("read-only", |dir, _, options| {
        Db::open_read_only(dir, options)
    }),
    ("read-only with times to live", |dir, _, options| {
        Db::open_read_only_with_ttl(dir, options)
    }),
    ("secondary", |dir, second, options| {
        Db::open_secondary(dir, second, options)
    }),
];

#[test]
fn each_mode_of_opening_refuses_what_writing_refuses_and_changes_nothing() {
    // With few open files tables are not opened when the database is.
    for open_files in [-1, 10] {
        for (damage, apply) in DAMAGES {
            let home = tempfile::tempdir().expect("a directory");
            let second = tempfile::tempdir().expect("a directory");
            let dir = home.path().join("db");
            make(&dir, false);
            apply(&dir);
            if open_files > 0 && damage.ends_with("known format") {
                continue;
            }
            let before = everything(home.path());
            for (mode, open) in MODES {
                let what = format!("{damage}, {mode}, {open_files} files");
                let mut options = good();
                options.db.max_open_files = open_files;
                let e = open(&dir, &second.path().join("second"), options).expect_err(&what);
                let is_told = e.is_corruption() || e.is_not_found() || damage.contains("CURRENT");
                assert!(is_told, "{what}: {e}");
                assert!(everything(home.path()) == before, "{what}: it changed");
            }
        }
    }
}
