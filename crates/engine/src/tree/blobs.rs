//! Values that live in blob files. The reader of a file hangs on the file in the version, so it
//! is found without a lock and goes with the last version that has it.
//!
//! A file is opened when it is read first, and every read is verified. Where a family has a blob
//! cache it is asked before. Thread-safety: any thread; the windows of a walk have a lock.

use super::tables::TableSetting;
use crate::observe::{
    HistogramId, PerfLevel, PerfMetric, Statistics, Ticker, perf_count, perf_timer,
};
use crate::options::DbOptions;
use esker_env::{Env, ReadOptions as FileReadOptions};
use esker_files::blob::{BlobCache, BlobFileReader, BlobReadAhead, BlobRequest, CachedBlob};
use esker_format::blob::BlobIndex;
use esker_format::{FamilyId, FileNo};
use esker_lsm::version::Version;
use esker_lsm::visible::ValueResolver;
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, ErrorKind, Result};
use esker_sync::{Arc, Mutex, Rank};

/// A value out of a blob file.
#[derive(Debug)]
pub(crate) enum BlobValue {
    Owned(Vec<u8>),
    Cached(CachedBlob),
}

/// Options of reads from blob files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlobReadOptions {
    /// Compare keys, lengths and checksums of records.
    pub(crate) verify: bool,
    /// Put values that were read into the blob cache.
    pub(crate) fill_cache: bool,
    /// Do no I/O: what is not cached gives `Incomplete`.
    pub(crate) cache_only: bool,
}

impl BlobReadOptions {
    /// Of jobs, which leave the cache alone.
    pub(crate) const JOB: Self = BlobReadOptions {
        verify: true,
        fill_cache: false,
        cache_only: false,
    };
}

/// The blob files of a family's tree, and how they are read.
#[derive(Clone, Copy)]
pub(crate) struct BlobSource<'a> {
    pub(crate) family: FamilyId,
    pub(crate) reading: &'a TableSetting,
    pub(crate) version: &'a Version,
    pub(crate) options: BlobReadOptions,
}

impl BlobSource<'_> {
    /// The sorted group of a file.
    fn group_of(&self, file: FileNo) -> Option<FileNo> {
        let file = self.version.blob_files().get(&file)?;
        file.tier.group().map(|group| group.number)
    }

    /// The request for the value of `user_key`, which is without its timestamp.
    fn request<'r>(&self, user_key: &'r [u8], index: &'r BlobIndex) -> BlobRequest<'r> {
        BlobRequest {
            user_key,
            timestamp_size: self.reading.timestamp_size(),
            index,
            verify: self.options.verify,
        }
    }
}

/// A value that one of several keys asks for.
pub(crate) struct WantedBlob<'a> {
    /// Without its timestamp.
    pub(crate) user_key: &'a [u8],
    /// The blob index that the entry holds.
    pub(crate) index: &'a [u8],
    pub(crate) value: Option<Result<BlobValue>>,
}

/// The error of a read that would have needed the device.
pub(crate) fn no_io() -> Error {
    Error::new(
        ErrorKind::Incomplete,
        "the read needs I/O, which read_tier forbids",
    )
}

/// Reads the blob files of a database.
#[derive(Debug)]
pub(crate) struct Blobs {
    env: Env,
    statistics: Option<Arc<Statistics>>,
    /// Reads bypass the page cache.
    direct: bool,
    /// The database in the names of cached values.
    salt: u64,
}

impl Blobs {
    pub(crate) fn new(
        env: Env,
        statistics: Option<Arc<Statistics>>,
        options: &DbOptions,
        salt: u64,
    ) -> Arc<Self> {
        Arc::new(Blobs {
            env,
            statistics,
            direct: options.use_direct_reads,
            salt,
        })
    }

    /// The blob cache of a family.
    pub(crate) fn cache(&self, reading: &TableSetting) -> Option<BlobCache> {
        let cache = reading.blob_cache()?;
        Some(BlobCache::new(Arc::clone(cache), self.salt))
    }

    /// The value that `index` of `user_key`, which is without its timestamp, points at.
    pub(crate) fn read(
        &self,
        source: &BlobSource<'_>,
        user_key: &[u8],
        index: &[u8],
        ahead: Option<&mut BlobReadAhead>,
    ) -> Result<BlobValue> {
        let index = BlobIndex::decode(index)?;
        let (file, offset) = place_of(&index)?;
        let cache = self.cache(source.reading);
        if let Some(found) = cache.as_ref().and_then(|c| self.cached(c, file, offset)) {
            return Ok(BlobValue::Cached(found));
        }
        if source.options.cache_only {
            return Err(no_io());
        }
        let reader = self.reader(source, file, offset)?;
        let request = source.request(user_key, &index);
        let mut value = Vec::new();
        self.timed(1, || match ahead {
            Some(ahead) => ahead.read(reader, || source.group_of(file), &request, &mut value),
            None => reader.read(&request, &mut value),
        })?;
        self.keep(source, cache.as_ref(), (file, offset), value)
    }

    /// Reads several values: those of one file in the order in which they lie there, and near ones
    /// at once. Each `value` gets what a read of its own would give.
    pub(crate) fn read_many(&self, source: &BlobSource<'_>, wanted: &mut [WantedBlob<'_>]) {
        let cache = self.cache(source.reading);
        let mut open: Vec<(FileNo, u64, usize, BlobIndex)> = Vec::with_capacity(wanted.len());
        for (at, w) in wanted.iter_mut().enumerate() {
            let index = BlobIndex::decode(w.index);
            match index.and_then(|index| Ok((place_of(&index)?, index))) {
                Err(e) => w.value = Some(Err(e)),
                Ok(((file, offset), index)) => {
                    let cached = cache.as_ref().and_then(|c| self.cached(c, file, offset));
                    match cached {
                        Some(found) => w.value = Some(Ok(BlobValue::Cached(found))),
                        None if source.options.cache_only => w.value = Some(Err(no_io())),
                        None => open.push((file, offset, at, index)),
                    }
                }
            }
        }
        // The reader of a file orders its values.
        open.sort_by_key(|(file, ..)| *file);
        for group in open.chunk_by(|a, b| a.0 == b.0) {
            let reader = match self.reader(source, group[0].0, group[0].1) {
                Ok(reader) => reader,
                Err(e) => {
                    let all = group.iter();
                    all.for_each(|(_, _, at, _)| wanted[*at].value = Some(Err(e.clone())));
                    continue;
                }
            };
            let requests = group.iter();
            let requests =
                requests.map(|(_, _, at, index)| source.request(wanted[*at].user_key, index));
            let requests: Vec<_> = requests.collect();
            let mut values = Vec::with_capacity(group.len());
            let done = |at, value| values.push((at, value));
            let read = self.timed(group.len() as u64, || Ok(reader.read_many(&requests, done)));
            debug_assert!(read.is_ok(), "each value has its own error");
            for (at, value) in values {
                let at = if seeded(Bug::JoinedBlobsSwapped) {
                    group.len() - 1 - at
                } else {
                    at
                };
                let (file, offset, place, _) = group[at];
                let kept = |value| self.keep(source, cache.as_ref(), (file, offset), value);
                wanted[place].value = Some(value.and_then(kept));
            }
        }
    }

    /// Counts and times what `read` reads of a file for `values`.
    fn timed(&self, values: u64, read: impl FnOnce() -> Result<usize>) -> Result<()> {
        let clock = &*self.env.clock;
        let times = self.statistics.as_ref().filter(|s| s.wants_times());
        let start = times.map(|_| clock.now_us());
        let timed = perf_timer(PerfMetric::BlobReadTime, PerfLevel::EnableTime, clock);
        let bytes = read()? as u64;
        drop(timed);
        perf_count(PerfMetric::BlobReadCount, values);
        perf_count(PerfMetric::BlobReadByte, bytes);
        if let Some(s) = &self.statistics {
            s.add(Ticker::BlobDbBlobFileBytesRead, bytes);
        }
        if let (Some(s), Some(start)) = (times, start) {
            s.record(
                HistogramId::BlobDbBlobFileReadMicros,
                clock.now_us() - start,
            );
        }
        Ok(())
    }

    fn cached(&self, cache: &BlobCache, file: FileNo, offset: u64) -> Option<CachedBlob> {
        let found = cache.lookup(file, offset);
        let Some(hit) = &found else {
            self.count(Ticker::BlobDbCacheMiss, 1);
            return None;
        };
        let bytes = hit.as_slice().len() as u64;
        perf_count(PerfMetric::BlobCacheHitCount, 1);
        perf_count(PerfMetric::BlobCacheReadByte, bytes);
        self.count(Ticker::BlobDbCacheHit, 1);
        self.count(Ticker::BlobDbCacheBytesRead, bytes);
        found
    }

    /// Puts a value that was read into the cache, where the read asks for it.
    fn keep(
        &self,
        source: &BlobSource<'_>,
        cache: Option<&BlobCache>,
        place: (FileNo, u64),
        value: Vec<u8>,
    ) -> Result<BlobValue> {
        match cache.filter(|_| source.options.fill_cache) {
            Some(cache) => Ok(BlobValue::Cached(self.insert(cache, place, value)?)),
            None => Ok(BlobValue::Owned(value)),
        }
    }

    /// Puts a value into a blob cache.
    pub(crate) fn insert(
        &self,
        cache: &BlobCache,
        (file, offset): (FileNo, u64),
        value: Vec<u8>,
    ) -> Result<CachedBlob> {
        let bytes = value.len() as u64;
        let kept = cache.insert(file, offset, value);
        match &kept {
            Ok(_) => {
                self.count(Ticker::BlobDbCacheAdd, 1);
                self.count(Ticker::BlobDbCacheBytesWrite, bytes);
            }
            Err(_) => self.count(Ticker::BlobDbCacheAddFailures, 1),
        }
        kept
    }

    fn count(&self, ticker: Ticker, n: u64) {
        if let Some(s) = &self.statistics {
            s.add(ticker, n);
        }
    }

    /// The reader of a file, which is opened if nobody has read it yet.
    fn reader<'v>(
        &self,
        source: &BlobSource<'v>,
        number: FileNo,
        offset: u64,
    ) -> Result<&'v BlobFileReader> {
        let Some(file) = source.version.blob_files().get(&number) else {
            return Err(unlisted(source.reading, number, offset));
        };
        if let Some(reader) = file.slot.get::<BlobFileReader>() {
            return Ok(reader);
        }
        let reader = self.open(source, number).map_err(|e| {
            if !e.is_not_found() {
                return e;
            }
            Error::corruption("the blob file is missing")
                .with_file(source.reading.paths.blob(number))
                .with_offset(offset)
                .with_hint("restore the file from a backup; values of other files are sound")
        })?;
        let _raced = file.slot.set(Arc::new(reader));
        (file.slot.get()).ok_or_else(|| Error::aborted("the open blob file was lost"))
    }

    #[cold]
    fn open(&self, source: &BlobSource<'_>, number: FileNo) -> Result<BlobFileReader> {
        let options = FileReadOptions {
            direct: self.direct,
            random: true,
        };
        let path = source.reading.paths.blob(number);
        let file = self.env.fs.open_read(&path, options)?;
        BlobFileReader::over(file, number, source.family)
    }

    /// The resolver of one walk through a tree, with windows of `readahead` bytes, or, where that
    /// is 0, of a size that follows the walk.
    pub(crate) fn resolver(
        self: &Arc<Self>,
        family: FamilyId,
        reading: &Arc<TableSetting>,
        version: &Arc<Version>,
        options: BlobReadOptions,
        readahead: usize,
    ) -> Arc<BlobWalk> {
        Arc::new(BlobWalk {
            blobs: Arc::clone(self),
            family,
            reading: Arc::clone(reading),
            version: Arc::clone(version),
            options,
            ahead: Mutex::new(Rank::LEAF, Some(BlobReadAhead::new(readahead))),
        })
    }
}

/// The file and the offset of a value.
fn place_of(index: &BlobIndex) -> Result<(FileNo, u64)> {
    match index {
        BlobIndex::Blob {
            expiration: None,
            file,
            offset,
            ..
        } => Ok((*file, *offset)),
        _ => Err(expiring()),
    }
}

/// The error of a value whose blob file the tree does not have: a repair without the file leaves
/// its other tables' entries as they are.
#[cold]
fn unlisted(reading: &TableSetting, file: FileNo, offset: u64) -> Error {
    Error::corruption("the MANIFEST does not list the blob file of a value")
        .with_file(reading.paths.blob(file))
        .with_offset(offset)
        .with_hint(
            "restore the file from a backup and repair the database again, or delete the key; \
             values of other files are sound",
        )
}

/// For iterators over trees without blob files.
impl ValueResolver for TableSetting {
    fn blob(&self, _user_key: &[u8], index: &[u8], _out: &mut Vec<u8>) -> Result<()> {
        let (file, offset) = place_of(&BlobIndex::decode(index)?)?;
        Err(unlisted(self, file, offset))
    }
}

/// The error of a value that only RocksDB's stacked BlobDB wrote.
fn expiring() -> Error {
    Error::not_supported("a blob index with a time to live (RocksDB's stacked BlobDB)")
        .with_hint("only BlobDB of RocksDB reads such values; nothing was changed")
}

/// The blobs that one iterator or one job walks through.
#[derive(Debug)]
pub(crate) struct BlobWalk {
    blobs: Arc<Blobs>,
    family: FamilyId,
    reading: Arc<TableSetting>,
    version: Arc<Version>,
    options: BlobReadOptions,
    /// None while a value is read.
    ahead: Mutex<Option<BlobReadAhead>>,
}

impl BlobWalk {
    /// Gives the memory of what was read ahead back.
    pub(crate) fn rest(&self) {
        if let Some(ahead) = &mut *self.ahead.lock() {
            ahead.clear();
        }
    }
}

impl ValueResolver for BlobWalk {
    fn blob(&self, user_key: &[u8], index: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let source = BlobSource {
            family: self.family,
            reading: &self.reading,
            version: &self.version,
            options: self.options,
        };
        // Files are read without the lock, which is below theirs.
        let mut ahead = self.ahead.lock().take();
        let read = (self.blobs).read(&source, user_key, index, ahead.as_mut());
        *self.ahead.lock() = ahead;
        match read? {
            BlobValue::Owned(value) => *out = value,
            BlobValue::Cached(value) => out.extend_from_slice(value.as_slice()),
        }
        Ok(())
    }
}
