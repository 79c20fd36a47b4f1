//! The tiers of blob files that a MANIFEST does not tell: RocksDB leaves them out when it writes
//! one anew.
//!
//! A file keeps its tier as long as it lives, and each table that Esker wrote names the groups of
//! the files that it refers to: one that no table names is of large values, or RocksDB has written
//! all tables that refer to it anew. Its values stay where they are then. Looked for once, when a
//! family with groups opens for writing, whose next MANIFEST tells. One thread.

use crate::core::Trees;
use crate::family::Family;
use esker_format::blob_groups::{self, BlobGroups};
use esker_lsm::blob_groups::{has_unknown, with_tiers};
use esker_lsm::version::Version;
use esker_status::Result;
use esker_sync::Arc;

/// Finds the tiers that are not known, in families that keep medium values in groups.
pub(crate) fn find(trees: &Trees) {
    for family in trees.families.all() {
        let version = Arc::clone(&family.view_guard().version);
        let has_groups = || family.options.load().to_policy().blob_groups_from.is_some();
        if !has_unknown(&version) || !has_groups() {
            continue;
        }
        match named_by_tables(trees, &family, &version) {
            Ok(named) => {
                let known = Arc::new(with_tiers(&version, &named));
                family.change_view(|view| view.with_version(known));
            }
            Err(e) => trees.services.info_log.warn(format_args!(
                "[{}] the groups of its blob files are not known: {e}",
                family.name
            )),
        }
    }
}

/// The groups that tables name.
fn named_by_tables(trees: &Trees, family: &Family, version: &Version) -> Result<BlobGroups> {
    let mut named = BlobGroups::default();
    let refers = version
        .files()
        .filter(|(_, f)| f.oldest_blob_file.is_some());
    for (level, file) in refers {
        let table = trees.tables.get(file, level, &family.reading)?;
        let properties = &table.reader.properties().user_collected;
        if let Some(groups) = properties.get(blob_groups::PROPERTY.as_bytes()) {
            named.add_all(&BlobGroups::decode(groups)?);
        }
    }
    Ok(named)
}
