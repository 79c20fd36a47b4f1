//! The entries of an index while a table is written, and the blocks they become.

use esker_format::block::{IndexBlockBuilder, IndexForm};
use esker_format::footer::BlockHandle;
use esker_status::Result;

/// Separators (internal keys), first keys and handles of data blocks, end to end.
#[derive(Debug)]
pub(super) struct IndexEntries {
    with_first_keys: bool,
    bytes: Vec<u8>,
    /// Ends of separator and first key of each block.
    ends: Vec<(usize, usize)>,
    handles: Vec<BlockHandle>,
}

/// The blocks of a written index.
#[derive(Clone, Copy, Debug)]
pub(super) struct WrittenIndex {
    pub(super) top: BlockHandle,
    pub(super) partitions: u64,
}

impl IndexEntries {
    pub(super) fn new(with_first_keys: bool) -> Self {
        IndexEntries {
            with_first_keys,
            bytes: Vec::new(),
            ends: Vec::new(),
            handles: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn wants_first_keys(&self) -> bool {
        self.with_first_keys
    }

    /// Adds the entry of a block; its handle follows, in the same order, when it is written.
    pub(super) fn push(&mut self, separator: &[u8], first_key: &[u8]) {
        self.bytes.extend_from_slice(separator);
        let middle = self.bytes.len();
        if self.with_first_keys {
            self.bytes.extend_from_slice(first_key);
        }
        self.ends.push((middle, self.bytes.len()));
    }

    pub(super) fn push_handle(&mut self, handle: BlockHandle) {
        self.handles.push(handle);
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity()
            + size_of::<(usize, usize)>() * self.ends.capacity()
            + size_of::<BlockHandle>() * self.handles.capacity()
    }

    pub(super) fn size_estimate(&self) -> usize {
        self.bytes.len() + 12 * self.ends.len()
    }

    /// Writes the index through `write`: in one block, or in partitions of about `partition` bytes
    /// under a top-level block.
    pub(super) fn write(
        &self,
        form: IndexForm,
        interval: u32,
        partition: Option<usize>,
        mut write: impl FnMut(&[u8]) -> Result<BlockHandle>,
    ) -> Result<WrittenIndex> {
        debug_assert_eq!(
            self.ends.len(),
            self.handles.len(),
            "every block was written"
        );
        let mut block = IndexBlockBuilder::new(form, interval);
        let mut top = IndexBlockBuilder::new(form, interval);
        let (mut start, mut partitions) = (0, 0);
        for (i, (&(middle, end), &handle)) in self.ends.iter().zip(&self.handles).enumerate() {
            let separator = &self.bytes[start..middle];
            block.add(separator, handle, &self.bytes[middle..end]);
            start = end;
            let Some(limit) = partition else { continue };
            if block.size_estimate() >= limit || i + 1 == self.ends.len() {
                let handle = write(block.finish())?;
                block.reset();
                top.add(separator, handle, &[]);
                partitions += 1;
            }
        }
        let last = if partition.is_some() {
            &mut top
        } else {
            &mut block
        };
        Ok(WrittenIndex {
            top: write(last.finish())?,
            partitions,
        })
    }
}
