//! Where a run has its database.

use crate::Result;
use crate::flags::Flags;
use crate::interrupt::Scratch;
use std::path::Path;

/// Calls `work` with `--db`, or with a temporary directory that is removed afterwards.
///
/// # Errors
/// As `work`.
pub(crate) fn with_directory<T>(flags: &Flags, work: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    if !flags.text("db").is_empty() {
        return work(Path::new(flags.text("db")));
    }
    let scratch = Scratch::within(&std::env::temp_dir())?;
    work(&scratch.path().join("db"))
}
