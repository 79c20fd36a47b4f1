//! Directories whose logs are gone or shorter than the MANIFEST says: every reader reports what
//! opening for writing reports, copies of them are not made, and not a byte of them changes.

mod common;

use common::{Ran, contents, esker, esker_on};
use std::path::{Path, PathBuf};

/// The error of opening for writing.
const MISSING: &str = "Corruption: the log is missing: the MANIFEST names it";

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place {
            dir: tempfile::tempdir().expect("a directory"),
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A database of three puts, each by a process of its own.
    fn filled(&self) -> PathBuf {
        let db = self.at("db");
        for key in ["k1", "k2", "k3"] {
            on(&db, "put", &["--create-if-missing", key, "v"]).expect(0);
        }
        db
    }
}

/// `esker COMMAND --db=DB ARGS...`
fn on(db: &Path, command: &str, args: &[&str]) -> Ran {
    let flag = format!("--db={}", db.display());
    let mut all = vec![command, &flag];
    all.extend_from_slice(args);
    esker(&all)
}

/// The logs of a directory, oldest first.
fn logs(db: &Path) -> Vec<PathBuf> {
    let mut all: Vec<_> = std::fs::read_dir(db)
        .expect("a directory")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "log"))
        .collect();
    all.sort();
    all
}

fn remove(files: &[PathBuf]) {
    assert!(!files.is_empty(), "there are logs");
    for file in files {
        std::fs::remove_file(file).expect("it goes");
    }
}

fn backup(db: &Path, to: &Path, args: &[&str]) -> Ran {
    let flag = format!("--db={}", db.display());
    let to = to.display().to_string();
    esker(&[&["backup", "create", &flag, &to], args].concat())
}

/// Every command that reads refuses `db` with `text` and leaves it as it is; no copy of it is made.
fn everybody_says(p: &Place, db: &Path, text: &str) {
    let before = contents(db);
    let said = |ran: Ran| {
        let ran = ran.expect(1);
        let all = format!("{}{}", ran.out, ran.err);
        assert!(all.contains(text), "{all}");
        assert_eq!(contents(db), before, "the directory changed: {all}");
    };
    said(on(db, "put", &["k4", "v"]));
    said(esker_on(&["check"], db));
    said(on(db, "get", &["k1"]));
    said(on(db, "scan", &[]));
    said(on(db, "dump", &["--count-only"]));
    let (copy, backups) = (p.at("copy"), p.at("backups"));
    said(on(db, "checkpoint", &[&copy.display().to_string()]));
    assert!(!copy.exists() && !p.at("copy.tmp").exists());
    said(backup(db, &backups, &[]));
    said(backup(db, &backups, &["--read-only"]));
    assert!(!backups.exists(), "nothing of a backup was made");
}

#[test]
fn a_database_whose_logs_were_deleted_is_read_by_nobody() {
    let p = Place::new();
    let db = p.filled();
    remove(&logs(&db));
    everybody_says(&p, &db, MISSING);
}

#[test]
fn the_newest_of_several_logs_is_missed() {
    let p = Place::new();
    let db = several_logs(&p);
    remove(&logs(&db)[2..]);
    everybody_says(&p, &db, MISSING);
}

#[test]
fn an_older_of_several_logs_is_missed() {
    let p = Place::new();
    let db = several_logs(&p);
    remove(&logs(&db)[..1]);
    everybody_says(&p, &db, "Corruption: the log is missing: ");
}

/// A database with three logs that are all needed: each opening keeps those that were there.
fn several_logs(p: &Place) -> PathBuf {
    let db = p.at("db");
    for key in ["k1", "k2", "k3"] {
        let keep = "--set=avoid_flush_during_recovery=true";
        let at_close = "--set=avoid_flush_during_shutdown=true";
        on(
            &db,
            "put",
            &["--create-if-missing", keep, at_close, key, "v"],
        )
        .expect(0);
    }
    assert_eq!(logs(&db).len(), 3);
    db
}

#[test]
fn a_log_that_is_shorter_than_the_manifest_says_is_told_by_the_check() {
    let p = Place::new();
    let db = several_logs(&p);
    let second = &logs(&db)[1];
    let bytes = std::fs::read(second).expect("a log");
    std::fs::write(second, &bytes[..bytes.len() / 2]).expect("written");
    let before = contents(&db);
    let ran = esker_on(&["check"], &db).expect(0);
    assert!(
        ran.out.contains("opening goes on without it"),
        "{}",
        ran.out
    );
    // Point-in-time recovery ends there, for all who open it.
    let kept = "k1 ==> v\n";
    assert_eq!(on(&db, "scan", &[]).expect(0).out, kept);
    assert_eq!(contents(&db), before);
    let strict = "--set=wal_recovery_mode=kAbsoluteConsistency";
    for command in ["scan", "dump"] {
        on(&db, command, &[strict]).expect(1);
    }
    on(&db, "get", &[strict, "k1"]).expect(1);
    on(&db, "put", &[strict, "k4", "v"]).expect(1);
    assert_eq!(contents(&db), before);
    on(&db, "put", &["k4", "v"]).expect(0);
    assert_eq!(on(&db, "scan", &[]).expect(0).out, "k1 ==> v\nk4 ==> v\n");
}

/// Copies and moves a log to each number: the check finds an error where opening refuses, and
/// nowhere else.
#[test]
fn a_log_under_another_number_is_an_error_where_opening_refuses_it() {
    let p = Place::new();
    let recycling = ["--set", "recycle_log_file_num=2"];
    let strict = ["--set", "wal_recovery_mode=kAbsoluteConsistency"];
    for (name, options) in [
        ("plain", &[][..]),
        ("recycling", &recycling),
        ("strict", &strict),
    ] {
        let db = p.at(name);
        for key in ["k1", "k2"] {
            let mut args = vec!["--create-if-missing"];
            args.extend(options.iter().copied().chain([key, "v"]));
            on(&db, "put", &args).expect(0);
        }
        let log = logs(&db).pop().expect("a log");
        for number in [1, 3, 7, 12, 50, 900] {
            for is_moved in [false, true] {
                let (there, tried) = (p.at("there"), p.at("tried"));
                let from = there.join(log.file_name().expect("a name"));
                let to = there.join(format!("{number:06}.log"));
                for dir in [&there, &tried] {
                    let _ = std::fs::remove_dir_all(dir);
                }
                copy(&db, &there);
                if to.exists() {
                    continue;
                }
                std::fs::copy(&from, &to).expect("copied");
                if is_moved {
                    std::fs::remove_file(&from).expect("moved");
                }
                copy(&there, &tried);
                let opened = on(&tried, "put", &["k3", "v"]);
                let checked = esker_on(&["check"], &there);
                let what = format!("{name}, {number}, moved {is_moved}: {}", opened.err);
                assert_eq!(checked.code, opened.code, "{what}{}", checked.out);
                assert_eq!(on(&there, "scan", &[]).code, opened.code, "{what}");
            }
        }
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a directory") {
        let path = entry.expect("an entry").path();
        std::fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("copied");
    }
}

#[test]
fn a_backup_that_lost_its_log_is_not_whole() {
    let p = Place::new();
    let (db, backups) = (p.filled(), p.at("backups"));
    backup(&db, &backups, &["--read-only"]).expect(0);
    // Its file list is changed with it, as somebody does who tidies up.
    let log = logs(&backups.join("private/1")).pop().expect("a log");
    let name = log
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    std::fs::remove_file(&log).expect("it goes");
    let meta = backups.join("meta/1");
    let text = std::fs::read_to_string(&meta).expect("a list");
    let count = text.lines().nth(2).expect("a count").to_owned();
    let fewer = (count.parse::<u32>().expect("a number") - 1).to_string();
    let lines = text.lines().filter(|l| !l.contains(&name));
    let lines: Vec<_> = lines.map(|l| if l == count { &fewer } else { l }).collect();
    std::fs::write(&meta, lines.join("\n") + "\n").expect("written");
    let verified = esker_on(&["backup", "verify"], &backups).expect(1);
    assert!(verified.out.contains(MISSING), "{}", verified.out);
}

#[test]
fn a_checkpoint_and_a_backup_leave_the_database_as_it_is() {
    let p = Place::new();
    let db = p.filled();
    let (copy, backups) = (p.at("copy"), p.at("backups"));
    for with_lock in [true, false] {
        if !with_lock {
            std::fs::remove_file(db.join("LOCK")).expect("it goes");
        }
        let before = contents(&db);
        on(&db, "checkpoint", &[&copy.display().to_string()]).expect(0);
        let made = backup(&db, &backups, &["--read-only"]).expect(0);
        assert!(made.out.contains("left as it is"), "{}", made.out);
        assert_eq!(contents(&db), before);
        esker_on(&["check"], &copy).expect(0);
        let all = "k1 ==> v\nk2 ==> v\nk3 ==> v\n";
        assert_eq!(on(&copy, "scan", &[]).expect(0).out, all);
        on(&copy, "put", &["k4", "v"]).expect(0);
        std::fs::remove_dir_all(&copy).expect("it goes");
        esker_on(&["backup", "verify"], &backups).expect(0);
        let flag = format!("--db={}", copy.display());
        let dir = backups.display().to_string();
        esker(&["backup", "restore", &dir, &flag]).expect(0);
        assert_eq!(on(&copy, "scan", &[]).expect(0).out, all);
        std::fs::remove_dir_all(&copy).expect("it goes");
    }
}

#[test]
fn a_backup_says_what_it_changed() {
    let p = Place::new();
    let (db, backups) = (p.filled(), p.at("backups"));
    let ran = backup(&db, &backups, &["--json"]).expect(0);
    let source = &ran.json()[1];
    assert_eq!(
        (&source["type"], &source["changed"]),
        (&"source".into(), &true.into())
    );
    assert_eq!(source["logs_read"], 1);
    assert_eq!(source["tables_written"], 1);
    let text = backup(&db, &backups, &[]).expect(0).out;
    assert!(text.contains("new MANIFEST-"), "{text}");
    let help = esker(&["backup", "create", "--help"]).expect(0).out;
    assert!(help.contains("This opens it for writing"), "{help}");
    backup(&db, &backups, &["--read-only", "--flush"]).expect(2);
}
