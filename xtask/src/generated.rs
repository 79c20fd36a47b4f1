//! Files that are generated: written, or compared with what they should be.

use crate::Findings;
use std::io;
use std::path::Path;

/// Writes `text` to `path`.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<Findings> {
    std::fs::write(path, text)?;
    Ok(Vec::new())
}

/// A finding when `path` does not hold `text`; `command` says how to write it.
pub(crate) fn check(path: &Path, text: &str, command: &str) -> io::Result<Findings> {
    let current = match std::fs::read_to_string(path) {
        Ok(current) => current,
        Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(e),
    };
    if current == text {
        return Ok(Vec::new());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(vec![format!("{name} is not current: run `{command}`")])
}
