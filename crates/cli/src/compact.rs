//! `esker compact`: rewrites a range of keys into the last level.

use crate::counted::BytesRead;
use crate::database::{DbArgs, HexArgs, Open};
use crate::failure::Outcome;
use crate::out::Out;
use crate::progress::Progress;
use crate::text::size;
use clap::Args;
use esker::options::BottommostLevelCompaction;
use esker::{CompactRangeOptions, FamilyMetaOptions};
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

/// Bytes of the tables that hold keys of the range: each is read at least once.
fn due(open: &Open, from: Option<&[u8]>, to: Option<&[u8]>) -> u64 {
    let range = FamilyMetaOptions {
        start: from.map(<[u8]>::to_vec),
        end: to.map(<[u8]>::to_vec),
        ..FamilyMetaOptions::default()
    };
    open.db.family_metadata_opt(&open.family, &range).size
}

/// Runs `esker compact`.
pub(crate) fn run(args: &CompactArgs, out: &mut Out) -> Outcome {
    let bound = |text: &Option<OsString>| text.as_ref().map(|t| args.hex.key(t)).transpose();
    let (from, to) = (bound(&args.from)?, bound(&args.to)?);
    let read = BytesRead::default();
    let open = args.db.write_in(false, Some(read.env()))?;
    let bytes = |open: &Open| {
        open.db
            .int_property(&open.family, "rocksdb.total-sst-files-size")
            .unwrap_or(0)
    };
    let before = bytes(&open);
    let due = due(&open, from.as_deref(), to.as_deref());
    let start = read.get();
    let progress = Progress::watched("compacting", due, move || read.get() - start);
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
