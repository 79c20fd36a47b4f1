//! The read amplification of a family: what its reads took, told apart for I/O and processor.
//!
//! Sums and averages by operation, from the reads that were looked at
//! (`crate::family::ReadTotals`).

use super::PropertyMap;
use crate::family::{Family, ReadOperation, ReadRow, SAMPLE};
use esker_files::table::ReadFigure as F;
use std::fmt::Write as _;

/// A column: the part that it belongs to, its name there, and what it adds up.
struct Column {
    part: &'static str,
    name: &'static str,
    figures: &'static [F],
}

const fn column(part: &'static str, name: &'static str, figures: &'static [F]) -> Column {
    Column {
        part,
        name,
        figures,
    }
}

const COLUMNS: [Column; 17] = [
    column(
        "io",
        "blocks",
        &[
            F::DataBlocksRead,
            F::IndexBlocksRead,
            F::FilterBlocksRead,
            F::MetaBlocksRead,
        ],
    ),
    column("io", "data-blocks", &[F::DataBlocksRead]),
    column("io", "index-blocks", &[F::IndexBlocksRead]),
    column("io", "filter-blocks", &[F::FilterBlocksRead]),
    column(
        "io",
        "bytes",
        &[
            F::DataBytesRead,
            F::IndexBytesRead,
            F::FilterBytesRead,
            F::MetaBytesRead,
        ],
    ),
    column("cpu", "data-hits", &[F::DataHits]),
    column("cpu", "index-hits", &[F::IndexHits]),
    column("cpu", "filter-hits", &[F::FilterHits]),
    column("cpu", "tier-hits", &[F::TierHits]),
    column("cpu", "filters", &[F::FiltersPassed, F::FiltersUseful]),
    column("cpu", "filters-useful", &[F::FiltersUseful]),
    column("cpu", "compared", &[F::KeysCompared]),
    column("cpu", "tables", &[F::TablesSearched]),
    column("cpu", "memtables", &[F::MemtablesSearched]),
    column("cpu", "skipped", &[F::KeysSkipped]),
    column("cpu", "deletions", &[F::DeletionsSkipped]),
    column("cpu", "recent", &[F::RecentSkipped]),
];

/// Width of a column.
const WIDTH: usize = 14;

fn rows(family: &Family) -> impl Iterator<Item = (&'static str, ReadRow)> + '_ {
    let row = |of: ReadOperation| (of.name(), family.read_totals.row(of));
    ReadOperation::ALL.into_iter().map(row)
}

fn each(row: &ReadRow, column: &Column) -> f64 {
    row.sum(column.figures) as f64 / row.operations.max(1) as f64
}

/// The table: for each operation that was looked at a line of sums, and one of averages.
pub(super) fn text(family: &Family) -> String {
    let mut out = format!(
        "\n** Read Amplification [{}] **\nOne read in {SAMPLE} is looked at: sums are estimates\n\
         {:<14}{:>WIDTH$}",
        family.name, "operation", "count"
    );
    // Writing to a string cannot fail.
    for column in &COLUMNS {
        let name = format!("{}.{}", column.part, column.name);
        let _ = write!(out, " {name:>width$}", width = WIDTH.max(name.len()));
    }
    out.push('\n');
    for (name, row) in rows(family).filter(|(_, row)| row.looked_at > 0) {
        let _ = write!(out, "{name:<14}{:>WIDTH$}", row.operations);
        for column in &COLUMNS {
            let width = WIDTH.max(column.part.len() + 1 + column.name.len());
            let _ = write!(out, " {:>width$}", row.sum(column.figures));
        }
        let _ = write!(out, "\n{:<14}{:>WIDTH$}", format!("each-{name}"), 1);
        for column in &COLUMNS {
            let width = WIDTH.max(column.part.len() + 1 + column.name.len());
            let _ = write!(out, " {:>width$.3}", each(&row, column));
        }
        out.push('\n');
    }
    out
}

/// Every figure by name: `OPERATION.count`, `OPERATION.looked-at`, `OPERATION.PART.WHAT` for the
/// sum and `OPERATION.PART.WHAT.each` for the average.
pub(super) fn map(family: &Family) -> PropertyMap {
    let mut out = PropertyMap::new();
    for (name, row) in rows(family) {
        out.insert(format!("{name}.count"), row.operations.to_string());
        out.insert(format!("{name}.looked-at"), row.looked_at.to_string());
        for column in &COLUMNS {
            let key = format!("{name}.{}.{}", column.part, column.name);
            let average = format!("{:.3}", each(&row, column));
            out.insert(format!("{key}.each"), average);
            out.insert(key, row.sum(column.figures).to_string());
        }
    }
    out
}
