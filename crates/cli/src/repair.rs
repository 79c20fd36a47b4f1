//! `esker repair`: [`Db::repair_with`] with the options of the database's own OPTIONS file, and its
//! report.

use crate::counted::BytesRead;
use crate::directory::Directory;
use crate::failure::{Failure, Outcome};
use crate::out::Out;
use crate::progress::Progress;
use crate::say;
use crate::text::{one_line, plural};
use clap::Args;
use esker::{Db, FamilyDescriptor, Options, RepairMode, RepairOptions, SalvagedTable};
use esker_format::file_name::LOST_DIR;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Arguments of `esker repair`.
#[derive(Args, Debug)]
pub(crate) struct RepairArgs {
    /// The database's directory
    #[arg(long, value_name = "DB")]
    db: PathBuf,
    /// Say what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Set aside files that cannot be read (permissions, a failing disk) too; what they hold is
    /// lost
    #[arg(long)]
    give_up_unreadable: bool,
}

/// Runs `esker repair`.
pub(crate) fn run(args: &RepairArgs, out: &mut Out) -> Outcome {
    let dir = Directory::read(&args.db)?;
    let (mut options, families) = options(&dir)?;
    let read = BytesRead::default();
    options.env = Some(read.env());
    let mode = if args.dry_run {
        RepairMode::DryRun
    } else {
        RepairMode::Repair
    };
    let asked = RepairOptions::new()
        .mode(mode)
        .give_up_unreadable(args.give_up_unreadable);
    let due = dir.files.iter().map(|f| f.len).sum();
    let progress = Progress::watched("reading tables and logs", due, move || read.get());
    let report = Db::repair_with(&args.db, &options, &families, asked)?;
    drop(progress);
    for table in &report.salvaged {
        out.object(|| salvaged(table))?;
    }
    for (kind, lines) in [("loss", &report.losses), ("note", &report.notes)] {
        for text in lines {
            out.line(one_line(text))?;
            out.object(|| json!({"type": kind, "text": text}))?;
        }
    }
    for file in &report.set_aside {
        let (path, reason) = (file.path.display(), &file.reason);
        out.line(one_line(&format!("to {LOST_DIR}/: {path}: {reason}")))?;
        out.object(|| {
            json!({"type": "lost", "path": file.path.to_string_lossy(), "reason": reason,
                "now": file.now.to_string_lossy()})
        })?;
    }
    let state = match (report.is_sound, mode) {
        (true, _) => "nothing to repair",
        (false, RepairMode::DryRun) => "would be repaired",
        (false, RepairMode::Repair) => "repaired",
    };
    let (tables, families) = (report.tables as u64, report.families.len());
    out.line(format!(
        "{state}: {} in {}",
        plural(tables, "table"),
        plural(families as u64, "column family")
    ))?;
    out.object(|| {
        json!({"type": "repair", "state": state, "tables": tables, "families": families,
            "logs": report.logs, "lost": report.set_aside.len(), "salvaged": report.salvaged.len(),
            "lost_data": report.has_lost_data})
    })?;
    if report.has_lost_data {
        Err(Failure::LostData)
    } else {
        Ok(())
    }
}

/// One object: a damaged table of which what can be read is in a new one.
fn salvaged(table: &SalvagedTable) -> Value {
    let text = |key: &Option<Vec<u8>>| key.as_ref().map(|k| k.escape_ascii().to_string());
    let ranges: Vec<_> = table
        .ranges
        .iter()
        .map(|r| {
            json!({"offset": r.offset, "bytes": r.bytes, "first_key": text(&r.first),
                "last_key": text(&r.last), "reason": r.reason})
        })
        .collect();
    json!({"type": "salvaged", "path": table.path.to_string_lossy(), "family": table.family,
        "level": table.level, "table": table.table, "kept": table.kept, "lost": table.lost,
        "lost_range_deletions": table.lost_range_deletions, "reason": table.reason,
        "ranges": ranges})
}

/// Reads the OPTIONS file, where it can be used: repair must not need it.
pub(crate) fn options(dir: &Directory) -> Outcome<(Options, Vec<FamilyDescriptor>)> {
    let mut options = Options::new();
    let mut families = Vec::new();
    if let Some((path, loaded)) = &dir.options {
        let usable = loaded.as_ref().map_err(Clone::clone).and_then(|loaded| {
            let named = loaded.families.iter().map(|(n, o)| (n.as_str(), o));
            esker::options::check(&loaded.db, named)?;
            Ok(loaded)
        });
        match usable {
            Ok(loaded) => {
                options.db = loaded.db.clone();
                let own = loaded.families.iter();
                families.extend(own.map(|(n, o)| FamilyDescriptor::new(n, o.clone())));
            }
            Err(e) => {
                let text = format!("{} is not used: {e}", path.display());
                say::note(&text);
            }
        }
    }
    options.db.wal_dir = dir.place_of_logs()?;
    Ok((options, families))
}
