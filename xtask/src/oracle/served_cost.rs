//! Instructions of a put, a get and a seek through the C library with `ESKER_STATS` and without it,
//! under callgrind.
//!
//! `crates/capi/tests/stats_cost.c` runs with different numbers of operations, so that opening,
//! loading and the server's beginning cancel out. Says so and ends well where valgrind is not
//! installed.

use super::Request;
use super::library::stage;
use super::process::must;
use crate::Findings;
use std::io;
use std::path::Path;
use std::process::Command;

/// Most instructions with the server, as a multiple of those without it.
const LIMIT: f64 = 1.01;

/// Operations of the two runs.
const COUNTS: [u64; 2] = [4_000, 24_000];

/// Runs under callgrind, in a directory of their own.
struct Counting<'a> {
    program: &'a Path,
    library: &'a Path,
    place: &'a Path,
}

impl Counting<'_> {
    /// Instructions of a run with `count` operations.
    fn run(&self, kind: &str, count: u64, stats: &str) -> io::Result<u64> {
        let data = self.place.join("data");
        let _gone = std::fs::remove_dir_all(&data);
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(self.program)
            .args([kind, &count.to_string()])
            .arg(&data)
            .env("LD_LIBRARY_PATH", self.library)
            .env("ESKER_STATS", stats)
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let counted = said.lines().find_map(|l| l.split("Collected : ").nth(1));
        counted
            .filter(|_| output.status.success())
            .and_then(|n| n.trim().parse().ok())
            .ok_or_else(|| io::Error::other(format!("{kind}: {}: {said}", output.status)))
    }

    /// Instructions of one operation.
    fn each(&self, kind: &str, stats: &str) -> io::Result<f64> {
        let few = self.run(kind, COUNTS[0], stats)?;
        let many = self.run(kind, COUNTS[1], stats)?;
        Ok(many.saturating_sub(few) as f64 / (COUNTS[1] - COUNTS[0]) as f64)
    }
}

/// Counts, and compares with the limit.
pub(super) fn run(request: &Request) -> io::Result<Findings> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: valgrind is not installed");
        return Ok(Findings::new());
    }
    let staged = stage(request, "served-cost")?;
    let place = staged.fresh("served-cost")?;
    let program = place.join("stats_cost");
    let sources = request.root.join("crates/capi");
    let mut compile = Command::new("cc");
    compile
        .arg("-O1")
        .arg("-I")
        .arg(sources.join("include"))
        .arg(sources.join("tests/stats_cost.c"))
        .arg("-L")
        .arg(&staged.directory)
        .arg("-lrocksdb")
        .arg("-o")
        .arg(&program);
    must(&mut compile, "compiling stats_cost.c")?;
    let counting = Counting {
        program: &program,
        library: &staged.directory,
        place: &place,
    };
    let socket = format!("unix:{}/%p", std::env::temp_dir().display());
    let mut findings = Findings::new();
    println!("instructions of one: without the server, with it, ratio");
    for kind in ["put", "get", "seek"] {
        let (off, on) = (counting.each(kind, "")?, counting.each(kind, &socket)?);
        let ratio = on / off;
        println!("{kind:<5} {off:>9.1} {on:>9.1} {ratio:>7.4}");
        if ratio > LIMIT {
            findings.push(format!("{kind}: {ratio:.4} is more than {LIMIT}"));
        }
    }
    Ok(findings)
}
