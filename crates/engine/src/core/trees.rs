//! The families with their trees, and the files that these consist of. Jobs change them through
//! [`Store`]; readers hold what they use.

use super::services::Services;
use crate::family::FamilySet;
use crate::observe::TableFileDeletion;
use crate::store::Store;
use crate::tree::blobs::Blobs;
use crate::tree::{FileNumbers, ObsoleteFiles, PurgeReport, Tables, paths};
use esker_env::{WritableFile, WriteOptions};
use esker_format::FileNo;
use esker_status::Result;
use esker_sync::{Arc, Mutex};
use std::path::{Path, PathBuf};

/// The trees of a database and its files.
#[derive(Debug)]
pub(crate) struct Trees {
    pub(crate) services: Arc<Services>,
    pub(crate) families: Arc<FamilySet>,
    pub(crate) store: Store,
    pub(crate) numbers: Arc<FileNumbers>,
    pub(crate) tables: Arc<Tables>,
    pub(crate) blobs: Arc<Blobs>,
    pub(crate) obsolete_files: Arc<ObsoleteFiles>,
    /// The numbers of the OPTIONS files that are there, oldest first.
    pub(crate) options_files: Mutex<Vec<FileNo>>,
}

impl Trees {
    /// The directories outside of the database's in which its families have tables.
    pub(crate) fn table_dirs(&self) -> Vec<PathBuf> {
        let found = self.families.table_dirs(|families| {
            let paths = families.iter().map(|f| &*f.reading.paths);
            paths::beside(&self.services.env, &self.services.dir, paths)
        });
        found.to_vec()
    }

    /// Deletes archived logs that are too old, now and then.
    pub(crate) fn purge_archive_if_due(&self) {
        self.tell_failed(&self.obsolete_files.purge_archive_if_due());
    }

    fn tell_failed(&self, purged: &PurgeReport) {
        for (path, error) in &purged.failed {
            self.services.info_log.warn(format_args!(
                "{} could not be deleted: {error}",
                path.display()
            ));
        }
    }

    /// Deletes files that are not in use any more, and reports it.
    pub(crate) fn delete_obsolete_files(&self) {
        self.delete_obsolete_files_keeping(0);
    }

    /// Deletes obsolete files, but keeps up to `spare` bytes of tables to be written over.
    pub(crate) fn delete_obsolete_files_keeping(&self, spare: u64) {
        if !self.obsolete_files.is_any() {
            return;
        }
        let purged = self
            .obsolete_files
            .purge(spare, |number| self.tables.forget(number));
        for (number, _) in &purged.tables {
            self.tables.forget(*number);
        }
        self.tell_deleted(&purged);
    }

    /// Creates the file of a table of about `bytes`, in place of an obsolete one where there is
    /// one.
    pub(crate) fn create_table(
        &self,
        path: &Path,
        bytes: u64,
        options: WriteOptions,
    ) -> Result<Box<dyn WritableFile>> {
        let over = if self.services.options.load().recycle_table_files {
            self.obsolete_files.create_over(path, bytes, options)
        } else {
            None
        };
        let Some((made, gone)) = over else {
            return self.services.env.fs.create(path, options);
        };
        self.tell_deleted(&gone);
        made
    }

    fn tell_deleted(&self, purged: &PurgeReport) {
        for (number, _) in &purged.tables {
            self.services.table_deleted(*number);
        }
        for (number, path) in &purged.blobs {
            let failed = purged.error_of(path);
            (self.services).blob_file_deleted(*number, path, failed.as_ref());
        }
        self.tell_failed(purged);
        if purged.tables.is_empty() {
            return;
        }
        for listener in &self.services.options.load().listeners {
            for (number, path) in &purged.tables {
                listener.on_table_file_deleted(&TableFileDeletion {
                    job: 0,
                    file: path.clone(),
                    file_no: *number,
                    error: purged.error_of(path),
                });
            }
        }
    }
}
