//! The tools of RocksDB 7.8 as judges of a compacted database: consistent, every file verified,
//! same scan.

use super::scan::Text;
use super::set::Expected;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

type Outcome<T = ()> = std::result::Result<T, String>;

fn run(program: &str, arguments: &[&OsStr]) -> Outcome<String> {
    let ran = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|e| format!("{program}: {e}"))?;
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    let errors = String::from_utf8_lossy(&ran.stderr);
    if ran.status.success() {
        Ok(text)
    } else {
        Err(format!("{program} {arguments:?}: {text}{errors}"))
    }
}

/// Returns whether `ldb` and `sst_dump` are installed.
pub(crate) fn installed() -> bool {
    let runs = |program| Command::new(program).arg("--help").output().is_ok();
    runs("ldb") && runs("sst_dump")
}

fn flag(name: &str, value: &OsStr) -> std::ffi::OsString {
    let mut flag = std::ffi::OsString::from(name);
    flag.push(value);
    flag
}

/// Lets the tools judge the database in `dir`.
pub(crate) fn verify(dir: &Path, expected: &Expected) -> Outcome {
    let db = flag("--db=", dir.as_os_str());
    let said = run("ldb", &[&db, "checkconsistency".as_ref()])?;
    if !said.contains("OK") {
        return Err(format!("ldb checkconsistency: {said}"));
    }
    verify_files(dir)?;
    let found = scan(&db)?.finish();
    if found.entries != expected.entries || found.md5 != expected.md5 {
        return Err(format!(
            "ldb scan: {} entries with digest {}",
            found.entries, found.md5
        ));
    }
    Ok(())
}

/// Reads every block of every table.
fn verify_files(dir: &Path) -> Outcome {
    for entry in std::fs::read_dir(dir).map_err(|e| e.to_string())? {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path.extension() != Some(OsStr::new("sst")) {
            continue;
        }
        let file = flag("--file=", path.as_os_str());
        let said = run("sst_dump", &[&file, "--command=verify".as_ref()])?;
        if !said.contains("The file is ok") {
            return Err(format!("sst_dump verify: {said}"));
        }
    }
    Ok(())
}

fn scan(db: &OsStr) -> Outcome<Text> {
    let mut text = Text::default();
    let listed = run("ldb", &[db, "list_column_families".as_ref()])?;
    let listed = listed
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'))
        .ok_or_else(|| format!("ldb list_column_families: {listed}"))?;
    for family in listed.0.split(", ") {
        let name = flag("--column_family=", family.as_ref());
        let said = run("ldb", &[db, &name, "--hex".as_ref(), "scan".as_ref()])?;
        for line in said.lines().filter(|l| l.starts_with("0x")) {
            let (key, value) = line
                .split_once(" : ")
                .ok_or_else(|| format!("ldb scan: {line}"))?;
            text.add(family, &bytes(key)?, &bytes(value)?);
        }
    }
    Ok(text)
}

/// The bytes that `0x...` says.
fn bytes(hex: &str) -> Outcome<Vec<u8>> {
    let hex = hex.strip_prefix("0x").unwrap_or(hex);
    (0..hex.len())
        .step_by(2)
        .map(|at| {
            let pair = hex.get(at..at + 2);
            pair.and_then(|p| u8::from_str_radix(p, 16).ok())
                .ok_or_else(|| format!("not hexadecimal: {hex}"))
        })
        .collect()
}
