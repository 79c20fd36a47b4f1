//! About how many bytes of tables lie in a range of keys: for users that ask, and for what range
//! deletions weigh.

use super::Tables;
use super::tables::TableSetting;
use esker_files::table::ReadContext;
use esker_format::key::append_internal;
use esker_format::{Level, Seq, ValueType};
use esker_lsm::file::FileMeta;
use esker_lsm::version::Version;
use esker_status::Result;
use esker_sync::Arc;

/// Looks into the tables of one version.
pub(crate) struct SizesIn<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) reading: &'a TableSetting,
    pub(crate) version: &'a Version,
    /// Tables that the range cuts may together be so small, as a part of those that lie inside it,
    /// that half of them is taken without looking; 0 for never.
    pub(crate) margin: f64,
}

impl SizesIn<'_> {
    /// Bytes of the tables at `from` and below in the user keys `[begin, end)`.
    pub(crate) fn bytes(&self, from: Level, begin: &[u8], end: &[u8]) -> Result<u64> {
        let order = self.version.order();
        if order.compare(begin, end).is_ge() {
            return Ok(0);
        }
        let (low, high) = (seek_key(begin), seek_key(end));
        let compare = |a: &[u8], b: &[u8]| order.compare_internal(a, b);
        let mut whole = 0u64;
        let mut cut: Vec<(Level, &Arc<FileMeta>)> = Vec::new();
        for (level, file) in self.near(from, &low, &high) {
            let (first, last) = (file.smallest.as_bytes(), file.largest.as_bytes());
            if compare(last, &low).is_lt() || compare(first, &high).is_ge() {
                continue;
            }
            if compare(first, &low).is_ge() && compare(last, &high).is_lt() {
                whole += file.size;
            } else {
                cut.push((level, file));
            }
        }
        let edges: u64 = cut.iter().map(|(_, f)| f.size).sum();
        if self.margin > 0.0 && (edges as f64) < whole as f64 * self.margin {
            return Ok(whole + edges / 2);
        }
        let ctx = ReadContext::default();
        for (level, file) in cut {
            let table = self.tables.get(file, level, self.reading)?;
            whole += table.reader.approximate_size(&ctx, &low, &high)?;
        }
        Ok(whole)
    }

    /// All tables at `from` and below that meet the range, and few others.
    fn near(
        &self,
        from: Level,
        low: &[u8],
        high: &[u8],
    ) -> impl Iterator<Item = (Level, &Arc<FileMeta>)> {
        let levels = (0u8..).map(Level).zip(self.version.levels());
        levels.skip(from.index()).flat_map(move |(level, files)| {
            let range = match level {
                Level::L0 => 0..files.len(),
                _ => files.overlapping(self.version.order(), Some(low), Some(high)),
            };
            files.files()[range].iter().map(move |f| (level, f))
        })
    }
}

/// The first internal key of a user key.
pub(crate) fn seek_key(user: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(user.len() + 8);
    append_internal(&mut key, user, Seq::MAX, ValueType::SEEK);
    key
}
