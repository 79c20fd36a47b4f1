//! Version edits as text and as JSON, every field of them.

use crate::text::{TextFormat, hex};
use esker_format::InternalKey;
use esker_format::edit::{NewFile, UNKNOWN_CHECKSUM, VersionEdit};
use serde_json::{Map, Value, json};
use std::fmt::{Display, Write};

/// A file boundary: `key@sequence:type`.
pub(crate) fn boundary(key: &InternalKey, form: TextFormat) -> String {
    format!("{}@{}:{:?}", form.show(key.user()), key.seq(), key.kind())
}

/// A table in a line.
pub(crate) fn file_text(f: &NewFile, form: TextFormat) -> String {
    let mut out = format!(
        "{}[{} .. {}] size={} seq={}..{}",
        f.number,
        boundary(&f.smallest, form),
        boundary(&f.largest, form),
        f.size,
        f.smallest_seq,
        f.largest_seq
    );
    let mut add = |name: &str, value: &dyn Display| {
        let _ = write!(out, " {name}={value}");
    };
    for (name, value) in [
        ("path", u64::from(f.path_id)),
        ("epoch", f.epoch_number),
        ("oldest_ancestor_time", f.oldest_ancestor_time),
        ("creation_time", f.creation_time),
        ("temperature", u64::from(f.temperature)),
        (
            "compensated_range_deletion_size",
            f.compensated_range_deletion_size,
        ),
        ("tail_size", f.tail_size),
        ("oldest_blob_file", f.oldest_blob_file.map_or(0, |n| n.0)),
    ] {
        if value != 0 {
            add(name, &value);
        }
    }
    if let Some([a, b]) = f.unique_id {
        add("unique_id", &format!("{a:016X}{b:016X}"));
    }
    if f.checksum_function != UNKNOWN_CHECKSUM && !f.checksum.is_empty() {
        add(
            "checksum",
            &format!("{}:{}", f.checksum_function, hex(&f.checksum)),
        );
    }
    for (name, value) in [
        ("min_timestamp", &f.min_timestamp),
        ("max_timestamp", &f.max_timestamp),
    ] {
        if !value.is_empty() {
            add(name, &hex(value));
        }
    }
    if !f.timestamps_persisted {
        out.push_str(" timestamps_stripped");
    }
    if f.marked_for_compaction {
        out.push_str(" marked_for_compaction");
    }
    out
}

/// A table as an object.
pub(crate) fn file_json(f: &NewFile, form: TextFormat) -> Value {
    json!({
        "number": f.number.0,
        "size": f.size,
        "smallest_key": form.show(f.smallest.user()),
        "smallest_internal_key": hex(f.smallest.as_bytes()),
        "largest_key": form.show(f.largest.user()),
        "largest_internal_key": hex(f.largest.as_bytes()),
        "smallest_seq": f.smallest_seq.0,
        "largest_seq": f.largest_seq.0,
        "path_id": f.path_id,
        "epoch_number": f.epoch_number,
        "marked_for_compaction": f.marked_for_compaction,
        "oldest_blob_file": f.oldest_blob_file.map(|n| n.0),
        "oldest_ancestor_time": f.oldest_ancestor_time,
        "creation_time": f.creation_time,
        "checksum_function": f.checksum_function,
        "checksum": hex(&f.checksum),
        "temperature": f.temperature,
        "unique_id": f.unique_id.map(|[a, b]| format!("{a:016X}{b:016X}")),
        "compensated_range_deletion_size": f.compensated_range_deletion_size,
        "tail_size": f.tail_size,
        "timestamps_persisted": f.timestamps_persisted,
        "min_timestamp": hex(&f.min_timestamp),
        "max_timestamp": hex(&f.max_timestamp),
    })
}

/// Name and number of each scalar field that is there.
fn numbers(e: &VersionEdit) -> Vec<(&'static str, u64)> {
    let synced = e.known_logs.and_then(|l| l.synced);
    [
        ("log_number", e.log_number.map(|n| n.0)),
        ("prev_log_number", e.prev_log_number.map(|n| n.0)),
        ("next_file_number", e.next_file_number.map(|n| n.0)),
        ("last_sequence", e.last_sequence.map(|n| n.0)),
        (
            "max_column_family",
            e.max_column_family.map(|n| u64::from(n.0)),
        ),
        (
            "min_log_number_to_keep",
            e.min_log_number_to_keep.map(|n| n.0),
        ),
        ("wal_deletion", e.wal_deletion.map(|n| n.0)),
        ("remaining_in_group", e.remaining_in_group.map(u64::from)),
        (
            "last_compacted_manifest_size",
            e.last_compacted_manifest_size,
        ),
        ("newest_log", e.known_logs.map(|l| l.newest.0)),
        ("newest_log_end", e.known_logs.and_then(|l| l.end)),
        ("synced_log", synced.map(|(log, _)| log.0)),
        ("synced_log_bytes", synced.map(|(_, bytes)| bytes)),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
    .collect()
}

/// An edit on one line: the facts, then what leaves (`-`) and what comes (`+`).
pub(crate) fn edit_text(e: &VersionEdit, form: TextFormat) -> String {
    let mut out = format!("family={}", e.family);
    let mut add = |text: String| {
        out.push(' ');
        out.push_str(&text);
    };
    if let Some(name) = &e.family_add {
        add(format!("add_family={name:?}"));
    }
    if e.family_drop {
        add("drop_family".to_owned());
    }
    if let Some(id) = &e.db_id {
        add(format!("db_id={id:?}"));
    }
    if let Some(name) = &e.comparator {
        add(format!("comparator={name:?}"));
    }
    for (name, value) in numbers(e) {
        add(format!("{name}={value}"));
    }
    for wal in &e.wal_additions {
        let size = wal.synced_size.map(|s| format!(":{s}")).unwrap_or_default();
        add(format!("wal_addition={}{size}", wal.number));
    }
    if let Some(ts) = &e.full_history_ts_low {
        add(format!("full_history_ts_low={}", hex(ts)));
    }
    if let Some(keep) = e.persist_user_defined_timestamps {
        add(format!("persist_user_defined_timestamps={keep}"));
    }
    if let Some(bytes) = &e.subcompaction_progress {
        add(format!("subcompaction_progress={}", hex(bytes)));
    }
    for (level, key) in &e.compact_cursors {
        add(format!("cursor=L{level}:{}", boundary(key, form)));
    }
    for (level, number) in &e.deleted_files {
        add(format!("-L{level}:{number}"));
    }
    for (level, file) in &e.new_files {
        add(format!("+L{level}:{}", file_text(file, form)));
    }
    for b in &e.blob_additions {
        add(format!(
            "+blob:{} count={} bytes={}",
            b.number, b.total_count, b.total_bytes
        ));
    }
    for g in &e.blob_garbage {
        add(format!(
            "garbage:{} count={} bytes={}",
            g.number, g.count, g.bytes
        ));
    }
    out
}

/// An edit as an object; absent fields are left out.
pub(crate) fn edit_json(e: &VersionEdit, offset: u64, form: TextFormat) -> Value {
    let mut out = Map::new();
    let mut add = |name: &str, value: Value| {
        out.insert(name.to_owned(), value);
    };
    add("type", json!("edit"));
    add("offset", json!(offset));
    add("family", json!(e.family.0));
    if let Some(name) = &e.family_add {
        add("add_family", json!(name));
    }
    if e.family_drop {
        add("drop_family", json!(true));
    }
    if let Some(id) = &e.db_id {
        add("db_id", json!(id));
    }
    if let Some(name) = &e.comparator {
        add("comparator", json!(name));
    }
    for (name, value) in numbers(e) {
        add(name, json!(value));
    }
    if !e.wal_additions.is_empty() {
        let wals = e.wal_additions.iter();
        let wals = wals.map(|w| json!({"number": w.number.0, "synced_size": w.synced_size}));
        add("wal_additions", wals.collect());
    }
    if let Some(ts) = &e.full_history_ts_low {
        add("full_history_ts_low", json!(hex(ts)));
    }
    if let Some(keep) = e.persist_user_defined_timestamps {
        add("persist_user_defined_timestamps", json!(keep));
    }
    if let Some(bytes) = &e.subcompaction_progress {
        add("subcompaction_progress", json!(hex(bytes)));
    }
    if !e.compact_cursors.is_empty() {
        let cursors = e.compact_cursors.iter();
        let cursors = cursors.map(|(l, k)| json!({"level": l.0, "key": boundary(k, form)}));
        add("compact_cursors", cursors.collect());
    }
    if !e.deleted_files.is_empty() {
        let files = e.deleted_files.iter();
        add(
            "deleted_files",
            files
                .map(|(l, n)| json!({"level": l.0, "number": n.0}))
                .collect(),
        );
    }
    if !e.new_files.is_empty() {
        let files = e.new_files.iter();
        let files = files.map(|(l, f)| json!({"level": l.0, "file": file_json(f, form)}));
        add("new_files", files.collect());
    }
    if !e.blob_additions.is_empty() {
        let blobs = e.blob_additions.iter().map(|b| {
            json!({"number": b.number.0, "total_count": b.total_count, "total_bytes": b.total_bytes,
                "checksum_method": b.checksum_method, "checksum_value": hex(&b.checksum_value)})
        });
        add("blob_additions", blobs.collect());
    }
    if !e.blob_garbage.is_empty() {
        let garbage = e.blob_garbage.iter();
        let garbage =
            garbage.map(|g| json!({"number": g.number.0, "count": g.count, "bytes": g.bytes}));
        add("blob_garbage", garbage.collect());
    }
    Value::Object(out)
}
