//! Values of blob files in a cache: one of their own, or the one that has the blocks of tables.
//!
//! A value is there as the application wrote it. Its name is that of its file, and where it lies
//! in it: blob files and tables take their numbers from one sequence, so both may share a cache.
//! Shared between threads.

use crate::table::{BlockCache, CachedBlock, cache_name};
use esker_cache::{CacheKey, Pinned, Priority};
use esker_format::FileNo;
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, ErrorKind, Result, Subcode};
use std::sync::Arc;

/// A value that stays in memory as long as this lives, in the cache or not.
#[derive(Clone, Debug)]
pub struct CachedBlob {
    held: Pinned<CachedBlock>,
    len: usize,
}

impl CachedBlob {
    fn new(held: Pinned<CachedBlock>) -> Option<Self> {
        let len = held.blob()?.len();
        Some(CachedBlob { held, len })
    }

    /// The value.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        let whole = self.held.blob().unwrap_or_default();
        &whole[..self.len]
    }

    /// Keeps the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

/// The cache of blobs of one family.
#[derive(Clone, Debug)]
pub struct BlobCache {
    cache: Arc<BlockCache>,
    salt: u64,
}

impl BlobCache {
    /// In `cache`, for the files of the database that `salt` stands for.
    pub fn new(cache: Arc<BlockCache>, salt: u64) -> Self {
        BlobCache { cache, salt }
    }

    fn key(&self, file: FileNo, offset: u64) -> CacheKey {
        let file = if seeded(Bug::BlobCachedByOffset) {
            FileNo(0)
        } else {
            file
        };
        CacheKey::new(cache_name(self.salt, file), offset)
    }

    /// The value at `offset` of a file; `None` when it is not there.
    pub fn lookup(&self, file: FileNo, offset: u64) -> Option<CachedBlob> {
        CachedBlob::new(self.cache.lookup(self.key(file, offset))?)
    }

    /// Adds a value, which is the first to go again. `Aborted` where the cache is full and its
    /// limit strict.
    pub fn insert(&self, file: FileNo, offset: u64, value: Vec<u8>) -> Result<CachedBlob> {
        let block = CachedBlock::Blob(value);
        let (key, charge) = (self.key(file, offset), block.charge());
        let held = self.cache.insert(key, block, charge, Priority::Bottom);
        let held = held.map_err(|full| {
            Error::new(ErrorKind::Aborted, full.to_string()).with_subcode(Subcode::MemoryLimit)
        })?;
        CachedBlob::new(held).ok_or_else(|| Error::aborted("the cached value was lost"))
    }
}
