//! `esker sst --scan`: the entries of a table in a range, and with `--keep-going` those of the
//! sound blocks of a damaged one.

use super::{Limit, SstArgs, as_stored, needs_order};
use crate::directory::FileAt;
use crate::failure::{Failure, Outcome};
use crate::out::Out;
use crate::text::{TextFormat, argument, put_bytes};
use crate::wal::VALUE_SHOWN;
use esker_env::{FileSystem, PosixFs, ReadOptions};
use esker_files::table::{DamagedRange, ReadContext, Salvage, SalvageOptions, TableReader};
use esker_format::{Cursor, InternalKey, KeyOrder, ParsedKey, RawTombstone, Seq, ValueType};
use esker_status::{Error, Result};
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::sync::Arc;

/// Bytes that are read ahead.
const READAHEAD: usize = 1 << 20;

/// The keys that are shown.
#[derive(Debug, Default)]
struct KeyRange {
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
    prefix: Option<Vec<u8>>,
}

impl KeyRange {
    fn of(args: &SstArgs) -> Result<KeyRange> {
        let key =
            |text: &Option<OsString>| text.as_ref().map(|t| argument(t, args.hex)).transpose();
        Ok(KeyRange {
            from: key(&args.from)?,
            to: key(&args.to)?,
            prefix: key(&args.prefix)?,
        })
    }

    /// Returns whether a comparison of keys is needed.
    fn has_bounds(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }

    fn is_before(&self, order: &KeyOrder, user: &[u8]) -> bool {
        let from = self.from.as_ref();
        from.is_some_and(|from| order.compare(user, from).is_lt())
    }

    fn is_behind(&self, order: &KeyOrder, user: &[u8]) -> bool {
        self.to
            .as_ref()
            .is_some_and(|to| order.compare(user, to).is_ge())
    }

    fn has_prefix(&self, user: &[u8]) -> bool {
        self.prefix.as_ref().is_none_or(|p| user.starts_with(p))
    }

    fn meets(&self, order: &KeyOrder, t: &RawTombstone) -> bool {
        let is_left = |from: &Vec<u8>| order.compare(&t.end, from).is_le();
        let prefix = self.prefix.as_ref();
        !self.from.as_ref().is_some_and(is_left)
            && !self.is_behind(order, &t.start)
            && prefix.is_none_or(|p| t.start.starts_with(p) || t.end.starts_with(p))
    }
}

/// Shows entries.
struct EntryOutput<'a> {
    args: &'a SstArgs,
    out: &'a mut Out,
    limit: Limit,
}

impl EntryOutput<'_> {
    fn entry(&mut self, key: &ParsedKey<'_>, value: &[u8]) -> Outcome {
        let is_binary = matches!(key.kind, ValueType::BlobIndex | ValueType::WideColumnEntity);
        let is_hex = self.args.hex || is_binary;
        if self.out.is_json() {
            return self.out.object(|| {
                let mut object = Map::new();
                object.insert("type".to_owned(), "entry".into());
                put_bytes(&mut object, "key", key.user, self.args.hex);
                object.insert("seq".to_owned(), key.seq.0.into());
                object.insert("kind".to_owned(), format!("{:?}", key.kind).into());
                put_bytes(&mut object, "value", value, is_hex);
                Value::Object(object)
            });
        }
        let limit = if self.args.full { 0 } else { VALUE_SHOWN };
        let value = TextFormat { hex: is_hex, limit }.show(value);
        let user = TextFormat::whole(self.args.hex).show(key.user);
        self.out
            .line(format!("  {user} @{}:{:?} ==> {value}", key.seq, key.kind))
    }

    fn tombstone(&mut self, t: &RawTombstone) -> Outcome {
        let keys = TextFormat::whole(self.args.hex);
        let (start, end) = (keys.show(&t.start), keys.show(&t.end));
        self.out
            .line(format!("  [{start}, {end}) @{}:RangeDeletion", t.seq))?;
        self.out.object(|| {
            let mut object = Map::new();
            object.insert("type".to_owned(), "range_deletion".into());
            put_bytes(&mut object, "start", &t.start, self.args.hex);
            put_bytes(&mut object, "end", &t.end, self.args.hex);
            object.insert("seq".to_owned(), t.seq.0.into());
            Value::Object(object)
        })
    }

    fn damage(&mut self, d: &DamagedRange) -> Outcome {
        let keys = TextFormat::whole(self.args.hex);
        let key = |k: &Option<Vec<u8>>| k.as_ref().map(|k| keys.show(k));
        let (after, before) = (key(&d.after), key(&d.before));
        let or_end = |k: &Option<String>, end: &str| k.clone().unwrap_or_else(|| end.to_owned());
        self.out.line(format!(
            "  damaged: {} bytes at {}, keys between {} and {}: {}",
            d.bytes,
            d.offset,
            or_end(&after, "the first"),
            or_end(&before, "the last"),
            d.why
        ))?;
        self.out.object(|| {
            json!({"type": "damage", "offset": d.offset, "bytes": d.bytes, "after": after,
                "before": before, "reason": d.why})
        })
    }
}

/// Shows the entries and range deletions of a sound table.
pub(crate) fn run(args: &SstArgs, table: &Arc<TableReader>, out: &mut Out) -> Outcome {
    let range = KeyRange::of(args)?;
    if range.has_bounds() {
        needs_order(table)?;
    }
    let order = table.order();
    let mut show = EntryOutput {
        args,
        out,
        limit: Limit(args.limit),
    };
    let context = ReadContext {
        readahead_size: READAHEAD,
        ..ReadContext::compaction(READAHEAD)
    };
    let mut cursor = table.cursor(&context);
    match &range.from {
        Some(from) => {
            cursor.seek(InternalKey::new(from, Seq::MAX, ValueType::SEEK).as_bytes());
        }
        None => cursor.seek_to_first(),
    }
    while cursor.valid() {
        let key = ParsedKey::parse(cursor.key())?;
        if range.is_behind(order, key.user) {
            break;
        }
        if range.has_prefix(key.user) {
            if !show.limit.take() {
                break;
            }
            show.entry(&key, cursor.value())?;
        }
        cursor.next();
    }
    cursor.status()?;
    for t in table.range_tombstones().iter() {
        if range.meets(order, t) {
            if !show.limit.take() {
                break;
            }
            show.tombstone(t)?;
        }
    }
    Ok(())
}

/// Shows what can be read of a table, and what cannot; an error when something cannot.
pub(crate) fn salvage(args: &SstArgs, file: &FileAt, out: &mut Out) -> Outcome {
    let range = KeyRange::of(args)?;
    let opened = |order: KeyOrder| {
        let disk = PosixFs::new().open_read(&file.path, ReadOptions::default())?;
        let options = SalvageOptions {
            order,
            ..SalvageOptions::default()
        };
        Salvage::open(disk, options).map_err(|e| e.with_file(&file.path))
    };
    // The first look is for the name of the order.
    let first = opened(as_stored("unknown"))?;
    let name = first.properties().map(|p| p.comparator_name.clone());
    let order = name.and_then(|name| KeyOrder::builtin(&name));
    if range.has_bounds() && order.is_none() {
        let e = Error::not_supported("the order of the keys is not known: leave --from and --to");
        return Err(e.with_file(&file.path).into());
    }
    let order = order.unwrap_or_else(|| as_stored("unknown"));
    let table = opened(order.clone())?;
    let mut show = EntryOutput {
        args,
        out,
        limit: Limit(args.limit),
    };
    let mut failure = None;
    let mut is_full = false;
    let counts = table.walk(|key, value| {
        let key = ParsedKey::parse(key)?;
        let is_out = range.is_before(&order, key.user) || range.is_behind(&order, key.user);
        if failure.is_some() || is_full || is_out || !range.has_prefix(key.user) {
            return Ok(());
        }
        if show.limit.take() {
            failure = show.entry(&key, value).err();
        } else {
            is_full = true;
        }
        Ok(())
    })?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    for t in table.range_tombstones() {
        if range.meets(&order, t) && show.limit.take() {
            show.tombstone(t)?;
        }
    }
    for d in &counts.damages {
        show.damage(d)?;
    }
    for note in table.notes() {
        show.out.line(format!("  damaged: {note}"))?;
        show.out
            .object(|| json!({"type": "damage", "reason": note}))?;
    }
    let damages = counts.damages.len() + table.notes().len();
    if damages == 0 {
        return Ok(());
    }
    let e = Error::corruption(format!("{damages} parts cannot be read"));
    Err(Failure::Status(e.with_file(&file.path)))
}
