//! Files that are generated: written, or compared with what they should be.

use crate::Findings;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

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

/// Rust source as rustfmt prints it with lines of any length: a row of a table is a line. The
/// modules are marked for rustfmt to leave them alone.
pub(crate) fn formatted(text: &str) -> io::Result<String> {
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024", "--config"])
        .arg("max_width=1000,use_small_heuristics=Max")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().expect("a pipe was asked for");
    // Written from another thread, or both would wait on full pipes.
    let input = text.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    writer.join().expect("writing does not panic")?;
    if !output.status.success() {
        return Err(io::Error::other("rustfmt failed on generated code"));
    }
    String::from_utf8(output.stdout).map_err(io::Error::other)
}
