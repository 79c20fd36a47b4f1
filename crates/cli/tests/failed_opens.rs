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

#[test]
fn two_options_files_stay() {
    let home = tempfile::tempdir().expect("a directory");
    let db = home.path().join("db");
    for n in 0..4 {
        let family = format!("--column-family=f{n}");
        let args = [&family, "--create-if-missing", "k", "v"];
        run(&db, "put", &args).expect(0);
        assert!(options_files(&db).len() <= 2, "{:?}", options_files(&db));
    }
    assert_eq!(options_files(&db).len(), 2);
    esker_on(&["check"], &db).expect(0);
}

#[test]
fn a_family_that_options_lack_is_read_and_written() {
    let home = tempfile::tempdir().expect("a directory");
    let db = Db::open(home.path(), Options::new().create_if_missing(true)).expect("opens");
    for name in ["a", "b"] {
        let family = db
            .create_family(name, FamilyOptions::default())
            .expect("creates");
        db.put_cf(&family, "k", name).expect("writes");
    }
    db.close().expect("closes");
    // As a program leaves it that dies between the MANIFEST and OPTIONS.
    for path in options_files(home.path()) {
        let text = std::fs::read_to_string(&path).expect("text");
        let end = text.find("[CFOptions \"b\"]").unwrap_or(text.len());
        std::fs::write(&path, &text[..end]).expect("writes");
    }
    for (name, value) in [("a", "a\n"), ("b", "b\n")] {
        let family = format!("--column-family={name}");
        assert_eq!(
            run(home.path(), "get", &[&family, "k"]).expect(0).out,
            value
        );
        run(home.path(), "put", &[&family, "other", "v"]).expect(0);
    }
    esker_on(&["check"], home.path()).expect(0);
}
