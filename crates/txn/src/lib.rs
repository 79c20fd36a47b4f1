//! Transactions on an Esker database: the indexed batch, optimistic and pessimistic transactions.
//!
//! [`IndexedBatch`] is a write batch that can be read, alone or over a database (RocksDB's
//! `WriteBatchWithIndex`). [`OptimisticTransactionDb`] begins transactions that look for conflicts
//! when they commit; [`TransactionDb`] begins transactions that lock each key they touch. Both give
//! a [`Transaction`]. Everything here uses the engine's public API.
//!
//! ```
//! # fn main() -> esker::Result<()> {
//! # let dir = tempfile::tempdir().expect("a directory");
//! use esker_txn::OptimisticTransactionDb;
//!
//! let options = esker::Options::new().create_if_missing(true);
//! let db = OptimisticTransactionDb::open(dir.path(), options)?;
//! let mut first = db.begin();
//! let mut second = db.begin();
//! first.put("k", "1")?;
//! second.put("k", "2")?;
//! first.commit()?;
//! assert_eq!(second.commit().expect_err("a conflict").kind(), esker::ErrorKind::Busy);
//! assert_eq!(db.get("k")?.as_deref(), Some(&b"1"[..]));
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod errors;
mod indexed;
mod locked_writes;
mod optimistic;
mod optimistic_db;
mod pessimistic;
mod ranks;
mod retry;
mod state;
mod touch;
mod tracked;
mod transaction;
mod transaction_db;

pub use indexed::{
    BatchCursor, BatchEntry, EntryKind, IndexedBatch, MergedEntries, MergedIterator,
};
pub use optimistic::LockBuckets;
pub use optimistic_db::{
    OptimisticTransactionDb, OptimisticTransactionDbOptions, OptimisticTransactionOptions,
    ValidatePolicy,
};
pub use pessimistic::{
    DeadlockInfo, DeadlockPath, KeyLock, LockTimeout, LockWait, LockWaitEnd, LockWaitHook,
    TransactionDbOptions, TransactionOptions, WritePolicy,
};
pub use retry::RetryOptions;
pub use state::TransactionState;
pub use transaction::Transaction;
pub use transaction_db::TransactionDb;
