//! Writing as into a mapping.

use crate::arguments::{Bytes, pairs};
use crate::calls::released;
use crate::database::Engine;
use crate::errors::{Failure, invalid, of_engine};
use crate::options::{self, NamedOptions};
use crate::reader::Reader;
use esker::{Error, FamilyId, WriteBatch, WriteOptions};
use pyo3::prelude::*;

/// One family, for reading and writing.
#[pyclass(module = "esker", frozen, subclass, mapping, extends = Reader)]
pub(crate) struct Writer;

/// A change of one key.
#[derive(Clone, Copy, Debug)]
enum WriteKind<'a> {
    Put(&'a [u8]),
    Delete,
    SingleDelete,
    Merge(&'a [u8]),
}

/// The options of a write of a database; a transaction has its own.
fn usual(
    py: Python<'_>,
    reader: &Reader,
    given: Option<&NamedOptions<'_>>,
) -> PyResult<WriteOptions> {
    if given.is_some() && reader.source.transaction.is_some() {
        let message = "a transaction writes with the options that it began with";
        return Err(invalid(py, message));
    }
    options::write(given)
}

impl Reader {
    /// Changes a key.
    #[inline]
    fn change(
        &self,
        py: Python<'_>,
        key: &Bytes<'_>,
        kind: WriteKind<'_>,
        given: Option<&NamedOptions<'_>>,
    ) -> PyResult<()> {
        let options = match given {
            None => WriteOptions::default(),
            Some(_) => usual(py, self, given)?,
        };
        let (source, key) = (&self.source, key.as_slice());
        let open = source.database.open()?;
        let family = source.family(&open);
        if let Some(transaction) = &source.transaction {
            return transaction.with(py, |txn| match kind {
                WriteKind::Put(value) => txn.put_cf(family, key, value),
                WriteKind::Delete => txn.delete_cf(family, key),
                WriteKind::SingleDelete => txn.single_delete_cf(family, key),
                WriteKind::Merge(operand) => txn.merge_cf(family, key, operand),
            });
        }
        let (engine, options) = (&open.engine, &options);
        released(py, || {
            let done = match (engine, kind) {
                (Engine::Pessimistic(db), WriteKind::Put(value)) => {
                    db.put_opt(family, key, value, options)
                }
                (Engine::Pessimistic(db), WriteKind::Delete) => db.delete_opt(family, key, options),
                (Engine::Pessimistic(db), WriteKind::SingleDelete) => {
                    db.single_delete_opt(family, key, options)
                }
                (Engine::Pessimistic(db), WriteKind::Merge(operand)) => {
                    db.merge_opt(family, key, operand, options)
                }
                (_, WriteKind::Put(value)) => engine.db().put_opt(family, key, value, options),
                (_, WriteKind::Delete) => engine.db().delete_opt(family, key, options),
                (_, WriteKind::SingleDelete) => engine.db().single_delete_opt(family, key, options),
                (_, WriteKind::Merge(operand)) => {
                    engine.db().merge_opt(family, key, operand, options)
                }
            };
            done.map_err(Failure::from)
        })
    }
}

#[pymethods]
impl Writer {
    fn __setitem__(slf: &Bound<'_, Self>, key: Bytes<'_>, value: Bytes<'_>) -> PyResult<()> {
        let kind = WriteKind::Put(value.as_slice());
        slf.as_super().get().change(slf.py(), &key, kind, None)
    }

    fn __delitem__(slf: &Bound<'_, Self>, key: Bytes<'_>) -> PyResult<()> {
        let reader = slf.as_super().get();
        reader.change(slf.py(), &key, WriteKind::Delete, None)
    }

    /// Sets a key.
    #[pyo3(signature = (key, value, **options))]
    fn put(
        slf: &Bound<'_, Self>,
        key: Bytes<'_>,
        value: Bytes<'_>,
        options: Option<&NamedOptions<'_>>,
    ) -> PyResult<()> {
        let kind = WriteKind::Put(value.as_slice());
        slf.as_super().get().change(slf.py(), &key, kind, options)
    }

    /// Deletes a key; fine when it is not there.
    #[pyo3(signature = (key, **options))]
    fn delete(
        slf: &Bound<'_, Self>,
        key: Bytes<'_>,
        options: Option<&NamedOptions<'_>>,
    ) -> PyResult<()> {
        let reader = slf.as_super().get();
        reader.change(slf.py(), &key, WriteKind::Delete, options)
    }

    /// Deletes a key that was put at most once since it was deleted last.
    #[pyo3(signature = (key, **options))]
    fn single_delete(
        slf: &Bound<'_, Self>,
        key: Bytes<'_>,
        options: Option<&NamedOptions<'_>>,
    ) -> PyResult<()> {
        let reader = slf.as_super().get();
        reader.change(slf.py(), &key, WriteKind::SingleDelete, options)
    }

    /// Adds an operand, which the family's merge operator combines with the value.
    #[pyo3(signature = (key, operand, **options))]
    fn merge(
        slf: &Bound<'_, Self>,
        key: Bytes<'_>,
        operand: Bytes<'_>,
        options: Option<&NamedOptions<'_>>,
    ) -> PyResult<()> {
        let kind = WriteKind::Merge(operand.as_slice());
        slf.as_super().get().change(slf.py(), &key, kind, options)
    }

    /// Deletes the keys from `start` to before `stop`.
    #[pyo3(signature = (start, stop, **options))]
    fn delete_range(
        slf: &Bound<'_, Self>,
        start: Bytes<'_>,
        stop: Bytes<'_>,
        options: Option<&NamedOptions<'_>>,
    ) -> PyResult<()> {
        let (py, reader) = (slf.py(), slf.as_super().get());
        let options = usual(py, reader, options)?;
        let source = &reader.source;
        let open = source.database.open()?;
        let is_plain = matches!(open.engine, Engine::Plain(_));
        if !is_plain || source.transaction.is_some() {
            let error = Error::not_supported("a range deletion beside transactions");
            return Err(of_engine(py, &error));
        }
        let family = source.family(&open);
        let (db, start, stop) = (open.db(), start.as_slice(), stop.as_slice());
        released(py, || {
            db.delete_range_opt(family, start, stop, &options)
                .map_err(Failure::from)
        })
    }

    /// Sets the keys of a mapping, or of pairs: all of them, or none.
    #[pyo3(signature = (entries, **options))]
    fn update(
        slf: &Bound<'_, Self>,
        entries: &Bound<'_, PyAny>,
        options: Option<&NamedOptions<'_>>,
    ) -> PyResult<()> {
        let (py, reader) = (slf.py(), slf.as_super().get());
        let options = usual(py, reader, options)?;
        let source = &reader.source;
        let open = source.database.open()?;
        let family = source.family(&open);
        let id = FamilyId::from(family);
        let mut batch = WriteBatch::new();
        let mut keys = Vec::new();
        for (key, value) in pairs(entries)? {
            let (key, value) = (key.extract::<Bytes<'_>>()?, value.extract::<Bytes<'_>>()?);
            if source.transaction.is_some() {
                keys.push((key.to_vec(), value.to_vec()));
                continue;
            }
            let added = batch.put_cf(id, key.as_slice(), value.as_slice());
            added.map_err(|error| of_engine(py, &error))?;
        }
        if let Some(transaction) = &source.transaction {
            return transaction.with(py, |txn| {
                txn.set_save_point();
                let put = |(key, value): &(Vec<u8>, Vec<u8>)| txn.put_cf(family, key, value);
                match keys.iter().try_for_each(put) {
                    Ok(()) => txn.pop_save_point(),
                    Err(error) => {
                        txn.rollback_to_save_point()?;
                        Err(error)
                    }
                }
            });
        }
        let engine = &open.engine;
        released(py, move || {
            engine.write(&mut batch, &options).map_err(Failure::from)
        })
    }
}
