//! The backups of a directory, as far as they were read, and the files that they have.
//!
//! Invariant: a file is in [`State::files`] exactly when a readable backup has it, with the number
//! of those that do.

use crate::meta::{MAX_META_BYTES, MetaFile, MetaText};
use crate::names::{self, META};
use crate::options::{BackupFileInfo, BackupInfo};
use esker::env::FileSystem;
use esker::{Env, Error, ErrorKind, Result};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// A file that a readable backup has.
#[derive(Clone, Debug)]
pub(crate) struct KnownFile {
    /// How many readable backups have it.
    pub(crate) refs: u32,
    /// Its bytes: what its name says, or what there were when it was looked at.
    pub(crate) size: u64,
    /// Its checksum, where backups agree on one.
    pub(crate) crc32c: Option<u32>,
    /// True if two backups say different checksums: one of them has a damaged meta file.
    pub(crate) is_disputed: bool,
}

/// A file of one backup.
#[derive(Clone, Debug)]
pub(crate) struct BackupFile {
    pub(crate) name: String,
    /// The checksum in this backup's metadata.
    pub(crate) crc32c: Option<u32>,
}

/// A readable backup.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backup {
    pub(crate) timestamp: u64,
    pub(crate) sequence: u64,
    pub(crate) app_metadata: Vec<u8>,
    /// Its files; each is in [`State::files`].
    pub(crate) files: Vec<BackupFile>,
    pub(crate) excluded: Vec<String>,
}

/// Contents of a backup directory.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) backups: BTreeMap<u32, Backup>,
    /// Backups that cannot be used, and why.
    pub(crate) corrupt: BTreeMap<u32, Error>,
    pub(crate) files: HashMap<String, KnownFile>,
    /// Backups that were not looked at, since enough others were.
    pub(crate) unopened: Vec<u32>,
    /// True if something may have been left behind that [`crate::collect`] removes.
    pub(crate) may_have_garbage: bool,
}

/// The numbers of the backups whose meta files are there.
pub(crate) fn ids_on_disk(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<u32>> {
    let meta = dir.join(META);
    let entries = fs.read_dir(&meta).map_err(|e| {
        if e.is_not_found() {
            Error::not_found(format!("{} is missing", meta.display()))
        } else {
            e
        }
    })?;
    let mut ids: Vec<u32> = entries
        .iter()
        .filter(|e| e.is_file)
        .filter_map(|e| names::parse_id(&e.name))
        .collect();
    ids.sort_unstable();
    Ok(ids)
}

/// Where the meta file of backup `id` is.
pub(crate) fn meta_path(dir: &Path, id: u32) -> PathBuf {
    dir.join(META).join(id.to_string())
}

impl State {
    /// Takes in what changed on disk: backups that came, and backups that went. Of those that are
    /// new, at most `limit` readable ones are read, newest first.
    pub(crate) fn refresh(&mut self, env: &Env, dir: &Path, limit: usize) -> Result<()> {
        let ids = ids_on_disk(&*env.fs, dir)?;
        let gone: Vec<u32> = self
            .backups
            .keys()
            .filter(|id| ids.binary_search(id).is_err())
            .copied()
            .collect();
        for id in gone {
            self.forget(id);
        }
        self.corrupt.retain(|id, _| ids.binary_search(id).is_ok());
        self.unopened.clear();
        let mut read = 0;
        for &id in ids.iter().rev() {
            if self.backups.contains_key(&id) {
                continue;
            }
            if read == limit {
                self.unopened.push(id);
                continue;
            }
            match self.load(env, dir, id) {
                Ok(()) => {
                    self.corrupt.remove(&id);
                    read += 1;
                }
                Err(e) if matches!(e.kind(), ErrorKind::Corruption | ErrorKind::NotSupported) => {
                    self.corrupt.insert(id, e);
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Reads backup `id`.
    fn load(&mut self, env: &Env, dir: &Path, id: u32) -> Result<()> {
        let path = meta_path(dir, id);
        let bytes = env.fs.read_all(&path, MAX_META_BYTES)?;
        let meta = MetaText::parse(&bytes).map_err(|e| e.with_file(&path))?;
        let mut files = Vec::with_capacity(meta.files.len());
        let mut seen = HashSet::new();
        for file in meta.files {
            let size = self
                .checked_size(env, dir, id, &file)
                .map_err(|e| e.with_file(&path))?;
            if !seen.insert(file.name.clone()) {
                return Err(
                    Error::corruption(format!("{} is listed twice", file.name)).with_file(&path)
                );
            }
            files.push((file, size));
        }
        let backup = Backup {
            timestamp: meta.timestamp,
            sequence: meta.sequence,
            app_metadata: meta.app_metadata,
            files: Vec::new(),
            excluded: meta.excluded,
        };
        self.add(id, backup, files);
        Ok(())
    }

    /// The bytes that a file of backup `id` should have.
    fn checked_size(&self, env: &Env, dir: &Path, id: u32, file: &MetaFile) -> Result<u64> {
        let name = names::parse(&file.name)?;
        if name.owner.is_some_and(|owner| owner != id) {
            return Err(Error::corruption(format!(
                "{} belongs to another backup",
                file.name
            )));
        }
        let size = match self.files.get(&file.name) {
            Some(known) => known.size,
            None => {
                let found = size_on_disk(env, dir, &file.name)?;
                name.size.unwrap_or(found)
            }
        };
        match file.size {
            Some(expected) if expected != size => Err(Error::corruption(format!(
                "For file {} expected size {expected} but found size {size}",
                file.name
            ))),
            _ => Ok(size),
        }
    }

    /// Takes in backup `id` with `files` and their sizes.
    pub(crate) fn add(&mut self, id: u32, mut backup: Backup, files: Vec<(MetaFile, u64)>) {
        for (file, size) in files {
            let known = self.files.entry(file.name.clone()).or_insert(KnownFile {
                refs: 0,
                size,
                crc32c: file.crc32c,
                is_disputed: false,
            });
            known.refs += 1;
            known.size = size;
            if let (Some(a), Some(b)) = (known.crc32c, file.crc32c) {
                known.is_disputed |= a != b;
            }
            known.crc32c = known.crc32c.or(file.crc32c);
            backup.files.push(BackupFile {
                name: file.name,
                crc32c: file.crc32c,
            });
        }
        self.backups.insert(id, backup);
    }

    /// Forgets backup `id`; the files that no other readable backup has come back.
    pub(crate) fn forget(&mut self, id: u32) -> Vec<String> {
        let mut unused = Vec::new();
        self.corrupt.remove(&id);
        let Some(backup) = self.backups.remove(&id) else {
            return unused;
        };
        for BackupFile { name, .. } in backup.files {
            let Some(known) = self.files.get_mut(&name) else {
                continue;
            };
            known.refs -= 1;
            if known.refs == 0 {
                self.files.remove(&name);
                unused.push(name);
            }
        }
        unused
    }

    /// Returns whether a file that no readable backup has may yet be needed by one that cannot be
    /// read.
    pub(crate) fn is_in_doubt(&self) -> bool {
        !self.corrupt.is_empty() || !self.unopened.is_empty()
    }

    /// The number of the newest readable backup.
    pub(crate) fn latest(&self) -> Option<u32> {
        self.backups.last_key_value().map(|(id, _)| *id)
    }

    /// A readable backup: `NotFound` when there is none with that number, and why it cannot be
    /// read.
    pub(crate) fn backup(&self, id: u32) -> Result<&Backup> {
        if let Some(e) = self.corrupt.get(&id) {
            return Err(e.clone());
        }
        self.backups
            .get(&id)
            .ok_or_else(|| Error::not_found("Backup not found"))
    }

    /// Describes backup `id`.
    pub(crate) fn info(&self, id: u32, backup: &Backup) -> BackupInfo {
        let file_details: Vec<_> = backup
            .files
            .iter()
            .filter_map(|file| {
                let known = self.files.get(&file.name)?;
                Some(BackupFileInfo {
                    relative_filename: file.name.clone(),
                    size: known.size,
                    crc32c: file.crc32c,
                })
            })
            .collect();
        BackupInfo {
            backup_id: id,
            timestamp: backup.timestamp,
            size: file_details.iter().map(|f| f.size).sum(),
            number_files: u32::try_from(file_details.len()).unwrap_or(u32::MAX),
            app_metadata: backup.app_metadata.clone(),
            sequence_number: backup.sequence,
            file_details,
            excluded_files: backup.excluded.clone(),
        }
    }
}

/// The bytes of a file that a backup lists.
fn size_on_disk(env: &Env, dir: &Path, name: &str) -> Result<u64> {
    let path = dir.join(name);
    match env.fs.metadata(&path) {
        Ok(metadata) => Ok(metadata.len),
        Err(e) if e.is_not_found() => {
            Err(Error::corruption("Pathname in meta file not found on disk").with_file(path))
        }
        Err(e) => Err(e),
    }
}
