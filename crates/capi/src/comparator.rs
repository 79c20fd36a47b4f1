//! Orders of keys that the application defines.
//!
//! Options, databases and iterators share what is behind the handle, so that destroying the handle
//! early is harmless: the application's destructor runs when the last of them is gone.

use crate::boundary::callbacks::{self, Compare, CompareBare, Name, Owner, Plain};
use crate::boundary::{attempt, destroy, exclusive, give, quiet, shared};
use crate::*;
use esker::{Comparator, KeyOrder};
use std::cmp::Ordering;
use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::ptr;
use std::sync::Arc;

/// An order of keys.
pub struct rocksdb_comparator_t {
    pub(crate) order: KeyOrder,
}

struct Order {
    owner: Owner,
    name: String,
    compare: Compare,
    compare_bare: Option<CompareBare>,
    compare_timestamp: Option<Compare>,
    timestamp_size: usize,
}

impl Comparator for Order {
    fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        callbacks::compare(self.compare, &self.owner, a, b).cmp(&0)
    }

    /// As in RocksDB, where the filter policy answers for keys that the order takes for equal.
    fn filters_by_bytes(&self) -> bool {
        true
    }

    fn timestamp_size(&self) -> usize {
        self.timestamp_size
    }

    fn compare_without_timestamp(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self.compare_bare {
            Some(bare) => callbacks::compare_bare(bare, &self.owner, a, b).cmp(&0),
            None => self.compare(a, b),
        }
    }

    fn compare_timestamp(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self.compare_timestamp {
            Some(compare) => callbacks::compare(compare, &self.owner, a, b).cmp(&0),
            None => self.compare(b, a),
        }
    }
}

/// NULL without a function that compares: there is no order then.
fn create(
    owner: Owner,
    compare: Option<Compare>,
    (compare_timestamp, compare_bare): (Option<Compare>, Option<CompareBare>),
    name: Name,
    timestamp_size: usize,
) -> *mut rocksdb_comparator_t {
    quiet(ptr::null_mut(), || {
        let Some(compare) = compare else {
            return ptr::null_mut();
        };
        let name = callbacks::name(&owner, name);
        give(rocksdb_comparator_t {
            order: KeyOrder::Custom(Arc::new(Order {
                owner,
                name,
                compare,
                compare_bare,
                compare_timestamp,
                timestamp_size,
            })),
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_comparator_create(
    state: *mut c_void,
    destructor: Plain,
    compare: Option<Compare>,
    name: Name,
) -> *mut rocksdb_comparator_t {
    let owner = Owner::new(state, destructor);
    create(owner, compare, (None, None), name, 0)
}

/// Keys end in timestamps of `timestamp_size` bytes. A later timestamp compares greater by
/// `compare_ts`, and its key sorts first by `compare`.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_comparator_with_ts_create(
    state: *mut c_void,
    destructor: Plain,
    compare: Option<Compare>,
    compare_ts: Option<
        unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int,
    >,
    compare_without_ts: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *const c_char,
            usize,
            c_uchar,
            *const c_char,
            usize,
            c_uchar,
        ) -> c_int,
    >,
    name: Name,
    timestamp_size: usize,
) -> *mut rocksdb_comparator_t {
    let owner = Owner::new(state, destructor);
    let more = (compare_ts, compare_without_ts);
    create(owner, compare, more, name, timestamp_size)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_comparator_destroy(comparator: *mut rocksdb_comparator_t) {
    destroy(comparator);
}

/// NULL is the order by bytes.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_comparator(
    options: *mut rocksdb_options_t,
    comparator: *mut rocksdb_comparator_t,
) {
    attempt((), || {
        exclusive(options)?.options.family.comparator =
            shared(comparator).map_or_else(|_| KeyOrder::default(), |c| c.order.clone());
        Ok(())
    });
}
