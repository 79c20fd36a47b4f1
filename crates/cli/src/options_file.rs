//! OPTIONS files, statement by statement: all faults of a file, and what is left without them.
//!
//! A fault is found by loading a file of this statement alone, so that each is judged by the rules
//! that hold for the whole.

use esker::options::{LoadRules, load_options_text};
use esker_env::{FileSystem, PosixFs};
use esker_status::{Error, Result};
use std::path::Path;

/// No OPTIONS file is longer.
const LIMIT: u64 = 16 << 20;
/// The mark of options that the OPTIONS file of an older RocksDB cannot have.
const KEPT: &str = "#+";
/// The rules by which such files are read.
pub(crate) const RULES: LoadRules = LoadRules {
    ignore_unknown: true,
    strict: false,
};

/// A statement that cannot be taken over.
pub(crate) struct OptionFault {
    /// Its line, from 1.
    pub(crate) line: usize,
    /// The option.
    pub(crate) name: String,
    /// The reason.
    pub(crate) error: Error,
}

/// The text of an OPTIONS file.
pub(crate) fn text_of(path: &Path) -> Result<String> {
    let bytes = PosixFs::new().read_all(path, LIMIT)?;
    String::from_utf8(bytes)
        .map_err(|_| Error::corruption("the OPTIONS file is not text").with_file(path))
}

/// The statements of a file that cannot be taken over.
pub(crate) fn faults(text: &str) -> Vec<OptionFault> {
    let version = text.lines().map(str::trim);
    let version = version.clone().find(|l| l.starts_with("rocksdb_version="));
    let version = version.unwrap_or("rocksdb_version=7.8.3");
    let mut section = "";
    let mut out = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            section = line;
            continue;
        }
        let statement = line.strip_prefix(KEPT).unwrap_or(line).trim();
        let Some((name, _)) = statement.split_once('=') else {
            continue;
        };
        let place = |wanted: &str| {
            if section.starts_with(wanted) {
                statement
            } else {
                ""
            }
        };
        let alone = format!(
            "[Version]\n{version}\noptions_file_version=1.1\n[DBOptions]\n{}\n\
             [CFOptions \"default\"]\n{}\n[TableOptions/BlockBasedTable \"default\"]\n{}\n",
            place("[DBOptions]"),
            place("[CFOptions"),
            place("[TableOptions/BlockBasedTable")
        );
        if let Err(error) = load_options_text(&alone, RULES) {
            out.push(OptionFault {
                line: at + 1,
                name: name.trim().to_owned(),
                error,
            });
        }
    }
    out
}

/// The file without these statements.
pub(crate) fn without(text: &str, faults: &[OptionFault]) -> String {
    let is_kept = |at: usize| !faults.iter().any(|f| f.line == at + 1);
    let lines = text.lines().enumerate();
    let kept = lines.filter(|(at, _)| is_kept(*at));
    kept.map(|(_, line)| format!("{line}\n")).collect()
}
