//! The second half of opening for writing: the recovered state is written to the disk.
//!
//! Steps that may be refused come first and are undone when one fails: directories, tables of the
//! replayed entries (a merge operator or a compaction filter may fail there), OPTIONS, LOG. Then
//! CURRENT is switched to a new MANIFEST. After that only the disk can fail, and the directory is a
//! database with the same contents, which opens.
//!
//! OPTIONS is written before the MANIFEST: it never lacks a family that the MANIFEST has. Used by
//! one thread.

use super::Opening;
use super::traces::Traces;
use crate::core::Core;
use crate::family::Family;
use crate::job::flush::{self, RecoveredTables};
use crate::observe::EventLine;
use crate::recover::fold::ManifestContents;
use crate::recover::sweep::{self, FilesInUse};
use crate::recover::{blob_tiers, create, replay};
use crate::store::{SyncManifest, no_family_numbers};
use crate::tree::paths;
use crate::write::log_state::AliveLog;
use crate::write::spare_log::SpareLog;
use esker_env::WriteOptions as FileWriteOptions;
use esker_files::temp_file::TempFile;
use esker_files::{current, identity};
use esker_format::{FamilyId, FileNo, file_name};
use esker_lsm::version::Version;
use esker_status::Result;
use esker_status::seeded::{Bug, seeded};
use esker_sync::Arc;
use esker_sync::atomic::Ordering;
use std::collections::HashSet;

impl Opening {
    /// Makes what was read the state of the database; after an error that `traces` still know of,
    /// nothing has changed.
    pub(super) fn commit(
        &self,
        core: &Arc<Core>,
        folded: &ManifestContents,
        outcome: replay::ReplayResult,
        is_new: bool,
        traces: &mut Traces,
    ) -> Result<()> {
        let last_log = outcome.logs.last().map_or(FileNo(0), |(n, _)| *n);
        core.trees.numbers.mark_used(last_log);
        let log_number = core.trees.numbers.next();
        self.draft_missing(core, folded, log_number)?;
        blob_tiers::find(&core.trees);
        self.log_beginning(core, folded, &outcome);
        for dir in core.trees.table_dirs() {
            traces.make_dir(&dir).map_err(paths::explain_missing)?;
        }
        let keep_memtables = !is_new && self.keeps_memtables(core, &outcome);
        let recovered = if keep_memtables {
            None
        } else {
            Some(self.write_recovered(core, log_number)?)
        };
        let options_number = core.trees.numbers.next();
        traces.add_file(self.dir.join(file_name::options_name(options_number)));
        let options = core.trees.write_temp_options(options_number, None)?;
        if let Some(dir) = core.services.info_log.directory() {
            traces.make_dir(dir)?;
        }
        core.services.info_log.start()?;
        // Until the entries of the logs are in tables, or in the new log.
        let oldest = replay::oldest_log(folded, self.db.allow_2pc);
        core.trees.store.name_oldest_log(oldest);
        if is_new {
            self.place_first_log(core, log_number, traces)?;
            self.begin_log(core, &outcome, keep_memtables, log_number)?;
        }
        self.switch_current(core, options, is_new, traces)?;
        core.trees.keep_newest_options(options_number);
        if !is_new {
            self.write_identity(&core.services.identity.db_id)?;
            self.begin_log(core, &outcome, keep_memtables, log_number)?;
        }
        match recovered {
            Some(recovered) => recovered.install(log_number)?,
            None => self.keep_logs(core, &outcome, log_number)?,
        }
        self.keep_damaged_logs(core, &outcome)?;
        let finished = self.event("recovery_finished").text("status", "OK");
        core.services
            .info_log
            .info(format_args!("{}", finished.finish()));
        let oldest_log = if keep_memtables {
            folded.oldest_needed_log()
        } else {
            log_number
        };
        self.sweep(
            core,
            folded,
            oldest_log,
            options_number,
            outcome.is_doubtful,
        )
    }

    fn event(&self, name: &'static str) -> EventLine {
        EventLine::new(name, 0, self.env.clock.unix_us())
    }

    /// The first lines of the LOG, kept in memory until it is started.
    fn log_beginning(
        &self,
        core: &Core,
        folded: &ManifestContents,
        outcome: &replay::ReplayResult,
    ) {
        core.log_opening();
        self.log_findings(&core.services.info_log);
        let logs = outcome.logs.iter().map(|(n, _)| n.0);
        let started = self.event("recovery_started").numbers("wal_files", logs);
        core.services
            .info_log
            .info(format_args!("{}", started.finish()));
        for loss in &outcome.losses {
            core.services
                .info_log
                .warn(format_args!("recovery: {loss}"));
        }
        if folded.torn_tail {
            core.services.info_log.warn(format_args!(
                "recovery: an unfinished edit at the end of {} was ignored",
                file_name::manifest_name(folded.manifest)
            ));
        }
    }

    /// Adds the families to make to those that the next MANIFEST lists. Nothing of them is in logs
    /// before `log`.
    fn draft_missing(&self, core: &Core, folded: &ManifestContents, log: FileNo) -> Result<()> {
        let present = core.trees.families.all();
        let present: HashSet<&str> = present.iter().map(|f| f.name.as_str()).collect();
        let named = self.families.iter().flatten();
        let missing = named.filter(|wanted| !present.contains(wanted.name.as_str()));
        let drafts: Vec<Arc<Family>> = missing
            .zip(1..)
            .map(|(wanted, n)| {
                let id = folded.max_family.0.checked_add(n).map(FamilyId);
                let id = id.ok_or_else(no_family_numbers)?;
                core.draft_family(id, &wanted.name, wanted.options.clone(), log)
            })
            .collect::<Result<_>>()?;
        core.trees
            .store
            .adopt_families(&core.trees.families, drafts);
        Ok(())
    }

    /// Returns whether what was replayed stays in memory, and in the logs.
    fn keeps_memtables(&self, core: &Core, outcome: &replay::ReplayResult) -> bool {
        self.db.avoid_flush_during_recovery
            // A commit may have applied a prepared section of a log that is deleted.
            && !outcome.has_sections
            && outcome.damaged.is_empty()
            && core
                .trees.families
                .all()
                .iter()
                .all(|f| f.view_guard().immutable.is_empty())
    }

    /// The first log of a new database is there before the MANIFEST, which names it from the
    /// beginning: its name needs no sync of its own, and the MANIFEST no further edit.
    fn place_first_log(&self, core: &Core, number: FileNo, traces: &mut Traces) -> Result<()> {
        traces.add_file(self.wal_dir.join(file_name::log_name(number)));
        let (right, options) = {
            let log = core.writes.lock();
            (log.spare_count().one_more(), log.file_options())
        };
        if let Some(right) = right {
            let first = SpareLog::create(
                right,
                &core.services.env,
                &core.trees.obsolete_files,
                &self.wal_dir,
                number,
                options,
            )?;
            core.writes.lock().place_first(first);
        }
        for family in core.trees.families.all() {
            family.persisted_log.store(number.0, Ordering::Release);
        }
        core.trees.store.name_oldest_log(number);
        Ok(())
    }

    /// Writes a MANIFEST of what is in memory, and makes it the current one. Until that has
    /// happened for sure, a failure leaves the old one. OPTIONS and, in a new database, IDENTITY
    /// have their names before.
    fn switch_current(
        &self,
        core: &Core,
        mut options: TempFile<'_>,
        is_new: bool,
        traces: &mut Traces,
    ) -> Result<()> {
        let fs = &*self.env.fs;
        let number = if is_new {
            create::FIRST_MANIFEST
        } else {
            core.trees.numbers.next()
        };
        let manifest = self.dir.join(file_name::manifest_name(number));
        let mut identity = None;
        if is_new {
            let current = self.dir.join(file_name::CURRENT);
            for path in [self.dir.join(file_name::IDENTITY), manifest, current] {
                traces.add_new_file(path)?;
            }
            if self.db.write_identity_file {
                identity = Some(identity::begin(
                    fs,
                    &self.dir,
                    &core.services.identity.db_id,
                )?);
            }
        } else {
            traces.add_file(manifest);
        }
        // All files are there, and are synced at once.
        let name_all = |sync_manifest: SyncManifest<'_>| {
            options.begin_sync();
            if let Some(identity) = &mut identity {
                identity.begin_sync();
            }
            traces.begin_sync_names();
            sync_manifest()?;
            core.trees.name_options(options)?;
            if let Some(mut identity) = identity {
                identity.sync()?;
                identity.take_name()?;
            }
            if is_new && self.wal_dir != self.dir && !seeded(Bug::WalDirNotSynced) {
                fs.sync_dir(&self.wal_dir)?;
            }
            traces.sync_names()
        };
        let store = &core.trees.store;
        let started = store.start_manifest_beside(&core.trees.families, (number, is_new), name_all);
        // Never delete on doubt: a failed call may have switched it.
        let is_old = || current::read(fs, &self.dir).is_ok_and(|now| now != number);
        let is_none = || is_new && current::read(fs, &self.dir).is_err_and(|e| e.is_not_found());
        if started.is_ok() || !(is_old() || is_none()) {
            traces.keep();
        }
        started
    }

    /// Begins the log of new writes.
    fn begin_log(
        &self,
        core: &Core,
        outcome: &replay::ReplayResult,
        keep_memtables: bool,
        log_number: FileNo,
    ) -> Result<()> {
        let mut log = core.writes.lock();
        if keep_memtables {
            let kept = outcome.logs.iter();
            log.adopt(kept.map(|&(number, bytes)| AliveLog::found(number, bytes)));
        }
        for family in core.trees.families.all() {
            log.note_family(family.id, &family.order)?;
        }
        core.writes.log.prepared.adopt(outcome.prepared.clone())?;
        if !outcome.prepared.is_empty() {
            // The new log has it, synced, before what was written earlier is in tables.
            self.sync_kept_logs(outcome)?;
        }
        core.writes.start_log(&mut log, log_number)?;
        if outcome.stopped || !outcome.losses.is_empty() {
            // An empty batch at the next sequence shows a later recovery that the logs join up.
            let header =
                esker_format::batch::encode_header(core.reads.sequence.published().next(), 0);
            log.append(&[&header])?;
        }
        if keep_memtables && outcome.logs.iter().any(|(_, bytes)| *bytes > 0) {
            log.say_now(core.reads.sequence.published().next())?;
        }
        Ok(())
    }

    /// The logs that were replayed stay, since memtables alone have what is in them.
    fn keep_logs(
        &self,
        core: &Core,
        outcome: &replay::ReplayResult,
        log_number: FileNo,
    ) -> Result<()> {
        self.sync_kept_logs(outcome)?;
        let first = outcome.logs.first().map_or(log_number, |(n, _)| *n);
        for family in core.trees.families.all() {
            family.set_log_number(first);
        }
        core.trees.store.note_logs()
    }

    /// Makes logs survive power loss that stay in use, or that something newer is to be synced
    /// beside: the process that wrote them may have died before it synced them, and a sync of the
    /// new log alone would leave a hole before it. One without a batch too: torn, it would look
    /// like one that has lost some.
    fn sync_kept_logs(&self, outcome: &replay::ReplayResult) -> Result<()> {
        for (number, _) in &outcome.logs {
            let path = self.wal_dir.join(file_name::log_name(*number));
            let mut file = self
                .env
                .fs
                .open_append(&path, FileWriteOptions::default())?;
            file.sync()?;
            file.close()?;
        }
        Ok(())
    }

    /// Writes tables of what recovery found in memtables, for all families. They are installed at
    /// once: a crash in between would leave some with tables that are ahead of what the logs still
    /// hold for the others.
    fn write_recovered(&self, core: &Arc<Core>, log_number: FileNo) -> Result<RecoveredTables> {
        let families = core.trees.families.all();
        for family in &families {
            if !family.view_guard().mem.is_empty() {
                family.switch_memtable(log_number, None);
            }
            family.set_log_number(log_number);
        }
        flush::write_all(core, families)
    }

    /// Logs with bytes that were not replayed are set aside under a name that nothing deletes.
    fn keep_damaged_logs(&self, core: &Core, outcome: &replay::ReplayResult) -> Result<()> {
        for number in &outcome.damaged {
            let path = self.wal_dir.join(file_name::log_name(*number));
            let aside = self
                .wal_dir
                .join(format!("{}.damaged", file_name::log_name(*number)));
            self.env.fs.rename(&path, &aside)?;
            core.services.info_log.warn(format_args!(
                "the damaged log is kept as {}",
                aside.display()
            ));
        }
        if !outcome.damaged.is_empty() {
            self.env.fs.sync_dir(&self.wal_dir)?;
        }
        Ok(())
    }

    fn sweep(
        &self,
        core: &Core,
        folded: &ManifestContents,
        oldest_log: FileNo,
        newest_options: FileNo,
        is_doubtful: bool,
    ) -> Result<()> {
        let mut needed = FilesInUse {
            is_doubtful: is_doubtful || folded.torn_tail,
            oldest_log,
            manifest: core.trees.store.manifest_number(),
            ..FilesInUse::default()
        };
        for family in core.trees.families.all() {
            let version: Arc<Version> = Arc::clone(&family.view_guard().version);
            needed.tables.extend(version.files().map(|(_, f)| f.number));
            needed.blobs.extend(version.blob_files().keys().copied());
        }
        needed.options = sweep::newest_options(&self.env, &self.dir, newest_options)?;
        core.trees.options_files.lock().clone_from(&needed.options);
        let mut files = sweep::unneeded(&self.env, &self.dir, folded, &needed)?;
        if self.wal_dir != self.dir {
            files.extend(sweep::unneeded(&self.env, &self.wal_dir, folded, &needed)?);
        }
        for dir in core.trees.table_dirs() {
            if self.env.fs.exists(&dir.join(file_name::CURRENT))? {
                core.services.info_log.warn(format_args!(
                    "{} is the directory of another database: nothing is deleted there that this one does not know",
                    dir.display()
                ));
                continue;
            }
            let mut found = sweep::unneeded(&self.env, &dir, folded, &needed)?;
            found.retain(|path| sweep::is_data(path) && !files.contains(path));
            files.extend(found);
        }
        for path in files {
            core.trees.obsolete_files.retire_file(path);
        }
        core.trees.delete_obsolete_files();
        Ok(())
    }

    /// Writes IDENTITY where it is missing or names another database.
    fn write_identity(&self, db_id: &str) -> Result<()> {
        let fs = &*self.env.fs;
        if !self.db.write_identity_file {
            return Ok(());
        }
        let there =
            fs.exists(&self.dir.join("IDENTITY"))? && identity::read(fs, &self.dir)? == db_id;
        if there {
            Ok(())
        } else {
            identity::write(fs, &self.dir, db_id)
        }
    }
}
