//! Write batches: changes that are written together, or not at all.

use crate::arguments::{Bytes, pairs};
use crate::calls::{at_once, lock, released, try_lock};
use crate::database::Database;
use crate::errors::{Failure, invalid};
use crate::names::FamilyName;
use esker::{FamilyId, WriteOptions};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::sync::{Arc, Mutex};

/// Records, and whose families they name.
#[derive(Debug, Default)]
struct BatchRecords {
    batch: esker::WriteBatch,
    owner: Option<Arc<Database>>,
}

/// The database that a batch is written into at the end of its `with` block.
#[derive(Debug)]
struct BatchTarget {
    database: Arc<Database>,
    options: WriteOptions,
}

/// Changes of keys, in order.
#[pyclass(module = "esker", frozen)]
pub(crate) struct WriteBatch {
    records: Mutex<BatchRecords>,
    target: Option<BatchTarget>,
}

impl WriteBatch {
    /// A batch that is written into `database` at the end of its `with` block.
    pub(crate) fn bound_to(database: Arc<Database>, options: WriteOptions) -> Self {
        WriteBatch {
            records: Mutex::default(),
            target: Some(BatchTarget { database, options }),
        }
    }

    /// Calls `work` with the records, after other threads that use them.
    #[inline]
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut BatchRecords) -> esker::Result<R> + Send,
    ) -> PyResult<R> {
        match try_lock(&self.records) {
            Some(mut records) => at_once(py, || work(&mut records).map_err(Failure::from)),
            None => released(py, || {
                work(&mut *lock(&self.records)?).map_err(Failure::from)
            }),
        }
    }

    /// Adds a record for a family.
    #[inline]
    fn add(
        &self,
        py: Python<'_>,
        family: Option<&FamilyName<'_>>,
        record: impl FnOnce(&mut esker::WriteBatch, FamilyId) -> esker::Result<()> + Send,
    ) -> PyResult<()> {
        let Some(name) = family else {
            return self.with(py, |records| record(&mut records.batch, FamilyId::DEFAULT));
        };
        let own = self.target.as_ref().map(|target| &target.database);
        let owner = match (name, own) {
            (_, Some(own)) => Arc::clone(own),
            (FamilyName::Object(object), None) => {
                Arc::clone(&crate::family::source(object).database)
            }
            (FamilyName::Name(_), None) => {
                let message = "a batch of no database takes a Family, not a name";
                return Err(invalid(py, message));
            }
        };
        let open = owner.open()?;
        let id = FamilyId::from(&name.find(py, &owner, &open)?);
        self.with(py, |records| {
            let known = records.owner.get_or_insert_with(|| Arc::clone(&owner));
            if !Arc::ptr_eq(known, &owner) {
                return Err(esker::Error::invalid_argument(
                    "a batch with column families of several databases",
                ));
            }
            record(&mut records.batch, id)
        })
    }

    /// Writes the records.
    pub(crate) fn write(
        &self,
        py: Python<'_>,
        database: &Arc<Database>,
        options: &WriteOptions,
    ) -> PyResult<()> {
        let open = database.open()?;
        let engine = &open.engine;
        released(py, || {
            let mut records = lock(&self.records)?;
            if records
                .owner
                .as_ref()
                .is_some_and(|o| !Arc::ptr_eq(o, database))
            {
                let message = "the batch has column families of another database";
                return Err(esker::Error::invalid_argument(message).into());
            }
            engine
                .write(&mut records.batch, options)
                .map_err(Failure::from)
        })
    }
}

#[pymethods]
impl WriteBatch {
    /// An empty batch, or one with the records that `data` told of.
    #[new]
    #[pyo3(signature = (data=None))]
    fn new(py: Python<'_>, data: Option<Bytes<'_>>) -> PyResult<Self> {
        let batch = match data {
            None => esker::WriteBatch::new(),
            Some(data) => at_once(py, || {
                esker::WriteBatch::from_bytes(data.to_vec()).map_err(Failure::from)
            })?,
        };
        let owner = None;
        Ok(WriteBatch {
            records: Mutex::new(BatchRecords { batch, owner }),
            target: None,
        })
    }

    fn __setitem__(&self, py: Python<'_>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        self.put(py, key, value, None)
    }

    fn __delitem__(&self, py: Python<'_>, key: Bytes<'_>) -> PyResult<()> {
        self.delete(py, key, None)
    }

    /// The number of records.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |records| Ok(records.batch.count() as usize))
    }

    /// Sets a key.
    #[pyo3(signature = (key, value, family=None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        value: Bytes<'_>,
        family: Option<FamilyName<'_>>,
    ) -> PyResult<()> {
        let (key, value) = (key.as_slice(), value.as_slice());
        self.add(py, family.as_ref(), |batch, id| {
            batch.put_cf(id, key, value)
        })
    }

    /// Deletes a key.
    #[pyo3(signature = (key, family=None))]
    fn delete(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        family: Option<FamilyName<'_>>,
    ) -> PyResult<()> {
        let key = key.as_slice();
        self.add(py, family.as_ref(), |batch, id| batch.delete_cf(id, key))
    }

    /// Deletes a key that was put at most once since it was deleted last.
    #[pyo3(signature = (key, family=None))]
    fn single_delete(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        family: Option<FamilyName<'_>>,
    ) -> PyResult<()> {
        let key = key.as_slice();
        self.add(py, family.as_ref(), |batch, id| {
            batch.single_delete_cf(id, key)
        })
    }

    /// Adds an operand, which the family's merge operator combines with the value.
    #[pyo3(signature = (key, operand, family=None))]
    fn merge(
        &self,
        py: Python<'_>,
        key: Bytes<'_>,
        operand: Bytes<'_>,
        family: Option<FamilyName<'_>>,
    ) -> PyResult<()> {
        let (key, operand) = (key.as_slice(), operand.as_slice());
        self.add(py, family.as_ref(), |batch, id| {
            batch.merge_cf(id, key, operand)
        })
    }

    /// Deletes the keys from `start` to before `stop`.
    #[pyo3(signature = (start, stop, family=None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Bytes<'_>,
        stop: Bytes<'_>,
        family: Option<FamilyName<'_>>,
    ) -> PyResult<()> {
        let (start, stop) = (start.as_slice(), stop.as_slice());
        self.add(py, family.as_ref(), |batch, id| {
            batch.delete_range_cf(id, start, stop)
        })
    }

    /// Sets the keys of a mapping, or of pairs.
    #[pyo3(signature = (entries, family=None))]
    fn update(
        &self,
        py: Python<'_>,
        entries: &Bound<'_, PyAny>,
        family: Option<FamilyName<'_>>,
    ) -> PyResult<()> {
        for (key, value) in pairs(entries)? {
            let (key, value) = (key.extract::<Bytes<'_>>()?, value.extract::<Bytes<'_>>()?);
            let (key, value) = (key.as_slice(), value.as_slice());
            self.add(py, family.as_ref(), |batch, id| {
                batch.put_cf(id, key, value)
            })?;
        }
        Ok(())
    }

    /// Removes all records.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |records| {
            records.batch.clear();
            records.owner = None;
            Ok(())
        })
    }

    /// Remembers this state.
    fn set_save_point(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |records| {
            records.batch.set_save_point();
            Ok(())
        })
    }

    /// Removes what came after the last save point, and forgets it.
    fn rollback_to_save_point(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |records| records.batch.rollback_to_save_point())
    }

    /// Forgets the last save point; what came after it stays.
    fn pop_save_point(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |records| records.batch.pop_save_point())
    }

    /// The records in RocksDB's format.
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let data = self.with(py, |records| Ok(records.batch.data().to_vec()))?;
        Ok(PyBytes::new(py, &data))
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyResult<PyRef<'_, Self>> {
        if slf.target.is_none() {
            let message = "a batch of no database: `with db.batch() as batch` has one";
            return Err(invalid(slf.py(), message));
        }
        Ok(slf)
    }

    /// Writes the records; drops them after an exception.
    #[pyo3(signature = (*raised))]
    fn __exit__(&self, py: Python<'_>, raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        let is_failing = raised.get_item(0).is_ok_and(|kind| !kind.is_none());
        if let Some(target) = self.target.as_ref().filter(|_| !is_failing) {
            self.write(py, &target.database, &target.options)?;
        }
        self.clear(py)
    }
}
