//! Answers of the filter of an open table about a key or a prefix.

use super::cached::CachedBlock;
use super::context::{LookupKey, ReadContext, ReadCounters, bump};
use super::filter::TableFilter;
use super::observer::FilterOutcome;
use super::partitions::{BlockRef, HandleKind};
use super::reader::TableReader;
use esker_format::filter::KeyHash;
use esker_format::key::user_key;
use esker_status::seeded::{Bug, seeded};
use esker_status::{ErrorKind, Result};

impl TableReader {
    /// Returns whether the filter lets the key through; true without a filter.
    pub fn may_contain(&self, ctx: &ReadContext, key: &LookupKey<'_>) -> Result<bool> {
        match &self.filter {
            Some(filter) => filter.key_may_match(self, ctx, key),
            None => Ok(true),
        }
    }

    /// Returns whether the filter lets the prefix of an internal key through; true without a filter
    /// of prefixes by the family's extractor.
    pub fn prefix_may_match(
        &self,
        ctx: &ReadContext,
        internal: &[u8],
        counters: &ReadCounters,
    ) -> Result<bool> {
        match &self.filter {
            Some(filter) => filter.prefix_may_match(self, ctx, internal, counters),
            None => Ok(true),
        }
    }
}

impl TableFilter {
    /// Starts loading what [`TableReader::may_contain`] reads, where that is one block in memory.
    #[inline]
    pub(super) fn prefetch(&self, table: &TableReader, key: &LookupKey<'_>) {
        if !self.whole_keys || self.partitioned {
            return;
        }
        let hash = KeyHash(key.hash64());
        let near = |block: &CachedBlock| {
            if let CachedBlock::Filter(filter) = block {
                filter.reader.prefetch(&filter.bytes, hash);
            }
        };
        match &self.slot {
            Some(slot) => near(slot),
            None => table.with_cached(self.handle, near),
        }
    }

    fn key_may_match(
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

    fn prefix_may_match(
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
        bump(&counters.filters_asked, 1);
        let hash = hash();
        let may = filter.reader.may_match(&filter.bytes, what, hash)
            && !(seeded(Bug::FilterSaysNo) && hash.0.is_multiple_of(32));
        if !may {
            bump(&counters.filters_useful, 1);
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
    ) -> Result<Option<BlockRef<'a>>> {
        let kind = self.kind(table.form);
        let top = match &self.slot {
            Some(slot) => BlockRef::Borrowed(slot),
            None => table.load_briefly(ctx, self.handle, kind, counters)?,
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
            return Ok(Some(BlockRef::Borrowed(part)));
        }
        if self.partitions.slots.is_empty() {
            let part = table.load_briefly(ctx, index.handle(i), HandleKind::Filter, counters)?;
            return Ok(Some(part));
        }
        let part = table.partition(
            &self.partitions,
            ctx,
            i,
            index.handle(i),
            HandleKind::Filter,
            counters,
        )?;
        Ok(Some(BlockRef::Shared(part)))
    }
}
