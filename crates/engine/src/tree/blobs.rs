//! Values that live in blob files: opened on first use, verified on every read.

use super::TablePaths;
use crate::observe::{
    HistogramId, PerfLevel, PerfMetric, Statistics, Ticker, perf_count, perf_timer,
};
use esker_env::Env;
use esker_files::blob::BlobFileReader;
use esker_format::blob::BlobIndex;
use esker_format::{FamilyId, FileNo};
use esker_lsm::visible::ValueResolver;
use esker_status::{Error, Result};
use esker_sync::{Arc, Rank, RwLock};
use hashbrown::HashMap;

/// The open blob files of a database.
#[derive(Debug)]
pub(crate) struct Blobs {
    env: Env,
    statistics: Option<Arc<Statistics>>,
    open: RwLock<HashMap<FileNo, Arc<BlobFileReader>>>,
}

impl Blobs {
    pub(crate) fn new(env: Env, statistics: Option<Arc<Statistics>>) -> Arc<Self> {
        Arc::new(Blobs {
            env,
            statistics,
            open: RwLock::new(Rank::LEAF, HashMap::new()),
        })
    }

    /// Puts the value that `index` of `user_key` points at into `out`.
    pub(crate) fn read(
        &self,
        family: FamilyId,
        paths: &TablePaths,
        user_key: &[u8],
        index: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let index = BlobIndex::decode(index)?;
        let BlobIndex::Blob {
            file,
            expiration: None,
            ..
        } = index
        else {
            return Err(expiring());
        };
        let reader = self.reader(family, paths, file)?;
        let clock = &*self.env.clock;
        let times = self.statistics.as_ref().filter(|s| s.wants_times());
        let start = times.map(|_| clock.now_us());
        let timed = perf_timer(PerfMetric::BlobReadTime, PerfLevel::EnableTime, clock);
        let bytes = reader.get(user_key, &index, true, out)? as u64;
        drop(timed);
        perf_count(PerfMetric::BlobReadCount, 1);
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

    fn reader(
        &self,
        family: FamilyId,
        paths: &TablePaths,
        number: FileNo,
    ) -> Result<Arc<BlobFileReader>> {
        if let Some(r) = self.open.read().get(&number) {
            return Ok(Arc::clone(r));
        }
        let path = paths.blob(number);
        let reader = Arc::new(BlobFileReader::open(&*self.env.fs, &path, number, family)?);
        // One that another thread opened meanwhile is closed without the lock.
        let other = self.open.write().insert(number, Arc::clone(&reader));
        drop(other);
        Ok(reader)
    }

    /// Returns whether no file is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.read().is_empty()
    }

    /// Closes the files that `is_live` does not know any more.
    pub(crate) fn retain(&self, is_live: impl Fn(FileNo) -> bool) {
        if self.is_empty() {
            return;
        }
        // They are closed without the lock, which is below those of files.
        let closed: Vec<_> = {
            let mut open = self.open.write();
            open.extract_if(|n, _| !is_live(*n)).collect()
        };
        drop(closed);
    }

    /// The reader of blobs for one family's iterators.
    pub(crate) fn resolver(
        self: &Arc<Self>,
        family: FamilyId,
        paths: &Arc<TablePaths>,
    ) -> Arc<FamilyBlobs> {
        Arc::new(FamilyBlobs {
            blobs: Arc::clone(self),
            family,
            paths: Arc::clone(paths),
        })
    }
}

/// The error of a value that only RocksDB's stacked BlobDB wrote.
fn expiring() -> Error {
    Error::not_supported("a blob index with a time to live (RocksDB's stacked BlobDB)")
        .with_hint("only BlobDB of RocksDB reads such values; nothing was changed")
}

/// The blobs of one family.
#[derive(Debug)]
pub(crate) struct FamilyBlobs {
    blobs: Arc<Blobs>,
    family: FamilyId,
    paths: Arc<TablePaths>,
}

impl ValueResolver for FamilyBlobs {
    fn blob(&self, user_key: &[u8], index: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.blobs
            .read(self.family, &self.paths, user_key, index, out)
    }
}
