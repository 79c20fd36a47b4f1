//! The iterator that callers hold: the merged runs of a view, filtered by a sequence number.
//!
//! It owns everything it reads, so it outlives handles, flushes and compactions, and a dropped
//! database handle. A tailing iterator goes on to the newest view before every move.

mod bounds;
mod position;
mod telling;
mod twin;
mod unplaced;
mod unprepared;

use super::cursors::{IterRequest, IteratorCursors, MergedRuns};
use super::get::{check_due, due_of};
use crate::core::ReadCore;
use crate::family::open_iterators::ListedIterator;
use crate::family::{Family, ReadOperation, SampledMove, View, is_sampled};
use crate::observe::{HistogramId, OperationKind, PerfMetric, Ticker, perf_count};
use crate::options::ReadOptions;
use crate::snapshot::Snapshot;
use crate::ttl;
use esker_files::table::{ReadFigure, add_read_work, mark_read_work};
use esker_format::Seq;
use esker_lsm::visible::{VisibleCounters, VisibleCursor};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, ErrorKind, Result};
use esker_sync::Arc;
use unplaced::LazyCursor;

/// Walks the live keys of one column family in order, as one snapshot sees them.
///
/// It stands at its first entry until it is placed elsewhere. After a move that ends in `!valid()`,
/// [`DbIterator::status`] tells the end of the data from a failure. Keys and values are slices that
/// live until the next move. `for` takes owned pairs from it: see [`DbIterator::into_iter`].
///
/// It does not keep the database open, and goes on reading what it was made over when that is
/// closed.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
/// for n in 0..3u8 {
///     db.put([n], [n])?;
/// }
/// let mut it = db.iter();
/// let mut seen = Vec::new();
/// while let Some((key, _value)) = it.entry() {
///     seen.push(key.to_vec());
///     it.next();
/// }
/// it.status()?;
/// assert_eq!(seen, [[0], [1], [2]]);
/// # Ok(())
/// # }
/// ```
pub struct DbIterator {
    core: Arc<ReadCore>,
    family: Arc<Family>,
    /// Apart: moves look at one flag of it, and an iterator that stays below a kilobyte is quick to
    /// allocate and to move.
    options: Arc<ReadOptions>,
    /// True if it goes on to newer views by itself.
    follows: bool,
    snapshot: Option<Snapshot>,
    view: Arc<View>,
    /// Tells who holds the view.
    listed: ListedIterator,
    seq: Seq,
    /// None before it is placed, and once something failed.
    cursors: Option<Box<IteratorCursors>>,
    unplaced: LazyCursor,
    /// The failure, and the cursors for a seek that tries again.
    failure: Option<(Error, Option<Box<IteratorCursors>>)>,
    reported_skips: u64,
    reported_reseeks: u64,
    /// Entries passed over that the thread's counters have already.
    handed_over: VisibleCounters,
    /// While the walk since the last seek is looked at, for the read amplification.
    looked_at: Option<Box<SampledMove>>,
    /// When its time is over, by the clock.
    due_us: Option<u64>,
    /// True if every step is counted, timed or checked.
    is_watched: bool,
    /// True if the steps since the last seek are recorded where they are slow.
    is_recorded: bool,
    /// The ingestions that the view shows.
    epoch: u64,
    /// Bytes of the time behind each value; 0 where there is none.
    time_len: usize,
}

impl std::fmt::Debug for DbIterator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DbIterator")
            .field("family", &self.family.name)
            .field("valid", &(self.is_placed() && self.valid()))
            .finish_non_exhaustive()
    }
}

impl DbIterator {
    pub(crate) fn new(
        core: Arc<ReadCore>,
        family: Arc<Family>,
        options: Arc<ReadOptions>,
        snapshot: Option<Snapshot>,
    ) -> Self {
        let (view, epoch) = family.view_and_epoch();
        let seq = core.read_seq(&view, snapshot.as_ref());
        Self::over(core, family, options, snapshot, (epoch, view, seq))
    }

    /// An iterator over a view that shows so many ingestions, at `seq`.
    #[inline]
    fn over(
        core: Arc<ReadCore>,
        family: Arc<Family>,
        options: Arc<ReadOptions>,
        snapshot: Option<Snapshot>,
        (epoch, view, seq): (u64, Arc<View>, Result<Seq>),
    ) -> Self {
        let due_us = due_of(&core, &options);
        let time_len = core.ttl.as_ref().map_or(0, |_| ttl::TIME_LEN);
        if let Some(s) = &core.statistics {
            s.add(Ticker::NoIteratorCreated, 1);
        }
        let made = seq.and_then(|seq| {
            let request = IterRequest {
                core: &core,
                family: &family,
                options: &options,
                view: &view,
                seq,
                epoch,
            };
            Ok((IteratorCursors::of(&request)?, seq))
        });
        let (cursors, seq, failure) = match made {
            Ok((cursors, seq)) => (Some(cursors), seq, None),
            Err(e) => (None, Seq::ZERO, Some((e, None))),
        };
        let mut made = DbIterator {
            core,
            family,
            follows: options.tailing || options.auto_refresh_iterator_with_snapshot,
            options,
            snapshot,
            listed: ListedIterator::new(view.id.0),
            view,
            seq,
            cursors,
            unplaced: LazyCursor::new(None),
            failure,
            reported_skips: 0,
            reported_reseeks: 0,
            handed_over: VisibleCounters::default(),
            looked_at: None,
            due_us,
            is_watched: false,
            is_recorded: false,
            epoch,
            time_len,
        };
        made.is_watched = made.is_always_watched();
        made.unplaced = LazyCursor::new(made.cursors.take());
        made
    }

    /// Returns whether every step is watched, in each of its walks.
    #[inline]
    fn is_always_watched(&self) -> bool {
        let takes_notes = VisibleCursor::takes_notes;
        self.core.statistics.is_some()
            || self.due_us.is_some()
            || self.time_len > 0
            || self.inner().is_some_and(takes_notes)
    }

    /// Before a move: an iterator that was not placed is at its first entry. Returns whether it
    /// stands on a key.
    #[inline]
    fn stands(&mut self) -> bool {
        match &self.cursors {
            Some(cursors) => cursors.cursor.valid(),
            None => self.place_at_first(),
        }
    }

    /// Places an iterator that was not placed.
    #[cold]
    pub(crate) fn place_at_first(&mut self) -> bool {
        if self.unplaced.was_asked() {
            self.settle();
        } else if self.unplaced.is_waiting() {
            self.seek_to_first();
        }
        self.valid()
    }

    #[inline]
    fn place(&mut self, seek: impl FnOnce(&mut VisibleCursor<MergedRuns>)) {
        let recorded = self.begin_recorded_seek();
        self.place_now(seek);
        self.end_recorded(OperationKind::Seek, recorded);
    }

    #[inline]
    fn place_now(&mut self, seek: impl FnOnce(&mut VisibleCursor<MergedRuns>)) {
        self.begin_seek();
        let start = self.seek_timer();
        let sampled = self.looked_at.is_some();
        let began_ns = sampled.then(|| self.core.env.clock.now_ns());
        self.begin_move();
        let Some(cursors) = &mut self.cursors else {
            return;
        };
        seek(&mut cursors.cursor);
        self.hand_over_skips();
        if let Some(look) = &self.looked_at {
            look.end(&self.family.read_totals, ReadOperation::Seek);
        }
        if let Some(began_ns) = began_ns {
            self.core.end_seek(&self.family, &self.view, began_ns);
        }
        self.count(Ticker::NumberDbSeek, Ticker::NumberDbSeekFound);
        if self.is_watched {
            self.use_notes(false);
        }
        self.count_seek(start);
    }

    /// Does what the notes of the last move ask for; `is_step` after one to the next key.
    fn use_notes(&mut self, is_step: bool) {
        let Some(cursors) = self.cursors.as_mut().filter(|s| s.cursor.takes_notes()) else {
            return;
        };
        let is_flush_due = cursors.cursor.end_move(is_step);
        if let Some(range) = cursors.cursor.take_deleted_range() {
            self.convert_deletions(&range);
        }
        if is_flush_due {
            self.ask_for_flush();
            if seeded(Bug::ScanLosesPlace) {
                let _as_before = self.renew();
            }
        }
    }

    /// Keeps the range in which the last move saw nothing, for later reads.
    #[inline]
    fn keep_deleted(&mut self) {
        let cursors = self.cursors.as_mut();
        if let Some(found) = cursors.and_then(|cursors| cursors.cursor.take_found()) {
            self.family.keep_deleted(&self.view, &found);
        }
    }

    /// The walks over the cursors are over.
    fn end_notes(&mut self) {
        let cursors = self.cursors.as_mut();
        if cursors.is_some_and(|cursors| cursors.cursor.end_use()) {
            self.ask_for_flush();
        }
    }

    /// To the first key.
    pub fn seek_to_first(&mut self) {
        self.place(|inner| inner.seek_to_first());
    }

    /// To the last key.
    pub fn seek_to_last(&mut self) {
        self.place(|inner| inner.seek_to_last());
    }

    /// To the first key at or after `target`.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("b", "2")?;
    /// let mut it = db.iter();
    /// it.seek("a");
    /// assert_eq!(it.key(), b"b");
    /// # Ok(())
    /// # }
    /// ```
    pub fn seek(&mut self, target: impl AsRef<[u8]>) {
        self.place(|inner| inner.seek(target.as_ref()));
    }

    /// To the last key at or before `target`.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("b", "2")?;
    /// let mut it = db.iter();
    /// it.seek_for_prev("c");
    /// assert_eq!(it.key(), b"b");
    /// # Ok(())
    /// # }
    /// ```
    pub fn seek_for_prev(&mut self, target: impl AsRef<[u8]>) {
        self.place(|inner| inner.seek_for_prev(target.as_ref()));
    }

    /// To the next key. Does nothing when not valid.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// let mut it = db.iter();
    /// it.next();
    /// assert_eq!(it.key(), b"b");
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn next(&mut self) {
        let recorded = self.begin_recorded();
        self.step_forward();
        self.end_recorded(OperationKind::Next, recorded);
    }

    #[inline]
    fn step_forward(&mut self) {
        if self.stands() {
            self.begin_move();
            let moves = !self.follows || self.still_here(VisibleCursor::seek);
            if moves && let Some(cursors) = &mut self.cursors {
                cursors.cursor.next();
            }
            self.end_step();
            if self.is_watched {
                self.count(Ticker::NumberDbNext, Ticker::NumberDbNextFound);
                self.use_notes(true);
                self.check_deadline();
                self.check_time();
            }
        }
    }

    /// Returns whether each step does more than to move the cursor.
    #[inline]
    pub(crate) fn steps_singly(&self) -> bool {
        self.is_watched || self.follows || self.cursors.is_none()
    }

    /// To the next key, which `show` sees with its value, if there is one: quicker than to ask for
    /// them afterwards, for callers that keep where they are. Does nothing when not valid.
    #[inline]
    pub fn next_showing(&mut self, mut show: impl FnMut(&[u8], &[u8])) {
        if self.is_recorded || self.steps_singly() {
            self.next();
            if let Some((key, value)) = self.entry() {
                show(key, value);
            }
        } else if let Some(cursors) = &mut self.cursors
            && cursors.cursor.valid()
        {
            // Without a time behind values: iterators with one are watched.
            cursors.cursor.next_showing(show);
            self.end_step();
        }
    }

    /// To the next key and on, up to `most` keys, each of which `show` sees with its value; the
    /// iterator ends on the last of them. Returns their number, 0 when there is no next key: it may
    /// be less than `most` at any place. The keys and values stay where they are until the iterator
    /// moves. Entries that lie beside each other in one table are shown at once, which is several
    /// times quicker than one by one. Does nothing when not valid.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// for n in 0..100_u8 {
    ///     db.put([n], "value")?;
    /// }
    /// let mut it = db.iter();
    /// it.seek_to_first();
    /// let mut sum = it.key()[0] as u32;
    /// while it.next_batch(16, |key, _| sum += key[0] as u32) > 0 {}
    /// it.status()?;
    /// assert_eq!(sum, (0..100).sum());
    /// # Ok(())
    /// # }
    /// ```
    pub fn next_batch(&mut self, most: usize, show: impl FnMut(&[u8], &[u8])) -> usize {
        let recorded = self.begin_recorded();
        let shown = self.step_forward_at_once(most, show);
        self.end_recorded(OperationKind::Next, recorded);
        shown
    }

    /// Moves as [`DbIterator::next_batch`] does, for iterators that do not step singly;
    /// [`DbIterator::taken`] shows the entries, until the iterator moves.
    pub(crate) fn take_next(&mut self, most: usize) -> usize {
        let recorded = self.begin_recorded();
        let taken = match &mut self.cursors {
            Some(cursors) if cursors.cursor.valid() => cursors.cursor.take_next(most),
            _ => 0,
        };
        self.end_step();
        self.end_recorded(OperationKind::Next, recorded);
        taken
    }

    /// Entry number `n` of those that [`DbIterator::take_next`] took.
    #[inline]
    pub(crate) fn taken(&self, n: usize) -> Option<(&[u8], &[u8])> {
        // Without a time behind values: iterators with one step singly.
        self.inner()?.taken(n)
    }

    fn step_forward_at_once(&mut self, most: usize, mut show: impl FnMut(&[u8], &[u8])) -> usize {
        if self.steps_singly() {
            self.step_forward();
            return self.show_here(show);
        }
        let Some(cursors) = self
            .cursors
            .as_mut()
            .filter(|cursors| cursors.cursor.valid())
        else {
            return 0;
        };
        let shown = cursors.cursor.next_batch(most, &mut show);
        self.end_step();
        shown
    }

    /// Goes backward as [`DbIterator::next_batch`] goes forward.
    pub fn prev_batch(&mut self, most: usize, show: impl FnMut(&[u8], &[u8])) -> usize {
        let recorded = self.begin_recorded();
        let shown = self.step_backward_at_once(most, show);
        self.end_recorded(OperationKind::Prev, recorded);
        shown
    }

    fn step_backward_at_once(&mut self, most: usize, mut show: impl FnMut(&[u8], &[u8])) -> usize {
        if self.steps_singly() {
            self.step_backward();
            return self.show_here(show);
        }
        let Some(cursors) = self
            .cursors
            .as_mut()
            .filter(|cursors| cursors.cursor.valid())
        else {
            return 0;
        };
        let shown = cursors.cursor.prev_batch(most, &mut show);
        self.end_step();
        shown
    }

    /// Shows the current entry, if there is one, and returns their number.
    fn show_here(&self, mut show: impl FnMut(&[u8], &[u8])) -> usize {
        let entry = self.entry();
        entry.inspect(|(key, value)| show(key, value));
        usize::from(entry.is_some())
    }

    /// To the previous key. Does nothing when not valid.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("a", "1")?;
    /// db.put("b", "2")?;
    /// let mut it = db.iter();
    /// it.seek_to_last();
    /// it.prev();
    /// assert_eq!(it.key(), b"a");
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn prev(&mut self) {
        let recorded = self.begin_recorded();
        self.step_backward();
        self.end_recorded(OperationKind::Prev, recorded);
    }

    #[inline]
    fn step_backward(&mut self) {
        if self.stands() {
            self.begin_move();
            let moves = !self.follows || self.still_here(VisibleCursor::seek_for_prev);
            if moves && let Some(cursors) = &mut self.cursors {
                cursors.cursor.prev();
            }
            self.end_step();
            if self.is_watched {
                self.count(Ticker::NumberDbPrev, Ticker::NumberDbPrevFound);
                self.use_notes(false);
                self.check_deadline();
                self.check_time();
            }
        }
    }

    /// Moves on to the newest state of the database, or to `snapshot`, where the iterator is not
    /// placed.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let mut it = db.iter();
    /// db.put("key", "value")?;
    /// it.seek("key");
    /// assert!(!it.valid(), "written after the iterator was made");
    /// it.refresh(None)?;
    /// it.seek("key");
    /// assert!(it.valid());
    /// # Ok(())
    /// # }
    /// ```
    pub fn refresh(&mut self, snapshot: Option<&Snapshot>) -> Result<()> {
        self.snapshot = snapshot.cloned();
        self.renew()?;
        self.unplaced = LazyCursor::new(self.cursors.take());
        Ok(())
    }

    /// Before a seek: the newest view for a tailing iterator, and whether there is time left.
    #[inline]
    fn begin_seek(&mut self) {
        if self.follows {
            self.renew_if_stale();
        }
        perf_count(PerfMetric::IterSeekCount, 1);
        if self.cursors.is_none() {
            self.settle();
            self.try_again();
        }
        let is_sampled = is_sampled(ReadOperation::Seek);
        if is_sampled || self.looked_at.is_some() {
            self.look_at_walk(is_sampled);
        }
        if self.due_us.is_some() {
            self.check_deadline();
        }
    }

    /// A seek tries again where only the last move failed.
    #[cold]
    fn try_again(&mut self) {
        let passes = |e: &Error| {
            (self.due_us.is_some() && e.kind() == ErrorKind::TimedOut)
                || (self.time_len > 0 && e.is_corruption())
        };
        match self.failure.take() {
            Some((e, Some(cursors))) if passes(&e) => self.cursors = Some(cursors),
            failed => self.failure = failed,
        }
    }

    #[cold]
    fn fail(&mut self, e: Error) {
        self.end_notes();
        self.failure = Some((e, self.cursors.take()));
    }

    /// A walk that begins with a seek that is looked at is looked at step by step; until the next
    /// seek. Other walks pay nothing for it.
    #[cold]
    fn look_at_walk(&mut self, is_sampled: bool) {
        self.looked_at = is_sampled.then(Box::default);
        self.is_watched = is_sampled || self.is_always_watched();
    }

    #[inline]
    fn begin_move(&mut self) {
        if let Some(look) = &mut self.looked_at {
            look.begin();
        }
    }

    #[inline]
    fn end_step(&mut self) {
        self.hand_over_skips();
        if let Some(look) = &self.looked_at {
            look.end(&self.family.read_totals, ReadOperation::Next);
        }
    }

    /// Adds what was passed over to the figures of the thread, if anything was.
    #[inline]
    fn hand_over_skips(&mut self) {
        let then = self.handed_over.internal_keys_skipped;
        let has_news = |c: &VisibleCursor<MergedRuns>| {
            c.counters().internal_keys_skipped != then || c.has_found()
        };
        if self.inner().is_some_and(has_news) {
            self.add_skips();
        }
    }

    fn add_skips(&mut self) {
        let Some(inner) = self.inner() else {
            return;
        };
        let (now, then) = (*inner.counters(), self.handed_over);
        self.handed_over = now;
        self.keep_deleted();
        let (all, deleted) = (
            now.internal_keys_skipped - then.internal_keys_skipped,
            now.deletions_skipped - then.deletions_skipped,
        );
        let recent = now.recent_skipped - then.recent_skipped;
        if all > 0 {
            mark_read_work();
            add_read_work([
                (ReadFigure::KeysSkipped, all - deleted - recent),
                (ReadFigure::DeletionsSkipped, deleted),
                (ReadFigure::RecentSkipped, recent),
            ]);
        }
    }

    /// Once the iterator's time is over it fails with `TimedOut`.
    fn check_deadline(&mut self) {
        if self.cursors.is_some()
            && let Err(e) = check_due(&self.core, self.due_us)
        {
            self.fail(e);
        }
    }

    /// In a database with times to live, a value without a time is a failure.
    fn check_time(&mut self) {
        if self.time_len > 0
            && let Some(inner) = self.inner().filter(|c| c.valid())
            && let Err(e) = ttl::stored_time(inner.value())
        {
            self.fail(e);
        }
    }

    fn count_seek(&mut self, start: Option<u64>) {
        self.check_time();
        let Some(s) = &self.core.statistics else {
            return;
        };
        if let Some(start) = start {
            s.record(HistogramId::DbSeek, self.core.env.clock.now_us() - start);
        }
        let reseeks = self.inner().map_or(0, |c| c.counters().reseeks);
        if reseeks > self.reported_reseeks {
            s.add(
                Ticker::NumberOfReseeksInIteration,
                reseeks - self.reported_reseeks,
            );
            self.reported_reseeks = reseeks;
        }
    }

    /// Returns whether it went on to a newer view; it must be placed again then.
    fn renew_if_stale(&mut self) -> bool {
        let has_new_view = || self.view.number != self.family.view_guard().number;
        let (options, is_pinned) = (&self.options, self.snapshot.is_some());
        let is_stale = if is_pinned {
            let follows_views = options.auto_refresh_iterator_with_snapshot;
            follows_views && options.iter_start_ts.is_none() && has_new_view()
        } else {
            options.tailing && (self.seq != self.core.sequence.published() || has_new_view())
        };
        if !is_stale {
            return false;
        }
        match self.renew() {
            Ok(()) => true,
            Err(e) => {
                let family = &self.family.name;
                self.core.info_log.warn(format_args!(
                    "[{family}] an iterator stays at its old view: {e}"
                ));
                false
            }
        }
    }

    /// Goes on to the newest view before a move. False when its key is gone from that: `seek` then
    /// has moved it already.
    #[cold]
    fn still_here(&mut self, seek: fn(&mut VisibleCursor<MergedRuns>, &[u8])) -> bool {
        let here = self.key().to_vec();
        if self.renew_if_stale() {
            if let Some(cursors) = &mut self.cursors {
                seek(&mut cursors.cursor, &here);
            }
            return self.valid() && self.family.order.compare(self.key(), &here).is_eq();
        }
        true
    }

    fn renew(&mut self) -> Result<()> {
        let (view, epoch) = self.family.view_and_epoch();
        let seq = self.core.read_seq(&view, self.snapshot.as_ref())?;
        let request = IterRequest {
            core: &self.core,
            family: &self.family,
            options: &self.options,
            view: &view,
            seq,
            epoch,
        };
        let cursors = IteratorCursors::of(&request)?;
        self.end_notes();
        self.unplaced = LazyCursor::new(None);
        self.cursors = Some(cursors);
        self.is_watched = self.looked_at.is_some() || self.is_always_watched();
        self.failure = None;
        // Its place first, for the new one.
        self.listed = ListedIterator::default();
        self.listed = ListedIterator::new(view.id.0);
        self.view = view;
        self.epoch = epoch;
        self.seq = seq;
        self.reported_skips = 0;
        self.reported_reseeks = 0;
        self.handed_over = VisibleCounters::default();
        Ok(())
    }

    /// The end of an iterator that was watched: all are with statistics.
    fn end_watched(&mut self) {
        self.end_notes();
        if let Some(s) = &self.core.statistics {
            s.add(Ticker::NoIteratorDeleted, 1);
        }
    }

    fn count(&mut self, tried: Ticker, found: Ticker) {
        let Some(s) = &self.core.statistics else {
            return;
        };
        s.add(tried, 1);
        let Some(inner) = self.inner() else {
            return;
        };
        if inner.valid() {
            s.add(found, 1);
            s.add(
                Ticker::IterBytesRead,
                (inner.key().len() + inner.value().len()) as u64,
            );
        }
        let skipped = inner.counters().internal_keys_skipped;
        if skipped > self.reported_skips {
            s.add(Ticker::NumberIterSkip, skipped - self.reported_skips);
            self.reported_skips = skipped;
        }
    }
}

impl Drop for DbIterator {
    fn drop(&mut self) {
        if self.cursors.is_none() {
            self.settle();
        }
        if self.is_watched {
            self.end_watched();
        }
        if let Some(cursors) = self.cursors.take() {
            cursors.park(&self.view);
        }
        if self.core.obsolete_files.is_waiting() {
            self.core.background_cv.notify();
        }
    }
}
