//! The one scan for files that nothing needs, when a database opens.
//!
//! Rules, in the spirit of "never delete on doubt": a table or blob file goes only when the
//! MANIFEST was read to a clean end, does not list it, and must have known it (its number is below
//! the next file number). A log goes when every family's data in it is in tables. Superseded
//! MANIFESTs, old OPTIONS files and temporaries go. Anything else, and every name that does not
//! parse, stays.

use super::fold::ManifestContents;
use esker_env::Env;
use esker_format::FileNo;
use esker_format::file_name::{FileKind, parse_file_name};
use esker_status::Result;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Files that must stay.
#[derive(Debug, Default)]
pub(crate) struct FilesInUse {
    pub(crate) tables: HashSet<FileNo>,
    pub(crate) blobs: HashSet<FileNo>,
    /// Logs from this number on.
    pub(crate) oldest_log: FileNo,
    /// The MANIFEST that is current now.
    pub(crate) manifest: FileNo,
    /// Edits may be missing from the MANIFEST: what it does not list stays.
    pub(crate) is_doubtful: bool,
    /// The newest OPTIONS files.
    pub(crate) options: Vec<FileNo>,
}

/// The files of `dir` that nothing needs.
pub(crate) fn unneeded(
    env: &Env,
    dir: &Path,
    folded: &ManifestContents,
    needed: &FilesInUse,
) -> Result<Vec<PathBuf>> {
    let known = |n: FileNo| !needed.is_doubtful && n < folded.next_file;
    let mut out = Vec::new();
    for entry in env.fs.read_dir(dir)? {
        let Some((kind, n)) = parse_file_name(&entry.name) else {
            continue;
        };
        let goes = entry.is_file
            && match kind {
                FileKind::Table => known(n) && !needed.tables.contains(&n),
                FileKind::Blob => known(n) && !needed.blobs.contains(&n),
                FileKind::Wal => n < needed.oldest_log,
                FileKind::Manifest => n < needed.manifest,
                FileKind::Options => !needed.options.contains(&n),
                FileKind::Temp => true,
                _ => false,
            };
        if goes {
            out.push(dir.join(&entry.name));
        }
    }
    Ok(out)
}

/// Returns whether the file is of a kind that is put into paths of tables.
pub(crate) fn is_data(path: &Path) -> bool {
    let name = path.file_name().and_then(|n| n.to_str());
    let kind = name.and_then(parse_file_name).map(|(kind, _)| kind);
    matches!(
        kind,
        Some(FileKind::Table | FileKind::Blob | FileKind::Temp)
    )
}

/// The largest number in any file name of `dir`.
pub(crate) fn largest_number(env: &Env, dir: &Path) -> Result<FileNo> {
    let numbers = env
        .fs
        .read_dir(dir)?
        .into_iter()
        .filter_map(|e| parse_file_name(&e.name))
        .filter(|(kind, n)| {
            *n < FileNo::LIMIT
                && matches!(
                    kind,
                    FileKind::Table
                        | FileKind::Blob
                        | FileKind::Wal
                        | FileKind::Manifest
                        | FileKind::Options
                        | FileKind::Temp
                )
        });
    Ok(numbers.map(|(_, n)| n).max().unwrap_or_default())
}

/// The two newest OPTIONS files, `newest` among them.
pub(crate) fn newest_options(env: &Env, dir: &Path, newest: FileNo) -> Result<Vec<FileNo>> {
    let mut all: Vec<FileNo> = env
        .fs
        .read_dir(dir)?
        .iter()
        .filter_map(|e| {
            parse_file_name(&e.name)
                .filter(|(k, _)| *k == FileKind::Options && !e.name.ends_with(".dbtmp"))
        })
        .map(|(_, n)| n)
        .chain([newest])
        .collect();
    all.sort_unstable();
    all.dedup();
    Ok(all.split_off(all.len().saturating_sub(2)))
}
