//! Reading a table file that belongs to no open database.
//!
//! It shows what a database would of that file alone: of each key the newest version, without
//! deleted keys, merge operands combined. Range deletions are not applied, as in RocksDB's reader;
//! a file that was ingested has the sequence number that stands in it.
//!
//! Thread-safety: a reader may be shared; each iterator belongs to one thread at a time and keeps
//! the file open by itself.

use crate::options::{FamilyOptions, Options, ReadOptions, check as check_options};
use crate::read::get::read_context;
use crate::snapshot::Snapshot;
use esker_env::{Env, ReadOptions as FileReadOptions};
use esker_files::table::{TableCursor, TableReader, TableReaderOptions};
use esker_format::Seq;
use esker_format::properties::TableProperties;
use esker_lsm::merging::MergingCursor;
use esker_lsm::tombstone::ReadTombstones;
use esker_lsm::visible::{VisibleCursor, VisibleOptions};
use esker_status::Result;
use std::path::Path;
use std::sync::Arc;

/// A table file, open for reading.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// use esker::{Options, ReadOptions, SstFileReader, SstFileWriter};
///
/// let options = Options::new();
/// let file = dir.path().join("new.sst");
/// let mut writer = SstFileWriter::new(&options)?;
/// writer.open(&file)?;
/// writer.put("a", "1")?;
/// writer.put("b", "2")?;
/// writer.finish()?;
///
/// let reader = SstFileReader::open(&options, &file)?;
/// reader.verify()?;
/// assert_eq!(reader.properties().num_entries, 2);
/// let mut it = reader.iter(&ReadOptions::default(), None)?;
/// it.seek("b");
/// assert_eq!(it.entry(), Some((&b"b"[..], &b"2"[..])));
/// # Ok(())
/// # }
/// ```
pub struct SstFileReader {
    table: Arc<TableReader>,
    family: FamilyOptions,
}

impl std::fmt::Debug for SstFileReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SstFileReader").finish_non_exhaustive()
    }
}

impl SstFileReader {
    /// Opens the file at `path`, whose keys are in the order that `options` say.
    pub fn open(options: &Options, path: impl AsRef<Path>) -> Result<SstFileReader> {
        let path = path.as_ref();
        check_options(&options.db, [("default", &options.family)])?;
        let env = options.env.clone().unwrap_or_else(Env::posix);
        let family = options.family.clone().resolve();
        let file = env.fs.open_read(path, FileReadOptions::default())?;
        let size = file.len();
        let cache = match &family.table.block_cache {
            _ if family.table.no_block_cache => None,
            source => Some(source.make()),
        };
        let how = TableReaderOptions {
            order: family.comparator.clone(),
            table: family.table.to_table_options(),
            cache,
            prefix_extractor: family.prefix_extractor.clone(),
            ..TableReaderOptions::default()
        };
        let table = TableReader::open(file, size, how).map_err(|e| e.with_file(path))?;
        Ok(SstFileReader { table, family })
    }

    /// Returns the properties of the file.
    pub fn properties(&self) -> &TableProperties {
        self.table.properties()
    }

    /// Reads all of it: every checksum, the order of keys, what the properties count.
    pub fn verify(&self) -> Result<()> {
        self.table.verify()
    }

    /// Walks the keys, as `snapshot` sees them or all of them.
    pub fn iter(
        &self,
        options: &ReadOptions,
        snapshot: Option<&Snapshot>,
    ) -> Result<SstFileIterator> {
        let order = self.table.order();
        let seq = snapshot.map_or(Seq::MAX, Snapshot::seq);
        let cursor = self.table.cursor(&read_context(options));
        let merged = MergingCursor::new(vec![cursor], order.clone());
        let mut visible = VisibleOptions::new(order.clone(), seq);
        visible.read_timestamp.clone_from(&options.timestamp);
        visible.lower.clone_from(&options.iterate_lower_bound);
        visible.upper.clone_from(&options.iterate_upper_bound);
        visible
            .merge_operator
            .clone_from(&self.family.merge_operator);
        let deletions = ReadTombstones::new(order.clone(), seq);
        let inner = VisibleCursor::new(merged, deletions, visible)?;
        Ok(SstFileIterator { inner })
    }
}

/// Walks the live keys of one file in order. After a move that ends in `!valid()`,
/// [`SstFileIterator::status`] tells the end of the data from a failure.
pub struct SstFileIterator {
    inner: VisibleCursor<MergingCursor<TableCursor>>,
}

impl std::fmt::Debug for SstFileIterator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SstFileIterator")
            .field("valid", &self.valid())
            .finish_non_exhaustive()
    }
}

impl SstFileIterator {
    /// Returns whether it stands on a key.
    pub fn valid(&self) -> bool {
        self.inner.valid()
    }

    /// Key and value, until the next move; `None` when it stands nowhere.
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.inner.entry()
    }

    /// Returns the error of a move that failed.
    pub fn status(&self) -> Result<()> {
        self.inner.status()
    }

    /// To the first key.
    pub fn seek_to_first(&mut self) {
        self.inner.seek_to_first();
    }

    /// To the last key.
    pub fn seek_to_last(&mut self) {
        self.inner.seek_to_last();
    }

    /// To the first key that is not before `target`.
    pub fn seek(&mut self, target: impl AsRef<[u8]>) {
        self.inner.seek(target.as_ref());
    }

    /// To the last key that is not behind `target`.
    pub fn seek_for_prev(&mut self, target: impl AsRef<[u8]>) {
        self.inner.seek_for_prev(target.as_ref());
    }

    /// To the next key; nowhere behind the last.
    pub fn next(&mut self) {
        if self.valid() {
            self.inner.next();
        }
    }

    /// To the key before; nowhere before the first.
    pub fn prev(&mut self) {
        if self.valid() {
            self.inner.prev();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Db, SstFileWriter};

    fn keys(it: &mut SstFileIterator) -> Vec<Vec<u8>> {
        let mut seen = Vec::new();
        it.seek_to_first();
        while let Some((key, _)) = it.entry() {
            seen.push(key.to_vec());
            it.next();
        }
        it.status().expect("no failure");
        seen
    }

    #[test]
    fn a_table_of_a_database_shows_its_newest_versions() {
        let dir = tempfile::tempdir().expect("a directory");
        let options = Options::new().create_if_missing(true);
        let db = Db::open(dir.path(), options.clone()).expect("opens");
        db.put("a", "old").expect("written");
        let held = db.snapshot();
        for (key, value) in [("a", "new"), ("b", "1"), ("c", "2")] {
            db.put(key, value).expect("written");
        }
        db.delete("b").expect("deleted");
        db.flush().expect("flushed");
        let file = db.live_files().expect("listed")[0].path.clone();
        let reader = SstFileReader::open(&options, &file).expect("opens");
        reader.verify().expect("whole");
        let mut it = reader.iter(&ReadOptions::default(), None).expect("made");
        assert_eq!(keys(&mut it), [b"a", b"c"]);
        it.seek_to_last();
        it.prev();
        assert_eq!(it.entry(), Some((&b"a"[..], &b"new"[..])));
        it.prev();
        assert_eq!(it.entry(), None);
        let mut it = reader
            .iter(&ReadOptions::default(), Some(&held))
            .expect("made");
        it.seek("a");
        assert_eq!(it.entry(), Some((&b"a"[..], &b"old"[..])));
        it.next();
        assert!(!it.valid());
    }

    #[test]
    fn damage_is_an_error_and_bounds_hold() {
        let dir = tempfile::tempdir().expect("a directory");
        let (options, file) = (Options::new(), dir.path().join("t.sst"));
        let mut writer = SstFileWriter::new(&options).expect("made");
        writer.open(&file).expect("begun");
        for n in 0..100u8 {
            writer.put([n], [n; 100]).expect("added");
        }
        writer.finish().expect("finished");
        let mut read = ReadOptions::default();
        read.iterate_upper_bound = Some(vec![3]);
        let reader = SstFileReader::open(&options, &file).expect("opens");
        let mut it = reader.iter(&read, None).expect("made");
        assert_eq!(keys(&mut it).len(), 3);
        it.seek_for_prev([50]);
        assert_eq!(it.entry().map(|(key, _)| key), Some(&[2][..]));

        let mut bytes = std::fs::read(&file).expect("read");
        bytes[40] ^= 1;
        std::fs::write(&file, &bytes).expect("written");
        let reader = SstFileReader::open(&options, &file).expect("the end is whole");
        assert!(reader.verify().expect_err("damaged").is_corruption());
        let mut it = reader.iter(&ReadOptions::default(), None).expect("made");
        it.seek_to_first();
        assert!(!it.valid());
        assert!(it.status().expect_err("damaged").is_corruption());
        assert!(SstFileReader::open(&options, dir.path().join("none")).is_err());
    }
}
