//! Databases with transactions, of both kinds.

use crate::calls::released;
use crate::database::Engine;
use crate::db::{Db, database};
use crate::errors::{Failure, invalid};
use crate::opening::OpenArguments;
use crate::options::{self, NamedOptions};
use crate::transaction::Transaction;
use esker_txn::OptimisticTransactionOptions;
use pyo3::prelude::*;
use std::path::PathBuf;

/// A database whose transactions lock the keys that they touch.
#[pyclass(name = "TransactionDB", module = "esker", frozen, extends = Db)]
pub(crate) struct TransactionDb;

/// A database whose transactions look for conflicts when they commit.
#[pyclass(name = "OptimisticTransactionDB", module = "esker", frozen, extends = Db)]
pub(crate) struct OptimisticTransactionDb;

#[pymethods]
impl TransactionDb {
    #[new]
    #[pyo3(signature = (
        path, options=None, *, families=None, transaction_db_options=None, **named
    ))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        options: Option<&NamedOptions<'_>>,
        families: Option<&Bound<'_, PyAny>>,
        transaction_db_options: Option<&NamedOptions<'_>>,
        named: Option<&NamedOptions<'_>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let arguments = OpenArguments::read(path, options, families, named)?;
        let database = arguments.pessimistic(py, transaction_db_options)?;
        Ok(Db::of(database).add_subclass(TransactionDb))
    }

    /// Begins a transaction.
    #[pyo3(signature = (**options))]
    fn begin(
        slf: &Bound<'_, Self>,
        options: Option<&NamedOptions<'_>>,
    ) -> PyResult<Py<Transaction>> {
        let (options, writes) = options::transaction(options)?;
        let database = database(slf.as_super());
        let open = database.open()?;
        let Engine::Pessimistic(db) = &open.engine else {
            return Err(invalid(slf.py(), "the database has no such transactions"));
        };
        let begun = released(slf.py(), || Ok(db.begin_opt(writes, &options)))?;
        Transaction::new(slf.py(), begun, database)
    }

    /// The transactions that were prepared when the database was closed last.
    fn prepared_transactions(slf: &Bound<'_, Self>) -> PyResult<Vec<Py<Transaction>>> {
        let database = database(slf.as_super());
        let open = database.open()?;
        let Engine::Pessimistic(db) = &open.engine else {
            return Err(invalid(slf.py(), "the database has no such transactions"));
        };
        let found = released(slf.py(), || {
            db.prepared_transactions().map_err(Failure::from)
        })?;
        found
            .into_iter()
            .map(|transaction| Transaction::new(slf.py(), transaction, database))
            .collect()
    }
}

#[pymethods]
impl OptimisticTransactionDb {
    #[new]
    #[pyo3(signature = (path, options=None, *, families=None, **named))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        options: Option<&NamedOptions<'_>>,
        families: Option<&Bound<'_, PyAny>>,
        named: Option<&NamedOptions<'_>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let arguments = OpenArguments::read(path, options, families, named)?;
        let database = arguments.optimistic(py)?;
        Ok(Db::of(database).add_subclass(OptimisticTransactionDb))
    }

    /// Begins a transaction.
    #[pyo3(signature = (*, set_snapshot=false, **options))]
    fn begin(
        slf: &Bound<'_, Self>,
        set_snapshot: bool,
        options: Option<&NamedOptions<'_>>,
    ) -> PyResult<Py<Transaction>> {
        let writes = options::write(options)?;
        let options = OptimisticTransactionOptions { set_snapshot };
        let database = database(slf.as_super());
        let open = database.open()?;
        let Engine::Optimistic(db) = &open.engine else {
            return Err(invalid(slf.py(), "the database has no such transactions"));
        };
        let begun = released(slf.py(), || Ok(db.begin_opt(writes, options)))?;
        Transaction::new(slf.py(), begun, database)
    }
}
