//! The iterator that callers hold: a view, its runs merged, and what one snapshot sees of them.
//!
//! It owns everything it reads, so it outlives handles, flushes and compactions, and a dropped
//! database handle. A tailing iterator goes on to the newest view before every move.

use super::bucket::BucketCursor;
use super::get::{check_due, due_of, read_context};
use super::source::{LevelCursor, LevelRangeDeletions, Source};
use crate::core::ReadCore;
use crate::family::{Family, View};
use crate::observe::{HistogramId, PerfMetric, Ticker, perf_count};
use crate::options::{FamilyOptions, MemtableKind, ReadOptions, ReadTier, TableFilter};
use crate::snapshot::Snapshot;
use crate::{timestamp, ttl};
use esker_format::prefix::PrefixExtractor;
use esker_format::{KeyOrder, Level, Seq};
use esker_lsm::merging::MergingCursor;
use esker_lsm::pick::for_reads::ReadKind;
use esker_lsm::tombstone::{ClippedTombstones, ReadTombstones};
use esker_lsm::version::LevelFiles;
use esker_lsm::visible::{VisibleCursor, VisibleOptions};
use esker_status::{Error, ErrorKind, Result};
use esker_sync::Arc;

type Merged = MergingCursor<Source>;

/// Walks the live keys of one column family in order, as one snapshot sees them.
///
/// Not valid until it is placed. After a move that ends in `!valid()`, [`DbIterator::status`] tells
/// the end of the data from a failure. Keys and values are slices that live until the next move.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
/// for n in 0..3u8 {
///     db.put([n], [n])?;
/// }
/// let mut it = db.iter();
/// it.seek_to_first();
/// let mut seen = Vec::new();
/// while it.valid() {
///     seen.push(it.key().to_vec());
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
    is_tailing: bool,
    snapshot: Option<Snapshot>,
    view: Arc<View>,
    seq: Seq,
    inner: VisibleCursor<Merged>,
    /// Why the iterator could not be made; it then walks nothing.
    failure: Option<Error>,
    reported_skips: u64,
    reported_reseeks: u64,
    /// When its time is over, by the clock.
    due_us: Option<u64>,
    /// Whether every step is counted, timed or checked.
    is_watched: bool,
    /// Bytes of the time behind each value; 0 where there is none.
    time_len: usize,
}

impl std::fmt::Debug for DbIterator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DbIterator")
            .field("family", &self.family.name)
            .field("valid", &self.valid())
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
        let view = family.view();
        let seq = core.read_seq(&view, snapshot.as_ref());
        let due_us = due_of(&core, &options);
        let time_len = core.ttl.as_ref().map_or(0, |_| ttl::TIME_LEN);
        let is_watched = core.statistics.is_some() || due_us.is_some() || time_len > 0;
        if let Some(s) = &core.statistics {
            s.add(Ticker::NoIteratorCreated, 1);
        }
        let built = seq.and_then(|seq| Ok((build(&core, &family, &options, &view, seq)?, seq)));
        let (inner, seq, failure) = match built {
            Ok((inner, seq)) => (inner, seq, None),
            Err(e) => (nothing(), Seq::ZERO, Some(e)),
        };
        DbIterator {
            core,
            family,
            is_tailing: options.tailing,
            options,
            snapshot,
            view,
            seq,
            inner,
            failure,
            reported_skips: 0,
            reported_reseeks: 0,
            due_us,
            is_watched,
            time_len,
        }
    }

    /// Whether it stands on a key.
    #[inline]
    pub fn valid(&self) -> bool {
        self.failure.is_none() && self.inner.valid()
    }

    /// `Ok`, or why the iterator is not valid.
    pub fn status(&self) -> Result<()> {
        match &self.failure {
            Some(e) => Err(e.clone()),
            None => self.inner.status(),
        }
    }

    /// The key; only while valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }

    /// The value (of a wide-column entity: its default column); only while valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.without_time(self.inner.value())
    }

    /// Values without room for a time are not valid positions.
    #[inline]
    fn without_time<'a>(&self, value: &'a [u8]) -> &'a [u8] {
        &value[..value.len().saturating_sub(self.time_len)]
    }

    /// The encoded wide-column entity, when the entry is one.
    pub fn entity(&self) -> Option<&[u8]> {
        self.inner.entity()
    }

    /// The user-defined timestamp of the entry; empty in families without.
    pub fn timestamp(&self) -> &[u8] {
        self.inner.timestamp()
    }

    /// Whether it shows the versions of keys one by one: [`ReadOptions::iter_start_ts`] was given.
    pub fn shows_versions(&self) -> bool {
        self.options.iter_start_ts.is_some()
    }

    /// Whether the entry is a deletion; with [`ReadOptions::iter_start_ts`], which shows them.
    pub fn is_deletion(&self) -> bool {
        self.inner.is_deletion()
    }

    /// With [`ReadOptions::iter_start_ts`]: key, timestamp, sequence number and type of the entry
    /// in RocksDB's form, as the iterators of its C interface show them; only while valid.
    pub fn internal_key(&self) -> &[u8] {
        self.inner.internal_key()
    }

    /// Key and value, while valid: quicker than both by themselves. Small, once for each entry:
    /// always inlined.
    #[inline(always)]
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        if self.failure.is_some() {
            return None;
        }
        let (key, value) = self.inner.entry()?;
        Some((key, self.without_time(value)))
    }

    /// The second of the Unix epoch in which the entry was written, in a database with times to
    /// live.
    pub fn ttl_time(&self) -> Option<i32> {
        let value = (self.time_len > 0 && self.valid()).then(|| self.inner.value())?;
        ttl::time_of(value).ok()
    }

    /// To the first key.
    pub fn seek_to_first(&mut self) {
        if self.begin_seek() {
            let start = self.seek_timer();
            self.inner.seek_to_first();
            self.count(Ticker::NumberDbSeek, Ticker::NumberDbSeekFound);
            self.count_seek(start);
        }
    }

    /// To the last key.
    pub fn seek_to_last(&mut self) {
        if self.begin_seek() {
            let start = self.seek_timer();
            self.inner.seek_to_last();
            self.count(Ticker::NumberDbSeek, Ticker::NumberDbSeekFound);
            self.count_seek(start);
        }
    }

    /// To the first key at or after `target`.
    pub fn seek(&mut self, target: impl AsRef<[u8]>) {
        if self.begin_seek() {
            let start = self.seek_timer();
            self.inner.seek(target.as_ref());
            self.count(Ticker::NumberDbSeek, Ticker::NumberDbSeekFound);
            self.count_seek(start);
        }
    }

    /// To the last key at or before `target`.
    pub fn seek_for_prev(&mut self, target: impl AsRef<[u8]>) {
        if self.begin_seek() {
            let start = self.seek_timer();
            self.inner.seek_for_prev(target.as_ref());
            self.count(Ticker::NumberDbSeek, Ticker::NumberDbSeekFound);
            self.count_seek(start);
        }
    }

    /// To the next key. Does nothing when not valid.
    #[inline]
    pub fn next(&mut self) {
        if self.valid() {
            if !self.is_tailing || self.still_here(VisibleCursor::seek) {
                self.inner.next();
            }
            if self.is_watched {
                self.count(Ticker::NumberDbNext, Ticker::NumberDbNextFound);
                self.check_deadline();
                self.check_time();
            }
        }
    }

    /// To the next key, which `show` sees with its value, if there is one: quicker than to ask for
    /// them afterwards, for callers that keep where they are. Does nothing when not valid.
    #[inline]
    pub fn next_showing(&mut self, mut show: impl FnMut(&[u8], &[u8])) {
        if self.is_watched || self.is_tailing {
            self.next();
            if let Some((key, value)) = self.entry() {
                show(key, value);
            }
        } else if self.valid() {
            // Without a time behind values: iterators with one are watched.
            self.inner.next_showing(show);
        }
    }

    /// To the previous key. Does nothing when not valid.
    #[inline]
    pub fn prev(&mut self) {
        if self.valid() {
            if !self.is_tailing || self.still_here(VisibleCursor::seek_for_prev) {
                self.inner.prev();
            }
            if self.is_watched {
                self.count(Ticker::NumberDbPrev, Ticker::NumberDbPrevFound);
                self.check_deadline();
                self.check_time();
            }
        }
    }

    /// Moves on to the newest state of the database, or to `snapshot`; the iterator must be placed
    /// again.
    pub fn refresh(&mut self, snapshot: Option<&Snapshot>) -> Result<()> {
        self.snapshot = snapshot.cloned();
        self.renew()
    }

    /// A figure of the iterator by RocksDB's name, such as `rocksdb.iterator.super-version-number`.
    pub fn property(&self, name: &str) -> Option<String> {
        match name {
            "rocksdb.iterator.super-version-number" => Some(self.view.number.to_string()),
            // Slices live until the next move: nothing is promised beyond it.
            "rocksdb.iterator.is-key-pinned" | "rocksdb.iterator.is-value-pinned" => {
                Some("0".to_owned())
            }
            "rocksdb.iterator.internal-key" if self.valid() => {
                Some(String::from_utf8_lossy(self.key()).into_owned())
            }
            _ => None,
        }
    }

    /// Before a seek: the newest view for a tailing iterator, and whether there is time left.
    #[inline]
    fn begin_seek(&mut self) -> bool {
        if self.is_tailing {
            self.renew_if_tailing();
        }
        perf_count(PerfMetric::IterSeekCount, 1);
        if self.family.count_read(&self.view, ReadKind::Seek) {
            self.core.background_cv.notify();
        }
        if self.due_us.is_some() {
            if self
                .failure
                .as_ref()
                .is_some_and(|e| e.kind() == ErrorKind::TimedOut)
            {
                self.failure = None;
            }
            self.check_deadline();
        }
        if self.time_len > 0 && self.failure.as_ref().is_some_and(Error::is_corruption) {
            self.failure = None;
        }
        self.failure.is_none()
    }

    /// Once the iterator's time is over it fails with `TimedOut`.
    fn check_deadline(&mut self) {
        if let Err(e) = check_due(&self.core, self.due_us) {
            self.failure = Some(e);
        }
    }

    /// In a database with times to live, a value without a time is a failure.
    fn check_time(&mut self) {
        if self.time_len > 0
            && self.valid()
            && let Err(e) = ttl::check(self.inner.value())
        {
            self.failure = Some(e);
        }
    }

    fn seek_timer(&self) -> Option<u64> {
        let statistics = self.core.statistics.as_deref()?;
        statistics
            .wants_times()
            .then(|| self.core.env.clock.now_us())
    }

    fn count_seek(&mut self, start: Option<u64>) {
        self.check_time();
        let Some(s) = &self.core.statistics else {
            return;
        };
        if let Some(start) = start {
            s.record(HistogramId::DbSeek, self.core.env.clock.now_us() - start);
        }
        let reseeks = self.inner.counters().reseeks;
        if reseeks > self.reported_reseeks {
            s.add(
                Ticker::NumberOfReseeksInIteration,
                reseeks - self.reported_reseeks,
            );
            self.reported_reseeks = reseeks;
        }
    }

    /// Whether it went on to a newer view; it must be placed again then.
    fn renew_if_tailing(&mut self) -> bool {
        if !self.is_tailing || self.snapshot.is_some() {
            return false;
        }
        let stale = self.seq != self.core.sequence.published()
            || self.view.number != self.family.view_guard().number;
        if !stale {
            return false;
        }
        match self.renew() {
            Ok(()) => true,
            Err(e) => {
                self.core.info_log.warn(format_args!(
                    "a tailing iterator stays at its old view: {e}"
                ));
                false
            }
        }
    }

    /// A tailing iterator goes on to the newest view before it moves. False when its key is gone
    /// from that: `seek` then has moved it already.
    #[cold]
    fn still_here(&mut self, seek: fn(&mut VisibleCursor<Merged>, &[u8])) -> bool {
        let here = self.inner.key().to_vec();
        if self.renew_if_tailing() {
            seek(&mut self.inner, &here);
            return self.inner.valid()
                && self.family.order.compare(self.inner.key(), &here).is_eq();
        }
        true
    }

    fn renew(&mut self) -> Result<()> {
        let view = self.family.view();
        let seq = self.core.read_seq(&view, self.snapshot.as_ref())?;
        self.inner = build(&self.core, &self.family, &self.options, &view, seq)?;
        self.failure = None;
        self.view = view;
        self.seq = seq;
        self.reported_skips = 0;
        self.reported_reseeks = 0;
        Ok(())
    }

    fn count(&mut self, tried: Ticker, found: Ticker) {
        let Some(s) = &self.core.statistics else {
            return;
        };
        s.add(tried, 1);
        if self.inner.valid() {
            s.add(found, 1);
            s.add(
                Ticker::IterBytesRead,
                (self.inner.key().len() + self.inner.value().len()) as u64,
            );
        }
        let skipped = self.inner.counters().internal_keys_skipped;
        if skipped > self.reported_skips {
            s.add(Ticker::NumberIterSkip, skipped - self.reported_skips);
            self.reported_skips = skipped;
        }
    }
}

impl Drop for DbIterator {
    fn drop(&mut self) {
        if let Some(s) = &self.core.statistics {
            s.add(Ticker::NoIteratorDeleted, 1);
        }
        if self.core.obsolete_files.is_waiting() {
            self.core.background_cv.notify();
        }
    }
}

/// A cursor over nothing.
fn nothing() -> VisibleCursor<Merged> {
    let order = KeyOrder::Bytewise;
    let none = MergingCursor::new(Vec::new(), order.clone());
    let deletions = ReadTombstones::new(order.clone(), Seq::MAX);
    VisibleCursor::new(none, deletions, VisibleOptions::new(order, Seq::MAX))
        .expect("no timestamps, so none can be missing")
}

fn build(
    core: &Arc<ReadCore>,
    family: &Arc<Family>,
    options: &ReadOptions,
    view: &Arc<View>,
    seq: Seq,
) -> Result<VisibleCursor<Merged>> {
    if options.read_tier == ReadTier::Persisted {
        return Err(Error::not_supported("an iterator with read_tier Persisted"));
    }
    if options.tailing && core.follower.is_some() {
        return Err(Error::not_supported(
            "tailing iterator not supported in secondary mode",
        ));
    }
    timestamp::check_read(family, view, options.timestamp.as_deref())?;
    let of_family = family.options.load();
    let bucket = prefix_of_buckets(&of_family, options);
    let (runs, tombstones) = runs(core, family, options, view, seq, bucket)?;
    let filtered =
        !options.total_order_seek && (options.prefix_same_as_start || options.auto_prefix_mode);
    let merged = MergingCursor::new(runs, family.order.clone()).with_filtered_seeks(filtered);
    VisibleCursor::new(
        merged,
        tombstones,
        visible_options(core, family, &of_family, options, seq),
    )
}

/// The files of a sorted level that a filter wants.
fn wanted_files(
    core: &ReadCore,
    family: &Family,
    files: &LevelFiles,
    level: Level,
    filter: &TableFilter,
) -> Result<LevelFiles> {
    let mut wanted = Vec::new();
    for file in files.files() {
        let table = core.tables.get(file, level, &family.reading)?;
        if filter.wants(table.reader.properties()) {
            wanted.push(Arc::clone(file));
        }
    }
    Ok(LevelFiles::new(&family.order, wanted))
}

/// The runs of a view, newest first, with their range tombstones.
fn runs(
    core: &Arc<ReadCore>,
    family: &Arc<Family>,
    options: &ReadOptions,
    view: &Arc<View>,
    seq: Seq,
    bucket: Option<PrefixExtractor>,
) -> Result<(Vec<Source>, ReadTombstones)> {
    let ctx = read_context(options);
    let mut runs = Vec::with_capacity(view.immutable.len() + 8);
    let mut deletions = ReadTombstones::new(family.order.clone(), seq);
    let wanted = !options.ignore_range_deletions;
    for mem in std::iter::once(&view.mem).chain(&view.immutable) {
        // What is written from now on is after `seq`, which was read before.
        if mem.is_empty() {
            continue;
        }
        runs.push(match &bucket {
            None => Source::Mem(mem.cursor()),
            Some(extractor) => Source::Bucket(Box::new(BucketCursor::over(
                mem.cursor(),
                extractor.clone(),
                family.order.clone(),
            ))),
        });
        if let Some(t) = mem.tombstones()?.filter(|_| wanted) {
            deletions.add(ClippedTombstones::whole(t), runs.len());
        }
    }
    if options.read_tier == ReadTier::Memtable {
        return Ok((runs, deletions));
    }
    for file in view.version.level(Level::L0).files() {
        let table = core.tables.get(file, Level::L0, &family.reading)?;
        let is_wanted = |f: &TableFilter| f.wants(table.reader.properties());
        runs.push(if options.table_filter.as_ref().is_none_or(is_wanted) {
            Source::Table(Box::new(table.reader.cursor(&ctx)))
        } else {
            // Its range deletions count, from the same place.
            Source::Level(Box::new(LevelCursor::over(
                Arc::clone(core),
                Arc::clone(family),
                Arc::new(LevelFiles::new(&family.order, Vec::new())),
                Level::L0,
                ctx.clone(),
            )))
        });
        if let Some(t) = table.tombstones()?.filter(|_| wanted) {
            deletions.add(
                ClippedTombstones::of_file(Arc::clone(t), &file.smallest, &file.largest),
                runs.len(),
            );
        }
    }
    for level in (1..view.version.num_levels()).map(|l| Level(l as u8)) {
        if view.version.level(level).is_empty() {
            continue;
        }
        let version = || Arc::clone(&view.version);
        let files = Arc::clone(&view.version.levels()[level.index()]);
        let files = match &options.table_filter {
            Some(filter) => Arc::new(wanted_files(core, family, &files, level, filter)?),
            None => files,
        };
        let cursor = LevelCursor::over(
            Arc::clone(core),
            Arc::clone(family),
            files,
            level,
            ctx.clone(),
        );
        runs.push(Source::Level(Box::new(cursor)));
        if wanted && view.version.level(level).may_delete_ranges() {
            let level =
                LevelRangeDeletions::new(Arc::clone(core), Arc::clone(family), version(), level);
            deletions.add_level(Box::new(level), runs.len());
        }
    }
    Ok((runs, deletions))
}

/// What memtables are walked by, when they are of a kind that keeps each prefix by itself:
/// RocksDB's iterators then show of them only the prefix that was sought, unless they are asked for
/// the total order.
fn prefix_of_buckets(family: &FamilyOptions, options: &ReadOptions) -> Option<PrefixExtractor> {
    let by_prefix = |o: &FamilyOptions| {
        matches!(
            o.memtable_factory,
            MemtableKind::HashSkipList | MemtableKind::HashLinkList
        )
    };
    if options.total_order_seek || options.auto_prefix_mode {
        return None;
    }
    by_prefix(family)
        .then(|| family.prefix_extractor.clone())
        .flatten()
}

fn visible_options(
    core: &Arc<ReadCore>,
    family: &Arc<Family>,
    family_options: &FamilyOptions,
    options: &ReadOptions,
    seq: Seq,
) -> VisibleOptions {
    let mut visible = VisibleOptions::new(family.order.clone(), seq);
    visible.read_timestamp = options.timestamp.clone();
    visible.oldest_timestamp = options.iter_start_ts.clone();
    visible.lower = options.iterate_lower_bound.clone();
    visible.upper = options.iterate_upper_bound.clone();
    visible.prefix_same_as_start = options.prefix_same_as_start;
    if options.prefix_same_as_start
        && let Some(extractor) = family_options.prefix_extractor.clone()
    {
        visible.prefix = Some(Arc::new(move |key| extractor.prefix(key).map(<[u8]>::len)));
    }
    visible.max_sequential_skip = family_options.max_sequential_skip_in_iterations;
    visible.max_skippable_internal_keys = options.max_skippable_internal_keys;
    visible.merge_operator = family_options.merge_operator.clone();
    visible.resolver = Some(family.blob_resolver(&core.blobs));
    visible
}
