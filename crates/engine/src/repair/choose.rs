//! Chooses the MANIFEST that a repair follows, and inspects the logs.
//!
//! A MANIFEST is followed when it can be read to its end and describes trees. One that CURRENT does
//! not name may be older than the tables: following it would throw away what came after, so it must
//! fit them as well.
//!
//! Changes nothing.

use super::found::{Logs, ManifestTrees, made_of, made_of_logs};
use super::{Repair, is_refused};
use crate::recover::fold::{ManifestContents, fold};
use crate::recover::replay::{self, Replay};
use esker_env::ReadOptions as FileReadOptions;
use esker_files::current;
use esker_files::log::RecoveryMode;
use esker_files::manifest::check_newest;
use esker_files::table::read_properties;
use esker_format::FileNo;
use esker_format::file_name::{self, FileKind, parse_file_name};
use esker_status::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// As many levels as any tree can have.
const MOST_LEVELS: usize = 64;

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

    /// The MANIFEST that CURRENT names, unless a newer one was current once, or else the newest
    /// that can be read to its end and fits the tables.
    pub(super) fn choose(&mut self) -> Result<Option<ManifestTrees>> {
        let mut candidates = self.manifests()?;
        candidates.reverse();
        let fs = &*self.env.fs;
        let mut live = match current::read(fs, &self.dir) {
            Err(e) if self.must_stop(&e) => return Err(self.stop(e)),
            read => read.ok(),
        };
        if let Some(Err(e)) = live.map(|named| check_newest(fs, &self.dir, named)) {
            self.report.notes.push(e.to_string());
            live = None;
        }
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
    fn follow(&mut self, number: FileNo, is_live: bool) -> Result<Result<ManifestTrees>> {
        let folded = match fold(&*self.env.fs, &self.dir, number) {
            Ok(folded) => folded,
            Err(e) if self.must_stop(&e) => return Err(self.stop(e)),
            Err(e) => {
                let path = self.dir.join(file_name::manifest_name(number));
                self.note_unreadable(&e, &path);
                return Ok(Err(e));
            }
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
        Ok(Ok(ManifestTrees {
            folded,
            versions,
            is_live,
        }))
    }

    /// Returns whether all tables that a MANIFEST lists are there, and none that came after it.
    fn fits(&self, folded: &ManifestContents) -> Result<bool> {
        let tables = self.numbers(FileKind::Table)?;
        let mut listed = folded
            .families
            .values()
            .flat_map(|f| f.files().into_values().map(|(_, f)| f));
        if !listed.all(|f| tables.contains(&f.number)) {
            return Ok(false);
        }
        for number in tables.iter().filter(|n| **n >= folded.next_file) {
            // What a repair wrote that was interrupted came after no MANIFEST.
            if !self.is_of_repair(*number, &tables)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether the table was made by a repair of another, or of logs, that are all still
    /// there.
    fn is_of_repair(&self, number: FileNo, tables: &BTreeSet<FileNo>) -> Result<bool> {
        let name = file_name::table_name(number);
        for path in self.dirs()?.iter().map(|dir| dir.join(&name)) {
            let file = match self.env.fs.open_read(&path, FileReadOptions::default()) {
                Ok(file) => file,
                Err(e) if self.must_stop(&e) => return Err(self.stop(e)),
                Err(_) => continue,
            };
            match read_properties(file) {
                Ok(p) => {
                    let of_table = made_of(&p).is_some_and(|n| tables.contains(&n));
                    let logs = self.logs_in_place()?;
                    let of_logs = |made: Vec<FileNo>| made.iter().all(|n| logs.contains(n));
                    return Ok(of_table || made_of_logs(&p).is_some_and(of_logs));
                }
                Err(e) if self.must_stop(&e) => return Err(self.stop(e)),
                Err(_) => {}
            }
        }
        Ok(false)
    }

    /// The numbers of the logs that are there, ascending.
    fn logs_in_place(&self) -> Result<Vec<FileNo>> {
        if self.env.fs.exists(&self.wal_dir)? {
            replay::list(&self.env, &self.wal_dir)
        } else {
            Ok(Vec::new())
        }
    }

    /// The logs that are there. Notes what opening would find wrong with those that are needed. A
    /// torn record at the end of the newest is no damage.
    pub(super) fn inspect_logs(&mut self, followed: Option<&ManifestTrees>) -> Result<Logs> {
        let all = self.logs_in_place()?;
        let folded = followed.map(|f| &f.folded);
        let oldest = folded.map_or(FileNo(0), |f| {
            replay::oldest_log(f, self.options.db.allow_2pc)
        });
        let mode = replay::mode_of(self.options.db.wal_recovery_mode);
        let from = |oldest: FileNo| all.iter().copied().filter(move |n| *n >= oldest);
        let problems = self.look_at_logs(from(oldest).collect(), mode, folded, oldest)?;
        self.report.has_lost_data |= !problems.is_empty();
        for problem in problems {
            let note = format!("what can be read of a damaged log is taken: {problem}");
            self.report.notes.push(note);
        }
        // What is prepared may be in older logs, whatever the options say of it.
        let kept = folded.and_then(|f| f.min_log_number_to_keep);
        let oldest = kept.map_or(oldest, |kept| kept.min(oldest));
        let needed = from(oldest).filter(|n| !self.is_given_up(&self.log_path(*n)));
        let needed: Vec<_> = needed.collect();
        if followed.is_none() && !needed.is_empty() {
            let note = format!("tables are made of {} logs, from their start", needed.len());
            self.report.notes.push(note);
        }
        Ok(Logs { needed, all })
    }

    /// Finds the errors that opening would find in `needed`. Logs that cannot be read are given up.
    fn look_at_logs(
        &mut self,
        mut needed: Vec<FileNo>,
        mode: RecoveryMode,
        folded: Option<&ManifestContents>,
        oldest: FileNo,
    ) -> Result<Vec<String>> {
        loop {
            let newest = needed.last().map_or(&[][..], std::slice::from_ref);
            let dir = self.wal_dir.clone();
            let done = Replay::looking(&self.env, dir, mode, folded, oldest).run(&needed);
            match done {
                Ok(f) if f.losses.len() == newest.len() && f.torn == newest => {
                    return Ok(Vec::new());
                }
                Ok(found) => return Ok(found.losses),
                Err(e) if self.give_up_log(&e, &mut needed)? => {}
                Err(e) => return Ok(vec![e.to_string()]),
            }
        }
    }

    pub(super) fn log_path(&self, number: FileNo) -> PathBuf {
        self.wal_dir.join(file_name::log_name(number))
    }

    /// Gives up the log that `e` is about, when that is why it cannot be read; an error that ends
    /// the repair when it may be whole.
    pub(super) fn give_up_log(&mut self, e: &Error, logs: &mut Vec<FileNo>) -> Result<bool> {
        if self.must_stop(e) {
            return Err(self.stop(e.clone()));
        }
        let is_of = |n: &FileNo| is_refused(e) && e.file() == Some(&*self.log_path(*n));
        let Some(at) = logs.iter().position(is_of) else {
            return Ok(false);
        };
        let path = self.log_path(logs.remove(at));
        self.note_unreadable(e, &path);
        self.report.has_lost_data = true;
        self.report.losses.push(e.to_string());
        self.given_up_logs.push((path, e.to_string()));
        Ok(true)
    }
}
