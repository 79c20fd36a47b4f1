//! Where a reader reads: a family of a database, as of a snapshot or now, or within a transaction.

use crate::bounds::Bounds;
use crate::calls::released;
use crate::database::{Database, OpenDatabase};
use crate::errors::{ClosedError, Failure};
use crate::forks::HeldValue;
use crate::txn::Txn;
use crate::walk::Walk;
use esker::{FamilyHandle, PinnedValue, ReadOptions, Snapshot};
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A snapshot until it is given back.
#[derive(Debug)]
pub(crate) struct HeldSnapshot {
    pub(crate) snapshot: HeldValue<Snapshot>,
    is_over: AtomicBool,
}

impl HeldSnapshot {
    pub(crate) fn new(snapshot: Snapshot) -> Arc<Self> {
        Arc::new(HeldSnapshot {
            snapshot: HeldValue::new(snapshot),
            is_over: AtomicBool::new(false),
        })
    }

    pub(crate) fn release(&self) {
        if !self.is_over.swap(true, Ordering::AcqRel) {
            self.snapshot.release();
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

/// Where reads go.
#[derive(Clone, Debug)]
pub(crate) struct ReadSource {
    pub(crate) database: Arc<Database>,
    /// The default family where there is none.
    pub(crate) family: Option<Arc<HeldValue<FamilyHandle>>>,
    pub(crate) snapshot: Option<Arc<HeldSnapshot>>,
    pub(crate) transaction: Option<Arc<Txn>>,
}

impl ReadSource {
    /// The default family of a database.
    pub(crate) fn of(database: Arc<Database>) -> Self {
        ReadSource {
            database,
            family: None,
            snapshot: None,
            transaction: None,
        }
    }

    /// As above, in another family.
    pub(crate) fn in_family(&self, family: Option<Arc<HeldValue<FamilyHandle>>>) -> Self {
        ReadSource {
            family,
            ..self.clone()
        }
    }

    #[inline]
    pub(crate) fn family<'a>(&'a self, open: &'a OpenDatabase) -> &'a FamilyHandle {
        match &self.family {
            Some(family) => family,
            None => &open.default,
        }
    }

    #[inline]
    fn snapshot(&self) -> PyResult<Option<&Snapshot>> {
        match &self.snapshot {
            None => Ok(None),
            Some(held) if held.is_over() => Err(ClosedError::new_err("the snapshot was released")),
            Some(held) => Ok(Some(&held.snapshot)),
        }
    }

    /// The value of a key.
    #[inline]
    pub(crate) fn get(
        &self,
        py: Python<'_>,
        key: &[u8],
        options: &ReadOptions,
    ) -> PyResult<Option<PinnedValue>> {
        let open = self.database.open()?;
        let family = self.family(&open);
        let snapshot = self.snapshot()?;
        if let Some(transaction) = &self.transaction {
            return transaction.with(py, |txn| txn.get_opt(family, key, options, snapshot));
        }
        let db = open.db();
        released(py, || {
            db.get_opt(family, key, options, snapshot)
                .map_err(Failure::from)
        })
    }

    /// The values of keys, in their order.
    pub(crate) fn multi_get(
        &self,
        py: Python<'_>,
        keys: &[&[u8]],
        options: &ReadOptions,
    ) -> PyResult<Vec<Option<PinnedValue>>> {
        let open = self.database.open()?;
        let family = self.family(&open);
        let snapshot = self.snapshot()?;
        if let Some(transaction) = &self.transaction {
            let keys: Vec<_> = keys.iter().map(|key| (family, *key)).collect();
            return transaction.with(py, |txn| {
                let found = txn.multi_get_opt(&keys, options, snapshot);
                found.into_iter().collect()
            });
        }
        let db = open.db();
        released(py, || {
            let found = db.multi_get_opt(family, keys.iter().copied(), options, snapshot);
            Ok(found.into_iter().collect::<esker::Result<_>>()?)
        })
    }

    /// An iterator between bounds; `None` where no key can be between them.
    pub(crate) fn walk(
        &self,
        py: Python<'_>,
        bounds: &Bounds<'_>,
        mut options: ReadOptions,
    ) -> PyResult<Option<HeldValue<Walk>>> {
        let open = self.database.open()?;
        let family = self.family(&open);
        let snapshot = self.snapshot()?;
        if !bounds.apply(py, family.order(), &mut options)? {
            return Ok(None);
        }
        if let Some(transaction) = &self.transaction {
            return transaction.with(py, |txn| {
                let walk = txn.iter_opt(family, options, snapshot);
                Ok(Some(HeldValue::new(Walk::Transaction(Box::new(walk)))))
            });
        }
        let db = open.db();
        released(py, || {
            let walk = db.iter_opt(family, options, snapshot);
            Ok(Some(HeldValue::new(Walk::Database(Box::new(walk)))))
        })
    }
}
