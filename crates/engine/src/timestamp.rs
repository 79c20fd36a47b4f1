//! User-defined timestamps where the engine meets them: what calls may ask of a family, and from
//! when on its history is whole. `esker_format::timestamp` says what they are.
//!
//! The messages are RocksDB's. Everything here is for families with timestamps or for errors: calls
//! on other families come no further than comparing a length with 0.

use crate::family::{Family, View};
use esker_format::{KeyOrder, timestamp};
use esker_status::{Error, Result};
use std::borrow::Cow;

/// The error of a call without a timestamp on a family with them.
#[cold]
pub(crate) fn needed(family: &Family) -> Error {
    Error::invalid_argument(format!(
        "cannot call this method on column family {} that enables timestamp",
        family.name
    ))
}

/// `InvalidArgument` unless `given` is a timestamp as the family has them.
pub(crate) fn check(family: &Family, given: &[u8]) -> Result<()> {
    match family.order.timestamp_size() {
        0 => Err(Error::invalid_argument(format!(
            "cannot call this method on column family {} that does not enable timestamp",
            family.name
        ))),
        size if size != given.len() => Err(Error::invalid_argument(format!(
            "Timestamp sizes mismatch: expect {size}, {} given",
            given.len()
        ))),
        _ => Ok(()),
    }
}

/// `InvalidArgument` unless a read at `given` (`None`: without a timestamp) can be answered from
/// `view`.
#[inline]
pub(crate) fn check_read(family: &Family, view: &View, given: Option<&[u8]>) -> Result<()> {
    match given {
        None if family.order.timestamp_size() == 0 => Ok(()),
        _ => check_read_at(family, view, given),
    }
}

#[cold]
fn check_read_at(family: &Family, view: &View, given: Option<&[u8]>) -> Result<()> {
    let Some(given) = given else {
        return Err(needed(family));
    };
    check(family, given)?;
    match view.history_from.as_deref() {
        Some(low) if family.order.compare_timestamp(given, low).is_lt() => {
            Err(Error::invalid_argument(format!(
                "Read timestamp: {} is smaller than full_history_ts_low: {}\n",
                timestamp::text(&family.order, given),
                timestamp::text(&family.order, low)
            )))
        }
        _ => Ok(()),
    }
}

/// The user key before every version of `key`: an inclusive beginning, or an exclusive end.
pub(crate) fn first<'k>(order: &KeyOrder, key: &'k [u8]) -> Cow<'k, [u8]> {
    padded(order, key, timestamp::GREATEST)
}

/// The user key after every version of `key`: an inclusive end.
pub(crate) fn last<'k>(order: &KeyOrder, key: &'k [u8]) -> Cow<'k, [u8]> {
    padded(order, key, timestamp::SMALLEST)
}

fn padded<'k>(order: &KeyOrder, key: &'k [u8], byte: u8) -> Cow<'k, [u8]> {
    match order.timestamp_size() {
        0 => Cow::Borrowed(key),
        size => {
            let mut padded = key.to_vec();
            padded.resize(key.len() + size, byte);
            Cow::Owned(padded)
        }
    }
}
