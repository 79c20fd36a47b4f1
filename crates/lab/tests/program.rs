//! The program `db_bench` itself: what scripts ask of it, and how it ends.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn db_bench(place: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_db_bench"));
    command
        .env("TEST_TMPDIR", place.join("tests"))
        .env("TMPDIR", place)
        .stdin(Stdio::null());
    command
}

fn run(place: &Path, args: &[&str]) -> (Output, String, String) {
    let output = db_bench(place).args(args).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    (output, out, err)
}

#[test]
fn scripts_ask_for_version_and_build() {
    let place = tempfile::tempdir().expect("a directory");
    let (_, version, _) = run(place.path(), &["--version"]);
    assert_eq!(version, "db_bench version 11.8.1\n");
    let (_, build, _) = run(place.path(), &["--build_info"]);
    assert!(build.starts_with("db_bench (RocksDB) 11.8.1\n"), "{build}");
    let (output, _, said) = run(place.path(), &["--gone=1", "--lost=2", "--undefok=gone"]);
    assert!(
        !output.status.success() && said.contains("--lost"),
        "{said}"
    );
    assert!(!said.contains("--gone"), "{said}");
}

#[test]
fn a_run_without_a_directory_is_where_rocksdb_has_it() {
    let place = tempfile::tempdir().expect("a directory");
    let small = ["--num=500", "--benchmarks=fillseq,stats", "--histogram=1"];
    let (output, out, err) = run(place.path(), &small);
    assert!(output.status.success(), "{err}");
    assert!(place.path().join("tests/dbbench/CURRENT").exists());
    // What benchmark.sh looks for, at the begin of lines.
    for part in [
        "\nfillseq ",
        "\nDB path: [",
        "\nPercentiles: P50: ",
        "\nMin: ",
        "\nCumulative writes",
    ] {
        assert!(out.contains(part), "no {part:?} in:\n{out}");
    }
    assert!(err.contains("\nDate:       "), "{err}");
    let more = [
        "--benchmarks=readrandom",
        "--num=500",
        "--use_existing_db=1",
    ];
    let (output, out, err) = run(place.path(), &more);
    assert!(output.status.success(), "{err}");
    assert!(out.contains("(500 of 500 found)"), "{out}");
}

#[test]
fn walks_go_on_for_a_time_and_a_run_that_is_not_watched_says_less() {
    let place = tempfile::tempdir().expect("a directory");
    let json = place.path().join("rows.json");
    let to = format!("--json={}", json.display());
    let small = [
        "--num=500",
        "--benchmarks=fillseq,readtocache,readseq,readreverse",
        &to,
    ];
    let rows = |more: &[&str]| -> Vec<serde_json::Value> {
        let (output, _, err) = run(place.path(), &[&small[..], more].concat());
        assert!(output.status.success(), "{err}");
        let text = std::fs::read_to_string(&json).expect("results");
        let all: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        all["rows"].as_array().expect("rows").clone()
    };
    let done = |row: &serde_json::Value| row["operations"].as_f64().expect("a number");
    let once = rows(&[]);
    assert!(once.iter().all(|row| done(row) == 500.0), "{once:?}");
    assert!(once.iter().all(|row| row["memory"].is_object()), "{once:?}");
    let again = rows(&["--repeat_walks", "--duration=1", "--watch=false"]);
    assert!(again[..2].iter().all(|row| done(row) == 500.0), "{again:?}");
    for row in &again[2..] {
        let many = done(row);
        assert!(many > 5000.0 && many % 500.0 == 0.0, "whole passes: {row}");
        assert!(row["seconds"].as_f64().is_some_and(|s| s >= 1.0), "{row}");
        assert!(row["memory"].is_null() && row["qps"].is_null(), "{row}");
    }
    let (output, _, said) = run(place.path(), &["--watch=false", "--stats_interval=10"]);
    assert!(
        !output.status.success() && said.contains("--stats_interval"),
        "{said}"
    );
}

/// As `timeout` does: it signals the process and its group.
fn signal_twice(child: &Child, name: &str) {
    let id = child.id().to_string();
    let status = Command::new("kill").args(["-s", name, &id, &id]).status();
    assert!(status.is_ok_and(|status| status.success()));
}

/// The temporary directories of benchmarks below `place`.
fn scratches(place: &Path) -> usize {
    let entries = std::fs::read_dir(place).expect("a directory").flatten();
    let names = entries.map(|entry| entry.file_name());
    names
        .filter(|name| name.to_string_lossy().starts_with("esker-bench-"))
        .count()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn ctrl_c_prints_what_was_done_and_leaves_no_directory() {
    let place = tempfile::tempdir().expect("a directory");
    let bench = env!("CARGO_BIN_EXE_esker-bench");
    let child = Command::new(bench)
        .args([
            "--benchmarks=fillrandom,readrandom",
            "--duration=600",
            "--num=10000",
        ])
        .env("TMPDIR", place.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    until("the database", || scratches(place.path()) == 1);
    std::thread::sleep(Duration::from_millis(500));
    signal_twice(&child, "INT");
    let output = child.wait_with_output().expect("it ends");
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{out}");
    assert!(
        out.contains("\nfillrandom "),
        "the part that was done:\n{out}"
    );
    assert!(!out.contains("\nreadrandom "), "nothing new begins:\n{out}");
    assert_eq!(scratches(place.path()), 0);
}

#[test]
fn a_killed_run_is_swept_by_the_next_one() {
    let place = tempfile::tempdir().expect("a directory");
    let bench = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_esker-bench"));
        command
            .args(args)
            .env("TMPDIR", place.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    let mut killed = bench(&["--benchmarks=fillrandom", "--duration=600"])
        .spawn()
        .expect("it runs");
    until("the database", || scratches(place.path()) == 1);
    killed.kill().expect("it is ours");
    killed.wait().expect("it ends");
    assert_eq!(scratches(place.path()), 1, "nobody could remove it");
    let next = bench(&["--benchmarks=fillseq", "--num=100"]).status();
    assert!(next.is_ok_and(|status| status.success()));
    assert_eq!(scratches(place.path()), 0);
}

/// Debian's RocksDB 7.8, which does not give the default family by a call of its own, and has none
/// that compacts named files.
const DEBIAN: &str = "/usr/lib/x86_64-linux-gnu/librocksdb.so.7.8";

#[test]
fn a_library_with_fewer_calls_marks_one_benchmark_and_runs_the_others() {
    if !Path::new(DEBIAN).exists() {
        eprintln!("skipped: {DEBIAN} is not installed");
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    let engine = format!("--engine=lib:{DEBIAN}");
    let small = ["--num=500", "--multiread_batched", engine.as_str()];
    let with = |more: &[&str]| run(place.path(), &[&small[..], more].concat());
    let list = "--benchmarks=fillseq,compactall,overwrite,flush,compact0,multireadrandom,compact1";
    let (output, out, err) = with(&[list]);
    assert!(!output.status.success());
    // A trigger of one file has level 0 merged.
    let merged = "compacted 1 files from L0 by level0_file_num_compaction_trigger=1";
    assert!(out.contains(merged), "{out}");
    assert!(out.contains("(500 of 500 found)"), "{out}");
    let last = err.lines().last().unwrap_or_default();
    let lack = "this library does not export rocksdb_compact_files";
    assert!(last.contains(lack), "{err}");
    // As `esker lab` runs them: each is marked by itself.
    let list = "--benchmarks=fillseq,compact1,readrandom";
    let (output, out, err) = with(&[list, "--skip_missing", "--json"]);
    assert!(output.status.success(), "{err}");
    let document: serde_json::Value = serde_json::from_str(&out).expect("one document");
    let rows = document["rows"].as_array().expect("rows");
    let missing: Vec<Option<&str>> = rows.iter().map(|row| row["missing"].as_str()).collect();
    assert_eq!(missing, [None, Some(lack), None]);
    assert!(rows[2]["ops_sec"].as_f64().is_some_and(|rate| rate > 0.0));
}

#[test]
fn benchmarks_are_listed_and_a_document_stands_alone_on_standard_output() {
    let place = tempfile::tempdir().expect("a directory");
    for word in ["list", "help"] {
        let (output, out, _) = run(place.path(), &[&format!("--benchmarks={word}")]);
        assert!(output.status.success());
        assert!(
            out.contains("\n  readrandom ") && !out.contains("RocksDB:"),
            "{out}"
        );
    }
    let (output, out, err) = run(
        place.path(),
        &["--benchmarks=fillseq", "--num=500", "--json"],
    );
    assert!(output.status.success(), "{err}");
    let document: serde_json::Value = serde_json::from_str(&out).expect("one document");
    assert_eq!(document["rows"][0]["test"], "fillseq");
}

#[test]
fn an_error_with_a_closed_or_full_standard_error_has_its_code() {
    let program = env!("CARGO_BIN_EXE_db_bench");
    for closed in ["2>&-", "2>/dev/full"] {
        let script = format!("{program} --benchmarks=nonsense {closed}");
        let status = Command::new("bash")
            .args(["-c", &script])
            .status()
            .expect("it runs");
        assert_eq!(status.code(), Some(1), "{closed}");
    }
}
