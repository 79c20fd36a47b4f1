//! A snapshot: the state of a database that stays readable.

use crate::calls::released;
use crate::names::FamilyName;
use crate::read_source::{HeldSnapshot, ReadSource};
use crate::reader::Reader;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// A state of a database, until it is released.
#[pyclass(module = "esker", frozen, extends = Reader)]
pub(crate) struct Snapshot {
    held: Arc<HeldSnapshot>,
}

impl Snapshot {
    pub(crate) fn take(py: Python<'_>, source: &ReadSource) -> PyResult<Py<Snapshot>> {
        let open = source.database.open()?;
        let db = open.db();
        let held = released(py, || Ok(HeldSnapshot::new(db.snapshot())))?;
        let source = ReadSource {
            snapshot: Some(Arc::clone(&held)),
            ..source.clone()
        };
        let reader = PyClassInitializer::from(Reader { source });
        Py::new(py, reader.add_subclass(Snapshot { held }))
    }
}

#[pymethods]
impl Snapshot {
    /// This state of another family.
    fn family(slf: &Bound<'_, Self>, family: FamilyName<'_>) -> PyResult<Py<Reader>> {
        let source = &slf.as_super().get().source;
        let family = family.hold(slf.py(), &source.database)?;
        let source = source.in_family(family);
        Py::new(slf.py(), Reader { source })
    }

    /// The sequence number of the newest write that it shows.
    #[getter]
    fn sequence_number(slf: &Bound<'_, Self>) -> PyResult<u64> {
        let _open = slf.as_super().get().source.database.open()?;
        Ok(slf.get().held.snapshot.sequence())
    }

    /// Gives the state back; again, it does nothing.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        released(py, || {
            self.held.release();
            Ok(())
        })
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*raised))]
    fn __exit__(&self, py: Python<'_>, raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        let _ = raised;
        self.release(py)
    }
}
