//! `esker checkpoint`: [`Db::checkpoint_closed`] and its report.

use crate::directory::Directory;
use crate::failure::{Failure, Outcome};
use crate::out::Out;
use crate::progress::Progress;
use crate::text::{plural, size};
use clap::Args;
use esker::{Db, Options};
use esker_env::FileSystem;
use serde_json::json;
use std::path::PathBuf;

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
    let dir = Directory::read(&args.db)?;
    if dir.fs.exists(&args.target)? {
        return Err(Failure::Usage(format!(
            "{} exists already",
            args.target.display()
        )));
    }
    let mut options = Options::new();
    options.db.wal_dir = dir.place_of_logs()?;
    let progress = Progress::wait("checkpoint");
    let made = Db::checkpoint_closed(&args.db, &args.target, &options)?;
    drop(progress);
    out.line(format!(
        "{}: {} linked, {} copied ({})",
        args.target.display(),
        plural(made.linked, "file"),
        plural(made.copied, "file"),
        size(made.copied_bytes)
    ))?;
    out.object(|| {
        json!({"type": "checkpoint", "target": args.target.to_string_lossy(), "linked": made.linked,
            "copied": made.copied, "copied_bytes": made.copied_bytes})
    })
}
