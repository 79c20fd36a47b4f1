//! An engine that does nothing: `--engine=null`. What a benchmark takes on it is the client's own
//! time, for making keys and values, measuring and looping.
//!
//! Every key is found, with a value of `value_size` bytes; iterators stand on an entry for ever.

use std::hint::black_box;
use std::sync::Arc;

use crate::store::{Iter, Session, SessionPlan, Store};
use crate::{Failure, Result};

/// A key of an iterator.
const KEY: [u8; 20] = [b'0'; 20];

/// See the module.
#[derive(Debug, Clone)]
pub struct NullStore {
    value: Arc<Vec<u8>>,
}

impl NullStore {
    /// One whose values have this many bytes.
    pub fn new(value_size: usize) -> NullStore {
        NullStore {
            value: Arc::new(vec![b'x'; value_size]),
        }
    }
}

impl Store for NullStore {
    type Session = NullSession;

    fn describe(&self) -> String {
        "null: does nothing".into()
    }

    fn session(&self, _plan: &SessionPlan) -> Result<NullSession> {
        Ok(NullSession {
            value: Arc::clone(&self.value),
        })
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn compact_all(&self, _force_bottommost: bool, _subcompactions: u32) -> Result<()> {
        Ok(())
    }

    fn compact_level(&self, _from: u32) -> Result<String> {
        Ok(String::new())
    }

    fn wait_for_compaction(&self) -> Result<()> {
        Ok(())
    }

    fn verify_checksums(&self) -> Result<()> {
        Ok(())
    }
}

/// A thread's session with nothing.
#[derive(Debug)]
pub struct NullSession {
    value: Arc<Vec<u8>>,
}

impl Session for NullSession {
    type Iter<'a> = NullIter;

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        black_box((key, value));
        Ok(())
    }

    #[inline]
    fn merge(&mut self, key: &[u8], operand: &[u8]) -> Result<()> {
        self.put(key, operand)
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.put(key, &[])
    }

    fn batch_clear(&mut self) {}

    #[inline]
    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        black_box((key, value));
    }

    #[inline]
    fn batch_delete(&mut self, key: &[u8]) {
        black_box(key);
    }

    fn batch_write(&mut self) -> Result<()> {
        Ok(())
    }

    #[inline]
    fn get<R>(&mut self, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        black_box(key);
        Ok(Some(look(&self.value)))
    }

    fn multi_get(&mut self, keys: &[u8], key_size: usize) -> Result<(u64, u64)> {
        if key_size == 0 {
            return Err(Failure::new("keys of no size"));
        }
        let count = (black_box(keys).len() / key_size) as u64;
        Ok((count, count * self.value.len() as u64))
    }

    fn iter<'a>(
        &'a mut self,
        _lower: Option<&[u8]>,
        _upper: Option<&[u8]>,
    ) -> Result<Self::Iter<'a>> {
        Ok(NullIter {
            value: Arc::clone(&self.value),
        })
    }
}

/// An iterator that always stands on the same entry.
#[derive(Debug)]
pub struct NullIter {
    value: Arc<Vec<u8>>,
}

impl Iter for NullIter {
    fn seek_to_first(&mut self) -> bool {
        true
    }

    fn seek_to_last(&mut self) -> bool {
        true
    }

    #[inline]
    fn seek(&mut self, key: &[u8]) -> bool {
        black_box(key);
        true
    }

    #[inline]
    fn seek_for_prev(&mut self, key: &[u8]) -> bool {
        black_box(key);
        true
    }

    #[inline]
    fn next(&mut self) -> bool {
        black_box(true)
    }

    #[inline]
    fn prev(&mut self) -> bool {
        black_box(true)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        &KEY
    }

    #[inline]
    fn value(&self) -> &[u8] {
        &self.value
    }

    fn status(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::bench::{BenchProgress, run_engine};
    use crate::flags::Flags;

    #[test]
    fn benchmarks_run_on_nothing_and_take_the_clients_time() {
        let directory = tempfile::tempdir().expect("a directory");
        let flags = Flags::parse(&[
            "--benchmarks=fillseq,readrandom,seekrandom,multireadrandom,readwhilewriting,flush",
            "--num=1000",
            "--batch_size=10",
            "--seek_nexts=10",
        ]);
        let flags = flags.expect("known flags");
        let path = directory.path().join("db");
        let rows = run_engine(&flags, "null", &path, &|_| {}, &BenchProgress::new(false));
        let rows = rows.expect("it runs");
        assert_eq!(rows.len(), 6);
        assert!(rows[1].number("usec_op").is_some_and(|us| us < 100.0));
        assert_eq!(
            rows[1].number("bytes"),
            Some(116_000.0),
            "every key is found"
        );
    }
}
