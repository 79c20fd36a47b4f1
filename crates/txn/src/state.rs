//! How far a transaction has come: a number that other transactions may look at, and change to take
//! expired locks.

/// How far a transaction has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TransactionState {
    /// It takes changes.
    Started = 0,
    /// It is being prepared.
    AwaitingPrepare = 1,
    /// It is prepared.
    Prepared = 2,
    /// It is being committed.
    AwaitingCommit = 3,
    /// It is committed.
    Committed = 4,
    /// It is being rolled back.
    AwaitingRollback = 5,
    /// It was rolled back after it had been prepared.
    RolledBack = 6,
    /// It expired, and another transaction took a lock from it.
    LocksStolen = 7,
}

impl TransactionState {
    pub(crate) fn from_u8(n: u8) -> TransactionState {
        use TransactionState::*;
        [
            Started,
            AwaitingPrepare,
            Prepared,
            AwaitingCommit,
            Committed,
            AwaitingRollback,
            RolledBack,
            LocksStolen,
        ]
        .into_iter()
        .find(|s| *s as u8 == n)
        .unwrap_or(LocksStolen)
    }
}
