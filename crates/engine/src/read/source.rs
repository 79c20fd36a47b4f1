//! The runs of a view as cursors: memtables, level-0 tables, and one cursor for each deeper level.

use super::bucket::BucketCursor;
use crate::core::ReadCore;
use crate::family::Family;
use crate::memtable::MemCursor;
use esker_files::table::{ReadContext, TableCursor};
use esker_format::{Cursor, Level};
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
    #[inline]
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
}

/// A sorted level as one cursor: at most one table is open in it at a time.
pub(crate) struct LevelCursor {
    core: Arc<ReadCore>,
    family: Arc<Family>,
    /// Keeps the files alive.
    files: Arc<LevelFiles>,
    level: Level,
    ctx: ReadContext,
    /// The file that `table` reads.
    at: usize,
    table: Option<TableCursor>,
    error: Option<esker_status::Error>,
}

impl LevelCursor {
    /// Over `files`, sorted and disjoint, which are at `level`.
    pub(crate) fn over(
        core: Arc<ReadCore>,
        family: Arc<Family>,
        files: Arc<LevelFiles>,
        level: Level,
        ctx: ReadContext,
    ) -> Self {
        LevelCursor {
            core,
            family,
            files,
            level,
            ctx,
            at: usize::MAX,
            table: None,
            error: None,
        }
    }

    /// Makes `table` read file `index`; false when there is none or it cannot be opened.
    fn open(&mut self, index: usize) -> bool {
        self.error = None;
        if index >= self.files.len() {
            self.table = None;
            self.at = usize::MAX;
            return false;
        }
        if self.at == index && self.table.is_some() {
            return true;
        }
        let file = Arc::clone(&self.files.files()[index]);
        let (tables, reading) = (&self.core.tables, &self.family.reading);
        let opened = tables.get(&file, self.level, reading);
        let opened = opened.and_then(|t| {
            if self.ctx.background {
                tables.job_cursor(&t, &self.ctx, &file, reading)
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
}

impl Cursor for LevelCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.table.as_ref().is_some_and(Cursor::valid)
    }

    fn seek_to_first(&mut self) {
        if self.open(0)
            && let Some(t) = &mut self.table
        {
            t.seek_to_first();
        }
        self.skip_forward();
    }

    fn seek_to_last(&mut self) {
        let last = self.files.len().wrapping_sub(1);
        if self.open(last)
            && let Some(t) = &mut self.table
        {
            t.seek_to_last();
        }
        self.skip_backward();
    }

    fn seek(&mut self, target: &[u8]) {
        let index = self.files.find(&self.family.order, target);
        if self.open(index)
            && let Some(t) = &mut self.table
        {
            t.seek(target);
        }
        self.skip_forward();
    }

    fn seek_for_prev(&mut self, target: &[u8]) {
        let index = self.files.find(&self.family.order, target);
        let index = index.min(self.files.len().wrapping_sub(1));
        if self.open(index)
            && let Some(t) = &mut self.table
        {
            t.seek_for_prev(target);
        }
        self.skip_backward();
    }

    #[inline]
    fn next(&mut self) {
        if let Some(t) = &mut self.table {
            t.next();
            if !t.valid() {
                self.skip_forward();
            }
        }
    }

    #[inline]
    fn prev(&mut self) {
        if let Some(t) = &mut self.table {
            t.prev();
            if !t.valid() {
                self.skip_backward();
            }
        }
    }

    #[inline(always)]
    fn key(&self) -> &[u8] {
        match &self.table {
            Some(t) => t.key(),
            None => &[],
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
            None => (&[], &[]),
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
    core: Arc<ReadCore>,
    family: Arc<Family>,
    version: Arc<Version>,
    level: Level,
    clips: Vec<Clip>,
}

impl LevelRangeDeletions {
    pub(crate) fn new(
        core: Arc<ReadCore>,
        family: Arc<Family>,
        version: Arc<Version>,
        level: Level,
    ) -> Self {
        let files = version.level(level).files().iter();
        let clip =
            |f: &Arc<FileMeta>| Clip::from_boundaries(&f.smallest, &f.largest, &family.order);
        let clips = files.map(clip).collect();
        LevelRangeDeletions {
            core,
            family,
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
        let table = self
            .core
            .tables
            .get(file, self.level, &self.family.reading)?;
        Ok(table.tombstones()?.cloned())
    }
}
