//! Expected contents of a family, and answers compared with them.

use std::sync::Arc;

use super::kinds::{LENGTHS, SIZES};
use super::program::{Call, Setting};
use crate::answer::show;
use crate::callbacks::joined;
use crate::draw::RandomStream;
use crate::{Failure, Result};

/// Keys that take nothing but one put and one single deletion after the other.
pub(super) const ONCE: usize = 20;

/// A value, as the database should give it.
pub(super) type Value = Arc<[u8]>;

/// Contents of one family, by the number of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) entries: Vec<Option<Value>>,
}

/// A change of one key or range.
#[derive(Clone, Debug)]
pub(super) enum Edit {
    Put(usize, Vec<u8>),
    Merge(usize, Vec<u8>),
    Delete(usize),
    /// From a key to before another one.
    Range(usize, usize),
}

/// The key of this number. Keys that are put once come behind the others.
pub(super) fn key(number: usize, keys: usize) -> [u8; 4] {
    let (letter, number) = match number.checked_sub(keys) {
        None => (b'k', number),
        Some(once) => (b's', once),
    };
    let digit = |divisor: usize| b'0' + (number / divisor % 10) as u8;
    [letter, digit(100), digit(10), digit(1)]
}

/// The value of a number and a class of sizes.
pub(super) fn value(id: u64, size: u64) -> Vec<u8> {
    let mut value = format!("v{id}.").into_bytes();
    let whole = SIZES[size as usize % SIZES.len()];
    let mut noise = RandomStream::new(id);
    while value.len() < whole {
        let at = value.len() as u64;
        // Every other value does not shrink.
        value.push(match id % 2 {
            0 => b'a' + ((id * 7 + at * 13) % 26) as u8,
            _ => noise.below(256) as u8,
        });
    }
    value
}

impl Edit {
    /// The change that an argument list `what, key, id, size` names. Without `ranges`, deletions of
    /// ranges are deletions of keys.
    pub(super) fn of(what: u64, at: u64, id: u64, size: u64, keys: usize, ranges: bool) -> Edit {
        let at = at as usize % keys;
        match what {
            0..=10 => Edit::Put(at, value(id, size)),
            11..=14 => Edit::Merge(at, value(id, size % 2)),
            15..=17 => Edit::Delete(at),
            _ if !ranges => Edit::Delete(at),
            _ => Edit::range(at, size, keys),
        }
    }

    /// A range of a length by its class.
    pub(super) fn range(at: usize, size: u64, keys: usize) -> Edit {
        let length = LENGTHS[size as usize % LENGTHS.len()];
        Edit::Range(at, (at + length).min(keys))
    }
}

/// The changes of a call that does nothing else, with the places of their families; none for other
/// calls.
pub(super) fn changes(
    setting: &Setting,
    families: usize,
    call: &Call,
) -> Option<Vec<(usize, Edit)>> {
    let arg = |index: usize| call.args.get(index).copied().unwrap_or(0);
    let (keys, ranges) = (setting.keys, setting.ranges);
    let at = arg(1) as usize % keys;
    let edit = match call.kind {
        "put" => Edit::Put(at, value(arg(2), arg(3))),
        "merge" => Edit::Merge(at, value(arg(2), arg(3) % 2)),
        "delete" => Edit::Delete(at),
        "delete_range" if ranges => Edit::range(at, arg(2), keys),
        "delete_range" => Edit::Delete(at),
        "batch" => {
            let edit = |one: &[u64]| {
                let place = one[1] as usize % families;
                (
                    place,
                    Edit::of(one[0], one[2], one[3], one[4], keys, ranges),
                )
            };
            let edits = call.args.get(1..).unwrap_or_default().chunks_exact(5);
            return Some(edits.map(edit).collect());
        }
        _ => return None,
    };
    Some(vec![(arg(0) as usize % families, edit)])
}

impl Table {
    /// A family without entries.
    pub(super) fn new(keys: usize) -> Table {
        Table {
            entries: vec![None; keys + ONCE],
        }
    }

    pub(super) fn apply(&mut self, edit: &Edit) {
        match edit {
            Edit::Put(at, value) => self.entries[*at] = Some(value.as_slice().into()),
            Edit::Delete(at) => self.entries[*at] = None,
            Edit::Range(from, to) => self.entries[*from..*to].fill(None),
            Edit::Merge(at, operand) => {
                let old = self.entries[*at].as_deref();
                self.entries[*at] = Some(joined(old, &[operand]).into());
            }
        }
    }

    /// Fails when `got` is not what the key holds.
    pub(super) fn check(&self, at: usize, got: Option<&[u8]>, keys: usize) -> Result<()> {
        let want = self.entries[at].as_deref();
        if got == want {
            return Ok(());
        }
        let text = |value: Option<&[u8]>| value.map_or("nothing".to_owned(), show);
        let key = key(at, keys);
        Err(Failure::new(format!(
            "key {} has {}, should have {}",
            show(&key),
            text(got),
            text(want)
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_holds_what_was_done_last() {
        let mut table = Table::new(10);
        table.apply(&Edit::Put(3, b"a".to_vec()));
        table.apply(&Edit::Merge(3, b"b".to_vec()));
        table.apply(&Edit::Merge(4, b"c".to_vec()));
        assert_eq!(table.check(3, Some(b"a+b"), 10), Ok(()));
        table.apply(&Edit::Range(3, 4));
        assert_eq!(table.check(3, None, 10), Ok(()));
        let wrong = table
            .check(4, Some(b"x"), 10)
            .expect_err("it holds another value");
        assert_eq!(wrong.to_string(), r#"key "k004" has "x", should have "c""#);
        table.apply(&Edit::Delete(4));
        assert!(table.check(4, Some(b"c"), 10).is_err());
    }

    #[test]
    fn keys_are_in_the_order_of_their_numbers() {
        let keys: Vec<[u8; 4]> = (0..400 + ONCE).map(|number| key(number, 400)).collect();
        assert!(keys.is_sorted());
    }
}
