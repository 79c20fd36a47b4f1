//! RocksDB's own C test, phase by phase.
//!
//! The test is one `main` whose phases hand a database on to each other, and a failing check
//! aborts. Its source is therefore rewritten a little before it is compiled: every phase is guarded
//! by its name (`c_test_harness.h`). When a phase dies, the program is run again from the start
//! without that phase, so that one failure hides no other; what a phase needs of the database is
//! set up by the guard when the phase before it did not run.

use super::library::{Staged, stage};
use super::process::{Ended, must, watch};
use super::skip::SkipList;
use super::tally::{Tally, Verdict};
use super::{Request, package};
use crate::Findings;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

const HARNESS: &str = include_str!("c_test_harness.h");
/// The exit code of valgrind when it saw an error.
const VALGRIND_ERRORS: i32 = 99;

/// The rewritten source and the names of its phases in order.
struct Rewritten {
    source: String,
    phases: Vec<String>,
}

/// The name in a line that starts a phase.
fn phase_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("  StartPhase(\"")?;
    rest.split_once("\");").map(|(name, _)| name)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// How the lines of a phase touch the variable `db` first, as the harness calls it.
fn first_use(lines: &[&str]) -> &'static str {
    for line in lines {
        let code = line.split("//").next().unwrap_or_default();
        if code.contains("transactiondb_open(") && code.contains(" dbname,") {
            return "oracle_opens_database";
        }
        let bytes = code.as_bytes();
        for (at, _) in code.match_indices("db") {
            let before = at.checked_sub(1).map(|i| bytes[i]);
            let after = bytes.get(at + 2).copied();
            let stands_alone = !before.is_some_and(is_word) && !after.is_some_and(is_word);
            if !stands_alone || code[..at].ends_with("rocksdb_t* ") {
                continue;
            }
            if code[..at].ends_with("rocksdb_close(") {
                return "oracle_no_database";
            }
            return if code[at + 2..].starts_with(" = ") {
                "oracle_opens_database"
            } else {
                "oracle_uses_database"
            };
        }
    }
    "oracle_no_database"
}

/// Guards every phase of `source` by its name.
fn rewrite(source: &str) -> io::Result<Rewritten> {
    let lines: Vec<&str> = source.lines().collect();
    let starts: Vec<usize> = (0..lines.len())
        .filter(|&at| phase_name(lines[at]).is_some())
        .collect();
    let end = lines.iter().rposition(|line| line.contains("\"PASS\\n\""));
    let helper = lines.iter().position(|l| l.contains("void StartPhase("));
    let main = lines.iter().position(|line| line.starts_with("int main("));
    let (Some(end), Some(helper), Some(main)) = (end, helper, main) else {
        return Err(io::Error::other("this is not the C test that we know"));
    };
    let first = starts.first().copied().unwrap_or(end);
    let mut rewritten = Rewritten {
        source: String::new(),
        phases: Vec::new(),
    };
    let mut out = Vec::new();
    for (at, &line) in lines.iter().enumerate() {
        if at == helper {
            out.push(HARNESS.to_owned());
            out.push(format!("#line {} \"c_test.c\"", at + 1));
        }
        if let Some(name) = phase_name(line) {
            let next = starts.iter().find(|&&start| start > at).unwrap_or(&end);
            let usage = first_use(&lines[at + 1..*next]);
            let close = if at == first { "" } else { "} " };
            out.push(format!(
                "{close}if (oracle_begin(\"{name}\", {usage}, &db, options, dbname)) {{ {line}"
            ));
            rewritten.phases.push(name.to_owned());
        } else if at == end {
            out.push(format!("}} oracle_end(); {line}"));
        } else if at > main && at < first && line.starts_with("  rocksdb_") && !line.contains('(') {
            out.push(line.replace(';', " = NULL;"));
        } else {
            out.push(line.to_owned());
        }
    }
    rewritten.source = out.join("\n");
    rewritten.source.push('\n');
    Ok(rewritten)
}

/// Compiles the rewritten test against the staged library.
fn compile(request: &Request, staged: &Staged, sources: &Path) -> io::Result<(PathBuf, Rewritten)> {
    let text = std::fs::read_to_string(sources.join("rocksdb/db/c_test.c"))?;
    let rewritten = rewrite(&text)?;
    let place = staged.fresh("c-test")?;
    let file = place.join("c_test.c");
    std::fs::write(&file, &rewritten.source)?;
    let program = place.join("c_test");
    let mut command = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()));
    command
        .args(["-O0", "-g", "-w", "-o"])
        .arg(&program)
        .arg(&file);
    if request.sanitize {
        command.args(["-fsanitize=address", "-fno-omit-frame-pointer"]);
    }
    let header = request.include.clone();
    let header = header.unwrap_or_else(|| sources.join("rocksdb/include"));
    command.arg("-I").arg(&header);
    command.arg("-I").arg(sources.join("rocksdb"));
    command.arg("-L").arg(&staged.directory);
    command.args(["-lrocksdb", "-Wl,--allow-shlib-undefined"]);
    must(&mut command, "compiling the C test")?;
    Ok((program, rewritten))
}

/// One run from the start, without the phases of `skip`.
fn run_once(
    request: &Request,
    staged: &Staged,
    program: &Path,
    skip: &BTreeMap<String, Verdict>,
) -> io::Result<Ended> {
    let place = std::env::temp_dir().join(format!("esker-c-test-{}", std::process::id()));
    std::fs::create_dir_all(&place)?;
    let mut command = if request.valgrind {
        let mut command = Command::new("valgrind");
        command.arg(format!("--error-exitcode={VALGRIND_ERRORS}"));
        command
            .args(["--leak-check=no", "--num-callers=30"])
            .arg(program);
        command
    } else {
        Command::new(program)
    };
    command.env("TEST_TMPDIR", &place);
    command.env("LD_LIBRARY_PATH", &staged.directory);
    if std::env::var_os("ASAN_OPTIONS").is_none() {
        command.env("ASAN_OPTIONS", "detect_leaks=0");
    }
    let names: Vec<&str> = skip.keys().map(String::as_str).collect();
    command.env("ESKER_ORACLE_SKIP", names.join("\n"));
    let ended = watch(&mut command, request.patience, |_| {});
    std::fs::remove_dir_all(&place)?;
    ended
}

/// The phase that was running at the end, with what it said.
fn running(lines: &[String]) -> Option<(String, String)> {
    let mark = lines
        .iter()
        .rposition(|line| line.starts_with("oracle: "))?;
    let begin = (0..=mark).rev().find_map(|at| {
        let name = lines[at].strip_prefix("oracle: begin ")?;
        Some((at, name.to_owned()))
    })?;
    let said: Vec<&str> = lines[begin.0 + 1..]
        .iter()
        .map(String::as_str)
        .filter(|line| !line.starts_with("=== Test"))
        .collect();
    Some((begin.1, said.join("\n")))
}

/// The phases that are not to run, each with its verdict.
fn skipped(
    request: &Request,
    phases: &[String],
) -> io::Result<(BTreeMap<String, Verdict>, Findings)> {
    let path = request.root.join("crates/capi/tests/c_test_skip.txt");
    let mut list = SkipList::read(&path)?;
    if let Some(more) = &request.skip {
        list.extend(SkipList::read(more)?);
    }
    let findings = list.unknown(phases);
    let mut skip = BTreeMap::new();
    for phase in phases {
        let frame = ["create_objects", "cleanup"].contains(&phase.as_str());
        let reason = match list.reason(phase) {
            Some(reason) if !request.all => Some(reason),
            _ if !frame && !request.wants(phase) => Some("not asked for"),
            _ => None,
        };
        if let Some(reason) = reason {
            skip.insert(phase.clone(), Verdict::Skipped(reason.to_owned()));
        }
    }
    Ok((skip, findings))
}

/// Fetches, compiles and runs the C test.
pub(super) fn run(request: &Request) -> io::Result<Findings> {
    let staged = stage(request, "c-test")?;
    let sources = package::fetch(&staged.work, package::ROCKSDB_SOURCES)?;
    let (program, rewritten) = compile(request, &staged, &sources)?;
    let (mut done, mut findings) = skipped(request, &rewritten.phases)?;
    let last = loop {
        println!(
            "running the C test without {} of its phases ...",
            done.len()
        );
        let ended = run_once(request, &staged, &program, &done)?;
        let finished = ended.lines.iter().any(|line| line == "PASS");
        let stopped = running(&ended.lines).filter(|_| !finished);
        let Some((phase, said)) = stopped else {
            break ended;
        };
        println!("{phase} died: {}", ended.how());
        let why = format!("{said}\n({})", ended.how());
        if done.insert(phase.clone(), Verdict::Failed(why)).is_some() {
            return Err(io::Error::other(format!("{phase} does not stay out")));
        }
    };
    let mut tally = Tally::default();
    for (at, phase) in rewritten.phases.iter().enumerate() {
        let passed = || {
            last.lines
                .iter()
                .any(|l| l.strip_prefix("oracle: passed ") == Some(phase))
        };
        let verdict = match done.remove(phase) {
            Some(verdict) => verdict,
            None if passed() => Verdict::Passed,
            None if at == 0 => Verdict::Failed("a check failed; the rest of the phase ran".into()),
            None => Verdict::Failed("the program did not come to it".into()),
        };
        tally.add("", phase, verdict);
    }
    if !last.success() {
        let from = last.lines.len().saturating_sub(60);
        println!("{}", last.lines[from..].join("\n"));
        findings.push(format!("the last run ended badly: {}", last.how()));
    }
    findings.extend(tally.close("RocksDB's C test"));
    Ok(findings)
}
