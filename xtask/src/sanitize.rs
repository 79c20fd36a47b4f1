//! The Rust tests under ThreadSanitizer and AddressSanitizer.
//!
//! `cargo xtask sanitize thread|address [-p CRATE] [cargo test's arguments]`. Without a crate it
//! runs what has threads of its own or unsafe code. The standard library is built with the
//! sanitizer as well, because ThreadSanitizer reports its channels and reference counts otherwise:
//! that takes its source (`rustup component add rust-src`), from the toolchain in use or from
//! nightly. AddressSanitizer does without. Builds go below `target/sanitize-NAME`. Every report is
//! a finding; nothing is suppressed.

use crate::Findings;
use crate::oracle::process::watch;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const USAGE: &str = "usage: cargo xtask sanitize thread|address [-p CRATE] [ARGUMENTS OF cargo test]
  without a crate: the tests of esker-sync, esker-memindex, esker-cache, and those of the engine that have many threads
  examples:
    cargo xtask sanitize thread
    cargo xtask sanitize address -p esker-codec
    cargo xtask sanitize thread -p esker-txn --test pessimistic";

/// Crates with the tests that are run when none is named.
const USUAL: &[&[&str]] = &[
    &[
        "-p",
        "esker-sync",
        "-p",
        "esker-memindex",
        "-p",
        "esker-cache",
        "--lib",
    ],
    &["-p", "esker-env", "-p", "esker-codec", "--lib"],
    &[
        "-p",
        "esker-engine",
        "--test",
        "concurrent",
        "--test",
        "conflicts",
        "--test",
        "background",
    ],
    &[
        "-p",
        "esker-txn",
        "--test",
        "pessimistic",
        "--test",
        "optimistic",
    ],
];

/// The target that the host's programs are built for: with a target named, build scripts and macros
/// are not instrumented.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// A build, or a test under a sanitizer, may be silent for so long.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Which compiler is asked, and whether it can build the standard library.
struct Toolchain {
    arguments: Vec<&'static str>,
    has_source: bool,
}

/// Returns whether the toolchain that `argument` names has the source of the standard library.
fn has_source(argument: Option<&str>) -> bool {
    let mut rustc = Command::new("rustc");
    rustc.args(argument).args(["--print", "sysroot"]);
    rustc.env_remove("RUSTUP_TOOLCHAIN");
    let Ok(out) = rustc.output() else {
        return false;
    };
    let root = PathBuf::from(String::from_utf8_lossy(&out.stdout).trim());
    out.status.success() && root.join("lib/rustlib/src/rust/library/std").is_dir()
}

fn toolchain() -> Toolchain {
    let nightly = "+nightly";
    let (arguments, has_source) = match (has_source(None), has_source(Some(nightly))) {
        (true, _) => (vec![], true),
        (false, true) => (vec![nightly], true),
        (false, false) => (vec![], false),
    };
    Toolchain {
        arguments,
        has_source,
    }
}

/// Runs the tests that `args` name under the sanitizer that they name.
pub(crate) fn run(root: &Path, args: &[&str]) -> io::Result<Findings> {
    let (sanitizer, rest) = match args {
        [name @ ("thread" | "address"), rest @ ..] => (*name, rest),
        _ => return Err(io::Error::other(USAGE)),
    };
    let toolchain = toolchain();
    if sanitizer == "thread" && !toolchain.has_source {
        return Err(io::Error::other(
            "ThreadSanitizer needs the standard library's source: rustup component add rust-src",
        ));
    }
    let runs = match rest {
        [] => USUAL.to_vec(),
        rest => vec![rest],
    };
    let mut findings = Findings::new();
    for run in runs {
        findings.extend(test(root, sanitizer, &toolchain, run)?);
    }
    Ok(findings)
}

fn test(root: &Path, sanitizer: &str, toolchain: &Toolchain, run: &[&str]) -> io::Result<Findings> {
    let mut flags = format!("-Zsanitizer={sanitizer}");
    let mut cargo = Command::new("cargo");
    cargo.args(&toolchain.arguments).arg("test");
    if toolchain.has_source {
        cargo.arg("-Zbuild-std");
    } else {
        // The standard library as it is has no marks around its memory, which hides nothing of
        // ours.
        flags += " -Cunsafe-allow-abi-mismatch=sanitizer";
    }
    let target = root.join("target").join(format!("sanitize-{sanitizer}"));
    cargo
        .args(["--target", TARGET, "--no-fail-fast"])
        .args(run)
        .env_remove("RUSTUP_TOOLCHAIN")
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", flags)
        .env(
            "CARGO_TARGET_DIR",
            std::env::var_os("CARGO_TARGET_DIR").map_or(target, |dir| {
                PathBuf::from(dir).join(format!("sanitize-{sanitizer}"))
            }),
        )
        .env("CARGO_INCREMENTAL", "0")
        // Everything that a test leaves behind lives as long as its process.
        .env("ASAN_OPTIONS", "detect_leaks=0")
        .env("TSAN_OPTIONS", "halt_on_error=0")
        .current_dir(root);
    println!("==> {sanitizer}: {}", run.join(" "));
    let ended = watch(&mut cargo, PATIENCE, |line| {
        if line.starts_with("test result") || is_report(line) {
            println!("{line}");
        }
    })?;
    let mut findings: Findings = ended
        .lines
        .iter()
        .filter(|line| is_report(line))
        .cloned()
        .collect();
    if !ended.success() {
        // What a person needs is in the whole text.
        let log = root
            .join("target")
            .join(format!("sanitize-{sanitizer}.log"));
        std::fs::create_dir_all(root.join("target"))?;
        std::fs::write(&log, ended.text())?;
        findings.push(format!(
            "{}: {}; all it said is in {}",
            run.join(" "),
            ended.how(),
            log.display()
        ));
    }
    Ok(findings)
}

/// Returns whether a line begins a sanitizer's report.
fn is_report(line: &str) -> bool {
    line.contains("WARNING: ThreadSanitizer") || line.contains("ERROR: AddressSanitizer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_told_from_other_lines() {
        assert!(is_report("WARNING: ThreadSanitizer: data race (pid=7)"));
        assert!(is_report(
            "==7==ERROR: AddressSanitizer: heap-use-after-free on"
        ));
        assert!(!is_report("test threads_agree ... ok"));
    }
}
