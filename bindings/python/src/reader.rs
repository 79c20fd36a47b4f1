//! Reading as from a mapping.

use crate::arguments::{Bytes, each, keys};
use crate::bounds::Bounds;
use crate::iterator::Iterator;
use crate::options::{self, NamedOptions};
use crate::read_source::ReadSource;
use crate::scan::{EntryPart, Scan};
use esker::{PinnedValue, ReadOptions};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::sync::LazyLock;

/// Options of reads that name none.
static USUAL: LazyLock<ReadOptions> = LazyLock::new(ReadOptions::default);

/// One family, for reading.
#[pyclass(module = "esker", frozen, subclass, mapping)]
pub(crate) struct Reader {
    pub(crate) source: ReadSource,
}

impl Reader {
    fn find(
        &self,
        py: Python<'_>,
        key: &Bytes<'_>,
        given: Option<&NamedOptions<'_>>,
    ) -> PyResult<Option<PinnedValue>> {
        match given {
            None => self.source.get(py, key.as_slice(), &USUAL),
            Some(_) => self.source.get(py, key.as_slice(), &options::read(given)?),
        }
    }

    fn scan(
        &self,
        py: Python<'_>,
        part: EntryPart,
        bounds: &Bounds<'_>,
        is_reverse: bool,
        given: Option<&NamedOptions<'_>>,
    ) -> PyResult<Scan> {
        let walk = self.source.walk(py, bounds, options::read(given)?)?;
        let database = self.source.database.clone();
        Ok(Scan::new(walk, database, part, is_reverse))
    }
}

#[pymethods]
impl Reader {
    fn __getitem__<'py>(&self, py: Python<'py>, key: Bytes<'_>) -> PyResult<Bound<'py, PyBytes>> {
        match self.find(py, &key, None)? {
            Some(value) => Ok(PyBytes::new(py, &value)),
            None => Err(PyKeyError::new_err(
                PyBytes::new(py, key.as_slice()).unbind(),
            )),
        }
    }

    fn __contains__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<bool> {
        Ok(self.find(py, &key, None)?.is_some())
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Scan> {
        let bounds = Bounds {
            start: None,
            stop: None,
            prefix: None,
        };
        self.scan(py, EntryPart::Key, &bounds, false, None)
    }

    /// The value of a key; `default` where there is none.
    #[pyo3(signature = (key, default=None, **options))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Bytes<'_>,
        default: Option<Bound<'py, PyAny>>,
        options: Option<&NamedOptions<'py>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(match self.find(py, &key, options)? {
            Some(value) => Some(PyBytes::new(py, &value).into_any()),
            None => default,
        })
    }

    /// The values of many keys, in their order; None for a key that is not there.
    #[pyo3(signature = (keys, **options))]
    fn multi_get<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = each)] keys: Vec<Bound<'py, PyAny>>,
        options: Option<&NamedOptions<'py>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let borrowed = self::keys(&keys)?;
        let borrowed: Vec<&[u8]> = borrowed.iter().map(Bytes::as_slice).collect();
        let found = self
            .source
            .multi_get(py, &borrowed, &options::read(options)?)?;
        let found = found
            .iter()
            .map(|value| value.as_ref().map(|value| PyBytes::new(py, value)));
        PyList::new(py, found)
    }

    /// The keys in order.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false, **options))]
    fn keys(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
        reverse: bool,
        options: Option<&NamedOptions<'_>>,
    ) -> PyResult<Scan> {
        let bounds = Bounds {
            start,
            stop,
            prefix,
        };
        self.scan(py, EntryPart::Key, &bounds, reverse, options)
    }

    /// The values in the order of their keys.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false, **options))]
    fn values(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
        reverse: bool,
        options: Option<&NamedOptions<'_>>,
    ) -> PyResult<Scan> {
        let bounds = Bounds {
            start,
            stop,
            prefix,
        };
        self.scan(py, EntryPart::Value, &bounds, reverse, options)
    }

    /// Pairs of key and value, in the order of keys.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, reverse=false, **options))]
    fn items(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
        reverse: bool,
        options: Option<&NamedOptions<'_>>,
    ) -> PyResult<Scan> {
        let bounds = Bounds {
            start,
            stop,
            prefix,
        };
        self.scan(py, EntryPart::Both, &bounds, reverse, options)
    }

    /// RocksDB's iterator: not on a key until a seek places it.
    #[pyo3(signature = (start=None, stop=None, *, prefix=None, **options))]
    fn iterator(
        &self,
        py: Python<'_>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        prefix: Option<Bytes<'_>>,
        options: Option<&NamedOptions<'_>>,
    ) -> PyResult<Iterator> {
        let bounds = Bounds {
            start,
            stop,
            prefix,
        };
        let walk = self.source.walk(py, &bounds, options::read(options)?)?;
        Ok(Iterator::new(walk, self.source.database.clone()))
    }
}
