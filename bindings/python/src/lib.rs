//! Python's package `esker`: databases as mappings, iterators, batches, families, snapshots and
//! transactions.
//!
//! The classes are a chain: a `Reader` reads one family, a `Writer` writes it too, a `Family` is
//! one of a database, a `DB` is its default family and all that concerns the database as a whole.
//! A `Snapshot` is a `Reader`, a `Transaction` is a `Writer`.
//!
//! A call into the engine runs without Python's lock (`calls::released`), and a panic in it becomes
//! an exception. Handles that are closed, that have ended, or that a child of a fork has from its
//! parent raise an exception (`forks`). Objects are frozen: what changes is behind a lock of its
//! own, which is waited for without Python's lock.
//!
//! Thread-safety: any object may be used by any number of threads.

mod arguments;
mod batch;
mod bounds;
mod calls;
mod database;
mod db;
mod errors;
mod family;
mod forks;
mod iterator;
mod names;
mod opening;
mod options;
mod read_source;
mod reader;
mod scan;
mod snapshot;
mod stored;
mod transaction;
mod transaction_db;
mod txn;
mod walk;
mod writer;

use pyo3::prelude::*;

/// Functions and classes behind the package `esker`.
#[pymodule]
fn _esker(module: &Bound<'_, PyModule>) -> PyResult<()> {
    errors::add(module)?;
    forks::watch(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<reader::Reader>()?;
    module.add_class::<writer::Writer>()?;
    module.add_class::<family::Family>()?;
    module.add_class::<db::Db>()?;
    module.add_class::<transaction_db::TransactionDb>()?;
    module.add_class::<transaction_db::OptimisticTransactionDb>()?;
    module.add_class::<snapshot::Snapshot>()?;
    module.add_class::<transaction::Transaction>()?;
    module.add_class::<batch::WriteBatch>()?;
    module.add_class::<iterator::Iterator>()?;
    module.add_class::<scan::Scan>()?;
    stored::add(module)
}
