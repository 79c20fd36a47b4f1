//! The values that the steps of a repair hand on: the MANIFEST that it follows, logs, tables.

use super::report::SalvagedTable;
use crate::recover::fold::ManifestContents;
use crate::write::prepared::NamedBatches;
use esker_files::table::SalvageOptions;
use esker_format::blob_refs::BlobRefs;
use esker_format::key::InternalKey;
use esker_format::properties::TableProperties;
use esker_format::{FamilyId, FileNo, Level, Seq};
use esker_lsm::file::FileMeta;
use esker_lsm::version::{BlobFile, Version};
use esker_status::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The property that names the table of which this one was made.
pub(super) const MADE_OF: &str = "esker.repair.made.of";
/// The property that names the logs of which this table was made.
pub(super) const MADE_OF_LOGS: &str = "esker.repair.made.of.logs";

/// A MANIFEST that describes trees.
pub(super) struct ManifestTrees {
    pub(super) folded: ManifestContents,
    /// The trees of all its families.
    pub(super) versions: BTreeMap<FamilyId, Version>,
    /// CURRENT names it.
    pub(super) is_live: bool,
}

/// The logs that are there.
pub(super) struct Logs {
    /// All of them.
    pub(super) all: Vec<FileNo>,
    /// Those that may hold what is in no table.
    pub(super) needed: Vec<FileNo>,
}

/// Contents of the logs.
#[derive(Default)]
pub(super) struct LogContents {
    /// The logs that it is taken from.
    pub(super) logs: Vec<FileNo>,
    /// The tables to write, in the order of the replay.
    pub(super) tables: Vec<(FamilyId, FileNo)>,
    /// The newest sequence.
    pub(super) last: Seq,
    /// Prepared sections that are neither committed nor undone.
    pub(super) prepared: NamedBatches,
}

/// The table of which the one with these properties was made by a repair.
pub(super) fn made_of(properties: &TableProperties) -> Option<FileNo> {
    let value = properties.user_collected.get(MADE_OF.as_bytes())?;
    std::str::from_utf8(value).ok()?.parse().ok().map(FileNo)
}

/// The logs of which the table with these properties was made by a repair.
pub(super) fn made_of_logs(properties: &TableProperties) -> Option<Vec<FileNo>> {
    let value = properties.user_collected.get(MADE_OF_LOGS.as_bytes())?;
    let numbers = std::str::from_utf8(value).ok()?.split(',');
    numbers.map(|n| n.parse().ok().map(FileNo)).collect()
}

/// A damaged table, and what of it can be read.
pub(super) struct DamagedTable {
    pub(super) path: PathBuf,
    /// The number of the damaged table.
    pub(super) number: FileNo,
    pub(super) options: SalvageOptions,
    /// The new table. Its file is not there, and what a file has is not known.
    pub(super) found: ReadableTable,
    pub(super) told: SalvagedTable,
}

/// Condition of a table that the MANIFEST lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableCondition {
    Readable,
    Salvaged,
    Unreadable,
    Absent,
}

/// A table that can be read.
pub(super) struct ReadableTable {
    pub(super) path: PathBuf,
    pub(super) family: FamilyId,
    pub(super) family_name: String,
    pub(super) comparator: String,
    pub(super) meta: FileMeta,
    /// Its references to blob files.
    pub(super) refs: BlobRefs,
    /// Its entries, range deletions among them.
    pub(super) entries: u64,
    /// Ingested with its sequence in the MANIFEST alone: how old its data is cannot be told.
    pub(super) is_ageless: bool,
    /// The damaged table of which a repair made this one.
    pub(super) made_of: Option<FileNo>,
}

/// Everything that was found.
#[derive(Default)]
pub(super) struct Inventory {
    pub(super) tables: BTreeMap<FileNo, ReadableTable>,
    /// Damaged tables of which some can be read.
    pub(super) salvaged: BTreeMap<FileNo, DamagedTable>,
    /// Blob files that can be opened, with the family and what a MANIFEST says about such a file.
    pub(super) blobs: BTreeMap<FileNo, (PathBuf, FamilyId, BlobFile)>,
    /// Files that cannot be read, and why.
    pub(super) unusable: Vec<(PathBuf, String)>,
    /// Files that no tree lists, and why.
    pub(super) unlisted: Vec<(PathBuf, String)>,
    /// The largest number of a file.
    pub(super) largest: FileNo,
    pub(super) unusable_tables: BTreeSet<FileNo>,
    pub(super) unusable_blobs: BTreeMap<FileNo, Error>,
    /// Tables that are not where the MANIFEST says.
    pub(super) misplaced: Vec<(PathBuf, FileNo)>,
}

/// A table as the MANIFEST lists it.
pub(super) struct ListedTable {
    /// Where it should be.
    pub(super) dir: PathBuf,
    pub(super) comparator: Option<String>,
    pub(super) family: String,
    pub(super) family_id: FamilyId,
    pub(super) level: Level,
    pub(super) bounds: (InternalKey, InternalKey),
    pub(super) smallest_seq: Seq,
    pub(super) largest_seq: Seq,
    pub(super) size: u64,
    pub(super) unique_id: Option<[u64; 2]>,
}
