//! Other bounds for an iterator that is there already.

use super::super::cursors::{IterRequest, IteratorCursors};
use super::DbIterator;
use super::unplaced::LazyCursor;
use esker_lsm::visible::{VisibleCounters, set_bound};
use esker_sync::Arc;

impl DbIterator {
    /// Sets the range that it walks, from `lower` on and before `upper`; None is no bound. It reads
    /// what it was made over, and is not placed afterwards.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// for key in ["a", "b", "c"] {
    ///     db.put(key, "value")?;
    /// }
    /// let mut it = db.iter_opt(
    ///     &db.default_family_handle(),
    ///     esker::ReadOptions::new().lower("a").upper("b"),
    ///     None,
    /// );
    /// it.seek("c");
    /// assert!(!it.valid(), "out of its range");
    /// it.set_bounds(Some(b"b"), None);
    /// it.seek("c");
    /// assert_eq!(it.key(), b"c");
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_bounds(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) {
        let options = Arc::make_mut(&mut self.options);
        set_bound(&mut options.iterate_lower_bound, lower);
        set_bound(&mut options.iterate_upper_bound, upper);
        if self.cursors.is_none() {
            self.settle();
        }
        if self.options.auto_prefix_mode || self.family.order.timestamp_size() > 0 {
            self.rebuild();
        } else if let Some(cursors) = self.held_cursors() {
            cursors.cursor.set_bounds(lower, upper);
        }
        if self.failure.is_none() {
            self.unplaced = LazyCursor::new(self.cursors.take());
        }
    }

    /// The cursors, also those that wait for a seek which tries again.
    fn held_cursors(&mut self) -> Option<&mut IteratorCursors> {
        match (&mut self.cursors, &mut self.failure) {
            (Some(cursors), _) => Some(cursors),
            (None, Some((_, cursors))) => cursors.as_deref_mut(),
            (None, None) => None,
        }
    }

    /// Makes the cursors anew, over the same view: with some options they know the bounds in parts
    /// that take no others.
    fn rebuild(&mut self) {
        let made = IteratorCursors::of(&IterRequest {
            core: &self.core,
            family: &self.family,
            options: &self.options,
            view: &self.view,
            seq: self.seq,
            epoch: self.epoch,
        });
        match (made, &mut self.failure) {
            (Ok(made), None) => {
                self.end_notes();
                self.cursors = Some(made);
            }
            // It failed for good.
            (_, Some((_, None))) => {}
            (Ok(made), Some((_, again))) => *again = Some(made),
            (Err(e), _) => return self.fail(e),
        }
        self.reported_skips = 0;
        self.reported_reseeks = 0;
        self.handed_over = VisibleCounters::default();
    }
}
