//! A transaction: a mapping whose changes are written together, or not at all.

use crate::arguments::Bytes;
use crate::database::Database;
use crate::errors::invalid;
use crate::names::FamilyName;
use crate::options::{self, NamedOptions};
use crate::read_source::{HeldSnapshot, ReadSource};
use crate::reader::Reader;
use crate::txn::Txn;
use crate::writer::Writer;
use esker_txn::TransactionState;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::sync::Arc;

/// A transaction, until it is committed or rolled back.
#[pyclass(module = "esker", frozen, extends = Writer)]
pub(crate) struct Transaction {
    txn: Arc<Txn>,
}

impl Transaction {
    pub(crate) fn new(
        py: Python<'_>,
        transaction: esker_txn::Transaction,
        database: &Arc<Database>,
    ) -> PyResult<Py<Transaction>> {
        let txn = Txn::new(transaction, Arc::clone(database));
        let source = ReadSource {
            transaction: Some(Arc::clone(&txn)),
            ..ReadSource::of(Arc::clone(database))
        };
        let writer = PyClassInitializer::from(Reader { source }).add_subclass(Writer);
        Py::new(py, writer.add_subclass(Transaction { txn }))
    }
}

fn source<'a>(transaction: &'a Bound<'_, Transaction>) -> &'a ReadSource {
    &transaction.as_super().as_super().get().source
}

#[pymethods]
impl Transaction {
    /// Another family within the transaction.
    fn family(slf: &Bound<'_, Self>, family: FamilyName<'_>) -> PyResult<Py<Writer>> {
        let source = source(slf);
        let family = family.hold(slf.py(), &source.database)?;
        let source = source.in_family(family);
        let reader = PyClassInitializer::from(Reader { source });
        Py::new(slf.py(), reader.add_subclass(Writer))
    }

    /// Reads a key that the transaction depends on.
    #[pyo3(signature = (
        key, default=None, *, family=None, exclusive=true, validate=true, **options
    ))]
    fn get_for_update<'py>(
        slf: &Bound<'py, Self>,
        key: Bytes<'_>,
        default: Option<Bound<'py, PyAny>>,
        family: Option<FamilyName<'_>>,
        exclusive: bool,
        validate: bool,
        options: Option<&NamedOptions<'py>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, database) = (slf.py(), &source(slf).database);
        let options = options::read(options)?;
        let open = database.open()?;
        let family = match family {
            None => open.default.clone(),
            Some(family) => family.find(py, database, &open)?,
        };
        let key = key.as_slice();
        let found = slf.get().txn.with(py, |txn| {
            txn.get_for_update_opt(&family, key, &options, None, exclusive, validate)
        })?;
        Ok(match found {
            Some(value) => Some(PyBytes::new(py, &value).into_any()),
            None => default,
        })
    }

    /// Takes back one `get_for_update` of a key.
    #[pyo3(signature = (key, *, family=None))]
    fn undo_get_for_update(
        slf: &Bound<'_, Self>,
        key: Bytes<'_>,
        family: Option<FamilyName<'_>>,
    ) -> PyResult<()> {
        let (py, database) = (slf.py(), &source(slf).database);
        let open = database.open()?;
        let family = match family {
            None => open.default.clone(),
            Some(family) => family.find(py, database, &open)?,
        };
        let key = key.as_slice();
        slf.get().txn.with(py, |txn| {
            txn.undo_get_for_update(&family, key);
            Ok(())
        })
    }

    /// Writes the changes, all or nothing, and ends. After a `BusyError` or a `TryAgainError` the
    /// transaction has not ended: roll it back and begin again.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.txn.end_with(py, esker_txn::Transaction::commit)
    }

    /// Undoes everything, and ends.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        self.txn.end_with(py, esker_txn::Transaction::rollback)
    }

    /// The first phase of a commit in two phases: the changes survive the process.
    fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        self.txn.with(py, esker_txn::Transaction::prepare)
    }

    /// Names it, for `prepare`.
    fn set_name(&self, py: Python<'_>, name: Bytes<'_>) -> PyResult<()> {
        let name = name.as_slice();
        self.txn.with(py, |txn| txn.set_name(name))
    }

    /// The name; empty without one.
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let name = self.txn.with(py, |txn| Ok(txn.name().to_vec()))?;
        Ok(PyBytes::new(py, &name))
    }

    /// Takes a snapshot: from here on, a key that others write is a conflict.
    fn set_snapshot(&self, py: Python<'_>) -> PyResult<()> {
        self.txn.with(py, |txn| {
            txn.set_snapshot();
            Ok(())
        })
    }

    /// Gives the snapshot back.
    fn clear_snapshot(&self, py: Python<'_>) -> PyResult<()> {
        self.txn.with(py, |txn| {
            txn.clear_snapshot();
            Ok(())
        })
    }

    /// The transaction's changes over its snapshot.
    fn at_snapshot(slf: &Bound<'_, Self>) -> PyResult<Py<Reader>> {
        let py = slf.py();
        let snapshot = slf.get().txn.with(py, |txn| Ok(txn.snapshot().cloned()))?;
        let Some(snapshot) = snapshot else {
            return Err(invalid(py, "the transaction has no snapshot"));
        };
        let source = ReadSource {
            snapshot: Some(HeldSnapshot::new(snapshot)),
            ..source(slf).clone()
        };
        Py::new(py, Reader { source })
    }

    /// Remembers this state.
    fn set_save_point(&self, py: Python<'_>) -> PyResult<()> {
        self.txn.with(py, |txn| {
            txn.set_save_point();
            Ok(())
        })
    }

    /// Undoes what came after the last save point, and forgets it.
    fn rollback_to_save_point(&self, py: Python<'_>) -> PyResult<()> {
        self.txn
            .with(py, esker_txn::Transaction::rollback_to_save_point)
    }

    /// Forgets the last save point; what came after it stays.
    fn pop_save_point(&self, py: Python<'_>) -> PyResult<()> {
        self.txn.with(py, esker_txn::Transaction::pop_save_point)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Commits; rolls back after an exception, and when the commit fails.
    #[pyo3(signature = (*raised))]
    fn __exit__(&self, py: Python<'_>, raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        if self.txn.is_over(py)? {
            return Ok(());
        }
        let is_failing = raised.get_item(0).is_ok_and(|kind| !kind.is_none());
        let ended = if is_failing {
            self.rollback(py)
        } else {
            self.commit(py)
        };
        if ended.is_err() {
            self.undo(py)?;
        }
        ended
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let state = if self.txn.is_over(py)? {
            "ended".to_owned()
        } else {
            let state = self.txn.with(py, |txn| Ok(txn.state()))?;
            format!("{state:?}").to_lowercase()
        };
        Ok(format!("<esker.Transaction {state}>"))
    }
}

impl Transaction {
    /// After a commit or a rollback that failed. A transaction that is prepared stays so.
    fn undo(&self, py: Python<'_>) -> PyResult<()> {
        let is_prepared =
            |txn: &mut esker_txn::Transaction| Ok(txn.state() == TransactionState::Prepared);
        match self.txn.with(py, is_prepared) {
            Ok(true) => Ok(()),
            _ => self.txn.abandon(py),
        }
    }
}
