//! Arguments of Python's calls: keys, values and families.

use crate::errors::wrong_type;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView};

/// The bytes of a key or a value. Those of a `bytes` object stay where they are.
#[derive(Debug)]
pub(crate) enum Bytes<'a> {
    /// In an object that does not change.
    Borrowed(&'a [u8]),
    /// Copied from one that may.
    Owned(Vec<u8>),
}

impl Bytes<'_> {
    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Borrowed(bytes) => bytes,
            Bytes::Owned(bytes) => bytes,
        }
    }

    pub(crate) fn to_vec(&self) -> Vec<u8> {
        self.as_slice().to_vec()
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Bytes<'a> {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<&'a [u8]>() {
            Ok(bytes) => Ok(Bytes::Borrowed(bytes)),
            Err(_) => copied(object).map(Bytes::Owned),
        }
    }
}

/// The bytes of another object than `bytes`.
#[cold]
fn copied(object: Borrowed<'_, '_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(bytes.to_vec());
    }
    if object.cast::<PyMemoryView>().is_ok() {
        let bytes = object.call_method0("tobytes")?;
        return Ok(bytes.cast::<PyBytes>()?.as_bytes().to_vec());
    }
    Err(wrong_type("a key or a value", "bytes-like", &object))
}

/// The objects of an iterable.
pub(crate) fn each<'py>(objects: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    objects.try_iter()?.collect()
}

/// Keys, borrowed from objects that are kept.
pub(crate) fn keys<'a>(objects: &'a [Bound<'_, PyAny>]) -> PyResult<Vec<Bytes<'a>>> {
    objects
        .iter()
        .map(|object| Bytes::extract(object.as_borrowed()))
        .collect()
}

/// Pairs of a mapping (what has `items`), or of an iterable of pairs.
pub(crate) fn pairs<'py>(
    given: &Bound<'py, PyAny>,
) -> PyResult<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    let items = if given.hasattr("items")? {
        given.call_method0("items")?
    } else {
        given.clone()
    };
    items.try_iter()?.map(|pair| pair?.extract()).collect()
}
