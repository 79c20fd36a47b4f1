//! `esker checkpoint`: a second database with the same contents, sharing table files where it can.
//!
//! Works on the directory under its lock, without opening the database: tables and blob files never change,
//! so they get a second name; the MANIFEST up to its last whole edit, the logs, OPTIONS and IDENTITY are
//! copied. Everything is made and synced under a temporary name and renamed at the end, so that a target
//! that exists is whole.

use crate::directory::{Directory, FileAt};
use crate::failure::{Failure, Outcome};
use crate::fold::Fold;
use crate::out::Out;
use crate::progress::Progress;
use crate::text::{plural, size};
use clap::Args;
use esker_env::{FileSystem, PosixFs, ReadOptions, WriteOptions};
use esker_files::current;
use esker_format::file_name::{FileKind, LOCK, manifest_name};
use esker_status::{Error, ErrorKind, Result};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Bytes copied at once.
const CHUNK: usize = 1 << 20;

/// Arguments of `esker checkpoint`.
#[derive(Args, Debug)]
pub(crate) struct CheckpointArgs {
    /// The database's directory
    #[arg(long, value_name = "DB")]
    db: PathBuf,
    /// Where the checkpoint goes; must not exist
    #[arg(value_name = "TARGET")]
    target: PathBuf,
}

/// Runs `esker checkpoint`.
pub(crate) fn run(args: &CheckpointArgs, out: &mut Out) -> Outcome {
    let fs = PosixFs::new();
    if fs.exists(&args.target)? {
        return Err(Failure::Usage(format!(
            "{} exists already",
            args.target.display()
        )));
    }
    // Before the lock, which would make a file in a directory that is no database.
    current::read(&fs, &args.db)?;
    let _lock = fs.lock(&args.db.join(LOCK)).map_err(in_use)?;
    let dir = Directory::read(&args.db)?;
    let fold = sound(&dir)?;
    let files = live_files(&dir, &fold)?;
    let temp = temporary(&args.target)?;
    if fs.exists(&temp)? {
        let e = Error::new(
            ErrorKind::Io,
            "left over from a checkpoint that was interrupted",
        );
        return Err(e.with_file(temp).with_hint("remove it").into());
    }
    let made = make(&dir, &fold, &files, &temp).and_then(|made| {
        fs.rename(&temp, &args.target)?;
        fs.sync_dir(&parent(&args.target))?;
        Ok(made)
    });
    let made = match made {
        Ok(made) => made,
        Err(e) => {
            // The failure is what matters; what cannot be removed is named by the next attempt.
            let _ = std::fs::remove_dir_all(&temp);
            return Err(e.into());
        }
    };
    out.line(format!(
        "{}: {} linked, {} copied ({})",
        args.target.display(),
        plural(made.linked, "file"),
        plural(made.copied, "file"),
        size(made.bytes)
    ))?;
    out.object(|| {
        json!({"type": "checkpoint", "target": args.target.to_string_lossy(), "linked": made.linked,
            "copied": made.copied, "copied_bytes": made.bytes})
    })
}

/// Says what a lock that is held means.
pub(crate) fn in_use(e: Error) -> Error {
    e.with_hint("another process has the database open")
}

fn temporary(target: &Path) -> Result<PathBuf> {
    let name = target
        .file_name()
        .ok_or_else(|| Error::invalid_argument("the target has no name").with_file(target))?;
    let mut name = name.to_owned();
    name.push(".tmp");
    Ok(target.with_file_name(name))
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The state of the database, when all of it can be vouched for.
fn sound(dir: &Directory) -> Result<Fold> {
    let fold = Fold::live(dir)?;
    if let Some(e) = fold.problems.first() {
        return Err(e.clone());
    }
    for family in fold.families.values() {
        match &family.version {
            Err(e) if e.kind() != ErrorKind::NotSupported => return Err(e.clone()),
            _ => {}
        }
    }
    Ok(fold)
}

/// What a checkpoint shares or copies, but for the MANIFEST.
fn live_files<'d>(dir: &'d Directory, fold: &Fold) -> Result<Vec<&'d FileAt>> {
    let mut out = Vec::new();
    let mut need = |kind: FileKind, number, name: &str| -> Result<()> {
        let file = dir.find(kind, number).ok_or_else(|| {
            Error::corruption(format!("{name} {number} is missing")).with_file(&dir.path)
        })?;
        if file.path.parent() != Some(&*dir.path) {
            let e = Error::not_supported("checkpoint of a database with several directories");
            return Err(e.with_file(&file.path));
        }
        out.push(file);
        Ok(())
    };
    for family in fold.families.values() {
        for (_, meta) in family.files.values() {
            need(FileKind::Table, meta.number, "table")?;
        }
        match &family.version {
            Ok(version) => {
                for number in version.blob_files().keys() {
                    need(FileKind::Blob, *number, "blob file")?;
                }
            }
            // Without an order there is no tree; all blob files go along.
            Err(_) => {
                for file in dir.of(FileKind::Blob) {
                    need(FileKind::Blob, file.number, "blob file")?;
                }
            }
        }
    }
    out.extend(dir.of(FileKind::Wal).filter(|f| f.number >= fold.min_log()));
    out.extend(dir.of(FileKind::Options).max_by_key(|f| f.number));
    out.extend(dir.of(FileKind::Identity));
    Ok(out)
}

#[derive(Default)]
struct Made {
    linked: u64,
    copied: u64,
    bytes: u64,
}

fn make(dir: &Directory, fold: &Fold, files: &[&FileAt], temp: &Path) -> Result<Made> {
    let fs = &dir.fs;
    fs.create_dir_all(temp)?;
    let progress = Progress::bytes("checkpoint", files.iter().map(|f| f.len).sum());
    let mut made = Made::default();
    for file in files {
        let to = temp.join(&file.name);
        let shared = matches!(file.kind, FileKind::Table | FileKind::Blob);
        // Another device, or a filesystem without links: copied like the rest.
        if shared && fs.hard_link(&file.path, &to).is_ok() {
            made.linked += 1;
        } else {
            made.bytes += copy(fs, &file.path, &to, u64::MAX)?;
            made.copied += 1;
        }
        progress.add(file.len);
    }
    let manifest = temp.join(manifest_name(fold.number));
    made.bytes += copy(fs, &fold.path, &manifest, fold.valid_end)?;
    made.copied += 1;
    current::install(fs, temp, fold.number)?;
    fs.sync_dir(temp)?;
    Ok(made)
}

/// Copies at most `limit` bytes and syncs them.
pub(crate) fn copy(fs: &PosixFs, from: &Path, to: &Path, limit: u64) -> Result<u64> {
    let source = fs.open_read(from, ReadOptions::default())?;
    let exclusive = WriteOptions {
        exclusive: true,
        ..WriteOptions::default()
    };
    let mut target = fs.create(to, exclusive)?;
    let mut buffer = vec![0; CHUNK];
    let mut at = 0u64;
    while at < limit {
        let want = usize::try_from(limit - at).unwrap_or(CHUNK).min(CHUNK);
        let got = source.read_at(at, &mut buffer[..want])?;
        if got == 0 {
            break;
        }
        target.append(&buffer[..got])?;
        at += got as u64;
    }
    if limit != u64::MAX && at < limit {
        return Err(Error::corruption("the file ended while it was copied").with_file(from));
    }
    target.flush()?;
    target.sync()?;
    target.close()?;
    Ok(at)
}
