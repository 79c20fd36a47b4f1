//! Workloads that read what they change, or change it in a way of its own.

use super::{Settings, pace};
use crate::generate::{KeyFormatter, Rng};
use crate::measure::Meter;
use crate::store::{Iter, Session};
use crate::{Failure, Result};

/// How a value that was read becomes the one that is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueChange {
    /// Combined bit by bit with another.
    Xor,
    /// With another behind it.
    Append,
}

/// Deletes a range of keys from a random one on; between two makers of keys.
pub(super) fn delete_range<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    ends: &mut (KeyFormatter, KeyFormatter),
) -> Result<()> {
    let first = rng.below(s.num);
    let end = first.saturating_add(s.tombstones.width);
    session.choose(first);
    if s.tombstones.one_by_one {
        for number in first..end.min(s.num) {
            session.delete(ends.0.key(number))?;
        }
        return Ok(());
    }
    session.delete_range(ends.0.key(first), ends.1.key(end))
}

/// Reads random keys, and merges into others.
pub(super) fn read_merge<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let (mut keys, mut values) = (s.keys(), s.value_maker());
    let mut budget = s.budget(s.read_writes);
    let (mut reads, mut merges, mut hits, mut longest) = (0u64, 0u64, 0u64, 0);
    while budget.more(1) {
        let number = rng.below(s.merge_keys);
        session.choose(number);
        let key = keys.key(number);
        if rng.below(100) < s.merge_percent {
            session.merge(key, values.value())?;
            merges += 1;
        } else {
            if let Some(size) = session.get(key, <[u8]>::len)? {
                hits += 1;
                longest = longest.max(size);
            }
            reads += 1;
        }
        meter.finished(1);
    }
    meter.set_message(format!(
        "(reads:{reads} merges:{merges} total:{} hits:{hits} maxlength:{longest})",
        reads + merges
    ));
    Ok(())
}

/// Reads random keys, and writes what becomes of their values.
pub(super) fn rewrite<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
    how: ValueChange,
) -> Result<()> {
    let (mut keys, mut values, mut pacer) = (s.keys(), s.value_maker(), s.write_pacer());
    let mut budget = s.budget(s.read_writes);
    let (mut found, mut updates) = (0u64, 0u64);
    let mut value = Vec::new();
    while budget.more(1) {
        let number = rng.below(s.num);
        session.choose(number);
        let key = keys.key(number);
        value.clear();
        if session
            .get(key, |old| value.extend_from_slice(old))?
            .is_some()
        {
            found += 1;
        }
        match how {
            ValueChange::Append => {
                if !value.is_empty() {
                    value.push(b',');
                }
                value.extend_from_slice(values.value());
            }
            ValueChange::Xor if value.is_empty() => value.extend_from_slice(values.value()),
            ValueChange::Xor => {
                let other = values.value_of(value.len());
                value.iter_mut().zip(other).for_each(|(a, b)| *a ^= b);
            }
        }
        session.put(key, &value)?;
        let bytes = (key.len() + value.len()) as u64;
        updates += 1;
        meter.add_bytes(bytes);
        meter.finished(1);
        pace(&mut pacer, bytes, meter);
    }
    meter.set_message(format!("( updates:{updates} found:{found})"));
    Ok(())
}

/// The last byte of the three keys, and values, that belong together.
const THREE: [u8; 3] = *b"012";

/// Reads, writes and deletes keys in threes, by the hundred; fails when three are not alike.
pub(super) fn in_threes<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let (mut keys, mut values) = (s.keys(), s.value_maker());
    let mut budget = s.budget(s.read_writes);
    let (mut gets, mut puts, mut deletes, mut found) = (0u64, 0u64, 0u64, 0u64);
    let written = 100u64.saturating_sub(s.read_percent + s.delete_percent);
    while budget.more(1) {
        let round = (gets + puts + deletes) % 100;
        let number = rng.below(s.distinct);
        session.choose(number);
        let mut key = keys.key(number).to_vec();
        key.push(0);
        if round < s.read_percent {
            found += u64::from(three_alike(session, &mut key)?);
            gets += 1;
        } else {
            session.batch_clear();
            let mut value = values.value().to_vec();
            value.push(0);
            for last in THREE {
                *key.last_mut().expect("a byte was added") = last;
                *value.last_mut().expect("a byte was added") = last;
                if round < s.read_percent + written {
                    session.batch_put(&key, &value);
                } else {
                    session.batch_delete(&key);
                }
            }
            session.batch_write()?;
            if round < s.read_percent + written {
                puts += 1;
            } else {
                deletes += 1;
            }
        }
        meter.finished(1);
    }
    meter.set_message(format!(
        "( get:{gets} put:{puts} del:{deletes} total:{} found:{found})",
        gets + puts + deletes
    ));
    Ok(())
}

/// Returns whether the three keys are there. An iterator shows one state, so they are all there or
/// none is.
fn three_alike<S: Session>(session: &mut S, key: &mut [u8]) -> Result<bool> {
    let mut iter = session.iter(None, None)?;
    *key.last_mut().expect("keys are not empty") = THREE[0];
    let mut on = iter.seek(key);
    let mut first: Option<Vec<u8>> = None;
    for (seen, last) in THREE.into_iter().enumerate() {
        *key.last_mut().expect("keys are not empty") = last;
        if !(on && iter.key() == &*key) {
            iter.status()?;
            if seen > 0 {
                return Err(Failure::new(format!("{key:?}: {seen} of three are there")));
            }
            return Ok(false);
        }
        let (start, end) = iter.value().split_at(iter.value().len().saturating_sub(1));
        let is_alike = first.as_deref().is_none_or(|first| first == start);
        if !is_alike || end != [last] {
            return Err(Failure::new(format!("{key:?}: the three values differ")));
        }
        first.get_or_insert_with(|| start.to_vec());
        on = iter.next();
    }
    Ok(true)
}

/// Versions of a key that follow each other under names of their own.
const VERSIONS: u64 = 50;

/// Deletes the version of a key that is there, and writes the next one.
pub(super) fn replace<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let (mut keys, mut values) = (s.keys(), s.value_maker());
    let mut versions = vec![0u64; s.distinct as usize];
    for number in 0..s.distinct {
        session.put(keys.key(number * VERSIONS), values.value())?;
    }
    let mut budget = s.budget(s.num);
    while budget.more(1) {
        let middle = s.distinct as f64 / 2.0;
        let drawn = middle + rng.normal() * s.stddev;
        let id = (drawn.max(0.0) as u64).min(s.distinct - 1);
        let version = &mut versions[id as usize];
        let old = keys.key(id * VERSIONS + *version);
        if s.single_deletes {
            session.single_delete(old)?;
        } else {
            session.delete(old)?;
        }
        *version = (*version + 1) % VERSIONS;
        session.put(keys.key(id * VERSIONS + *version), b"")?;
        meter.finished(1);
    }
    meter.set_message(format!(
        "use single deletes: {}, standard deviation: {:.6}",
        u8::from(s.single_deletes),
        s.stddev
    ));
    Ok(())
}
