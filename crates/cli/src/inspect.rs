//! `esker approxsize`, `property` and `live-files`: what an open database says of itself.

use crate::database::{DbArgs, HexArgs};
use crate::failure::{Failure, Outcome};
use crate::out::Out;
use crate::text::{TextFormat, plural, size};
use clap::Args;
use esker::{Db, LiveFileMeta, ReadOptions};
use esker_status::Error;
use serde_json::json;
use std::ffi::OsString;

/// Arguments of `esker approxsize`.
#[derive(Args, Debug)]
pub(crate) struct ApproximateSizeArgs {
    #[command(flatten)]
    db: DbArgs,
    #[command(flatten)]
    hex: HexArgs,
    /// From this key; from the first when not given
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,
    /// Up to this key; to the last when not given
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,
}

/// Arguments of `esker property`.
#[derive(Args, Debug)]
pub(crate) struct PropertyArgs {
    #[command(flatten)]
    db: DbArgs,
    /// Properties by RocksDB's names, as rocksdb.stats; without, all that are numbers
    names: Vec<String>,
}

/// Arguments of `esker live-files`.
#[derive(Args, Debug)]
pub(crate) struct LiveFilesArgs {
    #[command(flatten)]
    db: DbArgs,
    #[command(flatten)]
    hex: HexArgs,
}

/// Runs `esker approxsize`.
pub(crate) fn approx_size(args: &ApproximateSizeArgs, out: &mut Out) -> Outcome {
    let bound = |text: &Option<OsString>| text.as_ref().map(|t| args.hex.key(t)).transpose();
    let (from, to) = (bound(&args.from)?, bound(&args.to)?);
    let open = args.db.read()?;
    let mut iter = open.db.iter_opt(&open.family, ReadOptions::default(), None);
    let from = from.unwrap_or_else(|| {
        iter.seek_to_first();
        iter.key().to_vec()
    });
    let to = to.unwrap_or_else(|| {
        iter.seek_to_last();
        let mut behind = iter.key().to_vec();
        behind.push(0);
        behind
    });
    iter.status()?;
    let sizes = open.db.approximate_sizes(&open.family, &[(from, to)])?;
    let bytes = sizes.first().copied().unwrap_or_default();
    out.line(bytes.to_string())?;
    out.object(|| json!({"type": "approximate_size", "bytes": bytes}))
}

/// Runs `esker property`.
pub(crate) fn property(args: &PropertyArgs, out: &mut Out) -> Outcome {
    let open = args.db.read()?;
    if args.names.is_empty() {
        for name in Db::property_names() {
            if let Some(value) = open.db.int_property(&open.family, &name) {
                out.line(format!("{name}: {value}"))?;
                out.object(|| json!({"type": "property", "name": name, "value": value}))?;
            }
        }
        return Ok(());
    }
    let mut is_whole = true;
    for name in &args.names {
        match open.db.property_cf(&open.family, name) {
            Some(value) => {
                out.line(format!("{name}: {value}"))?;
                out.object(|| json!({"type": "property", "name": name, "value": value}))?;
            }
            None => {
                is_whole = false;
                crate::say::error(&unknown(name));
            }
        }
    }
    out.flush()?;
    if is_whole { Ok(()) } else { Err(Failure::Said) }
}

fn unknown(name: &str) -> Error {
    let e = Error::invalid_argument(format!("there is no property {name:?}"));
    let bare = name.trim_start_matches("rocksdb.");
    let all = Db::property_names();
    let near: Vec<&str> = all
        .iter()
        .map(String::as_str)
        .filter(|n| bare.len() > 2 && n.contains(bare))
        .collect();
    if near.is_empty() {
        e.with_hint("without a name, `esker property` lists those that are numbers")
    } else {
        e.with_hint(format!("names with {bare} in them: {}", near.join(", ")))
    }
}

/// Runs `esker live-files`.
pub(crate) fn live_files(args: &LiveFilesArgs, out: &mut Out) -> Outcome {
    let open = args.db.read()?;
    let form = TextFormat {
        hex: args.hex.keys(),
        limit: 0,
    };
    let tables = open.db.live_files_metadata();
    for f in &tables {
        show(f, form, out)?;
    }
    let mut blobs = 0;
    for family in open.db.families() {
        for b in open.db.family_metadata(&family).blob_files {
            blobs += 1;
            let path = b.directory.join(&b.name);
            out.line(format!(
                "{} blob {} {} in {}",
                family.name(),
                path.display(),
                size(b.total_bytes),
                plural(b.total_count, "value")
            ))?;
            out.object(|| {
                json!({"type": "blob_file", "family": family.name(), "path": path.to_string_lossy(),
                    "bytes": b.total_bytes, "values": b.total_count,
                    "garbage_bytes": b.garbage_bytes, "garbage_values": b.garbage_count})
            })?;
        }
    }
    out.line(format!(
        "{}, {}",
        plural(tables.len() as u64, "table"),
        plural(blobs, "blob file")
    ))
}

fn show(f: &LiveFileMeta, form: TextFormat, out: &mut Out) -> Outcome {
    let path = f.path();
    let (smallest, largest) = (form.show(&f.smallest_key), form.show(&f.largest_key));
    out.line(format!(
        "{} L{} {} {} [{smallest} .. {largest}] seq={}..{}",
        f.family,
        f.level,
        path.display(),
        size(f.size),
        f.smallest_seq,
        f.largest_seq
    ))?;
    out.object(|| {
        json!({"type": "table", "family": f.family, "level": f.level,
            "path": path.to_string_lossy(), "bytes": f.size, "smallest_key": smallest,
            "largest_key": largest, "smallest_seq": f.smallest_seq, "largest_seq": f.largest_seq,
            "epoch_number": f.epoch_number, "file_creation_time": f.file_creation_time})
    })
}
