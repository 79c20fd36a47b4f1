//! `esker histogram`: how many keys and bytes each prefix has.

use crate::database::{DbArgs, HexArgs};
use crate::failure::{Failure, Outcome};
use crate::out::Out;
use crate::progress::Progress;
use crate::text::{plural, put_bytes, size};
use clap::Args;
use esker::ReadOptions;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// Cells of the largest bar.
const WIDTH: u64 = 30;

/// Arguments of `esker histogram`.
#[derive(Args, Debug)]
pub(crate) struct HistogramArgs {
    #[command(flatten)]
    db: DbArgs,
    #[command(flatten)]
    hex: HexArgs,
    /// A prefix ends before this text; the whole key is one where it is not in it
    #[arg(long, value_name = "TEXT", conflicts_with = "bytes")]
    delimiter: Option<OsString>,
    /// A prefix is this long
    #[arg(long, value_name = "N")]
    bytes: Option<usize>,
    /// Start at this key
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,
    /// End before this key
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,
    /// Show only the N prefixes with most bytes
    #[arg(long, value_name = "N")]
    top: Option<usize>,
}

/// Keys of a prefix.
#[derive(Clone, Copy, Default)]
struct PrefixCount {
    keys: u64,
    key_bytes: u64,
    value_bytes: u64,
}

impl PrefixCount {
    fn bytes(&self) -> u64 {
        self.key_bytes + self.value_bytes
    }

    fn add(&mut self, key: usize, value: usize) {
        self.keys += 1;
        self.key_bytes += key as u64;
        self.value_bytes += value as u64;
    }
}

impl HistogramArgs {
    fn prefix<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        if let Some(n) = self.bytes {
            return &key[..n.min(key.len())];
        }
        let ends = self.delimiter.as_ref().map_or(&b":"[..], |d| d.as_bytes());
        let at = key.windows(ends.len()).position(|w| w == ends);
        &key[..at.unwrap_or(key.len())]
    }
}

/// Runs `esker histogram`.
pub(crate) fn run(args: &HistogramArgs, out: &mut Out) -> Outcome {
    if args.delimiter.as_ref().is_some_and(|d| d.is_empty()) {
        return Err(Failure::Usage("--delimiter: it is empty".to_owned()));
    }
    let bound = |text: &Option<OsString>| text.as_ref().map(|t| args.hex.key(t)).transpose();
    let mut options = ReadOptions::default();
    options.fill_cache = false;
    options.total_order_seek = true;
    options.iterate_lower_bound = bound(&args.from)?;
    options.iterate_upper_bound = bound(&args.to)?;
    let open = args.db.read()?;
    let mut iter = open.db.iter_opt(&open.family, options, None);
    iter.seek_to_first();
    let progress = Progress::count("reading");
    let mut counts: HashMap<Vec<u8>, PrefixCount> = HashMap::new();
    let mut all = PrefixCount::default();
    while let Some((key, value)) = iter.entry() {
        let prefix = args.prefix(key);
        match counts.get_mut(prefix) {
            Some(count) => count.add(key.len(), value.len()),
            None => {
                let count = counts.entry(prefix.to_vec()).or_default();
                count.add(key.len(), value.len());
            }
        }
        all.add(key.len(), value.len());
        progress.add(1);
        iter.next();
    }
    iter.status()?;
    drop(progress);
    let mut counts: Vec<_> = counts.into_iter().collect();
    if let Some(top) = args.top {
        counts.sort_by(|a, b| (b.1.bytes(), &a.0).cmp(&(a.1.bytes(), &b.0)));
        counts.truncate(top);
    } else {
        counts.sort_by(|a, b| a.0.cmp(&b.0));
    }
    let widest = counts.iter().map(|(_, c)| c.bytes()).max().unwrap_or(1);
    for (prefix, count) in &counts {
        show(args, prefix, count, widest.max(1), out)?;
    }
    out.line(format!(
        "{}, {} of keys, {} of values",
        plural(all.keys, "key"),
        size(all.key_bytes),
        size(all.value_bytes)
    ))?;
    out.object(|| {
        json!({"type": "count", "keys": all.keys, "key_bytes": all.key_bytes,
            "value_bytes": all.value_bytes})
    })
}

fn show(
    args: &HistogramArgs,
    prefix: &[u8],
    count: &PrefixCount,
    widest: u64,
    out: &mut Out,
) -> Outcome {
    if out.is_json() {
        return out.object(|| {
            let mut object = Map::new();
            object.insert("type".to_owned(), "prefix".into());
            put_bytes(&mut object, "prefix", prefix, args.hex.keys());
            object.insert("keys".to_owned(), count.keys.into());
            object.insert("key_bytes".to_owned(), count.key_bytes.into());
            object.insert("value_bytes".to_owned(), count.value_bytes.into());
            Value::Object(object)
        });
    }
    let cells = (u128::from(count.bytes()) * u128::from(WIDTH)).div_ceil(u128::from(widest));
    let bar = "#".repeat(cells as usize);
    let width = WIDTH as usize;
    out.bytes(
        format!(
            "{bar:<width$} {:>10} {:>12} ",
            size(count.bytes()),
            plural(count.keys, "key")
        )
        .as_bytes(),
    )?;
    out.stored(&args.hex.show_key(prefix))?;
    out.bytes(b"\n")
}
