//! `esker load`: puts the lines of a dump into a database; with `--json`, the objects of one.

use crate::database::{CreateArgs, DbArgs, HexArgs, Open};
use crate::failure::Outcome;
use crate::out::Out;
use crate::progress::Progress;
use crate::scan::{ARROW, TRAILER};
use crate::text::{plural, take_bytes, unhex};
use clap::Args;
use esker::{WriteBatch, WriteOptions};
use esker_format::FamilyId;
use esker_status::{Error, ErrorKind, Result};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Bytes of a batch.
const BATCH: usize = 1 << 20;

/// Arguments of `esker load`.
#[derive(Args, Debug)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    db: DbArgs,
    #[command(flatten)]
    create: CreateArgs,
    #[command(flatten)]
    hex: HexArgs,
    /// Read this file instead of standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Write without the log, and flush at the end
    #[arg(long, alias = "disable_wal")]
    disable_wal: bool,
    /// Compact at the end
    #[arg(long)]
    compact: bool,
}

/// Runs `esker load`.
pub(crate) fn run(args: &LoadArgs, out: &mut Out) -> Outcome {
    let mut input = open_input(args.file.as_deref())?;
    let open = args.db.write(args.create.create_if_missing)?;
    let loaded = lines(args, &mut *input, &open, out.is_json());
    // What was loaded before a bad line stays, and is told.
    let (count, failure) = match loaded {
        Ok(count) => (count, None),
        Err((count, e)) => (count, Some(e)),
    };
    if args.disable_wal {
        open.db.flush()?;
    }
    if args.compact && failure.is_none() {
        open.db
            .compact_range_opt(&open.family, None, None, &crate::compact::forced())?;
    }
    open.close()?;
    out.line(format!("{} loaded", plural(count, "line")))?;
    out.object(|| json!({"type": "loaded", "keys": count}))?;
    out.flush()?;
    failure.map_or(Ok(()), |e| Err(e.into()))
}

/// The lines of a file, or of standard input.
pub(crate) fn open_input(path: Option<&Path>) -> Result<Box<dyn BufRead>> {
    Ok(match path {
        None => Box::new(io::stdin().lock()),
        Some(path) => {
            let file = std::fs::File::open(path).map_err(|e| Error::io("open", path, &e))?;
            Box::new(BufReader::with_capacity(1 << 16, file))
        }
    })
}

/// Loads all lines; with an error comes the number of lines that were loaded before it.
fn lines(
    args: &LoadArgs,
    input: &mut dyn BufRead,
    open: &Open,
    is_json: bool,
) -> Result<u64, (u64, Error)> {
    let progress = Progress::count("loading");
    let options = if args.disable_wal {
        WriteOptions::unlogged()
    } else {
        WriteOptions::default()
    };
    let family = FamilyId(open.family.id());
    let mut batch = WriteBatch::new();
    let (mut number, mut loaded) = (0u64, 0u64);
    let mut line = Vec::new();
    loop {
        line.clear();
        number += 1;
        let read = input.read_until(b'\n', &mut line).map_err(|e| {
            (
                loaded,
                Error::new(ErrorKind::Io, format!("read line {number}: {e}")),
            )
        })?;
        if read > 0 {
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            let pair = if is_json {
                pair_of_json(args.hex, &line)
            } else {
                pair(args.hex, &line)
            };
            let put = pair
                .map_err(|e| Error::invalid_argument(format!("line {number}: {}", e.message())))
                .and_then(|pair| pair.map_or(Ok(()), |(k, v)| batch.put_cf(family, &k, &v)));
            put.map_err(|e| (loaded, e))?;
        }
        if batch.data_size() >= BATCH || (read == 0 && batch.count() > 0) {
            open.db
                .write_opt(&mut batch, &options)
                .map_err(|e| (loaded, e))?;
            loaded += u64::from(batch.count());
            progress.add(u64::from(batch.count()));
            batch.clear();
        }
        if read == 0 {
            return Ok(loaded);
        }
    }
}

/// Key and value.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// Key and value of a line; `None` for the line that ends a dump, and for empty lines.
pub(crate) fn pair(hex: HexArgs, line: &[u8]) -> Result<Option<Pair>> {
    let Some(at) = line.windows(ARROW.len()).position(|w| w == ARROW) else {
        if line.is_empty() || line.starts_with(TRAILER) {
            return Ok(None);
        }
        return Err(Error::invalid_argument(
            "no \" ==> \" between key and value",
        ));
    };
    let (key, value) = (&line[..at], &line[at + ARROW.len()..]);
    let key = if hex.keys() {
        unhex(key)?
    } else {
        key.to_vec()
    };
    let value = if hex.values() {
        unhex(value)?
    } else {
        value.to_vec()
    };
    Ok(Some((key, value)))
}

/// Key and value of a line of `esker dump --json`; `None` for lines that hold no entry.
pub(crate) fn pair_of_json(hex: HexArgs, line: &[u8]) -> Result<Option<Pair>> {
    if line.is_empty() {
        return Ok(None);
    }
    let object: Value = serde_json::from_slice(line).map_err(|e| {
        let text = format!("not an object of JSON: {e}");
        Error::invalid_argument(text).with_hint("without --json, lines are KEY ==> VALUE")
    })?;
    if object["type"] != "entry" {
        return Ok(None);
    }
    let lacks = |name: &str| Error::invalid_argument(format!("there is no {name:?}"));
    let key = take_bytes(&object, "key", hex.keys())?.ok_or_else(|| lacks("key"))?;
    let value = take_bytes(&object, "value", hex.values())?.ok_or_else(|| lacks("value"))?;
    Ok(Some((key, value)))
}
