//! The commands that read a database without opening it, on what RocksDB's own tools wrote.

mod common;

use common::{Ran, contents, db_bench, esker, esker_on, ldb_put};
use std::path::{Path, PathBuf};

fn first(db: &Path, suffix: &str) -> PathBuf {
    let mut files: Vec<_> = std::fs::read_dir(db)
        .expect("a directory")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.to_string_lossy().ends_with(suffix))
        .collect();
    files.sort();
    files
        .first()
        .unwrap_or_else(|| panic!("no {suffix} in {}", db.display()))
        .clone()
}

fn types(ran: &Ran) -> Vec<String> {
    ran.json()
        .iter()
        .map(|v| v["type"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Overwrites one byte.
fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).expect("a file");
    bytes[at] ^= 0x40;
    std::fs::write(path, bytes).expect("written");
}

#[test]
fn usage_errors_exit_with_2_and_errors_with_1() {
    esker(&["no-such-command"]).expect(2);
    esker(&["check"]).expect(2);
    let ran = esker(&["check", "no/such/directory"]).expect(1);
    assert!(ran.err.starts_with("error: "), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    for command in [
        "check",
        "shape",
        "sst",
        "wal",
        "manifest",
        "checkpoint",
        "backup",
        "destroy",
        "forecast",
        "metrics",
    ] {
        let ran = esker(&[command, "--help"]).expect(0);
        assert!(ran.out.contains("Example"), "{command}: {}", ran.out);
    }
    let empty = tempfile::tempdir().expect("a directory");
    esker_on(&["check"], empty.path()).expect(1);
    esker_on(&["shape"], empty.path()).expect(1);
    assert!(contents(empty.path()).is_empty(), "nothing was written");
}

#[test]
fn a_fresh_database_is_sound_and_its_log_is_shown() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = dir.path().join("db");
    if ldb_put(&db, &[("apple", "red"), ("pear", "green")]).is_none() {
        return;
    }
    let before = contents(&db);
    let ran = esker_on(&["check"], &db).expect(0);
    assert!(ran.out.contains("no problem found"), "{}", ran.out);
    let ran = esker_on(&["wal"], &db).expect(0);
    assert!(
        ran.out.contains("Put family=0 key=apple value=red"),
        "{}",
        ran.out
    );
    let ran = esker_on(&["wal", "--json", "--hex"], &db).expect(0);
    let put = ran
        .json()
        .into_iter()
        .find(|v| v["kind"] == "Put" && v["key"] == "0x70656172");
    assert_eq!(put.expect("the second put")["value"], "0x677265656E");
    let ran = esker_on(&["manifest", "--json"], &db).expect(0);
    assert!(
        ran.json()
            .iter()
            .any(|e| e["comparator"] == "leveldb.BytewiseComparator")
    );
    let ran = esker_on(&["options", "lint", "--json"], &db).expect(0);
    ran.json();
    assert_eq!(contents(&db), before, "reading changed something");
}

#[test]
fn a_tree_is_drawn_and_every_byte_of_it_checked() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = dir.path().join("db");
    if db_bench(&db, &["--compression_type=lz4"]).is_none() {
        return;
    }
    let before = contents(&db);
    let summary = esker_on(&["check", "--json"], &db)
        .expect(0)
        .json()
        .pop()
        .expect("a summary");
    assert_eq!(summary["errors"], 0);
    let shape = esker_on(&["shape", "--json"], &db).expect(0).json();
    let tables: u64 = shape[0]["levels"]
        .as_array()
        .expect("levels")
        .iter()
        .map(|l| l["files"].as_u64().expect("a number"))
        .sum();
    assert!(tables > 1);
    assert_eq!(summary["tables"], tables);
    let text = esker_on(&["shape", "--files"], &db).expect(0).out;
    assert!(text.contains("pending compaction bytes"), "{text}");

    let tree = types(&esker_on(&["manifest", "--tree", "--json"], &db).expect(0));
    assert_eq!(tree.iter().filter(|t| *t == "table").count() as u64, tables);

    let table = first(&db, ".sst");
    let scan = esker_on(&["sst", "--scan", "--json"], &table)
        .expect(0)
        .json();
    let shown = esker_on(&["sst", "--json"], &table).expect(0).json();
    assert_eq!(
        shown[0]["properties"]["rocksdb.num.entries"],
        scan.len() as u64
    );
    assert_eq!(
        esker_on(&["sst", "--scan", "--limit", "3", "--json"], &table)
            .expect(0)
            .json()
            .len(),
        3
    );
    let blocks = esker_on(&["sst", "--blocks", "--json"], &table)
        .expect(0)
        .json();
    let index = esker_on(&["sst", "--index", "--json"], &table)
        .expect(0)
        .json();
    assert_eq!(
        blocks.iter().filter(|b| b["kind"] == "data").count(),
        index.len()
    );
    let filter = esker_on(&["sst", "--filter", "--json"], &table)
        .expect(0)
        .json();
    let rate = filter[0]["false_positive_rate"].as_f64().expect("a rate");
    assert!(rate > 0.0 && rate < 0.03, "{rate}");
    let verified = esker_on(&["sst", "--verify"], &db).expect(0).out;
    assert_eq!(verified.matches("verified").count() as u64, tables);
    assert_eq!(contents(&db), before, "reading changed something");
}

#[test]
fn damage_in_several_places_is_all_reported() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = dir.path().join("db");
    if db_bench(&db, &["--compression_type=none"]).is_none() {
        return;
    }
    let tables: Vec<_> = {
        let mut all: Vec<_> = std::fs::read_dir(&db)
            .expect("a directory")
            .map(|e| e.expect("an entry").path())
            .filter(|p| p.extension().is_some_and(|e| e == "sst"))
            .collect();
        all.sort();
        all
    };
    assert!(tables.len() >= 3);
    flip(&tables[0], 100);
    flip(&tables[0], 20_000);
    std::fs::remove_file(&tables[1]).expect("removed");
    let mut longer = std::fs::read(&tables[2]).expect("a table");
    longer.push(0);
    std::fs::write(&tables[2], longer).expect("written");
    std::fs::write(db.join("999999.sst"), b"not a table").expect("written");
    let options = first(&db, "OPTIONS-000007");
    std::fs::write(&options, "[DBOptions]\n  what=is this\n").expect("written");

    let ran = esker_on(&["check"], &db).expect(1);
    for (what, times) in [
        ("data block: block checksum mismatch", 2),
        ("is missing", 1),
        ("in the MANIFEST", 1),
        ("left over", 1),
        ("OPTIONS", 1),
    ] {
        assert!(
            ran.out.matches(what).count() >= times,
            "{what} {times} in\n{}",
            ran.out
        );
    }
    let all = esker_on(&["check", "--json"], &db).expect(1).json();
    let errors = all.iter().filter(|v| v["severity"] == "error").count();
    assert_eq!(all.last().expect("a summary")["errors"], errors as u64);
    esker_on(&["sst", "--verify"], &tables[0]).expect(1);
}

#[test]
fn a_damaged_log_exits_with_1_and_a_torn_one_does_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = dir.path().join("db");
    if ldb_put(&db, &[("k1", "v1")]).is_none() || ldb_put(&db, &[("k2", "v2")]).is_none() {
        return;
    }
    let log = first(&db, ".log");
    let whole = std::fs::read(&log).expect("a log");
    std::fs::write(&log, &whole[..whole.len() - 1]).expect("written");
    let torn = esker_on(&["wal", "--json"], &log).expect(0);
    assert!(
        torn.json().iter().any(|v| v["what"] == "torn tail"),
        "{}",
        torn.out
    );
    std::fs::write(&log, &whole).expect("written");
    flip(&log, 10);
    let damaged = esker_on(&["wal", "--json"], &log).expect(1);
    assert!(
        damaged.json().iter().any(|v| v["what"] == "damaged"),
        "{}",
        damaged.out
    );
    let absolute = esker_on(&["wal", "--recovery-mode", "absolute"], &log).expect(1);
    assert!(
        absolute.err.contains("checksum mismatch"),
        "{}",
        absolute.err
    );
    esker_on(&["wal", "--recovery-mode", "point-in-time"], &log).expect(0);
}

#[test]
fn a_checkpoint_is_the_same_database() {
    let dir = tempfile::tempdir().expect("a directory");
    let (db, copy) = (dir.path().join("db"), dir.path().join("copy"));
    if db_bench(&db, &[]).is_none() {
        return;
    }
    let db_flag = format!("--db={}", db.display());
    let copy_text = copy.display().to_string();
    esker(&["checkpoint", &db_flag, &copy_text]).expect(0);
    esker_on(&["check"], &copy).expect(0);
    let digest =
        |db: &Path| common::tool("ldb", &[format!("--db={}", db.display()), "scan".into()]);
    assert_eq!(digest(&copy), digest(&db));
    esker(&["checkpoint", &db_flag, &copy_text]).expect(2);

    esker(&["destroy", &format!("--db={copy_text}")]).expect(2);
    assert!(copy.join("CURRENT").exists(), "not without --yes");
    std::fs::write(copy.join("notes.txt"), b"mine").expect("written");
    esker(&["destroy", &format!("--db={copy_text}"), "--yes"]).expect(0);
    let left: Vec<_> = contents(&copy).into_iter().map(|(name, _)| name).collect();
    assert_eq!(left, ["notes.txt"]);
    esker_on(&["check"], &db).expect(0);
    esker(&["destroy", &format!("--db={copy_text}"), "--yes"]).expect(1);
}

#[test]
fn the_catalogue_explains_itself() {
    let all = esker(&["options", "explain", "--json"]).expect(0).json();
    assert!(all.len() > 300, "{}", all.len());
    assert!(
        all.iter()
            .all(|v| v["name"].is_string() && v["section"].is_string())
    );
    let one = esker(&["options", "explain", "write_buffer_size"])
        .expect(0)
        .out;
    assert!(one.contains("default:  67108864"), "{one}");
    let wrong = esker(&["options", "explain", "write_bufer_size"]).expect(1);
    assert!(
        wrong.err.contains("did you mean write_buffer_size"),
        "{}",
        wrong.err
    );
}

#[test]
fn a_tree_is_foretold_by_its_options() {
    let forecast = |more: &[&str]| {
        let mut args = vec!["forecast", "--keys=2000000", "--entry-bytes=100", "--json"];
        args.extend([
            "--set=write_buffer_size=1048576",
            "--set=max_bytes_for_level_base=4194304",
        ]);
        args.extend(more);
        let lines = esker(&args).expect(0).json();
        let last = lines.last().expect("a line").clone();
        assert_eq!(last["type"], "forecast");
        (
            lines.len() - 1,
            last["write_amp"].as_f64().expect("a number"),
        )
    };
    let (levels, random) = forecast(&[]);
    assert!(levels >= 3 && random > 5.0, "{levels} {random}");
    let (_, sorted) = forecast(&["--order=sequential"]);
    assert!(sorted < 1.1, "{sorted}");
    let (_, behind) = forecast(&["--service=4"]);
    assert!(behind < random, "{behind} {random}");

    let (_, resting) = forecast(&["--rest"]);
    assert!(resting > random, "{resting} {random}");

    let shapes = esker(&[
        "forecast",
        "--compare",
        "--json",
        "--keys=4000000,8000000",
        "--fanout=8,10",
        "--order=overwrite",
        "--entry-bytes=100",
        "--set=write_buffer_size=1048576",
        "--set=max_bytes_for_level_base=4194304",
        "--set=target_file_size_base=1048576",
    ]);
    let shapes = shapes.expect(0).json();
    assert_eq!(shapes.len(), 8);
    for pair in shapes.chunks(2) {
        let figure = |row: usize, name: &str| pair[row][name].as_f64().expect("a number");
        assert_eq!(pair[0]["by_cost"], false);
        assert!(
            figure(1, "write_amp") < figure(0, "write_amp") * 0.9,
            "{pair:?}"
        );
        assert!(
            figure(1, "space_amp") < figure(0, "space_amp") + 0.01,
            "{pair:?}"
        );
        let ratios = pair[1]["ratios"].as_array().expect("ratios");
        let thin = |r: &serde_json::Value| r.as_f64().expect("a number") < 3.99;
        assert!(!ratios.iter().any(thin), "{pair:?}");
    }

    esker(&["forecast", "--keys=1,2"]).expect(2);
    esker(&["forecast", "--keys=0"]).expect(2);
    esker(&["forecast", "--set=disable_auto_compactions=true"]).expect(2);
}

#[cfg(unix)]
#[test]
fn who_reads_only_the_first_lines_sees_no_panic() {
    for args in [
        &["bench", "--help"][..],
        &["bench", "universal", "--help"],
        &["bench", "compare", "--help"],
        &["diff", "--list"],
    ] {
        let (closed, to) = std::io::pipe().expect("a pipe");
        drop(closed);
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_esker"));
        let ended = command.args(args).stdout(to).output().expect("it runs");
        assert_eq!(ended.status.code(), Some(0), "{args:?}");
        assert!(ended.stderr.is_empty(), "{args:?}: {:?}", ended.stderr);
    }
}
