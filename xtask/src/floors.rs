//! The floors of the house: which crate may name which.
//!
//! A crate names only crates on lower floors; `esker-status` is below everything. Tests may use
//! crates of their own floor as well.

use crate::Findings;
use serde_json::Value;
use std::io;
use std::path::Path;
use std::process::Command;

/// Every crate with its floor. A crate that is not here is a finding.
const FLOORS: &[(&str, u8)] = &[
    ("esker-status", 0),
    ("esker-sync", 0),
    ("esker-codec", 0),
    ("esker-format", 1),
    ("esker-memindex", 1),
    ("esker-env", 1),
    ("esker-cache", 1),
    ("esker-files", 2),
    ("esker-lsm", 2),
    ("esker-options", 3),
    ("esker-engine", 4),
    ("esker-txn", 5),
    ("esker-backup", 5),
    ("esker-differential", 5),
    ("esker-process", 5),
    ("esker", 6),
    ("esker-lab", 6),
    ("esker-torture", 6),
    ("esker-capi", 6),
    ("esker-jni", 6),
    ("esker-python", 6),
    ("esker-sim", 6),
    ("esker-cli", 7),
    ("esker-fuzz", 7),
    ("xtask", 7),
];

/// Crates whose examples and tests use a crate above them, with that crate.
const EXAMPLES: [(&str, &str); 4] = [
    ("esker-engine", "esker"),
    ("esker-options", "esker"),
    ("esker-lsm", "esker"),
    ("esker-status", "esker"),
];

/// The floor of a crate, by its package's name.
pub(crate) fn floor(name: &str) -> Option<u8> {
    FLOORS.iter().find(|(n, _)| *n == name).map(|(_, f)| *f)
}

/// Returns whether a crate on floor `own` may name `dependency`.
fn allowed(own: u8, dependency: &str, floor: u8, is_dev: bool) -> bool {
    dependency == "esker-status" || floor < own || (is_dev && floor == own)
}

/// Checks every dependency among the workspace's crates.
pub(crate) fn check(root: &Path) -> io::Result<Findings> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let mut findings = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(own) = floor(name) else {
            findings.push(format!(
                "crate {name} has no floor: add it to xtask/src/floors.rs"
            ));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let target = dependency["name"].as_str().unwrap_or_default();
            let is_dev = dependency["kind"].as_str() == Some("dev");
            if let Some(below) = floor(target)
                && !allowed(own, target, below, is_dev)
                && !(is_dev && EXAMPLES.contains(&(name, target)))
            {
                findings.push(format!(
                    "crate {name} (floor {own}) names {target} (floor {below})"
                ));
            }
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_downward() {
        assert!(allowed(2, "esker-format", 1, false));
        assert!(!allowed(2, "esker-lsm", 2, false));
        assert!(allowed(2, "esker-lsm", 2, true));
        assert!(!allowed(1, "esker-engine", 4, true));
        assert!(allowed(0, "esker-status", 0, false));
    }
}
