//! The index of points, monomorphised for the byte-wise order, and the cursor over it.

use super::order::InternalOrder;
use esker_format::key::user_key;
use esker_format::{Cursor, KeyOrder};
use esker_memindex::{ArenaOptions, BytewiseInternal, IndexCursor, TreeIndex};
use esker_status::Result;
use esker_sync::Arc;

/// The points of a memtable.
#[derive(Debug)]
pub(super) enum Points {
    Bytewise(Arc<TreeIndex<BytewiseInternal>>),
    Other(Arc<TreeIndex<InternalOrder>>),
}

macro_rules! each {
    ($self:ident, $p:ident => $e:expr) => {
        match $self {
            Points::Bytewise($p) => $e,
            Points::Other($p) => $e,
        }
    };
}

impl Points {
    /// `expected` is how most keys begin, as far as that is known.
    pub(super) fn new(order: &KeyOrder, memory: ArenaOptions, expected: &[u8]) -> Self {
        if order.is_bytewise() {
            Points::Bytewise(Arc::new(TreeIndex::new(
                BytewiseInternal::expecting(expected),
                memory,
            )))
        } else {
            Points::Other(Arc::new(TreeIndex::new(
                InternalOrder(order.clone()),
                memory,
            )))
        }
    }

    #[inline]
    pub(super) fn add(&self, user: &[u8], trailer: u64, value: &[u8]) -> bool {
        each!(self, p => p.add_internal(user, trailer, value))
    }

    #[inline]
    pub(super) fn entry_bytes(&self) -> usize {
        each!(self, p => p.entry_bytes())
    }

    pub(super) fn len(&self) -> usize {
        each!(self, p => p.len())
    }

    /// How all keys begin, when they are many.
    pub(super) fn common_prefix(&self) -> Vec<u8> {
        const MANY: usize = 1000;
        const LONGEST: usize = 256;
        if self.len() < MANY {
            return Vec::new();
        }
        each!(self, p => {
            let (mut first, mut last) = (p.cursor(), p.cursor());
            first.seek_to_first();
            last.seek_to_last();
            let (first, last) = (user_key(first.key()), user_key(last.key()));
            let same = first.iter().zip(last).take_while(|(a, b)| a == b);
            let same = same.take(LONGEST).count();
            first[..same].to_vec()
        })
    }

    #[inline]
    pub(super) fn memory_usage(&self) -> usize {
        each!(self, p => p.memory_usage())
    }

    pub(super) fn rank(&self, key: &[u8]) -> usize {
        each!(self, p => p.approximate_rank(key))
    }

    pub(super) fn cursor(&self) -> MemCursor {
        match self {
            Points::Bytewise(p) => MemCursor::Bytewise(IndexCursor::new(Arc::clone(p))),
            Points::Other(p) => MemCursor::Other(IndexCursor::new(Arc::clone(p))),
        }
    }

    #[inline]
    pub(super) fn get<'a>(
        &'a self,
        order: &KeyOrder,
        internal: &[u8],
        mut visit: impl FnMut(&'a [u8], &'a [u8]) -> bool,
    ) {
        let user = user_key(internal);
        each!(self, p => {
            let mut c = p.cursor();
            c.seek(internal);
            while let Some((key, value)) = c.entry() {
                if !order.same_without_timestamp(user_key(key), user) || !visit(key, value) {
                    return;
                }
                c.next();
            }
        });
    }
}

/// A cursor over a memtable's points; it keeps the index alive.
#[derive(Debug)]
pub(crate) enum MemCursor {
    Bytewise(IndexCursor<BytewiseInternal, Arc<TreeIndex<BytewiseInternal>>>),
    Other(IndexCursor<InternalOrder, Arc<TreeIndex<InternalOrder>>>),
}

macro_rules! on {
    ($self:ident, $c:ident => $e:expr) => {
        match $self {
            MemCursor::Bytewise($c) => $e,
            MemCursor::Other($c) => $e,
        }
    };
}

impl Cursor for MemCursor {
    #[inline]
    fn valid(&self) -> bool {
        on!(self, c => c.valid())
    }
    fn seek_to_first(&mut self) {
        on!(self, c => c.seek_to_first());
    }
    fn seek_to_last(&mut self) {
        on!(self, c => c.seek_to_last());
    }
    #[inline]
    fn seek(&mut self, target: &[u8]) {
        on!(self, c => c.seek(target));
    }
    #[inline]
    fn seek_for_prev(&mut self, target: &[u8]) {
        on!(self, c => c.seek_for_prev(target));
    }
    #[inline]
    fn next(&mut self) {
        on!(self, c => c.next());
    }
    #[inline]
    fn prev(&mut self) {
        on!(self, c => c.prev());
    }
    #[inline]
    fn key(&self) -> &[u8] {
        on!(self, c => c.key())
    }
    #[inline]
    fn value(&self) -> &[u8] {
        on!(self, c => c.value())
    }
    fn status(&self) -> Result<()> {
        Ok(())
    }
}
