//! The order of internal keys for families whose comparator is not the byte-wise one.

use esker_format::KeyOrder;
use esker_memindex::IndexOrder;
use std::cmp::Ordering;

/// Internal keys by a family's comparator.
#[derive(Clone, Debug)]
pub(crate) struct InternalOrder(pub(crate) KeyOrder);

impl IndexOrder for InternalOrder {
    #[inline]
    fn prefix(&self, _key: &[u8]) -> u64 {
        0
    }

    #[inline]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.0.compare_internal(a, b)
    }
}
