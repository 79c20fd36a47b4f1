//! `esker repair`: [`Db::repair_families`] with the options of the database's own OPTIONS file, and its report.

use crate::directory::Directory;
use crate::failure::Outcome;
use crate::out::Out;
use crate::progress::Progress;
use crate::text::{one_line, plural};
use clap::Args;
use esker::{Db, FamilyDescriptor, Options, RepairMode};
use esker_format::file_name::LOST_DIR;
use serde_json::json;
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
}

/// Runs `esker repair`.
pub(crate) fn run(args: &RepairArgs, out: &mut Out) -> Outcome {
    let dir = Directory::read(&args.db)?;
    let (options, families) = options(&dir)?;
    let mode = match args.dry_run {
        true => RepairMode::DryRun,
        false => RepairMode::Repair,
    };
    let progress = Progress::wait("reading tables and logs");
    let report = Db::repair_families(&args.db, &options, &families, mode)?;
    drop(progress);
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
        "{state}: {} in {families} column families",
        plural(tables, "table")
    ))?;
    out.object(|| {
        json!({"type": "repair", "state": state, "tables": tables, "families": families,
            "logs": report.logs, "lost": report.set_aside.len()})
    })
}

/// What the OPTIONS file says, where it can be used: repair must not need it.
fn options(dir: &Directory) -> Outcome<(Options, Vec<FamilyDescriptor>)> {
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
                eprintln!("note: {}", one_line(&text));
            }
        }
    }
    options.db.wal_dir = dir.place_of_logs()?;
    Ok((options, families))
}
