//! Exceptions: one for each kind of the engine's errors, below `esker.Error`.
//!
//! An exception has what the engine's error has: `code` and `subcode` by RocksDB's numbers, `file`,
//! `offset` and `hint`.

use esker::{ErrorKind, Subcode};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;

/// Declares exceptions, and adds all of them to a module.
macro_rules! exceptions {
    ($($name:ident($base:ident), $doc:literal;)*) => {
        $(create_exception!(esker, $name, $base, $doc);)*

        /// Adds the exceptions to `module`.
        pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
            let py = module.py();
            $(module.add(stringify!($name), py.get_type::<$name>())?;)*
            Ok(())
        }
    };
}

exceptions! {
    Error(PyException), "A call of the engine that failed.";
    NotFoundError(Error), "A file or a family that was asked for by name does not exist.";
    CorruptionError(Error), "Stored bytes contradict their checksum or the format.";
    NotSupportedError(Error), "An operation or an option that the engine does not support.";
    InvalidArgumentError(Error), "An argument contradicts the database or another argument.";
    IoError(Error), "The operating system refused an operation on a file.";
    LockedError(IoError), "The database is open in another place.";
    MergeInProgressError(Error), "Merge operands could not be combined.";
    IncompleteError(Error), "The operation needs what the caller forbade.";
    ShutdownInProgressError(Error), "The database is closing.";
    TimedOutError(Error), "A wait reached its limit.";
    AbortedError(Error), "The operation was cancelled.";
    BusyError(Error), "Somebody else uses, or has changed, what is asked for.";
    DeadlockError(BusyError), "Transactions wait for each other.";
    ExpiredError(Error), "A transaction's time is over.";
    TryAgainError(Error), "The same call may succeed later.";
    CompactionTooLargeError(Error), "A compaction asked for is larger than allowed.";
    ColumnFamilyDroppedError(Error), "The column family was dropped.";
    ClosedError(Error), "The object was closed, or has ended.";
    ForkedError(Error), "The process is a child of one that used databases.";
    PanicError(Error), "A defect of the engine.";
}

/// A call that failed, before Python hears of it.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of the engine.
    Engine(esker::Error),
    /// A handle that is over.
    Closed(&'static str),
    /// A panic, with its message.
    Panic(String),
}

impl From<esker::Error> for Failure {
    fn from(error: esker::Error) -> Self {
        Failure::Engine(error)
    }
}

impl Failure {
    /// The exception.
    #[cold]
    pub(crate) fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Failure::Engine(error) => of_engine(py, &error),
            Failure::Closed(why) => ClosedError::new_err(why),
            Failure::Panic(message) => {
                PanicError::new_err(format!("a defect inside the engine: {message}"))
            }
        }
    }
}

/// The exception for an error of the engine.
#[cold]
pub(crate) fn of_engine(py: Python<'_>, error: &esker::Error) -> PyErr {
    let raised = typed(error, error.to_string());
    let value = raised.value(py);
    let file = error.file().map(|file| file.to_string_lossy().into_owned());
    let set = || -> PyResult<()> {
        value.setattr("code", error.kind() as u8)?;
        value.setattr("subcode", error.subcode().number())?;
        value.setattr("file", file)?;
        value.setattr("offset", error.offset())?;
        value.setattr("hint", error.hint())
    };
    match set() {
        Ok(()) => raised,
        Err(other) => other,
    }
}

fn typed(error: &esker::Error, text: String) -> PyErr {
    match (error.kind(), error.subcode()) {
        (_, Subcode::Locked) => LockedError::new_err(text),
        (_, Subcode::Deadlock) => DeadlockError::new_err(text),
        (ErrorKind::NotFound, _) => NotFoundError::new_err(text),
        (ErrorKind::Corruption, _) => CorruptionError::new_err(text),
        (ErrorKind::NotSupported, _) => NotSupportedError::new_err(text),
        (ErrorKind::InvalidArgument, _) => InvalidArgumentError::new_err(text),
        (ErrorKind::Io, _) => IoError::new_err(text),
        (ErrorKind::MergeInProgress, _) => MergeInProgressError::new_err(text),
        (ErrorKind::Incomplete, _) => IncompleteError::new_err(text),
        (ErrorKind::ShutdownInProgress, _) => ShutdownInProgressError::new_err(text),
        (ErrorKind::TimedOut, _) => TimedOutError::new_err(text),
        (ErrorKind::Aborted, _) => AbortedError::new_err(text),
        (ErrorKind::Busy, _) => BusyError::new_err(text),
        (ErrorKind::Expired, _) => ExpiredError::new_err(text),
        (ErrorKind::TryAgain, _) => TryAgainError::new_err(text),
        (ErrorKind::CompactionTooLarge, _) => CompactionTooLargeError::new_err(text),
        (ErrorKind::ColumnFamilyDropped, _) => ColumnFamilyDroppedError::new_err(text),
        _ => Error::new_err(text),
    }
}

/// An `InvalidArgumentError`.
#[cold]
pub(crate) fn invalid(py: Python<'_>, message: impl Into<String>) -> PyErr {
    of_engine(py, &esker::Error::invalid_argument(message))
}

/// A `TypeError` that names the argument.
#[cold]
pub(crate) fn wrong_type(name: &str, wanted: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let given = value.get_type().name();
    let given = given.map_or_else(|_| "another type".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{name} is {wanted}, not {given}"))
}
