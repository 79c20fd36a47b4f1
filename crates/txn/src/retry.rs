//! A closure as a transaction, run again after a conflict.

use crate::transaction::Transaction;
use esker::{Db, ErrorKind, Result};
use std::time::Duration;

/// How often a closure is run as a transaction, and how long the pauses between are.
///
/// ```
/// use esker_txn::RetryOptions;
/// use std::time::Duration;
///
/// let patient = RetryOptions {
///     attempts: 1000,
///     ..RetryOptions::default()
/// };
/// assert_eq!(patient.pause, Duration::from_micros(50));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryOptions {
    /// Attempts at most, the first included; at least one is made.
    pub attempts: u32,
    /// The pause after the first conflict; each one after that is twice as long.
    pub pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
}

impl Default for RetryOptions {
    fn default() -> Self {
        RetryOptions {
            attempts: 100,
            pause: Duration::from_micros(50),
            longest_pause: Duration::from_millis(10),
        }
    }
}

/// Runs `body` in a transaction that `begin` makes, and commits it; again after `Busy` and
/// `TryAgain`.
pub(crate) fn run<T>(
    db: &Db,
    options: &RetryOptions,
    begin: impl Fn() -> Transaction,
    mut body: impl FnMut(&mut Transaction) -> Result<T>,
) -> Result<T> {
    let mut pause = options.pause;
    let mut attempts = 1;
    loop {
        let mut transaction = begin();
        let done = body(&mut transaction);
        let done = done.and_then(|value| transaction.commit().map(|()| value));
        // What is not committed is undone, and its locks go, before the pause.
        drop(transaction);
        match done {
            Err(e) if is_conflict(e.kind()) && attempts < options.attempts => {}
            done => return done,
        }
        attempts += 1;
        db.env().clock.sleep(pause);
        pause = pause.saturating_mul(2).min(options.longest_pause);
    }
}

fn is_conflict(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Busy | ErrorKind::TryAgain)
}
