//! The suite of the `rocksdb` crate, and that of `librocksdb-sys`, on our library.
//!
//! The packages carry their tests. Test programs are built by cargo as their authors meant it, with
//! `ROCKSDB_LIB_DIR` in the place of the bundled RocksDB; then every test runs in a process of its
//! own, so that a crash costs one test. Documentation tests run as cargo runs them.

use super::library::{Staged, stage};
use super::process::{Ended, must, watch};
use super::skip::SkipList;
use super::tally::{Tally, Verdict};
use super::{Request, package};
use crate::Findings;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

const CRATE: (&str, &str) = ("rocksdb", "=0.25.0");
const FEATURES: &str = "snappy,lz4,zstd,zlib,bzip2,bindgen-runtime";

/// A test program, and what its source file is called.
struct Program {
    group: String,
    path: PathBuf,
}

/// Paths and settings that a build or a run of the suite needs to find our library.
struct Place<'a> {
    request: &'a Request,
    staged: &'a Staged,
    header: PathBuf,
}

impl Place<'_> {
    fn cargo(&self, package: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(package::cargo());
        command.current_dir(package).args(args);
        self.environment(&mut command);
        command
    }

    fn environment(&self, command: &mut Command) {
        let staged = self.staged;
        command.env("ROCKSDB_LIB_DIR", &staged.directory);
        command.env("LD_LIBRARY_PATH", &staged.directory);
        // Tests that compile programs look for their own package there.
        if let Some(package) = command.get_current_dir() {
            let name = package.file_name().map(std::ffi::OsStr::to_owned);
            let package = package.to_owned();
            command.env("CARGO_MANIFEST_DIR", package);
            command.env("CARGO_PKG_NAME", name.unwrap_or_default());
        }
        command.env("ROCKSDB_INCLUDE_DIR", &self.header);
        command.env("CARGO_TARGET_DIR", staged.work.join("rust-target"));
        command.env("RUSTFLAGS", "-Clink-arg=-Wl,--allow-shlib-undefined");
        command.env("RUSTDOCFLAGS", "-Clink-arg=-Wl,--allow-shlib-undefined");
        if std::env::var_os("BINDGEN_EXTRA_CLANG_ARGS").is_none() {
            // libclang without its own headers finds the C compiler's.
            let ask = Command::new("cc").arg("-print-file-name=include").output();
            let found = ask.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
            if let Ok(found) = found {
                command.env("BINDGEN_EXTRA_CLANG_ARGS", format!("-isystem {found}"));
            }
        }
    }
}

/// The test programs of a package, built.
fn build(place: &Place<'_>, package: &Path, args: &[&str], what: &str) -> io::Result<Vec<Program>> {
    let mut all = vec![
        "test",
        "--no-run",
        "--message-format=json-render-diagnostics",
    ];
    all.extend(args);
    let ended = must(&mut place.cargo(package, &all), what)?;
    let messages = ended.lines.iter().filter(|line| line.starts_with('{'));
    let mut programs = Vec::new();
    for message in messages {
        let message: serde_json::Value = serde_json::from_str(message)?;
        let is_test = message["profile"]["test"] == true;
        let path = message["executable"].as_str();
        let group = message["target"]["name"].as_str();
        if let (true, Some(path), Some(group)) = (is_test, path, group) {
            programs.push(Program {
                group: group.into(),
                path: path.into(),
            });
        }
    }
    programs.sort_by(|a, b| a.group.cmp(&b.group));
    Ok(programs)
}

/// The names of a program's tests; ignored ones are not among them.
fn tests(place: &Place<'_>, package: &Path, program: &Program) -> io::Result<Vec<String>> {
    let list = |extra: &[&str]| -> io::Result<Vec<String>> {
        let mut command = Command::new(&program.path);
        command.current_dir(package).arg("--list").args(extra);
        place.environment(&mut command);
        let ended = watch(&mut command, place.request.patience, |_| {})?;
        let names = ended
            .lines
            .iter()
            .filter_map(|line| line.strip_suffix(": test"));
        let names = names.map(str::to_owned).collect();
        if ended.success() {
            Ok(names)
        } else {
            Err(io::Error::other(format!(
                "{}: {}",
                program.group,
                ended.text()
            )))
        }
    };
    let ignored = list(&["--ignored"])?;
    let mut names = list(&[])?;
    names.retain(|name| !ignored.contains(name));
    Ok(names)
}

fn verdict(ended: &Ended) -> Verdict {
    if ended.success() {
        return Verdict::Passed;
    }
    let said = ended.lines.iter().filter(|line| {
        let frame = [
            "running ",
            "failures:",
            "test result:",
            "----",
            "note: run with",
        ];
        !line.trim().is_empty() && !frame.iter().any(|f| line.starts_with(f))
    });
    let said: Vec<&str> = said.map(String::as_str).take(12).collect();
    Verdict::Failed(format!("{} ({})", said.join("\n"), ended.how()))
}

/// Runs every test of a package's programs, each in a process of its own.
fn run_programs(
    place: &Place<'_>,
    package: &Path,
    programs: &[Program],
    skip: &SkipList,
    tally: &mut Tally,
) -> io::Result<Vec<String>> {
    let mut known = Vec::new();
    for program in programs {
        for name in tests(place, package, program)? {
            let full = format!("{}::{name}", program.group);
            known.push(full.clone());
            if !place.request.wants(&full) {
                continue;
            }
            if let Some(reason) = skip.reason(&full).filter(|_| !place.request.all) {
                tally.add(&program.group, &name, Verdict::Skipped(reason.into()));
                continue;
            }
            let mut command = Command::new(&program.path);
            command.current_dir(package);
            command.args(["--exact", &name, "--nocapture", "--test-threads=1"]);
            place.environment(&mut command);
            let ended = watch(&mut command, place.request.patience, |_| {})?;
            tally.add(&program.group, &name, verdict(&ended));
        }
    }
    Ok(known)
}

/// Runs the examples in a package's documentation.
fn run_documentation(
    place: &Place<'_>,
    package: &Path,
    skip: &SkipList,
    tally: &mut Tally,
) -> io::Result<Vec<String>> {
    println!("running the documentation's examples ...");
    let args = [
        "test",
        "--doc",
        "--no-default-features",
        "--features",
        FEATURES,
    ];
    let mut command = place.cargo(package, &args);
    let ended = watch(&mut command, place.request.patience * 10, |_| {})?;
    let mut known = Vec::new();
    for line in &ended.lines {
        let line = line
            .strip_prefix("test ")
            .and_then(|l| l.rsplit_once(" ... "));
        let Some((name, result)) = line else { continue };
        // Line numbers say more than a file name alone, and there is nothing else that is unique.
        let full = format!("doc::{name}");
        known.push(full.clone());
        let verdict = match (result, skip.reason(&full)) {
            ("ignored", _) => continue,
            ("ok", _) => Verdict::Passed,
            (_, Some(reason)) => Verdict::Skipped(reason.into()),
            _ => Verdict::Failed(output_of(&ended, name)),
        };
        tally.add("doc", name, verdict);
    }
    if known.is_empty() {
        tally.add("doc", "all", Verdict::Failed(ended.text()));
    }
    Ok(known)
}

/// Returns the output of an example, as rustdoc repeats it at the end.
fn output_of(ended: &Ended, name: &str) -> String {
    let head = format!("---- {name} stdout ----");
    let lines = ended.lines.iter().skip_while(|line| **line != head).skip(1);
    let lines: Vec<&str> = lines
        .take_while(|line| !line.starts_with("---- "))
        .take(12)
        .map(String::as_str)
        .collect();
    lines.join("\n")
}

/// Returns whether a libclang can be found, for the crate's generated bindings.
fn libclang_is_there() -> bool {
    if std::env::var_os("LIBCLANG_PATH").is_some() {
        return true;
    }
    let listed = Command::new("ldconfig").arg("-p").output();
    if listed.is_ok_and(|o| String::from_utf8_lossy(&o.stdout).contains("libclang")) {
        return true;
    }
    let roots = std::fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .flatten();
    roots
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("llvm-"))
        .flat_map(|entry| {
            std::fs::read_dir(entry.path().join("lib"))
                .into_iter()
                .flatten()
        })
        .flatten()
        .any(|entry| entry.file_name().to_string_lossy().starts_with("libclang"))
}

/// Fetches, builds and runs both suites.
pub(super) fn run(request: &Request) -> io::Result<Findings> {
    if !libclang_is_there() {
        return Err(io::Error::other(
            "the crate's bindings need libclang: install it (Debian: libclang1-14) or set LIBCLANG_PATH",
        ));
    }
    let staged = stage(request, "rust-suite")?;
    let sys = package::fetch(&staged.work, package::ROCKSDB_SOURCES)?;
    let sources = package::fetch(&staged.work, CRATE)?;
    let header = request.include.clone();
    let place = Place {
        request,
        staged: &staged,
        header: header.unwrap_or_else(|| sys.join("rocksdb/include")),
    };
    let skip = SkipList::read(&request.root.join("crates/capi/tests/rust_suite_skip.txt"))?;
    let mut tally = Tally::default();

    let package = staged.work.join("rust-suite/rocksdb");
    package::copy(&sources, &package)?;
    let features = ["--no-default-features", "--features", FEATURES];
    let args = [&features[..], &["--lib", "--tests"]].concat();
    let programs = build(&place, &package, &args, "building the suite of rocksdb")?;
    let mut known = run_programs(&place, &package, &programs, &skip, &mut tally)?;
    if request
        .only
        .as_deref()
        .is_none_or(|only| only.starts_with("doc"))
    {
        known.extend(run_documentation(&place, &package, &skip, &mut tally)?);
    }

    let package = staged.work.join("rust-suite/librocksdb-sys");
    package::copy(&sys, &package)?;
    let args = ["--test", "ffi"];
    let programs = build(
        &place,
        &package,
        &args,
        "building the suite of librocksdb-sys",
    )?;
    known.extend(run_programs(
        &place, &package, &programs, &skip, &mut tally,
    )?);

    let mut findings = match request.only {
        None => skip.unknown(&known),
        Some(_) => Findings::new(),
    };
    findings.extend(tally.close("the suites of rocksdb and librocksdb-sys"));
    Ok(findings)
}
