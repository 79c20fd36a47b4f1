//! Fetching a package of crates.io with cargo itself, by way of a crate that depends on it.

use super::process::must;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// RocksDB's sources and C test travel in this package.
pub(crate) const ROCKSDB_SOURCES: (&str, &str) = ("librocksdb-sys", "=0.19.0");

/// The directory where cargo keeps the sources of `package`, after fetching them when needed.
pub(crate) fn fetch(work: &Path, package: (&str, &str)) -> io::Result<PathBuf> {
    let (name, version) = package;
    let asker = work.join(format!("fetch-{name}"));
    std::fs::create_dir_all(asker.join("src"))?;
    std::fs::write(asker.join("src/lib.rs"), "")?;
    std::fs::write(
        asker.join("Cargo.toml"),
        format!(
            "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
             [dependencies]\n{name} = {{ version = \"{version}\", default-features = false }}\n\
             [workspace]\n"
        ),
    )?;
    let mut command = Command::new(cargo());
    command
        .current_dir(&asker)
        .args(["metadata", "--format-version", "1"]);
    command.stderr(std::process::Stdio::inherit());
    println!("fetching {name} {version} ...");
    let output = command.output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("cargo could not fetch {name}")));
    }
    let found: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = found["packages"].as_array().into_iter().flatten();
    let manifest = packages
        .filter(|package| package["name"] == name)
        .find_map(|package| package["manifest_path"].as_str());
    let manifest = manifest.ok_or_else(|| io::Error::other(format!("{name} is not there")))?;
    Ok(Path::new(manifest)
        .parent()
        .unwrap_or(Path::new("/"))
        .to_owned())
}

/// The cargo that runs us.
pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// A fresh, writable copy of `from` at `to`.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let mut command = Command::new("cp");
    command.args(["-r", "--no-preserve=mode"]).arg(from).arg(to);
    must(&mut command, &format!("copying {}", from.display()))?;
    let manifest = to.join("Cargo.toml");
    if manifest.exists() {
        // It is no member of ours.
        let text = std::fs::read_to_string(&manifest)?;
        std::fs::write(manifest, format!("{text}\n[workspace]\n"))?;
    }
    Ok(())
}
