//! `esker lab` as a user runs it: a whole experiment, one that is stopped and goes on, reports.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

fn esker(directory: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
    command.current_dir(directory).arg("lab").args(args);
    command
}

fn run(directory: &Path, args: &[&str]) -> Output {
    esker(directory, args).output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn record(directory: &Path) -> Value {
    let path = directory.join("out/record.json");
    let text = std::fs::read_to_string(path).expect("a record");
    serde_json::from_str(&text).expect("a document")
}

const DEBIAN: &str = "/usr/lib/x86_64-linux-gnu/librocksdb.so.7.8";

const SMALL: [&str; 7] = [
    "byrx",
    "--quick",
    "--num=3000",
    "--duration=1",
    "--pairs=1",
    "--out=out",
    "--scratch=scratch",
];

#[test]
fn an_experiment_leaves_a_page_a_bundle_and_no_database() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = run(directory.path(), &SMALL);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.contains("Esker ran alone: fillseq"), "{said}");
    let record = record(directory.path());
    assert_eq!(record["complete"], true);
    // A B B A with one engine is two runs of thirteen steps.
    assert_eq!(record["results"].as_array().map(Vec::len), Some(26));
    let step = &record["results"][0];
    assert!(
        step["figures"]["ops_sec"]["value"].as_f64() > Some(0.0),
        "{step}"
    );
    assert!(record["engines"][0]["options"]["write_buffer_size"] == "16777216");
    let out = directory.path().join("out");
    for file in [
        "report.html",
        "report.json",
        "runs.tsv",
        "ratios.tsv",
        "command",
    ] {
        assert!(out.join(file).is_file(), "{file}");
    }
    let run = out.join("runs/pair00-chain000-turn0-engine0");
    for file in [
        "OPTIONS",
        "LOG",
        "stage00.log",
        "stage00.command",
        "step000.json",
        "done",
    ] {
        assert!(run.join(file).is_file(), "{file}");
    }
    let scratch = std::fs::read_dir(directory.path().join("scratch")).expect("is there");
    assert_eq!(scratch.count(), 0, "databases are gone");
    joined(directory.path());
}

/// Reports of what is there already.
fn joined(directory: &Path) {
    let output = run(directory, &["report", "out", "out", "--out=both"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let html = std::fs::read_to_string(directory.join("both/report.html")).expect("a page");
    assert_eq!(html.matches(">Verdict</h2>").count(), 2);
    let output = run(
        directory,
        &["report", "out", "out", "--history", "--out=both"],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let html = std::fs::read_to_string(directory.join("both/report.html")).expect("a page");
    assert!(html.contains("fillseq over time"));
}

#[test]
fn a_run_that_is_stopped_has_a_report_and_goes_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut child = esker(directory.path(), &SMALL).spawn().expect("it starts");
    let first = directory
        .path()
        .join("out/runs/pair00-chain000-turn0-engine0/step002.json");
    let until = Instant::now() + Duration::from_secs(60);
    while !first.exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(first.exists(), "some steps ended");
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.is_ok_and(|status| status.success()));
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    let part = record(directory.path());
    assert_eq!(part["complete"], false);
    let steps = part["results"].as_array().map_or(0, Vec::len);
    assert!((3..26).contains(&steps), "{steps}");
    let page = directory.path().join("out/report.html");
    let html = std::fs::read_to_string(page).expect("a page");
    assert!(html.contains("The run was stopped before its end."));
    let output = run(directory.path(), &SMALL);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(record(directory.path())["complete"], true);
}

#[test]
fn what_cannot_be_run_is_said_before_anything_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    let elsewhere = tempfile::tempdir().expect("a directory");
    let text_file = elsewhere.path().join("librocksdb.so");
    std::fs::write(&text_file, "no library").expect("written");
    let kind = |kind: &str| format!("--engine={kind}:{}", text_file.display());
    let (library, program) = (kind("lib"), kind("bin"));
    let cases: [(i32, &[&str], &str); 8] = [
        (2, &["nonsense"], "there is no experiment nonsense"),
        (2, &["byrx", "--nonsense=1"], "is not an argument of byrx"),
        (1, &["byrx", &library, "--out=o4"], "cannot load "),
        (1, &["linkbench", &library, "--out=o5"], "cannot load "),
        (1, &["byrx", &program, "--out=o6"], "cannot run "),
        (
            2,
            &["byrx", "--quick", "--num=x", "--out=o1"],
            "a whole number is wanted",
        ),
        (
            1,
            &["byrx", "--quick", "--engine=lib:/no/such.so", "--out=o2"],
            "there is no file /no/such.so",
        ),
        (
            2,
            &["byrx", "--quick", "--out=o3", "--", "--nonsense=1"],
            "unknown flag --nonsense",
        ),
    ];
    for (code, args, expected) in cases {
        let output = run(directory.path(), args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.starts_with("error: "), "{args:?}: {said}");
        assert!(said.contains(expected), "{args:?}: {said}");
        let made = std::fs::read_dir(directory.path())
            .expect("is there")
            .count();
        assert_eq!(made, 0, "{args:?} made a directory");
    }
    if Path::new(DEBIAN).exists() {
        let engine = format!("--engine=lib:{DEBIAN}");
        let output = run(directory.path(), &["linkbench", "--quick", &engine]);
        let said = text(&output.stderr);
        assert!(said.contains("does not export transactions"), "{said}");
        assert!(!directory.path().join("lab-linkbench-quick").exists());
    }
    let help = run(directory.path(), &[]);
    assert!(
        text(&help.stdout).contains("byrx"),
        "{}",
        text(&help.stdout)
    );
}

/// Values inline and in blob files, on this engine and on RocksDB where a library is installed: the
/// small form takes seconds.
#[test]
fn values_in_blob_files_run_beside_rocksdb() {
    let directory = tempfile::tempdir().expect("a directory");
    let library = format!("--engine=lib:{DEBIAN}");
    let mut args = vec![
        "blob",
        "--quick",
        "--mb=2",
        "--rounds=1",
        "--duration=0",
        "--plain=1024",
        "--zstd=4096",
        "--cache_mb=16",
        "--pairs=1",
        "--out=out",
        "--scratch=scratch",
        "--engine=esker",
    ];
    let has_library = Path::new(DEBIAN).exists();
    if has_library {
        args.push(&library);
    } else {
        println!("SKIPPED: there is no {DEBIAN}: Esker runs alone");
    }
    let output = run(directory.path(), &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let record = record(directory.path());
    assert_eq!(record["complete"], true);
    let engines = record["engines"].as_array().expect("engines");
    assert_eq!(engines.len(), if has_library { 5 } else { 3 });
    let results = record["results"].as_array().expect("results");
    // Five steps of two cells, twice on each engine.
    assert_eq!(results.len(), 2 * 5 * 2 * engines.len());
    for run in results {
        let engine = &engines[run["engine"].as_u64().expect("a place") as usize];
        let step = &record["steps"][run["step"].as_u64().expect("a place") as usize];
        let of = |figure: &str| run["figures"][figure]["value"].as_f64();
        let place = format!("{} {}: {run}", engine["name"], step["name"]);
        assert!(of("ops_sec") > Some(0.0), "{place}");
        if !step["name"]
            .as_str()
            .is_some_and(|name| name.ends_with(" overwrite"))
        {
            continue;
        }
        for figure in ["p99", "settled_ops_sec"] {
            assert!(of(figure) > Some(0.0), "{figure} of {place}");
        }
        // Processor time is counted in hundredths of a second.
        assert!(of("settled_cpu_us_op") >= Some(0.0), "{place}");
        assert!(of("space_amp_settled") > Some(0.3), "{place}");
        let is_apart = engine["name"]
            .as_str()
            .is_some_and(|name| [" blobs", " tiers"].iter().any(|form| name.ends_with(form)));
        assert_eq!(of("blob_sz") > Some(0.0), is_apart, "{place}");
    }
    let html = std::fs::read_to_string(directory.path().join("out/report.html")).expect("a page");
    assert!(html.contains("Esker blobs") && html.contains("Esker tiers"));
    if has_library {
        assert_eq!(record["base"], 4);
        assert_eq!(engines[4]["name"], "RocksDB 7.8.3 blobs");
        assert!(html.contains("Esker blobs beside RocksDB 7.8.3 blobs"));
        assert!(html.contains("Gates are open (1 pair"));
    }
}
