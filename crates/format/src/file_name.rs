//! The names of a database's files.
//!
//! Numbers are decimal, padded with zeros to six digits, read with any number of digits. A name
//! that does not parse belongs to somebody else and is left alone: the garbage collector, recovery
//! and the tools all decide by [`parse_file_name`].

use crate::ids::FileNo;

/// Names the live MANIFEST.
pub const CURRENT: &str = "CURRENT";
/// Holds the database id.
pub const IDENTITY: &str = "IDENTITY";
/// Carries the lock of the process that writes.
pub const LOCK: &str = "LOCK";
/// The human-readable log.
pub const INFO_LOG: &str = "LOG";
/// Names the blocks that were in the block cache when the database was closed. Esker's own.
pub const SAVED_CACHE: &str = "ESKER_CACHE";
/// The directory for write-ahead logs that are kept after their use.
pub const ARCHIVE_DIR: &str = "archive";
/// The directory for files that recovery does not trust.
pub const LOST_DIR: &str = "lost";

/// The kind of a file, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileKind {
    /// `NNNNNN.log`.
    Wal,
    /// `NNNNNN.sst` or `NNNNNN.ldb`.
    Table,
    /// `NNNNNN.blob`.
    Blob,
    /// `MANIFEST-NNNNNN`.
    Manifest,
    /// `OPTIONS-NNNNNN`.
    Options,
    /// `NNNNNN.dbtmp` or `OPTIONS-NNNNNN.dbtmp`: half written, deleted when stale.
    Temp,
    /// `CURRENT`.
    Current,
    /// `IDENTITY`.
    Identity,
    /// `LOCK`.
    Lock,
    /// `LOG`, or `LOG.old.MICROSECONDS` with the time as its number.
    InfoLog,
    /// `ESKER_CACHE`.
    SavedCache,
    /// `METADB-N`.
    MetaDb,
    /// `COMPACTION_PROGRESS-MICROSECONDS`.
    CompactionProgress,
}

/// `NNNNNN.sst`.
pub fn table_name(n: FileNo) -> String {
    format!("{:06}.sst", n.0)
}

/// `NNNNNN.ldb`: tried when the `.sst` is missing.
pub fn old_table_name(n: FileNo) -> String {
    format!("{:06}.ldb", n.0)
}

/// `NNNNNN.log`.
pub fn log_name(n: FileNo) -> String {
    format!("{:06}.log", n.0)
}

/// `NNNNNN.blob`.
pub fn blob_name(n: FileNo) -> String {
    format!("{:06}.blob", n.0)
}

/// `MANIFEST-NNNNNN`.
pub fn manifest_name(n: FileNo) -> String {
    format!("MANIFEST-{:06}", n.0)
}

/// `OPTIONS-NNNNNN`.
pub fn options_name(n: FileNo) -> String {
    format!("OPTIONS-{:06}", n.0)
}

/// `OPTIONS-NNNNNN.dbtmp`.
pub fn temp_options_name(n: FileNo) -> String {
    format!("OPTIONS-{:06}.dbtmp", n.0)
}

/// `NNNNNN.dbtmp`.
pub fn temp_name(n: FileNo) -> String {
    format!("{:06}.dbtmp", n.0)
}

/// `LOG.old.MICROSECONDS`.
pub fn old_info_log_name(unix_us: u64) -> String {
    format!("LOG.old.{unix_us}")
}

/// Returns the kind of a file and its number (0 for the kinds without one); `None` for foreign
/// names.
pub fn parse_file_name(name: &str) -> Option<(FileKind, FileNo)> {
    let plain = match name {
        CURRENT => Some(FileKind::Current),
        IDENTITY => Some(FileKind::Identity),
        LOCK => Some(FileKind::Lock),
        SAVED_CACHE => Some(FileKind::SavedCache),
        INFO_LOG | "LOG.old" => Some(FileKind::InfoLog),
        _ => None,
    };
    if let Some(kind) = plain {
        return Some((kind, FileNo(0)));
    }
    if let Some(rest) = name.strip_prefix("OPTIONS-") {
        return match rest.strip_suffix(".dbtmp") {
            Some(n) => Some((FileKind::Temp, number(n)?)),
            None => Some((FileKind::Options, number(rest)?)),
        };
    }
    for (prefix, kind) in [
        ("MANIFEST-", FileKind::Manifest),
        ("LOG.old.", FileKind::InfoLog),
        ("METADB-", FileKind::MetaDb),
        ("COMPACTION_PROGRESS-", FileKind::CompactionProgress),
    ] {
        if let Some(rest) = name.strip_prefix(prefix) {
            return Some((kind, number(rest)?));
        }
    }
    let (stem, suffix) = name.split_once('.')?;
    let kind = match suffix {
        "log" => FileKind::Wal,
        "sst" | "ldb" => FileKind::Table,
        "blob" => FileKind::Blob,
        "dbtmp" => FileKind::Temp,
        _ => return None,
    };
    Some((kind, number(stem)?))
}

fn number(digits: &str) -> Option<FileNo> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits
        .parse()
        .ok()
        .map(FileNo)
        .filter(|n| *n < FileNo::LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for n in [0, 7, 999_999, 1_000_000, (1 << 62) - 1].map(FileNo) {
            for (name, kind) in [
                (table_name(n), FileKind::Table),
                (old_table_name(n), FileKind::Table),
                (log_name(n), FileKind::Wal),
                (blob_name(n), FileKind::Blob),
                (manifest_name(n), FileKind::Manifest),
                (options_name(n), FileKind::Options),
                (temp_options_name(n), FileKind::Temp),
                (temp_name(n), FileKind::Temp),
                (old_info_log_name(n.0), FileKind::InfoLog),
            ] {
                assert_eq!(parse_file_name(&name), Some((kind, n)), "{name}");
            }
        }
        assert_eq!(table_name(FileNo(7)), "000007.sst");
    }

    #[test]
    fn foreign_names_are_left_alone() {
        for name in [
            "",
            ".",
            "7",
            ".sst",
            "x.sst",
            "7.sstx",
            "7.sst.bak",
            "-7.log",
            "+7.log",
            "7 .log",
            "MANIFEST",
            "MANIFEST-",
            "MANIFEST-x",
            "OPTIONS-7.tmp",
            "LOG.old.x",
            "CURRENTx",
            "ESKER_CACHE-7",
            "4611686018427387904.sst",
            "99999999999999999999.log",
        ] {
            assert_eq!(parse_file_name(name), None, "{name}");
        }
    }
}
