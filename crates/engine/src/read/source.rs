//! The runs of a view as cursors: memtables, and one cursor for each table of level 0 and for each
//! deeper level.

use super::bucket::BucketCursor;
use crate::memtable::MemCursor;
use crate::tree::tables::TableAccess;
use esker_files::table::{ReadContext, TableCursor};
use esker_format::entry_batch::{BatchLimits, EntryBatch};
use esker_format::{Cursor, KeyOrder, Level};
use esker_lsm::file::FileMeta;
use esker_lsm::tombstone::{Clip, FragmentedTombstones, LevelTombstones};
use esker_lsm::version::{LevelFiles, Version};
use esker_status::Result;
use esker_sync::Arc;

/// One run of a view.
pub(crate) enum Source {
    Mem(MemCursor),
    Bucket(Box<BucketCursor>),
    Table(Box<TableCursor>),
    Level(Box<LevelCursor>),
}

macro_rules! on {
    ($self:ident, $c:ident => $e:expr) => {
        match $self {
            Source::Mem($c) => $e,
            Source::Bucket($c) => $e,
            Source::Table($c) => $e,
            Source::Level($c) => $e,
        }
    };
}

impl Cursor for Source {
    #[inline(always)]
    fn valid(&self) -> bool {
        on!(self, c => c.valid())
    }
    fn seek_to_first(&mut self) {
        on!(self, c => c.seek_to_first());
    }
    fn seek_to_last(&mut self) {
        on!(self, c => c.seek_to_last());
    }
    #[inline]
    fn seek(&mut self, target: &[u8]) {
        on!(self, c => c.seek(target));
    }
    #[inline]
    fn seek_for_prev(&mut self, target: &[u8]) {
        on!(self, c => c.seek_for_prev(target));
    }
    #[inline(always)]
    fn next(&mut self) {
        on!(self, c => c.next());
    }
    #[inline]
    fn prev(&mut self) {
        on!(self, c => c.prev());
    }
    #[inline]
    fn key(&self) -> &[u8] {
        on!(self, c => c.key())
    }
    #[inline]
    fn value(&self) -> &[u8] {
        on!(self, c => c.value())
    }
    #[inline(always)]
    fn entry(&self) -> (&[u8], &[u8]) {
        on!(self, c => c.entry())
    }
    #[inline(always)]
    fn next_is_another_key(&self) -> bool {
        on!(self, c => c.next_is_another_key())
    }
    #[inline]
    fn prev_is_another_key(&self) -> bool {
        on!(self, c => c.prev_is_another_key())
    }
    fn status(&self) -> Result<()> {
        on!(self, c => c.status())
    }
    fn begin_seek(&mut self, target: &[u8]) {
        match self {
            Source::Level(c) => c.begin_seek(target),
            Source::Table(c) => c.begin_seek(target),
            Source::Mem(_) | Source::Bucket(_) => {}
        }
    }
    #[inline]
    fn is_deferred(&self) -> bool {
        match self {
            Source::Level(c) => c.is_deferred(),
            Source::Mem(_) | Source::Bucket(_) | Source::Table(_) => false,
        }
    }
    fn read_deferred(&mut self) {
        if let Source::Level(c) = self {
            c.read_deferred();
        }
    }
    #[inline]
    fn next_batch(&mut self, limits: &BatchLimits<'_>, batch: &mut EntryBatch) {
        on!(self, c => c.next_batch(limits, batch));
    }
    #[inline]
    fn prev_batch(&mut self, limits: &BatchLimits<'_>, batch: &mut EntryBatch) {
        on!(self, c => c.prev_batch(limits, batch));
    }
    #[inline]
    fn block_bytes(&self) -> &[u8] {
        on!(self, c => c.block_bytes())
    }
}

impl Source {
    /// Holds no block any more; not valid until it is placed.
    pub(crate) fn rest(&mut self) {
        if let Source::Level(c) = self {
            c.rest();
        }
    }
}

/// Tables that are sorted and disjoint; they live as long as this.
pub(crate) enum RunFiles {
    Level(Arc<LevelFiles>),
    One(Arc<FileMeta>),
}

impl RunFiles {
    fn len(&self) -> usize {
        match self {
            RunFiles::Level(files) => files.len(),
            RunFiles::One(_) => 1,
        }
    }
    fn get(&self, index: usize) -> Option<&Arc<FileMeta>> {
        match self {
            RunFiles::Level(files) => files.files().get(index),
            RunFiles::One(file) => (index == 0).then_some(file),
        }
    }
    /// The first table whose largest key is at or after `target`; `len()` when there is none.
    fn find(&self, order: &KeyOrder, target: &[u8]) -> usize {
        match self {
            RunFiles::Level(files) => files.find(order, target),
            RunFiles::One(file) => usize::from(
                order
                    .compare_internal(file.largest.as_bytes(), target)
                    .is_lt(),
            ),
        }
    }
}

/// Where a seek went that found no table around its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeferredSeek {
    No,
    /// The first entry of the table `at` is next.
    First,
    /// The last entry of the table `at` is next.
    Last,
}

/// A sorted run of tables as one cursor: at most one table is open in it at a time.
///
/// A seek to a key between two tables defers reading ([`Cursor::is_deferred`]): the boundaries of
/// tables say how far away the next entry is at least.
pub(crate) struct LevelCursor {
    access: Arc<TableAccess>,
    files: RunFiles,
    level: Level,
    ctx: ReadContext,
    /// The file that `table` reads, or that is deferred.
    at: usize,
    /// None where reading is deferred.
    table: Option<TableCursor>,
    deferred: DeferredSeek,
    error: Option<esker_status::Error>,
}

impl LevelCursor {
    /// Over `files`, which are at `level`.
    pub(crate) fn over(
        access: Arc<TableAccess>,
        files: RunFiles,
        level: Level,
        ctx: ReadContext,
    ) -> Self {
        LevelCursor {
            access,
            files,
            level,
            ctx,
            at: usize::MAX,
            table: None,
            deferred: DeferredSeek::No,
            error: None,
        }
    }

    /// Holds no block any more, and no table if those that are open are counted.
    pub(crate) fn rest(&mut self) {
        self.deferred = DeferredSeek::No;
        self.error = None;
        match &mut self.table {
            Some(table) if self.access.tables.are_unlimited() => table.rest(),
            _ => self.table = None,
        }
    }

    /// Makes `table` read file `index`; false when there is none or it cannot be opened.
    fn open(&mut self, index: usize) -> bool {
        self.error = None;
        self.deferred = DeferredSeek::No;
        if self.at == index && self.table.is_some() {
            return true;
        }
        let Some(file) = self.files.get(index) else {
            self.table = None;
            self.at = usize::MAX;
            return false;
        };
        let (tables, reading) = (&self.access.tables, &self.access.reading);
        let opened = tables.get(file, self.level, reading);
        let opened = opened.and_then(|t| {
            if self.ctx.background {
                tables.job_cursor(&t, &self.ctx, file, reading)
            } else {
                Ok(t.reader.cursor(&self.ctx))
            }
        });
        match opened {
            Ok(cursor) => {
                self.table = Some(cursor);
                self.at = index;
                true
            }
            Err(e) => {
                self.error = Some(e);
                self.table = None;
                self.at = usize::MAX;
                false
            }
        }
    }

    /// Stands before the first or behind the last entry of file `index`, without reading it.
    fn defer(&mut self, index: usize, edge: DeferredSeek) {
        self.error = None;
        self.table = None;
        self.at = index;
        self.deferred = edge;
    }

    /// The boundary of the file that is deferred; nothing when none is.
    fn bound(&self) -> &[u8] {
        let file = self.files.get(self.at);
        match (self.deferred, file) {
            (DeferredSeek::First, Some(file)) => file.smallest.as_bytes(),
            (DeferredSeek::Last, Some(file)) => file.largest.as_bytes(),
            _ => &[],
        }
    }

    /// Returns whether `target` lies before all of file `index`, as far as its boundary tells. A
    /// table that is open is read: it costs less than to open it again.
    fn is_before(&self, target: &[u8], index: usize) -> bool {
        let is_open = self.at == index && self.table.is_some();
        let before = |f: &Arc<FileMeta>| {
            !f.timestamps_stripped
                && self
                    .access
                    .order
                    .compare_internal(target, f.smallest.as_bytes())
                    .is_lt()
        };
        !is_open && self.files.get(index).is_some_and(before)
    }

    /// While the table is exhausted without an error: on to the next file that has something.
    fn skip_forward(&mut self) {
        while let Some(t) = &self.table {
            if t.valid() || t.status().is_err() {
                return;
            }
            let next = self.at + 1;
            if !self.open(next) {
                return;
            }
            if let Some(t) = &mut self.table {
                t.seek_to_first();
            }
        }
    }

    fn skip_backward(&mut self) {
        while let Some(t) = &self.table {
            if t.valid() || t.status().is_err() {
                return;
            }
            let Some(previous) = self.at.checked_sub(1) else {
                self.table = None;
                return;
            };
            if !self.open(previous) {
                return;
            }
            if let Some(t) = &mut self.table {
                t.seek_to_last();
            }
        }
    }

    fn first_of(&mut self, index: usize) {
        if self.open(index)
            && let Some(t) = &mut self.table
        {
            t.seek_to_first();
        }
        self.skip_forward();
    }

    fn last_of(&mut self, index: usize) {
        if self.open(index)
            && let Some(t) = &mut self.table
        {
            t.seek_to_last();
        }
        self.skip_backward();
    }
}

impl Cursor for LevelCursor {
    #[inline]
    fn valid(&self) -> bool {
        match &self.table {
            Some(t) => t.valid(),
            None => self.deferred != DeferredSeek::No,
        }
    }

    fn seek_to_first(&mut self) {
        self.first_of(0);
    }

    fn seek_to_last(&mut self) {
        self.last_of(self.files.len().wrapping_sub(1));
    }

    fn seek(&mut self, target: &[u8]) {
        let index = self.files.find(&self.access.order, target);
        if self.is_before(target, index) {
            return self.defer(index, DeferredSeek::First);
        }
        if self.open(index)
            && let Some(t) = &mut self.table
        {
            t.seek(target);
        }
        self.skip_forward();
    }

    fn seek_for_prev(&mut self, target: &[u8]) {
        let index = self.files.find(&self.access.order, target);
        let last = self.files.len().wrapping_sub(1);
        if (index > last || self.is_before(target, index)) && index > 0 {
            let previous = index - 1;
            if self.at == previous && self.table.is_some() {
                return self.last_of(previous);
            }
            let stripped = |f: &Arc<FileMeta>| f.timestamps_stripped;
            if !self.files.get(previous).is_some_and(stripped) {
                return self.defer(previous, DeferredSeek::Last);
            }
        }
        if self.open(index.min(last))
            && let Some(t) = &mut self.table
        {
            t.seek_for_prev(target);
        }
        self.skip_backward();
    }

    fn begin_seek(&mut self, target: &[u8]) {
        let index = self.files.find(&self.access.order, target);
        // What does not lie around the target is deferred.
        if index < self.files.len()
            && !self.is_before(target, index)
            && self.open(index)
            && let Some(t) = &mut self.table
        {
            t.begin_seek(target);
        }
    }

    #[inline]
    fn is_deferred(&self) -> bool {
        self.deferred != DeferredSeek::No
    }

    fn read_deferred(&mut self) {
        match self.deferred {
            DeferredSeek::No => {}
            DeferredSeek::First => self.first_of(self.at),
            DeferredSeek::Last => self.last_of(self.at),
        }
    }

    /// Once for each step of a walk: always inlined.
    #[inline(always)]
    fn next(&mut self) {
        let Some(t) = &mut self.table else {
            self.deferred = DeferredSeek::No;
            return;
        };
        t.next();
        if !t.valid() {
            self.skip_forward();
        }
    }

    #[inline]
    fn prev(&mut self) {
        let Some(t) = &mut self.table else {
            self.deferred = DeferredSeek::No;
            return;
        };
        t.prev();
        if !t.valid() {
            self.skip_backward();
        }
    }

    #[inline(always)]
    fn key(&self) -> &[u8] {
        match &self.table {
            Some(t) => t.key(),
            None => self.bound(),
        }
    }

    #[inline(always)]
    fn value(&self) -> &[u8] {
        match &self.table {
            Some(t) => t.value(),
            None => &[],
        }
    }

    #[inline(always)]
    fn entry(&self) -> (&[u8], &[u8]) {
        match &self.table {
            Some(t) => t.entry(),
            None => (self.bound(), &[]),
        }
    }

    #[inline(always)]
    fn next_is_another_key(&self) -> bool {
        self.table.as_ref().is_some_and(Cursor::next_is_another_key)
    }

    #[inline]
    fn prev_is_another_key(&self) -> bool {
        self.table.as_ref().is_some_and(Cursor::prev_is_another_key)
    }

    #[inline]
    fn next_batch(&mut self, limits: &BatchLimits<'_>, batch: &mut EntryBatch) {
        if let Some(t) = &mut self.table {
            t.next_batch(limits, batch);
        }
    }

    #[inline]
    fn prev_batch(&mut self, limits: &BatchLimits<'_>, batch: &mut EntryBatch) {
        if let Some(t) = &mut self.table {
            t.prev_batch(limits, batch);
        }
    }

    #[inline]
    fn block_bytes(&self) -> &[u8] {
        self.table.as_ref().map_or(&[], Cursor::block_bytes)
    }

    fn status(&self) -> Result<()> {
        match (&self.error, &self.table) {
            (Some(e), _) => Err(e.clone()),
            (None, Some(t)) => t.status(),
            (None, None) => Ok(()),
        }
    }
}

/// The range tombstones of a sorted level, opened file by file.
pub(crate) struct LevelRangeDeletions {
    access: Arc<TableAccess>,
    version: Arc<Version>,
    level: Level,
    clips: Vec<Clip>,
}

impl LevelRangeDeletions {
    pub(crate) fn new(access: Arc<TableAccess>, version: Arc<Version>, level: Level) -> Self {
        let files = version.level(level).files().iter();
        let clip =
            |f: &Arc<FileMeta>| Clip::from_boundaries(&f.smallest, &f.largest, &access.order);
        let clips = files.map(clip).collect();
        LevelRangeDeletions {
            access,
            version,
            level,
            clips,
        }
    }
}

impl LevelTombstones for LevelRangeDeletions {
    fn len(&self) -> usize {
        self.clips.len()
    }
    fn clip(&self, i: usize) -> &Clip {
        &self.clips[i]
    }
    fn load(&mut self, i: usize) -> Result<Option<Arc<FragmentedTombstones>>> {
        let file = &self.version.level(self.level).files()[i];
        let access = &self.access;
        let table = access.tables.get(file, self.level, &access.reading)?;
        Ok(table.tombstones()?.cloned())
    }
}
