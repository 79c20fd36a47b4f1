//! Checks of a tree as a whole: no version of a key lies above a newer one.

use super::report::Report;
use crate::directory::Directory;
use crate::fold::Family;
use esker_env::{FileSystem, ReadOptions};
use esker_files::table::{ReadContext, TableReader, TableReaderOptions};
use esker_format::file_name::{FileKind, table_name};
use esker_lsm::disorder::{self, OpenTable};
use esker_status::Error;

/// Bytes read ahead.
const READAHEAD: usize = 1 << 20;

/// Checks the tree of a family. Tables that cannot be read have their own errors.
pub(super) fn check(dir: &Directory, family: &Family, report: &Report) {
    let Ok(version) = &family.version else { return };
    let found = disorder::find(version, |level, file| {
        let at = dir.find(FileKind::Table, file.number).ok_or_else(|| {
            Error::not_found("a table is missing").with_file(dir.path.join(table_name(file.number)))
        })?;
        let handle = dir.fs.open_read(&at.path, ReadOptions::default())?;
        let len = handle.len();
        let options = TableReaderOptions {
            order: version.order().clone(),
            file_no: file.number,
            level,
            largest_seq: Some(file.largest_seq),
            ..TableReaderOptions::default()
        };
        let table = TableReader::open(handle, len, options)?;
        Ok(OpenTable {
            tombstones: table.range_tombstones().iter().cloned().collect(),
            cursor: table.cursor(&ReadContext::compaction(READAHEAD)),
        })
    });
    for disorder in found.into_iter().flatten() {
        let what = format!("family {:?}: {disorder}", family.name);
        let e = Error::corruption(what).with_hint(
            "reads give old versions, and compactions may have dropped newer ones; `esker repair` \
             puts what is left in order",
        );
        report.error(e.with_file(&dir.path));
    }
    if version.lacks_epochs() {
        let what = format!(
            "family {:?}: tables of level 0 have no epoch numbers and interleaved sequence \
             numbers; the next opening for writing merges them",
            family.name
        );
        report.warning(Error::corruption(what).with_file(&dir.path));
    }
}
