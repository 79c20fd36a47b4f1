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
use esker_format::{Cursor, FileNo, ValueType, wide_column};
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

/// Adds the references to blob files that an entry with an internal key holds.
pub fn count_refs(refs: &mut BlobRefs, key: &[u8], value: &[u8]) -> Result<()> {
    const BLOB: u8 = ValueType::BlobIndex as u8;
    const ENTITY: u8 = ValueType::WideColumnEntity as u8;
    match key.len().checked_sub(8).map(|at| key[at]) {
        Some(BLOB) => refs.add(user_key(key).len(), &BlobIndex::decode(value)?),
        Some(ENTITY) => wide_column::blob_indexes(value, |index| {
            refs.add(user_key(key).len(), &BlobIndex::decode(index)?);
            Ok(())
        })?,
        _ => {}
    }
    Ok(())
}

impl<C: Cursor> CompactionStream<'_, C> {
    /// Decides where the value of the current entry is to be: large ones go to `sink`, those of
    /// blob files that `sink` leaves are read and placed anew. To be called once for each entry
    /// that is written, before key and value are taken. An entity is put together where one of its
    /// values leaves its blob file; else it stays as it is.
    #[inline]
    pub fn place_value(&mut self, sink: &mut dyn ValueSink) -> Result<()> {
        match self.kind {
            ValueType::Value if sink.takes(self.value().len()) => self.put_away(sink),
            ValueType::BlobIndex => self.place_blob(sink),
            ValueType::WideColumnEntity => self.place_entity(sink),
            _ => Ok(()),
        }
    }

    fn place_entity(&mut self, sink: &mut dyn ValueSink) -> Result<()> {
        let (mut leaves, mut refs) = (false, Vec::new());
        wide_column::blob_indexes(self.value(), |index| {
            let index = BlobIndex::decode(index)?;
            leaves |= index.file().is_some_and(|file| sink.leaves(file));
            refs.push(index);
            Ok(())
        })?;
        if leaves {
            let mut whole = std::mem::take(&mut self.blob_buf);
            let joined = self.join_entity(self.value(), &mut whole);
            self.blob_buf = whole;
            self.count_reads(joined?);
            self.value_at = ValueAt::Blob;
            return Ok(());
        }
        let key_len = self.user_key().len();
        if let Some(flow) = &mut self.blob_flow {
            refs.iter()
                .for_each(|index| flow.passed.add(key_len, index));
        }
        Ok(())
    }

    /// Counts values that were read from blob files, and their bytes.
    pub(super) fn count_reads(&mut self, (count, bytes): (u64, u64)) {
        self.counters.num_blobs_read += count;
        self.counters.total_blob_bytes_read += bytes;
    }

    /// Replaces `out` by an entity of the current key with all its values in place. Returns how
    /// many were read from blob files, and their bytes; where none was, `out` is the entity itself.
    pub(super) fn join_entity(&self, entity: &[u8], out: &mut Vec<u8>) -> Result<(u64, u64)> {
        let (mut count, mut bytes) = (0, 0);
        out.clear();
        let joined = wide_column::join_blobs(entity, out, |index, value| {
            self.options.resolver.blob(self.bare_key(), index, value)?;
            count += 1;
            bytes += value.len() as u64;
            Ok(())
        })?;
        if !joined {
            out.extend_from_slice(entity);
        }
        Ok((count, bytes))
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
        self.count_reads((1, bytes));
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

    /// Counts the references of the entry that the input leaves.
    pub(super) fn count_blob(&mut self) {
        let Some(flow) = &mut self.blob_flow else {
            return;
        };
        if let Err(e) = count_refs(&mut flow.read, self.input.key(), self.input.value()) {
            self.fail(e);
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
