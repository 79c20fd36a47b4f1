//! Commands of `ldb` on keys: single ones, and listings.

use super::call::{LdbCall, LdbOutcome, failed};
use super::files::dump_path;
use crate::internal_entries::InternalEntries;
use crate::out::Out;
use crate::rocks_text;
use esker::observe::Histogram;
use esker::{ReadOptions, WriteBatch};
use esker_format::{FamilyId, ParsedKey, RawTombstone};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// The first second that a time to live may have been written in.
const OLDEST: i64 = esker::ttl::OLDEST_TIME as i64;

/// Runs `put`.
pub(super) fn put(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let [key, value] = call.params() else {
        return failed("<key> and <value> must be specified for the put command");
    };
    let hex = call.hex()?;
    let (key, value) = (hex.key(key)?, hex.value(value)?);
    let open = super::jobs::writing(call)?;
    open.db.put_cf(&open.family, key, value)?;
    open.close()?;
    Ok(out.line("OK")?)
}

/// Runs `get`.
pub(super) fn get(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let [key] = call.params() else {
        return failed("<key> must be specified for the get command");
    };
    let hex = call.hex()?;
    let key = hex.key(key)?;
    let open = call.database()?.read()?;
    match open.db.get_cf(&open.family, key)? {
        Some(value) => {
            out.stored(&hex.show_value(&value))?;
            Ok(out.bytes(b"\n")?)
        }
        None => failed("Get failed: NotFound: "),
    }
}

/// Runs `batchput`.
pub(super) fn batchput(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let words = call.params();
    if words.is_empty() {
        return failed("At least one <key> <value> pair must be specified batchput.");
    }
    if !words.len().is_multiple_of(2) {
        return failed("Equal number of <key>s and <value>s must be specified for batchput.");
    }
    let hex = call.hex()?;
    let mut pairs = Vec::new();
    for pair in words.chunks_exact(2) {
        pairs.push((hex.key(&pair[0])?, hex.value(&pair[1])?));
    }
    let open = super::jobs::writing(call)?;
    let mut batch = WriteBatch::new();
    for (key, value) in &pairs {
        batch.put_cf(FamilyId(open.family.id()), key, value)?;
    }
    open.db.write(&mut batch)?;
    open.close()?;
    Ok(out.line("OK")?)
}

/// Runs `delete`.
pub(super) fn delete(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let [key] = call.params() else {
        return failed("KEY must be specified for the delete command");
    };
    let key = call.hex()?.key(key)?;
    let open = super::jobs::writing(call)?;
    open.db.delete_cf(&open.family, key)?;
    open.close()?;
    Ok(out.line("OK")?)
}

/// Runs `deleterange`.
pub(super) fn deleterange(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let [begin, end] = call.params() else {
        return failed("begin and end keys must be specified for the delete command");
    };
    let hex = call.hex()?;
    let (begin, end) = (hex.key(begin)?, hex.key(end)?);
    let open = super::jobs::writing(call)?;
    open.db.delete_range_cf(&open.family, begin, end)?;
    open.close()?;
    Ok(out.line("OK")?)
}

/// Runs `approxsize`.
pub(super) fn approxsize(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let Some(from) = call.bound("from")? else {
        return failed("from must be specified for approxsize command");
    };
    let Some(to) = call.bound("to")? else {
        return failed("to must be specified for approxsize command");
    };
    let open = call.database()?.read()?;
    let sizes = open.db.approximate_sizes(&open.family, &[(from, to)])?;
    let bytes = sizes.first().copied().unwrap_or_default();
    Ok(out.line(bytes.to_string())?)
}

/// The seconds in which the entries that are shown were written.
struct WriteTimes {
    start: i64,
    end: i64,
}

impl WriteTimes {
    fn of(call: &LdbCall) -> LdbOutcome<Option<WriteTimes>> {
        let start = call.number("start_time")?.unwrap_or(OLDEST);
        let end = call.number("end_time")?.unwrap_or(i64::from(i32::MAX));
        if end < start {
            crate::say::plain("Error: End time can't be less than start time");
            return Ok(None);
        }
        Ok(Some(WriteTimes { start, end }))
    }

    /// Returns whether an entry of this time is shown; each is where there are no times.
    fn has(&self, time: Option<i32>) -> bool {
        time.is_none_or(|t| (self.start..self.end).contains(&i64::from(t)))
    }

    fn title(&self, doing: &str) -> String {
        let (start, end) = (rocks_text::time(self.start), rocks_text::time(self.end));
        format!("{doing} key-values from {start} to {end}")
    }
}

/// Runs `scan`.
pub(super) fn scan(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let hex = call.hex()?;
    let (from, to) = (call.bound("from")?, call.bound("to")?);
    let most = call.max_keys()?;
    let Some(times) = WriteTimes::of(call)? else {
        return Ok(());
    };
    let open = call.database()?.read()?;
    let has_times = open.db.ttl(&open.family).is_some() && call.has("timestamp");
    if has_times {
        out.line(times.title("Scanning"))?;
    }
    let mut iter = open.db.iter_opt(&open.family, range(from, to), None);
    iter.seek_to_first();
    let mut shown = 0;
    while let Some((key, value)) = iter.entry() {
        let time = iter.ttl_time();
        if times.has(time) {
            if has_times {
                let text = rocks_text::time(time.unwrap_or_default().into());
                out.bytes(format!("{text} ").as_bytes())?;
            }
            out.stored(&hex.show_key(key))?;
            if !call.has("no_value") {
                out.bytes(b" : ")?;
                out.stored(&hex.show_value(value))?;
            }
            out.bytes(b"\n")?;
            shown += 1;
            if shown >= most {
                break;
            }
        }
        iter.next();
    }
    Ok(iter.status()?)
}

fn range(from: Option<Vec<u8>>, to: Option<Vec<u8>>) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.fill_cache = false;
    options.total_order_seek = true;
    options.iterate_lower_bound = from;
    options.iterate_upper_bound = to;
    options
}

/// Counts entries by what their keys have before a byte.
struct ByPrefix {
    delimiter: u8,
    prefix: Vec<u8>,
    count: u64,
    bytes: u64,
}

impl ByPrefix {
    fn of(call: &LdbCall) -> Option<ByPrefix> {
        let named = call.options.get("count_delim");
        let delimiter = match named {
            Some(text) => text.as_bytes().first().copied().unwrap_or(b'.'),
            None if call.has("count_delim") => b'.',
            None => return None,
        };
        Some(ByPrefix {
            delimiter,
            prefix: Vec::new(),
            count: 0,
            bytes: 0,
        })
    }

    fn add(&mut self, key: &[u8], bytes: usize, out: &mut Out) -> LdbOutcome {
        let ends = |b: &u8| *b == self.delimiter || *b == 0;
        let end = key.iter().position(ends).unwrap_or(key.len());
        let prefix = &key[..end];
        if !self.prefix.is_empty() && self.prefix != prefix {
            self.show(out)?;
            (self.count, self.bytes) = (0, 0);
        }
        self.prefix = prefix.to_vec();
        self.count += 1;
        self.bytes += bytes as u64;
        Ok(())
    }

    fn show(&self, out: &mut Out) -> LdbOutcome {
        out.stored(&self.prefix)?;
        let (count, bytes) = (self.count, self.bytes);
        Ok(out.bytes(format!(" => count:{count}\tsize:{bytes}\n").as_bytes())?)
    }
}

/// Runs `dump`.
pub(super) fn dump(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    if let Some(path) = call.path("path") {
        return dump_path(call, &path, out);
    }
    let hex = call.hex()?;
    let (from, to) = (call.bound("from")?, call.bound("to")?);
    let most = call.max_keys()?;
    let Some(times) = WriteTimes::of(call)? else {
        return Ok(());
    };
    let open = call.database()?.read()?;
    if call.has("stats") {
        let stats = open.db.property_cf(&open.family, "rocksdb.stats");
        out.line(stats.unwrap_or_default())?;
    }
    let mut by_prefix = ByPrefix::of(call);
    let is_counted = call.has("count_only");
    let is_shown = !is_counted && by_prefix.is_none();
    let has_times = open.db.ttl(&open.family).is_some();
    let mut buckets = match call.number("bucket")? {
        Some(size) if has_times && size > 0 && size < times.end - times.start => {
            let number = (times.end - times.start + size - 1) / size;
            Some((size, vec![0u64; number as usize]))
        }
        _ => None,
    };
    if has_times && call.has("timestamp") && is_shown {
        out.line(times.title("Dumping"))?;
    }
    let sizes = Histogram::default();
    let mut count = 0u64;
    let mut iter = open.db.iter_opt(&open.family, range(from, to), None);
    iter.seek_to_first();
    while let Some((key, value)) = iter.entry().filter(|_| count < most) {
        let time = iter.ttl_time();
        if times.has(time) {
            count += 1;
            if let (Some((size, counts)), Some(time)) = (&mut buckets, time) {
                counts[((i64::from(time) - times.start) / *size) as usize] += 1;
            }
            if let Some(by_prefix) = &mut by_prefix {
                by_prefix.add(key, key.len() + value.len(), out)?;
            }
            sizes.add(value.len() as u64);
            if is_shown {
                if let Some(time) = time.filter(|_| call.has("timestamp")) {
                    let text = rocks_text::time(time.into());
                    out.bytes(format!("{text} ").as_bytes())?;
                }
                out.stored(&hex.show_key(key))?;
                out.bytes(b" ==> ")?;
                out.stored(&hex.show_value(value))?;
                out.bytes(b"\n")?;
            }
        }
        iter.next();
    }
    iter.status()?;
    if let Some((size, counts)) = buckets {
        for (at, count) in counts.iter().enumerate() {
            let from = times.start + at as i64 * size;
            let to = (from + size).min(times.end);
            let (from, to) = (rocks_text::time(from), rocks_text::time(to));
            out.line(format!("Keys in range {from} to {to} : {count}"))?;
        }
    } else if let Some(by_prefix) = by_prefix {
        by_prefix.show(out)?;
    } else {
        out.line(format!("Keys in range: {count}"))?;
    }
    if is_counted {
        out.line("Value size distribution: ")?;
        out.line(sizes.text())?;
    }
    Ok(())
}

/// Runs `idump`.
pub(super) fn idump(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let hex = call.hex()?;
    let (from, to) = (call.bound("from")?, call.bound("to")?);
    let most = call.max_keys()?;
    if call.has("stats") {
        let open = call.database()?.read()?;
        let stats = open.db.property_cf(&open.family, "rocksdb.stats");
        out.line(stats.unwrap_or_default())?;
    }
    let (dir, fold) = call.folded()?;
    let family = crate::idump::family(&fold, &call.database()?.column_family)?;
    let mut entries = InternalEntries::new(&dir, &fold, family, from.as_deref())?;
    let mut by_prefix = ByPrefix::of(call);
    let mut count = 0u64;
    let mut failure = None;
    let (order, tombstones) = (entries.order().clone(), entries.tombstones.clone());
    // RocksDB's tool leaves out what a range deletion covers.
    let is_covered = |key: &ParsedKey<'_>| {
        let is_in = |t: &RawTombstone| {
            t.seq > key.seq
                && order.compare(&t.start, key.user).is_le()
                && order.compare(key.user, &t.end).is_lt()
        };
        tombstones.iter().any(is_in)
    };
    if most > 0 {
        entries.walk(to.as_deref(), |key, value| {
            let parsed = ParsedKey::parse(key)?;
            if is_covered(&parsed) {
                return Ok(true);
            }
            count += 1;
            if let Some(by_prefix) = &mut by_prefix {
                // The bytes before a 0 or a 1, of the internal key and of the value.
                let text = |bytes: &[u8]| {
                    let end = bytes.iter().position(|b| *b < 2);
                    end.unwrap_or(bytes.len())
                };
                failure = by_prefix
                    .add(parsed.user, text(key) + text(value), out)
                    .err();
            } else if !call.has("count_only") {
                out.stored(&rocks_text::internal_key(&parsed, hex.keys()))?;
                out.bytes(b" => ")?;
                out.stored(&rocks_text::plain(value, hex.values()))?;
                out.bytes(b"\n")?;
            }
            Ok(count < most && failure.is_none())
        })?;
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    match by_prefix {
        Some(by_prefix) => by_prefix.show(out),
        None => Ok(out.line(format!("Internal keys in range: {count}"))?),
    }
}

/// Key and value of words, as they are given on this command line.
pub(super) fn key_of(call: &LdbCall, word: &str) -> LdbOutcome<Vec<u8>> {
    Ok(call.hex()?.key(&OsString::from(word))?)
}
