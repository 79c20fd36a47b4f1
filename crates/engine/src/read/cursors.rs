//! The cursors of an iterator: one for each sorted run of a view, merged, and filtered by a
//! sequence number.
//!
//! An iterator that ends parks its cursors with the view ([`crate::family::ParkedCursors`]). The
//! next iterator over the same view takes them, if its read options are alike; it sets its own
//! sequence number and bounds. Parked cursors hold no block.

use super::bucket::BucketCursor;
use super::get::{blob_read_options, read_context};
use super::source::{LevelCursor, LevelRangeDeletions, RunFiles, Source};
use crate::core::ReadCore;
use crate::family::{Family, View};
use crate::options::{FamilyOptions, MemtableKind, ReadOptions, ReadTier, TableFilter};
use crate::timestamp;
use crate::tree::blobs::BlobWalk;
use esker_files::table::ReadContext;
use esker_format::prefix::PrefixExtractor;
use esker_format::{Level, Seq};
use esker_lsm::merging::MergingCursor;
use esker_lsm::tombstone::{ClippedTombstones, ReadTombstones};
use esker_lsm::version::LevelFiles;
use esker_lsm::visible::{HiddenLimits, KnownDeletions, VisibleCursor, VisibleOptions};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use esker_sync::Arc;

pub(super) type MergedRuns = MergingCursor<Source>;

/// The view and the options of a new iterator.
#[derive(Clone, Copy)]
pub(super) struct IterRequest<'a> {
    pub(super) core: &'a Arc<ReadCore>,
    pub(super) family: &'a Arc<Family>,
    pub(super) options: &'a ReadOptions,
    pub(super) view: &'a Arc<View>,
    pub(super) seq: Seq,
    /// See [`Family::view_and_epoch`].
    pub(super) epoch: u64,
}

/// Read options that two iterators must have in common to share cursors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CursorReadOptions {
    fill_cache: bool,
    verify_checksums: bool,
    cache_only: bool,
    total_order_seek: bool,
    prefix_same_as_start: bool,
    reads_at_once: bool,
    unprepared: bool,
}

impl CursorReadOptions {
    /// None where cursors fit one iterator only.
    fn of(request: &IterRequest<'_>) -> Option<Self> {
        let (core, options) = (request.core, request.options);
        let is_plain = !options.tailing
            && !options.auto_prefix_mode
            && !options.ignore_range_deletions
            && options.readahead_size == 0
            && options.timestamp.is_none()
            && options.iter_start_ts.is_none()
            && options.table_filter.is_none()
            && matches!(options.read_tier, ReadTier::All | ReadTier::BlockCache);
        is_plain.then_some(CursorReadOptions {
            fill_cache: options.fill_cache,
            verify_checksums: options.verify_checksums,
            cache_only: options.read_tier == ReadTier::BlockCache,
            total_order_seek: options.total_order_seek,
            prefix_same_as_start: options.prefix_same_as_start,
            reads_at_once: reads_at_once(core, options),
            unprepared: leaves_values(request),
        })
    }
}

/// Returns whether seeks begin the reads of all runs before they wait for one: each read past the
/// page cache waits for the device.
fn reads_at_once(core: &ReadCore, options: &ReadOptions) -> bool {
    options.async_io || core.tables.reads_directly()
}

/// The key by which the cursors of an iterator serve another one.
struct ReuseKey {
    read_options: CursorReadOptions,
    family_options: Arc<FamilyOptions>,
    /// True if the memtable that takes writes is among the runs: an empty one is not.
    has_mem: bool,
}

/// The cursors of an iterator.
pub(super) struct IteratorCursors {
    pub(super) cursor: VisibleCursor<MergedRuns>,
    /// Reads the values of blob files; none in a tree without.
    blobs: Option<Arc<BlobWalk>>,
    /// None where they serve one iterator only.
    reuse: Option<ReuseKey>,
}

struct RunSources {
    sources: Vec<Source>,
    deletions: ReadTombstones,
    /// True if the view has range deletions, seen or not.
    delete_ranges: bool,
}

impl IteratorCursors {
    /// Takes parked cursors, or makes new ones.
    pub(super) fn of(request: &IterRequest<'_>) -> Result<Box<Self>> {
        let family_options = request.family.options.load();
        let read_options = CursorReadOptions::of(request);
        if let Some(read_options) = read_options
            && let Some(parked) = Self::parked(request, &family_options, read_options)
        {
            return Ok(parked);
        }
        Self::build(request, &family_options, read_options)
    }

    fn parked(
        request: &IterRequest<'_>,
        family_options: &Arc<FamilyOptions>,
        read_options: CursorReadOptions,
    ) -> Option<Box<Self>> {
        let mut cursors = request.view.parked.take()?.downcast::<Self>().ok()?;
        // The other memtables, and the tree, are as they were.
        let mem = &request.view.mem;
        let serves = |reuse: &ReuseKey| {
            reuse.read_options == read_options
                && Arc::ptr_eq(&reuse.family_options, family_options)
                && (reuse.has_mem || mem.is_empty() || seeded(Bug::ParkedMemtableLeft))
        };
        if !cursors.reuse.as_ref().is_some_and(serves) || mem.has_tombstones() {
            return None;
        }
        let options = request.options;
        let bounds = (
            options.iterate_lower_bound.as_deref(),
            options.iterate_upper_bound.as_deref(),
        );
        let skippable = options.max_skippable_internal_keys;
        let cursor = &mut cursors.cursor;
        cursor.restart(request.seq, bounds, skippable, request.epoch);
        Some(cursors)
    }

    fn build(
        request: &IterRequest<'_>,
        family_options: &Arc<FamilyOptions>,
        read_options: Option<CursorReadOptions>,
    ) -> Result<Box<Self>> {
        let IterRequest {
            core,
            family,
            options,
            view,
            ..
        } = *request;
        if options.read_tier == ReadTier::Persisted {
            return Err(Error::not_supported("an iterator with read_tier Persisted"));
        }
        if options.tailing && core.follower.is_some() {
            return Err(Error::not_supported(
                "tailing iterator not supported in secondary mode",
            ));
        }
        timestamp::check_read(family, view, options.timestamp.as_deref())?;
        let bucket = prefix_of_buckets(family_options, options);
        let is_shared = bucket.is_none() && family.order.timestamp_size() == 0;
        // Before the runs are made: it may get its first entry beside them.
        let has_mem = !view.mem.is_empty();
        let ctx = read_context(options);
        let runs = run_sources(request, &ctx, bucket)?;
        let filtered =
            !options.total_order_seek && (options.prefix_same_as_start || options.auto_prefix_mode);
        let merged = MergingCursor::new(runs.sources, family.order.clone())
            .with_filtered_seeks(filtered)
            .with_reads_at_once(reads_at_once(core, options));
        let mut visible = visible_options(request, family_options);
        let blobs = blob_walk(request);
        visible.resolver = Some(match &blobs {
            Some(blobs) => Arc::clone(blobs) as _,
            None => Arc::clone(&request.family.reading) as _,
        });
        visible.unprepared = leaves_values(request);
        if has_mem {
            visible.hidden_limits = hidden_limits(options, family_options);
        }
        Ok(Box::new(IteratorCursors {
            cursor: VisibleCursor::new(merged, runs.deletions, visible)?,
            blobs,
            reuse: read_options
                .filter(|_| is_shared && !runs.delete_ranges)
                .map(|read_options| ReuseKey {
                    read_options,
                    family_options: Arc::clone(family_options),
                    has_mem,
                }),
        }))
    }

    /// Reads values of blob files with each move from now on.
    pub(super) fn prepare_values(&mut self) {
        self.cursor.prepare_values();
        if let Some(reuse) = &mut self.reuse {
            reuse.read_options.unprepared = false;
        }
    }

    /// Ends the use of the cursors, over `view`.
    pub(super) fn park(mut self: Box<Self>, view: &View) {
        if self.reuse.is_none() {
            return;
        }
        let runs = self.cursor.rest().reset();
        runs.iter_mut().for_each(Source::rest);
        if let Some(blobs) = &self.blobs {
            blobs.rest();
        }
        view.parked.put(self);
    }
}

/// The files of a sorted level that a filter wants.
fn files_of_filter(
    core: &ReadCore,
    family: &Family,
    files: &LevelFiles,
    level: Level,
    filter: &TableFilter,
) -> Result<LevelFiles> {
    let mut request = Vec::new();
    for file in files.files() {
        let table = core.tables.get(file, level, &family.reading)?;
        if filter.wants(table.reader.properties()) {
            request.push(Arc::clone(file));
        }
    }
    Ok(LevelFiles::new(&family.order, request))
}

/// The runs of a view, newest first, with the range tombstones that the reader sees.
fn run_sources(
    request: &IterRequest<'_>,
    ctx: &ReadContext,
    bucket: Option<PrefixExtractor>,
) -> Result<RunSources> {
    let IterRequest {
        core,
        family,
        options,
        view,
        seq,
        ..
    } = *request;
    let access = family.table_access(&core.tables);
    let mut sources = Vec::with_capacity(view.immutable.len() + 8);
    let mut deletions = ReadTombstones::new(family.order.clone(), seq);
    let mut delete_ranges = false;
    let sees = !options.ignore_range_deletions;
    for mem in std::iter::once(&view.mem).chain(&view.immutable) {
        // What is written from now on is after `seq`, which was read before.
        if mem.is_empty() {
            continue;
        }
        sources.push(match &bucket {
            None => Source::Mem(mem.cursor()),
            Some(extractor) => Source::Bucket(Box::new(BucketCursor::over(
                mem.cursor(),
                extractor.clone(),
                family.order.clone(),
            ))),
        });
        if let Some(t) = mem.tombstones()? {
            delete_ranges = true;
            if sees {
                deletions.add(ClippedTombstones::whole(t), sources.len());
            }
        }
    }
    let collected = |sources, deletions, delete_ranges| RunSources {
        sources,
        deletions,
        delete_ranges,
    };
    if options.read_tier == ReadTier::Memtable {
        return Ok(collected(sources, deletions, delete_ranges));
    }
    let over = |files, level| {
        let cursor = LevelCursor::over(Arc::clone(access), files, level, ctx.clone());
        Source::Level(Box::new(cursor))
    };
    for file in view.version.level(Level::L0).files() {
        let table = core.tables.get(file, Level::L0, &family.reading)?;
        let is_wanted = |f: &TableFilter| f.wants(table.reader.properties());
        let files = if options.table_filter.as_ref().is_none_or(is_wanted) {
            RunFiles::One(Arc::clone(file))
        } else {
            // Its range deletions count, from the same place.
            RunFiles::Level(Arc::new(LevelFiles::new(&family.order, Vec::new())))
        };
        sources.push(over(files, Level::L0));
        if let Some(t) = table.tombstones()? {
            delete_ranges = true;
            if sees {
                deletions.add(
                    ClippedTombstones::of_file(Arc::clone(t), &file.smallest, &file.largest),
                    sources.len(),
                );
            }
        }
    }
    for level in (1..view.version.num_levels()).map(|l| Level(l as u8)) {
        if view.version.level(level).is_empty() {
            continue;
        }
        let files = Arc::clone(&view.version.levels()[level.index()]);
        let files = match &options.table_filter {
            Some(filter) => Arc::new(files_of_filter(core, family, &files, level, filter)?),
            None => files,
        };
        sources.push(over(RunFiles::Level(files), level));
        if view.version.level(level).may_delete_ranges() {
            delete_ranges = true;
            if sees {
                let version = Arc::clone(&view.version);
                let level = LevelRangeDeletions::new(Arc::clone(access), version, level);
                deletions.add_level(Box::new(level), sources.len());
            }
        }
    }
    Ok(collected(sources, deletions, delete_ranges))
}

/// Returns the prefix extractor for memtables of a kind that keeps each prefix by itself: RocksDB's
/// iterators show only the sought prefix of such a memtable, unless they are asked for the total
/// order.
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

/// Returns whether values of blob files are left unread. Times to live are checked in each value.
pub(super) fn leaves_values(request: &IterRequest<'_>) -> bool {
    let options = request.options;
    options.allow_unprepared_value
        && options.iter_start_ts.is_none()
        && request.core.ttl.is_none()
        && !request.view.version.blob_files().is_empty()
}

/// Returns the reader of the view's blob files.
fn blob_walk(request: &IterRequest<'_>) -> Option<Arc<BlobWalk>> {
    let (family, version) = (request.family, &request.view.version);
    if version.blob_files().is_empty() {
        return None;
    }
    let how = blob_read_options(request.options);
    let readahead = request.options.readahead_size;
    let blobs = &request.core.blobs;
    Some(blobs.resolver(family.id, &family.reading, version, how, readahead))
}

fn visible_options(request: &IterRequest<'_>, family_options: &FamilyOptions) -> VisibleOptions {
    let IterRequest {
        family,
        options,
        seq,
        ..
    } = *request;
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
    visible.min_deleted_run = min_deleted_run(request, family_options);
    visible.known = known_deletions(request, family_options);
    visible.merge_operator = family_options.merge_operator.clone();
    visible
}

/// Number of deletions in a row that become a range deletion; 0 for none. It is 0 for iterators
/// that may skip keys between two deletions.
fn min_deleted_run(request: &IterRequest<'_>, family: &FamilyOptions) -> u32 {
    if sees_all(request, family) {
        family.min_tombstones_for_range_conversion
    } else {
        0
    }
}

/// The ranges that are known to be deleted, for iterators that skip no keys. Filters of the
/// application may bring older versions back.
fn known_deletions(request: &IterRequest<'_>, family: &FamilyOptions) -> Option<KnownDeletions> {
    let has_filter =
        family.compaction_filter.is_some() || family.compaction_filter_factory.is_some();
    let keeps_to_prefix = request.options.prefix_same_as_start && family.prefix_extractor.is_some();
    // With the option, deletions that are passed over have their files compacted.
    let counts = family.read_triggered_compaction_threshold > 0.0;
    let is_wanted = !has_filter && !keeps_to_prefix && !counts && sees_all(request, family);
    is_wanted.then(|| KnownDeletions {
        ranges: request.view.mem.deleted_ranges(),
        view: request.view.number,
        epoch: request.epoch,
    })
}

/// Returns whether the iterator skips no keys between two that it sees.
fn sees_all(request: &IterRequest<'_>, family: &FamilyOptions) -> bool {
    let options = request.options;
    options.read_tier == ReadTier::All
        && options.table_filter.is_none()
        && !options.ignore_range_deletions
        && !options.auto_prefix_mode
        && (options.total_order_seek
            || options.prefix_same_as_start
            || family.prefix_extractor.is_none())
        && request.core.follower.is_none()
}

/// From how many hidden entries of the memtable that takes writes, the newest run, an iterator has
/// it flushed. A tailing one has not, as in RocksDB.
fn hidden_limits(options: &ReadOptions, family: &FamilyOptions) -> HiddenLimits {
    if options.tailing {
        return HiddenLimits::default();
    }
    HiddenLimits {
        in_move: family.memtable_op_scan_flush_trigger,
        on_average: family.memtable_avg_op_scan_flush_trigger,
    }
}
