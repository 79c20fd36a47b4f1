//! Filters of the log: the application's decision on each record that recovery replays.
//!
//! Called by the thread that opens the database, in the order of the log.

use esker_format::batch::WriteBatch;
use std::collections::BTreeMap;

/// Fate of a record.
#[derive(Clone, Debug)]
pub enum WalDecision {
    /// It is replayed.
    Continue,
    /// This batch is replayed in its place; it must not have more operations.
    Replace(WriteBatch),
    /// It is passed over.
    Ignore,
    /// It and everything after it is passed over.
    Stop,
    /// The record counts as damaged: opening fails, or leaves it out, as the recovery mode says.
    Corrupted,
}

/// Decides about the records of the log while a database is opened.
///
/// A record that is passed over is lost: the logs are deleted once their data is in tables.
pub trait WalFilter: Send + Sync {
    /// The filter's name, for errors.
    fn name(&self) -> &str;
    /// Told once, before the first record: the log from which on each family needs the log, and the
    /// numbers of families by name.
    fn families(&self, logs: &BTreeMap<u32, u64>, numbers: &BTreeMap<String, u32>) {
        let _ = (logs, numbers);
    }
    /// A record of the log `number`, whose file is called `file_name`.
    fn record(&self, number: u64, file_name: &str, batch: &WriteBatch) -> WalDecision;
}
