//! Errors with the texts that RocksDB's transactions give.

use esker::{Error, ErrorKind, Subcode};

#[cold]
pub(crate) fn busy() -> Error {
    Error::busy("")
}

#[cold]
pub(crate) fn deadlock() -> Error {
    Error::busy("Deadlock").with_subcode(Subcode::Deadlock)
}

#[cold]
pub(crate) fn lock_timeout() -> Error {
    Error::new(ErrorKind::TimedOut, "Timeout waiting to lock key")
        .with_subcode(Subcode::LockTimeout)
}

#[cold]
pub(crate) fn lock_limit() -> Error {
    Error::aborted("Failed to acquire lock due to max_num_locks limit")
        .with_subcode(Subcode::LockLimit)
}

#[cold]
pub(crate) fn expired() -> Error {
    Error::new(ErrorKind::Expired, "")
}

#[cold]
pub(crate) fn not_prepared() -> Error {
    Error::invalid_argument("Txn not prepared").with_subcode(Subcode::TxnNotPrepared)
}

#[cold]
pub(crate) fn commit_time_batch() -> Error {
    Error::invalid_argument("Commit-time batch contains values that will not be committed.")
}

/// Write policies other than `Committed` have no room for it in general.
#[cold]
pub(crate) fn commit_time_batch_of_policy() -> Error {
    Error::invalid_argument(
        "Commit-time-batch can only be used if use_only_the_last_commit_time_batch_for_recovery is \
         true",
    )
}

#[cold]
pub(crate) fn no_save_point() -> Error {
    Error::not_found("")
}

/// Returns the error of a call that only pessimistic transactions have.
#[cold]
pub(crate) fn no_timestamps() -> Error {
    Error::not_supported("timestamp not supported")
}

#[cold]
pub(crate) fn no_commit_timestamp() -> Error {
    Error::invalid_argument("Must assign a commit timestamp")
}

/// Memtables do not reach back to `since`.
#[cold]
pub(crate) fn history_too_short(since: u64, reaches_back_to: Option<u64>) -> Error {
    Error::new(
        ErrorKind::TryAgain,
        match reaches_back_to {
            None => format!(
                "Transaction could not check for conflicts as the MemTable does not contain a long \
                 enough history to check write at SequenceNumber: : {since}"
            ),
            Some(earliest) => format!(
                "Transaction could not check for conflicts for operation at SequenceNumber {since} as \
                 the MemTable only contains changes newer than SequenceNumber {earliest}.  Increasing \
                 the value of the max_write_buffer_size_to_maintain option could reduce the frequency \
                 of this error."
            ),
        },
    )
}
