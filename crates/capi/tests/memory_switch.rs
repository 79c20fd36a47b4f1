//! `ESKER_MEMORY` in the environment of a C program that knows nothing of it, on the library as
//! cargo built it.

#[path = "common/loaded.rs"]
mod loaded;
#[path = "common/program.rs"]
mod program;

use loaded::directory;
use program::{compile, copy_program};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use tempfile::TempDir;

/// The program; `None` where there is no compiler.
fn program() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<(TempDir, PathBuf)>> = OnceLock::new();
    let built = BUILT.get_or_init(|| compile("memory_program.c"));
    built.as_ref().map(|(_, program)| program.as_path())
}

/// Runs the program with `count` databases and so many megabytes.
fn run(dir: &Path, count: u32, megabytes: u32, memory: Option<&str>) -> Option<Output> {
    let mut command = Command::new(program()?);
    command.arg(dir).arg(count.to_string());
    command
        .arg(megabytes.to_string())
        .env_remove("ESKER_MEMORY");
    command.envs(memory.map(|memory| ("ESKER_MEMORY", memory)));
    Some(command.output().expect("it starts"))
}

fn number(output: &Output, name: &str) -> u64 {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().find_map(|l| l.strip_prefix(name));
    let number = line.and_then(|n| n.trim().parse().ok());
    number.unwrap_or_else(|| panic!("no {name}: {text}{errors}"))
}

fn log(dir: &Path) -> String {
    fs::read_to_string(dir.join("0/LOG")).unwrap_or_default()
}

#[test]
fn all_databases_and_their_caches_stay_within_the_number() {
    let (dir, free_dir) = (directory(), directory());
    let Some(bounded) = run(dir.path(), 8, 200, Some("64M")) else {
        return;
    };
    let free = run(free_dir.path(), 8, 200, None).expect("as above");
    let (bounded_kb, free_kb) = (number(&bounded, "resident"), number(&free, "resident"));
    println!("resident: {bounded_kb} KB of 64 MB, {free_kb} KB without");
    // Code, stacks and the allocator's own are beside the budget.
    assert!(bounded_kb < (64 + 56) << 10, "{bounded_kb} KB");
    assert!(
        free_kb > 200 << 10,
        "{free_kb} KB: the test needs more data"
    );
    // The application's caches report what it gave them.
    assert_eq!(number(&bounded, "capacity"), 64 << 20);
    let line = "ESKER_MEMORY=64M: 67108864 bytes, for all databases and caches of this process";
    assert!(log(dir.path()).contains(line));
    assert!(!log(free_dir.path()).contains("ESKER_MEMORY"));
}

#[test]
fn a_part_of_the_limit_names_the_limit() {
    for memory in ["auto", "25%"] {
        let dir = directory();
        let Some(output) = run(dir.path(), 1, 1, Some(memory)) else {
            return;
        };
        assert!(output.status.success());
        let log = log(dir.path());
        let line = log.lines().find(|l| l.contains("ESKER_MEMORY="));
        let line = line.expect("the LOG has it");
        assert!(line.contains(&format!("ESKER_MEMORY={memory}: ")), "{line}");
        assert!(line.contains(" in /"), "{line}");
    }
}

#[test]
fn a_value_that_cannot_be_read_refuses_the_open() {
    for wrong in [
        "512MB",
        "0",
        "15M",
        "a lot",
        "-1",
        "101%",
        "AUTO",
        "99999999999T",
    ] {
        let dir = directory();
        let Some(output) = run(dir.path(), 1, 1, Some(wrong)) else {
            return;
        };
        assert_eq!(output.status.code(), Some(1), "{wrong}");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let quoted = format!("ESKER_MEMORY={wrong:?}");
        assert!(errors.starts_with("Invalid argument: "), "{errors}");
        assert!(errors.contains(&quoted), "{errors}");
        assert!(!dir.path().join("0").exists(), "nothing was made");
    }
    // An empty value is none.
    let dir = directory();
    let output = run(dir.path(), 1, 1, Some("")).expect("as above");
    assert!(output.status.success());
}

#[test]
fn a_set_uid_program_ignores_it() {
    let Some(program) = program() else {
        return;
    };
    const NOBODY: u32 = 65534;
    let dir = tempfile::tempdir().expect("a directory");
    let copy = dir.path().join("set_uid");
    copy_program(program, &copy);
    let owners =
        [copy.as_path(), dir.path()].map(|p| std::os::unix::fs::chown(p, Some(NOBODY), None));
    if owners.iter().any(Result::is_err) {
        println!("skipped: only root can give a program to another user");
        return;
    }
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).expect("a mode");
    let db = dir.path().join("db");
    fs::create_dir(&db).expect("made");
    std::os::unix::fs::chown(&db, Some(NOBODY), None).expect("it is given away");
    let mut command = Command::new(&copy);
    command
        .arg(&db)
        .args(["1", "1"])
        .env("ESKER_MEMORY", "a lot");
    let output = command.output().expect("it starts");
    if !output.status.success() {
        // A filesystem that gives no rights to programs has the value refused.
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        assert!(mounts.contains("nosuid"), "{output:?}");
        println!("skipped: this filesystem gives no rights to programs");
    }
}
