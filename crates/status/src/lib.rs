//! Errors, for every floor.
//!
//! [`Error`] follows RocksDB's vocabulary (code and subcode) so that a binding can map it without
//! guessing, and adds what an operator needs: the file, the offset and what to do next. It is
//! boxed: a `Result<(), Error>` is one pointer wide, so the success path stays cheap.
//!
//! Absence is never an error: lookups return `Option`. Thread-safety: values, `Send + Sync`.

mod conversions;
pub mod seeded;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of every fallible operation in Esker.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The coarse class of an error, with RocksDB's status codes as discriminants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum ErrorKind {
    /// Something that was asked for by name does not exist (a file, a family).
    NotFound = 1,
    /// Stored bytes contradict their checksum or the format.
    Corruption = 2,
    /// A known format feature, or an operation, that this build does not support.
    NotSupported = 3,
    /// The caller's argument or options contradict the database or each other.
    InvalidArgument = 4,
    /// The operating system refused an operation on a file.
    Io = 5,
    /// Merge operands could not be combined.
    MergeInProgress = 6,
    /// The operation is incomplete without I/O that the caller forbade.
    Incomplete = 7,
    /// The database is shutting down.
    ShutdownInProgress = 8,
    /// A wait reached its limit.
    TimedOut = 9,
    /// The operation was cancelled.
    Aborted = 10,
    /// A resource is in use by somebody else.
    Busy = 11,
    /// A condition that the caller set has expired.
    Expired = 12,
    /// A passing condition: the same call may succeed later.
    TryAgain = 13,
    /// A compaction asked for is larger than allowed.
    CompactionTooLarge = 14,
    /// The column family was dropped.
    ColumnFamilyDropped = 15,
}

impl ErrorKind {
    /// The prefix that RocksDB's status text carries for this kind.
    pub fn prefix(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "NotFound: ",
            ErrorKind::Corruption => "Corruption: ",
            ErrorKind::NotSupported => "Not implemented: ",
            ErrorKind::InvalidArgument => "Invalid argument: ",
            ErrorKind::Io => "IO error: ",
            ErrorKind::MergeInProgress => "Merge in progress: ",
            ErrorKind::Incomplete => "Result incomplete: ",
            ErrorKind::ShutdownInProgress => "Shutdown in progress: ",
            ErrorKind::TimedOut => "Operation timed out: ",
            ErrorKind::Aborted => "Operation aborted: ",
            ErrorKind::Busy => "Resource busy: ",
            ErrorKind::Expired => "Operation expired: ",
            ErrorKind::TryAgain => "Operation failed. Try again.: ",
            ErrorKind::CompactionTooLarge => "Compaction too large: ",
            ErrorKind::ColumnFamilyDropped => "Column family dropped: ",
        }
    }
}

/// A finer class inside an [`ErrorKind`], with RocksDB's subcode numbers as discriminants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[repr(u8)]
pub enum Subcode {
    /// Nothing finer is known.
    #[default]
    None = 0,
    /// A mutex wait timed out.
    MutexTimeout = 1,
    /// A lock wait timed out.
    LockTimeout = 2,
    /// Too many locks are held.
    LockLimit = 3,
    /// The device is full (`ENOSPC`), or the user's quota is (`EDQUOT`).
    NoSpace = 4,
    /// A deadlock was found.
    Deadlock = 5,
    /// A file is stale, or the call would have written a file it must not.
    StaleFile = 6,
    /// A memory limit was reached.
    MemoryLimit = 7,
    /// A space limit was reached.
    SpaceLimit = 8,
    /// A path does not exist.
    PathNotFound = 9,
    /// Merge operands are insufficient without a base value.
    MergeOperandsInsufficientCapacity = 10,
    /// A manual compaction was paused or cancelled.
    ManualCompactionPaused = 11,
    /// Something was overwritten.
    Overwritten = 12,
    /// A transaction was not prepared.
    TxnNotPrepared = 13,
    /// I/O was fenced off.
    IoFenced = 14,
    /// The merge operator said no.
    MergeOperatorFailed = 15,
    /// Somebody else holds the lock file: [`Error::lock_holder`] says who. RocksDB has no subcode
    /// for it.
    Locked = 128,
}

impl Subcode {
    /// RocksDB's number; that of [`Subcode::None`] where it has none.
    pub fn number(self) -> u8 {
        match self {
            Subcode::Locked => Subcode::None as u8,
            other => other as u8,
        }
    }
}

/// Who holds a lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockHolder {
    /// The process that asked for it.
    ThisProcess,
    /// Another process of this machine.
    Process {
        /// Its number.
        pid: u32,
        /// Its name, where the system says so.
        name: Option<String>,
    },
    /// A process that cannot be seen from here: of another machine or container.
    Unseen,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockHolder::ThisProcess => f.write_str("this process"),
            LockHolder::Process { pid, name: None } => write!(f, "process {pid}"),
            LockHolder::Process {
                pid,
                name: Some(name),
            } => write!(f, "process {pid} ({name})"),
            LockHolder::Unseen => f.write_str("a process that cannot be seen from here"),
        }
    }
}

#[derive(Clone, Debug)]
struct Detail {
    kind: ErrorKind,
    subcode: Subcode,
    message: String,
    file: Option<PathBuf>,
    /// The message names the file.
    is_file_said: bool,
    offset: Option<u64>,
    hint: Option<String>,
    os_error: Option<i32>,
    source: Option<Arc<io::Error>>,
    holder: Option<LockHolder>,
}

/// An error with its kind, the place it was found and what to do about it.
///
/// The text form is `PREFIX message[: file][ at offset N][; hint]`, where the prefix is RocksDB's.
#[derive(Clone)]
pub struct Error(Box<Detail>);

impl Error {
    /// An error of `kind` saying `message`.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Detail {
            kind,
            subcode: Subcode::None,
            message: message.into(),
            file: None,
            is_file_said: false,
            offset: None,
            hint: None,
            os_error: None,
            source: None,
            holder: None,
        }))
    }

    /// [`ErrorKind::Corruption`].
    #[cold]
    pub fn corruption(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corruption, message)
    }

    /// [`ErrorKind::NotSupported`].
    #[cold]
    pub fn not_supported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotSupported, message)
    }

    /// [`ErrorKind::InvalidArgument`].
    #[cold]
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// [`ErrorKind::NotFound`].
    #[cold]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// [`ErrorKind::Busy`].
    #[cold]
    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Busy, message)
    }

    /// [`ErrorKind::Aborted`].
    #[cold]
    pub fn aborted(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Aborted, message)
    }

    /// [`ErrorKind::ShutdownInProgress`].
    #[cold]
    pub fn shutdown() -> Self {
        Self::new(ErrorKind::ShutdownInProgress, "the database is closing")
    }

    /// An I/O error: `doing` says what was attempted, for example `"read"`.
    ///
    /// `ENOSPC` and `EDQUOT` get [`Subcode::NoSpace`], `ENOENT` gets [`Subcode::PathNotFound`].
    #[cold]
    pub fn io(doing: &str, path: &Path, source: &io::Error) -> Self {
        let e = Self::new(ErrorKind::Io, format!("{doing}: {source}")).with_file(path);
        e.caused_by(conversions::copy_of(source))
    }

    /// Takes over an error of the system.
    fn caused_by(mut self, source: io::Error) -> Self {
        const ENOENT: i32 = 2;
        const ENOSPC: i32 = 28;
        const EDQUOT: i32 = 122;
        self.0.os_error = source.raw_os_error();
        self.0.subcode = match self.0.os_error {
            Some(ENOSPC | EDQUOT) => Subcode::NoSpace,
            Some(ENOENT) => Subcode::PathNotFound,
            None if source.kind() == io::ErrorKind::NotFound => Subcode::PathNotFound,
            _ => Subcode::None,
        };
        self.0.source = Some(Arc::new(source));
        self
    }

    /// An I/O error about a lock file, in the form that RocksDB gives it: `doing: PATH: CAUSE`.
    #[cold]
    pub fn lock(doing: &str, path: &Path, source: &io::Error) -> Self {
        // Without the number that the standard library puts behind.
        let cause = source.to_string();
        let cause = cause.split(" (os error").next().unwrap_or_default();
        let mut e = Self::io(doing, path, source);
        e.0.message = format!("{doing}: {}: {cause}", path.display());
        e.0.is_file_said = true;
        e
    }

    /// Sets the subcode.
    #[must_use]
    pub fn with_subcode(mut self, subcode: Subcode) -> Self {
        self.0.subcode = subcode;
        self
    }

    /// Names the file that the error is about. A file already named is kept.
    #[must_use]
    pub fn with_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.0.file.get_or_insert_with(|| file.into());
        self
    }

    /// Names the byte offset in the file. An offset already named is kept.
    #[must_use]
    pub fn with_offset(mut self, offset: u64) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// Sets [`Subcode::Locked`], since `holder` has the lock.
    #[must_use]
    pub fn with_lock_holder(mut self, holder: LockHolder) -> Self {
        self.0.subcode = Subcode::Locked;
        self.0.holder = Some(holder);
        self
    }

    /// Adds a hint about what to do. A hint already given is kept.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// The coarse class.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The finer class.
    pub fn subcode(&self) -> Subcode {
        self.0.subcode
    }

    /// The message without prefix, place and hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The file the error is about.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// The byte offset in [`Error::file`].
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The hint about what to do.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Who holds the lock, of an error with [`Subcode::Locked`].
    pub fn lock_holder(&self) -> Option<&LockHolder> {
        self.0.holder.as_ref()
    }

    /// Returns whether the caller may not write there: no permission (`EACCES`, `EPERM`), or a
    /// filesystem that is mounted for reading (`EROFS`).
    pub fn is_unwritable(&self) -> bool {
        const EPERM: i32 = 1;
        const EACCES: i32 = 13;
        const EROFS: i32 = 30;
        matches!(self.0.os_error, Some(EPERM | EACCES | EROFS))
    }

    /// The operating system's error number.
    pub fn os_error(&self) -> Option<i32> {
        self.0.os_error
    }

    /// Returns whether space ran out (`ENOSPC`, `EDQUOT`).
    pub fn is_no_space(&self) -> bool {
        matches!(self.0.subcode, Subcode::NoSpace | Subcode::SpaceLimit)
    }

    /// Returns whether a limit was met that may be lifted while the process runs: space ran out, a
    /// file grew beyond what the process may write (`EFBIG`), or too many files were open
    /// (`EMFILE`,
    /// `ENFILE`).
    pub fn is_limit(&self) -> bool {
        const ENFILE: i32 = 23;
        const EMFILE: i32 = 24;
        const EFBIG: i32 = 27;
        self.is_no_space() || matches!(self.0.os_error, Some(ENFILE | EMFILE | EFBIG))
    }

    /// Returns whether stored bytes were found damaged.
    pub fn is_corruption(&self) -> bool {
        self.0.kind == ErrorKind::Corruption
    }

    /// Returns whether a path or name was missing.
    pub fn is_not_found(&self) -> bool {
        self.0.kind == ErrorKind::NotFound || self.0.subcode == Subcode::PathNotFound
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let d = &*self.0;
        write!(f, "{}{}", d.kind.prefix(), d.message)?;
        if let Some(file) = d.file.as_ref().filter(|_| !d.is_file_said) {
            write!(f, ": {}", file.display())?;
        }
        if let Some(offset) = d.offset {
            write!(f, " at offset {offset}")?;
        }
        if let Some(hint) = &d.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    /// The error of the operating system, if it comes from one.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.0.source.as_deref()?;
        Some(source)
    }
}

impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_carries_prefix_place_and_hint() {
        let e = Error::corruption("block checksum mismatch")
            .with_file("/db/000007.sst")
            .with_offset(4096)
            .with_hint("restore the file from a backup");
        assert_eq!(
            e.to_string(),
            "Corruption: block checksum mismatch: /db/000007.sst at offset 4096; restore the file from a backup"
        );
    }

    #[test]
    fn full_disk_is_recognised_from_the_errno() {
        for errno in [28, 122] {
            let e = Error::io(
                "append",
                Path::new("x"),
                &std::io::Error::from_raw_os_error(errno),
            );
            assert!(e.is_no_space());
        }
    }

    #[test]
    fn limits_of_the_process_are_recognised_from_the_errno() {
        for (errno, is_limit) in [(5, false), (23, true), (24, true), (27, true), (28, true)] {
            let source = std::io::Error::from_raw_os_error(errno);
            let e = Error::io("append", Path::new("x"), &source);
            assert_eq!(e.is_limit(), is_limit, "{errno}");
        }
    }

    #[test]
    fn a_lock_error_reads_as_rocksdbs_and_can_be_matched() {
        let source = std::io::Error::from_raw_os_error(11);
        let e = Error::lock("While lock file", Path::new("/db/LOCK"), &source);
        let name = Some("ldb".to_owned());
        let e = e.with_lock_holder(LockHolder::Process { pid: 7, name });
        let text = "IO error: While lock file: /db/LOCK: Resource temporarily unavailable";
        assert_eq!(e.to_string(), text);
        assert_eq!((e.subcode(), e.os_error()), (Subcode::Locked, Some(11)));
        assert_eq!(e.file(), Some(Path::new("/db/LOCK")));
        let holder = e.lock_holder().map(ToString::to_string);
        assert_eq!(holder.as_deref(), Some("process 7 (ldb)"));
        assert_eq!(e.subcode().number(), 0, "RocksDB has no number for it");
        assert!(!e.is_unwritable());
    }

    #[test]
    fn result_is_one_word() {
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }
}
