//! The files that a database consists of, as values: file by file, level by level, family by
//! family. [`LiveFileMeta`] is RocksDB's `LiveFileMetaData`.

use std::path::PathBuf;

/// A table file that belongs to a family.
///
/// ```
/// let file = esker::LiveFileMeta {
///     name: "000012.sst".into(),
///     level: 1,
///     ..esker::LiveFileMeta::default()
/// };
/// assert_eq!(file.path(), std::path::Path::new("000012.sst"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveFileMeta {
    /// The family it belongs to; empty in an export.
    pub family: String,
    /// Its level.
    pub level: u8,
    /// Its name, without the directory.
    pub name: String,
    /// The directory that it is in.
    pub directory: PathBuf,
    /// The number in its name.
    pub number: u64,
    /// Its bytes.
    pub size: u64,
    /// The smallest user key.
    pub smallest_key: Vec<u8>,
    /// The largest user key; not itself in the file when the file ends with a range deletion.
    pub largest_key: Vec<u8>,
    /// The smallest internal key: nothing before it counts. Empty when that is to be found out.
    pub smallest: Vec<u8>,
    /// The largest internal key: nothing after it counts. Empty when that is to be found out.
    pub largest: Vec<u8>,
    /// The smallest sequence number.
    pub smallest_seq: u64,
    /// The largest sequence number. The sequence number of all its entries, when the file was made
    /// outside.
    pub largest_seq: u64,
    /// Entries; 0 when the file was not opened yet.
    pub num_entries: u64,
    /// Deletions among them.
    pub num_deletions: u64,
    /// True if a compaction reads it now.
    pub being_compacted: bool,
    /// When it was written, in Unix seconds; 0 for unknown.
    pub file_creation_time: u64,
    /// The age of its oldest data, in Unix seconds; 0 for unknown.
    pub oldest_ancestor_time: u64,
    /// Orders the files of level 0.
    pub epoch_number: u64,
    /// The oldest blob file that it refers to.
    pub oldest_blob_file: Option<u64>,
    /// Its temperature, as RocksDB numbers them.
    pub temperature: u8,
    /// The checksum of the whole file, when there is one.
    pub file_checksum: Vec<u8>,
    /// The function of that checksum.
    pub file_checksum_func_name: String,
}

impl LiveFileMeta {
    /// Where the file is.
    pub fn path(&self) -> PathBuf {
        // RocksDB writes names with a slash in front.
        self.directory.join(self.name.trim_start_matches('/'))
    }
}

/// The files of a family on their way from one database to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportedFiles {
    /// The name of the order that the keys are in; empty when it is not to be compared.
    pub db_comparator_name: String,
    /// The files, with the directories that they are in now.
    pub files: Vec<LiveFileMeta>,
}

/// One level of a family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelMeta {
    /// Which.
    pub level: u8,
    /// Bytes of its files.
    pub size: u64,
    /// Its files: newest first at level 0, by key elsewhere.
    pub files: Vec<LiveFileMeta>,
}

/// A blob file of a family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlobMeta {
    /// The number in its name.
    pub number: u64,
    /// Its name, without the directory.
    pub name: String,
    /// The directory that it is in.
    pub directory: PathBuf,
    /// Blobs in it.
    pub total_count: u64,
    /// Their bytes.
    pub total_bytes: u64,
    /// Blobs that nothing refers to any more.
    pub garbage_count: u64,
    /// Their bytes.
    pub garbage_bytes: u64,
    /// The function of its checksum; empty when there is none.
    pub checksum_method: String,
    /// The checksum of the whole file.
    pub checksum_value: Vec<u8>,
    /// The sorted group that it is of, by the number of the group's first file, where it holds
    /// medium values (`min_medium_blob_size`).
    pub group: Option<u64>,
    /// The level of that group.
    pub group_level: Option<u8>,
}

/// A family, level by level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FamilyMeta {
    /// Its name.
    pub name: String,
    /// Bytes of its tables.
    pub size: u64,
    /// How many tables.
    pub file_count: usize,
    /// Its levels, 0 first, empty ones included.
    pub levels: Vec<LevelMeta>,
    /// Its blob files.
    pub blob_files: Vec<BlobMeta>,
}

/// Which files of a family are of interest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FamilyMetaOptions {
    /// Only files that reach this key or beyond it.
    pub start: Option<Vec<u8>>,
    /// Only files that begin at this key or before it.
    pub end: Option<Vec<u8>>,
    /// Only this level.
    pub level: Option<u8>,
}
