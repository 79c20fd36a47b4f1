//! `esker wal`: the records of write-ahead logs, their batches, and where a log is damaged.

use crate::directory::{FileAt, files_of};
use crate::failure::{Failure, Outcome};
use crate::out::Out;
use crate::text::{TextFormat, plural, put_bytes};
use clap::{Args, ValueEnum};
use esker_env::{FileSystem, PosixFs, ReadOptions};
use esker_files::log::{
    Damage, LogReader, LogReaderOptions, Predecessor, ReadOutcome, RecoveryMode, ReplayStep,
};
use esker_format::batch::{BatchReader, Record};
use esker_format::file_name::FileKind;
use esker_status::{Error, Result};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Bytes of a value that a listing shows unless told otherwise.
pub(crate) const VALUE_SHOWN: usize = 64;

/// RocksDB's recovery modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// A torn record at the end ends the log; other damage fails
    Tolerate,
    /// Any damage fails
    Absolute,
    /// The replay stops at the first damage
    PointInTime,
    /// Damaged records are skipped
    Skip,
}

impl From<Mode> for RecoveryMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Tolerate => RecoveryMode::TolerateCorruptedTailRecords,
            Mode::Absolute => RecoveryMode::AbsoluteConsistency,
            Mode::PointInTime => RecoveryMode::PointInTimeRecovery,
            Mode::Skip => RecoveryMode::SkipAnyCorruptedRecords,
        }
    }
}

/// Arguments of `esker wal`.
#[derive(Args, Debug)]
pub(crate) struct WalArgs {
    /// Log files, or databases' directories, whose logs they are then
    #[arg(value_name = "FILE|DB", required = true)]
    paths: Vec<PathBuf>,
    /// Replay as an open in this mode would; without it everything is shown, damage included
    #[arg(long, value_name = "MODE")]
    recovery_mode: Option<Mode>,
    /// Show only the batches, not their records
    #[arg(long)]
    header: bool,
    /// Show keys and values in hexadecimal
    #[arg(long)]
    hex: bool,
    /// Show whole values instead of their first 64 bytes
    #[arg(long)]
    full: bool,
}

/// The next item of a log, in the terms of this command.
enum Item {
    Batch {
        offset: u64,
        bytes: Vec<u8>,
    },
    TimestampSizes(Vec<(u32, u16)>),
    Predecessor(Predecessor),
    /// `true` when it ends the reading of this log.
    Damage(&'static str, Damage, bool),
    OldRecord(u64),
    End,
    /// The replay of this and all later logs ends.
    Stop(Damage),
}

/// Runs `esker wal`.
pub(crate) fn run(args: &WalArgs, out: &mut Out) -> Outcome {
    let mut damaged = false;
    for path in &args.paths {
        show_all(args, path, out, &mut damaged)?;
    }
    out.flush()?;
    if damaged { Err(Failure::Said) } else { Ok(()) }
}

/// Shows the logs that one argument means.
fn show_all(args: &WalArgs, path: &Path, out: &mut Out, damaged: &mut bool) -> Outcome {
    let logs = files_of(path, FileKind::Wal)?;
    if logs.is_empty() {
        out.line(format!("no logs in {}", path.display()))?;
    }
    for log in logs {
        out.line(format!("{} ({} bytes)", log.path.display(), log.len))?;
        out.object(
            || json!({"type": "log", "path": log.path.to_string_lossy(), "bytes": log.len}),
        )?;
        if show(args, &log, out, damaged)? {
            break;
        }
    }
    Ok(())
}

/// Shows one log; true when the replay stops with it.
fn show(args: &WalArgs, log: &FileAt, out: &mut Out, damaged: &mut bool) -> Outcome<bool> {
    let file = PosixFs::new().open_read(&log.path, ReadOptions::default())?;
    let mut reader = LogReader::new(file, LogReaderOptions::new(log.number));
    let (mut batches, mut records) = (0u64, 0u64);
    let stop = loop {
        match next(&mut reader, args.recovery_mode)? {
            Item::Batch { offset, bytes } => {
                batches += 1;
                let shown = show_batch(args, offset, &bytes, out)?;
                records += shown.records;
                if let Some(e) = shown.bad {
                    *damaged = true;
                    let e = e.with_file(&log.path).with_offset(offset);
                    show_bad(args, offset, &e, out)?;
                    if args.recovery_mode.is_some() {
                        break true;
                    }
                }
            }
            Item::TimestampSizes(sizes) => {
                out.line(format!("         timestamp sizes {sizes:?}"))?;
                out.object(|| json!({"type": "timestamp_sizes", "sizes": sizes}))?;
            }
            Item::Predecessor(p) => {
                out.line(format!("         predecessor {p:?}"))?;
                out.object(|| json!({"type": "predecessor", "text": format!("{p:?}")}))?;
            }
            Item::Damage(what, d, ends) => {
                *damaged |= what != "torn tail";
                show_damage(what, &d, out)?;
                if ends {
                    break false;
                }
            }
            Item::OldRecord(offset) => {
                out.line(format!(
                    "{offset:>8} the rest is of an older log of this file"
                ))?;
                out.object(|| json!({"type": "old_record", "offset": offset}))?;
                break false;
            }
            Item::Stop(d) => {
                show_damage("replay stops", &d, out)?;
                break true;
            }
            Item::End => break false,
        }
    };
    out.line(format!(
        "         {}, {}",
        plural(batches, "batch"),
        plural(records, "record")
    ))?;
    out.object(|| json!({"type": "log_end", "batches": batches, "records": records}))?;
    Ok(stop)
}

fn next(reader: &mut LogReader, mode: Option<Mode>) -> Result<Item> {
    let plain = |sizes: Vec<(esker_format::FamilyId, u16)>| {
        Item::TimestampSizes(
            sizes
                .into_iter()
                .map(|(family, size)| (family.0, size))
                .collect(),
        )
    };
    if let Some(mode) = mode {
        return Ok(match reader.replay(mode.into())? {
            ReplayStep::Record { bytes, offset, .. } => Item::Batch {
                offset,
                bytes: bytes.to_vec(),
            },
            ReplayStep::TimestampSizes(sizes) => plain(sizes),
            ReplayStep::Predecessor(p) => Item::Predecessor(p),
            ReplayStep::Skipped(d) => Item::Damage("skipped", d, false),
            ReplayStep::End(Some(d)) => Item::Damage("torn tail", d, true),
            ReplayStep::End(None) => Item::End,
            ReplayStep::RecycledTail(d) => Item::OldRecord(d.offset),
            ReplayStep::Stop(d) => Item::Stop(d),
        });
    }
    Ok(match reader.next()? {
        ReadOutcome::Record { bytes, offset } => Item::Batch {
            offset,
            bytes: bytes.to_vec(),
        },
        ReadOutcome::TimestampSizes(sizes) => plain(sizes),
        ReadOutcome::Predecessor(p) => Item::Predecessor(p),
        ReadOutcome::End => Item::End,
        ReadOutcome::OldRecord { offset } => Item::OldRecord(offset),
        ReadOutcome::TornTail(d) => Item::Damage("torn tail", d, true),
        ReadOutcome::Damaged(d) => Item::Damage("damaged", d, false),
    })
}

fn show_damage(what: &str, d: &Damage, out: &mut Out) -> Outcome {
    let dropped = match d.bytes_dropped {
        0 => String::new(),
        n => format!(" ({} dropped)", plural(n, "byte")),
    };
    out.line(format!("{:>8} {what}: {}{dropped}", d.offset, d.reason))?;
    out.object(|| {
        json!({"type": "damage", "what": what, "offset": d.offset, "reason": d.reason,
            "bytes_dropped": d.bytes_dropped})
    })
}

/// A record whose checksum holds and whose batch is not sound: an open refuses it, whatever its
/// mode.
fn show_bad(args: &WalArgs, offset: u64, e: &Error, out: &mut Out) -> Outcome {
    let end = match args.recovery_mode {
        Some(_) => "; an open fails here",
        None => "",
    };
    out.line(format!("{offset:>8} bad batch: {e}{end}"))?;
    out.object(|| json!({"type": "bad_batch", "offset": offset, "reason": e.to_string()}))
}

/// The part of a batch that was shown, and the error in the rest.
struct BatchSummary {
    records: u64,
    bad: Option<Error>,
}

fn show_batch(args: &WalArgs, offset: u64, bytes: &[u8], out: &mut Out) -> Outcome<BatchSummary> {
    let mut shown = BatchSummary {
        records: 0,
        bad: None,
    };
    let batch = match BatchReader::parse(bytes) {
        Ok(batch) => batch,
        Err(e) => {
            shown.bad = Some(e);
            return Ok(shown);
        }
    };
    let (seq, count) = (batch.seq(), batch.count());
    out.line(format!(
        "{offset:>8} seq={seq} count={count} bytes={}",
        bytes.len()
    ))?;
    out.object(|| {
        json!({"type": "batch", "offset": offset, "seq": seq.0, "count": count, "bytes": bytes.len()})
    })?;
    let value = TextFormat {
        hex: args.hex,
        limit: if args.full { 0 } else { VALUE_SHOWN },
    };
    for record in batch.records() {
        match record {
            Ok(record) => {
                shown.records += 1;
                if !args.header {
                    out.line(format!(
                        "         {}",
                        record_text(&record, args.hex, value)
                    ))?;
                    out.object(|| record_json(&record, args.hex))?;
                }
            }
            Err(e) => shown.bad = Some(e),
        }
    }
    Ok(shown)
}

/// Kind, and the named parts, of a record.
fn parts<'a>(record: &Record<'a>) -> (&'static str, Vec<(&'static str, &'a [u8])>) {
    match *record {
        Record::Put { key, value, .. } => ("Put", vec![("key", key), ("value", value)]),
        Record::Delete { key, .. } => ("Delete", vec![("key", key)]),
        Record::SingleDelete { key, .. } => ("SingleDelete", vec![("key", key)]),
        Record::Merge { key, operand, .. } => ("Merge", vec![("key", key), ("operand", operand)]),
        Record::DeleteRange { begin, end, .. } => {
            ("DeleteRange", vec![("begin", begin), ("end", end)])
        }
        Record::BlobIndex { key, index, .. } => ("BlobIndex", vec![("key", key), ("index", index)]),
        Record::PutEntity { key, entity, .. } => {
            ("PutEntity", vec![("key", key), ("entity", entity)])
        }
        Record::TimedPut { key, packed, .. } => {
            ("TimedPut", vec![("key", key), ("packed", packed)])
        }
        Record::LogData(data) => ("LogData", vec![("data", data)]),
        Record::BeginPrepare(_) => ("BeginPrepare", vec![]),
        Record::EndPrepare { xid } => ("EndPrepare", vec![("xid", xid)]),
        Record::Commit { xid } => ("Commit", vec![("xid", xid)]),
        Record::CommitWithTimestamp { timestamp, xid } => (
            "CommitWithTimestamp",
            vec![("timestamp", timestamp), ("xid", xid)],
        ),
        Record::Rollback { xid } => ("Rollback", vec![("xid", xid)]),
        Record::Noop => ("Noop", vec![]),
    }
}

/// Returns whether a part is bytes by nature.
fn is_binary(name: &str) -> bool {
    matches!(name, "index" | "packed" | "timestamp" | "entity")
}

fn record_text(record: &Record<'_>, hex_keys: bool, value: TextFormat) -> String {
    let (kind, parts) = parts(record);
    let mut out = kind.to_owned();
    if let Some(family) = record.family() {
        out.push_str(&format!(" family={family}"));
    }
    for (name, bytes) in parts {
        let form = match name {
            "value" | "operand" | "data" => value,
            _ if is_binary(name) => TextFormat { hex: true, ..value },
            _ => TextFormat::whole(hex_keys),
        };
        out.push_str(&format!(" {name}={}", form.show(bytes)));
    }
    out
}

fn record_json(record: &Record<'_>, hex_form: bool) -> Value {
    let (kind, parts) = parts(record);
    let mut out = Map::new();
    out.insert("type".to_owned(), "record".into());
    out.insert("kind".to_owned(), kind.into());
    out.insert("family".to_owned(), json!(record.family().map(|f| f.0)));
    for (name, bytes) in parts {
        put_bytes(&mut out, name, bytes, hex_form || is_binary(name));
    }
    Value::Object(out)
}
