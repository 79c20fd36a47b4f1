//! The OPTIONS files of an open database: when one is written, and how many stay.
//!
//! A file is whole before it has its name. It never lacks a family that the MANIFEST has: it is
//! written before a family is committed, and after one is dropped. One writer at a time: the
//! callers hold the admin lock, or no other thread has the database yet.

use crate::core::Trees;
use crate::family::Family;
use crate::options::print_options_text;
use esker_env::WriteOptions as FileWriteOptions;
use esker_files::temp_file::TempFile;
use esker_format::{FileNo, file_name};
use esker_status::Result;
use esker_status::seeded::{Bug, seeded};
use esker_sync::Arc;

/// How many OPTIONS files stay, as in RocksDB.
const OPTIONS_KEPT: usize = 2;

impl Trees {
    /// Gives a family that is about to be committed its place in OPTIONS. A crash in between leaves
    /// OPTIONS with a family that the database does not have, which readers of OPTIONS pass over;
    /// the other way around its options would be lost.
    pub(crate) fn name_in_options(&self, draft: &Family) -> Result<()> {
        if seeded(Bug::FamilyBeforeOptions) {
            Ok(())
        } else {
            self.write_options_file(self.numbers.next(), Some(draft))
        }
    }

    /// Writes the options of the database and its families, those of `more` among them, to
    /// OPTIONS-`number`. The one before stays, older ones go.
    pub(crate) fn write_options_file(&self, number: FileNo, more: Option<&Family>) -> Result<()> {
        self.name_options(self.write_temp_options(number, more)?)?;
        self.services.env.fs.sync_dir(&self.services.dir)?;
        self.keep_newest_options(number);
        Ok(())
    }

    /// Writes the options to a file under a temporary name; [`Trees::name_options`] gives it its
    /// own.
    pub(crate) fn write_temp_options(
        &self,
        number: FileNo,
        more: Option<&Family>,
    ) -> Result<TempFile<'_>> {
        let families = self.families.all();
        let db = self.services.options.load();
        let as_given = |f: &Family| {
            let mut options = f.options.load_full();
            // Those that it has from the database.
            if !options.cf_paths.is_empty() && options.cf_paths == db.db_paths {
                Arc::make_mut(&mut options).cf_paths.clear();
            }
            (f.name.clone(), options)
        };
        let all = families.iter().map(|f| &**f).chain(more);
        let loaded: Vec<_> = all.map(as_given).collect();
        let loaded = loaded.iter().map(|(n, o)| (n.as_str(), &**o));
        let text = print_options_text(&db, loaded);
        let temp = self.services.dir.join(file_name::temp_options_name(number));
        let path = self.services.dir.join(file_name::options_name(number));
        let options = FileWriteOptions::default().exclusively();
        TempFile::begin(&*self.services.env.fs, temp, path, options, text.as_bytes())
    }

    /// Gives an OPTIONS file its name. The directory is to be synced.
    pub(crate) fn name_options(&self, mut draft: TempFile<'_>) -> Result<()> {
        if !seeded(Bug::OptionsNotSynced) {
            draft.sync()?;
        }
        draft.take_name()
    }

    /// Gives OPTIONS files that are older than the two newest to the obsolete files.
    pub(crate) fn keep_newest_options(&self, newest: FileNo) {
        let mut there = self.options_files.lock();
        there.push(newest);
        let kept = there.len().saturating_sub(OPTIONS_KEPT);
        let old: Vec<FileNo> = there.drain(..kept).collect();
        drop(there);
        for number in old {
            let path = self.services.dir.join(file_name::options_name(number));
            self.obsolete_files.retire_file(path);
        }
    }
}
