//! The traits through which a relational workload sees an engine.
//!
//! An [`Engine`] is open and shared by all threads; each thread makes one [`Session`]. Work is done
//! in closures: a transaction is committed when its closure succeeds and rolled back when it does
//! not, so that a session owns no state between transactions. A [`TransactionError::Conflict`] is
//! for the caller, who tries again.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::row::{Row, Schema, Value};
pub use crate::model::predict::TreeKind as Shape;
use crate::process::Usage;
use crate::{Failure, Result};

/// Why a transaction did not commit.
#[derive(Debug)]
pub enum TransactionError {
    /// Another transaction was in the way.
    Conflict,
    /// The engine failed.
    Failed(Failure),
}

impl From<Failure> for TransactionError {
    fn from(failure: Failure) -> TransactionError {
        TransactionError::Failed(failure)
    }
}

impl From<std::io::Error> for TransactionError {
    fn from(error: std::io::Error) -> TransactionError {
        TransactionError::Failed(error.into())
    }
}

impl fmt::Display for TransactionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransactionError::Conflict => f.write_str("conflict with another transaction"),
            TransactionError::Failed(failure) => failure.fmt(f),
        }
    }
}

/// The result of a step of a transaction.
pub type Outcome<T> = std::result::Result<T, TransactionError>;

/// Turns the outcome of what cannot conflict into a result.
pub fn settled<T>(outcome: Outcome<T>) -> Result<T> {
    outcome.map_err(|trouble| match trouble {
        TransactionError::Failed(failure) => failure,
        TransactionError::Conflict => Failure::new("a conflict where nothing else runs"),
    })
}

/// The accesses of a transaction that begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reads; each sees what is committed when it begins.
    Read,
    /// One change, which commits with its statement where the engine has statements.
    Single,
    /// Several reads and changes.
    Write,
}

/// A scan along the primary key or an index.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// The table.
    pub table: usize,
    /// The index, or the primary key.
    pub index: Option<usize>,
    /// Values of its first columns.
    pub prefix: Vec<Value>,
    /// The least value of the next column.
    pub low: Option<Value>,
    /// The greatest value of the next column.
    pub high: Option<Value>,
    /// From high to low.
    pub descending: bool,
    /// Rows at most; 0 for all.
    pub limit: u64,
    /// All columns, by looking at the rows, instead of those that the index covers.
    pub fetch: bool,
}

/// The request of [`Rows::any_of`].
#[derive(Debug, Clone, Default)]
pub struct AnyOf {
    /// The table.
    pub table: usize,
    /// The index, or the primary key.
    pub index: Option<usize>,
    /// Values of its first column.
    pub values: Vec<Value>,
    /// All columns instead of those that the index covers.
    pub fetch: bool,
}

/// Looks at a row; `false` ends the scan.
pub type Visit<'a> = dyn FnMut(&[Value]) -> bool + 'a;

/// Rows within a transaction.
pub trait Rows {
    /// Adds a row; `false` when its key exists, and nothing is changed then.
    ///
    /// # Errors
    /// A conflict, or what the engine says.
    fn insert(&mut self, table: usize, row: &[Value]) -> Outcome<bool>;

    /// Changes columns of a row that is not part of the key; `false` when there is no such row.
    ///
    /// # Errors
    /// A conflict, or what the engine says.
    fn update(&mut self, table: usize, key: &[Value], set: &[(usize, Value)]) -> Outcome<bool>;

    /// Adds to an integer column, or inserts `otherwise` where there is no such row.
    ///
    /// # Errors
    /// A conflict, or what the engine says.
    fn add(&mut self, table: usize, otherwise: &[Value], column: usize, by: i64) -> Outcome<()>;

    /// Deletes a row; `false` when there is none.
    ///
    /// # Errors
    /// A conflict, or what the engine says.
    fn delete(&mut self, table: usize, key: &[Value]) -> Outcome<bool>;

    /// A row. With `lock` nobody else changes it before the transaction ends.
    ///
    /// # Errors
    /// A conflict, or what the engine says.
    fn get(&mut self, table: usize, key: &[Value], lock: bool) -> Outcome<Option<Row>>;

    /// Visits rows in the order of the primary key or of an index, and says how many.
    ///
    /// # Errors
    /// The engine's error.
    fn scan(&mut self, scan: &Scan, visit: &mut Visit<'_>) -> Outcome<u64>;

    /// Visits the rows whose first column of the primary key or of an index is one of `values`:
    /// one statement for engines that have statements.
    ///
    /// # Errors
    /// The engine's error.
    fn any_of(&mut self, any: &AnyOf, visit: &mut Visit<'_>) -> Outcome<u64> {
        let mut seen = 0;
        for value in &any.values {
            let scan = Scan {
                table: any.table,
                index: any.index,
                prefix: vec![value.clone()],
                fetch: any.fetch,
                ..Scan::default()
            };
            seen += self.scan(&scan, visit)?;
        }
        Ok(seen)
    }
}

/// The body of a transaction.
pub type Body<'a> = dyn FnMut(&mut dyn Rows) -> Outcome<()> + 'a;

/// One thread's connection.
pub trait Session: Send {
    /// Runs `body` in a transaction and commits it.
    ///
    /// # Errors
    /// A conflict, or what the engine or `body` says; the transaction is rolled back then.
    fn transact(&mut self, access: Access, body: &mut Body<'_>) -> Outcome<()>;
}

/// The data that survives a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Durability {
    /// Each commit is synced to the device before it returns.
    Sync,
    /// Each commit is written to the system before it returns: it survives the death of the
    /// process, and not that of the machine.
    Process,
}

impl Durability {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Durability::Sync => "each commit is synced before it returns",
            Durability::Process => "each commit is written to the system before it returns",
        }
    }
}

/// How to open an engine.
#[derive(Debug, Clone)]
pub struct EnginePlan {
    /// An empty directory of its own.
    pub directory: PathBuf,
    /// The data that survives a crash.
    pub durability: Durability,
    /// Bytes of the engine's cache of pages or blocks.
    pub cache: u64,
    /// Bytes of a memtable, or of the log between checkpoints where that is the like.
    pub memtable: u64,
    /// Sessions at most, for an engine whose cache belongs to each of them.
    pub sessions: usize,
    /// The tables.
    pub schema: Schema,
}

/// Description of an engine.
#[derive(Debug, Clone)]
pub struct EngineInfo {
    /// Its name with its version.
    pub name: String,
    /// Options that differ from its defaults, in its own words.
    pub options: BTreeMap<String, String>,
    /// How it keeps the durability that was asked for.
    pub durability: String,
    /// Its tree.
    pub shape: Shape,
}

/// An open engine.
pub trait Engine: Send + Sync {
    /// Describes the engine.
    fn facts(&self) -> EngineInfo;

    /// A session of the calling thread.
    ///
    /// # Errors
    /// The engine's error.
    fn session(&self) -> Result<Box<dyn Session>>;

    /// Makes an index that was left out, from the rows that there are.
    ///
    /// # Errors
    /// The engine's error.
    fn build_index(&self, table: usize, index: usize) -> Result<()>;

    /// Ends background work: memtables become tables, changed pages are written.
    ///
    /// # Errors
    /// The engine's error.
    fn settle(&self) -> Result<()>;

    /// Returns the usage of a server's processes since they began; `None` for an engine in this
    /// process.
    fn server_usage(&self) -> Option<Usage> {
        None
    }

    /// Bytes that the engine counts as written since it began, by part: `log`, `pages`,
    /// `doublewrite` and the like. Empty where it counts none.
    ///
    /// # Errors
    /// The engine's error.
    fn written(&self) -> Result<Vec<(&'static str, u64)>> {
        Ok(Vec::new())
    }

    /// Returns the meaning of [`Engine::written`], in words.
    fn counts_written(&self) -> &'static str {
        "as the kernel counts for the processes of the engine"
    }

    /// Bytes on disk now.
    fn disk_bytes(&self) -> u64;
}

/// Runs `body` until it commits. Says how many conflicts there were.
///
/// # Errors
/// The engine's error, or one for too many conflicts.
pub fn retry(session: &mut dyn Session, access: Access, body: &mut Body<'_>) -> Result<u64> {
    const MOST: u64 = 10_000;
    let mut conflicts = 0;
    loop {
        match session.transact(access, body) {
            Ok(()) => return Ok(conflicts),
            Err(TransactionError::Failed(failure)) => return Err(failure),
            Err(TransactionError::Conflict) => conflicts += 1,
        }
        if conflicts == MOST {
            return Err(Failure::new(format!("{MOST} conflicts in one transaction")));
        }
        // The second of two transactions lets the first one end.
        std::thread::sleep(std::time::Duration::from_micros(50 * conflicts.min(40)));
    }
}
