//! An open database, and the holds on its column families, as Java has them.

use crate::boundary::{Fault, Outcome, handles};
use esker::{Db, Error, FamilyHandle, SstFileManager};
use esker_process::OpenDatabase;
use esker_sync::atomic::{AtomicBool, Ordering};
use esker_sync::{Arc, Mutex, OnceLock, Rank};
use esker_txn::{OptimisticTransactionDb, TransactionDb};
use jni_sys::jlong;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// The layer of transactions between a database and its writers.
pub(crate) enum Transactions {
    /// Nothing.
    None,
    /// Transactions that lock the keys they touch.
    Locking(TransactionDb),
    /// Transactions that look for conflicts when they commit.
    Optimistic(OptimisticTransactionDb),
}

/// A hold on a column family, and whether it was dropped through this handle.
pub(crate) struct Family(pub(crate) FamilyHandle, pub(crate) AtomicBool);

impl Family {
    /// A hold on `family`.
    pub(crate) fn new(family: FamilyHandle) -> Self {
        Family(family, AtomicBool::new(false))
    }
}

/// The handles of named transactions.
pub(crate) struct TransactionHandles(Mutex<HashMap<String, jlong>>);

impl Default for TransactionHandles {
    fn default() -> Self {
        TransactionHandles(Mutex::new(Rank::LEAF, HashMap::new()))
    }
}

impl TransactionHandles {
    /// Remembers a transaction, and forgets those that are gone.
    pub(crate) fn add(&self, name: String, txn: jlong, is_there: impl Fn(jlong) -> bool) {
        let mut all = self.0.lock();
        all.retain(|_, txn| is_there(*txn));
        all.insert(name, txn);
    }

    /// All of them, by name.
    pub(crate) fn handles(&self) -> Vec<(String, jlong)> {
        let all = self.0.lock();
        all.iter().map(|(name, txn)| (name.clone(), *txn)).collect()
    }
}

/// An open database, or one that was closed and not disposed of yet.
pub(crate) struct Database {
    pub(crate) db: Db,
    pub(crate) default: FamilyHandle,
    pub(crate) is_closed: AtomicBool,
    /// The handle of the default family, which the database owns.
    pub(crate) default_handle: OnceLock<jlong>,
    pub(crate) transactions: Transactions,
    /// The handle of the database below the transactions, if it was asked for.
    pub(crate) base: OnceLock<jlong>,
    /// The named transactions.
    pub(crate) named: TransactionHandles,
    /// The manager of its files, where it was opened with one.
    space: Option<Arc<SstFileManager>>,
    /// Its place on the list of those whose statistics are served.
    pub(crate) listed: OpenDatabase,
}

impl Database {
    /// Gives Java the database.
    pub(crate) fn give(db: Db) -> jlong {
        handles::give(Database::plain(db))
    }

    /// A database without transactions.
    pub(crate) fn plain(db: Db) -> Database {
        Database::new(db, Transactions::None)
    }

    /// A database whose writers meet `transactions` first.
    pub(crate) fn new(db: Db, transactions: Transactions) -> Database {
        let listed = esker_process::opened(&db);
        Database {
            listed,
            ..Database::below(db, transactions)
        }
    }

    /// A second object for a database, such as the one below transactions.
    pub(crate) fn below(db: Db, transactions: Transactions) -> Database {
        let default = db.default_family_handle();
        Database {
            db,
            default,
            is_closed: AtomicBool::new(false),
            default_handle: OnceLock::new(),
            transactions,
            base: OnceLock::new(),
            named: TransactionHandles::default(),
            space: None,
            listed: OpenDatabase::unlisted(),
        }
    }

    /// The database, whose files `space` watches.
    pub(crate) fn watched(mut self, space: Option<Arc<SstFileManager>>) -> Database {
        self.space = space;
        self
    }

    /// Adds the path and the size of each table and blob file that `space` watches.
    pub(crate) fn add_tracked(
        &self,
        space: &Arc<SstFileManager>,
        to: &mut BTreeMap<String, u64>,
    ) -> Outcome<()> {
        let is_its = self.space.as_ref().is_some_and(|s| Arc::ptr_eq(s, space));
        if !is_its || self.is_closed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut add = |directory: &Path, name: &str, bytes| {
            let path = directory.join(name.trim_start_matches('/'));
            to.insert(path.to_string_lossy().into_owned(), bytes);
        };
        for family in self.db.families() {
            let family = self.db.family_metadata(&family);
            for file in family.levels.iter().flat_map(|level| &level.files) {
                add(&file.directory, &file.name, file.size);
            }
            for file in &family.blob_files {
                let path = file.directory.join(&file.name);
                match self.db.env().fs.metadata(&path) {
                    Ok(found) => add(&file.directory, &file.name, found.len),
                    // It went meanwhile.
                    Err(error) if error.is_not_found() => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// The database; an error once it is closed.
    #[inline]
    pub(crate) fn open(&self) -> Outcome<&Db> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(Fault::Error(Error::shutdown()));
        }
        Ok(&self.db)
    }

    /// The family behind a handle, which must be of this database; the default family for 0.
    #[inline]
    pub(crate) fn with_family<R>(
        &self,
        family: jlong,
        body: impl FnOnce(&Db, &FamilyHandle) -> Outcome<R>,
    ) -> Outcome<R> {
        let db = self.open()?;
        if family == 0 {
            return body(db, &self.default);
        }
        let family = handles::hold::<Family>(family)?;
        if !db.owns(&family.0) {
            return Err(other_database(&family.0));
        }
        body(db, &family.0)
    }

    /// Families behind handles.
    pub(crate) fn families(&self, all: &[jlong]) -> Outcome<Vec<FamilyHandle>> {
        all.iter()
            .map(|family| self.with_family(*family, |_, f| Ok(f.clone())))
            .collect()
    }
}

#[cold]
pub(crate) fn other_database(family: &FamilyHandle) -> Fault {
    let name = family.name();
    Fault::Error(Error::invalid_argument(format!(
        "column family {name} belongs to another database"
    )))
}
