//! fjall for `esker bench`: a log-structured tree in Rust.
//!
//! Writes reach the operating system's buffers and are not synced. Block size, memtable and cache
//! are those of the plan, without compression.

use std::ops::Bound;

use fjall::config::{BlockSizePolicy, CompressionPolicy};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Slice};

use super::common::{Batch, check, directory, not_of, option};
use super::cursor::{Cursor, Ranges};
use crate::process::{Usage, wait_until_quiet};
use crate::store::{OpenPlan, Session, SessionPlan, Store};
use crate::{Failure, Result};

/// The name of its directory, and of it in messages.
const NAME: &str = "fjall";

/// An open database.
pub(crate) struct FjallStore {
    db: Database,
    pairs: Keyspace,
}

fn sad(error: fjall::Error) -> Failure {
    Failure::new(format!("fjall: {error}"))
}

/// An option of the plan as a number.
///
/// # Errors
/// It is not one.
fn number<T: std::str::FromStr>(options: &[(String, String)], name: &str, default: T) -> Result<T> {
    let Some(value) = option(options, name) else {
        return Ok(default);
    };
    let wrong = |_| Failure::new(format!("{name}={value}: fjall cannot have that size"));
    value.parse().map_err(wrong)
}

impl FjallStore {
    /// Opens or creates the one below the plan's directory.
    ///
    /// # Errors
    /// As reported by fjall, or a plan that it cannot follow.
    pub(crate) fn open(plan: &OpenPlan) -> Result<FjallStore> {
        let mut db = Database::builder(directory(plan, NAME, "")?);
        // Negative is the engine's own choice.
        if let Ok(cache) = u64::try_from(plan.cache.capacity) {
            db = db.cache_size(cache);
        }
        let db = db.open().map_err(sad)?;
        let block = number(&plan.table, "block_size", 4096)?;
        let memtable = number(&plan.options, "write_buffer_size", 64 << 20)?;
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

    fn session(&self, plan: &SessionPlan) -> Result<FjallSession> {
        check(plan, NAME)?;
        Ok(FjallSession {
            db: self.db.clone(),
            pairs: self.pairs.clone(),
            batch: Batch::default(),
        })
    }

    fn flush(&self) -> Result<()> {
        self.pairs.rotate_memtable_and_wait().map_err(sad)
    }

    fn compact_all(&self, _force_bottommost: bool, subcompactions: u32) -> Result<()> {
        if subcompactions > 1 {
            return Err(not_of(NAME, "--subcompactions"));
        }
        self.flush()?;
        self.pairs.major_compact().map_err(sad)
    }

    /// It offers no wait for compactions.
    fn wait_for_compaction(&self) -> Result<()> {
        self.db.persist(PersistMode::SyncAll).map_err(sad)?;
        wait_until_quiet(|| Usage::now().device_write_bytes);
        Ok(())
    }
}

/// A thread's view.
pub(crate) struct FjallSession {
    db: Database,
    pairs: Keyspace,
    batch: Batch,
}

impl Session for FjallSession {
    type Iter<'a> = Cursor<FjallRanges>;

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.pairs.insert(key, value).map_err(sad)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.pairs.remove(key).map_err(sad)
    }

    fn batch_clear(&mut self) {
        self.batch.0.clear();
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        self.batch.put(key, value);
    }

    fn batch_delete(&mut self, key: &[u8]) {
        self.batch.delete(key);
    }

    fn batch_write(&mut self) -> Result<()> {
        let mut batch = self.db.batch();
        for (key, value) in &self.batch.0 {
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
        let ranges = FjallRanges {
            pairs: self.pairs.clone(),
            walk: None,
        };
        Ok(Cursor::new(ranges, lower, upper))
    }
}

/// The ranges of a keyspace.
pub(crate) struct FjallRanges {
    pairs: Keyspace,
    /// The range under way, and whether it goes forward.
    walk: Option<(fjall::Iter, bool)>,
}

impl Ranges for FjallRanges {
    type Key = Slice;
    type Value = Slice;

    fn begin(&mut self, from: Bound<&[u8]>, to: Bound<&[u8]>, is_forward: bool) -> Result<()> {
        self.walk = Some((self.pairs.range::<&[u8], _>((from, to)), is_forward));
        Ok(())
    }

    fn step(&mut self) -> Result<Option<(Slice, Slice)>> {
        let next = match &mut self.walk {
            Some((range, true)) => range.next(),
            Some((range, false)) => range.next_back(),
            None => None,
        };
        next.map(fjall::Guard::into_inner).transpose().map_err(sad)
    }
}
