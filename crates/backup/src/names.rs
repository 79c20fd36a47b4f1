//! The names in a backup directory.
//!
//! Names from files in `meta/` are checked before anything is done with them: a backup cannot lead
//! out of its directory. Pure functions.

use crate::options::ShareFilesNaming;
use esker::file_name::parse_file_name;
use esker::{Error, FileKind, Result};

/// Held while the directory changes. Not a database's LOCK, which may lie beside it.
pub(crate) const LOCK: &str = "BACKUP_LOCK";
pub(crate) const META: &str = "meta";
pub(crate) const PRIVATE: &str = "private";
pub(crate) const SHARED: &str = "shared";
pub(crate) const SHARED_CHECKSUM: &str = "shared_checksum";

/// The number of a backup, when `name` is nothing but it.
pub(crate) fn parse_id(name: &str) -> Option<u32> {
    let id: u32 = name.parse().ok()?;
    (id > 0 && id.to_string() == name).then_some(id)
}

/// `private/ID`.
pub(crate) fn private_dir(id: u32) -> String {
    format!("{PRIVATE}/{id}")
}

/// The name under which `SHARED/NAME` is written before it is whole.
pub(crate) fn temporary(relative: &str) -> String {
    match relative.rsplit_once('/') {
        Some((dir, name)) => format!("{dir}/.{name}.tmp"),
        None => format!(".{relative}.tmp"),
    }
}

/// Returns whether `name`, in a directory of shared files or in `meta/`, is one of [`temporary`].
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".tmp")
}

/// The name of a file in a backup directory, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BackupFileName {
    /// The name in a database's directory.
    pub(crate) db_name: String,
    pub(crate) kind: FileKind,
    pub(crate) number: u64,
    /// The size that the name carries.
    pub(crate) size: Option<u64>,
    /// The only backup that may have it; `None` when it is shared.
    pub(crate) owner: Option<u32>,
}

/// Takes apart the name of a file in a backup directory. `Corruption` for one that no backup has.
pub(crate) fn parse(relative: &str) -> Result<BackupFileName> {
    take_apart(relative).ok_or_else(|| {
        Error::corruption(format!(
            "Backup corrupted: Fail to parse filename {relative:?}"
        ))
    })
}

fn take_apart(relative: &str) -> Option<BackupFileName> {
    let (dir, name) = relative.rsplit_once('/')?;
    let (db_name, size, owner) = match dir {
        SHARED => (name.to_owned(), None, None),
        SHARED_CHECKSUM => {
            let (stem, suffix) = name.rsplit_once('.')?;
            let (number, rest) = stem.split_once('_')?;
            (format!("{number}.{suffix}"), size_of(rest), None)
        }
        _ => {
            let id = parse_id(dir.strip_prefix(PRIVATE)?.strip_prefix('/')?)?;
            (name.to_owned(), None, Some(id))
        }
    };
    let (kind, number) = parse_file_name(&db_name)?;
    let may_be_shared = matches!(kind, FileKind::Table | FileKind::Blob);
    if owner.is_none() && !may_be_shared {
        return None;
    }
    Some(BackupFileName {
        db_name,
        kind,
        number: number.0,
        size,
        owner,
    })
}

/// The size in what follows the number: `CRC_SIZE`, `sSESSION_SIZE`, or none in `sSESSION`.
fn size_of(rest: &str) -> Option<u64> {
    rest.split_once('_')?.1.parse().ok()
}

/// Returns whether a session may be part of a name.
pub(crate) fn is_usable_session(session: &str) -> bool {
    !session.is_empty() && session.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// The name of the table or blob file `name` in `shared_checksum/`, after the session that wrote
/// it.
pub(crate) fn after_session(
    name: &str,
    session: &str,
    size: u64,
    naming: ShareFilesNaming,
) -> String {
    let (stem, suffix) = name.rsplit_once('.').unwrap_or((name, ""));
    if naming.includes_file_size() {
        format!("{SHARED_CHECKSUM}/{stem}_s{session}_{size}.{suffix}")
    } else {
        format!("{SHARED_CHECKSUM}/{stem}_s{session}.{suffix}")
    }
}

/// Returns the name of a file that is named by its checksum and size.
pub(crate) fn after_checksum(name: &str, crc32c: u32, size: u64) -> String {
    let (stem, suffix) = name.rsplit_once('.').unwrap_or((name, ""));
    format!("{SHARED_CHECKSUM}/{stem}_{crc32c}_{size}.{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_rocksdb() {
        let default = ShareFilesNaming::default();
        let plain = ShareFilesNaming::USE_DB_SESSION_ID;
        let name = after_session("000007.sst", "ABC123", 15, default);
        assert_eq!(name, "shared_checksum/000007_sABC123_15.sst");
        assert_eq!(parse(&name).expect("ours").size, Some(15));
        assert_eq!(parse(&name).expect("ours").db_name, "000007.sst");
        let name = after_session("000007.sst", "ABC123", 15, plain);
        assert_eq!(name, "shared_checksum/000007_sABC123.sst");
        assert_eq!(parse(&name).expect("ours").size, None);
        let name = after_checksum("000007.blob", 99, 15);
        assert_eq!(name, "shared_checksum/000007_99_15.blob");
        assert_eq!(parse(&name).expect("ours").size, Some(15));
        assert_eq!(temporary(&name), "shared_checksum/.000007_99_15.blob.tmp");
        assert!(is_temporary(".000007_99_15.blob.tmp"));
        let manifest = parse("private/3/MANIFEST-000005").expect("ours");
        assert_eq!((manifest.kind, manifest.number), (FileKind::Manifest, 5));
        assert_eq!(manifest.owner, Some(3));
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in [
            "",
            "000007.sst",
            "/etc/passwd",
            "../000007.sst",
            "shared/../000007.sst",
            "shared/../../000007.sst",
            "shared_checksum/000007_../x_1.sst",
            "shared_checksum/000007.sst",
            "shared/CURRENT",
            "private/CURRENT",
            "private/0/CURRENT",
            "private/01/CURRENT",
            "private/1/../2/CURRENT",
            "private/1/sub/CURRENT",
            "private/1/passwd",
            "private/+1/CURRENT",
            "meta/1",
        ] {
            parse(name).expect_err(name);
        }
    }
}
