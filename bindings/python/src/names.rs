//! Families as arguments: by name, or as an object.

use crate::database::{Database, OpenDatabase};
use crate::errors::{invalid, of_engine, wrong_type};
use crate::family::{self, Family};
use crate::forks::HeldValue;
use esker::{Error, FamilyHandle};
use pyo3::prelude::*;
use std::sync::Arc;

/// An argument that names a family.
#[derive(Debug)]
pub(crate) enum FamilyName<'py> {
    Name(String),
    Object(Bound<'py, Family>),
}

impl<'py> FromPyObject<'_, 'py> for FamilyName<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(family) = object.cast::<Family>() {
            return Ok(FamilyName::Object(family.to_owned()));
        }
        let name = object.extract::<String>();
        name.map(FamilyName::Name)
            .map_err(|_| wrong_type("a family", "a name or a Family", &object))
    }
}

impl FamilyName<'_> {
    /// The family in `database`; an exception where it is another's.
    pub(crate) fn find(
        &self,
        py: Python<'_>,
        database: &Arc<Database>,
        open: &OpenDatabase,
    ) -> PyResult<FamilyHandle> {
        match self {
            FamilyName::Name(name) => {
                let family = open.db().family(name);
                family.map(|f| f.handle().clone()).ok_or_else(|| {
                    let error = Error::not_found(format!("there is no column family {name:?}"));
                    of_engine(py, &error)
                })
            }
            FamilyName::Object(object) => {
                let source = family::source(object);
                if !Arc::ptr_eq(&source.database, database) {
                    return Err(invalid(py, "the column family is one of another database"));
                }
                Ok(source.family(open).clone())
            }
        }
    }

    /// As [`FamilyName::find`], to be kept.
    pub(crate) fn hold(
        &self,
        py: Python<'_>,
        database: &Arc<Database>,
    ) -> PyResult<Option<Arc<HeldValue<FamilyHandle>>>> {
        let open = database.open()?;
        let family = self.find(py, database, &open)?;
        Ok(Some(Arc::new(HeldValue::new(family))))
    }
}
