//! `CURRENT` must not name an older MANIFEST than it once did.
//!
//! Two are there when a process ended before it removed the one that it had replaced. An Esker that
//! starts a MANIFEST writes what leads to the present tree, lets CURRENT name the file, and only
//! then appends edits; so one that has edits was current. When CURRENT names one with a lower
//! number, a bit of it flipped, or somebody put a copy back: opening would take an earlier state
//! for the whole, and delete the tables that came later.
//!
//! Of a MANIFEST of RocksDB nothing is known by this: its first edits are in the file before
//! CURRENT names it. It says nothing of logs, which tells the two apart.

use super::ManifestReader;
use crate::current;
use esker_env::FileSystem;
use esker_format::FileNo;
use esker_format::file_name::{FileKind, manifest_name, parse_file_name};
use esker_status::{Error, Result};
use std::path::Path;

/// An error when a MANIFEST of `dir` that is newer than `number`, which CURRENT names, was current
/// once.
pub fn check_newest(fs: &dyn FileSystem, dir: &Path, number: FileNo) -> Result<()> {
    for entry in fs.read_dir(dir)? {
        let newer = match parse_file_name(&entry.name) {
            Some((FileKind::Manifest, other)) if other > number => other,
            _ => continue,
        };
        // Somebody else may have the database open, and go on to another.
        if was_current(fs, &dir.join(&entry.name)) && current::read(fs, dir)? == number {
            return Err(Error::corruption(format!(
                "CURRENT names {}, and {} has been current since",
                manifest_name(number),
                manifest_name(newer)
            ))
            .with_file(dir.join(&entry.name))
            .with_hint(
                "nothing was changed; if the older state is what you want, move the newer MANIFEST away, else write its name, \
                 and a line feed, into CURRENT",
            ));
        }
    }
    Ok(())
}

/// Returns whether edits follow those that lead from nothing to a tree. What cannot be read says
/// nothing.
pub fn was_current(fs: &dyn FileSystem, path: &Path) -> bool {
    let Ok(mut reader) = ManifestReader::open(fs, path) else {
        return false;
    };
    let mut next = || reader.next_group().ok().flatten();
    while let Some(group) = next() {
        if group.edits.iter().any(|edit| edit.known_logs.is_some()) {
            return next().is_some();
        }
    }
    false
}
