//! Commands of `ldb` that show files: MANIFESTs, tables and logs.

use super::call::{LdbCall, LdbOutcome, failed};
use crate::directory::Directory;
use crate::fold::{Family, Fold, hinted};
use crate::manifest::by_level;
use crate::out::Out;
use crate::rocks_text;
use crate::sst::reader;
use crate::text::hex;
use esker_env::{FileSystem, PosixFs, ReadOptions};
use esker_files::log::{LogReader, LogReaderOptions, ReadOutcome};
use esker_files::manifest::ManifestReader;
use esker_files::table::ReadContext;
use esker_format::batch::{BatchReader, PrepareKind, Record};
use esker_format::edit::UNKNOWN_CHECKSUM;
use esker_format::file_name::{FileKind, log_name, parse_file_name, table_name};
use esker_format::{Cursor, FileNo, Level, ParsedKey};
use esker_status::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Levels that RocksDB's listing of a MANIFEST has.
const LEVELS: u8 = 64;
const LINE: &str = "==============================";
const DASHES: &str = "------------------------------";

/// Runs `list_file_range_deletes`.
pub(super) fn range_deletes(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let mut left = call.max_keys()?;
    let (dir, fold) = call.folded()?;
    let family = crate::idump::family(&fold, &call.database()?.column_family)?;
    for (_, file) in by_level(family) {
        let path = located(&dir, file.number);
        out.line(format!("=== file : {} ===", path.display()))?;
        let table = reader(&path, file.number, Some(file.largest_seq))?;
        for t in table.range_tombstones().iter() {
            let (start, end) = (rocks_text::digits(&t.start), rocks_text::digits(&t.end));
            out.line(format!("start: {start} end: {end} seq: {}", t.seq))?;
            left = left.saturating_sub(1);
            if left == 0 {
                return Ok(out.line("(results may not be complete)\n")?);
            }
        }
    }
    Ok(out.line("")?)
}

fn located(dir: &Directory, number: FileNo) -> PathBuf {
    let found = dir.find(FileKind::Table, number).map(|f| f.path.clone());
    found.unwrap_or_else(|| dir.path.join(table_name(number)))
}

/// The state of a MANIFEST, as RocksDB prints it.
fn show_state(fold: &Fold, out: &mut Out) -> LdbOutcome {
    // RocksDB numbers versions as it makes them: an empty one for each family, then these.
    let versions = fold.families.len()..;
    for (family, version) in fold.families.values().zip(versions) {
        out.line(format!(
            "--------------- Column family \"{}\"  (ID {}) --------------",
            family.name, family.id
        ))?;
        let log = family.log_number.unwrap_or_default();
        out.line(format!("log number: {log}"))?;
        out.line(format!("comparator: {}", family.comparator))?;
        show_levels(family, version, out)?;
    }
    let number = |n: Option<u64>| n.unwrap_or_default();
    let newest = fold.families.keys().map(|id| id.0).max();
    let newest = fold.max_column_family.map(|n| n.0).max(newest);
    Ok(out.line(format!(
        "next_file_number {} last_sequence {}  prev_log_number 0 max_column_family {} \
         min_log_number_to_keep {}",
        // As RocksDB's tool counts: the number after the one that is next.
        number(fold.next_file_number.map(|n| n.0 + 1)),
        number(fold.last_sequence.map(|n| n.0)),
        newest.unwrap_or_default(),
        number(fold.min_log_number_to_keep.map(|n| n.0)),
    ))?)
}

fn show_levels(family: &Family, number: usize, out: &mut Out) -> LdbOutcome {
    let files = by_level(family);
    for level in (0..LEVELS).map(Level) {
        out.line(format!("--- level {level} --- version# {number} ---"))?;
        for (_, file) in files.iter().filter(|(l, _)| *l == level) {
            out.line(rocks_text::table_line(file))?;
        }
    }
    let Ok(version) = &family.version else {
        return Ok(());
    };
    if !version.blob_files().is_empty() {
        out.line(format!("--- blob files --- version# {number} ---"))?;
    }
    for b in version.blob_files().values() {
        let tables = files
            .iter()
            .filter(|(_, f)| f.oldest_blob_file == Some(b.number));
        let tables: String = tables.map(|(_, f)| format!(" {}", f.number)).collect();
        out.line(format!(
            "blob_file_number: {} total_blob_count: {} total_blob_bytes: {} checksum_method: {} \
             checksum_value: {} linked_ssts: {{{tables} }} garbage_blob_count: {} \
             garbage_blob_bytes: {}",
            b.number,
            b.total_count,
            b.total_bytes,
            b.checksum_method,
            rocks_text::digits(&b.checksum_value),
            b.garbage_count,
            b.garbage_bytes
        ))?;
    }
    Ok(())
}

/// The MANIFEST that `--path` names, or the live one.
fn manifest_of(call: &LdbCall) -> LdbOutcome<Fold> {
    let Some(path) = call.path("path") else {
        return Ok(call.folded()?.1);
    };
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
    let number = match parse_file_name(&name.unwrap_or_default()) {
        Some((FileKind::Manifest, number)) => number,
        _ => return failed(format!("{} is not a MANIFEST", path.display())),
    };
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let dir = Directory::read(parent)?;
    let mut fold = Fold::read(&dir, &path, number);
    if fold.problems.is_empty() {
        return Ok(fold);
    }
    Err(fold.problems.swap_remove(0).into())
}

/// Runs `manifest_dump`.
pub(super) fn manifest_dump(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let fold = manifest_of(call)?;
    let path = fold.path.clone();
    let is_verbose = call.has("verbose");
    if is_verbose {
        out.line(format!("Processing Manifest file {}", path.display()))?;
    }
    if is_verbose || call.has("json") {
        let fs = PosixFs::new();
        let mut reader = ManifestReader::open(&fs, &path).map_err(hinted)?;
        while let Some(group) = reader.next_group().map_err(hinted)? {
            for edit in &group.edits {
                out.line(rocks_text::edit(edit))?;
            }
        }
    }
    show_state(&fold, out)?;
    if is_verbose {
        out.line(format!("Processing Manifest file {} done", path.display()))?;
    }
    Ok(())
}

/// Runs `file_checksum_dump`.
pub(super) fn file_checksum_dump(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let fold = manifest_of(call)?;
    for family in fold.families.values() {
        for (number, (_, file)) in &family.files {
            let function = if file.checksum_function.is_empty() {
                UNKNOWN_CHECKSUM
            } else {
                &file.checksum_function
            };
            let sum = rocks_text::digits(&file.checksum);
            out.line(format!("{number}, {function}, {sum}"))?;
        }
    }
    Ok(out.line("Print SST file checksum information finished ")?)
}

/// Runs `list_live_files_metadata`.
pub(super) fn list_live_files_metadata(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let (dir, fold) = call.folded()?;
    if call.has("sort_by_filename") {
        let mut lines = Vec::new();
        for family in fold.families.values() {
            for (level, file) in by_level(family) {
                let path = located(&dir, file.number);
                let (path, name) = (path.display(), &family.name);
                lines.push(format!("{path} : level {level}, column family '{name}'"));
            }
            for number in blobs(family) {
                let path = blob_path(&dir, number);
                let (path, name) = (path.display(), &family.name);
                lines.push(format!("{path} : column family '{name}'"));
            }
        }
        lines.sort();
        out.line("Live SST and Blob Files:")?;
        for line in lines {
            out.line(line)?;
        }
        return Ok(out.line(DASHES)?);
    }
    for family in fold.families.values() {
        out.line(format!("===== Column Family: {} =====", family.name))?;
        out.line("Live SST Files:")?;
        let files = by_level(family);
        let configured = crate::fold::family_options(&dir, &family.name);
        let levels = configured.map_or(7, |o| o.num_levels.max(1)) as u8;
        let deepest = files.last().map_or(0, |(level, _)| level.0 + 1);
        for level in (0..levels.max(deepest)).map(Level) {
            out.line(format!("---------- level {level} ----------"))?;
            for (_, file) in files.iter().filter(|(l, _)| *l == level) {
                out.line(located(&dir, file.number).display().to_string())?;
            }
        }
        out.line("Live Blob Files:")?;
        for number in blobs(family) {
            out.line(blob_path(&dir, number).display().to_string())?;
        }
    }
    Ok(out.line(DASHES)?)
}

fn blobs(family: &Family) -> Vec<FileNo> {
    let version = family.version.as_ref().ok();
    let all = version.iter().flat_map(|v| v.blob_files().values());
    all.map(|b| b.number).collect()
}

fn blob_path(dir: &Directory, number: FileNo) -> PathBuf {
    let found = dir.find(FileKind::Blob, number).map(|f| f.path.clone());
    let name = format!("{:06}.blob", number.0);
    found.unwrap_or_else(|| dir.path.join(name))
}

/// Runs `dump_live_files`.
pub(super) fn dump_live_files(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let is_hex = call.hex()?.keys();
    let (dir, fold) = call.folded()?;
    out.line(format!("Manifest File\n{LINE}"))?;
    out.line(fold.path.display().to_string())?;
    show_state(&fold, out)?;
    out.line("")?;
    for family in fold.families.values() {
        out.line(format!("Column family name: {}\n{LINE}", family.name))?;
        out.line(format!("\nSST Files\n{LINE}"))?;
        for (level, file) in by_level(family) {
            let path = located(&dir, file.number);
            out.line(format!("{} level:{level}", path.display()))?;
            out.line(DASHES)?;
            dump_table(&path, file.number, is_hex, out)?;
            out.line("")?;
        }
        out.line(format!("Blob Files\n{LINE}"))?;
        for number in blobs(family) {
            out.line(blob_path(&dir, number).display().to_string())?;
            out.line(DASHES)?;
        }
    }
    out.line(format!("\nWrite Ahead Log Files\n{LINE}"))?;
    for log in dir
        .of(FileKind::Wal)
        .filter(|f| f.len > 0 && f.number >= fold.min_log())
    {
        out.line(dir.path.join(log_name(log.number)).display().to_string())?;
        dump_log(&log.path, log.number, true, true, out)?;
    }
    Ok(())
}

/// The entries and properties of a table.
fn dump_table(path: &Path, number: FileNo, is_hex: bool, out: &mut Out) -> LdbOutcome {
    rocks_text::begin_table(&path.display().to_string(), out)?;
    let table = reader(path, number, None)?;
    let mut cursor = table.cursor(&ReadContext::compaction(1 << 20));
    cursor.seek_to_first();
    while cursor.valid() {
        let key = ParsedKey::parse(cursor.key())?;
        rocks_text::entry(&key, cursor.value(), is_hex, out)?;
        cursor.next();
    }
    cursor.status()?;
    out.line("\nTable Properties:")?;
    rocks_text::show_properties(&table, "", "=", out)?;
    Ok(out.line("")?)
}

/// Runs `dump --path`.
pub(super) fn dump_path(call: &LdbCall, path: &Path, out: &mut Out) -> LdbOutcome {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
    match parse_file_name(&name.unwrap_or_default()) {
        Some((FileKind::Wal, number)) => dump_log(path, number, true, true, out),
        Some((FileKind::Table, number)) => dump_table(path, number, call.hex()?.keys(), out),
        Some((FileKind::Manifest, _)) => manifest_dump(call, out),
        Some((FileKind::Blob, _)) => failed(
            "dump of a blob file is refused: `esker get`, `scan` and `check` read what is in it",
        ),
        _ => failed(format!("{}: Invalid file", path.display())),
    }
}

/// Runs `dump_wal`.
pub(super) fn dump_wal(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let Some(path) = call.path("walfile") else {
        return failed("Argument walfile must be specified.");
    };
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
    let number = match parse_file_name(&name.unwrap_or_default()) {
        Some((FileKind::Wal, number)) => number,
        _ => FileNo(0),
    };
    let (header, values) = (call.has("header"), call.has("print_value"));
    dump_log(&path, number, header, values, out)
}

fn dump_log(
    path: &Path,
    number: FileNo,
    has_header: bool,
    has_values: bool,
    out: &mut Out,
) -> LdbOutcome {
    let file = PosixFs::new()
        .open_read(path, ReadOptions::default())
        .map_err(|e| super::call::LdbFailure::Text(format!("Failed to open WAL file {e}")))?;
    if has_header {
        let values = if has_values { ": value " } else { "" };
        out.line(format!(
            "Sequence,Count,ByteSize,Physical Offset,Key(s) {values}"
        ))?;
    }
    let mut reader = LogReader::new(file, LogReaderOptions::new(number));
    loop {
        match reader.next()? {
            ReadOutcome::Record { bytes, offset } => {
                let text = batch_line(bytes, offset, has_values)
                    .map_err(|e| e.with_file(path).with_offset(offset))?;
                out.line(text)?;
            }
            ReadOutcome::TimestampSizes(_) | ReadOutcome::Predecessor(_) => {}
            ReadOutcome::End | ReadOutcome::OldRecord { .. } | ReadOutcome::TornTail(_) => {
                return Ok(());
            }
            ReadOutcome::Damaged(d) => return Err(d.to_error(path).into()),
        }
    }
}

fn batch_line(bytes: &[u8], offset: u64, has_values: bool) -> Result<String, Error> {
    let batch = BatchReader::parse(bytes)?;
    let mut row = format!(
        "{},{},{},{offset},",
        batch.seq(),
        batch.count(),
        bytes.len()
    );
    for record in batch.records() {
        let record = record?;
        let id = record.family().map(|f| f.0).unwrap_or_default();
        let _ = match record {
            Record::Put { key, value, .. }
            | Record::TimedPut {
                key, packed: value, ..
            } => pair_text(&mut row, "PUT", id, key, has_values.then_some(value)),
            Record::Merge { key, operand, .. } => {
                pair_text(&mut row, "MERGE", id, key, has_values.then_some(operand))
            }
            Record::PutEntity { key, entity, .. } => pair_text(
                &mut row,
                "PUT_ENTITY",
                id,
                key,
                has_values.then_some(entity),
            ),
            Record::BlobIndex { key, index, .. } => pair_text(
                &mut row,
                "PUT_BLOB_INDEX",
                id,
                key,
                has_values.then_some(index),
            ),
            Record::Delete { key, .. } => write!(row, "DELETE({id}) : {} ", hex(key)),
            Record::SingleDelete { key, .. } => {
                write!(row, "SINGLE_DELETE({id}) : {} ", hex(key))
            }
            Record::DeleteRange { begin, end, .. } => {
                write!(row, "DELETE_RANGE({id}) : {} {} ", hex(begin), hex(end))
            }
            Record::BeginPrepare(kind) => {
                let is_unprepared = matches!(kind, PrepareKind::Unprepared);
                write!(row, "BEGIN_PREPARE({is_unprepared}) ")
            }
            Record::EndPrepare { xid } => write!(row, "END_PREPARE({}) ", hex(xid)),
            Record::Commit { xid } => write!(row, "COMMIT({}) ", hex(xid)),
            Record::CommitWithTimestamp { timestamp, xid } => {
                write!(
                    row,
                    "COMMIT_WITH_TIMESTAMP({}, {}) ",
                    hex(xid),
                    hex(timestamp)
                )
            }
            Record::Rollback { xid } => write!(row, "ROLLBACK({}) ", hex(xid)),
            Record::Noop => write!(row, "NOOP "),
            Record::LogData(_) => Ok(()),
        };
    }
    Ok(row)
}

fn pair_text(
    row: &mut String,
    kind: &str,
    id: u32,
    key: &[u8],
    value: Option<&[u8]>,
) -> std::fmt::Result {
    match value {
        Some(value) => write!(row, "{kind}({id}) : {} : {} ", hex(key), hex(value)),
        None => write!(row, "{kind}({id}) : {} ", hex(key)),
    }
}
