//! A column family of a database.

use crate::arguments::Bytes;
use crate::calls::released;
use crate::errors::Failure;
use crate::forks::HeldValue;
use crate::options::{self, NamedOptions};
use crate::read_source::ReadSource;
use crate::reader::Reader;
use crate::writer::Writer;
use esker::options::OptionSet;
use esker::options::nested_value::print_nested;
use esker::{FamilyHandle, IngestOptions, SizeOptions};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;

/// A column family.
#[pyclass(module = "esker", frozen, subclass, extends = Writer)]
pub(crate) struct Family;

impl Family {
    /// Returns the initializer of an object of this class.
    pub(crate) fn of(source: ReadSource) -> PyClassInitializer<Family> {
        PyClassInitializer::from(Reader { source })
            .add_subclass(Writer)
            .add_subclass(Family)
    }

    pub(crate) fn new(
        py: Python<'_>,
        source: &ReadSource,
        family: FamilyHandle,
    ) -> PyResult<Py<Family>> {
        let family = Some(Arc::new(HeldValue::new(family)));
        Py::new(py, Family::of(source.in_family(family)))
    }
}

/// Where an object of this class reads.
pub(crate) fn source<'a>(family: &'a Bound<'_, Family>) -> &'a ReadSource {
    &family.as_super().as_super().get().source
}

/// Options as a dictionary of texts.
pub(crate) fn shown<'py, S: OptionSet>(
    py: Python<'py>,
    options: &S,
) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    for entry in S::entries() {
        out.set_item(entry.info.name, (entry.get)(options))?;
    }
    Ok(out)
}

/// Names and texts, borrowed.
pub(crate) fn borrowed(texts: &[(String, String)]) -> Vec<(&str, &str)> {
    texts
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect()
}

#[pymethods]
impl Family {
    /// The family's name.
    #[getter]
    fn name(slf: &Bound<'_, Self>) -> PyResult<String> {
        let source = source(slf);
        let open = source.database.open()?;
        Ok(source.family(&open).name().to_owned())
    }

    /// The family's number.
    #[getter]
    fn id(slf: &Bound<'_, Self>) -> PyResult<u32> {
        let source = source(slf);
        let open = source.database.open()?;
        Ok(source.family(&open).id())
    }

    /// Puts what is in memory into tables.
    #[pyo3(signature = (**options))]
    fn flush(slf: &Bound<'_, Self>, options: Option<&NamedOptions<'_>>) -> PyResult<()> {
        let options = options::flush(options)?;
        let source = source(slf);
        let open = source.database.open()?;
        let (db, family) = (open.db(), source.family(&open));
        released(slf.py(), || {
            db.flush_cf(family, &options).map_err(Failure::from)
        })
    }

    /// Compacts the keys from `start` to `stop`, both included; all of them where neither is given.
    #[pyo3(signature = (start=None, stop=None, **options))]
    fn compact_range(
        slf: &Bound<'_, Self>,
        start: Option<Bytes<'_>>,
        stop: Option<Bytes<'_>>,
        options: Option<&NamedOptions<'_>>,
    ) -> PyResult<()> {
        let options = options::compact_range(options)?;
        let source = source(slf);
        let open = source.database.open()?;
        let (db, family) = (open.db(), source.family(&open));
        let start = start.as_ref().map(Bytes::as_slice);
        let stop = stop.as_ref().map(Bytes::as_slice);
        released(slf.py(), || {
            db.compact_range_opt(family, start, stop, &options)
                .map_err(Failure::from)
        })
    }

    /// A property by RocksDB's name; None for a name that is not known.
    fn property(slf: &Bound<'_, Self>, name: &str) -> PyResult<Option<String>> {
        let source = source(slf);
        let open = source.database.open()?;
        let (db, family) = (open.db(), source.family(&open));
        released(slf.py(), || Ok(db.property_cf(family, name)))
    }

    /// A property that is a number.
    fn int_property(slf: &Bound<'_, Self>, name: &str) -> PyResult<Option<u64>> {
        let source = source(slf);
        let open = source.database.open()?;
        let (db, family) = (open.db(), source.family(&open));
        released(slf.py(), || Ok(db.int_property(family, name)))
    }

    /// About how many bytes the keys from `start` to before `stop` take.
    #[pyo3(signature = (start, stop, *, include_memtables=false, include_files=true))]
    fn approximate_size(
        slf: &Bound<'_, Self>,
        start: Bytes<'_>,
        stop: Bytes<'_>,
        include_memtables: bool,
        include_files: bool,
    ) -> PyResult<u64> {
        let mut options = SizeOptions::default();
        options.include_memtables = include_memtables;
        options.include_files = include_files;
        let source = source(slf);
        let open = source.database.open()?;
        let (db, family) = (open.db(), source.family(&open));
        let range = [(start.as_slice(), stop.as_slice())];
        released(slf.py(), || {
            let sizes = db.approximate_sizes_opt(family, &range, &options)?;
            Ok(sizes.first().copied().unwrap_or_default())
        })
    }

    /// Tells by memory and filters alone whether a key may exist; False is certain.
    fn key_may_exist(slf: &Bound<'_, Self>, key: Bytes<'_>) -> PyResult<bool> {
        let source = source(slf);
        let open = source.database.open()?;
        let (db, family, key) = (open.db(), source.family(&open), key.as_slice());
        released(slf.py(), || Ok(db.key_may_exist(family, key)))
    }

    /// The family's options, by RocksDB's names, as text.
    fn options<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let source = source(slf);
        let open = source.database.open()?;
        let family = source.family(&open);
        let options = released(slf.py(), || Ok(family.options()))?;
        let out = shown(slf.py(), &options)?;
        out.set_item("block_based_table_factory", print_nested(&options.table))?;
        Ok(out)
    }

    /// Changes options of the family, all or none.
    #[pyo3(signature = (**options))]
    fn set_options(slf: &Bound<'_, Self>, options: Option<&NamedOptions<'_>>) -> PyResult<()> {
        let texts = options.map(options::texts).transpose()?.unwrap_or_default();
        let source = source(slf);
        let open = source.database.open()?;
        let (db, family) = (open.db(), source.family(&open));
        released(slf.py(), || {
            db.set_options(family, &borrowed(&texts))
                .map_err(Failure::from)
        })
    }

    /// Takes table files that were made elsewhere.
    #[pyo3(signature = (files, *, move_files=false))]
    fn ingest(slf: &Bound<'_, Self>, files: Vec<PathBuf>, move_files: bool) -> PyResult<()> {
        let mut options = IngestOptions::default();
        options.move_files = move_files;
        let source = source(slf);
        let open = source.database.open()?;
        let (db, family) = (open.db(), source.family(&open));
        released(slf.py(), || {
            db.ingest(family, &files, &options).map_err(Failure::from)
        })
    }
}
