//! The list of files that the contents of a database need: what a checkpoint shares and a backup
//! copies.
//!
//! The database may be open; or closed: then the MANIFEST alone says what belongs to it.
//! Thread-safety: the list is a value, made between two writes and two changes of the tree.

use super::Db;
use crate::options::Options;
use crate::options::text::without_paths;
use crate::options::{DbOptions, LoadRules, LoadedOptions};
use crate::recover::fold::{ManifestContents, fold};
use crate::recover::{evidence, load_latest_options, sweep};
use crate::tree::{TablePaths, paths};
use esker_env::{
    Env, FileSystem, MemFs, ReadOptions as FileReadOptions, WriteOptions as FileWriteOptions,
};
use esker_files::current;
use esker_files::manifest::ManifestWriter;
use esker_format::FileNo;
use esker_format::edit::{KnownLogs, VersionEdit};
use esker_format::file_name::{self, FileKind, parse_file_name};
use esker_status::{Error, Result};
use esker_sync::Arc;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An OPTIONS file is not larger.
const LARGEST_OPTIONS: u64 = 1 << 30;

/// Where tables are, and how logs are read, is to be known whatever else an OPTIONS file says.
pub(super) const LENIENT: LoadRules = LoadRules {
    ignore_unknown: true,
    strict: false,
};

/// A file that the present contents of a database need.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveFile {
    /// Its name in the database's directory.
    pub name: String,
    /// Where it is: logs may lie in `wal_dir`.
    pub path: PathBuf,
    /// Its bytes that count. A MANIFEST or a log may grow meanwhile: what comes after is not part
    /// of the contents.
    pub bytes: u64,
    /// True if its bytes never change, so that a link is as good as a copy.
    pub is_immutable: bool,
    /// The kind of file that its name says.
    pub kind: FileKind,
    /// The checksum of the whole file, when the MANIFEST has one.
    pub file_checksum: Vec<u8>,
    /// The function of that checksum; empty when there is none.
    pub file_checksum_func_name: String,
    /// Its temperature, as RocksDB numbers them.
    pub temperature: u8,
    /// Bytes that a copy of the database has under the name instead of the file's own: an OPTIONS
    /// file that names paths would lead the copy to the tables of this database.
    pub replacement: Option<Vec<u8>>,
}

impl LiveFile {
    pub(super) fn new(dir: &Path, name: String, bytes: u64, is_immutable: bool) -> Self {
        let kind = parse_file_name(&name).map_or(FileKind::Temp, |(kind, _)| kind);
        LiveFile {
            path: dir.join(&name),
            name,
            kind,
            bytes,
            is_immutable,
            file_checksum: Vec::new(),
            file_checksum_func_name: String::new(),
            temperature: 0,
            replacement: None,
        }
    }

    /// The OPTIONS file `name` of the database at `dir`; `has_paths` when tables lie outside of
    /// `dir`.
    fn options(env: &Env, dir: &Path, name: String, has_paths: bool) -> Result<Self> {
        let bytes = env.fs.metadata(&dir.join(&name))?.len;
        let mut file = LiveFile::new(dir, name, bytes, true);
        if has_paths {
            let text = env.fs.read_all(&file.path, LARGEST_OPTIONS)?;
            let text = without_paths(&String::from_utf8_lossy(&text)).into_bytes();
            file.bytes = text.len() as u64;
            file.replacement = Some(text);
        }
        Ok(file)
    }
}

impl Db {
    /// The files that the contents of the database need now: tables, blob files, the MANIFEST, logs
    /// and the newest OPTIONS. With [`Db::disable_file_deletions`] called before, they stay until
    /// [`Db::enable_file_deletions`].
    ///
    /// Of a database that was opened for reading, and of a secondary instance, they are those of
    /// its directory as it is now, logs included. Another process may have written to it since it
    /// was read, and may delete some of them later.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// use esker::FileKind;
    ///
    /// db.put("key", "value")?;
    /// db.flush()?;
    /// db.disable_file_deletions();
    /// let files = db.live_files()?;
    /// assert_eq!(files.iter().filter(|file| file.kind == FileKind::Table).count(), 1);
    /// assert!(files.iter().all(|file| file.path.starts_with(dir.path())));
    /// db.enable_file_deletions(false);
    /// # Ok(())
    /// # }
    /// ```
    pub fn live_files(&self) -> Result<Vec<LiveFile>> {
        let core = self.core();
        if core.admin.read_only {
            return self.settled(|| self.files_of_directory());
        }
        core.check_open_for_writes()?;
        let mut files = Vec::new();
        // Both locks: no write and no change of a tree comes between what is listed here.
        let mut log = core.writes.lock();
        core.reads.sequence.quiesce();
        core.writes.save(&mut log, false)?;
        core.trees
            .store
            .while_still(|manifest, bytes| -> Result<()> {
                for family in core.trees.families.all() {
                    let version = &family.view_guard().version;
                    for (_, file) in version.files() {
                        let path = core.trees.tables.path(&family.reading.paths, file)?;
                        let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
                        let dir = family.reading.paths.dir(file.path_id);
                        files.push(LiveFile {
                            file_checksum: file.file_checksum.clone(),
                            file_checksum_func_name: file.file_checksum_func_name.clone(),
                            temperature: file.temperature,
                            ..LiveFile::new(dir, name.unwrap_or_default(), file.size, true)
                        });
                    }
                    for blob in version.blob_files().values() {
                        let name = file_name::blob_name(blob.number);
                        let dir = family.reading.paths.first();
                        let bytes = core.services.env.fs.metadata(&dir.join(&name))?.len;
                        files.push(LiveFile {
                            file_checksum: blob.checksum_value.clone(),
                            file_checksum_func_name: blob.checksum_method.clone(),
                            ..LiveFile::new(dir, name, bytes, true)
                        });
                    }
                }
                let name = file_name::manifest_name(manifest);
                files.push(LiveFile::new(&core.services.dir, name, bytes, false));
                for live in log.alive() {
                    let name = file_name::log_name(live.number);
                    files.push(LiveFile::new(log.dir(), name, live.bytes, false));
                }
                let newest =
                    sweep::newest_options(&core.services.env, &core.services.dir, FileNo(0))?;
                if let Some(number) = newest.last().filter(|n| n.0 > 0) {
                    let name = file_name::options_name(*number);
                    let has_paths = !core.trees.table_dirs().is_empty();
                    files.push(LiveFile::options(
                        &core.services.env,
                        &core.services.dir,
                        name,
                        has_paths,
                    )?);
                }
                Ok(())
            })?;
        Ok(files)
    }

    /// Reads the directory of a database that another process may write by `read`: again when it
    /// changed meanwhile.
    pub(super) fn settled<T>(&self, read: impl FnMut() -> Result<T>) -> Result<T> {
        let services = &self.core().services;
        let wal_dir = self.core().writes.lock().dir().to_path_buf();
        evidence::settled(&services.env, &services.dir, &wal_dir, read)
    }

    /// Files in the directory of a database that was opened for reading.
    fn files_of_directory(&self) -> Result<Vec<LiveFile>> {
        let core = self.core();
        if core.writes.is_closed() {
            return Err(Error::shutdown());
        }
        let (env, dir) = (&core.services.env, &*core.services.dir);
        let mut options = Options::new().env(env.clone());
        options.db = (**core.services.options.load()).clone();
        options.family = (**core.reads.families.default_family().options.load()).clone();
        let loaded = load_latest_options(dir, env, LENIENT).ok();
        let files = closed_files(env, dir, &options, loaded.as_ref(), &options.db)?;
        let manifest = files.iter().find(|f| f.kind == FileKind::Manifest);
        if let Some(listed) = manifest
            && env.fs.metadata(&listed.path)?.len > listed.bytes
            && fold(&*env.fs, dir, current::read(&*env.fs, dir)?)?.valid_end != listed.bytes
        {
            return Err(Error::corruption("the MANIFEST grew while it was read")
                .with_file(&listed.path)
                .with_hint("try again when the process that writes the database has less to do"));
        }
        Ok(files)
    }

    /// As [`Db::live_files`] for a copy without logs. In its MANIFEST stands that there are none:
    /// else opening the copy would miss them.
    pub fn live_files_without_logs(&self) -> Result<Vec<LiveFile>> {
        without_logs(&self.core().services.env, self.live_files()?)
    }
}

/// `files` without the logs, which the MANIFEST then says.
pub(super) fn without_logs(env: &Env, mut files: Vec<LiveFile>) -> Result<Vec<LiveFile>> {
    files.retain(|f| f.kind != FileKind::Wal);
    for manifest in files.iter_mut().filter(|f| f.kind == FileKind::Manifest) {
        let bytes = manifest_without_logs(env, manifest)?;
        manifest.bytes = bytes.len() as u64;
        manifest.replacement = Some(bytes);
    }
    Ok(files)
}

/// The MANIFEST `file` with an edit behind it that there are no logs.
fn manifest_without_logs(env: &Env, file: &LiveFile) -> Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(file.bytes).unwrap_or(usize::MAX)];
    let manifest = env.fs.open_read(&file.path, FileReadOptions::default())?;
    if manifest.read_at(0, &mut bytes)? < bytes.len() {
        return Err(Error::corruption("the MANIFEST is shorter than it was").with_file(&file.path));
    }
    let (memory, at) = (MemFs::new(), Path::new("/MANIFEST"));
    let mut copy = memory.create(at, FileWriteOptions::default())?;
    copy.append(&bytes)?;
    let mut writer = ManifestWriter::over(copy, FileNo(0))?;
    writer.append(&[VersionEdit {
        known_logs: Some(KnownLogs::default()),
        ..VersionEdit::default()
    }])?;
    writer.close()?;
    memory.read_all(at, u64::MAX)
}

/// Lists the files of a database that is not open. Without `loaded`, the database's OPTIONS, a file
/// that is not found without their help is an error.
pub(super) fn closed_files(
    env: &Env,
    dir: &Path,
    options: &Options,
    loaded: Option<&LoadedOptions>,
    db: &DbOptions,
) -> Result<Vec<LiveFile>> {
    let number = current::read(&*env.fs, dir)?;
    let folded = fold(&*env.fs, dir, number)?;
    let places = Places::new(env, dir, options, loaded)?;
    let mut out = Vec::new();
    placed_files(&folded, options, &places, &mut out)?;
    let wal_dir = match options.db.wal_dir.as_str() {
        "" => dir,
        given => Path::new(given),
    };
    // The newest first: while one of them is written, the older ones are complete.
    for number in evidence::logs(env, wal_dir, &folded, db)?.into_iter().rev() {
        let name = file_name::log_name(number);
        let bytes = env.fs.metadata(&wal_dir.join(&name))?.len;
        out.push(LiveFile::new(wal_dir, name, bytes, false));
    }
    let newest = sweep::newest_options(env, dir, FileNo(0))?;
    if let Some(number) = newest.last().filter(|n| n.0 > 0) {
        let name = file_name::options_name(*number);
        let has_paths = places.dirs.len() > 1;
        out.push(LiveFile::options(env, dir, name, has_paths)?);
    }
    let name = file_name::manifest_name(number);
    out.push(LiveFile::new(dir, name, folded.valid_end, false));
    Ok(out)
}

/// Where the tables and blob files of a closed database are.
struct Places<'a> {
    env: &'a Env,
    dir: &'a Path,
    options: &'a Options,
    loaded: Option<&'a LoadedOptions>,
    /// The directories of all families, the database's first.
    dirs: Vec<PathBuf>,
    here: BTreeMap<(FileKind, FileNo), Vec<(PathBuf, String)>>,
}

impl<'a> Places<'a> {
    fn new(
        env: &'a Env,
        dir: &'a Path,
        options: &'a Options,
        loaded: Option<&'a LoadedOptions>,
    ) -> Result<Self> {
        let mut dirs = vec![dir.to_path_buf()];
        let families = [&options.family];
        dirs.extend(paths::of_options(env, dir, &options.db, families));
        if let Some(loaded) = loaded {
            let families = loaded.families.iter().map(|(_, o)| o);
            dirs.extend(paths::of_options(env, dir, &loaded.db, families));
        }
        let mut here: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for place in &dirs {
            if !env.fs.exists(place)? {
                continue;
            }
            for entry in env.fs.read_dir(place)?.into_iter().filter(|e| e.is_file) {
                if let Some((kind, n)) = parse_file_name(&entry.name) {
                    let at = here.entry((kind, n)).or_default();
                    at.push((place.clone(), entry.name));
                }
            }
        }
        Ok(Places {
            env,
            dir,
            options,
            loaded,
            dirs,
            here,
        })
    }

    /// The paths of a family: its own, those of all families, or those of its last opening.
    fn of_family(&self, name: &str) -> Arc<TablePaths> {
        let given = &self.options.family.cf_paths;
        let loaded = self.loaded.map(|l| {
            let own = l.families.iter().find(|(n, _)| n == name);
            let own = own.map(|(_, o)| &o.cf_paths).filter(|p| !p.is_empty());
            own.unwrap_or(&l.db.db_paths)
        });
        let lists = [Some(given), Some(&self.options.db.db_paths), loaded];
        let first = lists.into_iter().flatten().find(|p| !p.is_empty());
        TablePaths::new(self.dir, first.map_or(&[], |p| p))
    }

    /// A file that belongs into `wanted`: there, or in the one place where it is.
    fn find(&self, kind: FileKind, number: FileNo, wanted: &Path) -> Result<LiveFile> {
        let found = self.here.get(&(kind, number)).map_or(&[][..], |f| f);
        let right = found.iter().find(|(place, _)| place == wanted);
        let Some((place, name)) = right.or(found.first().filter(|_| found.len() == 1)) else {
            let what = match kind {
                FileKind::Blob => "blob file",
                _ => "table",
            };
            return Err(Error::corruption(format!("{what} {number} is missing")).with_file(wanted));
        };
        let bytes = self.env.fs.metadata(&place.join(name))?.len;
        Ok(LiveFile::new(place, name.clone(), bytes, true))
    }
}

/// The tables and blob files that the trees of `folded` list. Without a family's order there is no
/// tree: then all the blob files that are there count as listed.
fn placed_files(
    folded: &ManifestContents,
    options: &Options,
    places: &Places<'_>,
    out: &mut Vec<LiveFile>,
) -> Result<()> {
    let mut blobs = Vec::new();
    let mut is_without_order = false;
    for family in folded.families.values() {
        let paths = places.of_family(&family.name);
        for (_, file) in family.files().into_values() {
            let wanted = paths.dir(file.path_id);
            out.push(places.find(FileKind::Table, file.number, wanted)?);
        }
        match family.order(&options.family.comparator) {
            Some(order) => {
                let version = family.version(&order, 64)?;
                let listed = version.blob_files().keys();
                blobs.extend(listed.map(|n| (*n, paths.first().to_path_buf())));
            }
            None => is_without_order = true,
        }
    }
    if is_without_order {
        let there = places
            .here
            .iter()
            .filter(|((k, _), _)| *k == FileKind::Blob);
        let there = there.flat_map(|((_, n), at)| at.iter().map(|(dir, _)| (*n, dir.clone())));
        blobs.extend(there);
        blobs.sort();
        blobs.dedup_by_key(|(n, _)| *n);
    }
    for (number, wanted) in blobs {
        out.push(places.find(FileKind::Blob, number, &wanted)?);
    }
    Ok(())
}
