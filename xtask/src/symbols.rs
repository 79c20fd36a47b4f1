//! Names that our shared library shows to the programs that load it: its own name, what it needs,
//! and its symbols.
//!
//! `nm` and `readelf` of binutils read the file; they come with a C compiler.

use crate::{Findings, capi};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::Command;

/// The name that programs linked with RocksDB 11 ask for.
pub(crate) const SONAME: &str = "librocksdb.so.11";

/// Exported by RocksDB 11.8 without being declared in its header.
const UNDECLARED: &[&str] = &[
    "rocksdb_abort_all_compactions",
    "rocksdb_filterpolicy_create_bloom_format",
    "rocksdb_filterpolicy_create_ribbon_format",
    "rocksdb_resume_all_compactions",
];

/// Declared by RocksDB 7.8, and removed since.
const REMOVED: &[&str] = &[
    "rocksdb_block_based_options_set_block_cache_compressed",
    "rocksdb_delete_file",
    "rocksdb_options_get_access_hint_on_compaction_start",
    "rocksdb_options_get_max_write_buffer_number_to_maintain",
    "rocksdb_options_get_skip_checking_sst_file_sizes_on_db_open",
    "rocksdb_options_set_access_hint_on_compaction_start",
    "rocksdb_options_set_max_write_buffer_number_to_maintain",
    "rocksdb_options_set_skip_checking_sst_file_sizes_on_db_open",
    "rocksdb_readoptions_set_managed",
    "rocksdb_writebatch_wi_create_from",
];

/// Checks the library at `path` against the specification below `root`.
pub(crate) fn check(root: &Path, path: &Path) -> io::Result<Findings> {
    let mut expected: BTreeSet<String> = capi::functions(root)?.into_iter().collect();
    let declared = expected.len();
    expected.extend(capi::added(root)?);
    let beside = UNDECLARED.iter().chain(REMOVED);
    expected.extend(beside.map(|&name| name.to_owned()));
    let listing = said(Command::new("nm").args(["-D", "--defined-only"]).arg(path))?;
    let exported = exported(&listing);
    let dynamic = said(Command::new("readelf").arg("-d").arg(path))?;
    let mut findings = differences(&expected, &exported);
    findings.extend(misnamed(&dynamic));
    println!(
        "{}: {} symbols; the interface has {declared} declared, {} undeclared and {} removed functions",
        path.display(),
        exported.len(),
        UNDECLARED.len(),
        REMOVED.len(),
    );
    Ok(findings)
}

fn said(command: &mut Command) -> io::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| io::Error::other(format!("{program} (binutils): {error}")))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(format!("{program}: {why}")));
    }
    String::from_utf8(output.stdout).map_err(io::Error::other)
}

/// The names in a listing of `nm`: the last word of a line, without its version.
fn exported(listing: &str) -> BTreeSet<String> {
    let names = listing
        .lines()
        .filter_map(|line| line.split(' ').next_back());
    let names = names.map(|name| name.split('@').next().unwrap_or(name));
    names.filter(|n| !n.is_empty()).map(str::to_owned).collect()
}

/// Functions that are missing, and symbols that nobody asked for.
fn differences(expected: &BTreeSet<String>, exported: &BTreeSet<String>) -> Findings {
    let missing = expected.difference(exported);
    let missing = missing.map(|name| format!("{name}: not exported"));
    let surplus = exported.difference(expected);
    let surplus = surplus.map(|name| format!("{name}: exported, but not of the interface"));
    missing.chain(surplus).collect()
}

/// Finds wrong entries in the output of `readelf -d`: a wrong name, or a C++ library needed.
fn misnamed(dynamic: &str) -> Findings {
    let entries = |kind: &str| -> Vec<String> {
        let lines = dynamic.lines().filter(|line| line.contains(kind));
        let names = lines.filter_map(|line| line.split(['[', ']']).nth(1));
        names.map(str::to_owned).collect()
    };
    let mut findings = Findings::new();
    let own = entries("(SONAME)");
    if own != [SONAME] {
        findings.push(format!("SONAME is {own:?}, not {SONAME}"));
    }
    let needed = entries("(NEEDED)").into_iter();
    let foreign = needed.filter(|name| name.contains("c++"));
    findings.extend(foreign.map(|name| format!("needs {name}")));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_is_found() {
        let set = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect();
        let listing =
            "0000 T rocksdb_get\n0001 T esker_code\n0002 T rocksdb_new@@V1\n0003 B leak\n";
        let found = differences(&set(&["rocksdb_get", "rocksdb_put"]), &exported(listing));
        assert_eq!(
            found,
            [
                "rocksdb_put: not exported",
                "esker_code: exported, but not of the interface",
                "leak: exported, but not of the interface",
                "rocksdb_new: exported, but not of the interface",
            ]
        );
    }

    #[test]
    fn names_of_libraries_are_read() {
        let good = " 0x1 (NEEDED)  Shared library: [libc.so.6]\n 0xe (SONAME) Library soname: [librocksdb.so.11]\n";
        assert!(misnamed(good).is_empty());
        let bad = " 0x1 (NEEDED)  Shared library: [libstdc++.so.6]\n";
        let found = misnamed(bad);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[1].contains("libstdc++.so.6"));
    }
}
