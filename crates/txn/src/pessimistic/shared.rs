//! State that the transactions of one database share.

use super::locks::LockTable;
use super::options::TransactionDbOptions;
use esker::{Db, Error, Result, WriteBatch};
use esker_sync::Mutex;
use std::collections::HashMap;

/// State that the transactions of one database share.
#[derive(Debug)]
pub(crate) struct TransactionDbState {
    pub(crate) db: Db,
    pub(crate) options: TransactionDbOptions,
    pub(crate) locks: LockTable,
    pub(crate) names: Mutex<HashMap<Vec<u8>, u64>>,
    /// Transactions that were prepared before the database was opened; their keys are locked.
    pub(crate) found: Mutex<Vec<PreparedTransaction>>,
}

/// A transaction that was prepared before the database was opened.
#[derive(Debug)]
pub(crate) struct PreparedTransaction {
    pub(crate) name: Vec<u8>,
    pub(crate) batch: WriteBatch,
    pub(crate) id: u64,
}

impl TransactionDbState {
    pub(crate) fn register(&self, name: &[u8], id: u64) -> Result<()> {
        let mut names = self.names.lock();
        if names.contains_key(name) {
            return Err(Error::invalid_argument(format!(
                "Duplicate txn name {}",
                String::from_utf8_lossy(name)
            )));
        }
        names.insert(name.to_vec(), id);
        Ok(())
    }

    pub(crate) fn unregister(&self, name: &[u8]) {
        self.names.lock().remove(name);
    }
}
