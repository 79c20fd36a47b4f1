//! Write, read and space amplification of trees, from their shape.
//!
//! All amplifications are ratios to the bytes that the application writes (write), asks for (read)
//! or has (space). The log is counted only where a formula says so.

use super::table::{Cell, Table};

/// A log-structured merge tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tree {
    /// Bytes of the database divided by bytes of the memtable: T.
    pub total_fanout: f64,
    /// Levels below the memtable: n.
    pub levels: u32,
    /// Which part of the fanout a level rewrites on average: f. 1 is the worst case; about 0.8 was
    /// measured.
    pub efficiency: f64,
}

impl Tree {
    /// How many times larger a level is than the one above: T^(1/n).
    pub fn fanout(&self) -> f64 {
        self.total_fanout.powf(1.0 / f64::from(self.levels))
    }

    /// Leveled: f n T^(1/n).
    pub fn leveled_write(&self) -> f64 {
        self.efficiency * f64::from(self.levels) * self.fanout()
    }

    /// Leveled: 1 + 1 / T^(1/n), when every level but the last repeats keys of the last.
    pub fn leveled_space(&self) -> f64 {
        1.0 + 1.0 / self.fanout()
    }

    /// Tiered: each level writes each byte once, n.
    pub fn tiered_write(&self) -> f64 {
        f64::from(self.levels)
    }

    /// Tiered: up to T^(1/n) runs in the last level, each of which may hold all keys.
    pub fn tiered_space(&self) -> f64 {
        self.fanout()
    }

    /// Tiered: sorted runs that a short scan must look at, n T^(1/n).
    pub fn tiered_runs(&self) -> f64 {
        f64::from(self.levels) * self.fanout()
    }

    /// How many levels write least when leveled: the better one of floor and ceil of ln T.
    pub fn best_levels(total_fanout: f64) -> u32 {
        let at = |levels: u32| {
            let tree = Tree {
                total_fanout,
                levels,
                efficiency: 1.0,
            };
            tree.leveled_write()
        };
        let low = (total_fanout.ln().floor() as u32).max(1);
        if at(low) <= at(low + 1) { low } else { low + 1 }
    }

    /// Levels 1 to `most`, leveled and tiered side by side.
    pub fn table(total_fanout: f64, efficiency: f64, most: u32) -> Table {
        let best = Tree::best_levels(total_fanout);
        let title = format!(
            "LSM tree, total fanout {total_fanout}: {best} levels write least when leveled"
        );
        let formulas = [
            "T = bytes of the database / bytes of the memtable; n = levels; fanout = T^(1/n)",
            "leveled: write-amp = f n T^(1/n), space-amp = 1 + 1/T^(1/n), runs = n",
            "tiered: write-amp = n, space-amp = T^(1/n) at worst, runs = n T^(1/n)",
            "f = part of the fanout that a level rewrites (1 at worst; about 0.8 measured)",
        ];
        let columns = [
            "levels",
            "fanout",
            "leveled_write_amp",
            "leveled_space_amp",
            "tiered_write_amp",
            "tiered_space_amp",
            "tiered_runs",
        ];
        let mut table = Table::new(&title, &formulas, &columns);
        for levels in 1..=most {
            let tree = Tree {
                total_fanout,
                levels,
                efficiency,
            };
            table.row(vec![
                Cell::Number(f64::from(levels), 0),
                Cell::Number(tree.fanout(), 2),
                Cell::Number(tree.leveled_write(), 2),
                Cell::Number(tree.leveled_space(), 2),
                Cell::Number(tree.tiered_write(), 0),
                Cell::Number(tree.tiered_space(), 2),
                Cell::Number(tree.tiered_runs(), 1),
            ]);
        }
        table
    }
}

/// The fanouts that write least for levels with these sorted runs each, one entry a level below
/// the first. A level's write-amp is its fanout divided by its runs; all shares are alike at the
/// optimum (Lagrange), so that fanout i = c runs i with product `total_fanout`.
pub fn leveled_n_fanouts(total_fanout: f64, runs: &[f64]) -> Vec<f64> {
    let product: f64 = runs.iter().product();
    let share = (total_fanout / product).powf(1.0 / runs.len() as f64);
    runs.iter().map(|r| share * r).collect()
}

/// The optimum of [`leveled_n_fanouts`] as a table.
pub fn leveled_n_table(total_fanout: f64, runs: &[f64]) -> Table {
    let title = format!("Leveled tree with several runs a level, total fanout {total_fanout}");
    let formulas = [
        "minimise the sum of fanout_i / runs_i where the product of fanout_i = total fanout",
        "optimum: fanout_i = c runs_i, c = (total fanout / product of runs)^(1/levels)",
    ];
    let mut table = Table::new(&title, &formulas, &["level", "runs", "fanout", "write_amp"]);
    let fanouts = leveled_n_fanouts(total_fanout, runs);
    let mut sum = 0.0;
    for (i, (fanout, runs)) in fanouts.iter().zip(runs).enumerate() {
        sum += fanout / runs;
        table.row(vec![
            Cell::Number((i + 2) as f64, 0),
            Cell::Number(*runs, 0),
            Cell::Number(*fanout, 1),
            Cell::Number(fanout / runs, 2),
        ]);
    }
    table.row(vec![
        "all".into(),
        "".into(),
        Cell::Number(total_fanout, 1),
        Cell::Number(sum, 2),
    ]);
    table
}

/// An update-in-place B-tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BTree {
    /// Bytes of a page.
    pub page: f64,
    /// Bytes of a row that a change writes.
    pub row: f64,
    /// Changes that a page collects in the cache before it is written.
    pub changes_per_write: f64,
    /// How often each page is written: 2 with a double-write buffer.
    pub copies: f64,
    /// Log bytes for a byte changed.
    pub log: f64,
    /// Which part of a page has rows: 2/3 after random inserts.
    pub fill: f64,
}

impl BTree {
    /// copies page / (changes row) + log.
    pub fn write(&self) -> f64 {
        self.copies * self.page / (self.changes_per_write * self.row) + self.log
    }

    /// 1 / fill.
    pub fn space(&self) -> f64 {
        1.0 / self.fill
    }

    /// Bytes of the leaf page for a row asked for, when inner pages are cached.
    pub fn read(&self) -> f64 {
        self.page / self.row
    }

    /// Pages that a change dirties before the write, from 1 to 64.
    pub fn table(&self) -> Table {
        let title = format!(
            "B-tree, {} byte pages, {} byte rows, {:.0} % full",
            self.page,
            self.row,
            100.0 * self.fill
        );
        let formulas = [
            "write-amp = copies x page / (changes x row) + log",
            "changes = changes of a page between two of its writes; copies = 2 with double write",
            "space-amp = 1 / fill; read-amp = page / row for one cached-inner lookup",
        ];
        let columns = ["changes", "write_amp", "space_amp", "read_amp"];
        let mut table = Table::new(&title, &formulas, &columns);
        for power in 0..7 {
            let changes = f64::from(1 << power);
            let tree = BTree {
                changes_per_write: changes,
                ..*self
            };
            table.row(vec![
                Cell::Number(changes, 0),
                Cell::Number(tree.write(), 2),
                Cell::Number(tree.space(), 2),
                Cell::Number(tree.read(), 2),
            ]);
        }
        table
    }
}

/// Comparisons of a point query in a search tree of `keys` keys: log2, rounded up.
pub fn comparisons(keys: f64) -> u32 {
    keys.log2().ceil().max(0.0) as u32
}
