//! The command against directories that do not open, or whose OPTIONS lag behind: checksums before
//! and after.

mod common;

use common::{contents, esker as command_line, esker_on};
use esker::merge_operator::{Base, FailureScope, MergeOperator, Merged, StringAppend};
use esker::{Db, FamilyOptions, Options, WriteOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An operator that no built-in has the name of.
struct Own(StringAppend);

impl MergeOperator for Own {
    fn name(&self) -> &str {
        "tests.Own"
    }

    fn full_merge(
        &self,
        key: &[u8],
        base: Base<'_>,
        operands: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> Result<Merged, FailureScope> {
        self.0.full_merge(key, base, operands, out)
    }
}

fn run(db: &Path, command: &str, args: &[&str]) -> common::Ran {
    let flag = format!("--db={}", db.display());
    let mut all = vec![command, &flag];
    all.extend_from_slice(args);
    command_line(&all)
}

fn families(db: &Path, command: &str, args: &[&str]) -> common::Ran {
    let flag = format!("--db={}", db.display());
    let mut all = vec!["families", command, &flag];
    all.extend_from_slice(args);
    command_line(&all)
}

/// A database whose log holds what only an operator of the application's can merge.
fn with_operands(dir: &Path) {
    let mut options = Options::new().create_if_missing(true);
    options.family.merge_operator = Some(Arc::new(Own(StringAppend::new(b","))));
    options.db.avoid_flush_during_shutdown = true;
    let db = Db::open(dir, options).expect("opens");
    db.put("a", "1").expect("writes");
    let mut batch = esker::WriteBatch::new();
    batch.merge(b"b", b"2").expect("fits");
    db.write_opt(&mut batch, &WriteOptions::synced())
        .expect("writes");
    db.close().expect("closes");
}

#[test]
fn a_merge_operator_that_is_missing_refuses_writers_and_changes_nothing() {
    let home = tempfile::tempdir().expect("a directory");
    with_operands(home.path());
    let before = contents(home.path());
    let commands: [(&str, &[&str]); 4] = [
        ("put", &["k", "v"]),
        ("put", &["--default-options", "k", "v"]),
        ("delete", &["k"]),
        ("compact", &[]),
    ];
    for (command, args) in commands {
        let ran = run(home.path(), command, args).expect(1);
        assert!(ran.err.contains("merge operator"), "{command}: {}", ran.err);
        assert!(
            contents(home.path()) == before,
            "{command} changed something"
        );
    }
    assert_eq!(run(home.path(), "get", &["a"]).expect(0).out, "1\n");
    assert!(contents(home.path()) == before, "reading changed something");
}

fn options_files(dir: &Path) -> Vec<PathBuf> {
    let names = contents(dir).into_iter().map(|(name, _)| name);
    let names = names.filter(|name| name.starts_with("OPTIONS-"));
    names.map(|name| dir.join(name)).collect()
}

/// Every command that only reads, none of which may change a byte.
fn readers_change_nothing(db: &Path, names: &[&str]) {
    let before = contents(db);
    for name in names {
        let family = format!("--column-family={name}");
        assert_eq!(run(db, "get", &[&family, "k"]).expect(0).out, "v\n");
        assert_eq!(run(db, "scan", &[&family]).expect(0).out, "k ==> v\n");
        run(db, "dump", &[&family]).expect(0);
    }
    families(db, "list", &[]).expect(0);
    for words in [&["check"][..], &["shape"], &["manifest"], &["wal"]] {
        esker_on(words, db).expect(0);
    }
    assert!(contents(db) == before, "reading changed something");
}

#[test]
fn two_options_files_stay() {
    let home = tempfile::tempdir().expect("a directory");
    let db = home.path().join("db");
    let names = ["f0", "f1", "f2", "f3"];
    for (n, name) in names.iter().enumerate() {
        let family = format!("--column-family={name}");
        let args = [&family, "--create-if-missing", "k", "v"];
        run(&db, "put", &args).expect(0);
        assert!(options_files(&db).len() <= 2, "{:?}", options_files(&db));
        readers_change_nothing(&db, &names[..=n]);
    }
    assert_eq!(options_files(&db).len(), 2);
    // A refusal leaves the two as they are, and a family that goes leaves two.
    let before = contents(&db);
    run(&db, "put", &["--column-family=none", "k", "v"]).expect(1);
    assert!(contents(&db) == before, "a refusal changed something");
    for name in ["f3", "f2"] {
        families(&db, "drop", &[name, "--yes"]).expect(0);
        assert_eq!(options_files(&db).len(), 2);
    }
    readers_change_nothing(&db, &names[..2]);
}

/// How a program that dies while it makes family `b` leaves OPTIONS.
#[derive(Clone, Copy, Debug)]
enum Torn {
    /// The MANIFEST has the family, and OPTIONS lacks it.
    Lacks,
    /// The new file has no name of its own yet.
    Unnamed,
    /// OPTIONS has a family that the MANIFEST lacks.
    Ahead,
}

impl Torn {
    fn leave(self, dir: &Path) {
        let files = options_files(dir);
        let newest = files.last().expect("a file of options");
        let text = std::fs::read_to_string(newest).expect("text");
        let section = text.find("[CFOptions \"b\"]").unwrap_or(text.len());
        let write = |path: &Path, text: &str| std::fs::write(path, text).expect("writes");
        match self {
            Torn::Lacks => {
                for path in &files {
                    let text = std::fs::read_to_string(path).expect("text");
                    let end = text.find("[CFOptions \"b\"]").unwrap_or(text.len());
                    write(path, &text[..end]);
                }
            }
            Torn::Unnamed => write(&dir.join("OPTIONS-900000.dbtmp"), &text[..section]),
            Torn::Ahead => {
                let ahead = text[section..].replace("\"b\"", "\"never\"");
                write(newest, &format!("{text}\n{ahead}"));
            }
        }
    }
}

#[test]
fn a_crash_while_a_family_is_made_leaves_a_database_that_opens() {
    for torn in [Torn::Lacks, Torn::Unnamed, Torn::Ahead] {
        println!("{torn:?}");
        let home = tempfile::tempdir().expect("a directory");
        let db = Db::open(home.path(), Options::new().create_if_missing(true)).expect("opens");
        for name in ["a", "b"] {
            let family = db
                .create_family(name, FamilyOptions::default())
                .expect("creates");
            db.put_cf(&family, "k", "v").expect("writes");
        }
        db.close().expect("closes");
        torn.leave(home.path());
        readers_change_nothing(home.path(), &["a", "b"]);
        for name in ["a", "b"] {
            let family = format!("--column-family={name}");
            run(home.path(), "put", &[&family, "k", "v"]).expect(0);
        }
        readers_change_nothing(home.path(), &["a", "b"]);
        let listed = families(home.path(), "list", &[]).expect(0).out;
        assert!(!listed.contains("never"), "{listed}");
    }
}
