//! Workloads over ranges of keys: several scans at once, estimates, seeks of every key.

use std::hint::black_box;

use super::{Settings, pace};
use crate::generate::Rng;
use crate::measure::Meter;
use crate::store::{Iter, Session};
use crate::{Failure, Result};

/// Entries of a range of `multiscan` unless `seek_nexts` says otherwise.
const RANGE: u64 = 50;
/// `multiscanrandom`: most ranges at once, and most bytes of one.
const MOST_RANGES: u64 = 64;
const MOST_BYTES: u64 = 1 << 20;

/// Seeks every key of a database that was filled in order, and reads `seek_nexts` entries behind.
pub(super) fn seek_all<S: Session>(
    session: &mut S,
    s: &Settings,
    meter: &mut Meter<'_>,
) -> Result<()> {
    // What was written until now is not part of the rate.
    meter.restart();
    let mut keys = s.keys();
    let written = s.writes.min(s.num);
    let mut iter = session.iter(None, None)?;
    let lost = |number: u64| Failure::new(format!("the key of number {number} was not found"));
    let mut number = 0;
    while number < written && !crate::interrupt::stopped() {
        let mut on = iter.seek(keys.key(number));
        meter.finished(1);
        for _ in 0..s.seek_nexts.min(written - 1 - number) {
            if !(on && iter.key() == keys.key(number)) {
                iter.status()?;
                return Err(lost(number));
            }
            on = iter.next();
            number += 1;
            meter.finished(1);
        }
        if !(on && iter.key() == keys.key(number)) {
            iter.status()?;
            return Err(lost(number));
        }
        number += 1;
    }
    Ok(())
}

/// Reads the ranges `[first, first + size)`, in order; how many entries there were.
fn scan<S: Session>(
    session: &mut S,
    s: &Settings,
    ranges: &[(u64, u64)],
    meter: &mut Meter<'_>,
) -> Result<u64> {
    let (mut keys, mut ends) = (s.keys(), s.keys());
    let mut entries = 0;
    for (first, size) in ranges {
        session.choose(*first);
        let (from, to) = (keys.key(*first), ends.key(first + size));
        let mut iter = session.iter(Some(from), Some(to))?;
        let mut on = if s.reverse {
            iter.seek_to_last()
        } else {
            iter.seek(from)
        };
        while on {
            meter.add_bytes((iter.key().len() + black_box(iter.value()).len()) as u64);
            entries += 1;
            on = if s.reverse { iter.prev() } else { iter.next() };
        }
        iter.status()?;
    }
    Ok(entries)
}

/// Scans ranges of the same size, at a distance, from a random key on.
pub(super) fn multi_scan<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let size = match s.seek_nexts {
        0 => RANGE,
        n => n,
    };
    let all = (size + s.multiscan_stride) * s.multiscan_size;
    if all >= s.num {
        return Err(Failure::new(format!(
            "num is {}, and one multiscan takes {all} keys: see multiscan_size, \
             multiscan_stride and seek_nexts",
            s.num
        )));
    }
    let (mut budget, mut pacer) = (s.budget(s.reads), s.read_pacer());
    let (mut done, mut entries) = (0u64, 1);
    // The entries that were read count as operations of the budget, as in db_bench.
    while budget.more(entries) {
        let first = rng.below(s.num - all);
        let distance = size + s.multiscan_stride;
        let ranges: Vec<_> = (0..s.multiscan_size)
            .map(|i| (first + i * distance, size))
            .collect();
        entries = scan(session, s, &ranges, meter)?.max(1);
        done += 1;
        meter.finished(1);
        pace(&mut pacer, 1, meter);
    }
    meter.set_message(format!("(multiscans:{done})"));
    Ok(())
}

/// Scans up to 64 random ranges of up to a megabyte each, in order, without their overlaps.
pub(super) fn multi_scan_random<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let entry = s.key_size as u64 + s.values.mean() as u64;
    let most = (MOST_BYTES / entry.max(1)).clamp(1, s.num);
    let (mut budget, mut pacer) = (s.budget(s.reads), s.read_pacer());
    let (mut done, mut entries, mut rows) = (0u64, 1, 0);
    while budget.more(entries) {
        let mut ranges: Vec<(u64, u64)> = (0..=rng.below(MOST_RANGES))
            .map(|_| {
                let size = 1 + rng.below(most);
                (rng.below(s.num - size + 1), size)
            })
            .collect();
        ranges.sort_unstable();
        let mut end = 0;
        ranges.retain_mut(|(first, size)| {
            let last = *first + *size;
            *first = (*first).max(end);
            *size = last.saturating_sub(*first);
            end = end.max(last);
            *size > 0
        });
        entries = scan(session, s, &ranges, meter)?.max(1);
        rows += entries;
        done += 1;
        meter.finished(1);
        pace(&mut pacer, 1, meter);
    }
    meter.set_message(format!("(multiscans:{done} rows:{rows})"));
    Ok(())
}

/// Asks how many bytes lie between random keys.
pub(super) fn approximate_size<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let (mut keys, mut ends) = (s.keys(), s.keys());
    let mut budget = s.budget(s.reads);
    let (mut sum, mut asked) = (0u64, 0u64);
    while budget.more(1) {
        for _ in 0..s.batch {
            let (a, b) = (s.pick(rng), s.pick(rng));
            session.choose(a.min(b));
            let (from, to) = (keys.key(a.min(b)), ends.key(a.max(b)));
            sum += session.approximate_size(from, to)?;
        }
        asked += s.batch;
        meter.finished(s.batch);
    }
    let average = sum as f64 / asked.max(1) as f64;
    meter.set_message(format!("(Avg approx size={average:.6})"));
    Ok(())
}

/// Asks how many entries of memtables lie in ranges of `batch_size` keys.
pub(super) fn memtable_stats<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
) -> Result<()> {
    if s.num <= s.batch {
        return Err(Failure::new("num must be larger than batch_size"));
    }
    let (mut keys, mut ends) = (s.keys(), s.keys());
    let mut budget = s.budget(s.reads);
    let (mut sum, mut most, mut asked) = (0u64, 0u64, 0u64);
    while budget.more(1) {
        let first = rng.below(s.num - s.batch);
        session.choose(first);
        let entries = session.memtable_entries(keys.key(first), ends.key(first + s.batch))?;
        (sum, most, asked) = (sum + entries, most.max(entries), asked + 1);
        meter.finished(1);
    }
    meter.set_message(format!(
        "(entries reported, expected {}: {:.1} on average, {most} at most)",
        s.batch,
        sum as f64 / asked.max(1) as f64
    ));
    Ok(())
}
