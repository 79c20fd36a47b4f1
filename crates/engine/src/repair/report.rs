//! Options and report of a repair: values.

use std::fmt;
use std::path::PathBuf;

/// Modes of a repair: with or without changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepairMode {
    /// Looks at everything and says what would be done; changes nothing and takes no lock.
    DryRun,
    /// Does it.
    #[default]
    Repair,
}

/// Options of [`Db::repair_with`](crate::Db::repair_with).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairOptions {
    /// The mode: with or without changes.
    pub mode: RepairMode,
    /// Treats a file that the system refuses to read (permissions, a failing disk) or that this
    /// build cannot read as if it were damaged: it is set aside, and what it holds is lost to the
    /// database. Without it such a file ends the repair before anything changes, since it may be
    /// whole.
    pub give_up_unreadable: bool,
}

impl RepairOptions {
    /// A repair that changes the database and gives up nothing that may be whole.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the mode.
    #[must_use]
    pub fn mode(mut self, mode: RepairMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets whether files that cannot be read are given up.
    #[must_use]
    pub fn give_up_unreadable(mut self, give_up: bool) -> Self {
        self.give_up_unreadable = give_up;
        self
    }
}

/// A file that is not part of the repaired database as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SetAside {
    /// Where it was.
    pub path: PathBuf,
    /// Where it is now.
    pub now: PathBuf,
    /// Why.
    pub reason: String,
}

/// A part of a table that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostRange {
    /// Where it begins in the file.
    pub offset: u64,
    /// Its bytes in the file.
    pub bytes: u64,
    /// A user key at or before all that was in it; `None` when that is not known.
    pub first: Option<Vec<u8>>,
    /// A user key at or behind all that was in it; `None` when that is not known.
    pub last: Option<Vec<u8>>,
    /// The error.
    pub reason: String,
}

/// A damaged table of which what can be read is in a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvagedTable {
    /// The damaged table, where it was; it is among [`RepairReport::set_aside`].
    pub path: PathBuf,
    /// Its family.
    pub family: String,
    /// Its level; `None` when no MANIFEST told it.
    pub level: Option<u8>,
    /// The name of the new table; `None` when nothing could be read.
    pub table: Option<String>,
    /// Entries and range deletions in the new table.
    pub kept: u64,
    /// An upper bound of the lost entries; `None` when that is not known, since the properties are
    /// lost too.
    pub lost: Option<u64>,
    /// Range deletions are among what is lost, or may be.
    pub lost_range_deletions: bool,
    /// Where they were, in the order of the file.
    pub ranges: Vec<LostRange>,
    /// The error of the table.
    pub reason: String,
}

impl SalvagedTable {
    /// Returns whether anything of it is lost.
    pub fn has_losses(&self) -> bool {
        self.lost != Some(0) || self.lost_range_deletions
    }

    /// The keys between which all that is lost was, as far as both are known.
    pub fn key_range(&self) -> Option<(&[u8], &[u8])> {
        let first = self.ranges.first()?.first.as_deref()?;
        let last = self.ranges.last()?.last.as_deref()?;
        Some((first, last))
    }
}

/// One line: what is lost, and where the rest is.
impl fmt::Display for SalvagedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: ", self.path.display(), self.reason)?;
        let (family, kept) = (&self.family, self.kept);
        if !self.has_losses() {
            write!(f, "nothing of family {family} is lost")?;
        } else {
            match self.lost {
                Some(0) => write!(f, "no entry of family {family}")?,
                Some(lost) => {
                    let total = lost.saturating_add(kept);
                    write!(f, "at most {lost} of {total} entries of family {family}")?;
                }
                None => write!(f, "an unknown number of entries of family {family}")?,
            }
            if let Some(level) = self.level {
                write!(f, ", level {level},")?;
            }
            if let Some((first, last)) = self.key_range() {
                let (first, last) = (first.escape_ascii(), last.escape_ascii());
                write!(f, " between keys \"{first}\" and \"{last}\"")?;
            }
            f.write_str(match self.lost {
                Some(1) => " is lost",
                _ => " are lost",
            })?;
            match self.ranges.len() {
                0 | 1 => {}
                n => write!(f, ", from {n} places of the file")?,
            }
            if self.lost_range_deletions {
                f.write_str(", and range deletions are: what they deleted may show")?;
            }
            f.write_str("; older versions of what is lost may show")?;
        }
        match &self.table {
            Some(table) => write!(f, "; {kept} entries are in {table}"),
            None => f.write_str("; nothing could be read"),
        }
    }
}

/// Findings and actions of a repair, done or planned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// Nothing was found to repair, and nothing was changed.
    pub is_sound: bool,
    /// Data that the database had is not in what the repair made.
    pub has_lost_data: bool,
    /// The MANIFEST that the trees were taken from; `None` when none could be used and every table
    /// went to level 0.
    pub manifest: Option<String>,
    /// The families of the repaired database.
    pub families: Vec<String>,
    /// Tables that are part of it, those made from logs not counted.
    pub tables: usize,
    /// Logs whose records were taken.
    pub logs: usize,
    /// Damaged tables whose sound blocks are in new ones.
    pub salvaged: Vec<SalvagedTable>,
    /// Files that were set aside.
    pub set_aside: Vec<SetAside>,
    /// Tables that the MANIFEST lists and that are not there.
    pub missing: Vec<String>,
    /// Losses, one line each.
    pub losses: Vec<String>,
    /// Other notes for the user, one line each.
    pub notes: Vec<String>,
}
