//! Taking files from outside in: into families that exist, and as new ones.

use super::Db;
use crate::family::FamilyHandle;
use crate::job::import;
use crate::job::ingest::{IngestJob, ingest};
use crate::metadata::ExportedFiles;
use crate::options::{FamilyOptions, ImportOptions, IngestOptions};
use esker_status::Result;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files for one family, for [`Db::ingest_many`].
#[derive(Clone, Debug)]
pub struct IngestArg<'a> {
    /// The family.
    pub family: &'a FamilyHandle,
    /// The files. Where they overlap each other, those that come later count.
    pub files: Vec<PathBuf>,
    /// How.
    pub options: IngestOptions,
}

impl Db {
    /// Takes table files into `family`, all or none: those of a [`crate::SstFileWriter`] or of
    /// RocksDB's `SstFileWriter`. Their entries are newer than everything in the database, and
    /// where the files overlap each other, those that come later are newer.
    ///
    /// The files are copied, linked or moved as `options` say; on return they are part of the
    /// database, and survive power loss. Writers wait for the moment in which they become so.
    /// Nothing goes through the log or through memory: this is the way to bring much sorted data
    /// in.
    ///
    /// `InvalidArgument` and `Corruption` for files that do not fit; `TryAgain` when they cannot go
    /// to the last level and have to.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, IngestOptions, Options, SstFileWriter};
    ///
    /// let options = Options::new().create_if_missing(true);
    /// let db = Db::open(dir.path().join("db"), options.clone())?;
    /// db.put("a", "old")?;
    /// let mut writer = SstFileWriter::new(&options)?;
    /// writer.open(dir.path().join("1.sst"))?;
    /// writer.put("a", "new")?;
    /// let file = writer.finish()?.file_path;
    ///
    /// let mut moving = IngestOptions::default();
    /// moving.move_files = true;
    /// db.ingest(&db.default_family_handle(), &[&file], &moving)?;
    /// assert_eq!(db.get("a")?.as_deref(), Some(&b"new"[..]));
    /// assert!(!file.exists());
    /// # Ok(())
    /// # }
    /// ```
    pub fn ingest(
        &self,
        family: &FamilyHandle,
        files: &[impl AsRef<Path>],
        options: &IngestOptions,
    ) -> Result<()> {
        self.ingest_many(&[IngestArg {
            family,
            files: files.iter().map(|f| f.as_ref().to_owned()).collect(),
            options: options.clone(),
        }])
    }

    /// Takes table files into several families, all or none.
    pub fn ingest_many(&self, args: &[IngestArg<'_>]) -> Result<()> {
        let jobs = args.iter().map(|arg| IngestJob {
            family: Arc::clone(&arg.family.0),
            paths: arg.files.clone(),
            options: arg.options.clone(),
        });
        ingest(self.core(), jobs.collect())
    }

    /// Makes a new family of files that were exported from another one, here or elsewhere, with the
    /// levels and the sequence numbers that they have. Several lists of files make one family when
    /// they are in disjoint ranges.
    ///
    /// `InvalidArgument` when the files are in another order of keys than `options` say, or the
    /// family exists.
    pub fn import_family(
        &self,
        name: &str,
        options: FamilyOptions,
        import: &ImportOptions,
        exported: &[ExportedFiles],
    ) -> Result<FamilyHandle> {
        let core = self.core();
        let admin = core.admin.lock();
        let family = import::import_family(core, name, options, *import, exported)?;
        core.family_created(&family)?;
        drop(admin);
        core.trees.delete_obsolete_files();
        Ok(FamilyHandle(family))
    }
}
