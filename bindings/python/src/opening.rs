//! Opening databases: the arguments of the constructors, read once.

use crate::calls::released;
use crate::database::{Database, Engine};
use crate::errors::{Failure, invalid, of_engine, wrong_type};
use crate::forks;
use crate::options::{self, NamedOptions};
use esker::{Db, Error, FamilyDescriptor, Options};
use esker_txn::{OptimisticTransactionDb, TransactionDb};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A database to open.
#[derive(Debug)]
pub(crate) struct OpenArguments {
    path: PathBuf,
    options: Options,
    /// Exactly these families; all that exist where there are none.
    families: Option<Vec<FamilyDescriptor>>,
}

/// How a database without transactions is opened.
#[derive(Debug)]
pub(crate) struct OpenKind {
    pub(crate) is_read_only: bool,
    /// Where a secondary instance keeps its LOG.
    pub(crate) secondary: Option<PathBuf>,
    /// The seconds that values live.
    pub(crate) time_to_live: Option<i32>,
}

/// Options from a dictionary and from keyword arguments, which go over it.
pub(crate) fn to_options(
    options: Option<&NamedOptions<'_>>,
    named: Option<&NamedOptions<'_>>,
) -> PyResult<Options> {
    let mut out = Options::new();
    for given in [options, named].into_iter().flatten() {
        options::apply(&mut out, given)?;
    }
    Ok(out)
}

/// Families from a dictionary of names and options, or from an iterable of names.
fn to_families(given: &Bound<'_, PyAny>, options: &Options) -> PyResult<Vec<FamilyDescriptor>> {
    let mut out = Vec::new();
    if let Ok(given) = given.cast::<PyDict>() {
        for (name, own) in given {
            let own: Option<Bound<'_, PyDict>> = own
                .extract()
                .map_err(|_| wrong_type("the options of a family", "a dictionary or None", &own))?;
            let own = options::family(&options.family, own.as_ref())?;
            out.push(FamilyDescriptor::new(name.extract::<String>()?, own));
        }
    } else if given.is_instance_of::<PyString>() {
        return Err(wrong_type("families", "an iterable of names", given));
    } else {
        for name in given.try_iter()? {
            let name: String = name?.extract()?;
            out.push(FamilyDescriptor::new(name, options.family.clone()));
        }
    }
    if !out.iter().any(|family| family.name == "default") {
        out.insert(0, FamilyDescriptor::new("default", options.family.clone()));
    }
    Ok(out)
}

impl OpenArguments {
    pub(crate) fn read(
        path: PathBuf,
        options: Option<&NamedOptions<'_>>,
        families: Option<&Bound<'_, PyAny>>,
        named: Option<&NamedOptions<'_>>,
    ) -> PyResult<Self> {
        let options = to_options(options, named)?;
        let families = families
            .map(|given| to_families(given, &options))
            .transpose()?;
        Ok(OpenArguments {
            path,
            options,
            families,
        })
    }

    /// Opens it with `open`.
    fn open(
        self,
        py: Python<'_>,
        open: impl FnOnce(Self) -> esker::Result<Engine> + Send,
    ) -> PyResult<Arc<Database>> {
        forks::begin()?;
        released(py, || {
            let engine = open(self)?;
            Ok(Database::new(engine))
        })
    }

    pub(crate) fn plain(self, py: Python<'_>, kind: OpenKind) -> PyResult<Arc<Database>> {
        let chosen = [
            kind.is_read_only,
            kind.secondary.is_some(),
            kind.time_to_live.is_some(),
        ];
        let is_mixed = chosen.iter().filter(|is_chosen| **is_chosen).count() > 1;
        let is_expiring_reader = kind.is_read_only && kind.time_to_live.is_some();
        if is_mixed && (!is_expiring_reader || kind.secondary.is_some()) {
            let message = "read_only, secondary and time_to_live are not for one database, but \
                           for read_only with time_to_live";
            return Err(invalid(py, message));
        }
        if is_expiring_reader && self.families.is_some() {
            let error = Error::not_supported("a list of families to read with times to live");
            return Err(of_engine(py, &error));
        }
        self.open(py, move |this| {
            let OpenArguments {
                path,
                options,
                families,
            } = this;
            opened(&path, options, families, &kind).map(Engine::Plain)
        })
    }

    pub(crate) fn optimistic(self, py: Python<'_>) -> PyResult<Arc<Database>> {
        self.open(py, |this| {
            let usual = Default::default();
            let db = match this.families {
                None => OptimisticTransactionDb::open(this.path, this.options),
                Some(families) => OptimisticTransactionDb::open_families(
                    this.path,
                    this.options,
                    families,
                    &usual,
                ),
            };
            db.map(Engine::Optimistic)
        })
    }

    pub(crate) fn pessimistic(
        self,
        py: Python<'_>,
        locks: Option<&NamedOptions<'_>>,
    ) -> PyResult<Arc<Database>> {
        let locks = options::transaction_db(locks)?;
        self.open(py, |this| {
            let db = match this.families {
                None => TransactionDb::open(this.path, this.options, locks),
                Some(families) => {
                    TransactionDb::open_families(this.path, this.options, families, locks)
                }
            };
            db.map(Engine::Pessimistic)
        })
    }
}

fn opened(
    path: &Path,
    options: Options,
    families: Option<Vec<FamilyDescriptor>>,
    kind: &OpenKind,
) -> esker::Result<Db> {
    match (
        families,
        &kind.secondary,
        kind.is_read_only,
        kind.time_to_live,
    ) {
        (None, Some(own), _, _) => Db::open_secondary(path, own, options),
        (Some(families), Some(own), _, _) => {
            Db::open_families_secondary(path, own, options, families)
        }
        (_, None, true, Some(_)) => Db::open_read_only_with_ttl(path, options),
        (None, None, true, None) => Db::open_read_only(path, options),
        (Some(families), None, true, None) => Db::open_families_read_only(path, options, families),
        (None, None, false, Some(seconds)) => Db::open_with_ttl(path, options, seconds),
        (Some(families), None, false, Some(seconds)) => {
            let families = families.into_iter().map(|family| (family, seconds));
            Db::open_families_with_ttl(path, options, families.collect())
        }
        (None, None, false, None) => Db::open(path, options),
        (Some(families), None, false, None) => Db::open_families(path, options, families),
    }
}

/// Calls `work` on a directory, with options by their names.
pub(crate) fn on_directory<R: Send>(
    py: Python<'_>,
    named: Option<&NamedOptions<'_>>,
    work: impl FnOnce(Options) -> esker::Result<R> + Send,
) -> PyResult<R> {
    forks::begin()?;
    let options = to_options(None, named)?;
    released(py, || work(options).map_err(Failure::from))
}
