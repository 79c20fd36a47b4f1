//! `esker compact`: rewrites a range of keys into the last level.

use crate::database::{DbArgs, HexArgs};
use crate::failure::Outcome;
use crate::out::Out;
use crate::progress::Progress;
use crate::text::size;
use clap::Args;
use esker::CompactRangeOptions;
use esker::options::BottommostLevelCompaction;
use serde_json::json;
use std::ffi::OsString;

/// Arguments of `esker compact`.
#[derive(Args, Debug)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    db: DbArgs,
    #[command(flatten)]
    hex: HexArgs,
    /// From this key
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,
    /// Up to this key
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,
}

/// A compaction that rewrites the last level as well.
pub(crate) fn forced() -> CompactRangeOptions {
    let mut options = CompactRangeOptions::default();
    options.bottommost_level_compaction = BottommostLevelCompaction::Force;
    options
}

/// Runs `esker compact`.
pub(crate) fn run(args: &CompactArgs, out: &mut Out) -> Outcome {
    let bound = |text: &Option<OsString>| text.as_ref().map(|t| args.hex.key(t)).transpose();
    let (from, to) = (bound(&args.from)?, bound(&args.to)?);
    let open = args.db.write(false)?;
    let bytes = |open: &crate::database::Open| {
        open.db
            .int_property(&open.family, "rocksdb.total-sst-files-size")
            .unwrap_or(0)
    };
    let before = bytes(&open);
    let progress = Progress::wait("compacting");
    open.db
        .compact_range_opt(&open.family, from.as_deref(), to.as_deref(), &forced())?;
    drop(progress);
    let after = bytes(&open);
    open.close()?;
    out.line(format!(
        "tables: {} before, {} after",
        size(before),
        size(after)
    ))?;
    out.object(|| json!({"type": "compacted", "bytes_before": before, "bytes_after": after}))
}
