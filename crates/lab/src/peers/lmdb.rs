//! LMDB for `esker bench`: a B-tree in a memory map, through the crate `heed`.
//!
//! The file is mapped for writing and not synced (`MDB_WRITEMAP`, `MDB_NOSYNC`), which is how it is
//! fastest; commits survive the process. Reads begin a transaction each, as an application's do.
//! Iterators walk `heed`'s ranges, a new one for each seek and each turn.

use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes;
use heed::{Env, RoRange, RoRevRange, RoTxn, WithTls};

use super::{Bounds, not_of};
use crate::relational::lmdb::{Pages, environment};
use crate::slowest::Account;
use crate::store::{Iter, OpenPlan, Session, SessionPlan, Store};
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
    /// As reported by LMDB.
    pub(crate) fn open(plan: &OpenPlan) -> Result<LmdbStore> {
        if let Some(flag) = plan.beyond_one_family() {
            return Err(not_of("LMDB", flag));
        }
        let path = plan.path.join("lmdb");
        if plan.must_exist && !path.join("data.mdb").exists() {
            return Err(Failure::new(format!("{} is not there", path.display())));
        }
        let (env, pages, _) = environment(&path, true, true)?;
        Ok(LmdbStore { env, pages })
    }
}

impl Store for LmdbStore {
    type Session = LmdbSession;

    fn describe(&self) -> String {
        "LMDB 0.9 (heed), MDB_WRITEMAP, MDB_NOSYNC".into()
    }

    fn session(&self, _plan: &SessionPlan) -> Result<LmdbSession> {
        Ok(LmdbSession {
            env: self.env.clone(),
            pages: self.pages,
            reading: None,
            batch: Vec::new(),
        })
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn compact_all(&self, _force_bottommost: bool, _subcompactions: u32) -> Result<()> {
        Ok(())
    }

    fn compact_level(&self, _from: u32) -> Result<String> {
        Ok("a B-tree has no levels".into())
    }

    fn wait_for_compaction(&self) -> Result<()> {
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
        Err(not_of("LMDB", "verifychecksum"))
    }

    fn backup(&self, _directory: &Path, _rate: u64) -> Result<()> {
        Err(not_of("LMDB", "backup"))
    }
}

/// A thread's view.
pub(crate) struct LmdbSession {
    env: Env,
    pages: Pages,
    /// The transaction of the last iterator: a thread has one at a time.
    reading: Option<RoTxn<'static, WithTls>>,
    /// Pairs of the batch; no value for a deletion.
    batch: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Session for LmdbSession {
    type Iter<'a> = LmdbIter<'a>;

    fn account(&self) -> Result<Box<dyn Account>> {
        Err(not_of("LMDB", "--slowest"))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.reading = None;
        let mut transaction = self.env.write_txn().map_err(sad)?;
        let put = self.pages.put(&mut transaction, key, value);
        put.map_err(sad)?;
        transaction.commit().map_err(sad)
    }

    fn merge(&mut self, _key: &[u8], _operand: &[u8]) -> Result<()> {
        Err(not_of("LMDB", "merges"))
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.reading = None;
        let mut transaction = self.env.write_txn().map_err(sad)?;
        self.pages.delete(&mut transaction, key).map_err(sad)?;
        transaction.commit().map_err(sad)
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
        self.reading = None;
        let mut transaction = self.env.write_txn().map_err(sad)?;
        for (key, value) in &self.batch {
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
        let transaction: &'a RoTxn<'static, WithTls> = self.reading.insert(begun);
        Ok(LmdbIter {
            transaction,
            pages: self.pages,
            walk: None,
            at: None,
            bounds: Bounds::new(lower, upper),
            failure: None,
        })
    }
}

/// A range under way.
enum Walk<'a> {
    Forward(RoRange<'a, Bytes, Bytes>),
    Backward(RoRevRange<'a, Bytes, Bytes>),
}

/// An iterator.
pub(crate) struct LmdbIter<'a> {
    transaction: &'a RoTxn<'static, WithTls>,
    pages: Pages,
    walk: Option<Walk<'a>>,
    at: Option<(&'a [u8], &'a [u8])>,
    bounds: Bounds,
    failure: Option<Failure>,
}

impl LmdbIter<'_> {
    fn step(&mut self) -> bool {
        let next = match &mut self.walk {
            Some(Walk::Forward(range)) => range.next(),
            Some(Walk::Backward(range)) => range.next(),
            None => None,
        };
        self.at = match next.transpose() {
            Ok(pair) => pair.filter(|(key, _)| self.bounds.holds(key)),
            Err(e) => {
                self.failure = Some(sad(e));
                None
            }
        };
        self.at.is_some()
    }

    fn forward(&mut self, from: Bound<&[u8]>) -> bool {
        let range: (Bound<&[u8]>, Bound<&[u8]>) = (from, Bound::Unbounded);
        match self.pages.range(self.transaction, &range) {
            Ok(range) => self.walk = Some(Walk::Forward(range)),
            Err(e) => self.failure = Some(sad(e)),
        }
        self.step()
    }

    fn backward(&mut self, to: Bound<&[u8]>) -> bool {
        let range: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, to);
        match self.pages.rev_range(self.transaction, &range) {
            Ok(range) => self.walk = Some(Walk::Backward(range)),
            Err(e) => self.failure = Some(sad(e)),
        }
        self.step()
    }
}

impl Iter for LmdbIter<'_> {
    fn seek_to_first(&mut self) -> bool {
        let lower = self.bounds.lower.clone();
        self.forward(lower.as_deref().map_or(Bound::Unbounded, Bound::Included))
    }

    fn seek_to_last(&mut self) -> bool {
        let upper = self.bounds.upper.clone();
        self.backward(upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded))
    }

    fn seek(&mut self, key: &[u8]) -> bool {
        self.forward(Bound::Included(key))
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> bool {
        self.backward(Bound::Included(key))
    }

    #[inline]
    fn next(&mut self) -> bool {
        match (&self.walk, self.at) {
            (Some(Walk::Backward(_)), Some((key, _))) => self.forward(Bound::Excluded(key)),
            _ => self.step(),
        }
    }

    #[inline]
    fn prev(&mut self) -> bool {
        match (&self.walk, self.at) {
            (Some(Walk::Forward(_)), Some((key, _))) => self.backward(Bound::Excluded(key)),
            _ => self.step(),
        }
    }

    fn key(&self) -> &[u8] {
        self.at.map_or(&[], |(key, _)| key)
    }

    fn value(&self) -> &[u8] {
        self.at.map_or(&[], |(_, value)| value)
    }

    fn status(&self) -> Result<()> {
        self.failure.clone().map_or(Ok(()), Err)
    }
}
