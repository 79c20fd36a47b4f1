//! `esker manifest`: the edits of a MANIFEST, or the state they add up to.

use crate::directory::{Directory, is_dir};
use crate::failure::Outcome;
use crate::fold::{Family, Fold, hinted, live_number};
use crate::out::Out;
use crate::text::TextFormat;
use crate::version_edit::{edit_json, edit_text, file_json, file_text};
use clap::Args;
use esker_files::manifest::ManifestReader;
use esker_format::file_name::{FileKind, manifest_name, parse_file_name};
use esker_format::{FileNo, Level};
use esker_status::{Error, Result};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Arguments of `esker manifest`.
#[derive(Args, Debug)]
pub(crate) struct ManifestArgs {
    /// A MANIFEST file, or a database's directory, whose live MANIFEST it is then
    #[arg(value_name = "FILE|DB")]
    path: PathBuf,
    /// Show the state that the edits add up to instead of the edits
    #[arg(long)]
    tree: bool,
    /// Show keys in hexadecimal
    #[arg(long)]
    hex: bool,
}

/// Runs `esker manifest`.
pub(crate) fn run(args: &ManifestArgs, out: &mut Out) -> Outcome {
    let form = TextFormat::whole(args.hex);
    let (dir, path, number) = locate(&args.path)?;
    if args.tree {
        return show_tree(&Fold::read(&dir, &path, number), form, out);
    }
    let mut reader = ManifestReader::open(&dir.fs, &path).map_err(hinted)?;
    while let Some(group) = reader.next_group().map_err(hinted)? {
        for edit in &group.edits {
            out.line(format!("{:>8} {}", group.offset, edit_text(edit, form)))?;
            out.object(|| edit_json(edit, group.offset, form))?;
        }
    }
    if reader.has_torn_tail() {
        let at = reader.valid_end();
        out.line(format!(
            "{at:>8} unfinished: what follows never took effect"
        ))?;
        out.object(|| json!({"type": "unfinished", "offset": at}))?;
    }
    Ok(())
}

fn locate(path: &Path) -> Result<(Directory, PathBuf, FileNo)> {
    if is_dir(path)? {
        let dir = Directory::read(path)?;
        let number = live_number(&dir)?;
        let path = dir.path.join(manifest_name(number));
        return Ok((dir, path, number));
    }
    let name = path
        .file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default();
    let number = match parse_file_name(&name) {
        Some((FileKind::Manifest, number)) => number,
        Some(_) => {
            let e = Error::invalid_argument(format!("{name} is not a MANIFEST"));
            return Err(e.with_hint("give a MANIFEST-NNNNNN file or the database's directory"));
        }
        None => FileNo(0),
    };
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    Ok((Directory::read(parent)?, path.to_owned(), number))
}

fn show_tree(fold: &Fold, form: TextFormat, out: &mut Out) -> Outcome {
    let or_none = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    out.line(format!(
        "MANIFEST {}: {} edits",
        fold.path.display(),
        fold.edits
    ))?;
    out.line(format!(
        "  db id                  {}",
        fold.db_id.as_deref().unwrap_or("-")
    ))?;
    for (name, value) in [
        ("next file number", fold.next_file_number.map(|n| n.0)),
        ("last sequence", fold.last_sequence.map(|n| n.0)),
        (
            "max column family",
            fold.max_column_family.map(|n| u64::from(n.0)),
        ),
        (
            "min log number to keep",
            fold.min_log_number_to_keep.map(|n| n.0),
        ),
    ] {
        out.line(format!("  {name:<22} {}", or_none(value)))?;
    }
    for (number, size) in &fold.tracked_logs {
        out.line(format!(
            "  tracked log            {number} synced {}",
            or_none(*size)
        ))?;
    }
    out.object(|| {
        json!({"type": "manifest", "path": fold.path.to_string_lossy(), "edits": fold.edits,
            "db_id": fold.db_id, "next_file_number": fold.next_file_number.map(|n| n.0),
            "last_sequence": fold.last_sequence.map(|n| n.0),
            "max_column_family": fold.max_column_family.map(|n| n.0),
            "min_log_number_to_keep": fold.min_log_number_to_keep.map(|n| n.0),
            "tracked_logs": fold.tracked_logs.iter()
                .map(|(n, size)| json!({"number": n.0, "synced_size": size})).collect::<Vec<_>>(),
            "unfinished_tail": fold.torn})
    })?;
    for family in fold.families.values() {
        show_family(family, form, out)?;
    }
    // Everything that could be read is shown before the complaint.
    out.flush()?;
    match fold.problems.first() {
        None => Ok(()),
        Some(e) => Err(e.clone().into()),
    }
}

fn show_family(family: &Family, form: TextFormat, out: &mut Out) -> Outcome {
    let log = family.log_number.unwrap_or_default();
    let (id, name) = (family.id, &family.name);
    out.line(format!(
        "family {id} {name:?}: comparator {}, log number {log}",
        family.comparator
    ))?;
    out.object(|| {
        json!({"type": "family", "family": id.0, "name": name, "comparator": family.comparator,
            "log_number": family.log_number.map(|n| n.0),
            "problem": family.version.as_ref().err().map(ToString::to_string)})
    })?;
    for (level, file) in by_level(family) {
        out.line(format!("  L{level} {}", file_text(file, form)))?;
        out.object(|| {
            json!({"type": "table", "family": id.0, "level": level.0, "file": file_json(file, form)})
        })?;
    }
    match &family.version {
        Ok(version) => {
            for b in version.blob_files().values() {
                out.line(format!(
                    "  blob {} count={} bytes={} garbage_count={} garbage_bytes={}",
                    b.number, b.total_count, b.total_bytes, b.garbage_count, b.garbage_bytes
                ))?;
                out.object(|| {
                    json!({"type": "blob", "family": id.0, "number": b.number.0,
                        "total_count": b.total_count, "total_bytes": b.total_bytes,
                        "garbage_count": b.garbage_count, "garbage_bytes": b.garbage_bytes})
                })?;
            }
            Ok(())
        }
        Err(e) => out.line(format!("  no tree: {e}")),
    }
}

/// The family's tables in the order of its tree, or by level and number when it has none.
pub(crate) fn by_level(family: &Family) -> Vec<(Level, &esker_format::edit::NewFile)> {
    if let Ok(version) = &family.version {
        let in_order = version
            .files()
            .filter_map(|(_, f)| family.files.get(&f.number));
        return in_order.map(|(level, f)| (*level, f)).collect();
    }
    let mut files: Vec<_> = family
        .files
        .values()
        .map(|(level, f)| (*level, f))
        .collect();
    files.sort_by_key(|(level, f)| (*level, f.number));
    files
}
