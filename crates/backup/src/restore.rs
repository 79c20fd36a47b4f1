//! Restoring a database from a backup.
//!
//! First everything that can be found wrong without changing anything; then CURRENT goes, so that
//! there is no database until the new one is complete; then the rest of the old one; then the
//! copies; CURRENT comes last.

use crate::copy::{CopiedBytes, CopyTasks, Source, Task};
use crate::inner::Inner;
use crate::names::{self, BackupFileName};
use crate::options::{RestoreMode, RestoreOptions, ShareFilesNaming};
use crate::state::State;
use crate::verify::ExpectedFile;
use esker::env::explain_lock;
use esker::file_name::{ARCHIVE_DIR, CURRENT, LOCK, parse_file_name};
use esker::{Error, FileKind, Result, read_table_properties};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The name of CURRENT until the rest is complete.
const NEW_CURRENT: &str = "CURRENT.tmp";

/// A file of the backup, and its name in the database.
#[derive(Debug)]
struct FileToRestore {
    file: ExpectedFile,
    name: BackupFileName,
}

/// The files of the database that stay.
type Kept = BTreeSet<(FileKind, u64)>;

impl Inner {
    /// Restores backup `id`.
    pub(crate) fn restore(
        &self,
        state: &State,
        id: u32,
        db_dir: &Path,
        wal_dir: &Path,
        options: &RestoreOptions,
    ) -> Result<()> {
        let fs = &self.db_env.fs;
        let mut wanted = self.wanted(state, id)?;
        let mut missing = self.excluded(state, id, &mut wanted)?;
        self.make_dir(&**fs, db_dir)?;
        self.make_dir(&**fs, wal_dir)?;
        let lock = fs.lock(&db_dir.join(LOCK));
        let _lock = lock.map_err(|e| explain_lock(e, db_dir))?;
        let mut crew = self.crew(&self.restore_limiter, None);
        crew.to = self.db_env.clone();
        let kept = match options.mode {
            RestoreMode::PurgeAllFiles => Kept::new(),
            RestoreMode::KeepLatestDbSessionIdFiles => {
                self.same_session(db_dir, &wanted, &mut missing)?
            }
            RestoreMode::VerifyChecksum => self.same_checksum(&crew, db_dir, &wanted)?,
        };
        if let Some(name) = missing.first() {
            return Err(Error::invalid_argument(format!(
                "Excluded file {name} (one amongst {}) is in no other backup here",
                missing.len()
            ))
            .with_hint(
                "restore over a database that has it, and keep files of the latest session",
            ));
        }
        self.clear(db_dir, wal_dir, options.keep_log_files, &kept)?;
        let tasks = self.tasks(&wanted, db_dir, wal_dir, options.keep_log_files, &kept)?;
        crew.run(tasks)?;
        self.sync_db_dir(wal_dir)?;
        self.sync_db_dir(db_dir)?;
        fs.rename(&db_dir.join(NEW_CURRENT), &db_dir.join(CURRENT))?;
        self.sync_db_dir(db_dir)
    }

    fn sync_db_dir(&self, dir: &Path) -> Result<()> {
        if self.options.sync {
            self.db_env.fs.sync_dir(dir)
        } else {
            Ok(())
        }
    }

    /// The files of the backup, all there with their sizes.
    fn wanted(&self, state: &State, id: u32) -> Result<Vec<FileToRestore>> {
        let files = self.sized_files(state, id)?.into_iter();
        let wanted = files.map(|file| {
            let name = names::parse(&file.name)?;
            Ok(FileToRestore { file, name })
        });
        let wanted = wanted.collect::<Result<Vec<_>>>()?;
        for (kind, what) in [
            (FileKind::Current, "CURRENT"),
            (FileKind::Manifest, "MANIFEST"),
        ] {
            if wanted.iter().filter(|w| w.name.kind == kind).count() != 1 {
                return Err(Error::corruption(format!(
                    "backup {id} has no {what}, or several"
                )));
            }
        }
        let mut seen = BTreeSet::new();
        for w in &wanted {
            if !seen.insert(&w.name.db_name) {
                return Err(Error::corruption(format!(
                    "backup {id} has {} twice",
                    w.name.db_name
                )));
            }
        }
        Ok(wanted)
    }

    /// Adds what was left out of the backup and another one has; returns what none has.
    fn excluded(
        &self,
        state: &State,
        id: u32,
        wanted: &mut Vec<FileToRestore>,
    ) -> Result<Vec<String>> {
        let mut missing = Vec::new();
        for name in &state.backup(id)?.excluded {
            let parsed = names::parse(name)?;
            match state.files.get(name) {
                Some(known) => wanted.push(FileToRestore {
                    file: ExpectedFile {
                        name: name.clone(),
                        path: self.dir.join(name),
                        size: known.size,
                        crc32c: known.crc32c,
                    },
                    name: parsed,
                }),
                None => missing.push(name.clone()),
            }
        }
        Ok(missing)
    }

    /// Tables of the database that the same session wrote as the backup's. Names of files that were
    /// left out of the backup go from `missing` when they are there.
    fn same_session(
        &self,
        db_dir: &Path,
        wanted: &[FileToRestore],
        missing: &mut Vec<String>,
    ) -> Result<Kept> {
        let mut kept = Kept::new();
        let of_number: BTreeMap<u64, &FileToRestore> = wanted
            .iter()
            .filter(|w| w.name.kind == FileKind::Table)
            .map(|w| (w.name.number, w))
            .collect();
        for (name, number) in self.files_of(db_dir, FileKind::Table)? {
            let path = db_dir.join(&name);
            let size = self.db_env.fs.metadata(&path)?.len;
            // A table that cannot be read is not kept.
            let Ok(properties) = read_table_properties(&self.db_env, &path) else {
                continue;
            };
            let session = properties.db_session_id;
            if !names::is_usable_session(&session) {
                continue;
            }
            let named = |naming| names::after_session(&name, &session, size, naming);
            let with_size = named(ShareFilesNaming::default());
            let without = named(ShareFilesNaming::USE_DB_SESSION_ID);
            let is_it = |other: &str| other == with_size || other == without;
            let in_backup = of_number
                .get(&number)
                .is_some_and(|w| is_it(&w.file.name) && w.file.size == size);
            let excluded = missing.iter().position(|m| is_it(m));
            if let Some(at) = excluded {
                missing.remove(at);
            }
            if in_backup || excluded.is_some() {
                kept.insert((FileKind::Table, number));
            }
        }
        Ok(kept)
    }

    /// Tables and blob files of the database that are, byte by byte, the backup's.
    fn same_checksum(
        &self,
        crew: &CopyTasks,
        db_dir: &Path,
        wanted: &[FileToRestore],
    ) -> Result<Kept> {
        let mut candidates = Vec::new();
        for kind in [FileKind::Table, FileKind::Blob] {
            for (name, number) in self.files_of(db_dir, kind)? {
                let size = self.db_env.fs.metadata(&db_dir.join(&name))?.len;
                let same = wanted
                    .iter()
                    .find(|w| w.name.db_name == name && w.file.size == size);
                candidates.extend(same.map(|w| (kind, number, w)));
            }
        }
        let read = |path: &Path, bytes: u64| Task {
            source: Source::File {
                path: path.to_owned(),
                bytes,
                is_whole: true,
            },
            target: None,
            expected: None,
        };
        let in_db = CopyTasks {
            from: self.db_env.clone(),
            ..crew.clone()
        };
        let theirs = in_db.run_each(
            candidates
                .iter()
                .map(|(_, _, w)| read(&db_dir.join(&w.name.db_name), w.file.size))
                .collect(),
        );
        let mut kept = Kept::new();
        for ((kind, number, w), there) in candidates.into_iter().zip(theirs) {
            let expected = match w.file.crc32c {
                Some(crc32c) => Some(crc32c),
                None => {
                    let ours = crew.run(vec![read(&w.file.path, w.file.size)])?;
                    ours.first().map(|t: &CopiedBytes| t.crc32c)
                }
            };
            if there.is_ok_and(|t| Some(t.crc32c) == expected) {
                kept.insert((kind, number));
            }
        }
        Ok(kept)
    }

    /// The files of `kind` in `dir`.
    fn files_of(&self, dir: &Path, kind: FileKind) -> Result<Vec<(String, u64)>> {
        let entries = self.db_env.fs.read_dir(dir)?.into_iter();
        Ok(entries
            .filter(|e| e.is_file)
            .filter_map(|e| match parse_file_name(&e.name) {
                Some((k, n)) if k == kind => Some((e.name, n.0)),
                _ => None,
            })
            .collect())
    }

    /// Removes the old database, except for what is kept. Names that are no database's stay, and so
    /// does the LOG.
    fn clear(&self, db_dir: &Path, wal_dir: &Path, keep_logs: bool, kept: &Kept) -> Result<()> {
        let fs = &self.db_env.fs;
        for name in [CURRENT, NEW_CURRENT] {
            match fs.remove_file(&db_dir.join(name)) {
                Err(e) if !e.is_not_found() => return Err(e),
                _ => {}
            }
        }
        // From here on there is no database.
        self.sync_db_dir(db_dir)?;
        for entry in fs.read_dir(db_dir)?.iter().filter(|e| e.is_file) {
            let Some((kind, number)) = parse_file_name(&entry.name) else {
                continue;
            };
            let stays = match kind {
                FileKind::Wal => keep_logs,
                FileKind::Lock | FileKind::InfoLog => true,
                _ => kept.contains(&(kind, number.0)),
            };
            if !stays {
                fs.remove_file(&db_dir.join(&entry.name))?;
            }
        }
        let archive = wal_dir.join(ARCHIVE_DIR);
        let archived = if fs.exists(&archive)? {
            self.files_of(&archive, FileKind::Wal)?
        } else {
            Vec::new()
        };
        if keep_logs {
            for (name, _) in archived {
                fs.rename(&archive.join(&name), &wal_dir.join(&name))?;
            }
            return Ok(());
        }
        for (name, _) in archived {
            fs.remove_file(&archive.join(name))?;
        }
        for (name, _) in self.files_of(wal_dir, FileKind::Wal)? {
            fs.remove_file(&wal_dir.join(name))?;
        }
        Ok(())
    }

    /// Lists the copies to make.
    fn tasks(
        &self,
        wanted: &[FileToRestore],
        db_dir: &Path,
        wal_dir: &Path,
        keep_logs: bool,
        kept: &Kept,
    ) -> Result<Vec<Task>> {
        let mut tasks = Vec::new();
        for FileToRestore { file, name } in wanted {
            if kept.contains(&(name.kind, name.number)) {
                continue;
            }
            let target = match name.kind {
                FileKind::Wal => wal_dir.join(&name.db_name),
                FileKind::Current => db_dir.join(NEW_CURRENT),
                _ => db_dir.join(&name.db_name),
            };
            if name.kind == FileKind::Wal && keep_logs && self.db_env.fs.exists(&target)? {
                continue;
            }
            tasks.push(Task {
                source: Source::File {
                    path: file.path.clone(),
                    bytes: file.size,
                    is_whole: true,
                },
                target: Some(target),
                expected: file.crc32c,
            });
        }
        Ok(tasks)
    }
}
