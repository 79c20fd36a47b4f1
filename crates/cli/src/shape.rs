//! `esker shape`: what the tree of each family looks like, from the MANIFEST alone.

use crate::directory::Directory;
use crate::failure::Outcome;
use crate::fold::{Family, Fold, family_options};
use crate::manifest::by_level;
use crate::out::Out;
use crate::text::{TextFormat, plural, size};
use clap::Args;
use esker_format::Level;
use esker_format::edit::NewFile;
use esker_lsm::blob_groups;
use esker_lsm::pick::Policy;
use esker_lsm::plan::Busy;
use esker_lsm::score::{pending_compaction_bytes, scores};
use esker_lsm::shape::{draw, summary};
use esker_lsm::version::Version;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Cells of the widest bar.
const WIDTH: u64 = 40;
/// Bytes of a key in the picture.
const KEY_SHOWN: usize = 24;

/// Arguments of `esker shape`.
#[derive(Args, Debug)]
pub(crate) struct ShapeArgs {
    /// The database's directory
    #[arg(value_name = "DB")]
    path: PathBuf,
    /// Show every table: number[smallest-largest]#size@sequences
    #[arg(long)]
    files: bool,
    /// Show keys in hexadecimal
    #[arg(long)]
    hex: bool,
}

/// Runs `esker shape`.
pub(crate) fn run(args: &ShapeArgs, out: &mut Out) -> Outcome {
    let dir = Directory::read(&args.path)?;
    let mut fold = Fold::live(&dir)?;
    // A tree of a part of the edits is none that ever was.
    if !fold.is_read_to_end && !fold.problems.is_empty() {
        return Err(fold.problems.swap_remove(0).into());
    }
    let form = TextFormat {
        hex: args.hex,
        limit: KEY_SHOWN,
    };
    for family in fold.families.values() {
        let policy = family_options(&dir, &family.name)
            .map_or_else(Policy::default, |o| o.clone().resolve().to_policy());
        picture(family, form, out)?;
        match &family.version {
            Ok(version) => {
                if args.files {
                    for line in draw(version).lines() {
                        out.line(format!("  {line}"))?;
                    }
                }
                for line in summary(version, &policy, &Busy::default()).lines() {
                    out.line(format!("  {line}"))?;
                }
                blobs(version, out)?;
                out.object(|| family_json(family, version, &policy, args.hex))?;
            }
            Err(e) => {
                out.line(format!("  no tree: {e}"))?;
                out.object(|| {
                    json!({"type": "family", "family": family.id.0, "name": family.name,
                        "problem": e.to_string()})
                })?;
            }
        }
    }
    out.flush()?;
    match fold.problems.into_iter().next() {
        None => Ok(()),
        Some(e) => Err(e.into()),
    }
}

/// One bar per level, as wide as its bytes compare with the largest level.
fn picture(family: &Family, form: TextFormat, out: &mut Out) -> Outcome {
    let mut levels: BTreeMap<Level, Vec<&NewFile>> = BTreeMap::new();
    for (level, f) in by_level(family) {
        levels.entry(level).or_default().push(f);
    }
    let bytes = |files: &[&NewFile]| files.iter().map(|f| f.size).fold(0, u64::saturating_add);
    let total = levels
        .values()
        .map(|files| bytes(files))
        .fold(0, u64::saturating_add);
    let widest = levels
        .values()
        .map(|files| bytes(files))
        .max()
        .unwrap_or(0)
        .max(1);
    out.line(format!(
        "family {:?} (id {}): {}, {}",
        family.name,
        family.id,
        plural(family.files.len() as u64, "table"),
        size(total)
    ))?;
    for (level, files) in &levels {
        let here = bytes(files);
        let cells = (u128::from(here) * u128::from(WIDTH)).div_ceil(u128::from(widest)) as usize;
        let bar = "#".repeat(cells.clamp(1, WIDTH as usize));
        let keys = match &family.version {
            Ok(version) => key_range(version, *level, form),
            Err(_) => String::new(),
        };
        let count = plural(files.len() as u64, "table");
        let width = WIDTH as usize;
        out.line(format!(
            "  L{level} {bar:<width$} {count:>12} {:>10}  {keys}",
            size(here)
        ))?;
    }
    Ok(())
}

fn key_range(version: &Version, level: Level, form: TextFormat) -> String {
    let files = version.level(level).files();
    let order = version.order();
    let smallest = files
        .iter()
        .map(|f| f.smallest.user())
        .min_by(|a, b| order.compare(a, b));
    let largest = files
        .iter()
        .map(|f| f.largest.user())
        .max_by(|a, b| order.compare(a, b));
    match (smallest, largest) {
        (Some(lo), Some(hi)) => format!("{} .. {}", form.show(lo), form.show(hi)),
        _ => String::new(),
    }
}

fn blobs(version: &Version, out: &mut Out) -> Outcome {
    let files = version.blob_files();
    if files.is_empty() {
        return Ok(());
    }
    let total: u64 = files
        .values()
        .map(|b| b.total_bytes)
        .fold(0, u64::saturating_add);
    let garbage: u64 = files
        .values()
        .map(|b| b.garbage_bytes)
        .fold(0, u64::saturating_add);
    out.line(format!(
        "  {}, {}, of which {} is garbage",
        plural(files.len() as u64, "blob file"),
        size(total),
        size(garbage)
    ))?;
    for (level, of) in blob_groups::sums(version) {
        out.line(format!(
            "    level {level}: {} of medium values, {}, {}, of which {} is garbage",
            plural(of.groups as u64, "group"),
            plural(of.files as u64, "file"),
            size(of.bytes),
            size(of.garbage)
        ))?;
    }
    Ok(())
}

/// The groups of medium values of each level that has any.
fn groups_json(version: &Version) -> Vec<serde_json::Value> {
    let all = blob_groups::sums(version).into_iter();
    all.map(|(level, of)| {
        json!({"level": level.0, "groups": of.groups, "files": of.files, "bytes": of.bytes,
            "garbage_bytes": of.garbage})
    })
    .collect()
}

fn family_json(
    family: &Family,
    version: &Version,
    policy: &Policy,
    hex: bool,
) -> serde_json::Value {
    let scores = scores(version, policy, &Busy::default());
    let form = TextFormat::whole(hex);
    let levels: Vec<_> = (0u8..)
        .map(Level)
        .zip(version.levels())
        .map(|(level, files)| {
            let target =
                Some(scores.targets.of(level)).filter(|t| level > Level::L0 && *t < u64::MAX);
            let tables: Vec<_> = files
                .files()
                .iter()
                .map(|f| {
                    json!({"number": f.number.0, "size": f.size,
                        "smallest_key": form.show(f.smallest.user()),
                        "largest_key": form.show(f.largest.user()),
                        "smallest_seq": f.smallest_seq.0, "largest_seq": f.largest_seq.0})
                })
                .collect();
            json!({"level": level.0, "files": files.len(), "bytes": files.bytes(),
                "target_bytes": target, "score": scores.of(level),
                "base": level == scores.targets.base_level, "tables": tables})
        })
        .collect();
    json!({"type": "family", "family": family.id.0, "name": family.name,
        "comparator": family.comparator, "bytes": version.bytes(),
        "pending_compaction_bytes": pending_compaction_bytes(version, policy),
        "blob_files": version.blob_files().len(), "blob_groups": groups_json(version),
        "levels": levels})
}
