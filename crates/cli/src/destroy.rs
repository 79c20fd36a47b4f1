//! `esker destroy`: [`Db::destroy`], asked for twice.
//!
//! Places that an OPTIONS file names are left alone, since a copied directory may name those of the original.

use crate::directory::Directory;
use crate::failure::{Failure, Outcome};
use crate::out::Out;
use crate::text::{plural, size};
use clap::Args;
use esker::{Db, Options};
use esker_status::Error;
use serde_json::json;
use std::path::PathBuf;

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
    let would = Db::destroy_dry_run(&args.db, &Options::new())?;
    if would.files == 0 {
        let e = Error::invalid_argument("there is no database in this directory");
        return Err(e.with_file(&args.db).into());
    }
    if !args.yes {
        return Err(Failure::Usage(format!(
            "this removes {} ({}) from {}; add --yes to do it",
            plural(would.files, "file"),
            size(would.bytes),
            args.db.display()
        )));
    }
    let done = Db::destroy(&args.db, &Options::new())?;
    for file in dir.elsewhere() {
        out.line(format!("left alone: {}", file.path.display()))?;
        out.object(|| json!({"type": "left", "path": file.path.to_string_lossy()}))?;
    }
    out.line(format!(
        "removed {} ({})",
        plural(done.files, "file"),
        size(done.bytes)
    ))?;
    out.object(|| {
        json!({"type": "destroyed", "files": done.files, "bytes": done.bytes,
            "directory_removed": done.directory_removed})
    })
}
