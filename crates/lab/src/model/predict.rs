//! Predicted cost of a run: the calculators applied to the sizes of a run.
//!
//! Predictions take keys to be picked evenly, leaves to be two thirds full, and nothing else to
//! run. They are for a look beside what was measured; where the two differ, the reason is worth
//! knowing.

use super::amplification::{BTree, Tree};

/// Which tree, with what the formulas need of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TreeKind {
    /// A leveled log-structured tree with this fanout.
    Lsm {
        /// How many times larger a level is than the one above.
        fanout: f64,
    },
    /// Pages that are updated in place.
    InPlace {
        /// Bytes of a page.
        page: f64,
        /// How often a page is written.
        copies: f64,
    },
    /// Pages that are copied with the path to them.
    CopyOnWrite {
        /// Bytes of a page.
        page: f64,
    },
}

/// The sizes of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sizes {
    /// Bytes of the application that are live.
    pub live: f64,
    /// Bytes that rows and entries of indexes have for each of those.
    pub copies: f64,
    /// Bytes of the application that were changed.
    pub changed: f64,
    /// Rows and entries that were changed.
    pub changes: f64,
    /// Transactions that changed them.
    pub commits: f64,
    /// Bytes of a memtable.
    pub memtable: f64,
    /// Bytes of log between two checkpoints.
    pub checkpoint: f64,
    /// Bytes of the cache.
    pub cache: f64,
    /// Bytes that an operation saw on average.
    pub seen: f64,
}

/// Amplifications.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Bytes written to storage for a byte changed.
    pub write: f64,
    /// Bytes read from storage for a byte seen, when one leaf or block is looked for.
    pub read: f64,
    /// Bytes on disk for a live byte.
    pub space: f64,
}

/// Part of a B-tree's page that has rows after random changes.
const FILL: f64 = 2.0 / 3.0;
/// Part of the fanout that a leveled tree rewrites, as measured.
const EFFICIENCY: f64 = 0.8;
/// Bytes of a block of a log-structured tree.
const BLOCK: f64 = 8192.0;
/// Children of an inner page.
const CHILDREN: f64 = 100.0;

/// Different pages that U even changes touch: P (1 - (1 - 1/P)^U).
pub fn distinct(pages: f64, changes: f64) -> f64 {
    if pages <= 1.0 {
        return pages.min(changes);
    }
    pages * (1.0 - (1.0 - 1.0 / pages).powf(changes))
}

/// The prediction.
pub fn predict(kind: TreeKind, sizes: &Sizes) -> Prediction {
    let stored = sizes.live * sizes.copies;
    let cold = |disk: f64| (1.0 - sizes.cache / disk.max(1.0)).clamp(0.0, 1.0);
    let seen = sizes.seen.max(1.0);
    match kind {
        TreeKind::Lsm { fanout } => {
            let total = (stored / sizes.memtable).max(1.0);
            let levels = (total.ln() / fanout.ln()).ceil().max(1.0);
            let tree = Tree {
                total_fanout: total,
                levels: levels as u32,
                efficiency: EFFICIENCY,
            };
            let space = sizes.copies * (1.0 + 1.0 / fanout);
            Prediction {
                // The log, the flush, and the levels.
                write: sizes.copies * (2.0 + tree.leveled_write()),
                read: cold(sizes.live * space) * BLOCK / seen,
                space,
            }
        }
        TreeKind::InPlace { page, copies } => {
            let pages = stored / (page * FILL);
            let log = sizes.changed * sizes.copies;
            let rounds = (log / sizes.checkpoint).max(1.0);
            let touched = distinct(pages, sizes.changes / rounds).max(1.0);
            let tree = BTree {
                page,
                row: sizes.changed / sizes.changes.max(1.0),
                changes_per_write: sizes.changes / rounds / touched,
                copies,
                log: sizes.copies,
                fill: FILL,
            };
            let space = sizes.copies * tree.space();
            Prediction {
                write: tree.write(),
                read: cold(sizes.live * space) * page / seen,
                space,
            }
        }
        TreeKind::CopyOnWrite { page } => {
            let pages = (stored / (page * FILL)).max(1.0);
            let depth = (pages.ln() / CHILDREN.ln()).ceil().max(1.0);
            let each = sizes.changes / sizes.commits.max(1.0);
            // Each changed leaf, the path above them once, and the list of free pages.
            let copied = sizes.commits * (distinct(pages, each) + depth + 1.0);
            let space = sizes.copies / FILL;
            Prediction {
                write: page * copied / sizes.changed.max(1.0),
                read: cold(sizes.live * space) * page / seen,
                space,
            }
        }
    }
}

/// The formulas in words.
pub const FORMULAS: [&str; 5] = [
    "c = bytes of rows and entries of indexes / bytes of rows; T = c x live / memtable",
    "LSM: write = c (log 1 + flush 1 + 0.8 n T^(1/n)), space = c (1 + 1/fanout)",
    "B-tree in place: write = copies x page x touched pages / bytes changed + log c, \
     space = c / (2/3)",
    "touched pages of P by U even changes = P (1 - (1 - 1/P)^U), again after each checkpoint",
    "copy on write: write = commits x (changed leaves + depth + 1) x page / bytes changed",
];

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes {
        live: 1e9,
        copies: 1.5,
        changed: 1e8,
        changes: 1e6,
        commits: 5e5,
        memtable: 1.5e6,
        checkpoint: 1e12,
        cache: 0.0,
        seen: 100.0,
    };

    #[test]
    fn pages_that_changes_touch() {
        assert_eq!(distinct(1.0, 10.0), 1.0);
        assert!((distinct(1e6, 1.0) - 1.0).abs() < 1e-6);
        assert!((distinct(1000.0, 1000.0) - 632.3).abs() < 0.1);
        assert!((distinct(10.0, 1e6) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_log_structured_tree_by_hand() {
        // T is 1000, so three levels of 10: 1.5 (2 + 0.8 x 3 x 10).
        let found = predict(TreeKind::Lsm { fanout: 10.0 }, &SIZES);
        assert!((found.write - 39.0).abs() < 1e-6, "{found:?}");
        assert!((found.space - 1.65).abs() < 1e-9);
        assert!((found.read - 81.92).abs() < 1e-9);
        let cached = Sizes {
            cache: 1e12,
            ..SIZES
        };
        assert_eq!(predict(TreeKind::Lsm { fanout: 10.0 }, &cached).read, 0.0);
    }

    #[test]
    fn a_b_tree_by_hand() {
        let kind = TreeKind::InPlace {
            page: 16384.0,
            copies: 2.0,
        };
        let found = predict(kind, &SIZES);
        let pages = 1.5e9 / (16384.0 * 2.0 / 3.0);
        let wanted = 2.0 * 16384.0 * distinct(pages, 1e6) / 1e8 + 1.5;
        assert!((found.write - wanted).abs() < 1e-6 * wanted, "{found:?}");
        assert!((found.space - 2.25).abs() < 1e-9);
        // More checkpoints write the same pages more often.
        let often = Sizes {
            checkpoint: 1e6,
            ..SIZES
        };
        assert!(predict(kind, &often).write > found.write);
    }

    #[test]
    fn copies_cost_a_path_a_commit() {
        let found = predict(TreeKind::CopyOnWrite { page: 4096.0 }, &SIZES);
        // Two changes a commit, 549,316 pages, a depth of 3: 6 pages of 4096 bytes.
        assert!(
            (found.write - 4096.0 * 5e5 * 6.0 / 1e8).abs() < 0.01,
            "{found:?}"
        );
    }
}
