//! A program that was built against Debian's RocksDB, run unchanged on ours.
//!
//! `examples/c/tour.c` is compiled with the header and the library of Debian's `librocksdb-dev`.
//! This executable then runs twice, on Debian's library and with `LD_LIBRARY_PATH` on ours
//! (which answers to the name `librocksdb.so.7.8`), and has to say the same. Without the package it
//! skips.

use super::Request;
use super::library::stage;
use super::process::{must, watch};
use crate::Findings;
use std::io;
use std::path::Path;
use std::process::Command;

/// Compiles and runs the program on both libraries.
pub(super) fn run(request: &Request) -> io::Result<Findings> {
    if !Path::new("/usr/include/rocksdb/c.h").exists() {
        println!("Debian's program: skipped, the package librocksdb-dev is not installed");
        return Ok(Findings::new());
    }
    let staged = stage(request, "debian")?;
    let place = staged.fresh("debian")?;
    let program = place.join("tour");
    let mut command = Command::new("cc");
    command.args(["-O1", "-g", "-Wall", "-o"]).arg(&program);
    command
        .arg(request.root.join("examples/c/tour.c"))
        .arg("-lrocksdb");
    must(&mut command, "compiling against Debian's library")?;
    let needs = Command::new("readelf").arg("-d").arg(&program).output()?;
    let needs = String::from_utf8_lossy(&needs.stdout).into_owned();
    let soname = needs.lines().find(|line| line.contains("librocksdb"));
    println!("it asks for: {}", soname.unwrap_or("no RocksDB?").trim());

    let run = |name: &str, ours: bool| {
        let mut command = Command::new(&program);
        command.arg(place.join(name));
        if ours {
            command.env("LD_LIBRARY_PATH", &staged.directory);
        }
        watch(&mut command, request.patience, |_| {})
    };
    let theirs = run("theirs", false)?;
    let ours = run("ours", true)?;
    let mut findings = Findings::new();
    if !theirs.success() {
        findings.push(format!(
            "Debian's library: {}\n{}",
            theirs.how(),
            theirs.text()
        ));
    }
    if !ours.success() {
        findings.push(format!("our library: {}\n{}", ours.how(), ours.text()));
    }
    for (at, line) in theirs.lines.iter().enumerate() {
        let other = ours.lines.get(at).map_or("nothing", String::as_str);
        if line != other {
            findings.push(format!("Debian's says `{line}`, ours says `{other}`"));
        }
    }
    println!(
        "Debian's program: {} lines compared, {} differences",
        theirs.lines.len(),
        findings.len()
    );
    Ok(findings)
}
