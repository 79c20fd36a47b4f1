//! Which MANIFEST a repair follows, and what the logs are like.
//!
//! A MANIFEST is followed when it can be read to its end and describes trees. One that CURRENT does not name may
//! be older than the tables: following it would throw away what came after, so it must fit them as well.
//!
//! Changes nothing.

use super::Repair;
use crate::recover::fold::{Folded, fold};
use crate::recover::replay;
use crate::write::predecessor::Predecessor;
use esker_env::ReadOptions as FileReadOptions;
use esker_files::current;
use esker_files::log::{LogReader, LogReaderOptions, RecoveryMode, Replayed};
use esker_format::batch::BatchReader;
use esker_format::file_name::{self, FileKind, parse_file_name};
use esker_format::{FamilyId, FileNo, Seq};
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
    fn follow(&mut self, number: FileNo, is_live: bool) -> Result<Result<Followed>> {
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
        let end = folded.check_end(&*self.env.fs, &self.dir, &self.wal_dir);
        if let Err(e) = end {
            if !self.fits(&folded)? {
                return Ok(Err(e));
            }
            self.report.notes.push(e.to_string());
        } else if !is_live && !self.fits(&folded)? {
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

    /// The logs that are there. Notes which of those that are needed are damaged, or end before what came after them.
    pub(super) fn inspect_logs(&mut self, followed: Option<&Followed>) -> Result<Vec<FileNo>> {
        if !self.env.fs.exists(&self.wal_dir)? {
            return Ok(Vec::new());
        }
        let logs = replay::list(&self.env, &self.wal_dir)?;
        let oldest = followed.map_or(FileNo(0), |f| f.folded.oldest_needed_log());
        let families = followed
            .into_iter()
            .flat_map(|f| f.folded.families.values());
        let mut inspected = Inspected {
            tables_to: families.map(|f| f.log_number).max().unwrap_or_default(),
            ..Inspected::default()
        };
        let mut problems = Vec::new();
        for number in logs.iter().filter(|n| **n >= oldest) {
            problems.extend(self.read_log(*number, &mut inspected).err());
            problems.append(&mut inspected.found);
        }
        problems.extend(inspected.end());
        for e in problems {
            let note = format!("what can be read of a damaged log is taken: {e}");
            self.report.notes.push(note);
        }
        if followed.is_none() && !logs.is_empty() {
            let note = format!("{} logs are replayed from their start", logs.len());
            self.report.notes.push(note);
        }
        Ok(logs)
    }

    /// Reads a log to its end. A torn record there is no damage unless something came after it.
    fn read_log(&self, number: FileNo, inspected: &mut Inspected) -> Result<()> {
        let path = self.wal_dir.join(file_name::log_name(number));
        let file = self.env.fs.open_read(&path, FileReadOptions::default())?;
        let mut reader = LogReader::new(file, LogReaderOptions::new(number));
        let outcome = loop {
            let step = reader.replay(RecoveryMode::SkipAnyCorruptedRecords);
            match step.map_err(|e| e.with_file(&path))? {
                Replayed::Skipped(damage) | Replayed::Stop(damage) => {
                    break Err(damage.to_error(&path));
                }
                Replayed::End(torn) => break Ok(torn),
                Replayed::Record { bytes, offset } => {
                    let sound = inspected.record(number, bytes);
                    sound.map_err(|e| e.with_file(&path).with_offset(offset))?;
                }
                Replayed::TimestampSizes(_) | Replayed::Predecessor(_) => {}
            }
        };
        let torn = outcome?;
        inspected
            .found
            .extend(inspected.torn.take().map(|(_, e)| e));
        inspected.torn = torn.map(|t| (number, t.to_error(&path)));
        inspected.ends.insert(number, reader.valid_end());
        Ok(())
    }
}

/// What was seen in the logs so far, from the oldest on.
#[derive(Default)]
struct Inspected {
    /// Some family has all data of older logs than this in tables.
    tables_to: FileNo,
    /// Where each log ends.
    ends: BTreeMap<FileNo, u64>,
    /// The sequence of the last batch.
    seen: Seq,
    /// The last log that was read, when it ends inside a record.
    torn: Option<(FileNo, Error)>,
    /// Torn logs that were no last ones.
    found: Vec<Error>,
}

impl Inspected {
    /// Looks at a record of log `number` in the way in which replay does.
    fn record(&mut self, number: FileNo, bytes: &[u8]) -> Result<()> {
        let batch = BatchReader::parse(bytes)?;
        batch.verify()?;
        replay::has_room(&batch)?;
        if batch.seq() < self.seen {
            return Err(Error::corruption("a batch older than the one before it"));
        }
        self.seen = batch.seq();
        let Some(before) = Predecessor::of(&batch) else {
            return Ok(());
        };
        if before.own != number {
            let message = format!("it begins as log {}", before.own);
            return Err(Error::corruption(message));
        }
        let end = self.ends.get(&before.number).copied();
        if end.is_some_and(|end| end < before.bytes) {
            let message = format!("log {} before it ends early", before.number);
            return Err(Error::corruption(message));
        }
        // That end was known when this log was begun.
        self.torn.take_if(|(torn, _)| *torn == before.number);
        Ok(())
    }

    /// The last log, when it is torn and tables hold what came after it.
    fn end(self) -> Option<Error> {
        let (number, e) = self.torn?;
        (number < self.tables_to).then_some(e)
    }
}
