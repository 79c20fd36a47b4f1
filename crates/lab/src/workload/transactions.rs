//! `randomtransaction`: each transaction adds the same amount to one key of every set, so that all
//! sets have the same sum whatever was committed.

use super::Settings;
use crate::generate::Rng;
use crate::measure::Meter;
use crate::store::{Iter, Session, number};
use crate::{Failure, Result};

/// Sets that four digits can number.
const MOST_SETS: u64 = 9999;

fn prefix(set: u64) -> String {
    format!("{:04}", set + 1)
}

/// Runs one thread's transactions.
pub(super) fn run<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
) -> Result<()> {
    if !(1..=MOST_SETS).contains(&s.transaction_sets) {
        let text = format!("transaction_sets is between 1 and {MOST_SETS}");
        return Err(Failure::new(text));
    }
    let mut budget = s.budget(s.read_writes);
    let (mut done, mut aborted) = (0u64, 0u64);
    let mut sets: Vec<u64> = (0..s.transaction_sets).collect();
    let mut naps = Rng::new(rng.next_u64());
    let mut nap = || {
        if s.transaction_sleep > 0 {
            let micros = naps.below(s.transaction_sleep + 1);
            std::thread::sleep(std::time::Duration::from_micros(micros));
        }
    };
    while budget.more(1) {
        for i in 0..sets.len() {
            sets.swap(i, rng.below(s.transaction_sets) as usize);
        }
        let key =
            |set: &u64, rng: &mut Rng| format!("{}{}", prefix(*set), rng.below(s.num)).into_bytes();
        let keys: Vec<Vec<u8>> = sets.iter().map(|set| key(set, rng)).collect();
        if session.add(&keys, 1 + rng.below(100), &mut nap)? {
            done += 1;
            meter.add_bytes(keys.iter().map(|key| key.len() as u64 + 8).sum());
        } else {
            aborted += 1;
        }
        meter.finished(1);
    }
    let all = done + aborted;
    meter.set_message(format!("( transactions:{all} aborts:{aborted})"));
    Ok(())
}

/// Checks that all sets have the same sum.
///
/// # Errors
/// Two sets differ, or a value is no number.
pub fn verify<S: Session>(session: &mut S, s: &Settings) -> Result<String> {
    let mut expected = None;
    for set in 0..s.transaction_sets {
        let prefix = prefix(set);
        let mut sum = 0u64;
        let mut iter = session.iter(None, None)?;
        let mut on = iter.seek(prefix.as_bytes());
        while on && iter.key().starts_with(prefix.as_bytes()) {
            sum = sum.wrapping_add(number(iter.value())?);
            on = iter.next();
        }
        iter.status()?;
        let first = *expected.get_or_insert(sum);
        if sum != first {
            return Err(Failure::new(format!(
                "RandomTransactionVerify: set {set} has the sum {sum}, set 0 has {first}"
            )));
        }
    }
    Ok("RandomTransactionVerify Success.".into())
}
