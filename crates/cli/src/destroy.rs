//! `esker destroy`: [`Db::destroy`], asked for twice.
//!
//! Places that an OPTIONS file names are left alone unless `--with-paths` says that they are the
//! database's, since a copied directory may name those of the original.

use crate::directory::Directory;
use crate::failure::{Failure, Outcome};
use crate::out::Out;
use crate::text::{plural, size};
use clap::Args;
use esker::{Db, FamilyDescriptor, Options};
use esker_env::FileSystem;
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
    /// Say what would go, and change nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Remove the tables in the db_paths and cf_paths that its OPTIONS file names too
    #[arg(long)]
    with_paths: bool,
}

/// Runs `esker destroy`.
pub(crate) fn run(args: &DestroyArgs, out: &mut Out) -> Outcome {
    let dir = Directory::read(&args.db)?;
    let (options, families) = paths(&dir, args.with_paths)?;
    let would = Db::destroy_families_dry_run(&args.db, &options, &families)?;
    if would.files == 0 {
        let e = Error::invalid_argument("there is no database in this directory");
        return Err(e.with_file(&args.db).into());
    }
    if args.dry_run {
        out.line(format!(
            "would remove {} ({})",
            plural(would.files, "file"),
            size(would.bytes)
        ))?;
        return out.object(
            || json!({"type": "would_destroy", "files": would.files, "bytes": would.bytes}),
        );
    }
    if !args.yes {
        return Err(Failure::Usage(format!(
            "this removes {} ({}) from {}; add --yes to do it",
            plural(would.files, "file"),
            size(would.bytes),
            args.db.display()
        )));
    }
    let done = Db::destroy_families(&args.db, &options, &families)?;
    for file in dir.elsewhere() {
        if !dir.fs.exists(&file.path)? {
            continue;
        }
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

/// Options that name the paths of the OPTIONS file, where they are `wanted`.
fn paths(dir: &Directory, wanted: bool) -> Outcome<(Options, Vec<FamilyDescriptor>)> {
    let mut options = Options::new();
    let mut families = Vec::new();
    if let Some((_, loaded)) = dir.options.as_ref().filter(|_| wanted) {
        let loaded = loaded.as_ref().map_err(Clone::clone)?;
        options.db.db_paths.clone_from(&loaded.db.db_paths);
        let own = loaded.families.iter();
        families.extend(own.map(|(n, o)| FamilyDescriptor::new(n, o.clone())));
    }
    Ok((options, families))
}
