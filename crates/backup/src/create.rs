//! Making a backup: which files, under which names, which of them are there already; copying; the
//! meta file last.
//!
//! ```text
//! list files -> name shared ones -> copy under temporary names -> rename -> sync directories ->
//! meta/N -> sync meta/
//! ```
//! Whatever happens before the last rename leaves nothing that counts as a backup. After a failure,
//! what was made is removed at once; after a crash, by the next collection.

use crate::copy::{CopyTasks, Source, Task, stopped};
use crate::inner::Inner;
use crate::meta::{LATEST_SCHEMA, MAX_APP_METADATA, MetaFile, MetaText};
use crate::names::{self, META, PRIVATE, SHARED, SHARED_CHECKSUM};
use crate::options::CreateBackupOptions;
use crate::state::{Backup, KnownFile, State, ids_on_disk, meta_path};
use esker::env::WriteOptions as FileWriteOptions;
use esker::file_name::CURRENT;
use esker::options::Temperature;
use esker::{ClosedDb, Db, Env, Error, FileKind, LiveFile, Result, read_table_properties};
use esker_sync::Arc;

/// The function of checksums that RocksDB stores for whole files and that backups use too.
const CRC32C_FUNCTION: &str = "FileChecksumCrc32c";
/// How often a backup begins anew when a file went away while it was made.
const TRIES: usize = 8;

/// The database that is backed up.
#[derive(Clone, Copy)]
pub(crate) enum BackupSource<'a> {
    /// One that goes on.
    Open(&'a Db),
    /// One that nobody has open.
    Closed(&'a ClosedDb),
}

impl<'a> BackupSource<'a> {
    fn env(self) -> &'a Env {
        match self {
            BackupSource::Open(db) => db.env(),
            BackupSource::Closed(db) => db.env(),
        }
    }

    /// Tells whether another process may delete its files.
    fn is_another_to_change(self) -> bool {
        matches!(self, BackupSource::Open(db) if db.is_read_only())
    }

    fn sequence(self) -> u64 {
        match self {
            BackupSource::Open(db) => db.latest_sequence_number(),
            BackupSource::Closed(db) => db.latest_sequence_number(),
        }
    }

    /// Its files, which stay as long as what is returned with them.
    fn files(self, with_logs: bool) -> Result<(Vec<LiveFile>, Option<DeletionGuard<'a>>)> {
        match self {
            BackupSource::Open(db) => {
                let keep = DeletionGuard::new(db);
                let files = if with_logs {
                    db.live_files()?
                } else {
                    db.live_files_without_logs()?
                };
                Ok((files, Some(keep)))
            }
            BackupSource::Closed(db) => {
                let files = if with_logs {
                    db.files().to_vec()
                } else {
                    db.files_without_logs()?
                };
                Ok((files, None))
            }
        }
    }
}

/// Deletes no files of the database while it lives.
struct DeletionGuard<'a>(&'a Db);

impl<'a> DeletionGuard<'a> {
    fn new(db: &'a Db) -> Self {
        db.disable_file_deletions();
        DeletionGuard(db)
    }
}

impl Drop for DeletionGuard<'_> {
    fn drop(&mut self) {
        self.0.enable_file_deletions(false);
    }
}

/// A file on its way into the backup.
#[derive(Debug)]
struct Item {
    /// Its name in the backup directory.
    name: String,
    source: Source,
    size: u64,
    /// Its checksum, once known.
    crc32c: Option<u32>,
    temperature: Option<String>,
    is_shared: bool,
    /// True if it must be copied: no backup has it, or the copy that is there is damaged.
    is_new: bool,
}

impl Item {
    fn task(&self, target: Option<String>, inner: &Inner) -> Task {
        Task {
            source: self.source.clone(),
            target: target.map(|t| inner.dir.join(t)),
            expected: self.crc32c,
        }
    }

    /// The name that it is written under.
    fn target(&self) -> String {
        if self.is_shared {
            names::temporary(&self.name)
        } else {
            self.name.clone()
        }
    }
}

impl Inner {
    /// Makes a backup of `db`.
    pub(crate) fn create(
        &self,
        state: &mut State,
        db: BackupSource<'_>,
        options: &CreateBackupOptions,
        app_metadata: &[u8],
    ) -> Result<u32> {
        if state.may_have_garbage {
            self.collect(state)?;
        }
        let id = self.free_id()?;
        self.env
            .fs
            .create_dir_all(&self.dir.join(names::private_dir(id)))?;
        let mut made = self.make(state, id, db, options, app_metadata);
        for _ in 0..TRIES {
            let is_gone = made.as_ref().is_err_and(Error::is_not_found);
            if !(is_gone && db.is_another_to_change()) {
                break;
            }
            made = self.make(state, id, db, options, app_metadata);
        }
        if made.is_err() {
            self.undo(state, id);
        }
        made.map(|()| id)
    }

    /// Checks the request.
    pub(crate) fn check(&self, options: &CreateBackupOptions, app_metadata: &[u8]) -> Result<()> {
        if app_metadata.len() > MAX_APP_METADATA {
            return Err(Error::invalid_argument("App metadata too large"));
        }
        // Before anything is copied.
        MetaText::default().print(self.options.schema_version)?;
        if options.exclude_files_callback.is_some() && self.options.schema_version < LATEST_SCHEMA {
            return Err(Error::invalid_argument(
                "exclude_files_callback requires schema_version >= 2",
            ));
        }
        if options.atomic_flush && options.flush_before_backup && !self.options.backup_log_files {
            return Err(Error::not_supported(
                "atomic_flush: families are flushed one by one, and agree only with backup_log_files",
            ));
        }
        Ok(())
    }

    /// A number that no backup has, and none had whose files are still there.
    fn free_id(&self) -> Result<u32> {
        let newest = ids_on_disk(&*self.env.fs, &self.dir)?.last().copied();
        let mut id = newest.unwrap_or(0);
        loop {
            id = id
                .checked_add(1)
                .ok_or_else(|| Error::aborted("there are no numbers left for backups"))?;
            if !self.env.fs.exists(&self.dir.join(names::private_dir(id)))? {
                return Ok(id);
            }
        }
    }

    fn make(
        &self,
        state: &mut State,
        id: u32,
        db: BackupSource<'_>,
        options: &CreateBackupOptions,
        app_metadata: &[u8],
    ) -> Result<()> {
        let timestamp = self.env.clock.unix_us() / 1_000_000;
        let mut crew = self.crew(&self.backup_limiter, options.progress_callback.clone());
        crew.from = db.env().clone();
        crew.stop = Arc::clone(&self.stop);
        let sequence = db.sequence();
        match db {
            // What a database that was opened for reading has in memory is in its logs.
            BackupSource::Open(db) if db.is_read_only() && self.options.backup_log_files => {}
            BackupSource::Open(db) if options.flush_before_backup => db.flush()?,
            BackupSource::Closed(_) if options.flush_before_backup => {
                return Err(Error::invalid_argument(
                    "flush_before_backup: a database that is not open is backed up as it is",
                ));
            }
            _ => {}
        }
        let (files, keep) = db.files(self.options.backup_log_files)?;
        let mut items = self.items(id, &crew, files)?;
        self.look_for_copies(state, &crew, &mut items)?;
        let excluded = exclude(options, &mut items);
        self.copy(&crew, &mut items)?;
        drop(keep);
        if let BackupSource::Closed(db) = db {
            db.check()?;
        }
        self.put_in_place(id, &items)?;
        self.verify_logs(id)?;
        let files = |item: Item| {
            let file = MetaFile {
                name: item.name,
                crc32c: item.crc32c,
                size: None,
                temperature: item.temperature,
            };
            (file, item.size)
        };
        let files: Vec<_> = items.into_iter().map(files).collect();
        let meta = MetaText {
            timestamp,
            sequence,
            app_metadata: app_metadata.to_vec(),
            files: files.iter().map(|(f, _)| f.clone()).collect(),
            excluded: excluded.clone(),
        };
        let backup = Backup {
            timestamp,
            sequence,
            app_metadata: app_metadata.to_vec(),
            files: Vec::new(),
            excluded,
        };
        self.store(id, &meta)?;
        state.add(id, backup, files);
        Ok(())
    }

    /// Lists the files of the backup, by name.
    fn items(&self, id: u32, crew: &CopyTasks, files: Vec<LiveFile>) -> Result<Vec<Item>> {
        let mut items = Vec::with_capacity(files.len() + 1);
        for file in files {
            if crew.stop.load(esker_sync::atomic::Ordering::Acquire) {
                return Err(stopped());
            }
            if file.kind == FileKind::Manifest {
                let contents = format!("{}\n", file.name).into_bytes();
                items.push(Item {
                    name: format!("{}/{CURRENT}", names::private_dir(id)),
                    size: contents.len() as u64,
                    source: Source::Bytes(contents),
                    crc32c: None,
                    temperature: None,
                    is_shared: false,
                    is_new: true,
                });
            }
            items.push(self.item(id, crew, file)?);
        }
        Ok(items)
    }

    fn item(&self, id: u32, crew: &CopyTasks, file: LiveFile) -> Result<Item> {
        let is_shared =
            self.options.share_table_files && matches!(file.kind, FileKind::Table | FileKind::Blob);
        let crc32c = match <[u8; 4]>::try_from(&file.file_checksum[..]) {
            Ok(bytes) if file.file_checksum_func_name == CRC32C_FUNCTION => {
                Some(u32::from_be_bytes(bytes))
            }
            _ => None,
        };
        let temperature = Temperature::from_number(file.temperature)
            .filter(|t| *t != Temperature::Unknown)
            .map(|t| t.name().to_owned());
        let mut item = Item {
            name: String::new(),
            source: match &file.replacement {
                Some(contents) => Source::Bytes(contents.clone()),
                None => Source::File {
                    path: file.path.clone(),
                    bytes: file.bytes,
                    is_whole: file.is_immutable,
                },
            },
            size: file.bytes,
            crc32c,
            temperature,
            is_shared,
            is_new: true,
        };
        item.name = match (is_shared, self.options.share_files_with_checksum) {
            (false, _) => format!("{}/{}", names::private_dir(id), file.name),
            (true, false) => format!("{SHARED}/{}", file.name),
            (true, true) => self.name_with_checksum(crew, &file, &mut item)?,
        };
        Ok(item)
    }

    fn name_with_checksum(
        &self,
        crew: &CopyTasks,
        file: &LiveFile,
        item: &mut Item,
    ) -> Result<String> {
        let naming = self.options.share_files_with_checksum_naming;
        if file.kind == FileKind::Table && !naming.is_legacy() {
            let session = read_table_properties(&crew.from, &file.path)?.db_session_id;
            if names::is_usable_session(&session) {
                return Ok(names::after_session(
                    &file.name, &session, file.bytes, naming,
                ));
            }
        }
        let crc32c = self.checksum(crew, item)?;
        Ok(names::after_checksum(&file.name, crc32c, file.bytes))
    }

    /// The checksum of what is to be backed up, which is read when that is not known yet.
    fn checksum(&self, crew: &CopyTasks, item: &mut Item) -> Result<u32> {
        if let Some(crc32c) = item.crc32c {
            return Ok(crc32c);
        }
        let taken = crew.run(vec![item.task(None, self)])?;
        let crc32c = taken.first().map_or(0, |t| t.crc32c);
        item.crc32c = Some(crc32c);
        Ok(crc32c)
    }

    /// Finds out which shared files need not be copied.
    fn look_for_copies(&self, state: &State, crew: &CopyTasks, items: &mut [Item]) -> Result<()> {
        for item in items.iter_mut().filter(|i| i.is_shared) {
            let path = self.dir.join(&item.name);
            let size = match self.env.fs.metadata(&path) {
                Ok(metadata) => Some(metadata.len),
                Err(e) if e.is_not_found() => None,
                Err(e) => return Err(e),
            };
            // Under a plain name, another database's file may be there.
            let is_plain = !self.options.share_files_with_checksum;
            match state.files.get(&item.name) {
                Some(known) => self.match_known(crew, item, known, size, is_plain)?,
                None if is_plain && state.is_in_doubt() && size.is_some() => {
                    self.match_unknown(crew, item, size.unwrap_or(0))?;
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Another backup has a file of this name.
    fn match_known(
        &self,
        crew: &CopyTasks,
        item: &mut Item,
        known: &KnownFile,
        size: Option<u64>,
        is_plain: bool,
    ) -> Result<()> {
        if is_plain || known.is_disputed || known.crc32c.is_none() {
            self.checksum(crew, item)?;
        }
        if is_plain && (known.size != item.size || known.is_disputed || known.crc32c != item.crc32c)
        {
            return Err(Error::corruption(format!(
                "mismatch for existing backup file: {} bytes{} in the backup, {} bytes{} in the database",
                known.size,
                with_checksum(known.crc32c),
                item.size,
                with_checksum(item.crc32c)
            ))
            .with_file(self.dir.join(&item.name))
            .with_hint("if the database's file is sound, delete old backups or back up to a different directory"));
        }
        // What is gone or cut off is copied again, for all backups that have it, and must be what
        // they had.
        item.is_new = size != Some(item.size) || known.is_disputed;
        if !known.is_disputed {
            item.crc32c = item.crc32c.or(known.crc32c);
        }
        Ok(())
    }

    /// A backup that cannot be read may have a file of this name.
    fn match_unknown(&self, crew: &CopyTasks, item: &mut Item, size: u64) -> Result<()> {
        let ours = self.checksum(crew, item)?;
        let there = Task {
            source: Source::File {
                path: self.dir.join(&item.name),
                bytes: size,
                is_whole: true,
            },
            target: None,
            expected: None,
        };
        let theirs = CopyTasks {
            from: self.env.clone(),
            ..crew.clone()
        }
        .run(vec![there])?;
        if size != item.size || theirs.first().is_none_or(|t| t.crc32c != ours) {
            return Err(Error::corruption(
                "a backup that cannot be read may need the file that is there",
            )
            .with_file(self.dir.join(&item.name))
            .with_hint("delete the unreadable backup, or back up to a different directory"));
        }
        item.is_new = false;
        Ok(())
    }

    fn copy(&self, crew: &CopyTasks, items: &mut [Item]) -> Result<()> {
        let new: Vec<&mut Item> = items.iter_mut().filter(|i| i.is_new).collect();
        let tasks = new.iter().map(|i| i.task(Some(i.target()), self));
        let taken = crew.run(tasks.collect())?;
        for (item, taken) in new.into_iter().zip(taken) {
            item.crc32c = Some(taken.crc32c);
        }
        Ok(())
    }

    /// Gives shared files their names, and makes everything survive power loss.
    fn put_in_place(&self, id: u32, items: &[Item]) -> Result<()> {
        for item in items.iter().filter(|i| i.is_new && i.is_shared) {
            let (from, to) = (self.dir.join(item.target()), self.dir.join(&item.name));
            self.env.fs.rename(&from, &to)?;
        }
        if self.options.share_table_files {
            self.sync_dir(if self.options.share_files_with_checksum {
                SHARED_CHECKSUM
            } else {
                SHARED
            })?;
        }
        self.sync_dir(names::private_dir(id))?;
        self.sync_dir(PRIVATE)?;
        self.sync_dir("")
    }

    /// Writes the meta file: from here on the backup exists.
    fn store(&self, id: u32, meta: &MetaText) -> Result<()> {
        let text = meta.print(self.options.schema_version)?;
        let temporary = self.dir.join(names::temporary(&format!("{META}/{id}")));
        let fs = &self.env.fs;
        let mut file = fs.create(&temporary, FileWriteOptions::default())?;
        file.append(text.as_bytes())?;
        if self.options.sync {
            file.sync()?;
        }
        file.close()?;
        fs.rename(&temporary, &meta_path(&self.dir, id))?;
        self.sync_dir(META)
    }

    /// Removes what a backup that failed has made.
    fn undo(&self, state: &mut State, id: u32) {
        let meta = meta_path(&self.dir, id);
        let is_gone = match self.env.fs.remove_file(&meta) {
            Ok(()) => true,
            Err(e) => e.is_not_found(),
        };
        state.forget(id);
        state.may_have_garbage = true;
        if is_gone {
            // What cannot be removed now is removed by a later collection.
            let _ = self.collect(state);
        }
    }
}

fn with_checksum(crc32c: Option<u32>) -> String {
    crc32c.map_or_else(String::new, |sum| format!(" with checksum {sum:08x}"))
}

/// Takes out what the callback does not want, and returns the names.
fn exclude(options: &CreateBackupOptions, items: &mut Vec<Item>) -> Vec<String> {
    let mut excluded = Vec::new();
    if let Some(callback) = &options.exclude_files_callback {
        items.retain(|item| {
            let is_asked = item.is_new && item.is_shared && item.name.starts_with(SHARED_CHECKSUM);
            let goes = is_asked && callback.call(&item.name);
            if goes {
                excluded.push(item.name.clone());
            }
            !goes
        });
    }
    excluded
}
