//! From a stream of entries to table files: the part that flushes and compactions share.
//!
//! Files are written, synced and closed here; nothing is listed anywhere until the caller installs
//! the result. A file is synced in the background while the next one is written, where the
//! environment can. A failure leaves the files that were written where they are, unlisted;
//! [`discard`] removes them, which the caller does only when no MANIFEST can name them.

use super::Step;
use super::blobs::{BlobWriter, output_file_options};
use crate::core::{Services, Trees};
use crate::family::Family;
use crate::observe::TableFileReason;
use crate::options::collector::Collectors;
use crate::options::file_checksum::{FileSum, summed};
use crate::options::{
    CollectorContext, CompactionStyle, CompressionSettings, CompressionType, EntryKind,
    FamilyOptions, PrepopulateBlockCache, SstPartitioner, Temperature,
};
use crate::store::is_overtaken;
use crate::tree::SizesIn;
use esker_cache::Priority;
use esker_codec::compress::{Codec, CompressionOptions};
use esker_env::{Env, Lifetime, WritableFile, WriteOptions as FileWriteOptions};
use esker_files::table::{
    CompressionThreads, PrepopulateTarget, Stage, StageClock, TableBuilder, TableBuilderOptions,
    TableOptions, TableSummary,
};
use esker_format::key::user_key;
use esker_format::{
    Cursor, FileNo, InternalKey, KeyOrder, Level, RawTombstone, Seq, ValueType, blob_groups,
    blob_refs::{self, BlobRefs},
};
use esker_lsm::compaction_stream::{CompactionStream, count_refs};
use esker_lsm::cutter::Cutter;
use esker_lsm::file::{FileMeta, FileStats};
use esker_lsm::plan::Plan;
use esker_lsm::score::targets;
use esker_lsm::tombstone::{DropRules, FilePoints, OutputBounds};
use esker_lsm::version::{BlobFile, Version};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, ErrorKind, Result};
use esker_sync::Arc;
use std::path::PathBuf;

/// Settings of the files that a job writes.
pub(crate) struct OutputSpec {
    pub(crate) level: Level,
    /// How long they are expected to stay.
    pub(crate) lifetime: Lifetime,
    /// The path that they are written to.
    pub(crate) path_id: u32,
    pub(crate) codec: Codec,
    pub(crate) codec_options: CompressionOptions,
    /// Threads that compress each file.
    pub(crate) compression_threads: u32,
    /// Unix seconds of the oldest data's first flush; 0 for now.
    pub(crate) oldest_ancestor_time: u64,
    /// Unix seconds at or after the newest write; 0 for now.
    pub(crate) newest_key_time: u64,
    /// Temperature in the MANIFEST: the kind of storage that the files are for.
    pub(crate) temperature: u8,
    /// 0 lets the store give one when the file enters level 0.
    pub(crate) epoch: u64,
    pub(crate) target_file_size: u64,
    /// Read each file back from end to end.
    pub(crate) paranoid: bool,
    /// Write no filter.
    pub(crate) skip_filter: bool,
    /// The job, for events.
    pub(crate) job: u64,
    pub(crate) reason: TableFileReason,
    /// Told what the time goes on.
    pub(crate) stages: Arc<StageClock>,
    /// There is more to do before the last file is sealed, which is synced meanwhile.
    pub(crate) syncs_last_ahead: bool,
}

/// Position of new files in the tree, which decides their codec.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    pub(crate) level: Level,
    /// Where level 0 is compacted to.
    pub(crate) base: Level,
    /// True if nothing lies below the files.
    pub(crate) bottommost: bool,
    /// True if they are among the data that is not compressed yet.
    pub(crate) uncompressed: bool,
}

impl Placement {
    /// Of what a flush writes.
    pub(crate) fn flush(options: &FamilyOptions) -> Self {
        let universal = &options.compaction_options_universal;
        Placement {
            level: Level::L0,
            base: Level::L0,
            bottommost: false,
            uncompressed: options.compaction_style == CompactionStyle::Universal
                && universal.compression_size_percent >= 0,
        }
    }

    /// Of what a plan over `version` writes.
    pub(crate) fn of(plan: &Plan, options: &FamilyOptions, version: &Version) -> Self {
        Placement {
            level: plan.output_level,
            base: targets(version, &options.to_policy()).base_level,
            bottommost: plan.bottommost,
            uncompressed: plan.uncompressed,
        }
    }
}

/// Codec and settings of new files.
pub(crate) fn codec_for(
    options: &FamilyOptions,
    placement: Placement,
) -> (Codec, CompressionOptions) {
    let (kind, settings) = compression_for(options, placement);
    (kind.codec().unwrap_or(Codec::None), settings.to_codec())
}

/// Threads that compress a file beside the one that writes it: no more than can run at once.
pub(crate) fn compressors_for(threads: u32, env: &Env) -> Option<CompressionThreads> {
    let wanted = usize::try_from(threads).unwrap_or(usize::MAX);
    let others = wanted.min(env.executor.parallelism()).saturating_sub(1);
    (others > 0).then(|| CompressionThreads {
        executor: Arc::clone(&env.executor),
        clock: Arc::clone(&env.clock),
        threads: others,
    })
}

/// Returns the compression of new files, as options name it, and its settings.
pub(crate) fn compression_for(
    options: &FamilyOptions,
    placement: Placement,
) -> (CompressionType, &CompressionSettings) {
    if placement.uncompressed {
        return (CompressionType::None, &options.compression_opts);
    }
    let own_settings = placement.bottommost && options.bottommost_compression_opts.enabled;
    let settings = if own_settings {
        &options.bottommost_compression_opts
    } else {
        &options.compression_opts
    };
    if placement.bottommost && options.bottommost_compression != CompressionType::Disable {
        return (options.bottommost_compression, settings);
    }
    let Some(last) = options.compression_per_level.len().checked_sub(1) else {
        return (options.compression, settings);
    };
    // With dynamic level sizes the list goes by distance from level 0 over levels in use.
    let Placement { level, base, .. } = placement;
    let at = if level == Level::L0 {
        0
    } else {
        usize::from(level.0 - base.0.min(level.0)) + 1
    };
    (options.compression_per_level[at.min(last)], settings)
}

/// Returns the temperature that the MANIFEST will have for the files of `plan`.
pub(crate) fn temperature_for(plan: &Plan, options: &FamilyOptions) -> u8 {
    let last = i32::from(plan.output_level.0) + 1 == options.num_levels;
    let by_level = match options.last_level_temperature {
        given if last && options.compaction_style != CompactionStyle::Fifo => given,
        _ => Temperature::Unknown,
    };
    match (plan.temperature, by_level) {
        (0, Temperature::Unknown) => options.default_write_temperature.number(),
        (0, given) => given.number(),
        (given, _) => given,
    }
}

/// A file being written.
struct OpenFile {
    number: FileNo,
    builder: TableBuilder,
    points: Option<FilePoints>,
    last: Vec<u8>,
    /// References of the table to blob files.
    refs: BlobRefs,
    seqs: (Seq, Seq),
    collectors: Collectors,
    sum: Option<FileSum>,
}

impl OpenFile {
    /// Shows an entry to the collectors.
    #[cold]
    fn collect(&mut self, key: &[u8], value: &[u8], seq: Seq) {
        let kind = key
            .len()
            .checked_sub(8)
            .and_then(|at| ValueType::from_u8(key[at]));
        let kind = kind.map_or(EntryKind::Other, EntryKind::from);
        let size = self.builder.file_size();
        self.collectors.add(user_key(key), value, kind, seq, size);
    }

    /// Stores what the collectors and the references give; says whether one asks for compaction.
    fn finish_collecting(
        &mut self,
        tombstones: &[RawTombstone],
        blobs: Option<&BlobWriter>,
    ) -> bool {
        let size = self.builder.file_size();
        for t in tombstones {
            let kind = EntryKind::RangeDeletion;
            self.collectors.add(&t.start, &t.end, kind, t.seq, size);
        }
        let (properties, is_due) = self.collectors.finish();
        for (name, value) in properties {
            self.builder.add_user_property(name, value);
        }
        if !self.refs.is_empty()
            && let Some(refs) = self.refs.encode()
        {
            let name = blob_refs::PROPERTY.to_owned();
            self.builder.add_user_property(name, refs);
            let groups = blobs.map(|blobs| blobs.groups_of(&self.refs));
            if let Some(groups) = groups.filter(|groups| !groups.is_empty()) {
                let name = blob_groups::PROPERTY.to_owned();
                self.builder.add_user_property(name, groups.encode());
            }
        }
        is_due
    }
}

/// A file that is complete and not known to be synced yet.
struct UnsyncedFile {
    file: Box<dyn WritableFile>,
    meta: FileMeta,
}

/// Writes the stream out; returns the files in key order.
pub(crate) struct Outputs {
    trees: Arc<Trees>,
    family: Arc<Family>,
    spec: OutputSpec,
    cutter: Cutter,
    partitioner: Option<Box<dyn SstPartitioner>>,
    /// Takes large values, and says which leave their blob files; `None` where all stay.
    blobs: Option<BlobWriter>,
    open: Option<OpenFile>,
    sealing: Option<UnsyncedFile>,
    /// Files whose last byte is being written, or that are not known to be synced.
    unsealed: Vec<FileNo>,
    done: Vec<Arc<FileMeta>>,
    bytes_written: u64,
}

/// Blocks of a table in the page cache are reserved this many bytes at a time: one by one, as pages
/// get dirty, they cost a twentieth of the processor time of a `fillseq` without log. With direct
/// I/O that gains nothing.
const RESERVE: u64 = 4 << 20;
/// How exactly the bytes below range deletions are told.
const COVERED_MARGIN: f64 = 0.1;
/// Of more ranges than this some stand for all.
const COVERED_PROBES: usize = 256;
/// Entries that one step writes at most: well under a millisecond of work.
const ENTRIES_PER_STEP: usize = 1024;
/// A step ends after this many bytes of large entries: the rate limiter is paid between steps.
const BYTES_PER_STEP: usize = 256 << 10;

impl Outputs {
    pub(crate) fn new(
        trees: Arc<Trees>,
        family: Arc<Family>,
        spec: OutputSpec,
        cutter: Cutter,
    ) -> Self {
        Outputs {
            trees,
            family,
            spec,
            cutter,
            partitioner: None,
            blobs: None,
            open: None,
            sealing: None,
            unsealed: Vec::new(),
            done: Vec::new(),
            bytes_written: 0,
        }
    }

    /// Ends files where the application's `partitioner` says so, too.
    pub(crate) fn partitioned(mut self, partitioner: Option<Box<dyn SstPartitioner>>) -> Self {
        self.partitioner = partitioner;
        self
    }

    /// Places large values in blob files as `blobs` says.
    pub(crate) fn separating(mut self, blobs: Option<BlobWriter>) -> Self {
        self.blobs = blobs;
        self
    }

    /// Consumes a step's worth of the stream, which has been placed. After the last step the last
    /// file is still to be sealed.
    pub(crate) fn step<C: Cursor>(
        &mut self,
        stream: &mut CompactionStream<'_, C>,
        rules: &mut DropRules<'_>,
    ) -> Result<Step> {
        let mut bytes = 0;
        for _ in 0..ENTRIES_PER_STEP {
            if !stream.valid() {
                if !seeded(Bug::ReadStatusUnread) {
                    stream.status()?;
                }
                self.finish_file(stream, false, rules)?;
                if let Some(blobs) = &mut self.blobs {
                    blobs.finish_files()?;
                }
                return Ok(Step::Done);
            }
            if self.cuts_before(stream.key()) {
                self.finish_file(stream, true, rules)?;
            }
            if let Some(blobs) = &mut self.blobs {
                bytes += stream.value().len();
                stream.place_value(blobs)?;
            }
            self.add(stream.key(), stream.value())?;
            bytes += stream.value().len();
            stream.next();
            if bytes >= BYTES_PER_STEP {
                break;
            }
        }
        Ok(Step::More)
    }

    /// Returns whether the open file ends before the entry: never between two versions of one user
    /// key.
    #[inline]
    fn cuts_before(&mut self, key: &[u8]) -> bool {
        let Some(open) = &self.open else {
            return false;
        };
        let size = open.builder.file_size();
        let is_due = self.cutter.should_cut(size, &open.last, key);
        let (last, next) = (user_key(&open.last), user_key(key));
        let asked = |p: &mut Box<dyn SstPartitioner>| p.should_partition(last, next, size);
        (is_due || self.partitioner.as_mut().is_some_and(asked))
            && !self.family.order.equal(last, next)
    }

    pub(crate) fn stages(&self) -> &Arc<StageClock> {
        &self.spec.stages
    }

    /// Bytes written so far, those of the open file included.
    pub(crate) fn bytes(&self) -> u64 {
        let blobs = self.blobs.as_ref().map_or(0, BlobWriter::bytes);
        let open = self.open.as_ref().map_or(0, |o| o.builder.file_size());
        self.bytes_written + open + blobs
    }

    #[inline]
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.open.is_none() {
            self.open = Some(self.start_file()?);
        }
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        open.builder.add(key, value)?;
        let seq = esker_format::key::seq_of(key);
        if !open.collectors.is_empty() {
            open.collect(key, value, seq);
        }
        open.seqs = (open.seqs.0.min(seq), open.seqs.1.max(seq));
        if open.points.is_none() {
            let first = InternalKey::from_encoded(key)?;
            open.points = Some(FilePoints {
                smallest: first.clone(),
                largest: first,
                smallest_seq: seq,
                largest_seq: seq,
            });
        }
        open.last.clear();
        open.last.extend_from_slice(key);
        count_refs(&mut open.refs, key, value)?;
        Ok(())
    }

    fn start_file(&self) -> Result<OpenFile> {
        let number = self.trees.numbers.next();
        let path = self.path_of(number);
        let db = self.trees.services.options.load();
        self.spec.stages.lap(Stage::Merge);
        let file = self.trees.create_table(
            &path,
            self.spec.target_file_size,
            FileWriteOptions {
                preallocate: if db.allow_fallocate && !db.use_direct_io_for_flush_and_compaction {
                    self.reserve()
                } else {
                    0
                },
                ..output_file_options(&db, self.spec.lifetime)
            },
        )?;
        self.spec.stages.lap(Stage::Write);
        let (file, sum) = summed(db.file_checksum_gen_factory.as_ref(), file);
        let builder = TableBuilder::new(file, self.builder_options(number))?;
        let context = CollectorContext {
            family: self.family.id.0,
            level: self.spec.level,
        };
        let factories = &self
            .family
            .options
            .load()
            .table_properties_collector_factories;
        let collectors = Collectors::new(factories, &context);
        Ok(OpenFile {
            number,
            builder,
            points: None,
            last: Vec::new(),
            refs: BlobRefs::default(),
            seqs: (Seq::MAX, Seq::ZERO),
            collectors,
            sum,
        })
    }

    /// Returns the bytes that are reserved ahead of the end of a table at a time.
    fn reserve(&self) -> u64 {
        match self.spec.target_file_size {
            0 => RESERVE,
            target => target.min(RESERVE),
        }
    }

    fn builder_options(&self, number: FileNo) -> TableBuilderOptions {
        let options = self.family.options.load();
        let identity = &self.trees.services.identity;
        let now = self.trees.services.env.clock.unix_us() / 1_000_000;
        TableBuilderOptions {
            order: self.family.order.clone(),
            table: TableOptions {
                filter_policy: options
                    .table
                    .filter_policy
                    .filter(|_| !self.spec.skip_filter),
                ..options.table.to_table_options()
            },
            compression: self.spec.codec,
            compression_opts: self.spec.codec_options.clone(),
            prefix_extractor: options.prefix_extractor.clone(),
            family: self.family.id,
            family_name: self.family.name.clone(),
            merge_operator: options.merge_operator.as_ref().map(|m| m.name().to_owned()),
            file_no: number,
            db_id: identity.db_id.clone(),
            db_session_id: identity.session_id.clone(),
            db_host_id: identity.host_id.clone(),
            level: Some(self.spec.level),
            creation_time: self.ancestor_time(now),
            oldest_key_time: self.ancestor_time(now),
            newest_key_time: match self.spec.newest_key_time {
                0 => now,
                known => known,
            },
            file_creation_time: now,
            target_file_size: self.spec.target_file_size,
            stages: Some(Arc::clone(&self.spec.stages)),
            compressors: compressors_for(self.spec.compression_threads, &self.trees.services.env),
            fresh: self.fresh_blocks(&options),
            collectors: options
                .table_properties_collector_factories
                .iter()
                .map(|f| f.name().to_owned())
                .collect(),
            ..TableBuilderOptions::default()
        }
    }

    /// Where new blocks go beside the file: `prepopulate_block_cache`. Those of a merge are the
    /// first to leave the cache again.
    fn fresh_blocks(&self, options: &FamilyOptions) -> Option<PrepopulateTarget> {
        use PrepopulateBlockCache::{Disable, FlushAndCompaction, FlushOnly};
        let priority = match (self.spec.reason, options.table.prepopulate_block_cache) {
            (_, Disable) | (TableFileReason::Compaction, FlushOnly) => return None,
            (TableFileReason::Flush, _) => Priority::Low,
            (TableFileReason::Compaction, FlushAndCompaction) => Priority::Bottom,
            _ => return None,
        };
        (self.trees.tables).fresh_blocks(&self.family.reading, priority)
    }

    fn ancestor_time(&self, now: u64) -> u64 {
        if self.spec.oldest_ancestor_time == 0 {
            now
        } else {
            self.spec.oldest_ancestor_time
        }
    }

    /// Ends the open file, or makes one for tombstones alone; `more` says that the stream goes on.
    fn finish_file<C: Cursor>(
        &mut self,
        stream: &mut CompactionStream<'_, C>,
        more: bool,
        rules: &mut DropRules<'_>,
    ) -> Result<()> {
        let mut tombstones: Vec<RawTombstone> = Vec::new();
        let points = match &mut self.open {
            Some(open) => match &mut open.points {
                Some(p) => {
                    p.largest = InternalKey::from_encoded(&open.last)?;
                    (p.smallest_seq, p.largest_seq) = open.seqs;
                    Some(p.clone())
                }
                None => None,
            },
            None => None,
        };
        let (key, all) = stream.key_and_tombstones();
        let next = if more { key } else { None };
        let bounds = all.finish_file(points.as_ref(), next, rules, |start, end, seq| {
            tombstones.push(RawTombstone {
                start: start.to_vec(),
                end: end.to_vec(),
                seq,
            });
            Ok(())
        })?;
        let Some(bounds) = bounds else { return Ok(()) };
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.start_file()?,
        };
        self.unsealed.push(open.number);
        for t in &tombstones {
            open.builder.add_tombstone(t);
        }
        let is_due = open.finish_collecting(&tombstones, self.blobs.as_ref());
        let (summary, file) = open.builder.finish()?;
        self.bytes_written += summary.file_size;
        let oldest_blob = open.refs.oldest().filter(|_| !seeded(Bug::BlobLinkUnsaid));
        let mut meta = self.meta(open.number, &summary, bounds, oldest_blob);
        meta.marked_for_compaction = is_due;
        meta.compensated_range_deletion_size = self.covered(&tombstones);
        if let Some(sum) = &open.sum {
            let sum = sum.lock();
            meta.file_checksum = sum.finish();
            meta.file_checksum_func_name = sum.name().to_owned();
        }
        self.cutter.start_file();
        self.begin_seal(
            UnsyncedFile { file, meta },
            more || self.spec.syncs_last_ahead,
        )
    }

    /// Bytes of the tables below that the tombstones, sorted by their starts, cover. Picking goes
    /// by it: where a table cannot be looked into it counts for nothing.
    fn covered(&self, tombstones: &[RawTombstone]) -> u64 {
        if tombstones.is_empty() {
            return 0;
        }
        let below = match self.spec.reason {
            TableFileReason::Compaction => Level(self.spec.level.0 + 1),
            _ => Level::L0,
        };
        let sizes = SizesIn {
            tables: &self.trees.tables,
            reading: &self.family.reading,
            version: &self.family.view_guard().version.clone(),
            margin: COVERED_MARGIN,
        };
        let ranges: Vec<_> = joined(&self.family.order, tombstones).collect();
        let each = ranges.len().div_ceil(COVERED_PROBES);
        let probes = ranges.iter().step_by(each);
        let found = probes.fold(0u64, |sum, (start, end)| {
            sum.saturating_add(sizes.bytes(below, start, end).unwrap_or(0))
        });
        let probed = ranges.len().div_ceil(each) as u64;
        found.saturating_mul(ranges.len() as u64) / probed
    }

    /// Begins to sync a finished file, after the one before has been; the next file is written
    /// meanwhile. One that is sealed next (not `ahead`) is synced then: no thread would begin
    /// sooner.
    fn begin_seal(&mut self, mut last: UnsyncedFile, ahead: bool) -> Result<()> {
        self.spec.stages.lap(Stage::Merge);
        let begun = if !ahead || seeded(Bug::TableNotSynced) {
            Ok(())
        } else {
            last.file.begin_sync()
        };
        self.spec.stages.lap(Stage::Write);
        let before = self.seal_table();
        self.sealing = Some(last);
        before.and(begun)
    }

    /// Waits until the files that were finished last are synced, and closes them. To be called
    /// after the last step.
    pub(crate) fn seal_last(&mut self) -> Result<()> {
        self.seal_table()?;
        self.blobs.as_mut().map_or(Ok(()), BlobWriter::seal)
    }

    fn seal_table(&mut self) -> Result<()> {
        let Some(last) = &mut self.sealing else {
            return Ok(());
        };
        self.spec.stages.lap(Stage::Merge);
        let synced = if seeded(Bug::TableNotSynced) {
            Ok(())
        } else {
            last.file.sync()
        };
        let sealed = synced.and_then(|()| last.file.close());
        self.spec.stages.lap(Stage::Write);
        let elsewhere = last.file.background_cpu_ns();
        self.spec.stages.charge(Stage::Write, elsewhere);
        sealed?;
        let Some(UnsyncedFile { meta, .. }) = self.sealing.take() else {
            return Ok(());
        };
        self.unsealed.retain(|number| *number != meta.number);
        let (job, reason) = (self.spec.job, self.spec.reason);
        let path = self.path_of(meta.number);
        self.trees
            .services
            .table_made(&self.family, job, reason, (meta.number, &path), Ok(&meta));
        self.done.push(Arc::new(meta));
        Ok(())
    }

    fn meta(
        &self,
        number: FileNo,
        summary: &TableSummary,
        bounds: OutputBounds,
        oldest_blob: Option<FileNo>,
    ) -> FileMeta {
        let p = &summary.properties;
        let now = self.trees.services.env.clock.unix_us() / 1_000_000;
        let meta = FileMeta {
            number,
            path_id: self.spec.path_id,
            size: summary.file_size,
            smallest: bounds.smallest,
            largest: bounds.largest,
            smallest_seq: bounds.smallest_seq,
            largest_seq: bounds.largest_seq,
            epoch: self.spec.epoch,
            temperature: self.spec.temperature,
            oldest_blob_file: oldest_blob,
            oldest_ancestor_time: self.ancestor_time(now),
            file_creation_time: now,
            unique_id: Some(summary.unique_id.0).filter(|id| *id != [0, 0]),
            tail_size: summary.tail_size,
            min_timestamp: p.timestamp_min.clone(),
            max_timestamp: p.timestamp_max.clone(),
            ..FileMeta::default()
        };
        let _fresh = meta.stats.set(FileStats {
            num_entries: p.num_entries,
            num_deletions: p.num_deletions,
            num_range_deletions: p.num_range_deletions,
            raw_key_size: p.raw_key_size,
            raw_value_size: p.raw_value_size,
            newest_key_time: p.newest_key_time,
        });
        meta
    }

    /// Makes the files, all of them sealed, fit to be installed. Opens each once: a file that
    /// cannot be read back is not to be.
    pub(crate) fn finish(&mut self) -> Result<()> {
        for file in &self.done {
            let table = self
                .trees
                .tables
                .get(file, self.spec.level, &self.family.reading)?;
            if self.spec.paranoid {
                table.reader.verify()?;
            }
        }
        if !self.done.is_empty() && !seeded(Bug::TableDirNotSynced) {
            let dir = self.family.reading.paths.dir(self.spec.path_id);
            self.trees.services.env.fs.sync_dir(dir)?;
        }
        let synced = (!self.done.is_empty()).then_some(self.spec.path_id);
        match &self.blobs {
            Some(blobs) => blobs.sync_dir(synced),
            None => Ok(()),
        }
    }

    /// The finished tables and blob files.
    pub(crate) fn into_files(self) -> (Vec<Arc<FileMeta>>, Vec<BlobFile>) {
        let blobs = self.blobs.map(BlobWriter::into_files);
        (self.done, blobs.unwrap_or_default())
    }

    /// Where what was written so far is, for [`discard`].
    /// Files that were begun and not sealed are told as failed.
    pub(crate) fn abandon(self) -> Vec<PathBuf> {
        let begun = self.open.as_ref().map(|o| o.number);
        let unsealed = || self.unsealed.iter().copied().chain(begun);
        for number in unsealed() {
            let e = Error::aborted("the job that wrote the table failed");
            let (job, reason) = (self.spec.job, self.spec.reason);
            let path = self.path_of(number);
            self.trees
                .services
                .table_made(&self.family, job, reason, (number, &path), Err(&e));
        }
        let done = self.done.iter().map(|f| f.number);
        let tables = done.chain(unsealed()).map(|n| self.path_of(n));
        let mut all: Vec<_> = tables.collect();
        all.extend(self.blobs.into_iter().flat_map(BlobWriter::abandon));
        all
    }

    fn path_of(&self, number: FileNo) -> PathBuf {
        self.family.reading.paths.table(number, self.spec.path_id)
    }
}

/// The ranges that tombstones cover together, which are sorted by their starts: those that meet are
/// one.
fn joined<'t>(
    order: &KeyOrder,
    tombstones: &'t [RawTombstone],
) -> impl Iterator<Item = (&'t [u8], &'t [u8])> {
    let mut rest = tombstones.iter().peekable();
    std::iter::from_fn(move || {
        let first = rest.next()?;
        let mut end = &*first.end;
        while let Some(next) = rest.next_if(|t| order.compare(&t.start, end).is_le()) {
            if order.compare(end, &next.end).is_lt() {
                end = &next.end;
            }
        }
        Some((&*first.start, end))
    })
}

/// Where the tables of a family are.
pub(crate) fn paths_of<'f>(
    family: &Family,
    files: impl IntoIterator<Item = &'f Arc<FileMeta>>,
) -> Vec<PathBuf> {
    let files = files.into_iter();
    files.map(|f| family.reading.paths.of(f)).collect()
}

/// After a commit that failed: removes the files where it is certain that no MANIFEST names them,
/// since the family, or the database, was gone before the edit was written, or the store refused
/// it.
pub(crate) fn discard_uncommitted(services: &Services, error: &Error, tables: &[PathBuf]) {
    if matches!(
        error.kind(),
        ErrorKind::ColumnFamilyDropped | ErrorKind::ShutdownInProgress
    ) || is_overtaken(error)
        || seeded(Bug::UncertainFilesGone)
    {
        discard(services, tables);
    }
}

/// Removes files that were written and never offered to the MANIFEST.
pub(crate) fn discard(services: &Services, tables: &[PathBuf]) {
    for path in tables {
        if let Err(e) = services.env.fs.remove_file(path)
            && !e.is_not_found()
        {
            services
                .info_log
                .warn(format_args!("an unfinished table stays behind: {e}"));
        }
    }
}
