//! A database without transactions.

use crate::batch::WriteBatch;
use crate::calls::released;
use crate::database::{Database, Engine};
use crate::errors::Failure;
use crate::family::{Family, borrowed, shown, source};
use crate::names::FamilyName;
use crate::opening::{OpenArguments, OpenKind};
use crate::options::{self, NamedOptions};
use crate::read_source::ReadSource;
use crate::snapshot::Snapshot;
use esker::WaitForCompactOptions;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A database; as a mapping, its default column family.
#[pyclass(name = "DB", module = "esker", frozen, subclass, extends = Family)]
pub(crate) struct Db;

impl Db {
    /// Returns the initializer of an object of this class.
    pub(crate) fn of(database: Arc<Database>) -> PyClassInitializer<Db> {
        Family::of(ReadSource::of(database)).add_subclass(Db)
    }
}

/// The database of an object of this class.
pub(crate) fn database<'a>(db: &'a Bound<'_, Db>) -> &'a Arc<Database> {
    &source(db.as_super()).database
}

#[pymethods]
impl Db {
    #[new]
    #[pyo3(signature = (
        path, options=None, *, families=None, read_only=false, secondary=None, time_to_live=None,
        **named
    ))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        options: Option<&NamedOptions<'_>>,
        families: Option<&Bound<'_, PyAny>>,
        read_only: bool,
        secondary: Option<PathBuf>,
        time_to_live: Option<i32>,
        named: Option<&NamedOptions<'_>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let arguments = OpenArguments::read(path, options, families, named)?;
        let kind = OpenKind {
            is_read_only: read_only,
            secondary,
            time_to_live,
        };
        Ok(Db::of(arguments.plain(py, kind)?))
    }

    /// The directory.
    #[getter]
    fn path(slf: &Bound<'_, Self>) -> PathBuf {
        database(slf).path().to_owned()
    }

    /// Tells whether it was closed.
    #[getter]
    fn closed(slf: &Bound<'_, Self>) -> bool {
        database(slf).is_closed()
    }

    /// Closes the database; again, it does nothing. Whatever belongs to it ends.
    fn close(slf: &Bound<'_, Self>) -> PyResult<()> {
        database(slf).close(slf.py())
    }

    /// The column family of this name.
    fn family(slf: &Bound<'_, Self>, name: FamilyName<'_>) -> PyResult<Py<Family>> {
        let database = database(slf);
        let open = database.open()?;
        let family = name.find(slf.py(), database, &open)?;
        Family::new(slf.py(), source(slf.as_super()), family)
    }

    /// The names of all column families.
    fn column_families(slf: &Bound<'_, Self>) -> PyResult<Vec<String>> {
        let open = database(slf).open()?;
        let db = open.db();
        released(slf.py(), || {
            let families = db.families();
            Ok(families.iter().map(|f| f.name().to_owned()).collect())
        })
    }

    /// Makes a column family, with the default family's options and those that are given.
    #[pyo3(signature = (name, **options))]
    fn create_column_family(
        slf: &Bound<'_, Self>,
        name: &str,
        options: Option<&NamedOptions<'_>>,
    ) -> PyResult<Py<Family>> {
        let open = database(slf).open()?;
        let options = options::family(&open.default.options(), options)?;
        let engine = &open.engine;
        let family = released(slf.py(), move || {
            let made = match engine {
                Engine::Plain(db) => db.create_family(name, options),
                Engine::Optimistic(db) => db.create_family(name, options),
                Engine::Pessimistic(db) => db.create_family(name, options),
            };
            made.map_err(Failure::from)
        })?;
        Family::new(slf.py(), source(slf.as_super()), family)
    }

    /// Drops a column family, with its data.
    fn drop_column_family(slf: &Bound<'_, Self>, family: FamilyName<'_>) -> PyResult<()> {
        let database = database(slf);
        let open = database.open()?;
        let family = family.find(slf.py(), database, &open)?;
        let engine = &open.engine;
        released(slf.py(), || {
            let dropped = match engine {
                Engine::Pessimistic(db) => db.drop_family(&family),
                _ => engine.db().drop_family(&family),
            };
            dropped.map_err(Failure::from)
        })
    }

    /// A snapshot of all families.
    fn snapshot(slf: &Bound<'_, Self>) -> PyResult<Py<Snapshot>> {
        Snapshot::take(slf.py(), source(slf.as_super()))
    }

    /// A batch for a `with` block, at whose end it is written.
    #[pyo3(signature = (**options))]
    fn batch(slf: &Bound<'_, Self>, options: Option<&NamedOptions<'_>>) -> PyResult<WriteBatch> {
        let options = options::write(options)?;
        let database = database(slf);
        drop(database.open()?);
        Ok(WriteBatch::bound_to(Arc::clone(database), options))
    }

    /// Writes all of a batch, or nothing.
    #[pyo3(signature = (batch, **options))]
    fn write(
        slf: &Bound<'_, Self>,
        batch: &Bound<'_, WriteBatch>,
        options: Option<&NamedOptions<'_>>,
    ) -> PyResult<()> {
        let options = options::write(options)?;
        batch.get().write(slf.py(), database(slf), &options)
    }

    /// Puts what is in memory into tables, for every family.
    #[pyo3(signature = (**options))]
    fn flush(slf: &Bound<'_, Self>, options: Option<&NamedOptions<'_>>) -> PyResult<()> {
        let options = options::flush(options)?;
        let open = database(slf).open()?;
        let db = open.db();
        released(slf.py(), || {
            let families = db.families();
            let families: Vec<_> = families.iter().collect();
            db.flush_families(&families, &options)
                .map_err(Failure::from)
        })
    }

    /// Hands buffered records of the log to the system, and with `sync` to the device.
    #[pyo3(signature = (sync=false))]
    fn flush_wal(slf: &Bound<'_, Self>, sync: bool) -> PyResult<()> {
        let open = database(slf).open()?;
        let db = open.db();
        released(slf.py(), || db.flush_wal(sync).map_err(Failure::from))
    }

    /// Statistics, properties and stalls as OpenMetrics text.
    fn metrics(slf: &Bound<'_, Self>) -> PyResult<String> {
        let open = database(slf).open()?;
        let db = open.db();
        released(slf.py(), || Ok(db.metrics()))
    }

    /// The database's options, by RocksDB's names, as text.
    fn db_options<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let open = database(slf).open()?;
        let db = open.db();
        let options = released(slf.py(), || Ok(db.db_options()))?;
        shown(slf.py(), &options)
    }

    /// Changes options of the database, all or none.
    #[pyo3(signature = (**options))]
    fn set_db_options(slf: &Bound<'_, Self>, options: Option<&NamedOptions<'_>>) -> PyResult<()> {
        let texts = options.map(options::texts).transpose()?.unwrap_or_default();
        let open = database(slf).open()?;
        let db = open.db();
        released(slf.py(), || {
            db.set_db_options(&borrowed(&texts)).map_err(Failure::from)
        })
    }

    /// The sequence number of the newest write.
    fn latest_sequence_number(slf: &Bound<'_, Self>) -> PyResult<u64> {
        let open = database(slf).open()?;
        Ok(open.db().latest_sequence_number())
    }

    /// Makes a copy in a new directory, of links where the filesystem has them.
    fn checkpoint(slf: &Bound<'_, Self>, path: PathBuf) -> PyResult<()> {
        let open = database(slf).open()?;
        let db = open.db();
        released(slf.py(), || {
            db.checkpoint(&path)?;
            Ok(())
        })
    }

    /// Reads all tables and checks their checksums.
    fn verify_checksums(slf: &Bound<'_, Self>) -> PyResult<()> {
        let open = database(slf).open()?;
        let db = open.db();
        released(slf.py(), || db.verify_checksums().map_err(Failure::from))
    }

    /// Waits until no compaction is due; after `timeout` seconds it raises `TimedOutError`.
    #[pyo3(signature = (*, flush=false, abort_on_pause=false, timeout=None))]
    fn wait_for_compact(
        slf: &Bound<'_, Self>,
        flush: bool,
        abort_on_pause: bool,
        timeout: Option<f64>,
    ) -> PyResult<()> {
        let mut options = WaitForCompactOptions::default();
        options.flush = flush;
        options.abort_on_pause = abort_on_pause;
        options.timeout = timeout.map(Duration::try_from_secs_f64).transpose()?;
        let open = database(slf).open()?;
        let db = open.db();
        released(slf.py(), || {
            db.wait_for_compact(&options).map_err(Failure::from)
        })
    }

    /// Goes on after an error that stopped writes.
    fn resume(slf: &Bound<'_, Self>) -> PyResult<()> {
        let open = database(slf).open()?;
        let db = open.db();
        released(slf.py(), || db.resume().map_err(Failure::from))
    }

    /// Shows what the primary has written since, in a secondary instance.
    fn try_catch_up_with_primary(slf: &Bound<'_, Self>) -> PyResult<()> {
        let open = database(slf).open()?;
        let db = open.db();
        released(slf.py(), || {
            db.try_catch_up_with_primary().map_err(Failure::from)
        })
    }

    fn __enter__<'a, 'py>(slf: &'a Bound<'py, Self>) -> &'a Bound<'py, Self> {
        slf
    }

    #[pyo3(signature = (*raised))]
    fn __exit__(slf: &Bound<'_, Self>, raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        let _ = raised;
        Db::close(slf)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let database = database(slf);
        let state = if database.is_closed() {
            "closed"
        } else {
            "open"
        };
        let class = slf.get_type().name()?;
        let path = database.path().display();
        Ok(format!("<esker.{class} {state} at {path}>"))
    }
}
