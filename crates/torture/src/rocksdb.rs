//! RocksDB's tools as a second reader of what a killed process left.
//!
//! They work on a copy, because opening a directory changes it. Without `ldb` and `sst_dump` on the
//! path nothing is read, and the report says so.

use crate::check::{Violation, ViolationKind, violation};
use crate::recipe::{FAMILIES, Recipe};
use esker::Db;
use std::io;
use std::path::Path;
use std::process::{Command, Output};

/// Returns whether the tools are there.
pub(crate) fn is_installed() -> bool {
    let starts = |program: &str| Command::new(program).arg("--version").output().is_ok();
    starts("ldb") && starts("sst_dump")
}

/// Compares every entry of every family as RocksDB reads it with what Esker reads; how many
/// entries.
pub(crate) fn compare(dir: &Path, recipe: Recipe) -> Result<u64, Violation> {
    let home =
        copied(dir).or_else(|e| violation(ViolationKind::Misbehaved, format!("copy: {e}")))?;
    let copy = home.path().join("db");
    let ours = recipe.options();
    let ours =
        ours.and_then(|(options, families)| Db::open_families_read_only(dir, options, families));
    let db = ours.or_else(|e| violation(ViolationKind::Unopenable, e.to_string()))?;
    // A table that was begun is none yet.
    let live: Vec<String> = db
        .live_files_metadata()
        .into_iter()
        .map(|f| f.name)
        .collect();
    let kept = forget_others(&copy, &live);
    kept.or_else(|e| violation(ViolationKind::Misbehaved, format!("copy: {e}")))?;
    let mut entries = 0;
    for name in FAMILIES {
        let theirs = scan(&copy, name)?;
        let Some(family) = db.family(name) else {
            return violation(
                ViolationKind::Wrong,
                format!("RocksDB reads {name}, Esker does not"),
            );
        };
        let mut ours = db.iter_cf(&family);
        ours.seek_to_first();
        for line in &theirs {
            let entry = ours
                .entry()
                .map(|(k, v)| format!("{} : {}", hex(k), hex(v)));
            if entry.as_ref() != Some(line) {
                let text = format!("{name}: RocksDB reads {line:.80}, Esker {entry:.80?}");
                return violation(ViolationKind::Wrong, text);
            }
            ours.next();
            entries += 1;
        }
        if let Some((key, _)) = ours.entry() {
            let text = format!("{name}: RocksDB does not read {}", key.escape_ascii());
            return violation(ViolationKind::Wrong, text);
        }
    }
    // All may be in logs still: sst_dump does not verify nothing.
    if has_tables(&copy).or_else(|e| violation(ViolationKind::Misbehaved, e.to_string()))? {
        let file = format!("--file={}", copy.display());
        tool("sst_dump", &[&file, "--command=verify"])?;
    }
    Ok(entries)
}

fn has_tables(dir: &Path) -> io::Result<bool> {
    for entry in std::fs::read_dir(dir)? {
        if entry?.path().extension().is_some_and(|e| e == "sst") {
            return Ok(true);
        }
    }
    Ok(false)
}

fn copied(dir: &Path) -> io::Result<tempfile::TempDir> {
    let home = tempfile::tempdir()?;
    let copy = home.path().join("db");
    std::fs::create_dir(&copy)?;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        std::fs::copy(entry.path(), copy.join(entry.file_name()))?;
    }
    Ok(home)
}

/// Removes tables that are not among `live`.
fn forget_others(dir: &Path, live: &[String]) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".sst") && !live.contains(&name) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn scan(dir: &Path, family: &str) -> Result<Vec<String>, Violation> {
    let db = format!("--db={}", dir.display());
    let family = format!("--column_family={family}");
    let out = tool("ldb", &[&db, &family, "scan", "--hex"])?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    Ok(text.lines().map(str::to_owned).collect())
}

fn tool(program: &str, args: &[&str]) -> Result<Output, Violation> {
    let out = match Command::new(program).args(args).output() {
        Ok(out) => out,
        Err(e) => return violation(ViolationKind::Misbehaved, format!("{program}: {e}")),
    };
    let text =
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    let bad = ["Failed", "Corrupt", "not a valid", "rror:"];
    if out.status.success() && !bad.iter().any(|b| text.contains(b)) {
        return Ok(out);
    }
    let end: String = text
        .chars()
        .rev()
        .take(400)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    violation(
        ViolationKind::Wrong,
        format!("{program} {}: {} {end}", args.join(" "), out.status),
    )
}

fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|b| format!("{b:02X}")).collect();
    format!("0x{digits}")
}
