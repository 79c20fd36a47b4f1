//! The store: the only code that changes a tree.
//!
//! A change is computed by a job and handed to [`Store::install`]. Under the store lock it is
//! applied to the family's version (pure), appended to the MANIFEST and synced; only then is the
//! view that shows it published and what it replaced made obsolete. A change whose append or
//! sync failed is not published: the MANIFEST's tail is unknown from then on, and the next change
//! starts a new MANIFEST with a whole snapshot. Until that is current nothing that the failed
//! change wrote is deleted, since the old MANIFEST may hold it.
//!
//! A job decides on a version that may be replaced before its change is applied. The store
//! therefore checks once more that no newer data would lie below older data
//! ([`esker_lsm::check::overtaking`]). It refuses such a change with an error of its own
//! ([`is_overtaken`]); nothing is written then, and the job is planned anew.
//!
//! Rejected: a queue of MANIFEST writers with group commit (RocksDB's). Changes come a
//! few a second; a plain lock is enough and keeps the order of commits obvious.

pub(crate) mod continuity;

use crate::family::{Family, FamilySet, View};
use crate::ranks;
use crate::tree::{FileNumbers, ObsoleteFiles};
use continuity::WalManifestLink;
use esker_env::{Env, WriteOptions as FileWriteOptions};
use esker_files::current;
use esker_files::manifest::ManifestWriter;
use esker_format::edit::VersionEdit;
use esker_format::{FamilyId, FileNo, Level, Seq, file_name};
use esker_lsm::check::{Overtaking, overtaking};
use esker_lsm::edit::{TreeEdit, apply};
use esker_lsm::file::FileMeta;
use esker_lsm::version::Version;
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, ErrorKind, Result, Subcode};
use esker_sync::atomic::{AtomicU64, Ordering};
use esker_sync::{Arc, Mutex};
use hashbrown::HashSet;
use std::path::PathBuf;

/// Where sequence numbers are handed out.
pub(crate) trait SequenceSource: std::fmt::Debug + Send + Sync {
    /// The newest sequence that a write owns.
    fn allocated(&self) -> Seq;
}

/// One change of one family's tree.
#[derive(Debug, Default)]
pub(crate) struct Change {
    pub(crate) tree: TreeEdit,
    /// The family's data in logs below this number is in tables once the change is installed.
    pub(crate) log_number: Option<FileNo>,
    /// The level that the data of tables which leave theirs goes to; `None` when it goes nowhere.
    pub(crate) to: Option<Level>,
}

impl Change {
    /// One that only adds tables.
    pub(crate) fn of_tree(tree: TreeEdit) -> Self {
        Change {
            tree,
            ..Change::default()
        }
    }

    /// Refuses to take tables past others that are older, or newer on a way up.
    fn check_order(&self, base: &Version) -> Result<()> {
        let Some(to) = self.to else {
            return Ok(());
        };
        let leaving = self.tree.deleted.iter().filter_map(|(level, number)| {
            let files = base.level(*level);
            Some((*level, &files.files()[files.position(*number)?]))
        });
        match overtaking(base, leaving, to) {
            None => Ok(()),
            Some(passed) => Err(overtaken(&passed)),
        }
    }
}

/// The error of a change that would put newer data below older.
fn overtaken(passed: &Overtaking) -> Error {
    Error::aborted(format!("{passed}: the tree changed after it was planned"))
        .with_subcode(Subcode::StaleFile)
}

/// Returns whether a change was refused because data would have come to lie on the wrong side of
/// other data. Nothing was written, and no MANIFEST names what the change adds.
pub(crate) fn is_overtaken(error: &Error) -> bool {
    error.kind() == ErrorKind::Aborted && error.subcode() == Subcode::StaleFile
}

/// The MANIFEST and the right to change trees.
#[derive(Debug)]
pub(crate) struct Store {
    env: Env,
    dir: PathBuf,
    numbers: Arc<FileNumbers>,
    sequence: Arc<dyn SequenceSource>,
    obsolete_files: Arc<ObsoleteFiles>,
    db_id: Option<String>,
    max_manifest_file_size: AtomicU64,
    /// The oldest log that recovery has to read, as the MANIFEST says it.
    oldest_log: AtomicU64,
    /// References between logs and the MANIFEST.
    wal_link: Arc<WalManifestLink>,
    manifest: Mutex<Manifest>,
}

#[derive(Debug)]
struct Manifest {
    number: FileNo,
    /// `None` after a failure: the next change starts a new file.
    writer: Option<ManifestWriter>,
    max_family: FamilyId,
    /// The database is closed: nothing is committed any more.
    closed: bool,
    wal_link: Arc<WalManifestLink>,
}

impl Manifest {
    /// Appends what `add` adds, and syncs it; after a failure the file is not written any more.
    fn write(&mut self, add: impl FnOnce(&mut ManifestWriter) -> Result<()>) -> Result<()> {
        let Some(writer) = &mut self.writer else {
            return Err(Error::shutdown());
        };
        let done = add(writer).and_then(|()| {
            if seeded(Bug::ManifestNotSynced) {
                Ok(())
            } else {
                writer.sync()
            }
        });
        match &done {
            Ok(()) => self.wal_link.manifest_synced(self.number, writer.len()),
            Err(_) if seeded(Bug::ManifestAfterFailure) => {}
            Err(_) => self.writer = None,
        }
        done
    }
}

/// A change that was not published.
#[derive(Debug)]
pub(crate) struct NotInstalled {
    /// Why.
    pub(crate) error: Error,
    /// It is certain that no MANIFEST names what the change adds.
    pub(crate) is_certain: bool,
}

impl From<Error> for NotInstalled {
    fn from(error: Error) -> NotInstalled {
        NotInstalled {
            error,
            is_certain: true,
        }
    }
}

impl From<NotInstalled> for Error {
    fn from(not: NotInstalled) -> Error {
        not.error
    }
}

/// The error of a family that is to be made where the MANIFEST has given the largest number.
pub(crate) fn no_family_numbers() -> Error {
    Error::invalid_argument("no column family numbers are left")
}

/// Syncs the MANIFEST that is being made.
pub(crate) type SyncManifest<'a> = &'a mut dyn FnMut() -> Result<()>;

/// A change with the version that it makes.
struct Ready {
    family: Arc<Family>,
    base: Arc<Version>,
    next: Arc<Version>,
    tree: TreeEdit,
    log_number: Option<FileNo>,
}

impl Ready {
    /// Applies `change` to the family's tree, and says it as an edit.
    fn new(family: &Arc<Family>, change: Change) -> Result<(Self, VersionEdit)> {
        if family.is_dropped() {
            return Err(Error::new(
                ErrorKind::ColumnFamilyDropped,
                format!("column family {}", family.name),
            ));
        }
        let base = Arc::clone(&family.view_guard().version);
        change.check_order(&base)?;
        let mut tree = change.tree;
        // After a repair tables may refer to a blob file that is lost.
        let is_listed = |blob: &FileNo| base.blob_files().contains_key(blob);
        tree.garbage.retain(|(blob, ..)| is_listed(blob));
        number_epochs(&base, &mut tree);
        let next = Arc::new(apply(&base, std::slice::from_ref(&tree))?);
        let mut edit = VersionEdit::for_family(family.id);
        tree.write_to(&mut edit);
        let persisted = family.persisted_log.load(Ordering::Acquire);
        let log_number = change.log_number.filter(|n| n.0 > persisted);
        edit.log_number = log_number;
        let ready = Ready {
            family: Arc::clone(family),
            base,
            next,
            tree,
            log_number,
        };
        Ok((ready, edit))
    }
}

impl Store {
    /// A store over a recovered tree. No MANIFEST is open yet; [`Store::start_manifest`] opens one.
    #[allow(
        clippy::too_many_arguments,
        reason = "the parts a commit touches, named at the one call"
    )]
    pub(crate) fn new(
        env: Env,
        dir: PathBuf,
        numbers: Arc<FileNumbers>,
        sequence: Arc<dyn SequenceSource>,
        obsolete_files: Arc<ObsoleteFiles>,
        db_id: Option<String>,
        max_manifest_file_size: u64,
        wal_link: Arc<WalManifestLink>,
        max_family: FamilyId,
    ) -> Self {
        Store {
            env,
            dir,
            numbers,
            sequence,
            obsolete_files,
            db_id,
            max_manifest_file_size: AtomicU64::new(max_manifest_file_size),
            oldest_log: AtomicU64::new(0),
            wal_link: Arc::clone(&wal_link),
            manifest: Mutex::new(
                ranks::STORE,
                Manifest {
                    number: wal_link.manifest().number,
                    writer: None,
                    max_family,
                    closed: false,
                    wal_link,
                },
            ),
        }
    }

    /// The MANIFEST that CURRENT names.
    pub(crate) fn manifest_number(&self) -> FileNo {
        self.manifest.lock().number
    }

    pub(crate) fn set_max_manifest_file_size(&self, bytes: u64) {
        self.max_manifest_file_size.store(bytes, Ordering::Relaxed);
    }

    /// Runs `f` while no tree changes: for checkpoints and the like. It gets the MANIFEST's number,
    /// and its bytes without an edit that could not be synced.
    pub(crate) fn while_still<R>(&self, f: impl FnOnce(FileNo, u64) -> R) -> R {
        let _still = self.manifest.lock();
        let mark = self.wal_link.manifest();
        f(mark.number, mark.bytes)
    }

    /// Appends and syncs an edit that names the logs.
    pub(crate) fn note_logs(&self) -> Result<()> {
        let mut manifest = self.manifest.lock();
        if manifest.writer.is_none() {
            // The end of a MANIFEST whose last edit failed is unknown.
            return Ok(());
        }
        let edit = self.edit_of_logs(None);
        self.append_plain(&mut manifest, &[edit])
    }

    /// Appends the last edit, which says that the newest log ends at `end`, and closes the
    /// MANIFEST. Without `synced` it does not wait for the disk: a directory that lacks the edit,
    /// or has a part of it, is what a crash before the close leaves.
    pub(crate) fn note_end(&self, end: u64, synced: bool) -> Result<()> {
        let mut manifest = self.manifest.lock();
        let edit = self.edit_of_logs(Some(end));
        manifest.closed = true;
        if manifest.writer.is_some() && synced {
            self.append_plain(&mut manifest, std::slice::from_ref(&edit))?;
        }
        let Some(mut writer) = manifest.writer.take() else {
            return Ok(());
        };
        if !synced {
            writer.append(&[edit])?;
        }
        writer.close()?;
        if seeded(Bug::ClosingEditPromised) {
            self.wal_link.manifest_synced(manifest.number, writer.len());
        }
        Ok(())
    }

    fn edit_of_logs(&self, end: Option<u64>) -> VersionEdit {
        let mut edit = VersionEdit::default();
        self.stamp(&mut edit);
        edit.known_logs = self.wal_link.known_logs(self.oldest_log(), end);
        edit
    }

    /// Starts a new MANIFEST from the families as they are and makes it current.
    pub(crate) fn start_manifest(&self, families: &FamilySet) -> Result<()> {
        self.roll(&mut self.manifest.lock(), families)
    }

    /// Commits the first edit of an open, in MANIFEST-`number`. `beside` gives other files of the
    /// directory their names: the sync that makes the MANIFEST's name sure does for them too. It is
    /// called when all files are there, and syncs the MANIFEST with what it is given. A file of
    /// that number may be there when the database `is_new`: a creation was cut short.
    pub(crate) fn start_manifest_beside(
        &self,
        families: &FamilySet,
        (number, is_new): (FileNo, bool),
        beside: impl FnOnce(SyncManifest<'_>) -> Result<()>,
    ) -> Result<()> {
        let manifest = &mut self.manifest.lock();
        self.roll_to(manifest, families, (number, !is_new), beside)
    }

    /// Commits `change` and publishes the view that `publish` makes of the old one and the new
    /// version.
    pub(crate) fn install(
        &self,
        families: &FamilySet,
        family: &Arc<Family>,
        change: Change,
        publish: impl FnOnce(&View, Arc<Version>) -> View,
    ) -> Result<()> {
        let mut manifest = self.manifest.lock();
        let (ready, edit) = Ready::new(family, change)?;
        match self.append(&mut manifest, families, edit) {
            Err(_) if seeded(Bug::FailedEditShown) => {}
            done => done?,
        }
        self.publish(ready, publish);
        Ok(())
    }

    /// Commits changes of several families that take effect together. They are made by `decide`,
    /// while no tree changes; `view` makes the view that shows one.
    pub(crate) fn install_together(
        &self,
        families: &FamilySet,
        decide: impl FnOnce() -> Result<Vec<(Arc<Family>, Change)>>,
        view: impl Fn(&Arc<Family>, &View, Arc<Version>) -> View,
    ) -> Result<(), NotInstalled> {
        let mut manifest = self.manifest.lock();
        let ready = || -> Result<(Vec<Ready>, Vec<VersionEdit>)> {
            let changes = decide()?.into_iter();
            let ready: Vec<_> = changes
                .map(|(family, change)| Ready::new(&family, change))
                .collect::<Result<_>>()?;
            self.make_room(&mut manifest, families)?;
            Ok(ready.into_iter().unzip())
        };
        let (ready, mut edits) = ready()?;
        let oldest = self.keep_logs(families, &mut edits);
        self.say_logs(&mut edits);
        let appended = self.append_all(&mut manifest, &mut edits, oldest);
        appended.map_err(|error| NotInstalled {
            error,
            is_certain: false,
        })?;
        for one in ready {
            let family = Arc::clone(&one.family);
            self.publish(one, |old, version| view(&family, old, version));
        }
        Ok(())
    }

    /// Shows a change that is in the MANIFEST. The store lock is held.
    fn publish(&self, ready: Ready, view: impl FnOnce(&View, Arc<Version>) -> View) {
        let Ready {
            family,
            base,
            next,
            tree,
            log_number,
        } = ready;
        if let Some(n) = log_number {
            family.persisted_log.store(n.0, Ordering::Release);
        }
        if seeded(Bug::FlushGap) {
            let shown = family.change_view(|old| view(old, Arc::clone(&base)));
            family.change_view(|_| shown.with_version(Arc::clone(&next)));
        } else {
            family.change_view(|old| view(old, Arc::clone(&next)));
        }
        self.retire(&family, &base, &next, &tree);
    }

    /// Adds families that have their numbers and that the next MANIFEST is to list. None is being
    /// written.
    pub(crate) fn adopt_families(&self, families: &FamilySet, made: Vec<Arc<Family>>) {
        let mut manifest = self.manifest.lock();
        let newest = made.iter().map(|f| f.id).max();
        manifest.max_family = newest.map_or(manifest.max_family, |id| id.max(manifest.max_family));
        families.insert_all(made);
    }

    /// Commits the creation of a family, with the tables that it has; its number is the next free
    /// one.
    pub(crate) fn add_family(
        &self,
        families: &FamilySet,
        make: impl FnOnce(FamilyId) -> Result<Arc<Family>>,
    ) -> Result<Arc<Family>, NotInstalled> {
        let mut manifest = self.manifest.lock();
        let id = manifest.max_family.0.checked_add(1).map(FamilyId);
        let id = id.ok_or_else(no_family_numbers)?;
        let ready = make(id).and_then(|family| {
            self.make_room(&mut manifest, families)?;
            Ok(family)
        });
        let family = ready?;
        let mut edit = VersionEdit::for_family(id);
        edit.family_add = Some(family.name.clone());
        edit.comparator = Some(family.order.name().to_owned());
        edit.log_number = Some(FileNo(family.persisted_log.load(Ordering::Acquire)));
        edit.max_column_family = Some(id);
        let mut edits = vec![edit];
        let tree = TreeEdit::snapshot(&family.view_guard().version);
        if !tree.is_empty() {
            // An edit of its own: RocksDB takes no files from the one that adds the family.
            let mut files = VersionEdit::for_family(id);
            tree.write_to(&mut files);
            edits.push(files);
        }
        for edit in &mut edits {
            self.stamp(edit);
        }
        self.say_logs(&mut edits);
        let appended = self.append_plain(&mut manifest, &edits);
        appended.map_err(|error| NotInstalled {
            error,
            is_certain: false,
        })?;
        manifest.max_family = id;
        families.insert(Arc::clone(&family));
        Ok(family)
    }

    /// Commits that versions of keys below `low` may be dropped, unless more may be already: then
    /// the timestamp that holds comes back.
    pub(crate) fn raise_history(
        &self,
        families: &FamilySet,
        family: &Arc<Family>,
        low: &[u8],
    ) -> Result<Option<Arc<Vec<u8>>>> {
        let mut manifest = self.manifest.lock();
        let above = |now: &Arc<Vec<u8>>| family.order.compare_timestamp(low, now).is_lt();
        if let Some(now) = family.full_history_ts_low().filter(above) {
            return Ok(Some(now));
        }
        let mut edit = VersionEdit::for_family(family.id);
        edit.full_history_ts_low = Some(low.to_vec());
        self.append(&mut manifest, families, edit)?;
        family.raise_full_history_ts_low(low);
        Ok(None)
    }

    /// Commits the drop of a family; its tables go when their last reader lets go.
    pub(crate) fn drop_family(&self, families: &FamilySet, family: &Arc<Family>) -> Result<()> {
        let mut manifest = self.manifest.lock();
        if family.is_dropped() {
            return Err(Error::invalid_argument(format!(
                "column family {} was dropped before",
                family.name
            )));
        }
        let mut edit = VersionEdit::for_family(family.id);
        edit.family_drop = true;
        edit.max_column_family = Some(manifest.max_family);
        self.append(&mut manifest, families, edit)?;
        family.mark_dropped();
        families.remove(family.id);
        let paths = &family.reading.paths;
        let version = Arc::clone(&family.view_guard().version);
        let files: Vec<_> = version.files().map(|(_, f)| Arc::clone(f)).collect();
        self.obsolete_files.retire_tables(family.id, paths, files);
        for (number, blob) in version.blob_files() {
            let file = (*number, paths.blob(*number), blob.total_bytes);
            let readers = family.readers_of_blob(*number);
            self.obsolete_files.retire_blob(family.id, file, readers);
        }
        Ok(())
    }

    /// Appends and syncs one edit, in a new MANIFEST when the old one is full or broken.
    fn append(
        &self,
        manifest: &mut Manifest,
        families: &FamilySet,
        edit: VersionEdit,
    ) -> Result<()> {
        self.make_room(manifest, families)?;
        let edits = &mut [edit];
        let oldest = self.keep_logs(families, edits);
        self.say_logs(edits);
        self.append_all(manifest, edits, oldest)
    }

    /// Starts a new MANIFEST when the old one is full or broken.
    fn make_room(&self, manifest: &mut Manifest, families: &FamilySet) -> Result<()> {
        if manifest.closed {
            return Err(Error::shutdown());
        }
        let limit = self.max_manifest_file_size.load(Ordering::Relaxed);
        if manifest.writer.as_ref().is_none_or(|w| w.len() > limit) {
            self.roll(manifest, families)?;
        }
        Ok(())
    }

    /// The last of `edits` says which logs are there.
    fn say_logs(&self, edits: &mut [VersionEdit]) {
        if let Some(last) = edits.last_mut() {
            last.known_logs = self.wal_link.known_logs(self.oldest_log(), None);
        }
    }

    /// Adds the fields that every edit has.
    fn stamp(&self, edit: &mut VersionEdit) {
        edit.prev_log_number = Some(FileNo(0));
        edit.next_file_number = Some(self.numbers.peek());
        edit.last_sequence = Some(self.sequence.allocated());
    }

    /// Appends and syncs edits that take effect together, after which `oldest` is the oldest log.
    fn append_all(
        &self,
        manifest: &mut Manifest,
        edits: &mut [VersionEdit],
        oldest: Option<FileNo>,
    ) -> Result<()> {
        edits.iter_mut().for_each(|edit| self.stamp(edit));
        if edits.len() > 1 && seeded(Bug::EditGroupApart) {
            for edit in edits {
                self.append_plain(manifest, std::slice::from_ref(edit))?;
            }
        } else if edits.len() > 1 {
            manifest.write(|w| w.append_group(edits))?;
        } else {
            self.append_plain(manifest, edits)?;
        }
        // Not before: after a failure the next MANIFEST says what is the oldest without these
        // edits.
        oldest.into_iter().for_each(|n| self.name_oldest_log(n));
        Ok(())
    }

    /// Appends and syncs edits, each of which takes effect by itself.
    fn append_plain(&self, manifest: &mut Manifest, edits: &[VersionEdit]) -> Result<()> {
        manifest.write(|w| w.append(edits))
    }

    /// Ends all commits: a job that still works on a change gets an error and removes what it
    /// wrote.
    pub(crate) fn close(&self) {
        let mut manifest = self.manifest.lock();
        manifest.closed = true;
        manifest.writer = None;
    }

    /// Writes a whole new MANIFEST, syncs it, and switches CURRENT to it. Until that has succeeded
    /// no edit is appended anywhere: CURRENT may name either file.
    fn roll(&self, manifest: &mut Manifest, families: &FamilySet) -> Result<()> {
        if manifest.closed {
            return Err(Error::shutdown());
        }
        let number = self.numbers.next();
        self.roll_to(manifest, families, (number, true), |sync| sync())
    }

    /// Rolls to MANIFEST-`number`, which `beside` syncs. The write-back of all files begins before
    /// the first is waited for.
    fn roll_to(
        &self,
        manifest: &mut Manifest,
        families: &FamilySet,
        (number, exclusive): (FileNo, bool),
        beside: impl FnOnce(SyncManifest<'_>) -> Result<()>,
    ) -> Result<()> {
        manifest.writer = None;
        let snapshot = self.snapshot(manifest, families);
        let options = FileWriteOptions {
            exclusive,
            ..FileWriteOptions::default()
        };
        let fs = &*self.env.fs;
        let mut writer = ManifestWriter::create(fs, &self.dir, number, options, &snapshot)?;
        let mut current = current::begin(fs, &self.dir, number)?;
        current.begin_sync();
        beside(&mut || {
            if seeded(Bug::CurrentBeforeManifest) {
                Ok(())
            } else {
                writer.sync()
            }
        })?;
        if seeded(Bug::ManifestGoneFirst) {
            let good = self.dir.join(file_name::manifest_name(manifest.number));
            self.obsolete_files.retire_file(good);
        }
        current::switch(fs, &self.dir, current)?;
        self.wal_link.manifest_synced(number, writer.len());
        let old = std::mem::replace(&mut manifest.number, number);
        manifest.writer = Some(writer);
        if old != FileNo(0) && old != number {
            self.obsolete_files
                .retire_file(self.dir.join(file_name::manifest_name(old)));
        }
        Ok(())
    }

    /// From now on the MANIFEST says that recovery has to read from the log `oldest` on. No older
    /// one is needed, also when the family that had gone on to newer ones is dropped; and what is
    /// prepared may be older than any family needs.
    pub(crate) fn name_oldest_log(&self, oldest: FileNo) {
        self.oldest_log.store(oldest.0, Ordering::Release);
    }

    /// The log from which on recovery reads, as the MANIFEST says.
    pub(crate) fn oldest_log(&self) -> FileNo {
        FileNo(self.oldest_log.load(Ordering::Acquire))
    }

    /// Edits that let families go on to newer logs, or drop one, say which log is the oldest then,
    /// which comes back. What is prepared is in the newest.
    fn keep_logs(&self, families: &FamilySet, edits: &mut [VersionEdit]) -> Option<FileNo> {
        let changes = |e: &VersionEdit| e.log_number.is_some() || e.family_drop;
        if !edits.iter().any(changes) {
            return None;
        }
        // What families need that stay as they are: what their memtables do, and not all since
        // their last flushes.
        let edited: HashSet<_> = edits
            .iter()
            .filter(|e| changes(e))
            .map(|e| e.family)
            .collect();
        // One that is being made is not among the families yet.
        let known = edited.iter().filter(|id| families.get(**id).is_some());
        let others = (families.len() > known.count())
            .then(|| families.logs.oldest_to_name(|id| !edited.contains(&id)));
        let dropped = |id| edits.iter().any(|e| e.family_drop && e.family == id);
        let own = edits.iter().filter(|e| !dropped(e.family));
        // Never lower than what the MANIFEST had for the family: edits that say less are not made.
        let own = own.filter_map(|e| e.log_number).min();
        let before = self.oldest_log();
        let oldest = own.into_iter().chain(others).min();
        let oldest = oldest.unwrap_or(before).max(before);
        if let Some(last) = edits.last_mut() {
            last.min_log_number_to_keep = Some(oldest);
        }
        Some(oldest)
    }

    /// The edits that lead from nothing to the families as they are.
    fn snapshot(&self, manifest: &Manifest, families: &FamilySet) -> Vec<VersionEdit> {
        let mut out = Vec::new();
        out.extend(self.db_id.as_ref().map(|id| VersionEdit {
            db_id: Some(id.clone()),
            ..VersionEdit::default()
        }));
        for family in families.all() {
            let mut head = VersionEdit::for_family(family.id);
            if family.id != FamilyId::DEFAULT {
                head.family_add = Some(family.name.clone());
            }
            head.comparator = Some(family.order.name().to_owned());
            out.push(head);
            let mut body = VersionEdit::for_family(family.id);
            TreeEdit::snapshot(&family.view_guard().version).write_to(&mut body);
            body.full_history_ts_low = family.full_history_ts_low().map(|ts| ts.to_vec());
            body.log_number = Some(FileNo(family.persisted_log.load(Ordering::Acquire)));
            out.push(body);
        }
        let last = VersionEdit {
            max_column_family: Some(manifest.max_family),
            prev_log_number: Some(FileNo(0)),
            next_file_number: Some(self.numbers.peek()),
            last_sequence: Some(self.sequence.allocated().max(Seq::ZERO)),
            min_log_number_to_keep: Some(self.oldest_log()).filter(|n| *n > FileNo(0)),
            known_logs: self.wal_link.known_logs(self.oldest_log(), None),
            ..VersionEdit::default()
        };
        out.push(last);
        out
    }

    /// Makes obsolete what the change removed for good.
    fn retire(&self, family: &Family, base: &Version, next: &Version, tree: &TreeEdit) {
        let paths = &family.reading.paths;
        let moved = |n: FileNo| tree.added.iter().any(|(_, f)| f.number == n);
        let gone: Vec<Arc<FileMeta>> = tree
            .deleted
            .iter()
            .filter(|(_, n)| !moved(*n))
            .filter_map(|(_, n)| base.find_file(*n).map(|(_, f)| Arc::clone(f)))
            .collect();
        self.obsolete_files.retire_tables(family.id, paths, gone);
        let blobs = base.blob_files().iter();
        for (number, blob) in blobs.filter(|(b, _)| !next.blob_files().contains_key(b)) {
            let file = (*number, paths.blob(*number), blob.total_bytes);
            let readers = family.readers_of_blob(*number);
            self.obsolete_files.retire_blob(family.id, file, readers);
        }
    }
}

/// Files that come without an epoch number get the next one: the order of installation is the order
/// of their data.
fn number_epochs(base: &Version, tree: &mut TreeEdit) {
    let oldest = base.level(Level::L0).files().last();
    let next = match oldest.filter(|_| seeded(Bug::EpochsGoBack)) {
        Some(oldest) => oldest.epoch + 1,
        None => base.last_epoch() + 1,
    };
    if tree.deleted.is_empty() && seeded(Bug::EpochsNotGiven) {
        return;
    }
    let new = tree.added.iter_mut().filter(|(_, f)| f.epoch == 0);
    for ((_, file), epoch) in new.zip(next..) {
        *file = Arc::new(file.with_epoch(epoch));
    }
}
