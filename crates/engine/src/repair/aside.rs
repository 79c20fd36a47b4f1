//! Files that do not stay where they are: they are in `lost` before the new MANIFEST counts, and
//! leave their old place after it does.
//!
//! A file has both names meanwhile. So an interruption before CURRENT names the new MANIFEST leaves
//! the database that was there, and one after it a database whose next open may delete what it does
//! not need: the logs, too, whose records are in tables then.

use super::found::Inventory;
use super::{FamilyRepair, Repair, SetAside};
use crate::runtime::whole_files::{aside_name, link_or_copy};
use esker_format::file_name::{self, FileKind, LOST_DIR, parse_file_name};
use esker_format::{FamilyId, FileNo};
use esker_status::Result;
use esker_status::seeded::{Bug, seeded};
use std::collections::BTreeMap;
use std::path::Path;

fn kind_of(path: &Path) -> Option<FileKind> {
    let name = path.file_name()?.to_str()?;
    parse_file_name(name).map(|(kind, _)| kind)
}

impl Repair<'_> {
    /// Where everything goes that does not stay as it is.
    pub(super) fn plan_set_aside(
        &mut self,
        found: &Inventory,
        plans: &BTreeMap<FamilyId, FamilyRepair>,
        logs: &[FileNo],
    ) -> Result<()> {
        let logs = logs.iter().map(|n| self.log_path(*n));
        let logs = logs.filter(|path| !self.is_given_up(path));
        let logs = logs.map(|path| (path, "a log: its records are in tables".to_owned()));
        let manifests = self.manifests()?.into_iter().map(|n| {
            let path = self.dir.join(file_name::manifest_name(n));
            (path, "a replaced MANIFEST".to_owned())
        });
        let gone = self.given_up_logs.iter();
        let gone = gone.map(|(path, why)| (path.clone(), why.clone()));
        let files = found.unusable.iter().chain(&found.unlisted).cloned();
        let merged = plans.values().filter(|p| p.must_merge);
        let merged = merged.flat_map(|p| p.tree.added.iter().map(|(_, f)| f.number));
        let new = |n: &FileNo| found.salvaged.values().any(|s| s.found.meta.number == *n);
        let merged = merged
            .filter(|n| !new(n))
            .filter_map(|n| found.tables.get(&n));
        let merged = merged.map(|t| {
            (
                t.path.clone(),
                "a table: its entries were merged with others".to_owned(),
            )
        });
        let salvaged = found.salvaged.values();
        let salvaged = salvaged.map(|s| (s.path.clone(), s.told.reason.clone()));
        let all = logs
            .chain(gone)
            .chain(files)
            .chain(salvaged)
            .chain(merged)
            .chain(manifests);
        for (path, reason) in all.collect::<Vec<_>>() {
            let now = aside_name(&self.env, &path)?;
            self.report.set_aside.push(SetAside { path, now, reason });
        }
        Ok(())
    }

    /// Gives every file that is to be set aside its name in `lost`, durably.
    pub(super) fn keep_aside(&self) -> Result<()> {
        let fs = &self.env.fs;
        for file in &self.report.set_aside {
            if let Some(lost) = file.now.parent() {
                fs.create_dir_all(lost)?;
            }
            if seeded(Bug::RepairMovesFirst) && kind_of(&file.path) == Some(FileKind::Table) {
                fs.rename(&file.path, &file.now)?;
                continue;
            }
            match link_or_copy(&self.env, &file.path, &file.now) {
                Ok(_) => {}
                // What may not be read can neither be linked, by some systems' rules, nor copied.
                Err(_) if self.is_given_up(&file.path) => fs.rename(&file.path, &file.now)?,
                Err(e) => return Err(e),
            }
        }
        self.sync_aside()
    }

    /// Takes the second names back of files that have their first.
    pub(super) fn forget_aside(&self) {
        let fs = &self.env.fs;
        for file in &self.report.set_aside {
            if fs.exists(&file.path).unwrap_or(false) {
                let _ = fs.remove_file(&file.now);
                // Only an empty one goes.
                let _ = file.now.parent().map(|lost| fs.remove_dir(lost));
            }
        }
    }

    /// Takes them out of their old place.
    pub(super) fn drop_from_place(&self) -> Result<()> {
        let fs = &self.env.fs;
        for file in &self.report.set_aside {
            if fs.exists(&file.path)? {
                fs.remove_file(&file.path)?;
            }
        }
        self.sync_aside()
    }

    pub(super) fn is_given_up(&self, path: &Path) -> bool {
        self.unreadable.borrow().contains(path)
    }

    fn sync_aside(&self) -> Result<()> {
        let fs = &self.env.fs;
        for dir in self.dirs()?.iter().chain([&self.wal_dir]) {
            let lost = dir.join(LOST_DIR);
            if fs.exists(&lost)? {
                fs.sync_dir(&lost)?;
                fs.sync_dir(dir)?;
            }
        }
        Ok(())
    }
}
