//! Running a case in a process of its own, and judging what it did.

use crate::common::copy_dir;
use crate::{Case, HOWS, How, MEMORY_MAX_KB, Shows, TARGET, TIME_MAX, families, options};
use esker::{Db, Env, KeyOrder, Options};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Every file of a directory with what is in it.
pub(crate) fn contents(dir: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    std::fs::read_dir(dir)
        .expect("the directory")
        .map(|e| {
            let e = e.expect("an entry");
            let bytes = e
                .file_type()
                .expect("a type")
                .is_file()
                .then(|| std::fs::read(e.path()).expect("readable"));
            (e.file_name().to_string_lossy().into_owned(), bytes)
        })
        .collect()
}

/// Opens the directory as `how` says and reads everything forwards, backwards and by key.
pub(crate) fn open_and_read(
    dir: &Path,
    how: How,
    read_only: bool,
    at_open: &mut bool,
) -> esker::Result<u64> {
    let mut options = options();
    let mut names = families(&["default", "other"]);
    match how {
        How::Right => {}
        How::WrongComparator => {
            options.family.comparator = KeyOrder::ReverseBytewise;
            names[0].options.comparator = KeyOrder::ReverseBytewise;
        }
        How::UnknownFamily => names.extend(families(&["nowhere"])),
        How::FamilyNotNamed => names.truncate(1),
        How::CreateIfMissing => {
            options = options
                .create_if_missing(true)
                .create_missing_column_families(true)
        }
        How::ErrorIfExists => options.db.error_if_exists = true,
        How::FewFiles => options.db.max_open_files = 30,
        How::Plain => {}
    }
    let plain = how == How::Plain;
    let db = if plain && read_only {
        Db::open_read_only(dir, Options::new())?
    } else if plain {
        Db::open(dir, Options::new())?
    } else if read_only {
        Db::open_families_read_only(dir, options, names)?
    } else {
        Db::open_families(dir, options, names)?
    };
    *at_open = false;
    let mut seen = 0;
    for family in db.families() {
        let mut it = db.iter_cf(&family);
        it.seek_to_first();
        while it.valid() {
            seen += 1;
            it.next();
        }
        it.status()?;
        it.seek_to_last();
        while it.valid() {
            it.prev();
        }
        it.status()?;
        for n in 0..400 {
            db.get_cf(&family, format!("key{n:05}"))?;
            db.get_cf(&family, format!("other{n:05}"))?;
        }
    }
    Ok(seen)
}

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) when: String,
    pub(crate) kind: String,
    pub(crate) message: String,
}

/// Runs the child on `dir`, within the limits.
pub(crate) fn observe(dir: &Path, how: How, read_only: bool) -> Result<Outcome, String> {
    let index = HOWS.iter().position(|h| *h == how).expect("listed");
    let mode = if read_only { "ro" } else { "rw" };
    let start = Instant::now();
    let mut child = Command::new(std::env::current_exe().expect("a path"))
        .args([
            "--exact",
            "child",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(TARGET, format!("{index}:{mode}:{}", dir.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the test binary starts");
    let (mut out, mut errors) = (
        child.stdout.take().expect("piped"),
        child.stderr.take().expect("piped"),
    );
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).map(|_| text)
    });
    let complaints = std::thread::spawn(move || {
        let mut text = String::new();
        errors.read_to_string(&mut text).map(|_| text)
    });
    let limit = TIME_MAX * if cfg!(debug_assertions) { 3 } else { 1 };
    while child.try_wait().expect("our child").is_none() {
        if start.elapsed() > limit {
            child.kill().expect("our child");
            child.wait().expect("our child");
            return Err(format!("{mode}: no answer within {limit:?}"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let text = reader.join().expect("read").expect("text");
    let complaints = complaints.join().expect("read").unwrap_or_default();
    let line = |prefix: &str| {
        text.lines()
            .find_map(|l| l.strip_prefix(prefix).map(str::to_owned))
    };
    let result =
        line("RESULT ").ok_or_else(|| format!("{mode}: the process died: {complaints}"))?;
    let peak: u64 = line("PEAK ")
        .and_then(|p| p.trim().parse().ok())
        .ok_or("no peak")?;
    if peak > MEMORY_MAX_KB {
        return Err(format!("{mode}: {peak} kB of memory"));
    }
    let mut words = result.splitn(3, ' ');
    let mut next = || words.next().unwrap_or_default().to_owned();
    Ok(Outcome {
        when: next(),
        kind: next(),
        message: next(),
    })
}

pub(crate) fn run_case(good: &Path, scratch: &Path, case: &Case) -> Result<(), String> {
    for read_only in [true, false] {
        let dir = scratch.join("db");
        if dir.exists() {
            std::fs::remove_dir_all(&dir).expect("ours");
        }
        copy_dir(&Env::posix(), good, &dir);
        (case.damage)(&dir);
        let before = contents(&dir);
        let seen = observe(&dir, case.how, read_only)?;
        let mode = if read_only {
            "for reading"
        } else {
            "for writing"
        };
        if case.shows == Shows::ForWriters && read_only {
            if seen.when != "ok" {
                return Err(format!("{mode}: {seen:?}"));
            }
        } else {
            let in_time =
                seen.when == "open" || (case.shows == Shows::AtRead && seen.when == "read");
            if !in_time {
                return Err(format!("{mode}: not seen in time: {seen:?}"));
            }
            if !case.kinds.contains(&seen.kind.as_str()) {
                return Err(format!("{mode}: of another kind: {seen:?}"));
            }
            if !seen.message.contains(case.names) {
                return Err(format!("{mode}: {} is not named: {seen:?}", case.names));
            }
        }
        let after = contents(&dir);
        if (read_only || seen.when == "open") && before != after {
            let changed: Vec<_> = before
                .keys()
                .chain(after.keys())
                .filter(|k| before.get(*k) != after.get(*k))
                .collect();
            return Err(format!("{mode}: the directory changed: {changed:?}"));
        }
        // A writer that opened may add files; the tables it had must be what they were.
        for (name, bytes) in before.iter().filter(|(n, _)| n.ends_with(".sst")) {
            if after.get(name) != Some(bytes) {
                return Err(format!("{mode}: {name} changed"));
            }
        }
    }
    Ok(())
}

pub(crate) fn run_cases(make: impl Fn(&Path), cases: &[Case]) {
    let scratch = tempfile::tempdir().expect("a directory");
    let good = scratch.path().join("good");
    make(&good);
    let mut failures = Vec::new();
    for case in cases {
        if let Err(e) = run_case(&good, scratch.path(), case) {
            failures.push(format!("{}: {e}", case.name));
        }
    }
    println!(
        "{} damaged directories, {} wrong answers",
        cases.len(),
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
