//! Point lookups in an open table.

use super::cached::HeldBlock;
use super::context::{FoundEntry, LookupKey, ReadContext, bump};
use super::observer::FilterOutcome;
use super::reader::TableReader;
use esker_format::KeyOrder;
use esker_format::block::{BlockCursor, IndexBlock};
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

impl TableReader {
    /// Whether `a` and `b` are versions of one key.
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
        let found = with_point_cursor(|cursor| {
            cursor.configure(self.order(), self.global_seq);
            let found = self.get_with(cursor, ctx, key, visit);
            cursor.replace(HeldBlock(None));
            found
        });
        if let Some(o) = self.options.observer.as_ref().filter(|_| seen)
            && let Some(filter) = &self.filter
        {
            o.filter(if filter.asks_whole_keys() {
                FilterOutcome::TruePositive
            } else {
                FilterOutcome::PrefixTruePositive
            });
        }
        found
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
            self.get_in_leaf(cursor, ctx, key, top, top.seek(target), &mut visit)?;
            return Ok(());
        }
        for i in top.seek(target)..top.len() {
            let part = self.index_partition(ctx, i, top.handle(i), None, &key.counters)?;
            let Some(leaf) = part.index() else {
                return Ok(());
            };
            bump(&key.counters.compared, leaf.search_depth());
            let done = self.get_in_leaf(cursor, ctx, key, leaf, leaf.seek(target), &mut visit)?;
            if done || !self.same_key(top.user(i), key.user()) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Looks into the blocks of `leaf` from `at` on; true when the search is over.
    fn get_in_leaf(
        &self,
        cursor: &mut BlockCursor<HeldBlock>,
        ctx: &ReadContext,
        key: &LookupKey<'_>,
        leaf: &IndexBlock,
        at: usize,
        visit: &mut impl FnMut(FoundEntry<'_>) -> bool,
    ) -> Result<bool> {
        let user = key.user();
        for i in at..leaf.len() {
            if let Some(first) = leaf.first_key(i)
                && self.order().compare_internal(first, key.internal()).is_gt()
                && !self.same_key(user_key(first), user)
            {
                return Ok(true);
            }
            let handle = leaf.handle(i);
            let block = self.data_block(ctx, handle, None, &key.counters)?;
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
