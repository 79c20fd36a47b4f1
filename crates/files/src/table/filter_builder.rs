//! The filter of a table while it is written: whole or in partitions.

use super::options::TableBuilderOptions;
use super::stages::{Stage, StageClock, lap};
use esker_format::PrefixExtractor;
use esker_format::block::{IndexBlockBuilder, IndexForm};
use esker_format::filter::{BuildLevel, FilterBuilder};
use esker_format::footer::BlockHandle;
use esker_format::key::user_key;
use esker_format::properties::{FULL_FILTER_BLOCK, PARTITIONED_FILTER_BLOCK};
use esker_status::Result;
use esker_status::seeded::{Bug, seeded};
use std::sync::Arc;

/// Collects keys and prefixes.
#[derive(Debug)]
pub(super) struct TableFilterBuilder {
    filter: FilterBuilder,
    whole_keys: bool,
    prefixes: Option<PrefixExtractor>,
    /// Keys of a partition; `None` when there is one filter.
    keys_per_partition: Option<usize>,
    /// Finished partitions and their last internal keys.
    done: Vec<(Vec<u8>, Vec<u8>)>,
    done_bytes: usize,
    last_key: Vec<u8>,
    timestamp_size: usize,
    entries: u64,
    stages: Option<Arc<StageClock>>,
}

impl TableFilterBuilder {
    /// A builder, when the options ask for a filter that can hold anything.
    pub(super) fn new(options: &TableBuilderOptions) -> Option<Self> {
        let t = &options.table;
        let level = match options.level {
            Some(l) if l.0 == 0 => BuildLevel::Flush,
            Some(l) => BuildLevel::Level(l.0),
            None => BuildLevel::Unknown,
        };
        let unusable = !options.order.filters_by_bytes();
        if unusable || (!t.whole_key_filtering && options.prefix_extractor.is_none()) {
            return None;
        }
        let filter = FilterBuilder::new(t.filter_policy?, t.format_version, level)?;
        Some(TableFilterBuilder {
            keys_per_partition: t
                .partition_filters
                .then(|| filter.keys_for(t.metadata_block_size)),
            filter,
            whole_keys: t.whole_key_filtering,
            prefixes: options.prefix_extractor.clone(),
            done: Vec::new(),
            done_bytes: 0,
            last_key: Vec::new(),
            timestamp_size: options.order.timestamp_size(),
            entries: 0,
            stages: options.stages.clone(),
        })
    }

    /// Adds a key; `bare` is its user key without timestamp.
    #[inline]
    pub(super) fn add(&mut self, bare: &[u8], internal: &[u8]) {
        if self.keys_per_partition.is_some() {
            self.partition(bare, internal);
        }
        let prefix = self.prefixes.as_ref().and_then(|e| e.prefix(bare));
        // As if the extractor had cut another length.
        let prefix = prefix.filter(|p| !seeded(Bug::PrefixFilterWrong) || p.last() != Some(&b'3'));
        match (self.whole_keys, prefix) {
            (true, None) => self.filter.add_key(bare),
            (true, Some(prefix)) => self.filter.add_key_and_prefix(bare, prefix),
            (false, Some(prefix)) => self.filter.add_key(prefix),
            (false, None) => {}
        }
    }

    fn bare<'a>(&self, internal: &'a [u8]) -> &'a [u8] {
        let user = user_key(internal);
        &user[..user.len().saturating_sub(self.timestamp_size)]
    }

    /// Closes the partition when it is full and a new user key begins. Both sides of the cut get
    /// the prefixes of both, since a seek to a prefix may land on either.
    fn partition(&mut self, bare: &[u8], internal: &[u8]) {
        let full = self
            .keys_per_partition
            .is_some_and(|n| self.filter.len() >= n);
        if full && self.bare(&self.last_key) != bare {
            if let Some(next) = self.prefixes.as_ref().and_then(|e| e.prefix(bare)) {
                self.filter.add_key(next);
            }
            self.entries += self.filter.len() as u64;
            lap(self.stages.as_deref(), Stage::Merge);
            let bytes = self.filter.finish();
            lap(self.stages.as_deref(), Stage::Filter);
            let last = std::mem::take(&mut self.last_key);
            if let Some(before) = self
                .prefixes
                .as_ref()
                .and_then(|e| e.prefix(self.bare(&last)))
            {
                self.filter.add_key(before);
            }
            self.done_bytes += bytes.capacity() + last.capacity();
            self.done.push((bytes, last));
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(internal);
    }

    /// Keys and prefixes in the filter.
    pub(super) fn entries(&self) -> u64 {
        self.entries + self.filter.len() as u64
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        self.filter.memory_usage() + self.done_bytes
    }

    /// Bytes that the filter would take.
    pub(super) fn size_estimate(&self) -> usize {
        let done: usize = self.done.iter().map(|(b, k)| b.len() + k.len() + 16).sum();
        done + self.filter.block_len(self.filter.len())
    }

    /// Writes the filter through `write`, which is told which blocks are filters and which is the
    /// index of partitions; its metaindex name and handle, or `None` when it is empty.
    pub(super) fn write(
        mut self,
        last_key: &[u8],
        form: IndexForm,
        interval: u32,
        mut write: impl FnMut(&[u8], bool) -> Result<BlockHandle>,
    ) -> Result<Option<(&'static str, BlockHandle)>> {
        let rest = self.filter.finish();
        if self.keys_per_partition.is_none() {
            return if rest.is_empty() {
                Ok(None)
            } else {
                Ok(Some((FULL_FILTER_BLOCK, write(&rest, true)?)))
            };
        }
        if !rest.is_empty() {
            self.done.push((rest, last_key.to_vec()));
        }
        if self.done.is_empty() {
            return Ok(None);
        }
        let mut top = IndexBlockBuilder::new(
            IndexForm {
                first_keys: false,
                ..form
            },
            interval,
        );
        for (bytes, last) in &self.done {
            let handle = write(bytes, true)?;
            top.add(last, handle, &[]);
        }
        Ok(Some((
            PARTITIONED_FILTER_BLOCK,
            write(top.finish(), false)?,
        )))
    }
}
