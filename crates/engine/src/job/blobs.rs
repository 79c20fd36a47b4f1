//! Blob files of a flush or a compaction: which values go there, and writing them.
//!
//! Each key range of a job has a [`BlobWriter`], the sink of its stream. Files are written one
//! after the other up to `blob_file_size`, with footer and sync; nothing is listed anywhere until
//! the caller installs the result. With groups a writer has two files open, one of large values and
//! one of medium ones, whose group all key ranges of the job share. Also the sums of what tables
//! refer to, for edits that drop whole tables. One thread at a time.

use crate::core::Trees;
use crate::family::Family;
use crate::observe::{HistogramId, TableFileReason, Ticker};
use crate::options::file_checksum::{FileSum, summed};
use crate::options::{
    BlobGarbageCollectionPolicy, CompactRangeOptions, DbOptions, FamilyOptions,
    PrepopulateBlobCache,
};
use esker_codec::compress::{Codec, CompressionOptions, Compressor};
use esker_env::{Lifetime, WritableFile, WriteOptions as FileWriteOptions};
use esker_files::blob::{BlobCache, BlobFileBuilder};
use esker_files::table::ReadContext;
use esker_format::blob::BlobIndex;
use esker_format::blob_groups::{BlobGroup, BlobGroups, BlobTier};
use esker_format::blob_refs::{self, BlobRefs};
use esker_format::edit::BlobAddition;
use esker_format::{Cursor, FileNo, Level};
use esker_lsm::compaction_stream::{ValueSink, count_refs};
use esker_lsm::edit::TreeEdit;
use esker_lsm::file::FileMeta;
use esker_lsm::version::{BlobFile, Version};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use esker_sync::{Arc, OnceLock};
use std::path::PathBuf;

/// Write-back of a file is started after each of this many bytes unless the options say otherwise:
/// it is synced at its end anyway, and that waits for little then.
const WRITE_BACK: u64 = 1 << 20;
/// Bytes read ahead while the references of a table are counted.
const READAHEAD: usize = 1 << 20;

/// How a job writes a new file; nothing is reserved for it.
pub(super) fn output_file_options(db: &DbOptions, lifetime: Lifetime) -> FileWriteOptions {
    FileWriteOptions {
        lifetime,
        direct: db.use_direct_io_for_flush_and_compaction,
        bytes_per_sync: match db.bytes_per_sync {
            0 => WRITE_BACK,
            asked => asked,
        },
        buffer_size: db.writable_file_max_buffer_size,
        exclusive: true,
        background: true,
        ..FileWriteOptions::default()
    }
}

/// Garbage collection that a caller asks one compaction for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlobGcOverride {
    policy: BlobGarbageCollectionPolicy,
    age_cutoff: Option<f64>,
}

impl BlobGcOverride {
    pub(crate) fn of(options: &CompactRangeOptions) -> Self {
        let asked = options.blob_garbage_collection_age_cutoff;
        BlobGcOverride {
            policy: options.blob_garbage_collection_policy,
            age_cutoff: (0.0..=1.0).contains(&asked).then_some(asked),
        }
    }
}

/// Returns whether compactions bring the values of `version` back into tables.
pub(crate) fn brings_inline(options: &FamilyOptions, version: &Version) -> bool {
    !options.enable_blob_files && !version.blob_files().is_empty()
}

/// Settings of the blob files that a job writes.
pub(crate) struct BlobSpec {
    /// Bytes from which on values leave the tables; `None` where they stay.
    min_size: Option<usize>,
    /// Bytes from which on they are large, where medium ones are kept in sorted groups.
    large_from: Option<usize>,
    /// The level of the tables.
    level: Level,
    /// The number of the job's group, once it has one: that of its first file.
    group: BlobGroupNumber,
    file_size: u64,
    codec: Codec,
    codec_options: CompressionOptions,
    /// Live values leave blob files below this number.
    cutoff: FileNo,
    /// And these, ascending, for a bound on space.
    collected: Arc<[FileNo]>,
    /// And these, ascending, for a group of the output.
    regrouped: Arc<[FileNo]>,
    lifetime: Lifetime,
    job: u64,
    reason: TableFileReason,
    /// Values go into the blob cache as well.
    prepopulates: bool,
}

impl BlobSpec {
    /// Of tables on `level`; live values stay where they are. `group` is that of the job.
    pub(crate) fn new(options: &FamilyOptions, level: Level, group: BlobGroupNumber) -> Self {
        let starts = i32::from(level.0) >= options.blob_file_starting_level;
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let (least, large_from) = match options.min_medium_blob_size {
            0 => (options.min_blob_size, None),
            medium => match options.min_large_blob_size {
                0 => (medium, Some(usize::MAX)),
                large => (medium, Some(size(large))),
            },
        };
        BlobSpec {
            min_size: (options.enable_blob_files && starts).then_some(size(least)),
            large_from,
            level,
            group,
            file_size: options.blob_file_size,
            codec: options.blob_compression_type.codec().unwrap_or(Codec::None),
            codec_options: options.blob_compression_opts.to_codec(),
            cutoff: FileNo(0),
            collected: Arc::new([]),
            regrouped: Arc::new([]),
            lifetime: Lifetime::Unknown,
            job: 0,
            reason: TableFileReason::Flush,
            prepopulates: options.prepopulate_blob_cache == PrepopulateBlobCache::FlushOnly,
        }
    }

    /// Lets live values leave old blob files of `version`, as the options or a caller want it:
    /// all files where none are to be. With a bound on space the picker chooses (`collected`).
    pub(crate) fn collecting(
        mut self,
        options: &FamilyOptions,
        version: &Version,
        asked: BlobGcOverride,
        collected: &Arc<[FileNo]>,
    ) -> Self {
        self.collected = Arc::clone(collected);
        let is_bounded = options.max_space_amplification_percent > 0;
        let is_on = match asked.policy {
            BlobGarbageCollectionPolicy::Force => true,
            BlobGarbageCollectionPolicy::Disable => return self,
            BlobGarbageCollectionPolicy::UseDefault => {
                options.enable_blob_garbage_collection && !is_bounded
            }
        };
        let age = options.blob_garbage_collection_age_cutoff;
        if !options.enable_blob_files {
            self.cutoff = FileNo(u64::MAX);
        } else if is_on {
            self.cutoff = version.blob_cutoff(asked.age_cutoff.unwrap_or(age));
        }
        self
    }

    /// Lets medium values leave these files for a group of the output.
    pub(crate) fn regrouping(mut self, files: &Arc<[FileNo]>) -> Self {
        self.regrouped = Arc::clone(files);
        self
    }

    /// Returns whether a value of so many bytes goes into a group.
    fn is_medium(&self, len: usize) -> bool {
        self.large_from.is_some_and(|large| len < large)
    }

    /// Names the job.
    pub(crate) fn by(mut self, job: u64, reason: TableFileReason, lifetime: Lifetime) -> Self {
        (self.job, self.reason, self.lifetime) = (job, reason, lifetime);
        self.prepopulates &= matches!(reason, TableFileReason::Flush);
        self
    }
}

/// The number of the group that a job writes, which its key ranges share.
pub(crate) type BlobGroupNumber = Arc<OnceLock<FileNo>>;

/// A blob file being written.
struct OpenBlobFile {
    builder: BlobFileBuilder,
    tier: BlobTier,
    sum: Option<FileSum>,
}

/// A blob file that is complete and not known to be synced yet.
struct UnsyncedBlobFile {
    file: Box<dyn WritableFile>,
    blob: BlobFile,
}

/// Writes the large values of a key range.
pub(crate) struct BlobWriter {
    trees: Arc<Trees>,
    family: Arc<Family>,
    spec: BlobSpec,
    /// That of large values, or of all where there are no groups, and that of medium ones.
    open: [Option<OpenBlobFile>; 2],
    sealing: Option<UnsyncedBlobFile>,
    /// Files that were begun and are not known to be synced.
    unsealed: Vec<FileNo>,
    done: Vec<BlobFile>,
    /// Bytes of files that are complete.
    bytes: u64,
    /// Its files of medium values.
    groups: BlobGroups,
    /// The cache that the values go into as well.
    fresh: Option<BlobCache>,
}

impl BlobWriter {
    pub(crate) fn new(trees: Arc<Trees>, family: Arc<Family>, spec: BlobSpec) -> Self {
        let cache = || trees.blobs.cache(&family.reading);
        BlobWriter {
            fresh: spec.prepopulates.then(cache).flatten(),
            trees,
            family,
            spec,
            open: [None, None],
            sealing: None,
            unsealed: Vec::new(),
            done: Vec::new(),
            bytes: 0,
            groups: BlobGroups::default(),
        }
    }

    /// Bytes written so far.
    pub(crate) fn bytes(&self) -> u64 {
        let open = self.open.iter().flatten().map(|o| o.builder.len());
        self.bytes + open.sum::<u64>()
    }

    fn path_of(&self, number: FileNo) -> PathBuf {
        self.family.reading.paths.blob(number)
    }

    fn start_file(&mut self, is_medium: bool) -> Result<OpenBlobFile> {
        let number = self.trees.numbers.next();
        self.unsealed.push(number);
        let tier = self.tier_of(number, is_medium);
        let db = self.trees.services.options.load();
        let file = self.trees.services.env.fs.create(
            &self.path_of(number),
            output_file_options(&db, self.spec.lifetime),
        )?;
        let (file, sum) = summed(db.file_checksum_gen_factory.as_ref(), file);
        let options = self.spec.codec_options.clone();
        let compressor = Compressor::new(self.spec.codec, options, None)?;
        let builder = BlobFileBuilder::new(file, number, self.family.id, compressor)?;
        Ok(OpenBlobFile { builder, tier, sum })
    }

    /// The tier of a new file, which is of the job's group where values are medium.
    fn tier_of(&mut self, number: FileNo, is_medium: bool) -> BlobTier {
        if !is_medium {
            return match self.spec.large_from {
                None => BlobTier::Unknown,
                Some(_) => BlobTier::Large,
            };
        }
        let mut group = BlobGroup {
            number: *self.spec.group.get_or_init(|| number),
            level: self.spec.level,
        };
        if seeded(Bug::BlobGroupTooDeep) {
            group.level.0 += 7;
        }
        self.groups.insert(number, group);
        BlobTier::Medium(group)
    }

    /// The groups of the blob files that a table of the job refers to.
    pub(crate) fn groups_of(&self, refs: &BlobRefs) -> BlobGroups {
        let view = self.family.view_guard();
        let listed = view.version.blob_files();
        let group = |file: FileNo| match self.groups.of(file) {
            Some(own) => Some(own),
            None => listed.get(&file)?.tier.group(),
        };
        let mut groups = BlobGroups::default();
        for (file, _) in refs.iter() {
            if let Some(group) = group(file) {
                groups.insert(file, group);
            }
        }
        groups
    }

    /// Ends the open files.
    pub(crate) fn finish_files(&mut self) -> Result<()> {
        self.finish_file(0)?;
        self.finish_file(1)
    }

    /// Ends one of the open files, which is synced while the next one is written.
    fn finish_file(&mut self, at: usize) -> Result<()> {
        let Some(open) = self.open[at].take() else {
            return Ok(());
        };
        let (added, mut file) = open.builder.finish_unsynced()?;
        self.bytes += file.len();
        self.count(|s| s.add(Ticker::BlobDbBlobFileBytesWritten, file.len()));
        if !seeded(Bug::BlobFooterUnsynced) {
            file.begin_sync()?;
        }
        let mut blob = listed(added, open.tier);
        if let Some(sum) = &open.sum {
            let sum = sum.lock();
            blob.checksum_value = sum.finish();
            blob.checksum_method = sum.name().to_owned();
        }
        self.seal()?;
        self.sealing = Some(UnsyncedBlobFile { file, blob });
        Ok(())
    }

    /// Waits until the file that was finished last is synced, and closes it.
    pub(crate) fn seal(&mut self) -> Result<()> {
        let Some(last) = &mut self.sealing else {
            return Ok(());
        };
        let clock = &self.trees.services.env.clock;
        let start = clock.now_us();
        if !seeded(Bug::BlobFooterUnsynced) {
            last.file.sync()?;
        }
        let took = clock.now_us() - start;
        last.file.close()?;
        self.count(|s| {
            s.add(Ticker::BlobDbBlobFileSynced, 1);
            if s.wants_times() {
                s.record(HistogramId::BlobDbBlobFileSyncMicros, took);
            }
        });
        let Some(UnsyncedBlobFile { blob, .. }) = self.sealing.take() else {
            return Ok(());
        };
        self.unsealed.retain(|number| *number != blob.number);
        self.tell(blob.number, Ok(&blob));
        self.done.push(blob);
        Ok(())
    }

    /// Puts a fresh value into the blob cache, if the options want it there.
    fn prepopulate(&self, index: &BlobIndex, value: &[u8]) {
        if let Some(cache) = &self.fresh
            && let BlobIndex::Blob { file, offset, .. } = *index
        {
            // One that finds no room is read when it is asked for.
            let _full = (self.trees.blobs).insert(cache, (file, offset), value.to_vec());
        }
    }

    fn count(&self, f: impl FnOnce(&crate::observe::Statistics)) {
        if let Some(s) = &self.trees.services.statistics {
            f(s);
        }
    }

    fn tell(&self, number: FileNo, made: Result<&BlobFile, &Error>) {
        let (job, reason) = (self.spec.job, self.spec.reason);
        let path = self.path_of(number);
        let services = &self.trees.services;
        services.blob_file_made(&self.family, job, reason, (number, &path), made);
    }

    /// Makes the names of the files, all of them sealed, survive power loss. They lie in the
    /// family's first path; `synced` is the path that the tables' names were synced in.
    pub(crate) fn sync_dir(&self, synced: Option<u32>) -> Result<()> {
        if self.done.is_empty() || synced == Some(0) {
            return Ok(());
        }
        let dir = self.family.reading.paths.first();
        self.trees.services.env.fs.sync_dir(dir)
    }

    /// The finished files.
    pub(crate) fn into_files(self) -> Vec<BlobFile> {
        self.done
    }

    /// Where what was written so far is. Files that were begun and not sealed are told as failed.
    pub(crate) fn abandon(self) -> Vec<PathBuf> {
        let e = Error::aborted("the job that wrote the blob file failed");
        self.unsealed.iter().for_each(|n| self.tell(*n, Err(&e)));
        let done = self.done.iter().map(|b| b.number);
        let all = done.chain(self.unsealed.iter().copied());
        all.map(|n| self.path_of(n)).collect()
    }
}

impl ValueSink for BlobWriter {
    fn takes(&self, len: usize) -> bool {
        self.spec.min_size.is_some_and(|min| len >= min)
    }

    fn leaves(&self, file: FileNo) -> bool {
        file < self.spec.cutoff
            || self.spec.collected.binary_search(&file).is_ok()
            || self.spec.regrouped.binary_search(&file).is_ok()
    }

    fn put(&mut self, user_key: &[u8], value: &[u8], index: &mut Vec<u8>) -> Result<()> {
        let is_medium = self.spec.is_medium(value.len());
        let at = usize::from(is_medium);
        let mut open = match self.open[at].take() {
            Some(open) => open,
            None => self.start_file(is_medium)?,
        };
        let times = self.trees.services.statistics.as_ref();
        let times = times.filter(|s| s.wants_times());
        let start = times.map(|_| self.trees.services.env.clock.now_us());
        let added = open.builder.add(user_key, value)?;
        self.prepopulate(&added, value);
        if let (Some(s), Some(start)) = (times, start) {
            let took = self.trees.services.env.clock.now_us() - start;
            s.record(HistogramId::BlobDbBlobFileWriteMicros, took);
        }
        added.encode(index);
        let is_full = open.builder.len() >= self.spec.file_size;
        self.open[at] = Some(open);
        if is_full {
            self.finish_file(at)?;
        }
        Ok(())
    }
}

/// A new blob file as trees list it.
fn listed(added: BlobAddition, tier: BlobTier) -> BlobFile {
    BlobFile {
        number: added.number,
        total_count: added.total_count,
        total_bytes: added.total_bytes,
        tier,
        ..BlobFile::default()
    }
}

/// Adds to `edit` what `garbage` says that nothing refers to any more.
pub(crate) fn add_garbage(edit: &mut TreeEdit, garbage: &BlobRefs) {
    let all = garbage.iter();
    let all = all.map(|(file, amount)| (file, amount.count, amount.bytes));
    edit.garbage.extend(all);
}

/// Where new blob files of a family are.
pub(crate) fn paths_of(family: &Family, blobs: &[BlobFile]) -> Vec<PathBuf> {
    let paths = &family.reading.paths;
    blobs.iter().map(|b| paths.blob(b.number)).collect()
}

/// The references of tables that leave the tree unread. A table that cannot be read is left out,
/// with a warning: its blob files stay longer than they need.
pub(crate) fn refs_of<'f>(
    trees: &Trees,
    family: &Family,
    files: impl IntoIterator<Item = (Level, &'f Arc<FileMeta>)>,
) -> BlobRefs {
    let mut all = BlobRefs::default();
    for (level, file) in files {
        match refs_of_table(trees, family, level, file) {
            Ok(refs) => all.add_all(&refs),
            Err(e) => trees.services.info_log.warn(format_args!(
                "[{}] the blobs of table {} do not count as garbage: {e}",
                family.name, file.number
            )),
        }
    }
    all
}

/// The references of a table: its property says them, else they are counted.
fn refs_of_table(
    trees: &Trees,
    family: &Family,
    level: Level,
    file: &Arc<FileMeta>,
) -> Result<BlobRefs> {
    if file.oldest_blob_file.is_none() {
        return Ok(BlobRefs::default());
    }
    let table = trees.tables.get(file, level, &family.reading)?;
    let properties = &table.reader.properties().user_collected;
    if let Some(value) = properties.get(blob_refs::PROPERTY.as_bytes()) {
        return BlobRefs::decode(value);
    }
    let mut refs = BlobRefs::default();
    let mut cursor = table.reader.cursor(&ReadContext::compaction(READAHEAD));
    cursor.seek_to_first();
    while cursor.valid() {
        count_refs(&mut refs, cursor.key(), cursor.value())?;
        cursor.next();
    }
    cursor.status()?;
    Ok(refs)
}
