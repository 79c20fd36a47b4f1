//! `esker write-sst` and `ingest`: tables made outside of a database, and taken into one.

use crate::database::{DbArgs, HexArgs};
use crate::failure::Outcome;
use crate::load::{Pair, open_input, pair, pair_of_json};
use crate::out::Out;
use crate::text::{plural, size};
use clap::Args;
use esker::{IngestOptions, Options, SstFileWriter};
use esker_env::{FileSystem, PosixFs};
use esker_status::{Error, ErrorKind, Result};
use serde_json::json;
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// Arguments of `esker write-sst`.
#[derive(Args, Debug)]
pub(crate) struct WriteSstArgs {
    #[command(flatten)]
    db: DbArgs,
    #[command(flatten)]
    hex: HexArgs,
    /// Read this file instead of standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The table file to write; must not exist
    #[arg(value_name = "TARGET")]
    target: PathBuf,
}

/// Arguments of `esker ingest`.
#[derive(Args, Debug)]
pub(crate) struct IngestArgs {
    #[command(flatten)]
    db: DbArgs,
    /// The table files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Move the files instead of copying them
    #[arg(long, alias = "move_files")]
    move_files: bool,
    /// Fail where the files overlap what is there, instead of giving them a sequence number
    #[arg(long)]
    no_global_seqno: bool,
    /// Fail where memtables would have to be flushed first
    #[arg(long)]
    no_blocking_flush: bool,
    /// Check every block first
    #[arg(long)]
    verify: bool,
}

/// Runs `esker write-sst`.
pub(crate) fn write(args: &WriteSstArgs, out: &mut Out) -> Outcome {
    if PosixFs::new().exists(&args.target)? {
        let e = Error::invalid_argument("the table file exists already");
        return Err(e.with_file(&args.target).into());
    }
    let mut input = open_input(args.file.as_deref())?;
    let open = args.db.read()?;
    let mut options = Options::new();
    options.family = open.family.options();
    let writer = SstFileWriter::new(&options)?.for_family(&open.family);
    let written = written(args, writer, &mut *input, out.is_json());
    if written.is_err() {
        // A part of a table is of no use to anybody.
        let _gone = PosixFs::new().remove_file(&args.target);
    }
    let (bytes, entries) = written?;
    out.line(format!(
        "{}: {} ({})",
        args.target.display(),
        plural(entries, "entry"),
        size(bytes)
    ))?;
    out.object(|| {
        json!({"type": "table", "path": args.target.to_string_lossy(), "bytes": bytes,
            "entries": entries})
    })
}

/// Writes the entries of all lines; the bytes and the number of entries.
fn written(
    args: &WriteSstArgs,
    mut writer: SstFileWriter,
    input: &mut dyn BufRead,
    is_json: bool,
) -> Result<(u64, u64)> {
    writer.open(&args.target)?;
    let (mut line, mut number) = (Vec::new(), 0u64);
    loop {
        line.clear();
        number += 1;
        let at = |e: Error| Error::new(e.kind(), format!("line {number}: {}", e.message()));
        let read = input
            .read_until(b'\n', &mut line)
            .map_err(|e| at(Error::new(ErrorKind::Io, format!("read: {e}"))))?;
        if read == 0 {
            break;
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        let pair: Option<Pair> = if is_json {
            pair_of_json(args.hex, &line).map_err(at)?
        } else {
            pair(args.hex, &line).map_err(at)?
        };
        if let Some((key, value)) = pair {
            writer.put(&key, &value).map_err(at)?;
        }
    }
    let made = writer.finish()?;
    Ok((made.file_size, made.num_entries))
}

/// Runs `esker ingest`.
pub(crate) fn ingest(args: &IngestArgs, out: &mut Out) -> Outcome {
    let sizes = args.files.iter().map(|f| PosixFs::new().metadata(f));
    let sizes = sizes
        .map(|m| m.map(|m| m.len))
        .collect::<Result<Vec<_>>>()?;
    let open = args.db.write(false)?;
    let mut options = IngestOptions::default();
    options.move_files = args.move_files;
    options.allow_global_seqno = !args.no_global_seqno;
    options.allow_blocking_flush = !args.no_blocking_flush;
    options.verify_checksums_before_ingest = args.verify;
    let files: Vec<&Path> = args.files.iter().map(PathBuf::as_path).collect();
    open.db.ingest(&open.family, &files, &options)?;
    open.close()?;
    let (count, bytes) = (files.len() as u64, sizes.iter().sum());
    out.line(format!(
        "{} ({}) taken in",
        plural(count, "table"),
        size(bytes)
    ))?;
    out.object(|| json!({"type": "ingested", "tables": count, "bytes": bytes}))
}
