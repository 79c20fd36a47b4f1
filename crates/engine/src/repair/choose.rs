//! Which MANIFEST a repair follows, and what the logs are like.
//!
//! A MANIFEST is followed when it can be read to its end and describes trees. One that CURRENT does not name may
//! be older than the tables: following it would throw away what came after, so it must fit them as well.
//!
//! Changes nothing.

use super::rewrite::made_of;
use super::{Repair, is_refused};
use crate::recover::fold::{Folded, fold};
use crate::recover::replay::{self, Replay};
use esker_env::ReadOptions as FileReadOptions;
use esker_files::current;
use esker_files::log::RecoveryMode;
use esker_files::manifest::check_newest;
use esker_files::table::read_properties;
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

    /// The MANIFEST that CURRENT names, unless a newer one was current once, or else the newest that can be read to its end and fits the tables.
    pub(super) fn choose(&mut self) -> Result<Option<Followed>> {
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
    fn follow(&mut self, number: FileNo, is_live: bool) -> Result<Result<Followed>> {
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

    /// Whether the table was made by a repair of one that is still there.
    fn is_of_repair(&self, number: FileNo, tables: &BTreeSet<FileNo>) -> Result<bool> {
        let name = file_name::table_name(number);
        for path in self.dirs()?.iter().map(|dir| dir.join(&name)) {
            let file = match self.env.fs.open_read(&path, FileReadOptions::default()) {
                Ok(file) => file,
                Err(e) if self.must_stop(&e) => return Err(self.stop(e)),
                Err(_) => continue,
            };
            match read_properties(file) {
                Ok(p) => return Ok(made_of(&p).is_some_and(|n| tables.contains(&n))),
                Err(e) if self.must_stop(&e) => return Err(self.stop(e)),
                Err(_) => {}
            }
        }
        Ok(false)
    }

    /// The logs that are there. Notes what opening would find wrong with those that are needed. A torn record at the end
    /// of the newest is no damage.
    pub(super) fn inspect_logs(&mut self, followed: Option<&Followed>) -> Result<Vec<FileNo>> {
        if !self.env.fs.exists(&self.wal_dir)? {
            return Ok(Vec::new());
        }
        let mut logs = replay::list(&self.env, &self.wal_dir)?;
        let folded = followed.map(|f| &f.folded);
        let oldest = folded.map_or(FileNo(0), |f| {
            replay::oldest_log(f, self.options.db.allow_2pc)
        });
        let mode = replay::mode_of(self.options.db.wal_recovery_mode);
        let needed: Vec<_> = logs.iter().copied().filter(|n| *n >= oldest).collect();
        let (problems, gone) = self.look_at_logs(needed, mode, folded, oldest)?;
        self.report.has_lost_data |= !problems.is_empty();
        for problem in problems {
            let note = format!("what can be read of a damaged log is taken: {problem}");
            self.report.notes.push(note);
        }
        logs.retain(|n| !gone.contains(n));
        if followed.is_none() && !logs.is_empty() {
            let note = format!("{} logs are replayed from their start", logs.len());
            self.report.notes.push(note);
        }
        Ok(logs)
    }

    /// What opening would find wrong with `needed`, and which of them are given up since they
    /// cannot be read.
    fn look_at_logs(
        &mut self,
        mut needed: Vec<FileNo>,
        mode: RecoveryMode,
        folded: Option<&Folded>,
        oldest: FileNo,
    ) -> Result<(Vec<String>, Vec<FileNo>)> {
        let mut gone = Vec::new();
        loop {
            let newest = needed.last().map_or(&[][..], std::slice::from_ref);
            let dir = self.wal_dir.clone();
            let done = Replay::looking(&self.env, dir, mode, folded, oldest).run(&needed);
            let e = match done {
                Ok(f) if f.losses.len() == newest.len() && f.torn == newest => {
                    return Ok((Vec::new(), gone));
                }
                Ok(found) => return Ok((found.losses, gone)),
                Err(e) => e,
            };
            if self.must_stop(&e) {
                return Err(self.stop(e));
            }
            let is_of = |n: &FileNo| {
                let path = self.wal_dir.join(file_name::log_name(*n));
                is_refused(&e) && e.file() == Some(&*path)
            };
            let Some(at) = needed.iter().position(is_of) else {
                return Ok((vec![e.to_string()], gone));
            };
            let number = needed.remove(at);
            gone.push(number);
            let path = self.wal_dir.join(file_name::log_name(number));
            self.note_unreadable(&e, &path);
            self.report.has_lost_data = true;
            self.report.losses.push(e.to_string());
            self.given_up_logs.push((path, e.to_string()));
        }
    }
}
