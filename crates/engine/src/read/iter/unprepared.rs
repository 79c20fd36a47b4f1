//! Values of blob files that an iterator leaves unread until its owner asks for them.

use super::super::cursors::IteratorCursors;
use super::DbIterator;
use crate::observe::Ticker;
#[cfg(doc)]
use crate::options::ReadOptions;
use esker_sync::Arc;

impl DbIterator {
    /// Reads the value of the entry where [`ReadOptions::allow_unprepared_value`] left it in its
    /// blob file; until then [`DbIterator::value`] is empty. False, with a status, when that fails
    /// or the iterator is not valid; true for values that are there.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// let mut options = esker::Options::new().create_if_missing(true);
    /// options.family.enable_blob_files = true;
    /// let db = esker::Db::open(dir.path(), options)?;
    /// db.put("key", vec![7; 10_000])?;
    /// db.flush()?;
    /// let mut lazy = esker::ReadOptions::default();
    /// lazy.allow_unprepared_value = true;
    /// let mut it = db.iter_opt(&db.default_family_handle(), lazy, None);
    /// it.seek_to_first();
    /// assert_eq!((it.key(), it.value().len()), (&b"key"[..], 0));
    /// assert!(it.prepare_value());
    /// assert_eq!(it.value(), [7; 10_000]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prepare_value(&mut self) -> bool {
        if !self.stands() {
            return false;
        }
        let Some(cursors) = &mut self.cursors else {
            return false;
        };
        let cursor = &mut cursors.cursor;
        let was_left = cursor.is_unprepared();
        let is_there = cursor.prepare_value();
        if was_left
            && is_there
            && let Some(s) = &self.core.statistics
        {
            s.add(Ticker::IterBytesRead, cursor.value().len() as u64);
        }
        is_there
    }

    /// The iterator without [`ReadOptions::allow_unprepared_value`], where it stands: for an owner
    /// that never calls [`DbIterator::prepare_value`].
    #[must_use]
    pub fn with_prepared_values(mut self) -> Self {
        if self.options.allow_unprepared_value {
            Arc::make_mut(&mut self.options).allow_unprepared_value = false;
            match &mut self.cursors {
                Some(cursors) => cursors.prepare_values(),
                None => self.unplaced.change(IteratorCursors::prepare_values),
            }
        }
        self
    }

    /// Returns whether values of blob files wait for [`DbIterator::prepare_value`].
    pub(crate) fn leaves_values(&self) -> bool {
        self.options.allow_unprepared_value && !self.view.version.blob_files().is_empty()
    }
}
