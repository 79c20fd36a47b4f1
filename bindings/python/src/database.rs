//! A database that is open, shared by all objects that belong to it.
//!
//! `close` lets go of the engine's handle at once; whatever still belongs to the database then
//! raises `ClosedError`.

use crate::calls::released;
use crate::errors::{ClosedError, Failure};
use crate::forks::{self, HeldValue};
use arc_swap::{ArcSwapOption, Guard};
use esker::{Db, FamilyHandle, WriteBatch, WriteOptions};
use esker_txn::{OptimisticTransactionDb, TransactionDb};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The engine's handle, by the kind of transactions.
#[derive(Debug)]
pub(crate) enum Engine {
    Plain(Db),
    Optimistic(OptimisticTransactionDb),
    Pessimistic(TransactionDb),
}

impl Engine {
    pub(crate) fn db(&self) -> &Db {
        match self {
            Engine::Plain(db) => db,
            Engine::Optimistic(db) => db.base(),
            Engine::Pessimistic(db) => db.base(),
        }
    }

    /// Writes a batch, with locks where the database has them.
    pub(crate) fn write(
        &self,
        batch: &mut WriteBatch,
        options: &WriteOptions,
    ) -> esker::Result<()> {
        match self {
            Engine::Plain(db) => db.write_opt(batch, options),
            Engine::Optimistic(db) => db.write(batch, options),
            Engine::Pessimistic(db) => db.write(batch, options),
        }
    }
}

/// The engine's handle, and the default family.
#[derive(Debug)]
pub(crate) struct OpenDatabase {
    pub(crate) engine: Engine,
    pub(crate) default: FamilyHandle,
}

impl OpenDatabase {
    pub(crate) fn db(&self) -> &Db {
        self.engine.db()
    }
}

/// A use of a database, which stays open until it is over.
pub(crate) struct DatabaseGuard(Guard<Option<Arc<HeldValue<OpenDatabase>>>>);

impl std::ops::Deref for DatabaseGuard {
    type Target = OpenDatabase;

    #[inline]
    fn deref(&self) -> &OpenDatabase {
        self.0.as_ref().expect("checked when it was made")
    }
}

/// A database, open or closed.
#[derive(Debug)]
pub(crate) struct Database {
    open: ArcSwapOption<HeldValue<OpenDatabase>>,
    path: PathBuf,
}

impl Database {
    pub(crate) fn new(engine: Engine) -> Arc<Self> {
        let path = engine.db().path().to_owned();
        let default = engine.db().default_family_handle();
        let open = OpenDatabase { engine, default };
        Arc::new(Database {
            open: ArcSwapOption::from_pointee(HeldValue::new(open)),
            path,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.open.load().is_none()
    }

    /// The engine's handle. An exception in a child of a fork, or after `close`.
    #[inline]
    pub(crate) fn open(&self) -> PyResult<DatabaseGuard> {
        forks::check()?;
        let open = self.open.load();
        if open.is_none() {
            return Err(closed(&self.path));
        }
        Ok(DatabaseGuard(open))
    }

    /// Closes it; again, it does nothing.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        forks::check()?;
        let Some(open) = self.open.swap(None) else {
            return Ok(());
        };
        released(py, move || {
            let closed = open.db().close();
            drop(open);
            closed.map_err(Failure::from)
        })
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if forks::is_child() || self.is_closed() {
            return;
        }
        // Closing waits for jobs. An error has nobody to hear of it; the LOG tells it.
        let _attached = Python::try_attach(|py| {
            let _failed = self.close(py);
        });
    }
}

#[cold]
fn closed(path: &Path) -> PyErr {
    ClosedError::new_err(format!("the database is closed: {}", path.display()))
}
