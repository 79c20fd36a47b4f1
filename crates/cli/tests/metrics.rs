//! `esker metrics`: OpenMetrics text of a directory, which it does not change.

mod common;

use common::{contents, esker, esker_on};

#[test]
fn a_directory_has_metrics_and_stays_as_it_is() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = dir.path().join("db");
    let path = db.to_str().expect("UTF-8");
    esker(&["put", "--db", path, "--create-if-missing", "apple", "red"]).expect(0);
    let before = contents(&db);
    let ran = esker_on(&["metrics"], &db).expect(0);
    assert!(ran.out.ends_with("# EOF\n"), "{}", ran.out);
    let line = format!("rocksdb_estimate_num_keys{{db=\"{path}\",cf=\"default\"}} 1\n");
    assert!(ran.out.contains(&line), "{}", ran.out);
    assert!(!ran.out.contains("apple"));
    let json = esker_on(&["metrics", "--json"], &db).expect(0).json();
    assert_eq!(json.len(), 1);
    assert_eq!(json[0]["type"], "metrics");
    assert_eq!(contents(&db), before);
    esker(&["metrics", "no/such/directory"]).expect(1);
}
