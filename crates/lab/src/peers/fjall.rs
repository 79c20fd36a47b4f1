//! fjall for `esker bench`: a log-structured tree in Rust.
//!
//! Writes reach the operating system's buffers and are not synced. Block size, memtable and cache
//! are those of the plan, without compression. Iterators walk ranges, a new one for each seek and
//! each turn.

use std::ops::Bound;
use std::time::{Duration, Instant};

use fjall::config::{BlockSizePolicy, CompressionPolicy};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Slice};

use super::{Bounds, not_of};
use crate::process::Usage;
use crate::slowest::Account;
use crate::store::{Iter, OpenPlan, Session, SessionPlan, Store};
use crate::{Failure, Result};

/// Where the plan has no block cache of its own: RocksDB's default.
const CACHE: u64 = 32 << 20;

/// An open database.
pub(crate) struct FjallStore {
    db: Database,
    pairs: Keyspace,
}

fn sad(error: fjall::Error) -> Failure {
    Failure::new(format!("fjall: {error}"))
}

/// An option of the plan as a number.
fn number(options: &[(String, String)], name: &str) -> Option<u64> {
    let found = options.iter().rev().find(|(known, _)| known == name);
    found.and_then(|(_, value)| value.parse().ok())
}

impl FjallStore {
    /// Opens or creates the one below the plan's directory.
    ///
    /// # Errors
    /// As reported by fjall.
    pub(crate) fn open(plan: &OpenPlan) -> Result<FjallStore> {
        if let Some(flag) = plan.beyond_one_family() {
            return Err(not_of("fjall", flag));
        }
        let path = plan.path.join("fjall");
        if plan.must_exist && !path.exists() {
            return Err(Failure::new(format!("{} is not there", path.display())));
        }
        let cache = u64::try_from(plan.cache.capacity).unwrap_or(CACHE);
        let db = Database::builder(&path).cache_size(cache);
        let db = db.open().map_err(sad)?;
        let block = number(&plan.table, "block_size").unwrap_or(4096) as u32;
        let memtable = number(&plan.options, "write_buffer_size").unwrap_or(64 << 20);
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(memtable)
                .data_block_size_policy(BlockSizePolicy::all(block))
                .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
        };
        let pairs = db.keyspace("pairs", options).map_err(sad)?;
        Ok(FjallStore { db, pairs })
    }
}

impl Store for FjallStore {
    type Session = FjallSession;

    fn describe(&self) -> String {
        "fjall 3, no compression, writes not synced".into()
    }

    fn session(&self, _plan: &SessionPlan) -> Result<FjallSession> {
        Ok(FjallSession {
            db: self.db.clone(),
            pairs: self.pairs.clone(),
            batch: Vec::new(),
        })
    }

    fn flush(&self) -> Result<()> {
        self.pairs.rotate_memtable_and_wait().map_err(sad)
    }

    fn compact_all(&self, _force_bottommost: bool, _subcompactions: u32) -> Result<()> {
        self.flush()?;
        self.pairs.major_compact().map_err(sad)
    }

    fn compact_level(&self, _from: u32) -> Result<String> {
        Err(not_of("fjall", "compactions of single levels"))
    }

    /// It offers no wait for compactions: waits until the process writes no more.
    fn wait_for_compaction(&self) -> Result<()> {
        self.db.persist(PersistMode::SyncAll).map_err(sad)?;
        let written = || Usage::now().device_write_bytes;
        let (begin, mut last, mut quiet) = (Instant::now(), written(), 0);
        while quiet < 10 && begin.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(50));
            let now = written();
            quiet = if now == last { quiet + 1 } else { 0 };
            last = now;
        }
        Ok(())
    }

    fn property(&self, _name: &str) -> Option<String> {
        None
    }

    fn statistics(&self) -> Option<String> {
        None
    }

    fn reset_statistics(&self) -> bool {
        false
    }

    fn verify_checksums(&self) -> Result<()> {
        Err(not_of("fjall", "verifychecksum"))
    }
}

/// A thread's view.
pub(crate) struct FjallSession {
    db: Database,
    pairs: Keyspace,
    /// Pairs of the batch; no value for a deletion.
    batch: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Session for FjallSession {
    type Iter<'a> = FjallIter;

    fn account(&self) -> Result<Box<dyn Account>> {
        Err(not_of("fjall", "--slowest"))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.pairs.insert(key, value).map_err(sad)
    }

    fn merge(&mut self, _key: &[u8], _operand: &[u8]) -> Result<()> {
        Err(not_of("fjall", "merges"))
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.pairs.remove(key).map_err(sad)
    }

    fn batch_clear(&mut self) {
        self.batch.clear();
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        self.batch.push((key.to_vec(), Some(value.to_vec())));
    }

    fn batch_delete(&mut self, key: &[u8]) {
        self.batch.push((key.to_vec(), None));
    }

    fn batch_write(&mut self) -> Result<()> {
        let mut batch = self.db.batch();
        for (key, value) in &self.batch {
            match value {
                Some(value) => batch.insert(&self.pairs, key.as_slice(), value.as_slice()),
                None => batch.remove(&self.pairs, key.as_slice()),
            }
        }
        batch.commit().map_err(sad)
    }

    fn get<R>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let found = self.pairs.get(key).map_err(sad)?;
        Ok(found.map(|value| look(&value)))
    }

    fn multi_get(&mut self, keys: &[u8], key_size: usize) -> Result<(u64, u64)> {
        let (mut found, mut bytes) = (0, 0);
        for key in keys.chunks_exact(key_size.max(1)) {
            if let Some(value) = self.pairs.get(key).map_err(sad)? {
                found += 1;
                bytes += value.len() as u64;
            }
        }
        Ok((found, bytes))
    }

    fn iter<'a>(
        &'a mut self,
        lower: Option<&[u8]>,
        upper: Option<&[u8]>,
    ) -> Result<Self::Iter<'a>> {
        Ok(FjallIter {
            pairs: self.pairs.clone(),
            walk: None,
            at: None,
            bounds: Bounds::new(lower, upper),
            failure: None,
        })
    }
}

/// An iterator.
pub(crate) struct FjallIter {
    pairs: Keyspace,
    /// A range under way, and whether it goes forward.
    walk: Option<(fjall::Iter, bool)>,
    at: Option<(Slice, Slice)>,
    bounds: Bounds,
    failure: Option<Failure>,
}

impl FjallIter {
    fn step(&mut self) -> bool {
        let next = self.walk.as_mut().and_then(|(range, forward)| {
            if *forward {
                range.next()
            } else {
                range.next_back()
            }
        });
        self.at = match next.map(fjall::Guard::into_inner).transpose() {
            Ok(pair) => pair.filter(|(key, _)| self.bounds.holds(key)),
            Err(e) => {
                self.failure = Some(sad(e));
                None
            }
        };
        self.at.is_some()
    }

    fn go(&mut self, from: Bound<&[u8]>, to: Bound<&[u8]>, forward: bool) -> bool {
        self.walk = Some((self.pairs.range::<&[u8], _>((from, to)), forward));
        self.step()
    }

    fn is_forward(&self) -> bool {
        self.walk.as_ref().is_some_and(|(_, forward)| *forward)
    }
}

impl Iter for FjallIter {
    fn seek_to_first(&mut self) -> bool {
        let lower = self.bounds.lower.clone();
        let from = lower.as_deref().map_or(Bound::Unbounded, Bound::Included);
        self.go(from, Bound::Unbounded, true)
    }

    fn seek_to_last(&mut self) -> bool {
        let upper = self.bounds.upper.clone();
        let to = upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.go(Bound::Unbounded, to, false)
    }

    fn seek(&mut self, key: &[u8]) -> bool {
        self.go(Bound::Included(key), Bound::Unbounded, true)
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> bool {
        self.go(Bound::Unbounded, Bound::Included(key), false)
    }

    #[inline]
    fn next(&mut self) -> bool {
        match self.at.take() {
            Some((key, _)) if !self.is_forward() => {
                self.go(Bound::Excluded(&key), Bound::Unbounded, true)
            }
            _ => self.step(),
        }
    }

    #[inline]
    fn prev(&mut self) -> bool {
        match self.at.take() {
            Some((key, _)) if self.is_forward() => {
                self.go(Bound::Unbounded, Bound::Excluded(&key), false)
            }
            _ => self.step(),
        }
    }

    fn key(&self) -> &[u8] {
        self.at.as_ref().map_or(&[], |(key, _)| key)
    }

    fn value(&self) -> &[u8] {
        self.at.as_ref().map_or(&[], |(_, value)| value)
    }

    fn status(&self) -> Result<()> {
        self.failure.clone().map_or(Ok(()), Err)
    }
}
