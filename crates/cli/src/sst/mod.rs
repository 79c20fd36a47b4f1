//! `esker sst`: what table files hold, and whether they hold it intact.
//!
//! A table is opened in the order that its properties name. When that order is not built in,
//! everything that needs no comparison still works: blocks, properties, and the entries in the
//! order of the file.

mod scan;

use crate::directory::{FileAt, files_of};
use crate::failure::{Failure, Outcome};
use crate::out::Out;
use crate::text::{TextFormat, hex, one_line, size};
use clap::Args;
use esker_env::{FileSystem, PosixFs, ReadOptions};
use esker_files::table::{BlockKind, LookupKey, ReadContext, TableReader, TableReaderOptions};
use esker_format::comparator::Comparator;
use esker_format::file_name::FileKind;
use esker_format::properties::TableProperties;
use esker_format::{FileNo, InternalKey, KeyOrder, Seq, ValueType};
use esker_status::{Error, Result};
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Absent keys that a filter is asked about.
const PROBES: u32 = 10_000;

/// Arguments of `esker sst`.
#[derive(Args, Debug)]
pub(crate) struct SstArgs {
    /// Table files, or databases' directories, whose tables they are then
    #[arg(value_name = "FILE|DB", required = true)]
    paths: Vec<PathBuf>,
    /// Show what the table says about itself (the default)
    #[arg(long)]
    properties: bool,
    /// Show every block: kind, offset, sizes, codec
    #[arg(long)]
    blocks: bool,
    /// Show every entry and range deletion
    #[arg(long)]
    scan: bool,
    /// Read the whole table and check checksums, order, filter and counts
    #[arg(long)]
    verify: bool,
    /// Show the index: separators and the blocks before them
    #[arg(long)]
    index: bool,
    /// Show the filter, and how often it lets absent keys through
    #[arg(long)]
    filter: bool,
    /// With --scan, start at this key
    #[arg(long, value_name = "KEY", requires = "scan")]
    pub(crate) from: Option<OsString>,
    /// With --scan, end before this key
    #[arg(long, value_name = "KEY", requires = "scan")]
    pub(crate) to: Option<OsString>,
    /// With --scan, show only keys that begin with this
    #[arg(long, value_name = "KEY", requires = "scan", conflicts_with_all = ["from", "to"])]
    pub(crate) prefix: Option<OsString>,
    /// With --scan, say what is damaged and go on behind it
    #[arg(long, requires = "scan")]
    keep_going: bool,
    /// Stop listings of a table after this many lines
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Give and show keys in hexadecimal, and show values so
    #[arg(long)]
    pub(crate) hex: bool,
    /// Show whole values instead of their first 64 bytes
    #[arg(long)]
    pub(crate) full: bool,
}

/// Runs `esker sst`.
pub(crate) fn run(args: &SstArgs, out: &mut Out) -> Outcome {
    let mut failed = false;
    let mut all = Vec::new();
    for path in &args.paths {
        let files = files_of(path, FileKind::Table)?;
        if files.is_empty() {
            out.line(format!("no tables in {}", path.display()))?;
        }
        all.extend(files);
    }
    for file in all {
        out.line(format!("{} ({})", file.path.display(), size(file.len)))?;
        match show(args, &file, out) {
            Ok(()) => {}
            Err(Failure::Status(e)) => {
                failed = true;
                out.line(format!("error: {}", one_line(&e.to_string())))?;
                out.object(
                    || json!({"type": "error", "path": path_text(&file), "message": e.to_string()}),
                )?;
            }
            Err(other) => return Err(other),
        }
    }
    out.flush()?;
    if failed { Err(Failure::Said) } else { Ok(()) }
}

fn path_text(file: &FileAt) -> String {
    file.path.to_string_lossy().into_owned()
}

fn show(args: &SstArgs, file: &FileAt, out: &mut Out) -> Outcome {
    if args.keep_going {
        return scan::salvage(args, file, out);
    }
    let table = open(&file.path, file.number)?;
    let other = args.blocks || args.scan || args.verify || args.index || args.filter;
    if args.properties || !other {
        show_properties(file, &table, out)?;
    }
    if args.index {
        show_index(args, &table, out)?;
    }
    if args.filter {
        show_filter(&table, out)?;
    }
    if args.blocks {
        show_blocks(args, &table, out)?;
    }
    if args.scan {
        scan::run(args, &table, out)?;
    }
    if args.verify {
        needs_order(&table)?;
        table.verify()?;
        out.line("  verified: checksums, order, filter, counts")?;
        out.object(|| json!({"type": "verified", "path": path_text(file)}))?;
    }
    Ok(())
}

/// An order that is not built in: keys come as the file has them, and cannot be sought.
struct FileOrder(String);

impl Comparator for FileOrder {
    fn name(&self) -> &str {
        &self.0
    }
    fn compare(&self, _: &[u8], _: &[u8]) -> Ordering {
        Ordering::Less
    }
}

/// An order in which a table of unknown order can be walked.
pub(crate) fn as_stored(name: &str) -> KeyOrder {
    KeyOrder::Custom(Arc::new(FileOrder(name.to_owned())))
}

/// Opens a table file in its own order.
pub(crate) fn open(path: &Path, number: FileNo) -> Result<Arc<TableReader>> {
    reader(path, number, None)
}

/// Opens a table file in its own order. The largest sequence that the MANIFEST gives it is that of
/// all entries of an ingested one.
pub(crate) fn reader(
    path: &Path,
    number: FileNo,
    largest_seq: Option<Seq>,
) -> Result<Arc<TableReader>> {
    let file = PosixFs::new().open_read(path, ReadOptions::default())?;
    let len = file.len();
    // The first look is for the name of the order, in which the index is read again.
    let first = TableReaderOptions {
        order: as_stored("unknown"),
        file_no: number,
        largest_seq,
        ..TableReaderOptions::default()
    };
    let table =
        TableReader::open(file.clone(), len, first.clone()).map_err(|e| e.with_file(path))?;
    let name = &table.properties().comparator_name;
    let order = KeyOrder::builtin(name).unwrap_or_else(|| as_stored(name));
    TableReader::open(file, len, TableReaderOptions { order, ..first })
        .map_err(|e| e.with_file(path))
}

pub(crate) fn needs_order(table: &TableReader) -> Result<()> {
    match table.order() {
        KeyOrder::Custom(c) => Err(Error::not_supported(format!(
            "comparator {:?} is not built in: order cannot be checked",
            c.name()
        ))),
        _ => Ok(()),
    }
}

/// Name and value of every property that says something.
fn properties(p: &TableProperties) -> Vec<(String, Value)> {
    let text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(t) if !t.chars().any(char::is_control) => json!(t),
        _ => json!(hex(bytes)),
    };
    let mut out = Vec::new();
    for (name, bytes) in p.encode() {
        let name = String::from_utf8_lossy(&name).into_owned();
        let value = match known_number(p, &name) {
            Some(n) => json!(n),
            None => text(&bytes),
        };
        out.push((name, value));
    }
    out
}

/// The value of a property that is stored as a number.
fn known_number(p: &TableProperties, name: &str) -> Option<u64> {
    let b = |v: bool| Some(u64::from(v));
    match name {
        "rocksdb.block.based.table.index.type" => p.index_type.map(u64::from),
        "rocksdb.external_sst_file.version" => p.external_sst_file_version.map(u64::from),
        "rocksdb.external_sst_file.global_seqno" => p.external_sst_file_global_seqno,
        "rocksdb.index.key.is.user.key" => b(p.index_key_is_user_key),
        "rocksdb.index.value.is.delta.encoded" => b(p.index_value_is_delta_encoded),
        "rocksdb.user.defined.timestamps.persisted" => b(p.user_defined_timestamps_persisted),
        "rocksdb.separate.key.value.in.data.block" => b(p.separate_key_value_in_data_block),
        _ if NUMBERS.contains(&name) => {
            let stored = p
                .encode()
                .into_iter()
                .find(|(n, _)| n == name.as_bytes())?
                .1;
            esker_format::coding::decode_varint64(&stored).map(|(v, _)| v)
        }
        _ => None,
    }
}

/// Properties that are stored as a varint.
const NUMBERS: &[&str] = &[
    "rocksdb.original.file.number",
    "rocksdb.data.size",
    "rocksdb.index.size",
    "rocksdb.index.partitions",
    "rocksdb.top-level.index.size",
    "rocksdb.udi.is.primary.index",
    "rocksdb.filter.size",
    "rocksdb.raw.key.size",
    "rocksdb.raw.value.size",
    "rocksdb.num.data.blocks",
    "rocksdb.num.data.blocks.compression.rejected",
    "rocksdb.num.data.blocks.compression.bypassed",
    "rocksdb.num.uniform.blocks",
    "rocksdb.num.entries",
    "rocksdb.num.filter_entries",
    "rocksdb.deleted.keys",
    "rocksdb.merge.operands",
    "rocksdb.num.range-deletions",
    "rocksdb.format.version",
    "rocksdb.fixed.key.length",
    "rocksdb.column.family.id",
    "rocksdb.creation.time",
    "rocksdb.oldest.key.time",
    "rocksdb.newest.key.time",
    "rocksdb.file.creation.time",
    "rocksdb.sample_for_compression.slow.data.size",
    "rocksdb.sample_for_compression.fast.data.size",
    "rocksdb.tail.start.offset",
    "rocksdb.key.largest.seqno",
    "rocksdb.key.smallest.seqno",
    "rocksdb.data.block.restart.interval",
    "rocksdb.index.block.restart.interval",
];

fn show_properties(file: &FileAt, table: &TableReader, out: &mut Out) -> Outcome {
    let footer = table.footer();
    let properties = properties(table.properties());
    let unique = table.properties().unique_id();
    let unique = unique.map(|u| format!("{:016X}{:016X}", u.0[0], u.0[1]));
    out.line(format!(
        "  format_version {}, checksum {:?}",
        footer.version, footer.checksum
    ))?;
    if let Some(id) = &unique {
        out.line(format!("  unique id {id}"))?;
    }
    for (name, value) in &properties {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        out.line(format!("  {name}: {value}"))?;
    }
    out.object(|| {
        let properties: serde_json::Map<String, Value> = properties.into_iter().collect();
        json!({"type": "table", "path": path_text(file), "size": file.len,
            "format_version": footer.version, "checksum": format!("{:?}", footer.checksum),
            "unique_id": unique, "global_seq": table.global_seq().map(|s| s.0),
            "range_deletions": table.range_tombstones().len(), "properties": properties})
    })
}

/// Counts lines up to a limit.
pub(crate) struct Limit(pub(crate) Option<u64>);

impl Limit {
    /// Returns whether one more line may be shown.
    pub(crate) fn take(&mut self) -> bool {
        match &mut self.0 {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }
}

/// Name of a kind of block.
pub(crate) fn kind_name(kind: &BlockKind) -> String {
    match kind {
        BlockKind::Data => "data".to_owned(),
        BlockKind::IndexPartition => "index partition".to_owned(),
        BlockKind::Index => "index".to_owned(),
        BlockKind::FilterPartition => "filter partition".to_owned(),
        BlockKind::Meta(name) => format!("meta {name}"),
        BlockKind::Metaindex => "metaindex".to_owned(),
    }
}

fn show_blocks(args: &SstArgs, table: &TableReader, out: &mut Out) -> Outcome {
    out.line(format!(
        "  {:>12} {:>9} {:>9} {:<8} kind",
        "offset", "stored", "raw", "codec"
    ))?;
    let mut limit = Limit(args.limit);
    for (kind, handle) in table.block_handles()? {
        if !limit.take() {
            break;
        }
        let (info, _) = table.read_block(kind, handle, true)?;
        let (kind, codec) = (kind_name(&info.kind), format!("{:?}", info.codec));
        out.line(format!(
            "  {:>12} {:>9} {:>9} {codec:<8} {kind}",
            handle.offset, handle.size, info.raw_len
        ))?;
        out.object(|| {
            json!({"type": "block", "kind": kind, "offset": handle.offset, "stored_bytes": handle.size,
                "raw_bytes": info.raw_len, "codec": codec})
        })?;
    }
    Ok(())
}

fn show_index(args: &SstArgs, table: &TableReader, out: &mut Out) -> Outcome {
    let form = TextFormat::whole(args.hex);
    let mut limit = Limit(args.limit);
    let mut failure = None;
    out.line(format!("  index {:?}", table.index_type()))?;
    let context = ReadContext {
        fill_cache: false,
        ..ReadContext::default()
    };
    table.for_each_leaf(&context, |leaf| {
        for i in 0..leaf.len() {
            if failure.is_some() || !limit.take() {
                return Ok(());
            }
            let (handle, user) = (leaf.handle(i), form.show(leaf.user(i)));
            let first = leaf
                .first_key(i)
                .map(|k| form.show(esker_format::key::user_key(k)));
            let note = first
                .as_ref()
                .map(|f| format!(" first={f}"))
                .unwrap_or_default();
            let shown = out
                .line(format!(
                    "  {:>12} {:>9} {user}{note}",
                    handle.offset, handle.size
                ))
                .and_then(|()| {
                    out.object(|| {
                        json!({"type": "index_entry", "separator": user, "offset": handle.offset,
                            "stored_bytes": handle.size, "first_key": first})
                    })
                });
            failure = shown.err();
        }
        Ok(())
    })?;
    failure.map_or(Ok(()), Err)
}

fn show_filter(table: &TableReader, out: &mut Out) -> Outcome {
    let p = table.properties();
    if !table.has_filter() {
        out.line("  no filter")?;
        return out.object(|| json!({"type": "filter", "policy": Value::Null}));
    }
    let entries = p.num_filter_entries;
    let bits = if entries > 0 {
        p.filter_size as f64 * 8.0 / entries as f64
    } else {
        0.0
    };
    let rate = false_positive_rate(table)?;
    let policy = &p.filter_policy_name;
    out.line(format!(
        "  filter {policy}: {} for {entries} entries ({bits:.2} bits each)",
        size(p.filter_size)
    ))?;
    let said = |v: Option<bool>| v.map_or("not said", |v| if v { "yes" } else { "no" });
    out.line(format!(
        "  whole keys: {}, prefixes: {}",
        said(p.whole_key_filtering),
        said(p.prefix_filtering)
    ))?;
    out.line(format!(
        "  lets {:.3} % of {PROBES} absent keys through",
        rate * 100.0
    ))?;
    out.object(|| {
        json!({"type": "filter", "policy": policy, "bytes": p.filter_size, "entries": entries,
            "bits_per_entry": bits, "whole_key_filtering": p.whole_key_filtering,
            "prefix_filtering": p.prefix_filtering, "false_positive_rate": rate})
    })
}

/// The share of keys that the filter lets through although the table cannot hold them.
fn false_positive_rate(table: &TableReader) -> Result<f64> {
    let context = ReadContext {
        fill_cache: false,
        ..ReadContext::default()
    };
    let timestamp = table.order().timestamp_size();
    let mut passed = 0u32;
    for i in 0..PROBES {
        let mut user = format!("\u{0}no table holds this key\u{0}{i}").into_bytes();
        user.resize(user.len() + timestamp, 0);
        let key = InternalKey::new(&user, Seq::MAX, ValueType::SEEK);
        passed +=
            u32::from(table.may_contain(&context, &LookupKey::new(key.as_bytes(), timestamp))?);
    }
    Ok(f64::from(passed) / f64::from(PROBES))
}
