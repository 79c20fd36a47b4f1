//! Lists of the files that a database consists of, each computed when asked for, from one view of
//! each family.

use super::Db;
use crate::family::{Family, FamilyHandle};
use crate::metadata::{BlobMeta, FamilyMeta, FamilyMetaOptions, LevelMeta, LiveFileMeta};
use crate::options::{DbOptions, FamilyOptions};
use esker_format::{Level, file_name};
use esker_lsm::file::FileMeta;
use esker_lsm::plan::Busy;

/// A table of `family` at `level`.
fn file_meta(family: &Family, level: Level, f: &FileMeta, busy: Option<&Busy>) -> LiveFileMeta {
    let stats = f.stats.get();
    LiveFileMeta {
        family: family.name.clone(),
        level: level.0,
        name: file_name::table_name(f.number),
        directory: family.reading.paths.dir(f.path_id).to_path_buf(),
        number: f.number.0,
        size: f.size,
        smallest_key: f.smallest.user().to_vec(),
        largest_key: f.largest.user().to_vec(),
        smallest: f.smallest.as_bytes().to_vec(),
        largest: f.largest.as_bytes().to_vec(),
        smallest_seq: f.smallest_seq.0,
        largest_seq: f.largest_seq.0,
        num_entries: stats.map_or(0, |s| s.num_entries),
        num_deletions: stats.map_or(0, |s| s.num_deletions),
        being_compacted: busy.is_some_and(|b| b.contains(f.number)),
        file_creation_time: f.file_creation_time,
        oldest_ancestor_time: f.oldest_ancestor_time,
        epoch_number: f.epoch,
        oldest_blob_file: f.oldest_blob_file.map(|b| b.0),
        temperature: f.temperature,
        file_checksum: f.file_checksum.clone(),
        file_checksum_func_name: f.file_checksum_func_name.clone(),
    }
}

impl FamilyHandle {
    /// Its options as they are now, those included that were changed since it was opened.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, Options};
    ///
    /// let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    /// let family = db.default_family_handle();
    /// db.set_options(&family, &[("write_buffer_size", "1048576")])?;
    /// assert_eq!(family.options().write_buffer_size, 1 << 20);
    /// # Ok(())
    /// # }
    /// ```
    pub fn options(&self) -> FamilyOptions {
        FamilyOptions::clone(&self.0.options.load())
    }
}

impl Db {
    /// Its options as they are now, those included that were changed since it was opened.
    pub fn db_options(&self) -> DbOptions {
        DbOptions::clone(&self.core().services.options.load())
    }

    /// Every table of every family, family by family and level by level.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// assert!(db.live_files_metadata().is_empty());
    /// db.flush()?;
    /// let files = db.live_files_metadata();
    /// assert_eq!((files.len(), files[0].level, files[0].num_entries), (1, 0, 1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn live_files_metadata(&self) -> Vec<LiveFileMeta> {
        let core = self.core();
        let mut out = Vec::new();
        for family in core.trees.families.all() {
            let version = family.view_guard().version.clone();
            let busy = core.background.jobs.lock().busy.get(&family.id).cloned();
            let files = version.files();
            out.extend(files.map(|(l, f)| file_meta(&family, l, f, busy.as_ref())));
        }
        out
    }

    /// The tables and blob files of `family`, level by level.
    pub fn family_metadata(&self, family: &FamilyHandle) -> FamilyMeta {
        self.family_metadata_opt(family, &FamilyMetaOptions::default())
    }

    /// The tables of `family` that `options` ask for, level by level, and its blob files.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, FamilyMetaOptions, Options};
    ///
    /// let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// db.flush()?;
    /// let family = db.default_family_handle();
    /// assert_eq!(db.family_metadata(&family).levels[0].files[0].smallest_key, b"key");
    /// let beyond = FamilyMetaOptions { start: Some(b"z".to_vec()), ..Default::default() };
    /// assert_eq!(db.family_metadata_opt(&family, &beyond).file_count, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn family_metadata_opt(
        &self,
        family: &FamilyHandle,
        options: &FamilyMetaOptions,
    ) -> FamilyMeta {
        let (core, family) = (self.core(), &*family.0);
        let version = family.view_guard().version.clone();
        let busy = core.background.jobs.lock().busy.get(&family.id).cloned();
        let (start, end) = (options.start.as_deref(), options.end.as_deref());
        let mut meta = FamilyMeta {
            name: family.name.clone(),
            ..FamilyMeta::default()
        };
        for (level, files) in (0u8..).map(Level).zip(version.levels()) {
            if options.level.is_some_and(|l| l != level.0) {
                continue;
            }
            let met = files.files().iter();
            let met = met.filter(|f| f.overlaps(&family.order, start, end));
            let files: Vec<_> = met
                .map(|f| file_meta(family, level, f, busy.as_ref()))
                .collect();
            let size = files.iter().map(|f| f.size).sum();
            meta.size += size;
            meta.file_count += files.len();
            meta.levels.push(LevelMeta {
                level: level.0,
                size,
                files,
            });
        }
        let blobs = version.blob_files().values();
        meta.blob_files = blobs
            .map(|b| BlobMeta {
                number: b.number.0,
                name: file_name::blob_name(b.number),
                directory: family.reading.paths.first().to_path_buf(),
                total_count: b.total_count,
                total_bytes: b.total_bytes,
                garbage_count: b.garbage_count,
                garbage_bytes: b.garbage_bytes,
                checksum_method: b.checksum_method.clone(),
                checksum_value: b.checksum_value.clone(),
                group: b.tier.group().map(|group| group.number.0),
                group_level: b.tier.group().map(|group| group.level.0),
            })
            .collect();
        meta
    }
}
