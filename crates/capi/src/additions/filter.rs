//! Compaction filters that see merge operands and wide-column entities, too, and that may skip
//! keys: what `CompactionFilter::FilterV2` can do and RocksDB's C interface cannot.

use super::figure;
use crate::boundary::callbacks::{FilterDecision, Name, Plain};
use crate::boundary::given;
use crate::compaction_filter::create;
use crate::*;
use std::ffi::c_void;

/// The object of `rocksdb_compactionfilter_create`, with a function that decides about every kind
/// of value. What it stores in `output`, a new value or the key to skip to, stays its own, and
/// has to live until it is called again in the same thread.
#[unsafe(no_mangle)]
pub extern "C" fn esker_compactionfilter_create(
    state: *mut c_void,
    destructor: Plain,
    filter: Option<FilterDecision>,
    name: Name,
) -> *mut rocksdb_compactionfilter_t {
    create(state, destructor, FilterFunction::All(filter), name)
}

/// The number of the family whose job asks for a filter; `UINT32_MAX` for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn esker_compactionfiltercontext_column_family_id(
    context: *const rocksdb_compactionfiltercontext_t,
) -> u32 {
    figure(u32::MAX, || Some(given(context)?.context.family))
}
