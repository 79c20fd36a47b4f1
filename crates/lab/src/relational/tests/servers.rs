//! Servers end with their owner, however that ends.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Pace, linkbench, plan};
use crate::Result;
use crate::relational::drive::StepFigures;
use crate::relational::engine::Engine;
use crate::relational::mariadb::{self, Storage};
use crate::relational::postgres;

/// A server that can be started here, with its process.
type Opened = (Box<dyn Engine>, u32);

fn storage(kind: &str) -> Storage {
    match kind {
        "myrocks" => Storage::MyRocks(None),
        _ => Storage::InnoDb,
    }
}

fn open(kind: &str, directory: &Path) -> Result<Opened> {
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory, open)?;
    let plan = plan(directory, linkbench::schema());
    if kind == "postgres" {
        postgres::programs()?;
        let server = postgres::open(&plan)?;
        let process = server.process();
        return Ok((Box::new(server), process));
    }
    let storage = storage(kind);
    mariadb::programs(&storage)?;
    let server = mariadb::open(&plan, storage)?;
    let process = server.process();
    Ok((Box::new(server), process))
}

fn is_installed(kind: &str) -> bool {
    let there = match kind {
        "postgres" => postgres::programs().map(|_| ()),
        _ => mariadb::programs(&storage(kind)).map(|_| ()),
    };
    if let Err(why) = &there {
        println!("{kind} skips: {why}");
    }
    there.is_ok()
}

/// Returns whether a process runs; one that ended and was not waited for does not.
fn runs(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}

fn ends(process: u32) -> bool {
    let begin = Instant::now();
    while runs(process) && begin.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(50));
    }
    !runs(process)
}

#[test]
fn a_server_ends_when_it_is_dropped() {
    for kind in ["postgres", "mariadb"] {
        if !is_installed(kind) {
            continue;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let (engine, process) = open(kind, directory.path()).expect(kind);
        assert!(runs(process), "{kind}");
        let used = engine.server_usage().expect("figures");
        assert!(
            used.rss_bytes > 1 << 20 && used.device_write_bytes > 0,
            "{kind}: {used:?}"
        );
        drop(engine);
        assert!(!runs(process), "{kind} is left running");
    }
}

/// Runs some of the mix on a server that is installed.
fn written(kind: &str) -> Option<StepFigures> {
    if !is_installed(kind) {
        return None;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, _) = open(kind, directory.path()).expect("a server");
    let bench = linkbench::Bench::new(super::small());
    bench.load(&*engine, 1).expect("a load");
    let pace = Pace {
        threads: 2,
        operations: 3000,
        ..Pace::default()
    };
    let step = bench.run(&*engine, "run", pace).expect("a run");
    let kernel = step.settled.engine().device_write_bytes;
    println!("{kind}: {:?} of {kernel}, {}", step.parts, step.wrote);
    Some(step)
}

/// The servers count their writes by part, and the sum is no more than what the kernel counts.
#[test]
fn servers_count_what_they_write() {
    for (kind, needed) in [
        ("innodb", &["log", "pages"][..]),
        ("myrocks", &["log", "flush"]),
        ("postgres", &["log", "pages"]),
    ] {
        let Some(step) = written(kind) else {
            continue;
        };
        let (parts, wrote) = (&step.parts, step.wrote);
        let kernel = step.settled.engine().device_write_bytes;
        let part = |name: &str| {
            let found = parts.iter().find(|(known, _)| *known == name);
            found.unwrap_or_else(|| panic!("{kind} has no {name}")).1
        };
        for name in needed {
            assert!(part(name) > 0, "{kind}: {parts:?}");
        }
        assert!(part("log") >= wrote, "{kind}: {parts:?}");
        if kind == "innodb" {
            assert!(part("pages") % 16384 == 0 && part("doublewrite") <= part("pages"));
        }
        let sum: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
        assert!(sum <= kernel + kernel / 10, "{kind}: {sum} and {kernel}");
    }
}

/// Not a test: the owner that the next test kills.
#[test]
#[ignore = "another test runs it: cargo test -p esker-lab a_server_ends_when_its_owner_is_killed"]
fn an_owner_that_waits() {
    let Ok(kind) = std::env::var("ESKER_LAB_TEST_OWNER") else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let (_engine, process) = open(&kind, directory.path()).expect("a server");
    println!("\nserver {process} in {}", directory.path().display());
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_server_ends_when_its_owner_is_killed() {
    for kind in ["postgres", "mariadb"] {
        if !is_installed(kind) {
            continue;
        }
        let mut owner = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "relational::tests::servers::an_owner_that_waits"])
            .args(["--ignored", "--nocapture"])
            .env("ESKER_LAB_TEST_OWNER", kind)
            .stdout(Stdio::piped())
            .spawn()
            .expect("an owner");
        let lines = BufReader::new(owner.stdout.take().expect("its output")).lines();
        let found = lines.map_while(std::result::Result::ok).find_map(|line| {
            let (number, directory) = line.strip_prefix("server ")?.split_once(" in ")?;
            Some((number.parse::<u32>().ok()?, directory.to_string()))
        });
        let (process, directory) = found.expect("a server");
        assert!(runs(process), "{kind}");
        owner.kill().expect("a kill");
        owner.wait().expect("an end");
        assert!(ends(process), "{kind} is left running");
        std::fs::remove_dir_all(directory).expect("the directory goes");
    }
}
