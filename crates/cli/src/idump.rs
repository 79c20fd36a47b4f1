//! `esker idump`: every version of every key of a family, with sequence numbers and kinds, from
//! tables and logs, without opening the database.

use crate::directory::Directory;
use crate::failure::Outcome;
use crate::fold::{Family, Fold};
use crate::internal_entries::InternalEntries;
use crate::out::Out;
use crate::text::{TextFormat, argument, put_bytes};
use crate::wal::VALUE_SHOWN;
use clap::Args;
use esker_format::{ParsedKey, ValueType};
use esker_status::Error;
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::path::PathBuf;

/// Arguments of `esker idump`.
#[derive(Args, Debug)]
pub(crate) struct InternalDumpArgs {
    /// The database's directory
    #[arg(value_name = "DB")]
    path: PathBuf,
    /// The column family
    #[arg(
        long,
        alias = "column_family",
        alias = "cf",
        value_name = "NAME",
        default_value = "default"
    )]
    column_family: String,
    /// Start at this key
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,
    /// End before this key
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,
    /// Stop after this many entries
    #[arg(long, alias = "max_keys", value_name = "N")]
    max_keys: Option<u64>,
    /// Only count
    #[arg(long, alias = "count_only")]
    count_only: bool,
    /// Keys are given and shown in hexadecimal, and values shown so
    #[arg(long)]
    hex: bool,
    /// Show whole values instead of their first 64 bytes
    #[arg(long)]
    full: bool,
}

/// The live state of the directory, which must be whole.
pub(crate) fn live(dir: &Directory) -> Outcome<Fold> {
    let mut fold = Fold::live(dir)?;
    if fold.problems.is_empty() {
        return Ok(fold);
    }
    Err(fold.problems.swap_remove(0).into())
}

/// The family of this name.
pub(crate) fn family<'f>(fold: &'f Fold, name: &str) -> Outcome<&'f Family> {
    let found = fold.families.values().find(|f| f.name == name);
    found.ok_or_else(|| {
        let names: Vec<_> = fold.families.values().map(|f| f.name.as_str()).collect();
        let e = Error::invalid_argument(format!("there is no column family {name:?}"));
        e.with_hint(format!("there are: {}", names.join(", ")))
            .into()
    })
}

/// Runs `esker idump`.
pub(crate) fn run(args: &InternalDumpArgs, out: &mut Out) -> Outcome {
    let bound = |text: &Option<OsString>| text.as_ref().map(|t| argument(t, args.hex)).transpose();
    let (from, to) = (bound(&args.from)?, bound(&args.to)?);
    let dir = Directory::read(&args.path)?;
    let fold = live(&dir)?;
    let family = family(&fold, &args.column_family)?;
    let mut entries = InternalEntries::new(&dir, &fold, family, from.as_deref())?;
    let most = args.max_keys.unwrap_or(u64::MAX);
    let mut count = 0;
    if most > 0 {
        entries.walk(to.as_deref(), |key, value| {
            count += 1;
            if !args.count_only {
                show(args, key, value, out)?;
            }
            Ok(count < most)
        })?;
    }
    let order = entries.order().clone();
    for t in &entries.tombstones {
        let is_before = to
            .as_ref()
            .is_some_and(|to| order.compare(&t.start, to).is_ge());
        let is_behind = from
            .as_ref()
            .is_some_and(|f| order.compare(&t.end, f).is_le());
        if args.count_only || is_before || is_behind {
            continue;
        }
        let form = TextFormat::whole(args.hex);
        let (start, end) = (form.show(&t.start), form.show(&t.end));
        out.line(format!("[{start}, {end}) @{}:RangeDeletion", t.seq))?;
        out.object(|| {
            let mut object = Map::new();
            object.insert("type".to_owned(), "range_deletion".into());
            put_bytes(&mut object, "start", &t.start, args.hex);
            put_bytes(&mut object, "end", &t.end, args.hex);
            object.insert("seq".to_owned(), t.seq.0.into());
            Value::Object(object)
        })?;
    }
    out.line(format!("Internal keys in range: {count}"))?;
    out.object(|| json!({"type": "count", "entries": count}))
}

fn show(args: &InternalDumpArgs, key: &[u8], value: &[u8], out: &mut Out) -> Outcome {
    let key = ParsedKey::parse(key)?;
    let is_binary = matches!(key.kind, ValueType::BlobIndex | ValueType::WideColumnEntity);
    let is_hex = args.hex || is_binary;
    if out.is_json() {
        return out.object(|| {
            let mut object = Map::new();
            object.insert("type".to_owned(), "entry".into());
            put_bytes(&mut object, "key", key.user, args.hex);
            object.insert("seq".to_owned(), key.seq.0.into());
            object.insert("kind".to_owned(), format!("{:?}", key.kind).into());
            put_bytes(&mut object, "value", value, is_hex);
            Value::Object(object)
        });
    }
    let values = TextFormat {
        hex: is_hex,
        limit: if args.full { 0 } else { VALUE_SHOWN },
    };
    let user = TextFormat::whole(args.hex).show(key.user);
    let (seq, kind, value) = (key.seq, key.kind, values.show(value));
    out.line(format!("{user} @{seq}:{kind:?} ==> {value}"))
}
