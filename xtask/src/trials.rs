//! `cargo xtask fuzz` and `cargo xtask loom`: the crates that try others, with the flags they are
//! built with.

use crate::Findings;
use std::io;
use std::path::Path;
use std::process::Command;

fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

fn done(mut command: Command, what: &str) -> io::Result<Findings> {
    let status = command.status()?;
    Ok(if status.success() {
        Findings::new()
    } else {
        vec![format!("{what}: {status}")]
    })
}

/// Runs `esker-fuzz` with these arguments, or one target under libFuzzer with `--coverage`.
pub(crate) fn fuzz(root: &Path, args: &[&str]) -> io::Result<Findings> {
    if let Some(at) = args.iter().position(|a| *a == "--coverage") {
        return match (args, at) {
            ([target, rest @ ..], 1..) => coverage(root, target, &rest[at..]),
            ([_, target, rest @ ..], 0) => coverage(root, target, rest),
            _ => Ok(vec!["--coverage needs one target".to_owned()]),
        };
    }
    let mut command = cargo(root);
    command.args(["run", "--quiet", "--bin", "esker-fuzz", "--"]);
    command.args(args);
    done(command, "fuzz")
}

/// The instrumentation for libFuzzer that the compiler puts in; stable compilers know these flags.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// Runs one target under libFuzzer. New inputs go to `target/fuzz/TARGET`; other arguments are
/// libFuzzer's.
fn coverage(root: &Path, target: &str, args: &[&str]) -> io::Result<Findings> {
    let own = root.join("target/fuzz").join(target);
    std::fs::create_dir_all(&own)?;
    let mut command = cargo(root);
    command.args([
        "run",
        "--release",
        "--package",
        "esker-fuzz",
        "--features",
        "libfuzzer",
    ]);
    // With a target, build scripts and macros are built without the flags.
    command.args([
        "--bin",
        "esker-fuzz-coverage",
        "--target",
        "x86_64-unknown-linux-gnu",
    ]);
    command.args(["--target-dir", "target/coverage", "--"]);
    command.arg(&own);
    command.arg(root.join("crates/fuzz/corpus").join(target));
    command.arg(format!("-artifact_prefix={}/found-", own.display()));
    command.args(args);
    command.env("RUSTFLAGS", COVERAGE);
    command.env("ESKER_FUZZ_TARGET", target);
    done(command, "coverage")
}

/// Runs the models of the clock cache, of the memtable's index and of the hand-overs between
/// writers: every order of a few threads' steps, memory orderings included.
pub(crate) fn loom(root: &Path, args: &[&str]) -> io::Result<Findings> {
    let mut command = cargo(root);
    command.args(["test", "--release"]);
    command.args(["--package", "esker-cache"]);
    command.args(["--package", "esker-memindex", "--package", "esker-sync"]);
    command.args(["--test", "loom"]);
    command.args(["--target-dir", "target/loom", "--", "--nocapture"]);
    command.args(args);
    command.env("RUSTFLAGS", "--cfg loom");
    done(command, "loom")
}
