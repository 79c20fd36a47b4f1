//! `timeseries`: one writer of entries with a time in their key, beside readers of whole series;
//! some of them delete what is old.

use std::hint::black_box;
use std::sync::atomic::Ordering;

use super::{BenchmarkState, Settings, pace};
use crate::generate::Rng;
use crate::measure::Meter;
use crate::store::{Iter, Session};
use crate::{Failure, Result};

/// Bytes of the series, and of the time behind it.
const PART: usize = 8;

/// Runs one thread: the first writes, the others read until it is done.
pub(super) fn run<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
    shared: &BenchmarkState,
) -> Result<()> {
    if s.key_size < 2 * PART || s.threads < 2 {
        let text = "timeseries needs keys of 16 bytes or more, and two threads or more";
        shared.written.store(true, Ordering::Release);
        return Err(Failure::new(text));
    }
    match shared.taken.fetch_add(1, Ordering::Relaxed) {
        0 => {
            meter.set_background();
            let outcome = write(session, s, rng, meter, shared);
            shared.written.store(true, Ordering::Release);
            outcome
        }
        place => look(session, s, rng, meter, shared, place <= s.series.deleters),
    }
}

fn write<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
    shared: &BenchmarkState,
) -> Result<()> {
    let (mut values, mut pacer) = (s.value_maker(), s.write_pacer());
    let mut budget = s.budget(s.writes);
    let mut key = vec![b'0'; s.key_size];
    while budget.more(1) {
        let tick = shared.ticks.fetch_add(1, Ordering::Relaxed);
        key[..PART].copy_from_slice(&rng.below(s.series.count).to_be_bytes());
        key[PART..2 * PART].copy_from_slice(&tick.to_be_bytes());
        let value = values.value();
        session.put(&key, value)?;
        let bytes = (key.len() + value.len()) as u64;
        meter.add_bytes(bytes);
        meter.finished(1);
        pace(&mut pacer, bytes, meter);
    }
    Ok(())
}

fn look<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
    shared: &BenchmarkState,
    deletes: bool,
) -> Result<()> {
    let mut pacer = s.read_pacer();
    let (mut found, mut reads) = (0u64, 0u64);
    while !shared.written.load(Ordering::Acquire) && !crate::interrupt::stopped() {
        let series = rng.below(s.series.count).to_be_bytes();
        let mut old = Vec::new();
        let mut iter = session.iter(None, None)?;
        let mut on = iter.seek(&series);
        reads += 1;
        found += u64::from(on && iter.key().starts_with(&series));
        while on && iter.key().starts_with(&series) {
            let key = iter.key();
            meter.add_bytes((key.len() + black_box(iter.value()).len()) as u64);
            if deletes {
                let time = key[PART..]
                    .first_chunk()
                    .map_or(0, |t| u64::from_be_bytes(*t));
                if shared.ticks.load(Ordering::Relaxed) <= time + s.series.range {
                    break;
                }
                old.push(key.to_vec());
            }
            meter.finished(1);
            on = iter.next();
        }
        iter.status()?;
        drop(iter);
        for key in old {
            session.delete(&key)?;
        }
        pace(&mut pacer, 1, meter);
    }
    meter.set_message(format!("({found} of {reads} found)"));
    Ok(())
}
