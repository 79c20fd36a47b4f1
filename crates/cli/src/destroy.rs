//! `esker destroy`: removes a database's files, and nothing else.
//!
//! Only files whose names belong to the format and that lie in the directory itself are removed; `CURRENT`
//! goes first, so that what an interruption leaves is no database. Places that an OPTIONS file names are
//! left alone, since a copied directory may name those of the original.

use crate::checkpoint::in_use;
use crate::directory::Directory;
use crate::failure::{Failure, Outcome};
use crate::out::Out;
use crate::text::{plural, size};
use clap::Args;
use esker_env::FileSystem;
use esker_format::file_name::{ARCHIVE_DIR, CURRENT, FileKind, LOCK, parse_file_name};
use esker_status::{Error, Result};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Arguments of `esker destroy`.
#[derive(Args, Debug)]
pub(crate) struct DestroyArgs {
    /// The database's directory
    #[arg(long, value_name = "DB")]
    db: PathBuf,
    /// Do it; without this, only say what would go
    #[arg(long)]
    yes: bool,
}

/// Runs `esker destroy`.
pub(crate) fn run(args: &DestroyArgs, out: &mut Out) -> Outcome {
    let dir = Directory::read(&args.db)?;
    let is_database = dir.files.iter().any(|f| {
        matches!(
            f.kind,
            FileKind::Current | FileKind::Manifest | FileKind::Table | FileKind::Wal
        )
    });
    if !is_database {
        let e = Error::invalid_argument("there is no database in this directory");
        return Err(e.with_file(&args.db).into());
    }
    let (mut mine, elsewhere): (Vec<_>, Vec<_>) = dir
        .files
        .iter()
        .partition(|f| f.path.parent() == Some(&*dir.path));
    let bytes = mine.iter().map(|f| f.len).fold(0, u64::saturating_add);
    if !args.yes {
        return Err(Failure::Usage(format!(
            "this removes {} ({}) from {}; add --yes to do it",
            plural(mine.len() as u64, "file"),
            size(bytes),
            args.db.display()
        )));
    }
    let lock = dir.fs.lock(&dir.path.join(LOCK)).map_err(in_use)?;
    mine.sort_by_key(|f| f.name != CURRENT);
    for file in mine.iter().filter(|f| f.kind != FileKind::Lock) {
        dir.fs.remove_file(&file.path)?;
    }
    let archived = remove_archive(&dir, &dir.path.join(ARCHIVE_DIR))?;
    dir.fs.remove_file(&dir.path.join(LOCK))?;
    drop(lock);
    // A directory that holds something else stays.
    let gone = dir.fs.remove_dir(&dir.path).is_ok();
    let removed = mine.len() as u64 + archived;
    for file in &elsewhere {
        out.line(format!("left alone: {}", file.path.display()))?;
        out.object(|| json!({"type": "left", "path": file.path.to_string_lossy()}))?;
    }
    out.line(format!(
        "removed {} ({})",
        plural(removed, "file"),
        size(bytes)
    ))?;
    out.object(|| {
        json!({"type": "destroyed", "files": removed, "bytes": bytes, "directory_removed": gone})
    })
}

/// Removes archived logs, and the archive when nothing else is in it.
fn remove_archive(dir: &Directory, path: &Path) -> Result<u64> {
    if !dir.fs.exists(path)? {
        return Ok(0);
    }
    let mut removed = 0;
    for entry in dir.fs.read_dir(path)? {
        if entry.is_file && matches!(parse_file_name(&entry.name), Some((FileKind::Wal, _))) {
            dir.fs.remove_file(&path.join(&entry.name))?;
            removed += 1;
        }
    }
    // It stays when somebody else put something there.
    let _ = dir.fs.remove_dir(path);
    Ok(removed)
}
