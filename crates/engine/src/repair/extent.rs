//! The bounds of a table or of what will be one: keys, sequences, references to
//! blob files.

use esker_format::blob_refs::BlobRefs;
use esker_format::{InternalKey, KeyOrder, RawTombstone, Seq, ValueType, key};
use esker_lsm::compaction_stream::count_refs;
use esker_lsm::file::FileMeta;
use esker_status::{Error, Result};

/// The range of keys walked so far.
#[derive(Default)]
pub(super) struct Extent {
    first: Option<InternalKey>,
    last: Vec<u8>,
    seqs: Option<(Seq, Seq)>,
    refs: BlobRefs,
}

impl Extent {
    fn see(&mut self, seq: Seq) {
        let (low, high) = self.seqs.unwrap_or((seq, seq));
        self.seqs = Some((low.min(seq), high.max(seq)));
    }

    /// Takes note of one entry.
    pub(super) fn add(&mut self, internal: &[u8], value: &[u8]) -> Result<()> {
        count_refs(&mut self.refs, internal, value)?;
        if self.first.is_none() {
            self.first = Some(InternalKey::from_encoded(internal)?);
        }
        self.last.clear();
        self.last.extend_from_slice(internal);
        self.see(key::seq_of(internal));
        Ok(())
    }

    /// The bounds over entries and range deletions, and the references to blob files; `Corruption`
    /// when there are none of both.
    pub(super) fn meta<'t>(
        mut self,
        tombstones: impl IntoIterator<Item = &'t RawTombstone>,
        order: &KeyOrder,
    ) -> Result<(FileMeta, BlobRefs)> {
        let mut bounds = match self.first.take() {
            Some(first) => Some((first, InternalKey::from_encoded(&self.last)?)),
            None => None,
        };
        let below = |a: &InternalKey, b: &InternalKey| {
            order.compare_internal(a.as_bytes(), b.as_bytes()).is_lt()
        };
        for t in tombstones {
            self.see(t.seq);
            let start = InternalKey::new(&t.start, t.seq, ValueType::RangeDeletion);
            let end = InternalKey::range_end_sentinel(&t.end);
            let (low, high) = bounds.get_or_insert((start.clone(), end.clone()));
            if below(&start, low) {
                *low = start;
            }
            if below(high, &end) {
                *high = end;
            }
        }
        let (Some((smallest, largest)), Some(seqs)) = (bounds, self.seqs) else {
            return Err(Error::corruption("the table holds nothing"));
        };
        let meta = FileMeta {
            smallest,
            largest,
            smallest_seq: seqs.0,
            largest_seq: seqs.1,
            oldest_blob_file: self.refs.oldest(),
            ..FileMeta::default()
        };
        Ok((meta, self.refs))
    }
}
