//! Values that go into blob files and come back: what a job asks of its stream before it writes an
//! entry.
//!
//! The job's [`ValueSink`] decides and writes; the stream replaces value and type of its current
//! entry. A stream that counts references adds up those of the entries that it leaves behind and
//! those that it hands out unchanged: their difference is what the job makes garbage.

use super::stream::{CompactionStream, ValueAt};
use esker_format::blob::BlobIndex;
use esker_format::blob_refs::BlobRefs;
use esker_format::key::user_key;
use esker_format::{Cursor, FileNo, ValueType};
use esker_status::Result;
use esker_status::seeded::{Bug, seeded};
use std::sync::Arc;

/// Where a job puts large values.
pub trait ValueSink {
    /// Returns whether a value of `len` bytes leaves the table.
    fn takes(&self, len: usize) -> bool;
    /// Returns whether live values leave this blob file.
    fn leaves(&self, file: FileNo) -> bool;
    /// Stores the value of `user_key`, and appends the encoded index that takes its place.
    fn put(&mut self, user_key: &[u8], value: &[u8], index: &mut Vec<u8>) -> Result<()>;
}

impl<C: Cursor> CompactionStream<'_, C> {
    /// Decides where the value of the current entry is to be: large ones go to `sink`, those of
    /// blob files that `sink` leaves are read and placed anew. To be called once for each entry
    /// that is written, before key and value are taken. Entities stay as they are.
    #[inline]
    pub fn place_value(&mut self, sink: &mut dyn ValueSink) -> Result<()> {
        match self.kind {
            ValueType::Value if sink.takes(self.value().len()) => self.put_away(sink),
            ValueType::BlobIndex => self.place_blob(sink),
            _ => Ok(()),
        }
    }

    fn put_away(&mut self, sink: &mut dyn ValueSink) -> Result<()> {
        let mut index = std::mem::take(&mut self.index_buf);
        index.clear();
        let put = sink.put(self.user_key(), self.value(), &mut index);
        self.index_buf = index;
        put?;
        self.set_trailer(self.seq, ValueType::BlobIndex);
        self.value_at = ValueAt::Index;
        Ok(())
    }

    fn place_blob(&mut self, sink: &mut dyn ValueSink) -> Result<()> {
        let index = BlobIndex::decode(self.value())?;
        let expires = !matches!(
            index,
            BlobIndex::Blob {
                expiration: None,
                ..
            }
        );
        let leaves = index.file().is_some_and(|file| sink.leaves(file));
        let key_len = self.user_key().len();
        if expires || !leaves {
            if let Some(flow) = &mut self.blob_flow {
                flow.passed.add(key_len, &index);
            }
            return Ok(());
        }
        let resolver = Arc::clone(&self.options.resolver);
        let mut value = std::mem::take(&mut self.blob_buf);
        value.clear();
        let read = resolver.blob(self.bare_key(), self.value(), &mut value);
        self.blob_buf = value;
        read?;
        let bytes = self.blob_buf.len() as u64;
        self.counters.num_blobs_read += 1;
        self.counters.total_blob_bytes_read += bytes;
        self.set_trailer(self.seq, ValueType::Value);
        self.value_at = ValueAt::Blob;
        if sink.takes(self.blob_buf.len()) {
            self.put_away(sink)?;
            self.counters.num_blobs_relocated += 1;
            self.counters.total_blob_bytes_relocated += bytes;
            if seeded(Bug::MovedBlobCountsOn)
                && let Some(flow) = &mut self.blob_flow
            {
                flow.passed.add(key_len, &index);
            }
        }
        Ok(())
    }

    /// Counts the reference of the entry that the input leaves.
    pub(super) fn count_blob(&mut self) {
        let (key, value) = (self.input.key(), self.input.value());
        let is_blob = key
            .len()
            .checked_sub(8)
            .is_some_and(|at| key[at] == ValueType::BlobIndex as u8);
        if !is_blob {
            return;
        }
        match BlobIndex::decode(value) {
            Ok(index) => {
                let key_len = user_key(key).len();
                if let Some(flow) = &mut self.blob_flow {
                    flow.read.add(key_len, &index);
                }
            }
            Err(e) => self.fail(e),
        }
    }

    /// The references that were read and not handed out, once the stream has ended; none from a
    /// stream that does not count them. `Corruption` when more went out than came in.
    pub fn blob_garbage(&self) -> Result<BlobRefs> {
        let Some(flow) = &self.blob_flow else {
            return Ok(BlobRefs::default());
        };
        let mut garbage = flow.read.clone();
        garbage.subtract(&flow.passed)?;
        Ok(garbage)
    }
}
