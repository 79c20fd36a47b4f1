//! Point lookups in an open table.
//!
//! A lookup of many keys goes step by step for all of them ([`TableReader::approach`],
//! [`TableReader::locate`], [`TableReader::bring`], [`TableReader::get_located`]): what one key
//! waits for in memory, another one's step hides. Where reads wait for the device, those of several
//! keys are under way together ([`TableReader::begin`]).

use super::cached::{HeldBlock, SharedBlock};
use super::context::{FoundEntry, LookupKey, ReadContext, bump};
use super::observer::FilterOutcome;
use super::prefetch::Prefetch;
use super::reader::TableReader;
use esker_format::KeyOrder;
use esker_format::block::{BlockCursor, BlockHandle, IndexBlock};
use esker_format::key::user_key;
use esker_status::Result;
use std::cell::RefCell;

thread_local! {
    /// The block cursor of point lookups, with its key buffer.
    static POINT: RefCell<Option<BlockCursor<HeldBlock>>> = const { RefCell::new(None) };
}

/// Lends this thread's cursor; a lookup inside a lookup, by a comparator that reads a database, has
/// one of its own.
#[inline]
fn with_point_cursor<R>(f: impl FnOnce(&mut BlockCursor<HeldBlock>) -> R) -> R {
    let new = || BlockCursor::new(HeldBlock(None), KeyOrder::Bytewise);
    POINT.with(|slot| match slot.try_borrow_mut() {
        Ok(mut cursor) => f(cursor.get_or_insert_with(new)),
        Err(_) => f(&mut new()),
    })
}

/// Where the index says that a key is.
#[derive(Debug)]
pub struct BlockLocation {
    at: usize,
    /// None in a partitioned index, which is searched at the end.
    handle: Option<BlockHandle>,
    /// The read of the block, if it was begun.
    begun: Option<Box<Prefetch>>,
    block: Option<SharedBlock>,
}

impl BlockLocation {
    /// Takes the block that `other` has; whether it has one. Both must be of one block.
    pub fn share(&mut self, other: &BlockLocation) -> bool {
        self.block = other.block.clone();
        self.block.is_some()
    }
}

impl TableReader {
    /// Starts loading what [`TableReader::locate`] reads of the filter.
    #[inline]
    pub fn approach(&self, key: &LookupKey<'_>) {
        if let Some(filter) = &self.filter {
            filter.prefetch(self, key);
        }
    }

    /// Where `key` is, if it can be there: asks filter and index.
    pub fn locate(&self, ctx: &ReadContext, key: &LookupKey<'_>) -> Result<Option<BlockLocation>> {
        bump(&key.counters.tables, 1);
        if !self.may_contain(ctx, key)? {
            return Ok(None);
        }
        let mut located = BlockLocation {
            at: 0,
            handle: None,
            begun: None,
            block: None,
        };
        if self.is_partitioned() {
            return Ok(Some(located));
        }
        let top = self.index_held(ctx, &key.counters)?;
        let Some(leaf) = top.index() else {
            return Ok(None);
        };
        bump(&key.counters.compared, leaf.search_depth());
        located.at = leaf.seek(key.internal());
        if located.at >= leaf.len() || self.begins_after(leaf, located.at, key) {
            return Ok(None);
        }
        located.handle = Some(leaf.handle(located.at));
        Ok(Some(located))
    }

    /// The offset of the block of `located`, if it must be read and that may wait for the device.
    pub fn awaits(&self, ctx: &ReadContext, located: &BlockLocation) -> Option<u64> {
        let handle = located.handle.filter(|_| self.begins_reads(ctx))?;
        (!self.has_at_hand(handle)).then_some(handle.offset)
    }

    /// Begins to read the block of `located`.
    pub fn begin(&self, ctx: &ReadContext, located: &mut BlockLocation) {
        let blocks = &self.fetcher.blocks;
        let begun = (located.handle)
            .and_then(|handle| Prefetch::of_block(self.options(), ctx, blocks, handle));
        located.begun = begun.map(Box::new);
    }

    /// Gets the block of `located`, and starts loading what a search in it reads.
    pub fn bring(
        &self,
        ctx: &ReadContext,
        key: &LookupKey<'_>,
        located: &mut BlockLocation,
    ) -> Result<()> {
        if let Some(handle) = located.handle {
            let mut begun = located.begun.take();
            let block = self.data_block(ctx, handle, begun.as_deref_mut(), &key.counters)?;
            block.data().prefetch_search();
            located.block = Some(block);
        }
        Ok(())
    }

    /// As [`TableReader::get`], of a key that was located.
    pub fn get_located(
        &self,
        ctx: &ReadContext,
        key: &LookupKey<'_>,
        located: BlockLocation,
        mut visit: impl FnMut(FoundEntry<'_>) -> bool,
    ) -> Result<()> {
        let mut seen = false;
        let visit = |entry: FoundEntry<'_>| {
            seen = true;
            visit(entry)
        };
        let found = self.with_cursor(|cursor| match located.block {
            Some(block) => self.get_in_block(cursor, ctx, key, located.at, block, visit),
            None => self.get_with(cursor, ctx, key, visit),
        });
        if seen {
            self.was_there();
        }
        found
    }

    /// Returns whether the blocks of `leaf` from `at` on begin after `key`, as far as the index
    /// tells.
    #[inline]
    fn begins_after(&self, leaf: &IndexBlock, at: usize, key: &LookupKey<'_>) -> bool {
        leaf.first_key(at).is_some_and(|first| {
            self.order().compare_internal(first, key.internal()).is_gt()
                && !self.same_key(user_key(first), key.user())
        })
    }

    /// Returns whether `a` and `b` are versions of one key.
    #[inline]
    fn same_key(&self, a: &[u8], b: &[u8]) -> bool {
        self.order().same_without_timestamp(a, b)
    }

    /// Shows `visit` the entries of the key's user key, newest first from the key's sequence on,
    /// until it says `false`. Does not look at the table's range tombstones. No allocation when
    /// blocks are cached.
    pub fn get(
        &self,
        ctx: &ReadContext,
        key: &LookupKey<'_>,
        mut visit: impl FnMut(FoundEntry<'_>) -> bool,
    ) -> Result<()> {
        bump(&key.counters.tables, 1);
        if !self.may_contain(ctx, key)? {
            return Ok(());
        }
        let mut seen = false;
        let visit = |entry: FoundEntry<'_>| {
            seen = true;
            visit(entry)
        };
        let found = self.with_cursor(|cursor| self.get_with(cursor, ctx, key, visit));
        if seen {
            self.was_there();
        }
        found
    }

    /// Lends this thread's cursor, made to fit the table.
    #[inline(always)]
    fn with_cursor(
        &self,
        search: impl FnOnce(&mut BlockCursor<HeldBlock>) -> Result<()>,
    ) -> Result<()> {
        with_point_cursor(|cursor| {
            cursor.configure(self.order(), self.global_seq);
            let found = search(cursor);
            cursor.replace(HeldBlock(None));
            found
        })
    }

    /// Tells the observer that the filter was right to let a key through.
    #[inline]
    fn was_there(&self) {
        if let Some(o) = &self.options.observer
            && let Some(filter) = &self.filter
        {
            o.filter(if filter.asks_whole_keys() {
                FilterOutcome::TruePositive
            } else {
                FilterOutcome::PrefixTruePositive
            });
        }
    }

    fn get_in_block(
        &self,
        cursor: &mut BlockCursor<HeldBlock>,
        ctx: &ReadContext,
        key: &LookupKey<'_>,
        at: usize,
        block: SharedBlock,
        mut visit: impl FnMut(FoundEntry<'_>) -> bool,
    ) -> Result<()> {
        let top = self.index_held(ctx, &key.counters)?;
        if let Some(leaf) = top.index() {
            self.get_in_leaf(cursor, ctx, key, leaf, at, Some(block), &mut visit)?;
        }
        Ok(())
    }

    fn get_with(
        &self,
        cursor: &mut BlockCursor<HeldBlock>,
        ctx: &ReadContext,
        key: &LookupKey<'_>,
        mut visit: impl FnMut(FoundEntry<'_>) -> bool,
    ) -> Result<()> {
        let target = key.internal();
        let top = self.index_held(ctx, &key.counters)?;
        let Some(top) = top.index() else {
            return Ok(());
        };
        bump(&key.counters.compared, top.search_depth());
        if !self.is_partitioned() {
            self.get_in_leaf(cursor, ctx, key, top, top.seek(target), None, &mut visit)?;
            return Ok(());
        }
        for i in top.seek(target)..top.len() {
            let part = self.index_partition(ctx, i, top.handle(i), &key.counters)?;
            let Some(leaf) = part.index() else {
                return Ok(());
            };
            bump(&key.counters.compared, leaf.search_depth());
            let at = leaf.seek(target);
            let done = self.get_in_leaf(cursor, ctx, key, leaf, at, None, &mut visit)?;
            if done || !self.same_key(top.user(i), key.user()) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Looks into the blocks of `leaf` from `at` on, of which the caller may have `first`; true
    /// when the search is over.
    #[allow(clippy::too_many_arguments, reason = "one step of two callers' loops")]
    fn get_in_leaf(
        &self,
        cursor: &mut BlockCursor<HeldBlock>,
        ctx: &ReadContext,
        key: &LookupKey<'_>,
        leaf: &IndexBlock,
        at: usize,
        mut first: Option<SharedBlock>,
        visit: &mut impl FnMut(FoundEntry<'_>) -> bool,
    ) -> Result<bool> {
        let user = key.user();
        for i in at..leaf.len() {
            if self.begins_after(leaf, i, key) {
                return Ok(true);
            }
            let handle = leaf.handle(i);
            let block = match first.take() {
                Some(block) => block,
                None => self.data_block(ctx, handle, None, &key.counters)?,
            };
            cursor.replace(HeldBlock(Some(block)));
            if i == at {
                cursor.seek_point(key.internal());
                bump(&key.counters.compared, cursor.take_compared());
            } else {
                cursor.seek_to_first();
            }
            while cursor.valid() {
                if !self.same_key(user_key(cursor.key()), user) {
                    return Ok(true);
                }
                let Some(block) = &cursor.source().0 else {
                    return Ok(true);
                };
                if !visit(FoundEntry {
                    key: cursor.key(),
                    block,
                    range: cursor.value_range(),
                }) {
                    return Ok(true);
                }
                cursor.next();
            }
            cursor
                .status()
                .map_err(|e| self.in_block(e, Some(handle.offset)))?;
            // A separator of the same user key means that its versions may go on, where separators
            // differ by sequence or by timestamp.
            let apart = leaf.has_user_keys() && self.order().timestamp_size() == 0;
            if apart || !self.same_key(leaf.user(i), user) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
