//! `esker scan` and `esker dump`: entries in order, as `key ==> value` lines that `esker load` and
//! `ldb load` read.
//!
//! The line form cannot hold every key and value: before it prints anything, `dump` refuses what
//! `load` would read back differently and asks for `--hex`, where everything round-trips.

use crate::database::{DbArgs, HexArgs};
use crate::failure::Outcome;
use crate::out::Out;
use crate::progress::Progress;
use crate::say;
use clap::Args;
use esker::{DbIterator, ReadOptions};
use esker_status::Error;
use serde_json::json;
use std::ffi::OsString;

/// Between key and value of a line.
pub(crate) const ARROW: &[u8] = b" ==> ";
/// How the last line of a dump begins.
pub(crate) const TRAILER: &[u8] = b"Keys in range: ";

/// Which entries.
#[derive(Args, Debug)]
struct RangeArgs {
    /// Start at this key
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,
    /// End before this key
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,
    /// Stop after this many entries
    #[arg(long, alias = "max_keys", value_name = "N")]
    max_keys: Option<u64>,
}

/// Arguments of `esker scan`.
#[derive(Args, Debug)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    db: DbArgs,
    #[command(flatten)]
    hex: HexArgs,
    #[command(flatten)]
    range: RangeArgs,
    /// From the last key to the first
    #[arg(long)]
    reverse: bool,
    /// Show only keys
    #[arg(long, alias = "no_value")]
    no_value: bool,
}

/// Arguments of `esker dump`.
#[derive(Args, Debug)]
pub(crate) struct DumpArgs {
    #[command(flatten)]
    db: DbArgs,
    #[command(flatten)]
    hex: HexArgs,
    #[command(flatten)]
    range: RangeArgs,
    /// Only count
    #[arg(long, alias = "count_only")]
    count_only: bool,
}

/// Runs `esker scan`.
pub(crate) fn scan(args: &ScanArgs, out: &mut Out) -> Outcome {
    let mut entries = Entries::new(&args.db, args.hex, &args.range, args.reverse)?;
    while let Some((key, value)) = entries.current()? {
        if out.is_json() {
            let value = (!args.no_value).then_some(value);
            out.object(|| args.hex.entry("entry", key, value))?;
        } else {
            out.stored(&args.hex.show_key(key))?;
            if !args.no_value {
                out.bytes(ARROW)?;
                out.stored(&args.hex.show_value(value))?;
            }
            out.bytes(b"\n")?;
        }
        entries.next();
    }
    Ok(())
}

/// Runs `esker dump`.
pub(crate) fn dump(args: &DumpArgs, out: &mut Out) -> Outcome {
    let mut entries = Entries::new(&args.db, args.hex, &args.range, false)?;
    let is_text = !args.count_only && !out.is_json() && !out.is_terminal();
    if is_text && !(args.hex.keys() && args.hex.values()) {
        entries.check_lines(args.hex)?;
    }
    let progress = Progress::listing("dumping", out.is_terminal() && !args.count_only);
    while let Some((key, value)) = entries.current()? {
        if args.count_only {
        } else if out.is_json() {
            out.object(|| args.hex.entry("entry", key, Some(value)))?;
        } else {
            out.stored(&args.hex.show_key(key))?;
            out.bytes(ARROW)?;
            out.stored(&args.hex.show_value(value))?;
            out.bytes(b"\n")?;
        }
        progress.add(1);
        entries.next();
    }
    drop(progress);
    let count = entries.seen;
    if entries.entities > 0 {
        say::warning(&format!(
            "{} wide-column entities were given with their default column alone",
            entries.entities
        ));
    }
    out.line(format!("{}{count}", String::from_utf8_lossy(TRAILER)))?;
    out.object(|| json!({"type": "count", "keys": count}))
}

/// Refuses an entry whose line could not be taken apart again.
fn check_line(line: &mut Vec<u8>, hex: HexArgs, key: &[u8], value: &[u8]) -> Outcome {
    line.clear();
    let shown = hex.show_key(key);
    line.extend_from_slice(&shown);
    line.extend_from_slice(ARROW);
    line.extend_from_slice(&hex.show_value(value));
    let splits_there = line.windows(ARROW.len()).position(|w| w == ARROW) == Some(shown.len());
    if !splits_there || line.contains(&b'\n') || line.starts_with(TRAILER) {
        let what = format!(
            "key \"{}\" or its value does not fit a line of text; nothing was printed",
            key.escape_ascii()
        );
        let e = Error::invalid_argument(what);
        return Err(e.with_hint("use --hex, or --json").into());
    }
    Ok(())
}

/// Entries of a range.
struct Entries {
    iter: DbIterator,
    reverse: bool,
    left: u64,
    seen: u64,
    entities: u64,
}

impl Entries {
    fn new(db: &DbArgs, hex: HexArgs, range: &RangeArgs, reverse: bool) -> Outcome<Entries> {
        let bound = |text: &Option<OsString>| text.as_ref().map(|t| hex.key(t)).transpose();
        let mut options = ReadOptions::default();
        options.fill_cache = false;
        options.total_order_seek = true;
        options.iterate_lower_bound = bound(&range.from)?;
        options.iterate_upper_bound = bound(&range.to)?;
        let open = db.read()?;
        let mut iter = open.db.iter_opt(&open.family, options, None);
        if reverse {
            iter.seek_to_last()
        } else {
            iter.seek_to_first()
        }
        let left = range.max_keys.unwrap_or(u64::MAX);
        Ok(Entries {
            iter,
            reverse,
            left,
            seen: 0,
            entities: 0,
        })
    }

    /// Refuses entries that lines of text cannot hold, and goes back to the first.
    fn check_lines(&mut self, hex: HexArgs) -> Outcome {
        let (left, mut line) = (self.left, Vec::new());
        while let Some((key, value)) = self.current()? {
            check_line(&mut line, hex, key, value)?;
            self.next();
        }
        self.iter.seek_to_first();
        (self.left, self.seen, self.entities) = (left, 0, 0);
        Ok(())
    }

    /// The entry here; `None` at the end, an error when the iterator failed.
    fn current(&self) -> Outcome<Option<(&[u8], &[u8])>> {
        if self.left == 0 {
            return Ok(None);
        }
        match self.iter.entry() {
            Some(entry) => Ok(Some(entry)),
            None => {
                self.iter.status()?;
                Ok(None)
            }
        }
    }

    fn next(&mut self) {
        self.left -= 1;
        self.seen += 1;
        self.entities += u64::from(self.iter.entity().is_some());
        if self.reverse {
            self.iter.prev()
        } else {
            self.iter.next()
        }
    }
}
