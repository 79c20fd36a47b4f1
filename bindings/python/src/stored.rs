//! Functions on the directory of a database that is not open.

use crate::opening::on_directory;
use crate::options::NamedOptions;
use pyo3::prelude::*;
use std::path::PathBuf;

/// The names of the column families of a database.
#[pyfunction]
#[pyo3(signature = (path, **options))]
fn list_column_families(
    py: Python<'_>,
    path: PathBuf,
    options: Option<&NamedOptions<'_>>,
) -> PyResult<Vec<String>> {
    on_directory(py, options, |options| {
        esker::Db::list_families(path, &options)
    })
}

/// Deletes a database, and nothing else that is in its directory.
#[pyfunction]
#[pyo3(signature = (path, **options))]
fn destroy_db(py: Python<'_>, path: PathBuf, options: Option<&NamedOptions<'_>>) -> PyResult<()> {
    on_directory(py, options, |options| {
        esker::Db::destroy(path, &options).map(drop)
    })
}

/// Makes a damaged database one that can be opened, with what can be read.
#[pyfunction]
#[pyo3(signature = (path, **options))]
fn repair_db(py: Python<'_>, path: PathBuf, options: Option<&NamedOptions<'_>>) -> PyResult<()> {
    on_directory(py, options, |options| {
        esker::Db::repair(path, &options).map(drop)
    })
}

/// Panics as a defect of the engine would, for the tests.
#[cfg(debug_assertions)]
#[pyfunction]
fn _panic(py: Python<'_>) -> PyResult<()> {
    crate::calls::released(py, || panic!("on purpose"))
}

/// Adds the functions to `module`.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    #[cfg(debug_assertions)]
    module.add_function(wrap_pyfunction!(_panic, module)?)?;
    module.add_function(wrap_pyfunction!(list_column_families, module)?)?;
    module.add_function(wrap_pyfunction!(destroy_db, module)?)?;
    module.add_function(wrap_pyfunction!(repair_db, module)?)
}
