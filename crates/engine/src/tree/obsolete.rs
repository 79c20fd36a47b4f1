//! Files that a synced MANIFEST has retired and that are deleted after their last reader.
//!
//! A table is unreachable when the list of obsolete files holds the last `Arc` of its metadata:
//! every version that listed it is gone, and no new holder can appear. A blob file is unreachable
//! when the versions are gone that listed it when it was retired. While jobs write tables some
//! unreachable ones are kept for them as spares, to be written over ([`FileSystem::create_over`]);
//! a purge that asks for no spares deletes them. Some logs are kept until the database
//! closes, for others to begin in their files ([`FileSystem::reuse`]). Nothing else is ever deleted
//! while a database is open, so a file that the MANIFEST does not name and no job retired stays
//! (it is looked at when the database opens next).

use super::{Archive, TablePaths};
use crate::memory::{DeadFiles, SstFileManager};
use crate::ranks;
#[cfg(doc)]
use esker_env::FileSystem;
use esker_env::{Env, WritableFile, WriteOptions};
use esker_format::file_name::{FileKind, parse_file_name};
use esker_format::{FamilyId, FileNo};
use esker_lsm::file::FileMeta;
use esker_lsm::version::Version;
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use esker_sync::atomic::{AtomicUsize, Ordering};
use esker_sync::{Arc, Mutex, Weak};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct ObsoleteFiles {
    env: Env,
    dir: PathBuf,
    /// Where logs go instead of being deleted.
    archive: Option<Archive>,
    /// Says how fast tables are deleted.
    space: Option<Arc<SstFileManager>>,
    /// Held while files are deleted.
    purging: Mutex<()>,
    /// Held while a file is put in the place of a spare.
    recycling: Mutex<()>,
    retired: Mutex<RetiredFiles>,
    /// How many files wait for their deletion. Spares do not.
    waiting: AtomicUsize,
    /// How many spares there are.
    spare: AtomicUsize,
}

/// A blob file that no current version lists.
#[derive(Debug)]
struct RetiredBlob {
    family: FamilyId,
    number: FileNo,
    path: PathBuf,
    bytes: u64,
    /// The versions that may list it.
    readers: Vec<Weak<Version>>,
    /// The newest job when it was retired.
    job: u64,
}

/// A table that no current version lists.
#[derive(Debug)]
struct RetiredTable {
    family: FamilyId,
    paths: Arc<TablePaths>,
    file: Arc<FileMeta>,
    /// The newest job when it was retired.
    job: u64,
}

impl RetiredTable {
    fn is_read(&self) -> bool {
        Arc::strong_count(&self.file) > 1
    }
}

/// A table without readers.
#[derive(Debug)]
struct ObsoleteTable {
    family: FamilyId,
    number: FileNo,
    path: PathBuf,
    bytes: u64,
}

/// A job that keeps the files of its families' versions from going until it ends.
#[derive(Debug)]
pub(crate) struct VersionReader<'a> {
    files: &'a ObsoleteFiles,
    job: u64,
}

impl Drop for VersionReader<'_> {
    fn drop(&mut self) {
        self.files
            .retired
            .lock()
            .jobs
            .retain(|(job, _)| *job != self.job);
    }
}

/// Obsolete files that stay because deletions are off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptFiles {
    /// Tables and blob files.
    pub(crate) files: usize,
    pub(crate) bytes: u64,
    /// Number of calls that turned deletions off.
    pub(crate) calls: usize,
    /// Time of the first of them, by the clock.
    pub(crate) since_us: u64,
}

impl RetiredBlob {
    fn is_read(&self) -> bool {
        let is_held = |version: &Weak<Version>| version.strong_count() > 0;
        self.readers.iter().any(is_held) && !seeded(Bug::BlobDeletedWhileRead)
    }
}

#[derive(Debug, Default)]
struct RetiredFiles {
    tables: Vec<RetiredTable>,
    /// Blob files, with the versions that list them.
    blobs: Vec<RetiredBlob>,
    /// Logs, MANIFESTs: they have no readers once they are retired.
    files: Vec<PathBuf>,
    /// Tables without readers that wait in line for their deletion.
    trash: VecDeque<ObsoleteTable>,
    /// Tables without readers that jobs may write over; the last is the newest.
    spares: Vec<ObsoleteTable>,
    /// Bytes of what a purge is deleting, in its order: they take space until they are gone.
    going: VecDeque<(FamilyId, u64)>,
    /// Obsolete logs in whose files others may begin; the last is the newest.
    logs: Vec<PathBuf>,
    /// How many of them are kept.
    most_logs: usize,
    /// Jobs that run and their families, by the order in which they began.
    jobs: Vec<(u64, FamilyId)>,
    /// The newest job.
    newest_job: u64,
    /// While above 0, nothing is deleted.
    disabled: usize,
    /// Since when, by the clock.
    disabled_since_us: u64,
}

impl RetiredFiles {
    fn waiting(&self) -> usize {
        self.tables.len() + self.blobs.len() + self.files.len() + self.trash.len()
    }

    /// Tables and blob files that nobody reads, and their bytes.
    fn unread(&self) -> (usize, u64) {
        let tables = self.tables.iter().map(|t| (t.is_read(), t.file.size));
        let blobs = self.blobs.iter().map(|b| (b.is_read(), b.bytes));
        let unread = tables.chain(blobs).filter(|(is_read, _)| !is_read);
        unread.fold((0, 0), |sum, (_, bytes)| (sum.0 + 1, sum.1 + bytes))
    }

    /// Bytes of the tables and blob files of a family that nobody reads, and of those that a
    /// running job of it keeps: it began before they were retired.
    fn unread_but_by_jobs(&self, family: FamilyId) -> (u64, u64) {
        let mut own = self.jobs.iter().filter(|(_, of)| *of == family);
        let first = own.next().map_or(u64::MAX, |(job, _)| *job);
        let tables = (self.tables.iter().filter(|t| t.family == family))
            .map(|t| (t.is_read(), t.job, t.file.size));
        let blobs = (self.blobs.iter().filter(|b| b.family == family))
            .map(|b| (b.is_read(), b.job, b.bytes));
        tables.chain(blobs).fold((0, 0), |sum, file| match file {
            (_, job, bytes) if job >= first => (sum.0, sum.1 + bytes),
            (false, _, bytes) => (sum.0 + bytes, sum.1),
            _ => sum,
        })
    }

    /// Tables in line for their deletion, or to be written over.
    fn in_line(&self) -> impl Iterator<Item = &ObsoleteTable> {
        self.trash.iter().chain(&self.spares)
    }

    /// Takes out the spares that are more than `most` bytes: the newest stay.
    fn take_surplus(&mut self, most: u64) -> Vec<ObsoleteTable> {
        let mut kept = 0;
        let (mut stay, surplus): (Vec<_>, Vec<_>) = std::mem::take(&mut self.spares)
            .into_iter()
            .rev()
            .partition(|spare| {
                let fits = spare.bytes <= most - kept;
                kept += if fits { spare.bytes } else { 0 };
                fits
            });
        stay.reverse();
        self.spares = stay;
        self.going
            .extend(surplus.iter().map(|t| (t.family, t.bytes)));
        surplus
    }
}

/// Files that one purge deleted.
#[derive(Debug, Default)]
pub(crate) struct PurgeReport {
    /// With where they were.
    pub(crate) tables: Vec<(FileNo, PathBuf)>,
    /// Blob files, with where they were.
    pub(crate) blobs: Vec<(FileNo, PathBuf)>,
    pub(crate) failed: Vec<(PathBuf, Error)>,
}

impl PurgeReport {
    /// Why the file is still there; `None` when it is gone.
    pub(crate) fn error_of(&self, file: &Path) -> Option<Error> {
        let failed = self.failed.iter().find(|(path, _)| path == file);
        failed.map(|(_, e)| e.clone())
    }
}

impl ObsoleteFiles {
    pub(crate) fn new(
        env: Env,
        dir: PathBuf,
        archive: Option<Archive>,
        most_logs: usize,
        space: Option<Arc<SstFileManager>>,
    ) -> Self {
        let retired = RetiredFiles {
            most_logs,
            ..RetiredFiles::default()
        };
        ObsoleteFiles {
            env,
            dir,
            archive,
            space,
            purging: Mutex::new(ranks::PURGE, ()),
            recycling: Mutex::new(ranks::RECYCLE, ()),
            retired: Mutex::new(ranks::OBSOLETE, retired),
            waiting: AtomicUsize::new(0),
            spare: AtomicUsize::new(0),
        }
    }

    /// Takes tables of a family, in `paths`, that no current version lists.
    pub(crate) fn retire_tables(
        &self,
        family: FamilyId,
        paths: &Arc<TablePaths>,
        tables: impl IntoIterator<Item = Arc<FileMeta>>,
    ) {
        let mut retired = self.retired.lock();
        let job = retired.newest_job;
        retired
            .tables
            .extend(tables.into_iter().map(|file| RetiredTable {
                family,
                paths: Arc::clone(paths),
                file,
                job,
            }));
        self.waiting.store(retired.waiting(), Ordering::Release);
    }

    /// Takes a blob file of so many bytes that no current version of the family lists; `readers`
    /// are the versions that may.
    pub(crate) fn retire_blob(
        &self,
        family: FamilyId,
        (number, path, bytes): (FileNo, PathBuf, u64),
        readers: Vec<Weak<Version>>,
    ) {
        let mut retired = self.retired.lock();
        let job = retired.newest_job;
        retired.blobs.push(RetiredBlob {
            family,
            number,
            path,
            bytes,
            readers,
            job,
        });
        self.waiting.store(retired.waiting(), Ordering::Release);
    }

    /// Takes a file that nothing refers to.
    pub(crate) fn retire_file(&self, path: PathBuf) {
        let mut retired = self.retired.lock();
        retired.files.push(path);
        self.waiting.store(retired.waiting(), Ordering::Release);
    }

    /// Takes a log that no recovery needs, whose records say that they are of this log: one of the
    /// next logs may begin in its file.
    pub(crate) fn retire_log(&self, path: PathBuf) {
        let mut retired = self.retired.lock();
        if retired.logs.len() < retired.most_logs {
            retired.logs.push(path);
            return;
        }
        drop(retired);
        self.retire_file(path);
    }

    /// Creates the log at `path`: in the file of an obsolete one, if there is one that can be
    /// had.
    pub(crate) fn create_log(
        &self,
        path: &Path,
        options: WriteOptions,
    ) -> Result<Box<dyn WritableFile>> {
        // Writers may wait for this one: not for a table that is being put over another, where no
        // log can be had.
        let reused = if options.reusable {
            self.reuse_log(path, options)
        } else {
            None
        };
        reused.map_or_else(|| self.env.fs.create(path, options), Ok)
    }

    fn reuse_log(&self, path: &Path, options: WriteOptions) -> Option<Box<dyn WritableFile>> {
        let _alone = self.recycling.lock();
        let spare = {
            let mut retired = self.retired.lock();
            let is_allowed = retired.disabled == 0;
            retired.logs.pop_if(|_| is_allowed)?
        };
        if let Ok(Some(file)) = self.env.fs.reuse(&spare, path, options) {
            return Some(file);
        }
        // Mostly it is gone.
        self.retire_file(spare);
        None
    }

    /// Keeps no logs for others from now on: what was kept is deleted by the next purge.
    pub(crate) fn keep_no_logs(&self) {
        let mut retired = self.retired.lock();
        retired.most_logs = 0;
        let mut kept = std::mem::take(&mut retired.logs);
        retired.files.append(&mut kept);
        self.waiting.store(retired.waiting(), Ordering::Release);
    }

    /// Returns whether files wait for their last reader, or for their deletion.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Returns whether a purge may find something to do.
    pub(crate) fn is_any(&self) -> bool {
        self.is_waiting() || self.spare.load(Ordering::Relaxed) > 0
    }

    /// Returns whether files are deleted.
    pub(crate) fn is_enabled(&self) -> bool {
        self.retired.lock().disabled == 0
    }

    /// Bytes of the tables that wait for their deletion.
    pub(crate) fn table_bytes(&self) -> u64 {
        let retired = self.retired.lock();
        let tables: u64 = retired.tables.iter().map(|t| t.file.size).sum();
        tables + retired.in_line().map(|t| t.bytes).sum::<u64>()
    }

    /// Notes that a job begins, which may keep the files of its families' versions until it ends.
    pub(crate) fn job_begins(
        &self,
        families: impl IntoIterator<Item = FamilyId>,
    ) -> VersionReader<'_> {
        let mut retired = self.retired.lock();
        retired.newest_job += 1;
        let job = retired.newest_job;
        retired
            .jobs
            .extend(families.into_iter().map(|of| (job, of)));
        VersionReader { files: self, job }
    }

    /// Bytes of the tables and blob files of a family that are still there without readers, or for
    /// its running jobs alone, and the part of them that these jobs keep or that is being deleted.
    /// Where deletions are off, those in line for deletion and spares.
    pub(crate) fn unread_bytes(&self, family: FamilyId) -> (u64, u64) {
        let retired = self.retired.lock();
        let (unread, kept) = match retired.disabled {
            0 => retired.unread_but_by_jobs(family),
            _ => (0, 0),
        };
        let in_line = retired.in_line().filter(|t| t.family == family);
        let in_line: u64 = in_line.map(|t| t.bytes).sum();
        let going = retired.going.iter().filter(|(of, _)| *of == family);
        let leaving = kept + going.map(|(_, bytes)| bytes).sum::<u64>();
        (unread + in_line + leaving, leaving)
    }

    /// Tables and blob files that would go, were deletions not off.
    pub(crate) fn kept(&self) -> Option<KeptFiles> {
        let retired = self.retired.lock();
        if retired.disabled == 0 {
            return None;
        }
        let unread = retired.unread();
        Some(KeptFiles {
            files: unread.0 + retired.in_line().count(),
            bytes: unread.1 + retired.in_line().map(|t| t.bytes).sum::<u64>(),
            calls: retired.disabled,
            since_us: retired.disabled_since_us,
        })
    }

    /// Stops deletions until [`ObsoleteFiles::enable`] was called as often, and writing over. What
    /// has begun is over.
    pub(crate) fn disable(&self) {
        let _alone = self.purging.lock();
        let _too = self.recycling.lock();
        let mut retired = self.retired.lock();
        if retired.disabled == 0 {
            retired.disabled_since_us = self.env.clock.now_us();
        }
        retired.disabled += 1;
    }

    /// Takes one [`ObsoleteFiles::disable`] back; true when deletions are on again.
    pub(crate) fn enable(&self, force: bool) -> bool {
        let mut retired = self.retired.lock();
        retired.disabled = if force {
            0
        } else {
            retired.disabled.saturating_sub(1)
        };
        retired.disabled == 0
    }

    /// Creates a table of about `bytes` over a spare, if there is one in its directory: the file,
    /// and what became of the spare.
    pub(crate) fn create_over(
        &self,
        path: &Path,
        bytes: u64,
        options: WriteOptions,
    ) -> Option<(Result<Box<dyn WritableFile>>, PurgeReport)> {
        if self.spare.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let _alone = self.recycling.lock();
        let (number, spare) = self.take_spare(path.parent()?, bytes)?;
        let made = self.env.fs.create_over(&spare, path, options);
        let mut purged = PurgeReport::default();
        // Mostly it is gone.
        self.delete(spare.clone(), &mut purged);
        purged.tables.push((number, spare));
        Some((made, purged))
    }

    /// A table in `dir` to write over: the newest of at least `bytes`, or the newest.
    fn take_spare(&self, dir: &Path, bytes: u64) -> Option<(FileNo, PathBuf)> {
        let mut retired = self.retired.lock();
        if retired.disabled > 0 {
            return None;
        }
        let is_here = |path: &Path| path.parent() == Some(dir);
        let spares = retired.spares.iter();
        let mut here = spares.enumerate().filter(|(_, t)| is_here(&t.path));
        let fits = here.clone().rfind(|(_, t)| t.bytes >= bytes);
        let (at, _) = fits.or(here.next_back())?;
        let ObsoleteTable { number, path, .. } = retired.spares.remove(at);
        self.spare.fetch_sub(1, Ordering::Relaxed);
        Some((number, path))
    }

    /// Deletes files without readers, but for `spare` bytes of tables, which `forget` makes
    /// sure that no reader opens again. A file that cannot be deleted is named and forgotten.
    pub(crate) fn purge(&self, spare: u64, forget: impl Fn(FileNo)) -> PurgeReport {
        let _alone = self.purging.lock();
        let (tables, blobs, files) = {
            let mut retired = self.retired.lock();
            if retired.disabled > 0 {
                return PurgeReport::default();
            }
            let (free, held): (Vec<_>, Vec<_>) = std::mem::take(&mut retired.tables)
                .into_iter()
                .partition(|table| !table.is_read());
            retired.tables = held;
            let files = std::mem::take(&mut retired.files);
            let (read, unread): (Vec<_>, Vec<_>) = std::mem::take(&mut retired.blobs)
                .into_iter()
                .partition(RetiredBlob::is_read);
            retired.blobs = read;
            let going = (unread.iter().map(|b| (b.family, b.bytes)))
                .chain(free.iter().map(|t| (t.family, t.file.size)));
            retired.going.extend(going);
            (free, unread, files)
        };
        let mut purged = PurgeReport::default();
        for blob in blobs {
            self.delete(blob.path.clone(), &mut purged);
            self.is_gone();
            purged.blobs.push((blob.number, blob.path));
        }
        for table in tables {
            let table = ObsoleteTable {
                family: table.family,
                number: table.file.number,
                path: table.paths.of(&table.file),
                bytes: table.file.size,
            };
            if self.space.as_ref().is_some_and(|s| s.queues()) {
                let mut retired = self.retired.lock();
                retired.going.pop_front();
                retired.trash.push_back(table);
                self.waiting.store(retired.waiting(), Ordering::Release);
            } else if spare > 0 {
                forget(table.number);
                let mut retired = self.retired.lock();
                retired.going.pop_front();
                retired.spares.push(table);
                self.spare.fetch_add(1, Ordering::Relaxed);
            } else {
                self.delete_table(table, &mut purged);
            }
        }
        let surplus = self.retired.lock().take_surplus(spare);
        for table in surplus {
            self.delete_table(table, &mut purged);
            self.spare.fetch_sub(1, Ordering::Relaxed);
        }
        while let Some(table) = self.next_trash() {
            self.delete_table(table, &mut purged);
        }
        let mut any_archived = false;
        for path in files {
            match self.archive.as_ref().filter(|_| is_log(&path)) {
                None => self.delete(path, &mut purged),
                Some(archive) => {
                    any_archived = true;
                    if let Err(e) = archive.take(&path)
                        && !e.is_not_found()
                    {
                        purged.failed.push((path, e));
                    }
                }
            }
        }
        if any_archived {
            self.purge_archive(&mut purged);
        }
        // Only now: a thread that finds nothing waiting takes it to be gone.
        let retired = self.retired.lock();
        self.waiting.store(retired.waiting(), Ordering::Release);
        drop(retired);
        purged
    }

    /// The first table in line, if its time has come.
    fn next_trash(&self) -> Option<ObsoleteTable> {
        let mut retired = self.retired.lock();
        let bytes = retired.trash.front()?.bytes;
        let now = self.env.clock.now_us();
        if let Some(space) = &self.space
            && !space.may_delete(bytes, now)
        {
            return None;
        }
        let table = retired.trash.pop_front()?;
        retired.going.push_back((table.family, table.bytes));
        self.waiting.store(retired.waiting(), Ordering::Release);
        Some(table)
    }

    /// Deletes the first of those that are going.
    fn delete_table(&self, table: ObsoleteTable, purged: &mut PurgeReport) {
        self.delete(table.path.clone(), purged);
        self.is_gone();
        purged.tables.push((table.number, table.path));
    }

    /// Notes that the first of those that are going is gone.
    fn is_gone(&self) {
        self.retired.lock().going.pop_front();
    }

    /// Returns whether it is time to look for archived logs that are too old or too many.
    pub(crate) fn is_archive_due(&self) -> bool {
        self.archive.as_ref().is_some_and(Archive::is_due)
    }

    /// Deletes them, when it is time to look for them.
    pub(crate) fn purge_archive_if_due(&self) -> PurgeReport {
        let mut purged = PurgeReport::default();
        if self.archive.as_ref().is_some_and(Archive::begin_if_due) && self.is_enabled() {
            self.purge_archive(&mut purged);
        }
        purged
    }

    fn purge_archive(&self, purged: &mut PurgeReport) {
        let Some(archive) = &self.archive else {
            return;
        };
        match archive.purge() {
            Ok(failed) => purged.failed.extend(failed),
            Err(e) => purged.failed.push((self.dir.clone(), e)),
        }
    }

    fn delete(&self, path: PathBuf, purged: &mut PurgeReport) {
        if let Err(e) = self.env.fs.remove_file(&path)
            && !e.is_not_found()
        {
            purged.failed.push((path, e));
        }
    }
}

fn is_log(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| parse_file_name(name.to_str()?))
        .is_some_and(|(kind, _)| kind == FileKind::Wal)
}

impl DeadFiles for ObsoleteFiles {
    fn bytes(&self) -> u64 {
        self.table_bytes()
    }

    fn trash_bytes(&self) -> u64 {
        let retired = self.retired.lock();
        retired.trash.iter().map(|t| t.bytes).sum()
    }
}
