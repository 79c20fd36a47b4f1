//! `check` and the listings on databases of real RocksDB, when `ESKER_GOLDEN` names a directory
//! that holds them: any depth below it, each a directory with a `CURRENT`.

mod common;

use common::{contents, esker_on};
use std::path::{Path, PathBuf};

fn databases(at: &Path, out: &mut Vec<PathBuf>) {
    if at.join("CURRENT").exists() {
        return out.push(at.to_owned());
    }
    let mut entries: Vec<_> = std::fs::read_dir(at)
        .expect("a directory")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.is_dir())
        .collect();
    entries.sort();
    entries.iter().for_each(|e| databases(e, out));
}

#[test]
fn every_golden_database_passes() {
    let Some(root) = std::env::var_os("ESKER_GOLDEN") else {
        println!("skipped: ESKER_GOLDEN is not set");
        return;
    };
    let mut all = Vec::new();
    databases(Path::new(&root), &mut all);
    assert!(!all.is_empty(), "no database in ESKER_GOLDEN");
    let mut failed = Vec::new();
    for db in &all {
        let before = contents(db);
        let ran = esker_on(&["check", "--json"], db);
        if ran.code != 0 {
            failed.push(format!("{}: {}{}", db.display(), ran.out, ran.err));
        }
        ran.json();
        for command in ["shape", "wal", "manifest"] {
            let ran = esker_on(&[command, "--json"], db).expect(0);
            assert!(!ran.json().is_empty(), "{command} {}", db.display());
        }
        assert_eq!(contents(db), before, "{} changed", db.display());
    }
    assert!(
        failed.is_empty(),
        "{} of {}:\n{}",
        failed.len(),
        all.len(),
        failed.join("\n")
    );
}
