//! RocksDB's iterator: placed by seeks, moved in both directions.

use crate::arguments::Bytes;
use crate::calls::{lock, released};
use crate::database::Database;
use crate::errors::{Failure, invalid};
use crate::forks::HeldValue;
use crate::walk::Walk;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::sync::{Arc, Mutex};

/// A cursor over a part of a family.
#[pyclass(module = "esker", frozen)]
pub(crate) struct Iterator {
    /// `None` where no key can be, and after `close`.
    walk: Mutex<Option<HeldValue<Walk>>>,
    database: Arc<Database>,
    is_empty: bool,
}

type Entry<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

impl Iterator {
    pub(crate) fn new(walk: Option<HeldValue<Walk>>, database: Arc<Database>) -> Self {
        Iterator {
            is_empty: walk.is_none(),
            walk: Mutex::new(walk),
            database,
        }
    }

    fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(Option<&mut Walk>) -> esker::Result<R> + Send,
    ) -> PyResult<R> {
        let _open = self.database.open()?;
        released(py, || {
            let mut walk = lock(&self.walk)?;
            let walk = walk.as_mut().map(HeldValue::get_mut);
            if walk.is_none() && !self.is_empty {
                return Err(Failure::Closed("the iterator is closed"));
            }
            work(walk).map_err(Failure::from)
        })
    }

    /// Moves, and raises what went wrong.
    fn place(&self, py: Python<'_>, place: impl FnOnce(&mut Walk) + Send) -> PyResult<()> {
        self.with(py, |walk| match walk {
            None => Ok(()),
            Some(walk) => {
                place(walk);
                walk.status()
            }
        })
    }
}

#[pymethods]
impl Iterator {
    /// Goes to the first key.
    fn seek_to_first(&self, py: Python<'_>) -> PyResult<()> {
        self.place(py, Walk::seek_to_first)
    }

    /// Goes to the last key.
    fn seek_to_last(&self, py: Python<'_>) -> PyResult<()> {
        self.place(py, Walk::seek_to_last)
    }

    /// Goes to the first key at or after the given one.
    fn seek(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        self.place(py, |walk| walk.seek(key.as_slice()))
    }

    /// Goes to the last key at or before the given one.
    fn seek_for_prev(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        self.place(py, |walk| walk.seek_for_prev(key.as_slice()))
    }

    /// Goes to the next key. Does nothing when not valid.
    fn next(&self, py: Python<'_>) -> PyResult<()> {
        self.place(py, |walk| walk.step(false))
    }

    /// Goes to the previous key. Does nothing when not valid.
    fn prev(&self, py: Python<'_>) -> PyResult<()> {
        self.place(py, |walk| walk.step(true))
    }

    /// Tells whether it is on a key.
    fn valid(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |walk| {
            Ok(walk.is_some_and(|walk| walk.entry().is_some()))
        })
    }

    /// The key.
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(self.item(py)?.0)
    }

    /// The value.
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(self.item(py)?.1)
    }

    /// Key and value.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Entry<'py>> {
        let entry = self.with(py, |walk| {
            let entry = walk.and_then(|walk| walk.entry().map(|(k, v)| (k.to_vec(), v.to_vec())));
            Ok(entry)
        })?;
        let (key, value) = entry.ok_or_else(|| invalid(py, "the iterator is not on a key"))?;
        Ok((PyBytes::new(py, &key), PyBytes::new(py, &value)))
    }

    /// Lets go of what it reads.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        released(py, || {
            *lock(&self.walk)? = None;
            Ok(())
        })
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*raised))]
    fn __exit__(&self, py: Python<'_>, raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        let _ = raised;
        self.close(py)
    }
}
