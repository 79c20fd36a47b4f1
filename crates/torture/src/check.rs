//! Checks that a database holds a prefix of the writes, and every durable one.
//!
//! - Nothing that was sure is missing.
//! - Each thread's operations are there up to one, and none after it.
//! - The parts of a batch in different families are there together.
//! - An operation is there only if everything is that was acknowledged before it began: the state
//!   is a prefix of the order of writes.
//!
//! Called by one thread on an open database, which it only reads.

use crate::load::{
    Counts, SLOTS, THREADS, all_key, floor, last_key, read_number, slot_key, total_key,
};
use esker::Db;
use std::fmt;

/// Kinds of errors in a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViolationKind {
    /// Something that was sure is missing.
    Lost,
    /// Something is missing in front of what is there.
    Hole,
    /// The content is none that was ever written.
    Wrong,
    /// It does not open.
    Unopenable,
    /// The process did what it must not do, such as ending by itself.
    Misbehaved,
}

/// A promise that was not kept.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) kind: ViolationKind,
    pub(crate) text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.text)
    }
}

/// A violation with its sentence.
pub(crate) fn violation<T>(kind: ViolationKind, text: impl Into<String>) -> Result<T, Violation> {
    Err(Violation {
        kind,
        text: text.into(),
    })
}

fn readable<T>(done: esker::Result<T>) -> Result<T, Violation> {
    done.or_else(|e| violation(ViolationKind::Wrong, format!("it cannot be read: {e}")))
}

/// Checks the whole state, and returns the last operation of each thread.
pub(crate) fn check(db: &Db, sure: &Counts) -> Result<Counts, Violation> {
    let mut last = [0; THREADS];
    for t in 0..THREADS {
        last[t] = readable(read_number(db, &last_key(t)))?;
        if last[t] < sure[t] {
            let text = format!(
                "operation {} of thread {t} was sure, {} is the last",
                sure[t], last[t]
            );
            return violation(ViolationKind::Lost, text);
        }
        let total = readable(read_number(db, &total_key(t)))?;
        if total != last[t] {
            let text = format!("thread {t} counted {total} operations of {}", last[t]);
            return violation(ViolationKind::Wrong, text);
        }
    }
    let (Some(all), Some(slots)) = (db.family("all"), db.family("slots")) else {
        return match last {
            [0, 0, 0, 0] => Ok(last),
            _ => violation(ViolationKind::Lost, "families are missing"),
        };
    };
    operations(&mut db.iter_cf(&all), &last)?;
    overwritten(&mut db.iter_cf(&slots), &last)?;
    Ok(last)
}

/// The family with one key for each operation.
fn operations(all: &mut esker::DbIterator, last: &Counts) -> Result<(), Violation> {
    all.seek_to_first();
    for (t, &n) in last.iter().enumerate() {
        for i in floor(n).max(1)..=n {
            let Some((key, value)) = all.entry() else {
                readable(all.status())?;
                let text = format!("thread {t}: operation {i} of {n} is missing");
                return violation(ViolationKind::Hole, text);
            };
            if key != all_key(t, i) {
                let text = format!(
                    "thread {t}: {} where operation {i} is due",
                    key.escape_ascii()
                );
                return violation(ViolationKind::Hole, text);
            }
            for (other, known) in value.chunks_exact(8).take(THREADS).enumerate() {
                let known = known.try_into().map_or(u64::MAX, u64::from_le_bytes);
                if last[other] < known {
                    let text = format!(
                        "operation {i} of thread {t} began after {known} of thread {other}, which is missing: {last:?}"
                    );
                    return violation(ViolationKind::Hole, text);
                }
            }
            all.next();
        }
    }
    ended(all)
}

/// The family whose keys are written and deleted again and again.
fn overwritten(slots: &mut esker::DbIterator, last: &Counts) -> Result<(), Violation> {
    slots.seek_to_first();
    for (t, &n) in last.iter().enumerate() {
        for slot in 0..SLOTS {
            let behind = (n % SLOTS + SLOTS - slot) % SLOTS;
            let Some(newest) = n.checked_sub(behind).filter(|m| *m > 0 && m % 7 != 0) else {
                continue;
            };
            if slots.entry() != Some((&slot_key(t, slot)[..], &newest.to_le_bytes()[..])) {
                readable(slots.status())?;
                let text = format!("slot {slot} of thread {t} is not {newest} after {n}");
                return violation(ViolationKind::Wrong, text);
            }
            slots.next();
        }
    }
    ended(slots)
}

fn ended(iterator: &mut esker::DbIterator) -> Result<(), Violation> {
    readable(iterator.status())?;
    match iterator.entry() {
        Some((key, _)) => violation(
            ViolationKind::Wrong,
            format!("{} was never written, or was deleted", key.escape_ascii()),
        ),
        None => Ok(()),
    }
}
