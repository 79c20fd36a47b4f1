//! Damaged and hostile directories: each gives a clear error, soon, in little memory, and stays as
//! it was.
//!
//! Good databases are made, copied, and damaged in one way each: truncated and flipped files,
//! missing ones, MANIFESTs and logs that are whole but say what cannot be, indexes that lead in
//! circles. Each copy is opened by a process of its own (this test binary, started again), for
//! reading only and for writing. The error must be of the right kind and name the file, within 5 s
//! and 256 MB, and afterwards the directory must be byte for byte what it was: no LOCK, no LOG,
//! nothing.

#[path = "../common/mod.rs"]
mod common;
mod damage;
mod logs;
mod manifests;
mod run;
mod tables;

use common::Rng;
use damage::{change, cut, flip, table};
use esker::merge_operator::StringAppend;
use esker::options::OptionSet;
use esker::{Db, FamilyDescriptor, FamilyOptions, Options};
use logs::{caller_cases, log_cases};
use manifests::{current_cases, manifest_bytes_cases, manifest_edit_cases};
use run::{observe, open_and_read, run_cases};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tables::table_cases;

const TARGET: &str = "ESKER_HOSTILE_TARGET";
const TIME_MAX: Duration = Duration::from_secs(5);
const MEMORY_MAX_KB: u64 = 256 << 10;

/// How the damaged directory is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// Every family, with the options that wrote it; logs must be whole.
    Right,
    /// The default family under another order.
    WrongComparator,
    /// A family that does not exist.
    UnknownFamily,
    /// One family is not named: an error for writers only.
    FamilyNotNamed,
    /// As `Right`, and a new database would be made.
    CreateIfMissing,
    /// `error_if_exists`: an error for writers only.
    ErrorIfExists,
    /// As `Right`, with a limit on open files: tables are not opened beforehand.
    FewFiles,
    /// Whatever families there are, with plain options.
    Plain,
}

const HOWS: [How; 8] = [
    How::Right,
    How::WrongComparator,
    How::UnknownFamily,
    How::FamilyNotNamed,
    How::CreateIfMissing,
    How::ErrorIfExists,
    How::FewFiles,
    How::Plain,
];

/// When the damage must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    /// Neither mode opens.
    AtOpen,
    /// Opening for writing fails; a reader is not concerned.
    ForWriters,
    /// Reading everything fails, at open or later.
    AtRead,
}

struct Case {
    name: &'static str,
    /// Text that the error must contain: a part of a file's name, or a word.
    names: &'static str,
    kinds: &'static [&'static str],
    how: How,
    shows: Shows,
    damage: Box<dyn Fn(&Path)>,
}

const CORRUPTION: &[&str] = &["Corruption"];
const ABSENT: &[&str] = &["Corruption", "Io", "NotFound", "InvalidArgument"];
const REFUSED: &[&str] = &["InvalidArgument"];
const UNSUPPORTED: &[&str] = &["NotSupported", "Corruption"];

fn family_options() -> FamilyOptions {
    let mut o = FamilyOptions::default();
    o.write_buffer_size = 1 << 20;
    o.merge_operator = Some(Arc::new(StringAppend::new(b",")));
    for (name, value) in [
        ("checksum", "kCRC32c"),
        ("format_version", "5"),
        ("index_type", "kTwoLevelIndexSearch"),
        ("metadata_block_size", "256"),
        ("block_size", "512"),
        ("filter_policy", "bloomfilter:10:false"),
    ] {
        o.table.set(name, value).expect("an option of ours");
    }
    o.set("compression", "kNoCompression")
        .expect("an option of ours");
    o
}

fn options() -> Options {
    let mut options = Options::new()
        .set("wal_recovery_mode", "kAbsoluteConsistency")
        .expect("an option of ours");
    options.family = family_options();
    options
}

fn families(names: &[&str]) -> Vec<FamilyDescriptor> {
    names
        .iter()
        .map(|n| FamilyDescriptor::new(*n, family_options()))
        .collect()
}

/// A good database: two families, several tables, a log with records.
fn make_good(dir: &Path) {
    let options = options()
        .create_if_missing(true)
        .create_missing_column_families(true);
    let db =
        Db::open_families(dir, options, families(&["default", "other"])).expect("a new database");
    let other = db.family("other").expect("made");
    let mut rng = Rng::new(7);
    for round in 0..3u64 {
        for n in 0..400u64 {
            let value = format!("value {round} {:x} {:x}", rng.next(), rng.next());
            db.put(format!("key{n:05}"), &value).expect("a write");
            db.put_cf(&other, format!("other{n:05}"), &value)
                .expect("a write");
        }
        db.delete_range_cf(&other, "other00100", "other00110")
            .expect("a write");
        db.flush().expect("a flush");
        if round == 1 {
            db.compact_range(None, None).expect("a compaction");
        }
    }
    for n in 0..50u64 {
        db.put(format!("logged{n:03}"), vec![b'x'; 300])
            .expect("a write");
    }
    db.close().expect("closed");
}

fn case(
    name: &'static str,
    names: &'static str,
    kinds: &'static [&'static str],
    shows: Shows,
    damage: Box<dyn Fn(&Path)>,
) -> Case {
    Case {
        name,
        names,
        kinds,
        how: How::Right,
        shows,
        damage,
    }
}

fn opened(mut case: Case, how: How) -> Case {
    case.how = how;
    case
}

fn whole(f: impl Fn(&Path) + 'static) -> Box<dyn Fn(&Path)> {
    Box::new(f)
}

/// The child: opens one directory in one mode, and says what came of it.
#[test]
#[ignore = "the other tests of this file run it as a process of its own: cargo test -p esker-engine --test hostile"]
fn child() {
    let target = std::env::var(TARGET).expect("the directory and how to open it");
    let mut parts = target.splitn(3, ':');
    let mut next = || parts.next().expect("three parts");
    let how = HOWS[next().parse::<usize>().expect("a number")];
    let read_only = next() == "ro";
    let mut at_open = true;
    let done = open_and_read(Path::new(next()), how, read_only, &mut at_open);
    match done {
        Ok(seen) => println!("\nRESULT ok {seen}"),
        Err(e) => println!(
            "\nRESULT {} {:?} {}",
            if at_open { "open" } else { "read" },
            e.kind(),
            e.to_string().replace('\n', " ")
        ),
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    println!(
        "PEAK {}",
        peak.map_or("0", |p| p.trim().trim_end_matches(" kB"))
    );
}

#[test]
fn the_good_database_is_good() {
    let scratch = tempfile::tempdir().expect("a directory");
    let good = scratch.path().join("good");
    make_good(&good);
    for (how, read_only) in [
        (How::Right, true),
        (How::FewFiles, true),
        (How::Right, false),
    ] {
        let seen = observe(&good, how, read_only).expect("within the limits");
        assert_eq!(
            (seen.when.as_str(), seen.kind.as_str()),
            ("ok", "840"),
            "{seen:?}"
        );
    }
}

#[test]
fn damaged_current() {
    run_cases(make_good, &current_cases());
}

#[test]
fn damaged_manifests() {
    run_cases(make_good, &manifest_bytes_cases());
}

#[test]
fn hostile_manifests() {
    run_cases(make_good, &manifest_edit_cases());
}

#[test]
fn damaged_tables() {
    run_cases(make_good, &table_cases());
}

#[test]
fn damaged_logs() {
    run_cases(make_good, &log_cases());
}

#[test]
fn wrong_callers() {
    run_cases(make_good, &caller_cases());
}

/// Damages a database that RocksDB's `ldb` wrote, where that is installed.
#[test]
fn damaged_directories_of_rocksdb() {
    use Shows::{AtOpen, AtRead};
    let ldb = |dir: &Path, words: &[&str]| {
        let mut command = Command::new("ldb");
        command.arg(format!("--db={}", dir.display())).args(words);
        command.output().is_ok_and(|o| o.status.success())
    };
    let probe = tempfile::tempdir().expect("a directory");
    if !ldb(
        &probe.path().join("db"),
        &["--create_if_missing", "put", "a", "b"],
    ) {
        println!("ldb is not installed: nothing to do");
        return;
    }
    let make = move |dir: &Path| {
        assert!(ldb(
            dir,
            &[
                "--create_if_missing",
                "batchput",
                "a",
                "1",
                "b",
                "2",
                "c",
                "3"
            ]
        ));
        assert!(ldb(dir, &["compact"]));
        assert!(ldb(dir, &["put", "d", "4"]));
    };
    let first_block = whole(|d| change(&table(d), |b| b[3] ^= 0x40));
    let cases: Vec<_> = [
        case(
            "a flipped MANIFEST",
            "MANIFEST-",
            CORRUPTION,
            AtOpen,
            flip("MANIFEST-", |n| n / 2),
        ),
        case(
            "CURRENT is missing",
            "CURRENT",
            ABSENT,
            AtOpen,
            whole(|d| std::fs::remove_file(d.join("CURRENT")).expect("there")),
        ),
        case(
            "a table is missing",
            ".sst",
            ABSENT,
            AtOpen,
            whole(|d| std::fs::remove_file(table(d)).expect("there")),
        ),
        case(
            "a table is cut",
            ".sst",
            CORRUPTION,
            AtOpen,
            whole(|d| cut(&table(d), 300)),
        ),
        case(
            "a flipped footer",
            ".sst",
            CORRUPTION,
            AtOpen,
            flip(".sst", |n| n - 3),
        ),
        case(
            "a flipped data block",
            ".sst",
            CORRUPTION,
            AtRead,
            first_block,
        ),
    ]
    .into_iter()
    .map(|c| opened(c, How::Plain))
    .collect();
    run_cases(make, &cases);
}

#[test]
fn the_cases_are_many() {
    let all = [
        current_cases(),
        manifest_bytes_cases(),
        manifest_edit_cases(),
        table_cases(),
        log_cases(),
        caller_cases(),
    ];
    assert!(all.iter().map(Vec::len).sum::<usize>() >= 80);
}
