//! The filter of one table: whole or in partitions, of keys, prefixes or both.
//!
//! A filter is recognised by its own bytes, so it is used whatever policy is configured. Prefixes
//! are asked only when the table names the family's extractor: another one cuts other prefixes.

use super::cached::CachedBlock;
use super::context::{LookupKey, ReadContext, ReadCounters, bump};
use super::observer::FilterOutcome;
use super::options::TableReaderOptions;
use super::reader::{Held, Kind, Partitions, TableReader};
use esker_format::PrefixExtractor;
use esker_format::block::IndexForm;
use esker_format::filter::{FilterReader, KeyHash};
use esker_format::footer::BlockHandle;
use esker_format::key::user_key;
use esker_format::properties::{FULL_FILTER_BLOCK, PARTITIONED_FILTER_BLOCK, TableProperties};
use esker_status::seeded::{Bug, seeded};
use esker_status::{ErrorKind, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A filter's bytes and what their end says.
#[derive(Debug)]
pub struct FilterBlock {
    /// The block.
    pub bytes: Vec<u8>,
    /// How to ask it.
    pub reader: FilterReader,
}

impl FilterBlock {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        let reader = FilterReader::parse(&bytes);
        FilterBlock { bytes, reader }
    }
}

/// Where the filter is and what it may be asked.
#[derive(Debug)]
pub(super) struct TableFilter {
    pub(super) handle: BlockHandle,
    pub(super) partitioned: bool,
    /// The filter, or the top level of a partitioned one, when the reader holds it.
    pub(super) slot: Option<Arc<CachedBlock>>,
    pub(super) partitions: Partitions,
    whole_keys: bool,
    prefixes: Option<PrefixExtractor>,
}

impl TableFilter {
    /// The filter that the metaindex names, when it can be asked anything.
    pub(super) fn find(
        meta: &BTreeMap<String, BlockHandle>,
        properties: &TableProperties,
        options: &TableReaderOptions,
    ) -> Option<TableFilter> {
        let (handle, partitioned) = match (
            meta.get(FULL_FILTER_BLOCK),
            meta.get(PARTITIONED_FILTER_BLOCK),
        ) {
            (Some(h), _) => (*h, false),
            (None, Some(h)) => (*h, true),
            (None, None) => return None,
        };
        if !options.order.filters_by_bytes() {
            return None;
        }
        let whole_keys = properties.whole_key_filtering.unwrap_or(true);
        let prefixes = options.prefix_extractor.clone().filter(|e| {
            properties.prefix_filtering.unwrap_or(true)
                && e.name() == properties.prefix_extractor_name
        });
        (whole_keys || prefixes.is_some()).then(|| TableFilter {
            handle,
            partitioned,
            slot: None,
            partitions: Partitions::default(),
            whole_keys,
            prefixes,
        })
    }

    /// What the handle leads to.
    pub(super) fn kind(&self, form: IndexForm) -> Kind {
        match self.partitioned {
            true => Kind::Index(IndexForm {
                first_keys: false,
                ..form
            }),
            false => Kind::Filter,
        }
    }

    /// Whether point reads ask it for whole keys, and not for prefixes.
    pub(super) fn asks_whole_keys(&self) -> bool {
        self.whole_keys
    }

    pub(super) fn key_may_match(
        &self,
        table: &TableReader,
        ctx: &ReadContext,
        key: &LookupKey<'_>,
    ) -> Result<bool> {
        let counters = &key.counters;
        if self.whole_keys {
            return self.ask(
                table,
                ctx,
                key.internal(),
                key.bare(),
                || KeyHash(key.hash64()),
                true,
                counters,
            );
        }
        match self.prefixes.as_ref().and_then(|e| e.prefix(key.bare())) {
            Some(prefix) => self.ask(
                table,
                ctx,
                key.internal(),
                prefix,
                || KeyHash::of(prefix),
                false,
                counters,
            ),
            None => Ok(true),
        }
    }

    /// Whether both keys have a prefix, and the same one.
    pub(super) fn same_prefix(&self, a: &[u8], b: &[u8]) -> bool {
        self.prefixes
            .as_ref()
            .is_some_and(|e| e.prefix(a).is_some_and(|p| e.prefix(b) == Some(p)))
    }

    pub(super) fn prefix_may_match(
        &self,
        table: &TableReader,
        ctx: &ReadContext,
        internal: &[u8],
        counters: &ReadCounters,
    ) -> Result<bool> {
        let user = user_key(internal);
        let bare = &user[..user.len().saturating_sub(table.order().timestamp_size())];
        match self.prefixes.as_ref().and_then(|e| e.prefix(bare)) {
            Some(prefix) => self.ask(
                table,
                ctx,
                internal,
                prefix,
                || KeyHash::of(prefix),
                false,
                counters,
            ),
            None => Ok(true),
        }
    }

    #[inline]
    #[allow(clippy::too_many_arguments, reason = "one question, all of its parts")]
    fn ask(
        &self,
        table: &TableReader,
        ctx: &ReadContext,
        internal: &[u8],
        what: &[u8],
        hash: impl FnOnce() -> KeyHash,
        whole: bool,
        counters: &ReadCounters,
    ) -> Result<bool> {
        let held = match self.block_for(table, ctx, internal, counters) {
            Ok(Some(held)) => held,
            Ok(None) => return Ok(true),
            // Without I/O a filter that is not in memory cannot say no.
            Err(e) if e.kind() == ErrorKind::Incomplete => return Ok(true),
            Err(e) => return Err(e),
        };
        let CachedBlock::Filter(filter) = &*held else {
            return Ok(true);
        };
        bump(&counters.filter_checked, 1);
        let hash = hash();
        let may = filter.reader.may_match(&filter.bytes, what, hash)
            && !(seeded(Bug::FilterSaysNo) && hash.0.is_multiple_of(32));
        if !may {
            bump(&counters.filter_useful, 1);
        }
        if let Some(o) = &table.options.observer {
            o.filter(match (whole, may) {
                (true, true) => FilterOutcome::Positive,
                (true, false) => FilterOutcome::Useful,
                (false, true) => FilterOutcome::PrefixPositive,
                (false, false) => FilterOutcome::PrefixUseful,
            });
        }
        Ok(may)
    }

    /// The filter block that covers `internal`; `None` when there is none.
    fn block_for<'a>(
        &'a self,
        table: &'a TableReader,
        ctx: &ReadContext,
        internal: &[u8],
        counters: &ReadCounters,
    ) -> Result<Option<Held<'a>>> {
        let kind = self.kind(table.form);
        let top = match &self.slot {
            Some(slot) => Held::Here(slot),
            None => Held::There(table.load(ctx, self.handle, kind, true, None, counters)?),
        };
        if !self.partitioned {
            return Ok(Some(top));
        }
        let Some(index) = top.index().filter(|i| !i.is_empty()) else {
            return Ok(None);
        };
        // Beyond the last partition's key the last partition answers.
        let i = index.seek(internal).min(index.len() - 1);
        if let Some(part) = self.partitions.get(i) {
            return Ok(Some(Held::Here(part)));
        }
        let part = table.partition(
            &self.partitions,
            ctx,
            i,
            index.handle(i),
            Kind::Filter,
            None,
            counters,
        )?;
        Ok(Some(Held::There(part)))
    }
}
