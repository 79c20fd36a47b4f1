//! Point reads: memtables, then tables from newest to oldest, until the answer is known.

use super::pinned::{PinnedBytes, PinnedValue};
use crate::core::ReadCore;
use crate::family::{Family, ReadOperation, SAMPLE, View, is_sampled};
use crate::observe::Ticker;
use crate::options::{ReadOptions, ReadTier};
use crate::timestamp;
use crate::tree::blobs::{BlobReadOptions, BlobSource};
use crate::tree::tables::TableRef;
use esker_files::table::{FoundEntry, LookupKey, ReadContext, ReadFigure, add_read_work};
use esker_format::key::{TRAILER_LEN, append_internal, pack, trailer, user_key};
use esker_format::{Level, Seq, ValueType, wide_column};
use esker_lsm::file::FileMeta;
use esker_lsm::merge_operator::{MergeOperator, StringAppend};
use esker_lsm::point::{PointResolver, PointState, ResolvedPoint};
use esker_lsm::tombstone::Clip;
use esker_lsm::version::Version;
use esker_status::{Error, ErrorKind, Result};
use esker_sync::Arc;
use std::cell::RefCell;

/// A point read: family and options.
pub(crate) struct PointRead<'a> {
    pub(crate) core: &'a ReadCore,
    pub(crate) family: &'a Family,
    pub(crate) options: &'a ReadOptions,
    /// When the read's time is over, by the clock.
    due_us: Option<u64>,
    /// Takes the timestamp of the newest version that was found.
    found_at: Option<&'a RefCell<Vec<u8>>>,
    /// Values in blob files are not read: they come as empty ones.
    leaves_blobs: bool,
}

/// The answer of a point read, with blobs read.
pub(crate) enum PointResult {
    Absent,
    Value(PinnedValue),
    Entity(PinnedValue),
}

impl PointResult {
    /// As a plain value: of an entity, the default column.
    pub(crate) fn into_value(self) -> Result<Option<PinnedValue>> {
        match self {
            PointResult::Absent => Ok(None),
            PointResult::Value(v) => Ok(Some(v)),
            PointResult::Entity(e) => {
                let column = wide_column::default_column(&e)?;
                Ok(Some(PinnedValue::owned(
                    column.map(|c| c.value.to_vec()).unwrap_or_default(),
                )))
            }
        }
    }
}

/// A short user key's internal key stays on the stack.
pub(crate) fn with_internal_key<R>(
    user: &[u8],
    timestamp: Option<&[u8]>,
    seq: Seq,
    f: impl FnOnce(&[u8]) -> R,
) -> R {
    // With the trailer, two lines of zeros to write at most.
    const SHORT: usize = 56;
    if user.len() <= SHORT && timestamp.is_none() {
        let mut buffer = [0u8; SHORT + TRAILER_LEN];
        buffer[..user.len()].copy_from_slice(user);
        let end = user.len() + TRAILER_LEN;
        buffer[user.len()..end].copy_from_slice(&pack(seq, ValueType::SEEK).to_le_bytes());
        return f(&buffer[..end]);
    }
    let mut key = user.to_vec();
    key.extend_from_slice(timestamp.unwrap_or_default());
    let full = key.len();
    let mut internal = Vec::with_capacity(full + TRAILER_LEN);
    append_internal(&mut internal, &key, seq, ValueType::SEEK);
    f(&internal)
}

impl<'a> PointRead<'a> {
    /// A read that begins now.
    #[inline]
    pub(crate) fn new(core: &'a ReadCore, family: &'a Family, options: &'a ReadOptions) -> Self {
        PointRead {
            core,
            family,
            options,
            due_us: due_of(core, options),
            found_at: None,
            leaves_blobs: false,
        }
    }

    /// Leaves the timestamp of the entry found in `at`.
    pub(crate) fn telling(self, at: &'a RefCell<Vec<u8>>) -> Self {
        PointRead {
            found_at: Some(at),
            ..self
        }
    }

    /// Asks whether the key is there: a value in a blob file is not read, and comes as an empty
    /// one, unless operands wait for it.
    pub(crate) fn of_presence(self) -> Self {
        PointRead {
            leaves_blobs: true,
            ..self
        }
    }
}

impl PointRead<'_> {
    /// Reads `user` in `view` as of `seq`.
    pub(crate) fn run(&self, view: &View, user: &[u8], seq: Seq) -> Result<PointResult> {
        self.check_timestamp(view)?;
        let timestamp = self.options.timestamp.as_deref();
        with_internal_key(user, timestamp, seq, |internal| {
            self.resolve(view, internal, user, seq)
        })
    }

    /// `InvalidArgument` unless the view can answer for the read's timestamp.
    #[inline]
    pub(super) fn check_timestamp(&self, view: &View) -> Result<()> {
        timestamp::check_read(self.family, view, self.options.timestamp.as_deref())
    }

    /// The operands that wait on `user`, oldest first, after the value under them.
    pub(crate) fn operands(
        &self,
        view: &View,
        user: &[u8],
        seq: Seq,
        limit: usize,
    ) -> Result<Vec<Vec<u8>>> {
        self.check_timestamp(view)?;
        let timestamp = self.options.timestamp.as_deref();
        with_internal_key(user, timestamp, seq, |internal| {
            // An operator that never stops the search early: every operand is wanted.
            let collect = StringAppend::new(b",");
            let operator: Option<&dyn MergeOperator> = Some(&collect);
            let mut resolver = PointResolver::new();
            let skips = self.skips_memtables();
            if skips || !self.memtables(view, internal, seq, operator, &mut resolver)? {
                let version = &view.version;
                self.tables(version, internal, seq, operator, &mut resolver, false)?;
            }
            let mut out: Vec<Vec<u8>> = resolver.operands().map(<[u8]>::to_vec).collect();
            match self.complete(&view.version, resolver.into_base(), None, user)? {
                PointResult::Absent => {}
                PointResult::Value(v) | PointResult::Entity(v) => out.insert(0, v.into_vec()),
            }
            if out.len() > limit {
                return Err(Error::new(
                    ErrorKind::Incomplete,
                    format!(
                        "the key has {} merge operands, more than asked for",
                        out.len()
                    ),
                ));
            }
            Ok(out)
        })
    }

    fn resolve(&self, view: &View, internal: &[u8], user: &[u8], seq: Seq) -> Result<PointResult> {
        if is_sampled(ReadOperation::Get) {
            return self.family.look_at(ReadOperation::Get, 1, || {
                self.search(view, internal, user, seq, true)
            });
        }
        self.search(view, internal, user, seq, false)
    }

    fn search(
        &self,
        view: &View,
        internal: &[u8],
        user: &[u8],
        seq: Seq,
        is_sampled: bool,
    ) -> Result<PointResult> {
        let operator = self.family.merge_operator.as_deref();
        let mut resolver = PointResolver::new();
        let done = !self.skips_memtables()
            && self.memtables(view, internal, seq, operator, &mut resolver)?;
        if !done {
            if self.options.read_tier != ReadTier::Memtable {
                let timer = is_sampled.then(|| self.core.begin_gets());
                self.tables(
                    &view.version,
                    internal,
                    seq,
                    operator,
                    &mut resolver,
                    is_sampled,
                )?;
                if let Some(timer) = timer {
                    self.core.end_gets(self.family, view, timer, 1);
                }
            }
        } else if let Some(s) = &self.core.statistics {
            s.add(Ticker::MemtableHit, 1);
        }
        let resolved = resolver.finish(operator, user)?;
        self.complete(&view.version, resolved, operator, user)
    }

    /// Returns whether only what survives a crash is wanted and memtables may hold what does not.
    #[inline]
    pub(super) fn skips_memtables(&self) -> bool {
        self.options.read_tier == ReadTier::Persisted && self.core.has_unlogged()
    }

    /// Feeds the memtables; true when the answer is known.
    pub(super) fn memtables(
        &self,
        view: &View,
        internal: &[u8],
        seq: Seq,
        operator: Option<&dyn MergeOperator>,
        resolver: &mut PointResolver<PinnedValue>,
    ) -> Result<bool> {
        let user = esker_format::key::user_key(internal);
        for mem in std::iter::once(&view.mem).chain(&view.immutable) {
            if mem.is_empty() {
                continue;
            }
            add_read_work([(ReadFigure::MemtablesSearched, 1)]);
            if !self.options.ignore_range_deletions {
                resolver.cover(mem.covering_seq(user, seq)?);
            }
            let mut error = None;
            mem.get(internal, |key, value| {
                let t = trailer(key);
                // With timestamps, an older one may have come in a newer write.
                if t >> 8 > seq.0 {
                    return true;
                }
                match feed(resolver, t, operator, || {
                    self.note_found(key);
                    PinnedValue::of_memtable(mem, key, value)
                }) {
                    Ok(PointState::NeedMore) => true,
                    Ok(PointState::Done) => false,
                    Err(e) => {
                        error = Some(e);
                        false
                    }
                }
            });
            if let Some(e) = error {
                return Err(e);
            }
            if resolver.is_done() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    // A call costs every Get of a table as much as a hundredth of it.
    #[inline(always)]
    fn tables(
        &self,
        version: &Version,
        internal: &[u8],
        seq: Seq,
        operator: Option<&dyn MergeOperator>,
        resolver: &mut PointResolver<PinnedValue>,
        is_sampled: bool,
    ) -> Result<()> {
        let key = LookupKey::new(internal, self.family.order.timestamp_size());
        let ctx = read_context(self.options);
        let mut hit_level = None;
        for (level, file) in version.candidates(internal) {
            if resolver.covering() > file.largest_seq {
                resolver.conclude_deleted();
                break;
            }
            self.table(level, file, &key, &ctx, seq, operator, resolver)?;
            if is_sampled {
                self.note_collapsible(file, resolver);
            }
            if resolver.is_done() {
                hit_level = Some(level);
                break;
            }
        }
        self.count(&key, hit_level);
        Ok(())
    }

    /// A read that is looked at has searched `file`. Where that gave no value, the reads that it
    /// stands for count towards a compaction of the file.
    #[cold]
    pub(super) fn note_collapsible(&self, file: &FileMeta, resolver: &PointResolver<PinnedValue>) {
        let found = resolver.is_done() && !resolver.is_deleted();
        if !found && self.family.count_collapsible(file, u64::from(SAMPLE)) {
            self.core.background_cv.notify();
        }
    }

    /// Feeds one table.
    #[allow(clippy::too_many_arguments, reason = "one step of two callers' loops")]
    #[inline]
    pub(super) fn table(
        &self,
        level: Level,
        file: &FileMeta,
        key: &LookupKey<'_>,
        ctx: &ReadContext,
        seq: Seq,
        operator: Option<&dyn MergeOperator>,
        resolver: &mut PointResolver<PinnedValue>,
    ) -> Result<()> {
        let table = self.table_for(level, file, key, seq, resolver)?;
        let mut error = None;
        let visit = self.visitor(seq, operator, resolver, &mut error);
        table.reader.get(ctx, key, visit)?;
        error.map_or(Ok(()), Err)
    }

    /// Opens the next table, and feeds its range deletions.
    #[inline]
    pub(super) fn table_for<'v>(
        &self,
        level: Level,
        file: &'v FileMeta,
        key: &LookupKey<'_>,
        seq: Seq,
        resolver: &mut PointResolver<PinnedValue>,
    ) -> Result<TableRef<'v>> {
        self.check_deadline()?;
        let table = self.core.tables.get(file, level, &self.family.reading)?;
        if !self.options.ignore_range_deletions
            && let Some(t) = table.tombstones()?
            && inside(file, &self.family.order, key.user())
        {
            resolver.cover(t.max_covering_seq(key.user(), seq));
        }
        Ok(table)
    }

    /// Returns the visitor that takes the versions of a table; `error` gets its failure.
    #[inline]
    pub(super) fn visitor<'r>(
        &'r self,
        seq: Seq,
        operator: Option<&'r dyn MergeOperator>,
        resolver: &'r mut PointResolver<PinnedValue>,
        error: &'r mut Option<Error>,
    ) -> impl FnMut(FoundEntry<'_>) -> bool + 'r {
        move |entry| {
            let t = trailer(entry.key());
            if t >> 8 > seq.0 {
                return true;
            }
            match feed(resolver, t, operator, || {
                self.note_found(entry.key());
                PinnedValue(PinnedBytes::Block(entry.pin()))
            }) {
                Ok(PointState::NeedMore) => true,
                Ok(PointState::Done) => false,
                Err(e) => {
                    *error = Some(e);
                    false
                }
            }
        }
    }

    /// A version was found; the first is the newest.
    #[inline]
    fn note_found(&self, internal: &[u8]) {
        if let Some(at) = self.found_at {
            let mut at = at.borrow_mut();
            if at.is_empty() {
                let size = self.family.order.timestamp_size();
                at.extend_from_slice(esker_format::timestamp::of(user_key(internal), size));
            }
        }
    }

    /// `TimedOut` when the read's time is over.
    #[inline]
    pub(super) fn check_deadline(&self) -> Result<()> {
        check_due(self.core, self.due_us)
    }

    pub(super) fn count(&self, key: &LookupKey<'_>, hit: Option<Level>) {
        key.counters.hand_over();
        let Some(s) = &self.core.statistics else {
            return;
        };
        s.add(Ticker::MemtableMiss, 1);
        match hit {
            Some(Level(0)) => s.add(Ticker::GetHitL0, 1),
            Some(Level(1)) => s.add(Ticker::GetHitL1, 1),
            Some(_) => s.add(Ticker::GetHitL2AndUp, 1),
            None => {}
        }
    }

    pub(super) fn complete(
        &self,
        version: &Version,
        resolved: ResolvedPoint<PinnedValue>,
        operator: Option<&dyn MergeOperator>,
        user: &[u8],
    ) -> Result<PointResult> {
        Ok(match resolved {
            ResolvedPoint::Missing | ResolvedPoint::Deleted => PointResult::Absent,
            ResolvedPoint::Value(v) => PointResult::Value(v),
            ResolvedPoint::Entity(v) => PointResult::Entity(v),
            ResolvedPoint::Merged(v) => PointResult::Value(PinnedValue::owned(v)),
            ResolvedPoint::MergedEntity(v) => PointResult::Entity(PinnedValue::owned(v)),
            ResolvedPoint::Blob(pending) if self.leaves_blobs && pending.is_plain() => {
                PointResult::Value(PinnedValue::owned(Vec::new()))
            }
            ResolvedPoint::Blob(pending) => {
                let source = self.blob_source(version);
                let blob = self.core.blobs.read(&source, user, &pending.index, None)?;
                let whole = pending.complete(operator, user, PinnedValue::of_blob(blob))?;
                return self.complete(version, whole, operator, user);
            }
            ResolvedPoint::SplitEntity(pending) => {
                let source = self.blob_source(version);
                let read = |index: &[u8], value: &mut Vec<u8>| {
                    let blob = self.core.blobs.read(&source, user, index, None)?;
                    value.extend_from_slice(&PinnedValue::of_blob(blob));
                    Ok(())
                };
                let whole = pending.complete(operator, user, read)?;
                return self.complete(version, whole, operator, user);
            }
        })
    }

    /// Returns the blob files of the tree that is read.
    pub(super) fn blob_source<'v>(&'v self, version: &'v Version) -> BlobSource<'v> {
        (self.family).blob_source(version, blob_read_options(self.options))
    }
}

/// The operand of a tombstone's clip: user keys between the file's boundaries.
fn inside(file: &esker_lsm::file::FileMeta, order: &esker_format::KeyOrder, user: &[u8]) -> bool {
    Clip::from_boundaries(&file.smallest, &file.largest, order).contains(order, user)
}

#[inline]
fn feed(
    resolver: &mut PointResolver<PinnedValue>,
    trailer: u64,
    operator: Option<&dyn MergeOperator>,
    value: impl FnOnce() -> PinnedValue,
) -> Result<PointState> {
    let Some(kind) = ValueType::from_u8(trailer as u8) else {
        return Err(Error::corruption(format!(
            "unknown value type {:#04x}",
            trailer as u8
        )));
    };
    resolver.feed(Seq(trailer >> 8), kind, operator, value)
}

/// The read options that blob files need.
pub(crate) fn blob_read_options(options: &ReadOptions) -> BlobReadOptions {
    BlobReadOptions {
        verify: options.verify_checksums,
        fill_cache: options.fill_cache,
        cache_only: options.read_tier == ReadTier::BlockCache,
    }
}

/// The read options that a table needs.
pub(crate) fn read_context(options: &ReadOptions) -> ReadContext {
    ReadContext {
        fill_cache: options.fill_cache,
        verify_checksums: options.verify_checksums,
        readahead_size: options.readahead_size,
        background: false,
        cache_only: options.read_tier == ReadTier::BlockCache,
        async_io: options.async_io,
        total_order_seek: options.total_order_seek,
        prefix_same_as_start: options.prefix_same_as_start,
        prefix_upper: match &options.iterate_upper_bound {
            Some(upper) if options.auto_prefix_mode => Some(Arc::from(upper.as_slice())),
            _ => None,
        },
        stages: None,
    }
}

/// When a read that begins now fails, in microseconds of the clock.
#[inline]
pub(crate) fn due_of(core: &ReadCore, options: &ReadOptions) -> Option<u64> {
    if options.deadline.is_none() && options.deadline_at.is_none() {
        return None;
    }
    due_from_now(core, options)
}

#[cold]
fn due_from_now(core: &ReadCore, options: &ReadOptions) -> Option<u64> {
    let clock = &core.env.clock;
    let span = options
        .deadline
        .map(|d| u64::try_from(d.as_micros()).unwrap_or(u64::MAX));
    let left = options
        .deadline_at
        .map(|at| at.saturating_sub(clock.unix_us()));
    let us = span.into_iter().chain(left).min()?;
    Some(clock.now_us().saturating_add(us))
}

/// `TimedOut` when the read took too long.
#[inline]
pub(crate) fn check_due(core: &ReadCore, due: Option<u64>) -> Result<()> {
    match due {
        Some(due) if core.env.clock.now_us() >= due => Err(Error::new(
            ErrorKind::TimedOut,
            "the read took longer than its deadline",
        )),
        _ => Ok(()),
    }
}
