//! Which MANIFEST a repair follows, and what the logs are like.
//!
//! A MANIFEST is followed when it can be read to its end and describes trees. One that CURRENT does not name may
//! be older than the tables: following it would throw away what came after, so it must fit them as well.
//!
//! Changes nothing.

use super::Repair;
use crate::recover::fold::{Folded, fold};
use crate::recover::replay;
use esker_env::ReadOptions as FileReadOptions;
use esker_files::current;
use esker_files::log::{LogReader, LogReaderOptions, RecoveryMode, Replayed};
use esker_format::file_name::{self, FileKind, parse_file_name};
use esker_format::{FamilyId, FileNo};
use esker_lsm::version::Version;
use esker_status::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};

/// As many levels as any tree can have.
const MOST_LEVELS: usize = 64;

/// A MANIFEST that describes trees.
pub(super) struct Followed {
    pub(super) folded: Folded,
    /// The trees of all its families.
    pub(super) versions: BTreeMap<FamilyId, Version>,
    /// CURRENT names it.
    pub(super) is_live: bool,
}

impl Repair<'_> {
    /// The MANIFESTs that are there, ascending.
    pub(super) fn manifests(&self) -> Result<Vec<FileNo>> {
        self.numbers(FileKind::Manifest)
            .map(|all| all.into_iter().collect())
    }

    fn numbers(&self, wanted: FileKind) -> Result<BTreeSet<FileNo>> {
        let mut names = self.env.fs.read_dir(&self.dir)?;
        if wanted == FileKind::Table {
            for dir in self.dirs()?.iter().filter(|d| **d != self.dir) {
                names.extend(self.env.fs.read_dir(dir)?);
            }
        }
        let parsed = names.iter().filter_map(|e| parse_file_name(&e.name));
        Ok(parsed
            .filter(|(kind, _)| *kind == wanted)
            .map(|(_, n)| n)
            .collect())
    }

    /// The MANIFEST that CURRENT names, or else the newest that can be read to its end and fits the tables.
    pub(super) fn choose(&mut self) -> Result<Option<Followed>> {
        let mut candidates = self.manifests()?;
        candidates.reverse();
        let live = current::read(&*self.env.fs, &self.dir).ok();
        if let Some(named) = live {
            candidates.retain(|n| *n != named);
            candidates.insert(0, named);
        }
        for number in candidates {
            let name = file_name::manifest_name(number);
            match self.follow(number, live == Some(number))? {
                Ok(followed) => {
                    self.report.manifest = Some(name);
                    return Ok(Some(followed));
                }
                Err(e) => self.report.losses.push(format!("{name}: {e}")),
            }
        }
        let note = "no MANIFEST can be used: trees are made of the tables";
        self.report.notes.push(note.to_owned());
        Ok(None)
    }

    /// The trees of one MANIFEST, or why it cannot be followed. The outer error ends the repair.
    fn follow(&self, number: FileNo, is_live: bool) -> Result<Result<Followed>> {
        let folded = match fold(&*self.env.fs, &self.dir, number) {
            Ok(folded) => folded,
            Err(e) => return Ok(Err(e)),
        };
        let mut versions = BTreeMap::new();
        for (id, family) in &folded.families {
            let order = self.order_of(&family.name, family.comparator.as_deref())?;
            match family.version(&order, MOST_LEVELS) {
                Ok(version) => versions.insert(*id, version),
                Err(e) => return Ok(Err(e)),
            };
        }
        if !is_live && !self.fits(&folded)? {
            let what = "CURRENT does not name it, and it does not fit the tables";
            return Ok(Err(Error::corruption(what)));
        }
        Ok(Ok(Followed {
            folded,
            versions,
            is_live,
        }))
    }

    /// Whether all tables that a MANIFEST lists are there, and none that came after it.
    fn fits(&self, folded: &Folded) -> Result<bool> {
        let tables = self.numbers(FileKind::Table)?;
        let mut listed = folded
            .families
            .values()
            .flat_map(|f| f.files().into_values().map(|(_, f)| f));
        Ok(listed.all(|f| tables.contains(&f.number))
            && tables.iter().all(|n| *n < folded.next_file))
    }

    /// The logs that are there. Notes which of those that are needed are damaged.
    pub(super) fn inspect_logs(&mut self, followed: Option<&Followed>) -> Result<Vec<FileNo>> {
        if !self.env.fs.exists(&self.wal_dir)? {
            return Ok(Vec::new());
        }
        let logs = replay::list(&self.env, &self.wal_dir)?;
        let oldest = followed.map_or(FileNo(0), |f| f.folded.oldest_needed_log());
        for number in logs.iter().filter(|n| **n >= oldest) {
            if let Err(e) = self.read_log(*number) {
                let note = format!("what can be read of a damaged log is taken: {e}");
                self.report.notes.push(note);
            }
        }
        if followed.is_none() && !logs.is_empty() {
            let note = format!("{} logs are replayed from their start", logs.len());
            self.report.notes.push(note);
        }
        Ok(logs)
    }

    /// Reads a log to its end; a torn record there is no damage.
    fn read_log(&self, number: FileNo) -> Result<()> {
        let path = self.wal_dir.join(file_name::log_name(number));
        let file = self.env.fs.open_read(&path, FileReadOptions::default())?;
        let mut reader = LogReader::new(file, LogReaderOptions::new(number));
        loop {
            match reader.replay(RecoveryMode::SkipAnyCorruptedRecords)? {
                Replayed::Skipped(damage) | Replayed::Stop(damage) => {
                    return Err(Error::corruption(damage.reason.to_string())
                        .with_file(path)
                        .with_offset(damage.offset));
                }
                Replayed::End(_) => return Ok(()),
                Replayed::Record { .. }
                | Replayed::TimestampSizes(_)
                | Replayed::Predecessor(_) => {}
            }
        }
    }
}
