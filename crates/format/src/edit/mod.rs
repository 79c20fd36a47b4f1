//! Version edits: the records of a MANIFEST.
//!
//! An edit is a list of tagged fields about one column family. [`VersionEdit`] holds every field
//! that RocksDB 7.8 to 11 writes; encoding keeps to what both read. Decoding refuses unknown tags
//! that may not be skipped. The tree turns edits into versions; the MANIFEST reader and writer
//! carry them.

mod blob;
mod decode;
mod encode;
mod new_file;

pub use blob::{BlobAddition, BlobGarbage};
pub use new_file::{NewFile, UNKNOWN_CHECKSUM};

use crate::ids::{FamilyId, FileNo, Level, Seq};
use crate::key::InternalKey;

/// A write-ahead log that the MANIFEST tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalAddition {
    /// The log.
    pub number: FileNo,
    /// Its size at the last sync; absent when it was just created.
    pub synced_size: Option<u64>,
}

/// Logs that the writer of a MANIFEST knew: part of each edit, so that a log which is gone is
/// missed. A field of Esker's own, which RocksDB skips. The default says that nothing is to be
/// missed: there are none, or some were put there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownLogs {
    /// The log that took appends. It was there, and stays until a newer one is named and it is
    /// below the oldest to keep.
    pub newest: FileNo,
    /// The last log before the newest that anything was written to; 0 for none. An empty log cannot
    /// name it.
    pub before: FileNo,
    /// Where that one ended when the newest was begun.
    pub before_end: u64,
    /// Where the newest log ends, when it takes no more appends; 0 for one that was never written
    /// to.
    pub end: Option<u64>,
    /// The log and the length up to which it was synced, with all before it, when tables were added
    /// that hold nothing of any log.
    pub synced: Option<(FileNo, u64)>,
}

impl KnownLogs {
    /// Returns whether nothing is lost with the newest log.
    pub fn is_closed_empty(&self) -> bool {
        self.end == Some(0)
    }
}

/// One change of the tree, or of the facts beside it. The default value changes nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VersionEdit {
    /// The database id.
    pub db_id: Option<String>,
    /// The name of the family's comparator.
    pub comparator: Option<String>,
    /// All data of the family in logs below this number is in its tables.
    pub log_number: Option<FileNo>,
    /// Always 0 today.
    pub prev_log_number: Option<FileNo>,
    /// Above every number in use.
    pub next_file_number: Option<FileNo>,
    /// The largest family id ever given.
    pub max_column_family: Option<FamilyId>,
    /// Logs below this number are not needed by any family.
    pub min_log_number_to_keep: Option<FileNo>,
    /// The largest sequence ever given.
    pub last_sequence: Option<Seq>,
    /// Where round-robin compaction goes on, by level.
    pub compact_cursors: Vec<(Level, InternalKey)>,
    /// Tables that leave a level. Deletions apply before additions.
    pub deleted_files: Vec<(Level, FileNo)>,
    /// Tables that enter a level.
    pub new_files: Vec<(Level, NewFile)>,
    /// New blob files.
    pub blob_additions: Vec<BlobAddition>,
    /// Increments of garbage in blob files.
    pub blob_garbage: Vec<BlobGarbage>,
    /// Logs to track.
    pub wal_additions: Vec<WalAddition>,
    /// All logs below this number are gone.
    pub wal_deletion: Option<FileNo>,
    /// The family that the edit is about.
    pub family: FamilyId,
    /// The family is new and has this name.
    pub family_add: Option<String>,
    /// The family goes.
    pub family_drop: bool,
    /// Edits of the same atomic group that still come; absent outside a group.
    pub remaining_in_group: Option<u32>,
    /// History below this timestamp may be gone.
    pub full_history_ts_low: Option<Vec<u8>>,
    /// True if tables keep user-defined timestamps; written together with the comparator.
    pub persist_user_defined_timestamps: Option<bool>,
    /// Opaque progress of a sub-compaction; in progress files only.
    pub subcompaction_progress: Option<Vec<u8>>,
    /// Size of the MANIFEST when it was last written anew.
    pub last_compacted_manifest_size: Option<u64>,
    /// The logs that are there.
    pub known_logs: Option<KnownLogs>,
}

impl VersionEdit {
    /// An edit that changes nothing yet, for this family.
    pub fn for_family(family: FamilyId) -> Self {
        VersionEdit {
            family,
            ..VersionEdit::default()
        }
    }

    /// Adds a table to a level.
    pub fn add_file(&mut self, level: Level, file: NewFile) {
        self.new_files.push((level, file));
    }

    /// Takes a table from a level.
    pub fn delete_file(&mut self, level: Level, number: FileNo) {
        self.deleted_files.push((level, number));
    }

    /// Returns whether the edit adds or drops a family.
    pub fn is_family_manipulation(&self) -> bool {
        self.family_add.is_some() || self.family_drop
    }

    /// Returns whether the edit is about tracked logs.
    pub fn is_wal_manipulation(&self) -> bool {
        !self.wal_additions.is_empty() || self.wal_deletion.is_some()
    }
}

/// Field numbers as stored.
pub(crate) mod tag {
    pub(crate) const COMPARATOR: u32 = 1;
    pub(crate) const LOG_NUMBER: u32 = 2;
    pub(crate) const NEXT_FILE_NUMBER: u32 = 3;
    pub(crate) const LAST_SEQUENCE: u32 = 4;
    pub(crate) const COMPACT_CURSOR: u32 = 5;
    pub(crate) const DELETED_FILE: u32 = 6;
    pub(crate) const NEW_FILE: u32 = 7;
    pub(crate) const PREV_LOG_NUMBER: u32 = 9;
    pub(crate) const MIN_LOG_NUMBER_TO_KEEP: u32 = 10;
    pub(crate) const NEW_FILE_2: u32 = 100;
    pub(crate) const NEW_FILE_3: u32 = 102;
    pub(crate) const NEW_FILE_4: u32 = 103;
    pub(crate) const COLUMN_FAMILY: u32 = 200;
    pub(crate) const COLUMN_FAMILY_ADD: u32 = 201;
    pub(crate) const COLUMN_FAMILY_DROP: u32 = 202;
    pub(crate) const MAX_COLUMN_FAMILY: u32 = 203;
    pub(crate) const IN_ATOMIC_GROUP: u32 = 300;
    pub(crate) const BLOB_FILE_ADDITION: u32 = 400;
    pub(crate) const BLOB_FILE_GARBAGE: u32 = 401;
    pub(crate) const IGNORABLE_MASK: u32 = 1 << 13;
    pub(crate) const DB_ID: u32 = 8193;
    pub(crate) const OLD_BLOB_FILE_ADDITION: u32 = 8194;
    pub(crate) const OLD_BLOB_FILE_GARBAGE: u32 = 8195;
    pub(crate) const OLD_WAL_ADDITION: u32 = 8196;
    pub(crate) const OLD_WAL_DELETION: u32 = 8197;
    pub(crate) const FULL_HISTORY_TS_LOW: u32 = 8198;
    pub(crate) const WAL_ADDITION: u32 = 8199;
    pub(crate) const WAL_DELETION: u32 = 8200;
    pub(crate) const PERSIST_USER_DEFINED_TIMESTAMPS: u32 = 8201;
    pub(crate) const SUBCOMPACTION_PROGRESS: u32 = 8202;
    pub(crate) const LAST_COMPACTED_MANIFEST_SIZE: u32 = 8203;
    /// Esker's own; far from those that RocksDB gives out one by one.
    pub(crate) const KNOWN_LOGS: u32 = IGNORABLE_MASK | 0xe5;
}

#[cfg(test)]
mod tests;
