//! The suite of the Go binding `grocksdb`, on our library.
//!
//! Go's module client fetches the module, whose archive carries its tests; the test program is
//! linked to our library (`grocksdb_no_link` keeps its own flags out), and every test runs in a
//! process of its own.

use super::library::stage;
use super::process::{must, watch};
use super::skip::SkipList;
use super::tally::{Tally, Verdict};
use super::{Request, package};
use crate::Findings;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

const MODULE: &str = "github.com/linxGnu/grocksdb@v1.11.1";

/// The Go tool: `$GO`, or the one on the path, or where its installer puts it.
pub(crate) fn go() -> PathBuf {
    if let Some(given) = std::env::var_os("GO") {
        return given.into();
    }
    let usual = Path::new("/usr/local/go/bin/go");
    let on_path = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|directory| directory.join("go").exists())
    });
    if !on_path && usual.exists() {
        usual.to_owned()
    } else {
        "go".into()
    }
}

/// The module's sources in Go's cache.
fn fetch(work: &Path) -> io::Result<PathBuf> {
    std::fs::create_dir_all(work)?;
    let mut command = Command::new(go());
    command
        .current_dir(work)
        .args(["mod", "download", "-json", MODULE]);
    let ended = must(&mut command, &format!("fetching {MODULE}"))?;
    let found: serde_json::Value = serde_json::from_str(&ended.text())?;
    let directory = found["Dir"].as_str().map(PathBuf::from);
    directory.ok_or_else(|| io::Error::other(format!("no sources of {MODULE}")))
}

/// Returns the output of a failed test, without Go's frame.
fn said(lines: &[String]) -> String {
    let frame = ["=== ", "--- ", "FAIL", "exit status"];
    let lines = lines.iter().filter(|line| {
        !line.trim().is_empty() && !frame.iter().any(|f| line.trim_start().starts_with(f))
    });
    let lines: Vec<&str> = lines.map(String::as_str).take(14).collect();
    lines.join("\n")
}

/// Fetches, builds and runs the suite.
pub(super) fn run(request: &Request) -> io::Result<Findings> {
    let staged = stage(request, "go-suite")?;
    let module = staged.work.join("go-suite");
    package::copy(&fetch(&staged.work)?, &module)?;
    let header = match &request.include {
        Some(given) => given.clone(),
        None => package::fetch(&staged.work, package::ROCKSDB_SOURCES)?.join("rocksdb/include"),
    };
    let program = module.join("grocksdb.test");
    let mut command = Command::new(go());
    command.current_dir(&module);
    command.args(["test", "-c", "-vet=off", "-tags", "grocksdb_no_link", "-o"]);
    command.arg(&program).arg(".");
    command.env("CGO_ENABLED", "1");
    command.env("CGO_CFLAGS", format!("-I{}", header.display()));
    let directory = staged.directory.display();
    command.env(
        "CGO_LDFLAGS",
        format!("-L{directory} -lrocksdb -Wl,--allow-shlib-undefined"),
    );
    command.env("LD_LIBRARY_PATH", &staged.directory);
    must(&mut command, "building the suite of grocksdb")?;

    let run = |args: &[&str]| {
        let mut command = Command::new(&program);
        command.current_dir(&module).args(args);
        command.env("LD_LIBRARY_PATH", &staged.directory);
        watch(&mut command, request.patience, |_| {})
    };
    let list = run(&["-test.list", "."])?;
    let names = list.lines.iter().filter(|line| line.starts_with("Test"));
    let names: Vec<String> = names.cloned().collect();
    let skip = SkipList::read(&request.root.join("crates/capi/tests/go_suite_skip.txt"))?;
    let mut findings = skip.unknown(&names);
    if names.is_empty() {
        findings.push(format!("no tests: {}", list.text()));
    }
    let mut tally = Tally::default();
    for name in names.iter().filter(|name| request.wants(name)) {
        if let Some(reason) = skip.reason(name).filter(|_| !request.all) {
            tally.add("", name, Verdict::Skipped(reason.into()));
            continue;
        }
        let ended = run(&[
            "-test.run",
            &format!("^{name}$"),
            "-test.count=1",
            "-test.v",
        ])?;
        let verdict = if ended.success() {
            Verdict::Passed
        } else {
            Verdict::Failed(format!("{} ({})", said(&ended.lines), ended.how()))
        };
        tally.add("", name, verdict);
    }
    findings.extend(tally.close("the suite of grocksdb"));
    Ok(findings)
}
