//! Exported functions and types that `crates/capi/src` implements by hand, found by their
//! definitions.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// Names that are written by hand.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Functions.
    pub(super) functions: BTreeSet<String>,
    /// Types.
    pub(super) types: BTreeSet<String>,
}

/// Reads every file below `dir` but the generated ones.
pub(super) fn hand_written(dir: &Path) -> io::Result<Written> {
    let mut written = Written::default();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(dir)? {
            let path = entry?.path();
            if path.is_dir() {
                if path.file_name().is_none_or(|n| n != "generated") {
                    pending.push(path);
                }
            } else if path.extension().is_some_and(|e| e == "rs") {
                scan(&std::fs::read_to_string(path)?, &mut written);
            }
        }
    }
    Ok(written)
}

fn scan(text: &str, written: &mut Written) {
    // A macro that defines functions is called with their names, at the start of a line.
    let mut rest = text;
    while let Some(at) = rest.find("!(") {
        let name = rest[..at].rsplit('\n').next().unwrap_or("");
        let is_call = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        rest = &rest[at + 2..];
        if is_call {
            let arguments = &rest[..rest.find(");").unwrap_or(rest.len())];
            let words = arguments.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            let functions = words.filter(|w| w.starts_with("rocksdb_") && !w.ends_with("_t"));
            written.functions.extend(functions.map(str::to_owned));
        }
    }
    for line in text.lines() {
        let line = line.trim_start();
        let name_after = |marker: &str| {
            let (_, rest) = line.split_once(marker)?;
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            Some(rest[..end.unwrap_or(rest.len())].to_owned())
        };
        if line.starts_with("pub ") {
            if let Some(name) = name_after("extern \"C\" fn ") {
                written.functions.insert(name);
            } else if let Some(name) =
                name_after("pub struct ").filter(|n| n.starts_with("rocksdb_"))
            {
                written.types.insert(name);
            }
        }
    }
}
