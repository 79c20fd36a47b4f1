//! Our own hostile C program: null pointers, closed and foreign handles, absurd lengths, callbacks
//! that fail or call back.
//!
//! `crates/capi/tests/hostile.c` holds one function for each misuse. Every case runs in a process
//! of its own and has to end in an orderly way, without a signal and in time.

use super::library::stage;
use super::process::{must, watch};
use super::tally::{Tally, Verdict};
use super::{Request, package};
use crate::Findings;
use std::io;
use std::process::Command;

/// Compiles the program and runs its cases.
pub(super) fn run(request: &Request) -> io::Result<Findings> {
    let staged = stage(request, "hostile")?;
    let header = match &request.include {
        Some(given) => given.clone(),
        None => package::fetch(&staged.work, package::ROCKSDB_SOURCES)?.join("rocksdb/include"),
    };
    let place = staged.fresh("hostile")?;
    let program = place.join("hostile");
    let mut command = Command::new("cc");
    command
        .args(["-O1", "-g", "-Wall", "-pthread", "-o"])
        .arg(&program);
    if request.sanitize {
        command.args(["-fsanitize=address", "-fno-omit-frame-pointer"]);
    }
    command.arg(request.root.join("crates/capi/tests/hostile.c"));
    command
        .arg("-I")
        .arg(&header)
        .arg("-L")
        .arg(&staged.directory);
    command.args(["-lrocksdb", "-Wl,--allow-shlib-undefined"]);
    must(&mut command, "compiling the hostile program")?;

    let run = |name: &str| {
        let mut command = Command::new(if request.valgrind { "valgrind" } else { "env" });
        if request.valgrind {
            command.args(["-q", "--error-exitcode=99"]);
        }
        command.arg(&program).arg(name).arg(place.join("work"));
        command.env("LD_LIBRARY_PATH", &staged.directory);
        if std::env::var_os("ASAN_OPTIONS").is_none() {
            command.env("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1");
        }
        watch(&mut command, request.patience, |_| {})
    };
    let list = run("--list")?;
    let mut tally = Tally::default();
    let names = list
        .lines
        .iter()
        .filter_map(|line| line.strip_prefix("case "));
    for name in names.filter(|name| request.wants(name)) {
        let ended = run(name)?;
        let verdict = if ended.success() {
            Verdict::Passed
        } else {
            Verdict::Failed(format!("{} ({})", ended.text(), ended.how()))
        };
        tally.add("", name, verdict);
    }
    let mut findings = tally.close("the hostile program");
    if tally.passed() + findings.len() == 0 {
        findings.push(format!("no cases: {}", list.text()));
    }
    Ok(findings)
}
