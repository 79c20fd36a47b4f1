//! `cargo xtask package`: the crates as the registry would get them.
//!
//! Every manifest that may be published says what the registry shows; `cargo package` takes the
//! whole workspace; and a fresh project outside the tree builds the README's first program from the
//! packed crates, offline, as a debug build in which no seeded bug is found.

use crate::Findings;
use esker_status::seeded::BUGS;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The keys of a manifest that the registry shows, and the texts of the licences.
const SHOWN: [&str; 4] = ["description", "repository", "readme", "license"];
const LICENCES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];
/// The crates that the program's project names.
const NAMED: [&str; 1] = ["esker"];
/// The variable that chooses a seeded bug.
const VARIABLE: &str = "ESKER_SEEDED_BUG";

/// Cargo in `dir`.
pub(crate) fn cargo(dir: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(dir);
    command
}

/// Runs `command`; an error when it fails.
pub(crate) fn must(command: &mut Command, what: &str) -> io::Result<()> {
    let status = command.status()?;
    if status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{what}: {status}")))
}

/// The manifests of the workspace, as cargo reads them.
pub(crate) fn manifests(root: &Path) -> io::Result<Vec<Value>> {
    let mut command = cargo(root);
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    let output = command.output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(text));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    Ok(metadata["packages"].as_array().cloned().unwrap_or_default())
}

/// Returns whether a manifest has no `publish = false`.
pub(crate) fn is_published(package: &Value) -> bool {
    package["publish"].is_null()
}

/// Whatever a manifest lacks that may be published.
fn lacks(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let count = |key: &str| package[key].as_array().map_or(0, Vec::len);
    let mut out = Vec::new();
    for key in SHOWN {
        if package[key].as_str().is_none_or(str::is_empty) {
            out.push(format!("{name} has no {key}"));
        }
    }
    for key in ["keywords", "categories"] {
        // The registry takes no more than five.
        if !(1..=5).contains(&count(key)) {
            out.push(format!("{name} has {} {key}, not 1 to 5", count(key)));
        }
    }
    if package["metadata"]["docs"]["rs"].is_null() {
        out.push(format!("{name} has no package.metadata.docs.rs"));
    }
    let dir = package["manifest_path"].as_str().map(Path::new);
    let dir = dir.and_then(Path::parent).unwrap_or(Path::new("."));
    for licence in LICENCES {
        if !dir.join(licence).is_file() {
            out.push(format!("{name} has no {licence}"));
        }
    }
    out
}

/// Checks, packs, and builds from what was packed.
pub(crate) fn run(root: &Path) -> io::Result<Findings> {
    let packages = manifests(root)?;
    let published: Vec<&Value> = packages.iter().filter(|p| is_published(p)).collect();
    let mut findings: Findings = published.iter().flat_map(|p| lacks(p)).collect();
    if !findings.is_empty() {
        return Ok(findings);
    }
    let work = tempfile::tempdir()?;
    let packed = pack(root, work.path(), &published)?;
    println!("packed {} crates", packed.len());
    let program = build(root, work.path(), &packed)?;
    let output = Command::new(&program).current_dir(work.path()).output()?;
    if !output.status.success() || !String::from_utf8_lossy(&output.stdout).contains('=') {
        findings.push(format!(
            "the README's program ends with {} and prints {:?}",
            output.status,
            String::from_utf8_lossy(&output.stdout)
        ));
    }
    findings.extend(seeded(&std::fs::read(&program)?));
    println!(
        "the README's program runs; its debug build has none of {} seeded bugs",
        BUGS.len()
    );
    Ok(findings)
}

/// Packs the workspace and unpacks what may be published below `work`; the directories.
fn pack(root: &Path, work: &Path, published: &[&Value]) -> io::Result<Vec<(String, PathBuf)>> {
    let mut command = cargo(root);
    command.args(["package", "--workspace", "--no-verify", "--quiet"]);
    command.args(["--locked", "--allow-dirty"]);
    command.arg("--target-dir").arg(work.join("packing"));
    must(&mut command, "cargo package")?;
    let mut out = Vec::new();
    for package in published {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let full = format!("{}-{}", text("name"), text("version"));
        let archive = work.join("packing/package").join(format!("{full}.crate"));
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(&archive).arg("-C").arg(work);
        must(&mut tar, "tar")?;
        out.push((text("name").to_owned(), work.join(full)));
    }
    Ok(out)
}

/// The program of the README's page.
fn first_program(root: &Path) -> io::Result<String> {
    let page = std::fs::read_to_string(root.join("README.md"))?;
    let from = page.split("```rust\n").nth(1);
    let program = from.and_then(|rest| rest.split("```").next());
    let program = program.ok_or_else(|| io::Error::other("README.md has no program"))?;
    Ok(program.to_owned())
}

/// Builds a project of the packed crates; its program.
fn build(root: &Path, work: &Path, packed: &[(String, PathBuf)]) -> io::Result<PathBuf> {
    let project = work.join("first");
    std::fs::create_dir_all(project.join("src"))?;
    let mut manifest =
        "[package]\nname = \"first\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n"
            .to_owned();
    manifest += "[dependencies]\n";
    for name in NAMED {
        manifest += &format!("{name} = \"0.1\"\n");
    }
    // What the registry would give.
    manifest += "\n[patch.crates-io]\n";
    for (name, dir) in packed {
        manifest += &format!("{name} = {{ path = {:?} }}\n", dir.display().to_string());
    }
    std::fs::write(project.join("Cargo.toml"), manifest)?;
    std::fs::write(project.join("src/main.rs"), first_program(root)?)?;
    // The versions that are there already; cargo takes out what the project does not use.
    std::fs::copy(root.join("Cargo.lock"), project.join("Cargo.lock"))?;
    let mut command = cargo(&project);
    command.args(["build", "--offline", "--quiet"]);
    command.env("CARGO_INCREMENTAL", "0");
    command.env_remove("CARGO_PROFILE_DEV_DEBUG");
    command.arg("--target-dir").arg(work.join("target"));
    must(&mut command, "the project of packed crates")?;
    Ok(work.join("target/debug/first"))
}

/// The seeded bugs that are text in `program`, in either spelling.
fn seeded(program: &[u8]) -> Findings {
    let names = BUGS.iter().map(|entry| entry.name.to_owned());
    let variants = BUGS.iter().map(|entry| format!("{:?}", entry.bug));
    let texts = names.chain(variants).chain([VARIABLE.to_owned()]);
    texts
        .filter(|text| has(program, text.as_bytes()))
        .map(|text| format!("a debug build of published crates has the seeded bug {text}"))
        .collect()
}

/// Returns whether `text` is in `bytes`.
fn has(bytes: &[u8], text: &[u8]) -> bool {
    let Some((&first, rest)) = text.split_first() else {
        return true;
    };
    let mut from = bytes;
    while let Some(at) = from.iter().position(|byte| *byte == first) {
        from = &from[at + 1..];
        if from.starts_with(rest) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_manifest_lacks_is_said() {
        let found = lacks(&json!({"name": "a", "description": "", "license": "MIT",
            "keywords": [], "categories": ["x"], "manifest_path": "/nowhere/Cargo.toml"}));
        for part in [
            "no description",
            "no repository",
            "no readme",
            "0 keywords",
            "docs.rs",
        ] {
            assert!(found.iter().any(|f| f.contains(part)), "{part}: {found:?}");
        }
        assert!(
            !found
                .iter()
                .any(|f| f.contains("license") || f.contains("categories"))
        );
    }

    #[test]
    fn seeded_bugs_are_found_in_bytes() {
        let found = seeded(b"..wal-ack-before-sync..FlushGap..");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(seeded(b"wal-ack-before-syn").is_empty());
    }
}
