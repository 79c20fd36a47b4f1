//! Every command of the parser's own tree, where it has something to complain of: with a stderr
//! that nobody reads or that is full, and with `--json`.

mod common;

use common::{Ran, esker};
use esker::{Db, Options};
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A command, as the parser has it.
struct Leaf {
    path: Vec<String>,
    needs: Vec<String>,
}

fn leaves() -> Vec<Leaf> {
    let all = esker(&["--json", "commands"]).expect(0).json();
    let text = |v: &Value| v.as_str().expect("text").to_owned();
    let leaf = |v: &Value| Leaf {
        path: text(&v["command"]).split(' ').map(str::to_owned).collect(),
        needs: v["needs"]
            .as_array()
            .expect("a list")
            .iter()
            .map(text)
            .collect(),
    };
    all.iter().map(leaf).collect()
}

impl Leaf {
    /// Arguments for a database at `db`, with the rest below `home`.
    fn arguments(&self, db: &Path, home: &Path) -> Vec<String> {
        let mut all = self.path.clone();
        let db = db.display();
        // These read their arguments themselves, so the parser does not know what they need.
        let own = match self.path[0].as_str() {
            "bench" => format!("--db={db} --use_existing_db --benchmarks=readseq --num=1"),
            "lab" => format!("report {db}"),
            "diff" => format!("--left lib:{db} --right lib:{db} --calls 1"),
            _ => String::new(),
        };
        all.extend(own.split_whitespace().map(str::to_owned));
        for need in &self.needs {
            if need == "KEY VALUE" {
                all.push("1".to_owned());
            }
            all.push(match need.as_str() {
                "--db" => format!("--db={db}"),
                "DB" | "FILE|DB" => db.to_string(),
                "TARGET" => home.join("target").display().to_string(),
                // Backups of a directory that has none: the database's own.
                "BACKUPS" => db.to_string(),
                option if option.starts_with("--") => format!("{option}=1"),
                _ => "1".to_owned(),
            });
        }
        all
    }
}

/// A directory that something is wrong with.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trouble {
    Missing,
    Damaged,
    Locked,
    Unreadable,
}

fn make(trouble: Trouble, at: &Path) -> Option<Db> {
    let _ = fs::remove_dir_all(at);
    if trouble == Trouble::Missing {
        return None;
    }
    let db = Db::open(at, Options::new().create_if_missing(true)).expect("a database");
    db.put("1", "one").expect("written");
    db.flush().expect("flushed");
    db.put("2", "two").expect("written");
    if trouble == Trouble::Locked {
        return Some(db);
    }
    db.close().expect("closed");
    for entry in fs::read_dir(at).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        if trouble == Trouble::Damaged && name.starts_with("MANIFEST") {
            let mut bytes = fs::read(&path).expect("read");
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x55;
            fs::write(&path, bytes).expect("written");
        }
        // Whoever runs the tests may read everything, but not a directory as a file.
        if trouble == Trouble::Unreadable && name == "CURRENT" {
            fs::remove_file(&path).expect("removed");
            fs::create_dir(&path).expect("a directory");
        }
    }
    None
}

fn run(args: &[String], stderr: Stdio) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_esker"))
        .args(args)
        .stdin(Stdio::null())
        .stderr(stderr)
        .output();
    Ran::of(output.expect("the command runs"))
}

/// A pipe that nobody reads.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

fn full() -> Stdio {
    let file = File::options()
        .write(true)
        .open("/dev/full")
        .expect("a full device");
    file.into()
}

const TROUBLES: [Trouble; 4] = [
    Trouble::Missing,
    Trouble::Damaged,
    Trouble::Locked,
    Trouble::Unreadable,
];

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().expect("a directory"))
    }

    fn db(&self) -> PathBuf {
        self.0.path().join("db")
    }

    /// Runs a command on a fresh directory.
    fn on(&self, trouble: Trouble, leaf: &Leaf, more: &[&str], stderr: Stdio) -> Ran {
        let _ = fs::remove_dir_all(self.0.path().join("target"));
        let _open = make(trouble, &self.db());
        let mut args = leaf.arguments(&self.db(), self.0.path());
        args.extend(more.iter().map(|m| (*m).to_owned()));
        run(&args, stderr)
    }
}

#[test]
fn a_command_keeps_its_exit_code_when_nobody_reads_its_errors() {
    let home = Home::new();
    let leaves = leaves();
    assert!(leaves.len() > 25, "{}", leaves.len());
    for leaf in leaves {
        for trouble in TROUBLES {
            let what = format!("{} on {trouble:?}", leaf.path.join(" "));
            let told = home.on(trouble, &leaf, &[], Stdio::piped());
            assert!((0..=3).contains(&told.code), "{what}: {}", told.code);
            assert!(!told.err.contains("panicked"), "{what}: {}", told.err);
            for (name, stderr) in [("closed", closed()), ("full", full())] {
                let ran = home.on(trouble, &leaf, &[], stderr);
                assert_eq!(ran.code, told.code, "{what}, {name}");
            }
        }
    }
}

#[test]
fn with_json_every_error_is_one_object() {
    let home = Home::new();
    for leaf in &leaves() {
        for trouble in TROUBLES {
            let what = format!("{} on {trouble:?}", leaf.path.join(" "));
            let ran = home.on(trouble, leaf, &["--json"], Stdio::piped());
            let objects = |text: &str| -> Vec<Value> {
                let parse = |l: &str| {
                    serde_json::from_str(l).unwrap_or_else(|e| panic!("{what}: {e}: {l}"))
                };
                text.lines().map(parse).collect()
            };
            let (data, messages) = (objects(&ran.out), objects(&ran.err));
            let mut errors = messages.iter().filter(|m| m["type"] == "error");
            if let Some(error) = errors.next() {
                assert!(ran.code == 1 || ran.code == 2, "{what}: {}", ran.code);
                assert!(error["kind"].is_string(), "{what}: {error}");
                assert!(error["message"].is_string(), "{what}: {error}");
            } else if ran.code != 0 {
                assert!(!data.is_empty(), "{what}: {} without a word", ran.code);
            }
            assert_eq!(errors.next(), None, "{what}: more than one");
            let text = format!("{}{}", ran.out, ran.err);
            for unreadable in ["Some(", "None)", "State>"] {
                assert!(!text.contains(unreadable), "{what}: {text}");
            }
        }
    }
    // Arguments that are wrong are an object, too.
    for args in [
        &["get", "--json"][..],
        &["--json", "nonsense"],
        &["scan", "--json", "--x"],
        &["bench", "--nonsense", "--json"],
        &["--json", "bench", "--benchmarks=nonsense"],
        &["bench", "compare", "--json"],
        &["lab", "--json", "nonsense"],
        &["--json", "lab", "byrx", "--quick", "--num=abc"],
        &["lab", "model", "--nonsense", "--json"],
        &["diff", "--json", "--nonsense"],
    ] {
        let ran = esker(args).expect(2);
        let error: Value = serde_json::from_str(&ran.err).expect("one object");
        assert_eq!(error["kind"], "Usage");
    }
}

#[test]
fn with_json_the_laboratory_prints_objects_alone() {
    let home = Home::new();
    let db = format!("--db={}", home.db().display());
    let file = home.0.path().join("rows.json");
    let to = format!("--json={}", file.display());
    let few = ["--benchmarks=fillseq", "--num=10"];
    for args in [
        &["bench", &db, few[0], few[1], "--json"][..],
        &["--json", "bench", &db, few[0], few[1]],
        &["--json", "bench", &db, few[0], few[1], &to],
        &["bench", "--json", "--version"],
        &["lab", "--json"],
        &["--json", "lab", "model", "lsm"],
        &["diff", "--list", "--json"],
    ] {
        let ran = esker(args).expect(0);
        let objects = ran.json();
        assert!(objects.iter().all(Value::is_object), "{}", ran.out);
        for line in ran.err.lines() {
            let note: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
            assert_eq!(note["type"], "note", "{args:?}");
        }
        let rows = objects.iter().filter(|o| o["rows"].is_array()).count();
        let is_run = args.contains(&few[0]) && !args.contains(&to.as_str());
        assert_eq!(rows, usize::from(is_run), "{args:?}: {}", ran.out);
    }
    // The name of a file is no wish for objects.
    let path = file.display().to_string();
    let ran = esker(&["bench", &db, few[0], few[1], "--json", &path]).expect(0);
    assert!(ran.out.contains("\nfillseq "), "{}", ran.out);
    let rows = fs::read_to_string(&file).expect("rows");
    assert!(serde_json::from_str::<Value>(&rows).expect("JSON")["rows"].is_array());
}

#[test]
fn the_database_is_an_option_or_an_argument_of_every_command() {
    let home = Home::new();
    let db = home.db();
    let at = db.display().to_string();
    for leaf in leaves() {
        let is_named = leaf.needs.iter().any(|n| n == "--db");
        let is_placed = leaf.needs.iter().any(|n| n == "DB" || n == "FILE|DB");
        if !is_named && !is_placed {
            continue;
        }
        let mut codes = Vec::new();
        for form in 0..3 {
            make(Trouble::Missing, &db);
            drop(Db::open(&db, Options::new().create_if_missing(true)).expect("a database"));
            let _ = fs::remove_dir_all(home.0.path().join("target"));
            let given = leaf.arguments(&db, home.0.path());
            let mut rest = given[leaf.path.len()..].to_vec();
            let option = format!("--db={at}");
            let place = |word: &String| rest.iter().position(|a| a == word);
            let place = place(&option).or_else(|| place(&at));
            rest.remove(place.expect("it is there"));
            let mut args = leaf.path.clone();
            match form {
                0 => args.extend(std::iter::once(option).chain(rest)),
                1 => {
                    args.extend(rest);
                    args.insert(0, option);
                }
                _ if args.last().is_some_and(|a| a == "restore") => {
                    args.extend(rest.into_iter().chain([at.clone()]));
                }
                _ => args.extend(std::iter::once(at.clone()).chain(rest)),
            }
            let ran = run(&args, Stdio::piped());
            let is_usage = ran.err.contains("Usage:") || ran.err.contains("unexpected argument");
            assert!(!is_usage, "{args:?}: {}", ran.err);
            codes.push(ran.code);
        }
        codes.dedup();
        assert_eq!(codes.len(), 1, "{}: {codes:?}", leaf.path.join(" "));
    }
}

#[test]
fn hints_say_what_to_type() {
    let home = Home::new();
    let db = home.db();
    let on = |args: &[&str]| {
        let mut all: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
        all.insert(1, format!("--db={}", db.display()));
        run(&all, Stdio::piped())
    };
    let err = on(&["put", "a", "1"]).expect(1).err;
    assert!(err.contains("--create-if-missing"), "{err}");
    let err = on(&["scan"]).expect(1).err;
    assert!(!err.contains("create_if_missing"), "{err}");

    drop(make(Trouble::Damaged, &db));
    drop(make(Trouble::Locked, &db));
    let table = fs::read_dir(&db)
        .expect("a directory")
        .map(|e| e.expect("an entry").path())
        .find(|p| p.extension().is_some_and(|e| e == "sst"));
    fs::remove_file(table.expect("a table")).expect("removed");
    let err = on(&["scan"]).expect(1).err;
    assert!(err.contains("esker repair --db="), "{err}");
    drop(make(Trouble::Locked, &db));
    for entry in fs::read_dir(&db).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|e| e == "log") {
            fs::remove_file(path).expect("removed");
        }
    }
    let err = on(&["put", "a", "1"]).expect(1).err;
    assert!(err.contains("--set wal_recovery_mode="), "{err}");
    fs::remove_file(db.join("CURRENT")).expect("removed");
    let err = on(&["families", "list"]).expect(1).err;
    assert!(err.contains("esker repair --db="), "{err}");
}
