//! Writing an edit: fields in RocksDB's order, so that equal edits have equal bytes.

use super::{VersionEdit, tag};
use crate::coding::{put_lpstr, put_varint32, put_varint64, varint_len};
use crate::ids::FamilyId;

impl VersionEdit {
    /// The encoded edit.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.new_files.len() * 160);
        self.encode_into(&mut out);
        out
    }

    /// Appends the encoded edit.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        self.encode_facts(out);
        self.encode_files(out);
        self.encode_wals(out);
        self.encode_family(out);
    }

    fn encode_facts(&self, out: &mut Vec<u8>) {
        if let Some(id) = &self.db_id {
            put_string(out, tag::DB_ID, id.as_bytes());
        }
        if let Some(name) = &self.comparator {
            put_string(out, tag::COMPARATOR, name.as_bytes());
        }
        for (tag, value) in [
            (tag::LOG_NUMBER, self.log_number.map(|n| n.0)),
            (tag::PREV_LOG_NUMBER, self.prev_log_number.map(|n| n.0)),
            (tag::NEXT_FILE_NUMBER, self.next_file_number.map(|n| n.0)),
            (
                tag::MAX_COLUMN_FAMILY,
                self.max_column_family.map(|f| u64::from(f.0)),
            ),
            (
                tag::MIN_LOG_NUMBER_TO_KEEP,
                self.min_log_number_to_keep.map(|n| n.0),
            ),
            (tag::LAST_SEQUENCE, self.last_sequence.map(|s| s.0)),
        ] {
            if let Some(value) = value {
                put_varint32(out, tag);
                put_varint64(out, value);
            }
        }
    }

    fn encode_files(&self, out: &mut Vec<u8>) {
        for (level, key) in &self.compact_cursors {
            put_varint32(out, tag::COMPACT_CURSOR);
            put_varint32(out, u32::from(level.0));
            put_lpstr(out, key.as_bytes());
        }
        for (level, number) in &self.deleted_files {
            put_varint32(out, tag::DELETED_FILE);
            put_varint32(out, u32::from(level.0));
            put_varint64(out, number.0);
        }
        for (i, (level, file)) in self.new_files.iter().enumerate() {
            put_varint32(out, tag::NEW_FILE_4);
            file.encode(*level, self.min_log_number_to_keep.filter(|_| i == 0), out);
        }
        for addition in &self.blob_additions {
            put_varint32(out, tag::BLOB_FILE_ADDITION);
            addition.encode(out);
        }
        for garbage in &self.blob_garbage {
            put_varint32(out, tag::BLOB_FILE_GARBAGE);
            garbage.encode(out);
        }
    }

    fn encode_wals(&self, out: &mut Vec<u8>) {
        for wal in &self.wal_additions {
            let mut body = Vec::with_capacity(16);
            put_varint64(&mut body, wal.number.0);
            if let Some(size) = wal.synced_size {
                put_varint32(&mut body, 2);
                put_varint64(&mut body, size);
            }
            put_varint32(&mut body, 1);
            put_string(out, tag::WAL_ADDITION, &body);
        }
        if let Some(number) = self.wal_deletion {
            put_number_string(out, tag::WAL_DELETION, number.0);
        }
    }

    fn encode_family(&self, out: &mut Vec<u8>) {
        if self.family != FamilyId::DEFAULT {
            put_varint32(out, tag::COLUMN_FAMILY);
            put_varint32(out, self.family.0);
        }
        if let Some(name) = &self.family_add {
            put_string(out, tag::COLUMN_FAMILY_ADD, name.as_bytes());
        }
        if self.family_drop {
            put_varint32(out, tag::COLUMN_FAMILY_DROP);
        }
        if let Some(remaining) = self.remaining_in_group {
            put_varint32(out, tag::IN_ATOMIC_GROUP);
            put_varint32(out, remaining);
        }
        if let Some(ts) = &self.full_history_ts_low {
            put_string(out, tag::FULL_HISTORY_TS_LOW, ts);
        }
        if let Some(persist) = self.persist_user_defined_timestamps {
            put_string(
                out,
                tag::PERSIST_USER_DEFINED_TIMESTAMPS,
                &[u8::from(persist)],
            );
        }
        if let Some(progress) = &self.subcompaction_progress {
            put_string(out, tag::SUBCOMPACTION_PROGRESS, progress);
        }
        if let Some(size) = self.last_compacted_manifest_size {
            put_number_string(out, tag::LAST_COMPACTED_MANIFEST_SIZE, size);
        }
        if let Some(logs) = &self.known_logs {
            let mut body = Vec::with_capacity(16);
            let (log, bytes) = logs.synced.unwrap_or_default();
            let numbers = [
                logs.newest.0,
                logs.before.0,
                logs.before_end,
                logs.end.map_or(0, |end| end.saturating_add(1)),
                log.0,
                bytes,
            ];
            let said = match (logs.end, logs.synced) {
                (None, None) => 3,
                (Some(_), None) => 4,
                (_, Some(_)) => 6,
            };
            for n in &numbers[..said] {
                put_varint64(&mut body, *n);
            }
            put_string(out, tag::KNOWN_LOGS, &body);
        }
    }
}

fn put_string(out: &mut Vec<u8>, tag: u32, bytes: &[u8]) {
    put_varint32(out, tag);
    put_lpstr(out, bytes);
}

fn put_number_string(out: &mut Vec<u8>, tag: u32, v: u64) {
    put_varint32(out, tag);
    put_varint32(out, varint_len(v) as u32);
    put_varint64(out, v);
}
