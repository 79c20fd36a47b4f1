//! A transaction of the engine, with a lock around it and its end.

use crate::calls::{lock, released};
use crate::database::Database;
use crate::errors::Failure;
use crate::forks::{self, HeldValue};
use esker_txn::Transaction;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex};

/// A transaction until it has ended.
#[derive(Debug)]
pub(crate) struct Txn {
    cell: Mutex<Option<HeldValue<Transaction>>>,
    database: Arc<Database>,
}

/// The text of the exception of a transaction that is over.
const ENDED: &str = "the transaction has ended";

impl Txn {
    pub(crate) fn new(transaction: Transaction, database: Arc<Database>) -> Arc<Self> {
        Arc::new(Txn {
            cell: Mutex::new(Some(HeldValue::new(transaction))),
            database,
        })
    }

    /// Calls `work` with the transaction, after other threads that use it.
    pub(crate) fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Transaction) -> esker::Result<R> + Send,
    ) -> PyResult<R> {
        let _open = self.database.open()?;
        released(py, || {
            let mut cell = lock(&self.cell)?;
            let transaction = cell.as_mut().ok_or(Failure::Closed(ENDED))?;
            work(transaction.get_mut()).map_err(Failure::from)
        })
    }

    /// As [`Txn::with`]; when that succeeds, the transaction has ended.
    pub(crate) fn end_with(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Transaction) -> esker::Result<()> + Send,
    ) -> PyResult<()> {
        let _open = self.database.open()?;
        released(py, || {
            let mut cell = lock(&self.cell)?;
            let transaction = cell.as_mut().ok_or(Failure::Closed(ENDED))?;
            work(transaction.get_mut())?;
            *cell = None;
            Ok(())
        })
    }

    /// Ends it without a word; what it wrote is gone, unless it was prepared.
    pub(crate) fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        forks::check()?;
        released(py, || {
            *lock(&self.cell)? = None;
            Ok(())
        })
    }

    pub(crate) fn is_over(&self, py: Python<'_>) -> PyResult<bool> {
        released(py, || Ok(lock(&self.cell)?.is_none()))
    }
}
