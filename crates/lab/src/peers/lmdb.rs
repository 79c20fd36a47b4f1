//! LMDB for `esker bench`: a B-tree in a memory map, through the crate `heed`.
//!
//! The file is mapped for writing and not synced (`MDB_WRITEMAP`, `MDB_NOSYNC`), which is how it is
//! fastest; commits survive the process. Reads begin a transaction each, as an application's do.

use std::ops::Bound;

use heed::types::Bytes;
use heed::{Env, RoRange, RoRevRange, RoTxn, WithTls};

use super::common::{Batch, check, directory};
use super::cursor::{Cursor, Ranges};
use crate::relational::lmdb::{Pages, environment, version};
use crate::store::{OpenPlan, Session, SessionPlan, Store};
use crate::{Failure, Result};

/// An open environment.
pub(crate) struct LmdbStore {
    env: Env,
    pages: Pages,
}

fn sad(error: heed::Error) -> Failure {
    Failure::new(format!("LMDB: {error}"))
}

impl LmdbStore {
    /// Opens or creates the one below the plan's directory.
    ///
    /// # Errors
    /// As reported by LMDB, or a plan that it cannot follow.
    pub(crate) fn open(plan: &OpenPlan) -> Result<LmdbStore> {
        let path = directory(plan, "lmdb", "data.mdb")?;
        let (env, pages, _) = environment(&path, true, true)?;
        Ok(LmdbStore { env, pages })
    }
}

impl Store for LmdbStore {
    type Session = LmdbSession;

    fn describe(&self) -> String {
        format!("LMDB {} (heed), MDB_WRITEMAP, MDB_NOSYNC", version())
    }

    fn session(&self, plan: &SessionPlan) -> Result<LmdbSession> {
        check(plan, "LMDB")?;
        Ok(LmdbSession {
            env: self.env.clone(),
            pages: self.pages,
            reading: None,
            batch: Batch::default(),
        })
    }

    // Each commit changes the tree in the map: there is no work left to wait for.

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn compact_all(&self, _force_bottommost: bool, _subcompactions: u32) -> Result<()> {
        Ok(())
    }

    fn wait_for_compaction(&self) -> Result<()> {
        Ok(())
    }
}

/// A thread's view.
pub(crate) struct LmdbSession {
    env: Env,
    pages: Pages,
    /// The transaction of the last iterator: a thread has one at a time.
    reading: Option<RoTxn<'static, WithTls>>,
    batch: Batch,
}

impl Session for LmdbSession {
    type Iter<'a> = Cursor<LmdbRanges<'a>>;

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.reading = None;
        let mut transaction = self.env.write_txn().map_err(sad)?;
        let put = self.pages.put(&mut transaction, key, value);
        put.map_err(sad)?;
        transaction.commit().map_err(sad)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.reading = None;
        let mut transaction = self.env.write_txn().map_err(sad)?;
        self.pages.delete(&mut transaction, key).map_err(sad)?;
        transaction.commit().map_err(sad)
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
        self.reading = None;
        let mut transaction = self.env.write_txn().map_err(sad)?;
        for (key, value) in &self.batch.0 {
            let done = match value {
                Some(value) => self.pages.put(&mut transaction, key, value),
                None => self.pages.delete(&mut transaction, key).map(|_| ()),
            };
            done.map_err(sad)?;
        }
        transaction.commit().map_err(sad)
    }

    fn get<R>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        self.reading = None;
        let transaction = self.env.read_txn().map_err(sad)?;
        let found = self.pages.get(&transaction, key).map_err(sad)?;
        Ok(found.map(look))
    }

    fn multi_get(&mut self, keys: &[u8], key_size: usize) -> Result<(u64, u64)> {
        self.reading = None;
        let transaction = self.env.read_txn().map_err(sad)?;
        let (mut found, mut bytes) = (0, 0);
        for key in keys.chunks_exact(key_size.max(1)) {
            if let Some(value) = self.pages.get(&transaction, key).map_err(sad)? {
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
        self.reading = None;
        let begun = self.env.clone().static_read_txn().map_err(sad)?;
        let ranges = LmdbRanges {
            transaction: self.reading.insert(begun),
            pages: self.pages,
            walk: None,
        };
        Ok(Cursor::new(ranges, lower, upper))
    }
}

/// A range under way.
enum Walk<'a> {
    Forward(RoRange<'a, Bytes, Bytes>),
    Backward(RoRevRange<'a, Bytes, Bytes>),
}

/// The ranges that a transaction sees.
pub(crate) struct LmdbRanges<'a> {
    transaction: &'a RoTxn<'static, WithTls>,
    pages: Pages,
    walk: Option<Walk<'a>>,
}

impl<'a> Ranges for LmdbRanges<'a> {
    type Key = &'a [u8];
    type Value = &'a [u8];

    fn begin(&mut self, from: Bound<&[u8]>, to: Bound<&[u8]>, is_forward: bool) -> Result<()> {
        let range = (from, to);
        self.walk = Some(if is_forward {
            let range = self.pages.range(self.transaction, &range);
            Walk::Forward(range.map_err(sad)?)
        } else {
            let range = self.pages.rev_range(self.transaction, &range);
            Walk::Backward(range.map_err(sad)?)
        });
        Ok(())
    }

    #[inline]
    fn step(&mut self) -> Result<Option<(&'a [u8], &'a [u8])>> {
        let next = match &mut self.walk {
            Some(Walk::Forward(range)) => range.next(),
            Some(Walk::Backward(range)) => range.next(),
            None => None,
        };
        next.transpose().map_err(sad)
    }
}
